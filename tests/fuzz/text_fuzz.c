/*
 * Fuzz target of base/text: three bytes of limits, then a text. What is cleaned is valid
 * UTF-8 without control bytes and stays as it is; what is shortened keeps its budgets.
 */
#include "base/text/text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each byte becomes four at most; a mark has under sixty bytes. */
enum { OUT_MAX = 64 << 20, MARK_MAX = 60 };

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_clean(struct str text)
{
	struct buf once, twice;

	buf_init(&once, OUT_MAX);
	buf_init(&twice, OUT_MAX);
	check(text_clean(text, &once));
	check(text_is_utf8(buf_str(&once)));
	for (size_t i = 0; i < once.size; i++) {
		unsigned char c = (unsigned char)once.data[i];

		check((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t');
	}
	check(text_clean(buf_str(&once), &twice));
	check(str_equal(buf_str(&once), buf_str(&twice)));
	buf_fini(&once);
	buf_fini(&twice);
}

static void check_shorten(struct str text, const struct text_limits *limits)
{
	struct text_cut cut = {0};
	size_t marks = 0, at = 0;
	struct buf out;

	buf_init(&out, OUT_MAX);
	check(text_shorten(text, limits, &out, &cut));
	check(cut.bytes <= text.size && cut.lines <= text_count_lines(text));
	check(!text_is_utf8(text) || text_is_utf8(buf_str(&out)));
	check(cut.bytes > 0 || str_equal(buf_str(&out), text));
	for (; (at = str_find(buf_str(&out), STR("[…"), at)) != (size_t)-1; at++)
		marks++;
	if (limits->bytes)
		check(out.size <= limits->bytes + marks * MARK_MAX);
	if (limits->lines)
		check(text_count_lines(buf_str(&out)) <= limits->lines + 2);
	buf_fini(&out);
}

static void check_words(struct str text)
{
	static const char *const names[] = {"read_file", "write_file", "grep", NULL};
	char word[64], size_text[32];
	uint64_t number;
	double seconds;

	text = str_part(text, 0, sizeof(word) - 1);
	if (text.size)
		memcpy(word, text.data, text.size);
	word[text.size] = '\0';
	(void)text_nearest(word, names);
	if (text_parse_size(word, &number, NULL))
		check(strlen(text_size(number, size_text)) < sizeof(size_text));
	(void)text_parse_seconds(word, &seconds, NULL);
	(void)text_parse_count(word, 100, &number, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	struct text_limits limits;
	size_t at;

	if (size < 3)
		return 0;
	limits = (struct text_limits){data[0], data[1] % 32, data[2] % 64};
	at = data[0];
	text = str_part(text, 3, size);
	check_clean(text);
	check_shorten(text, &limits);
	check_words(text);
	check(text_character_border(text, at) <= text.size);
	(void)text_is_binary(text);
	return 0;
}
