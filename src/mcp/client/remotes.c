/* remotes: the servers of a configuration, and the table of their tools. */

#include "mcp/client/remotes.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/text/text.h"
#include "base/value.h"
#include "mcp/client/bridged.h"
#include "mcp/client/remote.h"
#include "policy/address.h"
#include "policy/network.h"
#include "process/loop.h"
#include "session/hosted.h"
#include "session/session.h"
#include "tool/tool.h"
#include "tool/validate.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	/* of a server's name, with which the names of its tools begin */
	REMOTES_NAME_MAX = 32,
	REMOTES_TOOL_NAME_MAX = 64, /* the limit of model services */
	/* tools of one server, including those that were withdrawn */
	REMOTES_MADE_MAX = 1024,
	URI_MAX = 4096,
};

/* The timeout of a call, when the settings of its server name none. */
#define REMOTES_TIMEOUT_S 60.0

/* A tool of a server. */
struct remotes_tool {
	struct remotes_server *server;
	char *remote_name;     /* the server's name for it */
	struct value *listing; /* owns the texts that `tool` points to */
	struct tool tool;
	bool refused; /* it cannot be a tool of ours */
	bool listed;  /* its server's last list has it, unchanged */
	bool told;    /* its change was reported */
	struct remotes_tool *next;
};

struct remotes_server {
	struct remotes *remotes;
	struct remotes_server *next;
	char *name;
	const struct value *settings;
	struct remote *remote;
	struct bridged *bridged; /* of a server over HTTP; NULL: it is a program */
	struct session *session; /* in whose cell the program runs */
	struct value *carried;   /* the environment of the program */
	struct hosted program;
	struct timer restart, goodbye, again;
	int64_t again_ms; /* the time until a silent server is asked again */
	struct buf line;  /* an incomplete one */
	unsigned restarts_left;
	size_t made; /* how many tools it has had */
	bool settled, down;
	bool needs_cell; /* its bridge is to be started again in another cell */
};

struct remotes {
	struct session *session;
	struct loop *loop;
	const char *version;
	struct value *servers;
	struct remotes_server *first;
	/* all tools so far, in the order of their arrival */
	struct remotes_tool *tools, *last_tool;
	const struct tool *const *own; /* the tools from before the servers */
	const struct tool **first_table, **table;
	struct value *problems;
	struct tool read_resource, get_prompt;
	struct value *no_schema;
	unsigned asks;
	bool (*open_cell)(void *cells, const struct value *hosts,
			  struct session **session, struct buf *program, struct err *err);
	void *cells;
	char *tokens_folder; /* or NULL */
	bool (*changed)(void *context);
	void *context;
	bool started, ending;
};

/* The check of a configuration's `mcpServers`. */

enum {
	SERVERS_MAX = 16,
	ARGUMENTS_MAX = 1000,
	HEADERS_COUNT_MAX = 32,
	HEADER_NAME_MAX = 128,
	HEADER_VALUE_MAX = 8 << 10,
	OAUTH_TEXT_MAX = 2048,
	PORT_MIN = 1024, /* of a login that comes back; lower ones belong to services */
	PORT_MAX = 65535,
};

#define TIMEOUT_MAX_S 3600.0
#define START_MAX_S   120.0

/* Is NAME made of 1 to MOST characters that may be in the name of a tool? */
static bool remotes_is_name(const char *name, size_t most)
{
	size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_-");

	return size > 0 && size <= most && name[size] == '\0';
}

static bool are_variables(const struct row *row, const struct value *value,
			  struct rows_problem *problem)
{
	bool fits = value_count(value) <= ARGUMENTS_MAX;

	for (void *at = value_first(value); at && fits; at = value_next(value, at)) {
		struct str text = value_str(value_at(at));

		fits = value_kind(value_at(at)) == VALUE_STRING &&
		       !memchr(text.data, '\0', text.size) && value_key(at)[0] &&
		       !strchr(value_key(at), '=');
	}
	return fits || rows_refuse(problem, NULL, "%s", row->description);
}

/* Can NAME be that of a header which the configuration gives? */
static bool is_header(const char *name)
{
	static const char ours[] = "accept content-type content-length host connection "
				   "transfer-encoding last-event-id expect";
	struct str words = STR(ours), word;

	if (!remotes_is_name(name, HEADER_NAME_MAX) || strncasecmp(name, "mcp-", 4) == 0)
		return false;
	while (str_next_word(&words, &word)) {
		if (str_is_caseless(word, name))
			return false;
	}
	return true;
}

static bool are_headers(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	bool fits = value_count(value) <= HEADERS_COUNT_MAX;

	for (void *at = value_first(value); at && fits; at = value_next(value, at)) {
		const struct str text = value_str(value_at(at));

		fits = is_header(value_key(at)) &&
		       value_kind(value_at(at)) == VALUE_STRING && text.size > 0 &&
		       text.size <= HEADER_VALUE_MAX;
		for (size_t i = 0; i < text.size && fits; i++)
			fits = text.data[i] >= ' ' && text.data[i] <= '~';
	}
	return fits || rows_refuse(problem, NULL, "%s", row->description);
}

/* An address that a bridge may reach: https, or http on the loopback. */
static bool is_address(const struct row *row, const struct value *value,
		       struct rows_problem *problem)
{
	struct address address;
	struct err err = {0};

	(void)row;
	if (!address_parse(value_str(value), &address, &err))
		return rows_refuse(problem, NULL, "%s", err.text);
	if (address.plain && !network_is_loopback(&address.host))
		return rows_refuse(problem, NULL,
				   "http is for this machine only (localhost, 127.0.0.1, [::1]): "
				   "other hosts need https");
	return strchr(address.text, '#') == NULL ||
	       rows_refuse(problem, NULL, "an address of a server has no part behind \"#\"");
}

