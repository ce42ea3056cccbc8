/* str: compares, searches and cuts views of bytes. */

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct str str_of(const char *text)
{
	if (!text)
		return (struct str){"", 0};
	return (struct str){text, strlen(text)};
}

bool str_equal(struct str a, struct str b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool str_is(struct str a, const char *text)
{
	return str_equal(a, str_of(text));
}

bool str_starts(struct str text, struct str prefix)
{
	return text.size >= prefix.size &&
	       str_equal(str_part(text, 0, prefix.size), prefix);
}

bool str_ends(struct str text, struct str suffix)
{
	return text.size >= suffix.size &&
	       str_equal(str_part(text, text.size - suffix.size, suffix.size), suffix);
}

bool str_is_caseless(struct str a, const char *text)
{
	return a.size == strlen(text) && str_starts_caseless(a, text);
}

bool str_starts_caseless(struct str text, const char *prefix)
{
	const size_t size = strlen(prefix);

	return text.size >= size && strncasecmp(text.data, prefix, size) == 0;
}

struct str str_part(struct str text, size_t from, size_t size)
{
	if (from > text.size)
		from = text.size;
	if (size > text.size - from)
		size = text.size - from;
	if (!text.data)
		return (struct str){"", 0};
	return (struct str){text.data + from, size};
}

size_t str_find(struct str text, struct str needle, size_t from)
{
	const char *found;

	if (from > text.size || needle.size > text.size - from)
		return (size_t)-1;
	if (needle.size == 0)
		return from;
	found = memmem(text.data + from, text.size - from, needle.data, needle.size);
	return found ? (size_t)(found - text.data) : (size_t)-1;
}

static bool str_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct str str_trim(struct str text)
{
	size_t start = 0, end = text.size;

	while (start < end && str_is_blank(text.data[start]))
		start++;
	while (end > start && str_is_blank(text.data[end - 1]))
		end--;
	return str_part(text, start, end - start);
}

bool str_next_line(struct str *rest, struct str *line)
{
	const char *end;
	size_t size;

	if (rest->size == 0)
		return false;
	end = memchr(rest->data, '\n', rest->size);
	size = end ? (size_t)(end - rest->data) : rest->size;
	*line = (struct str){rest->data, size};
	if (end)
		size++;
	rest->data += size;
	rest->size -= size;
	return true;
}

bool str_next_word(struct str *rest, struct str *word)
{
	size_t start = 0, end;

	while (start < rest->size && rest->data[start] == ' ')
		start++;
	for (end = start; end < rest->size && rest->data[end] != ' ';)
		end++;
	*word = str_part(*rest, start, end - start);
	*rest = str_part(*rest, end, rest->size);
	return word->size > 0;
}

bool str_among(const char *words, struct str word)
{
	const struct str all = str_of(words);

	if (word.size == 0 || memchr(word.data, ' ', word.size) != NULL)
		return false;
	for (size_t at = str_find(all, word, 0); at != (size_t)-1;
	     at = str_find(all, word, at + 1)) {
		const size_t end = at + word.size;

		if ((at == 0 || all.data[at - 1] == ' ') &&
		    (end == all.size || all.data[end] == ' '))
			return true;
	}
	return false;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void str_sort(void *texts, size_t count)
{
	/* qsort takes no NULL, which an empty array may be. */
	if (count > 0)
		qsort(texts, count, sizeof(char *), compare_texts);
}
