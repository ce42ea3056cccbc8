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
