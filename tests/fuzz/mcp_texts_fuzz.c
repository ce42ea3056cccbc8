/*
 * Fuzz target of what else comes from outside: the first byte chooses. A prompt is read and made
 * into messages; a URI is held against a template; headers are compared; base64 is read, and is
 * the same text when it is made again; a sealed text is not taken.
 */
#include "base/buf.h"
#include "mcp/message.h"
#include "mcp/server/http.h"
#include "mcp/server/mcp.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct value *nothing(void *context, const char *target, bool made)
{
	(void)context;
	(void)made;
	return value_new_text(target);
}

static void try_prompt(struct str text)
{
	const struct mcp_prompt_embed embed = {nothing, NULL};
	auto_value struct value *arguments = value_new_object();
	struct value *prompt, *messages;
	struct err err;

	if (!mcp_prompt_read(text, "name", &prompt, &err))
		return;
	value_set_text(arguments, "a", "![x](y)");
	value_free(mcp_prompt_row(prompt));
	value_free(mcp_prompt_missing(prompt, arguments));
	value_free(mcp_prompt_proposals(value_member(prompt, "arguments"), "a", STR("x")));
	if (mcp_prompt_messages(prompt, arguments, &embed, &messages, &err))
		value_free(messages);
	value_free(prompt);
}

static void try_base64(struct str text)
{
	struct buf bytes, again;

	buf_init(&bytes, 1 << 20);
	buf_init(&again, 1 << 20);
	if (buf_base64_read(text, &bytes) && (!buf_base64_add(buf_str(&bytes), &again) ||
					      !str_equal(buf_str(&again), text)))
		abort();
	buf_fini(&bytes);
	buf_fini(&again);
}

static void try_headers(struct str text)
{
	static const char *const hosts[] = {"box.example", NULL};
	const struct http_guard guard = {NULL, hosts};
	struct buf copy;
	struct http_place place;

	buf_init(&copy, 1 << 20);
	(void)buf_addstr(&copy, text);
	(void)http_host_is_ours(&guard, text);
	(void)http_origin_is_ours(&guard, copy.data);
	(void)http_accepts(copy.data, STR("application/json"));
	(void)http_token_fits(&(struct http_guard){"a token of ours"}, copy.data);
	(void)http_place_read(copy.data, &place, NULL);
	buf_fini(&copy);
}

static void try_template(struct str text)
{
	auto_value struct value *values = value_new_object();
	const size_t half = text.size / 2;

	(void)message_fill_match(str_part(text, 0, half), str_part(text, half, text.size),
				 values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct seal_key key = {{1}};
	struct str text, inner;

	if (size == 0)
		return 0;
	text = (struct str){(const char *)data + 1, size - 1};
	switch (data[0]) {
	case 'p':
		try_prompt(text);
		break;
	case 'b':
		try_base64(text);
		break;
	case 'h':
		try_headers(text);
		break;
	case 't':
		try_template(text);
		break;
	case 's':
		if (message_seal_check(&key, STR("purpose"), text, &inner))
			abort();
		break;
	default:
		break;
	}
	return 0;
}
