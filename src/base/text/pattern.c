/*
 * pattern: checks patterns, writes out their braces, matches them, and applies
 * gitignore rules.
 */

#include "base/text/pattern.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* The answer of a bracket expression for one character. */
struct pattern_bracket {
	size_t size; /* including both brackets; 0: not closed, or an unknown [:class:] */
	bool contains;
};

/*
 * The plain bytes at both ends of a pattern. They are enough to reject most texts
 * without the matcher.
 */
struct pattern_ends {
	size_t head, tail; /* bytes of the plain beginning and end */
	/* between them is exactly one "*": for a name without slash the ends decide */
	bool one_star;
};

/*
 * Matches one pattern without braces against one path. The matcher has two restore
 * points and no recursion, so its time is at most the product of both lengths.
 */

/* The point from which to continue when the text behind a "*" or "**" did not match. */
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

/*
 * The character at AT and its size. Bytes that are no UTF-8 count as one character
 * each.
 */
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
		/* Move it above Unicode, so that it is in no range of characters. */
		c += 0x110000;
	}
	*size = length ? length : 1;
	return c;
}

/* Is C in the POSIX class NAME (C locale)? -1 when there is no such class. */
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
 * When git ignores case, it turns the text into small letters, but of the pattern only
 * characters that are not quoted. So "[A]" and "\A" match no letter, while "[A-B]" and
 * "A" match both.
 */
static bool pattern_is_same(unsigned wanted, bool quoted, unsigned c, unsigned flags)
{
	if (!quoted || (flags & PATTERN_BRACES))
		wanted = pattern_fold(wanted, flags);
	return wanted == pattern_fold(c, flags);
}

/*
 * The size of a "[:name:]" at AT; 0 when there is none. *CONTAINS becomes its answer,
 * or -1.
 */
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

/*
 * FLAGS as in pattern.h. With PATTERN_BRACES a character is UTF-8, else a byte, as in
 * git.
 */
static struct pattern_bracket pattern_bracket_read(struct str text, unsigned flags,
						   unsigned c)
{
	const struct pattern_bracket broken = {0};
	bool negated, contains = false, has_low = false;
	unsigned low = 0, high;
	size_t at = 1, size;
	int in_class;

	negated = at < text.size && (text.data[at] == '!' || text.data[at] == '^');
	at += negated;
	/* A "]" at the beginning is an ordinary character. */
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

/* Move WALK behind the next slash of its path from AT on. False when there is none. */
static bool pattern_next_component(struct pattern_walk *walk, size_t at)
{
	size_t slash = str_find(walk->path, STR("/"), at);

	if (slash == (size_t)-1)
		return false;
	walk->t = slash + 1;
	return true;
}

/*
 * The result of one step: continue, no match this way, or the whole pattern has
 * matched.
 */
enum pattern_step { STEP_FITS, STEP_FAILS, STEP_MATCHED };

/* Take a run of stars: a star inside a component, or "**" as a whole component. */
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
		 * In git an escaped slash must be in the path, while a "**" with a
		 * plain slash may match no component.
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

/* Match one element of the pattern other than a star. */
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
		/*
		 * A star cannot cross a slash, so the component before the slash is
		 * settled.
		 */
		if (c == '/')
			walk->star.set = false;
		break;
	}
	walk->p += wanted_size;
	walk->t += size;
	return STEP_FITS;
}

/* Let the last star match one character more, or the last "**" one component more. */
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

static bool pattern_match_plain(struct str pattern, struct str path, unsigned flags)
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
 * Find the plain ends of PATTERN. A "**" with its slash may match no folder at all, so
 * the certain end begins behind the last slash.
 */
static struct pattern_ends pattern_ends_of(struct str pattern)
{
	struct pattern_ends ends = {0};
	bool ascii = true;

