/* term: what a terminal is, from the environment and from its answers; and that these are not typed. */
#include "tui/term.h"

#include "base/buf.h"
#include "tui/typing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The answers of some terminals to all questions. */
static const char kitty[] =
	"\x1b[?0u\x1bP>|kitty(0.36.4)\x1b\\\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\"
	"\x1b[?2026;2$y\x1b[?2027;0$y\x1b[?62;c";
static const char xterm[] = "\x1bP>|XTerm(390)\x1b\\\x1b]11;rgb:ffff/ffff/ffff\x07"
			    "\x1b[?2026;0$y\x1b[?2027;0$y\x1b[?64;1;2;6;9;15;18;21;22c";
static const char ghostty[] = "\x1b[?0u\x1bP>|ghostty 1.1.0\x1b\\\x1b]11;rgba:f/f/d/f\x1b\\"
			      "\x1b[?2026;2$y\x1b[?2027;1$y\x1b[?62;22c";

/* What one sees of what is typed: texts, and "<3>" for a key. */
static void read_keys(struct typing *typing, struct term *term, struct buf *seen)
{
	enum typing_key key;
	struct buf text;

	buf_init(&text, 3 * TYPING_MAX);
	while (typing_next(typing, &key, &text)) {
		if (key == TYPING_ANSWER)
			term_take(term, buf_str(&text));
		else if (key == TYPING_TEXT)
			(void)buf_addstr(seen, buf_str(&text));
		else
			(void)buf_addf(seen, "<%d>", (int)key);
		buf_clear(&text);
	}
	buf_fini(&text);
}

/* Give BYTES in pieces of SIZE, with a pause behind each when SETTLED. */
static void answer(const char *bytes, size_t size, bool settled, struct term *term,
		   struct buf *seen)
{
	struct str rest = str_of(bytes);
	struct typing typing;

	typing_init(&typing);
	while (rest.size > 0) {
		assert_true(typing_add(&typing, str_part(rest, 0, size)));
		read_keys(&typing, term, seen);
		if (settled && typing_waits(&typing)) {
			typing_settle(&typing);
			read_keys(&typing, term, seen);
		}
		rest = str_part(rest, size, rest.size);
	}
	typing_fini(&typing);
}

static void forget_environment(void)
{
	static const char *const names[] = {"STY",
					    "TMUX",
					    "TERM",
					    "TERM_PROGRAM",
					    "ZELLIJ",
					    "VTE_VERSION",
					    "KONSOLE_VERSION",
					    "WT_SESSION",
					    "COLORFGBG",
					    "ALACRITTY_WINDOW_ID"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unsetenv(names[i]);
}

static void each_answer_is_learnt(void **state)
{
	struct term term;
	struct buf seen;

	(void)state;
	forget_environment();
	buf_init(&seen, 1000);
	term_init(&term);
	answer(kitty, SIZE_MAX, false, &term, &seen);
	assert_true(term.answered && term.has_frames && term.has_keyboard);
	assert_false(term.joins);
	assert_int_equal(term.reflow, TERM_REFLOWS_OTHERS);
	assert_int_equal(term.ground, TERM_GROUND_DARK);
	assert_int_equal(term.notice, TERM_NOTICE_99);
	assert_string_equal(term.name, "kitty(0.36.4)");
	term_init(&term);
	answer(xterm, SIZE_MAX, false, &term, &seen);
	assert_true(term.answered);
	assert_false(term.has_frames || term.has_keyboard || term.joins);
	assert_int_equal(term.reflow, TERM_CUTS);
	assert_int_equal(term.ground, TERM_GROUND_LIGHT);
	term_init(&term);
	answer(ghostty, SIZE_MAX, false, &term, &seen);
	assert_true(term.answered && term.joins);
	assert_int_equal(term.ground, TERM_GROUND_LIGHT);
	assert_string_equal(seen.data, "");
	buf_fini(&seen);
}

static void torn_answers_are_not_typed(void **state)
{
	static const char *const all[] = {kitty, xterm, ghostty};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (size_t size = 1; size < strlen(all[i]); size++) {
			struct term term = {0};
			struct buf seen;

			buf_init(&seen, 1000);
			answer(all[i], size, false, &term, &seen);
			assert_string_equal(seen.data, "");
			assert_true(term.answered);
			buf_fini(&seen);
		}
	}
}

/* A long pause in the middle: an Escape may be taken for the key, but no text is typed. */
static void an_answer_that_stops_in_the_middle_is_not_typed(void **state)
{
	(void)state;
	for (size_t cut = 1; cut < strlen(kitty); cut++) {
		struct term term = {0};
		struct typing typing;
		struct buf seen;

		buf_init(&seen, 1000);
		typing_init(&typing);
		(void)typing_add(&typing, (struct str){kitty, cut});
		read_keys(&typing, &term, &seen);
		typing_settle(&typing);
		read_keys(&typing, &term, &seen);
		(void)typing_add(&typing, str_of(kitty + cut));
		read_keys(&typing, &term, &seen);
		assert_true(term.answered);
		struct buf escape;

		buf_init(&escape, 100);
		(void)buf_addf(&escape, "<%d>", (int)TYPING_ESCAPE);
		if (strcmp(seen.data, escape.data) != 0 && strcmp(seen.data, "<0>") != 0)
			assert_string_equal(seen.data, "");
		buf_fini(&escape);
		typing_fini(&typing);
		buf_fini(&seen);
	}
}

