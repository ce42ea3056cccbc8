/*
 * journal: the tables of the database. Each event is written by one statement, which
 * refuses an event that does not follow the last one.
 */

#include "store/journal.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

enum {
	/*
	 * Among a million sessions two get the same 48 random bits with a chance of 1 in
	 * 500. Then another id is drawn.
	 */
	ID_TRIES = 8,
};

/* A number that can be counted from the events has no column of its own. */
static const char *const schema[] = {
	/* version 1 */
	"CREATE TABLE session ("
	" key INTEGER PRIMARY KEY,"
	" id TEXT NOT NULL UNIQUE,"
	" workspace TEXT NOT NULL,"
	" agent TEXT NOT NULL,"
	" model TEXT NOT NULL,"
	" began_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE TABLE event ("
	" session INTEGER NOT NULL REFERENCES session(key),"
	" number INTEGER NOT NULL CHECK (number > 0),"
	" kind TEXT NOT NULL,"
	" wall_ms INTEGER NOT NULL,"
	" json TEXT NOT NULL,"
	" PRIMARY KEY (session, number)"
	") STRICT;"
	"CREATE TRIGGER event_stays BEFORE UPDATE ON event"
	" BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;",
	/* version 2: where the patches are, and the decisions about them (patches.c) */
	"CREATE INDEX event_patch ON event (wall_ms, session, number)"
	" WHERE " JOURNAL_IS_PATCH ";"
	"CREATE TABLE decision ("
	" session INTEGER NOT NULL,"
	" number INTEGER NOT NULL,"
	" state TEXT NOT NULL CHECK (state IN ('applied', 'rejected')),"
	" wall_ms INTEGER NOT NULL,"
	" place TEXT NOT NULL,"
	" branch TEXT NOT NULL,"
	" reason TEXT NOT NULL,"
	" PRIMARY KEY (session, number),"
	" FOREIGN KEY (session, number) REFERENCES event(session, number)"
	") STRICT;",
	NULL,
};

static char *lock_path_of(const char *path)
{
	struct buf lock;

	buf_init(&lock, PATH_MAX);
	(void)buf_addf(&lock, "%s.lock", path);
	return buf_take(&lock);
}

bool journal_open(const char *path, struct journal **journal, struct err *err)
{
	struct database *database;

	if (!database_state_open(path, "the journal", schema, &database, err))
		return false;
	*journal = memory_alloc(sizeof(**journal));
	(*journal)->database = database;
	(*journal)->lock_fd = -1;
	(*journal)->lock_path = lock_path_of(path);
	return true;
}

void journal_close(struct journal *journal)
{
	if (!journal)
		return;
	database_close(journal->database);
	fd_close(&journal->lock_fd);
	free(journal->lock_path);
	free(journal);
}

bool journal_default_path(struct buf *path, struct err *err)
{
	return database_state_path("sessions.db", path, err);
}

bool journal_open_default(struct journal **journal, struct err *err)
{
	struct buf path;
	bool opened;

	buf_init(&path, PATH_MAX);
	opened = journal_default_path(&path, err) && journal_open(path.data, journal, err);
	buf_fini(&path);
	return opened;
}

static bool draw_id(char id[JOURNAL_ID + 1], struct err *err)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return err_set(err, errno, "no random number for a session: %s",
			       strerror(errno));
	(void)snprintf(id, JOURNAL_ID + 1, "%012" PRIx64, number >> 16);
	return true;
}

static bool insert_session(struct journal *journal, const char *workspace,
			   const char *agent, const char *model, const char *id,
			   bool *inserted, struct err *err)
{
	struct statement *statement;
	int64_t changed = 0;
	bool ok;

	if (!statement_begin(journal->database,
			     "INSERT INTO session (id, workspace, agent, model, began_ms)"
			     " VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
			     &statement, err))
		return false;
	statement_bind_text(statement, 1, str_of(id));
	statement_bind_text(statement, 2, str_of(workspace));
	statement_bind_text(statement, 3, str_of(agent));
	statement_bind_text(statement, 4, str_of(model));
	statement_bind_integer(statement, 5, clock_wall_ms());
	ok = statement_run(statement, &changed, err);
	*inserted = ok && changed == 1;
	return ok;
}

/*
 * *KEY: the session's row, and how many events it has. False (ENOENT) when there is none.
 */
