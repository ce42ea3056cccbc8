/* Tests of model/failure. */
#include "../base/unit.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "model/failure.h"

static void statuses_have_their_kind(void **state)
{
	static const struct {
		int status, code;
		bool may_pass;
	} cases[] = {
		{400, EINVAL, false}, {401, EACCES, false}, {402, EINVAL, false},
		{403, EACCES, false}, {404, EINVAL, false}, {408, EAGAIN, true},
		{409, EAGAIN, true},  {413, E2BIG, false},  {422, EINVAL, false},
		{429, EBUSY, true},   {500, EAGAIN, true},  {502, EAGAIN, true},
		{503, EAGAIN, true},  {529, EAGAIN, true},  {307, EINVAL, false},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		int code = failure_code(cases[i].status, STR("whatever"));

		assert_int_equal(code, cases[i].code);
		assert_int_equal(failure_may_pass(code), cases[i].may_pass);
	}
}

static void a_full_context_is_known_by_its_words(void **state)
{
	static const char *const words[] = {
		"the request exceeds the available context size. try increasing the context size",
		"This model's maximum context length is 8192 tokens. However, you requested 9000",
		"This endpoint's maximum context length is 131072 tokens.",
		"prompt is too long: 213462 tokens > 200000 maximum",
		"Your input exceeds the context window of this model",
		"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
		"This model's maximum prompt length is 131072 but the request contains 537812 tokens",
		"Please reduce the length of the messages or completion",
		"The number of tokens to keep from the initial prompt is greater than the context length",
		"Invalid request: Your request exceeded model token limit: 262144",
		"Input is too long for requested model.",
		"prompt too long; exceeded max context length by 4 tokens",
		"too much (context_length_exceeded)",
		"invalid params, context window exceeds limit (2013)",
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(words); i++) {
		assert_int_equal(failure_code(400, str_of(words[i])), E2BIG);
		assert_int_equal(failure_code(500, str_of(words[i])), E2BIG);
		assert_int_equal(failure_code(0, str_of(words[i])), E2BIG);
	}
	assert_int_equal(failure_code(429, str_of(words[1])), EBUSY);
	assert_false(failure_is_overflow(STR("the name is too long")));
	assert_false(failure_is_overflow(STR("")));
}

static void only_promised_codes_leave(void **state)
{
	(void)state;
	assert_int_equal(failure_public_code(EBADMSG), EPROTO);
	assert_int_equal(failure_public_code(EPROTO), EPROTO);
	assert_int_equal(failure_public_code(ENODATA), ENODATA);
	assert_int_equal(failure_public_code(EAGAIN), EAGAIN);
	assert_int_equal(failure_public_code(EINVAL), EIO);
	assert_int_equal(failure_public_code(ECONNREFUSED), EAGAIN);
	assert_int_equal(failure_public_code(ECANCELED), ECANCELED);
	assert_int_equal(failure_public_code(0), EIO);
}

static void quotes_are_one_short_clean_line(void **state)
{
	struct buf out;
	char text[4000];

	(void)state;
	buf_init(&out, sizeof(text));
	failure_quote(STR("  one\n\ttwo\x1b[1m\x01  "), &out);
	assert_string_equal(out.data, "one  two\\x01");
	buf_clear(&out);
	memset(text, '\x02', sizeof(text));
	failure_quote((struct str){text, sizeof(text)}, &out);
	assert_true(out.size <= FAILURE_QUOTE_MAX && out.size > FAILURE_QUOTE_MAX - 8);
	buf_clear(&out);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 2 ? '\xa4' : '\xc3';
	failure_quote((struct str){text, sizeof(text)}, &out);
	assert_int_equal(out.size, FAILURE_QUOTE_MAX);
	buf_fini(&out);
}

static long milliseconds(double seconds)
{
	return (long)(seconds * 1000 + 0.5);
}

static void waits_double_up_to_eight_seconds(void **state)
{
	static const long waits[] = {500, 1000, 2000, 4000, 8000, 8000, 8000};

	(void)state;
	for (int i = 0; i < (int)UNIT_COUNT(waits); i++) {
		assert_int_equal(milliseconds(failure_wait_s(i, 0)), waits[i]);
		assert_int_equal(milliseconds(failure_wait_s(i, 1)), waits[i] * 3 / 4);
	}
	assert_int_equal(milliseconds(failure_wait_s(1000000, 0)), 8000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_double_up_to_eight_seconds),
		cmocka_unit_test(statuses_have_their_kind),
		cmocka_unit_test(a_full_context_is_known_by_its_words),
		cmocka_unit_test(only_promised_codes_leave),
		cmocka_unit_test(quotes_are_one_short_clean_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
