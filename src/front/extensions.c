/* extensions: the front's part of loading scripts as tools. */

#include "front/extensions.h"

#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "base/value.h"
#include "build_config.h"
#include "front/interrupt.h"
#include "front/verb.h"
#include "mcp/client/remotes.h"
#include "plugins/plugin.h"
#include "plugins/source.h"
#include "policy/config.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "sandbox/sandbox.h"
#include "session/session.h"
#include "store/database.h"
#include "tools/tools.h"
#include "view/shape.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plugin_fetch_terms {
	/* entries like those of `network`; NULL: only the host that the source names */
	const struct value *hosts;
	const char *resolver; /* as in struct session_options */
	int minimum_level;
};

/*
 * Fetches a git repository into a folder. Git runs in a cell of its own, which may write
 * only there and reach only the listed hosts.
 */

#define FETCH_SECONDS 120.0

/*
 * The variable that names the caller's file of certificates, for hosts that the system's
 * store does not know.
 */
#define AUTHORITY "GIT_SSL_CAINFO"
/* The same for bridges. */
#define CERTIFICATES "SSL_CERT_FILE"

enum { SAID_MAX = 64 << 10, SAID_SHOWN = 400, URL_HOST_MAX = 4096 };

/*
 * URL and ref are positional parameters of the script, never part of its text. When a
 * server knows no shallow fetch, or does not give a commit by its name, the script
 * fetches more. The user's git configuration is not read.
 */
static const char script[] =
	"set -eu\n"
	"export HOME=\"$PWD/home\" GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0 LC_ALL=C\n"
	"mkdir home files\n"
	"git config --global safe.directory '*'\n"
	"git config --global protocol.allow never\n"
	"for known in https http file; do git config --global protocol.$known.allow always; done\n"
	"git init -q files\n"
	"cd files\n"
	"get() { git fetch -q --no-tags --no-recurse-submodules \"$@\"; }\n"
	"if get --depth 1 -- \"$1\" \"$2\" 2>/dev/null || get -- \"$1\" \"$2\" 2>/dev/null; then\n"
	"  at=FETCH_HEAD\n"
	"else\n"
	"  get -- \"$1\" '+refs/*:refs/fetched/*'\n"
	"  at=$2\n"
	"fi\n"
	"git rev-parse --verify \"$at^{commit}\"\n"
	"git checkout -q --detach \"$at\" --\n";

/*
 * The policy of a cell for a network task in FOLDER, which may be written to when WRITES. The
 * variable NAME of the cell is FILE, unless FILE is NULL. WHERE names HOSTS in sentences.
 */
struct task {
	const char *agent, *folder;
	bool writes;
	const char *variable, *file;
	const struct value *hosts;
	const char *where;
};

static struct policy *policy_of(const struct task *task, struct err *err)
{
	auto_policy struct policy *policy = policy_new(task->agent, task->folder);
	struct policy *made;

	policy->write.given = true;
	if (task->writes) {
		policy->write.items = memory_array(1, sizeof(struct policy_path));
		policy->write.items[0].text = memory_copy(".");
		policy->write.count = 1;
	}
	if (task->file != NULL) {
		struct buf variable;

		buf_init(&variable, SAID_MAX);
		(void)buf_addf(&variable, "%s=%s", task->variable, task->file);
		policy->environment.items = memory_array(1, sizeof(char *));
		policy->environment.items[0] = buf_take(&variable);
		policy->environment.count = 1;
		policy->environment.given = true;
	}
	for (size_t i = 0; i < value_count(task->hosts); i++) {
		if (!policy_add_network(policy, value_text(value_item(task->hosts, i)),
					task->where, err))
			return NULL;
	}
	if (!policy_paths_normal(policy, task->folder, err))
		return NULL;
	made = policy;
	policy = NULL;
	return made;
}

/*
 * The host of URL, as a list for `network`. Used when the configuration lists no hosts.
 */
static struct value *host_of(const char *url)
{
	const bool plain = strncmp(url, "http://", strlen("http://")) == 0;
	const char *mark = strstr(url, "://");
	const char *place = mark != NULL ? mark + strlen("://") : url;
	struct str rest = {place, strcspn(place, "/?#")};
	struct value *hosts = value_new_array();
	struct buf entry;

