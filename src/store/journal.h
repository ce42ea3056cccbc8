/*
 * journal: sessions and their events, append-only, in one database of the user's state
 * folder. An event is committed when journal_append returns: killing the process loses
 * none, a power cut at most the newest (database.c says why). Only the agent knows the
 * meaning of an event: here it is a kind and a JSON text.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "store/database.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct journal;

/*
 * PATH: that of the database, e.g. ~/.local/state/glovebox/sessions.db; folders are made
 * 0700.
 */
bool journal_open(const char *path, struct journal **journal, struct err *err);
void journal_close(struct journal *journal);

/*
 * Append the default path: $XDG_STATE_HOME (when absolute) or ~/.local/state, then
 * glovebox/sessions.db. False without a home.
 */
bool journal_default_path(struct buf *path, struct err *err);

/* Open the journal at the default path. */
bool journal_open_default(struct journal **journal, struct err *err);

/* A new session; its id (12 lower-case hex digits, random) goes to ID. */
enum { JOURNAL_ID = 12 };
bool journal_new_session(struct journal *journal, const char *workspace, const char *agent,
			 const char *model, char id[JOURNAL_ID + 1], struct err *err);

/*
 * From now on, until the journal is closed, SESSION belongs to this process. EBUSY:
 * another process has it; ENOENT: there is no such session. The claim is a kernel lock on
 * a byte of PATH.lock, which the kernel releases whenever the process ends.
 * journal_new_session claims the new session itself.
 */
bool journal_claim(struct journal *journal, const char *session, struct err *err);

/*
 * Append event NUMBER (1, 2, … without gaps: a gap or a repeat is refused with EINVAL, an
 * unknown session with ENOENT).
 */
bool journal_append(struct journal *journal, const char *session, int64_t number,
		    const char *kind, int64_t wall_ms, struct str json, struct err *err);

/*
 * Every event of SESSION in order, or only those of KIND; the callback returns false to stop.
 * ENOENT: no such session.
 */
bool journal_read(struct journal *journal, const char *session, const char *kind,
		  bool (*event)(void *context, int64_t number, const char *kind,
				int64_t wall_ms, struct str json),
		  void *context, struct err *err);

/*
 * A new session that has all events of SESSION so far, and whose id goes to ID. Its first event
 * says its own id, and no `run`: the steps stay those of SESSION.
 */
bool journal_fork(struct journal *journal, const char *session, char id[JOURNAL_ID + 1],
		  struct err *err);

/*
 * Forget SESSION with all its events, and the sessions of its delegates; their patches and the
 * decisions about these go as well. EBUSY: another process has it.
 */
bool journal_forget(struct journal *journal, const char *session, struct err *err);

/* One session; the texts are FOUND's own. */
struct journal_found {
	char id[JOURNAL_ID + 1];
	char *workspace, *agent, *model;
	char *parent; /* the session that delegated to it, or NULL */
	char *mode;   /* that it went over to last (EVENT_MODE_CHANGED), or NULL */
	int64_t events;
};
/*
 * Find the session NAME: an id, the beginning of an id (of JOURNAL_ID_LEAST digits or
 * more) or "last". "last" is the session of no delegate that has the newest event in
 * WORKSPACE (real, absolute). ENOENT: none, ENOTUNIQ: several; the sentence says how to
 * list them. Call journal_found_fini in either case.
 */
enum { JOURNAL_ID_LEAST = 4 };
bool journal_find(struct journal *journal, const char *name, const char *workspace,
		  struct journal_found *found, struct err *err);
void journal_found_fini(struct journal_found *found);

struct journal_session {
	char id[JOURNAL_ID + 1];
	struct str workspace, agent, model; /* valid during the callback */
	/* the beginning of the first prompt; or empty */
	struct str prompt;
	struct str title; /* that the person has given it last (EVENT_NAMED); or empty */
	/* the session that delegated to it, by its first event; or empty */
	struct str parent;
	int64_t began_wall_ms, last_wall_ms, events;
};
/*
 * The newest session (by its last event) first, at most LIMIT. The callback returns false
 * to stop.
 */
bool journal_list(struct journal *journal, size_t limit,
		  bool (*session)(void *context, const struct journal_session *session),
		  void *context, struct err *err);

/* The inside of the journal, for the files of src/store only. */

struct journal {
	struct database *database;
	char *lock_path;
	int lock_fd; /* -1: nothing was claimed yet */
};

/*
 * The events that are results of the tool that hands over, as a condition of SQL. Members
 * of the JSON cannot be confused with text in it, where the quotes have backslashes.
 */
#define JOURNAL_IS_PATCH \
	"kind = 'tool_ended' AND instr(json, '\"tool\":\"generate_patch\"') > 0"

/*
 * The runs in a workspace, as the journal knows them: for each session the events that
 * tell how it began and ended, and how many calls it made. The caller reads the content
 * of these events.
 */

struct report_row {
	char id[JOURNAL_ID + 1];
	/* valid during the callback; events as JSON, empty where there is none */
	struct str agent, model;
	struct str began;    /* EVENT_SESSION_BEGAN */
	struct str task;     /* the first EVENT_TURN_BEGAN */
	struct str message;  /* the last EVENT_MESSAGE */
	struct str handover; /* the last call of generate_patch */
	struct str ended;    /* the last EVENT_TURN_ENDED */
	int64_t began_ms, calls, denied;
};

struct report_filter {
	const char *workspace;
	const char *agent;      /* NULL: any */
	const char *other_name; /* of AGENT, which counts as well; or NULL */
	int64_t since_ms;       /* only sessions that began after this time */
	const char *except;     /* a session that is left out; or NULL */
};

/* Newest first, at most LIMIT; the callback returns false to stop. */
bool journal_reports_list(struct journal *journal, const struct report_filter *filter,
			  size_t limit,
			  bool (*report)(void *context, const struct report_row *row),
			  void *context, struct err *err);
