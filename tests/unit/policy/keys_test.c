/* keys: the manual says what the table says. */
#include "policy/keys.h"

#include "front/embedded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MANUAL_MAX = 64 << 10 };

static void the_manual_has_the_list_of_keys(void **state)
{
	const char *manual = "";
	struct buf keys;

	(void)state;
	buf_init(&keys, MANUAL_MAX);
	assert_true(keys_describe(&keys));
	for (const struct embedded_file *file = embedded_files; file->name; file++) {
		if (strcmp(file->name, "docs/policy.md") == 0)
			manual = file->data;
	}
	if (!strstr(manual, keys.data))
		fail_msg("docs/policy.md must hold, between its marks:\n%s", keys.data);
	buf_fini(&keys);
}

static void check_rows(const struct key *rows, bool numbers_have_defaults)
{
	for (const struct key *key = rows; key->name; key++) {
		assert_true(key->kind != 0);
		assert_true(key->initial || numbers_have_defaults);
		assert_non_null(key->description);
		assert_null(strchr(key->description, '|'));
		assert_true(key->kind != KEY_CHOICE || key->choices);
		if (key->kind == KEY_ROWS || key->kind == KEY_ENTRIES)
			check_rows(key->rows, key->kind == KEY_ROWS);
	}
}

static void every_row_is_complete(void **state)
{
	(void)state;
	check_rows(keys_config, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_manual_has_the_list_of_keys),
		cmocka_unit_test(every_row_is_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
