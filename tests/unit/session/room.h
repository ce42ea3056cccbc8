/*
 * room: a fresh folder and a session with a real cell in it. The test's own program is the
 * anchor, so its main() calls session_role() first. In cmocka's setup: room_make, the
 * options for this folder, room_open; in its teardown room_close.
 */
#pragma once
#include "session/session.h"

#include <stdbool.h>

struct room {
	char folder[64];
	int cancel_fd; /* the session's */
	struct session *session;
	struct buf events; /* names of what came, each with a blank */
	bool refuses;      /* that a tool begins: it cannot be recorded */
};

/* For cmocka's *STATE: a room on the heap, made; and its end. NULL: there is none. */
struct room *room_new(void);
int room_end(void **state);

/* A folder of its own; false: there is none. */
bool room_make(struct room *room);
/* A policy for FOLDER that may write there. */
struct policy *room_policy(const char *folder);
/*
 * OPTIONS but for the workspace, which is the folder, for cancel_fd, and for a sink that is not
 * given: events are the room's then. What went wrong is on stderr.
 */
bool room_open(struct room *room, struct session_options options);
/* The folder goes too when it is empty. */
void room_close(struct room *room);

/* One call with the JSON text ARGUMENTS, to its end. tool_result_fini RESULT. */
void room_call(const struct room *room, const char *tool, const char *arguments,
	       struct tool_result *result);
/* Cancel what runs. */
void room_cancel(const struct room *room);
/* Turn the loop until RUNNING is done; its result, which is RUNNING's. */
const struct tool_result *room_finish(const struct room *room, struct running *running);
