/*
 * database: opens SQLite with the settings that a journal needs, and keeps a few
 * statements prepared.
 */

#include "store/database.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/*
 * Open or create PATH (its folder must exist; the file is made 0600). SCHEMA is a
 * NULL-ended list of steps: the first makes version 1 of an empty file, each further step
 * makes the next version. The steps that a file lacks are run when it is opened, all of
 * them or none; a step that was released is never changed. The sentence of ERR names a
 * version newer than ours, or a database of another program: both are refused. A damaged
 * file is refused, never repaired by deleting. Several processes may have the file open:
 * writers wait up to DATABASE_BUSY_MS. An older program that has the file open goes on
 * writing after a newer program added a step. A step may therefore add columns and
 * tables, but it may neither remove any nor require a value that older programs do not
 * write.
 */
enum { DATABASE_BUSY_MS = 5000 };

enum {
	/*
	 * A journal has fewer different statements. Statements beyond this number are not
	 * kept prepared.
	 */
	KEPT_STATEMENTS = 16,
	/* "GBox" as a number. file(1) and we tell our databases from others by it. */
	APPLICATION_ID = 0x47426f78,
	/*
	 * The time between two tries of an operation for which SQLite itself does not
	 * wait.
	 */
	RETRY_MS = 5,
};

static const struct library libsqlite = {"libsqlite3.so.0", "3.37", "libsqlite3-0",
					 "keeping a session"};

/* The few functions of SQLite that are used. */
struct sqlite {
	typeof(sqlite3_open_v2) *open_v2;
	typeof(sqlite3_close_v2) *close_v2;
	typeof(sqlite3_extended_result_codes) *extended_result_codes;
	typeof(sqlite3_busy_timeout) *busy_timeout;
	typeof(sqlite3_errmsg) *errmsg;
	typeof(sqlite3_exec) *exec;
	typeof(sqlite3_changes64) *changes64;
	typeof(sqlite3_prepare_v3) *prepare_v3;
	typeof(sqlite3_bind_int64) *bind_int64;
	typeof(sqlite3_bind_text64) *bind_text64;
	typeof(sqlite3_step) *step;
	typeof(sqlite3_column_int64) *column_int64;
	typeof(sqlite3_column_text) *column_text;
	typeof(sqlite3_column_bytes) *column_bytes;
	typeof(sqlite3_reset) *reset;
	typeof(sqlite3_clear_bindings) *clear_bindings;
	typeof(sqlite3_finalize) *finalize;
};

struct statement {
	struct database *database;
	const char *sql; /* NULL: a free place */
	sqlite3_stmt *prepared;
	int failed; /* the first binding's code that was not SQLITE_OK */
	bool in_use;
};

struct database {
	struct sqlite sqlite;
	sqlite3 *handle;
	char *path;
	struct statement kept[KEPT_STATEMENTS];
};

static bool load_functions(struct sqlite *sqlite, struct err *err)
{
	const struct library_function wanted[] = {
		{"sqlite3_open_v2", &sqlite->open_v2},
		{"sqlite3_close_v2", &sqlite->close_v2},
		{"sqlite3_extended_result_codes", &sqlite->extended_result_codes},
		{"sqlite3_busy_timeout", &sqlite->busy_timeout},
		{"sqlite3_errmsg", &sqlite->errmsg},
		{"sqlite3_exec", &sqlite->exec},
		{"sqlite3_changes64", &sqlite->changes64},
		{"sqlite3_prepare_v3", &sqlite->prepare_v3},
		{"sqlite3_bind_int64", &sqlite->bind_int64},
		{"sqlite3_bind_text64", &sqlite->bind_text64},
		{"sqlite3_step", &sqlite->step},
		{"sqlite3_column_int64", &sqlite->column_int64},
		{"sqlite3_column_text", &sqlite->column_text},
		{"sqlite3_column_bytes", &sqlite->column_bytes},
		{"sqlite3_reset", &sqlite->reset},
		{"sqlite3_clear_bindings", &sqlite->clear_bindings},
		{"sqlite3_finalize", &sqlite->finalize},
	};

	return library_load(&libsqlite, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
}

static void database_explain(struct database *database, int code, struct err *err)
{
	const char *path = database->path;

	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		(void)err_set(err, EBUSY, "%s: another process is writing for too long",
			      path);
		break;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		(void)err_set(err, EUCLEAN,
			      "%s: damaged, or no database (%s); move it away to begin anew",
			      path, database->sqlite.errmsg(database->handle));
		break;
	case SQLITE_FULL:
		(void)err_set(err, ENOSPC, "%s: the disk is full", path);
		break;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		(void)err_set(err, EACCES, "%s: not writable", path);
		break;
	case SQLITE_CANTOPEN:
		(void)err_set(err, EACCES, "%s: cannot be opened (%s)", path,
			      database->sqlite.errmsg(database->handle));
		break;
	default:
		(void)err_set(err, EIO, "%s: %s", path,
			      database->sqlite.errmsg(database->handle));
		break;
	}
}

