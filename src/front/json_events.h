/*
 * json_events: the output of `--json`: one event per line on a descriptor, in the order
 * of the record. When a write fails, because the reader has gone, no more is written and
 * the run goes on. A caller that wants to stop the run sends a signal.
 */
#pragma once
#include "tool/event.h"

#include <stdbool.h>

struct json_events;

struct json_events *json_events_new(int fd); /* FD stays the caller's */
void json_events_free(struct json_events *events);
struct event_sink json_events_sink(struct json_events *events);
int json_events_gone(const struct json_events *events); /* errno of a failed write, or 0 */
