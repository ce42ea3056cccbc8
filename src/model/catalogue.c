/* catalogue: entries by name, the person's over the shipped ones. */
#include "model/catalogue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/pattern.h"
#include "base/text/text.h"
#include "model/answer.h"

static const char shipped_name[] = "models/catalogue.json";
static const char additions_name[] = "models";

static const double tokens_per_price = 1e6;

enum {
	NAME_MAX_BYTES = 256, /* of a model; no entry fits a longer name */
	FIELDS = 16,
};

struct catalogue {
	struct value *shipped, *additions;
};

enum field_kind { FIELD_TEXT, FIELD_TOKENS, FIELD_PRICE, FIELD_ANSWER };

/*
 * The keys of an entry. The table of the configuration (policy/config.c) has the same
 * keys.
 */
static const struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	bool is_price; /* valid only at the vendor's own address */
} fields[FIELDS] = {
#define FIELD(name, kind, member, is_price)                                    \
	{                                                                      \
		name, kind, offsetof(struct catalogue_model, member), is_price \
	}
	FIELD("provider", FIELD_TEXT, provider, false),
	FIELD("context", FIELD_TOKENS, context, false),
	FIELD("max_output", FIELD_TOKENS, max_output, false),
	FIELD("price_input", FIELD_PRICE, prices.input, true),
	FIELD("price_output", FIELD_PRICE, prices.output, true),
	FIELD("price_cached", FIELD_PRICE, prices.cached, true),
	FIELD("price_cache_write", FIELD_PRICE, prices.cache_write, true),
	FIELD("long_prompt", FIELD_TOKENS, long_prompt, true),
	FIELD("long_input", FIELD_PRICE, long_prices.input, true),
	FIELD("long_output", FIELD_PRICE, long_prices.output, true),
	FIELD("long_cached", FIELD_PRICE, long_prices.cached, true),
	FIELD("long_cache_write", FIELD_PRICE, long_prices.cache_write, true),
	FIELD("tools", FIELD_ANSWER, tools, false),
	FIELD("thinking", FIELD_ANSWER, thinking, false),
	FIELD("sight", FIELD_ANSWER, sight, false),
	FIELD("source", FIELD_TEXT, source, false),
#undef FIELD
};

