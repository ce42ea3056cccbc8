/*
 * Fuzz target of base/pattern: first byte flags, then a pattern up to a line end, then a
 * path. The matcher is compared with a slow one that tries everything, where that is quick,
 * and a pattern taken apart beforehand must give the same answer.
 */
#include "base/text/pattern.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Trying everything is exponential: this many steps at most. */
enum { STEPS_MAX = 100000 };

struct slow {
	struct str pattern;
	long steps;
};

/* Only for patterns of letters, stars and slashes; that is where backtracking happens. */
static bool slow_match(struct slow *slow, size_t p, struct str path)
{
	struct str pattern = slow->pattern;
	size_t end = p;
	bool deep;

	if (slow->steps-- <= 0)
		return false;
	if (p == pattern.size)
		return path.size == 0;
	if (pattern.data[p] != '*')
		return path.size && path.data[0] == pattern.data[p] &&
		       slow_match(slow, p + 1, str_part(path, 1, path.size));
	while (end < pattern.size && pattern.data[end] == '*')
		end++;
	deep = end - p > 1 && (p == 0 || pattern.data[p - 1] == '/') &&
	       (end == pattern.size || pattern.data[end] == '/');
	if (deep && end < pattern.size && slow_match(slow, end + 1, path))
		return true;
	for (size_t taken = 0;; taken++) {
		if (slow_match(slow, end, str_part(path, taken, path.size)))
			return true;
		if (taken == path.size || (!deep && path.data[taken] == '/'))
			return false;
	}
}

static bool is_simple(struct str pattern)
{
	for (size_t i = 0; i < pattern.size; i++) {
		if (!pattern.data[i] || strchr("?[\\", pattern.data[i]))
			return false;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size}, pattern;
	struct slow slow = {.steps = STEPS_MAX};
	struct pattern_set *set;
	struct err err = {0};
	unsigned flags;
	bool good, matches;

	if (size == 0)
		return 0;
	flags = data[0] & (PATTERN_BRACES | PATTERN_BASENAME | PATTERN_IGNORE_CASE);
	text = str_part(text, 1, size);
	if (!str_next_line(&text, &pattern))
		return 0;
	good = pattern_check(pattern, flags, &err);
	matches = pattern_match(pattern, text, flags);
	if ((!good && matches) || good != (err.text[0] == '\0'))
		abort();
	set = pattern_set_new(pattern, flags);
	if ((set != NULL) != good || (set && pattern_set_match(set, text) != matches))
		abort();
	pattern_set_free(set);
	if (!good || !is_simple(pattern))
		return 0;
	slow.pattern = pattern;
	matches = pattern_match(pattern, text, 0);
	if (slow_match(&slow, 0, text) != matches && slow.steps > 0)
		abort();
	return 0;
}
