/*
 * Tests of tui/terminal_filter: each sequence that a terminal may not get, in all
 * its forms and split everywhere, and everything else, which stays as it is.
 */
#include "../base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/terminal_filter.h"

enum { OUT_MAX = 4 << 20 };

/* What passes of TEXT, given in two pieces, of which the first has SPLIT bytes. */
static void filtered(struct str text, size_t split, bool clipboard, bool ends,
		     struct buf *out)
{
	struct terminal_filter *filter = terminal_filter_new(clipboard);

	buf_clear(out);
	terminal_filter_pass(filter, str_part(text, 0, split), out);
	terminal_filter_pass(filter, str_part(text, split, text.size), out);
	if (ends)
		terminal_filter_end(filter, out);
	terminal_filter_free(filter);
}

static void check(struct str text, struct str wanted, bool clipboard)
{
	struct buf out;

	buf_init(&out, OUT_MAX);
	for (size_t split = 0; split <= text.size; split++) {
		filtered(text, split, clipboard, false, &out);
		if (!str_equal(buf_str(&out), wanted)) {
			for (size_t i = 0; i < text.size; i++)
				print_error("%02x ", (unsigned char)text.data[i]);
			fail_msg("split at %zu: %zu bytes pass, not %zu", split, out.size,
				 wanted.size);
		}
	}
	buf_fini(&out);
}

enum form { SEVEN_BITS, ONE_BYTE, UTF8, FORMS };

/* Append the C1 control of LETTER ("ESC LETTER") in FORM. */
static void add_control(struct buf *text, char letter, enum form form)
{
	const unsigned char c1 = (unsigned char)(letter + 0x40);

	if (form == SEVEN_BITS)
		(void)buf_addf(text, "\033%c", letter);
	else
		(void)buf_addf(text, "%s%c", form == UTF8 ? "\xc2" : "", c1);
}

/* WORDS with an introducer LETTER, and ended by ENDING: '\\', '\a' or 0 for no end. */
static void sequence(struct buf *text, char letter, const char *words, enum form form,
		     char ending, enum form ending_form)
{
	buf_clear(text);
	(void)buf_adds(text, "a");
	add_control(text, letter, form);
	(void)buf_adds(text, words);
	if (ending == '\\')
		add_control(text, ending, ending_form);
	else if (ending != '\0')
		(void)buf_addc(text, ending);
	(void)buf_adds(text, "b");
}

static const struct {
	char letter;
	const char *words;
} forbidden[] = {
	{']', "52;c;aGVsbG8="},
	{']', "52;;?"},
	{']', "052;c;aGVsbG8="},
	{']', "0000000000000052;c;aGVsbG8="},
	{']', "5\0022;c;aGVsbG8="},
	{']', "\0015\177\n2\001;c;aGVsbG8="},
	{']', "5 2;c;aGVsbG8="},
	{']', "+52;c;aGVsbG8="},
	{']', "52:c;aGVsbG8="},
	{']', "4294967348;c;aGVsbG8="}, /* 2^32 + 52 */
	{']', "52"},
	{']', "5113;ac=send;id=1"},
	{']', "5522;type=read"},
	{']', "1337;File=name=YQ==;size=3:YWJj"},
	{']', "1337;File=inline=0:YWJj"},
	{']', "1337;File=inline=1;inline=0:YWJj"},
	{']', "1337;File=xinline=1:YWJj"},
	{']', "1337;File=inline=10:YWJj"},
	{']', "1337;MultipartFile=name=YQ=="},
	{']', "1337;Copy=:YWJj"},
	{']', "1337;CopyToClipboard="},
	{']', "1337;RequestUpload=format=tgz"},
	{']', "1337;ReportCellSize"},
	{']', "1337;SetUserVar=a=b"},
	{']', "1337"},
	{']', "21;foreground=#000"},
	{']', "30001"},
	{']', "30101"},
	{'[', "?1049s"},
	{'[', "?1049r"},
	{'[', "?1000;1006r"},
	{'[', "?\0011r"},
	{'[', "?2l"},
	{'[', "?25;2l"},
	{'[', "?65538l"},
	{'[', "1$}"},
	{'[', "1$\001}"},
	{'[', "2$~"},
	{'P', "@kitty-cmd{\"cmd\":\"launch\"}"},
	{'[', "20t"},
	{'[', "21t"},
	{'[', "021t"},
	{'[', "65557t"}, /* 21 in 16 bits */
	{'[', "8;8;40t"},
	{'[', "4;1;1t"},
	{'[', "2\n1t"},
	{'[', "2\1771\002t"},
	{'[', "21;3t"},
	{'[', "21:3t"},
	{'[', "4294967317t"},
	{'P', "$qm"},
	{'P', "$q\"p"},
	{'P', "1$q q"},
	{'P', "\n$\001qm"},
	{'P', "tmux;x"},
	{'P', "tmux;\033\033]52;c;aGVsbG8=\007"},
	{'P', "tmux;\033\033[31m\033\033]0;x\007"},
	{'P', "1;2tmux;x"},
	{'P', "$tmux;x"},
};

