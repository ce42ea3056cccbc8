/* remotes: the servers of a configuration, and the table of their tools; see remotes.h. */
#include "mcp/remotes_parts.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "validate/validate.h"

#include <stdlib.h>
#include <string.h>

enum {
	SERVERS_MAX = 16,
	/* All of the start of all of them: an interpreter on a cold disk, twice. */
	START_MS = 45000,
	ARGUMENTS_MAX = 1000,
};

/* Of a call, unless its server's settings say otherwise; and at most. */
#define TIMEOUT_S     60.0
#define TIMEOUT_MAX_S 3600.0

static bool is_name(const char *name, size_t most)
{
	size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_-");

	return size > 0 && size <= most && name[size] == '\0';
}

static bool is_text(const struct value *value)
{
	struct str text = value_str(value);

	return value_kind(value) == VALUE_STRING && !memchr(text.data, '\0', text.size);
}

static bool check_texts(const struct value *value, const char *name, const char *key,
			struct err *err)
{
	enum value_kind kind = value_kind(value);
	const bool object = strcmp(key, "env") == 0;
	bool fits = kind == (object ? VALUE_OBJECT : VALUE_ARRAY) &&
		    value_count(value) <= ARGUMENTS_MAX;

	for (size_t i = 0; fits && !object && i < value_count(value); i++)
		fits = is_text(value_item(value, i));
	for (void *at = object ? value_first(value) : NULL; at && fits;
	     at = value_next(value, at))
		fits = is_text(value_at(at)) && value_key(at)[0] &&
		       !strchr(value_key(at), '=');
	return fits || err_set(err, 0, "mcpServers.%s.%s: must be %s", name, key,
			       object ? "an object of texts by the names of variables"
				      : "a list of texts");
}

static bool check_key(const char *name, const char *key, const struct value *value,
		      struct err *err)
{
	static const char *const keys[] = {"command",   "args",     "env", "type",
					   "timeout_s", "disabled", NULL};
	const char *nearest;

	if (strcmp(key, "args") == 0 || strcmp(key, "env") == 0)
		return check_texts(value, name, key, err);
	if (strcmp(key, "command") == 0)
		return (is_text(value) && value_str(value).size) ||
		       err_set(err, 0, "mcpServers.%s.command: must be a program", name);
	if (strcmp(key, "type") == 0)
		return str_is(value_str(value), "stdio") ||
		       err_set(err, 0,
			       "mcpServers.%s.type: only \"stdio\" is served here", name);
	if (strcmp(key, "disabled") == 0)
		return value_kind(value) == VALUE_BOOLEAN ||
		       err_set(err, 0, "mcpServers.%s.disabled: must be true or false",
			       name);
	if (strcmp(key, "timeout_s") == 0)
		return (value_is_number(value) && value_number(value) > 0 &&
			value_number(value) <= TIMEOUT_MAX_S) ||
		       err_set(err, 0, "mcpServers.%s.timeout_s: must be seconds up to %.0f",
			       name, TIMEOUT_MAX_S);
	if (strcmp(key, "url") == 0)
		return err_set(err, 0,
			       "mcpServers.%s.url: servers are programs here, started in a cell: give "
			       "a command",
			       name);
	nearest = text_nearest(key, keys);
	return err_set(err, 0, "mcpServers.%s: no key \"%.100s\"%s%s", name, key,
		       nearest ? "; did you mean " : "", nearest ? nearest : "");
}

bool remotes_check(const struct value *value, struct err *err)
{
	if (value_kind(value) != VALUE_OBJECT)
		return err_set(err, 0,
			       "mcpServers: must be an object of servers by their names");
	if (value_count(value) > SERVERS_MAX)
		return err_set(err, 0, "mcpServers: there may be %d", SERVERS_MAX);
	for (void *at = value_first(value); at; at = value_next(value, at)) {
		const char *name = value_key(at);
		const struct value *settings = value_at(at);

		if (!is_name(name, REMOTES_NAME_MAX))
			return err_set(err, 0,
				       "mcpServers: \"%.100s\" is no name: 1 to %d of letters, "
				       "digits, _ and -",
				       name, REMOTES_NAME_MAX);
		if (value_kind(settings) != VALUE_OBJECT ||
		    !value_member(settings, "command"))
			if (!value_member(settings, "url"))
				return err_set(err, 0,
					       "mcpServers.%s: a \"command\" is needed",
					       name);
		for (void *key = value_first(settings); key;
		     key = value_next(settings, key)) {
			if (!check_key(name, value_key(key), value_at(key), err))
				return false;
		}
	}
	return true;
}

void remotes_note(struct remotes *remotes, const char *server, const char *text)
{
	struct value *problem = value_new_object();

	value_set_text(problem, "server", server);
	value_set_text(problem, "text", text);
	value_append(remotes->problems, problem);
}

