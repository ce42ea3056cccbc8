/* pattern_match: the matcher under pattern.c and ignore.c; see pattern_match.h. */
#include "base/text/pattern_match.h"

#include <ctype.h>
#include <string.h>

#include "base/text/pattern.h"
#include "base/text/text.h"

/* Where to go on when what follows a "*" or "**" did not match. */
struct pattern_restore {
	bool set;
	size_t pattern, path;
};

struct pattern_walk {
	struct str pattern, path;
	unsigned flags;
	size_t p, t;
	struct pattern_restore star, deep;
};

static unsigned pattern_fold(unsigned c, unsigned flags)
{
	return (flags & PATTERN_IGNORE_CASE) && c < 128 ? (unsigned)tolower((int)c) : c;
}

/* The character at AT and its size; bytes that are no UTF-8 stand for themselves. */
static unsigned pattern_char(struct str text, size_t at, unsigned flags, size_t *size)
{
	const unsigned char *bytes = (const unsigned char *)text.data + at;
	size_t length = 1;
	unsigned c = bytes[0];

	if ((flags & PATTERN_BRACES) && c >= 0x80)
		length = text_utf8_length(str_part(text, at, 4));
	if (length > 1) {
		c &= 0x7fu >> length;
		for (size_t i = 1; i < length; i++)
			c = c << 6 | (bytes[i] & 0x3fu);
	} else if ((flags & PATTERN_BRACES) && c >= 0x80) {
		/* Above Unicode, so that no range of characters takes it. */
		c += 0x110000;
	}
	*size = length ? length : 1;
	return c;
}

