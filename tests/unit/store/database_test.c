/* Tests of store/database. */
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "folder.h"
#include "store/database.h"

static const char *const schema[] = {
	"CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT NOT NULL) "
	"STRICT;",
	NULL,
};
/* What a later program makes of it. */
static const char *const more_schema[] = {
	"CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT NOT NULL) "
	"STRICT;",
	"CREATE TABLE meaning (word INTEGER NOT NULL, text TEXT NOT NULL) STRICT;"
	"INSERT INTO meaning SELECT id, 'of ' || text FROM word;",
	NULL,
};

static void put(struct database *database, struct str text)
{
	struct statement *statement;
	int64_t changed = 0;

	assert_true(statement_begin(database, "INSERT INTO word (text) VALUES (?)",
				    &statement, NULL));
	statement_bind_text(statement, 1, text);
	assert_true(statement_run(statement, &changed, NULL));
	assert_int_equal(changed, 1);
}

static void what_is_put_comes_back(void **state)
{
	struct folder folder;
	struct database *database;
	struct statement *statement;
	bool row;

	(void)state;
	folder_begin(&folder, "x.db");
	assert_true(database_open(folder.file, schema, &database, NULL));
	put(database, STR("one"));
	put(database, STR("a\0b"));
	put(database, STR(""));
	put(database, (struct str){NULL, 0});
	database_close(database);

	assert_true(database_open(folder.file, schema, &database, NULL));
	assert_true(statement_begin(database,
				    "SELECT id, text FROM word WHERE id > ? ORDER BY id",
				    &statement, NULL));
	statement_bind_integer(statement, 1, 0);
	assert_true(statement_step(statement, &row, NULL) && row);
	assert_int_equal(statement_integer(statement, 0), 1);
	assert_true(str_is(statement_text(statement, 1), "one"));
	assert_true(statement_step(statement, &row, NULL) && row);
	assert_true(str_equal(statement_text(statement, 1), STR("a\0b")));
	assert_true(statement_step(statement, &row, NULL) && row);
	assert_true(statement_step(statement, &row, NULL) && row);
	assert_int_equal(statement_text(statement, 1).size, 0);
	assert_true(statement_step(statement, &row, NULL));
	assert_false(row);
	statement_end(statement);
	database_close(database);
	database_close(NULL);
	statement_end(NULL);
	folder_end(&folder);
}

static void one_statement_can_be_begun_twice_at_once(void **state)
{
	static const char sql[] = "SELECT text FROM word ORDER BY id";
	struct folder folder;
	struct database *database;
	struct statement *outer, *inner;
	bool row;

	(void)state;
	folder_begin(&folder, "x.db");
	assert_true(database_open(folder.file, schema, &database, NULL));
	put(database, STR("one"));
	put(database, STR("two"));
	assert_true(statement_begin(database, sql, &outer, NULL));
	assert_true(statement_step(outer, &row, NULL) && row);
	assert_true(statement_begin(database, sql, &inner, NULL));
	assert_true(statement_step(inner, &row, NULL) && row);
	assert_true(str_is(statement_text(inner, 0), "one"));
	statement_end(inner);
	assert_true(statement_step(outer, &row, NULL) && row);
	assert_true(str_is(statement_text(outer, 0), "two"));
	statement_end(outer);
	database_close(database);
	folder_end(&folder);
}

static void more_statements_than_are_kept_work_too(void **state)
{
	struct folder folder;
	struct database *database;
	struct statement *statement;
	static char sql[40][64];
	bool row;

	(void)state;
	folder_begin(&folder, "x.db");
	assert_true(database_open(folder.file, schema, &database, NULL));
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 40; i++) {
			(void)snprintf(sql[i], sizeof(sql[i]), "SELECT %d", i);
			assert_true(statement_begin(database, sql[i], &statement, NULL));
			assert_true(statement_step(statement, &row, NULL) && row);
			assert_int_equal(statement_integer(statement, 0), i);
			statement_end(statement);
		}
	}
	database_close(database);
	folder_end(&folder);
}

static void mistakes_in_sql_and_bindings_are_told(void **state)
{
	struct folder folder;
	struct database *database;
	struct statement *statement;
	struct err err = {0};
	bool row;

	(void)state;
	folder_begin(&folder, "x.db");
	assert_true(database_open(folder.file, schema, &database, NULL));
	assert_false(statement_begin(database, "SELEC 1", &statement, &err));
	assert_non_null(strstr(err.text, "x.db"));
	assert_true(statement_begin(database, "SELECT ?", &statement, NULL));
	statement_bind_integer(statement, 2, 1);
	statement_bind_integer(statement, 1, 1);
	assert_false(statement_step(statement, &row, &err));
	statement_end(statement);
	assert_false(database_run(database, "INSERT INTO word VALUES (1, NULL)", &err));
	assert_true(database_run(database, "INSERT INTO word VALUES (1, 'x')", NULL));
	database_close(database);
	folder_end(&folder);
}

