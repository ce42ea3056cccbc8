/* glovebox mcp: serves the tools to other agents by the Model Context Protocol. */

#include "mcp/server/mcp.h"
#include "audit/chain.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "base/value.h"
#include "build_config.h"
#include "cell/groups.h"
#include "cell/starter.h"
#include "front/agents.h"
#include "front/audit/recording.h"
#include "front/config_file.h"
#include "front/interrupt.h"
#include "front/review/layered.h"
#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/exec.h"
#include "front/wrap/mcp_install.h"
#include "mcp/server/http.h"
#include "mcp/server/service.h"
#include "mcp/server/stdio.h"
#include "plugins/plugin.h"
#include "policy/config.h"
#include "policy/policy.h"
#include "policy/service/recorded.h"
#include "policy/service/service.h"
#include "process/loop.h"
#include "process/role.h"
#include "store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Copies the resources, templates and prompts of plugin packages into the form for the
 * MCP server.
 */

/* Add ROWS to LIST. Each `file` becomes the path in the copy of PACKAGE. */
static void add_rows(const struct plugin_package *package, const struct value *rows,
		     struct value *list)
{
	for (size_t i = 0; i < value_count(rows); i++) {
		struct value *row = value_copy(value_item(rows, i));
		const char *file = value_text(value_member(row, "file"));
		struct buf path;

		buf_init(&path, PATH_MAX);
		if (file != NULL && buf_addf(&path, "%s/%s", package->copy, file))
			value_set_text(row, "file", path.data);
		buf_fini(&path);
		value_append(list, row);
	}
}

/*
 * Set the arrays resources, templates and package_prompts of OPTIONS. Their files are
 * those of the copies that were checked. PLUGINS may be NULL. *OWNER owns the arrays: the
 * caller frees it by value_free afterwards.
 */
static void mcp_packages_add(const struct plugins *plugins, struct mcp_options *options,
			     struct value **owner)
{
	struct value *resources = value_new_array(), *templates = value_new_array();
	struct value *prompts = value_new_array();

	for (size_t i = 0; plugins != NULL && i < plugins->package_count; i++) {
		const struct plugin_package *package = plugins->packages[i];

		add_rows(package, package->manifest.resources, resources);
		add_rows(package, package->manifest.resource_templates, templates);
		add_rows(package, package->manifest.prompts, prompts);
	}
	*owner = value_new_array();
	value_append(*owner, resources);
	value_append(*owner, templates);
	value_append(*owner, prompts);
	options->resources = resources;
	options->templates = templates;
	options->package_prompts = prompts;
}

enum {
	READY_WORKERS = 2, /* workers that wait for calls beside the busy ones */
	PATIENCE_S = 25,   /* clients give up after 60 s, some after 30 */
	/*
	 * The wait for the servers' lists. Clients that take no notice of changes should
	 * see all tools in the first list, and some clients wait only 10 s for it.
	 */
	SERVERS_MS = 4000,
	/*
	 * The time limit of a client's command. It changes one file, but on a busy machine
	 * some clients need half a minute to be ready for it.
	 */
	INSTALL_SECONDS = 120,
	INSTALL_WORD_MAX = 256 << 10, /* an argument has at most half of it */
};

