/*
 * journal: sessions and their events, append-only, in one database of the user's state
 * folder. An event is committed when journal_append returns: killing the process loses
 * none, a power cut at most the newest (database.c says why). What an event means is the
 * agent's business: here it is a kind and a JSON text.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct journal;

/*
 * PATH of the database, e.g. ~/.local/state/glovebox/sessions.db; folders are made 0700.
 */
bool journal_open(const char *path, struct journal **journal, struct err *err);
void journal_close(struct journal *journal);

/*
 * Append the default path: $XDG_STATE_HOME (when absolute) or ~/.local/state, then
 * glovebox/sessions.db. False without a home.
 */
bool journal_default_path(struct buf *path, struct err *err);

/* Open the journal there. */
bool journal_open_default(struct journal **journal, struct err *err);

/* A new session; its id (12 lower-case hex digits, random) goes to ID. */
enum { JOURNAL_ID = 12 };
bool journal_new_session(struct journal *journal, const char *workspace, const char *agent,
			 const char *model, char id[JOURNAL_ID + 1], struct err *err);

/*
 * Append event NUMBER (1, 2, … without gaps: a gap or a repeat is refused with EINVAL, an
 * unknown session with ENOENT).
 */
bool journal_append(struct journal *journal, const char *session, int64_t number,
		    const char *kind, int64_t wall_ms, struct str json, struct err *err);

/*
 * Every event of SESSION in order; the callback returns false to stop. ENOENT: no such
 * session.
 */
bool journal_read(struct journal *journal, const char *session,
		  bool (*event)(void *context, int64_t number, const char *kind,
				int64_t wall_ms, struct str json),
		  void *context, struct err *err);

struct journal_session {
	char id[JOURNAL_ID + 1];
	struct str workspace, agent, model; /* valid during the callback */
	int64_t began_wall_ms, last_wall_ms, events;
};
/* Newest (by its last event) first, at most LIMIT; the callback returns false to stop. */
bool journal_list(struct journal *journal, size_t limit,
		  bool (*session)(void *context, const struct journal_session *session),
		  void *context, struct err *err);
