/* call_result: what became of a call, as content. */
#include "mcp/server/call.h"

#include <string.h>

/* Items of a kind that CLIENT's version does not know yet are told in words. */
static bool is_known(const char *type, const struct mcp_client *client)
{
	if (type == NULL)
		return false;
	if (strcmp(type, "audio") == 0)
		return client->version >= MCP_2025_03_26;
	if (strcmp(type, "resource_link") == 0)
		return client->version >= MCP_2025_06_18;
	return true;
}

static void add_words(const struct value *item, struct buf *out)
{
	const char *type = value_text(value_member(item, "type"));
	const char *uri = value_text(value_member(item, "uri"));
	const char *mime = value_text(value_member(item, "mimeType"));
	struct buf words;

	buf_init(&words, VALUE_TEXT_MAX);
	(void)buf_addf(&words, "[%s", type != NULL ? type : "content");
	if (mime != NULL)
		(void)buf_addf(&words, " %s", mime);
	if (uri != NULL)
		(void)buf_addf(&words, " %s", uri);
	(void)buf_addc(&words, ']');
	(void)buf_adds(out, "{\"type\":\"text\",\"text\":");
	(void)value_quote(buf_str(&words), out);
	(void)buf_addc(out, '}');
	buf_fini(&words);
}

static void add_item(const struct value *item, const struct mcp_client *client,
		     size_t *count, struct buf *out)
{
	if ((*count)++ > 0)
		(void)buf_addc(out, ',');
	if (is_known(value_text(value_member(item, "type")), client))
		(void)value_print(item, 0, out);
	else
		add_words(item, out);
}

void mcp_result_add(const struct tool_result *result, const struct value *link,
		    const struct mcp_client *client, struct buf *out)
{
	size_t count = 0;

	(void)buf_adds(out, "\"content\":[");
	/* Half of the clients show the first item alone: the words come first. */
	if (result->text.size > 0 || value_count(result->content) == 0) {
		(void)buf_adds(out, "{\"type\":\"text\",\"text\":");
		(void)value_quote(buf_str(&result->text), out);
		(void)buf_addc(out, '}');
		count++;
	}
	for (size_t i = 0; i < value_count(result->content); i++)
		add_item(value_item(result->content, i), client, &count, out);
	if (link != NULL)
		add_item(link, client, &count, out);
	(void)buf_addf(out, "],\"isError\":%s",
		       result->status == RESULT_DONE ? "false" : "true");
}