/* Is C in the class NAME of POSIX (C locale)? -1 when there is no such class. */
static int pattern_class(struct str name, unsigned c)
{
	static const struct {
		const char *name;
		int (*test)(int);
	} classes[] = {
		{"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank},
		{"cntrl", iscntrl}, {"digit", isdigit}, {"graph", isgraph},
		{"lower", islower}, {"print", isprint}, {"punct", ispunct},
		{"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit},
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (str_is(name, classes[i].name))
			return c < 128 && classes[i].test((int)c);
	}
	return -1;
}

static bool pattern_in_range(unsigned low, unsigned high, unsigned c, unsigned flags)
{
	if (c >= low && c <= high)
		return true;
	if (!(flags & PATTERN_IGNORE_CASE) || c >= 128)
		return false;
	c = (unsigned)(isupper((int)c) ? tolower((int)c) : toupper((int)c));
	return c >= low && c <= high;
}

/*
 * Where case is ignored git makes the text small, and of the pattern only what is not quoted:
 * "[A]" and "\A" fit no letter then, while "[A-B]" and "A" fit both.
 */
static bool pattern_is_same(unsigned wanted, bool quoted, unsigned c, unsigned flags)
{
	if (!quoted || (flags & PATTERN_BRACES))
		wanted = pattern_fold(wanted, flags);
	return wanted == pattern_fold(c, flags);
}

/* "[:name:]" at AT: its size, 0 when it is not one, and in *CONTAINS the answer or -1. */
static size_t pattern_class_at(struct str text, size_t at, unsigned c, unsigned flags,
			       int *contains)
{
	size_t close;

	if (!str_equal(str_part(text, at, 2), STR("[:")))
		return 0;
	close = str_find(text, STR("]"), at + 2);
	if (close == (size_t)-1 || close < at + 3 || text.data[close - 1] != ':')
		return 0;
	*contains = pattern_class(str_part(text, at + 2, close - at - 3), c);
	if (*contains == 0 && (flags & PATTERN_IGNORE_CASE) && c < 128 && isalpha((int)c))
		*contains = pattern_class(str_part(text, at + 2, close - at - 3), c ^ 0x20);
	return close + 1 - at;
}

struct pattern_bracket pattern_bracket_read(struct str text, unsigned flags, unsigned c)
{
	const struct pattern_bracket broken = {0};
	bool negated, contains = false, has_low = false;
	unsigned low = 0, high;
	size_t at = 1, size;
	int in_class;

	negated = at < text.size && (text.data[at] == '!' || text.data[at] == '^');
	at += negated;
	/* A "]" that comes first is an ordinary character. */
	for (size_t first = at; at < text.size && (at == first || text.data[at] != ']');) {
		size = pattern_class_at(text, at, c, flags, &in_class);
		if (size) {
			if (in_class < 0)
				return broken;
			contains |= in_class;
			has_low = false;
			at += size;
			continue;
		}
		if (text.data[at] == '-' && has_low && at + 1 < text.size &&
		    text.data[at + 1] != ']') {
			at++;
			at += text.data[at] == '\\';
			if (at >= text.size)
				return broken;
			high = pattern_char(text, at, flags, &size);
			contains |= pattern_in_range(low, high, c, flags);
			has_low = false;
			at += size;
			continue;
		}
		at += text.data[at] == '\\';
		if (at >= text.size)
			return broken;
		low = pattern_char(text, at, flags, &size);
		contains |= pattern_is_same(low, true, c, flags);
		has_low = true;
		at += size;
	}
	if (at >= text.size)
		return broken;
	return (struct pattern_bracket){at + 1, contains != negated};
}

/* Put WALK behind the next slash of its path from AT on. */
static bool pattern_next_component(struct pattern_walk *walk, size_t at)
{
	size_t slash = str_find(walk->path, STR("/"), at);

	if (slash == (size_t)-1)
		return false;
	walk->t = slash + 1;
	return true;
}

/* The result of one step: go on, no match this way, or all of the pattern has matched. */
enum pattern_step { STEP_FITS, STEP_FAILS, STEP_MATCHED };

/* At a run of stars: one star inside a component, "**" when it is a whole component. */
static enum pattern_step pattern_step_star(struct pattern_walk *walk)
{
	size_t start = walk->p, end = start;
	bool escaped;

	while (end < walk->pattern.size && walk->pattern.data[end] == '*')
		end++;
	walk->p = end;
	escaped = str_equal(str_part(walk->pattern, end, 2), STR("\\/"));
	if (end - start > 1 && (start == 0 || walk->pattern.data[start - 1] == '/') &&
	    (end == walk->pattern.size || walk->pattern.data[end] == '/' || escaped)) {
		if (end == walk->pattern.size)
			return STEP_MATCHED;
		/*
		 * git: an escaped slash must be there, a plain one may be no component at
		 * all.
		 */
		if (escaped && !pattern_next_component(walk, walk->t))
			return STEP_FAILS;
		walk->p = end + 1 + escaped;
		walk->deep = (struct pattern_restore){true, walk->p, walk->t};
		walk->star.set = false;
		return STEP_FITS;
	}
	walk->star = (struct pattern_restore){true, walk->p, walk->t};
	return STEP_FITS;
}

/* Match one element of the pattern that is no star. */
static enum pattern_step pattern_step_one(struct pattern_walk *walk)
{
	size_t wanted_size = 1, size;
	struct pattern_bracket bracket;
	unsigned wanted, c;
	bool escaped = false;

	if (walk->t == walk->path.size)
		return STEP_FAILS;
	c = pattern_char(walk->path, walk->t, walk->flags, &size);
	switch (walk->pattern.data[walk->p]) {
	case '?':
		if (c == '/')
			return STEP_FAILS;
		break;
	case '[':
		bracket = pattern_bracket_read(str_part(walk->pattern, walk->p,
							walk->pattern.size),
					       walk->flags, c);
		if (c == '/' || bracket.size == 0 || !bracket.contains)
			return STEP_FAILS;
		wanted_size = bracket.size;
		break;
	case '\\':
		escaped = true;
		walk->p++;
		if (walk->p == walk->pattern.size)
			return STEP_FAILS;
		__attribute__((fallthrough));
	default:
		wanted = pattern_char(walk->pattern, walk->p, walk->flags, &wanted_size);
		if (!pattern_is_same(wanted, escaped, c, walk->flags))
			return STEP_FAILS;
		/* A star cannot reach over a slash: its component is settled. */
		if (c == '/')
			walk->star.set = false;
		break;
	}
	walk->p += wanted_size;
	walk->t += size;
	return STEP_FITS;
}

/* Give the last star one character more, or the last "**" one component more. */
static bool pattern_restore(struct pattern_walk *walk)
{
	size_t size;

	if (walk->star.set && walk->star.path < walk->path.size &&
	    walk->path.data[walk->star.path] != '/') {
		(void)pattern_char(walk->path, walk->star.path, walk->flags, &size);
		walk->star.path += size;
		walk->p = walk->star.pattern;
		walk->t = walk->star.path;
		return true;
	}
	walk->star.set = false;
	if (!walk->deep.set || !pattern_next_component(walk, walk->deep.path))
		return false;
	walk->deep.path = walk->t;
	walk->p = walk->deep.pattern;
	return true;
}

bool pattern_match_plain(struct str pattern, struct str path, unsigned flags)
{
	struct pattern_walk walk = {.pattern = pattern, .path = path, .flags = flags};

	for (;;) {
		enum pattern_step step = STEP_FAILS;

		if (walk.p == pattern.size)
			step = walk.t == path.size ? STEP_MATCHED : STEP_FAILS;
		else if (pattern.data[walk.p] == '*')
			step = pattern_step_star(&walk);
		else
			step = pattern_step_one(&walk);
		if (step == STEP_MATCHED)
			return true;
		if (step == STEP_FAILS && !pattern_restore(&walk))
			return false;
	}
}

static bool byte_is_special(char c)
{
	return c && strchr("*?[\\", c);
}

/*
 * A "**" may stand for no folder at all, with the slash behind it: what is certain at the
 * end begins behind the last slash.
 */
struct pattern_ends pattern_ends_of(struct str pattern)
{
	struct pattern_ends ends = {0};
	bool ascii = true;

	while (ends.head < pattern.size && !byte_is_special(pattern.data[ends.head]))
		ends.head++;
	while (ends.tail < pattern.size - ends.head) {
		char c = pattern.data[pattern.size - ends.tail - 1];

		/* "]" may close a class. */
		if (byte_is_special(c) || c == ']' || c == '/')
			break;
		ends.tail++;
	}
	for (size_t i = 0; i < pattern.size; i++)
		ascii = ascii && (unsigned char)pattern.data[i] < 0x80;
	/* A part of a character is no text of its own: that is for the matcher. */
	ends.one_star = ascii && ends.head + ends.tail + 1 == pattern.size &&
			pattern.data[ends.head] == '*';
	return ends;
}

bool pattern_ends_fit(const struct pattern_ends *ends, struct str pattern, struct str text)
{
	return ends->head <= text.size && ends->tail <= text.size &&
	       memcmp(text.data, pattern.data, ends->head) == 0 &&
	       memcmp(text.data + text.size - ends->tail,
		      pattern.data + pattern.size - ends->tail, ends->tail) == 0;
}

bool pattern_match_name(const struct pattern_ends *ends, struct str pattern,
			struct str name, unsigned flags)
{
	if (!(flags & PATTERN_IGNORE_CASE)) {
		if (!pattern_ends_fit(ends, pattern, name))
			return false;
		if (ends->one_star)
			return name.size >= ends->head + ends->tail;
		if (ends->head == pattern.size)
			return name.size == pattern.size;
	}
	return pattern_match_plain(pattern, name, flags);
}
