/* mariadb: servers of MariaDB and MySQL, in a session that may only read. */

#include "base/buf.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "tools/databases/database_schema.h"

#include <errno.h>
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Bytes of a statement with the table's name in it. In MariaDB a name has at most 64
 * characters.
 */
enum { STATEMENT_MAX = 16 << 10, TABLE_MAX = 1024 };

static const struct library libmariadb = {"libmariadb.so.3", "3.0", "libmariadb3",
					  "asking a MariaDB or MySQL server"};

struct functions {
	typeof(mysql_init) *init;
	typeof(mysql_options) *options;
	typeof(mysql_real_connect) *real_connect;
	typeof(mysql_error) *error;
	typeof(mysql_errno) *number;
	typeof(mysql_get_server_info) *get_server_info;
	typeof(mysql_real_escape_string) *real_escape_string;
	typeof(mysql_real_query) *real_query;
	typeof(mysql_use_result) *use_result;
	typeof(mysql_fetch_row) *fetch_row;
	typeof(mysql_fetch_lengths) *fetch_lengths;
	typeof(mysql_num_fields) *num_fields;
	typeof(mysql_free_result) *free_result;
	typeof(mysql_close) *close;
};

struct connection {
	struct functions with;
	MYSQL *handle;
};

static bool load(struct functions *with, struct err *err)
{
	const struct library_function wanted[] = {
		{"mysql_init", &with->init},
		{"mysql_options", &with->options},
		{"mysql_real_connect", &with->real_connect},
		{"mysql_error", &with->error},
		{"mysql_get_server_info", &with->get_server_info},
		{"mysql_real_escape_string", &with->real_escape_string},
		{"mysql_real_query", &with->real_query},
		{"mysql_use_result", &with->use_result},
		{"mysql_fetch_row", &with->fetch_row},
		{"mysql_fetch_lengths", &with->fetch_lengths},
		{"mysql_num_fields", &with->num_fields},
		{"mysql_errno", &with->number},
		{"mysql_free_result", &with->free_result},
		{"mysql_close", &with->close},
	};

	return library_load(&libmariadb, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
}

static bool explain(const struct connection *connection, struct err *err)
{
	struct buf said;

	buf_init(&said, ERR_TEXT_MAX);
	text_add_name(&said, str_trim(str_of(connection->with.error(connection->handle))));
	(void)err_set(err, EIO, "MariaDB: %s", said.data);
	buf_fini(&said);
	return false;
}

static void close_connection(void *handle)
{
	struct connection *connection = handle;

	connection->with.close(connection->handle);
	free(connection);
}

static bool run(struct connection *connection, const char *sql, size_t size, struct err *err)
{
	return connection->with.real_query(connection->handle, sql, size) == 0 ||
	       explain(connection, err);
}

/* The server may ask the client for a local file (LOAD DATA LOCAL): never send one. */
static void set_options(struct connection *connection)
{
	const struct functions *with = &connection->with;
	const unsigned connect_s = DBMS_CONNECT_S, ask_s = DBMS_ASK_S, no = 0;

	(void)with->options(connection->handle, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
	(void)with->options(connection->handle, MYSQL_OPT_READ_TIMEOUT, &ask_s);
	(void)with->options(connection->handle, MYSQL_OPT_WRITE_TIMEOUT, &ask_s);
	(void)with->options(connection->handle, MYSQL_OPT_LOCAL_INFILE, &no);
	(void)with->options(connection->handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
}

static bool open_connection(const struct dbms_place *place, struct call *call,
			    void **handle, char version[DBMS_VERSION], struct err *err)
{
	static const char only_read[] = "SET SESSION TRANSACTION READ ONLY";
	struct connection *connection = memory_alloc(sizeof(*connection));
	const char *said;

	(void)call;
	if (!load(&connection->with, err)) {
		free(connection);
		return false;
	}
	connection->handle = connection->with.init(NULL);
	if (!connection->handle)
		memory_exhausted(0);
	set_options(connection);
	if (!connection->with.real_connect(connection->handle, place->host, place->user,
					   place->password, place->name, place->port,
					   NULL, 0)) {
		(void)explain(connection, err);
		close_connection(connection);
		return false;
	}
	if (!run(connection, only_read, sizeof(only_read) - 1, err)) {
		close_connection(connection);
		return false;
	}
	said = connection->with.get_server_info(connection->handle);
	(void)snprintf(version, DBMS_VERSION, "%s %.*s",
		       said && strstr(said, "MariaDB") ? "MariaDB" : "MySQL",
		       said ? (int)strcspn(said, "-") : 0, said ? said : "");
	*handle = connection;
	return true;
}

/* Fill STATEMENT with SQL, with PARAMETER, escaped and quoted, in place of each "?". */
static bool fill_in(const struct connection *connection, const char *sql,
		    const char *parameter, struct buf *statement, struct err *err)
{
	char escaped[2 * TABLE_MAX + 1];
	size_t size = strlen(parameter);

	if (size > TABLE_MAX)
		return err_set(err, EINVAL, "a table's name has at most %d bytes",
			       TABLE_MAX);
	(void)connection->with.real_escape_string(connection->handle, escaped, parameter,
						  size);
	for (; *sql; sql++) {
		if (*sql == '?')
			(void)buf_addf(statement, "'%s'", escaped);
		else
			(void)buf_addc(statement, *sql);
	}
	return !statement->overflowed ||
	       err_set(err, EINVAL, "a table's name is too long to ask for");
}

static bool ask(void *handle, const char *sql, const char *parameter,
		bool (*row)(void *context, const struct str *cells, size_t count),
		void *context, struct err *err)
{
	struct connection *connection = handle;
	const struct functions *with = &connection->with;
	struct buf statement;
	MYSQL_RES *result = NULL;
	char **fields = NULL;
	bool more = true, ok;

	buf_init(&statement, STATEMENT_MAX);
	ok = fill_in(connection, sql, parameter ? parameter : "", &statement, err) &&
	     run(connection, statement.data, statement.size, err);
	buf_fini(&statement);
	if (!ok)
		return false;
	result = with->use_result(connection->handle);
	if (!result)
		return explain(connection, err);
	while (more && (fields = with->fetch_row(result))) {
		struct str cells[DBMS_COLUMNS_MAX] = {0};
		const unsigned long *lengths = with->fetch_lengths(result);
		unsigned count = with->num_fields(result);

		for (unsigned i = 0; i < count && i < DBMS_COLUMNS_MAX; i++)
			cells[i] = (struct str){fields[i], lengths[i]};
		more = row(context, cells, count);
	}
	ok = fields || with->number(connection->handle) == 0 || explain(connection, err);
	with->free_result(result);
	return ok;
}

#define SCHEMA \
	"IF(TABLE_SCHEMA = DATABASE(), TABLE_NAME, CONCAT(TABLE_SCHEMA, '.', TABLE_NAME))"
#define IN_TABLE                                                            \
	" WHERE TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema'," \
	" 'information_schema') AND " SCHEMA " = ? "

const struct dbms_client dbms_mariadb = {
	.name = "MariaDB",
	.schemes = "mariadb mysql",
	.port = 3306,
	.questions =
		{
			[DBMS_TABLES] =
				"SELECT " SCHEMA ", IF(TABLE_TYPE = 'BASE TABLE', 'table',"
				" LOWER(TABLE_TYPE)), TABLE_ROWS,"
				" IF(TABLE_TYPE = 'VIEW', NULL, NULLIF(TABLE_COMMENT, ''))"
				" FROM information_schema.TABLES"
				" WHERE TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema',"
				" 'information_schema')"
				" ORDER BY TABLE_SCHEMA <> COALESCE(DATABASE(), ''), 1 LIMIT 1001",
			[DBMS_COLUMNS] =
				"SELECT COLUMN_NAME, COLUMN_TYPE, LOWER(IS_NULLABLE), COLUMN_DEFAULT,"
				" NULLIF(CONCAT_WS(', ', CASE COLUMN_KEY WHEN 'PRI' THEN 'primary key'"
				" WHEN 'UNI' THEN 'unique' WHEN 'MUL' THEN 'index' END,"
				" NULLIF(EXTRA, '')), ''), NULLIF(COLUMN_COMMENT, '')"
				" FROM information_schema.COLUMNS" IN_TABLE
				"ORDER BY ORDINAL_POSITION LIMIT 1001",
			[DBMS_RULES] =
				"SELECT CONSTRAINT_NAME, CONCAT('foreign key (',"
				" GROUP_CONCAT(COLUMN_NAME ORDER BY ORDINAL_POSITION SEPARATOR ', '),"
				" ') -> ', REFERENCED_TABLE_NAME, '(', GROUP_CONCAT("
				"REFERENCED_COLUMN_NAME ORDER BY ORDINAL_POSITION SEPARATOR ', '), ')')"
				" FROM information_schema.KEY_COLUMN_USAGE" IN_TABLE
				"AND REFERENCED_TABLE_NAME IS NOT NULL"
				" GROUP BY CONSTRAINT_NAME, REFERENCED_TABLE_NAME"
				" UNION ALL SELECT 'view', VIEW_DEFINITION"
				" FROM information_schema.VIEWS" IN_TABLE
				"ORDER BY 1 LIMIT 1001",
			[DBMS_INDEXES] =
				"SELECT INDEX_NAME, IF(INDEX_NAME = 'PRIMARY', 'primary key',"
				" IF(NON_UNIQUE = 0, 'unique', 'index')),"
				" GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX SEPARATOR ', ')"
				" FROM information_schema.STATISTICS" IN_TABLE
				"GROUP BY INDEX_NAME, NON_UNIQUE ORDER BY 1 LIMIT 1001",
		},
	.open = open_connection,
	.ask = ask,
	.close = close_connection,
};
