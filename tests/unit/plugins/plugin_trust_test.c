/* Tests of plugins/source: the record is kept, and a broken one is no permission. */
#include "../base/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "plugins/source.h"

static void what_is_recorded_is_found(void **state)
{
	struct plugin_trusted one = {"aa", ""}, two = {"bb", "cc"}, found;
	char folder[64] = "/tmp/trust-test-XXXXXX", below[80];
	struct err err = {0};

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(below, sizeof(below), "%s/state", folder);
	assert_true(source_trust_find(below, "/p", &found, &err));
	assert_string_equal(found.hash, "");
	assert_true(source_trust_record(below, below, "/p", &one, &err));
	assert_true(source_trust_record(below, NULL, "https://h/x#v1", &two, &err));
	assert_true(source_trust_find(below, "/p", &found, &err));
	assert_string_equal(found.hash, "aa");
	assert_true(source_trust_find(below, "https://h/x#v1", &found, &err));
	assert_string_equal(found.commit, "cc");
	fd_folder_remove(folder);
}

static void a_broken_record_lets_nothing_in(void **state)
{
	char folder[64] = "/tmp/trust-test-XXXXXX", path[96];
	struct plugin_trusted found;
	struct err err = {0};
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/trusted.json", folder);
	file = fopen(path, "w");
	(void)fputs("{\"/p\": {\"hash\"", file);
	(void)fclose(file);
	assert_false(source_trust_find(folder, "/p", &found, &err));
	assert_non_null(strstr(err.text, "trusted.json"));
	fd_folder_remove(folder);
}

static void only_old_copies_that_nobody_names_are_removed(void **state)
{
	static const char named[] =
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	static const char *const names[] = {
		named, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
		"new-abcdef", "somebody-elses", NULL};
	struct plugin_trusted one = {0};
	char folder[64] = "/tmp/trust-test-XXXXXX", path[192];
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct err err = {0};

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(one.hash, sizeof(one.hash), "%s", named);
	assert_true(source_trust_record(folder, folder, "/p", &one, &err));
	for (size_t i = 0; names[i]; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	assert_true(source_trust_record(folder, folder, "/p", &one, &err));
	for (size_t i = 0; names[i]; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	}
	assert_true(source_trust_record(folder, folder, "/p", &one, &err));
	for (size_t i = 0; names[i]; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		assert_int_equal(access(path, F_OK) == 0, i == 0 || i == 3);
	}
	fd_folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(what_is_recorded_is_found),
		cmocka_unit_test(a_broken_record_lets_nothing_in),
		cmocka_unit_test(only_old_copies_that_nobody_names_are_removed),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