	const char *at = memrchr(rest.data, '@', rest.size);
	if (at != NULL)
		rest = str_part(rest, (size_t)(at + 1 - rest.data), rest.size);
	/* A colon of an IPv6 address stands before its bracket. */
	const char *colon = memrchr(rest.data, ':', rest.size);
	const bool has_port =
		colon != NULL &&
		memchr(colon, ']', (size_t)(rest.data + rest.size - colon)) == NULL;
	buf_init(&entry, URL_HOST_MAX);
	(void)buf_addf(&entry, "%.*s%s", (int)rest.size, rest.data,
		       has_port ? ""
		       : plain  ? ":80"
				: ":443");
	value_append(hosts, value_new_str(buf_str(&entry)));
	buf_fini(&entry);
	return hosts;
}

/* Read into SAID the output that was written to FD, a file in memory. */
static void read_said(int fd, struct buf *said)
{
	buf_clear(said);
	if (lseek(fd, 0, SEEK_SET) == 0)
		(void)fd_read_all(fd, said, "what git said", NULL);
}

static bool take_commit(struct str said, char commit[HASH_HEX + 1], struct err *err)
{
	struct str text = str_trim(said);
	bool fine = text.size == 40 || text.size == HASH_HEX;

	for (size_t i = 0; fine && i < text.size; i++)
		fine = isxdigit((unsigned char)text.data[i]);
	if (!fine)
		return err_set(err, EPROTO, "git named no commit");
	(void)snprintf(commit, HASH_HEX + 1, "%.*s", (int)text.size, text.data);
	return true;
}

static bool run_git(struct session *session, const struct plugin_source *source,
		    bool listed, char commit[HASH_HEX + 1], struct err *err)
{
	const char *ref = commit[0] != '\0'     ? commit
			  : source->ref != NULL ? source->ref
						: "HEAD";
	const char *const words[] = {"/bin/bash",  "-c", script, "fetch",
				     source->text, ref,  NULL};
	auto_value struct value *arguments = value_new_object();
	auto_close int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
	auto_close int out = -1;
	auto_close int error = -1;
	struct tool_result result;
	struct buf said;

	if (input < 0 || !fd_memory_file("commit", STR(""), &out, err) ||
	    !fd_memory_file("said", STR(""), &error, err))
		return err_while(err, "fetching");
	value_set(arguments, "argv", value_new_texts(words));
	const struct request request = {.tool = "exec",
					.arguments = arguments,
					.fds = {input, out, error},
					.fd_count = 3,
					.by_front = true,
					.quiet = true,
					.timeout_s = FETCH_SECONDS};
	session_call(session, &request, &result);
	buf_init(&said, SAID_MAX);
	bool ok = result.status == RESULT_DONE && result.exit_code == 0;
	read_said(ok ? out : error, &said);
	if (ok) {
		ok = take_commit(buf_str(&said), commit, err);
	} else {
		struct str why =
			str_trim(said.size > 0 ? buf_str(&said) : buf_str(&result.text));

		(void)err_set(err, EIO,
			      "git could not fetch %s: %.*s (%s "
			      "plugin_policy.allowed_git_hosts)",
			      ref, (int)(why.size < SAID_SHOWN ? why.size : SAID_SHOWN),
			      why.data,
			      listed ? "hosts are listed in"
				     : "only its own host is reached; others are listed in");
	}
	buf_fini(&said);
	tool_result_fini(&result);
	return ok;
}

/*
 * Fetch SOURCE into FOLDER/files, at COMMIT or, when COMMIT is "", at its ref. COMMIT
 * becomes the commit that was fetched.
 */
static bool plugin_fetch(const struct plugin_source *source,
			 const struct plugin_fetch_terms *terms, const char *folder,
			 char commit[HASH_HEX + 1], struct err *err)
{
	const bool is_local = str_starts(str_of(source->text), STR("file://"));
	const char *authority = getenv(AUTHORITY);
	struct shape_shown shown[3] = {{0}};
	size_t count = 0;
	struct session *session = NULL;
	auto_value struct value *own =
		is_local || terms->hosts != NULL ? NULL : host_of(source->text);
	const struct value *hosts = own != NULL ? own : terms->hosts;

	if (!is_local && value_count(hosts) == 0)
		return err_set(err, EPERM,
			       "no host may be fetched from: name it in "
			       "plugin_policy.allowed_git_hosts, or leave that key out");
	if (authority != NULL && authority[0] != '/')
		authority = NULL;
	const struct task task = {.agent = "plugin-fetch",
				  .folder = folder,
				  .writes = true,
				  .variable = AUTHORITY,
				  .file = authority,
				  .hosts = hosts,
				  .where = "plugin_policy.allowed_git_hosts"};
	struct policy *policy = policy_of(&task, err);
	if (policy == NULL)
		return false;
	if (is_local) {
		const char *local = source->text + strlen("file://");

		shown[count++] =
			(struct shape_shown){local, local, "a plugin's repository"};
	}
	if (authority != NULL)
		shown[count++] = (struct shape_shown){authority, authority, AUTHORITY};
	const struct session_options options = {
		.workspace = folder,
		.take_policy = policy,
		.tools = builtin_tools,
		.shown = shown,
		.resolver = terms->resolver,
		.minimum_level = terms->minimum_level,
		.cancel_fd = -1,
	};
	bool ok = session_open(&options, &session, err) &&
		  run_git(session, source, own == NULL, commit, err);
	session_close(session);
	return ok;
}

