/*
 * pattern_set: a pattern taken apart once: its braces written out, and of each alternative
 * what is plain at both ends; see pattern.h.
 */
#include "base/text/pattern.h"

#include <string.h>

#include "base/memory.h"
#include "base/text/pattern_match.h"

/* One alternative. */
struct pattern_one {
	char *data; /* owned */
	size_t size;
	struct pattern_ends ends;
	bool name; /* matched with the last name of a path */
};

struct pattern_set {
	unsigned flags;
	struct pattern_one *ones;
	size_t count, room;
};

/* False: there may be more. */
static bool pattern_set_add(void *owner, struct str text)
{
	struct pattern_set *set = owner;
	bool any_depth = false;
	struct pattern_one *one;

	/* "**", a slash and a name is that name at any depth. */
	while (str_starts(text, STR("**/")) && text.size > 3) {
		text = str_part(text, 3, text.size);
		any_depth = true;
	}
	if (any_depth && memchr(text.data, '/', text.size)) {
		text = (struct str){text.data - 3, text.size + 3};
		any_depth = false;
	}
	if (set->count == set->room) {
		set->room = set->room ? 2 * set->room : 4;
		set->ones = memory_grow(set->ones, set->room, sizeof(*set->ones));
	}
	one = &set->ones[set->count++];
	one->data = memory_copy_str(text);
	one->size = text.size;
	one->ends = pattern_ends_of(text);
	one->name = any_depth || ((set->flags & PATTERN_BASENAME) &&
				  (text.size == 0 || !memchr(text.data, '/', text.size)));
	return false;
}

struct pattern_set *pattern_set_new(struct str pattern, unsigned flags)
{
	struct pattern_set *set;

	if (!pattern_check(pattern, flags, NULL))
		return NULL;
	set = memory_alloc(sizeof(*set));
	set->flags = flags;
	(void)pattern_each(pattern, flags, pattern_set_add, set);
	return set;
}

void pattern_set_free(struct pattern_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->count; i++)
		free(set->ones[i].data);
	free(set->ones);
	free(set);
}

bool pattern_set_match(const struct pattern_set *set, struct str path)
{
	const char *slash = path.size ? memrchr(path.data, '/', path.size) : NULL;
	struct str name = path;

	if (slash)
		name = str_part(path, (size_t)(slash + 1 - path.data), path.size);
	for (size_t i = 0; set && i < set->count; i++) {
		const struct pattern_one *one = &set->ones[i];
		struct str pattern = {one->data, one->size};

		if (one->name) {
			if (pattern_match_name(&one->ends, pattern, name, set->flags))
				return true;
			continue;
		}
		if (!(set->flags & PATTERN_IGNORE_CASE) &&
		    !pattern_ends_fit(&one->ends, pattern, path))
			continue;
		if (pattern_match_plain(pattern, path, set->flags))
			return true;
	}
	return false;
}
