/* Tests of plugins/plugin_trust: the record is kept, and a broken one is no permission. */
#include "../base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/folder.h"
#include "plugins/plugin_trust.h"

static void what_is_recorded_is_found(void **state)
{
	struct plugin_trusted one = {"aa", ""}, two = {"bb", "cc"}, found;
	char folder[64] = "/tmp/trust-test-XXXXXX", below[80];
	struct err err = {0};

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(below, sizeof(below), "%s/state", folder);
	assert_true(plugin_trust_find(below, "/p", &found, &err));
	assert_string_equal(found.hash, "");
	assert_true(plugin_trust_record(below, "/p", &one, &err));
	assert_true(plugin_trust_record(below, "https://h/x#v1", &two, &err));
	assert_true(plugin_trust_find(below, "/p", &found, &err));
	assert_string_equal(found.hash, "aa");
	assert_true(plugin_trust_find(below, "https://h/x#v1", &found, &err));
	assert_string_equal(found.commit, "cc");
	folder_remove(folder);
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
	assert_false(plugin_trust_find(folder, "/p", &found, &err));
	assert_non_null(strstr(err.text, "trusted.json"));
	folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(what_is_recorded_is_found),
		cmocka_unit_test(a_broken_record_lets_nothing_in),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
