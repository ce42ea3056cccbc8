/*
 * glovebox servers list, test, login and logout: what the MCP servers of the configuration
 * are, and the person's logins at those over HTTP.
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/ask/desk.h"
#include "front/ask/returned.h"
#include "front/extensions.h"
#include "front/setup.h"
#include "front/verb.h"
#include "mcp/client/bridged.h"
#include "mcp/client/remotes.h"
#include "mcp/client/tokens.h"
#include "policy/address.h"
#include "policy/network.h"
#include "process/loop.h"
#include "session/session.h"
#include "store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	NAME_COLUMNS = 20,
	SENTENCE_MAX = 16 << 10,
	URL_ROOM = 64,
};

static const struct option_row list_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print one JSON object"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row login_options[] = {
	{"no-browser", 0, OPTION_FLAG, NULL,
	 "only print the address; you may paste the one to which the login comes back"},
	{"device", 0, OPTION_FLAG, NULL, "log in by a code that you enter on another device"},
	{"scope", 0, OPTION_TEXT, "WORDS", "ask for these rights, separated by blanks"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row logout_options[] = {
	OPTION_ROW_WORKSPACE, OPTION_ROW_CONFIG, OPTION_ROW_AGENT,
	OPTION_ROW_LEVEL,     OPTION_ROW_HELP,   {0},
};

/* A verb about one server knows all of them, and starts none. */
static const struct setup_flags one_server = {.knows_servers = true};

/* Does the workspace name servers? They are not read. */
static bool brings_servers(const struct setup *setup)
{
	struct buf path;
	bool brings;

	buf_init(&path, PATH_MAX);
	brings = buf_addf(&path, "%s/.mcp.json", setup->workspace) &&
		 access(path.data, F_OK) == 0;
	buf_fini(&path);
	return brings;
}

/*
 * Find the *SETTINGS of the server NAME. Returns an exit code; a complaint has been printed,
 * unless it is CODE_DONE.
 */
static int find_settings(const struct setup *setup, const char *name,
			 const struct value **settings)
{
	const char *lacks = value_text(value_member(setup->servers.lacking, name));
	struct buf names;

	*settings = value_member(setup->servers.settings, name);
	if (*settings != NULL)
		return CODE_DONE;
	if (lacks != NULL)
		return verb_complain(CODE_FAILED, "the MCP server %.100s cannot be used: %s",
				     name, lacks);
	buf_init(&names, SENTENCE_MAX);
	for (void *at = setup->servers.settings != NULL
				? value_first(setup->servers.settings)
				: NULL;
	     at != NULL; at = value_next(setup->servers.settings, at))
		(void)buf_addf(&names, "%s%s", names.size > 0 ? ", " : "", value_key(at));
	(void)verb_complain(CODE_USAGE, "there is no MCP server \"%.100s\" in %s; %s%s%s",
			    name,
			    setup->config != NULL ? setup->config : "the configuration",
			    names.size > 0 ? "there are " : "there is none at all",
			    names.data,
			    brings_servers(setup)
				    ? "; those of .mcp.json count when you have let them in: "
				      "glovebox trust"
				    : "");
	buf_fini(&names);
	return CODE_USAGE;
}

static const char *client_of(const struct value *settings)
{
	return value_text(value_member(value_member(settings, "oauth"), "client_id"));
}

/* The file of the tokens for the server; NULL: there is no home for it. */
static struct tokens *tokens_of(const struct value *settings)
{
	const char *url = value_text(value_member(settings, "url"));
	struct tokens *tokens = NULL;
	struct buf folder;

	buf_init(&folder, PATH_MAX);
	if (url != NULL && database_state_path("servers", &folder, NULL))
		tokens = tokens_new(folder.data, url, client_of(settings));
	buf_fini(&folder);
	return tokens;
}

/* servers list, and test of one. */

/* The state of the login, in words, and when its token ends (0: it names no end). */
static const char *login_of(const struct value *settings, int64_t *end_ms)
{
	struct tokens *file = tokens_of(settings);
	struct value *tokens = file != NULL ? tokens_read(file) : NULL;
	const bool renews = value_member(tokens, "refresh_token") != NULL;
	const char *words = tokens == NULL ? "no login" : renews ? "logged in" : "token";

	*end_ms = value_integer(value_member(tokens, "expires_ms"));
	if (tokens != NULL && !renews && *end_ms != 0 && *end_ms < clock_wall_ms())
		words = "login ended";
	value_wipe(tokens);
	value_free(tokens);
	tokens_free(file);
	return words;
}

