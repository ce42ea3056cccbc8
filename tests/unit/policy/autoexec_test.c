/* Tests of policy/autoexec: the table of names, and what finds a row. */
#include "../base/unit.h"

#include "policy/autoexec.h"

#include <string.h>

/* As the table is searched: by the first part, then by what follows. */
static int compare(const char *one, const char *other)
{
	for (;; one++, other++) {
		const int a = *one == '/' ? 1 : (unsigned char)*one;
		const int b = *other == '/' ? 1 : (unsigned char)*other;

		if (a != b || a == 0)
			return a - b;
	}
}

static void the_table_is_in_order_and_names_nothing_twice(void **state)
{
	(void)state;
	for (const struct autoexec *row = autoexec_names; row[1].name != NULL; row++)
		assert_true(compare(row[0].name, row[1].name) < 0);
}

static void every_row_is_found_by_its_first_part(void **state)
{
	char first[64];

	(void)state;
	for (const struct autoexec *row = autoexec_names; row->name != NULL; row++) {
		const size_t size = strcspn(row->name, "/");
		size_t count;

		assert_true(size < sizeof(first));
		memcpy(first, row->name, size);
		first[size] = '\0';
		const struct autoexec *rows = autoexec_of(first, &count);
		assert_non_null(rows);
		assert_true(row >= rows && row < rows + count);
	}
}

static void a_protected_name_lies_one_folder_deep_at_most(void **state)
{
	(void)state;
	for (const struct autoexec *row = autoexec_names; row->name != NULL; row++) {
		const char *slash = strchr(row->name, '/');

		assert_true(row->care == AUTOEXEC_PROTECTED ||
			    row->care == AUTOEXEC_REPORTED || row->care == AUTOEXEC_READ);
		assert_true(row->care != AUTOEXEC_PROTECTED || slash == NULL ||
			    strchr(slash + 1, '/') == NULL);
		assert_true(row->care != AUTOEXEC_PROTECTED || row->kind != AUTOEXEC_FOLDER);
		assert_true(row->reader != NULL && row->reader[0] != '\0');
	}
}

static void a_name_protects_itself_and_what_lies_below(void **state)
{
	(void)state;
	assert_non_null(autoexec_protects("/w", ".claude/settings.json"));
	assert_non_null(autoexec_protects("/w", ".claude/settings.json/x"));
	assert_non_null(autoexec_protects("/w", ".claude/hooks/a/b"));
	assert_non_null(autoexec_protects("/w", "opencode.json"));
	assert_null(autoexec_protects("/w", ".claude"));
	assert_null(autoexec_protects("/w", ".claude/settings.jsonx"));
	assert_null(autoexec_protects("/w", ".claude/skills/x"));
	assert_null(autoexec_protects("/w", "a/.claude/settings.json"));
	assert_null(autoexec_protects("/w", "Makefile"));
	assert_null(autoexec_protects("/w", "."));
}

static void a_root_may_be_the_folder_of_a_name(void **state)
{
	(void)state;
	assert_non_null(autoexec_protects("/w/.claude", "settings.json"));
	assert_non_null(autoexec_protects("/w/.opencode", "plugin/x.js"));
	assert_null(autoexec_protects("/w/.claude", "skills/x"));
	assert_null(autoexec_protects("/w/claude", "settings.json"));
}

static void a_path_ends_by_a_name_at_a_slash(void **state)
{
	(void)state;
	assert_non_null(autoexec_ends("/w/a/.claude/settings.json"));
	assert_non_null(autoexec_ends("crush.json"));
	assert_null(autoexec_ends("/w/xcrush.json"));
	assert_null(autoexec_ends("/w/Makefile"));
}

static void a_name_that_no_row_has_is_none(void **state)
{
	size_t count = 1;

	(void)state;
	assert_null(autoexec_of("", &count));
	assert_int_equal(count, 0);
	assert_null(autoexec_of(".claud", &count));
	assert_null(autoexec_of("zzz", &count));
	assert_null(autoexec_of("!", &count));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_in_order_and_names_nothing_twice),
		cmocka_unit_test(every_row_is_found_by_its_first_part),
		cmocka_unit_test(a_protected_name_lies_one_folder_deep_at_most),
		cmocka_unit_test(a_name_protects_itself_and_what_lies_below),
		cmocka_unit_test(a_root_may_be_the_folder_of_a_name),
		cmocka_unit_test(a_path_ends_by_a_name_at_a_slash),
		cmocka_unit_test(a_name_that_no_row_has_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
