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
 * Open or create PATH (its folder must exist; the file is made 0600). SCHEMA is run once,
 * on an empty file. A newer schema VERSION than ours is refused by name, as is a database
 * of another program; a damaged file is refused, never repaired by deleting. Several
 * processes may have it open: writers wait up to DATABASE_BUSY_MS.
 */
enum { DATABASE_BUSY_MS = 5000 };
bool database_open(const char *path, const char *schema, int version,
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

/* Statements without values or rows, such as BEGIN. */
bool database_run(struct database *database, const char *sql, struct err *err);
/* Rows that the last INSERT, UPDATE or DELETE changed. */
int64_t database_changes(struct database *database);
