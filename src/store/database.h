/*
 * database: one SQLite file in WAL mode with STRICT tables, opened with our schema and
 * its version. The only file that knows SQLite. Statements are prepared, values bound.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct database;
struct statement;

/*
 * Open or create PATH (its folder must exist; the file is made 0600). SCHEMA are its steps,
 * NULL-ended: the first makes version 1 of an empty file, each further one the next version
 * of the one before. What a file lacks of them is run when it is opened, all of it or
 * nothing; a step that was released is never changed. A newer version than ours is refused by
 * name, as is a database of another program; a damaged file is refused, never repaired by
 * deleting. Several processes may have it open: writers wait up to DATABASE_BUSY_MS. One that
 * was opened before a later program added a step goes on writing, so that a step may add, but
 * neither remove nor ask for what older programs do not say.
 */
enum { DATABASE_BUSY_MS = 5000 };
bool database_open(const char *path, const char *const *schema,
		   struct database **database, struct err *err);
void database_close(struct database *database);

/*
 * SQL has one ? per bound value, counted from 1; columns count from 0. SQL is borrowed
 * for the life of DATABASE, which keeps the prepared statement. Finish with
 * statement_end.
 */
bool statement_begin(struct database *database, const char *sql,
		     struct statement **statement, struct err *err);
void statement_bind_integer(struct statement *statement, int index, int64_t number);
void statement_bind_text(struct statement *statement, int index, struct str text); /* copied */
/* *ROW: there is a row to read. A binding that failed is told here. */
bool statement_step(struct statement *statement, bool *row, struct err *err);
int64_t statement_integer(struct statement *statement, int column);
struct str statement_text(struct statement *statement, int column); /* until the next step */
void statement_end(struct statement *statement);
/*
 * For one without rows: the one step, and the end. *CHANGED, which may be NULL: how many rows
 * its INSERT, UPDATE or DELETE changed.
 */
bool statement_run(struct statement *statement, int64_t *changed, struct err *err);

/* Statements without values or rows, such as BEGIN. */
bool database_run(struct database *database, const char *sql, struct err *err);
/* The end of what a BEGIN began: COMMIT when OK, which is then returned, else ROLLBACK. */
bool database_end(struct database *database, bool ok, struct err *err);
