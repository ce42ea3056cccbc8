/* sqlite: files of SQLite, opened only for reading. */

#include "base/buf.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "tool/call.h"
#include "tools/databases/database_schema.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Instructions of SQLite between two looks at the clock: some 100 us. */
	STEPS_A_LOOK = 10000,
	/* A writer locks a file only for moments, so wait this long for it. */
	BUSY_MS = 1000,
};

static const struct library libsqlite = {"libsqlite3.so.0", "3.37", "libsqlite3-0",
					 "looking into a database"};

struct functions {
	typeof(sqlite3_open_v2) *open_v2;
	typeof(sqlite3_close_v2) *close_v2;
	typeof(sqlite3_errmsg) *errmsg;
	typeof(sqlite3_libversion) *libversion;
	typeof(sqlite3_busy_timeout) *busy_timeout;
	typeof(sqlite3_progress_handler) *progress_handler;
	typeof(sqlite3_db_config) *db_config;
	typeof(sqlite3_prepare_v2) *prepare_v2;
	typeof(sqlite3_bind_text) *bind_text;
	typeof(sqlite3_step) *step;
	typeof(sqlite3_column_count) *column_count;
	typeof(sqlite3_column_text) *column_text;
	typeof(sqlite3_column_bytes) *column_bytes;
	typeof(sqlite3_finalize) *finalize;
};

struct sqlite_file {
	struct functions with;
	sqlite3 *handle;
	struct call *call;
};