static bool are_names(const struct row *row, const struct value *value,
		      struct rows_problem *problem)
{
	(void)row;
	for (void *at = value_first(value); at; at = value_next(value, at)) {
		if (!remotes_is_name(value_key(at), REMOTES_NAME_MAX))
			return rows_refuse(problem, NULL,
					   "\"%.100s\" is no name: 1 to %d of letters, "
					   "digits, _ and -",
					   value_key(at), REMOTES_NAME_MAX);
	}
	return true;
}

/* The keys of `oauth`. */
static const struct row oauth_rows[] = {
	{"client_id", ROW_BYTES, false, "must be a text", .max = OAUTH_TEXT_MAX},
	{"client_secret", ROW_BYTES, false, "must be a text", .max = OAUTH_TEXT_MAX},
	{"client_metadata_url", ROW_BYTES, false, "must be an address",
	 .max = OAUTH_TEXT_MAX, .check = is_address},
	{"scope", ROW_BYTES, false, "must be words between blanks", .max = OAUTH_TEXT_MAX},
	{"grant", ROW_CHOICE, false, "only \"client_credentials\" needs to be named",
	 .choices = "client_credentials"},
	{"port", ROW_COUNT, false, "must be a port from 1024 to 65535", .min = PORT_MIN,
	 .max = PORT_MAX},
	{0},
};

/* The keys of a server. A description says what the value must be. */
static const struct row server_rows[] = {
	{"command", ROW_PATH, false, "must be a program"},
	{"args", ROW_TEXTS, false, "must be a list of texts", .max = ARGUMENTS_MAX},
	{"env", ROW_VALUES, false, "must be an object of texts by the names of variables",
	 .check = are_variables},
	{"type", ROW_CHOICE, false, "only \"stdio\" and \"http\" are served here",
	 .choices = "stdio http"},
	{"url", ROW_BYTES, false, "must be an address", .max = ADDRESS_MAX,
	 .check = is_address},
	{"headers", ROW_VALUES, false,
	 "must be an object of texts by the names of headers, which are not those of MCP or "
	 "of the transport",
	 .check = are_headers},
	{"oauth", ROW_OBJECT, false, "must be an object", .rows = oauth_rows},
	{"start_s", ROW_SECONDS, false, "must be seconds", .max = START_MAX_S},
	{"timeout_s", ROW_SECONDS, false, "must be seconds", .max = TIMEOUT_MAX_S},
	{"disabled", ROW_FLAG, false, "must be true or false"},
	{"defer", ROW_CHOICE, false, "must be \"auto\", \"always\" or \"never\"",
	 .choices = "auto always never"},
	{"sampling", ROW_FLAG, false, "must be true or false"},
	{0},
};

static const struct row servers = {
	"mcpServers",
	ROW_ENTRIES,
	false,
	"must be an object of servers by their names",
	.max = SERVERS_MAX,
	.rows = server_rows,
	.check = are_names,
};

/* A sentence about the first key that does not fit. */
static bool refuse(const struct rows_problem *problem, struct err *err)
{
	const char *server = problem->pointer, *name = server;
	size_t size;

	/* The pointer is /SERVER/KEY, perhaps with an item of a list behind. */
	server += *server == '/';
	size = strcspn(server, "/");
	if (problem->fault == ROWS_UNKNOWN)
		return err_set(err, 0, "mcpServers.%s: no key \"%.100s\"%s%s", server,
			       problem->key, problem->nearest ? "; did you mean " : "",
			       problem->nearest ? problem->nearest : "");
	if (server != name && server[size] == '\0')
		return err_set(err, 0, "mcpServers.%s: a \"command\" is needed", server);
	if (problem->row == &servers && problem->fault == ROWS_ABOVE)
		return err_set(err, 0, "mcpServers: there may be %d", SERVERS_MAX);
	if (problem->row == &servers)
		return err_set(err, 0, "mcpServers: %s",
			       problem->fault == ROWS_OTHER ? problem->why.text
							    : servers.description);
	if (problem->row->kind == ROW_SECONDS)
		return err_set(err, 0, "mcpServers.%.*s.%s: %s up to %.0f", (int)size,
			       server, problem->row->name, problem->row->description,
			       problem->row->max);
	return err_set(err, 0, "mcpServers.%.*s.%s: %s", (int)size, server,
		       problem->row->name,
		       problem->fault == ROWS_OTHER ? problem->why.text
						    : problem->row->description);
}

static bool is_over_http(const struct value *settings)
{
	return value_member(settings, "url");
}

/* Do the keys of the server NAME fit together? */
static bool keys_fit(const char *name, const struct value *settings, struct err *err)
{
	static const char *const programs[] = {"command", "args", "env"};
	static const char *const https[] = {"headers", "oauth"};
	const struct str type = value_str(value_member(settings, "type"));
	const struct value *oauth = value_member(settings, "oauth");
	const struct value *headers = value_member(settings, "headers");
	const bool over_http = is_over_http(settings);
	const char *const *wrong = over_http ? programs : https;
	const size_t count = over_http ? 3 : 2;

	if (str_is(type, "http") && !over_http)
		return err_set(err, 0, "mcpServers.%s: a \"url\" is needed", name);
	if (str_is(type, "stdio") && over_http)
		return err_set(err, 0,
			       "mcpServers.%s.url: a server of the type stdio is a program: "
			       "give a command",
			       name);
	for (size_t i = 0; i < count; i++) {
		if (value_member(settings, wrong[i]))
			return err_set(err, 0, "mcpServers.%s.%s: a server %s has none",
				       name, wrong[i],
				       over_http ? "over HTTP" : "that is a program");
	}
	if (!over_http && !value_member(settings, "command"))
		return err_set(err, 0, "mcpServers.%s: a \"command\" is needed", name);
	for (void *at = oauth ? value_first(headers) : NULL; at;
	     at = value_next(headers, at)) {
		if (strcasecmp(value_key(at), "authorization") == 0)
			return err_set(err, 0,
				       "mcpServers.%s.headers: with \"oauth\" the header "
				       "%s comes from the login",
				       name, value_key(at));
	}
	return !value_member(oauth, "grant") || value_member(oauth, "client_secret") ||
	       err_set(err, 0,
		       "mcpServers.%s.oauth.grant: a client_id and a client_secret are needed",
		       name);
}

