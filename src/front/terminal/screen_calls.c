/* screen_calls: a list of calls. */
#include "front/terminal/screen_calls.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void screen_calls_add(struct screen_call **calls, const struct event *event,
		      const struct value *asked)
{
	struct screen_call *call = memory_alloc(sizeof(*call));
	const char *tool = value_text(value_member(event->data, "tool_asked"));
	const struct value *arguments =
		asked ? asked : value_member(event->data, "arguments");

	call->id = memory_copy(event->call ? event->call : "");
	call->tool = memory_copy(event->tool ? event->tool : tool ? tool : "");
	call->arguments = arguments ? value_copy(arguments) : NULL;
	call->began_ms = clock_now_ms();
	while (*calls)
		calls = &(*calls)->next;
	*calls = call;
}

struct screen_call *screen_calls_take(struct screen_call **calls, const char *id)
{
	for (struct screen_call **at = calls; *at; at = &(*at)->next) {
		struct screen_call *call = *at;

		if (strcmp(call->id, id) != 0)
			continue;
		*at = call->next;
		return call;
	}
	return NULL;
}

void screen_call_free(struct screen_call *call)
{
	free(call->id);
	free(call->tool);
	value_free(call->arguments);
	free(call);
}