/* Set ERR for SQLite's CODE. Always false. */
static bool database_fail(struct database *database, int code, struct err *err)
{
	database_explain(database, code, err);
	return false;
}

static void database_pause(void)
{
	struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};

	(void)nanosleep(&pause, NULL);
}

static bool database_run_once(struct database *database, const char *sql, int *code)
{
	*code = database->sqlite.exec(database->handle, sql, NULL, NULL, NULL);
	return *code == SQLITE_OK;
}

bool database_run(struct database *database, const char *sql, struct err *err)
{
	int code;

	return database_run_once(database, sql, &code) ||
	       database_fail(database, code, err);
}

bool database_end(struct database *database, bool ok, struct err *err)
{
	if (ok && database_run(database, "COMMIT", err))
		return true;
	(void)database_run(database, "ROLLBACK", NULL);
	return false;
}

/* Get the one number that the statement SQL returns. */
static bool database_number(struct database *database, const char *sql, int64_t *number,
			    struct err *err)
{
	struct statement *statement;
	bool row = false;
	bool ok;

	if (!statement_begin(database, sql, &statement, err))
		return false;
	ok = statement_step(statement, &row, err);
	if (ok)
		*number = row ? statement_integer(statement, 0) : 0;
	statement_end(statement);
	return ok;
}

/*
 * The change to WAL needs the whole file for a moment, and SQLite does not wait for that.
 */
static bool database_use_wal(struct database *database, struct err *err)
{
	int64_t deadline = clock_now_ms() + DATABASE_BUSY_MS;
	struct statement *statement;
	bool row = false, is_wal, ok;

	for (;;) {
		struct err local = {0};

		if (!statement_begin(database, "PRAGMA journal_mode = WAL", &statement, err))
			return false;
		ok = statement_step(statement, &row, &local);
		is_wal = ok && row && str_is(statement_text(statement, 0), "wal");
		statement_end(statement);
		if (is_wal)
			return true;
		if (ok)
			return err_set(err, ENOTSUP,
				       "%s: this file system cannot share memory between "
				       "processes, which a journal needs; use a local one",
				       database->path);
		if (local.code != EBUSY || clock_now_ms() > deadline) {
			if (err)
				*err = local;
			return false;
		}
		database_pause();
	}
}

/*
 * NORMAL: a commit is in the kernel when it returns, so killing the program loses
 * nothing. A power cut may lose the newest commits, but never damages their order or the
 * file. FULL would keep those commits too, for one sync of the disk per event. Measured
 * with 2 kB events on ext4 on a virtual disk, FULL takes 0.4-1.3 ms (p90 4 ms) and NORMAL
 * 0.02-0.03 ms; a turn of five events may cost 1.2 ms. "On disk before it runs" therefore
 * holds when the program dies, not when the power fails.
 *
 * The first event of a log that is begun anew waits for a sync of the log's head, 0.3-5
 * ms. OFF for that one write would save this time. But a first event of some megabytes
 * immediately moves the log into the database, and without a sync this leaves a damaged
 * file after a power cut.
 */
static const char settings[] = "PRAGMA synchronous = NORMAL;"
			       "PRAGMA foreign_keys = ON;"
			       "PRAGMA trusted_schema = OFF;";

