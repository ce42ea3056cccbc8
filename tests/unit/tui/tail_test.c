/* tail: the last lines of what calls print. */
#include "tui/region/tail.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void take(struct tail *tail, enum event_kind kind, const char *call, struct str text)
{
	const struct event event = {.kind = kind, .call = call, .text = text};

	tail_event(tail, &event);
}

static void shows(const struct tail *tail, size_t rows, const char *wanted)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	tail_print(tail, rows, &text);
	assert_string_equal(text.data, wanted);
	buf_fini(&text);
}

static void the_last_lines_are_shown(void **state)
{
	struct tail tail = {0};

	(void)state;
	shows(&tail, 5, "");
	assert_null(tail_call(&tail));
	take(&tail, EVENT_TOOL_OUTPUT, "c1", STR("one\ntwo\nthr"));
	shows(&tail, 5, "  one\n  two\n  thr\n");
	take(&tail, EVENT_TOOL_OUTPUT, "c1", STR("ee\n"));
	shows(&tail, 2, "  two\n  three\n");
	shows(&tail, 0, "");
	take(&tail, EVENT_TOOL_OUTPUT, "c1", STR("\n\n"));
	shows(&tail, 3, "  three\n  \n  \n");
	tail_fini(&tail);
}

static void the_call_that_has_printed_last_is_shown(void **state)
{
	struct tail tail = {0};

	(void)state;
	take(&tail, EVENT_TOOL_OUTPUT, "c1", STR("one\n"));
	take(&tail, EVENT_TOOL_OUTPUT, "c2", STR("two\n"));
	assert_string_equal(tail_call(&tail), "c2");
	shows(&tail, 5, "  two\n");
	take(&tail, EVENT_TOOL_OUTPUT, "c1", STR("three\n"));
	shows(&tail, 5, "  one\n  three\n");
	take(&tail, EVENT_TOOL_ENDED, "c1", STR(""));
	shows(&tail, 5, "  two\n");
	take(&tail, EVENT_TURN_ENDED, NULL, STR(""));
	shows(&tail, 5, "");
}

static void a_line_is_what_a_terminal_would_show_and_safe(void **state)
{
	struct tail tail = {0};

	(void)state;
	take(&tail, EVENT_TOOL_OUTPUT, "c1",
	     STR("1 %\r50 %\r99 %\r\n\x1b[31mred\x1b[0m\x1b[2J\ta\n"));
	shows(&tail, 5, "  99 %\n  red a\n");
	tail_fini(&tail);
}

static void of_much_output_the_end_is_kept(void **state)
{
	struct tail tail = {0};
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 20);
	for (size_t i = 0; i < 5000; i++) {
		buf_clear(&text);
		(void)buf_addf(&text, "line %zu\n", i);
		take(&tail, EVENT_TOOL_OUTPUT, "c1", buf_str(&text));
		assert_true(tail.calls->text.size <= TAIL_BYTES_MAX);
	}
	shows(&tail, 2, "  line 4998\n  line 4999\n");
	buf_clear(&text);
	for (size_t i = 0; i < 3 * TAIL_BYTES_MAX; i++)
		(void)buf_addc(&text, 'x');
	(void)buf_adds(&text, "\nend\n");
	take(&tail, EVENT_TOOL_OUTPUT, "c1", buf_str(&text));
	shows(&tail, 1, "  end\n");
	buf_fini(&text);
	tail_fini(&tail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_lines_are_shown),
		cmocka_unit_test(the_call_that_has_printed_last_is_shown),
		cmocka_unit_test(a_line_is_what_a_terminal_would_show_and_safe),
		cmocka_unit_test(of_much_output_the_end_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
