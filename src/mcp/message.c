/* message: decides whether a JSON value is a message of MCP. */

#include "mcp/message.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

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
	/* A method with a NUL in it would be taken for another, shorter method. */
	if (message->method == NULL || strlen(message->method) != value_str(method).size)
		return err_set(err, MCP_CODE_INVALID, "The method must be a text.");
	/* Some libraries write null for a missing member. */
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
	/* A list is not even parsed, because it may have millions of members. */
	if (str_starts(str_trim(text), STR("[")))
		return err_set(err, MCP_CODE_INVALID,
			       "A list of messages (a batch) is not taken: send each "
			       "message by itself.");
	/*
	 * When we refuse a text here, the answer has no id, and the sender would wait for
	 * ever. So the parser accepts more than JSON allows.
	 */
	if (!value_parse(text, VALUE_HALVES | VALUE_WIDE, &message->whole, err)) {
		if (err != NULL)
			err->code = MCP_CODE_PARSE;
		return false;
	}
	return read_one(message, err);
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

struct str mcp_message_name(const struct mcp_message *message)
{
	if (strcmp(message->method, "tools/call") == 0 ||
	    strcmp(message->method, "prompts/get") == 0)
		return value_str(value_member(message->params, "name"));
	if (strcmp(message->method, "resources/read") == 0)
		return value_str(value_member(message->params, "uri"));
	return STR("");
}

/* The size of the place {{name}} at AT in TEXT; 0: there is none. */
static size_t place_at(struct str text, size_t at, struct str *name)
{
	size_t end;

	if (at + 2 > text.size || memcmp(text.data + at, "{{", 2) != 0)
		return 0;
	end = str_find(text, STR("}}"), at + 2);
	if (end == (size_t)-1)
		return 0;
	*name = str_trim(str_part(text, at + 2, end - at - 2));
	return end + 2 - at;
}

bool message_fill_has_place(struct str text)
{
	struct str name;

	for (size_t at = 0; at < text.size; at++) {
		if (place_at(text, at, &name) > 0)
			return true;
	}
	return false;
}

bool message_fill_add(struct str text, const struct value *values, struct buf *out)
{
	bool fits = true;

	for (size_t at = 0; fits && at < text.size;) {
		size_t next = str_find(text, STR("{{"), at);
		struct str name;

		if (next == (size_t)-1)
			return buf_addstr(out, str_part(text, at, text.size));
		fits = buf_addstr(out, str_part(text, at, next - at));
		at = next;
		const size_t size = place_at(text, at, &name);
		auto_free char *key = memory_copy_str(size > 0 ? name : STR(""));
		const struct value *value = value_member(values, key);

		if (size > 0 && value != NULL) {
			fits = fits && buf_addstr(out, value_str(value));
			at += size;
		} else {
			fits = fits && buf_adds(out, "{{");
			at += 2;
		}
	}
	return fits;
}

bool message_fill_match(struct str template, struct str uri, struct value *values)
{
	size_t at = 0, in = 0;

	while (at < template.size) {
		size_t end = template.data[at] == '{' ? str_find(template, STR("}"), at)
						      : (size_t)-1;

		if (end == (size_t)-1) {
			if (in >= uri.size || uri.data[in++] != template.data[at++])
				return false;
			continue;
		}
		auto_free char *name =
			memory_copy_str(str_part(template, at + 1, end - at - 1));
		const char stop = end + 1 < template.size ? template.data[end + 1] : '/';
		const size_t from = in;

		while (in < uri.size && uri.data[in] != stop && uri.data[in] != '/')
			in++;
		if (in == from)
			return false;
		value_set_str(values, name, str_part(uri, from, in - from));
		at = end + 1;
	}
	return in == uri.size;
}

/* HMAC with SHA-256 (RFC 2104). */

enum {
	BLOCK = 64, /* of SHA-256 */
	INNER = 0x36,
	OUTER = 0x5c,
};

void seal_key_make(struct seal_key *key)
{
	/*
	 * A request for so few bytes gets all of them, or the kernel has no random bytes.
	 * In that case no key would be safe.
	 */
	if (getrandom(key->bytes, sizeof(key->bytes), 0) != (ssize_t)sizeof(key->bytes))
		abort();
}

void message_seal_name_make(char *name, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	struct seal_key bytes;

	assert(size <= SEAL_KEY);
	seal_key_make(&bytes);
	for (size_t i = 0; i + 1 < size; i++)
		name[i] = digits[bytes.bytes[i] & 15];
	name[size - 1] = '\0';
}

static struct hash *begin(const struct seal_key *key, uint8_t pad)
{
	struct hash *hash = hash_new();
	uint8_t block[BLOCK] = {0};

	memcpy(block, key->bytes, SEAL_KEY);
	for (size_t i = 0; i < BLOCK; i++)
		block[i] ^= pad;
	hash_add(hash, (struct str){(const char *)block, BLOCK});
	return hash;
}

static void seal_of(const struct seal_key *key, struct str purpose, struct str text,
		    char hex[HASH_HEX + 1])
{
	static const char digits[] = "0123456789abcdef";
	struct hash *hash = begin(key, INNER);
	const uint64_t size = purpose.size;
	uint8_t digest[HASH_BYTES];

	/* The size before PURPOSE fixes the border between PURPOSE and TEXT. */
	hash_add(hash, (struct str){(const char *)&size, sizeof(size)});
	hash_add(hash, purpose);
	hash_add(hash, text);
	hash_digest(hash, digest);
	hash_free(hash);
	hash = begin(key, OUTER);
	hash_add(hash, (struct str){(const char *)digest, HASH_BYTES});
	hash_digest(hash, digest);
	hash_free(hash);
	for (size_t i = 0; i < HASH_BYTES; i++) {
		hex[2 * i] = digits[digest[i] >> 4];
		hex[2 * i + 1] = digits[digest[i] & 15];
	}
	hex[HASH_HEX] = '\0';
}

void message_seal_add(const struct seal_key *key, struct str purpose, struct str text,
		      struct buf *sealed)
{
	char hex[HASH_HEX + 1];

	seal_of(key, purpose, text, hex);
	(void)buf_addstr(sealed, text);
	(void)buf_addf(sealed, ".%s", hex);
}

bool message_seal_check(const struct seal_key *key, struct str purpose, struct str sealed,
			struct str *text)
{
	char hex[HASH_HEX + 1];
	unsigned differs = 0;

	if (sealed.size < HASH_HEX + 1 || sealed.data[sealed.size - HASH_HEX - 1] != '.')
		return false;
	const struct str inner = str_part(sealed, 0, sealed.size - HASH_HEX - 1);
	const char *given = sealed.data + inner.size + 1;

	seal_of(key, purpose, inner, hex);
	/*
	 * Compare all digits, so that the time does not tell where the first difference
	 * is.
	 */
	for (size_t i = 0; i < HASH_HEX; i++)
		differs |= (unsigned char)hex[i] ^ (unsigned char)given[i];
	if (differs != 0)
		return false;
	*text = inner;
	return true;
}
