/*
 * validate: the recursion: references, types, choices, combinations; then the parts by
 * kind.
 */
#include "tool/validate.h"

#include "tool/validate_parts.h"

#include <stdlib.h>
#include <string.h>

enum {
	/*
	 * Values nest VALUE_DEPTH_MAX deep; a reference and a combination for each
	 * level.
	 */
	DEPTH_MAX = 3 * VALUE_DEPTH_MAX,
	/* About a second of schema; arguments of calls need a few hundred steps. */
	WORK_MAX = 2000000,
};

bool validate_spend(struct validate_check *check, size_t steps)
{
	check->work += steps;
	if (check->work > WORK_MAX)
		check->exhausted = true;
	return !check->exhausted;
}

/* Writes no problem. */
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

/* How many of SCHEMAS fit; NEAREST gets the problem of the one that came deepest. */
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
	/* A caller that asks which parts were looked at needs all forms that fit. */
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
	return validate_reference(check, schema, value, at) &&
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

bool validate_below(struct validate_check *check, const struct value *schema,
		    const struct value *value, const struct validate_place *at)
{
	struct validate_marks *marks = check->marks;
	bool fits;

	check->marks = NULL;
	fits = validate_apply(check, schema, value, at);
	check->marks = marks;
	return fits;
}

bool validate_try_below(struct validate_check *check, const struct value *schema,
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
