/* guard: repeated calls and timeouts. */
#include "agent/guard.h"

#include "base/buf.h"
#include "base/value.h"

#include <string.h>

/* The name and arguments of one call as text: arguments are part of a 16 MiB answer. */
enum { GUARD_TEXT_MAX = 64 << 20 };

static void guard_key(const char *tool, const char *arguments, char key[HASH_HEX + 1])
{
	auto_value struct value *value = NULL;
	struct str given = str_trim(str_of(arguments));
	struct buf text;

	if (given.size == 0)
		given = STR("{}");
	buf_init(&text, GUARD_TEXT_MAX);
	buf_adds(&text, tool);
	buf_addc(&text, '\0');
	if (value_parse(given, VALUE_REPAIR, &value, NULL))
		(void)value_print(value, VALUE_SORTED, &text);
	else
		buf_addstr(&text, given);
	hash_text(buf_str(&text), key);
	buf_fini(&text);
}

static bool guard_was(const struct guard *guard, size_t back, const char *key)
{
	return back <= guard->calls &&
	       strcmp(guard->recent[(guard->calls - back) % GUARD_WINDOW], key) == 0;
}

bool guard_call(struct guard *guard, const char *tool, const char *arguments, struct err *why)
{
	char *slot = guard->recent[guard->calls % GUARD_WINDOW];
	unsigned in_a_row = 0, in_window = 0;
	char key[HASH_HEX + 1];

	guard_key(tool, arguments, key);
	memcpy(slot, key, sizeof(key));
	guard->calls++;
	for (size_t back = 1; back <= GUARD_WINDOW; back++) {
		if (!guard_was(guard, back, key))
			continue;
		in_window++;
		if (in_a_row == back - 1)
			in_a_row++;
	}
	if (in_a_row >= GUARD_IN_A_ROW)
		return err_set(why, 0,
			       "The model called %s %u times in a row with the same arguments, "
			       "so the run was stopped.",
			       tool, in_a_row);
	if (in_window > GUARD_IN_WINDOW)
		return err_set(why, 0,
			       "%u of the model's last %d calls were the same call of %s, so the "
			       "run was stopped.",
			       in_window, GUARD_WINDOW, tool);
	return true;
}

bool guard_result(struct guard *guard, enum result_status status, struct err *why)
{
	guard->timeouts = status == RESULT_TIMED_OUT ? guard->timeouts + 1 : 0;
	if (guard->timeouts < GUARD_TIMEOUTS)
		return true;
	return err_set(why, 0,
		       "%u calls in a row ran into their time limit, so the run was stopped.",
		       guard->timeouts);
}
