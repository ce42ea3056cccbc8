/* agents: files to checked entries, and the shipped ones as they are. */
#include "front/agents.h"

#include "front/embedded/embedded.h"
#include "policy/config.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { DEFAULT_TOOLS = 14 };

static void a_file_becomes_a_role(void **state)
{
	auto_value struct value *one = NULL, *two = NULL;
	struct err err = {0};

	(void)state;
	if (!agents_role_read("agents/one.md",
			      STR("---\nname: one\nwrite: [docs]\n---\nDo.\n"), &one, &err) ||
	    !agents_role_read("two.md", STR("---\nname: two\n---\n"), &two, &err))
		fail_msg("%s", err.text);
	assert_null(value_member(one, "name"));
	assert_string_equal(value_text(value_member(one, "prompt")), "Do.");
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
		struct value *entry = NULL;
		struct err err = {0};

		if (agents_role_read(rows[i].file, str_of(rows[i].text), &entry, &err))
			fail_msg("%s was taken", rows[i].text);
		if (strncmp(err.text, rows[i].error, strlen(rows[i].error)) != 0)
			fail_msg("%s: %s", rows[i].text, err.text);
		assert_null(entry);
	}
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

/* The entry of the shipped role NAME, which the caller frees. */
static struct value *shipped(const char *name)
{
	struct value *entry = NULL;
	struct err err = {0};
	char path[64];

	(void)snprintf(path, sizeof(path), "agents/%s.md", name);
	for (const struct embedded_file *file = embedded_files; file->name; file++) {
		if (strcmp(file->name, path) == 0 &&
		    !agents_role_read(path, (struct str){file->data, file->size}, &entry,
				      &err))
			fail_msg("%s", err.text);
	}
	assert_non_null(entry);
	return entry;
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
	static const char *const tools[] = {
		"read_file",      "batch_read",     "list_files",
		"glob",           "grep",           "write_file",
		"edit_file",      "edit_notebook",  "apply_patch",
		"generate_patch", "bash",           "job",
		"run_tests",      "todo",           "database_schema",
		"shared_context", "delegate_agent", "list_agents",
		"query_reports",  "manage_schedule"};
	char **names = agents_files_shipped();

	(void)state;
	for (size_t i = 0; names[i]; i++) {
		auto_value struct value *role = shipped(names[i]);
		const char *prompt = value_text(value_member(role, "prompt"));
		const struct value *has = value_member(role, "tools");

		for (size_t t = 0; t < sizeof(tools) / sizeof(tools[0]); t++) {
			/* The default role lacks the last ones alone. */
			bool there = !has && t < DEFAULT_TOOLS;

			for (size_t at = 0; at < value_count(has); at++)
				there |= strcmp(value_text(value_item(has, at)),
						tools[t]) == 0;
			if (!there && has_word(prompt, tools[t]))
				fail_msg("%s names %s", names[i], tools[t]);
		}
	}
	agents_files_names_free(names);
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
		 "read_file batch_read list_files glob grep write_file edit_file "
		 "edit_notebook apply_patch generate_patch bash job run_tests database_schema shared_context todo skill remember delegate_agent",
		 ".", false, 0.3, 16000},
		{"tester", 20,
		 "read_file list_files glob grep write_file edit_file edit_notebook bash run_tests",
		 "tests", true, CONFIG_TEMPERATURE_ABSENT, 0},
		{"reviewer", 15, "read_file batch_read list_files glob grep", "", false,
		 CONFIG_TEMPERATURE_ABSENT, 0},
		{"documenter", 15,
		 "read_file list_files glob grep write_file edit_file edit_notebook",
		 "docs *.md", false, CONFIG_TEMPERATURE_ABSENT, 0},
		{"orchestrator", 8,
		 "list_agents delegate_agent query_reports shared_context manage_schedule",
		 "", false, 0.3, 0},
	};
	const size_t count = sizeof(rows) / sizeof(rows[0]);
	char **names = agents_files_shipped();
	struct err err = {0};
	size_t shipped_count = 0;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		auto_value struct value *role = shipped(rows[i].name);
		auto_policy struct policy *policy = NULL;
		struct config_role words = {0};
		char text[512];

		if (!config_policy(NULL, role, rows[i].name, "/ws", &policy, &err) ||
		    !config_role(NULL, role, rows[i].name, &words, &err))
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
	while (names[shipped_count])
		shipped_count++;
	assert_int_equal(shipped_count, count);
	agents_files_names_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_becomes_a_role),
		cmocka_unit_test(a_wrong_file_is_named),
		cmocka_unit_test(the_shipped_roles_have_the_rights_they_need),
		cmocka_unit_test(a_prompt_names_no_tool_that_its_role_lacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