bool remotes_check(const struct value *value, struct err *err)
{
	struct rows_problem problem;

	if (!rows_check(&servers, value, &problem))
		return refuse(&problem, err);
	for (void *at = value_first(value); at; at = value_next(value, at)) {
		if (!keys_fit(value_key(at), value_at(at), err))
			return false;
	}
	return true;
}

/*
 * One server as a program: its lines, its end and its restart.
 */

enum {
	MESSAGE_LINE_MAX = 16 << 20, /* of one of its messages */
	RESTARTS = 1,
	/*
	 * The time from the end of the server's output to the end of its program, whose
	 * exit code says more.
	 */
	GOODBYE_MS = 500,
	BRIDGE_END_MS = 1000, /* for the end of a session at a server over HTTP */
	/* A server that has not answered is asked again after this time, … */
	AGAIN_MS = 30 * 1000,
	AGAIN_MAX_MS = 600 * 1000, /* … which doubles up to this */
};

static void close_program(struct remotes_server *server)
{
	loop_remove_timer(&server->goodbye);
	buf_clear(&server->line);
	hosted_cancel(&server->program);
}

/* The server is lost. WHY, and the end of its standard error, become the reason. */
static void lost(struct remotes_server *server, const char *why)
{
	struct str words = server->bridged ? bridged_words(server->bridged)
					   : hosted_words(&server->program);
	struct buf text;

	if (server->down)
		return;
	server->down = true;
	if (remote_has_served(server->remote))
		server->restarts_left = RESTARTS;
	buf_init(&text, HOSTED_SENTENCE_MAX);
	(void)buf_addf(&text, "The MCP server %s %s.", server->name, why);
	if (words.size) {
		(void)buf_adds(&text, " Its last words were:\n");
		(void)text_clean(words, &text);
	}
	if (server->restarts_left)
		(void)buf_addf(&text, "%sThe next call starts it again.",
			       words.size ? "\n" : " ");
	close_program(server);
	remote_lost(server->remote, text.data);
	buf_fini(&text);
}

static void send_line(void *context, struct str line)
{
	struct remotes_server *server = context;

	if (!hosted_is_open(&server->program))
		return;
	if (!buf_addstr(hosted_waiting(&server->program), line))
		lost(server, "does not read what it is sent");
	else
		hosted_write(&server->program);
}

/* Take the whole lines of BYTES, and keep the rest. */
static void take_bytes(void *owner, struct str bytes)
{
	struct remotes_server *server = owner;
	const unsigned generation = hosted_generation(&server->program);

	while (!server->down && hosted_generation(&server->program) == generation &&
	       buf_take_line(&server->line, &bytes) && !server->line.overflowed) {
		struct buf line = server->line;

		/*
		 * Handling the line may end this server or start it again, so take the
		 * line out of the server first.
		 */
		buf_init(&server->line, MESSAGE_LINE_MAX);
		remote_line(server->remote, buf_str(&line));
		buf_fini(&line);
	}
	if (!server->down && server->line.overflowed)
		lost(server, "sends a message over 16 MiB");
}

/*
 * SERVER writes no more, and its last line may lack its end. False: that line has ended
 * the server or started it again.
 */
static bool last_line_ends(struct remotes_server *server)
{
	const unsigned generation = hosted_generation(&server->program);

	take_bytes(server, STR("\n"));
	return !server->down && hosted_generation(&server->program) == generation;
}

static void program_fell_silent(void *owner)
{
	struct remotes_server *server = owner;

	if (!last_line_ends(server))
		return;
	server->goodbye.due_ms = clock_now_ms() + GOODBYE_MS;
	loop_add_timer(server->remotes->loop, &server->goodbye);
}

static void goodbye_due(struct timer *timer)
{
	loop_remove_timer(timer);
	lost(timer->context, "has closed its output");
}

static void program_ended(void *owner, const struct tool_result *result)
{
	struct remotes_server *server = owner;
	struct buf why;

	if (server->down || !hosted_drain(&server->program) || !last_line_ends(server))
		return;
	if (server->bridged)
		bridged_hear(server->bridged);
	if (server->down)
		return;
	buf_init(&why, HOSTED_SENTENCE_MAX / 2);
	hosted_add_end(result, "could not be run", &why);
	lost(server, why.data);
	buf_fini(&why);
}

static struct value *argv_of(const struct remotes_server *server)
{
	const struct value *args = value_member(server->settings, "args");
	struct value *arguments, *argv;

	if (server->bridged)
		return bridged_arguments(server->bridged);
	arguments = value_new_object();
	argv = value_new_array();
	value_append(argv, value_ref(value_member(server->settings, "command")));
	for (size_t i = 0; i < value_count(args); i++)
		value_append(argv, value_ref(value_item(args, i)));
	value_set(arguments, "argv", argv);
	return arguments;
}

