/* regex: calls PCRE2 with its JIT compiler, always with limits. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/text/regex.h"

#include <errno.h>
#include <pcre2.h>

#include "base/buf.h"
#include "base/memory.h"

/*
 * Limits of one search; beyond them the answer is REGEX_LIMIT. The match limit bounds
 * the time: ten million steps are about a tenth of a second in JIT code, a second in
 * the interpreter. The memory is the stack of the JIT (grown on demand, one in each
 * scratch) and, when that is full, the interpreter's heap, in KiB: enough for a group
 * repeated a hundred thousand times. The depth limit also bounds that heap.
 */
enum {
	REGEX_MATCH_LIMIT = 10000000,
	REGEX_DEPTH_LIMIT = 1000000,
	REGEX_HEAP_KIB = 64 << 10,
	REGEX_STACK_FIRST = 32 << 10,
	REGEX_STACK_MAX = 4 << 20,
};

/*
 * A pattern is typed or generated, so it is never as long as a file; the compiler
 * recurses into parentheses.
 */
enum {
	REGEX_PATTERN_MAX = 64 << 10,
	REGEX_SPELLED_MAX = 3 * REGEX_PATTERN_MAX, /* two bytes become at most five */
	REGEX_PARENS_MAX = 200,
};

struct regex {
	pcre2_code *code;
};

struct regex_scratch {
	pcre2_match_data *match;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
};

static pcre2_compile_context *regex_context(unsigned flags)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);

	if (!context)
		memory_exhausted(REGEX_PATTERN_MAX);
	(void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	(void)pcre2_set_parens_nest_limit(context, REGEX_PARENS_MAX);
	(void)pcre2_set_max_pattern_length(context, REGEX_SPELLED_MAX);
	if (flags & REGEX_ECMASCRIPT)
		(void)pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALT_BSUX);
	return context;
}

static bool regex_refuse(int code, size_t at, struct err *err)
{
	PCRE2_UCHAR message[256];

	/* Longer messages are cut, but still end with NUL. */
	if (pcre2_get_error_message(code, message, sizeof(message)) == PCRE2_ERROR_BADDATA)
		message[0] = '\0';
	return err_set(err, EINVAL, "regular expression, character position %zu: %s",
		       at + 1, (const char *)message);
}

/* The size of the escape at FROM, including the text that \Q quotes. */
static size_t skip_escape(struct str pattern, size_t from)
{
	char name = from + 1 < pattern.size ? pattern.data[from + 1] : '\0';
	size_t end = name == 'Q' ? str_find(pattern, STR("\\E"), from) : (size_t)-1;
	size_t size = end != (size_t)-1 ? end - from : name == 'c' ? 3 : 2;

	return name == 'Q' && end == (size_t)-1 ? pattern.size - from : size;
}

/* The size of the class at FROM. */
static size_t skip_class(struct str pattern, size_t from)
{
	size_t at = from + 1;

	at += at < pattern.size && pattern.data[at] == '^';
	at += at < pattern.size && pattern.data[at] == ']';
	while (at < pattern.size && pattern.data[at] != ']') {
		bool name = str_starts(str_part(pattern, at, 2), STR("[:"));
		size_t end = name ? str_find(pattern, STR(":]"), at) : (size_t)-1;

		if (end != (size_t)-1)
			at = end + 2;
		else
			at += pattern.data[at] == '\\' ? skip_escape(pattern, at) : 1;
	}
	return at < pattern.size ? at + 1 - from : pattern.size - from;
}

/*
 * Append PATTERN with [^\d] in place of \D outside of classes, and likewise for \S and
 * \W. For texts that may be no UTF-8, the compiled code of PCRE2 10.42 lets \D, \S and
 * \W match no character of several bytes.
 */
static void regex_spell(struct str pattern, struct buf *out)
{
	size_t at = 0;

	while (at < pattern.size) {
		struct str next = str_part(pattern, at, 2);
		size_t size = 1;

		if (str_is(next, "\\D") || str_is(next, "\\S") || str_is(next, "\\W")) {
			(void)buf_addf(out, "[^\\%c]", next.data[1] - 'A' + 'a');
			at += 2;
			continue;
		}
		if (next.data[0] == '[')
			size = skip_class(pattern, at);
		else if (next.data[0] == '\\')
			size = skip_escape(pattern, at);
		(void)buf_addstr(out, str_part(pattern, at, size));
		at += size;
	}
}

static pcre2_code *compile_text(struct str pattern, uint32_t options, unsigned flags,
				int *error, size_t *at)
{
	PCRE2_SPTR text = (PCRE2_SPTR)(pattern.data ? pattern.data : "");
	pcre2_compile_context *context = regex_context(flags);
	pcre2_code *code = pcre2_compile(text, pattern.size, options, error, at, context);

	pcre2_compile_context_free(context);
	if (!code && *error == PCRE2_ERROR_NOMEMORY)
		memory_exhausted(pattern.size);
	return code;
}

