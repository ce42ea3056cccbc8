/* roles: files to checked entries, and the shipped ones as they are. */
#include "agent/roles.h"

#include "front/setup.h"
#include "policy/config.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SHIPPED_MAX = 32, DEFAULT_TOOLS = 12 };

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

static const char *names_of(const struct policy_names *names, char *text, size_t size)
{
	text[0] = '\0';
	for (size_t i = 0; i < names->count; i++)
		(void)snprintf(text + strlen(text), size - strlen(text), "%s%s",
			       i ? " " : "", names->items[i]);
	return text;
}

static const char *paths_of(const struct policy_paths *paths, char *text, size_t size)
{
	text[0] = '\0';
	for (size_t i = 0; i < paths->count; i++)
		(void)snprintf(text + strlen(text), size - strlen(text), "%s%s",
			       i ? " " : "", paths->items[i].text);
	return text;
}

static void roles_shipped(struct roles *roles)
{
	struct role_text texts[SHIPPED_MAX];
	struct err err = {0};
	size_t count = 0;

	for (const struct embedded_file *file = embedded_files; file->name; file++) {
		if (strncmp(file->name, "agents/", 7) == 0 && count < SHIPPED_MAX)
			texts[count++] =
				(struct role_text){file->name, {file->data, file->size}};
	}
	if (!roles_init(roles, texts, count, &err))
		fail_msg("%s", err.text);
}

static bool has_word(const char *text, const char *word)
{
	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
		char before = at == text ? ' ' : at[-1];
		char after = at[strlen(word)];

		if (!isalnum((unsigned char)before) && before != '_' &&
		    !isalnum((unsigned char)after) && after != '_')
			return true;
	}
	return false;
}

static void a_prompt_names_no_tool_that_its_role_lacks(void **state)
{
	static const char *const tools[] = {"read_file",
					    "batch_read",
					    "list_files",
					    "glob",
					    "grep",
					    "write_file",
					    "edit_file",
					    "apply_patch",
					    "generate_patch",
					    "bash",
					    "job",
					    "run_tests",
					    "database_schema",
					    "shared_context",
					    "delegate_agent",
					    "list_agents",
					    "query_reports",
					    "manage_schedule"};
	struct roles roles;

	(void)state;
	roles_shipped(&roles);
	for (size_t i = 0; i < roles.count; i++) {
		const struct role *role = &roles.items[i];
		const char *prompt = value_text(value_member(role->entry, "prompt"));
		const struct value *has = value_member(role->entry, "tools");

		for (size_t t = 0; t < sizeof(tools) / sizeof(tools[0]); t++) {
			/* The default role lacks the last ones alone. */
			bool there = !has && t < DEFAULT_TOOLS;

			for (size_t at = 0; at < value_count(has); at++)
				there |= strcmp(value_text(value_item(has, at)),
						tools[t]) == 0;
			if (!there && has_word(prompt, tools[t]))
				fail_msg("%s names %s", role->name, tools[t]);
		}
	}
	roles_fini(&roles);
}

static void the_shipped_roles_have_the_rights_they_need(void **state)
{
	static const struct {
		const char *name;
		uint64_t iterations;
		const char *tools; /* NULL: every one */
		const char *write;
		bool scratch;
		double temperature;
		uint64_t thinking;
	} rows[] = {
		{"default", 50, NULL, ".", false, CONFIG_TEMPERATURE_ABSENT, 0},
		{"coder", 30,
		 "read_file batch_read list_files glob grep write_file edit_file apply_patch "
		 "generate_patch bash job run_tests database_schema shared_context delegate_agent",
		 ".", false, 0.3, 16000},
		{"tester", 20,
		 "read_file list_files glob grep write_file edit_file bash run_tests",
		 "tests", true, CONFIG_TEMPERATURE_ABSENT, 0},
		{"reviewer", 15, "read_file batch_read list_files glob grep", "", false,
		 CONFIG_TEMPERATURE_ABSENT, 0},
		{"documenter", 15, "read_file list_files glob grep write_file edit_file",
		 "docs *.md", false, CONFIG_TEMPERATURE_ABSENT, 0},
		{"orchestrator", 8,
		 "list_agents delegate_agent query_reports shared_context manage_schedule",
		 "", false, 0.3, 0},
	};
	struct roles roles;
	struct err err = {0};

	(void)state;
	roles_shipped(&roles);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct role *role = roles_find(&roles, rows[i].name);
		auto_policy struct policy *policy = NULL;
		struct config_role words = {0};
		char text[512];

		assert_non_null(role);
		if (!config_policy(NULL, role->entry, rows[i].name, "/ws", &policy, &err) ||
		    !config_role(NULL, role->entry, rows[i].name, &words, &err))
			fail_msg("%s", err.text);
		assert_int_equal(policy->limits.iterations, rows[i].iterations);
		assert_int_equal(policy->tools.given, rows[i].tools != NULL);
		if (rows[i].tools)
			assert_string_equal(names_of(&policy->tools, text, sizeof(text)),
					    rows[i].tools);
		assert_string_equal(paths_of(&policy->write, text, sizeof(text)),
				    rows[i].write);
		assert_int_equal(policy->scratch, rows[i].scratch);
		assert_true(words.temperature == rows[i].temperature);
		assert_int_equal(words.thinking_budget, rows[i].thinking);
		assert_null(words.checks);
		assert_non_null(words.description);
		assert_true(words.prompt && strlen(words.prompt) > 500);
		config_role_fini(&words);
	}
	assert_int_equal(roles.count, sizeof(rows) / sizeof(rows[0]));
	roles_fini(&roles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_becomes_a_role),
		cmocka_unit_test(a_wrong_file_is_named),
		cmocka_unit_test(a_name_twice_is_refused),
		cmocka_unit_test(the_shipped_roles_have_the_rights_they_need),
		cmocka_unit_test(a_prompt_names_no_tool_that_its_role_lacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