static struct value *row_json(const struct remotes_row *row, const char *login,
			      int64_t end_ms)
{
	struct value *json = value_new_object();

	value_set_text(json, "name", row->name);
	value_set_text(json, "type", row->over_http ? "http" : "stdio");
	value_set_boolean(json, "ready", row->ready);
	if (row->ready)
		value_set_text(json, "era", row->modern ? "modern" : "legacy");
	value_set_integer(json, "tools", (int64_t)row->tools);
	if (row->over_http)
		value_set_text(json, "login", login);
	if (end_ms != 0)
		value_set_integer(json, "token_ends_ms", end_ms);
	return json;
}

static void print_row(const struct remotes_row *row, const char *login, int64_t end_ms,
		      FILE *out)
{
	char when[CLOCK_TEXT];

	verb_print_name(row->name, NAME_COLUMNS, out);
	(void)fprintf(out, " %-6s %-7s %4zu tools", row->over_http ? "http" : "stdio",
		      !row->ready   ? "-"
		      : row->modern ? "modern"
				    : "legacy",
		      row->tools);
	if (row->over_http)
		(void)fprintf(out, "  %s", login);
	if (row->over_http && end_ms != 0) {
		clock_text_local(end_ms, when);
		(void)fprintf(out, ", token until %s", when);
	}
	(void)fputc('\n', out);
}

/* Print the servers that were started. *ALL_READY: each one can be used. */
static struct value *print_rows(const struct setup *setup, bool json, bool *all_ready,
				FILE *out)
{
	struct value *list = value_new_array();
	struct remotes_row row;

	*all_ready = true;
	for (size_t i = 0; setup->servers.remotes != NULL &&
			   remotes_row(setup->servers.remotes, i, &row);
	     i++) {
		int64_t end_ms = 0;
		const char *login =
			login_of(value_member(setup->servers.settings, row.name), &end_ms);

		*all_ready = *all_ready && row.ready;
		value_append(list, row_json(&row, login, end_ms));
		if (!json)
			print_row(&row, login, end_ms, out);
	}
	return list;
}

/* Print, and add to LIST, the servers that lack something. */
static void print_lacking(const struct setup *setup, bool json, struct value *list, FILE *out)
{
	const struct value *lacking = setup->servers.lacking;

	for (void *at = value_first(lacking); at != NULL; at = value_next(lacking, at)) {
		struct value *row = value_new_object();

		value_set_text(row, "name", value_key(at));
		value_set_boolean(row, "ready", false);
		value_set_integer(row, "tools", 0);
		value_set_text(row, "problem", value_text(value_at(at)));
		value_append(list, row);
		if (json)
			continue;
		verb_print_name(value_key(at), NAME_COLUMNS, out);
		(void)fprintf(out, " cannot be used: ");
		verb_print_name(value_text(value_at(at)), 0, out);
		(void)fputc('\n', out);
	}
}

static int list_run(const struct options *options, FILE *out)
{
	const struct setup_flags flags = {.serves = true, .knows_servers = true};
	const bool json = options_given(options, "json");
	struct setup setup;
	int code = setup_open(&setup, options, &flags);
	bool all_ready;

	if (code == CODE_DONE) {
		auto_value struct value *whole = value_new_object();
		struct value *list = print_rows(&setup, json, &all_ready, out);

		print_lacking(&setup, json, list, out);
		if (!json && value_count(list) == 0)
			(void)fprintf(out, "There are no MCP servers here; `mcpServers` of the "
					   "configuration names them.\n");
		value_set(whole, "servers", list);
		if (json)
			code = verb_print_json(whole, VALUE_PRETTY, out);
	}
	setup_fini(&setup);
	return code;
}

/* Only the server NAME is started. */
static void leave_others_out(struct value *servers, const char *name)
{
	for (void *at = value_first(servers); at != NULL; at = value_next(servers, at)) {
		if (strcmp(value_key(at), name) != 0)
			value_set_boolean(value_at(at), "disabled", true);
		else
			value_remove(value_at(at), "disabled");
	}
}

static void print_tools(const struct setup *setup, const char *name, FILE *out)
{
	for (size_t i = 0; setup->tools[i] != NULL; i++) {
		const size_t size = strlen(name);
		const struct tool *tool = setup->tools[i];

		if (tool->where == ELSEWHERE && strncmp(tool->name, name, size) == 0 &&
		    tool->name[size] == '_')
			(void)fprintf(out, "  %s\n", tool->name);
	}
}

