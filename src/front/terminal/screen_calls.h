/* screen_calls: the calls under way, with what their blocks show at the end. For screen.c. */
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
 * EVENT_TOOL_BEGAN joins CALLS (NULL: none yet). ASKED: the arguments as the model wrote them, or
 * NULL: those of the event.
 */
void screen_calls_add(struct screen_call **calls, const struct event *event,
		      const struct value *asked);

/* The call ID, out of CALLS and the caller's; NULL: it is none of them. */
struct screen_call *screen_calls_take(struct screen_call **calls, const char *id);
void screen_call_free(struct screen_call *call);