/* SERVER_tool, in the characters that model services take. */
static char *name_of(const struct remotes_server *server, const char *remote_name)
{
	struct buf name;

	buf_init(&name, REMOTES_TOOL_NAME_MAX);
	(void)buf_addf(&name, "%s_", server->name);
	for (; *remote_name; remote_name++) {
		char one[2] = {*remote_name, '\0'};

		(void)buf_addc(&name, is_name(one, 1) ? *remote_name : '_');
	}
	if (name.overflowed)
		buf_clear(&name);
	return buf_take(&name);
}

static const struct tool *find_taken(const struct remotes *remotes, const char *name)
{
	for (size_t i = 0; i < remotes->count; i++) {
		if (strcmp(remotes->table[i]->name, name) == 0)
			return remotes->table[i];
	}
	return NULL;
}

/* Why TOOL, as it was listed, cannot be ours; or NULL. */
static const char *fault_of(const struct remotes *remotes, const struct tool *tool)
{
	auto_value struct value *nothing = value_new_object();
	struct validate_problem problem = {0};

	if (!tool->name[0])
		return "its name is too long";
	if (find_taken(remotes, tool->name))
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

static void add_tool(struct remotes_server *server, const struct value *listing)
{
	struct remotes *remotes = server->remotes;
	struct remotes_tool *tool = memory_alloc(sizeof(*tool));
	const struct value *annotations,
		*timeout = value_member(server->settings, "timeout_s");
	const char *fault;
	struct buf text;

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
		.timeout_s = timeout ? value_number(timeout) : TIMEOUT_S,
		.where = ELSEWHERE,
		.begin = remotes_begin,
		.stop = remotes_stop,
		.keeper = tool,
	};
	if (!tool->tool.title)
		tool->tool.title = value_text(value_member(annotations, "title"));
	if (!tool->tool.description)
		tool->tool.description = "";
	fault = fault_of(remotes, &tool->tool);
	if (fault) {
		buf_init(&text, 1024);
		(void)buf_adds(&text, "Its tool ");
		text_add_name(&text, str_part(str_of(tool->remote_name), 0,
					      REMOTES_TOOL_NAME_MAX));
		(void)buf_addf(&text, " is left out: %s.", fault);
		remotes_note(remotes, server->name, text.data);
		buf_fini(&text);
		tool_free(tool);
		return;
	}
	tool->next = remotes->tools;
	remotes->tools = tool;
	remotes->table =
		memory_grow(remotes->table, remotes->count + 2, sizeof(*remotes->table));
	remotes->table[remotes->count++] = &tool->tool;
	remotes->table[remotes->count] = NULL;
}

static bool all_settled(const struct remotes *remotes)
{
	const struct remotes_server *at = remotes->first;

	while (at && at->settled)
		at = at->next;
	return !at;
}

static void start_all(struct remotes *remotes)
{
	struct remotes_server **end = &remotes->first;
	int64_t deadline_ms = clock_now_ms() + START_MS;

	for (void *at = value_first(remotes->servers); at;
	     at = value_next(remotes->servers, at)) {
		if (value_is_true(value_member(value_at(at), "disabled")))
			continue;
		*end = remotes_server_new(remotes, value_key(at), value_at(at));
		end = &(*end)->next;
	}
	for (struct remotes_server *at = remotes->first; at; at = at->next)
		remotes_server_start(at);
	while (!all_settled(remotes) && clock_now_ms() < deadline_ms)
		loop_turn(remotes->loop, deadline_ms);
}

struct remotes *remotes_start(const struct remotes_options *options)
{
	struct remotes *remotes = memory_alloc(sizeof(*remotes));

	remotes->session = options->session;
	remotes->loop = session_loop(options->session);
	remotes->version = options->version;
	remotes->servers = value_copy(options->servers);
	remotes->problems = value_new_array();
	while (options->tools[remotes->count])
		remotes->count++;
	remotes->table = memory_array(remotes->count + 1, sizeof(*remotes->table));
	memcpy(remotes->table, options->tools, remotes->count * sizeof(*remotes->table));
	start_all(remotes);
	for (struct remotes_server *at = remotes->first; at; at = at->next) {
		const struct value *tools = remote_tools(at->remote);

		if (!at->settled)
			remotes_note(remotes, at->name,
				     "It has not listed its tools in time.");
		for (size_t i = 0; remote_is_ready(at->remote) && i < value_count(tools);
		     i++)
			add_tool(at, value_item(tools, i));
	}
	return remotes;
}

void remotes_free(struct remotes *remotes)
{
	if (!remotes)
		return;
	/* All at once: each may take a moment to end. */
	for (struct remotes_server *at = remotes->first; at; at = at->next) {
		at->down = true;
		if (at->running)
			running_cancel(at->running);
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
	free(remotes->table);
	value_free(remotes->problems);
	value_free(remotes->servers);
	free(remotes);
}

const struct tool *const *remotes_tools(const struct remotes *remotes)
{
	return remotes->table;
}

const struct value *remotes_problems(const struct remotes *remotes)
{
	return remotes->problems;
}
