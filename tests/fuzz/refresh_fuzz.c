/*
 * refresh_fuzz: any bytes as the body of a renewal, as its answer and as the file of a
 * login. No token comes to the cell, none that was not given goes to the service, and a
 * renewed file is read back with the new tokens. The first byte says which of them it is.
 */
#include "base/value.h"
#include "broker/login.h"
#include "broker/refresh.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TOKEN   "real-token-0123456789"
#define PHANTOM "phantom-0123456789"

enum { OUT_MAX = 8 << 20 };

static const char entry_text[] =
	"{\"from\":[\"file:~/f#/o/a\"],\"hosts\":[\"a.example\"],\"place\":\"bearer\","
	"\"refresh\":{\"url\":\"https://a.example/t\",\"send\":[\"refresh_token\"],"
	"\"store\":{\"access_token\":\"/o/a\",\"refresh_token\":\"/o/r\"},"
	"\"expires\":\"/o/e\",\"scope\":\"/o/s\",\"keep\":[\"/o/e\",\"/o/s\"]}}";

static const char *const phantoms[] = {"other-" PHANTOM, PHANTOM};

static bool has(const struct buf *text, const char *what)
{
	return str_find(buf_str(text), str_of(what), 0) != (size_t)-1;
}

/* The service gets the token where the phantom was, and only there. */
static void ask(const struct refresh *refresh, const char *type, struct str body,
		const struct refresh_tokens *tokens, struct buf *out)
{
	struct buf again;
	struct err err;

	buf_clear(out);
	const bool judged = refresh_request(refresh, str_of(type), body, NULL, out, &err);
	assert(out->size == 0);
	const bool sent = refresh_request(refresh, str_of(type), body, tokens, out, &err);
	assert(sent == judged);
	assert(!sent || has(out, TOKEN));
	/* What the service gets holds no phantom that a second reading would replace. */
	buf_init(&again, OUT_MAX);
	assert(!sent || !refresh_request(refresh, str_of(type), buf_str(out), tokens,
					 &again, &err));
	buf_fini(&again);
}

static void answer(const struct refresh *refresh, struct str body, struct buf *out)
{
	struct refresh_tokens fresh = {0};
	struct err err;

	buf_clear(out);
	if (refresh_answer(refresh, 200, body, &fresh, out, &err) != REFRESH_BAD) {
		assert(refresh_check(refresh, buf_str(out), NULL));
		for (size_t i = 0; i < CREDENTIAL_TOKENS_MAX; i++)
			assert(fresh.items[i] == NULL ||
			       strlen(fresh.items[i]) <= REFRESH_TOKEN_MAX);
	}
	buf_clear(out);
	assert(refresh_tokens_print(refresh->credential, &fresh, out));
	refresh_tokens_fini(&fresh);
	assert(refresh_tokens_parse(refresh->credential, buf_str(out), &fresh, &err));
	refresh_tokens_fini(&fresh);
}

static void file(const struct refresh *refresh, struct str text,
		 const struct refresh_tokens *tokens, struct buf *out)
{
	auto_value struct value *root = NULL;
	struct err err;

	buf_clear(out);
	if (login_print_copy(refresh, text, out, &err))
		assert(refresh_check(refresh, buf_str(out), NULL));
	buf_clear(out);
	if (login_print_answer(refresh, text, 0, out, &err))
		assert(refresh_check(refresh, buf_str(out), NULL));
	buf_clear(out);
	if (!login_print_renewed(refresh->credential, text, tokens, 0, out, &err))
		return;
	assert(value_parse(buf_str(out), 0, &root, NULL));
	assert(str_is(value_str(value_at_pointer(root, "/o/r")), TOKEN));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_value struct value *entry = NULL;
	struct credential credential;
	struct refresh_tokens tokens = {0};
	struct buf out;
	struct err err;

	if (size == 0)
		return 0;
	assert(value_parse(str_of(entry_text), 0, &entry, NULL));
	assert(credential_read("test", entry, &credential, &err));
	const struct refresh refresh = {&credential, phantoms};
	const struct str bytes = {(const char *)data + 1, size - 1};
	assert(refresh_tokens_parse(
		&credential,
		STR("{\"access_token\":\"access-token-0123\",\"refresh_token\":\"" TOKEN
		    "\"}"),
		&tokens, &err));
	buf_init(&out, OUT_MAX);
	switch (data[0] % 4) {
	case 0:
		ask(&refresh, "application/json", bytes, &tokens, &out);
		break;
	case 1:
		ask(&refresh, "application/x-www-form-urlencoded", bytes, &tokens, &out);
		break;
	case 2:
		answer(&refresh, bytes, &out);
		break;
	default:
		file(&refresh, bytes, &tokens, &out);
		break;
	}
	buf_fini(&out);
	refresh_tokens_fini(&tokens);
	credential_fini(&credential);
	return 0;
}
