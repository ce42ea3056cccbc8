/* line: keys in, a text and a cursor out; and what of it is drawn. */
#include "tui/line.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "tui/theme.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void complete(void *context, struct str before, size_t *from, struct buf *words)
{
	static const char *const names[] = {"/agent", "/help", "/hello", NULL};

	(void)context;
	*from = 0;
	for (size_t i = 0; names[i]; i++) {
		if (str_starts(str_of(names[i]), before))
			(void)buf_addf(words, "%s\n", names[i]);
	}
}

struct desk {
	struct typing typing;
	struct line line;
	struct line_history *history;
	enum line_result result; /* of the last key */
};

static struct desk desk_open(void)
{
	struct desk desk = {.history = line_history_new()};

	typing_init(&desk.typing);
	line_init(&desk.line, desk.history, (struct line_completer){.complete = complete});
	return desk;
}

static void desk_close(struct desk *desk)
{
	line_fini(&desk->line);
	typing_fini(&desk->typing);
	line_history_free(desk->history);
}

static void desk_take(struct desk *desk)
{
	struct buf typed;
	enum typing_key key;

	buf_init(&typed, TYPING_MAX * 3);
	while (typing_next(&desk->typing, &key, &typed)) {
		desk->result = line_take(&desk->line, key, buf_str(&typed));
		if (desk->result == LINE_DONE) {
			line_history_add(desk->history, buf_str(&desk->line.text));
			line_start(&desk->line);
		}
		buf_clear(&typed);
	}
	buf_fini(&typed);
}

/* Type KEYS in one piece. */
static void type_on(struct desk *desk, const char *keys)
{
	assert_true(typing_add(&desk->typing, str_of(keys)));
	desk_take(desk);
}

/* The same, with a short pause behind it. */
static void type(struct desk *desk, const char *keys)
{
	type_on(desk, keys);
	if (typing_patience_ms(&desk->typing) == TYPING_SOON_MS) {
		typing_settle(&desk->typing);
		desk_take(desk);
	}
}

/* Each of LINES in a piece of its own, as a person types. */
static void type_lines(struct desk *desk, const char *const *lines)
{
	for (; *lines != NULL; lines++)
		type(desk, *lines);
}

/* "|" stands for the cursor. */
static void has(const struct desk *desk, const char *expected)
{
	struct buf text;

	buf_init(&text, LINE_BYTES_MAX + 1);
	(void)buf_add(&text, desk->line.text.data, desk->line.cursor);
	(void)buf_addc(&text, '|');
	(void)buf_adds(&text, desk->line.text.data + desk->line.cursor);
	assert_string_equal(text.data, expected);
	buf_fini(&text);
}

/* Keys, and the text that they make, with the cursor as "|". */
static const struct {
	const char *keys, *text;
} key_rows[] = {
	{"abc", "abc|"},
	{"abc\x1b[D", "ab|c"},
	{"abc\x1b[D\x1b[D\x1b[C", "ab|c"},
	{"abc\x1bOD\x1bOC", "abc|"},
	{"abc\x02\x02\x06", "ab|c"},
	{"abc\x01", "|abc"},
	{"abc\x1b[H", "|abc"},
	{"abc\x1b[1~", "|abc"},
	{"abc\x1bOH", "|abc"},
	{"abc\x01\x05", "abc|"},
	{"abc\x01\x1b[F", "abc|"},
	{"abc\x01\x1b[4~", "abc|"},
	{"abc\x7f", "ab|"},
	{"abc\x08", "ab|"},
	{"abc\x01\x1b[3~", "|bc"},
	{"abc\x01\x04", "|bc"},
	{"one two-three\x1b"
	 "b",
	 "one two-|three"},
	{"one two-three\x1b[1;5D\x1b[1;3D", "one |two-three"},
	{"one two\x01\x1b"
	 "f",
	 "one| two"},
	{"one two\x01\x1b[1;5C\x1b[1;5C", "one two|"},
	{"one two-three\x17", "one |"},
	{"one two-three\x1b\x7f", "one two-|"},
	{"one two\x01\x1b"
	 "d",
	 "| two"},
	{"one two\x01\x0b", "|"},
	{"one two\x1b[D\x1b[D\x15", "|wo"},
	{"one two\x17\x17\x19", "one two|"},
	{"one two\x17\x01\x19", "two|one "},
	{"one two\x01\x1b"
	 "d\x1b"
	 "d\x19\x19",
	 "one twoone two|"},
	{"abc\x1bt", "acb|"},
	{"abc\x01\x06\x1bt", "ba|c"},
	{"a\x1b\rb", "a\nb|"},
	{"a\x1b[13;2ub", "a\nb|"},
	{"a\x0a"
	 "b",
	 "a\nb|"},
	{"a\x1b[27;2;13~b", "a\nb|"},
	{"a\x1b[27;5;106~b", "a\nb|"},
	{"a\x1b[57414u", "|"},
	/* The numbers of kitty's protocol, with Num Lock, and with the kind of event. */
	{"abc\x1b[97;5u", "|abc"},
	{"abc\x1b[97;133u", "|abc"},
	{"abc\x1b[97;5:1u\x1b[101:69;5u", "abc|"},
	{"abc\x1b[57417u", "ab|c"},
	{"abc\x1b[98;9u", "abc|"},
	{"ab\x1b[32;2u\x1b[97;2u\x1b[233u", "ab A\xc3\xa9|"},
	{"ab\x1b[55555u\x1b[57358u\x1b[1u\x1b[127u", "a|"},
	/* Answers of the terminal are no keys. */
	{"ab\x1b[?1u\x1b[?62;4c\x1b[>97;5u", "ab|"},
	{"one two\x1b\x1b[D", "one |two"},
	{"one two\x1b[1;6D", "one |two"},
	{"abc\x1b[1;2D", "ab|c"},
	{"abc\x1f", "|"},
	{"abc def\x17\x1f", "abc def|"},
	{"abc\x01\x0b\x19\x19\x1f\x1f\x1f", "|abc"},
	{"abc\x1bt\x1f", "abc|"},
	{"/a\t\x1f", "/a|"},
	{"abc\x03\x1f", "abc|"},
	{"ab\x7f\x7f\x1f", "ab|"},
	{"ab\x1f\x1f\x1f", "|"},
	{"abc\x1b\rd\x1b[A", "a|bc\nd"},
	{"a\x1b\rbcd\x1b[A\x1b[B", "a\nb|cd"},
	{"a\x1b\rb\x01\x7f", "a|b"},
	{"a\x1b\rb\x1b[A\x05\x0b", "a|b"},
	{"\xe6\x97\xa5\xe6\x9c\xac\x1b[D\x7f", "|\xe6\x9c\xac"},
	/* A letter and what combines with it are one character. */
	{"xe\xcc\x81\x7f", "x|"},
	{"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7\x1b[D", "|\xf0\x9f\x91\xa9\xe2\x80"
							       "\x8d\xf0\x9f\x91\xa7"},
	{"a\xff"
	 "b",
	 "a\xef\xbf\xbd"
	 "b|"},
	{"abc\x03", "|"},
	{"ab\x1b[5~\x1b[15~\x1b[24~c", "abc|"},
	{"/a\t", "/agent |"},
	{"/h\t", "/hel|"},
	{"x\t", "x|"},
};

