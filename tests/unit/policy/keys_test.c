/* keys: the manual says what the table says. */
#include "base/memory.h"
#include "base/str.h"
#include "front/embedded/embedded.h"
#include "policy/config.h"
#include "policy/credentials/credential.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MANUAL_MAX = 96 << 10 };

static void the_manual_has_the_list_of_keys(void **state)
{
	const char *manual = "";
	struct buf keys;

	(void)state;
	buf_init(&keys, MANUAL_MAX);
	assert_true(config_keys_describe(&keys));
	for (const struct embedded_file *file = embedded_files; file->name; file++) {
		if (strcmp(file->name, "docs/policy.md") == 0)
			manual = file->data;
	}
	if (!strstr(manual, keys.data))
		fail_msg("docs/policy.md must hold, between its marks:\n%s", keys.data);
	buf_fini(&keys);
}

/* The file NAME of docs/. */
static struct str page(const char *name)
{
	for (const struct embedded_file *file = embedded_files; file->name; file++) {
		if (strcmp(file->name, name) == 0)
			return (struct str){file->data, file->size};
	}
	fail_msg("there is no %s", name);
	return (struct str){0};
}

static void the_manuals_name_all_shipped_credentials(void **state)
{
	const struct str policy = page("docs/policy.md");
	const struct str exec = page("docs/man/glovebox-exec.1");
	struct arena arena;
	char text[CREDENTIAL_NAME_MAX + 8];

	(void)state;
	arena_init(&arena);
	for (const char **name = credential_names(NULL, &arena); *name != NULL; name++) {
		(void)snprintf(text, sizeof(text), "`%s`", *name);
		if (str_find(policy, str_of(text), 0) == (size_t)-1)
			fail_msg("docs/policy.md does not name %s", *name);
		(void)snprintf(text, sizeof(text), ".Cm %s", *name);
		if (str_find(exec, str_of(text), 0) == (size_t)-1)
			fail_msg("docs/man/glovebox-exec.1 does not name %s", *name);
	}
	arena_fini(&arena);
}

/* Blocks that begin with a brace are configurations as a whole. */
static void examples_of_the_manual_are_sound(void **state)
{
	size_t count = 0;

	(void)state;
	for (const struct embedded_file *file = embedded_files; file->name; file++) {
		struct str text = {file->data, file->size};
		size_t at = 0;

		if (strcmp(file->name, "docs/policy.md") != 0)
			continue;
		while ((at = str_find(text, STR("```json\n{"), at)) != (size_t)-1) {
			auto_config struct config *config = NULL;
			size_t end = str_find(text, STR("\n```"), at);
			struct err err = {0};

			at += strlen("```json\n");
			if (!config_parse(str_part(text, at, end - at), "docs/policy.md",
					  &config, &err))
				fail_msg("%s", err.text);
			at = end;
			count++;
		}
	}
	assert_true(count > 8);
}

static void check_rows(const struct row *rows, bool numbers_have_defaults)
{
	for (const struct row *key = rows; key->name; key++) {
		assert_true(key->kind != 0);
		assert_true(key->initial || numbers_have_defaults);
		assert_non_null(key->description);
		assert_null(strchr(key->description, '|'));
		assert_true(key->kind != ROW_CHOICE || key->choices);
		if (key->rows)
			check_rows(key->rows, key->kind == ROW_OBJECT);
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
		cmocka_unit_test(the_manuals_name_all_shipped_credentials),
		cmocka_unit_test(examples_of_the_manual_are_sound),
		cmocka_unit_test(every_row_is_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
