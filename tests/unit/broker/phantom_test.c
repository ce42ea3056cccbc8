/* phantom: the form of a key, and nothing of it. */
#include "../base/unit.h"

#include <string.h>

#include "base/value.h"
#include "broker/phantom.h"

enum { TEXT_MAX = 64 << 10 };

/* {"alg":"HS256"} . {"exp":1800000000,"sub":"me","email":"a@b.example"} . a signature */
#define TOKEN                                                                   \
	"eyJhbGciOiJIUzI1NiJ9."                                                 \
	"eyJleHAiOjE4MDAwMDAwMDAsInN1YiI6Im1lIiwiZW1haWwiOiJhQGIuZXhhbXBsZSJ9." \
	"c2lnbmF0dXJl"

static void make(const char *shape, const char *claims, struct str value, struct buf *out,
		 bool fine)
{
	auto_value struct value *entry = NULL;
	struct credential credential;
	struct err err = {0};
	struct buf text;

	buf_init(&text, TEXT_MAX);
	(void)buf_addf(&text,
		       "{\"from\": [\"env:A\"], \"hosts\": [\"a.example\"], \"place\": "
		       "\"bearer\", \"shape\": \"%s\", \"claims\": [%s]}",
		       shape, claims);
	assert_true(value_parse(buf_str(&text), 0, &entry, &err));
	if (!credential_read("a", entry, &credential, &err))
		fail_msg("%s", err.text);
	assert_int_equal(phantom_needs_value(&credential), strcmp(shape, "jwt") == 0);
	assert_int_equal(phantom_make(&credential, value, out, &err), fine);
	if (!fine)
		assert_null(strstr(err.text, value.data));
	credential_fini(&credential);
	buf_fini(&text);
}

static void a_shape_gets_random_digits(void **state)
{
	struct buf one, two;

	(void)state;
	buf_init(&one, TEXT_MAX);
	buf_init(&two, TEXT_MAX);
	make("sk-ant-api03-*-AA", "", (struct str){0}, &one, true);
	make("sk-ant-api03-*-AA", "", (struct str){0}, &two, true);
	assert_true(str_starts(buf_str(&one), STR("sk-ant-api03-")));
	assert_true(str_ends(buf_str(&one), STR("-AA")));
	assert_int_equal(one.size, strlen("sk-ant-api03--AA") + PHANTOM_DIGITS);
	assert_int_equal(strspn(one.data + strlen("sk-ant-api03-"), "0123456789abcdef"),
			 PHANTOM_DIGITS);
	assert_string_not_equal(one.data, two.data);
	buf_fini(&two);
	buf_fini(&one);
}

static void a_token_keeps_what_a_client_reads(void **state)
{
	auto_value struct value *payload = NULL;
	struct buf out, text;
	struct err err = {0};

	(void)state;
	buf_init(&out, TEXT_MAX);
	buf_init(&text, TEXT_MAX);
	make("jwt", "\"sub\"", STR(TOKEN), &out, true);
	struct str rest = buf_str(&out);
	size_t dot = str_find(rest, STR("."), 0);
	assert_true(str_ends(rest, STR(".")));
	rest = str_part(rest, dot + 1, rest.size - dot - 2);
	(void)buf_addstr(&text, rest);
	while (text.size % 4 != 0)
		(void)buf_addc(&text, '=');
	buf_clear(&out);
	assert_true(buf_base64_read(buf_str(&text), &out));
	assert_true(value_parse(buf_str(&out), 0, &payload, &err));
	assert_int_equal(value_integer(value_member(payload, "exp")), 1800000000);
	assert_string_equal(value_text(value_member(payload, "sub")), "me");
	assert_int_equal(value_str(value_member(payload, "jti")).size, PHANTOM_DIGITS);
	assert_int_equal(value_count(payload), 3);
	buf_fini(&text);
	buf_fini(&out);
}

static void no_token_is_an_error_that_does_not_quote_it(void **state)
{
	static const char *const wrong[] = {"no-token-at-all", "a.b", "a.b.c.d",
					    "eyJh.WyJsaXN0Il0.c2ln", "x.!!!!.y"};
	struct buf out;

	(void)state;
	buf_init(&out, TEXT_MAX);
	for (size_t i = 0; i < UNIT_COUNT(wrong); i++) {
		make("jwt", "", str_of(wrong[i]), &out, false);
		assert_int_equal(out.size, 0);
	}
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shape_gets_random_digits),
		cmocka_unit_test(a_token_keeps_what_a_client_reads),
		cmocka_unit_test(no_token_is_an_error_that_does_not_quote_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
