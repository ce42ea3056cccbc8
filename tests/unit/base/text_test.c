/* Tests of base/text. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "base/text/text.h"

static void random_digits_fill_the_text_and_differ(void **state)
{
	char one[41], other[41];

	(void)state;
	assert_true(text_random_hex(one, 40));
	assert_true(text_random_hex(other, 40));
	assert_int_equal(strspn(one, "0123456789abcdef"), 40);
	assert_int_equal(strlen(one), 40);
	assert_string_not_equal(one, other);
}

static void lengths_of_characters(void **state)
{
	static const struct {
		struct str text;
		size_t length;
	} cases[] = {
		{STR(""), 0},
		{STR("a"), 1},
		{STR("\0"), 1},
		{STR("\x7f"), 1},
		{STR("\x80"), 0},
		{STR("\xc1\x81"), 0},
		{STR("\xc2\x80"), 2},
		{STR("\xc2"), 0},
		{STR("\xc2\xc0"), 0},
		{STR("\xe0\x9f\xbf"), 0},
		{STR("\xe0\xa0\x80"), 3},
		{STR("\xed\x9f\xbf"), 3},
		{STR("\xed\xa0\x80"), 0},
		{STR("\xef\xbf\xbf"), 3},
		{STR("\xef\xbf"), 0},
		{STR("\xf0\x8f\xbf\xbf"), 0},
		{STR("\xf0\x90\x80\x80"), 4},
		{STR("\xf4\x8f\xbf\xbf"), 4},
		{STR("\xf4\x90\x80\x80"), 0},
		{STR("\xf5\x80\x80\x80"), 0},
		{STR("\xff"), 0},
		{STR("\xf0\x90\x80q"), 0},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++)
		assert_int_equal(text_utf8_length(cases[i].text), cases[i].length);
}

static void one_bad_byte_anywhere_is_not_utf8(void **state)
{
	char text[200];

	(void)state;
	assert_true(text_is_utf8(STR("")));
	assert_true(text_is_utf8((struct str){NULL, 0}));
	for (size_t size = 1; size < sizeof(text); size += 7) {
		memset(text, 'a', sizeof(text));
		assert_true(text_is_utf8((struct str){text, size}));
		for (size_t i = 0; i < size; i++) {
			text[i] = (char)0xe9;
			assert_false(text_is_utf8((struct str){text, size}));
			text[i] = 'a';
		}
		memset(text, 0xc3, size);
		assert_false(text_is_utf8((struct str){text, size}));
	}
	assert_true(text_is_utf8(
		STR("Grüße, 世界 and 🦊, and forty more bytes of plain ASCII")));
}

static void borders_do_not_cut_characters(void **state)
{
	struct str text = STR("aé世🦊\x80\x80\x80\x80z");
	static const size_t borders[] = {0, 1,  1,  3,  3,  3,  6,  6, 6,
					 6, 10, 11, 12, 13, 14, 15, 15};

	(void)state;
	for (size_t at = 0; at < UNIT_COUNT(borders); at++)
		assert_int_equal(text_character_border(text, at), borders[at]);
}

static void cleaning(void **state)
{
	static const struct {
		struct str text, clean;
	} cases[] = {
		{STR(""), STR("")},
		{STR("a\tb\nc"), STR("a\tb\nc")},
		{STR("a\r\nb\r\n"), STR("a\nb\n")},
		{STR("10%\r20%\r100%\n"), STR("100%\n")},
		{STR("10%\r20%\r\r\n"), STR("20%\n")},
		{STR("first\n10%\r20%"), STR("first\n20%")},
		{STR("10%\r"), STR("10%")},
		{STR("\033[1;31mred\033[0m"), STR("red")},
		{STR("\033[2J\033[H\033[?25lx"), STR("x")},
		{STR("load\r\033[Kdone\n"), STR("done\n")},
		{STR("load\r\033[K\n"), STR("\n")},
		{STR("load\033[2K\rdone\n"), STR("done\n")},
		{STR("keep\033[K\n"), STR("keep\n")},
		{STR("\033]0;title\ax"), STR("x")},
		{STR("\033]8;;http://e\033\\link\033]8;;\033\\."), STR("link.")},
		{STR("\033Pq#0\033\\x"), STR("x")},
		{STR("\033(Bx\033=y\033cz"), STR("xyz")},
		/* What is no sequence stays to be seen, and hides nothing. */
		{STR("\033]0;never ends\nmore"), STR("\\x1B]0;never ends\nmore")},
		{STR("\033]0;\033[31mred"), STR("\\x1B]0;red")},
		{STR("\033[31"), STR("\\x1B[31")},
		{STR("\033"), STR("\\x1B")},
		{STR("\033\033[0m"), STR("\\x1B")},
		{STR("\033\0"), STR("\\x1B\\x00")},
		{STR("\033[3\n1m"), STR("\\x1B[3\n1m")},
		{STR("\0\a\b\v\f\x7f"), STR("\\x00\\x07\\x08\\x0B\\x0C\\x7F")},
		{STR("caf\xe9 \xff"), STR("caf\\xE9 \\xFF")},
		{STR("café 世界 🦊"), STR("café 世界 🦊")},
		{STR("\xc2\x9b\x33m"), STR("\\xC2\\x9B3m")},
		{STR("\xc2\xa0"), STR("\xc2\xa0")},
		{STR("\xc2"), STR("\\xC2")},
	};
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		buf_clear(&out);
		buf_adds(&out, "line before\n");
		assert_true(text_clean(cases[i].text, &out));
		assert_string_equal(out.data + 12, cases[i].clean.data);
	}
	buf_fini(&out);
}