/* Inside a transaction: run the steps of SCHEMA from version FOUND on. */
static bool database_add_steps(struct database *database, const char *const *schema,
			       int64_t found, struct err *err)
{
	char numbers[128];
	int64_t version = found;

	for (; schema[version] != NULL; version++) {
		if (!database_run(database, schema[version], err))
			return err_while(err, "bringing the schema up to date");
	}
	(void)snprintf(numbers, sizeof(numbers),
		       "PRAGMA application_id = %d; PRAGMA user_version = %lld;",
		       APPLICATION_ID, (long long)version);
	return version == found || database_run(database, numbers, err);
}

/*
 * Inside a transaction: check whose file it is and which version it has, and bring it up
 * to date.
 */
static bool database_check_schema(struct database *database, const char *const *schema,
				  struct err *err)
{
	int64_t owner = 0, found = 0, tables = 0, known = 0;

	while (schema[known] != NULL)
		known++;
	if (!database_number(database, "PRAGMA application_id", &owner, err) ||
	    !database_number(database, "PRAGMA user_version", &found, err) ||
	    !database_number(database, "SELECT count(*) FROM sqlite_schema", &tables, err))
		return false;
	if (owner == 0 && found == 0 && tables == 0)
		return database_add_steps(database, schema, 0, err);
	if (owner != APPLICATION_ID || found < 1)
		return err_set(err, EEXIST, "%s: a database of another program",
			       database->path);
	if (found > known)
		return err_set(err, ENOTSUP,
			       "%s: written by a newer Glovebox (schema %lld, this one knows "
			       "%lld); use that one, or another file",
			       database->path, (long long)found, (long long)known);
	return database_add_steps(database, schema, found, err);
}

static bool database_set_up(struct database *database, const char *const *schema,
			    struct err *err)
{
	bool ok;

	(void)database->sqlite.extended_result_codes(database->handle, 1);
	(void)database->sqlite.busy_timeout(database->handle, DATABASE_BUSY_MS);
	if (!database_use_wal(database, err) || !database_run(database, settings, err) ||
	    !database_run(database, "BEGIN IMMEDIATE", err))
		return false;
	ok = database_check_schema(database, schema, err);
	return database_end(database, ok, err);
}

/*
 * SQLite would give a new file the mode of the umask; its -wal and -shm get the file's
 * mode. Make the file here only when it is new: closing a second descriptor of an open
 * database drops the database's locks.
 */
static bool make_file(const char *path, struct err *err)
{
	auto_close int fd =
		open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 && errno != EEXIST)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	return true;
}

bool database_open(const char *path, const char *const *schema,
		   struct database **database, struct err *err)
{
	struct sqlite sqlite;
	struct database *opened;
	int code;
	bool ok;

	if (!load_functions(&sqlite, err) || !make_file(path, err))
		return false;
	opened = memory_alloc(sizeof(*opened));
	opened->sqlite = sqlite;
	opened->path = memory_copy(path);
	code = opened->sqlite.open_v2(path, &opened->handle,
				      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (code == SQLITE_NOMEM)
		memory_exhausted(0);
	ok = code == SQLITE_OK ? database_set_up(opened, schema, err)
			       : database_fail(opened, code, err);
	if (!ok) {
		database_close(opened);
		return false;
	}
	*database = opened;
	return true;
}

void database_close(struct database *database)
{
	if (!database)
		return;
	for (size_t i = 0; i < KEPT_STATEMENTS; i++)
		(void)database->sqlite.finalize(database->kept[i].prepared);
	(void)database->sqlite.close_v2(database->handle);
	free(database->path);
	free(database);
}

/*
 * The place for SQL: the one that already has this statement, else a free one, else a new
 * one.
 */
static struct statement *find_place(struct database *database, const char *sql)
{
	struct statement *empty = NULL;

	for (size_t i = 0; i < KEPT_STATEMENTS; i++) {
		struct statement *at = &database->kept[i];

		if (at->sql && !at->in_use && strcmp(at->sql, sql) == 0)
			return at;
		if (!at->sql && !empty)
			empty = at;
	}
	return empty ? empty : memory_alloc(sizeof(struct statement));
}

static bool is_kept(const struct database *database, const struct statement *statement)
{
	return statement >= database->kept && statement < database->kept + KEPT_STATEMENTS;
}

bool statement_begin(struct database *database, const char *sql,
		     struct statement **statement, struct err *err)
{
	struct statement *place = find_place(database, sql);
	int code = SQLITE_OK;