/* Open the cell of a bridge, another one than before. *ERROR is the standard error of the bridge. */
static bool open_bridge(struct remotes_server *server, int *error, struct err *err)
{
	if (!server->bridged)
		return true;
	bridged_close(server->bridged);
	return bridged_open(server->bridged, &server->session, error, err);
}

static void remotes_server_start(struct remotes_server *server)
{
	auto_value struct value *arguments = NULL;
	struct err err = {0};
	int error = -1;

	server->down = false;
	server->needs_cell = false;
	if (!open_bridge(server, &error, &err) ||
	    !hosted_open(&server->program, server->remotes->loop, error, &err)) {
		lost(server, err.text);
		return;
	}
	arguments = argv_of(server);
	remote_begin(server->remote);
	hosted_start(&server->program, server->session, arguments);
}

/* Is SERVER about to list its tools? */
static bool is_late(const struct remotes_server *server)
{
	return !server->down && !remote_is_ready(server->remote);
}

/* SERVER, which has never listed a tool, has not answered: ask it again later. */
static void ask_later(struct remotes_server *server)
{
	const int64_t next_ms = server->again_ms * 2;

	if (server->made > 0 || server->again.loop)
		return;
	server->again.due_ms = clock_now_ms() + server->again_ms;
	server->again_ms = next_ms < AGAIN_MAX_MS ? next_ms : AGAIN_MAX_MS;
	loop_add_timer(server->remotes->loop, &server->again);
}

static void restart_due(struct timer *timer)
{
	struct remotes_server *server = timer->context;

	loop_remove_timer(timer);
	if (timer == &server->again) {
		if (!server->down || server->restart.loop || server->remotes->ending)
			return;
		remote_reset(server->remote);
	}
	/* The cell of a bridge is closed after its call has ended. */
	hosted_stop(&server->program);
	remotes_server_start(server);
}

/* A bridge tells something: OWNER is a struct remotes_server. */

static void bridge_fails(void *owner, const char *phrase)
{
	lost(owner, phrase);
}

/* The bridge starts again, in a later turn, in a cell that reaches more hosts. */
static void bridge_moves(void *owner)
{
	struct remotes_server *server = owner;

	if (server->down || server->needs_cell)
		return;
	if (remote_is_ready(server->remote)) {
		lost(server, "gets its tokens from another host now");
		return;
	}
	server->down = server->needs_cell = true;
	close_program(server);
	remote_reset(server->remote);
	server->restart.due_ms = clock_now_ms();
	loop_add_timer(server->remotes->loop, &server->restart);
}

static void bridge_tells(void *owner, const struct value *line);

/* Carry out RUNNING by SERVER, which is started again where it has ended. */
static void call_server(struct remotes_server *server, enum remote_kind kind,
			const char *name, struct running *running)
{
	struct tool_result result;

	if (!server->down || server->needs_cell) {
		remote_call(server->remote, kind, name, running);
		return;
	}
	if (server->restarts_left == 0 && !server->restart.loop) {
		tool_result_init(&result);
		(void)tool_fail(&result,
				"The MCP server %s has ended again before it answered a call; it is "
				"not started any more.",
				server->name);
		running_end(running, &result);
		return;
	}
	/*
	 * Start the server in a later turn of the loop: this function may be called at
	 * the end of the call that ran the server's program.
	 */
	if (!server->restart.loop) {
		server->restarts_left--;
		remote_reset(server->remote);
		server->restart.due_ms = clock_now_ms();
		loop_add_timer(server->remotes->loop, &server->restart);
	}
	remote_call(server->remote, kind, name, running);
}

/* For struct tool: KEEPER is a struct remotes_tool. */
static void remotes_begin(void *keeper, struct running *running)
{
	struct remotes_tool *tool = keeper;
	struct remotes_server *server = tool->server;
	struct tool_result result;

	if (tool->listed) {
		call_server(server, REMOTE_TOOL, tool->remote_name, running);
		return;
	}
	tool_result_init(&result);
	(void)tool_fail(&result, "The MCP server %s has withdrawn its tool %s.",
			server->name, tool->remote_name);
	running_end(running, &result);
}
static void remotes_stop(void *keeper, struct running *running)
{
	const struct remotes_tool *tool = keeper;

	remote_stop(tool->server->remote, running);
}

static void remotes_answered(void *keeper, struct running *running,
			     const struct value *answer)
{
	const struct remotes_tool *tool = keeper;

	remote_answer(tool->server->remote, running, answer);
}

/* The tools that are of no one server: KEEPER is a struct remotes. */

static struct remotes_server *find_server(const struct remotes *remotes, const char *name)
{
	struct remotes_server *server = remotes->first;

	while (server && strcmp(server->name, name) != 0)
		server = server->next;
	return server;
}

static void fail_unknown(const struct remotes *remotes, const char *name,
			 struct running *running)
{
	struct tool_result result;
	const char *behind = ". There are: ";

	tool_result_init(&result);
	(void)tool_fail(&result, "There is no MCP server \"%.100s\" with resources", name);
	for (const struct remotes_server *at = remotes->first; at; at = at->next) {
		if (!remote_has_resources(at->remote))
			continue;
		(void)buf_addf(&result.text, "%s%s", behind, at->name);
		behind = ", ";
	}
	(void)buf_addc(&result.text, '.');
	running_end(running, &result);
}

static void resource_begin(void *keeper, struct running *running)
{
	const struct remotes *remotes = keeper;
	const struct value *arguments = running_arguments(running);
	const char *name = value_text(value_member(arguments, "server"));
	const char *uri = value_text(value_member(arguments, "uri"));
	struct remotes_server *server = find_server(remotes, name);

	if (!server || !remote_has_resources(server->remote))
		fail_unknown(remotes, name, running);
	else
		call_server(server, uri ? REMOTE_RESOURCE : REMOTE_RESOURCES,
			    uri ? uri : "", running);
}