static void cleaning_stops_at_the_ceiling(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 4);
	assert_false(text_clean(STR("12345"), &out));
	buf_clear(&out);
	assert_false(text_clean(STR("123\033"), &out));
	buf_clear(&out);
	assert_false(text_clean(STR("1234\n"), &out));
	buf_clear(&out);
	/* Only the last state has to fit. */
	assert_true(text_clean(STR("1234\r5678\r\033[Kend"), &out));
	assert_string_equal(out.data, "end");
	buf_fini(&out);
}

static void short_texts_are_not_cut(void **state)
{
	const struct text_limits limits = {100, 10, 20};
	struct text_cut cut = {1, 1};
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	assert_true(text_shorten(STR("one\ntwo"), &limits, &out, &cut));
	assert_string_equal(out.data, "one\ntwo");
	assert_int_equal(cut.bytes + cut.lines, 0);
	buf_clear(&out);
	assert_true(text_shorten(STR(""), &limits, &out, &cut));
	assert_string_equal(out.data, "");
	buf_fini(&out);
}

static void the_middle_lines_are_left_out(void **state)
{
	const struct text_limits limits = {.lines = 6};
	struct text_cut cut;
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	assert_true(text_shorten(STR("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), &limits, &out, &cut));
	assert_string_equal(out.data, "1\n2\n[… 3 lines, 6 bytes left out …]\n6\n7\n8\n9\n");
	assert_int_equal(cut.lines, 3);
	assert_int_equal(cut.bytes, 6);
	buf_fini(&out);
}

static void bytes_cut_on_line_borders(void **state)
{
	const struct text_limits limits = {.bytes = 12};
	struct text_cut cut;
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	/* A third is four bytes: "aaa\n"; the rest holds "eee\n" and "fff". */
	assert_true(text_shorten(STR("aaa\nbbb\nccc\nddd\neee\nfff"), &limits, &out, &cut));
	assert_string_equal(out.data, "aaa\n[… 3 lines, 12 bytes left out …]\neee\nfff");
	assert_int_equal(cut.bytes, 12);
	buf_fini(&out);
}

static void what_the_head_cannot_use_the_tail_gets(void **state)
{
	const struct text_limits limits = {.bytes = 30};
	struct text_cut cut;
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	assert_true(text_shorten(STR("a\nbbbbbbbbbbbbbbbbbbbb\nccccccc\nddddddd\neeeeeee\n"),
				 &limits, &out, &cut));
	assert_string_equal(out.data,
			    "a\n[… 1 line, 21 bytes left out …]\nccccccc\nddddddd\neeeeeee\n");
	buf_fini(&out);
}

static void one_endless_line_is_cut_between_characters(void **state)
{
	const struct text_limits limits = {.bytes = 10};
	struct text_cut cut;
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	assert_true(text_shorten(STR("éééééééééé"), &limits, &out, &cut));
	/* Three bytes of head hold one é, eight bytes of tail four. */
	assert_string_equal(out.data, "é\n[… 1 line, 10 bytes left out …]\néééé");
	assert_int_equal(cut.bytes, 10);
	buf_fini(&out);
}

static void long_lines_are_cut_with_a_mark(void **state)
{
	const struct text_limits limits = {.line_bytes = 4};
	struct text_cut cut;
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	assert_true(text_shorten(STR("12345678\n1234\naé€\n12345"), &limits, &out, &cut));
	assert_string_equal(out.data, "123 [… 4 of this line's 8 bytes left out …] 8\n1234\n"
				      "aé [… 3 of this line's 6 bytes left out …] \n"
				      "123 [… 1 of this line's 5 bytes left out …] 5");
	assert_int_equal(cut.bytes, 8);
	assert_int_equal(cut.lines, 0);
	assert_int_equal(cut.long_lines, 3);
	buf_fini(&out);
}

/* As add_line of a caller that holds only parts. */
static void a_long_line_shows_its_ends_and_a_place(void **state)
{
	static const struct str text = STR("abcdefghijklmnopqrstuvwxyz");
	struct text_line line = {.size = 26, .held[0].bytes = text};
	struct text_line_cut cut;
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	cut = text_add_line(&line, 26, NULL, &out);
	assert_string_equal(out.data, "abcdefghijklmnopqrstuvwxyz");
	assert_int_equal(cut.left_out, 0);
	buf_clear(&out);
	cut = text_add_line(&line, 10, NULL, &out);
	assert_string_equal(out.data,
			    "abcdefgh [… 16 of this line's 26 bytes left out …] yz");
	assert_int_equal(cut.left_out, 16);
	assert_int_equal(cut.gap, 8);
	buf_clear(&out);
	/* Two at each end, six around the place: one third of the spare before it. */
	line.place = 12;
	line.place_end = 15;
	cut = text_add_line(&line, 10, NULL, &out);
	assert_string_equal(out.data,
			    "ab [… 9 of this line's 26 bytes left out …] lmnopq [… 7 of "
			    "this line's 26 bytes left out …] yz");
	assert_int_equal(cut.left_out, 16);
	assert_int_equal(cut.gap, 17);
	/* Only these bytes have to be held. */
	line.held[0].bytes = str_part(text, 0, 2);
	line.held[1].at = 11;
	line.held[1].bytes = str_part(text, 11, 6);
	line.held[2].at = 20;
	line.held[2].bytes = str_part(text, 20, 6);
	buf_clear(&out);
	assert_int_equal(text_add_line(&line, 10, NULL, &out).left_out, 16);
	assert_non_null(strstr(out.data, "] lmnopq ["));
	/* A byte that is not held is left out and counted. */
	line.held[2].bytes = STR("");
	buf_clear(&out);
	assert_int_equal(text_add_line(&line, 10, NULL, &out).left_out, 18);
	/* A place that the ends show needs no part of its own; one too long shows its beginning. */
	line = (struct text_line){.size = 26, .place = 5, .place_end = 8};
	line.held[0].bytes = text;
	buf_clear(&out);
	assert_int_equal(text_add_line(&line, 10, NULL, &out).gap, 8);
	line.place = 8;
	line.place_end = 26;
	buf_clear(&out);
	(void)text_add_line(&line, 10, NULL, &out);
	assert_non_null(strstr(out.data, "] ijklmn ["));
	assert_int_equal(text_line_head(2000), 1500);
	buf_fini(&out);
}

static void line_ends_are_part_of_the_budget(void **state)
{
	const struct text_limits limits = {.bytes = 24, .line_bytes = 4};
	struct text_cut cut;
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	assert_true(text_shorten(STR("1111\n2222\n3333\n4444\n5555\n6666\n"), &limits,
				 &out, &cut));
	assert_string_equal(out.data,
			    "1111\n[… 2 lines, 10 bytes left out …]\n4444\n5555\n6666\n");
	buf_fini(&out);
}

/* Every limit at once on random texts: budgets hold and what was left out adds up. */
static void shortening_keeps_its_budgets(void **state)
{
	struct buf text, out;

	(void)state;
	srandom(1);
	buf_init(&text, 10000);
	buf_init(&out, 100000);
	for (int round = 0; round < 3000; round++) {
		struct text_limits limits = {(size_t)random() % 200,
					     (size_t)random() % 20, (size_t)random() % 30};
		size_t size = (size_t)random() % 400, marks = 0, at = 0;
		struct text_cut cut;

		buf_clear(&text);
		buf_clear(&out);
		while (text.size < size)
			buf_adds(&text, random() % 8 ? random() % 2 ? "é" : "e" : "\n");
		assert_true(text_shorten(buf_str(&text), &limits, &out, &cut));
		assert_true(text_is_utf8(buf_str(&out)));
		for (; (at = str_find(buf_str(&out), STR("[…"), at)) != (size_t)-1; at++)
			marks++;
		assert_int_equal(marks == 0, cut.bytes == 0);
		if (marks == 0)
			assert_true(str_equal(buf_str(&out), buf_str(&text)));
		if (limits.lines)
			assert_true(text_count_lines(buf_str(&out)) <= limits.lines + 2);
		/* A mark is under 60 bytes, a line that is cut has one. */
		if (limits.bytes)
			assert_true(out.size <= limits.bytes + 60 * marks);
	}
	buf_fini(&text);
	buf_fini(&out);
}

static void shortening_stops_at_the_ceiling(void **state)
{
	const struct text_limits limits = {.lines = 3};
	struct text_cut cut = {7, 7};

	(void)state;
	for (size_t max = 0; max < 40; max++) {
		struct buf out;
		bool fits;

		buf_init(&out, max);
		fits = text_shorten(STR("1\n2\n3\n4\n5\n"), &limits, &out, &cut);
		assert_int_equal(fits,
				 max >= strlen("1\n[… 2 lines, 4 bytes left out …]\n4\n5\n"));
		assert_int_equal(cut.bytes, fits ? 4 : 7);
		buf_fini(&out);
		cut.bytes = 7;
	}
}

static void binary_texts(void **state)
{
	auto_free char *late = memory_alloc(9000);

	(void)state;
	assert_false(text_is_binary(STR("")));
	assert_false(text_is_binary(STR("plain\ttext\r\n\f\033[31m")));
	assert_true(text_is_binary(STR("a\0b")));
	assert_true(text_is_binary(STR("\1\2\3\4abcdef")));
	assert_false(text_is_binary(STR("\1\2\3abcdefg")));
	assert_false(text_is_binary(STR("\xff\xfe\xe9latin")));
	memset(late, 'a', 8999);
	assert_false(text_is_binary((struct str){late, 9000}));
	late[8191] = 0;
	assert_true(text_is_binary((struct str){late, 9000}));
}

/* The same, byte by byte. */
static bool is_binary_by_bytes(struct str text)
{
	size_t controls = 0;

	text = str_part(text, 0, 8192);
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];

		if (c == 0)
			return true;
		controls +=
			c == 0x7f || (c > 0 && c < 0x20 && !strchr("\b\t\n\f\r\x1b", c));
	}
	return controls * 100 > text.size * 30;
}

static void bytes_are_judged_as_one_by_one(void **state)
{
	enum { SIZE_MAX_TRIED = 9000 };
	auto_free char *bytes = memory_alloc(SIZE_MAX_TRIED);
	size_t binary = 0;

	(void)state;
	srandom(3);
	for (unsigned i = 0; i < 600; i++) {
		size_t size = (size_t)random() % (i % 20 ? 200 : SIZE_MAX_TRIED);
		size_t ends = 0;
		struct str text = {bytes, size};

		for (size_t k = 0; k < size; k++) {
			/* About as many control bytes as decide; now and then a NUL. */
			bytes[k] = (char)(random() % 0x20);
			if (random() % 3)
				bytes[k] = (char)(random() % 0x60 + 0x20);
			if (bytes[k] == 0 && random() % 64)
				bytes[k] = '\1';
			ends += bytes[k] == '\n';
		}
		assert_int_equal(text_count_line_ends(text), ends);
		assert_int_equal(text_is_binary(text), is_binary_by_bytes(text));
		binary += text_is_binary(text);
	}
	assert_in_range(binary, 100, 500);
	/* More than a lane of a vector can count. */
	memset(bytes, '\n', SIZE_MAX_TRIED);
	assert_int_equal(text_count_line_ends((struct str){bytes, SIZE_MAX_TRIED}),
			 SIZE_MAX_TRIED);
	assert_false(text_is_binary((struct str){bytes, SIZE_MAX_TRIED}));
	memset(bytes, '\1', SIZE_MAX_TRIED);
	assert_true(text_is_binary((struct str){bytes, SIZE_MAX_TRIED}));
}

static void lines_are_counted(void **state)
{
	(void)state;
	assert_int_equal(text_count_lines(STR("")), 0);
	assert_int_equal(text_count_lines((struct str){NULL, 0}), 0);
	assert_int_equal(text_count_lines(STR("a")), 1);
	assert_int_equal(text_count_lines(STR("a\n")), 1);
	assert_int_equal(text_count_lines(STR("\n\na")), 3);
}

static void sizes_for_people(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{1023, "1023 B"},
		{1024, "1 KiB"},
		{1536, "1.5 KiB"},
		{1048524, "1023.9 KiB"},
		{1048575, "1 MiB"},
		{1048576, "1 MiB"},
		{(uint64_t)3 << 29, "1.5 GiB"},
		{UINT64_MAX, "16 EiB"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		assert_ptr_equal(text_size(cases[i].bytes, text), text);
		assert_string_equal(text, cases[i].text);
	}
}

static void distances(void **state)
{
	static const struct {
		const char *a, *b;
		size_t limit, distance;
	} cases[] = {
		{"", "", 0, 0},
		{"abc", "abc", 0, 0},
		{"abc", "abd", 0, 1},
		{"abc", "abd", 5, 1},
		{"kitten", "sitting", 5, 3},
		{"kitten", "sitting", 2, 3},
		{"kitten", "sitting", 1, 2},
		{"ab", "ba", 3, 1},
		{"raed_file", "read_file", 3, 1},
		{"", "abc", 5, 3},
		{"abc", "", 2, 3},
		{"abcdef", "x", 2, 3},
		{"ca", "abc", 5, 3},
		{"a", "bbbbbbbbbb", SIZE_MAX, 10},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct str a = str_of(cases[i].a), b = str_of(cases[i].b);

		assert_int_equal(text_distance(a, b, cases[i].limit), cases[i].distance);
		assert_int_equal(text_distance(b, a, cases[i].limit), cases[i].distance);
	}
}

/* The band around the diagonal must not change any answer. */
static void limits_only_cut_distances(void **state)
{
	(void)state;
	srandom(2);
	for (int round = 0; round < 3000; round++) {
		char a[12], b[12];
		struct str left = {a, (size_t)random() % sizeof(a)};
		struct str right = {b, (size_t)random() % sizeof(b)};
		size_t whole;

		for (size_t i = 0; i < sizeof(a); i++) {
			a[i] = (char)('a' + random() % 3);
			b[i] = (char)('a' + random() % 3);
		}
		whole = text_distance(left, right, SIZE_MAX);
		for (size_t limit = 0; limit < 14; limit++)
			assert_int_equal(text_distance(left, right, limit),
					 whole > limit ? limit + 1 : whole);
	}
}

static void nearest_names(void **state)
{
	static const char *const names[] = {"read_file",  "write_file", "grep",
					    "list_files", "glob",       "bash",
					    NULL};
	static const char *const none[] = {NULL};

	(void)state;
	assert_string_equal(text_nearest("raed_file", names), "read_file");
	assert_string_equal(text_nearest("gerp", names), "grep");
	assert_string_equal(text_nearest("globb", names), "glob");
	assert_string_equal(text_nearest("bash", names), "bash");
	assert_string_equal(text_nearest("list_file", names), "list_files");
	assert_null(text_nearest("teleport", names));
	assert_null(text_nearest("x", names));
	assert_null(text_nearest("", names));
	assert_null(text_nearest("bash", none));
}

static void counts_with_nouns(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 100);
	text_add_count(&out, 0, "file");
	buf_addc(&out, ',');
	text_add_count(&out, 1, "file");
	buf_addc(&out, ',');
	text_add_count(&out, 12, "file");
	assert_string_equal(out.data, "0 files,1 file,12 files");
	buf_fini(&out);
}