static bool find_session(struct journal *journal, const char *session, int64_t *key,
			 int64_t *events, struct err *err)
{
	struct statement *statement;
	bool row = false, ok;

	if (!statement_begin(journal->database,
			     "SELECT key, coalesce((SELECT max(number) FROM event"
			     " WHERE session = key), 0) FROM session WHERE id = ?",
			     &statement, err))
		return false;
	statement_bind_text(statement, 1, str_of(session));
	ok = statement_step(statement, &row, err);
	if (ok && row) {
		*key = statement_integer(statement, 0);
		*events = statement_integer(statement, 1);
	}
	statement_end(statement);
	if (ok && !row)
		return err_set(err, ENOENT, "there is no session \"%.40s\"", session);
	return ok;
}

/*
 * A lock on one byte for each session. No lock file per session is left behind, and the
 * lock is not dropped when another database is closed, as a lock of the older kind would
 * be.
 */
static bool lock_key(struct journal *journal, int64_t key, const char *session,
		     struct err *err)
{
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)key,
		.l_len = 1,
	};

	if (journal->lock_fd < 0)
		journal->lock_fd = open(journal->lock_path,
					O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (journal->lock_fd < 0 || fcntl(journal->lock_fd, F_OFD_SETLK, &lock) < 0) {
		if (errno == EAGAIN || errno == EACCES)
			return err_set(err, EBUSY,
				       "session %s is going on in another process: end that one "
				       "first",
				       session);
		return err_set(err, errno, "%s: %s", journal->lock_path, strerror(errno));
	}
	return true;
}

bool journal_claim(struct journal *journal, const char *session, struct err *err)
{
	int64_t key = 0, events = 0;

	return find_session(journal, session, &key, &events, err) &&
	       lock_key(journal, key, session, err);
}

bool journal_new_session(struct journal *journal, const char *workspace, const char *agent,
			 const char *model, char id[JOURNAL_ID + 1], struct err *err)
{
	char drawn[JOURNAL_ID + 1];
	bool inserted = false;

	for (int i = 0; i < ID_TRIES && !inserted; i++) {
		if (!draw_id(drawn, err) || !insert_session(journal, workspace, agent,
							    model, drawn, &inserted, err))
			return err_while(err, "beginning a session");
	}
	if (!inserted)
		return err_set(err, EEXIST, "no free id for a session was found");
	/*
	 * Where no lock is possible, the numbers of the events still tell two writers
	 * apart.
	 */
	(void)journal_claim(journal, drawn, NULL);
	memcpy(id, drawn, sizeof(drawn));
	return true;
}

/* Set ERR to the reason why nothing was inserted. Always false. */
static bool refuse_number(struct journal *journal, const char *session, int64_t number,
			  struct err *err)
{
	int64_t key = 0, events = 0;

	if (!find_session(journal, session, &key, &events, err))
		return false;
	return err_set(err, EINVAL,
		       "event %" PRId64 " of session %s does not follow event %" PRId64
		       "; another process may be writing this session",
		       number, session, events);
}

bool journal_append(struct journal *journal, const char *session, int64_t number,
		    const char *kind, int64_t wall_ms, struct str json, struct err *err)
{
	struct statement *statement;
	int64_t inserted = 0;
	bool ok;

	/*
	 * This is one statement, so that two writers cannot both find the same number
	 * free. For a number that does not follow, the statement yields NULL, which the
	 * table refuses. It uses VALUES, because for a SELECT from the table that is
	 * written SQLite makes a table in memory.
	 */
	if (!statement_begin(journal->database,
			     "INSERT OR IGNORE INTO event (session, number, kind, wall_ms, json)"
			     " VALUES ((SELECT key FROM session WHERE id = ?1),"
			     " CASE ?2 WHEN 1 + coalesce((SELECT max(number) FROM event WHERE session ="
			     " (SELECT key FROM session WHERE id = ?1)), 0) THEN ?2 END,"
			     " ?3, ?4, ?5)",
			     &statement, err))
		return err_while(err, "writing the journal");
	statement_bind_text(statement, 1, str_of(session));
	statement_bind_integer(statement, 2, number);
	statement_bind_text(statement, 3, str_of(kind));
	statement_bind_integer(statement, 4, wall_ms);
	statement_bind_text(statement, 5, json);
	ok = statement_run(statement, &inserted, err);
	if (ok && inserted != 1)
		ok = refuse_number(journal, session, number, err);
	return ok || err_while(err, "writing the journal");
}