static void what_a_terminal_may_not_get_is_taken_out_in_all_forms(void **state)
{
	static const char endings[] = {'\\', '\a'};
	struct buf text;

	(void)state;
	buf_init(&text, OUT_MAX);
	for (size_t i = 0; i < UNIT_COUNT(forbidden); i++) {
		for (enum form form = 0; form < FORMS; form++) {
			if (forbidden[i].letter == '[') {
				sequence(&text, '[', forbidden[i].words, form, '\0', form);
				check(buf_str(&text), STR("ab"), false);
				check(buf_str(&text), STR("ab"), true);
				continue;
			}
			for (int e = 0; e < (forbidden[i].letter == ']' ? 2 : 1); e++) {
				for (enum form end = 0; end < FORMS; end++) {
					sequence(&text, forbidden[i].letter,
						 forbidden[i].words, form, endings[e], end);
					check(buf_str(&text), STR("ab"), false);
				}
			}
		}
	}
	buf_fini(&text);
}

static void everything_else_passes_unchanged(void **state)
{
	static const char *const rows[] = {
		"plain text\r\n\tand tabs\b\a",
		"\xc3\xa9 \xe2\x82\xac \xe2\x9d\x9d \xf0\x9f\x98\x80 \xdb\x9b",
		"Latin 1: \xe9 \xe9\xe9 caf\xe9.",
		"\xc2\xa0\xc2\xbf",
		"\033[31m\033[0m\033[38;2;1;2;3m\033[4:3m\033[2J\033[H\033[?25l\033[?1049h",
		"\033[22;0t\033[23;0t\033[18t\033[14t\033[>21t\033[21 t\033[21't",
		"\033[c\033[>c\033[6n\033[?u\033[>1u\033[<u\033[!p",
		"\033]0;a title: caf\xc3\xa9 \xe2\x9d\x9c\007\033]2;t\033\\\033]7;file://h/p\033\\",
		"\033]8;;https://example.org/52;21t\007link\033]8;;\007",
		"\033]10;?\007\033]104\007\033]133;A\007\033]4;1;rgb:0/0/0\033\\\033]\007",
		"\033]1337;File=inline=1;width=3:YWJj\007",
		"\033]1337;File=name=YQ==;inline=1:YWJj\033\\",
		"\033]1337;MultipartFile=inline=1;size=3\007\033]1337;FilePart=YWJj\007"
		"\033]1337;FileEnd\007",
		"\033Pq#0;2;0;0;0~~@@vv\033\\\033P+q544e\033\\\033P1$r0m\033\\",
		"\033_Ga=T,f=100;YWJj\033\\\033^pm\033\\\033Xsos\033\\",
		"\2335;31m\235"
		"0;x\234\302\23331m\302\235"
		"0;y\302\234",
		"\033(0lqk\033(B\016\017\033%G\033=\033>\0337\0338\033M\033c",
		"\033[3\n1m\033\n[31m",
		"\205\204\302\205",
		"\033\\\234\302\234",
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++)
		check(str_of(rows[i]), str_of(rows[i]), false);
}

