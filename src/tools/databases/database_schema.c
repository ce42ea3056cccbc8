/*
 * database_schema: the tables of a database, their columns, keys and indexes. It only
 * reads, and only the schema. A file is opened like any file of the workspace. A server
 * can be reached where the policy's `network` has a tcp:// entry for it.
 */

#include "tools/databases/database_schema.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "files/files.h"
#include "tool/call.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Asks the questions by any client, and gives the answers one form. */

/* Each row is NULL-ended. */
static const char *const dbms_headings[DBMS_QUESTIONS][DBMS_COLUMNS_MAX + 1] = {
	[DBMS_TABLES] = {"name", "kind", "rows", "comment"},
	[DBMS_COLUMNS] = {"name", "type", "null", "default", "key", "comment"},
	[DBMS_RULES] = {"name", "definition"},
	[DBMS_INDEXES] = {"name", "kind", "definition"},
};

struct dbms {
	const struct dbms_client *client;
	void *handle;
	char version[DBMS_VERSION];
};

struct gathering {
	struct value *rows;
	bool more;
};

/*
 * Connect. When the client can be interrupted, CALL ends a question that takes too long
 * (call_stopped); else its deadlines do. ERR says what to do; no sentence has a password.
 */
static bool dbms_open(const struct dbms_place *place, struct call *call,
		      struct dbms **dbms, struct err *err)
{
	struct dbms *made = memory_alloc(sizeof(*made));

	made->client = place->client;
	if (!made->client->open(place, call, &made->handle, made->version, err)) {
		free(made);
		return false;
	}
	*dbms = made;
	return true;
}

static void dbms_close(struct dbms *dbms)
{
	if (!dbms)
		return;
	dbms->client->close(dbms->handle);
	free(dbms);
}

/* "PostgreSQL 15.4" */
static const char *dbms_version(const struct dbms *dbms)
{
	return dbms->version;
}

static bool gather(void *context, const struct str *cells, size_t count)
{
	struct gathering *gathering = context;
	struct value *row;

	if (value_count(gathering->rows) == DBMS_ROWS_MAX) {
		gathering->more = true;
		return false;
	}
	row = value_new_array();
	for (size_t i = 0; i < count && i < DBMS_COLUMNS_MAX; i++) {
		size_t size = cells[i].size <= DBMS_CELL_MAX
				      ? cells[i].size
				      : text_character_border(cells[i], DBMS_CELL_MAX);

		value_append(row, cells[i].data ? value_new_str(str_part(cells[i], 0, size))
						: value_new_null());
	}
	value_append(gathering->rows, row);
	return true;
}

/*
 * The answer: an array of rows, each an array of texts and nulls, at most DBMS_ROWS_MAX.
 * TABLE is a name from the answer to DBMS_TABLES; NULL for DBMS_TABLES itself.
 */
static bool dbms_ask(struct dbms *dbms, enum dbms_question question, const char *table,
		     struct value **rows, bool *more, struct err *err)
{
	struct gathering gathering = {value_new_array(), false};

	if (!dbms->client->ask(dbms->handle, dbms->client->questions[question], table,
			       gather, &gathering, err)) {
		value_free(gathering.rows);
		return false;
	}
	*rows = gathering.rows;
	*more = gathering.more;
	return true;
}

#define TABLE_NAME_MAX 512

enum {
	/* A long cell is a definition, whose first lines are enough. */
	CELL_SHOWN = 300,
	COLUMN_WIDTH_MAX = 40, /* a wider cell shifts only its own line */
	TEXT_SHOWN = 48 << 10, /* some 12,000 tokens */
	SCHEMA_TIMEOUT_S = 30,
};

static const char variable_name[] = "DATABASE_URL";

static const struct row database_schema_params[] = {
	{"action", ROW_CHOICE, true,
	 "list_tables; describe: columns, keys and checks of `table`; indexes: those of `table`",
	 .choices = "list_tables describe indexes"},
	{"table", ROW_TEXT, false, "As list_tables names it", .min = 1,
	 .max = TABLE_NAME_MAX},
	{"dsn", ROW_TEXT, false,
	 "A file of SQLite, postgresql://USER:PASSWORD@HOST:PORT/NAME, mariadb://…, or $VARIABLE "
	 "of the cell; $DATABASE_URL unless told",
	 .aliases = "url database", .min = 1, .max = DBMS_ADDRESS_MAX},
	{0},
};

struct looking {
	struct call *call;
	struct dbms_place place;
	struct dbms *dbms;
	struct tool_result *result;
};

