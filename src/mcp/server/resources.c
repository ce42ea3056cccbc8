/*
 * resources: what a client may read beside calling tools: the long outputs that calls left in
 * the cell, and what plugin packages list.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "mcp/message.h"
#include "mcp/server/call.h"

#include <string.h>

#define OUTPUT_URI "glovebox://output/"

enum {
	OUTPUTS_MAX = 16, /* as many as the cell keeps (SPILL_KEPT) */
	FILE_MAX = 8 << 20,
	WATCHED_MAX = 256,
};

static struct value *list_of(const struct value *given)
{
	return value_kind(given) == VALUE_ARRAY ? value_copy(given) : value_new_array();
}

/* Remove the members of ROW that clients must not see. */
static void hide_source(struct value *row)
{
	value_remove(row, "file");
	value_remove(row, "text");
	value_remove(row, "arguments");
}

static void set_output(struct value *row, const char *uri, const char *path)
{
	value_set_text(row, "uri", uri);
	value_set_text(row, "name", path_base_name(path));
	value_set_text(row, "title", "Output of a tool, whole");
	value_set_text(row, "mimeType", "text/plain");
}

void mcp_resources_list(struct mcp_request *request)
{
	struct mcp *mcp = request->mcp;
	struct value *result = value_new_object();
	struct value *rows = list_of(mcp->options.resources);

	for (size_t i = 0; i < value_count(rows); i++)
		hide_source(value_item(rows, i));
	for (void *at = value_first(mcp->outputs); at != NULL;
	     at = value_next(mcp->outputs, at)) {
		struct value *row = value_new_object();

		set_output(row, value_key(at), value_text(value_at(at)));
		value_append(rows, row);
	}
	value_set(result, "resources", rows);
	mcp_answer(request, result);
}

void mcp_templates_list(struct mcp_request *request)
{
	struct value *result = value_new_object();
	struct value *rows = list_of(request->mcp->options.templates);

	for (size_t i = 0; i < value_count(rows); i++)
		hide_source(value_item(rows, i));
	value_set(result, "resourceTemplates", rows);
	mcp_answer(request, result);
}

struct value *mcp_resource_of(struct mcp *mcp, const struct tool_result *result)
{
	const char *path = value_text(value_member(result->details, "spill"));
	struct buf uri;
	struct value *link;

	if (path == NULL)
		return NULL;
	buf_init(&uri, VALUE_TEXT_MAX);
	(void)buf_addf(&uri, OUTPUT_URI "%s", path_base_name(path));
	if (value_member(mcp->outputs, uri.data) == NULL) {
		if (value_count(mcp->outputs) >= OUTPUTS_MAX)
			value_remove(mcp->outputs, value_key(value_first(mcp->outputs)));
		value_set_text(mcp->outputs, uri.data, path);
		mcp_list_changed(mcp, MCP_LIST_RESOURCES);
	}
	link = value_new_object();
	value_set_text(link, "type", "resource_link");
	set_output(link, uri.data, path);
	buf_fini(&uri);
	return link;
}

/* BYTES as `text` where they are that, else as `blob`. */
static void set_bytes(struct value *item, struct str bytes)
{
	struct buf blob;

	if (text_is_utf8(bytes) && memchr(bytes.data, '\0', bytes.size) == NULL) {
		value_set_str(item, "text", bytes);
		return;
	}
	buf_init(&blob, FILE_MAX * 2);
	(void)base64_add(bytes, &blob);
	value_set_str(item, "blob", buf_str(&blob));
	buf_fini(&blob);
}

/* The content of ROW, its places filled with VALUES; NULL when its file is gone. */
static struct value *item_of(const struct value *row, const char *uri,
			     const struct value *values)
{
	const char *file = value_text(value_member(row, "file"));
	const char *mime = value_text(value_member(row, "mimeType"));
	struct value *item = NULL;
	struct buf bytes, filled;
	struct str text = value_str(value_member(row, "text"));

	buf_init(&bytes, FILE_MAX);
	buf_init(&filled, FILE_MAX);
	if (file == NULL || fd_read_file(file, FILE_MAX, &bytes, NULL)) {
		if (file != NULL)
			text = buf_str(&bytes);
		item = value_new_object();
		value_set_text(item, "uri", uri);
		if (mime != NULL)
			value_set_text(item, "mimeType", mime);
		if (values != NULL && text_is_utf8(text) && fill_add(text, values, &filled))
			text = buf_str(&filled);
		set_bytes(item, text);
	}
	buf_fini(&filled);
	buf_fini(&bytes);
	return item;
}

struct value *mcp_resource_at_hand(struct mcp *mcp, const char *uri)
{
	const struct value *rows = mcp->options.resources;

	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);

		if (str_is(value_str(value_member(row, "uri")), uri))
			return item_of(row, uri, NULL);
	}
	rows = mcp->options.templates;
	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);
		auto_value struct value *values = value_new_object();

		if (fill_match(value_str(value_member(row, "uriTemplate")), str_of(uri),
			       values))
			return item_of(row, uri, values);
	}
	return NULL;
}

static void not_found(struct mcp_request *request, const char *uri)
{
	struct value *data = value_new_object();
	const bool modern = request->client.version >= MCP_2026_07_28;

	value_set_text(data, "uri", uri);
	mcp_fail(request, modern ? MCP_CODE_PARAMS : MCP_CODE_NO_RESOURCE, data,
		 "There is no resource %.200s; resources/list names those there are.", uri);
}

/* The `uri` of the params; NULL: the request has been answered. */
static const char *uri_of(struct mcp_request *request)
{
	const struct value *uri = value_member(request->params, "uri");

	if (value_text(uri) != NULL && strlen(value_text(uri)) == value_str(uri).size)
		return value_text(uri);
	mcp_fail(request, MCP_CODE_PARAMS, NULL, "The params need a uri.");
	return NULL;
}

void mcp_resources_read(struct mcp_request *request)
{
	const char *uri = uri_of(request);
	const char *path;
	struct value *item, *result;

	if (uri == NULL)
		return;
	path = value_text(value_member(request->mcp->outputs, uri));
	if (path != NULL) {
		/* It lies in the cell, where a worker reads it. */
		mcp_call_output(request, uri, path);
		return;
	}
	item = mcp_resource_at_hand(request->mcp, uri);
	if (item == NULL) {
		not_found(request, uri);
		return;
	}
	result = value_new_object();
	value_set(result, "contents", value_new_array());
	value_append(value_member(result, "contents"), item);
	mcp_answer(request, result);
}

void mcp_resources_subscribe(struct mcp_request *request)
{
	struct mcp_peer *peer = request->peer;
	const char *uri = uri_of(request);

	if (uri == NULL)
		return;
	if (peer->watched == NULL)
		peer->watched = value_new_object();
	if (value_count(peer->watched) >= WATCHED_MAX) {
		mcp_fail(request, MCP_CODE_INTERNAL, NULL,
			 "%d resources are subscribed to; unsubscribe one first.",
			 WATCHED_MAX);
		return;
	}
	value_set_boolean(peer->watched, uri, true);
	mcp_answer_text(request, STR(""));
}

void mcp_resources_unsubscribe(struct mcp_request *request)
{
	const char *uri = uri_of(request);

	if (uri == NULL)
		return;
	if (request->peer->watched != NULL)
		value_remove(request->peer->watched, uri);
	mcp_answer_text(request, STR(""));
}