static void a_broken_off_sequence_continues_nowhere(void **state)
{
	static const struct {
		const char *text, *passes;
	} rows[] = {
		/* what is behind it may not complete it */
		{"a\033[2\033]52;c;eA==\0071tb", "a1tb"},
		{"a\033]\033]52;c;eA==\00752;c;eA==\007b", "a52;c;eA==\007b"},
		{"a\033]\033[31m52;c;eA==\007b", "a\033[31m52;c;eA==\007b"},
		{"a\033]\03052;c;eA==\007b", "a\03052;c;eA==\007b"},
		{"a\033]5\0302;c;eA==\007b", "a\0302;c;eA==\007b"},
		{"a\033]5\302\2052;c;eA==\007b", "a\302\2052;c;eA==\007b"},
		{"a\033[2\303\2511tb", "a\303\2511tb"},
		{"a\033\303\251]52;c;eA==\007b", "a\303\251]52;c;eA==\007b"},
		{"a\033\033]52;c;eA==\007b", "ab"},
		{"a\033\n]52;c;eA==\007b", "ab"},
		{"a\033\001\177[\n21tb", "ab"},
		{"a\033P\033]52;c;eA==\007\033\\b", "a\033\\b"},
		/* in a string, a sequence that is taken out ends the string in its place */
		{"a\033]0;x\033]52;c;eA==\007y\007b", "a\033]0;x\033\\y\007b"},
		{"a\033]0;x\033[21ty\007b", "a\033]0;x\033\\y\007b"},
		{"a\033]0;x\23552;c;eA==\007y\007b", "a\033]0;x\033\\y\007b"},
		{"a\033Pqx\302\23552;c;eA==\007yb", "a\033Pqx\033\\yb"},
		{"a\033]0;x\033[31my\007b", "a\033]0;x\033[31my\007b"},
		/* a character that is cut, or too long, hides no control */
		{"a\342\235\23552;c;eA==\007", "a\342\235\23552;c;eA==\007"},
		{"a\342\23552;c;eA==\007b", "a\342b"},
		{"a\340\23552;c;eA==\007b", "a\340b"},
		{"a\360\235\23552;c;eA==\007b", "a\360b"},
		{"a\360\220\23552;c;eA==\007b", "a\360b"},
		{"a\300\23552;c;eA==\007b", "a\300b"},
		{"a\375\23552;c;eA==\007b", "a\375b"},
		/* leaving UTF-8 would make controls of characters */
		{"a\033%@b\033%/Gc\033%Gd", "ab\033%/Gc\033%Gd"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++)
		check(str_of(rows[i].text), str_of(rows[i].passes), false);
}

static void the_clipboard_is_set_where_the_person_says_so_and_never_read(void **state)
{
	static const struct {
		const char *text, *passes;
	} rows[] = {
		{"a\033]52;c;aGVsbG8=\007b", "a\033]52;c;aGVsbG8=\007b"},
		{"a\033]52;;\033\\b", "a\033]52;;\033\\b"},
		{"a\23552;pc;aGVsbG8=\234b", "a\23552;pc;aGVsbG8=\234b"},
		{"a\033]52;c;?\007b", "ab"},
		{"a\033]52;c;aGVs?\007b", "ab"},
		{"a\033]52;c;\001?\007b", "ab"},
		{"a\033]52;c\007b", "ab"},
		{"a\033]052;c;aGVsbG8=\007b", "ab"},
		{"a\033]52;c;aGVs\033[31mb", "a\033[31mb"},
		{"a\033]5522;type=write\007b", "ab"},
		{"a\033]1337;Copy=:YWJj\007b", "ab"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++)
		check(str_of(rows[i].text), str_of(rows[i].passes), true);
}

/* A sequence of any length, which is dropped to its end when it is held for too long. */
static void what_is_held_is_bounded(void **state)
{
	enum { MANY = 2 << 20 };
	static const struct {
		const char *head, *tail, *passes;
		char filling;
		bool clipboard;
	} rows[] = {
		{"a\033]52;c;", "\007b", "ab", 'A', true},
		{"a\033]1337;File=name=", ";inline=1:YWJj\007b", "ab", 'A', false},
		{"a\033]1337;File=name=", ";inline=1:YWJj\007b", "ab", 'A', true},
		{"a\033]", ";x\007b", "ab", '1', true},
		{"a\033[", "mb", "ab", '1', false},
		{"a\033[", "21tb", "ab", '0', false},
		{"a\033P", "q\033\\b", "ab", '1', false},
	};
	struct buf text, out;

	(void)state;
	buf_init(&text, 2 * OUT_MAX);
	buf_init(&out, OUT_MAX);
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		buf_clear(&text);
		(void)buf_adds(&text, rows[i].head);
		for (size_t j = 0; j < MANY; j++)
			(void)buf_addc(&text, rows[i].filling);
		(void)buf_adds(&text, rows[i].tail);
		filtered(buf_str(&text), MANY / 2, rows[i].clipboard, true, &out);
		assert_string_equal(out.data, rows[i].passes);
	}
	/* A picture and a long text are not held, so they may have any size. */
	buf_clear(&text);
	(void)buf_adds(&text, "\033]1337;File=inline=1:");
	for (size_t j = 0; j < MANY; j++)
		(void)buf_addc(&text, 'A');
	(void)buf_adds(&text, "\007");
	filtered(buf_str(&text), MANY / 2, false, false, &out);
	assert_true(str_equal(buf_str(&out), buf_str(&text)));
	buf_fini(&out);
	buf_fini(&text);
}

static void at_the_end_modes_are_switched_off_that_are_on(void **state)
{
	static const struct {
		const char *text;
		const char *end; /* before what makes text seen; NULL: nothing comes at all */
	} rows[] = {
		{"text", NULL},
		{"text \033[31mred", ""},
		{"\016text", ""},
		{"\033[?1049h\033[?1049l\033[?2004h\033[?2004l", ""},
		{"\033[?1049h", "\033[?1049l"},
		{"\033[?1007h\033[?2048;9001h", "\033[?1007l\033[?2048l\033[?9001l"},
		{"\033]11;#000\007", "\033]104\007\033]110\007\033]111\007"},
		{"\033[?1000;1006h\033[?2004h", "\033[?1000l\033[?1006l\033[?2004l"},
		{"\033[?1003h\033[?1004h\033[?47h", "\033[?1003l\033[?1004l\033[?47l"},
		{"\033[?1049h\033[>1u\033[>5u\033[<u", "\033[<1u\033[?1049l"},
		{"\033[=1u\033[>4;2m", "\033[=0u\033[>4m"},
		{"\033[?25l\033[?1h\033=", "\033>\033[?1l\033[?25h"},
		{"\033[?1049h\033[?1000h\033c", ""},
		{"\033]0;cut", "\033\\"},
		{"\033]52;c;cut", NULL},
		{"\033[3", NULL},
		{"\033]0;cut\033", "\033\\"},
		{"\033]8;;https://example.org\033\\link", ""},
		{"\033]8;;https://exam", "\033\\"},
		{"\302", NULL},
		{"\2331049h\233?2004h", "\033[?2004l"},
	};
	/* Colours, characters, a link, an area, insert mode or no wrapping would hide our words. */
	static const char seen[] =
		"\033[0m\033]8;;\033\\\033(B\017\033[?5l\033[?6l\033[4l\033[?69l\0337\033[r\0338\033[?7h";
	struct buf out, whole, end;

	(void)state;
	buf_init(&out, OUT_MAX);
	buf_init(&whole, OUT_MAX);
	buf_init(&end, OUT_MAX);
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		const struct str text = str_of(rows[i].text);

		for (size_t split = 0; split <= text.size; split++) {
			filtered(text, split, false, false, &out);
			filtered(text, split, false, true, &whole);
			buf_clear(&end);
			if (rows[i].end != NULL)
				(void)buf_addf(&end, "%s%s", rows[i].end, seen);
			else if (strcmp(rows[i].text, "\302") == 0)
				(void)buf_adds(&end, rows[i].text);
			if (strcmp(whole.data + out.size, end.data) != 0)
				fail_msg("row %zu ends differently", i);
		}
	}
	buf_fini(&end);
	buf_fini(&whole);
	buf_fini(&out);
}

