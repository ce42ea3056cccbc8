/* Tests of store/facts. */
#include "../base/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "folder.h"
#include "store/database.h"
#include "store/facts.h"

static bool add_line(void *context, const struct fact *fact)
{
	struct buf *text = context;

	assert_true(fact->written_ms > 0);
	return buf_addf(text, "%.*s=%.*s by %.*s of %.*s\n", (int)fact->key.size,
			fact->key.data, (int)fact->value.size, fact->value.data,
			(int)fact->agent.size, fact->agent.data, (int)fact->session.size,
			fact->session.data);
}

static void assert_found(struct facts *facts, const char *workspace, const char *prefix,
			 bool exact, const char *wanted)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	assert_true(facts_find(facts, workspace, str_of(prefix), exact, add_line, &text,
			       NULL));
	assert_string_equal(text.data, wanted);
	buf_fini(&text);
}

static bool set(struct facts *facts, const char *key, const char *value,
		int64_t expires_ms, struct err *err)
{
	const struct fact fact = {.key = str_of(key),
				  .value = str_of(value),
				  .agent = STR("coder"),
				  .session = STR("s1"),
				  .expires_ms = expires_ms};

	return facts_set(facts, "/work", &fact, err);
}

static void facts_outlive_who_wrote_them(void **state)
{
	struct folder folder;
	struct facts *facts;
	bool removed;

	(void)state;
	folder_begin(&folder, "a/facts.db");
	assert_true(facts_open(folder.file, &facts, NULL));
	assert_true(set(facts, "build/command", "make -j2", 0, NULL));
	assert_true(set(facts, "build/tests", "make check", 0, NULL));
	assert_true(set(facts, "build/command", "ninja", 0, NULL));
	facts_close(facts);
	facts_close(NULL);
	assert_true(facts_open(folder.file, &facts, NULL));
	assert_found(facts, "/work", "", false,
		     "build/command=ninja by coder of s1\n"
		     "build/tests=make check by coder of s1\n");
	assert_found(facts, "/work", "build/t", false,
		     "build/tests=make check by coder of s1\n");
	assert_found(facts, "/work", "build/t", true, "");
	assert_found(facts, "/other", "", false, "");
	assert_true(facts_remove(facts, "/other", STR("build/tests"), &removed, NULL));
	assert_false(removed);
	assert_true(facts_remove(facts, "/work", STR("build/tests"), &removed, NULL));
	assert_true(removed);
	assert_found(facts, "/work", "", false, "build/command=ninja by coder of s1\n");
	facts_close(facts);
	folder_end(&folder);
}

static void what_has_run_out_is_not_there(void **state)
{
	struct folder folder;
	struct facts *facts;

	(void)state;
	folder_begin(&folder, "facts.db");
	assert_true(facts_open(folder.file, &facts, NULL));
	assert_true(set(facts, "old", "x", clock_wall_ms() - 1, NULL));
	assert_true(set(facts, "new", "y", clock_wall_ms() + 60000, NULL));
	assert_found(facts, "/work", "", false, "new=y by coder of s1\n");
	assert_found(facts, "/work", "old", true, "");
	facts_close(facts);
	folder_end(&folder);
}

static void keys_are_names(void **state)
{
	static const char *const none[] = {"", "a b", "a\n", "ä", "%", "a*"};
	char longest[FACTS_KEY_MAX + 2];
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(facts_check_key(str_of(none[i]), &err));
	assert_non_null(strstr(err.text, "build/command"));
	memset(longest, 'k', sizeof(longest));
	assert_true(facts_check_key((struct str){longest, FACTS_KEY_MAX}, NULL));
	assert_false(facts_check_key((struct str){longest, FACTS_KEY_MAX + 1}, NULL));
	assert_false(facts_check_key((struct str){"a\0b", 3}, NULL));
}

static void there_are_bounds(void **state)
{
	auto_free char *value = memory_alloc(FACTS_VALUE_MAX + 2);
	struct folder folder;
	struct facts *facts;
	struct err err;
	char key[32];

	(void)state;
	folder_begin(&folder, "facts.db");
	assert_true(facts_open(folder.file, &facts, NULL));
	memset(value, 'v', FACTS_VALUE_MAX + 1);
	assert_false(set(facts, "large", value, 0, &err));
	assert_int_equal(err.code, E2BIG);
	value[FACTS_VALUE_MAX] = '\0';
	for (int i = 0; i < FACTS_BYTES_MAX / FACTS_VALUE_MAX - 1; i++) {
		(void)snprintf(key, sizeof(key), "large/%d", i);
		assert_true(set(facts, key, value, 0, NULL));
	}
	assert_true(set(facts, "large/0", value, 0, NULL));
	value[FACTS_VALUE_MAX - 1000] = '\0'; /* the keys count, too */
	assert_true(set(facts, "large/x", value, 0, NULL));
	assert_false(set(facts, "large/y", value, 0, &err));
	assert_int_equal(err.code, ENOSPC);
	for (int i = 0; i < FACTS_COUNT_MAX; i++) {
		(void)snprintf(key, sizeof(key), "small/%d", i);
		if (!set(facts, key, "", 0, &err))
			break;
	}
	assert_int_equal(err.code, ENOSPC);
	facts_close(facts);
	folder_end(&folder);
}

static _Noreturn void write_some(const char *path, int writer)
{
	struct facts *facts = NULL;
	struct err err = {0};
	char key[32];
	bool ok = facts_open(path, &facts, &err);

	for (int i = 0; ok && i < 20; i++) {
		(void)snprintf(key, sizeof(key), "w%d/%02d", writer, i);
		ok = set(facts, key, "x", 0, &err) && set(facts, "shared", key, 0, &err);
	}
	facts_close(facts);
	if (!ok)
		(void)fprintf(stderr, "%s\n", err.text);
	_exit(ok ? 0 : 1);
}

static bool count_one(void *context, const struct fact *fact)
{
	(void)fact;
	++*(int *)context;
	return true;
}

static void several_processes_write_at_once(void **state)
{
	enum { WRITERS = 4 };
	struct folder folder;
	struct facts *facts;
	int count = 0;

	(void)state;
	folder_begin(&folder, "facts.db");
	for (int i = 0; i < WRITERS; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			write_some(folder.file, i);
	}
	for (int i = 0; i < WRITERS; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_true(facts_open(folder.file, &facts, NULL));
	assert_true(facts_find(facts, "/work", STR(""), false, count_one, &count, NULL));
	assert_int_equal(count, WRITERS * 20 + 1);
	facts_close(facts);
	folder_end(&folder);
}

static void a_newer_file_is_refused(void **state)
{
	struct folder folder;
	struct database *database;
	struct facts *facts;
	struct err err;

	static const char *const newer[] = {"CREATE TABLE a (a TEXT) STRICT;",
					    "CREATE TABLE b (b TEXT) STRICT;", NULL};

	(void)state;
	folder_begin(&folder, "facts.db");
	assert_true(database_open(folder.file, newer, &database, NULL));
	database_close(database);
	assert_false(facts_open(folder.file, &facts, &err));
	assert_non_null(strstr(err.text, "newer Glovebox"));
	folder_end(&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_outlive_who_wrote_them),
		cmocka_unit_test(what_has_run_out_is_not_there),
		cmocka_unit_test(keys_are_names),
		cmocka_unit_test(there_are_bounds),
		cmocka_unit_test(several_processes_write_at_once),
		cmocka_unit_test(a_newer_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