/* The caller has found the server by remotes_prompt. */
static void prompt_begin(void *keeper, struct running *running)
{
	const struct value *arguments = running_arguments(running);
	struct remotes_server *server =
		find_server(keeper, value_text(value_member(arguments, "server")));

	call_server(server, REMOTE_PROMPT, value_text(value_member(arguments, "name")),
		    running);
}

static void any_stop(void *keeper, struct running *running)
{
	const struct remotes *remotes = keeper;

	for (const struct remotes_server *at = remotes->first; at; at = at->next)
		remote_stop(at->remote, running);
}

static void any_answered(void *keeper, struct running *running, const struct value *answer)
{
	const struct remotes *remotes = keeper;

	for (const struct remotes_server *at = remotes->first; at; at = at->next)
		remote_answer(at->remote, running, answer);
}

static const struct row resource_params[] = {
	{"server", ROW_TEXT, true, "The MCP server that has it", .min = 1,
	 .max = REMOTES_NAME_MAX},
	{"uri", ROW_TEXT, false, "Its address; without one the server's resources are listed",
	 .min = 1, .max = URI_MAX},
	{0},
};

static void make_tools(struct remotes *remotes)
{
	remotes->no_schema = value_new_object();
	remotes->read_resource = (struct tool){
		.name = "read_resource",
		.description = "Read a resource of an MCP server, or list those that it has.",
		.example = "{\"server\": \"tracker\", \"uri\": \"tracker://issues/7\"}",
		.params = resource_params,
		.effects = EFFECT_RUNS,
		.timeout_s = REMOTES_TIMEOUT_S,
		.where = ELSEWHERE,
		.begin = resource_begin,
		.stop = any_stop,
		.goes_on = true,
		.answered = any_answered,
		.keeper = remotes,
	};
	remotes->get_prompt = (struct tool){
		.name = "prompt of a server",
		.schema = remotes->no_schema,
		.effects = EFFECT_RUNS,
		.timeout_s = REMOTES_TIMEOUT_S,
		.where = ELSEWHERE,
		.begin = prompt_begin,
		.stop = any_stop,
		.keeper = remotes,
		.internal = true,
	};
}

static bool may_call(void *context, const char *name)
{
	const struct remotes_server *server = context;
	const struct remotes_tool *tool = server->remotes->tools;

	while (tool && (tool->server != server || strcmp(tool->remote_name, name) != 0))
		tool = tool->next;
	return tool && tool->listed;
}

static void remotes_note(struct remotes *remotes, const char *sentence);
static void remotes_take_tools(struct remotes_server *server);
static bool remotes_tell(struct remotes *remotes);

static void settled(void *context, const char *why)
{
	struct remotes_server *server = context;

	const bool first = !server->settled;

	server->settled = true;
	if (!why) {
		remotes_take_tools(server);
		return;
	}
	if (first)
		remotes_note(server->remotes, why);
	lost(server, "cannot be used");
	if (remote_was_silent(server->remote))
		ask_later(server);
	if (first)
		(void)remotes_tell(server->remotes);
}

static struct value *environment_of(const struct value *settings)
{
	const struct value *env = value_member(settings, "env");
	struct value *list = value_new_array();

	for (void *at = value_first(env); at; at = value_next(env, at)) {
		struct str value = value_str(value_at(at));
		struct buf text;

		buf_init(&text, MESSAGE_LINE_MAX);
		(void)buf_addf(&text, "%s=%.*s", value_key(at), (int)value.size, value.data);
		value_append(list, value_new_str(buf_str(&text)));
		buf_fini(&text);
	}
	return list;
}

/* A server may have the model asked only where its settings say so. */
static unsigned asks_of(const struct remotes *remotes, const struct value *settings)
{
	return value_is_true(value_member(settings, "sampling"))
		       ? remotes->asks
		       : remotes->asks & ~(unsigned)REMOTE_ASKS_MODEL;
}

/* Make the server NAME with its SETTINGS; it starts later. */
static struct remotes_server *remotes_server_new(struct remotes *remotes, const char *name,
						 const struct value *settings)
{
	struct remotes_server *server = memory_alloc(sizeof(*server));
	const struct value *start = value_member(settings, "start_s");
	const struct remote_options options = {.loop = remotes->loop,
					       .version = remotes->version,
					       .send = send_line,
					       .settled = settled,
					       .may_call = may_call,
					       .context = server,
					       .start_s = start ? value_number(start) : 0,
					       .answers = is_over_http(settings),
					       .asks = asks_of(remotes, settings)};
	const struct bridged_options bridge = {.loop = remotes->loop,
					       .name = name,
					       .settings = settings,
					       .tokens_folder = remotes->tokens_folder,
					       .task = "serve",
					       .open_cell = remotes->open_cell,
					       .cells = remotes->cells,
					       .fails = bridge_fails,
					       .moves = bridge_moves,
					       .tells = bridge_tells,
					       .owner = server};
	struct hosted_options program = {.name = "mcp server",
					 .said = take_bytes,
					 .fell_silent = program_fell_silent,
					 .ended = program_ended,
					 .owner = server};

	server->remotes = remotes;
	server->name = memory_copy(name);
	server->settings = settings;
	server->session = remotes->session;
	if (is_over_http(settings))
		server->bridged = bridged_new(&bridge);
	server->remote = remote_new(&options, name);
	server->carried = value_new_object();
	value_set(server->carried, "env", environment_of(settings));
	program.carried = server->carried;
	hosted_init(&server->program, &program);
	server->restarts_left = RESTARTS;
	server->restart =
		(struct timer){.due_ms = CLOCK_NEVER, .due = restart_due, .context = server};
	server->goodbye =
		(struct timer){.due_ms = CLOCK_NEVER, .due = goodbye_due, .context = server};
	server->again =
		(struct timer){.due_ms = CLOCK_NEVER, .due = restart_due, .context = server};
	server->again_ms = AGAIN_MS;
	buf_init(&server->line, MESSAGE_LINE_MAX);
	return server;
}