static const char *variable(const struct call *call, struct str name)
{
	for (size_t i = 0; call->environment && call->environment[i]; i++) {
		struct str entry = str_of(call->environment[i]);

		if (str_starts(entry, name) && entry.data[name.size] == '=')
			return entry.data + name.size + 1;
	}
	return NULL;
}

/* Get the address: ADDRESS itself, or the value of the variable that it names. */
static bool find_address(struct looking *looking, struct str *address)
{
	const char *given = call_text(looking->call, "dsn");
	const char *name = given && given[0] == '$' ? given + 1 : variable_name;
	const char *found;

	if (given && given[0] != '$') {
		*address = str_of(given);
		return true;
	}
	found = variable(looking->call, str_of(name));
	if (found && *found) {
		*address = str_of(found);
		return true;
	}
	(void)tool_fail(looking->result,
			"No database is named: give `dsn` (data/app.db, postgresql://…), or let "
			"the person pass %s to the cell by the policy's `env`.",
			given ? given + 1 : variable_name);
	return false;
}

/* Reach the file as any tool would, and find its real name for SQLite. */
static bool reach_file(struct looking *looking)
{
	static const char magic[] = "SQLite format 3";
	char start[sizeof(magic)] = {0};
	struct err err = {0};
	struct file file;
	bool is_one = false;

	file_init(&file);
	if (!files_reach(looking->call->files, looking->place.path, FILES_READ, &file,
			 &err)) {
		(void)shown_fail(looking->call, looking->result, looking->place.path, &err);
	} else {
		ssize_t got = pread(file.fd, start, sizeof(start), 0);

		/* An empty file is an empty database. */
		is_one = got == 0 || (got == (ssize_t)sizeof(start) &&
				      memcmp(start, magic, sizeof(magic)) == 0);
		if (!is_one)
			(void)tool_fail(looking->result, "%s is no database of SQLite.",
					looking->place.path);
		free(looking->place.path);
		looking->place.path = buf_take(&file.path);
	}
	file_fini(&file);
	return is_one;
}

static bool connect_to(struct looking *looking)
{
	struct err err = {0};
	struct str address;

	if (!find_address(looking, &address))
		return false;
	if (!dbms_place_parse(address, &looking->place, &err)) {
		(void)tool_fail(looking->result, "dsn: %s.", err.text);
		return false;
	}
	if (looking->place.path && !reach_file(looking))
		return false;
	if (dbms_open(&looking->place, looking->call, &looking->dbms, &err))
		return true;
	(void)tool_fail(looking->result, "%s.", err.text);
	if (looking->place.host)
		(void)buf_addf(&looking->result->text,
			       " A server is reached where the policy's `network` has "
			       "\"tcp://%s:%u\".",
			       looking->place.host, looking->place.port);
	return false;
}

static void add_cell(struct buf *out, const struct value *cell)
{
	struct str text = value_str(cell);
	size_t fits = text.size <= CELL_SHOWN ? text.size
					      : text_character_border(text, CELL_SHOWN);

	text_add_name(out, str_part(text, 0, fits));
	if (fits < text.size)
		(void)buf_adds(out, " […]");
}

/* Replace the line ends in a cell by blanks. */
static struct value *flat(const struct value *cell)
{
	auto_free char *copy = NULL;
	size_t size = 0;
	struct str text = value_str(cell);

	if (value_kind(cell) != VALUE_STRING)
		return value_new_null();
	copy = memory_alloc(text.size + 1);
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];

		if (c == '\n' || c == '\r' || c == '\t')
			c = ' ';
		if (c == ' ' && size > 0 && copy[size - 1] == ' ')
			continue;
		copy[size++] = c;
	}
	return value_new_str((struct str){copy, size});
}

static void add_table(struct looking *looking, enum dbms_question question,
		      const struct value *rows, bool more)
{
	const char *const *headings = dbms_headings[question];
	struct buf *text = &looking->result->text;
	size_t widths[DBMS_COLUMNS_MAX] = {0}, columns = 0, shown = 0;

	for (; headings[columns]; columns++) {
		widths[columns] = strlen(headings[columns]);
		for (size_t i = 0; i < value_count(rows); i++) {
			struct buf cell;

			buf_init(&cell, 4 * DBMS_CELL_MAX);
			add_cell(&cell, value_item(value_item(rows, i), columns));
			if (cell.size > widths[columns] && cell.size <= COLUMN_WIDTH_MAX)
				widths[columns] = cell.size;
			buf_fini(&cell);
		}
	}
	for (size_t i = 0; i <= value_count(rows) && text->size < TEXT_SHOWN; i++) {
		for (size_t j = 0; j < columns; j++) {
			size_t before = text->size;

			if (i == 0)
				(void)buf_adds(text, headings[j]);
			else
				add_cell(text, value_item(value_item(rows, i - 1), j));
			while (j + 1 < columns && text->size - before < widths[j])
				(void)buf_addc(text, ' ');
			(void)buf_adds(text, j + 1 < columns ? "  " : "");
		}
		while (text->size > 0 && text->data[text->size - 1] == ' ')
			buf_truncate(text, text->size - 1);
		(void)buf_addc(text, '\n');
		shown = i;
	}
	if (more || shown < value_count(rows))
		(void)buf_addf(text, "[… %s%zu more rows …]\n", more ? "at least " : "",
			       value_count(rows) - shown + more);
}

