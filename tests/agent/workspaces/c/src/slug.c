#include "slug.h"

#include <ctype.h>

size_t slug(const char *title, char *out, size_t size)
{
	size_t n = 0;

	for (; *title && n + 1 < size; title++) {
		if (isalnum((unsigned char)*title))
			out[n++] = (char)tolower((unsigned char)*title);
		else
			out[n++] = '-';
	}
	out[n] = '\0';
	return n;
}
