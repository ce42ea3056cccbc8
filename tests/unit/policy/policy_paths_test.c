/* policy_paths: what a person wrote to absolute paths, and what is refused on the way. */
#include "policy/policy.h"

#include "policy/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WORKSPACE "/ws/project"

static struct policy *policy_of(const char *entry_text, struct err *err)
{
	auto_value struct value *entry = NULL;
	struct policy *policy = NULL;

	if (!value_parse(str_of(entry_text), VALUE_COMMENTS, &entry, err))
		fail_msg("%s", err->text);
	(void)config_policy(NULL, entry, "a", WORKSPACE, &policy, err);
	return policy;
}

static void entries_become_absolute_and_normal(void **state)
{
	static const struct {
		const char *entry, *base, *write, *pattern;
	} rows[] = {
		{"{\"write\": [\".\"]}", WORKSPACE, WORKSPACE, NULL},
		{"{\"write\": [\"tests/\"]}", WORKSPACE, WORKSPACE "/tests", NULL},
		{"{\"write\": [\"./a//b/../c\"]}", WORKSPACE, WORKSPACE "/a/c", NULL},
		{"{\"write\": [\"/srv/x/\"]}", WORKSPACE, "/srv/x", NULL},
		{"{\"write\": [\"/\"]}", WORKSPACE, "/", NULL},
		{"{\"base\": \"sub\", \"write\": [\"a\"]}", WORKSPACE "/sub",
		 WORKSPACE "/sub/a", NULL},
		{"{\"base\": \"/other\", \"write\": [\"a\"]}", "/other", "/other/a", NULL},
		{"{\"write\": [\"*.md\"]}", WORKSPACE, WORKSPACE, "*.md"},
		{"{\"write\": [\"docs/*.md\"]}", WORKSPACE, WORKSPACE "/docs", "*.md"},
		{"{\"write\": [\"a/b/**/*.txt\"]}", WORKSPACE, WORKSPACE "/a/b", "**/*.txt"},
		{"{\"write\": [\"/srv/*/x\"]}", WORKSPACE, "/srv", "*/x"},
		{"{\"write\": [\"/*.log\"]}", WORKSPACE, "/", "*.log"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};
		auto_policy struct policy *policy = policy_of(rows[i].entry, &err);

		if (!policy) {
			fail_msg("%s", err.text);
			return;
		}
		assert_string_equal(policy->base.path, rows[i].base);
		assert_int_equal(policy->write.count, 1);
		assert_string_equal(policy->write.items[0].path, rows[i].write);
		if (rows[i].pattern)
			assert_string_equal(policy->write.items[0].pattern, rows[i].pattern);
		else
			assert_null(policy->write.items[0].pattern);
	}
}

static void wrong_entries_are_refused_by_name(void **state)
{
	static const struct {
		const char *entry, *error;
	} rows[] = {
		{"{\"write\": [\"../other\"]}",
		 "agents.a.write: \"../other\" leads out of the base (/ws/project); a relative entry "
		 "stays beneath it, write the absolute path /ws/other if that is what you want"},
		{"{\"read\": [\"a/../../b\"]}",
		 "agents.a.read: \"a/../../b\" leads out of the base"},
		{"{\"blocked\": [\"..\"]}", "agents.a.blocked: \"..\" leads out of the base"},
		{"{\"base\": \"../x\"}",
		 "agents.a.base: \"../x\" leads out of the workspace"},
		{"{\"base\": \"sub\", \"write\": [\"../a\"]}",
		 "leads out of the base (/ws/project/sub)"},
		{"{\"write\": [\"../*.md\"]}", "leads out of the base"},
		{"{\"write\": [\"/a/../../..\"]}", "climbs above /"},
		{"{\"write\": [\"~/x\"]}", "agents.a.write: \"~/x\": ~ is not expanded here"},
		{"{\"read\": [\"*.md\"]}",
		 "agents.a.read: \"*.md\" is a pattern, and only \"write\""},
		{"{\"blocked\": [\"*.pem\"]}", "agents.a.blocked: \"*.pem\" is a pattern"},
		{"{\"base\": \"a?\"}", "agents.a.base: \"a?\" is a pattern"},
		{"{\"write\": [\"*/../x\"]}", "matches no file"},
		{"{\"write\": [\"a*/\"]}", "matches no file"},
		{"{\"write\": [\"[a\"]}", "agents.a.write: \"[a\": "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};
		auto_policy struct policy *policy = policy_of(rows[i].entry, &err);

		if (policy)
			fail_msg("%s was taken", rows[i].entry);
		if (!strstr(err.text, rows[i].error))
			fail_msg("%s: %s", rows[i].entry, err.text);
	}
}

static void brackets_are_names_where_no_pattern_holds(void **state)
{
	struct err err = {0};
	auto_policy struct policy *policy =
		policy_of("{\"blocked\": [\"app/[id]\"]}", &err);

	(void)state;
	assert_non_null(policy);
	assert_string_equal(policy->blocked.items[0].path, WORKSPACE "/app/[id]");
}

static void reading_is_the_base_unless_given(void **state)
{
	struct err err = {0};
	auto_policy struct policy *own = policy_of("{\"base\": \"sub\"}", &err);
	auto_policy struct policy *none = policy_of("{\"read\": []}", &err);

	(void)state;
	assert_int_equal(own->read.count, 1);
	assert_string_equal(own->read.items[0].path, WORKSPACE "/sub");
	assert_int_equal(none->read.count, 0);
}

static void a_second_time_changes_nothing(void **state)
{
	struct err err = {0};
	auto_policy struct policy *policy = policy_of("{\"write\": [\"x\"]}", &err);

	(void)state;
	policy_set_path(&policy->write.items[0], "/real");
	assert_true(policy_paths_normal(policy, "/elsewhere", &err));
	assert_string_equal(policy->write.items[0].path, "/real");
	assert_string_equal(policy->base.path, WORKSPACE);
	assert_int_equal(policy->read.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_become_absolute_and_normal),
		cmocka_unit_test(wrong_entries_are_refused_by_name),
		cmocka_unit_test(brackets_are_names_where_no_pattern_holds),
		cmocka_unit_test(reading_is_the_base_unless_given),
		cmocka_unit_test(a_second_time_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
