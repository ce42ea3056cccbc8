/*
 * work: what is under way, in rows that change: the delegates at work, one row each, and how
 * far the list of tasks is. Both are read from the events of the session. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/value.h"
#include "tool/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Delegates that have a row; of more the number is told. */
enum { WORK_AGENTS_MAX = 8 };
/* Tasks that have a row when all are asked for: those around the first one that is not done. */
enum { WORK_TASKS_MAX = 8 };

struct work_agent {
	char *session, *call; /* its own session, and the call of its caller */
	char *name, *task, *does;
	uint64_t tokens;
	int64_t began_ms;
	struct work_agent *next;
};

struct work {
	struct work_agent *agents; /* in the order in which they began */
	struct value *tasks;       /* the newest list (agent/tools/todo.h), or NULL */
	bool all_tasks;            /* have a row, and not their number alone */
};

void work_fini(struct work *work);
/* Take EVENT, which has come at NOW_MS (monotonic). */
void work_event(struct work *work, const struct event *event, int64_t now_ms);
/* The agent NAME at work that began first; NULL: there is none. */
const struct work_agent *work_find(const struct work *work, struct str name);
/* Append a row for each agent at work, as work_print does. */
void work_print_agents(const struct work *work, int64_t now_ms, bool unicode,
		       struct buf *rows);
/* Append the rows, each with its line end; none when nothing is to be told. */
void work_print(const struct work *work, int64_t now_ms, bool unicode, struct buf *rows);
