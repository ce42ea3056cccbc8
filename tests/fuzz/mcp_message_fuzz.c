/*
 * Fuzz target of mcp/message: a message is read or refused with a code and a sentence. What was
 * read is a message again when it is printed, and the same one.
 */
#include "mcp/message.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_read(const struct mcp_message *message)
{
	const bool asks = message->kind == MCP_REQUEST || message->kind == MCP_RESPONSE;

	if (asks != (message->id != NULL) ||
	    (message->kind == MCP_RESPONSE) != (message->method == NULL) ||
	    (message->kind == MCP_RESPONSE) !=
		    ((message->result != NULL) != (message->error != NULL)) ||
	    (message->params != NULL && value_kind(message->params) != VALUE_OBJECT))
		abort();
}

static void check_again(const struct mcp_message *message)
{
	struct mcp_message again;
	struct buf text;

	buf_init(&text, VALUE_TEXT_MAX);
	if (!value_print(message->whole, 0, &text) ||
	    !mcp_message_read(buf_str(&text), &again, NULL) ||
	    again.kind != message->kind || !value_equal(again.whole, message->whole))
		abort();
	mcp_message_fini(&again);
	buf_fini(&text);
}

/* A client reads the members of a server's list one by one. */
static void check_members(struct str text)
{
	auto_value struct value *list = NULL;
	struct mcp_message message;

	(void)value_parse(text, VALUE_HALVES | VALUE_WIDE, &list, NULL);
	if (value_kind(list) != VALUE_ARRAY)
		return;
	if (mcp_message_read(text, &message, NULL))
		abort();
	mcp_message_fini(&message);
	for (size_t i = 0; i < value_count(list); i++) {
		if (mcp_message_of(value_item(list, i), &message, NULL))
			check_read(&message);
		mcp_message_fini(&message);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mcp_message message;
	struct err err = {0};

	check_members((struct str){(const char *)data, size});

	if (mcp_message_read((struct str){(const char *)data, size}, &message, &err)) {
		check_read(&message);
		check_again(&message);
	} else if (err.code >= 0 || err.text[0] == '\0') {
		abort();
	}
	mcp_message_fini(&message);
	return 0;
}
