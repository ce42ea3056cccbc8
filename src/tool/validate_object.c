/* validate_object: the keywords for objects. */
#include "tool/validate_parts.h"

#include <string.h>

enum {
	SENTENCE_MAX = 2048,
	/* bytes of a member's description that help to fill it in */
	DESCRIPTION_MAX = 120,
};

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
 * One member: properties, patternProperties, else additionalProperties; NAMED says whether one
 * of them speaks of it.
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

/* Has VALUE each member that LIST names? Names that no key can have are missing. */
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

/* dependentRequired, dependentSchemas, and draft-07's dependencies, which is either. */
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

bool validate_object(struct validate_check *check, const struct value *schema,
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