static void remotes_server_free(struct remotes_server *server)
{
	loop_remove_timer(&server->restart);
	loop_remove_timer(&server->goodbye);
	loop_remove_timer(&server->again);
	server->down = true;
	hosted_fini(&server->program);
	bridged_free(server->bridged);
	remote_free(server->remote);
	value_free(server->carried);
	buf_fini(&server->line);
	free(server->name);
	free(server);
}

/* The size of a sentence, with the server's words in it. A longer text is cut. */
enum { WHAT_MAX = 1024, NOTE_MAX = 2 * WHAT_MAX };

/* Add SENTENCE, which names the server, to the problems. */
static void remotes_note(struct remotes *remotes, const char *sentence)
{
	value_append(remotes->problems, value_new_text(sentence));
}

/* Add a problem: the server's name, then WHAT. */
static void note(const struct remotes_server *server, const char *what)
{
	struct buf text;

	buf_init(&text, NOTE_MAX);
	(void)buf_addf(&text, "The MCP server %s %s", server->name, what);
	remotes_note(server->remotes, text.data);
	buf_fini(&text);
}

/* The name SERVER_tool, made of characters that model services take. */
static char *name_of(const struct remotes_server *server, const char *remote_name)
{
	struct buf name;

	buf_init(&name, REMOTES_TOOL_NAME_MAX);
	(void)buf_addf(&name, "%s_", server->name);
	for (; *remote_name; remote_name++) {
		char one[2] = {*remote_name, '\0'};

		(void)buf_addc(&name, remotes_is_name(one, 1) ? *remote_name : '_');
	}
	if (name.overflowed)
		buf_clear(&name);
	return buf_take(&name);
}

/*
 * A tool that its server has withdrawn keeps its name, so that no other tool may get it.
 */
static bool is_taken(const struct remotes *remotes, const char *name)
{
	const struct remotes_tool *tool = remotes->tools;

	if (tool_find(remotes->own, name) || strcmp(remotes->read_resource.name, name) == 0)
		return true;
	while (tool && (tool->refused || strcmp(tool->tool.name, name) != 0))
		tool = tool->next;
	return tool;
}

/* The reason why TOOL, as it was listed, cannot be a tool of ours; NULL: it can. */
static const char *fault_of(const struct remotes *remotes, const struct tool *tool)
{
	auto_value struct value *nothing = value_new_object();
	struct validate_problem problem = {0};

	if (!tool->name[0])
		return "its name is too long";
	if (is_taken(remotes, tool->name))
		return "there is a tool of that name already";
	if (value_kind(tool->schema) != VALUE_OBJECT)
		return "it has no schema of its arguments";
	if (!validate_value(tool->schema, nothing, &problem) && problem.keyword &&
	    strcmp(problem.keyword, "$schema") == 0)
		return "the dialect of its schema is not known (2020-12 and draft-07 are)";
	return NULL;
}

static void tool_free(struct remotes_tool *tool)
{
	free((char *)(uintptr_t)tool->tool.name);
	free(tool->remote_name);
	value_free(tool->listing);
	free(tool);
}

static void note_tool(const struct remotes_tool *tool, const char *what, const char *why)
{
	struct buf text;

	buf_init(&text, WHAT_MAX);
	(void)buf_adds(&text, "offers the tool ");
	text_add_name(&text, str_part(str_of(tool->remote_name), 0, REMOTES_TOOL_NAME_MAX));
	(void)buf_addf(&text, ", which is %s: %s.", what, why);
	note(tool->server, text.data);
	buf_fini(&text);
}

/* A bridge leaves a tool out, or asks for what nobody can do here. */
static void bridge_tells(void *owner, const struct value *line)
{
	struct remotes_server *server = owner;
	const char *tool = value_text(value_member(line, "leaves"));
	const char *why = value_text(value_member(line, "why"));
	struct value *answer;
	struct buf text;

	if (!tool || !why) {
		answer = value_new_object();
		value_set_text(answer, "error", "nobody can log in here");
		bridged_tell(server->bridged, answer);
		return;
	}
	if (server->made == REMOTES_MADE_MAX)
		return;
	server->made++;
	buf_init(&text, WHAT_MAX);
	(void)buf_adds(&text, "offers the tool ");
	text_add_name(&text, str_part(str_of(tool), 0, REMOTES_TOOL_NAME_MAX));
	(void)buf_addf(&text, ", which is left out: %.200s.", why);
	note(server, text.data);
	buf_fini(&text);
}

static enum tool_defer defer_of(const struct remotes_server *server)
{
	const struct str word = value_str(value_member(server->settings, "defer"));

	return str_is(word, "always")  ? DEFER_ALWAYS
	       : str_is(word, "never") ? DEFER_NEVER
				       : DEFER_AUTO;
}