static const struct option_row mcp_options[] = {
	{"http", 0, OPTION_TEXT, "ADDRESS:PORT",
	 "serve HTTP there (port 0: any) instead of standard input and output"},
	{"token-file", 0, OPTION_TEXT, "FILE",
	 "with --http: take requests with this bearer token only"},
	{"host", 0, OPTION_TEXTS, "NAME",
	 "with --http: answer to this name too (may be repeated)"},
	{"patience", 0, OPTION_SECONDS, "S",
	 "let a call go on as a job after S seconds (default: 25; 0: never)"},
	{"install", 0, OPTION_TEXT, "CLIENT",
	 "add this server to CLIENT (claude, codex, …) by the client's own command",
	 NAMES_CLIENTS},
	{"print", 0, OPTION_FLAG, NULL,
	 "with --install: only print the entry, its place and the command"},
	{"write", 0, OPTION_FLAG, NULL,
	 "with --install: as without (version 0.1.0 only printed without it)"},
	{"new-token", 0, OPTION_TEXT, "NAME",
	 "make a token for service.tokens of the configuration, and print it once"},
	{"allow-estimates", 0, OPTION_FLAG, NULL,
	 "with --http: count the quotas of tokens by estimates where there is no control group"},
	{"scope", 0, OPTION_TEXT, "WHEN",
	 "with --http, auto or never: begin again in a scope of systemd where there is no "
	 "control group (default: auto)"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_ALLOW_HOST,
	OPTION_ROW_ASK,
	OPTION_ROW_BASE,
	OPTION_ROW_REVIEW,
	OPTION_ROW_NO_REVIEW,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

struct serving;

/* The parts of a session of tools: the one that all clients share, or that of a cell. */
struct hands {
	struct serving *serving;
	struct setup setup;
	struct orchestrate *orchestrate;
	struct session *session; /* of the served tools; NULL: not opened yet */
	struct value *packages;  /* resources, templates and prompts of plugin packages */
	/* of a cell whose state is its own: the variables of this process, with its place */
	char *token, *cell, *client; /* its names and its client, for records; or NULL */
};

struct serving {
	const struct options *options;
	struct hands shared; /* of all clients; of a service: its rights bound each cell */
	struct service settings;     /* of the configuration, for --http */
	struct recording *recording; /* of all cells; NULL: the configuration wants none */
	struct starter starter;      /* of the cells of a service */
	struct interrupt *interrupt;
	struct loop *loop;
	struct mcp *mcp; /* that of `shared`; NULL: not made yet, or ending */
	struct mcp_service *service;
	struct supervisor *supervisor;
	struct buf used_file;           /* where the use of tokens is kept */
	const char *protected_files[2]; /* the tokens file; NULL-ended */
	struct pollfd ends[3];          /* setup.ends of the shared session */
	int parent;                     /* a pidfd of our parent, among them; -1 */
};

/* Does each client have a cell of its own, or that of its token? */
static bool has_cells(const struct serving *serving)
{
	return serving->settings.given && serving->settings.cells != SERVICE_SHARED;
}

/* Add the facts that a model needs before its first call, the most important first. */
static void add_instructions(const struct setup *setup, struct buf *text)
{
	const struct policy *policy = setup->policy;

	(void)buf_adds(text,
		       "Glovebox runs every tool in one sealed cell: files, commands and "
		       "tests see the same view, and nothing reaches the rest of the "
		       "machine.\n");
	(void)buf_addf(text, "Workspace: %.500s; paths are relative to it.\n",
		       setup->workspace);
	if (policy_asks(policy, "network"))
		(void)buf_adds(text,
			       "Commands reach listed hosts by HTTP_PROXY, and others when "
			       "the person allows it.\n");
	else if (policy->network.count == 0)
		(void)buf_adds(text, "Commands have no network but loopback.\n");
	else
		(void)buf_adds(text, "Commands reach listed hosts only, by HTTP_PROXY.\n");
	(void)buf_adds(
		text,
		"What a wall, a rule or a limit refuses is said in the result, with the remedy; "
		"trying around it does not help.\n"
		"Prefer read_file, grep, glob and edit_file to cat, find and sed: they are faster "
		"and bounded. Read a file before you change it.\n"
		"A call that takes long goes on as a job: follow it by the tool job. Output that "
		"is too long is kept whole in a file that the result names.\n");
}

/* Say where the writes of a session with a layer are. */
static void add_layer(const struct setup *setup, struct buf *text)
{
	if (setup->review != NULL)
		(void)buf_addf(text,
			       "What is written goes into a layer, review %s: the folder's files stay "
			       "as they are until a person lands it.\n",
			       setup->review->meta.id);
}

/*
 * The commands of a devcontainer, which run before the shared session, end with what ends
 * SERVING: a signal, and the client, which closes its end of our input then. Where it has done so
 * already (`printf … | glovebox mcp`), its requests wait for answers.
 */
static void watch_ends(struct serving *serving)
{
	struct setup *setup = &serving->shared.setup;
	const bool http = options_given(serving->options, "http");
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLRDHUP};

	serving->parent = -1;
	serving->ends[0] =
		(struct pollfd){.fd = interrupt_fd(serving->interrupt), .events = POLLIN};
	serving->ends[1] = input;
	/* A client that has said all before is there as long as it reads. */
	if (!http && poll(&input, 1, 0) == 1 && input.revents != 0)
		serving->ends[1] = (struct pollfd){.fd = STDOUT_FILENO};
	setup->ends = serving->ends;
	setup->end_count = http ? 1 : 2;
	if (!http && role_parent(&serving->parent) && serving->parent >= 0)
		serving->ends[setup->end_count++] =
			(struct pollfd){.fd = serving->parent, .events = POLLIN};
}

static void forget_ends(struct serving *serving)
{
	serving->shared.setup.end_count = 0;
	fd_close(&serving->parent);
}

static bool open_session(void *context, struct loop *loop, struct event_sink sink,
			 struct session **session, struct err *err)
{
	struct hands *hands = context;
	const bool many = hands != &hands->serving->shared;
	struct session_options options = {
		.loop = loop,
		.sink = sink,
		.ready_workers = many ? 1 : READY_WORKERS,
		.answers_questions = true,
		.answers_approvals = true,
		.cancel_fd = -1,
		.starter = many ? &hands->serving->starter : NULL,
		.dormant = many,
		.caller_environment = hands->setup.environment,
		.counting = hands->serving->settings.given ? COUNTING_CELL
							   : COUNTING_COMMANDS,
	};
	bool opened;

	if (!many)
		watch_ends(hands->serving);
	opened = setup_session_err(&hands->setup, &options, session, err);
	if (!many)
		forget_ends(hands->serving);
	if (opened) {
		hands->session = *session;
		return true;
	}
	/* Tell the person now; the client is told with its first call. */
	(void)verb_complain(CODE_NO_CELL, "%s", err->text);
	return false;
}

static void complain(void *context, const char *sentence)
{
	(void)context;
	(void)verb_complain(CODE_FAILED, "%s; it is left out", sentence);
}

static void say_fault(void *context, const char *sentence)
{
	(void)context;
	(void)verb_complain(CODE_FAILED, "%s", sentence);
}

static struct mcp *make_server(struct hands *hands)
{
	const struct serving *serving = hands->serving;
	struct buf instructions, prompts;
	struct mcp_options options = {
		.loop = serving->loop,
		.open = open_session,
		.context = hands,
		.complain = complain,
		.version = GLOVEBOX_VERSION,
		.tools_change = hands->setup.servers.remotes != NULL,
		.patience_s = options_seconds(serving->options, "patience", PATIENCE_S),
		.unwatched = hands != &serving->shared,
	};
	struct mcp *mcp;

	buf_init(&instructions, MCP_INSTRUCTIONS_MAX);
	buf_init(&prompts, PATH_MAX);
	add_instructions(&hands->setup, &instructions);
	add_layer(&hands->setup, &instructions);
	options.instructions = instructions.data;
	options.prompts = config_file_beside("prompts", &prompts) ? prompts.data : NULL;
	mcp_packages_add(hands->setup.plugins.loaded, &options, &hands->packages);
	mcp = mcp_new(&options);
	buf_fini(&prompts);
	buf_fini(&instructions);
	return mcp;
}

static int code_of_end(const struct serving *serving)
{
	const int signal = interrupt_signal(serving->interrupt);

	return signal != 0 ? CODE_SIGNAL + signal : CODE_DONE;
}

static int serve_stdio(struct serving *serving, struct mcp *mcp)
{
	const struct mcp_stdio stdio = {
		.mcp = mcp,
		.loop = serving->loop,
		.input = STDIN_FILENO,
		.output = STDOUT_FILENO,
		.stop_fd = interrupt_fd(serving->interrupt),
	};
	struct err err;

	if (isatty(STDIN_FILENO))
		(void)fputs("glovebox: speaking MCP on standard input and output; "
			    "see: glovebox mcp --help\n",
			    stderr);
	if (!mcp_stdio_run(&stdio, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	return code_of_end(serving);
}

/*
 * A service manager (sd_notify(3), sd_listen_fds(3)): it is told when the service is ready and
 * when it ends, and that the loop turns, and it may have made the socket.
 */

enum {
	FIRST_PASSED = 3,
	TOLD_MAX = 512,
	MICRO_IN_MILLI = 1000,
	/*
	 * While the server drains it asks so often for so much more time: systemd would end it
	 * after TimeoutStopSec, which need not be longer than `drain_s`.
	 */
	EXTEND_EACH_MS = 5000,
	EXTEND_MS = 30000,
};

struct supervisor {
	struct sockaddr_un address;
	socklen_t size;
	int socket;
	struct timer beat;
	int64_t beat_ms; /* so often it wants to hear of us; 0: never */
	struct timer extend;
};

static void supervisor_tell(const struct supervisor *supervisor, const char *text)
{
	/* A manager that does not read must not stop the service. */
	if (supervisor != NULL)
		(void)!sendto(supervisor->socket, text, strlen(text), MSG_NOSIGNAL,
			      (const struct sockaddr *)&supervisor->address,
			      supervisor->size);
}

static void beat_due(struct timer *timer)
{
	const struct supervisor *supervisor = timer->context;

	timer->due_ms = clock_now_ms() + supervisor->beat_ms;
	supervisor_tell(supervisor, "WATCHDOG=1");
}

static void extend_due(struct timer *timer)
{
	char told[TOLD_MAX];

	timer->due_ms = clock_now_ms() + EXTEND_EACH_MS;
	(void)snprintf(told, sizeof(told), "EXTEND_TIMEOUT_USEC=%lld",
		       (long long)EXTEND_MS * MICRO_IN_MILLI);
	supervisor_tell(timer->context, told);
}

/* Is the variable NAME the number of this process, or not there? */
static bool is_for_us(const char *name)
{
	const char *said = config_file_variable(name);
	uint64_t pid;

	return said == NULL ||
	       (text_parse_count(said, INT_MAX, &pid, NULL) && (pid_t)pid == getpid());
}

/* NULL: nobody wants to be told. */
static struct supervisor *supervisor_open(struct loop *loop)
{
	const char *path = config_file_variable("NOTIFY_SOCKET");
	const char *often = config_file_variable("WATCHDOG_USEC");
	struct supervisor *supervisor;
	uint64_t us = 0;
	size_t length;

	if (path == NULL || (path[0] != '/' && path[0] != '@'))
		return NULL;
	length = strlen(path);
	supervisor = memory_alloc(sizeof(*supervisor));
	supervisor->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (supervisor->socket < 0 || length >= sizeof(supervisor->address.sun_path)) {
		fd_close(&supervisor->socket);
		free(supervisor);
		return NULL;
	}
	supervisor->address.sun_family = AF_UNIX;
	memcpy(supervisor->address.sun_path, path, length);
	if (path[0] == '@')
		supervisor->address.sun_path[0] = '\0';
	supervisor->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	if (often != NULL && is_for_us("WATCHDOG_PID") &&
	    text_parse_count(often, UINT32_MAX, &us, NULL))
		supervisor->beat_ms = (int64_t)(us / MICRO_IN_MILLI / 2);
	supervisor->beat = (struct timer){.due_ms = CLOCK_NEVER,
					  .due = beat_due,
					  .context = supervisor};
	supervisor->extend = (struct timer){.due_ms = CLOCK_NEVER,
					    .due = extend_due,
					    .context = supervisor};
	loop_add_timer(loop, &supervisor->beat);
	loop_add_timer(loop, &supervisor->extend);
	return supervisor;
}

static void supervisor_close(struct supervisor *supervisor)
{
	if (supervisor == NULL)
		return;
	loop_remove_timer(&supervisor->beat);
	loop_remove_timer(&supervisor->extend);
	fd_close(&supervisor->socket);
	free(supervisor);
}

/* The socket that the manager has made is *FD; -1: it has made none. */
static bool supervisor_socket(int *fd, struct err *err)
{
	const char *count = config_file_variable("LISTEN_FDS");

	*fd = -1;
	if (count == NULL || config_file_variable("LISTEN_PID") == NULL ||
	    !is_for_us("LISTEN_PID"))
		return true;
	if (strcmp(count, "1") != 0)
		return err_set(err, EINVAL,
			       "LISTEN_FDS=%.20s: one socket is taken, which is that of --http",
			       count);
	*fd = FIRST_PASSED;
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDNAMES");
	return fcntl(*fd, F_SETFD, FD_CLOEXEC) == 0 ||
	       err_set(err, EINVAL, "LISTEN_FDS: descriptor 3: %s", strerror(errno));
}

static void say_address(void *context, const char *url, bool has_token)
{
	const struct serving *serving = context;
	char told[TOLD_MAX];

	/* The blank ends the address for a program that reads it from here. */
	(void)fprintf(stderr, "glovebox: serving MCP at %s%s\n", url,
		      has_token ? ""
				: " (every program of this machine may call; --token-file: only "
				  "those that know a token)");
	(void)snprintf(told, sizeof(told), "READY=1\nSTATUS=serving MCP at %s", url);
	supervisor_tell(serving->supervisor, told);
	if (serving->supervisor != NULL && serving->supervisor->beat_ms > 0)
		serving->supervisor->beat.due_ms =
			clock_now_ms() + serving->supervisor->beat_ms;
}

static void say_draining(void *context)
{
	const struct serving *serving = context;

	supervisor_tell(serving->supervisor, "STOPPING=1\nSTATUS=waiting for calls to end");
	if (serving->supervisor != NULL)
		serving->supervisor->extend.due_ms = 0;
}

/* The cells of a service. */

static void hands_fini(struct hands *hands)
{
	value_free(hands->packages);
	orchestrate_close(hands->orchestrate);
	(void)layered_end(&hands->setup, false,
			  hands == &hands->serving->shared ? stderr : NULL);
	setup_fini(&hands->setup);
	free(hands->token);
	free(hands->cell);
	free(hands->client);
}

/* Set up HANDS with the rights of the service, in WORKSPACE or that of the options. */
static int open_setup(struct hands *hands, const char *workspace, const char *agent)
{
	const struct serving *serving = hands->serving;
	const struct service *settings = &serving->settings;
	const bool by_policy = agent == NULL && settings->policy != NULL;
	const struct setup_flags flags = {
		.workspace = workspace,
		.agent = agent != NULL                              ? agent
			 : options_given(serving->options, "agent") ? NULL
								    : settings->agent,
		.policy = by_policy ? settings->policy : NULL,
		.policy_file = by_policy ? "service.policy" : NULL,
		.protected_files = serving->protected_files,
		.recording = serving->recording,
		.quiet_plugins = hands != &serving->shared,
	};
	const int code = setup_open(&hands->setup, serving->options, &flags);

	/* Others wait for the service meanwhile. */
	hands->setup.prepares = hands == &serving->shared;

	if (code == CODE_DONE && settings->cell_base != NULL &&
	    !options_given(serving->options, "base"))
		setup_set_base(&hands->setup, settings->cell_base);
	return code;
}

/*
 * Narrow the rights of HANDS to those of the service and to the policy of WISH. The base of the
 * cell is no right: it stays that of the service.
 */
static bool narrow(struct hands *hands, const struct mcp_wish *wish, struct err *err)
{
	auto_value struct value *bounds = value_new_array();
	const struct value *entries = hands->serving->shared.setup.entries;
	const struct policy *policy = wish->agent != NULL
					      ? hands->serving->shared.setup.policy
					      : hands->setup.policy;
	auto_free char *base = memory_copy(policy->cell_base);
	struct value *row;

	for (size_t i = 0; wish->agent != NULL && i < value_count(entries); i++)
		value_append(bounds, value_copy(value_item(entries, i)));
	if (wish->policy != NULL) {
		row = value_new_object();
		value_set_text(row, "agent", POLICY_NAME_DEFAULT);
		value_set(row, "entry", value_copy(wish->policy));
		value_append(bounds, row);
	}
	if (value_count(bounds) == 0)
		return true;
	free(hands->setup.policy->cell_base);
	hands->setup.policy->cell_base = NULL;
	if (!setup_serve_within(&hands->setup, bounds, err))
		return false;
	free(hands->setup.policy->cell_base);
	hands->setup.policy->cell_base = memory_copy(base);
	hands->setup.base_is_lent = true;
	return true;
}

static bool hands_open(struct hands *hands, const struct mcp_wish *wish, struct err *err)
{
	const struct serving *serving = hands->serving;
	const struct orchestrate_options orchestrate = {.setup = &hands->setup,
							.alone = true};
	const char *workspace = wish->workspace != NULL ? wish->workspace
							: serving->shared.setup.workspace;

	if (open_setup(hands, workspace, wish->agent) != CODE_DONE)
		return err_set(err, ECANCELED, "the complaint above");
	hands->setup.token = hands->token = memory_copy(wish->token);
	hands->setup.cell = hands->cell = memory_copy(wish->cell);
	if (wish->client != NULL && wish->client[0] != '\0')
		hands->setup.client = hands->client = memory_copy(wish->client);
	if (wish->state != NULL)
		setup_keep_state(&hands->setup, wish->state);
	return narrow(hands, wish, err) &&
	       orchestrate_open(&orchestrate, &hands->orchestrate, err) &&
	       (!hands->setup.policy->review ||
		options_given(serving->options, "no-review") ||
		layered_go_on(&hands->setup, NULL, false, "glovebox mcp", err));
}

/* The client does not read of folders and files of this machine; the person does. */
static bool open_cell(void *context, const struct mcp_wish *wish,
		      struct mcp_observer observer, struct mcp **mcp, void **kept,
		      struct err *err)
{
	struct hands *hands = memory_alloc(sizeof(*hands));

	hands->serving = context;
	if (!hands_open(hands, wish, err)) {
		(void)verb_complain(CODE_FAILED, "the cell %s of %s could not be made: %s",
				    wish->cell, wish->token, err->text);
		hands_fini(hands);
		free(hands);
		return err_set(err, ECHILD,
			       "The cell could not be made; the log of the service says why.");
	}
	*mcp = make_server(hands);
	(*mcp)->options.observer = observer;
	*kept = hands;
	return true;
}

static void cell_closed(void *context, void *kept)
{
	(void)context;
	hands_fini(kept);
	free(kept);
}

static bool read_tokens(void *context, const char *path, struct buf *text, struct err *err)
{
	(void)context;
	return config_file_read(path, text, err);
}

static bool check_token(void *context, const struct service_token *token, struct err *err)
{
	(void)context;
	if (value_member(token->policy, "cell_base") != NULL)
		return err_set(err, EINVAL,
			       "policy: cell_base: all tokens work on the base of the service "
			       "(service.cell_base); leave it out here");
	return (token->agent == NULL || config_check_name(token->agent, err)) &&
	       (token->policy == NULL || config_check_entry(token->policy, "policy", err));
}

static uint64_t count_dropped(void *context)
{
	const struct serving *serving = context;

	return recording_dropped(serving->recording);
}

static bool is_stuck(void *context)
{
	const struct serving *serving = context;

	return recording_is_stuck(serving->recording);
}

static bool counts_exactly(const struct service_quota *quota, struct err *err)
{
	const struct policy_limits limits = {
		.cpu_s = quota->cpu_s_day > 0 ? 1 : 0,
		.written = quota->written_day > 0 ? 1 : 0,
	};

	return groups_cell_check(&limits, err);
}

/* Make a cell and end it, so that the person who starts the service sees what is wrong. */
static bool try_cell(struct serving *serving)
{
	struct mcp_wish wish = {.token = "nobody", .cell = "trial"};
	struct mcp *mcp = NULL;
	void *kept = NULL;
	struct buf folder;
	struct err err;
	bool opens = false;

	buf_init(&folder, PATH_MAX);
	if (!verb_temp_folder("mcp", &folder, &err)) {
		(void)verb_complain(CODE_FAILED, "mcp: %s", err.text);
	} else {
		wish.workspace = wish.state = folder.data;
		if (open_cell(serving, &wish, (struct mcp_observer){0}, &mcp, &kept, &err)) {
			opens = mcp_open(mcp, &err);
			mcp_free(mcp);
			cell_closed(serving, kept);
		}
		fd_folder_remove(folder.data);
	}
	buf_fini(&folder);
	return opens;
}

/* The use of a token on this day is kept in a file of its own for each tokens file. */
static void find_used_file(const struct serving *serving, struct buf *path)
{
	char hash[HASH_HEX + 1], name[NAME_MAX];

	if (serving->settings.tokens == NULL)
		return;
	hash_text(str_of(serving->settings.tokens), hash);
	hash[HASH_SHOWN] = '\0';
	(void)snprintf(name, sizeof(name), "service-used-%s.json", hash);
	if (!database_state_path(name, path, NULL))
		buf_clear(path);
}

/* Sessions are recorded where their events pass; of tokens only the service knows. */
static bool record_token(void *context, const struct mcp_record *told, struct err *err)
{
	const struct serving *serving = context;
	struct chain_record record = chain_record_of(CHAIN_TOKEN);
	auto_value struct value *more = NULL;

	if (told->what != MCP_TOLD_TOKEN)
		return true;
	more = value_new_object();
	value_set_text(more, "what", told->text);
	record.front = "mcp";
	record.token = told->token;
	record.more = more;
	return recording_add(serving->recording, &record, false, err);
}

static bool open_service(struct serving *serving, struct mcp *mcp, struct err *err)
{
	struct mcp_service_options service = {
		.loop = serving->loop,
		.settings = &serving->settings,
		.shared = has_cells(serving) ? NULL : mcp,
		.root = serving->shared.setup.workspace,
		.version = GLOVEBOX_VERSION,
		.estimates = options_given(serving->options, "allow-estimates"),
		.counts = counts_exactly,
		.host = {open_cell, cell_closed, read_tokens, check_token, count_dropped,
			 is_stuck, serving},
		.observer = {record_token, serving},
		.complain = say_fault,
	};

	find_used_file(serving, &serving->used_file);
	service.used_file = serving->used_file.size > 0 ? serving->used_file.data : NULL;
	return mcp_service_open(&service, &serving->service, err);
}

static int serve_http(struct serving *serving, struct mcp *mcp)
{
	const struct options *options = serving->options;
	struct mcp_http http = {
		.loop = serving->loop,
		.address = options_text(options, "http"),
		.token_file = options_text(options, "token-file"),
		.token = getenv("GLOVEBOX_MCP_TOKEN"),
		.hosts = options_texts(options, "host"),
		.stop_fd = interrupt_fd(serving->interrupt),
		.listening = say_address,
		.draining = say_draining,
		.context = serving,
	};
	struct err err;
	bool ok;

	/*
	 * Open the session now: no client waits yet, and the person who starts the server
	 * should see a fault.
	 */
	if (has_cells(serving) ? !try_cell(serving) : !mcp_open(mcp, &err))
		return CODE_NO_CELL;
	ok = supervisor_socket(&http.take_socket, &err) && open_service(serving, mcp, &err);
	http.service = serving->service;
	ok = ok && mcp_http_run(&http, &err);
	mcp_service_close(serving->service);
	if (!ok)
		return verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED, "%s",
				     err.text);
	/* A service that has ended as it was told has not failed. */
	return serving->settings.given ? CODE_DONE : code_of_end(serving);
}

static int serve(struct serving *serving)
{
	struct hands *hands = &serving->shared;
	const bool shared = hands->setup.servers.loop != NULL;
	struct mcp *mcp;
	struct err err;
	int code;

	if (!interrupt_start(serving->interrupt, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	/* The tools of MCP servers answer in the servers' loop. */
	serving->loop = shared ? hands->setup.servers.loop : loop_new();
	serving->supervisor = supervisor_open(serving->loop);
	mcp = make_server(hands);
	serving->mcp = mcp;
	code = options_given(serving->options, "http") ? serve_http(serving, mcp)
						       : serve_stdio(serving, mcp);
	serving->mcp = NULL;
	mcp_free(mcp);
	supervisor_close(serving->supervisor);
	if (!shared)
		loop_free(serving->loop);
	return code;
}

/* Called when the tools of the servers have changed. */
static bool tools_changed(void *context)
{
	struct serving *serving = context;
	struct hands *hands = &serving->shared;
	struct err err;

	if (hands->session == NULL || serving->mcp == NULL)
		return hands->session == NULL;
	if (!session_set_tools(hands->session, setup_tools(&hands->setup), &err)) {
		(void)verb_complain(CODE_FAILED, "%s", err.text);
		return false;
	}
	mcp_list_changed(serving->mcp, MCP_LIST_TOOLS);
	return true;
}

static bool start_servers(struct serving *serving, struct err *err)
{
	struct hands *hands = &serving->shared;
	const struct orchestrate_options options = {.setup = &hands->setup, .alone = true};
	struct front_servers *servers = &hands->setup.servers;

	if (has_cells(serving) && servers->settings != NULL)
		return err_set(err, EINVAL,
			       "mcpServers: each cell would have servers of its own; give a "
			       "--config without them, or \"cell\": \"shared\" in `service`");
	servers->wait_ms = SERVERS_MS;
	servers->asks = REMOTE_ASKS_FORMS | REMOTE_ASKS_ADDRESSES;
	servers->changed = tools_changed;
	servers->context = serving;
	return setup_serve(&hands->setup, err) &&
	       orchestrate_open(&options, &hands->orchestrate, err);
}

/* One word, because opencode makes a number of a word that looks like one. */
static void pass(struct value *words, const char *name, const char *text)
{
	struct buf word;

	buf_init(&word, INSTALL_WORD_MAX);
	(void)buf_addf(&word, "--%s=%s", name, text);
	value_append(words, value_new_text(word.data));
	buf_fini(&word);
}

/*
 * Pass PATH as an absolute path, since the client starts the server in another folder.
 * The client itself fills in a PATH that begins with "$".
 */
static void pass_path(struct value *words, const char *name, const char *path)
{
	auto_free char *here =
		path[0] == '/' || path[0] == '$' ? NULL : realpath(".", NULL);
	struct buf place;

	buf_init(&place, PATH_MAX);
	pass(words, name, here && path_normal(here, path, &place) ? place.data : path);
	buf_fini(&place);
}

/* The options beside --install are those that the server will be started with. */
static int install(const struct options *options, FILE *out)
{
	static const char *const paths[] = {"workspace", "config"};
	static const char *const passed[] = {"agent", "minimum-level", "patience"};
	static const char *const repeated[] = {"allow-host", "ask"};
	struct value *list = value_new_array();
	auto_free const char **words = NULL;
	int code;

	value_append(list, value_new_text("mcp"));
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (options_given(options, paths[i]))
			pass_path(list, paths[i], options_text(options, paths[i]));
	}
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		if (options_given(options, passed[i]))
			pass(list, passed[i], options_text(options, passed[i]));
	}
	for (size_t i = 0; i < sizeof(repeated) / sizeof(repeated[0]); i++) {
		const char *const *texts = options_texts(options, repeated[i]);

		for (; *texts != NULL; texts++)
			pass(list, repeated[i], *texts);
	}
	words = memory_array(value_count(list) + 1, sizeof(*words));
	for (size_t i = 0; i < value_count(list); i++)
		words[i] = value_text(value_item(list, i));
	code = mcp_install(
		&(struct mcp_install){
			.client = options_text(options, "install"),
			.arguments = words,
			.has_workspace = options_given(options, "workspace"),
			.prints = options_given(options, "print"),
			.limit_s = INSTALL_SECONDS,
		},
		out);
	value_free(list);
	return code;
}

/* A server that lives long gets a control group of its own, where systemd gives it one. */
static bool scope_settle(const struct options *options, struct err *err)
{
	const struct policy_limits any = {.cpu_s = 1};
	bool begins_again;

	if (!exec_scope(options, &begins_again, err))
		return false;
	/* A unit of systemd says itself whether it has a group (Delegate=). */
	begins_again = begins_again && config_file_variable("NOTIFY_SOCKET") == NULL &&
		       config_file_variable("LISTEN_PID") == NULL;
	if (options_given(options, "http") && begins_again && !groups_cell_check(&any, NULL))
		exec_begin_in_scope();
	return true;
}

/* Read `service` of the configuration. */
static bool read_settings(struct serving *serving, struct err *err)
{
	auto_config struct config *config = NULL;
	struct recorded recorded;
	const struct value *value;
	bool ok;

	if (!config_file_load(options_text(serving->options, "config"), &config, err))
		return false;
	value = config_value(config, "service");
	service_read(value, &serving->settings);
	if (!serving->settings.given)
		serving->settings.cells = SERVICE_SHARED;
	serving->protected_files[0] = serving->settings.tokens;
	recorded_read(value, &recorded);
	ok = options_given(serving->options, "new-token") ||
	     !recorded_is_wanted(&recorded) ||
	     recording_open(&recorded, true, &serving->recording, err);
	recorded_fini(&recorded);
	if (!ok)
		return false;
	if (serving->settings.policy == NULL ||
	    config_check_entry(serving->settings.policy, "service.policy", err))
		return true;
	err->code = CONFIG_WRONG;
	return false;
}

static int new_token(struct serving *serving, const char *name, FILE *out)
{
	const char *path = serving->settings.tokens;
	struct buf text, token;
	struct err err;
	bool made;

	if (path == NULL)
		return verb_complain(CODE_USAGE,
				     "mcp: --new-token writes into the file that service.tokens of "
				     "the configuration names; name one there");
	buf_init(&text, CONFIG_TEXT_MAX);
	buf_init(&token, NAME_MAX);
	made = (config_file_read(path, &text, &err) || err.code == ENOENT) &&
	       mcp_service_new_token(path, buf_str(&text), name, &token, &err);
	if (made) {
		(void)fprintf(out, "%s\n", token.data);
		(void)fprintf(stderr,
			      "glovebox: this is the token %s, which is not shown again; its "
			      "rights and its quota stand in %s\n",
			      name, path);
	} else if (err.code == ENOENT)
		(void)err_set(&err, ENOENT,
			      "service.tokens: %s cannot be made, because its folder does not "
			      "exist; make the folder first",
			      path);
	buf_fini(&token);
	buf_fini(&text);
	return made ? CODE_DONE
		    : verb_complain(err.code == EINVAL || err.code == EEXIST ? CODE_USAGE
									     : CODE_FAILED,
				    "mcp: %s", err.text);
}

/* Do the options fit each other? */
static int check_options(const struct options *options)
{
	static const char *const with_http[] = {"token-file", "host", "scope",
						"allow-estimates"};

	if (!options_given(options, "install") &&
	    (options_given(options, "print") || options_given(options, "write")))
		return verb_complain(CODE_USAGE,
				     "mcp: --print and --write go with --install");
	if (options_given(options, "print") && options_given(options, "write"))
		return verb_complain(CODE_USAGE,
				     "mcp: --print only prints, --write does not");
	for (size_t i = 0; i < sizeof(with_http) / sizeof(with_http[0]); i++) {
		if (options_given(options, with_http[i]) && !options_given(options, "http"))
			return verb_complain(CODE_USAGE, "mcp: --%s goes with --http",
					     with_http[i]);
	}
	if (options_given(options, "install") && options_given(options, "http"))
		return verb_complain(CODE_USAGE,
				     "mcp: --install is for clients that start the server "
				     "themselves; --http serves those that find one");
	return CODE_DONE;
}

static int begin_serving(struct serving *serving)
{
	const struct options *options = serving->options;
	struct hands *hands = &serving->shared;
	const char *root = serving->settings.root;
	struct err err = {0};
	int code;

	if (root != NULL && access(root, F_OK) < 0 && errno == ENOENT)
		return verb_complain(CODE_FAILED,
				     "mcp: service.root: %s does not exist; make this folder "
				     "first, for the user of the service only",
				     root);
	code = open_setup(hands, root, NULL);
	hands->setup.publishes = !has_cells(serving);
	if (code == CODE_DONE && has_cells(serving) && options_given(options, "review"))
		code = verb_complain(CODE_USAGE,
				     "mcp: --review is one layer, and each cell would need its own: "
				     "say \"review\": true in the agent's policy");
	if (code == CODE_DONE && !has_cells(serving))
		code = layered_take(&hands->setup, options, "glovebox mcp");
	if (code == CODE_DONE &&
	    (!start_servers(serving, &err) || !interrupt_open(&serving->interrupt, &err)))
		code = verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED, "%s",
				     err.text);
	return code == CODE_DONE ? serve(serving) : code;
}

static int mcp_run(const struct options *options, FILE *out)
{
	struct serving serving = {.options = options};
	struct err err = {0};
	int code = check_options(options);

	if (code != CODE_DONE)
		return code;
	if (!scope_settle(options, &err))
		return verb_complain(CODE_USAGE, "mcp: %s", err.text);
	if (options_given(options, "install"))
		return install(options, out);
	serving.shared.serving = &serving;
	serving.settings.cells = SERVICE_SHARED;
	buf_init(&serving.used_file, PATH_MAX);
	starter_init(&serving.starter, NULL);
	if ((options_given(options, "http") || options_given(options, "new-token")) &&
	    !read_settings(&serving, &err))
		code = verb_complain(setup_code(&err), "%s", err.text);
	else if (options_given(options, "new-token"))
		code = new_token(&serving, options_text(options, "new-token"), out);
	else
		code = begin_serving(&serving);
	interrupt_close(serving.interrupt);
	hands_fini(&serving.shared);
	starter_fini(&serving.starter);
	recording_close(serving.recording);
	service_fini(&serving.settings);
	buf_fini(&serving.used_file);
	return code;
}

static const char mcp_help[] =
	"Serve the tools of an agent to any client of the Model Context Protocol (2024-11-05,\n"
	"2025-06-18, 2025-11-25, 2026-07-28), over standard input and output, or over HTTP with\n"
	"--http. All calls run in one cell, made from the agent's policy (see: glovebox policy\n"
	"explain).\n\n"
	"Over HTTP only this machine's loopback is served, unless the address says otherwise;\n"
	"then a token is needed, from --token-file or GLOVEBOX_MCP_TOKEN. Clients send it as\n"
	"\"Authorization: Bearer TOKEN\". The endpoint is /mcp.\n\n"
	"With the key `service` in the configuration --http serves many people: a cell for each\n"
	"session or token, tokens with rights and quotas, /healthz, /readyz and /metrics\n"
	"(docs/service.md). TERM then lets calls end first; a second one ends the server at once.\n"
	"--new-token NAME makes a token and prints it once.\n\n"
	"--install adds this server to a client, with the options given beside it, by running\n"
	"the client's own command (claude mcp add, ...). Without one it prints what to put into\n"
	"which file, and ends with 1; it never writes there itself (docs/clients.md).\n"
	"Clients: " MCP_INSTALL_CLIENTS ".\n\n"
	"Prompts are Markdown files in glovebox/prompts of the configuration folder\n"
	"(docs/mcp.md).\n\n"
	"With --base devcontainer the commands of that file run before the first answer that\n"
	"needs the cell, an hour each, and all within the run_s of the policy's limits. They\n"
	"end when the client closes its end of the input meanwhile, or does not read any more.\n\n"
	"Ends at the end of its input, with its parent, or by TERM, INT, HUP;\n"
	"nothing that a call started stays behind.";

const struct verb verb_mcp = {
	.name = "mcp",
	.summary = "serve the tools to other agents (Model Context Protocol)",
	.arguments = "",
	.help = mcp_help,
	.example = "  glovebox mcp --install claude\n"
		   "  glovebox mcp --http 127.0.0.1:8080 --token-file ~/.glovebox-token\n"
		   "  glovebox mcp --new-token ann --config service.json",
	.options = mcp_options,
	.run = mcp_run,
};
