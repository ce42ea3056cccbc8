/* denial: one list in the details, one line each in the text. */
#include "tool/denial.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { RULE_MAX = 64, REMEDY_MAX = 512 }; /* a limit's: names, numbers and a clause */

#define KEY_LEFT_OUT "denials_left_out"

static const char *const kind_names[] = {
	[DENIAL_FS] = "fs",       [DENIAL_NET] = "net",       [DENIAL_PROC] = "proc",
	[DENIAL_LIMIT] = "limit", [DENIAL_POLICY] = "policy",
};

static bool member_is(const struct value *object, const char *key, const char *text)
{
	const char *there = value_text(value_member(object, key));

	return there != NULL && strcmp(there, text) == 0;
}

static bool is_there(const struct value *list, const struct denial *denial)
{
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *item = value_item(list, i);

		if (member_is(item, "kind", kind_names[denial->kind]) &&
		    member_is(item, "target", denial->target) &&
		    member_is(item, "rule", denial->rule))
			return true;
	}
	return false;
}

static struct value *list_of(struct tool_result *result)
{
	struct value *details = tool_details(result);
	struct value *list = value_member(details, DENIALS_KEY);

	if (value_kind(list) != VALUE_ARRAY) {
		value_set(details, DENIALS_KEY, value_new_array());
		list = value_member(details, DENIALS_KEY);
	}
	return list;
}

void denial_print(const struct value *denial, struct buf *out)
{
	const char *target = value_text(value_member(denial, "target"));
	const char *rule = value_text(value_member(denial, "rule"));
	const char *remedy = value_text(value_member(denial, "remedy"));
	bool guessed = value_is_true(value_member(denial, "guessed"));
	bool limit = denial_is(denial, DENIAL_LIMIT);

	(void)buf_addf(out, "%s %s (%s)",
		       limit ? (guessed ? "limit perhaps reached:" : "limit reached:")
			     : (guessed ? "perhaps refused:" : "refused:"),
		       target != NULL ? target : "?", rule != NULL ? rule : "?");
	if (remedy != NULL)
		(void)buf_addf(out, "; %s", remedy);
}

/* The item made of DENIAL, in RESULT's list; NULL when it is not a new one. */
static const struct value *item_add(struct tool_result *result, const struct denial *denial)
{
	struct value *list = list_of(result);

	assert(denial->kind != 0 && denial->target != NULL && denial->rule != NULL);
	if (is_there(list, denial))
		return NULL;
	if (value_count(list) >= DENIALS_MAX) {
		struct value *details = tool_details(result);
		int64_t more = value_integer(value_member(details, KEY_LEFT_OUT));

		value_set_integer(details, KEY_LEFT_OUT, more + 1);
		return NULL;
	}
	struct value *item = value_new_object();
	value_set_text(item, "kind", kind_names[denial->kind]);
	value_set_text(item, "target", denial->target);
	value_set_text(item, "rule", denial->rule);
	if (denial->remedy != NULL)
		value_set_text(item, "remedy", denial->remedy);
	if (denial->guessed)
		value_set_boolean(item, "guessed", true);
	value_append(list, item);
	return item;
}

void denial_note(struct tool_result *result, const struct denial *denial)
{
	(void)item_add(result, denial);
}

void denial_add(struct tool_result *result, const struct denial *denial)
{
	const struct value *item = item_add(result, denial);
	struct buf *text = &result->text;

	if (item == NULL)
		return;
	(void)buf_end_line(text);
	(void)buf_addc(text, '[');
	denial_print(item, text);
	(void)buf_adds(text, "]\n");
}

void denial_add_limit(struct tool_result *result, const struct denial_limit *limit)
{
	char rule[RULE_MAX], remedy[REMEDY_MAX];

	(void)snprintf(rule, sizeof(rule), "limits.%s", limit->key);
	(void)snprintf(remedy, sizeof(remedy), "%s, or %s agents.%.64s.limits.%s (now %s)",
		       limit->advice, limit->is_floor ? "lower" : "raise",
		       limit->agent != NULL ? limit->agent : "NAME", limit->key,
		       limit->now);
	denial_add(result, &(struct denial){.kind = DENIAL_LIMIT,
					    .target = limit->target,
					    .rule = rule,
					    .remedy = remedy,
					    .guessed = limit->guessed});
}

bool denial_is(const struct value *denial, enum denial_kind kind)
{
	return member_is(denial, "kind", kind_names[kind]);
}

const struct value *denial_list(const struct tool_result *result)
{
	const struct value *list = value_member(result->details, DENIALS_KEY);

	return value_kind(list) == VALUE_ARRAY ? list : NULL;
}

void denial_set_level(struct tool_result *result, int level)
{
	struct value *list;

	if (denial_list(result) == NULL)
		return;
	list = list_of(result);
	for (size_t i = 0; i < value_count(list); i++) {
		/* A worker that was taken over sends what it likes. */
		if (value_kind(value_item(list, i)) == VALUE_OBJECT)
			value_set_integer(value_item(list, i), "level", level);
	}
}