static const struct field *find_field(const char *name)
{
	for (size_t i = 0; i < FIELDS; i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

static bool fits(const struct field *field, const struct value *value)
{
	switch (field->kind) {
	case FIELD_TEXT:
		return value_text(value) != NULL;
	case FIELD_TOKENS:
		return value_kind(value) == VALUE_INTEGER && value_integer(value) > 0;
	case FIELD_PRICE:
		return value_is_number(value) && value_number(value) >= 0;
	case FIELD_ANSWER:
		return value_kind(value) == VALUE_BOOLEAN;
	}
	return false;
}

static bool refuse_key(const char *name, struct err *err)
{
	const char *names[FIELDS + 1] = {NULL};
	const char *nearest;

	for (size_t i = 0; i < FIELDS; i++)
		names[i] = fields[i].name;
	nearest = text_nearest(name, names);
	return err_set(err, EINVAL, "there is no key \"%.80s\"%s%s%s", name,
		       nearest ? " (did you mean \"" : "", nearest ? nearest : "",
		       nearest ? "\"?)" : "");
}

static bool check_entry(const struct value *entry, struct err *err)
{
	static const char *const wanted[] = {
		[FIELD_TEXT] = "text",
		[FIELD_TOKENS] = "a whole number above 0",
		[FIELD_PRICE] = "a number of dollars, not below 0",
		[FIELD_ANSWER] = "true or false",
	};

	if (value_kind(entry) != VALUE_OBJECT)
		return err_set(err, EINVAL, "must be an object, not %s",
			       value_kind_name(value_kind(entry)));
	for (void *at = value_first(entry); at; at = value_next(entry, at)) {
		const struct field *field = find_field(value_key(at));

		if (!field)
			return refuse_key(value_key(at), err);
		if (!fits(field, value_at(at)))
			return err_set(err, EINVAL, "\"%s\" must be %s", field->name,
				       wanted[field->kind]);
	}
	return true;
}

static bool check_entries(const struct value *entries, const char *where, struct err *err)
{
	if (value_kind(entries) != VALUE_OBJECT)
		return err_set(err, EINVAL, "%s: must be an object of models", where);
	for (void *at = value_first(entries); at; at = value_next(entries, at)) {
		struct str name = str_of(value_key(at));

		if (name.size == 0 || name.size > NAME_MAX_BYTES)
			return err_set(err, EINVAL, "%s: a name has 1 to %d bytes, not %zu",
				       where, NAME_MAX_BYTES, name.size);
		if (!pattern_check(name, 0, err) || !check_entry(value_at(at), err))
			return err_while(err, "%s: %s", where, name.data);
	}
	return true;
}

bool catalogue_open(struct str shipped, const struct value *additions,
		    struct catalogue **catalogue, struct err *err)
{
	auto_value struct value *own = NULL;
	struct catalogue *opened;

	if (!value_parse(shipped, VALUE_COMMENTS, &own, err))
		return err_while(err, shipped_name);
	if (!check_entries(own, shipped_name, err) ||
	    (additions && !check_entries(additions, additions_name, err)))
		return false;
	opened = memory_alloc(sizeof(*opened));
	opened->shipped = value_ref(own);
	opened->additions = additions ? value_copy(additions) : NULL;
	*catalogue = opened;
	return true;
}

void catalogue_close(struct catalogue *catalogue)
{
	if (!catalogue)
		return;
	value_free(catalogue->shipped);
	value_free(catalogue->additions);
	free(catalogue);
}

/*
 * Is REST, the text behind a name, a date or "-latest"? In these forms '0' stands for any
 * digit.
 */
static bool is_dated(struct str rest)
{
	static const char *const forms[] = {"-00000000", "-0000-00-00", "@00000000",
					    "-latest"};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t at = 0;

		while (at < rest.size && forms[i][at] &&
		       (forms[i][at] == '0' ? rest.data[at] >= '0' && rest.data[at] <= '9'
					    : rest.data[at] == forms[i][at]))
			at++;
		if (at == rest.size && !forms[i][at])
			return true;
	}
	return false;
}

/* How exactly ENTRY names MODEL: 0 means not at all, a higher number is more exact. */
static size_t exactness(struct str entry, struct str model)
{
	enum { DATED = NAME_MAX_BYTES + 1, SAME };

	if (str_equal(entry, model))
		return SAME;
	if (str_starts(model, entry) && is_dated(str_part(model, entry.size, model.size)))
		return DATED;
	return pattern_is_one(entry) && pattern_match(entry, model, 0) ? entry.size : 0;
}

static const struct value *find_entry(const struct value *entries, struct str model)
{
	const struct value *found = NULL;
	struct str bare = model;
	size_t best = 0;

	for (size_t at; (at = str_find(bare, STR("/"), 0)) != (size_t)-1;)
		bare = str_part(bare, at + 1, bare.size);
	for (void *at = value_first(entries); at; at = value_next(entries, at)) {
		struct str name = str_of(value_key(at));
		size_t whole = exactness(name, model), part = exactness(name, bare);
		size_t exact = whole > part ? whole : part;

		if (exact > best) {
			best = exact;
			found = value_at(at);
		}
	}
	return found;
}

static void take_field(const struct field *field, const struct value *value,
		       struct catalogue_model *model)
{
	char *place = (char *)model + field->offset;

	switch (field->kind) {
	case FIELD_TEXT:
		*(const char **)(void *)place = value_text(value);
		break;
	case FIELD_TOKENS:
		*(uint64_t *)(void *)place = (uint64_t)value_integer(value);
		break;
	case FIELD_PRICE:
		*(double *)(void *)place = value_number(value);
		break;
	case FIELD_ANSWER:
		*(enum catalogue_answer *)(void *)place =
			value_is_true(value) ? CATALOGUE_YES : CATALOGUE_NO;
		break;
	}
}

static void take_entry(const struct value *entry, bool with_prices,
		       struct catalogue_model *model)
{
	for (size_t i = 0; i < FIELDS; i++) {
		const struct value *value = value_member(entry, fields[i].name);

		if (value && (with_prices || !fields[i].is_price))
			take_field(&fields[i], value, model);
	}
}

struct catalogue_model catalogue_find(const struct catalogue *catalogue, const char *name,
				      bool at_home)
{
	struct catalogue_model model = {
		.prices = {-1, -1, -1, -1},
		.long_prices = {-1, -1, -1, -1},
	};
	struct str wanted = str_of(name);

	if (!catalogue || wanted.size == 0 || wanted.size > NAME_MAX_BYTES)
		return model;
	take_entry(find_entry(catalogue->shipped, wanted), at_home, &model);
	take_entry(find_entry(catalogue->additions, wanted), true, &model);
	return model;
}

void catalogue_each(const struct catalogue *catalogue,
		    void (*each)(void *context, const char *name), void *context)
{
	for (void *at = value_first(catalogue->shipped); at;
	     at = value_next(catalogue->shipped, at))
		each(context, value_key(at));
	for (void *at = value_first(catalogue->additions); at;
	     at = value_next(catalogue->additions, at))
		if (!value_member(catalogue->shipped, value_key(at)))
			each(context, value_key(at));
}

bool catalogue_cost(const struct catalogue_model *model, const struct model_usage *usage,
		    double *dollars)
{
	bool is_long = model->long_prompt > 0 && usage->input > model->long_prompt;
	struct catalogue_prices prices = is_long ? model->long_prices : model->prices;
	uint64_t cached = usage->cached < usage->input ? usage->cached : usage->input;
	uint64_t fresh = usage->input - cached;
	uint64_t written = usage->cache_writes < fresh ? usage->cache_writes : fresh;

	if (prices.input < 0 || prices.output < 0)
		return false;
	if (prices.cached < 0)
		prices.cached = prices.input;
	if (prices.cache_write < 0)
		prices.cache_write = prices.input;
	*dollars = ((double)(fresh - written) * prices.input +
		    (double)cached * prices.cached + (double)written * prices.cache_write +
		    (double)usage->output * prices.output) /
		   tokens_per_price;
	return true;
}
