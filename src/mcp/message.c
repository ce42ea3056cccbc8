/* message: what makes a JSON value a message of MCP; see message.h. */
#include "mcp/message.h"

#include <string.h>

static const char *const version_names[MCP_VERSIONS] = {
	[MCP_2024_11_05] = "2024-11-05", [MCP_2025_03_26] = "2025-03-26",
	[MCP_2025_06_18] = "2025-06-18", [MCP_2025_11_25] = "2025-11-25",
	[MCP_2026_07_28] = "2026-07-28",
};

const char *mcp_version_name(enum mcp_version version)
{
	return version_names[version];
}

enum mcp_version mcp_version_find(const char *name)
{
	enum mcp_version at = 0;

	while (at < MCP_VERSIONS && (name == NULL || strcmp(version_names[at], name) != 0))
		at++;
	return at;
}

static bool id_is_sound(const struct value *id)
{
	if (value_kind(id) == VALUE_STRING)
		return value_str(id).size <= MCP_ID_MAX;
	return value_kind(id) == VALUE_INTEGER;
}

static bool read_id(struct mcp_message *message, struct err *err)
{
	const struct value *id = value_member(message->whole, "id");

	if (id == NULL)
		return true;
	if (!id_is_sound(id))
		return err_set(err, MCP_CODE_INVALID,
			       "The id must be an integer or a text of at most %d bytes.",
			       MCP_ID_MAX);
	message->id = id;
	return true;
}

static bool read_call(struct mcp_message *message, struct err *err)
{
	const struct value *method = value_member(message->whole, "method");
	const struct value *params = value_member(message->whole, "params");

	message->method = value_text(method);
	/* A NUL in it would make another name of it. */
	if (message->method == NULL || strlen(message->method) != value_str(method).size)
		return err_set(err, MCP_CODE_INVALID, "The method must be a text.");
	/* Some libraries write null for what is not there. */
	if (value_kind(params) == VALUE_NULL)
		params = NULL;
	if (params != NULL && value_kind(params) != VALUE_OBJECT)
		return err_set(err, MCP_CODE_PARAMS, "The params must be an object.");
	message->params = params;
	message->kind = message->id != NULL ? MCP_REQUEST : MCP_NOTIFICATION;
	return true;
}

static bool read_response(struct mcp_message *message, struct err *err)
{
	message->kind = MCP_RESPONSE;
	message->result = value_member(message->whole, "result");
	message->error = value_member(message->whole, "error");
	if (message->id == NULL)
		return err_set(err, MCP_CODE_INVALID,
			       "A message needs a method, or an id and a result.");
	if ((message->result == NULL) == (message->error == NULL))
		return err_set(err, MCP_CODE_INVALID,
			       "A response needs a result or an error, not both.");
	return true;
}

/* MESSAGE->whole is one message, whatever else it may be. */
static bool read_one(struct mcp_message *message, struct err *err)
{
	const char *version;

	if (value_kind(message->whole) != VALUE_OBJECT)
		return err_set(err, MCP_CODE_INVALID, "A message is an object, not %s.",
			       value_kind_name(value_kind(message->whole)));
	if (!read_id(message, err))
		return false;
	version = value_text(value_member(message->whole, "jsonrpc"));
	if (version == NULL || strcmp(version, "2.0") != 0)
		return err_set(err, MCP_CODE_INVALID, "jsonrpc must be \"2.0\".");
	if (value_member(message->whole, "method") != NULL)
		return read_call(message, err);
	return read_response(message, err);
}

bool mcp_message_read(struct str text, struct mcp_message *message, struct err *err)
{
	memset(message, 0, sizeof(*message));
	message->bytes = text.size;
	if (text.size > MCP_MESSAGE_MAX)
		return err_set(err, MCP_CODE_PARSE, "A message may have %d bytes, not %zu.",
			       MCP_MESSAGE_MAX, text.size);
	/*
	 * A text refused here is answered without its id, and its sender would wait: be
	 * lenient.
	 */
	if (!value_parse(text, VALUE_HALVES | VALUE_WIDE, &message->whole, err)) {
		if (err != NULL)
			err->code = MCP_CODE_PARSE;
		return false;
	}
	if (value_kind(message->whole) != VALUE_ARRAY)
		return read_one(message, err);
	if (value_count(message->whole) == 0)
		return err_set(err, MCP_CODE_INVALID, "A batch needs a message.");
	message->kind = MCP_BATCH;
	return true;
}

bool mcp_message_of(const struct value *value, struct mcp_message *message, struct err *err)
{
	memset(message, 0, sizeof(*message));
	message->whole = value_ref(value);
	return read_one(message, err);
}

void mcp_message_fini(struct mcp_message *message)
{
	value_free(message->whole);
	memset(message, 0, sizeof(*message));
}
