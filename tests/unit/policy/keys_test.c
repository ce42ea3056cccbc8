/* keys: the manual says what the table says. */
#include "policy/keys.h"

#include "base/text.h"
#include "front/embedded.h"
#include "policy/config.h"
#include "policy/policy.h"

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

static void check_rows(const struct key *rows)
{
	for (const struct key *key = rows; key->name; key++) {
		assert_true(key->kind != 0);
		assert_non_null(key->initial);
		assert_non_null(key->description);
		assert_null(strchr(key->description, '|'));
		assert_true(key->kind != KEY_CHOICE || key->choices);
		if (key->kind == KEY_ROWS || key->kind == KEY_ENTRIES)
			check_rows(key->rows);
	}
}

static void every_row_is_complete(void **state)
{
	(void)state;
	check_rows(keys_config);
}

/* The words of the manual and the numbers of policy_new, by the same rows. */
static void the_defaults_are_those_of_the_manual(void **state)
{
	auto_policy struct policy *policy = policy_new(NULL, "/ws");
	const struct key *key = keys_agent;

	(void)state;
	while (strcmp(key->name, "limits") != 0)
		key++;
	for (const struct key *row = key->rows; row->name; row++) {
		const char *place = (const char *)policy + key->offset + row->offset;
		struct err err = {0};
		uint64_t count = 0;
		double seconds = 0;
		uint64_t stored = 0;
		double number = 0;

		if (strcmp(row->initial, "no limit") == 0)
			continue;
		memcpy(&stored, place, sizeof(stored));
		memcpy(&number, place, sizeof(number));
		if (row->kind == KEY_SECONDS) {
			assert_true(text_parse_seconds(row->initial, &seconds, &err));
			assert_true(seconds == number);
		} else {
			assert_true(text_parse_size(row->initial, &count, &err));
			assert_int_equal(count, stored);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_manual_has_the_list_of_keys),
		cmocka_unit_test(every_row_is_complete),
		cmocka_unit_test(the_defaults_are_those_of_the_manual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