	while (ends.head < pattern.size && !byte_is_special(pattern.data[ends.head]))
		ends.head++;
	while (ends.tail < pattern.size - ends.head) {
		char c = pattern.data[pattern.size - ends.tail - 1];

		/* A "]" may close a class. */
		if (byte_is_special(c) || c == ']' || c == '/')
			break;
		ends.tail++;
	}
	for (size_t i = 0; i < pattern.size; i++)
		ascii = ascii && (unsigned char)pattern.data[i] < 0x80;
	/*
	 * With characters of several bytes the star could match part of one, so leave
	 * these to the matcher.
	 */
	ends.one_star = ascii && ends.head + ends.tail + 1 == pattern.size &&
			pattern.data[ends.head] == '*';
	return ends;
}

/* Can PATTERN, which has the ends ENDS, match TEXT? */
static bool pattern_ends_fit(const struct pattern_ends *ends, struct str pattern,
			     struct str text)
{
	return ends->head <= text.size && ends->tail <= text.size &&
	       memcmp(text.data, pattern.data, ends->head) == 0 &&
	       memcmp(text.data + text.size - ends->tail,
		      pattern.data + pattern.size - ends->tail, ends->tail) == 0;
}

/* Like pattern_match_plain, but faster, for a NAME without slashes. */
static bool pattern_match_name(const struct pattern_ends *ends, struct str pattern,
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

/*
 * Maximum depth of braces in braces. Nobody writes more, and each level costs a frame
 * of recursion.
 */
enum { PATTERN_DEPTH_MAX = 16 };

/*
 * Offset behind the element at AT, which is no brace or comma; 0 when the element is
 * malformed.
 */
static size_t pattern_skip(struct str pattern, size_t at, unsigned flags)
{
	size_t size = 1;

	if (pattern.data[at] == '[') {
		size = pattern_bracket_read(str_part(pattern, at, pattern.size), flags, 0).size;
		return size ? at + size : 0;
	}
	if (pattern.data[at] == '\\')
		size = 2;
	return at + size <= pattern.size ? at + size : 0;
}

/* The state of counting the patterns that PATTERN expands to. */
struct pattern_count {
	struct str pattern;
	unsigned flags;
	size_t at;
	const char *wrong; /* the reason why it is malformed */
};

static size_t pattern_cap(size_t count)
{
	return count > PATTERN_ALTERNATIVES_MAX ? PATTERN_ALTERNATIVES_MAX + 1 : count;
}

/*
 * The number of patterns that the text up to the end, or to the closing brace, expands
 * to.
 */
static size_t pattern_count(struct pattern_count *counter, size_t depth)
{
	size_t sum = 0, product = 1;

	while (counter->at < counter->pattern.size && !counter->wrong) {
		char c = counter->pattern.data[counter->at];
		size_t next;

		if ((counter->flags & PATTERN_BRACES) && c == '{') {
			if (depth == PATTERN_DEPTH_MAX) {
				counter->wrong = "its braces are nested too deep";
				break;
			}
			counter->at++;
			product = pattern_cap(product * pattern_count(counter, depth + 1));
			continue;
		}
		if (depth && (c == '}' || c == ',')) {
			counter->at++;
			sum = pattern_cap(sum + product);
			product = 1;
			if (c == '}')
				return sum;
			continue;
		}
		next = pattern_skip(counter->pattern, counter->at, counter->flags);
		if (next == 0)
			counter->wrong =
				c == '[' ? "a '[' is not closed, or holds an unknown class"
					 : "a '\\' stands at its end";
		counter->at = next;
	}
	if (depth && !counter->wrong)
		counter->wrong = "a '{' is not closed";
	return pattern_cap(sum + product);
}

/* The reason why PATTERN is malformed; NULL when it is well-formed. */
static const char *pattern_wrong(struct str pattern, unsigned flags)
{
	struct pattern_count counter = {.pattern = pattern, .flags = flags};

	if (pattern.size > PATTERN_MAX)
		return "it is longer than 4096 bytes";
	if (pattern_count(&counter, 0) > PATTERN_ALTERNATIVES_MAX && !counter.wrong)
		return "its braces stand for more than 1024 patterns";
	return counter.wrong;
}

_Static_assert(PATTERN_MAX == 4096 && PATTERN_ALTERNATIVES_MAX == 1024,
	       "named in sentences");

bool pattern_check(struct str pattern, unsigned flags, struct err *err)
{
	/* Bytes of a pattern in a sentence; each may be printed as four. */
	enum { SHOWN = 100 };
	const char *wrong = pattern_wrong(pattern, flags);
	struct buf shown;

	if (!wrong)
		return true;
	buf_init(&shown, (size_t)4 * SHOWN);
	(void)text_clean(str_part(pattern, 0, text_character_border(pattern, SHOWN)),
			 &shown);
	(void)err_set(err, EINVAL, "the pattern \"%s\" is not usable: %s", shown.data,
		      wrong);
	buf_fini(&shown);
	return false;
}

/* The texts that still have to be expanded: this piece, then the pieces around it. */
struct pattern_piece {
	struct str text;
	const struct pattern_piece *next;
};

struct pattern_expansion {
	char text[PATTERN_MAX];
	unsigned flags;
	bool (*each)(void *owner, struct str one);
	void *owner;
};

/*
 * Offset of the comma or brace that ends the alternative at AT, in a well-formed
 * pattern.
 */
static size_t pattern_alternative_end(struct str text, size_t at, unsigned flags)
{
	size_t depth = 0;

	for (;;) {
		char c = text.data[at];

		if (depth == 0 && (c == ',' || c == '}'))
			return at;
		depth += c == '{';
		depth -= c == '}';
		at = pattern_skip(text, at, flags);
	}
}

/*
 * Does EACH return true for one of the patterns that begin with the first SIZE bytes of
 * expansion->text?
 */
static bool pattern_expand(struct pattern_expansion *expansion,
			   const struct pattern_piece *piece, size_t size)
{
	struct str text = piece->text;
	size_t at = 0;

	while (at < text.size || piece->next) {
		size_t next, end;

		if (at == text.size) {
			piece = piece->next;
			text = piece->text;
			at = 0;
			continue;
		}
		if (text.data[at] != '{' || !(expansion->flags & PATTERN_BRACES)) {
			next = pattern_skip(text, at, expansion->flags);
			memcpy(expansion->text + size, text.data + at, next - at);
			size += next - at;
			at = next;
			continue;
		}
		for (end = at; text.data[end] != '}';)
			end = pattern_alternative_end(text, end + 1, expansion->flags);
		do {
			struct pattern_piece rest = {str_part(text, end + 1, text.size),
						     piece->next};
			struct pattern_piece alternative = {.next = &rest};

			next = pattern_alternative_end(text, at + 1, expansion->flags);
			alternative.text = str_part(text, at + 1, next - at - 1);
			if (pattern_expand(expansion, &alternative, size))
				return true;
			at = next;
		} while (at != end);
		return false;
	}
	return expansion->each(expansion->owner, (struct str){expansion->text, size});
}

/*
 * Call EACH for every pattern without braces that PATTERN (well-formed) expands to,
 * until it returns true. Returns whether it did.
 */
static bool pattern_each(struct str pattern, unsigned flags,
			 bool (*each)(void *owner, struct str one), void *owner)
{
	struct pattern_piece whole = {pattern, NULL};
	struct pattern_expansion expansion;

	if (!(flags & PATTERN_BRACES) || str_find(pattern, STR("{"), 0) == (size_t)-1)
		return each(owner, pattern);
	expansion.flags = flags;
	expansion.each = each;
	expansion.owner = owner;
	return pattern_expand(&expansion, &whole, 0);
}

struct pattern_question {
	struct str path;
	unsigned flags;
};

static bool pattern_try(void *owner, struct str pattern)
{
	const struct pattern_question *question = owner;
	struct str path = question->path;

	if ((question->flags & PATTERN_BASENAME) &&
	    str_find(pattern, STR("/"), 0) == (size_t)-1) {
		const char *slash = path.size ? memrchr(path.data, '/', path.size) : NULL;

		if (slash)
			path = str_part(path, (size_t)(slash + 1 - path.data), path.size);
	}
	return pattern_match_plain(pattern, path, question->flags);
}

bool pattern_match(struct str pattern, struct str path, unsigned flags)
{
	struct pattern_question question = {path, flags};

	return !pattern_wrong(pattern, flags) &&
	       pattern_each(pattern, flags, pattern_try, &question);
}

bool pattern_is_one(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] && strchr("*?[{", text.data[i]))
			return true;
	}
	return false;
}