static void sizes_of_people(void **state)
{
	static const char *const wrong[] = {"",
					    "x",
					    "-1",
					    "1.5G",
					    "1k",
					    "1KB",
					    " 1",
					    "1 ",
					    "K",
					    "0x1",
					    "1e3",
					    "1MM",
					    "99999999999999999999",
					    "9007199254740992K"};
	struct err err;
	uint64_t bytes = 7;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(wrong); i++) {
		assert_false(text_parse_size(wrong[i], &bytes, &err));
		assert_int_equal(bytes, 7);
		assert_int_equal(err.code, EINVAL);
		assert_non_null(strstr(err.text, "is not a size"));
	}
	assert_true(text_parse_size("0", &bytes, &err));
	assert_int_equal(bytes, 0);
	assert_true(text_parse_size("16K", &bytes, &err));
	assert_int_equal(bytes, 16384);
	assert_true(text_parse_size("512M", &bytes, &err));
	assert_int_equal(bytes, 536870912);
	assert_true(text_parse_size("2T", &bytes, NULL));
	assert_int_equal(bytes, (uint64_t)2 << 40);
	assert_true(text_parse_size("2G", &bytes, NULL));
	assert_true(bytes == (uint64_t)2 << 30);
	assert_true(text_parse_size("9223372036854775807", &bytes, &err));
	assert_true(bytes == INT64_MAX);
	assert_false(text_parse_size("9223372036854775808", &bytes, &err));
}

