/* choice: what a question shows, and which keys answer it. */
#include "tui/region/choice.h"

#include "base/text/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct choice_option options[] = {
	{"once", "this call", CHOICE_AT_ONCE},
	{"always", "a rule: git push", CHOICE_TWICE},
	{"no", NULL, CHOICE_AT_ONCE},
	{"tell", "no, with a sentence", CHOICE_WITH_WORDS},
};
enum { ONCE, ALWAYS, NO, TELL, NONE };

static const char text[] = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";
static const struct choice question = {
	.head = "coder wants to run a command:",
	.text = {text, sizeof(text) - 1},
	.tail = "in /work",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
	.safe = NO,
};

/* The answer to KEY; NONE: the question goes on. */
static size_t take(struct choice_state *state, enum typing_key key, const char *typed)
{
	size_t chosen = NONE;

	return choice_take(&question, state, key, str_of(typed), &chosen) ? chosen : NONE;
}

static void compose(struct choice_state *state, size_t columns, size_t rows,
		    struct line_frame *frame)
{
	const struct line_look look = {.columns = columns, .rows = rows};

	choice_compose(&question, state, &look, frame);
	assert_true(text_count_lines(buf_str(&frame->rows)) <= rows);
}

static void a_letter_answers_and_the_rest_is_a_no(void **context)
{
	static const enum typing_key no[] = {TYPING_ENTER, TYPING_ESCAPE,
					     TYPING_INTERRUPT, TYPING_CANCEL, TYPING_EOF};
	struct choice_state state;

	(void)context;
	choice_begin(&state);
	assert_int_equal(take(&state, TYPING_TEXT, "x"), NONE);
	assert_int_equal(take(&state, TYPING_PASTE, "o"), NONE);
	assert_int_equal(take(&state, TYPING_TEXT, "O"), ONCE);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		assert_int_equal(take(&state, no[i], ""), NO);
	choice_end(&state);
}

static void the_viewer_is_asked_for_only_where_it_may_be(void **context)
{
	struct choice views = question;
	struct choice_state state;
	size_t chosen = NONE;

	(void)context;
	choice_begin(&state);
	assert_int_equal(take(&state, TYPING_TEXT, "v"), NONE);
	views.views = true;
	assert_true(choice_take(&views, &state, TYPING_TEXT, STR("v"), &chosen));
	assert_int_equal(chosen, CHOICE_VIEW);
	/* It is a letter of words. */
	assert_int_equal(take(&state, TYPING_TEXT, "t"), NONE);
	assert_false(choice_take(&views, &state, TYPING_TEXT, STR("v"), &chosen));
	choice_end(&state);
}

static void what_is_kept_is_shown_before(void **context)
{
	struct choice_state state;
	struct line_frame frame;

	(void)context;
	choice_begin(&state);
	line_frame_init(&frame);
	state.listens = true;
	assert_int_equal(take(&state, TYPING_TEXT, "a"), NONE);
	compose(&state, 80, 20, &frame);
	assert_non_null(strstr(frame.rows.data, "always, for good: a rule: git push"));
	assert_int_equal(take(&state, TYPING_ENTER, ""), NONE);
	assert_int_equal(take(&state, TYPING_TEXT, "a"), NONE);
	assert_int_equal(take(&state, TYPING_TEXT, "a"), ALWAYS);
	assert_int_equal(take(&state, TYPING_INTERRUPT, ""), NO);
	line_frame_fini(&frame);
	choice_end(&state);
}

static void words_go_with_an_answer(void **context)
{
	struct choice_state state;

	(void)context;
	choice_begin(&state);
	assert_int_equal(take(&state, TYPING_TEXT, "t"), NONE);
	assert_int_equal(take(&state, TYPING_TEXT, "once"), NONE);
	assert_int_equal(take(&state, TYPING_ESCAPE, ""), NONE);
	assert_int_equal(take(&state, TYPING_TEXT, "t"), NONE);
	assert_int_equal(take(&state, TYPING_TEXT, "not so"), NONE);
	assert_int_equal(take(&state, TYPING_ENTER, ""), TELL);
	assert_string_equal(state.words.text.data, "not so");
	choice_end(&state);
	choice_begin(&state);
	assert_int_equal(take(&state, TYPING_TEXT, "t"), NONE);
	assert_int_equal(take(&state, TYPING_ENTER, ""), NO);
	choice_end(&state);
}

static void all_of_the_text_can_be_seen_in_any_window(void **context)
{
	static const size_t sizes[][2] = {{80, 24}, {40, 9}, {20, 5}, {9, 3}, {1, 2}};

	(void)context;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct choice_state state;
		struct line_frame frame;
		bool seen = false;

		choice_begin(&state);
		line_frame_init(&frame);
		state.listens = true;
		compose(&state, sizes[i][0], sizes[i][1], &frame);
		assert_non_null(strstr(frame.rows.data, "one"));
		assert_non_null(strstr(frame.rows.data, "[o]nce"));
		for (size_t step = 0; step < 20 && !seen; step++) {
			assert_int_equal(take(&state, TYPING_DOWN, ""), NONE);
			compose(&state, sizes[i][0], sizes[i][1], &frame);
			seen = strstr(frame.rows.data, "eight") != NULL;
		}
		assert_true(seen);
		line_frame_fini(&frame);
		choice_end(&state);
	}
}

static void nothing_of_the_text_reaches_the_terminal_as_it_is(void **context)
{
	static const char strange[] = "rm\x1b[2J \xe2\x80\xae x\a\n";
	const struct choice strange_question = {
		.head = strange,
		.text = {strange, sizeof(strange) - 1},
		.options = options,
		.count = 1,
	};
	const struct line_look look = {.columns = 80, .rows = 10};
	struct choice_state state;
	struct line_frame frame;

	(void)context;
	choice_begin(&state);
	line_frame_init(&frame);
	choice_compose(&strange_question, &state, &look, &frame);
	assert_null(strchr(frame.rows.data, '\x1b'));
	assert_null(strchr(frame.rows.data, '\a'));
	assert_null(strstr(frame.rows.data, "\xe2\x80\xae"));
	line_frame_fini(&frame);
	choice_end(&state);
}

static void a_diff_is_indented_as_its_code(void **context)
{
	static const char diff[] = "-\treturn\tx;\n+\x1b\treturn y;\n";
	struct choice changes = question;
	const struct line_look look = {.columns = 80, .rows = 12};
	struct choice_state state;
	struct line_frame frame;

	(void)context;
	changes.text = (struct str){diff, sizeof(diff) - 1};
	choice_begin(&state);
	line_frame_init(&frame);
	choice_compose(&changes, &state, &look, &frame);
	/* Of a command a tab is told: it may separate words. */
	assert_non_null(strstr(frame.rows.data, "-\\x09return\\x09x;\n"));
	changes.is_diff = true;
	choice_compose(&changes, &state, &look, &frame);
	assert_non_null(strstr(frame.rows.data, "-       return  x;\n+\\x1B   return y;\n"));
	line_frame_fini(&frame);
	choice_end(&state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_letter_answers_and_the_rest_is_a_no),
		cmocka_unit_test(the_viewer_is_asked_for_only_where_it_may_be),
		cmocka_unit_test(what_is_kept_is_shown_before),
		cmocka_unit_test(words_go_with_an_answer),
		cmocka_unit_test(all_of_the_text_can_be_seen_in_any_window),
		cmocka_unit_test(nothing_of_the_text_reaches_the_terminal_as_it_is),
		cmocka_unit_test(a_diff_is_indented_as_its_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