static int test_run(const struct options *options, FILE *out)
{
	const char *name = options->words[0];
	const bool json = options_given(options, "json");
	struct setup setup;
	struct err err = {0};
	const struct value *settings;
	int code = setup_open(&setup, options, &one_server);

	if (code == CODE_DONE)
		code = find_settings(&setup, name, &settings);
	if (code == CODE_DONE) {
		leave_others_out(setup.servers.settings, name);
		if (!setup_serve(&setup, &err))
			code = verb_complain(CODE_FAILED, "%s", err.text);
	}
	if (code == CODE_DONE) {
		bool ready;
		auto_value struct value *rows = print_rows(&setup, json, &ready, out);

		code = ready ? CODE_DONE : CODE_FAILED;
		if (json)
			(void)verb_print_json(value_item(rows, 0), VALUE_PRETTY, out);
		else
			print_tools(&setup, name, out);
	}
	setup_fini(&setup);
	return code;
}

/* servers login and logout: a bridge with a task. */

enum task_state { TASK_RUNS = 1, TASK_MOVES, TASK_DONE, TASK_FAILED };

struct task {
	const char *name;
	const struct options *options;
	struct bridged *bridged;
	struct returned *returned; /* where a login comes back; or NULL */
	FILE *out;
	enum task_state state;
	struct buf sentence; /* of the end */
};

static void end(struct task *task, enum task_state state, const char *sentence)
{
	task->state = state;
	buf_clear(&task->sentence);
	(void)buf_adds(&task->sentence, sentence);
}

static void task_fails(void *owner, const char *phrase)
{
	end(owner, TASK_FAILED, phrase);
}

static void task_moves(void *owner)
{
	end(owner, TASK_MOVES, "");
}

static void answer(struct task *task, const char *key, const char *text)
{
	struct value *line = value_new_object();

	value_set_text(line, key, text);
	bridged_tell(task->bridged, line);
}

/* Print TEXT, of a server, on a line of its own. */
static void print_text(const char *text, FILE *out)
{
	struct buf clean;

	buf_init(&clean, SENTENCE_MAX);
	text_add_name(&clean, str_of(text));
	(void)fprintf(out, "  %s\n", clean.data);
	(void)fflush(out);
	buf_fini(&clean);
}

/* The bridge is in a cell, but what opens here is judged here as well. */
static bool may_open(const char *address, struct address *parsed)
{
	return address != NULL && address_parse(str_of(address), parsed, NULL) &&
	       (!parsed->plain || network_is_loopback(&parsed->host));
}

/* The person logs in at ADDRESS, and the login comes back. */
static void log_in(struct task *task, const char *address, const char *issuer)
{
	const bool prints = options_given(task->options, "no-browser");
	const bool types = prints || isatty(STDIN_FILENO);
	struct address parsed;
	struct buf query;
	struct err err = {0};

	if (task->returned == NULL || !may_open(address, &parsed)) {
		answer(task, "error", "the address for the login is not one that is opened");
		return;
	}
	(void)fprintf(task->out, "The MCP server %s has its logins at\n", task->name);
	print_text(issuer != NULL ? issuer : parsed.host.text, task->out);
	(void)fprintf(task->out, "Log in at this address:\n");
	print_text(parsed.text, task->out);
	if (!prints &&
	    !desk_open_browser((const char *const *)(uintptr_t)environ, parsed.text, &err))
		(void)fprintf(task->out, "It could not be opened: %s\n", err.text);
	if (types)
		(void)fprintf(task->out,
			      "The browser comes back to port %u of this machine. If it cannot, "
			      "paste the address that it shows then:\n",
			      returned_port(task->returned));
	(void)fflush(task->out);
	buf_init(&query, RETURNED_QUERY_MAX);
	if (returned_wait(task->returned, task->name, types ? STDIN_FILENO : -1, -1,
			  &query, &err))
		answer(task, "query", query.data);
	else
		answer(task, "error", err.text);
	if (query.size > 0)
		explicit_bzero(query.data, query.size);
	buf_fini(&query);
}

static void show_code(struct task *task, const char *code, const char *address)
{
	struct address parsed;

	if (!may_open(address, &parsed)) {
		end(task, TASK_FAILED, "names an address for its code that is not opened");
		return;
	}
	(void)fprintf(task->out, "For the MCP server %s, enter this code:\n", task->name);
	print_text(code, task->out);
	(void)fprintf(task->out, "at this address, on any device:\n");
	print_text(parsed.text, task->out);
}