static void seconds_of_people(void **state)
{
	static const char *const wrong[] = {"",    "x",           "-1",         "1,5",
					    "1s",  ".5",          "1.",         "1e3",
					    "inf", "nan",         "1000000001", "0x1",
					    " 1",  "1.0000000001"};
	struct err err;
	double seconds = 7;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(wrong); i++) {
		assert_false(text_parse_seconds(wrong[i], &seconds, &err));
		assert_true(seconds == 7);
		assert_non_null(strstr(err.text, "is not a time"));
	}
	assert_true(text_parse_seconds("0", &seconds, &err) && seconds == 0);
	assert_true(text_parse_seconds("1.5", &seconds, &err) && seconds == 1.5);
	assert_true(text_parse_seconds("0.1", &seconds, &err) && seconds == 0.1);
	assert_true(text_parse_seconds("120", &seconds, &err) && seconds == 120);
	assert_true(text_parse_seconds("1000000000", &seconds, &err));
}

static void counts_of_people(void **state)
{
	uint64_t count = 7;
	struct err err;

	(void)state;
	assert_true(text_parse_count("20", 20, &count, &err));
	assert_int_equal(count, 20);
	assert_false(text_parse_count("21", 20, &count, &err));
	assert_int_equal(err.code, ERANGE);
	assert_string_equal(err.text, "21 is too large: at most 20");
	assert_false(text_parse_count("9", 5, &count, &err));
	assert_int_equal(err.code, ERANGE);
	assert_false(text_parse_count("", 20, &count, &err));
	assert_false(text_parse_count("-1", 20, &count, &err));
	assert_false(text_parse_count("2x", 20, &count, &err));
	assert_string_equal(err.text, "\"2x\" is not a number: give digits, as in 20");
	assert_int_equal(count, 20);
	assert_true(text_parse_count("18446744073709551615", UINT64_MAX, &count, &err));
	assert_true(count == UINT64_MAX);
	assert_false(text_parse_count("18446744073709551616", UINT64_MAX, &count, &err));
}

