/* base64: see base64.h. */
#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum { BITS = 6, MASK = 63, GROUP = 3, LETTERS = 4 };

bool base64_add(struct str bytes, struct buf *out)
{
	const size_t size = (bytes.size + GROUP - 1) / GROUP * LETTERS;
	char *at = buf_reserve(out, size);

	if (at == NULL)
		return false;
	for (size_t i = 0; i < bytes.size; i += GROUP, at += LETTERS) {
		uint32_t bits = 0;
		const size_t here = bytes.size - i < GROUP ? bytes.size - i : GROUP;

		for (size_t j = 0; j < GROUP; j++)
			bits = bits << 8 |
			       (j < here ? (unsigned char)bytes.data[i + j] : 0);
		for (size_t j = 0; j < LETTERS; j++)
			at[j] = j <= here
					? digits[bits >> (BITS * (LETTERS - 1 - j)) & MASK]
					: '=';
	}
	buf_commit(out, size);
	return true;
}

/* -1: it is no digit. */
static int digit_value(char c)
{
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	return at != NULL ? (int)(at - digits) : -1;
}

/* Of one group of letters, PAD of them "=". */
static bool read_group(const char *letters, size_t pad, struct buf *out)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < LETTERS; i++) {
		const int value = i < LETTERS - pad ? digit_value(letters[i]) : 0;

		if (value < 0)
			return false;
		bits = bits << BITS | (uint32_t)value;
	}
	/* One text for one content: bits that nothing is made of are zero. */
	if ((bits & ((1u << (8 * pad)) - 1)) != 0)
		return false;
	for (size_t i = 0; i < GROUP - pad; i++) {
		if (!buf_addc(out, (char)(bits >> (8 * (GROUP - 1 - i)) & 0xff)))
			return false;
	}
	return true;
}

bool base64_read(struct str text, struct buf *out)
{
	const size_t before = out->size;
	size_t pad = 0;

	if (text.size % LETTERS != 0)
		return false;
	while (pad < 2 && pad < text.size && text.data[text.size - 1 - pad] == '=')
		pad++;
	for (size_t i = 0; i < text.size; i += LETTERS) {
		const bool last = i + LETTERS == text.size;

		if (!read_group(text.data + i, last ? pad : 0, out)) {
			buf_truncate(out, before);
			return false;
		}
	}
	return true;
}