static void task_tells(void *owner, const struct value *line)
{
	struct task *task = owner;
	const char *done = value_text(value_member(line, "done"));
	const char *code = value_text(value_member(line, "code"));
	const char *address = value_text(value_member(line, "open"));

	if (done != NULL)
		end(task, TASK_DONE, done);
	else if (code != NULL)
		show_code(task, code, address);
	else if (address != NULL)
		log_in(task, address, value_text(value_member(line, "issuer")));
}

static void program_ended(void *context, struct running *running)
{
	struct task *task = context;

	(void)running;
	bridged_hear(task->bridged);
	if (task->state == TASK_RUNS)
		end(task, TASK_FAILED, "was not finished: the bridge to it has ended");
}

/* Run the bridge in its cell until it has ended or needs another one. */
static bool run_once(struct task *task, struct loop *loop, struct err *err)
{
	auto_value struct value *arguments = NULL;
	auto_value struct value *schema = value_new_object();
	const struct tool exec = {.name = "mcp server",
				  .schema = schema,
				  .carrier = "exec",
				  .effects = EFFECT_RUNS,
				  .internal = true};
	auto_close int steer = -1, input = -1, output = -1;
	struct session *session;
	struct running *running;

	bridged_close(task->bridged);
	if (!bridged_open(task->bridged, &session, &steer, err))
		return false;
	input = open("/dev/null", O_RDWR | O_CLOEXEC);
	output = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (input < 0 || output < 0)
		return err_set(err, errno, "/dev/null: %s", strerror(errno));
	arguments = bridged_arguments(task->bridged);
	const struct request request = {.tool = exec.name,
					.made = &exec,
					.arguments = arguments,
					.fds = {input, output, steer},
					.fd_count = 3,
					.by_front = true,
					.quiet = true,
					.timeout_s = -1};
	task->state = TASK_RUNS;
	running = session_start(session, &request, program_ended, task);
	while (task->state == TASK_RUNS) {
		if (running_is_sent(running))
			fd_close(&steer);
		loop_turn(loop, INT64_MAX);
	}
	running_free(running);
	return true;
}

/* Carry out TASK_NAME for the server. Returns an exit code. */
static int run_task(struct setup *setup, const struct options *options,
		    const struct value *settings, const char *task_name, uint16_t port,
		    FILE *out)
{
	struct task task = {.name = options->words[0], .options = options, .out = out};
	struct front_servers *servers = &setup->servers;
	struct buf folder, redirect;
	struct err err = {0};
	bool ok = true;
	int code;

	buf_init(&folder, PATH_MAX);
	buf_init(&redirect, URL_ROOM);
	buf_init(&task.sentence, SENTENCE_MAX);
	servers->loop = loop_new();
	servers->minimum_level = setup_least_level(setup);
	servers->resolver = setup->resolver != NULL ? memory_copy(setup->resolver) : NULL;
	if (strcmp(task_name, "login") == 0) {
		ok = returned_open(port, &task.returned, &err);
		if (ok)
			(void)buf_addf(&redirect, "http://127.0.0.1:%u" RETURNED_PATH,
				       returned_port(task.returned));
	}
	ok = ok && database_state_path("servers", &folder, &err);
	const struct bridged_options bridge = {
		.loop = servers->loop,
		.name = task.name,
		.settings = settings,
		.tokens_folder = folder.data,
		.task = task_name,
		.redirect = redirect.size > 0 ? redirect.data : NULL,
		.open_cell = front_servers_open_cell,
		.cells = servers,
		.fails = task_fails,
		.moves = task_moves,
		.tells = task_tells,
		.owner = &task,
	};
	task.bridged = bridged_new(&bridge);
	do
		ok = ok && run_once(&task, servers->loop, &err);
	while (ok && task.state == TASK_MOVES);
	bridged_free(task.bridged);
	if (!ok)
		code = verb_complain(setup_code(&err), "the MCP server %s %s", task.name,
				     err.text);
	else if (task.state == TASK_FAILED)
		code = verb_complain(CODE_FAILED, "the MCP server %s %s", task.name,
				     task.sentence.data);
	else
		code = fprintf(out, "%s: %s\n", task.name, task.sentence.data) > 0
			       ? CODE_DONE
			       : CODE_FAILED;
	returned_close(task.returned);
	buf_fini(&task.sentence);
	buf_fini(&redirect);
	buf_fini(&folder);
	return code;
}