/* KIND NULL: events of all kinds. */
bool journal_read(struct journal *journal, const char *session, const char *kind,
		  bool (*event)(void *context, int64_t number, const char *kind,
				int64_t wall_ms, struct str json),
		  void *context, struct err *err)
{
	struct statement *statement;
	int64_t key = 0, events = 0;
	bool row = false, ok = true;

	if (!find_session(journal, session, &key, &events, err) ||
	    !statement_begin(journal->database,
			     kind == NULL
				     ? "SELECT number, kind, wall_ms, json FROM event"
				       " WHERE session = ? ORDER BY number"
				     : "SELECT number, kind, wall_ms, json FROM event"
				       " WHERE session = ? AND kind = ? ORDER BY number",
			     &statement, err))
		return err_while(err, "reading the journal");
	statement_bind_integer(statement, 1, key);
	if (kind != NULL)
		statement_bind_text(statement, 2, str_of(kind));
	do {
		ok = statement_step(statement, &row, err);
	} while (ok && row &&
		 event(context, statement_integer(statement, 0),
		       statement_text(statement, 1).data, statement_integer(statement, 2),
		       statement_text(statement, 3)));
	statement_end(statement);
	return ok || err_while(err, "reading the journal");
}

static bool copy_events(struct journal *journal, const char *session, const char *id,
			struct err *err)
{
	struct statement *statement;
	int64_t inserted = 0;
	bool ok;

	if (!statement_begin(
		    journal->database,
		    "INSERT INTO event (session, number, kind, wall_ms, json)"
		    " SELECT (SELECT key FROM session WHERE id = ?2), number, kind, wall_ms,"
		    " CASE WHEN number = 1 AND json_valid(json)"
		    " THEN json_remove(json_set(json, '$.session', ?2), '$.run') ELSE json END"
		    " FROM event WHERE session = (SELECT key FROM session WHERE id = ?1)"
		    " ORDER BY number",
		    &statement, err))
		return false;
	statement_bind_text(statement, 1, str_of(session));
	statement_bind_text(statement, 2, str_of(id));
	ok = statement_run(statement, &inserted, err);
	return ok;
}

bool journal_fork(struct journal *journal, const char *session, char id[JOURNAL_ID + 1],
		  struct err *err)
{
	struct journal_found found = {0};
	bool forked;

	forked = journal_find(journal, session, "", &found, err) &&
		 (found.events > 0 || err_set(err, ENOENT, "nothing is recorded of it")) &&
		 journal_new_session(journal, found.workspace, found.agent, found.model,
				     id, err) &&
		 copy_events(journal, session, id, err);
	journal_found_fini(&found);
	return forked || err_while(err, "copying session %.40s", session);
}

/* SESSION, and the delegates of it and of each other, by their first events. */
/* clang-format off */
#define FORGOTTEN \
	"WITH RECURSIVE gone(key, id) AS (SELECT key, id FROM session WHERE id = ?1 UNION" \
	" SELECT session.key, session.id FROM gone JOIN session JOIN event" \
	" ON event.session = session.key AND event.number = 1" \
	" AND json_extract(event.json, '$.parent') = gone.id) "
/* clang-format on */

/* A later session may get the same key. */
static void unlock_key(const struct journal *journal, int64_t key)
{
	struct flock lock = {
		.l_type = F_UNLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)key,
		.l_len = 1,
	};

	(void)fcntl(journal->lock_fd, F_OFD_SETLK, &lock);
}

static bool forget_sessions(struct journal *journal, const char *session, struct err *err)
{
	struct statement *statement;

	if (!statement_begin(journal->database,
			     FORGOTTEN
			     "DELETE FROM session WHERE key IN (SELECT key FROM gone)",
			     &statement, err))
		return false;
	statement_bind_text(statement, 1, str_of(session));
	return statement_run(statement, NULL, err) &&
	       database_run(journal->database,
			    "DELETE FROM decision WHERE session NOT IN (SELECT key FROM session)",
			    err) &&
	       database_run(journal->database,
			    "DELETE FROM event WHERE session NOT IN (SELECT key FROM session)",
			    err);
}

bool journal_forget(struct journal *journal, const char *session, struct err *err)
{
	int64_t key = 0, events = 0;
	bool gone;

	if (!find_session(journal, session, &key, &events, err) ||
	    !lock_key(journal, key, session, err))
		return false;
	gone = database_run(journal->database, "BEGIN IMMEDIATE", err);
	if (gone)
		gone = database_end(journal->database,
				    database_run(journal->database,
						 "PRAGMA defer_foreign_keys = ON", err) &&
					    forget_sessions(journal, session, err),
				    err);
	unlock_key(journal, key);
	return gone || err_while(err, "forgetting session %.40s", session);
}

