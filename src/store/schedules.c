/* schedules: one table. One statement decides which process claims a run. */
#include "store/schedules.h"

#include "base/clock.h"
#include "base/memory.h"
#include "store/database.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MS_PER_S = 1000 };

static const char *const schema[] = {
	/* version 1 */
	"CREATE TABLE schedule ("
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" workspace TEXT NOT NULL, agent TEXT NOT NULL, task TEXT NOT NULL,"
	" times TEXT NOT NULL, zone TEXT NOT NULL,"
	" hash TEXT NOT NULL UNIQUE,"
	" author TEXT NOT NULL, session TEXT NOT NULL,"
	" state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 2),"
	" approved TEXT NOT NULL," /* the hash that the person saw */
	" made_s INTEGER NOT NULL, next_s INTEGER NOT NULL,"
	" last_s INTEGER NOT NULL DEFAULT 0,"
	" busy_until_s INTEGER NOT NULL DEFAULT 0,"
	" last_session TEXT NOT NULL DEFAULT '',"
	" last_outcome TEXT NOT NULL DEFAULT ''"
	") STRICT;"
	"CREATE TRIGGER content_stays BEFORE UPDATE OF"
	" workspace, agent, task, times, zone, hash ON schedule"
	" BEGIN SELECT RAISE(ABORT, 'the content of a schedule stays'); END;",
	NULL,
};

struct schedules {
	struct database *database;
};

static const char *const states[] = {
	[SCHEDULE_PENDING] = "pending",
	[SCHEDULE_ACTIVE] = "active",
	[SCHEDULE_DISABLED] = "disabled",
};

const char *schedule_state_name(enum schedule_state state)
{
	return states[state];
}

bool schedules_open(const char *path, struct schedules **schedules, struct err *err)
{
	struct database *database;

	if (!database_state_open(path, "the schedules", schema, &database, err))
		return false;
	*schedules = memory_alloc(sizeof(**schedules));
	(*schedules)->database = database;
	return true;
}

void schedules_close(struct schedules *schedules)
{
	if (!schedules)
		return;
	database_close(schedules->database);
	free(schedules);
}

/*
 * Add each part with its size before it, so that two different contents never give the
 * same bytes.
 */
/* The hash of the content of SCHEDULE. */
static void schedule_hash(const struct schedule *schedule, char hash[HASH_HEX + 1])
{
	const struct str parts[] = {schedule->workspace, schedule->agent, schedule->task,
				    schedule->times, schedule->zone};
	struct buf text;

	buf_init(&text, SIZE_MAX);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		(void)buf_addf(&text, "%zu:", parts[i].size);
		(void)buf_addstr(&text, parts[i]);
	}
	hash_text(buf_str(&text), hash);
	buf_fini(&text);
}

static bool is_text(struct str text, size_t most)
{
	return text.size > 0 && text.size <= most && !memchr(text.data, '\0', text.size);
}

static bool check_content(const struct schedule *schedule, struct err *err)
{
	if (!is_text(schedule->task, SCHEDULES_TASK_MAX))
		return err_set(err,
			       schedule->task.size > SCHEDULES_TASK_MAX ? E2BIG : EINVAL,
			       "the task of a schedule has 1 byte to %d KiB and no NUL",
			       SCHEDULES_TASK_MAX >> 10);
	if (!is_text(schedule->agent, SCHEDULES_NAME_MAX) || schedule->workspace.size == 0 ||
	    schedule->times.size == 0 || schedule->zone.size > SCHEDULES_NAME_MAX)
		return err_set(err, EINVAL,
			       "a schedule needs an agent, a workspace and a time");
	return true;
}

/* Count all schedules, or, when WORKSPACE is not NULL, its pending ones. */
static bool count_of(struct schedules *schedules, const struct str *workspace,
		     int64_t *count, struct err *err)
{
	struct statement *statement;
	bool row = false, ok;

	if (!statement_begin(schedules->database,
			     workspace ? "SELECT count(*) FROM schedule WHERE state = 0 AND "
					 "workspace = ?"
				       : "SELECT count(*) FROM schedule",
			     &statement, err))
		return false;
	if (workspace)
		statement_bind_text(statement, 1, *workspace);
	ok = statement_step(statement, &row, err);
	*count = ok && row ? statement_integer(statement, 0) : 0;
	statement_end(statement);
	return ok;
}

