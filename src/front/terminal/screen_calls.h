/*
 * screen_calls: the calls under way, with the arguments that their blocks will show. For
 * screen.c.
 */
#pragma once
#include "tool/event.h"

#include <stdint.h>

struct screen_call {
	char *id, *tool;
	struct value *arguments;
	int64_t began_ms;
	struct screen_call *next;
};

/*
 * Add the call of an EVENT_TOOL_BEGAN to CALLS (NULL: an empty list). ASKED: the
 * arguments as the model wrote them; NULL: take those of the event.
 */
void screen_calls_add(struct screen_call **calls, const struct event *event,
		      const struct value *asked);

/* Take the call ID out of CALLS; the caller owns it. NULL: CALLS has no such call. */
struct screen_call *screen_calls_take(struct screen_call **calls, const char *id);
void screen_call_free(struct screen_call *call);
