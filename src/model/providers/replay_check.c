/*
 * replay_check: every key of a script by table; unknown ones are named with the nearest.
 */
#include "model/providers/replay_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "model/providers/replay.h"

/* Longest "demo.json, turn 3, call 2". */
enum { WHERE_MAX = 512, KEYS_MAX = 10 };

struct key {
	const char *name;
	enum value_kind kind; /* VALUE_NULL: judged apart */
	bool required;
};

static const struct key script_keys[] = {
	{"name", VALUE_STRING, false},
	{"turns", VALUE_ARRAY, true},
	{0},
};

static const struct key turn_keys[] = {
	{"thinking", VALUE_STRING, false},  {"text", VALUE_STRING, false},
	{"calls", VALUE_ARRAY, false},      {"expect", VALUE_ARRAY, false},
	{"delay_ms", VALUE_INTEGER, false}, {"repeat", VALUE_BOOLEAN, false},
	{"usage", VALUE_OBJECT, false},     {0},
};

static const struct key call_keys[] = {
	{"tool", VALUE_STRING, true},
	{"arguments", VALUE_NULL, false},
	{0},
};

static const struct key expect_keys[] = {
	{"tool", VALUE_STRING, false},
	{"contains", VALUE_STRING, false},
	{"status", VALUE_STRING, false},
	{0},
};

static const struct key usage_keys[] = {
	{"input", VALUE_INTEGER, false},
	{"output", VALUE_INTEGER, false},
	{"cached", VALUE_INTEGER, false},
	{0},
};

/* A tool result's statuses, as in the event log. */
static const char *const statuses[] = {"done",      "failed",    "denied",
				       "timed_out", "cancelled", NULL};

static const struct key *find_key(const struct key *keys, const char *name)
{
	for (; keys->name; keys++) {
		if (strcmp(keys->name, name) == 0)
			return keys;
	}
	return NULL;
}

static bool refuse_key(const struct key *keys, const char *name, const char *where,
		       struct err *err)
{
	const char *names[KEYS_MAX + 1] = {0};
	const char *nearest;

	for (size_t i = 0; i < KEYS_MAX && keys[i].name; i++)
		names[i] = keys[i].name;
	nearest = text_nearest(name, names);
	return err_set(err, EINVAL, "%s: unknown key \"%.80s\"%s%s%s", where, name,
		       nearest ? "; did you mean \"" : "", nearest ? nearest : "",
		       nearest ? "\"?" : "");
}

static bool check_object(const struct value *object, const struct key *keys,
			 const char *where, struct err *err)
{
	if (value_kind(object) != VALUE_OBJECT)
		return err_set(err, EINVAL, "%s: an object was expected, not %s", where,
			       value_kind_name(value_kind(object)));
	for (void *at = value_first(object); at; at = value_next(object, at)) {
		const struct key *key = find_key(keys, value_key(at));
		enum value_kind kind = value_kind(value_at(at));

		if (!key)
			return refuse_key(keys, value_key(at), where, err);
		if (key->kind != VALUE_NULL && kind != key->kind)
			return err_set(err, EINVAL, "%s: \"%s\" is to be %s, not %s",
				       where, key->name, value_kind_name(key->kind),
				       value_kind_name(kind));
		if (kind == VALUE_INTEGER && value_integer(value_at(at)) < 0)
			return err_set(err, EINVAL, "%s: \"%s\" is less than 0", where,
				       key->name);
	}
	for (; keys->name; keys++) {
		if (keys->required && !value_member(object, keys->name))
			return err_set(err, EINVAL, "%s: \"%s\" is missing", where,
				       keys->name);
	}
	return true;
}

static bool check_call(const struct value *call, const char *where, struct err *err)
{
	const struct value *arguments = value_member(call, "arguments");
	enum value_kind kind = value_kind(arguments);

	if (!check_object(call, call_keys, where, err))
		return false;
	if (str_trim(value_str(value_member(call, "tool"))).size == 0)
		return err_set(err, EINVAL, "%s: \"tool\" is empty", where);
	if (arguments && kind != VALUE_OBJECT && kind != VALUE_STRING)
		return err_set(err, EINVAL,
			       "%s: \"arguments\" is to be an object, or a string that goes out "
			       "unchanged",
			       where);
	return true;
}

static bool check_expect(const struct value *expect, const char *where, struct err *err)
{
	const char *status = value_text(value_member(expect, "status"));

	if (!check_object(expect, expect_keys, where, err))
		return false;
	if (value_count(expect) == 0)
		return err_set(err, EINVAL, "%s: it expects nothing", where);
	for (size_t i = 0; status && statuses[i]; i++) {
		if (strcmp(status, statuses[i]) == 0)
			return true;
	}
	if (status)
		return err_set(err, EINVAL,
			       "%s: \"status\" is done, failed, denied, timed_out or cancelled, "
			       "not \"%.40s\"",
			       where, status);
	return true;
}

static bool check_rows(const struct value *rows, const char *where, const char *noun,
		       bool (*check)(const struct value *row, const char *where,
				     struct err *err),
		       struct err *err)
{
	for (size_t i = 0; i < value_count(rows); i++) {
		char row_where[WHERE_MAX];

		/* Places nest twice; a longer name of a script is cut. */
		(void)snprintf(row_where, sizeof(row_where), "%.*s, %s %zu",
			       WHERE_MAX / 2, where, noun, i + 1);
		if (!check(value_item(rows, i), row_where, err))
			return false;
	}
	return true;
}

static bool check_turn(const struct value *turn, bool is_last, const char *where,
		       struct err *err)
{
	const struct value *usage = value_member(turn, "usage");

	if (!check_object(turn, turn_keys, where, err))
		return false;
	if (value_integer(value_member(turn, "delay_ms")) > REPLAY_DELAY_MAX_MS)
		return err_set(err, EINVAL, "%s: \"delay_ms\" is more than %d", where,
			       REPLAY_DELAY_MAX_MS);
	if (value_is_true(value_member(turn, "repeat")) && !is_last)
		return err_set(err, EINVAL, "%s: only the last turn may repeat", where);
	if (value_count(value_member(turn, "calls")) > ANSWER_CALLS_MAX)
		return err_set(err, EINVAL, "%s: more than %d calls", where,
			       ANSWER_CALLS_MAX);
	if (usage && !check_object(usage, usage_keys, where, err))
		return false;
	return check_rows(value_member(turn, "calls"), where, "call", check_call, err) &&
	       check_rows(value_member(turn, "expect"), where, "expectation",
			  check_expect, err);
}

bool replay_check(const struct value *script, const char *name, struct err *err)
{
	const struct value *turns = value_member(script, "turns");

	if (!check_object(script, script_keys, name, err))
		return false;
	if (value_count(turns) == 0)
		return err_set(err, EINVAL, "%s: there is no turn in \"turns\"", name);
	for (size_t i = 0; i < value_count(turns); i++) {
		char where[WHERE_MAX];

		(void)snprintf(where, sizeof(where), "%.200s, turn %zu", name, i + 1);
		if (!check_turn(value_item(turns, i), i + 1 == value_count(turns), where,
				err))
			return false;
	}
	return true;
}
