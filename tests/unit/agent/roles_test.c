/* roles: files to checked entries, and the shipped ones as they are. */
#include "agent/roles.h"

#include "front/embedded.h"
#include "policy/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SHIPPED_MAX = 32 };

static void a_file_becomes_a_role(void **state)
{
	static const struct role_text texts[] = {
		{"agents/one.md", {"---\nname: one\nwrite: [docs]\n---\nDo.\n", 36}},
		{"two.md", {"---\nname: two\n---\n", 18}},
	};
	struct roles roles;
	struct err err = {0};
	const struct role *role;

	(void)state;
	if (!roles_init(&roles, texts, 2, &err))
		fail_msg("%s", err.text);
	role = roles_find(&roles, "one");
	assert_non_null(role);
	assert_string_equal(role->name, "one");
	assert_null(value_member(role->entry, "name"));
	assert_string_equal(value_text(value_member(role->entry, "prompt")), "Do.");
	assert_non_null(roles_find(&roles, "two"));
	assert_null(roles_find(&roles, "three"));
	assert_null(roles_find(&roles, NULL));
	roles_fini(&roles);
	roles_fini(&roles);
}

static void a_wrong_file_is_named(void **state)
{
	static const struct {
		const char *file, *text, *error;
	} rows[] = {
		{"a/x.md", "---\nname: [\n---\n", "a/x.md: line 3"},
		{"a/x.md", "---\nwrite: []\n---\n", "a/x.md: the key \"name\" is missing"},
		{"a/x.md", "---\nname: 5\n---\n", "a/x.md: the key \"name\" is missing"},
		{"a/x.md", "---\nname: y\n---\n",
		 "a/x.md: the name \"y\" is not that of the file"},
		{"a/x.txt", "---\nname: x\n---\n",
		 "a/x.txt: the name \"x\" is not that of the file"},
		{"a/x.md", "---\nname: x y\n---\n",
		 "a/x.md: the name of an agent is made of"},
		{"a/x.md", "---\nname: x\nwirte: []\n---\n",
		 "a/x.md: /: there is no key \"wirte\" (did you mean \"write\"?)"},
		{"a/x.md", "---\nname: x\nlimits:\n  pids: many\n---\n",
		 "a/x.md: /limits/pids: must be a whole number, not string"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct role_text text = {rows[i].file, str_of(rows[i].text)};
		struct roles roles;
		struct err err = {0};

		if (roles_init(&roles, &text, 1, &err))
			fail_msg("%s was taken", rows[i].text);
		if (strncmp(err.text, rows[i].error, strlen(rows[i].error)) != 0)
			fail_msg("%s: %s", rows[i].text, err.text);
		assert_int_equal(roles.count, 0);
	}
}

static void a_name_twice_is_refused(void **state)
{
	static const struct role_text texts[] = {
		{"a/one.md", {"---\nname: one\n---\n", 18}},
		{"b/one.md", {"---\nname: one\n---\n", 18}},
	};
	struct roles roles;
	struct err err = {0};

	(void)state;
	assert_false(roles_init(&roles, texts, 2, &err));
	assert_string_equal(err.text, "b/one.md: there is a role \"one\" already");
}

static void the_shipped_roles_have_the_rights_they_need(void **state)
{
	static const struct {
		const char *name;
		uint64_t iterations;
		bool writes, runs;
	} rows[] = {
		{"default", 50, true, true},
		{"coder", 30, true, true},
		{"reviewer", 15, false, false},
	};
	struct role_text texts[SHIPPED_MAX];
	struct roles roles;
	struct err err = {0};
	size_t count = 0;

	(void)state;
	for (const struct embedded_file *file = embedded_files; file->name; file++) {
		if (strncmp(file->name, "agents/", 7) == 0 && count < SHIPPED_MAX)
			texts[count++] =
				(struct role_text){file->name, {file->data, file->size}};
	}
	if (!roles_init(&roles, texts, count, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct role *role = roles_find(&roles, rows[i].name);
		auto_policy struct policy *policy = NULL;
		struct config_role words = {0};
		bool runs;

		assert_non_null(role);
		if (!config_policy(NULL, role->entry, rows[i].name, "/ws", &policy, &err) ||
		    !config_role(NULL, role->entry, rows[i].name, &words, &err))
			fail_msg("%s", err.text);
		runs = !policy->tools.given || policy_has_tool(policy, "bash");
		assert_int_equal(policy->limits.iterations, rows[i].iterations);
		assert_int_equal(policy->write.count > 0, rows[i].writes);
		assert_int_equal(runs, rows[i].runs);
		assert_non_null(words.description);
		assert_true(words.prompt && strlen(words.prompt) > 500);
		config_role_fini(&words);
	}
	roles_fini(&roles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_becomes_a_role),
		cmocka_unit_test(a_wrong_file_is_named),
		cmocka_unit_test(a_name_twice_is_refused),
		cmocka_unit_test(the_shipped_roles_have_the_rights_they_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