static bool has_room(struct schedules *schedules, const struct schedule *schedule,
		     struct err *err)
{
	int64_t all, pending;

	if (!count_of(schedules, NULL, &all, err) ||
	    !count_of(schedules, &schedule->workspace, &pending, err))
		return false;
	if (all >= SCHEDULES_MAX)
		return err_set(err, ENOSPC,
			       "there are %d schedules already: remove what is not needed",
			       SCHEDULES_MAX);
	if (schedule->by.size > 0 && pending >= SCHEDULES_PENDING_MAX)
		return err_set(err, ENOSPC,
			       "%d schedules of this workspace wait for approval already",
			       SCHEDULES_PENDING_MAX);
	return true;
}

static bool refuse_known(struct err *err)
{
	return err_set(err, EEXIST,
		       "this very schedule is there already (the same agent, task, time and "
		       "workspace)");
}

static bool is_new(struct schedules *schedules, const char *hash, struct err *err)
{
	struct statement *statement;
	bool row = false, ok;

	if (!statement_begin(schedules->database, "SELECT 1 FROM schedule WHERE hash = ?",
			     &statement, err))
		return false;
	statement_bind_text(statement, 1, str_of(hash));
	ok = statement_step(statement, &row, err);
	statement_end(statement);
	return ok && row ? refuse_known(err) : ok;
}

bool schedules_may_add(struct schedules *schedules, const struct schedule *schedule,
		       char hash[HASH_HEX + 1], struct err *err)
{
	if (!check_content(schedule, err))
		return false;
	schedule_hash(schedule, hash);
	return is_new(schedules, hash, err) && has_room(schedules, schedule, err);
}

static bool insert(struct schedules *schedules, const struct schedule *schedule,
		   const char *hash, int64_t *id, struct err *err)
{
	const bool by_person = schedule->by.size == 0;
	struct statement *statement;
	bool row = false, ok;

	if (!statement_begin(schedules->database,
			     "INSERT INTO schedule (workspace, agent, task, times, zone, hash,"
			     " author, session, state, approved, made_s, next_s)"
			     " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
			     " ON CONFLICT (hash) DO NOTHING RETURNING id",
			     &statement, err))
		return false;
	statement_bind_text(statement, 1, schedule->workspace);
	statement_bind_text(statement, 2, schedule->agent);
	statement_bind_text(statement, 3, schedule->task);
	statement_bind_text(statement, 4, schedule->times);
	statement_bind_text(statement, 5, schedule->zone);
	statement_bind_text(statement, 6, str_of(hash));
	statement_bind_text(statement, 7, schedule->by);
	statement_bind_text(statement, 8, schedule->session);
	statement_bind_integer(statement, 9, by_person ? SCHEDULE_ACTIVE : SCHEDULE_PENDING);
	statement_bind_text(statement, 10, str_of(by_person ? hash : ""));
	statement_bind_integer(statement, 11, clock_wall_ms() / MS_PER_S);
	statement_bind_integer(statement, 12, by_person ? schedule->next_s : 0);
	ok = statement_step(statement, &row, err);
	if (ok && row)
		*id = statement_integer(statement, 0);
	while (ok && row)
		ok = statement_step(statement, &row, err);
	statement_end(statement);
	return ok && *id == 0 ? refuse_known(err) : ok;
}

bool schedules_add(struct schedules *schedules, const struct schedule *schedule,
		   int64_t *id, char hash[HASH_HEX + 1], struct err *err)
{
	int64_t made = 0;
	bool ok;

	if (!check_content(schedule, err))
		return false;
	schedule_hash(schedule, hash);
	if (!database_run(schedules->database, "BEGIN IMMEDIATE", err))
		return err_while(err, "adding a schedule");
	ok = has_room(schedules, schedule, err) &&
	     insert(schedules, schedule, hash, &made, err);
	ok = database_end(schedules->database, ok, err);
	if (ok)
		*id = made;
	return ok;
}

