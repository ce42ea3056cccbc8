/* remotes: the servers of a configuration, and the table of their tools; see remotes.h. */
#include "mcp/client/remotes_parts.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "tool/validate.h"

#include <stdlib.h>
#include <string.h>

/* A sentence, with words of the server's in it; what does not fit is not said. */
enum { WHAT_MAX = 1024, NOTE_MAX = 2 * WHAT_MAX };

void remotes_note(struct remotes *remotes, const char *sentence)
{
	value_append(remotes->problems, value_new_text(sentence));
}

/* WHAT goes on behind the server's name. */
static void note(const struct remotes_server *server, const char *what)
{
	struct buf text;

	buf_init(&text, NOTE_MAX);
	(void)buf_addf(&text, "The MCP server %s %s", server->name, what);
	remotes_note(server->remotes, text.data);
	buf_fini(&text);
}

/* SERVER_tool, in the characters that model services take. */
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

/* One that its server has withdrawn keeps its name: no other may come under it. */
static bool is_taken(const struct remotes *remotes, const char *name)
{
	const struct remotes_tool *tool = remotes->tools;

	if (tool_find(remotes->own, name))
		return true;
	while (tool && (tool->refused || strcmp(tool->tool.name, name) != 0))
		tool = tool->next;
	return tool;
}

/* Why TOOL, as it was listed, cannot be ours; or NULL. */
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
		.moved = remotes_moved,
		.answered = remotes_answered,
		.keeper = tool,
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

/* That SERVER has listed under this NAME before; NULL: none. */
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

/* Ours, then those of each server, in the order in which they came. */
static void make_table(struct remotes *remotes)
{
	size_t count = 0, most = 1;
	const struct tool **table;

	while (remotes->own[count])
		count++;
	for (const struct remotes_tool *at = remotes->tools; at; at = at->next)
		most++;
	table = memory_array(count + most, sizeof(*table));
	memcpy(table, remotes->own, count * sizeof(*table));
	for (const struct remotes_server *server = remotes->first; server;
	     server = server->next) {
		for (const struct remotes_tool *at = remotes->tools; at; at = at->next) {
			if (at->server == server && at->listed)
				table[count++] = &at->tool;
		}
	}
	remotes->table = table;
}

bool remotes_tell(struct remotes *remotes)
{
	return !remotes->started || remotes->ending || !remotes->changed ||
	       remotes->changed(remotes->context);
}

void remotes_take_tools(struct remotes_server *server)
{
	struct remotes *remotes = server->remotes;
	const struct value *tools = remote_tools(server->remote);
	const struct tool **before = remotes->table;

	for (struct remotes_tool *at = remotes->tools; at; at = at->next) {
		if (at->server == server)
			at->listed = false;
	}
	for (size_t i = 0; i < value_count(tools); i++)
		take_tool(server, value_item(tools, i));
	if (!remotes->started)
		return;
	make_table(remotes);
	if (!remotes_tell(remotes)) {
		const struct tool **refused = remotes->table;

		remotes->table = before;
		before = refused;
	}
	if (before != remotes->first_table)
		free(before);
}

static bool all_settled(const struct remotes *remotes)
{
	const struct remotes_server *at = remotes->first;

	while (at && at->settled)
		at = at->next;
	return !at;
}

static void start_all(struct remotes *remotes, int64_t wait_ms)
{
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
	/* Each settles by itself, if need be when its own time is over. */
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
	remotes->own = options->tools;
	remotes->asks = options->asks;
	remotes->changed = options->changed;
	remotes->context = options->context;
	start_all(remotes, options->wait_ms);
	for (struct remotes_server *at = remotes->first; at; at = at->next) {
		if (!at->settled)
			note(at, "has not listed its tools yet; they join when it has.");
	}
	make_table(remotes);
	remotes->first_table = remotes->table;
	remotes->started = true;
	return remotes;
}

void remotes_free(struct remotes *remotes)
{
	if (!remotes)
		return;
	remotes->ending = true;
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
	if (remotes->table != remotes->first_table)
		free(remotes->table);
	free(remotes->first_table);
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