static void an_area_that_is_not_erased_never_begins(void **state)
{
	(void)state;
	check(STR("a\033Vb\033Wc"), STR("abc"), false);
	check(STR("a\033\001Vb"), STR("ab"), false);
	check(STR("a\226b\227c\302\226d\302\227e"), STR("abcde"), false);
	check(STR("\033]0;a\302\226b\007"), STR("\033]0;ab\007"), false);
	check(STR("\033[3\302\2261mb"), STR("1mb"), false);
}

/* The bytes of TEXT behind the first BEGINS in it. */
static struct str behind(struct str text, const char *begins)
{
	const size_t at = str_find(text, str_of(begins), 0);

	if (at == (size_t)-1)
		fail_msg("no %s in %.*s", begins + 1, (int)text.size, text.data);
	return str_part(text, at + strlen(begins), text.size);
}

/*
 * Wherever a question comes: what the terminal gets of the program before it and behind it.
 * The rest of an open string never becomes text.
 */
static void a_question_comes_between_two_sequences(void **state)
{
	static const struct {
		const char *before, *after, *shown, *went_on;
	} rows[] = {
		{"text", "more", "text", "more"},
		{"a\033]0;ti", "tle\007b", "a\033]0;ti\033\\", "b"},
		{"a\033]0;ti", "tle\033\\b", "a\033]0;ti\033\\", "b"},
		{"a\033]0;ti\033", "\\b", "a\033]0;ti\033\\", "b"},
		{"a\033]0;ti\033", "[1mb", "a\033]0;ti\033\\", "\033[1mb"},
		{"a\033_Gpicture", "rest\033\\b", "a\033_Gpicture\033\\", "b"},
		{"a\033]0;ti\033[3", "1mb", "a\033]0;ti\033\\", "\033[31mb"},
		{"a\033[3", "1mb", "a", "\033[31mb"},
		{"a\033", "[31mb", "a", "\033[31mb"},
		{"a\033]5", "2;c;YQ==\007b", "a", "b"},
		{"a\033]52;c;YQ", "==\007b", "a", "b"},
		{"a\303", "\244b", "a", "\303\244b"},
	};
	struct buf out;

	(void)state;
	buf_init(&out, OUT_MAX);
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct terminal_filter *filter = terminal_filter_new(false);
		struct str rest;

		buf_clear(&out);
		terminal_filter_pass(filter, str_of(rows[i].before), &out);
		terminal_filter_pause(filter, &out);
		rest = behind(buf_str(&out), rows[i].shown);
		if (rest.data != out.data + strlen(rows[i].shown) ||
		    !str_starts(rest, STR("\033[?1049h\033[0m\033]8;;\033\\")) ||
		    !str_ends(rest, STR("\033[2J\033[H")))
			fail_msg("row %zu begins a question differently", i);
		buf_clear(&out);
		assert_true(terminal_filter_resume(filter, &out));
		terminal_filter_pass(filter, str_of(rows[i].after), &out);
		if (!str_is(behind(buf_str(&out), "\033[?1049l"), rows[i].went_on))
			fail_msg("row %zu goes on differently", i);
		terminal_filter_free(filter);
	}
	buf_fini(&out);
}