static void fill(struct statement *statement, struct schedule *found)
{
	int64_t state = statement_integer(statement, 8);

	*found = (struct schedule){
		.id = statement_integer(statement, 0),
		.workspace = statement_text(statement, 1),
		.agent = statement_text(statement, 2),
		.task = statement_text(statement, 3),
		.times = statement_text(statement, 4),
		.zone = statement_text(statement, 5),
		.by = statement_text(statement, 6),
		.session = statement_text(statement, 7),
		.state = state == SCHEDULE_ACTIVE     ? SCHEDULE_ACTIVE
			 : state == SCHEDULE_DISABLED ? SCHEDULE_DISABLED
						      : SCHEDULE_PENDING,
		.made_s = statement_integer(statement, 10),
		.next_s = statement_integer(statement, 11),
		.last_s = statement_integer(statement, 12),
		.busy_until_s = statement_integer(statement, 13),
		.last_session = statement_text(statement, 14),
		.last_outcome = statement_text(statement, 15),
	};
	schedule_hash(found, found->hash);
	found->approved = str_is(statement_text(statement, 9), found->hash);
}

bool schedules_find(struct schedules *schedules, const char *workspace, int64_t id,
		    bool (*schedule)(void *context, const struct schedule *schedule),
		    void *context, struct err *err)
{
	struct statement *statement;
	struct schedule found;
	bool row = false, ok;

	if (!statement_begin(schedules->database,
			     "SELECT id, workspace, agent, task, times, zone, author, session,"
			     " state, approved, made_s, next_s, last_s, busy_until_s,"
			     " last_session, last_outcome FROM schedule"
			     " WHERE (?1 = '' OR workspace = ?1) AND (?2 = 0 OR id = ?2)"
			     " ORDER BY id",
			     &statement, err))
		return err_while(err, "reading the schedules");
	statement_bind_text(statement, 1, str_of(workspace));
	statement_bind_integer(statement, 2, id);
	do {
		ok = statement_step(statement, &row, err);
		if (ok && row)
			fill(statement, &found);
	} while (ok && row && schedule(context, &found));
	statement_end(statement);
	return ok || err_while(err, "reading the schedules");
}

/* Run the statement that was bound; *CHANGED: rows. */
static bool change(struct statement *statement, int64_t *changed, struct err *err)
{
	return statement_run(statement, changed, err) ||
	       err_while(err, "changing a schedule");
}

static bool refuse_absent(int64_t id, struct err *err)
{
	return err_set(err, ENOENT,
		       "there is no schedule %" PRId64 "; see: glovebox schedule list", id);
}

/* Set ERR: there is no such schedule, or WHY it was not changed. Always false. */
static bool refuse(struct schedules *schedules, int64_t id, int code, const char *why,
		   struct err *err)
{
	struct statement *statement;
	bool row = false;

	if (!statement_begin(schedules->database, "SELECT 1 FROM schedule WHERE id = ?",
			     &statement, err))
		return false;
	statement_bind_integer(statement, 1, id);
	if (!statement_step(statement, &row, err)) {
		statement_end(statement);
		return false;
	}
	statement_end(statement);
	return row ? err_set(err, code, "schedule %" PRId64 ": %s", id, why)
		   : refuse_absent(id, err);
}

bool schedules_approve(struct schedules *schedules, int64_t id,
		       const char hash[HASH_HEX + 1], int64_t next_s, struct err *err)
{
	struct statement *statement;
	int64_t changed = 0;

	if (!statement_begin(schedules->database,
			     "UPDATE schedule SET approved = ?2, state = 1, next_s = ?3"
			     " WHERE id = ?1 AND hash = ?2",
			     &statement, err))
		return err_while(err, "approving a schedule");
	statement_bind_integer(statement, 1, id);
	statement_bind_text(statement, 2, str_of(hash));
	statement_bind_integer(statement, 3, next_s);
	if (!change(statement, &changed, err))
		return false;
	return changed > 0 || refuse(schedules, id, ESTALE,
				     "its content is another one than was approved", err);
}

bool schedules_set_state(struct schedules *schedules, int64_t id,
			 enum schedule_state state, int64_t next_s, struct err *err)
{
	struct statement *statement;
	int64_t changed = 0;

