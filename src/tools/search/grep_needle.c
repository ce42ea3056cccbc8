/* grep_needle: see grep_needle.h. */
#include "tools/search/grep_needle.h"

#include "base/memory.h"
#include "base/str.h"

#include <stdint.h>
#include <string.h>

/*
 * Bytes of source code and prose, the most frequent first; what is not here is rarer
 * still.
 */
static const char frequent_bytes[] =
	" etaoinsrlcdup_mf,;()hg.b=-*\"\ty/v0wx:k>1<'{}[]2E&TSA+IRNCOLD"
	"Pz3jq!#MFUB4|8G56\\VH7%9X?WY@K~$J`Z^Q";

enum { STRIDE = 4 * BYTE_VECTOR };

static size_t byte_rarity(char c)
{
	const char *at = c ? strchr(frequent_bytes, c) : NULL;

	return at ? (size_t)(at - frequent_bytes) : sizeof(frequent_bytes);
}

/* The rarest byte of TEXT that is not at BUT. */
static size_t rarest_byte(struct str text, size_t but)
{
	size_t rare = but == 0 && text.size > 1 ? 1 : 0;

	for (size_t i = rare + 1; i < text.size; i++) {
		if (i != but && byte_rarity(text.data[i]) > byte_rarity(text.data[rare]))
			rare = i;
	}
	return rare;
}

void grep_needle_set(struct grep_needle *needle, struct str text)
{
	needle->data = memory_copy_str(text);
	needle->size = text.size;
	needle->rare = rarest_byte(text, SIZE_MAX);
	needle->next_rare = rarest_byte(text, needle->rare);
}

void grep_needle_fini(struct grep_needle *needle)
{
	free(needle->data);
	*needle = (struct grep_needle){0};
}

/* The needle in the making of a search: its two bytes in all lanes. */
struct pair {
	const struct grep_needle *needle;
	byte_vector first, second;
};

/* Where both bytes stand at their distance, for the places from AT on. */
static byte_vector pair_at(const struct pair *pair, const char *at)
{
	return byte_vector_equal(at + pair->needle->rare, pair->first) &
	       byte_vector_equal(at + pair->needle->next_rare, pair->second);
}

/* The first of the COUNT places from AT on where the needle stands, or NULL. */
static const char *needle_among(const struct grep_needle *needle, const char *at,
				size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (at[i + needle->rare] == needle->data[needle->rare] &&
		    memcmp(at + i, needle->data, needle->size) == 0)
			return at + i;
	}
	return NULL;
}

/* The same for the STRIDE places from AT on, where at most a few are worth a look. */
static const char *needle_in_stride(const struct pair *pair, const char *at)
{
	for (size_t i = 0; i < STRIDE; i += BYTE_VECTOR) {
		byte_vector found = pair_at(pair, at + i);
		uint64_t parts[BYTE_VECTOR / sizeof(uint64_t)];
		const char *hit = NULL;

		memcpy(parts, &found, sizeof(parts));
		for (size_t k = 0; k < BYTE_VECTOR / sizeof(parts[0]) && !hit; k++) {
			if (parts[k] != 0)
				hit = needle_among(pair->needle,
						   at + i + k * sizeof(parts[0]),
						   sizeof(parts[0]));
		}
		if (hit)
			return hit;
	}
	return NULL;
}

static bool stride_holds_pair(const struct pair *pair, const char *at)
{
	byte_vector found = {0};
	uint64_t parts[BYTE_VECTOR / sizeof(uint64_t)];
	uint64_t all = 0;

	for (size_t i = 0; i < STRIDE; i += BYTE_VECTOR)
		found |= pair_at(pair, at + i);
	memcpy(parts, &found, sizeof(parts));
	for (size_t k = 0; k < BYTE_VECTOR / sizeof(parts[0]); k++)
		all |= parts[k];
	return all != 0;
}

size_t grep_needle_find(const struct grep_needle *needle, struct str text, size_t from)
{
	const char *at = text.data + from;
	const char *hit;
	struct pair pair;
	size_t places;

	if (text.size < needle->size || from > text.size - needle->size)
		return (size_t)-1;
	places = text.size - needle->size - from + 1;
	if (needle->size == 1) {
		hit = memchr(at, needle->data[0], places);
		return hit ? (size_t)(hit - text.data) : (size_t)-1;
	}
	pair = (struct pair){needle, byte_vector_of(needle->data[needle->rare]),
			     byte_vector_of(needle->data[needle->next_rare])};
	for (; places >= STRIDE; at += STRIDE, places -= STRIDE) {
		hit = stride_holds_pair(&pair, at) ? needle_in_stride(&pair, at) : NULL;
		if (hit)
			return (size_t)(hit - text.data);
	}
	hit = needle_among(needle, at, places);
	return hit ? (size_t)(hit - text.data) : (size_t)-1;
}
