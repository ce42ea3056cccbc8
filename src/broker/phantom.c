/* phantom: random texts in the form of a key, and tokens without a signature. */

#include "broker/phantom.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Append PHANTOM_DIGITS random digits. */
static bool add_digits(struct buf *out, struct err *err)
{
	char digits[PHANTOM_DIGITS + 1];

	if (!text_random_hex(digits, PHANTOM_DIGITS))
		return err_set(err, errno, "no random numbers: %s", strerror(errno));
	return buf_adds(out, digits);
}

/* Tokens: header.payload.signature, each in Base64 for URLs without padding (RFC 7515). */

enum { GROUP = 4 };

static void add_base64url(struct str bytes, struct buf *out)
{
	size_t from = out->size;

	(void)buf_base64_add(bytes, out);
	while (out->size > from && out->data[out->size - 1] == '=')
		buf_truncate(out, out->size - 1);
	for (; from < out->size; from++) {
		if (out->data[from] == '+')
			out->data[from] = '-';
		else if (out->data[from] == '/')
			out->data[from] = '_';
	}
}

static bool read_base64url(struct str text, struct buf *out)
{
	struct buf plain;

	buf_init(&plain, PHANTOM_MAX + GROUP);
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];

		(void)buf_addc(&plain, c == '-' ? '+' : c == '_' ? '/' : c);
	}
	while (plain.size % GROUP != 0 && buf_addc(&plain, '='))
		;
	bool fine = !plain.overflowed && buf_base64_read(buf_str(&plain), out);
	explicit_bzero(plain.data, plain.size);
	buf_fini(&plain);
	return fine;
}

/* The payload of the token VALUE; NULL: VALUE is no token. The caller frees it. */
static struct value *read_payload(struct str value)
{
	size_t one = str_find(value, STR("."), 0);
	size_t two = one == (size_t)-1 ? one : str_find(value, STR("."), one + 1);
	struct value *payload = NULL;
	struct buf text;

	if (two == (size_t)-1 || str_find(value, STR("."), two + 1) != (size_t)-1)
		return NULL;
	buf_init(&text, PHANTOM_MAX);
	if (read_base64url(str_part(value, one + 1, two - one - 1), &text) &&
	    value_parse(buf_str(&text), 0, &payload, NULL) &&
	    value_kind(payload) != VALUE_OBJECT) {
		value_free(payload);
		payload = NULL;
	}
	explicit_bzero(text.data, text.size);
	buf_fini(&text);
	return payload;
}

static void keep_claim(const struct value *payload, const char *name, struct value *kept)
{
	const struct value *claim = value_member(payload, name);

	if (claim != NULL)
		value_set(kept, name, value_copy(claim));
}

static bool make_token(const struct credential *credential, struct str value,
		       struct buf *out, struct err *err)
{
	auto_value struct value *payload = read_payload(value);
	auto_value struct value *kept = value_new_object();
	struct buf id, text;
	bool fine;

	if (payload == NULL)
		return err_set(err, EINVAL,
			       "credentials.%s.shape is \"jwt\", but the value is no such token",
			       credential->name);
	buf_init(&id, PHANTOM_DIGITS);
	buf_init(&text, PHANTOM_MAX);
	fine = add_digits(&id, err);
	keep_claim(payload, "exp", kept);
	for (size_t i = 0; i < credential->claims.count; i++)
		keep_claim(payload, credential->claims.items[i], kept);
	value_set_text(kept, "jti", id.data);
	fine = fine && (value_print(kept, 0, &text) ||
			err_set(err, E2BIG, "the claims of credentials.%s are too large",
				credential->name));
	if (fine) {
		add_base64url(STR("{\"alg\":\"none\",\"typ\":\"JWT\"}"), out);
		(void)buf_addc(out, '.');
		add_base64url(buf_str(&text), out);
		(void)buf_addc(out, '.');
	}
	buf_fini(&text);
	buf_fini(&id);
	return fine;
}

bool phantom_needs_value(const struct credential *credential)
{
	return strcmp(credential->shape, "jwt") == 0;
}

bool phantom_make(const struct credential *credential, struct str value, struct buf *out,
		  struct err *err)
{
	struct str shape = str_of(credential->shape);
	size_t star = str_find(shape, STR("*"), 0);

	if (phantom_needs_value(credential))
		return make_token(credential, value, out, err);
	(void)buf_addstr(out, str_part(shape, 0, star));
	if (!add_digits(out, err))
		return false;
	(void)buf_addstr(out, str_part(shape, star + 1, shape.size));
	return !out->overflowed ||
	       err_set(err, E2BIG, "the phantom of credentials.%s is too long",
		       credential->name);
}
