/*
 * recorder: gives the events of one session their numbers, keeps them in the journal
 * and only then hands them on. The session's own events (a call began, its output, its
 * end) come through recorder_sink, the agent's through recorder_event: one order for
 * both.
 */
#pragma once
#include "base/err.h"
#include "store/journal.h"
#include "tool/event.h"

#include <stdbool.h>

struct recorder;

/*
 * JOURNAL NULL: nothing is kept. FRONT shows the events; it has no veto (event may be
 * NULL).
 */
struct recorder *recorder_new(struct journal *journal, struct event_sink front);
void recorder_free(struct recorder *recorder); /* NULL is fine */
/* Use JOURNAL, opened after recorder_new; only before the session begins or goes on. */
void recorder_set_journal(struct recorder *recorder, struct journal *journal);
struct journal *recorder_journal(const struct recorder *recorder); /* NULL: of no recorder */

/* For session_options.sink. */
struct event_sink recorder_sink(struct recorder *recorder);

/* LISTENER (the agent's history) gets each kept event before the front does. */
void recorder_set_listener(struct recorder *recorder, struct event_sink listener);

/*
 * A new session in the journal. Without this, events are numbered and shown but not
 * kept.
 */
bool recorder_begin(struct recorder *recorder, const char *workspace, const char *agent,
		    const char *model, struct err *err);
/*
 * Claim SESSION of the journal for this process and go on with it: each of its events is
 * first handed to LINE, then new events continue its numbers. ERR: there is no such
 * session, another process has it (EBUSY), or the error of LINE.
 */
bool recorder_resume(struct recorder *recorder, const char *session,
		     bool (*line)(void *context, const char *kind, struct str json,
				  struct err *err),
		     void *context, struct err *err);
/* The session's id in the journal; "" without one. */
const char *recorder_session_id(const struct recorder *recorder);

/*
 * Number, keep, show; EVENT's number and time are filled in. False when it could not be
 * kept; from then on every kept kind is refused with the same sentence: the record has
 * no hole.
 */
bool recorder_event(struct recorder *recorder, struct event *event, struct err *err);

/* Has an event been refused? ERR (may be NULL) then has the sentence. */
bool recorder_failed(const struct recorder *recorder, struct err *err);
