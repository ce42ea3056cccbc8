/* journal: two tables, and one statement per event that refuses what does not follow. */
#include "store/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "store/database.h"

enum {
	SCHEMA_VERSION = 1,
	/*
	 * 48 random bits meet once in a million sessions 1 time in 500: then once more.
	 */
	ID_TRIES = 8,
};

/* What can be counted from the events is not stored beside them. */
static const char schema[] = "CREATE TABLE session ("
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
			     " BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;";

struct journal {
	struct database *database;
};

bool journal_open(const char *path, struct journal **journal, struct err *err)
{
	struct database *database;

	if (!path[0])
		return err_set(err, EINVAL, "the journal needs a path");
	if (!fd_make_folders(path, err) ||
	    !database_open(path, schema, SCHEMA_VERSION, &database, err))
		return err_while(err,
				 "opening the journal (XDG_STATE_HOME says where it may be)");
	*journal = memory_alloc(sizeof(**journal));
	(*journal)->database = database;
	return true;
}

void journal_close(struct journal *journal)
{
	if (!journal)
		return;
	database_close(journal->database);
	free(journal);
}

bool journal_default_path(struct buf *path, struct err *err)
{
	if (path_xdg(getenv("XDG_STATE_HOME"), getenv("HOME"), ".local/state",
		     "glovebox/sessions.db", path))
		return true;
	if (path->overflowed)
		return err_set(err, ENAMETOOLONG, "the journal's path is too long");
	return err_set(err, ENOENT, "no place for the journal: set HOME or XDG_STATE_HOME");
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
	bool row, ok;

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
	ok = statement_step(statement, &row, err);
	*inserted = ok && database_changes(journal->database) == 1;
	statement_end(statement);
	return ok;
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
	memcpy(id, drawn, sizeof(drawn));
	return true;
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

/* ERR: why nothing was inserted. Always false. */
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
	bool row, ok;

	/* One statement, so that two writers cannot both find the same number free. */
	if (!statement_begin(
		    journal->database,
		    "INSERT INTO event (session, number, kind, wall_ms, json)"
		    " SELECT key, ?2, ?3, ?4, ?5 FROM session WHERE id = ?1 AND ?2 ="
		    " 1 + coalesce((SELECT max(number) FROM event WHERE session = key), 0)",
		    &statement, err))
		return err_while(err, "writing the journal");
	statement_bind_text(statement, 1, str_of(session));
	statement_bind_integer(statement, 2, number);
	statement_bind_text(statement, 3, str_of(kind));
	statement_bind_integer(statement, 4, wall_ms);
	statement_bind_text(statement, 5, json);
	ok = statement_step(statement, &row, err);
	if (ok)
		inserted = database_changes(journal->database);
	statement_end(statement);
	if (ok && inserted != 1)
		ok = refuse_number(journal, session, number, err);
	return ok || err_while(err, "writing the journal");
}

bool journal_read(struct journal *journal, const char *session,
		  bool (*event)(void *context, int64_t number, const char *kind,
				int64_t wall_ms, struct str json),
		  void *context, struct err *err)
{
	struct statement *statement;
	int64_t key = 0, events = 0;
	bool row = false, ok = true;

	if (!find_session(journal, session, &key, &events, err) ||
	    !statement_begin(journal->database,
			     "SELECT number, kind, wall_ms, json FROM event"
			     " WHERE session = ? ORDER BY number",
			     &statement, err))
		return err_while(err, "reading the journal");
	statement_bind_integer(statement, 1, key);
	do {
		ok = statement_step(statement, &row, err);
	} while (ok && row &&
		 event(context, statement_integer(statement, 0),
		       statement_text(statement, 1).data, statement_integer(statement, 2),
		       statement_text(statement, 3)));
	statement_end(statement);
	return ok || err_while(err, "reading the journal");
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
			     " coalesce((SELECT max(number) FROM event WHERE session = key), 0)"
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
