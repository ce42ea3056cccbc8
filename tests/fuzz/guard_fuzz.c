/*
 * guard_fuzz: any bytes as a guard, as a worker and a later front read it. A guard that is taken prints as text
 * that reads as the same guard. Taken over by a front with the same marks it has nothing late, and without a
 * guard to take over all dangers are.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/value.h"
#include "guard/guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void is_same(const struct guard *guard)
{
	auto_value struct value *text = guard_print(guard);
	struct guard *again = guard_parse(text, NULL);
	auto_value struct value *printed = again != NULL ? guard_print(again) : NULL;

	if (printed == NULL || !value_equal(text, printed) ||
	    again->root_count != guard->root_count ||
	    again->marks.count != guard->marks.count)
		abort();
	guard_free(again);
}

static void take_over(const struct guard *earlier, const struct value *object)
{
	struct guard *guard = guard_parse(object, NULL);
	const bool is_whole = earlier->root_count > 0 && earlier->began_ns > 0 &&
			      earlier->ticked_ns > 0;
	const size_t dangers = is_whole ? guard->marks.counts[MARK_DANGER] : 0;

	guard_take_earlier(guard, earlier, 1);
	if (!guard->earlier || guard->marks.counts[MARK_DANGER] != dangers ||
	    (is_whole && guard->marks.counts[MARK_LATE] != 0))
		abort();
	guard_take_earlier(guard, NULL, 1);
	if (guard->marks.counts[MARK_DANGER] + guard->marks.counts[MARK_LEAD] != 0)
		abort();
	guard_free(guard);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_value struct value *object = NULL;
	struct guard *guard;

	if (!value_parse((struct str){(const char *)data, size}, 0, &object, NULL))
		return 0;
	guard = guard_parse(object, NULL);
	if (guard != NULL) {
		is_same(guard);
		take_over(guard, object);
	}
	guard_free(guard);
	return 0;
}