static bool answer(struct looking *looking, enum dbms_question question,
		   const char *table, struct value **flat_rows)
{
	struct err err = {0};
	auto_value struct value *rows = NULL;
	struct value *kept = value_new_array();
	bool more = false;

	*flat_rows = kept;
	if (!dbms_ask(looking->dbms, question, table, &rows, &more, &err)) {
		if (call_stopped(looking->call))
			(void)call_stop_result(looking->call, looking->result);
		else
			(void)tool_fail(looking->result, "%s.", err.text);
		return false;
	}
	for (size_t i = 0; i < value_count(rows); i++) {
		struct value *row = value_new_array();

		for (size_t j = 0; j < value_count(value_item(rows, i)); j++)
			value_append(row, flat(value_item(value_item(rows, i), j)));
		value_append(kept, row);
	}
	if (value_count(kept) > 0)
		add_table(looking, question, kept, more);
	return true;
}

static enum result_status no_such_table(struct looking *looking, const char *table)
{
	auto_value struct value *rows = NULL;
	auto_free const char **names = NULL;
	const char *nearest;
	bool more;

	buf_clear(&looking->result->text);
	if (!dbms_ask(looking->dbms, DBMS_TABLES, NULL, &rows, &more, NULL))
		rows = value_new_array();
	names = memory_array(value_count(rows) + 1, sizeof(*names));
	for (size_t i = 0; i < value_count(rows); i++) {
		const char *name = value_text(value_item(value_item(rows, i), 0));

		names[i] = name ? name : "";
	}
	nearest = text_nearest(table, names);
	if (nearest)
		return tool_fail(looking->result,
				 "There is no table \"%s\"; is it \"%s\"?", table, nearest);
	return tool_fail(looking->result,
			 "There is no table \"%s\"; list_tables names those that are.",
			 table);
}

static enum result_status look(struct looking *looking)
{
	const char *action = call_text(looking->call, "action");
	const char *table = call_text(looking->call, "table");
	struct value *details = tool_details(looking->result);
	struct buf *text = &looking->result->text;
	struct value *rows = NULL;
	bool ok;

	value_set_text(details, "database", dbms_version(looking->dbms));
	(void)buf_addf(text, "%s%s%s:\n", dbms_version(looking->dbms), table ? ", " : "",
		       table ? table : "");
	if (strcmp(action, "list_tables") == 0) {
		ok = answer(looking, DBMS_TABLES, NULL, &rows);
		if (ok && value_count(rows) == 0)
			(void)buf_adds(text, "no table and no view\n");
		value_set(details, "tables", rows);
	} else if (strcmp(action, "indexes") == 0) {
		ok = answer(looking, DBMS_INDEXES, table, &rows);
		if (ok && value_count(rows) == 0)
			(void)buf_adds(text, "no index\n");
		value_set(details, "indexes", rows);
	} else {
		ok = answer(looking, DBMS_COLUMNS, table, &rows);
		value_set(details, "columns", rows);
		if (ok)
			(void)buf_addc(text, '\n');
		ok = ok && answer(looking, DBMS_RULES, table, &rows);
		value_set(details, "rules", ok ? rows : value_new_array());
	}
	return ok ? tool_done(looking->result) : looking->result->status;
}

/* Does TABLE exist, that is, does it have a column? */
static bool table_exists(struct looking *looking, const char *table)
{
	auto_value struct value *rows = NULL;
	bool more;

	return !dbms_ask(looking->dbms, DBMS_COLUMNS, table, &rows, &more, NULL) ||
	       value_count(rows) > 0;
}

static enum result_status database_schema_execute(struct call *call,
						  struct tool_result *result)
{
	struct looking looking = {.call = call, .result = result};
	const char *table = call_text(call, "table");
	enum result_status status = RESULT_FAILED;

