/*
 * validate: checks a value against a schema by recursion: references, types, choices
 * and combinations, then the keywords for each kind of value.
 */

#include "tool/validate.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/regex.h"
#include "base/text/text.h"
#include "base/value.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of expressions that are kept; a usual schema has fewer. */
enum { VALIDATE_PATTERNS = 16 };

/* The answer to: does PATTERN (a schema's regular expression) match somewhere in TEXT? */
enum validate_match { MATCH_NO, MATCH_YES, MATCH_BROKEN /* refused, problem written */ };

enum {
	BYTES_PER_STEP = 64, /* text searched in the time of one step */
	SCALAR_SENTENCE_MAX = 512,
};

enum {
	SENTENCE_MAX = 2048,
	/* bytes of a member's description that is added to a refusal */
	DESCRIPTION_MAX = 120,
};

/*
 * Compiles the regular expressions of a schema once for each value, and limits the time
 * of all matches together.
 */

static bool validate_refuse(struct validate_check *check, const struct validate_place *at,
			    const char *keyword, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

enum {
	MATCH_STEPS = 200, /* the cost of compiling an expression, in steps */
	/* for one value in all: as long as all steps may take */
	MATCHING_MAX_US = 1000000,
};

struct validate_pattern {
	struct str text;
	struct regex *regex;
	struct regex_scratch *scratch;
};

static void forget(struct validate_pattern *pattern)
{
	regex_scratch_free(pattern->scratch);
	regex_free(pattern->regex);
	*pattern = (struct validate_pattern){0};
}

static void validate_patterns_fini(struct validate_patterns *patterns)
{
	for (size_t i = 0; patterns->made && i < VALIDATE_PATTERNS; i++)
		forget(&patterns->made[i]);
	free(patterns->made);
}

/*
 * The same place in the same schema means the same pattern, so texts need not be
 * compared.
 */
static struct validate_pattern *find(struct validate_patterns *patterns, struct str text)
{
	struct validate_pattern *oldest;

	if (!patterns->made)
		patterns->made = memory_array(VALIDATE_PATTERNS, sizeof(*patterns->made));
	for (size_t i = 0; i < VALIDATE_PATTERNS; i++) {
		if (patterns->made[i].regex && patterns->made[i].text.data == text.data)
			return &patterns->made[i];
	}
	oldest = &patterns->made[patterns->next++ % VALIDATE_PATTERNS];
	forget(oldest);
	oldest->text = text;
	return oldest;
}

static enum regex_answer match(struct validate_check *check,
			       struct validate_pattern *pattern, struct str text)
{
	int64_t start = clock_now_us();
	struct regex_span span;
	enum regex_answer answer =
		regex_find(pattern->regex, pattern->scratch, text, 0, &span);

	check->patterns.spent_us += clock_now_us() - start;
	return check->patterns.spent_us > MATCHING_MAX_US ? REGEX_LIMIT : answer;
}

static enum validate_match validate_match(struct validate_check *check, struct str pattern,
					  struct str text, const struct validate_place *at)
{
	struct validate_pattern *made = find(&check->patterns, pattern);
	struct err err;

	if (!validate_spend(check,
			    (made->regex ? 1 : MATCH_STEPS) + text.size / BYTES_PER_STEP))
		return MATCH_BROKEN;
	if (!made->regex) {
		if (!regex_compile(pattern, REGEX_ECMASCRIPT, &made->regex, &err)) {
			(void)validate_give_up(
				check, at, "pattern",
				"cannot be checked: the schema's pattern is wrong: %s",
				err.text);
			return MATCH_BROKEN;
		}
		made->scratch = regex_scratch_new(made->regex);
	}
	switch (match(check, made, text)) {
	case REGEX_FOUND:
		return MATCH_YES;
	case REGEX_NONE:
		return MATCH_NO;
	case REGEX_LIMIT:
		break;
	}
	(void)validate_give_up(check, at, "pattern",
			       "takes too long to compare with the schema's pattern");
	return MATCH_BROKEN;
}

/* Writes the sentences of a refusal, with a bounded length for any value. */

enum {
	QUOTED_MAX = 60,    /* bytes of a value quoted: enough to recognise it */
	LISTED_MAX = 24,    /* names in one sentence */
	COMPARED_MAX = 256, /* names with which a wrong word is compared */
	POINTER_DEPTH = VALUE_DEPTH_MAX, /* no value nests more deeply */
	WHOLE_SENTENCE_MAX = 8192,       /* room for a sentence before it is cut */
};

static void keep(const struct buf *text, char *place, size_t size)
{
	size_t length = text_character_border(buf_str(text), size - 1);

	memcpy(place, text->data, length);
	place[length] = '\0';
}

static void add_pointer(struct buf *out, const struct validate_place *at)
{
	const struct validate_place *parts[POINTER_DEPTH];
	size_t count = 0;

	for (; at && at->above && count < POINTER_DEPTH; at = at->above)
		parts[count++] = at;
	while (count--) {
		const char *key = parts[count]->key;

		(void)buf_addc(out, '/');
		if (!key)
			(void)buf_addf(out, "%zu", parts[count]->index);
		for (size_t i = 0; key && key[i] && i < VALIDATE_POINTER_MAX; i++) {
			if (key[i] == '~' || key[i] == '/')
				(void)buf_addf(out, "~%c", key[i] == '~' ? '0' : '1');
			else
				(void)buf_addc(out, key[i]);
		}
	}
}

__attribute__((format(printf, 4, 0))) static void write_problem(
	struct validate_problem *problem, const struct validate_place *at,
	const char *keyword, const char *format, va_list arguments)
{
	struct buf text;

	buf_init(&text, WHOLE_SENTENCE_MAX);
	add_pointer(&text, at);
	keep(&text, problem->pointer, sizeof(problem->pointer));
	buf_clear(&text);
	(void)buf_addv(&text, format, arguments);
	keep(&text, problem->rule, sizeof(problem->rule));
	problem->keyword = keyword;
	buf_fini(&text);
}

/* Fill in the problem, if the caller wants one. Always returns false. */
static bool validate_refuse(struct validate_check *check, const struct validate_place *at,
			    const char *keyword, const char *format, ...)
{
	va_list arguments;

	if (!check->problem)
		return false;
	va_start(arguments, format);
	write_problem(check->problem, at, keyword, format, arguments);
	va_end(arguments);
	return false;
}

bool validate_give_up(struct validate_check *check, const struct validate_place *at,
		      const char *keyword, const char *format, ...)
{
	va_list arguments;

	if (check->refused)
		return false;
	va_start(arguments, format);
	write_problem(&check->refusal, at, keyword, format, arguments);
	va_end(arguments);
	check->refused = true;
	return false;
}

void validate_add_quoted(struct buf *out, struct str text)
{
	size_t size = text.size;

	if (size > QUOTED_MAX)
		size = text_character_border(text, QUOTED_MAX);
	(void)value_quote(str_part(text, 0, size), out);
	if (size < text.size)
		(void)buf_adds(out, "…");
}

/* Append VALUE in words. */
static void validate_add_value(struct buf *out, const struct value *value)
{
	switch (value_kind(value)) {
	case VALUE_NULL:
		(void)buf_adds(out, "null");
		break;
	case VALUE_BOOLEAN:
		(void)buf_adds(out, value_is_true(value) ? "true" : "false");
		break;
	case VALUE_INTEGER:
	case VALUE_REAL:
		(void)value_print(value, 0, out);
		break;
	case VALUE_STRING:
		(void)buf_adds(out, "the string ");
		validate_add_quoted(out, value_str(value));
		break;
	case VALUE_ARRAY:
		(void)buf_addf(out, "a list of %zu", value_count(value));
		break;
	case VALUE_OBJECT:
		(void)buf_adds(out, "an object");
		break;
	}
}

static void validate_add_keys(struct buf *out, const struct value *object)
{
	size_t listed = 0;

	for (void *at = value_first(object); at; at = value_next(object, at)) {
		struct str key = str_of(value_key(at));

		if (listed == LISTED_MAX) {
			(void)buf_addf(out, " and %zu more", value_count(object) - listed);
			return;
		}
		if (listed++)
			(void)buf_adds(out, ", ");
		(void)text_clean(str_part(key, 0, text_character_border(key, QUOTED_MAX)),
				 out);
	}
}

static const char *validate_nearest_key(const struct value *object, const char *word)
{
	auto_free const char **names = memory_array(COMPARED_MAX + 1, sizeof(*names));
	size_t count = 0;

	for (void *at = value_first(object); at && count < COMPARED_MAX;
	     at = value_next(object, at))
		names[count++] = value_key(at);
	return strlen(word) > QUOTED_MAX ? NULL : text_nearest(word, names);
}

/*
 * Marks the members or items of a value that some keyword has evaluated. Marks are kept
 * only below a schema with an unevaluated… keyword, and belong to one value. The marks
 * of a form that does not fit in the end are dropped.
 */

enum { MARKS_PER_STEP = 64 }; /* copied in the time of one step */

static void validate_marks_init(struct validate_marks *marks, const struct value *value)
{
	marks->count = value_count(value);
	marks->seen = memory_array(marks->count + 1, 1);
}

static void validate_marks_fini(struct validate_marks *marks)
{
	free(marks->seen);
}

static void validate_mark(struct validate_check *check, size_t index)
{
	if (check->marks)
		check->marks->seen[index] = 1;
}

static void validate_mark_all(struct validate_check *check)
{
	if (check->marks)
		memset(check->marks->seen, 1, check->marks->count);
}

/* Like validate_apply, for one form among several: its marks count only when it fits. */
static bool validate_branch(struct validate_check *check, const struct value *schema,
			    const struct value *value, const struct validate_place *at)
{
	struct validate_marks *outer = check->marks;
	struct validate_marks own = {0};
	bool fits;

	if (!outer)
		return validate_apply(check, schema, value, at);
	if (!validate_spend(check, outer->count / MARKS_PER_STEP))
		return false;
	validate_marks_init(&own, value);
	check->marks = &own;
	fits = validate_apply(check, schema, value, at);
	check->marks = outer;
	for (size_t i = 0; fits && i < own.count; i++)
		outer->seen[i] |= own.seen[i];
	validate_marks_fini(&own);
	return fits;
}

static bool validate_is_false(const struct value *schema)
{
	return value_kind(schema) == VALUE_BOOLEAN && !value_is_true(schema);
}

static bool refuse_member(struct validate_check *check, const char *key,
			  const struct validate_place *at)
{
	struct buf text;

	buf_init(&text, VALIDATE_RULE_MAX);
	(void)buf_adds(&text, "does not take ");
	validate_add_quoted(&text, str_of(key));
	(void)validate_refuse(check, at, "unevaluatedProperties", "%s", text.data);
	buf_fini(&text);
	return false;
}

static bool validate_below(struct validate_check *check, const struct value *schema,
			   const struct value *value, const struct validate_place *at);

static bool check_rest(struct validate_check *check, const struct value *schema,
		       const struct value *value, const struct validate_place *at)
{
	const unsigned char *seen = check->marks->seen;
	size_t i = 0;

	if (value_kind(value) == VALUE_ARRAY) {
		for (; i < value_count(value); i++) {
			const struct validate_place below = {at, NULL, i};

			if (!seen[i] &&
			    !validate_below(check, schema, value_item(value, i), &below))
				return false;
		}
		return true;
	}
	for (void *row = value_first(value); row; row = value_next(value, row), i++) {
		const struct validate_place below = {at, value_key(row), 0};

		if (seen[i])
			continue;
		if (validate_is_false(schema))
			return refuse_member(check, value_key(row), at);
		if (!validate_below(check, schema, value_at(row), &below))
			return false;
	}
	return true;
}

static bool validate_unevaluated(struct validate_check *check, const struct value *schema,
				 const struct value *value, const struct validate_place *at)
{
	return validate_spend(check, value_count(value) / MARKS_PER_STEP) &&
	       check_rest(check, schema, value, at);
}

/* Checks type, enum and const. */

/*
 * NUMBER rounded, halves away from zero. A number that is not finite stays as it is.
 * round() would load libm at every start, which costs 60 us.
 */
static double validate_nearest_whole(double number)
{
	/* From 2^52 on all numbers are whole. */
	return fabs(number) < 0x1p52 ? (double)(int64_t)(number + copysign(0.5, number))
				     : number;
}

static bool is_whole(const struct value *value)
{
	double number = value_number(value);

	return value_kind(value) == VALUE_INTEGER ||
	       (value_kind(value) == VALUE_REAL && isfinite(number) &&
		number == validate_nearest_whole(number));
}

static bool has_type(const struct value *value, struct str type)
{
	switch (value_kind(value)) {
	case VALUE_NULL:
		return str_is(type, "null");
	case VALUE_BOOLEAN:
		return str_is(type, "boolean");
	case VALUE_INTEGER:
	case VALUE_REAL:
		return str_is(type, "number") ||
		       (str_is(type, "integer") && is_whole(value));
	case VALUE_STRING:
		return str_is(type, "string");
	case VALUE_ARRAY:
		return str_is(type, "array");
	case VALUE_OBJECT:
		return str_is(type, "object");
	}
	return false;
}

static void add_type(struct str type, struct buf *out)
{
	static const struct {
		const char *type, *words;
	} rows[] = {
		{"string", "a string"},  {"integer", "an integer"},
		{"number", "a number"},  {"array", "a list"},
		{"object", "an object"}, {"boolean", "true or false"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (str_is(type, rows[i].type)) {
			(void)buf_adds(out, rows[i].words);
			return;
		}
	}
	(void)buf_addf(out, "%.*s", (int)(type.size < 32 ? type.size : 32),
		       type.data ? type.data : "");
}

static bool check_type(struct validate_check *check, const struct value *type,
		       const struct value *value, const struct validate_place *at)
{
	size_t count = value_kind(type) == VALUE_ARRAY ? value_count(type) : 1;
	struct buf text;

	if (value_kind(type) != VALUE_ARRAY && value_kind(type) != VALUE_STRING)
		return true;
	buf_init(&text, SENTENCE_MAX);
	(void)buf_adds(&text, "must be ");
	for (size_t i = 0; i < count; i++) {
		struct str name = value_str(count == 1 && value_kind(type) == VALUE_STRING
						    ? type
						    : value_item(type, i));

		if (has_type(value, name)) {
			buf_fini(&text);
			return true;
		}
		(void)buf_adds(&text, i ? " or " : "");
		add_type(name, &text);
	}
	(void)buf_adds(&text, ", not ");
	validate_add_value(&text, value);
	(void)validate_refuse(check, at, "type", "%s", text.data);
	buf_fini(&text);
	return false;
}

static void add_nearest_choice(struct buf *out, const struct value *choices,
			       const struct value *value)
{
	auto_free const char **words =
		memory_array(value_count(choices) + 1, sizeof(*words));
	const char *nearest = NULL;
	size_t count = 0;

	for (size_t i = 0; i < value_count(choices); i++) {
		if (value_kind(value_item(choices, i)) == VALUE_STRING)
			words[count++] = value_text(value_item(choices, i));
	}
	if (value_kind(value) == VALUE_STRING && value_str(value).size < 64)
		nearest = text_nearest(value_text(value), words);
	if (nearest) {
		(void)buf_adds(out, "; did you mean ");
		validate_add_quoted(out, str_of(nearest));
		(void)buf_adds(out, "?");
	}
}

static bool check_enum(struct validate_check *check, const struct value *choices,
		       const struct value *value, const struct validate_place *at)
{
	struct buf text;

	if (value_kind(choices) != VALUE_ARRAY)
		return true;
	for (size_t i = 0; i < value_count(choices); i++) {
		if (!validate_spend(check, 1 + value_count(value)))
			return false;
		if (value_equal(value_item(choices, i), value))
			return true;
	}
	buf_init(&text, SENTENCE_MAX);
	(void)buf_adds(&text, "must be one of ");
	for (size_t i = 0; i < value_count(choices) && text.size < SENTENCE_MAX / 4; i++) {
		(void)buf_adds(&text, i ? ", " : "");
		if (value_kind(value_item(choices, i)) == VALUE_STRING)
			validate_add_quoted(&text, value_str(value_item(choices, i)));
		else
			validate_add_value(&text, value_item(choices, i));
	}
	(void)buf_adds(&text, ", not ");
	validate_add_value(&text, value);
	add_nearest_choice(&text, choices, value);
	(void)validate_refuse(check, at, "enum", "%s", text.data);
	buf_fini(&text);
	return false;
}

static bool check_const(struct validate_check *check, const struct value *schema,
			const struct value *value, const struct validate_place *at)
{
	const struct value *only = value_member(schema, "const");
	struct buf text;

	if (!only || value_equal(only, value))
		return true;
	buf_init(&text, SENTENCE_MAX);
	(void)buf_adds(&text, "must be ");
	validate_add_value(&text, only);
	(void)buf_adds(&text, ", not ");
	validate_add_value(&text, value);
	(void)validate_refuse(check, at, "const", "%s", text.data);
	buf_fini(&text);
	return false;
}

static bool validate_type(struct validate_check *check, const struct value *schema,
			  const struct value *value, const struct validate_place *at)
{
	return check_type(check, value_member(schema, "type"), value, at) &&
	       check_enum(check, value_member(schema, "enum"), value, at) &&
	       check_const(check, schema, value, at);
}

/* Checks the keywords for numbers and strings. */

/*
 * Here a long double holds every int64 and every double exactly, so one comparison is
 * enough for both.
 */
static long double number_of(const struct value *value)
{
	if (value_kind(value) == VALUE_INTEGER)
		return (long double)value_integer(value);
	return (long double)value_number(value);
}

static bool refuse_number(struct validate_check *check, const struct validate_place *at,
			  const char *keyword, const char *rule,
			  const struct value *bound, const struct value *value)
{
	struct buf text;

	buf_init(&text, SCALAR_SENTENCE_MAX);
	(void)buf_adds(&text, rule);
	(void)buf_addc(&text, ' ');
	validate_add_value(&text, bound);
	(void)buf_adds(&text, ", not ");
	validate_add_value(&text, value);
	(void)validate_refuse(check, at, keyword, "%s", text.data);
	buf_fini(&text);
	return false;
}

static bool is_multiple(const struct value *value, const struct value *of)
{
	double number = value_number(value);
	double unit = value_number(of);
	double times = number / unit;
	double whole = validate_nearest_whole(times);

	if (value_kind(value) == VALUE_INTEGER && value_kind(of) == VALUE_INTEGER)
		return value_integer(of) == -1 ||
		       value_integer(value) % value_integer(of) == 0;
	if (!isfinite(times))
		return false;
	/*
	 * For a reader, 0.0075 is 75 × 0.0001. In binary each operand is rounded, so
	 * allow for that.
	 */
	return whole == 0 ? number == 0
			  : fabs(times - whole) <= 4 * DBL_EPSILON * fabs(times);
}

static bool validate_number(struct validate_check *check, const struct value *schema,
			    const struct value *value, const struct validate_place *at)
{
	const struct value *minimum = value_member(schema, "minimum");
	const struct value *maximum = value_member(schema, "maximum");
	const struct value *above = value_member(schema, "exclusiveMinimum");
	const struct value *below = value_member(schema, "exclusiveMaximum");
	const struct value *multiple = value_member(schema, "multipleOf");
	long double number = number_of(value);

	if (!check->scope->resource->asserts)
		return true;
	if (value_is_number(minimum) && number < number_of(minimum))
		return refuse_number(check, at, "minimum", "must be at least", minimum,
				     value);
	if (value_is_number(maximum) && number > number_of(maximum))
		return refuse_number(check, at, "maximum", "must be at most", maximum,
				     value);
	if (value_is_number(above) && number <= number_of(above))
		return refuse_number(check, at, "exclusiveMinimum", "must be more than",
				     above, value);
	if (value_is_number(below) && number >= number_of(below))
		return refuse_number(check, at, "exclusiveMaximum", "must be less than",
				     below, value);
	if (value_is_number(multiple) && number_of(multiple) > 0 &&
	    !is_multiple(value, multiple))
		return refuse_number(check, at, "multipleOf", "must be a multiple of",
				     multiple, value);
	return true;
}

static size_t count_characters(struct str text)
{
	size_t count = 0;

	for (size_t i = 0; i < text.size; i++)
		count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
	return count;
}

static bool refuse_pattern(struct validate_check *check, const struct validate_place *at,
			   struct str pattern, const struct value *value)
{
	struct buf text;

	buf_init(&text, SCALAR_SENTENCE_MAX);
	(void)buf_adds(&text, "must match the pattern ");
	validate_add_quoted(&text, pattern);
	(void)buf_adds(&text, ", unlike ");
	validate_add_value(&text, value);
	(void)validate_refuse(check, at, "pattern", "%s", text.data);
	buf_fini(&text);
	return false;
}

static bool validate_string(struct validate_check *check, const struct value *schema,
			    const struct value *value, const struct validate_place *at)
{
	const struct value *least = value_member(schema, "minLength");
	const struct value *most = value_member(schema, "maxLength");
	const struct value *pattern = value_member(schema, "pattern");
	struct str text = value_str(value);

	if (!check->scope->resource->asserts)
		return true;
	if (value_is_number(least) || value_is_number(most)) {
		size_t count = count_characters(text);

		if (!validate_spend(check, text.size / BYTES_PER_STEP))
			return false;
		if (value_is_number(least) && (double)count < value_number(least))
			return count == 0
				       ? validate_refuse(check, at, "minLength",
							 "may not be empty")
				       : validate_refuse(check, at, "minLength",
							 "must have at least %.0f characters, "
							 "not %zu",
							 value_number(least), count);
		if (value_is_number(most) && (double)count > value_number(most))
			return validate_refuse(check, at, "maxLength",
					       "must have at most %.0f characters, not %zu",
					       value_number(most), count);
	}
	if (value_kind(pattern) != VALUE_STRING)
		return true;
	switch (validate_match(check, value_str(pattern), text, at)) {
	case MATCH_NO:
		return refuse_pattern(check, at, value_str(pattern), value);
	case MATCH_BROKEN:
		return false;
	case MATCH_YES:
		break;
	}
	return true;
}

enum {
	/*
	 * Values nest VALUE_DEPTH_MAX deep; allow a reference and a combination for
	 * each level.
	 */
	DEPTH_MAX = 3 * VALUE_DEPTH_MAX,
	/* About a second of work; the arguments of a call need a few hundred steps. */
	WORK_MAX = 2000000,
};

bool validate_spend(struct validate_check *check, size_t steps)
{
	check->work += steps;
	if (check->work > WORK_MAX)
		check->exhausted = true;
	return !check->exhausted;
}

/* Like validate_branch, but writes no problem. */
static bool try_schema(struct validate_check *check, const struct value *schema,
		       const struct value *value, const struct validate_place *at)
{
	struct validate_problem *problem = check->problem;
	bool fits;

	check->problem = NULL;
	fits = validate_branch(check, schema, value, at);
	check->problem = problem;
	return fits;
}

/*
 * The number of SCHEMAS that fit, counted up to ENOUGH. NEAREST gets the problem of the
 * schema that got deepest.
 */
static size_t count_fitting(struct validate_check *check, const struct value *schemas,
			    const struct value *value, const struct validate_place *at,
			    size_t enough, struct validate_problem *nearest)
{
	struct validate_problem *problem = check->problem;
	size_t fitting = 0;

	for (size_t i = 0; i < value_count(schemas) && fitting < enough; i++) {
		struct validate_problem own = {0};

		check->problem = problem ? &own : NULL;
		fitting += validate_branch(check, value_item(schemas, i), value, at);
		if (i == 0 || strlen(own.pointer) > strlen(nearest->pointer))
			*nearest = own;
	}
	check->problem = problem;
	return fitting;
}

static bool check_any(struct validate_check *check, const struct value *schema,
		      const char *keyword, const struct value *value,
		      const struct validate_place *at)
{
	const struct value *schemas = value_member(schema, keyword);
	bool one = strcmp(keyword, "oneOf") == 0;
	struct validate_problem nearest = {0};
	size_t fitting;

	if (value_kind(schemas) != VALUE_ARRAY)
		return true;
	/* When marks are kept, all forms that fit must be tried. */
	fitting = count_fitting(check, schemas, value, at,
				one            ? 2
				: check->marks ? SIZE_MAX
					       : 1,
				&nearest);
	if (check->exhausted)
		return false;
	if (fitting == 1 || (fitting && !one))
		return true;
	if (fitting)
		return validate_refuse(check, at, keyword,
				       "must fit exactly one of the %zu forms allowed, and fits "
				       "more",
				       value_count(schemas));
	return validate_refuse(check, at, keyword,
			       "fits none of the %zu forms allowed; the nearest says: %s%s%s",
			       value_count(schemas), nearest.pointer,
			       nearest.pointer[0] ? " " : "", nearest.rule);
}

static bool check_combinations(struct validate_check *check, const struct value *schema,
			       const struct value *value, const struct validate_place *at)
{
	const struct value *all = value_member(schema, "allOf");
	const struct value *none = value_member(schema, "not");
	const struct value *test = value_member(schema, "if");

	for (size_t i = 0; value_kind(all) == VALUE_ARRAY && i < value_count(all); i++) {
		if (!validate_apply(check, value_item(all, i), value, at))
			return false;
	}
	if (!check_any(check, schema, "anyOf", value, at) ||
	    !check_any(check, schema, "oneOf", value, at))
		return false;
	if (none && try_schema(check, none, value, at))
		return validate_refuse(check, at, "not", "has a form that is not allowed");
	if (test && !check->exhausted) {
		const struct value *then =
			value_member(schema, try_schema(check, test, value, at) ? "then"
										: "else");

		if (then && !check->exhausted && !validate_apply(check, then, value, at))
			return false;
	}
	return !check->exhausted;
}

static bool validate_array(struct validate_check *check, const struct value *schema,
			   const struct value *value, const struct validate_place *at);

static bool validate_object(struct validate_check *check, const struct value *schema,
			    const struct value *value, const struct validate_place *at);

static bool check_kind(struct validate_check *check, const struct value *schema,
		       const struct value *value, const struct validate_place *at)
{
	switch (value_kind(value)) {
	case VALUE_INTEGER:
	case VALUE_REAL:
		return validate_number(check, schema, value, at);
	case VALUE_STRING:
		return validate_string(check, schema, value, at);
	case VALUE_ARRAY:
		return validate_array(check, schema, value, at);
	case VALUE_OBJECT:
		return validate_object(check, schema, value, at);
	case VALUE_NULL:
	case VALUE_BOOLEAN:
		break;
	}
	return true;
}

static bool apply_keywords(struct validate_check *check, const struct value *schema,
			   const struct value *value, const struct validate_place *at)
{
	return validate_index_reference(check, schema, value, at) &&
	       ((check->scope->resource->old && value_member(schema, "$ref")) ||
		((!check->scope->resource->asserts ||
		  validate_type(check, schema, value, at)) &&
		 check_kind(check, schema, value, at) &&
		 check_combinations(check, schema, value, at)));
}

/* The unevaluated… keyword of SCHEMA that applies to VALUE, or NULL. */
static const char *rest_of(const struct validate_check *check, const struct value *schema,
			   const struct value *value)
{
	const char *keyword = value_kind(value) == VALUE_OBJECT  ? "unevaluatedProperties"
			      : value_kind(value) == VALUE_ARRAY ? "unevaluatedItems"
								 : NULL;

	return keyword && !check->scope->resource->old && value_member(schema, keyword)
		       ? keyword
		       : NULL;
}

static bool apply_object(struct validate_check *check, const struct value *schema,
			 const struct value *value, const struct validate_place *at)
{
	const char *rest = rest_of(check, schema, value);
	struct validate_marks own = {0}, *outer = check->marks;
	bool fits;

	if (!rest)
		return apply_keywords(check, schema, value, at);
	validate_marks_init(&own, value);
	check->marks = &own;
	fits = apply_keywords(check, schema, value, at) &&
	       validate_unevaluated(check, value_member(schema, rest), value, at);
	check->marks = outer;
	validate_marks_fini(&own);
	if (fits)
		validate_mark_all(check);
	return fits;
}

bool validate_apply(struct validate_check *check, const struct value *schema,
		    const struct value *value, const struct validate_place *at)
{
	struct validate_scope scope = {.outer = check->scope};
	bool fits;

	if (check->refused || !validate_spend(check, 1))
		return false;
	if (value_kind(schema) == VALUE_BOOLEAN)
		return value_is_true(schema) ||
		       validate_refuse(check, at, "false", "is not allowed here");
	if (value_kind(schema) != VALUE_OBJECT)
		return true;
	if (check->depth == DEPTH_MAX) {
		check->exhausted = true;
		return false;
	}
	check->depth++;
	scope.resource = validate_index_of(check, schema, scope.outer->resource);
	if (scope.resource != scope.outer->resource)
		check->scope = &scope;
	fits = apply_object(check, schema, value, at);
	check->scope = scope.outer;
	check->depth--;
	return fits && !check->exhausted && !check->refused;
}

/* Like validate_apply, for a part of the value, which has its own marks. */
static bool validate_below(struct validate_check *check, const struct value *schema,
			   const struct value *value, const struct validate_place *at)
{
	struct validate_marks *marks = check->marks;
	bool fits;

	check->marks = NULL;
	fits = validate_apply(check, schema, value, at);
	check->marks = marks;
	return fits;
}

/* Like validate_below, but writes no problem. */
static bool validate_try_below(struct validate_check *check, const struct value *schema,
			       const struct value *value, const struct validate_place *at)
{
	struct validate_marks *marks = check->marks;
	bool fits;

	check->marks = NULL;
	fits = try_schema(check, schema, value, at);
	check->marks = marks;
	return fits;
}

bool validate_with(const struct validate_options *options, const struct value *schema,
		   const struct value *value, struct validate_problem *problem)
{
	struct validate_check check = {
		.problem = problem,
		.documents = options ? options->documents : NULL,
		.old_unless_told = options && options->draft_07,
	};
	const struct validate_place whole = {0};
	struct validate_scope scope = {0};
	bool fits = validate_index_start(&check, schema);

	scope.resource = check.index.resources[0];
	check.scope = &scope;
	fits = fits && validate_apply(&check, schema, value, &whole);
	if (problem && check.refused)
		*problem = check.refusal;
	else if (!fits && check.exhausted) {
		check.problem = problem;
		(void)validate_refuse(&check, &whole, "depth",
				      "cannot be checked: its schema nests too deep or asks for "
				      "too much work");
	}
	validate_index_fini(&check.index);
	validate_patterns_fini(&check.patterns);
	return fits;
}

bool validate_value(const struct value *schema, const struct value *value,
		    struct validate_problem *problem)
{
	return validate_with(NULL, schema, value, problem);
}

/* Checks the keywords for lists. */

/* A BOUND of a foreign schema that is absent or not a number has no effect. */
static bool is_below(const struct value *bound, size_t count)
{
	return value_is_number(bound) && (double)count < value_number(bound);
}

static bool is_above(const struct value *bound, size_t count)
{
	return value_is_number(bound) && (double)count > value_number(bound);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	/* FNV-1a over words. A collision only costs one comparison. */
	return (hash ^ word) * 0x100000001b3u;
}

static uint64_t hash_str(struct str text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < text.size; i++)
		hash = mix(hash, (unsigned char)text.data[i]);
	return hash;
}

/*
 * The hash of a value. Equal values (1 and 1.0, members in any order) have equal
 * hashes.
 */
static uint64_t hash_value(struct validate_check *check, const struct value *value)
{
	enum value_kind kind = value_kind(value);
	uint64_t hash = mix(0xcbf29ce484222325u, kind == VALUE_INTEGER ? VALUE_REAL : kind);
	double number = value_is_number(value) ? value_number(value) + 0.0 : 0.0;
	uint64_t bits;

	if (!validate_spend(check, 1))
		return 0;
	memcpy(&bits, &number, sizeof(bits));
	switch (kind) {
	case VALUE_NULL:
		return hash;
	case VALUE_BOOLEAN:
		return mix(hash, value_is_true(value));
	case VALUE_INTEGER:
	case VALUE_REAL:
		return mix(hash, bits);
	case VALUE_STRING:
		return mix(hash, hash_str(value_str(value)));
	case VALUE_ARRAY:
		for (size_t i = 0; i < value_count(value); i++)
			hash = mix(hash, hash_value(check, value_item(value, i)));
		return hash;
	case VALUE_OBJECT:
		for (void *at = value_first(value); at; at = value_next(value, at))
			hash += mix(hash_str(str_of(value_key(at))),
				    hash_value(check, value_at(at)));
		return hash;
	}
	return hash;
}

struct hashed {
	uint64_t hash;
	size_t index;
};

static int compare_hashed(const void *a, const void *b)
{
	const struct hashed *one = a;
	const struct hashed *other = b;

	if (one->hash != other->hash)
		return one->hash < other->hash ? -1 : 1;
	return (one->index > other->index) - (one->index < other->index);
}

static bool check_unique(struct validate_check *check, const struct value *array,
			 const struct validate_place *at)
{
	size_t count = value_count(array);
	auto_free struct hashed *items = memory_array(count + 1, sizeof(*items));

	for (size_t i = 0; i < count; i++)
		items[i] = (struct hashed){hash_value(check, value_item(array, i)), i};
	if (check->exhausted)
		return false;
	qsort(items, count, sizeof(*items), compare_hashed);
	for (size_t i = 0; i < count; i++) {
		for (size_t j = i + 1; j < count && items[j].hash == items[i].hash; j++) {
			if (!validate_spend(check, 1))
				return false;
			if (value_equal(value_item(array, items[i].index),
					value_item(array, items[j].index)))
				return validate_refuse(check, at, "uniqueItems",
						       "may not hold the same item twice: "
						       "%zu and %zu are equal",
						       items[i].index, items[j].index);
		}
	}
	return true;
}

static bool check_contains(struct validate_check *check, const struct value *schema,
			   const struct value *array, const struct validate_place *at)
{
	const struct value *wanted = value_member(schema, "contains");
	bool old = check->scope->resource->old || !check->scope->resource->asserts;
	const struct value *least = old ? NULL : value_member(schema, "minContains");
	const struct value *most = old ? NULL : value_member(schema, "maxContains");
	size_t found = 0;

	if (!wanted)
		return true;
	for (size_t i = 0; i < value_count(array); i++) {
		const struct validate_place below = {at, NULL, i};

		if (validate_try_below(check, wanted, value_item(array, i), &below)) {
			validate_mark(check, i);
			found++;
		}
		if (check->exhausted)
			return false;
	}
	if (value_is_number(least) ? is_below(least, found) : found == 0)
		return validate_refuse(
			check, at, "contains",
			"must hold at least %.0f items of the wanted form, not %zu",
			value_is_number(least) ? value_number(least) : 1.0, found);
	if (is_above(most, found))
		return validate_refuse(check, at, "maxContains",
				       "must hold at most %.0f items of the wanted form, not %zu",
				       value_number(most), found);
	return true;
}

/*
 * The schema of item INDEX. Draft-07 calls prefixItems `items`, and items
 * `additionalItems`.
 */
static const struct value *schema_of_item(const struct value *schema, size_t index, bool old)
{
	const struct value *prefix = old ? NULL : value_member(schema, "prefixItems");
	const struct value *items = value_member(schema, "items");

	if (value_kind(items) == VALUE_ARRAY) {
		prefix = items;
		items = value_member(schema, "additionalItems");
	}
	return index < value_count(prefix) ? value_item(prefix, index) : items;
}

static bool validate_array(struct validate_check *check, const struct value *schema,
			   const struct value *value, const struct validate_place *at)
{
	const struct validate_resource *resource = check->scope->resource;
	size_t count = value_count(value);
	const struct value *least = value_member(schema, "minItems");
	const struct value *most = value_member(schema, "maxItems");

	if (resource->asserts && is_below(least, count))
		return count == 0
			       ? validate_refuse(check, at, "minItems", "may not be empty")
			       : validate_refuse(check, at, "minItems",
						 "must hold at least %.0f items, not %zu",
						 value_number(least), count);
	if (resource->asserts && is_above(most, count))
		return validate_refuse(check, at, "maxItems",
				       "must hold at most %.0f items, not %zu",
				       value_number(most), count);
	for (size_t i = 0; i < count; i++) {
		const struct value *item = schema_of_item(schema, i, resource->old);
		const struct validate_place below = {at, NULL, i};

		if (item && !validate_below(check, item, value_item(value, i), &below))
			return false;
		if (item)
			validate_mark(check, i);
	}
	if (resource->asserts && value_is_true(value_member(schema, "uniqueItems")) &&
	    !check_unique(check, value, at))
		return false;
	return check_contains(check, schema, value, at);
}

/* Checks the keywords for objects. */

static bool check_counts(struct validate_check *check, const struct value *schema,
			 const struct value *value, const struct validate_place *at)
{
	const struct value *least = value_member(schema, "minProperties");
	const struct value *most = value_member(schema, "maxProperties");
	size_t count = value_count(value);

	if (value_is_number(least) && (double)count < value_number(least))
		return validate_refuse(check, at, "minProperties",
				       "must have at least %.0f members, not %zu",
				       value_number(least), count);
	if (value_is_number(most) && (double)count > value_number(most))
		return validate_refuse(check, at, "maxProperties",
				       "must have at most %.0f members, not %zu",
				       value_number(most), count);
	return true;
}

static bool refuse_extra(struct validate_check *check, const struct value *properties,
			 const char *key, const struct validate_place *at)
{
	const char *nearest = validate_nearest_key(properties, key);
	struct buf text;

	buf_init(&text, SENTENCE_MAX);
	(void)buf_adds(&text, "does not take ");
	validate_add_quoted(&text, str_of(key));
	if (nearest)
		(void)buf_addf(&text, "; did you mean \"%s\"?", nearest);
	else
		(void)buf_adds(&text, ".");
	if (value_count(properties)) {
		(void)buf_adds(&text, " It takes ");
		validate_add_keys(&text, properties);
	} else {
		(void)buf_adds(&text, " It takes nothing");
	}
	(void)validate_refuse(check, at, "additionalProperties", "%s", text.data);
	buf_fini(&text);
	return false;
}

/*
 * Check one member: properties and patternProperties, else additionalProperties.
 * *NAMED: one of them has evaluated the member.
 */
static bool check_member(struct validate_check *check, const struct value *schema,
			 const char *key, const struct value *member,
			 const struct validate_place *at, bool *named)
{
	const struct value *properties = value_member(schema, "properties");
	const struct value *patterns = value_member(schema, "patternProperties");
	const struct value *others = value_member(schema, "additionalProperties");
	const struct value *own = value_member(properties, key);
	const struct validate_place below = {at, key, 0};

	*named = own || others;
	if (own && !validate_below(check, own, member, &below))
		return false;
	for (void *row = value_first(patterns); row; row = value_next(patterns, row)) {
		enum validate_match match =
			validate_match(check, str_of(value_key(row)), str_of(key), &below);

		if (match == MATCH_BROKEN)
			return false;
		if (match == MATCH_NO)
			continue;
		*named = true;
		others = NULL;
		if (!validate_below(check, value_at(row), member, &below))
			return false;
	}
	if (own || !others)
		return true;
	if (validate_is_false(others))
		return refuse_extra(check, properties, key, at);
	return validate_below(check, others, member, &below);
}

static bool check_name(struct validate_check *check, const struct value *schema,
		       const char *key, const struct validate_place *at)
{
	const struct value *names = value_member(schema, "propertyNames");
	const struct validate_place below = {at, key, 0};
	auto_value struct value *name = names ? value_new_text(key) : NULL;
	struct buf text;

	if (!names || validate_try_below(check, names, name, &below))
		return true;
	buf_init(&text, SENTENCE_MAX);
	(void)buf_adds(&text, "may not have a member named ");
	validate_add_quoted(&text, str_of(key));
	(void)validate_refuse(check, at, "propertyNames", "%s", text.data);
	buf_fini(&text);
	return false;
}

static bool refuse_missing(struct validate_check *check, const struct value *schema,
			   struct str key, const char *keyword, const char *because,
			   const struct validate_place *at)
{
	const struct value *own = NULL;
	struct str description;
	struct buf text;

	buf_init(&text, SENTENCE_MAX);
	(void)buf_adds(&text, "needs ");
	validate_add_quoted(&text, key);
	if (because) {
		(void)buf_adds(&text, " beside ");
		validate_add_quoted(&text, str_of(because));
	}
	if (!memchr(key.data ? key.data : "", '\0', key.size) && key.data)
		own = value_member(value_member(schema, "properties"), key.data);
	description = value_str(value_member(own, "description"));
	if (description.size && description.size <= DESCRIPTION_MAX)
		(void)buf_addf(&text, " (%.*s)", (int)description.size, description.data);
	(void)validate_refuse(check, at, keyword, "%s", text.data);
	buf_fini(&text);
	return false;
}

/*
 * Does VALUE have every member that LIST names? A name that no key can have counts as
 * missing.
 */
static bool check_required(struct validate_check *check, const struct value *schema,
			   const struct value *list, const struct value *value,
			   const char *keyword, const char *because,
			   const struct validate_place *at)
{
	if (value_kind(list) != VALUE_ARRAY)
		return true;
	for (size_t i = 0; i < value_count(list); i++) {
		struct str key = value_str(value_item(list, i));

		if (value_kind(value_item(list, i)) != VALUE_STRING)
			continue;
		if (!validate_spend(check, 1))
			return false;
		if (memchr(key.data, '\0', key.size) || !value_member(value, key.data))
			return refuse_missing(check, schema, key, keyword, because, at);
	}
	return true;
}

/*
 * Check dependentRequired, dependentSchemas, or draft-07's dependencies, which may be
 * both.
 */
static bool check_dependent(struct validate_check *check, const struct value *schema,
			    const char *keyword, const struct value *value,
			    const struct validate_place *at)
{
	const struct value *table = value_member(schema, keyword);

	for (void *row = value_first(table); row; row = value_next(table, row)) {
		const struct value *wanted = value_at(row);

		if (!validate_spend(check, 1))
			return false;
		if (!value_member(value, value_key(row)))
			continue;
		if (value_kind(wanted) == VALUE_ARRAY) {
			if (!check_required(check, schema, wanted, value, keyword,
					    value_key(row), at))
				return false;
		} else if (!validate_apply(check, wanted, value, at)) {
			return false;
		}
	}
	return true;
}

static bool validate_object(struct validate_check *check, const struct value *schema,
			    const struct value *value, const struct validate_place *at)
{
	const struct validate_resource *resource = check->scope->resource;
	size_t index = 0;

	for (void *row = value_first(value); row; row = value_next(value, row), index++) {
		const char *key = value_key(row);
		bool named;

		if (!validate_spend(check, 1) || !check_name(check, schema, key, at) ||
		    !check_member(check, schema, key, value_at(row), at, &named))
			return false;
		if (named)
			validate_mark(check, index);
	}
	return (!resource->asserts ||
		(check_required(check, schema, value_member(schema, "required"), value,
				"required", NULL, at) &&
		 check_counts(check, schema, value, at))) &&
	       (resource->old || !resource->asserts ||
		check_dependent(check, schema, "dependentRequired", value, at)) &&
	       (resource->old ||
		check_dependent(check, schema, "dependentSchemas", value, at)) &&
	       check_dependent(check, schema, "dependencies", value, at);
}