static void each_key_does_what_it_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(key_rows) / sizeof(key_rows[0]); i++) {
		struct desk desk = desk_open();

		type(&desk, key_rows[i].keys);
		has(&desk, key_rows[i].text);
		desk_close(&desk);
		/* The same in pieces of one byte. */
		desk = desk_open();
		for (const char *at = key_rows[i].keys; *at; at++) {
			type(&desk, (char[]){*at, '\0'});
		}
		has(&desk, key_rows[i].text);
		desk_close(&desk);
	}
}

static void a_line_end_is_enter_when_nothing_follows_soon(void **state)
{
	static const struct {
		const char *pieces[4], *text;
		size_t sent;
	} rows[] = {
		{{"ab\r", "cd"}, "ab\ncd|", 0},
		{{"ab\r\n", "cd\n"}, "ab\ncd\n|", 0},
		{{"ab", "\rcd"}, "cd|", 1},
		{{"\rcd"}, "cd|", 0},
		{{"ab\rcd"}, "ab\ncd|", 0},
		{{"ab\ncd\n"}, "ab\ncd\n|", 0},
		{{"ab\r\ncd\r\n"}, "ab\ncd\n|", 0},
		{{"ab\r\rcd\r", "ef\r"}, "ab\n\ncd\nef\n|", 0},
		{{"a \\\rb"}, "a \\\nb|", 0},
		/* A terminal that has marked one paste marks them all. */
		{{"\x1b[200~\x1b[201~", "ab\rcd"}, "cd|", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct desk desk = desk_open();

		for (size_t at = 0; at < 4 && rows[i].pieces[at] != NULL; at++)
			type_on(&desk, rows[i].pieces[at]);
		has(&desk, rows[i].text);
		assert_int_equal(line_history_count(desk.history), rows[i].sent);
		desk_close(&desk);
	}
}

static void after_a_pause_a_line_end_is_enter_again(void **state)
{
	struct desk desk = desk_open();

	(void)state;
	type_on(&desk, "ab\rcd");
	assert_int_equal(typing_patience_ms(&desk.typing), TYPING_SOON_MS);
	typing_settle(&desk.typing);
	assert_int_equal(typing_patience_ms(&desk.typing), -1);
	type_on(&desk, "ef\r");
	assert_int_equal(typing_patience_ms(&desk.typing), TYPING_SOON_MS);
	has(&desk, "ab\ncdef|");
	typing_settle(&desk.typing);
	desk_take(&desk);
	assert_string_equal(line_history_item(desk.history, 0).data, "ab\ncdef");
	desk_close(&desk);
}

static void what_was_typed_early_has_enters(void **state)
{
	struct desk desk = desk_open();

	(void)state;
	assert_true(typing_add_early(&desk.typing, STR("one\ntwo\nth")));
	desk_take(&desk);
	type(&desk, "r\x0a");
	has(&desk, "thr\n|");
	assert_int_equal(line_history_count(desk.history), 2);
	has(&desk, "thr\n|");
	desk_close(&desk);
}

static void an_escape_alone_is_known_when_nothing_follows(void **state)
{
	struct desk desk = desk_open();
	struct buf typed;
	enum typing_key key = TYPING_NONE;

	(void)state;
	buf_init(&typed, 16);
	assert_true(typing_add(&desk.typing, STR("\x1b")));
	assert_false(typing_next(&desk.typing, &key, &typed));
	assert_true(typing_waits(&desk.typing));
	typing_settle(&desk.typing);
	assert_true(typing_next(&desk.typing, &key, &typed));
	assert_int_equal(key, TYPING_ESCAPE);
	assert_false(typing_waits(&desk.typing));
	buf_fini(&typed);
	desk_close(&desk);
}

static void what_is_pasted_is_text(void **state)
{
	struct desk desk = desk_open();

	(void)state;
	type(&desk, "a\x1b[200~one\r\ntwo\rthree\n\tx\x03\x1b[31mz\x1b[20");
	type(&desk, "1~b");
	has(&desk, "aone\ntwo\nthree\n\tx\xef\xbf\xbd\xef\xbf\xbd[31mzb|");
	assert_int_equal(desk.result, LINE_GOES_ON);
	desk_close(&desk);
}

static void paste(struct desk *desk, const char *text)
{
	type(desk, "\x1b[200~");
	type(desk, text);
	type(desk, "\x1b[201~");
}

static void a_paste_without_an_end_is_left_by_an_interrupt(void **state)
{
	struct desk desk = desk_open();
	char piece[4 << 10];

	(void)state;
	memset(piece, 'x', sizeof(piece) - 1);
	piece[sizeof(piece) - 1] = '\0';
	type(&desk, "a\x1b[200~x\x03");
	for (size_t size = 0; size <= TYPING_PASTE_MAX; size += strlen(piece))
		type(&desk, piece);
	type(&desk, "y\x03z");
	has(&desk, "az|");
	assert_int_equal(desk.result, LINE_GOES_ON);
	desk_close(&desk);
}

/* Append COUNT rows "NUMBER" to TEXT. */
static void add_rows(struct buf *text, int count)
{
	for (int i = 1; i <= count; i++)
		(void)buf_addf(text, i > 1 ? "\n%d" : "%d", i);
}

static void a_long_paste_is_one_character(void **state)
{
	static const char mark[] = "\xef\xb7\x90", other[] = "\xef\xb7\x91";
	struct desk desk = desk_open();
	struct buf rows, whole, expected;

	(void)state;
	buf_init(&rows, 4096);
	buf_init(&whole, 4096);
	buf_init(&expected, 4096);
	add_rows(&rows, 10);
	paste(&desk, rows.data);
	assert_false(insets_are_in(buf_str(&desk.line.text)));
	type(&desk, "\x1f");
	has(&desk, "|");
	buf_clear(&rows);
	add_rows(&rows, 212);
	type(&desk, "see ");
	paste(&desk, rows.data);
	type(&desk, " and ");
	paste(&desk, rows.data);
	line_add_whole(&desk.line, &whole);
	(void)buf_addf(&expected, "see %s and %s", rows.data, rows.data);
	assert_string_equal(whole.data, expected.data);
	buf_clear(&expected);
	(void)buf_addf(&expected, "see %s and %s|", mark, other);
	has(&desk, expected.data);
	assert_string_equal(desk.line.insets.items[1].label, "[paste 2: 212 lines]");
	type(&desk, "\x7f\x1b[D\x1b[D\x1b[D\x1b[D\x1b[D\x7f");
	has(&desk, "see | and ");
	type(&desk, "\x1f");
	/* Both keys were steps of their own, and Tab opens what is before the cursor. */
	type(&desk, "\t");
	buf_clear(&expected);
	(void)buf_addf(&expected, "see %s| and ", rows.data);
	has(&desk, expected.data);
	type(&desk, "\x1f\x15\x19\x19");
	buf_clear(&expected);
	(void)buf_addf(&expected, "see %ssee %s| and ", mark, mark);
	has(&desk, expected.data);
	buf_fini(&rows);
	buf_fini(&whole);
	buf_fini(&expected);
	desk_close(&desk);
}

static void a_paste_is_whole_in_the_history_and_in_what_was_cut(void **state)
{
	struct desk desk = desk_open();
	struct buf rows, expected;

	(void)state;
	buf_init(&rows, 4096);
	buf_init(&expected, 4096);
	add_rows(&rows, 20);
	paste(&desk, rows.data);
	type(&desk, "\x15");
	line_start(&desk.line);
	type(&desk, "\x19");
	(void)buf_addf(&expected, "%s|", rows.data);
	has(&desk, expected.data);
	type(&desk, "\x03");
	paste(&desk, rows.data);
	type(&desk, "\x1b\x1b");
	typing_settle(&desk.typing);
	desk_take(&desk);
	has(&desk, "|");
	type(&desk, "\x10");
	has(&desk, expected.data);
	buf_fini(&rows);
	buf_fini(&expected);
	desk_close(&desk);
}

static void characters_of_marks_from_outside_are_none(void **state)
{
	struct desk desk = desk_open();

	(void)state;
	type(&desk, "a\xef\xb7\x90z");
	paste(&desk, "\xef\xb7\xaf");
	line_insert(&desk.line, STR("\xef\xb7\x91"));
	has(&desk, "a\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd|");
	desk_close(&desk);
}

static void a_paste_that_is_too_long_is_refused(void **state)
{
	struct desk desk = desk_open();
	auto_free char *much = memory_alloc(TYPING_MAX);

	(void)state;
	memset(much, 'x', TYPING_MAX - 1);
	type(&desk, "a\x1b[200~");
	for (int i = 0; i < LINE_BYTES_MAX / TYPING_MAX + 1; i++)
		type(&desk, much);
	type(&desk, "\x1b[201~");
	has(&desk, "a|");
	assert_true(desk.line.hint.size > 0);
	type(&desk, "\x1b[200~b\x1b[201~");
	has(&desk, "ab|");
	desk_close(&desk);
}

static struct value *see(void *context, struct str paths, const struct value *before,
			 struct err *err)
{
	struct value *pictures, *picture;

	(void)context;
	if (paths.size > 0 && !str_starts(paths, STR("/")))
		return NULL;
	if (value_count(before) == 2) {
		(void)err_set(err, E2BIG, "two are enough");
		return NULL;
	}
	pictures = value_new_array();
	picture = value_new_object();
	value_set_str(picture, "text", paths.size > 0 ? paths : STR("clipboard"));
	value_append(pictures, picture);
	return pictures;
}

static void a_pasted_path_of_a_picture_is_an_inset(void **state)
{
	struct desk desk = desk_open();
	struct value *pictures;
	struct buf whole;

	(void)state;
	buf_init(&whole, 4096);
	desk.line.camera.pictures = see;
	type(&desk, "look ");
	paste(&desk, "/a.png");
	type(&desk, "\x16 ");
	paste(&desk, "words");
	line_add_whole(&desk.line, &whole);
	assert_string_equal(whole.data,
			    "look [picture 1: /a.png][picture 2: clipboard] words");
	pictures = line_pictures(&desk.line);
	assert_int_equal(value_count(pictures), 2);
	value_free(pictures);
	paste(&desk, "/b.png");
	assert_string_equal(desk.line.hint.data, "two are enough");
	type(&desk, "\x17\x7f\x7f");
	pictures = line_pictures(&desk.line);
	assert_int_equal(value_count(pictures), 1);
	value_free(pictures);
	type(&desk, "\x15");
	assert_null(line_pictures(&desk.line));
	buf_fini(&whole);
	desk_close(&desk);
}

static void a_text_that_was_edited_elsewhere_keeps_its_pictures(void **state)
{
	static const char edited[] = "new [picture 1: /a.png] [picture 2: /a.png] [x";
	struct desk desk = desk_open();
	struct value *pictures;
	struct buf whole;

	(void)state;
	buf_init(&whole, 4096);
	desk.line.camera.pictures = see;
	paste(&desk, "/a.png");
	line_replace(&desk.line, STR(edited));
	has(&desk, "new \xef\xb7\x90 [picture 2: /a.png] [x|");
	line_add_whole(&desk.line, &whole);
	assert_string_equal(whole.data, edited);
	pictures = line_pictures(&desk.line);
	assert_int_equal(value_count(pictures), 1);
	value_free(pictures);
	type(&desk, "\x1f");
	has(&desk, "\xef\xb7\x90|");
	buf_fini(&whole);
	desk_close(&desk);
}

static void insets_move_to_another_line(void **state)
{
	struct desk desk = desk_open(), other = desk_open();
	struct buf rows, whole, expected;

	(void)state;
	buf_init(&rows, 4096);
	buf_init(&whole, 4096);
	buf_init(&expected, 4096);
	add_rows(&rows, 30);
	paste(&desk, rows.data);
	paste(&other, rows.data);
	line_insert_with(&other.line, &desk.line.insets, buf_str(&desk.line.text));
	has(&other, "\xef\xb7\x90\xef\xb7\x91|");
	line_add_whole(&other.line, &whole);
	(void)buf_addf(&expected, "%s%s", rows.data, rows.data);
	assert_string_equal(whole.data, expected.data);
	buf_fini(&rows);
	buf_fini(&whole);
	buf_fini(&expected);
	desk_close(&desk);
	desk_close(&other);
}

static void escape_twice(struct desk *desk)
{
	type(desk, "\x1b");
	typing_settle(&desk->typing);
	desk_take(desk);
	type(desk, "\x1b");
	typing_settle(&desk->typing);
	desk_take(desk);
}

static void escape_twice_puts_the_text_away_or_goes_back(void **state)
{
	struct desk desk = desk_open();

	(void)state;
	type(&desk, "one");
	escape_twice(&desk);
	has(&desk, "|");
	assert_int_equal(desk.result, LINE_GOES_ON);
	type(&desk, "\x10");
	has(&desk, "one|");
	type(&desk, "\x03 kept out");
	escape_twice(&desk);
	has(&desk, "|");
	type(&desk, "\x1f");
	has(&desk, " kept out|");
	type(&desk, "\x03");
	escape_twice(&desk);
	assert_int_equal(desk.result, LINE_REWIND);
	/* One that closes a menu is not the first of two. */
	type(&desk, "/h\t");
	assert_true(desk.line.menu.count > 0);
	escape_twice(&desk);
	has(&desk, "/hel|");
	type(&desk, "x\x1by\x1b");
	has(&desk, "/helx|");
	desk_close(&desk);
}

static void keys_for_others_are_results(void **state)
{
	static const struct {
		const char *keys;
		enum line_result result;
	} rows[] = {
		{"\x07", LINE_EDITOR},          {"\x0f", LINE_VIEWER},
		{"\x14", LINE_TASKS},           {"\x1b[Z", LINE_MODE},
		{"\x1b[9;2u", LINE_MODE},       {"\x0c", LINE_CLEARED},
		{"\x1a", LINE_SUSPENDED},       {"\x1b[122;5u", LINE_SUSPENDED},
		{"\x1b[27;5;116~", LINE_TASKS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct desk desk = desk_open();

		type(&desk, "abc");
		type(&desk, rows[i].keys);
		assert_int_equal(desk.result, rows[i].result);
		has(&desk, "abc|");
		desk_close(&desk);
	}
}

static void undo_has_its_ceilings(void **state)
{
	struct desk desk = desk_open();
	auto_free char *much = memory_alloc(LINE_BYTES_MAX - 1);

	(void)state;
	for (int i = 0; i < CHANGES_MAX + 5; i++)
		type(&desk, "a \x02\x06");
	for (int i = 0; i < CHANGES_MAX + 9; i++)
		type(&desk, "\x1f");
	assert_int_equal(desk.line.changes.count, 0);
	assert_true(desk.line.text.size > 0);
	memset(much, 'x', LINE_BYTES_MAX - 2);
	for (int i = 0; i < 5; i++) {
		line_replace(&desk.line, STR(""));
		line_insert(&desk.line, str_of(much));
	}
	assert_true(desk.line.changes.bytes <= CHANGES_BYTES_MAX);
	type(&desk, "\x1f");
	has(&desk, "|");
	desk_close(&desk);
}

static void a_paste_without_an_end_ends_when_nothing_comes(void **state)
{
	struct desk desk = desk_open();

	(void)state;
	type(&desk, "\x1b[200~abc");
	assert_true(typing_waits(&desk.typing));
	typing_settle(&desk.typing);
	desk_take(&desk);
	assert_false(typing_waits(&desk.typing));
	type(&desk, "\x15");
	has(&desk, "|");
	desk_close(&desk);
}

static void the_history_is_gone_through_and_left(void **state)
{
	struct desk desk = desk_open();

	(void)state;
	type_lines(&desk, (const char *const[]){"first\r", "second\\\r", "row\r",
						" kept out\r", "draft", NULL});
	assert_int_equal(line_history_count(desk.history), 2);
	type(&desk, "\x10");
	has(&desk, "second\nrow|");
	type(&desk, "\x1b[A\x1b[A");
	has(&desk, "first|");
	type(&desk, "\x1b[A");
	has(&desk, "first|");
	type(&desk, "\x1b[B\x1b[B\x1b[B");
	has(&desk, "draft|");
	desk_close(&desk);
}

static void a_search_finds_older_ones_and_can_be_left(void **state)
{
	struct desk desk = desk_open();

	(void)state;
	type_lines(&desk, (const char *const[]){"make one\r", "other\r", "make two\r",
						"mine\x12ma", NULL});
	has(&desk, "|make two");
	type(&desk, "\x12");
	has(&desk, "|make one");
	type(&desk, "\x12");
	assert_true(desk.line.search.failed);
	has(&desk, "|make one");
	type(&desk, "\x13");
	has(&desk, "|make two");
	type(&desk, "\x07");
	has(&desk, "mine|");
	type(&desk, "\x12oth\x05!");
	has(&desk, "other!|");
	type(&desk, "\x12oth\r");
	assert_int_equal(desk.result, LINE_DONE);
	assert_string_equal(line_history_item(desk.history, 3).data, "other");
	desk_close(&desk);
}

static void leaving_takes_two_of_them(void **state)
{
	struct desk desk = desk_open();

	(void)state;
	type(&desk, "x\x03");
	assert_int_equal(desk.result, LINE_GOES_ON);
	type(&desk, "\x03");
	assert_int_equal(desk.result, LINE_GOES_ON);
	assert_true(desk.line.hint.size > 0);
	type(&desk, "y\x7f\x03");
	assert_int_equal(desk.result, LINE_GOES_ON);
	type(&desk, "\x03");
	assert_int_equal(desk.result, LINE_QUIT);
	line_start(&desk.line);
	type(&desk, "\x04");
	assert_int_equal(desk.result, LINE_QUIT);
	desk_close(&desk);
}

static void rows_are(const struct desk *desk, struct line_look look, const char *rows,
		     size_t row, size_t column)
{
	struct line_frame frame;

	line_frame_init(&frame);
	line_frame_compose(&frame, &desk->line, &look);
	assert_string_equal(frame.rows.data, rows);
	assert_int_equal(frame.row, row);
	assert_int_equal(frame.column, column);
	line_frame_fini(&frame);
}

static void the_persons_theme_gives_the_colours(void **state)
{
	static const char file[] =
		"{\"base\": \"plain\", \"bold\": \"bold magenta\", \"dim\": \"blue\"}";
	struct line_look look = {.columns = 40, .rows = 10, .colour = true};
	struct err err = {0};
	struct desk desk = desk_open();
	struct theme theme;

	(void)state;
	assert_true(theme_parse(str_of(file), false, &theme, &err));
	look.theme = &theme;
	type(&desk, "a");
	line_set_hint(&desk.line, "told");
	rows_are(&desk, look, "\x1b[1;35m>\x1b[0m a\n\x1b[34mtold\x1b[0m\n", 0, 3);
	buf_clear(&desk.line.hint);
	(void)buf_adds(&desk.line.menu.words, "abc\tletters\n");
	menu_open(&desk.line.menu);
	rows_are(&desk, look,
		 "\x1b[1;35m>\x1b[0m a\n\x1b[1;35m> \x1b[0m\x1b[1;35mabc\x1b[0m               "
		 "\x1b[34mletters\x1b[0m\n",
		 0, 3);
	desk_close(&desk);
}

static void words_are_shown_and_chosen(void **state)
{
	const struct line_look look = {.columns = 40, .rows = 10};
	const struct line_look low = {.columns = 40, .rows = 2};
	struct desk desk = desk_open();

	(void)state;
	type(&desk, "/");
	rows_are(&desk, look, "> /\n> /agent\n  /help\n  /hello\n", 0, 3);
	/* The words never take the text's last row. */
	rows_are(&desk, low, "> /\n> /agent\n", 0, 3);
	type(&desk, "he");
	rows_are(&desk, look, "> /he\n> /help\n  /hello\n", 0, 5);
	/* Enter takes what the letters begin; the command needs nothing more. */
	type(&desk, "\r");
	assert_int_equal(desk.result, LINE_DONE);
	assert_string_equal(line_history_item(desk.history, 0).data, "/help ");
	type(&desk, "/he\x1b[B\x1b[B\x1b[B");
	rows_are(&desk, look, "> /he\n  /help\n> /hello\n", 0, 5);
	type(&desk, "\r");
	assert_int_equal(desk.result, LINE_DONE);
	assert_string_equal(line_history_item(desk.history, 1).data, "/hello ");
	/* Escape leaves the menu, and the arrows are for the text again. */
	type(&desk, "/he\x1b");
	typing_settle(&desk.typing);
	desk_take(&desk);
	rows_are(&desk, look, "> /he\n", 0, 5);
	type(&desk, "l");
	rows_are(&desk, look, "> /hel\n", 0, 6);
	type(&desk, "\t");
	has(&desk, "/hel|");
	type(&desk, "\x15/");
	rows_are(&desk, look, "> /\n> /agent\n  /help\n  /hello\n", 0, 3);
	type(&desk, "\t");
	has(&desk, "/agent |");
	desk_close(&desk);
}

static void blank_lines_are_not_sent(void **state)
{
	struct desk desk = desk_open();

	(void)state;
	type(&desk, "  \r");
	assert_int_equal(desk.result, LINE_GOES_ON);
	desk_close(&desk);
}

static void it_stops_at_its_ceiling(void **state)
{
	struct desk desk = desk_open();
	auto_free char *much = memory_alloc(LINE_BYTES_MAX);

	(void)state;
	memset(much, 'x', LINE_BYTES_MAX);
	line_insert(&desk.line, (struct str){much, LINE_BYTES_MAX});
	assert_int_equal(desk.line.text.size, LINE_BYTES_MAX);
	type(&desk, "y");
	assert_int_equal(desk.line.text.size, LINE_BYTES_MAX);
	assert_true(desk.line.hint.size > 0);
	desk_close(&desk);
}

static void rows_are_broken_by_what_is_seen(void **state)
{
	const struct line_look small = {.columns = 11, .rows = 5};
	struct desk desk = desk_open();

	(void)state;
	rows_are(&desk, small, "> \n", 0, 2);
	type(&desk, "abcdefgh");
	rows_are(&desk, small, "> abcdefgh\n", 0, 10);
	type(&desk, "i");
	rows_are(&desk, small, "> abcdefgh\n  i\n", 1, 3);
	type(&desk, "\x15\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5x\xe6\x97\xa5");
	rows_are(&desk, small,
		 "> \xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5x\n  \xe6\x97\xa5\n", 1, 4);
	type(&desk, "\x15"
		    "a\xe2\x80\xae"
		    "b");
	rows_are(&desk, small,
		 "> a\xef\xbf\xbd"
		 "b\n",
		 0, 5);
	desk_close(&desk);
}

static void of_a_high_text_the_rows_around_the_cursor_are_shown(void **state)
{
	const struct line_look small = {.columns = 20, .rows = 4};
	struct desk desk = desk_open();

	(void)state;
	type(&desk, "1\x1b\r2\x1b\r3\x1b\r4\x1b\r5\x1b\r6");
	rows_are(&desk, small, "~ 3\n  4\n  5\n  6\n", 3, 3);
	type(&desk, "\x1b[A\x1b[A\x1b[A");
	rows_are(&desk, small, "> 1\n  2\n  3\n~ 4\n", 2, 3);
	desk_close(&desk);
}

static void only_what_changed_is_written(void **state)
{
	const struct line_look look = {.columns = 40, .rows = 10};
	struct line_frame shown, wanted;
	struct desk desk = desk_open();
	struct buf out;

	(void)state;
	line_frame_init(&shown);
	line_frame_init(&wanted);
	buf_init(&out, 4096);
	type(&desk, "one\x1b\rtwo");
	line_frame_compose(&shown, &desk.line, &look);
	type(&desk, "!");
	line_frame_compose(&wanted, &desk.line, &look);
	line_frame_change(&shown, &wanted, &out);
	assert_string_equal(out.data, "!\x1b[7G");
	buf_clear(&out);
	type(&desk, "\x7f\x7f");
	line_frame_compose(&shown, &desk.line, &look);
	line_frame_change(&wanted, &shown, &out);
	assert_string_equal(out.data, "\r  tw\x1b[K\x1b[5G");
	line_frame_fini(&shown);
	line_frame_fini(&wanted);
	buf_fini(&out);
	desk_close(&desk);
}

/* Type KEYS, and see what makes a terminal that has SHOWN show the line. */
static void change_is(struct desk *desk, struct line_frame *shown, const char *keys,
		      const char *wanted)
{
	const struct line_look look = {.columns = 40, .rows = 10};
	struct line_frame next;
	struct buf out;

	line_frame_init(&next);
	buf_init(&out, 4096);
	type(desk, keys);
	line_frame_compose(&next, &desk->line, &look);
	line_frame_change(shown, &next, &out);
	assert_string_equal(out.data, wanted);
	line_frame_fini(shown);
	*shown = next;
	buf_fini(&out);
}

static void the_columns_behind_a_character_of_doubtful_width_are_set(void **state)
{
	struct line_frame shown;
	struct desk desk = desk_open();

	(void)state;
	line_frame_init(&shown);
	change_is(&desk, &shown, "a", "\r> a\x1b[K\x1b[4G");
	/* The row is drawn again: on some terminals the last one covers more than it counts. */
	change_is(&desk, &shown, "\xe2\x9d\xa4\xef\xb8\x8f",
		  "\r\x1b[K> a\xe2\x9d\xa4\xef\xb8\x8f\x1b[6G\x1b[K\x1b[6G");
	change_is(&desk, &shown, "b", "b\x1b[7G");
	/* A mark that joins the character before it is no new end. */
	change_is(&desk, &shown, "\xcc\x81",
		  "\r\x1b[K> a\xe2\x9d\xa4\xef\xb8\x8f\x1b[6G"
		  "b\xcc\x81\x1b[7G\x1b[K\x1b[7G");
	line_frame_fini(&shown);
	desk_close(&desk);
}

static void a_character_of_doubtful_width_does_not_reach_the_next_row(void **state)
{
	/* A man, a woman, a girl: two columns, or six. */
	static const char family[] = "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9"
				     "\xe2\x80\x8d\xf0\x9f\x91\xa7";
	const struct line_look small = {.columns = 20, .rows = 4};
	struct desk desk = desk_open();
	char rows[64];

	(void)state;
	type(&desk, "123456789012");
	type(&desk, family);
	(void)snprintf(rows, sizeof(rows), "> 123456789012\n  %s\n", family);
	rows_are(&desk, small, rows, 1, 4);
	desk_close(&desk);
}

static void an_erased_frame_counts_the_rows_of_a_narrower_terminal(void **state)
{
	const struct line_look look = {.columns = 40, .rows = 10};
	struct line_frame shown;
	struct desk desk = desk_open();
	struct buf out;

	(void)state;
	line_frame_init(&shown);
	buf_init(&out, 4096);
	type(&desk, "123456789012345678901234567890\x1b\rtwo");
	line_frame_compose(&shown, &desk.line, &look);
	line_frame_erase(&shown, 20, TERM_REFLOWS, &out);
	assert_string_equal(out.data, "\x1b[2A\r\x1b[J");
	buf_clear(&out);
	line_frame_erase(&shown, 20, TERM_CUTS, &out);
	assert_string_equal(out.data, "\x1b[1A\r\x1b[J");
	line_frame_fini(&shown);
	buf_fini(&out);
	desk_close(&desk);
}

static void the_file_is_bounded_private_and_read_again(void **state)
{
	char folder[] = "/tmp/glovebox-line-XXXXXX";
	struct line_history *history = line_history_new();
	struct err err = {0};
	char path[64], text[64];
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/deep/history", folder);
	assert_true(line_history_open(history, path, &err));
	for (int i = 0; i < LINE_HISTORY_ENTRIES + 10; i++) {
		(void)snprintf(text, sizeof(text), "a\\b\n%d", i);
		line_history_add(history, str_of(text));
		line_history_add(history, str_of(text));
	}
	line_history_free(history);
	history = line_history_new();
	assert_true(line_history_open(history, path, &err));
	assert_int_equal(line_history_count(history), LINE_HISTORY_ENTRIES);
	assert_string_equal(line_history_item(history, 0).data, "a\\b\n10");
	line_history_free(history);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/null", path), 0);
	history = line_history_new();
	assert_false(line_history_open(history, path, &err));
	line_history_free(history);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/deep", folder);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void a_file_that_grew_is_cut_to_its_newer_half(void **state)
{
	char path[] = "/tmp/glovebox-line-XXXXXX";
	struct line_history *history = line_history_new();
	auto_close int fd = mkstemp(path);
	struct err err = {0};
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	for (int i = 0; i < 9000; i++)
		assert_true(dprintf(fd, "%0200d\n", i) > 0);
	assert_true(line_history_open(history, path, &err));
	assert_int_equal(line_history_count(history), LINE_HISTORY_ENTRIES);
	assert_true(str_ends(line_history_item(history, 999), STR("08999")));
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_size, 1, LINE_HISTORY_FILE_MAX / 2);
	line_history_free(history);
	assert_int_equal(unlink(path), 0);
}

static void lines_that_we_never_wrote_are_left_out(void **state)
{
	struct line_history *history = line_history_new();

	(void)state;
	line_history_parse(history,
			   STR("one\nt\\wo\nth\x1bree\nfo\xffur\n\nfi\\nve\nsix\\"));
	assert_int_equal(line_history_count(history), 2);
	assert_string_equal(line_history_item(history, 1).data, "fi\nve");
	line_history_free(history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_key_does_what_it_says),
		cmocka_unit_test(a_line_end_is_enter_when_nothing_follows_soon),
		cmocka_unit_test(after_a_pause_a_line_end_is_enter_again),
		cmocka_unit_test(what_was_typed_early_has_enters),
		cmocka_unit_test(an_escape_alone_is_known_when_nothing_follows),
		cmocka_unit_test(what_is_pasted_is_text),
		cmocka_unit_test(a_paste_without_an_end_is_left_by_an_interrupt),
		cmocka_unit_test(a_long_paste_is_one_character),
		cmocka_unit_test(a_paste_is_whole_in_the_history_and_in_what_was_cut),
		cmocka_unit_test(characters_of_marks_from_outside_are_none),
		cmocka_unit_test(a_paste_that_is_too_long_is_refused),
		cmocka_unit_test(a_pasted_path_of_a_picture_is_an_inset),
		cmocka_unit_test(a_text_that_was_edited_elsewhere_keeps_its_pictures),
		cmocka_unit_test(insets_move_to_another_line),
		cmocka_unit_test(escape_twice_puts_the_text_away_or_goes_back),
		cmocka_unit_test(keys_for_others_are_results),
		cmocka_unit_test(undo_has_its_ceilings),
		cmocka_unit_test(a_paste_without_an_end_ends_when_nothing_comes),
		cmocka_unit_test(the_history_is_gone_through_and_left),
		cmocka_unit_test(a_search_finds_older_ones_and_can_be_left),
		cmocka_unit_test(leaving_takes_two_of_them),
		cmocka_unit_test(the_persons_theme_gives_the_colours),
		cmocka_unit_test(words_are_shown_and_chosen),
		cmocka_unit_test(blank_lines_are_not_sent),
		cmocka_unit_test(it_stops_at_its_ceiling),
		cmocka_unit_test(rows_are_broken_by_what_is_seen),
		cmocka_unit_test(of_a_high_text_the_rows_around_the_cursor_are_shown),
		cmocka_unit_test(only_what_changed_is_written),
		cmocka_unit_test(the_columns_behind_a_character_of_doubtful_width_are_set),
		cmocka_unit_test(a_character_of_doubtful_width_does_not_reach_the_next_row),
		cmocka_unit_test(an_erased_frame_counts_the_rows_of_a_narrower_terminal),
		cmocka_unit_test(the_file_is_bounded_private_and_read_again),
		cmocka_unit_test(a_file_that_grew_is_cut_to_its_newer_half),
		cmocka_unit_test(lines_that_we_never_wrote_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
