/*
 * database_schema: a database as the tool database_schema sees it: its address, a
 * connection that only reads, and four questions about its schema that every kind of
 * database answers in the same columns. The clients (sqlite.c, postgres.c, mariadb.c)
 * load their library on first use, inside the worker.
 *
 * An address is a path, `sqlite:PATH`, or a URL:
 * `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, `mariadb://…` (also `postgres://`,
 * `mysql://`). USER to DATABASE are percent-encoded, and all of them except HOST may be
 * omitted. Of the part behind a "?" only `sslmode` is used.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

struct call;
struct dbms_client;

enum {
	DBMS_ADDRESS_MAX = 4096,
	/* The most rows of one answer. One further row shows only that there are more. */
	DBMS_ROWS_MAX = 1000,
	/* Bytes of one cell that are kept: a default or a view can be any expression. */
	DBMS_CELL_MAX = 4096,
	DBMS_CONNECT_S = 5,
	DBMS_ASK_S = 10, /* one question: schemas of 100,000 columns take less */
	DBMS_VERSION = 64,
};

/* Where a database is. Owned texts; NULL when the address does not say it. */
struct dbms_place {
	const struct dbms_client *client;
	char *path; /* of a file (SQLite) */
	char *host, *user, *password, *name, *sslmode;
	uint16_t port;
	char *unused; /* names of the unused parameters behind a "?"; or NULL */
};

/* ERR quotes only the scheme of ADDRESS, which may hold a password. */
bool dbms_place_parse(struct str address, struct dbms_place *place, struct err *err);
void dbms_place_fini(struct dbms_place *place);

/* The questions, and the columns of their answers. */
enum dbms_question {
	DBMS_TABLES,  /* name, kind, rows (estimate), comment */
	DBMS_COLUMNS, /* name, type, null, default, key and more, comment */
	DBMS_RULES,   /* name, definition: keys, checks, of a view its text */
	DBMS_INDEXES, /* name, kind, columns or definition */
	DBMS_QUESTIONS,
};
enum { DBMS_COLUMNS_MAX = 6 };

/* For the clients. */
struct dbms_client {
	const char *name;    /* "PostgreSQL" */
	const char *schemes; /* blank-separated */
	uint16_t port;       /* 0: a file */
	/*
	 * The statement of each question. All except the first have one parameter, the
	 * table.
	 */
	const char *questions[DBMS_QUESTIONS];
	/* HANDLE is the client's own. */
	bool (*open)(const struct dbms_place *place, struct call *call, void **handle,
		     char version[DBMS_VERSION], struct err *err);
	/*
	 * Runs SQL, and calls ROW with the cells of each row until ROW returns false.
	 * PARAMETER may be NULL.
	 */
	bool (*ask)(void *handle, const char *sql, const char *parameter,
		    bool (*row)(void *context, const struct str *cells, size_t count),
		    void *context, struct err *err);
	void (*close)(void *handle);
};
extern const struct dbms_client dbms_sqlite, dbms_postgres, dbms_mariadb;