static void refusals_repeat_only_a_clean_piece(void **state)
{
	char word[1000];
	uint64_t bytes;
	struct err err;

	(void)state;
	memset(word, '\033', sizeof(word));
	word[sizeof(word) - 1] = '\0';
	assert_false(text_parse_size(word, &bytes, &err));
	assert_null(strchr(err.text, '\033'));
	assert_true(strlen(err.text) < 300);
}

static void names_cannot_disguise_their_line(void **state)
{
	static const struct {
		const char *name, *shown;
	} rows[] = {
		{"src/a b.c", "src/a b.c"},
		{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
		{"a\nb\x1b[31m", "a\\x0Ab\\x1B[31m"},
		{"a\xff", "a\\xFF"},
		{"x\xe2\x80\xaexyz.c", "x\\xE2\\x80\\xAExyz.c"},
		{"\xc2\x9b", "\\xC2\\x9B"},
	};
	struct buf out;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_init(&out, 256);
		text_add_name(&out, str_of(rows[i].name));
		assert_string_equal(out.data, rows[i].shown);
		buf_fini(&out);
	}
}

static void what_is_judged_by_its_look_has_nothing_without_ink(void **state)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{"rm -rf a/b", "rm -rf a/b"},
		{"gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x98\x80",
		 "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x98\x80"},
		{"a\xe2\x80\x8b", "a\\xE2\\x80\\x8B"},
		{"a\xc2\xad", "a\\xC2\\xAD"},
		{"a\xe3\x85\xa4", "a\\xE3\\x85\\xA4"},
		{"a\xc2\xa0z", "a\\xC2\\xA0z"},
		{"\xf3\xa0\x81\x81", "\\xF3\\xA0\\x81\\x81"},
		{"\xef\xbb\xbf", "\\xEF\\xBB\\xBF"},
		{"x\xe2\x80\xaex\n\xff", "x\\xE2\\x80\\xAEx\\x0A\\xFF"},
	};
	struct buf out;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_init(&out, 256);
		text_add_exact(&out, str_of(rows[i].text));
		assert_string_equal(out.data, rows[i].shown);
		buf_fini(&out);
	}
}

