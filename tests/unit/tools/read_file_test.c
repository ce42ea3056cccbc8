/*
 * read_file: ranges, ceilings, encodings, large files, and everything that is no text
 * file.
 */
#include "hand.h"

#include "base/hash.h"
#include "base/memory.h"
#include "tools/tools.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void shows_numbered_lines_after_one_line_of_facts(void **state)
{
	struct hand *hand = *state;
	char hash[HASH_MARK_HEX + 1];
	auto_free char *path = hand_path(hand, "src/a.c");

	hand_puts(hand, "src/a.c", "one\n\ttwo\n\nfour\n");
	hand_run(hand, &read_file_tool, "{\"path\": \"src/a.c\"}");
	hand_assert_status(hand, RESULT_DONE);
	assert_string_equal(hand->result.text.data,
			    "[src/a.c: lines 1-4 of 4]\n1\tone\n2\t\ttwo\n3\t\n4\tfour\n");
	hash_mark(STR("one\n\ttwo\n\nfour\n"), hash);
	assert_string_equal(value_text(value_member(hand->seen, path)), hash);
	assert_string_equal(value_text(value_member(hand->result.details, "hash")), hash);
	assert_int_equal(value_integer(value_member(hand->result.details, "total_lines")),
			 4);
}

static void shows_a_range_and_says_where_it_goes_on(void **state)
{
	struct hand *hand = *state;

	hand_puts(hand, "a", "1\n2\n3\n4\n5\n");
	hand_run(hand, &read_file_tool,
		 "{\"path\": \"a\", \"start_line\": 2, \"end_line\": 3}");
	assert_string_equal(hand->result.text.data,
			    "[a: lines 2-3 of 5; next: start_line=4]\n2\t2\n3\t3\n");
	hand_run(hand, &read_file_tool,
		 "{\"path\": \"a\", \"start_line\": 4, \"limit\": 10}");
	assert_string_equal(hand->result.text.data, "[a: lines 4-5 of 5]\n4\t4\n5\t5\n");
	hand_run(hand, &read_file_tool, "{\"path\": \"a\", \"start_line\": 6}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "Line 6 does not exist; a has 5 lines.");
	hand_run(hand, &read_file_tool,
		 "{\"path\": \"a\", \"start_line\": 4, \"end_line\": 2}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "end_line 2 lies before start_line 4");
}

/* Wherever in a line it stands, a byte is shown as what it is. */
static void each_byte_is_shown_at_each_place(void **state)
{
	struct hand *hand = *state;
	char line[40], wanted[64];

	for (unsigned c = 1; c < 256; c++) {
		/* Two places of which one is in the middle of sixteen bytes. */
		const size_t at = c % (sizeof(line) - 2);

		if (c == '\n' || c == '\r')
			continue;
		memset(line, 'x', sizeof(line) - 1);
		line[sizeof(line) - 1] = '\n';
		line[at] = (char)c;
		hand_write(hand, "a", line, sizeof(line));
		hand_run(hand, &read_file_tool, "{\"path\": \"a\"}");
		hand_assert_status(hand, RESULT_DONE);
		if (c == '\t' || (c >= 0x20 && c < 0x7f))
			(void)snprintf(wanted, sizeof(wanted), "]\n1\t%.*s%c%.*s\n",
				       (int)at, line, (int)c,
				       (int)(sizeof(line) - 2 - at), line + at + 1);
		else
			(void)snprintf(wanted, sizeof(wanted), "]\n1\t%.*s\\x%02X%.*s\n",
				       (int)at, line, c, (int)(sizeof(line) - 2 - at),
				       line + at + 1);
		hand_assert_says(hand, wanted);
	}
}

static void tells_what_is_unusual(void **state)
{
	struct hand *hand = *state;

	hand_puts(hand, "crlf", "a\r\nb\r\n");
	hand_run(hand, &read_file_tool, "{\"path\": \"crlf\"}");
	assert_string_equal(hand->result.text.data,
			    "[crlf: lines 1-2 of 2; line ends CRLF]\n1\ta\n2\tb\n");
	hand_puts(hand, "mixed", "a\r\nb\nc");
	hand_run(hand, &read_file_tool, "{\"path\": \"mixed\"}");
	hand_assert_says(hand, "line ends mixed (1 CRLF, 1 LF); no newline at its end]");
	hand_puts(hand, "bom",
		  "\xef\xbb\xbf"
		  "x\n");
	hand_run(hand, &read_file_tool, "{\"path\": \"bom\"}");
	hand_assert_says(hand, "UTF-8 with byte-order mark]\n1\tx\n");
	hand_puts(hand, "latin", "caf\xe9\n\x1b[31mred\n");
	hand_run(hand, &read_file_tool, "{\"path\": \"latin\"}");
	hand_assert_says(hand, "not UTF-8, such bytes are shown as \\xHH]\n1\tcaf\\xE9\n"
			       "2\t\\x1B[31mred\n");
	hand_puts(hand, "empty", "");
	hand_run(hand, &read_file_tool, "{\"path\": \"empty\"}");
	assert_string_equal(hand->result.text.data, "[empty is empty]\n");
	hand_assert_status(hand, RESULT_DONE);
}

static void utf_16_is_shown_as_text(void **state)
{
	struct hand *hand = *state;
	static const char little[] = "\xff\xfeh\0i\0\n\0=\xd8\0\xde\n\0";
	static const char big[] = "\xfe\xff\0h\0i\0\n";

	hand_write(hand, "little", little, sizeof(little) - 1);
	hand_run(hand, &read_file_tool, "{\"path\": \"little\"}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_says(hand, "UTF-16 LE, shown as text; it cannot be edited here");
	hand_assert_says(hand, "1\thi\n2\t\xf0\x9f\x98\x80\n");
	hand_write(hand, "big", big, sizeof(big) - 1);
	hand_run(hand, &read_file_tool, "{\"path\": \"big\"}");
	hand_assert_says(hand, "1\thi\n");
}

static void what_is_no_text_file_has_its_own_answer(void **state)
{
	struct hand *hand = *state;
	auto_free char *fifo = hand_path(hand, "fifo");

	hand_write(hand, "binary",
		   "\x7f"
		   "ELF\0\1\2",
		   7);
	hand_run(hand, &read_file_tool, "{\"path\": \"binary\"}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "binary is a binary file (7 B), not text.");
	assert_int_equal(mkfifo(fifo, 0644), 0);
	hand_run(hand, &read_file_tool, "{\"path\": \"fifo\"}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "a FIFO, socket or device");
	hand_puts(hand, "src/b.c", "");
	hand_puts(hand, "src/deep/c.c", "");
	hand_run(hand, &read_file_tool, "{\"path\": \"src\"}");
	hand_assert_status(hand, RESULT_DONE);
	assert_string_equal(hand->result.text.data,
			    "[src is a folder with 2 entries; list_files shows more of it]\n"
			    "b.c\ndeep/\n");
	hand_run(hand, &read_file_tool, "{\"path\": \"b.c\"}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "Did you mean: src/b.c?");
	hand_run(hand, &read_file_tool, "{\"path\": \"../outside\"}");
	hand_assert_says(hand, "does not exist, or lies outside");
}

static void one_answer_is_bounded_by_lines(void **state)
{
	struct hand *hand = *state;
	struct buf text;

	buf_init(&text, 1 << 20);
	for (int i = 1; i <= 5000; i++)
		buf_addf(&text, "%d\n", i);
	hand_write(hand, "many", text.data, text.size);
	hand_run(hand, &read_file_tool, "{\"path\": \"many\", \"start_line\": 1}");
	hand_assert_says(hand, "[many: lines 1-2000 of 5000; next: start_line=2001]\n");
	hand_assert_says(hand, "\n2000\t2000\n");
	assert_int_equal(hand->result.left_out_lines, 3000);
	buf_fini(&text);
}

static void one_answer_is_bounded_by_bytes(void **state)
{
	struct hand *hand = *state;
	struct buf text;

	buf_init(&text, 8 << 20);
	for (int i = 0; i < 1000; i++)
		buf_addf(&text, "%0100d\n", i);
	hand_write(hand, "wide", text.data, text.size);
	hand_run(hand, &read_file_tool, "{\"path\": \"wide\", \"start_line\": 1}");
	assert_in_range(hand->result.text.size, 45000, 50200);
	hand_assert_says(hand, "next: start_line=");
	buf_clear(&text);
	for (int i = 0; i < 70000; i++)
		buf_addc(&text, 'x');
	buf_adds(&text, "\nshort\n");
	hand_write(hand, "line", text.data, text.size);
	hand_run(hand, &read_file_tool, "{\"path\": \"line\"}");
	hand_assert_says(hand, "x [… 68000 of this line's 70000 bytes left out …] x");
	hand_assert_says(hand, "x\n2\tshort\n");
	hand_assert_says(hand, "asked for alone");
	hand_run(hand, &read_file_tool,
		 "{\"path\": \"line\", \"start_line\": 1, \"end_line\": 1}");
	assert_in_range(hand->result.text.size, 49000, 50500);
	hand_assert_says(hand, "x [… 20100 of this line's 70000 bytes left out …] x");
	buf_fini(&text);
}

/* The first line of TEXT is told with HEAD, the others with REST; its mark is its hash. */
static void assert_in_pieces(struct hand *hand, const char *text, size_t size,
			     const char *head, const char *rest)
{
	char hash[HASH_MARK_HEX + 1];
	auto_free char *path = hand_path(hand, "a");

	hand_write(hand, "a", text, size);
	hand_run(hand, &read_file_tool, "{\"path\": \"a\", \"limit\": 1}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_says(hand, head);
	hash_mark((struct str){text, size}, hash);
	assert_string_equal(value_text(value_member(hand->seen, path)), hash);
	if (rest == NULL)
		return;
	hand_run(hand, &read_file_tool,
		 "{\"path\": \"a\", \"start_line\": 2, \"limit\": 100}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_says(hand, rest);
}

/* What is over 64 KiB is not held as a whole: it is shown, counted and hashed all the same. */
static void pieces_are_as_the_whole(void **state)
{
	enum { PIECE = 64 << 10, SIZE = 3 * PIECE };
	struct hand *hand = *state;
	auto_free char *text = memory_alloc(SIZE + 1);

	/* A line end of two bytes that lies in two pieces, and a line over several. */
	memset(text, 'x', SIZE);
	memcpy(text, "first\r\n", 7);
	memcpy(text + PIECE - 1, "\r\n", 2);
	memcpy(text + SIZE - 6, "\r\nend", 5);
	text[SIZE - 1] = '!';
	assert_in_pieces(hand, text, SIZE,
			 "[a: lines 1-1 of 4; line ends CRLF; no newline at its end; next: "
			 "start_line=2]\n1\tfirst\n",
			 "4\tend!\n");
	memcpy(text + PIECE - 1, "\n\n", 2);
	assert_in_pieces(hand, text, SIZE,
			 "of 5; line ends mixed (2 CRLF, 2 LF); no newline at its end",
			 "3\t\n4\txxx");
	/* Nothing but line ends, and one line without any. */
	memset(text, '\n', SIZE);
	assert_in_pieces(hand, text, SIZE, "[a: lines 1-1 of 196608; next: start_line=2]",
			 "2\t\n3\t\n");
	memset(text, 'y', SIZE);
	assert_in_pieces(hand, text, SIZE, "[a: lines 1-1 of 1; no newline at its end; ",
			 NULL);
	/* A mark at its begin is hashed and not shown. */
	memcpy(text, "\xef\xbb\xbfz\n", 5);
	assert_in_pieces(hand, text, SIZE,
			 "UTF-8 with byte-order mark; no newline at its end; next: "
			 "start_line=2]\n1\tz\n",
			 NULL);
	/* Kinds that are no text keep their answers. */
	for (size_t i = 0; i < SIZE; i += 2)
		memcpy(text + i, "a", 2);
	memcpy(text, "\xff\xfe", 2);
	hand_write(hand, "a", text, SIZE);
	hand_run(hand, &read_file_tool, "{\"path\": \"a\"}");
	hand_assert_says(hand, "UTF-16 LE, shown as text");
	memset(text, 'y', SIZE);
	text[9] = '\0';
	hand_write(hand, "a", text, SIZE);
	hand_run(hand, &read_file_tool, "{\"path\": \"a\"}");
	hand_assert_says(hand, "a is a binary file (192 KiB), not text.");
}

static void a_large_file_is_read_in_pieces(void **state)
{
	struct hand *hand = *state;
	auto_free char *path = hand_path(hand, "large");
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (int i = 1; i <= 400000; i++)
		assert_true(fprintf(file, "line %d of a file over the limit for hashes\n",
				    i) > 0);
	assert_int_equal(fclose(file), 0);
	hand_run(hand, &read_file_tool,
		 "{\"path\": \"large\", \"start_line\": 300000, \"end_line\": 300002}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_says(hand, "[large: lines 300000-300002 of more; the file has ");
	hand_assert_says(hand, "next: start_line=300003]\n300000\tline 300000 of");
	assert_int_equal(strncmp(value_text(value_member(hand->seen, path)), "stat:", 5), 0);
	hand_run(hand, &read_file_tool, "{\"path\": \"large\", \"start_line\": 399999}");
	hand_assert_says(hand, "[large: lines 399999-400000 of 400000]\n");
	hand_run(hand, &read_file_tool, "{\"path\": \"large\", \"start_line\": 400001}");
	hand_assert_says(hand, "large has 400000 lines");
}

static void a_sparse_gigabyte_is_seen_to_be_binary_at_once(void **state)
{
	struct hand *hand = *state;
	auto_free char *path = hand_path(hand, "sparse");
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	assert_int_equal(ftruncate(fd, 1 << 30), 0);
	(void)close(fd);
	hand_run(hand, &read_file_tool, "{\"path\": \"sparse\"}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "sparse is a binary file (1 GiB)");
}

static void the_deadline_counts_for_large_files(void **state)
{
	struct hand *hand = *state;
	auto_free char *path = hand_path(hand, "large");
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	char text[8192];

	memset(text, 'a', sizeof(text));
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	assert_int_equal(ftruncate(fd, 1 << 30), 0);
	(void)close(fd);
	hand_run_for(hand, &read_file_tool, 0, "{\"path\": \"large\", \"start_line\": 9}");
	hand_assert_status(hand, RESULT_TIMED_OUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, hand_set_up, hand_tear_down)
		TEST(shows_numbered_lines_after_one_line_of_facts),
		TEST(shows_a_range_and_says_where_it_goes_on),
		TEST(each_byte_is_shown_at_each_place),
		TEST(tells_what_is_unusual),
		TEST(utf_16_is_shown_as_text),
		TEST(what_is_no_text_file_has_its_own_answer),
		TEST(one_answer_is_bounded_by_lines),
		TEST(one_answer_is_bounded_by_bytes),
		TEST(pieces_are_as_the_whole),
		TEST(a_large_file_is_read_in_pieces),
		TEST(a_sparse_gigabyte_is_seen_to_be_binary_at_once),
		TEST(the_deadline_counts_for_large_files),
	};

	return cmocka_run_group_tests_name("tools-read_file", tests, NULL, NULL);
}