	if (!place->prepared)
		code = database->sqlite.prepare_v3(database->handle, sql, -1,
						   SQLITE_PREPARE_PERSISTENT,
						   &place->prepared, NULL);
	if (code != SQLITE_OK) {
		if (!is_kept(database, place))
			free(place);
		return database_fail(database, code, err);
	}
	place->database = database;
	place->sql = sql;
	place->failed = SQLITE_OK;
	place->in_use = true;
	*statement = place;
	return true;
}

static void statement_note(struct statement *statement, int code)
{
	if (statement->failed == SQLITE_OK)
		statement->failed = code;
}

void statement_bind_integer(struct statement *statement, int index, int64_t number)
{
	statement_note(statement, statement->database->sqlite.bind_int64(statement->prepared,
									 index, number));
}

void statement_bind_text(struct statement *statement, int index, struct str text)
{
	statement_note(statement,
		       statement->database->sqlite.bind_text64(statement->prepared, index,
							       text.data ? text.data : "",
							       text.size, SQLITE_TRANSIENT,
							       SQLITE_UTF8));
}

bool statement_step(struct statement *statement, bool *row, struct err *err)
{
	int code = statement->failed;

	if (code == SQLITE_OK)
		code = statement->database->sqlite.step(statement->prepared);
	if (code == SQLITE_NOMEM)
		memory_exhausted(0);
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return database_fail(statement->database, code, err);
	*row = code == SQLITE_ROW;
	return true;
}

int64_t statement_integer(struct statement *statement, int column)
{
	return statement->database->sqlite.column_int64(statement->prepared, column);
}

struct str statement_text(struct statement *statement, int column)
{
	const unsigned char *text =
		statement->database->sqlite.column_text(statement->prepared, column);
	int size = statement->database->sqlite.column_bytes(statement->prepared, column);

	return (struct str){text ? (const char *)text : "",
			    text && size > 0 ? (size_t)size : 0};
}

void statement_end(struct statement *statement)
{
	if (!statement)
		return;
	if (!is_kept(statement->database, statement)) {
		(void)statement->database->sqlite.finalize(statement->prepared);
		free(statement);
		return;
	}
	(void)statement->database->sqlite.reset(statement->prepared);
	(void)statement->database->sqlite.clear_bindings(statement->prepared);
	statement->in_use = false;
}

bool statement_run(struct statement *statement, int64_t *changed, struct err *err)
{
	const struct database *database = statement->database;
	bool row;
	bool ok = statement_step(statement, &row, err);

	if (ok && changed)
		*changed = database->sqlite.changes64(database->handle);
	statement_end(statement);
	return ok;
}

/* The folder of the user's state, and one sentence for all errors about it. */

enum {
	WORKSPACE_DIGITS = 24 /* of the hash of a workspace's path, in the name of a file */
};

bool database_state_path(const char *name, struct buf *path, struct err *err)
{
	struct buf below;
	bool found;

	buf_init(&below, path->max);
	(void)buf_addf(&below, "glovebox/%s", name);
	found = path_xdg(getenv("XDG_STATE_HOME"), getenv("HOME"), ".local/state",
			 below.data, path);
	buf_fini(&below);
	if (found)
		return true;
	if (path->overflowed)
		return err_set(err, ENAMETOOLONG, "the path of %s is too long", name);
	return err_set(err, ENOENT, "no place for %s: set HOME or XDG_STATE_HOME", name);
}

bool database_workspace_path(const char *name, const char *workspace, const char *suffix,
			     struct buf *path, struct err *err)
{
	char hex[HASH_HEX + 1], file[HASH_HEX + PATH_MAX];

	hash_text(str_of(workspace), hex);
	(void)snprintf(file, sizeof(file), "%s/%.*s%s", name, WORKSPACE_DIGITS, hex, suffix);
	return database_state_path(file, path, err);
}

bool database_state_open(const char *path, const char *what, const char *const *schema,
			 struct database **database, struct err *err)
{
	if (!path[0])
		return err_set(err, EINVAL, "%s needs a path", what);
	return (fd_make_folders(path, err) && database_open(path, schema, database, err)) ||
	       err_while(err, "opening %s (XDG_STATE_HOME says where it may be)", what);
}