	if (!statement_begin(schedules->database,
			     "UPDATE schedule SET state = ?2, next_s = ?3"
			     " WHERE id = ?1 AND (?2 <> 1 OR approved = hash)",
			     &statement, err))
		return err_while(err, "changing a schedule");
	statement_bind_integer(statement, 1, id);
	statement_bind_integer(statement, 2, state);
	statement_bind_integer(statement, 3, next_s);
	if (!change(statement, &changed, err))
		return false;
	return changed > 0 ||
	       refuse(schedules, id, EPERM,
		      "it was never approved (glovebox schedule approve)", err);
}

bool schedules_remove(struct schedules *schedules, int64_t id, struct err *err)
{
	struct statement *statement;
	int64_t changed = 0;

	if (!statement_begin(schedules->database, "DELETE FROM schedule WHERE id = ?",
			     &statement, err))
		return err_while(err, "removing a schedule");
	statement_bind_integer(statement, 1, id);
	return change(statement, &changed, err) && (changed > 0 || refuse_absent(id, err));
}

bool schedules_renew(struct schedules *schedules, const struct schedule *schedule,
		     const struct schedule *renewed, struct err *err)
{
	struct statement *statement;
	char hash[HASH_HEX + 1];
	int64_t changed;

	schedule_hash(renewed, hash);
	/* The content of a row never changes, so another row takes its place. */
	if (!statement_begin(schedules->database,
			     "INSERT OR REPLACE INTO schedule"
			     " SELECT id, workspace, agent, task, ?3, ?4, ?5, author, session,"
			     " state, iif(approved = hash, ?5, approved), made_s, next_s, last_s,"
			     " busy_until_s, last_session, last_outcome FROM schedule"
			     " WHERE id = ?1 AND hash = ?2"
			     " AND NOT EXISTS (SELECT 1 FROM schedule WHERE hash = ?5)",
			     &statement, err))
		return err_while(err, "changing a schedule");
	statement_bind_integer(statement, 1, schedule->id);
	statement_bind_text(statement, 2, str_of(schedule->hash));
	statement_bind_text(statement, 3, renewed->times);
	statement_bind_text(statement, 4, renewed->zone);
	statement_bind_text(statement, 5, str_of(hash));
	return change(statement, &changed, err);
}

bool schedules_claim(struct schedules *schedules, const struct schedule *schedule,
		     int64_t now_s, int64_t until_s, int64_t next_s, bool *claimed,
		     struct err *err)
{
	struct statement *statement;
	int64_t changed = 0;

	if (!statement_begin(schedules->database,
			     "UPDATE schedule SET busy_until_s = ?5, next_s = ?6, last_s = ?4,"
			     " last_session = '', last_outcome = ''"
			     " WHERE id = ?1 AND state = 1 AND approved = ?2 AND hash = ?2"
			     " AND next_s = ?3 AND next_s BETWEEN 1 AND ?4"
			     " AND busy_until_s <= ?4",
			     &statement, err))
		return err_while(err, "claiming a schedule");
	statement_bind_integer(statement, 1, schedule->id);
	statement_bind_text(statement, 2, str_of(schedule->hash));
	statement_bind_integer(statement, 3, schedule->next_s);
	statement_bind_integer(statement, 4, now_s);
	statement_bind_integer(statement, 5, until_s);
	statement_bind_integer(statement, 6, next_s);
	if (!change(statement, &changed, err))
		return false;
	*claimed = changed > 0;
	return true;
}

bool schedules_end(struct schedules *schedules, int64_t id, int64_t until_s,
		   const char *outcome, const char *session, struct err *err)
{
	struct statement *statement;
	int64_t changed = 0;

	if (!statement_begin(schedules->database,
			     "UPDATE schedule SET busy_until_s = 0, last_outcome = ?3,"
			     " last_session = ?4 WHERE id = ?1 AND busy_until_s = ?2",
			     &statement, err))
		return err_while(err, "ending a schedule");
	statement_bind_integer(statement, 1, id);
	statement_bind_integer(statement, 2, until_s);
	statement_bind_text(statement, 3, str_of(outcome));
	statement_bind_text(statement, 4, str_of(session));
	return change(statement, &changed, err);
}
