/*
 * json_events: `--json`: one event per line on a descriptor, in the order of the
 * record. A reader that has gone away is remembered and ends nothing: the run goes on
 * (a caller that wants to stop it sends a signal).
 */
#pragma once
#include "tool/event.h"

#include <stdbool.h>

struct json_events;

struct json_events *json_events_new(int fd); /* FD stays the caller's */
void json_events_free(struct json_events *events);
struct event_sink json_events_sink(struct json_events *events);
int json_events_gone(const struct json_events *events); /* why, as an errno; 0: it is there */