/*
 * Prepares a pattern once: writes out its braces and notes the plain bytes at both ends
 * of each alternative.
 */

/* One alternative. */
struct pattern_one {
	char *data; /* owned */
	size_t size;
	struct pattern_ends ends;
	bool name; /* compared with the last name of a path */
};

struct pattern_set {
	unsigned flags;
	struct pattern_one *ones;
	size_t count;
};

/* Always returns false, so that pattern_each goes on. */
static bool pattern_set_add(void *owner, struct str text)
{
	struct pattern_set *set = owner;
	bool any_depth = false;
	struct pattern_one *one;

	/* "**", a slash and a name match that name at any depth. */
	while (str_starts(text, STR("**/")) && text.size > 3) {
		text = str_part(text, 3, text.size);
		any_depth = true;
	}
	if (any_depth && memchr(text.data, '/', text.size)) {
		text = (struct str){text.data - 3, text.size + 3};
		any_depth = false;
	}
	set->ones = memory_more(set->ones, set->count, sizeof(*set->ones));
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

struct str pattern_set_text(const struct pattern_set *set)
{
	if (set == NULL || set->count != 1 || (set->flags & PATTERN_IGNORE_CASE))
		return STR("");
	const struct pattern_one *one = &set->ones[0];
	const struct str text = {one->data, one->size};

	return one->ends.head >= one->ends.tail
		       ? str_part(text, 0, one->ends.head)
		       : str_part(text, text.size - one->ends.tail, text.size);
}

/* Reads and applies rules of gitignore(5). */

struct ignore_rule {
	struct str pattern; /* without "!", leading slash and final slash */
	struct pattern_ends ends;
	bool negated;
	bool directories; /* matches only directories */
	bool base_name;   /* no slash inside: matches at any depth */
};

struct ignore {
	char *text;
	char *folder;
	size_t folder_size;
	struct ignore_rule *rules;
	size_t count;
	unsigned flags;
	const struct ignore *parent;
};

/* gitignore(5): remove blanks at the end, unless a backslash quotes them; tabs stay. */
static struct str ignore_trim(struct str line)
{
	size_t end = 0;

	for (size_t at = 0; at < line.size; at++) {
		if (line.data[at] == '\\')
			at++;
		else if (line.data[at] == ' ')
			continue;
		end = at + 1;
	}
	/* A backslash at the end of the line quotes nothing. */
	return str_part(line, 0, end);
}

/* False for a line that is no rule, or a rule that can never match. */
static bool ignore_parse_line(struct str line, struct ignore_rule *rule)
{
	const char *nul = memchr(line.data, '\0', line.size);

	/* git reads C strings, which end at a NUL. */
	if (nul)
		line.size = (size_t)(nul - line.data);
	if (line.size == 0 || line.data[0] == '#')
		return false;
	*rule = (struct ignore_rule){0};
	line = ignore_trim(line);
	if (str_starts(line, STR("!"))) {
		rule->negated = true;
		line = str_part(line, 1, line.size);
	}
	if (str_ends(line, STR("/"))) {
		rule->directories = true;
		line.size--;
	}
	rule->base_name = !memchr(line.data, '/', line.size);
	if (str_starts(line, STR("/")))
		line = str_part(line, 1, line.size);
	rule->pattern = line;
	rule->ends = pattern_ends_of(line);
	return line.size > 0 &&
	       (rule->ends.head == line.size || pattern_check(line, 0, NULL));
}

struct ignore *ignore_new(struct str text, struct str folder, const struct ignore *parent,
			  unsigned flags)
{
	struct ignore *ignore = memory_alloc(sizeof(*ignore));
	struct str rest, line;

	ignore->text = memory_copy_str(text);
	ignore->folder = memory_copy_str(folder);
	ignore->folder_size = folder.size;
	ignore->parent = parent;
	ignore->flags = flags;
	rest = (struct str){ignore->text, text.size};
	if (str_starts(rest, STR("\xef\xbb\xbf")))
		rest = str_part(rest, 3, rest.size);
	while (str_next_line(&rest, &line)) {
		ignore->rules =
			memory_more(ignore->rules, ignore->count, sizeof(*ignore->rules));
		if (str_ends(line, STR("\r")))
			line.size--;
		if (ignore_parse_line(line, &ignore->rules[ignore->count]))
			ignore->count++;
	}
	return ignore;
}

void ignore_free(struct ignore *ignore)
{
	if (!ignore)
		return;
	free(ignore->text);
	free(ignore->folder);
	free(ignore->rules);
	free(ignore);
}

/*
 * As in git, only the plain beginning of a pattern is compared before the matcher runs,
 * not its plain end.
 */
static bool ignore_rule_matches_any_case(const struct ignore_rule *rule, struct str below,
					 struct str name)
{
	struct str pattern = rule->pattern;
	size_t head = rule->ends.head;

	if (rule->base_name)
		return pattern_match_plain(pattern, name, PATTERN_IGNORE_CASE);
	if (head > below.size || strncasecmp(pattern.data, below.data, head) != 0)
		return false;
	return pattern_match_plain(str_part(pattern, head, pattern.size),
				   str_part(below, head, below.size), PATTERN_IGNORE_CASE);
}

static bool ignore_rule_matches(const struct ignore_rule *rule, struct str below,
				struct str name)
{
	struct str pattern = rule->pattern;
	size_t head = rule->ends.head;

	if (rule->base_name)
		return pattern_match_name(&rule->ends, pattern, name, 0);
	if (!pattern_ends_fit(&rule->ends, pattern, below))
		return false;
	if (head == pattern.size)
		return below.size == pattern.size;
	/*
	 * As in git: the matcher does not see the plain beginning, even when "**" looks
	 * at the character before it.
	 */
	return pattern_match_plain(str_part(pattern, head, pattern.size),
				   str_part(below, head, below.size), 0);
}

/* The answer of the last matching rule of one file. */
static enum ignore_answer ignore_decide_here(const struct ignore *ignore, struct str path,
					     struct str name, bool is_directory)
{
	struct str folder = {ignore->folder, ignore->folder_size}, below = path;

	if (folder.size) {
		if (!str_starts(path, folder) || path.size <= folder.size + 1 ||
		    path.data[folder.size] != '/')
			return IGNORE_SILENT;
		below = str_part(path, folder.size + 1, path.size);
	}
	for (size_t i = ignore->count; i-- > 0;) {
		const struct ignore_rule *rule = &ignore->rules[i];

		if (rule->directories && !is_directory)
			continue;
		const bool matches =
			(ignore->flags & PATTERN_IGNORE_CASE) != 0
				? ignore_rule_matches_any_case(rule, below, name)
				: ignore_rule_matches(rule, below, name);
		if (matches)
			return rule->negated ? IGNORE_NO : IGNORE_YES;
	}
	return IGNORE_SILENT;
}

enum ignore_answer ignore_decide(const struct ignore *ignore, struct str path,
				 bool is_directory)
{
	const char *slash = path.size ? memrchr(path.data, '/', path.size) : NULL;
	struct str name = path;

	if (slash)
		name = str_part(path, (size_t)(slash + 1 - path.data), path.size);
	for (; ignore; ignore = ignore->parent) {
		enum ignore_answer answer =
			ignore_decide_here(ignore, path, name, is_directory);

		if (answer != IGNORE_SILENT)
			return answer;
	}
	return IGNORE_SILENT;
}
