/* pattern: check, braces and the way to the matcher; see pattern.h. */
#include "base/text/pattern.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/pattern_match.h"
#include "base/text/text.h"

/* Braces in braces: nobody writes more, and each level costs a frame of recursion. */
enum { PATTERN_DEPTH_MAX = 16 };

/*
 * Offset behind the element at AT that is neither a brace nor a comma; 0 when it is
 * broken.
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

/* The state of pattern_count while it counts the patterns that PATTERN stands for. */
struct pattern_count {
	struct str pattern;
	unsigned flags;
	size_t at;
	const char *wrong; /* why it is not well-formed */
};

static size_t pattern_cap(size_t count)
{
	return count > PATTERN_ALTERNATIVES_MAX ? PATTERN_ALTERNATIVES_MAX + 1 : count;
}

/*
 * The number of patterns that the text up to the end, or the closing brace, stands for.
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

/* NULL when PATTERN is well-formed. */
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
	/* As much of a pattern as a sentence repeats, each byte as four at most. */
	enum { SHOWN = 100 };
	const char *wrong = pattern_wrong(pattern, flags);
	struct buf shown;

	if (!wrong)
		return true;
	buf_init(&shown, (size_t)4 * SHOWN);
	(void)text_clean(str_part(pattern, 0, text_character_border(pattern, SHOWN)),
			 &shown);
	err_set(err, EINVAL, "the pattern \"%s\" is not usable: %s", shown.data, wrong);
	buf_fini(&shown);
	return false;
}

/* The texts that are still to be written out: this piece, then the pieces around it. */
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
 * Offset of the comma or brace that ends the alternative at AT. The pattern is
 * well-formed.
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

/* Is EACH content with one of the patterns that begin with SIZE bytes of expansion->text? */
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

bool pattern_each(struct str pattern, unsigned flags,
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
