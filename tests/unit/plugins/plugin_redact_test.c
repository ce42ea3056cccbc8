/* Tests of plugins/run: values that a script was given do not come out again. */
#include "../base/unit.h"

#include <string.h>

#include "plugins/run.h"

static struct value *secrets_of(const char *const *texts)
{
	struct value *list = value_new_array();

	for (; *texts; texts++)
		run_redact_add(list, str_of(*texts));
	return list;
}

static void each_value_is_taken_out_the_longest_first(void **state)
{
	static const char *const texts[] = {"abcd", "abcdef", "a\"b\nc", "abc", NULL};
	auto_value struct value *secrets = secrets_of(texts);
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 16);
	(void)buf_adds(&text, "abcdefg abcd abc {\"x\":\"a\\\"b\\nc\"} a\"b\nc");
	run_redact(secrets, &text);
	assert_string_equal(text.data,
			    "[redacted]g [redacted] abc {\"x\":\"[redacted]\"} [redacted]");
	buf_fini(&text);
}

/* At every place a text can be cut in two or three. */
static void a_value_that_comes_in_pieces_is_taken_out(void **state)
{
	/* One is the beginning of another, and one ends as another begins. */
	static const char *const texts[] = {"hunter2", "swordfish", "hunter", "fishhunt",
					    NULL};
	static const char whole[] = "a hunter2 b swordfishhunter c hunte";
	auto_value struct value *secrets = secrets_of(texts);
	size_t size = strlen(whole);

	(void)state;
	for (size_t i = 0; i <= size; i++) {
		for (size_t j = i; j <= size; j++) {
			struct plugin_redact_stream stream;
			struct buf piece, shown;
			const struct str parts[] = {{whole, i},
						    {whole + i, j - i},
						    {whole + j, size - j},
						    {NULL, 0}};

			buf_init(&piece, 1 << 16);
			buf_init(&shown, 1 << 16);
			run_redact_begin(&stream, secrets);
			for (size_t k = 0; k < UNIT_COUNT(parts); k++) {
				run_redact_piece(&stream, parts[k], &piece);
				(void)buf_addstr(&shown, buf_str(&piece));
			}
			assert_string_equal(shown.data,
					    "a [redacted] b [redacted][redacted] c hunte");
			run_redact_end(&stream);
			buf_fini(&piece);
			buf_fini(&shown);
		}
	}
}

static void without_secrets_all_comes_at_once(void **state)
{
	struct plugin_redact_stream stream;
	struct buf piece;

	(void)state;
	buf_init(&piece, 1 << 16);
	run_redact_begin(&stream, NULL);
	run_redact_piece(&stream, STR("now"), &piece);
	assert_string_equal(piece.data, "now");
	run_redact_end(&stream);
	buf_fini(&piece);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(each_value_is_taken_out_the_longest_first),
		cmocka_unit_test(a_value_that_comes_in_pieces_is_taken_out),
		cmocka_unit_test(without_secrets_all_comes_at_once),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
