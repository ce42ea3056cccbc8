/* width: columns by grapheme clusters (UAX #29), each as wide as its widest character. */
#include "front/terminal/width.h"

#include <utf8proc.h>

/* VARIATION SELECTOR-16: the character before it becomes an emoji of two columns. */
static const utf8proc_int32_t emoji_form = 0xfe0f;

struct cluster {
	size_t size, columns;
};

static utf8proc_ssize_t width_next(struct str text, size_t at, utf8proc_int32_t *character)
{
	const utf8proc_uint8_t *data = (const utf8proc_uint8_t *)text.data + at;

	return utf8proc_iterate(data, (utf8proc_ssize_t)(text.size - at), character);
}

static struct cluster width_cluster(struct str text, size_t at)
{
	struct cluster cluster = {.size = 1, .columns = 1};
	utf8proc_int32_t before, character;
	utf8proc_int32_t state = 0;
	utf8proc_ssize_t size = width_next(text, at, &before);

	if (size <= 0)
		return cluster;
	cluster.size = (size_t)size;
	cluster.columns = (size_t)utf8proc_charwidth(before);
	while (at + cluster.size < text.size) {
		size_t columns;

		size = width_next(text, at + cluster.size, &character);
		if (size <= 0 || utf8proc_grapheme_break_stateful(before, character, &state))
			break;
		columns = character == emoji_form ? 2
						  : (size_t)utf8proc_charwidth(character);
		if (columns > cluster.columns)
			cluster.columns = columns;
		cluster.size += (size_t)size;
		before = character;
	}
	return cluster;
}

size_t width_of(struct str text)
{
	size_t columns = 0;

	for (size_t at = 0; at < text.size;) {
		struct cluster cluster = width_cluster(text, at);

		columns += cluster.columns;
		at += cluster.size;
	}
	return columns;
}

size_t width_fit(struct str text, size_t columns)
{
	size_t at = 0;

	while (at < text.size) {
		struct cluster cluster = width_cluster(text, at);

		if (cluster.columns > columns)
			break;
		columns -= cluster.columns;
		at += cluster.size;
	}
	return at;
}

size_t width_character(struct str text, size_t *columns)
{
	struct cluster cluster = width_cluster(text, 0);

	*columns = cluster.columns;
	return cluster.size;
}