static void each_hexadecimal_digit_and_nothing_else(void **state)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";

	(void)state;
	for (int c = 0; c < 256; c++) {
		const char *at = c ? strchr(digits, c) : NULL;

		if (!at)
			assert_int_equal(text_hex_digit((char)c), -1);
		else
			assert_int_equal(text_hex_digit((char)c), (at - digits) % 16);
	}
}

static void a_text_without_its_middle_is_cut_at_both_sides_of_the_gap(void **state)
{
	static const struct {
		const char *head, *tail;
		struct text_limits limits;
		const char *wanted;
		size_t bytes, long_lines;
	} rows[] = {
		/* All that was kept has room. */
		{"a\nb\n", "c\nd", {0}, "a\nb\n[… 10 bytes left out …]\nc\nd", 10, 0},
		{"a\nbb", "cc\nd\n", {0}, "a\nbb\n[… 10 bytes left out …]\ncc\nd\n", 10, 0},
		/* Whole lines, a third of the bytes before the gap. */
		{"aa\nbb\ncc\n",
		 "dd\nee\nff\n",
		 {.bytes = 12},
		 "aa\n[… 19 bytes left out …]\nee\nff\n",
		 19,
		 0},
		{"aa\nbb\ncc\n",
		 "dd\nee\nff\n",
		 {.bytes = 12, .head_bytes = 7},
		 "aa\nbb\n[… 19 bytes left out …]\nff\n",
		 19,
		 0},
		{"aa\nbb\ncc\n",
		 "dd\nee\nff\n",
		 {.lines = 3},
		 "aa\n[… 19 bytes left out …]\nee\nff\n",
		 19,
		 0},
		/* Not even one line fits: a piece of it, in whole characters. */
		{"aaé", "éaaaaa", {.bytes = 9}, "aa\n[… 12 bytes left out …]\néaaaaa", 12, 0},
		/* Of a torn line the part at its own end is shown. */
		{"0123456789012345",
		 "0123456789012345",
		 {.line_bytes = 10},
		 "01234567\n[… 32 bytes left out …]\n45",
		 32,
		 2},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct text_cut cut = {1, 1, 1};
		struct buf out;

		buf_init(&out, 1 << 10);
		text_shorten_torn(str_of(rows[i].head), str_of(rows[i].tail), 10,
				  &rows[i].limits, &out, &cut);
		if (strcmp(out.data, rows[i].wanted) != 0)
			fail_msg("row %zu: %s", i, out.data);
		assert_int_equal(cut.bytes, rows[i].bytes);
		assert_int_equal(cut.lines, 0);
		assert_int_equal(cut.long_lines, rows[i].long_lines);
		buf_fini(&out);
	}
}

