/* glovebox mcp: serves the tools to other agents by the Model Context Protocol. */

#include "mcp/server/mcp.h"
#include "base/buf.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/value.h"
#include "build_config.h"
#include "cell/groups.h"
#include "front/agents.h"
#include "front/review/layered.h"
#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/exec.h"
#include "front/wrap/mcp_install.h"
#include "mcp/server/http.h"
#include "mcp/server/stdio.h"
#include "plugins/plugin.h"
#include "policy/policy.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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

struct serving {
	const struct options *options;
	struct setup setup;
	struct interrupt *interrupt;
	struct loop *loop;
	struct mcp *mcp; /* NULL: not made yet, or ending */
	struct orchestrate *orchestrate;
	struct session *session; /* of the served tools; NULL: not opened yet */
	struct value *packages;  /* resources, templates and prompts of plugin packages */
};

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

static bool open_session(void *context, struct loop *loop, struct event_sink sink,
			 struct session **session, struct err *err)
{
	struct serving *serving = context;
	struct session_options options = {
		.loop = loop,
		.sink = sink,
		.ready_workers = READY_WORKERS,
		.answers_questions = true,
		.answers_approvals = true,
		.cancel_fd = -1,
	};

	if (setup_session_err(&serving->setup, &options, session, err)) {
		serving->session = *session;
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

static struct mcp *make_server(struct serving *serving)
{
	struct buf instructions, prompts;
	struct mcp_options options = {
		.loop = serving->loop,
		.open = open_session,
		.context = serving,
		.complain = complain,
		.version = GLOVEBOX_VERSION,
		.tools_change = serving->setup.servers.remotes != NULL,
		.patience_s = options_seconds(serving->options, "patience", PATIENCE_S),
	};
	struct mcp *mcp;

	buf_init(&instructions, MCP_INSTRUCTIONS_MAX);
	buf_init(&prompts, PATH_MAX);
	add_instructions(&serving->setup, &instructions);
	add_layer(&serving->setup, &instructions);
	options.instructions = instructions.data;
	options.prompts = setup_config_beside("prompts", &prompts) ? prompts.data : NULL;
	mcp_packages_add(serving->setup.plugins.loaded, &options, &serving->packages);
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

static void say_address(void *context, const char *url, bool has_token)
{
	(void)context;
	/* The blank ends the address for a program that reads it from here. */
	(void)fprintf(stderr, "glovebox: serving MCP at %s%s\n", url,
		      has_token ? ""
				: " (every program of this machine may call; --token-file: only "
				  "those that know a token)");
}

static int serve_http(struct serving *serving, struct mcp *mcp)
{
	const struct options *options = serving->options;
	const struct mcp_http http = {
		.mcp = mcp,
		.loop = serving->loop,
		.address = options_text(options, "http"),
		.token_file = options_text(options, "token-file"),
		.token = getenv("GLOVEBOX_MCP_TOKEN"),
		.hosts = options_texts(options, "host"),
		.stop_fd = interrupt_fd(serving->interrupt),
		.listening = say_address,
	};
	struct err err;

	/*
	 * Open the session now: no client waits yet, and the person who starts the server
	 * should see a fault.
	 */
	if (!mcp_open(mcp, &err))
		return CODE_NO_CELL;
	if (!mcp_http_run(&http, &err))
		return verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED, "%s",
				     err.text);
	return code_of_end(serving);
}

static int serve(struct serving *serving)
{
	const bool shared = serving->setup.servers.loop != NULL;
	struct mcp *mcp;
	struct err err;
	int code;

	if (!interrupt_start(serving->interrupt, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	/* The tools of MCP servers answer in the servers' loop. */
	serving->loop = shared ? serving->setup.servers.loop : loop_new();
	mcp = make_server(serving);
	serving->mcp = mcp;
	code = options_given(serving->options, "http") ? serve_http(serving, mcp)
						       : serve_stdio(serving, mcp);
	serving->mcp = NULL;
	mcp_free(mcp);
	value_free(serving->packages);
	if (!shared)
		loop_free(serving->loop);
	return code;
}

/* Called when the tools of the servers have changed. */
static bool tools_changed(void *context)
{
	struct serving *serving = context;
	struct err err;

	if (serving->session == NULL || serving->mcp == NULL)
		return serving->session == NULL;
	if (!session_set_tools(serving->session, setup_tools(&serving->setup), &err)) {
		(void)verb_complain(CODE_FAILED, "%s", err.text);
		return false;
	}
	mcp_list_changed(serving->mcp, MCP_LIST_TOOLS);
	return true;
}

static bool start_servers(struct serving *serving, struct err *err)
{
	const struct orchestrate_options options = {.setup = &serving->setup, .alone = true};
	struct front_servers *servers = &serving->setup.servers;

	servers->wait_ms = SERVERS_MS;
	servers->asks = REMOTE_ASKS_FORMS | REMOTE_ASKS_ADDRESSES;
	servers->changed = tools_changed;
	servers->context = serving;
	return setup_serve(&serving->setup, err) &&
	       orchestrate_open(&options, &serving->orchestrate, err);
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
	if (options_given(options, "http") && begins_again && !groups_cell_check(&any, NULL))
		exec_begin_in_scope();
	return true;
}

static int mcp_run(const struct options *options, FILE *out)
{
	struct serving serving = {.options = options};
	struct err err = {0};
	int code;

	if (!options_given(options, "install") &&
	    (options_given(options, "print") || options_given(options, "write")))
		return verb_complain(CODE_USAGE,
				     "mcp: --print and --write go with --install");
	if (options_given(options, "print") && options_given(options, "write"))
		return verb_complain(CODE_USAGE,
				     "mcp: --print only prints, --write does not");
	if (!options_given(options, "http") &&
	    (options_given(options, "token-file") || options_given(options, "host")))
		return verb_complain(CODE_USAGE,
				     "mcp: --token-file and --host go with --http");
	if (options_given(options, "scope") && !options_given(options, "http"))
		return verb_complain(CODE_USAGE, "mcp: --scope goes with --http");
	if (!scope_settle(options, &err))
		return verb_complain(CODE_USAGE, "mcp: %s", err.text);
	if (options_given(options, "install") && options_given(options, "http"))
		return verb_complain(CODE_USAGE,
				     "mcp: --install is for clients that start the server "
				     "themselves; --http serves those that find one");
	if (options_given(options, "install"))
		return install(options, out);
	code = setup_open(&serving.setup, options, NULL);
	serving.setup.publishes = true;
	serving.setup.tells_heads = options_given(options, "http");
	if (code == CODE_DONE)
		code = layered_take(&serving.setup, options, "glovebox mcp");
	if (code == CODE_DONE &&
	    (!start_servers(&serving, &err) || !interrupt_open(&serving.interrupt, &err)))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	if (code == CODE_DONE)
		code = serve(&serving);
	interrupt_close(serving.interrupt);
	orchestrate_close(serving.orchestrate);
	(void)layered_end(&serving.setup, false, stderr);
	setup_fini(&serving.setup);
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
	"--install adds this server to a client, with the options given beside it, by running\n"
	"the client's own command (claude mcp add, ...). Without one it prints what to put into\n"
	"which file, and ends with 1; it never writes there itself (docs/clients.md).\n"
	"Clients: " MCP_INSTALL_CLIENTS ".\n\n"
	"Prompts are Markdown files in glovebox/prompts of the configuration folder\n"
	"(docs/mcp.md). Ends at the end of its input, with its parent, or by TERM, INT, HUP;\n"
	"nothing that a call started stays behind.";

const struct verb verb_mcp = {
	.name = "mcp",
	.summary = "serve the tools to other agents (Model Context Protocol)",
	.arguments = "",
	.help = mcp_help,
	.example = "  glovebox mcp --install claude\n"
		   "  glovebox mcp --http 127.0.0.1:8080 --token-file ~/.glovebox-token",
	.options = mcp_options,
	.run = mcp_run,
};
