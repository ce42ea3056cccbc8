/*
 * database: one SQLite file in WAL mode with STRICT tables, opened with our schema and
 * its version. The only file that knows SQLite. Statements are prepared, values bound.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct database;
struct statement;

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

/* Where the user's state lies, and the databases in it. */

/*
 * Append the place of NAME: $XDG_STATE_HOME (when absolute) or ~/.local/state, then
 * glovebox/NAME. False without a home.
 */
bool database_state_path(const char *name, struct buf *path, struct err *err);

/* database_open for a file at PATH whose folders are made first (0700). WHAT: "the journal". */
bool database_state_open(const char *path, const char *what, const char *const *schema,
			 struct database **database, struct err *err);