static void add_tool(struct remotes_server *server, const struct value *listing)
{
	struct remotes *remotes = server->remotes;
	struct remotes_tool *tool = memory_alloc(sizeof(*tool));
	const struct value *annotations,
		*timeout = value_member(server->settings, "timeout_s");
	const char *fault;

	tool->server = server;
	tool->listing = value_copy(listing);
	tool->remote_name = memory_copy(value_text(value_member(tool->listing, "name")));
	annotations = value_member(tool->listing, "annotations");
	tool->tool = (struct tool){
		.name = name_of(server, tool->remote_name),
		.title = value_text(value_member(tool->listing, "title")),
		.description = value_text(value_member(tool->listing, "description")),
		.schema = value_member(tool->listing, "inputSchema"),
		.annotations = value_kind(annotations) == VALUE_OBJECT ? annotations : NULL,
		.effects = EFFECT_RUNS,
		.timeout_s = timeout ? value_number(timeout) : REMOTES_TIMEOUT_S,
		.where = ELSEWHERE,
		.begin = remotes_begin,
		.stop = remotes_stop,
		.goes_on = true,
		.answered = remotes_answered,
		.keeper = tool,
		.server = server->name,
		.defer = defer_of(server),
	};
	if (!tool->tool.title)
		tool->tool.title = value_text(value_member(annotations, "title"));
	if (!tool->tool.description)
		tool->tool.description = "";
	fault = fault_of(remotes, &tool->tool);
	tool->refused = fault;
	tool->listed = !fault;
	if (fault)
		note_tool(tool, "left out", fault);
	if (remotes->last_tool)
		remotes->last_tool->next = tool;
	else
		remotes->tools = tool;
	remotes->last_tool = tool;
}

/* The tool that SERVER has listed under NAME before; NULL: none. */
static struct remotes_tool *find_made(const struct remotes_server *server, const char *name)
{
	struct remotes_tool *tool = server->remotes->tools;

	while (tool && (tool->server != server || strcmp(tool->remote_name, name) != 0))
		tool = tool->next;
	return tool;
}

/*
 * A tool stays as the person first saw it and as the model was told. A tool that later
 * describes itself differently under the same name is withdrawn, not replaced.
 */
static void take_tool(struct remotes_server *server, const struct value *listing)
{
	const char *name = value_text(value_member(listing, "name"));
	struct remotes_tool *tool = find_made(server, name);

	if (!tool && server->made == REMOTES_MADE_MAX)
		return;
	if (!tool) {
		add_tool(server, listing);
		if (++server->made == REMOTES_MADE_MAX)
			note(server, "changes its tools too often: no new one is taken.");
	} else if (value_equal(tool->listing, listing)) {
		tool->listed = !tool->refused;
	} else if (!tool->told && !tool->refused) {
		tool->told = true;
		note_tool(tool, "withdrawn",
			  tool->listed
				  ? "it is listed twice, in different ways"
				  : "its definition is not what it was when it was "
				    "listed first; look at it, and start anew to take it");
		tool->listed = false;
	}
}

static bool have_resources(const struct remotes *remotes)
{
	const struct remotes_server *server = remotes->first;

	while (server && !remote_has_resources(server->remote))
		server = server->next;
	return server;
}

/*
 * Make the table: our own tools, then those of each server, in the order of their
 * arrival.
 */
static void make_table(struct remotes *remotes)
{
	size_t count = 0, most = 2;
	const struct tool **table;

	while (remotes->own[count])
		count++;
	for (const struct remotes_tool *at = remotes->tools; at; at = at->next)
		most++;
	table = memory_array(count + most, sizeof(*table));
	memcpy(table, remotes->own, count * sizeof(*table));
	if (have_resources(remotes))
		table[count++] = &remotes->read_resource;
	for (const struct remotes_server *server = remotes->first; server;
	     server = server->next) {
		for (const struct remotes_tool *at = remotes->tools; at; at = at->next) {
			if (at->server == server && at->listed)
				table[count++] = &at->tool;
		}
	}
	remotes->table = table;
}

/*
 * Tell the user of the table to read the table and the problems again. False: the new
 * table cannot be used.
 */
static bool remotes_tell(struct remotes *remotes)
{
	return !remotes->started || remotes->ending || !remotes->changed ||
	       remotes->changed(remotes->context);
}

