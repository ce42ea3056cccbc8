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

/* The bytes of one group of letters, PAD of them "=", as one number. */
static bool group_bits(const char *letters, size_t pad, uint32_t *result)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < LETTERS; i++) {
		const int value = i < LETTERS - pad ? digit_value(letters[i]) : 0;

		if (value < 0)
			return false;
		bits = bits << BITS | (uint32_t)value;
	}
	/* Unused bits at the end must be zero, so that each content has only one text. */
	*result = bits;
	return (bits & ((1u << (8 * pad)) - 1)) == 0;
}

/* OUT NULL: only look. */
static bool read_groups(struct str text, struct buf *out)
{
	size_t pad = 0;
	uint32_t bits;

	if (text.size % LETTERS != 0)
		return false;
	while (pad < 2 && pad < text.size && text.data[text.size - 1 - pad] == '=')
		pad++;
	for (size_t i = 0; i < text.size; i += LETTERS) {
		const size_t padded = i + LETTERS == text.size ? pad : 0;

		if (!group_bits(text.data + i, padded, &bits))
			return false;
		for (size_t j = 0; out != NULL && j < GROUP - padded; j++) {
			if (!buf_addc(out, (char)(bits >> (8 * (GROUP - 1 - j)) & 0xff)))
				return false;
		}
	}
	return true;
}

bool base64_read(struct str text, struct buf *out)
{
	const size_t before = out->size;

	if (read_groups(text, out))
		return true;
	buf_truncate(out, before);
	return false;
}

bool base64_is_valid(struct str text)
{
	return read_groups(text, NULL);
}
