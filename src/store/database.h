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
/* ROW: there is a row to read. A failed binding is reported here. */
bool statement_step(struct statement *statement, bool *row, struct err *err);
int64_t statement_integer(struct statement *statement, int column);
struct str statement_text(struct statement *statement, int column); /* until the next step */
void statement_end(struct statement *statement);
/*
 * Run a statement without rows, and end it. *CHANGED: how many rows its INSERT, UPDATE or
 * DELETE changed; CHANGED may be NULL.
 */
bool statement_run(struct statement *statement, int64_t *changed, struct err *err);

/* Statements without values or rows, such as BEGIN. */
bool database_run(struct database *database, const char *sql, struct err *err);
/* End the transaction of a BEGIN. OK: COMMIT, whose result is returned; else ROLLBACK. */
bool database_end(struct database *database, bool ok, struct err *err);

/* The folder of the user's state, and the databases in it. */

/*
 * Append the path of NAME: $XDG_STATE_HOME (when absolute) or ~/.local/state, then
 * glovebox/NAME. False when there is no home directory.
 */
bool database_state_path(const char *name, struct buf *path, struct err *err);
/* The same for the file of WORKSPACE in the folder NAME: NAME/(digits of a hash)SUFFIX. */
bool database_workspace_path(const char *name, const char *workspace, const char *suffix,
			     struct buf *path, struct err *err);

/* database_open for a file at PATH whose folders are made first (0700). WHAT: "the journal". */
bool database_state_open(const char *path, const char *what, const char *const *schema,
			 struct database **database, struct err *err);
