#include "wrap.h"

#include <string.h>

static int fits(size_t column, size_t length, size_t width)
{
	return column + 1 + length < width;
}

void wrap(const char *text, size_t width, char *out, size_t size)
{
	size_t column = 0;
	char *at = out;

	while (*text != '\0' && (size_t)(at - out) + strlen(text) + 1 < size) {
		size_t length = strcspn(text, " ");

		if (at != out) {
			int same_line = fits(column, length, width);

			*at++ = same_line ? ' ' : '\n';
			column = same_line ? column + 1 : 0;
		}
		memcpy(at, text, length);
		at += length;
		column += length;
		text += length;
		text += strspn(text, " ");
	}
	*at = '\0';
}
