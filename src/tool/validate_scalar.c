/* validate_scalar: the keywords for numbers and strings. */
#include "tool/validate_parts.h"

#include <float.h>
#include <math.h>

enum {
	BYTES_PER_STEP = 64, /* text looked through in the time of one step */
	SENTENCE_MAX = 512,
};

/*
 * A long double holds each int64 and each double exactly here, so one comparison serves
 * both.
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

	buf_init(&text, SENTENCE_MAX);
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
	 * 0.0075 is 75 × 0.0001 to a reader, and off by one rounding of each operand in
	 * binary.
	 */
	return whole == 0 ? number == 0
			  : fabs(times - whole) <= 4 * DBL_EPSILON * fabs(times);
}

bool validate_number(struct validate_check *check, const struct value *schema,
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

	buf_init(&text, SENTENCE_MAX);
	(void)buf_adds(&text, "must match the pattern ");
	validate_add_quoted(&text, pattern);
	(void)buf_adds(&text, ", unlike ");
	validate_add_value(&text, value);
	(void)validate_refuse(check, at, "pattern", "%s", text.data);
	buf_fini(&text);
	return false;
}

bool validate_string(struct validate_check *check, const struct value *schema,
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