/* Open the setup, and find a server over HTTP. NULL: CODE says why not. */
static struct value *find_server(struct setup *setup, const struct options *options,
				 int *code)
{
	const struct value *settings;

	*code = setup_open(setup, options, &one_server);
	if (*code == CODE_DONE)
		*code = find_settings(setup, options->words[0], &settings);
	if (*code != CODE_DONE)
		return NULL;
	if (value_member(settings, "url") == NULL) {
		*code = verb_complain(CODE_USAGE,
				      "the MCP server %s is a program, and has no logins",
				      options->words[0]);
		return NULL;
	}
	return value_copy(settings);
}

static int login_run(const struct options *options, FILE *out)
{
	const char *scope = options_text(options, "scope");
	auto_value struct value *settings = NULL;
	struct value *oauth;
	struct setup setup;
	int code;

	settings = find_server(&setup, options, &code);
	if (settings != NULL) {
		oauth = value_member(settings, "oauth");
		if (oauth == NULL) {
			oauth = value_new_object();
			value_set(settings, "oauth", oauth);
		}
		if (scope != NULL)
			value_set_text(oauth, "scope", scope);
		code = run_task(&setup, options, settings,
				options_given(options, "device") ? "device" : "login",
				(uint16_t)value_integer(value_member(oauth, "port")), out);
	}
	setup_fini(&setup);
	return code;
}

static int logout_run(const struct options *options, FILE *out)
{
	auto_value struct value *settings = NULL;
	struct value *kept = NULL;
	struct tokens *tokens = NULL;
	struct setup setup;
	struct err err = {0};
	bool was_there;
	int code;

	settings = find_server(&setup, options, &code);
	if (settings != NULL)
		tokens = tokens_of(settings);
	if (tokens != NULL)
		kept = tokens_read(tokens);
	if (settings != NULL && kept == NULL)
		(void)fprintf(out, "%s: there was no login\n", options->words[0]);
	else if (settings != NULL)
		code = run_task(&setup, options, settings, "logout", 0, out);
	/* They are removed here whether the service hears of it or not. */
	if (tokens != NULL && !tokens_remove(tokens, &was_there, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	value_wipe(kept);
	value_free(kept);
	tokens_free(tokens);
	setup_fini(&setup);
	return code;
}

static const char list_help[] =
	"Start the MCP servers of the configuration, and those of the workspace that you have\n"
	"let in (glovebox trust), and list them: type, era of the protocol, number of tools,\n"
	"and of those over HTTP the login. A server that cannot be used is named on standard\n"
	"error; one of which a variable is not set says so in its row.";

const struct verb verb_servers_list = {
	.name = "servers list",
	.summary = "list the MCP servers, and what they offer",
	.arguments = "",
	.help = list_help,
	.example = "  glovebox servers list",
	.options = list_options,
	.words_least = 0,
	.words_most = 0,
	.folds = true,
	.run = list_run,
};

static const char test_help[] =
	"Start one MCP server of the configuration, or one of the workspace that you have let\n"
	"in, and list its tools.\n\n"
	"Exit codes: 0 it can be used, 1 it cannot, 2 there is no such server.";

const struct verb verb_servers_test = {
	.name = "servers test",
	.summary = "start one MCP server and list its tools",
	.arguments = "NAME",
	.help = test_help,
	.example = "  glovebox servers test github",
	.options = list_options,
	.words_least = 1,
	.words_most = 1,
	.folds = true,
	.run = test_run,
};

static const char login_help[] =
	"Log in at an MCP server over HTTP (OAuth 2.1): the address is opened in your\n"
	"browser, and the login comes back to a port of this machine. The tokens are kept\n"
	"in the folder of your state, readable only for you; no command and no model sees\n"
	"them. They are renewed when they end.\n\n"
	"Exit codes: 0 logged in, or no login is needed; 1 not; 2 there is no such server.";

const struct verb verb_servers_login = {
	.name = "servers login",
	.summary = "log in at an MCP server over HTTP",
	.arguments = "NAME",
	.help = login_help,
	.example = "  glovebox servers login github\n"
		   "  glovebox servers login github --no-browser",
	.options = login_options,
	.words_least = 1,
	.words_most = 1,
	.run = login_run,
};

static const char logout_help[] =
	"Remove the tokens of an MCP server over HTTP, and tell the service that they are\n"
	"not used any more.";

const struct verb verb_servers_logout = {
	.name = "servers logout",
	.summary = "remove the login at an MCP server over HTTP",
	.arguments = "NAME",
	.help = logout_help,
	.example = "  glovebox servers logout github",
	.options = logout_options,
	.words_least = 1,
	.words_most = 1,
	.run = logout_run,
};
