/* line: keys in, a text and a cursor out; and what of it is drawn. */
#include "tui/line.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"

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

static void type(struct desk *desk, const char *keys)
{
	assert_true(typing_add(&desk->typing, str_of(keys)));
	desk_take(desk);
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

static void each_key_does_what_it_says(void **state)
{
	static const struct {
		const char *keys, *text;
	} rows[] = {
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
		{"abc\x14", "acb|"},
		{"abc\x01\x06\x14", "ba|c"},
		{"a\x1b\rb", "a\nb|"},
		{"a\x1b[13;2ub", "a\nb|"},
		{"a\\\rb", "a\nb|"},
		{"ab\ncd" /* is two lines: the first was sent */, "cd|"},
		{"abc\x1b\rd\x1b[A", "a|bc\nd"},
		{"a\x1b\rbcd\x1b[A\x1b[B", "a\nb|cd"},
		{"a\x1b\rb\x01\x7f", "a|b"},
		{"a\x1b\rb\x1b[A\x05\x0b", "a|b"},
		{"\xe6\x97\xa5\xe6\x9c\xac\x1b[D\x7f", "|\xe6\x9c\xac"},
		/* A letter and what combines with it are one character. */
		{"xe\xcc\x81\x7f", "x|"},
		{"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7\x1b[D",
		 "|\xf0\x9f\x91\xa9\xe2\x80"
		 "\x8d\xf0\x9f\x91\xa7"},
		{"a\xff"
		 "b",
		 "a\xef\xbf\xbd"
		 "b|"},
		{"abc\x03", "|"},
		{"ab\x1b[5~\x1b[15~\x1b[Zc", "abc|"},
		{"/a\t", "/agent |"},
		{"/h\t", "/hel|"},
		{"x\t", "x|"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct desk desk = desk_open();

		type(&desk, rows[i].keys);
		has(&desk, rows[i].text);
		desk_close(&desk);
		/* The same in pieces of one byte. */
		desk = desk_open();
		for (const char *at = rows[i].keys; *at; at++) {
			assert_true(typing_add(&desk.typing, (struct str){at, 1}));
			desk_take(&desk);
		}
		has(&desk, rows[i].text);
		desk_close(&desk);
	}
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
	type(&desk, "first\rsecond\\\rrow\r kept out\rdraft");
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
	type(&desk, "make one\rother\rmake two\rmine\x12"
		    "ma");
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
	assert_string_equal(out.data, "!\r\x1b[6C");
	buf_clear(&out);
	type(&desk, "\x7f\x7f");
	line_frame_compose(&shown, &desk.line, &look);
	line_frame_change(&wanted, &shown, &out);
	assert_string_equal(out.data, "\r  tw\x1b[K\r\x1b[4C");
	line_frame_fini(&shown);
	line_frame_fini(&wanted);
	buf_fini(&out);
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
		cmocka_unit_test(an_escape_alone_is_known_when_nothing_follows),
		cmocka_unit_test(what_is_pasted_is_text),
		cmocka_unit_test(a_paste_without_an_end_ends_when_nothing_comes),
		cmocka_unit_test(the_history_is_gone_through_and_left),
		cmocka_unit_test(a_search_finds_older_ones_and_can_be_left),
		cmocka_unit_test(leaving_takes_two_of_them),
		cmocka_unit_test(blank_lines_are_not_sent),
		cmocka_unit_test(it_stops_at_its_ceiling),
		cmocka_unit_test(rows_are_broken_by_what_is_seen),
		cmocka_unit_test(of_a_high_text_the_rows_around_the_cursor_are_shown),
		cmocka_unit_test(only_what_changed_is_written),
		cmocka_unit_test(an_erased_frame_counts_the_rows_of_a_narrower_terminal),
		cmocka_unit_test(the_file_is_bounded_private_and_read_again),
		cmocka_unit_test(a_file_that_grew_is_cut_to_its_newer_half),
		cmocka_unit_test(lines_that_we_never_wrote_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
