/* postgres: servers of PostgreSQL, in a session that may only read. */

#include "base/library.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "tools/databases/database_schema.h"

#include <errno.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct library libpq = {"libpq.so.5", "9.4", "libpq5",
				     "asking a PostgreSQL server"};

struct functions {
	typeof(PQconnectdbParams) *connect_params;
	typeof(PQstatus) *status;
	typeof(PQerrorMessage) *error_message;
	typeof(PQparameterStatus) *parameter_status;
	typeof(PQexecParams) *exec_params;
	typeof(PQresultStatus) *result_status;
	typeof(PQntuples) *ntuples;
	typeof(PQnfields) *nfields;
	typeof(PQgetisnull) *getisnull;
	typeof(PQgetvalue) *getvalue;
	typeof(PQgetlength) *getlength;
	typeof(PQclear) *clear;
	typeof(PQfinish) *finish;
};

struct connection {
	struct functions with;
	PGconn *handle;
};

static bool load(struct functions *with, struct err *err)
{
	const struct library_function wanted[] = {
		{"PQconnectdbParams", &with->connect_params},
		{"PQstatus", &with->status},
		{"PQerrorMessage", &with->error_message},
		{"PQparameterStatus", &with->parameter_status},
		{"PQexecParams", &with->exec_params},
		{"PQresultStatus", &with->result_status},
		{"PQntuples", &with->ntuples},
		{"PQnfields", &with->nfields},
		{"PQgetisnull", &with->getisnull},
		{"PQgetvalue", &with->getvalue},
		{"PQgetlength", &with->getlength},
		{"PQclear", &with->clear},
		{"PQfinish", &with->finish},
	};

	return library_load(&libpq, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
}

/* Set ERR to the message of the server, whose text is not trusted. Always false. */
static bool explain(const struct connection *connection, struct err *err)
{
	struct buf said;

	buf_init(&said, ERR_TEXT_MAX);
	text_add_name(&said,
		      str_trim(str_of(connection->with.error_message(connection->handle))));
	(void)err_set(err, EIO, "PostgreSQL: %s", said.data);
	buf_fini(&said);
	return false;
}

static bool open_connection(const struct dbms_place *place, struct call *call,
			    void **handle, char version[DBMS_VERSION], struct err *err)
{
	struct connection *connection = memory_alloc(sizeof(*connection));
	char port[16], options[128], patience[16];
	const char *const names[] = {"host",
				     "port",
				     "user",
				     "password",
				     "dbname",
				     "sslmode",
				     "options",
				     "connect_timeout",
				     "client_encoding",
				     "application_name",
				     "passfile",
				     NULL};
	const char *const values[] = {place->host,     port,        place->user,
				      place->password, place->name, place->sslmode,
				      options,         patience,    "UTF8",
				      "glovebox",      "",          NULL};
	const char *said;

	(void)call;
	(void)snprintf(port, sizeof(port), "%u", place->port);
	(void)snprintf(patience, sizeof(patience), "%d", DBMS_CONNECT_S);
	(void)snprintf(options, sizeof(options),
		       "-c default_transaction_read_only=on -c statement_timeout=%d",
		       DBMS_ASK_S * 1000);
	if (!load(&connection->with, err)) {
		free(connection);
		return false;
	}
	connection->handle = connection->with.connect_params(names, values, 0);
	if (!connection->handle ||
	    connection->with.status(connection->handle) != CONNECTION_OK) {
		(void)explain(connection, err);
		connection->with.finish(connection->handle);
		free(connection);
		return false;
	}
	said = connection->with.parameter_status(connection->handle, "server_version");
	(void)snprintf(version, DBMS_VERSION, "PostgreSQL %.*s",
		       said ? (int)strcspn(said, " ") : 0, said ? said : "");
	*handle = connection;
	return true;
}

static bool ask(void *handle, const char *sql, const char *parameter,
		bool (*row)(void *context, const struct str *cells, size_t count),
		void *context, struct err *err)
{
	struct connection *connection = handle;
	const struct functions *with = &connection->with;
	PGresult *result = with->exec_params(connection->handle, sql, parameter ? 1 : 0,
					     NULL, &parameter, NULL, NULL, 0);
	bool ok = result && with->result_status(result) == PGRES_TUPLES_OK;
	bool more = true;

	if (!ok)
		(void)explain(connection, err);
	for (int i = 0; ok && more && i < with->ntuples(result); i++) {
		struct str cells[DBMS_COLUMNS_MAX] = {0};
		int count = with->nfields(result);

		for (int j = 0; j < count && j < DBMS_COLUMNS_MAX; j++) {
			if (!with->getisnull(result, i, j))
				cells[j] =
					(struct str){with->getvalue(result, i, j),
						     (size_t)with->getlength(result, i, j)};
		}
		more = row(context, cells, (size_t)count);
	}
	with->clear(result);
	return ok;
}

static void close_connection(void *handle)
{
	struct connection *connection = handle;

	connection->with.finish(connection->handle);
	free(connection);
}

/* Find the table of a name: in the current schema, or with its schema before the name. */
#define OF_TABLE                                                    \
	"(SELECT t.oid FROM pg_catalog.pg_class t"                  \
	" JOIN pg_catalog.pg_namespace s ON s.oid = t.relnamespace" \
	" WHERE (s.nspname = current_schema() AND t.relname = $1)"  \
	" OR s.nspname || '.' || t.relname = $1"                    \
	" ORDER BY s.nspname <> current_schema() LIMIT 1)"

const struct dbms_client dbms_postgres = {
	.name = "PostgreSQL",
	.schemes = "postgresql postgres",
	.port = 5432,
	.questions =
		{
			[DBMS_TABLES] =
				"SELECT CASE WHEN s.nspname = current_schema() THEN t.relname"
				" ELSE s.nspname || '.' || t.relname END,"
				" CASE t.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table'"
				" WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'"
				" ELSE 'foreign table' END,"
				" CASE WHEN t.reltuples >= 0 AND t.relkind IN ('r', 'm')"
				" THEN t.reltuples::bigint::text END,"
				" pg_catalog.obj_description(t.oid, 'pg_class')"
				" FROM pg_catalog.pg_class t"
				" JOIN pg_catalog.pg_namespace s ON s.oid = t.relnamespace"
				" WHERE t.relkind IN ('r', 'p', 'v', 'm', 'f')"
				" AND s.nspname NOT IN ('pg_catalog', 'information_schema')"
				" AND s.nspname NOT LIKE 'pg\\_t%'"
				" ORDER BY s.nspname <> current_schema(), 1 LIMIT 1001",
			[DBMS_COLUMNS] =
				"SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),"
				" CASE WHEN a.attnotnull THEN 'no' ELSE 'yes' END,"
				" pg_catalog.pg_get_expr(d.adbin, d.adrelid),"
				" concat_ws(', ', (SELECT 'primary key' FROM pg_catalog.pg_index i"
				" WHERE i.indrelid = a.attrelid AND i.indisprimary"
				" AND a.attnum = ANY (i.indkey)),"
				" CASE WHEN a.attidentity <> '' THEN 'identity' END,"
				" CASE WHEN a.attgenerated <> '' THEN 'generated' END),"
				" pg_catalog.col_description(a.attrelid, a.attnum)"
				" FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d"
				" ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
				" WHERE a.attrelid = " OF_TABLE
				" AND a.attnum > 0 AND NOT a.attisdropped"
				" ORDER BY a.attnum LIMIT 1001",
			[DBMS_RULES] =
				"SELECT c.conname, pg_catalog.pg_get_constraintdef(c.oid)"
				" FROM pg_catalog.pg_constraint c WHERE c.conrelid = " OF_TABLE
				" UNION ALL SELECT 'view', pg_catalog.pg_get_viewdef(v.oid)"
				" FROM pg_catalog.pg_class v WHERE v.relkind IN ('v', 'm')"
				" AND v.oid = " OF_TABLE
				" UNION ALL SELECT 'trigger ' || g.tgname,"
				" pg_catalog.pg_get_triggerdef(g.oid) FROM pg_catalog.pg_trigger g"
				" WHERE NOT g.tgisinternal AND g.tgrelid = " OF_TABLE
				" ORDER BY 1 LIMIT 1001",
			[DBMS_INDEXES] =
				"SELECT x.relname, CASE WHEN i.indisprimary THEN 'primary key'"
				" WHEN i.indisunique THEN 'unique' ELSE 'index' END,"
				" pg_catalog.pg_get_indexdef(i.indexrelid)"
				" FROM pg_catalog.pg_index i"
				" JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid"
				" WHERE i.indrelid = " OF_TABLE " ORDER BY 1 LIMIT 1001",
		},
	.open = open_connection,
	.ask = ask,
	.close = close_connection,
};