bool regex_compile(struct str pattern, unsigned flags, struct regex **regex, struct err *err)
{
	uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
	struct regex *made;
	struct buf spelled;
	pcre2_code *code;
	size_t at = 0;
	int error = 0;

	if (flags & REGEX_IGNORE_CASE)
		options |= PCRE2_CASELESS;
	if (flags & REGEX_LITERAL)
		options |= PCRE2_LITERAL;
	else
		options |= PCRE2_NEVER_BACKSLASH_C |
			   (flags & REGEX_MULTILINE ? PCRE2_MULTILINE : 0);
	if (flags & REGEX_ECMASCRIPT)
		options |= PCRE2_DOLLAR_ENDONLY | PCRE2_MATCH_UNSET_BACKREF;
	if (pattern.size > REGEX_PATTERN_MAX)
		return err_set(err, EINVAL, "regular expression: longer than %d bytes",
			       REGEX_PATTERN_MAX);
	/*
	 * Compile the pattern as it was written first, so that errors refer to this
	 * text.
	 */
	code = compile_text(pattern, options, flags, &error, &at);
	if (!code)
		return regex_refuse(error, at, err);
	buf_init(&spelled, REGEX_SPELLED_MAX);
	if (!(flags & REGEX_LITERAL))
		regex_spell(pattern, &spelled);
	if (spelled.size > pattern.size) {
		pcre2_code_free(code);
		code = compile_text(buf_str(&spelled), options, flags, &error, &at);
	}
	buf_fini(&spelled);
	if (!code)
		return regex_refuse(error, at, err);
	/*
	 * Without JIT (the kernel may forbid such memory) the interpreter gives the
	 * same answers.
	 */
	(void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
	made = memory_alloc(sizeof(*made));
	made->code = code;
	*regex = made;
	return true;
}

void regex_free(struct regex *regex)
{
	if (!regex)
		return;
	pcre2_code_free(regex->code);
	free(regex);
}

struct regex_scratch *regex_scratch_new(const struct regex *regex)
{
	struct regex_scratch *scratch = memory_alloc(sizeof(*scratch));

	/* Only the whole match is needed, never a group. */
	(void)regex;
	scratch->match = pcre2_match_data_create(1, NULL);
	scratch->context = pcre2_match_context_create(NULL);
	if (!scratch->match || !scratch->context)
		memory_exhausted(sizeof(*scratch));
	(void)pcre2_set_match_limit(scratch->context, REGEX_MATCH_LIMIT);
	(void)pcre2_set_depth_limit(scratch->context, REGEX_DEPTH_LIMIT);
	(void)pcre2_set_heap_limit(scratch->context, REGEX_HEAP_KIB);
	/* NULL when there is no memory: matching then uses 32 KiB of the C stack. */
	scratch->stack = pcre2_jit_stack_create(REGEX_STACK_FIRST, REGEX_STACK_MAX, NULL);
	pcre2_jit_stack_assign(scratch->context, NULL, scratch->stack);
	return scratch;
}

void regex_scratch_free(struct regex_scratch *scratch)
{
	if (!scratch)
		return;
	pcre2_match_data_free(scratch->match);
	pcre2_match_context_free(scratch->context);
	pcre2_jit_stack_free(scratch->stack);
	free(scratch);
}

enum regex_answer regex_find(const struct regex *regex, struct regex_scratch *scratch,
			     struct str text, size_t from, struct regex_span *span)
{
	PCRE2_SPTR subject = (PCRE2_SPTR)(text.data ? text.data : "");
	const size_t *found;
	int answer;

	if (from > text.size)
		return REGEX_NONE;
	answer = pcre2_match(regex->code, subject, text.size, from, 0, scratch->match,
			     scratch->context);
	/* The interpreter keeps its frames on the heap and can go deeper. */
	if (answer == PCRE2_ERROR_JIT_STACKLIMIT)
		answer = pcre2_match(regex->code, subject, text.size, from, PCRE2_NO_JIT,
				     scratch->match, scratch->context);
	if (answer == PCRE2_ERROR_NOMATCH)
		return REGEX_NONE;
	/*
	 * All other errors mean that the text could not be judged, which is not "no
	 * match".
	 */
	if (answer < 0)
		return REGEX_LIMIT;
	found = pcre2_get_ovector_pointer(scratch->match);
	*span = (struct regex_span){found[0], found[1]};
	/* "\K" may set the start behind the end. */
	if (span->start > span->end)
		span->start = span->end;
	return REGEX_FOUND;
}
