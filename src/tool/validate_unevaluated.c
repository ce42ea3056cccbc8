/*
 * validate_unevaluated: which members or items of a value some keyword has looked at. Marks
 * are kept only below a schema that asks for the rest, and belong to the one value there;
 * what a form has marked that does not fit in the end is taken back.
 */
#include "tool/validate_parts.h"

#include "base/memory.h"

#include <string.h>

enum { MARKS_PER_STEP = 64 }; /* copied in the time of one step */

void validate_marks_init(struct validate_marks *marks, const struct value *value)
{
	marks->count = value_count(value);
	marks->seen = memory_array(marks->count + 1, 1);
}

void validate_marks_fini(struct validate_marks *marks)
{
	free(marks->seen);
}

void validate_mark(struct validate_check *check, size_t index)
{
	if (check->marks)
		check->marks->seen[index] = 1;
}

void validate_mark_all(struct validate_check *check)
{
	if (check->marks)
		memset(check->marks->seen, 1, check->marks->count);
}

bool validate_branch(struct validate_check *check, const struct value *schema,
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

bool validate_is_false(const struct value *schema)
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

bool validate_unevaluated(struct validate_check *check, const struct value *schema,
			  const struct value *value, const struct validate_place *at)
{
	return validate_spend(check, value_count(value) / MARKS_PER_STEP) &&
	       check_rest(check, schema, value, at);
}
