/* tools: the list of tools, in the one order that the table and the plugins have. */
#include "mcp/server/mcp_parts.h"
#include "tool/schema.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { TOOLS_A_PAGE = 100, TITLE_MAX = 128 };

/* "read_file" -> "Read file" */
static void add_title(const struct tool *tool, struct buf *out)
{
	char title[TITLE_MAX];
	size_t size = 0;

	for (const char *at = tool->name; *at != '\0' && size + 1 < sizeof(title); at++)
		title[size++] = *at == '_' || *at == '-' ? ' ' : *at;
	title[size] = '\0';
	title[0] = (char)toupper((unsigned char)title[0]);
	(void)value_quote(str_of(tool->title != NULL ? tool->title : title), out);
}

/* Clients assume the worst for a hint that is missing: all four are sent. */
static void add_annotations(const struct mcp *mcp, const struct tool *tool, struct buf *out)
{
	const bool runs = (tool->effects & EFFECT_RUNS) != 0;
	const bool changes = runs || tool->keeps || (tool->effects & EFFECT_WRITES) != 0;
	const bool open = runs && session_policy(mcp->session)->network.count > 0;
	const struct {
		const char *key;
		bool value;
	} hints[] = {
		{"readOnlyHint", !changes},
		{"destructiveHint", changes},
		{"idempotentHint", !changes},
		{"openWorldHint", open},
	};

	(void)buf_adds(out, ",\"annotations\":{");
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		const struct value *said = value_member(tool->annotations, hints[i].key);
		const bool value = said != NULL ? value_is_true(said) : hints[i].value;

		(void)buf_addf(out, "%s\"%s\":%s", i > 0 ? "," : "", hints[i].key,
			       value ? "true" : "false");
	}
	(void)buf_addc(out, '}');
}

static void add_tool(const struct mcp *mcp, const struct tool *tool,
		     enum mcp_version version, struct buf *out)
{
	auto_value struct value *made = tool->schema == NULL ? schema_of_tool(tool) : NULL;

	(void)buf_adds(out, "{\"name\":");
	(void)value_quote(str_of(tool->name), out);
	if (version >= MCP_2025_06_18) {
		(void)buf_adds(out, ",\"title\":");
		add_title(tool, out);
	}
	(void)buf_adds(out, ",\"description\":");
	(void)value_quote(str_of(tool->description), out);
	(void)buf_adds(out, ",\"inputSchema\":");
	(void)value_print(made != NULL ? made : tool->schema, 0, out);
	if (version >= MCP_2025_03_26)
		add_annotations(mcp, tool, out);
	(void)buf_addc(out, '}');
}

/*
 * A cursor is the index of the first tool of its page. After a change a client must list
 * anew.
 */
static bool read_cursor(const struct value *params, size_t count, size_t *first)
{
	const struct value *cursor = value_member(params, "cursor");
	const char *text = value_text(cursor);
	char *end;

	*first = 0;
	if (value_kind(cursor) == VALUE_NULL)
		return true;
	if (text == NULL || text[0] < '1' || text[0] > '9')
		return false;
	*first = strtoul(text, &end, 10);
	return *end == '\0' && *first < count;
}

const struct value *mcp_schema_of_call(struct mcp *mcp, const struct mcp_message *message)
{
	const char *name = value_text(value_member(message->params, "name"));
	const struct tool *tool;
	struct err err;

	if (name == NULL || message->method == NULL ||
	    strcmp(message->method, "tools/call") != 0 || !mcp_session(mcp, &err))
		return NULL;
	tool = tool_find(session_tools(mcp->session), name);
	return tool != NULL ? tool->schema : NULL;
}

void mcp_tools_list(struct mcp_request *request)
{
	struct mcp *mcp = request->mcp;
	const struct tool *const *tools;
	size_t count = 0, at;
	struct buf out;
	struct err err;

	if (!mcp_session(mcp, &err)) {
		mcp_fail(request, MCP_CODE_INTERNAL, NULL, "%s", err.text);
		return;
	}
	tools = session_tools(mcp->session);
	while (tools[count] != NULL)
		count++;
	if (!read_cursor(request->params, count, &at)) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "This cursor is none of ours; begin again without one.");
		return;
	}
	buf_init(&out, VALUE_TEXT_MAX);
	(void)buf_adds(&out, "\"tools\":[");
	for (size_t end = at + TOOLS_A_PAGE, first = at; at < count && at < end; at++) {
		if (at > first)
			(void)buf_addc(&out, ',');
		add_tool(mcp, tools[at], request->client.version, &out);
	}
	(void)buf_addc(&out, ']');
	if (at < count)
		(void)buf_addf(&out, ",\"nextCursor\":\"%zu\"", at);
	mcp_answer_text(request, buf_str(&out));
	buf_fini(&out);
}