static void a_question_gives_the_modes_back(void **state)
{
	static const struct {
		const char *text, *off, *on;
		bool has_screen; /* of its own, which it need not draw again */
	} rows[] = {
		{"", "\033[?1049h\033[0m", "\033[2J\033[?2004l\033[?1049l", true},
		{"\033[?1049h", "\0337\033[0m", "\033[2J\033[?2004l\0338", false},
		{"\033[?47h\033[?47l", "\033[?1049h\033[0m",
		 "\033[2J\033[?2004l\033[?1049l", true},
		{"\033[?2004h\033[?1002;1006h\033[?25l\033[?7l",
		 "\033[?1002l\033[?1006l\033[?2004l\033[?1049h\033[0m",
		 "\033[2J\033[?2004l\033[?1049l\033[?1002h\033[?1006h\033[?2004h\033[?7l"
		 "\033[?25l",
		 true},
		{"\033[>1u", "\033[?1049h\033[>0u\033[0m",
		 "\033[2J\033[?2004l\033[<u\033[?1049l", true},
		{"\033]11;#000\007", "\033[?1049h\033]104\007\033]110\007\033]111\007\033[0m",
		 "\033[2J\033[?2004l\033[?1049l", true},
	};
	struct buf out;

	(void)state;
	buf_init(&out, OUT_MAX);
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct terminal_filter *filter = terminal_filter_new(false);

		terminal_filter_pass(filter, str_of(rows[i].text), &out);
		for (int again = 0; again < 2; again++) {
			buf_clear(&out);
			terminal_filter_pause(filter, &out);
			if (!str_starts(buf_str(&out), str_of(rows[i].off)))
				fail_msg("row %zu is switched off differently", i);
			buf_clear(&out);
			assert_int_equal(terminal_filter_resume(filter, &out),
					 rows[i].has_screen);
			if (!str_is(buf_str(&out), rows[i].on))
				fail_msg("row %zu is switched on differently", i);
		}
		terminal_filter_free(filter);
	}
	buf_fini(&out);
}

/* After a kill the modes are off that a filter switches off at the end of its program. */
static void what_is_left_after_a_kill_is_switched_off(void **state)
{
	static const unsigned modes[] = {1,    9,    1000, 1002, 1003, 1004,
					 1005, 1006, 1007, 1015, 1016, 2004,
					 2026, 2031, 2048, 9001, 1049};
	char off[16];

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(modes); i++) {
		(void)snprintf(off, sizeof(off), "\033[?%ul", modes[i]);
		assert_non_null(strstr(terminal_filter_reset, off));
	}
	assert_non_null(strstr(terminal_filter_reset, "\033[?25h"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_after_a_kill_is_switched_off),
		cmocka_unit_test(what_a_terminal_may_not_get_is_taken_out_in_all_forms),
		cmocka_unit_test(everything_else_passes_unchanged),
		cmocka_unit_test(a_broken_off_sequence_continues_nowhere),
		cmocka_unit_test(
			the_clipboard_is_set_where_the_person_says_so_and_never_read),
		cmocka_unit_test(what_is_held_is_bounded),
		cmocka_unit_test(at_the_end_modes_are_switched_off_that_are_on),
		cmocka_unit_test(an_area_that_is_not_erased_never_begins),
		cmocka_unit_test(a_question_comes_between_two_sequences),
		cmocka_unit_test(a_question_gives_the_modes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