/* A torn answer waits for its end, and nobody wakes up for it. */
static void a_torn_answer_asks_for_no_pause(void **state)
{
	struct typing typing;

	(void)state;
	typing_init(&typing);
	(void)typing_add(&typing, STR("\x1b[?62;"));
	assert_false(typing_waits(&typing));
	typing_clear(&typing);
	(void)typing_add(&typing, STR("4cy"));
	struct buf seen;
	struct term term = {0};

	buf_init(&seen, 100);
	read_keys(&typing, &term, &seen);
	assert_string_equal(seen.data, "y");
	assert_true(term.answered);
	buf_fini(&seen);
	typing_fini(&typing);
}

static void keys_beside_answers_are_typed(void **state)
{
	struct term term = {0};
	struct buf seen;

	(void)state;
	buf_init(&seen, 1000);
	answer("a\x1b[?62;cb\x1b[I\x1b[O\x1bOPc\x1b]11;rgb:0/0/0\rd", SIZE_MAX, true,
	       &term, &seen);
	/* F1 is a key without a meaning; an answer without its end stops at a key. */
	assert_string_equal(seen.data, "ab<0>c<3>d");
	assert_int_equal(term.focus, TERM_UNFOCUSED);
	buf_fini(&seen);
}

static void the_environment_is_believed_until_the_terminal_speaks(void **state)
{
	static const struct {
		const char *name, *value;
		enum term_reflow reflow;
	} rows[] = {
		{"TERM", "xterm-256color", TERM_CUTS},
		{"TERM", "xterm-kitty", TERM_REFLOWS_OTHERS},
		{"TERM", "tmux-256color", TERM_REFLOWS_BUT_BLANK},
		{"TERM", "screen-256color", TERM_CUTS},
		{"TERM", "linux", TERM_CUTS},
		{"TERM", "rxvt-unicode", TERM_CUTS},
		{"TMUX", "/tmp/tmux-0/default,1,0", TERM_REFLOWS_BUT_BLANK},
		{"VTE_VERSION", "7000", TERM_REFLOWS},
		{"TERM_PROGRAM", "iTerm.app", TERM_REFLOWS_OTHERS},
		{"TERM_PROGRAM", "strange", TERM_CUTS},
	};
	struct term term;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		forget_environment();
		(void)setenv(rows[i].name, rows[i].value, 1);
		term_init(&term);
		assert_int_equal(term.reflow, rows[i].reflow);
	}
	(void)setenv("VTE_VERSION", "7000", 1);
	(void)setenv("STY", "1.pts-0", 1);
	term_init(&term);
	assert_int_equal(term.reflow, TERM_CUTS);
	(void)unsetenv("STY");
	term_init(&term);
	assert_int_equal(term.reflow, TERM_REFLOWS);
	term_take(&term, STR("\x1bP>|XTerm(390)\x1b\\"));
	assert_int_equal(term.reflow, TERM_CUTS);
	forget_environment();
}

static void the_ground_may_stand_in_a_variable(void **state)
{
	static const struct {
		const char *value;
		enum term_ground ground;
	} rows[] = {{"15;0", TERM_GROUND_DARK},          {"0;15", TERM_GROUND_LIGHT},
		    {"0;default;15", TERM_GROUND_LIGHT}, {"7;8", TERM_GROUND_DARK},
		    {"15;default", TERM_GROUND_UNKNOWN}, {"", TERM_GROUND_UNKNOWN}};
	struct term term;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)setenv("COLORFGBG", rows[i].value, 1);
		term_init(&term);
		assert_int_equal(term.ground, rows[i].ground);
	}
	forget_environment();
}

static void the_last_question_is_the_one_that_all_answer(void **state)
{
	(void)state;
	assert_true(str_ends(str_of(term_questions), STR("\x1b[c")));
	assert_true(strlen(term_questions) < 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_answer_is_learnt),
		cmocka_unit_test(torn_answers_are_not_typed),
		cmocka_unit_test(an_answer_that_stops_in_the_middle_is_not_typed),
		cmocka_unit_test(a_torn_answer_asks_for_no_pause),
		cmocka_unit_test(keys_beside_answers_are_typed),
		cmocka_unit_test(the_environment_is_believed_until_the_terminal_speaks),
		cmocka_unit_test(the_ground_may_stand_in_a_variable),
		cmocka_unit_test(the_last_question_is_the_one_that_all_answer),
	};

	return cmocka_run_group_tests_name("term", tests, NULL, NULL);
}