	if (strcmp(call_text(call, "action"), "list_tables") != 0 && !table)
		return tool_fail(result,
				 "Name the `table`; list_tables tells which there are.");
	if (connect_to(&looking)) {
		if (table && !table_exists(&looking, table))
			status = no_such_table(&looking, table);
		else
			status = look(&looking);
		if (looking.place.unused)
			(void)buf_addf(&result->text, "(Not used of the address: %s.)\n",
				       looking.place.unused);
	}
	dbms_close(looking.dbms);
	dbms_place_fini(&looking.place);
	return status;
}

static void database_schema_paths(const struct value *arguments,
				  void (*visit)(void *context, const char *path),
				  void *context)
{
	struct dbms_place place;

	if (dbms_place_parse(value_str(value_member(arguments, "dsn")), &place, NULL)) {
		if (place.path && place.path[0] != '$')
			visit(context, place.path);
		dbms_place_fini(&place);
	}
}

const struct tool database_schema_tool = {
	.name = "database_schema",
	.description = "Show the tables of a database, their columns, keys and indexes.",
	.example = "{\"action\": \"describe\", \"table\": \"orders\", \"dsn\": \"data/app.db\"}",
	.params = database_schema_params,
	.effects = EFFECT_READS | EFFECT_RUNS,
	.timeout_s = SCHEMA_TIMEOUT_S,
	.when_named = true,
	.visit_paths = database_schema_paths,
	.execute = database_schema_execute,
};

/* Parses the address of a database. */

/* The longest host name (RFC 1035), and more than any scheme has. */
enum { HOST_MAX = 253, SCHEME_SHOWN = 20 };

static const struct dbms_client *const clients[] = {&dbms_sqlite, &dbms_postgres,
						    &dbms_mariadb};

static const struct dbms_client *client_of(struct str scheme)
{
	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
		if (str_among(clients[i]->schemes, scheme))
			return clients[i];
	}
	return NULL;
}

/*
 * Take the text before the first of MARKS off *REST, with the mark; all of *REST when
 * there is no mark.
 */
static struct str take_until(struct str *rest, const char *marks, char *mark)
{
	size_t size = 0;
	struct str taken;

	while (size < rest->size && !strchr(marks, rest->data[size]))
		size++;
	taken = str_part(*rest, 0, size);
	*mark = size < rest->size ? rest->data[size] : '\0';
	*rest = str_part(*rest, size + 1, rest->size);
	return taken;
}

/*
 * Decode the percent-encoded part WHAT of an address (RFC 3986). NULL for an empty part.
 */
static bool decode(struct str text, const char *what, char **decoded, struct err *err)
{
	struct buf out;
	bool sound = true;

	if (text.size == 0)
		return true;
	buf_init(&out, DBMS_ADDRESS_MAX);
	while (text.size > 0 && sound) {
		char c;

		sound = text_percent_take(&text, &c) && c != '\0' && buf_addc(&out, c);
	}
	if (!sound) {
		buf_fini(&out);
		return err_set(err, EINVAL,
			       "the %s in the address holds a %% without two digits of a byte "
			       "behind it; a %% itself is written %%25",
			       what);
	}
	*decoded = buf_take(&out);
	return true;
}

static bool host_is_sound(struct str host)
{
	if (host.size == 0 || host.size > HOST_MAX)
		return false;
	for (size_t i = 0; i < host.size; i++) {
		char c = host.data[i];

		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:",
			    c) ||
		    c == '\0')
			return false;
	}
	return true;
}

/* HOST, HOST:PORT or [ADDRESS]:PORT. */
static bool parse_host(struct str text, struct dbms_place *place, struct err *err)
{
	struct str host = text, port = {0};
	uint64_t number = place->client->port;

	if (str_starts(text, STR("["))) {
		size_t end = str_find(text, STR("]"), 0);

		if (end == (size_t)-1)
			return err_set(err, EINVAL, "the host's \"[\" has no \"]\"");
		host = str_part(text, 1, end - 1);
		port = str_part(text, end + 1, text.size);
	} else if (str_find(text, STR(":"), 0) != (size_t)-1) {
		host = str_part(text, 0, str_find(text, STR(":"), 0));
		port = str_part(text, host.size, text.size);
	}
	if (!host_is_sound(host))
		return err_set(err, EINVAL,
			       "the address names no host: %s://USER:PASSWORD@HOST:PORT/DATABASE",
			       strcmp(place->client->name, "PostgreSQL") == 0 ? "postgresql"
									      : "mariadb");
	if (port.size > 0) {
		auto_free char *digits = memory_copy_str(str_part(port, 1, port.size));

		if (port.data[0] != ':' ||
		    !text_parse_count(digits, UINT16_MAX, &number, NULL) || number == 0)
			return err_set(err, EINVAL, "the port is a number from 1 to 65535");
	}
	place->host = memory_copy_str(host);
	place->port = (uint16_t)number;
	return true;
}