static bool load(struct functions *with, struct err *err)
{
	const struct library_function wanted[] = {
		{"sqlite3_open_v2", &with->open_v2},
		{"sqlite3_close_v2", &with->close_v2},
		{"sqlite3_errmsg", &with->errmsg},
		{"sqlite3_libversion", &with->libversion},
		{"sqlite3_busy_timeout", &with->busy_timeout},
		{"sqlite3_progress_handler", &with->progress_handler},
		{"sqlite3_db_config", &with->db_config},
		{"sqlite3_prepare_v2", &with->prepare_v2},
		{"sqlite3_bind_text", &with->bind_text},
		{"sqlite3_step", &with->step},
		{"sqlite3_column_count", &with->column_count},
		{"sqlite3_column_text", &with->column_text},
		{"sqlite3_column_bytes", &with->column_bytes},
		{"sqlite3_finalize", &with->finalize},
	};

	return library_load(&libsqlite, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
}

static int stop_if_wanted(void *context)
{
	struct sqlite_file *file = context;

	return call_stopped(file->call);
}

/* Append PATH as a URI of SQLite, with the parameters MORE behind it. */
static void add_uri(struct buf *uri, const char *path, const char *more)
{
	(void)buf_adds(uri, "file:");
	(void)text_percent_add(str_of(path), "/", uri);
	(void)buf_addf(uri, "?mode=ro%s", more);
}

static bool explain(const struct sqlite_file *file, struct err *err)
{
	return err_set(err, EIO, "SQLite: %s",
		       file->handle ? file->with.errmsg(file->handle) : "no memory");
}

static bool ignore_row(void *context, const struct str *cells, size_t count)
{
	(void)context;
	(void)cells;
	(void)count;
	return true;
}

static bool ask(void *handle, const char *sql, const char *parameter,
		bool (*row)(void *context, const struct str *cells, size_t count),
		void *context, struct err *err)
{
	struct sqlite_file *file = handle;
	const struct functions *with = &file->with;
	sqlite3_stmt *statement = NULL;
	bool more = true;
	int code = with->prepare_v2(file->handle, sql, -1, &statement, NULL);

	if (code == SQLITE_OK && parameter)
		code = with->bind_text(statement, 1, parameter, -1, SQLITE_STATIC);
	while (code == SQLITE_OK || (code == SQLITE_ROW && more)) {
		struct str cells[DBMS_COLUMNS_MAX] = {0};
		int count;

		code = with->step(statement);
		if (code != SQLITE_ROW)
			break;
		count = with->column_count(statement);
		for (int i = 0; i < count && i < DBMS_COLUMNS_MAX; i++) {
			const void *text = with->column_text(statement, i);

			cells[i] = (struct str){text,
						(size_t)with->column_bytes(statement, i)};
		}
		more = row(context, cells, (size_t)count);
	}
	if (code != SQLITE_DONE && code != SQLITE_ROW)
		(void)explain(file, err);
	(void)with->finalize(statement);
	return code == SQLITE_DONE || code == SQLITE_ROW;
}

static void close_file(void *handle)
{
	struct sqlite_file *file = handle;

	(void)file->with.close_v2(file->handle);
	free(file);
}

/*
 * Open the file at PATH and read its first page, because opening does not read
 * anything.
 */
static bool try_open(struct sqlite_file *file, const char *path, const char *more,
		     struct err *err)
{
	const struct functions *with = &file->with;
	struct buf uri;
	int code;

	buf_init(&uri, 3 * DBMS_ADDRESS_MAX);
	add_uri(&uri, path, more);
	(void)with->close_v2(file->handle);
	file->handle = NULL;
	code = uri.overflowed ? SQLITE_CANTOPEN
			      : with->open_v2(uri.data, &file->handle,
					      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI |
						      SQLITE_OPEN_NOMUTEX,
					      NULL);
	buf_fini(&uri);
	if (code != SQLITE_OK)
		return explain(file, err);
	/* The schema of a file is not trusted: it may not do damage or run functions. */
	(void)with->db_config(file->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)with->db_config(file->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	(void)with->busy_timeout(file->handle, BUSY_MS);
	with->progress_handler(file->handle, STEPS_A_LOOK, stop_if_wanted, file);
	return ask(file, "SELECT count(*) FROM sqlite_schema", NULL, ignore_row, NULL, err);
}

static bool open_file(const struct dbms_place *place, struct call *call, void **handle,
		      char version[DBMS_VERSION], struct err *err)
{
	struct sqlite_file *file = memory_alloc(sizeof(*file));

	file->call = call;
	/*
	 * SQLite shares a file with a write-ahead log only when it may write beside the
	 * file. Without that right the file is opened as one that nobody changes.
	 */
	if (!load(&file->with, err) || (!try_open(file, place->path, "", err) &&
					!try_open(file, place->path, "&immutable=1", err))) {
		if (file->with.close_v2)
			(void)file->with.close_v2(file->handle);
		free(file);
		return false;
	}
	(void)snprintf(version, DBMS_VERSION, "SQLite %s", file->with.libversion());
	*handle = file;
	return true;
}

const struct dbms_client dbms_sqlite = {
	.name = "SQLite",
	.schemes = "sqlite",
	.questions =
		{
			[DBMS_TABLES] =
				"SELECT name, type, NULL, NULL FROM sqlite_schema"
				" WHERE type IN ('table', 'view')"
				" AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
			[DBMS_COLUMNS] =
				"SELECT name, type, CASE WHEN \"notnull\" THEN 'no' ELSE 'yes' END,"
				" dflt_value, CASE WHEN pk > 0 THEN 'primary key ' || pk"
				" WHEN hidden > 1 THEN 'generated' END, NULL"
				" FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid",
			[DBMS_RULES] =
				"SELECT 'foreign key', group_concat(\"from\", ', ') || ' -> '"
				" || \"table\" || coalesce('(' || group_concat(\"to\", ', ') || ')', '')"
				" || ' on delete ' || lower(on_delete)"
				" FROM pragma_foreign_key_list(?1) GROUP BY id"
				" UNION ALL SELECT type, sql FROM sqlite_schema"
				" WHERE name = ?1 AND type IN ('table', 'view')"
				" UNION ALL SELECT 'trigger ' || name, sql FROM sqlite_schema"
				" WHERE tbl_name = ?1 AND type = 'trigger'",
			[DBMS_INDEXES] =
				"SELECT i.name, CASE i.origin WHEN 'pk' THEN 'primary key'"
				" WHEN 'u' THEN 'unique' ELSE CASE WHEN i.\"unique\" THEN 'unique'"
				" ELSE 'index' END END, coalesce(s.sql, (SELECT group_concat(name, ', ')"
				" FROM pragma_index_info(i.name)))"
				" FROM pragma_index_list(?1) i LEFT JOIN sqlite_schema s"
				" ON s.type = 'index' AND s.name = i.name ORDER BY i.name",
		},
	.open = open_file,
	.ask = ask,
	.close = close_file,
};