#define PREVIEW_S 2.0

static bool fetch(void *context, const struct plugin_source *source, struct buf *folder,
		  char commit[HASH_HEX + 1], struct err *err)
{
	const struct front_plugins *plugins = context;

	const struct plugin_fetch_terms terms = {.hosts = plugins->git_hosts,
						 .resolver = plugins->resolver,
						 .minimum_level =
							 plugins->cell.minimum_level};

	return verb_temp_folder("fetch", folder, err) &&
	       plugin_fetch(source, &terms, folder->data, commit, err);
}

/* Is PLACE, a file or folder of which a person named the path, there? */
static bool place_is_there(const char *place, bool toolbox, struct err *err)
{
	if (access(place, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
		return true; /* the loader says any other reason */
	return err_set(err, errno, "%s: there is no such file or folder; name the %s", place,
		       toolbox ? "executable, or the folder that holds it"
			       : "script, or the folder that holds its agent_plugin.json");
}

/*
 * Make an entry of `plugins` from NAMED, a word of the command line. NULL: there is no such
 * file or folder.
 */
static struct value *entry_of(const char *named, struct err *err)
{
	struct str text = str_of(named);
	const bool toolbox = str_starts(text, STR("toolbox:"));
	struct buf entry, place;
	struct value *made;
	bool there = true;

	if (str_starts(text, STR("bash:")) || str_starts(text, STR("bash+git:")))
		return value_new_text(named);
	buf_init(&entry, 2 * PATH_MAX);
	buf_init(&place, PATH_MAX);
	if (!toolbox && str_find(text, STR("://"), 0) != (size_t)-1) {
		(void)buf_addf(&entry, "bash+git:%s", named);
	} else {
		auto_free char *here = getcwd(NULL, 0);

		(void)path_normal(here != NULL ? here : "/",
				  toolbox ? named + strlen("toolbox:") : named, &place);
		(void)buf_addf(&entry, "%s:%s", toolbox ? "toolbox" : "bash", place.data);
		there = place_is_there(place.data, toolbox, err);
	}
	made = there ? value_new_str(buf_str(&entry)) : NULL;
	buf_fini(&place);
	buf_fini(&entry);
	return made;
}

static void tell_plugin_problems(const struct plugins *loaded)
{
	for (size_t i = 0; i < value_count(loaded->problems); i++) {
		auto_free char *text =
			plugins_problem_text(value_item(loaded->problems, i));

		(void)fprintf(stderr, "glovebox: a plugin is left out: %s\n", text);
	}
}

/*
 * The folder of the configuration CONFIG_PATH (may be NULL), which plugins call
 * CONFIG_DIR. The caller frees the text.
 */
static char *front_plugins_folder(const char *config_path)
{
	struct buf folder;
	auto_free char *here = getcwd(NULL, 0);
	char *text;

	buf_init(&folder, PATH_MAX);
	(void)path_normal(here != NULL ? here : "/",
			  config_path != NULL ? config_path : ".", &folder);
	text = buf_take(&folder);
	if (config_path != NULL)
		text[path_base_name(text) - text] = '\0';
	return text;
}

bool front_plugins_load(struct front_plugins *plugins, const struct config *config,
			const struct front_plugins_wish *wish, bool quiet, struct err *err)
{
	auto_value struct value *named = NULL;
	auto_free char *folder = front_plugins_folder(plugins->config_path);
	struct buf state;
	bool ok;

	if (wish->named != NULL) {
		struct value *entry = entry_of(wish->named, err);

		if (entry == NULL)
			return false;
		named = value_new_array();
		value_append(named, entry);
	}
	buf_init(&state, PATH_MAX);
	plugins->resolver = config_resolver(config);
	plugins->git_hosts =
		value_member(config_value(config, "plugin_policy"), "allowed_git_hosts");
	struct plugin_host host = {
		.places = {.config_dir = folder,
			   .working_dir = plugins->cell.workspace,
			   .environment = (const char *const *)(uintptr_t)environ},
		.cell = &plugins->cell,
		.writable = plugins->writable,
		.named_now = wish->named != NULL && !wish->trusts,
		.trusts = wish->trusts,
		.fetch = fetch,
		.context = plugins,
	};
	plugin_host_configure(&host, config, plugins->agent);
	if (database_state_path("plugins", &state, NULL))
		host.state = state.data;
	if (named != NULL) {
		host.sources = named;
		host.enabled = host.disabled = NULL;
	}
	ok = plugins_load(&host, &plugins->loaded, err);
	if (ok && !quiet)
		tell_plugin_problems(plugins->loaded);
	buf_fini(&state);
	return ok;
}

static const struct plugin *plugin_of(const struct plugins *loaded, const char *tool)
{
	for (size_t i = 0; loaded != NULL && i < loaded->count; i++) {
		if (strcmp(loaded->items[i]->tool.name, tool) == 0)
			return loaded->items[i];
	}
	return NULL;
}

bool front_plugins_preview(struct front_plugins *plugins, const char *tool,
			   const struct value *arguments, struct buf *line)
{
	const struct plugin *plugin = plugin_of(plugins->loaded, tool);
	const struct run_order preview_order = {.subcommand = RUN_PREVIEW,
						.timeout_s = PREVIEW_S};
	struct tool_result result;
	struct tool preview;
	struct err err;
	bool ok;

	if (plugin == NULL || plugin->package->dialect == PLUGIN_TOOLBOX)
		return false;
	preview = plugin_other_tool(plugin, &preview_order);
	const struct plugin_look look = {.tool = &preview,
					 .arguments = arguments,
					 .shown = plugins->loaded->shown};

	tool_result_init(&result);
	ok = plugin_cell_look(&plugins->asked, &look, &result, &err) &&
	     result.status == RESULT_DONE && result.text.size > 0 &&
	     buf_addstr(line, buf_str(&result.text));
	tool_result_fini(&result);
	value_free(preview.carried);
	return ok;
}

void front_plugins_fini(struct front_plugins *plugins)
{
	plugin_cell_end(&plugins->cell);
	plugin_cell_end(&plugins->asked);
	plugins_free(plugins->loaded);
	memset(plugins, 0, sizeof(*plugins));
}

/* The front's part of using MCP servers. */

enum {
	WHY_MAX = 16 << 10,
	/* A few are enough: no person waits for the worker that starts a server. */
	READY_WORKERS = 2,
	/* A person who has sent a prompt does not notice it; a started server answers sooner. */
	HEAR_MS = 200,
};

/* Fill in the placeholders of SETTINGS, server by server. */
static bool expand_servers(struct front_servers *servers, const struct plugin_places *places,
			   const struct value *settings, struct err *err)
{
	servers->settings = value_new_object();
	for (void *at = settings != NULL ? value_first(settings) : NULL; at != NULL;
	     at = value_next(settings, at)) {
		const char *name = value_key(at);
		struct value *made = NULL;
		struct err why = {0};

		if (source_expand_value(places, value_at(at), &made, &why))
			value_set(servers->settings, name, made);
		else if (servers->lacking != NULL)
			value_set_text(servers->lacking, name, why.text);
		else
			return err_set(err, why.code, "%s: %s", name, why.text);
	}
	return true;
}

bool front_servers_read(struct front_servers *servers, const struct config *config,
			const char *config_path, const char *workspace,
			const struct value *more, struct err *err)
{
	const struct value *settings = config_value(config, "mcpServers");
	auto_free char *folder = front_plugins_folder(config_path);
	const struct plugin_places places = {
		.config_dir = folder,
		.working_dir = workspace,
		.environment = (const char *const *)(uintptr_t)environ,
	};

	if (value_count(settings) == 0 && value_count(more) == 0)
		return true;
	if (!expand_servers(servers, &places, settings, err))
		return err_while(err, "%s: mcpServers", config_path);
	for (void *at = more != NULL ? value_first(more) : NULL; at != NULL;
	     at = value_next(more, at)) {
		if (value_member(servers->settings, value_key(at)) == NULL &&
		    value_member(servers->lacking, value_key(at)) == NULL)
			value_set(servers->settings, value_key(at),
				  value_copy(value_at(at)));
	}
	return remotes_check(servers->settings, err) || err_while(err, "%s", config_path);
}

/* Print the problems that were not printed yet. */
static void tell_server_problems(struct front_servers *servers)
{
	const struct value *problems = remotes_problems(servers->remotes);

	for (; servers->told < value_count(problems); servers->told++) {
		struct buf text;

		buf_init(&text, WHY_MAX);
		(void)text_clean(value_str(value_item(problems, servers->told)), &text);
		(void)fprintf(stderr, "glovebox: %s\n", text.data);
		buf_fini(&text);
	}
}

static bool changed(void *context)
{
	struct front_servers *servers = context;

	if (!servers->told_later)
		tell_server_problems(servers);
	return servers->changed != NULL && servers->changed(servers->context);
}

/* Our own program, as the cell of SESSION shows it. */
static bool program_in(const struct session *session, struct buf *program, struct err *err)
{
	auto_free char *real = NULL;

	if (session_strength(session).level == SANDBOX_SEALED)
		return buf_adds(program, SHAPE_PROGRAM);
	real = realpath("/proc/self/exe", NULL);
	return real != NULL ? buf_adds(program, real)
			    : err_set(err, errno, "/proc/self/exe: %s", strerror(errno));
}

bool front_servers_open_cell(void *cells, const struct value *hosts,
			     struct session **session, struct buf *program, struct err *err)
{
	struct front_servers *servers = cells;
	const char *certificates = getenv(CERTIFICATES);
	struct shape_shown shown[2] = {{0}};
	struct buf folder;

	if (servers->empty == NULL) {
		buf_init(&folder, PATH_MAX);
		if (!verb_temp_folder("bridge", &folder, err)) {
			buf_fini(&folder);
			return err_while(err, "has no cell");
		}
		servers->empty = buf_take(&folder);
	}
	if (certificates != NULL && certificates[0] != '/')
		certificates = NULL;
	if (certificates != NULL)
		shown[0] = (struct shape_shown){certificates, certificates, CERTIFICATES};
	const struct task task = {.agent = "mcp-bridge",
				  .folder = servers->empty,
				  .variable = CERTIFICATES,
				  .file = certificates,
				  .hosts = hosts,
				  .where = "mcpServers"};
	const struct session_options options = {
		.workspace = servers->empty,
		.take_policy = policy_of(&task, err),
		.tools = builtin_tools,
		.loop = servers->loop,
		.shown = shown,
		.resolver = servers->resolver,
		.minimum_level = servers->minimum_level,
		.cancel_fd = -1,
	};
	if (options.take_policy == NULL || !session_open(&options, session, err))
		return err_while(err, "has no cell");
	return program_in(*session, program, err);
}

bool front_servers_start(struct front_servers *servers,
			 const struct session_options *options,
			 const struct tool *const *tools, struct err *err)
{
	struct session_options own = *options;
	struct buf folder;

	servers->loop = loop_new();
	servers->minimum_level = options->minimum_level;
	servers->resolver =
		options->resolver != NULL ? memory_copy(options->resolver) : NULL;
	buf_init(&folder, PATH_MAX);
	if (database_state_path("servers", &folder, NULL))
		servers->tokens_folder = buf_take(&folder);
	buf_fini(&folder);
	own.take_policy = servers->take_policy;
	own.tools = builtin_tools;
	own.loop = servers->loop;
	own.ready_workers = READY_WORKERS;
	own.undo_folder = NULL;
	own.cancel_fd = -1;
	own.publishes = false; /* the agent's cell has the ports */
	servers->take_policy = NULL;
	if (!session_open(&own, &servers->session, err))
		return err_while(err, "the cell of the MCP servers");
	servers->remotes = remotes_start(&(struct remotes_options){
		.session = servers->session,
		.servers = servers->settings,
		.version = GLOVEBOX_VERSION,
		.tools = tools,
		.wait_ms = servers->wait_ms,
		.stop_fd = servers->interrupt != NULL ? interrupt_fd(servers->interrupt) : -1,
		.asks = servers->asks,
		.open_cell = front_servers_open_cell,
		.cells = servers,
		.tokens_folder = servers->tokens_folder,
		.changed = changed,
		.context = servers,
	});
	tell_server_problems(servers);
	return true;
}

void front_servers_hear(struct front_servers *servers)
{
	if (servers->remotes == NULL)
		return;
	remotes_hear(servers->remotes, HEAR_MS);
	tell_server_problems(servers);
}

void front_servers_fini(struct front_servers *servers)
{
	remotes_free(servers->remotes);
	session_close(servers->session);
	if (servers->loop != NULL)
		loop_free(servers->loop);
	policy_free(servers->take_policy);
	fd_folder_remove(servers->empty);
	free(servers->empty);
	free(servers->tokens_folder);
	free(servers->resolver);
	value_free(servers->settings);
	value_free(servers->lacking);
	memset(servers, 0, sizeof(*servers));
}