static void the_file_is_the_owner_s_alone(void **state)
{
	struct folder folder;
	struct database *database;
	struct stat st;
	char wal[sizeof(folder.file) + 8];
	mode_t old = umask(0);

	(void)state;
	folder_begin(&folder, "x.db");
	assert_true(database_open(folder.file, schema, &database, NULL));
	put(database, STR("secret"));
	assert_int_equal(stat(folder.file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	(void)snprintf(wal, sizeof(wal), "%s-wal", folder.file);
	assert_int_equal(stat(wal, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	database_close(database);
	(void)umask(old);
	folder_end(&folder);
}

/* How it was set while the write was under way, as the write itself wrote it down. */
static int64_t synchronous_of_a_write(struct database *database)
{
	struct statement *statement;
	int64_t found;
	bool row;

	assert_true(statement_begin(database,
				    "INSERT INTO word (text) SELECT synchronous "
				    "FROM pragma_synchronous",
				    &statement, NULL));
	assert_true(statement_run(statement, NULL, NULL));
	assert_true(statement_begin(database,
				    "SELECT CAST(text AS INTEGER) FROM word "
				    "ORDER BY id DESC LIMIT 1",
				    &statement, NULL));
	assert_true(statement_step(statement, &row, NULL) && row);
	found = statement_integer(statement, 0);
	statement_end(statement);
	return found;
}

static void no_write_goes_without_a_sync(void **state)
{
	enum { NORMAL = 1 };
	struct folder folder;
	struct database *database, *other;

	(void)state;
	folder_begin(&folder, "x.db");
	assert_true(database_open(folder.file, schema, &database, NULL));
	database_close(database);
	/* The first one of a log that is empty, and the first one of who comes second. */
	assert_true(database_open(folder.file, schema, &database, NULL));
	assert_true(database_open(folder.file, schema, &other, NULL));
	assert_int_equal(synchronous_of_a_write(database), NORMAL);
	assert_int_equal(synchronous_of_a_write(other), NORMAL);
	database_close(other);
	database_close(database);

	assert_true(database_open(folder.file, schema, &database, NULL));
	assert_true(database_run(database, "BEGIN IMMEDIATE", NULL));
	assert_int_equal(synchronous_of_a_write(database), NORMAL);
	assert_true(database_end(database, true, NULL));
	database_close(database);
	folder_end(&folder);
}

static void write_file(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && fd_write_all(fd, text, strlen(text), NULL));
}

static void a_damaged_file_is_refused_and_stays(void **state)
{
	struct folder folder;
	struct database *database = NULL;
	struct err err = {0};
	struct buf after;

	(void)state;
	folder_begin(&folder, "x.db");
	write_file(folder.file,
		   "this is no database, it is a sentence that goes on and on ...");
	assert_false(database_open(folder.file, schema, &database, &err));
	assert_int_equal(err.code, EUCLEAN);
	assert_non_null(strstr(err.text, "damaged, or no database"));
	assert_null(database);
	buf_init(&after, 1000);
	assert_true(fd_read_file(folder.file, 1000, &after, NULL));
	assert_true(str_starts(buf_str(&after), STR("this is no database")));
	buf_fini(&after);
	folder_end(&folder);
}

static void an_empty_file_is_a_new_database(void **state)
{
	struct folder folder;
	struct database *database;

	(void)state;
	folder_begin(&folder, "x.db");
	write_file(folder.file, "");
	assert_true(database_open(folder.file, schema, &database, NULL));
	put(database, STR("one"));
	database_close(database);
	folder_end(&folder);
}

static int64_t count(struct database *database, const char *sql)
{
	struct statement *statement;
	int64_t number;
	bool row;

	assert_true(statement_begin(database, sql, &statement, NULL));
	assert_true(statement_step(statement, &row, NULL) && row);
	number = statement_integer(statement, 0);
	statement_end(statement);
	return number;
}

static void an_older_file_is_brought_up_to_date(void **state)
{
	struct folder folder;
	struct database *old, *database = NULL;
	struct err err = {0};

	(void)state;
	folder_begin(&folder, "x.db");
	assert_true(database_open(folder.file, schema, &old, NULL));
	put(old, STR("one"));
	assert_true(database_open(folder.file, more_schema, &database, NULL));
	assert_int_equal(count(database, "SELECT count(*) FROM meaning"), 1);
	/* The older program, which has it open, goes on. */
	put(old, STR("two"));
	database_close(old);
	assert_int_equal(count(database, "SELECT count(*) FROM word"), 2);
	database_close(database);
	/* Once only. */
	assert_true(database_open(folder.file, more_schema, &database, NULL));
	assert_int_equal(count(database, "SELECT count(*) FROM meaning"), 1);
	assert_int_equal(count(database, "PRAGMA user_version"), 2);
	database_close(database);
	/* But it cannot open it again, and says why. */
	assert_false(database_open(folder.file, schema, &database, &err));
	assert_int_equal(err.code, ENOTSUP);
	assert_non_null(strstr(err.text, "newer Glovebox (schema 2, this one knows 1)"));
	folder_end(&folder);
}

static void a_step_that_fails_leaves_the_older_file(void **state)
{
	static const char *const broken[] = {
		"CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;",
		"CREATE TABLE meaning (word INTEGER) STRICT; DROP TABLE word;",
		"nonsense",
		NULL,
	};
	struct folder folder;
	struct database *database = NULL;
	struct err err = {0};

	(void)state;
	folder_begin(&folder, "x.db");
	assert_true(database_open(folder.file, schema, &database, NULL));
	put(database, STR("one"));
	database_close(database);
	assert_false(database_open(folder.file, broken, &database, &err));
	assert_non_null(strstr(err.text, "bringing the schema up to date"));
	assert_true(database_open(folder.file, schema, &database, NULL));
	assert_int_equal(count(database, "SELECT count(*) FROM word"), 1);
	database_close(database);
	folder_end(&folder);
}

static void other_programs_are_refused_by_name(void **state)
{
	struct folder folder;
	struct database *database = NULL;
	struct err err = {0};

	(void)state;
	folder_begin(&folder, "x.db");
	assert_true(database_open(folder.file, schema, &database, NULL));
	assert_true(database_run(database, "PRAGMA user_version = 0", NULL));
	database_close(database);
	assert_false(database_open(folder.file, schema, &database, &err));
	assert_int_equal(err.code, EEXIST);
	tree_remove(folder.file);
	assert_true(database_open(folder.file, schema, &database, NULL));
	assert_true(database_run(database, "PRAGMA application_id = 5", NULL));
	database_close(database);
	assert_false(database_open(folder.file, schema, &database, &err));
	assert_int_equal(err.code, EEXIST);
	assert_non_null(strstr(err.text, "another program"));
	folder_end(&folder);
}

static void a_schema_that_fails_leaves_nothing(void **state)
{
	static const char *const broken[] = {"CREATE TABLE a (x INTEGER) STRICT; nonsense",
					     NULL};
	struct folder folder;
	struct database *database = NULL;
	struct err err = {0};

	(void)state;
	folder_begin(&folder, "x.db");
	assert_false(database_open(folder.file, broken, &database, &err));
	assert_true(database_open(folder.file, schema, &database, &err));
	database_close(database);
	folder_end(&folder);
}

static void a_place_that_cannot_be_is_told(void **state)
{
	struct folder folder;
	struct database *database = NULL;
	struct err err = {0};

	(void)state;
	folder_begin(&folder, "missing/x.db");
	assert_false(database_open(folder.file, schema, &database, &err));
	assert_int_equal(err.code, ENOENT);
	assert_non_null(strstr(err.text, "missing/x.db"));
	assert_false(database_open(folder.path, schema, &database, &err));
	assert_non_null(strstr(err.text, folder.path));
	folder_end(&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_comes_back),
		cmocka_unit_test(one_statement_can_be_begun_twice_at_once),
		cmocka_unit_test(more_statements_than_are_kept_work_too),
		cmocka_unit_test(mistakes_in_sql_and_bindings_are_told),
		cmocka_unit_test(the_file_is_the_owner_s_alone),
		cmocka_unit_test(no_write_goes_without_a_sync),
		cmocka_unit_test(a_damaged_file_is_refused_and_stays),
		cmocka_unit_test(an_empty_file_is_a_new_database),
		cmocka_unit_test(an_older_file_is_brought_up_to_date),
		cmocka_unit_test(a_step_that_fails_leaves_the_older_file),
		cmocka_unit_test(other_programs_are_refused_by_name),
		cmocka_unit_test(a_schema_that_fails_leaves_nothing),
		cmocka_unit_test(a_place_that_cannot_be_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
