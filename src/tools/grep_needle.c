/* grep_needle: see grep_needle.h. */
#include "tools/grep_needle.h"

#include "base/memory.h"

#include <string.h>

/* Bytes of source code and prose, the most frequent first; what is not here is rarer still. */
static const char frequent_bytes[] =
	" etaoinsrlcdup_mf,;()hg.b=-*\"\ty/v0wx:k>1<'{}[]2E&TSA+IRNCOLD"
	"Pz3jq!#MFUB4|8G56\\VH7%9X?WY@K~$J`Z^Q";

enum {
	/* So many disappointments within so few bytes each: the byte is not rare here. */
	MISSES_MAX = 16,
	MISS_BYTES = 64,
};

static size_t byte_rarity(char c)
{
	const char *at = c ? strchr(frequent_bytes, c) : NULL;

	return at ? (size_t)(at - frequent_bytes) : sizeof(frequent_bytes);
}

void grep_needle_set(struct grep_needle *needle, struct str text)
{
	needle->data = memory_copy_str(text);
	needle->size = text.size;
	needle->rare = 0;
	for (size_t i = 1; i < text.size; i++) {
		if (byte_rarity(text.data[i]) > byte_rarity(text.data[needle->rare]))
			needle->rare = i;
	}
}

void grep_needle_fini(struct grep_needle *needle)
{
	free(needle->data);
	*needle = (struct grep_needle){0};
}

size_t grep_needle_find(const struct grep_needle *needle, struct str text, size_t from)
{
	const char *end = text.data + text.size;
	const char *begin, *at, *hit;
	size_t misses = 0;

	if (text.size < needle->size || from > text.size - needle->size)
		return (size_t)-1;
	/* The rare byte is looked for only where the needle around it would fit. */
	begin = at = text.data + from + needle->rare;
	end -= needle->size - 1 - needle->rare;
	while (at < end &&
	       (hit = memchr(at, needle->data[needle->rare], (size_t)(end - at)))) {
		if (memcmp(hit - needle->rare, needle->data, needle->size) == 0)
			return (size_t)(hit - needle->rare - text.data);
		at = hit + 1;
		if (++misses > MISSES_MAX && (size_t)(at - begin) < misses * MISS_BYTES) {
			from = (size_t)(at - needle->rare - text.data);
			hit = memmem(text.data + from, text.size - from, needle->data,
				     needle->size);
			return hit ? (size_t)(hit - text.data) : (size_t)-1;
		}
	}
	return (size_t)-1;
}