static void fill_session(struct statement *statement, struct journal_session *session)
{
	struct str id = statement_text(statement, 0);

	*session = (struct journal_session){
		.workspace = statement_text(statement, 1),
		.agent = statement_text(statement, 2),
		.model = statement_text(statement, 3),
		.began_wall_ms = statement_integer(statement, 4),
		.last_wall_ms = statement_integer(statement, 5),
		.events = statement_integer(statement, 6),
		.parent = statement_text(statement, 7),
		.prompt = statement_text(statement, 8),
		.title = statement_text(statement, 9),
	};
	memcpy(session->id, id.data, id.size < JOURNAL_ID ? id.size : JOURNAL_ID);
}

bool journal_list(struct journal *journal, size_t limit,
		  bool (*session)(void *context, const struct journal_session *session),
		  void *context, struct err *err)
{
	struct statement *statement;
	struct journal_session found;
	bool row = false, ok = true;

	if (!statement_begin(journal->database,
			     "SELECT id, workspace, agent, model, began_ms,"
			     " coalesce((SELECT wall_ms FROM event WHERE session = key"
			     " ORDER BY number DESC LIMIT 1), began_ms) AS last_ms,"
			     " coalesce((SELECT max(number) FROM event WHERE session = key), 0),"
			     " coalesce((SELECT json_extract(json, '$.parent') FROM event"
			     " WHERE session = key AND number = 1 AND json_valid(json)), ''),"
			     " coalesce((SELECT substr(json_extract(json, '$.text'), 1, 400)"
			     " FROM event WHERE session = key AND kind = 'turn_began'"
			     " AND json_valid(json) ORDER BY number LIMIT 1), ''),"
			     " coalesce((SELECT substr(json_extract(json, '$.text'), 1, 400)"
			     " FROM event WHERE session = key AND kind = 'named'"
			     " AND json_valid(json) ORDER BY number DESC LIMIT 1), '')"
			     " FROM session ORDER BY last_ms DESC, key DESC LIMIT ?",
			     &statement, err))
		return err_while(err, "listing the sessions");
	statement_bind_integer(statement, 1, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
	do {
		ok = statement_step(statement, &row, err);
		if (ok && row)
			fill_session(statement, &found);
	} while (ok && row && session(context, &found));
	statement_end(statement);
	return ok || err_while(err, "listing the sessions");
}

void journal_found_fini(struct journal_found *found)
{
	free(found->workspace);
	free(found->agent);
	free(found->model);
	free(found->parent);
	free(found->mode);
	*found = (struct journal_found){0};
}

struct finding {
	const char *name, *workspace;
	bool newest;
	struct journal_found *found;
	size_t count;
};

static bool find_one(void *context, const struct journal_session *session)
{
	struct finding *finding = context;
	/* "last" means a session that a person began, not the session of a delegate. */
	bool fits = finding->newest ? str_is(session->workspace, finding->workspace) &&
					      session->parent.size == 0
				    : strncmp(session->id, finding->name,
					      strlen(finding->name)) == 0;

	if (!fits)
		return true;
	if (finding->count++ == 0) {
		memcpy(finding->found->id, session->id, sizeof(session->id));
		finding->found->workspace = memory_copy_str(session->workspace);
		finding->found->agent = memory_copy_str(session->agent);
		finding->found->model = memory_copy_str(session->model);
		if (session->parent.size > 0)
			finding->found->parent = memory_copy_str(session->parent);
		finding->found->events = session->events;
	}
	return !finding->newest && finding->count < 2;
}

static bool find_mode(struct journal *journal, struct journal_found *found, struct err *err)
{
	struct statement *statement;
	bool row = false;

	if (!statement_begin(journal->database,
			     "SELECT json_extract(json, '$.mode') FROM event"
			     " WHERE session = (SELECT key FROM session WHERE id = ?)"
			     " AND kind = 'mode_changed' AND json_valid(json)"
			     " ORDER BY number DESC LIMIT 1",
			     &statement, err))
		return err_while(err, "reading the mode of session %s", found->id);
	statement_bind_text(statement, 1, str_of(found->id));
	const bool ok = statement_step(statement, &row, err);

	if (ok && row && statement_text(statement, 0).size > 0)
		found->mode = memory_copy_str(statement_text(statement, 0));
	statement_end(statement);
	return ok || err_while(err, "reading the mode of session %s", found->id);
}

bool journal_find(struct journal *journal, const char *name, const char *workspace,
		  struct journal_found *found, struct err *err)
{
	struct finding finding = {
		.name = name,
		.workspace = workspace,
		.newest = strcmp(name, "last") == 0,
		.found = found,
	};

	*found = (struct journal_found){0};
	if (strlen(name) >= JOURNAL_ID_LEAST &&
	    !journal_list(journal, SIZE_MAX, find_one, &finding, err))
		return false;
	if (finding.count == 1)
		return find_mode(journal, found, err);
	if (finding.count > 1)
		return err_set(err, ENOTUNIQ,
			       "more than one session begins with \"%.40s\"; see: glovebox "
			       "sessions list",
			       name);
	if (finding.newest)
		return err_set(err, ENOENT,
			       "there is no session of the folder %s; see: glovebox sessions "
			       "list",
			       workspace);
	return err_set(err, ENOENT,
		       "there is no session \"%.40s\"; see: glovebox sessions list", name);
}

/* The runs in a workspace, by one statement. */

/*
 * The first or last event of a kind. The event of a denied call says that it was denied
 * right behind its names. This cannot be confused with text in the JSON, where the quotes
 * have backslashes.
 */
#define EVENT_OF(condition, order)                                            \
	"coalesce((SELECT json FROM event WHERE session = key AND " condition \
	" ORDER BY number " order " LIMIT 1), '')"

static const char query[] =
	"SELECT id, agent, model, began_ms,"
	" " EVENT_OF(
		"kind = 'session_began'",
		"ASC") ","
		       " " EVENT_OF(
			       "kind = 'turn_began'",
			       "ASC") ","
				      " " EVENT_OF(
					      "kind = 'message'",
					      "DESC") ","
						      " " EVENT_OF(
							      "kind = 'tool_began' AND instr(json, '\"tool\":\"generate_patch\"') > 0",
							      "DESC") ","
								      " " EVENT_OF(
									      "kind = 'turn_ended'",
									      "DESC") ","
										      " (SELECT count(*) FROM event WHERE session = key AND kind = 'tool_ended'),"
										      " (SELECT count(*) FROM event WHERE session = key AND kind = 'tool_ended'"
										      "  AND instr(substr(json, 1, 1000), ',\"status\":\"denied\"') > 0)"
										      " FROM session WHERE workspace = ?1 AND (?2 = '' OR agent IN (?2, ?6)) AND began_ms >= ?3"
										      " AND id <> ?4 ORDER BY began_ms DESC, key DESC LIMIT ?5";

static void fill(struct statement *statement, struct report_row *row)
{
	const struct str id = statement_text(statement, 0);

	*row = (struct report_row){
		.agent = statement_text(statement, 1),
		.model = statement_text(statement, 2),
		.began_ms = statement_integer(statement, 3),
		.began = statement_text(statement, 4),
		.task = statement_text(statement, 5),
		.message = statement_text(statement, 6),
		.handover = statement_text(statement, 7),
		.ended = statement_text(statement, 8),
		.calls = statement_integer(statement, 9),
		.denied = statement_integer(statement, 10),
	};
	memcpy(row->id, id.data, id.size < JOURNAL_ID ? id.size : JOURNAL_ID);
}

bool journal_reports_list(struct journal *journal, const struct report_filter *filter,
			  size_t limit,
			  bool (*report)(void *context, const struct report_row *row),
			  void *context, struct err *err)
{
	struct statement *statement;
	struct report_row found;
	bool row = false, ok;

	if (!statement_begin(journal->database, query, &statement, err))
		return err_while(err, "reading reports");
	statement_bind_text(statement, 1, str_of(filter->workspace));
	statement_bind_text(statement, 2, str_of(filter->agent));
	statement_bind_integer(statement, 3, filter->since_ms);
	statement_bind_text(statement, 4, str_of(filter->except));
	statement_bind_integer(statement, 5, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
	statement_bind_text(statement, 6,
			    str_of(filter->other_name ? filter->other_name : filter->agent));
	do {
		ok = statement_step(statement, &row, err);
		if (ok && row)
			fill(statement, &found);
	} while (ok && row && report(context, &found));
	statement_end(statement);
	return ok || err_while(err, "reading reports");
}