static bool are_equal(const struct tool *const *a, const struct tool *const *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* Offer the user a new table, or, when the user refuses it, keep the old one. */
static void offer(struct remotes *remotes, bool same_too)
{
	const struct tool **before = remotes->table;

	make_table(remotes);
	if ((!same_too && are_equal(before, remotes->table)) || !remotes_tell(remotes)) {
		const struct tool **refused = remotes->table;

		remotes->table = before;
		before = refused;
	}
	if (before != remotes->first_table)
		free(before);
}

void remotes_offer(struct remotes *remotes)
{
	offer(remotes, false);
}

/* SERVER has listed its tools, for the first time or again. */
static void remotes_take_tools(struct remotes_server *server)
{
	struct remotes *remotes = server->remotes;
	const struct value *tools = remote_tools(server->remote);

	for (struct remotes_tool *at = remotes->tools; at; at = at->next) {
		if (at->server == server)
			at->listed = false;
	}
	for (size_t i = 0; i < value_count(tools); i++)
		take_tool(server, value_item(tools, i));
	if (remotes->started)
		offer(remotes, true);
}

static bool all_settled(const struct remotes *remotes)
{
	const struct remotes_server *at = remotes->first;

	while (at && at->settled)
		at = at->next;
	return !at;
}

static void stop_waiting(struct watch *watch, short events)
{
	bool *stopped = watch->context;

	(void)events;
	*stopped = true;
}

/* Start the servers and wait for them. False: STOP_FD has ended the wait. */
static bool start_all(struct remotes *remotes, int64_t wait_ms, int stop_fd)
{
	bool stopped = false;
	struct watch stop = {.fd = stop_fd,
			     .events = POLLIN,
			     .ready = stop_waiting,
			     .context = &stopped};
	struct remotes_server **end = &remotes->first;
	int64_t deadline_ms = wait_ms > 0 ? clock_now_ms() + wait_ms : CLOCK_NEVER;

	for (void *at = value_first(remotes->servers); at;
	     at = value_next(remotes->servers, at)) {
		if (value_is_true(value_member(value_at(at), "disabled")))
			continue;
		*end = remotes_server_new(remotes, value_key(at), value_at(at));
		end = &(*end)->next;
	}
	for (struct remotes_server *at = remotes->first; at; at = at->next)
		remotes_server_start(at);
	/* Each server settles by itself, at the latest when its own time is over. */
	if (stop_fd >= 0)
		loop_add(remotes->loop, &stop);
	while (!all_settled(remotes) && !stopped && clock_now_ms() < deadline_ms)
		loop_turn(remotes->loop, deadline_ms);
	loop_remove(&stop);
	return !stopped;
}

struct remotes *remotes_start(const struct remotes_options *options)
{
	struct remotes *remotes = memory_alloc(sizeof(*remotes));

	remotes->session = options->session;
	remotes->loop = session_loop(options->session);
	remotes->version = options->version;
	remotes->servers = value_copy(options->servers);
	remotes->problems = value_new_array();
	remotes->own = options->tools;
	remotes->asks = options->asks;
	remotes->open_cell = options->open_cell;
	remotes->cells = options->cells;
	remotes->tokens_folder =
		options->tokens_folder ? memory_copy(options->tokens_folder) : NULL;
	remotes->changed = options->changed;
	remotes->context = options->context;
	make_tools(remotes);
	const bool waited = start_all(remotes, options->wait_ms, options->stop_fd);
	for (struct remotes_server *at = remotes->first; at; at = at->next) {
		if (!at->settled && waited)
			note(at, "does not answer; going on without its tools, which join when "
				 "it has listed them.");
	}
	make_table(remotes);
	remotes->first_table = remotes->table;
	remotes->started = true;
	return remotes;
}

void remotes_hear(struct remotes *remotes, int64_t most_ms)
{
	const int64_t deadline_ms = clock_now_ms() + most_ms;
	const struct remotes_server *at;

	do {
		for (at = remotes->first; at && !is_late(at);)
			at = at->next;
		if (at)
			loop_turn(remotes->loop, deadline_ms);
	} while (at && clock_now_ms() < deadline_ms);
}

/* A bridge may have a session to end at its server: its input ends first. */
static void end_bridges(struct remotes *remotes)
{
	const int64_t deadline_ms = clock_now_ms() + BRIDGE_END_MS;

	for (struct remotes_server *at = remotes->first; at; at = at->next) {
		if (!at->bridged || hosted_running(&at->program) == NULL || at->down)
			continue;
		at->down = true;
		hosted_end_input(&at->program);
	}
	for (struct remotes_server *at = remotes->first; at; at = at->next) {
		const struct running *running = hosted_running(&at->program);

		while (at->bridged && running && !running_is_done(running) &&
		       clock_now_ms() < deadline_ms)
			loop_turn(remotes->loop, deadline_ms);
	}
}

void remotes_free(struct remotes *remotes)
{
	if (!remotes)
		return;
	remotes->ending = true;
	end_bridges(remotes);
	/* Cancel all at the same time, because each may take a moment to end. */
	for (struct remotes_server *at = remotes->first; at; at = at->next) {
		at->down = true;
		close_program(at);
	}
	while (remotes->first) {
		struct remotes_server *server = remotes->first;

		remotes->first = server->next;
		remotes_server_free(server);
	}
	while (remotes->tools) {
		struct remotes_tool *tool = remotes->tools;

		remotes->tools = tool->next;
		tool_free(tool);
	}
	if (remotes->table != remotes->first_table)
		free(remotes->table);
	free(remotes->first_table);
	value_free(remotes->problems);
	value_free(remotes->no_schema);
	value_wipe(remotes->servers);
	value_free(remotes->servers);
	free(remotes->tokens_folder);
	free(remotes);
}

bool remotes_names(const struct tool *tool, const char **server, const char **remote)
{
	const struct remotes_tool *ours = tool->keeper;

	if (tool->begin != remotes_begin)
		return false;
	*server = ours->server->name;
	*remote = ours->remote_name;
	return true;
}

const struct tool *const *remotes_tools(const struct remotes *remotes)
{
	return remotes->table;
}

const struct value *remotes_problems(const struct remotes *remotes)
{
	return remotes->problems;
}

bool remotes_row(const struct remotes *remotes, size_t index, struct remotes_row *row)
{
	const struct remotes_server *server = remotes->first;

	while (server && index-- > 0)
		server = server->next;
	if (!server)
		return false;
	*row = (struct remotes_row){.name = server->name,
				    .over_http = server->bridged,
				    .ready = remote_is_ready(server->remote),
				    .modern = remote_is_modern(server->remote)};
	for (const struct remotes_tool *at = remotes->tools; at; at = at->next)
		row->tools += at->server == server && at->listed;
	return true;
}

bool remotes_prompt(const struct remotes *remotes, size_t index,
		    struct remotes_prompt *prompt)
{
	const struct remotes_server *server = remotes->first;
	const struct value *found;

	while (server && index >= value_count(remote_prompts(server->remote))) {
		index -= value_count(remote_prompts(server->remote));
		server = server->next;
	}
	if (!server)
		return false;
	found = value_item(remote_prompts(server->remote), index);
	*prompt = (struct remotes_prompt){
		.server = server->name,
		.name = value_text(value_member(found, "name")),
		.description = value_text(value_member(found, "description")),
		.arguments = value_member(found, "arguments"),
	};
	if (!prompt->description)
		prompt->description = "";
	return true;
}

const struct tool *remotes_prompt_tool(const struct remotes *remotes)
{
	return &remotes->get_prompt;
}