static void percent_goes_both_ways(void **state)
{
	struct buf out;
	struct str text = STR("%41+%4");
	char byte;

	(void)state;
	buf_init(&out, 32);
	assert_true(text_percent_add(STR("a b/\xff\0~%"), "/", &out));
	assert_string_equal(out.data, "a%20b/%FF%00~%25");
	buf_clear(&out);
	assert_true(text_percent_read(STR("%61%2x%%41%"), &out));
	assert_string_equal(out.data, "a%2x%A%");
	assert_false(text_percent_read(STR("%00"), &out));
	buf_fini(&out);
	assert_true(text_percent_take(&text, &byte));
	assert_int_equal(byte, 'A');
	assert_true(text_percent_take(&text, &byte));
	assert_int_equal(byte, '+');
	assert_false(text_percent_take(&text, &byte));
	assert_true(str_is(text, "%4"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percent_goes_both_ways),
		cmocka_unit_test(a_text_without_its_middle_is_cut_at_both_sides_of_the_gap),
		cmocka_unit_test(random_digits_fill_the_text_and_differ),
		cmocka_unit_test(lengths_of_characters),
		cmocka_unit_test(one_bad_byte_anywhere_is_not_utf8),
		cmocka_unit_test(borders_do_not_cut_characters),
		cmocka_unit_test(cleaning),
		cmocka_unit_test(cleaning_stops_at_the_ceiling),
		cmocka_unit_test(names_cannot_disguise_their_line),
		cmocka_unit_test(what_is_judged_by_its_look_has_nothing_without_ink),
		cmocka_unit_test(short_texts_are_not_cut),
		cmocka_unit_test(the_middle_lines_are_left_out),
		cmocka_unit_test(bytes_cut_on_line_borders),
		cmocka_unit_test(what_the_head_cannot_use_the_tail_gets),
		cmocka_unit_test(one_endless_line_is_cut_between_characters),
		cmocka_unit_test(long_lines_are_cut_with_a_mark),
		cmocka_unit_test(a_long_line_shows_its_ends_and_a_place),
		cmocka_unit_test(line_ends_are_part_of_the_budget),
		cmocka_unit_test(shortening_keeps_its_budgets),
		cmocka_unit_test(shortening_stops_at_the_ceiling),
		cmocka_unit_test(binary_texts),
		cmocka_unit_test(bytes_are_judged_as_one_by_one),
		cmocka_unit_test(lines_are_counted),
		cmocka_unit_test(sizes_for_people),
		cmocka_unit_test(distances),
		cmocka_unit_test(limits_only_cut_distances),
		cmocka_unit_test(nearest_names),
		cmocka_unit_test(counts_with_nouns),
		cmocka_unit_test(sizes_of_people),
		cmocka_unit_test(seconds_of_people),
		cmocka_unit_test(counts_of_people),
		cmocka_unit_test(each_hexadecimal_digit_and_nothing_else),
		cmocka_unit_test(refusals_repeat_only_a_clean_piece),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
