/* json_events: prints each event as one line, with one write. */
#include "front/json_events.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"

#include <stdlib.h>

struct json_events {
	int fd;
	int gone; /* errno of the write that failed; nothing is written after it. Or 0 */
	struct buf line;
};

struct json_events *json_events_new(int fd)
{
	struct json_events *events = memory_alloc(sizeof(*events));

	events->fd = fd;
	buf_init(&events->line, EVENT_JSON_MAX);
	return events;
}

void json_events_free(struct json_events *events)
{
	if (!events)
		return;
	buf_fini(&events->line);
	free(events);
}

static bool json_events_take(void *context, const struct event *event, struct err *err)
{
	struct json_events *events = context;
	struct err gone;

	if (events->gone != 0)
		return true;
	buf_clear(&events->line);
	if (!event_print(event, &events->line) || !buf_addc(&events->line, '\n'))
		return err_set(err, 0, "an event is too large to be printed");
	if (!fd_write_all(events->fd, events->line.data, events->line.size, &gone))
		events->gone = gone.code;
	return true;
}

int json_events_gone(const struct json_events *events)
{
	return events->gone;
}

struct event_sink json_events_sink(struct json_events *events)
{
	return (struct event_sink){.event = json_events_take, .context = events};
}
