/*
 * text: UTF-8, binary or not, lines and sizes; see text.h. Numbers are read in
 * text_word.c.
 */
#include "base/text/text.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/*
 * As much as other programs look at to tell binary from text (git and grep: 8,000 and 32
 * Ki).
 */
enum { TEXT_BINARY_PROBE = 8192, TEXT_BINARY_PERCENT = 30 };

static bool text_is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

size_t text_utf8_length(struct str text)
{
	const unsigned char *at = (const unsigned char *)text.data;
	unsigned char low = 0x80, high = 0xbf;
	size_t length;

	if (text.size == 0)
		return 0;
	if (at[0] < 0x80)
		return 1;
	if (at[0] < 0xc2 || at[0] > 0xf4)
		return 0;
	length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	/* The second byte carries what is overlong, a surrogate or above U+10FFFF. */
	if (at[0] == 0xe0)
		low = 0xa0;
	else if (at[0] == 0xed)
		high = 0x9f;
	else if (at[0] == 0xf0)
		low = 0x90;
	else if (at[0] == 0xf4)
		high = 0x8f;
	if (text.size < length || at[1] < low || at[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++) {
		if (!text_is_continuation(at[i]))
			return 0;
	}
	return length;
}

/* Offset of the first byte at or after FROM that is not ASCII. */
static size_t text_skip_ascii(struct str text, size_t from)
{
	const uint64_t high_bits = 0x8080808080808080u;

	while (text.size - from >= 4 * sizeof(uint64_t)) {
		uint64_t words[4];

		memcpy(words, text.data + from, sizeof(words));
		if ((words[0] | words[1] | words[2] | words[3]) & high_bits)
			break;
		from += sizeof(words);
	}
	while (from < text.size && (unsigned char)text.data[from] < 0x80)
		from++;
	return from;
}

bool text_is_utf8(struct str text)
{
	size_t at = 0;

	for (;;) {
		size_t length;

		at = text_skip_ascii(text, at);
		if (at == text.size)
			return true;
		/* Other scripts come in runs: stay here until the next ASCII byte. */
		while (at < text.size && (unsigned char)text.data[at] >= 0x80) {
			length = text_utf8_length(
				(struct str){text.data + at, text.size - at});
			if (length == 0)
				return false;
			at += length;
		}
	}
}

size_t text_character_border(struct str text, size_t at)
{
	size_t start = at;

	if (at >= text.size)
		return text.size;
	while (start > 0 && at - start < 3 &&
	       text_is_continuation((unsigned char)text.data[start]))
		start--;
	if (start + text_utf8_length(str_part(text, start, 4)) > at)
		return start;
	return at;
}

/*
 * Line ends, tab, form feed, backspace and escape are in logs and sources; all other
 * control bytes count.
 */
static bool byte_is_control(unsigned char c)
{
	return (c < 0x20 && (c < '\b' || c > '\r' || c == '\v') && c != 0x1b) || c == 0x7f;
}

/* The same of sixteen bytes: -1 in the lanes of those that count. */
static byte_vector bytes_are_controls(byte_vector c)
{
	byte_vector plain = (byte_vector)((c - '\b') <= '\r' - '\b');

	plain &= (byte_vector)(c != '\v');
	plain |= (byte_vector)(c == 0x1b);
	return ((byte_vector)(c < 0x20) & ~plain) | (byte_vector)(c == 0x7f);
}

/* Bytes from AT that are looked at before a lane is full. */
static size_t lane_end(struct str text, size_t at)
{
	size_t most = (size_t)BYTE_VECTOR * BYTE_VECTOR_COUNT_MAX;

	return text.size - at > most ? at + most : text.size;
}

static size_t text_count_controls(struct str text)
{
	size_t count = 0;
	size_t at = 0;

	while (text.size - at >= BYTE_VECTOR) {
		byte_vector lanes = {0};

		for (size_t end = lane_end(text, at); end - at >= BYTE_VECTOR;
		     at += BYTE_VECTOR)
			lanes -= bytes_are_controls(byte_vector_load(text.data + at));
		count += byte_vector_sum(lanes);
	}
	for (; at < text.size; at++)
		count += byte_is_control((unsigned char)text.data[at]);
	return count;
}

bool text_is_binary(struct str text)
{
	struct str probe = str_part(text, 0, TEXT_BINARY_PROBE);

	if (probe.size == 0)
		return false;
	return memchr(probe.data, '\0', probe.size) ||
	       text_count_controls(probe) * 100 > probe.size * TEXT_BINARY_PERCENT;
}

size_t text_count_line_ends(struct str text)
{
	byte_vector feed = byte_vector_of('\n');
	size_t count = 0;
	size_t at = 0;

	while (text.size - at >= BYTE_VECTOR) {
		byte_vector lanes = {0};

		for (size_t end = lane_end(text, at); end - at >= BYTE_VECTOR;
		     at += BYTE_VECTOR)
			lanes -= byte_vector_equal(text.data + at, feed);
		count += byte_vector_sum(lanes);
	}
	for (; at < text.size; at++)
		count += text.data[at] == '\n';
	return count;
}

size_t text_count_lines(struct str text)
{
	return text_count_line_ends(text) + (text.size > 0 && !str_ends(text, STR("\n")));
}

char *text_size(uint64_t bytes, char text[32])
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double amount = (double)bytes;
	size_t unit = 0;

	if (bytes < 1024) {
		(void)snprintf(text, 32, "%d B", (int)bytes);
		return text;
	}
	/* 1023.95 and more would be printed as 1024.0 of the smaller unit. */
	for (amount /= 1024; amount >= 1023.95 && unit < 5; amount /= 1024)
		unit++;
	(void)snprintf(text, 32, "%.1f", amount);
	if (str_ends(str_of(text), STR(".0")))
		text[strlen(text) - 2] = '\0';
	(void)snprintf(text + strlen(text), 32 - strlen(text), " %s", units[unit]);
	return text;
}

bool text_add_count(struct buf *out, size_t count, const char *noun)
{
	return buf_addf(out, "%zu %s%s", count, noun, count == 1 ? "" : "s");
}
