/* validate_list: the keywords for lists. */
#include "tool/validate_parts.h"

#include "base/memory.h"

#include <string.h>

/* Items of a foreign schema's bound: absent, or not a number, binds nothing. */
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
	/* FNV-1a by words: a wrong guess costs a comparison, nothing more. */
	return (hash ^ word) * 0x100000001b3u;
}

static uint64_t hash_str(struct str text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < text.size; i++)
		hash = mix(hash, (unsigned char)text.data[i]);
	return hash;
}

/* Equal values (1 and 1.0, members in any order) have equal hashes. */
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
 * The schema of item INDEX; draft-07 spells prefixItems `items` and items
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

bool validate_array(struct validate_check *check, const struct value *schema,
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
