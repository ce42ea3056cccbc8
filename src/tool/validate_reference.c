/* validate_reference: $ref and $dynamicRef. */
#include "tool/validate.h"

enum {
	REFERENCE_STEPS = 4, /* taking a name apart and looking it up */
	SENTENCE_MAX = 2048,
};

static bool refuse_unknown(struct validate_check *check, struct str reference,
			   const char *keyword, const struct validate_place *at)
{
	bool own = reference.size == 0 || reference.data[0] == '#';
	struct buf text;

	buf_init(&text, SENTENCE_MAX);
	(void)buf_adds(&text, own ? "cannot be checked: the schema has no definition "
				  : "cannot be checked: the schema refers to ");
	validate_add_quoted(&text, reference);
	if (!own)
		(void)buf_adds(&text, ", which is no part of it, and nothing is fetched");
	(void)validate_give_up(check, at, keyword, "%s", text.data);
	buf_fini(&text);
	return false;
}

/* TARGET, or what the outermost schema on the way here has under the same dynamic name. */
static struct validate_target outermost(struct validate_check *check,
					struct validate_target target)
{
	const struct validate_scope *scope = check->scope;

	do {
		const struct value *schema =
			validate_index_dynamic(check, scope->resource, target.dynamic);

		if (schema) {
			target.schema = schema;
			target.resource = scope->resource;
		}
		scope = scope->outer;
	} while (scope);
	return target;
}

static bool apply_target(struct validate_check *check, const struct validate_target *target,
			 const struct value *value, const struct validate_place *at)
{
	struct validate_scope scope = {check->scope, target->resource};
	bool fits;

	/* A dynamic scope is a chain of resources: staying in one adds nothing to it. */
	if (scope.resource != scope.outer->resource)
		check->scope = &scope;
	fits = validate_apply(check, target->schema, value, at);
	check->scope = scope.outer;
	return fits;
}

static bool check_reference(struct validate_check *check, const struct value *schema,
			    const char *keyword, bool dynamic, const struct value *value,
			    const struct validate_place *at)
{
	const struct value *reference = value_member(schema, keyword);
	struct validate_target target;

	if (value_kind(reference) != VALUE_STRING)
		return true;
	if (!validate_spend(check, REFERENCE_STEPS))
		return false;
	target = validate_index_find(check, check->scope->resource, value_str(reference));
	if (check->refused)
		return false;
	if (!target.schema)
		return refuse_unknown(check, value_str(reference), keyword, at);
	if (dynamic && target.dynamic.size)
		target = outermost(check, target);
	return apply_target(check, &target, value, at);
}

bool validate_reference(struct validate_check *check, const struct value *schema,
			const struct value *value, const struct validate_place *at)
{
	return check_reference(check, schema, "$ref", false, value, at) &&
	       (check->scope->resource->old ||
		check_reference(check, schema, "$dynamicRef", true, value, at));
}