static bool parse_options(struct str rest, struct dbms_place *place, struct err *err)
{
	struct buf unused;
	bool ok = true;
	char mark;

	buf_init(&unused, DBMS_ADDRESS_MAX);
	while (ok && rest.size > 0) {
		struct str value = take_until(&rest, "&", &mark);
		struct str name = take_until(&value, "=", &mark);

		if (str_is(name, "sslmode") && !place->sslmode) {
			ok = decode(value, "sslmode", &place->sslmode, err);
		} else if (name.size > 0) {
			if (unused.size > 0)
				(void)buf_adds(&unused, ", ");
			text_add_name(&unused, name);
		}
	}
	if (unused.size > 0)
		place->unused = buf_take(&unused);
	buf_fini(&unused);
	return ok;
}

/* Read REST, the part of a server's address behind SCHEME://, into PLACE. */
static bool parse_server(struct str rest, struct dbms_place *place, struct err *err)
{
	size_t at = (size_t)-1;
	struct str authority, path;
	char mark, colon;

	authority = take_until(&rest, "/?", &mark);
	path = mark == '/' ? take_until(&rest, "?", &mark) : (struct str){0};
	for (size_t i = 0; i < authority.size; i++) {
		if (authority.data[i] == '@')
			at = i;
	}
	if (at != (size_t)-1) {
		struct str password = str_part(authority, 0, at);
		struct str user = take_until(&password, ":", &colon);

		authority = str_part(authority, at + 1, authority.size);
		if (!decode(user, "user", &place->user, err) ||
		    !decode(password, "password", &place->password, err))
			return false;
	}
	return parse_host(authority, place, err) &&
	       decode(path, "database", &place->name, err) &&
	       (mark != '?' || parse_options(rest, place, err));
}

static bool parse_file(struct str path, struct dbms_place *place, struct err *err)
{
	if (str_starts(path, STR("//")))
		return err_set(
			err, EINVAL,
			"a file is named by its path: sqlite:data/app.db, or data/app.db");
	if (path.size == 0)
		return err_set(err, EINVAL, "the address names no file");
	place->client = &dbms_sqlite;
	place->path = memory_copy_str(path);
	return true;
}

static bool parse(struct str address, struct dbms_place *place, struct err *err)
{
	size_t colon = str_find(address, STR(":"), 0);
	struct str scheme = str_part(address, 0, colon);
	struct buf shown;

	if (address.size > DBMS_ADDRESS_MAX)
		return err_set(err, EINVAL, "the address may have %d bytes",
			       DBMS_ADDRESS_MAX);
	if (memchr(address.data, '\0', address.size))
		return err_set(err, EINVAL, "the address holds a NUL byte");
	/* A path may hold a colon; what has slashes behind it is a URL. */
	if (colon == (size_t)-1)
		return parse_file(address, place, err);
	place->client = client_of(scheme);
	if (place->client == &dbms_sqlite)
		return parse_file(str_part(address, colon + 1, address.size), place, err);
	if (!str_starts(str_part(address, colon, 3), STR("://")))
		return parse_file(address, place, err);
	if (place->client)
		return parse_server(str_part(address, colon + 3, address.size), place, err);
	buf_init(&shown, ERR_TEXT_MAX);
	text_add_name(&shown, str_part(scheme, 0, SCHEME_SHOWN));
	(void)err_set(err, EINVAL,
		      "%s:// is no kind of database that is known here: sqlite:PATH, "
		      "postgresql://…, mariadb://…",
		      shown.data);
	buf_fini(&shown);
	return false;
}

bool dbms_place_parse(struct str address, struct dbms_place *place, struct err *err)
{
	*place = (struct dbms_place){0};
	if (parse(address, place, err))
		return true;
	dbms_place_fini(place);
	return false;
}

void dbms_place_fini(struct dbms_place *place)
{
	if (place->password)
		explicit_bzero(place->password, strlen(place->password));
	free(place->path);
	free(place->host);
	free(place->user);
	free(place->password);
	free(place->name);
	free(place->sslmode);
	free(place->unused);
	*place = (struct dbms_place){0};
}
