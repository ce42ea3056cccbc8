/* config: what is taken, what is refused and with which words, and which layer wins. */
#include "policy/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WORKSPACE "/ws"

static struct value *value_of(const char *text)
{
	struct value *value = NULL;
	struct err err = {0};

	if (!value_parse(str_of(text), VALUE_COMMENTS, &value, &err))
		fail_msg("%s: %s", text, err.text);
	return value;
}

static void comments_and_nothing_are_taken(void **state)
{
	static const char *const rows[] = {
		"",
		" \n",
		"{}",
		"{ // why\n  \"agents\": {}, /* and */ }",
		"{\"agents\": {\"a\": {}, \"B-2_x\": {\"tools\": [], \"limits\": {}}}}",
		"{\"minimum_level\": \"L0\"}",
		"{\"agents\": {\"a\": {\"scratch\": true, \"env\": [\"A\", \"_b2=\", \"C=d=e\","
		" \"LD_PRELOAD=/x\", \"PATH=/usr/bin\"]}}}",
		"{\"agents\": {\"a\": {\"temperature\": 0, \"model\": \"m\", \"prompt\": \"\","
		" \"description\": \"d\"}}}",
		"{\"agents\": {\"a\": {\"limits\": {\"file_size\": 1048576, \"tmp\": \"2G\","
		" \"grace_s\": 1.5, \"pids\": 8, \"tokens\": 1000000}}}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_config struct config *config = NULL;
		struct err err = {0};

		if (!config_parse(str_of(rows[i]), "c", &config, &err))
			fail_msg("%s: %s", rows[i], err.text);
		assert_non_null(config);
	}
}

static void what_is_wrong_is_named_with_its_place(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{"[]", "c: /: must be an object, not array"},
		{"{\"agents\": {\"a\": {\"scratch\": 1}}}",
		 "c: /agents/a/scratch: must be true or false, not integer"},
		{"{\"agents\": {\"a\": {\"env\": [\"A\", \"sk-s3cr3t\"]}}}",
		 "c: /agents/a/env/1: is neither NAME nor NAME=value; a name has letters, digits "
		 "and _, no digit first, and at most 128 of them"},
		{"{\"agents\": {\"a\": {\"env\": [\"HOME=s3cr3t\"]}}}",
		 "c: /agents/a/env/0: HOME is set by the cell, to its private home and account"},
		{"{\"agents\": {\"a\": {\"env\": [\"https_proxy=s3cr3t\"]}}}",
		 "c: /agents/a/env/0: https_proxy is set by the cell; list hosts in `network`"},
		{"{\"agents\": {\"a\": {\"env\": [\"GLOVEBOX_X=s3cr3t\"]}}}",
		 "c: /agents/a/env/0: GLOVEBOX_X: names that begin so are Glovebox's own"},
		{"{\"agents\": {\"a\": {\"env\": [\"PATH\"]}}}",
		 "c: /agents/a/env/0: PATH is always made from yours; PATH=value sets another"},
		{"{\"agents\": 5}", "c: /agents: must be an object, not integer"},
		{"{\"agnets\": {}}",
		 "c: /: there is no key \"agnets\" (did you mean \"agents\"?); the keys are agents, "
		 "minimum_level"},
		{"{\"zzzzzzzzzz\": {}}",
		 "c: /: there is no key \"zzzzzzzzzz\"; the keys are agents, minimum_level"},
		{"{\"agents\": {\"a\": {\"wirte\": []}}}",
		 "c: /agents/a: there is no key \"wirte\" (did you mean \"write\"?)"},
		{"{\"agents\": {\"a\": {\"write\": \"x\"}}}",
		 "c: /agents/a/write: must be a list of texts, not string"},
		{"{\"agents\": {\"a\": {\"write\": [\"x\", 1]}}}",
		 "c: /agents/a/write/1: must be text, not integer"},
		{"{\"agents\": {\"a\": {\"write\": [\"\"]}}}",
		 "c: /agents/a/write/0: may not be empty"},
		{"{\"agents\": {\"a\": {\"write\": [\"a\\u0000b\"]}}}",
		 "c: /agents/a/write/0: may not hold a NUL"},
		{"{\"agents\": {\"a\": {\"base\": null}}}",
		 "c: /agents/a/base: must be text, not null"},
		{"{\"agents\": {\"a\": {\"limits\": {\"pids\": 7}}}}",
		 "c: /agents/a/limits/pids: must be 8 to 32768, not 7"},
		{"{\"agents\": {\"a\": {\"limits\": {\"pids\": 8.5}}}}",
		 "c: /agents/a/limits/pids: must be a whole number, not 8.5"},
		{"{\"agents\": {\"a\": {\"limits\": {\"wall_s\": 0}}}}",
		 "c: /agents/a/limits/wall_s: must be 0.001 to 604800, not 0"},
		{"{\"agents\": {\"a\": {\"limits\": {\"iterations\": -1}}}}",
		 "c: /agents/a/limits/iterations: must be 1 to 10000, not -1"},
		{"{\"agents\": {\"a\": {\"limits\": {\"file_size\": \"many\"}}}}",
		 "c: /agents/a/limits/file_size: "},
		{"{\"agents\": {\"a\": {\"limits\": {\"file_size\": -5}}}}",
		 "c: /agents/a/limits/file_size: must be 1M to 1024T"},
		{"{\"agents\": {\"a\": {\"limits\": {\"tmp\": true}}}}",
		 "c: /agents/a/limits/tmp: must be a size"},
		{"{\"agents\": {\"a\": {\"limits\": {\"memory\": \"15M\"}}}}",
		 "c: /agents/a/limits/memory: must be 16M to 1024T"},
		{"{\"agents\": {\"a\": {\"limits\": {\"quiet_s\": 0}}}}",
		 "c: /agents/a/limits/quiet_s: must be 0.001 to 604800, not 0"},
		{"{\"agents\": {\"a\": {\"limits\": {\"cell_pids\": 40000}}}}",
		 "c: /agents/a/limits/cell_pids: must be 8 to 32768, not 40000"},
		{"{\"agents\": {\"a\": {\"limits\": {\"free_space\": -1}}}}",
		 "c: /agents/a/limits/free_space: must be "},
		{"{\"agents\": {\"a\": {\"limits\": {\"pid\": 9}}}}",
		 "c: /agents/a/limits: there is no key \"pid\" (did you mean \"pids\"?)"},
		{"{\"agents\": {\"a\": {\"temperature\": 3}}}",
		 "c: /agents/a/temperature: must be 0 to 2, not 3"},
		{"{\"agents\": {\"a b\": {}}}",
		 "c: /agents: the name of an agent is made of"},
		{"{\"agents\": {\"\": {}}}", "c: /agents: the name of an agent is made of"},
		{"{\"agents\": {\"a\": []}}", "c: /agents/a: must be an object, not array"},
		{"{\"minimum_level\": \"L4\"}",
		 "c: /minimum_level: must be one of: L0 L2 L3"},
		{"{\"minimum_level\": \"L1\"}",
		 "c: /minimum_level: there is no L1 any more: name L0 (no wall over files; system "
		 "calls are filtered where the kernel can) or L2 (files outside are closed, and "
		 "system calls are always filtered)"},
		{"{\"minimum_level\": 3}", "c: /minimum_level: must be text, not integer"},
		{"{\"agents\": {\"a\": {}, \"a\": {}}}", "c: "},
		{"{\"agents\": ", "c: line 1"},
		{"{\"a/~b\\u001b[1m\": 1}", "c: /: there is no key \"a/~b"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config *config = NULL;
		struct err err = {0};

		if (config_parse(str_of(rows[i].text), "c", &config, &err))
			fail_msg("%s was taken", rows[i].text);
		assert_null(config);
		if (strncmp(err.text, rows[i].error, strlen(rows[i].error)) != 0)
			fail_msg("%s: %s", rows[i].text, err.text);
		assert_null(strchr(err.text, '\033'));
	}
}

static void a_huge_text_is_refused(void **state)
{
	struct config *config = NULL;
	struct err err = {0};
	struct str text = {"", (size_t)CONFIG_TEXT_MAX + 1};

	(void)state;
	assert_false(config_parse(text, "c", &config, &err));
	assert_non_null(strstr(err.text, "larger than"));
}

static void defaults_hold_where_nothing_is_said(void **state)
{
	auto_policy struct policy *policy = NULL;
	struct err err = {0};

	(void)state;
	assert_true(config_policy(NULL, NULL, NULL, WORKSPACE, &policy, &err));
	assert_string_equal(policy->name, "default");
	assert_string_equal(policy->workspace, WORKSPACE);
	assert_false(policy->tools.given);
	assert_int_equal(policy->write.count, 0);
	assert_string_equal(policy->read.items[0].path, WORKSPACE);
	assert_int_equal(policy->limits.iterations, 50);
	assert_int_equal(policy->limits.tokens, 0);
	assert_int_equal(policy->limits.loop_warn, 3);
	assert_int_equal(policy->limits.loop_stop, 10);
	assert_true(policy->limits.wall_s == 120);
	assert_true(policy->limits.shell_s == 1800);
	assert_true(policy->limits.grace_s == 0.2);
	assert_int_equal(policy->limits.pids, 512);
	assert_int_equal(policy->limits.file_size, 4ULL << 30);
	assert_int_equal(policy->limits.tmp, 1ULL << 30);
	assert_int_equal(policy->limits.cell_pids, 4096);
	assert_true(policy->limits.quiet_s == 0);
	assert_true(policy->limits.memory == POLICY_BY_MACHINE);
	assert_true(policy->limits.free_space == POLICY_BY_MACHINE);
	assert_int_equal(config_minimum_level(NULL), 3);
}

static void the_person_beats_the_config_beats_the_role(void **state)
{
	auto_value struct value *role = value_of(
		"{\"write\": [\".\"], \"tools\": [\"x\"], \"model\": \"role\", \"prompt\": \"p\","
		" \"limits\": {\"iterations\": 30, \"pids\": 100, \"tmp\": \"64M\"}}");
	auto_value struct value *flags = value_of("{\"limits\": {\"iterations\": 7}}");
	auto_value struct value *later = value_of("{\"model\": \"flag\"}");
	auto_config struct config *config = NULL;
	auto_policy struct policy *policy = NULL;
	struct config_role texts;
	struct err err = {0};

	(void)state;
	assert_true(config_parse(STR("{\"minimum_level\": \"L2\", \"agents\": {\"coder\": {"
				     "\"tools\": [\"y\", \"z\"], \"temperature\": 0.5,"
				     " \"model\": \"config\","
				     " \"limits\": {\"iterations\": 20, \"pids\": 200}}}}"),
				 "c", &config, &err));
	assert_true(config_override(config, "coder", flags, "flags", &err));
	assert_true(config_override(config, "coder", later, "flags", &err));
	assert_true(config_policy(config, role, "coder", WORKSPACE, &policy, &err));
	assert_int_equal(config_minimum_level(config), 2);
	assert_int_equal(policy->limits.iterations, 7);
	assert_int_equal(policy->limits.pids, 200);
	assert_int_equal(policy->limits.tmp, 64 << 20);
	assert_int_equal(policy->tools.count, 2);
	assert_string_equal(policy->tools.items[0], "y");
	assert_string_equal(policy->write.items[0].path, WORKSPACE);
	assert_true(policy->write.items[0].shipped);
	assert_true(config_role(config, role, "coder", &texts, &err));
	assert_string_equal(texts.model, "flag");
	assert_string_equal(texts.prompt, "p");
	assert_null(texts.description);
	assert_true(texts.temperature == 0.5);
	config_role_fini(&texts);
}

static void a_write_of_the_config_must_exist(void **state)
{
	auto_value struct value *role = value_of("{\"write\": [\"tests\"]}");
	auto_config struct config *config = NULL;
	auto_policy struct policy *policy = NULL;
	struct err err = {0};

	(void)state;
	assert_true(config_parse(STR("{\"agents\": {\"t\": {\"write\": [\"tests\"]}}}"),
				 "c", &config, &err));
	assert_true(config_policy(config, role, "t", WORKSPACE, &policy, &err));
	assert_false(policy->write.items[0].shipped);
}

static void an_absent_temperature_is_the_providers(void **state)
{
	struct config_role texts;
	struct err err = {0};

	(void)state;
	assert_true(config_role(NULL, NULL, NULL, &texts, &err));
	assert_true(texts.temperature < 0);
	assert_null(texts.prompt);
	config_role_fini(&texts);
}

static void an_unknown_agent_is_answered_with_those_there_are(void **state)
{
	auto_config struct config *config = NULL;
	struct policy *policy = NULL;
	struct err err = {0};

	(void)state;
	assert_true(config_parse(STR("{\"agents\": {\"mine\": {}}}"), "c", &config, &err));
	config_know_agent(config, "reviewer");
	config_know_agent(config, "coder");
	config_know_agent(config, "mine");
	assert_false(config_policy(config, NULL, "codr", WORKSPACE, &policy, &err));
	assert_string_equal(err.text,
			    "there is no agent \"codr\" (did you mean \"coder\"?); there are: "
			    "coder, default, mine, reviewer");
	assert_false(config_policy(NULL, NULL, "zzz", WORKSPACE, &policy, &err));
	assert_string_equal(err.text, "there is no agent \"zzz\"; there are: default");
	assert_null(policy);
}

static void what_the_person_asks_is_checked_too(void **state)
{
	auto_config struct config *config = config_new();
	auto_value struct value *entry = value_of("{\"limits\": {\"iterations\": 0}}");
	struct err err = {0};

	(void)state;
	assert_false(config_override(config, NULL, entry, "--max-iterations", &err));
	assert_string_equal(err.text,
			    "--max-iterations: /limits/iterations: must be 1 to 10000, not 0");
}

static void the_highest_layer_is_found(void **state)
{
	static const char text[] = "{\"agents\": {\"a\": {\"write\": [\"x\"],"
				   " \"limits\": {\"pids\": 9, \"tmp\": \"1M\"}}}}";
	auto_value struct value *shipped = value_of("{\"read\": [], \"write\": []}");
	auto_value struct value *person = value_of("{\"limits\": {\"pids\": 10}}");
	auto_config struct config *config = NULL;
	enum config_layer layer;
	struct err err = {0};

	(void)state;
	assert_true(config_parse(str_of(text), "c", &config, &err));
	assert_true(config_override(config, "a", person, "options", &err));
	assert_non_null(config_find(config, shipped, "a", "read", NULL, &layer));
	assert_int_equal(layer, LAYER_ROLE);
	assert_int_equal(value_count(config_find(config, shipped, "a", "write", NULL,
						 &layer)),
			 1);
	assert_int_equal(layer, LAYER_CONFIG);
	assert_int_equal(value_integer(config_find(config, shipped, "a", "limits", "pids",
						   &layer)),
			 10);
	assert_int_equal(layer, LAYER_PERSON);
	assert_non_null(config_find(config, shipped, "a", "limits", "tmp", &layer));
	assert_int_equal(layer, LAYER_CONFIG);
	assert_null(config_find(config, shipped, "a", "blocked", NULL, &layer));
	assert_int_equal(layer, LAYER_DEFAULT);
}

static void a_role_of_the_user_lies_between(void **state)
{
	auto_value struct value *shipped = value_of(
		"{\"tools\": [\"s\"], \"write\": [\"s\"], \"model\": \"s\", \"temperature\": 1,"
		" \"prompt\": \"s\", \"limits\": {\"pids\": 8, \"iterations\": 1}}");
	auto_value struct value *user =
		value_of("{\"tools\": [\"u\"], \"write\": [\"u\"], \"model\": \"u\","
			 " \"limits\": {\"iterations\": 2, \"wall_s\": 2}}");
	auto_config struct config *config = NULL;
	auto_policy struct policy *policy = NULL;
	auto_policy struct policy *own = NULL;
	struct config_role role = {0};
	enum config_layer layer;
	struct err err = {0};

	(void)state;
	assert_true(config_parse(STR("{\"agents\": {\"a\": {\"tools\": [\"c\"],"
				     " \"limits\": {\"wall_s\": 3}}}}"),
				 "c", &config, &err));
	config_set_role(config, "a", user);
	config_set_role(config, "mine", user);
	assert_true(config_says(config, "mine") && !config_says(config, "other"));
	assert_true(config_policy(config, shipped, "a", WORKSPACE, &policy, &err));
	assert_true(config_role(config, shipped, "a", &role, &err));
	assert_string_equal(policy->tools.items[0], "c");
	assert_string_equal(policy->write.items[0].text, "u");
	/* only what a shipped role names may be missing on disk */
	assert_false(policy->write.items[0].shipped);
	assert_int_equal(policy->limits.iterations, 2);
	assert_int_equal(policy->limits.pids, 8);
	assert_true(policy->limits.wall_s == 3);
	assert_string_equal(role.model, "u");
	assert_string_equal(role.prompt, "s");
	assert_true(role.temperature == 1);
	config_role_fini(&role);
	assert_non_null(config_find(config, shipped, "a", "write", NULL, &layer));
	assert_int_equal(layer, LAYER_USER);
	assert_true(config_policy(config, NULL, "mine", WORKSPACE, &own, &err));
	assert_string_equal(own->tools.items[0], "u");
}

static void either_name_of_a_role_finds_its_entries(void **state)
{
	auto_config struct config *config = NULL;
	auto_policy struct policy *policy = NULL;
	auto_policy struct policy *same = NULL;
	struct err err;

	(void)state;
	assert_true(config_parse(STR("{\"agents\": {\"VajbCoder\": {\"limits\": {\"read_bytes\": "
				     "\"100K\"}}}}"),
				 "c.json", &config, &err));
	assert_string_equal(config_role_name(config, "VajbCoder"), "coder");
	assert_true(config_policy(config, NULL, "VajbCoder", "/w", &policy, &err));
	assert_string_equal(policy->name, "VajbCoder");
	assert_int_equal(policy->limits.read_bytes, 100 << 10);
	assert_true(config_policy(config, NULL, "coder", "/w", &same, &err));
	assert_int_equal(same->limits.read_bytes, 100 << 10);
	/* An agent of that name is its own. */
	config_know_agent(config, "VajbCoder");
	assert_string_equal(config_role_name(config, "VajbCoder"), "VajbCoder");
	assert_false(config_says(config, "coder"));
}

static void checks_are_laid_over_by_name(void **state)
{
	auto_value struct value *shipped = value_of(
		"{\"checks\": {\"build\": {\"command\": \"make\", \"timeout_s\": 9},"
		" \"tests\": \"make test\"}, \"thinking_budget\": 2048,"
		" \"may_delegate_to\": [\"b\"]}");
	auto_config struct config *config = NULL;
	struct config_role role = {0};
	const struct value *build;
	struct err err = {0};

	(void)state;
	assert_true(config_parse(STR("{\"agents\": {\"a\": {\"checks\": {\"build\":"
				     " {\"run_tests\": {}}}}}}"),
				 "c", &config, &err));
	assert_true(config_role(config, shipped, "a", &role, &err));
	build = value_member(role.checks, "build");
	assert_int_equal(value_count(role.checks), 2);
	assert_int_equal(value_count(build), 1);
	assert_non_null(value_member(build, "run_tests"));
	assert_int_equal(role.thinking_budget, 2048);
	assert_true(role.may_delegate_to.given && role.may_delegate_to.count == 1);
	config_role_fini(&role);
	assert_true(config_role(config, NULL, "default", &role, &err));
	assert_null(role.checks);
	assert_false(role.may_delegate_to.given);
	config_role_fini(&role);
}

static void wrong_checks_are_named(void **state)
{
	static const struct {
		const char *checks, *error;
	} rows[] = {
		{"[]", "e: /checks: must be an object, not array"},
		{"{\"a\": \"\"}", "e: /checks/a: may not be empty"},
		{"{\"a\": 1}", "e: /checks/a: must be an object"},
		{"{\"a\": {}}",
		 "e: /checks/a: must have one of \"command\" and \"run_tests\""},
		{"{\"a\": {\"command\": \"x\", \"run_tests\": {}}}",
		 "e: /checks/a: must have one"},
		{"{\"a\": {\"comand\": \"x\"}}",
		 "e: /checks/a: there is no key \"comand\" (did you mean \"command\"?)"},
		{"{\"a\": {\"command\": \"x\", \"timeout_s\": 0}}",
		 "e: /checks/a/timeout_s: must be 0.001"},
		{"{\"\": \"x\"}", "e: /checks: the name of a check has 1 to 64 bytes"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[256];
		struct err err = {0};

		(void)snprintf(text, sizeof(text), "{\"checks\": %s}", rows[i].checks);
		auto_value struct value *entry = value_of(text);

		if (config_check_entry(entry, "e", &err))
			fail_msg("%s was taken", rows[i].checks);
		if (strncmp(err.text, rows[i].error, strlen(rows[i].error)) != 0)
			fail_msg("%s: %s", rows[i].checks, err.text);
	}
}

#define PLUGINS "\"plugins\": [\"bash:x\"]"

static struct config *config_of(const char *text)
{
	struct config *config = NULL;
	struct err err = {0};

	if (!config_parse(str_of(text), "config.json", &config, &err))
		fail_msg("%s: %s", text, err.text);
	return config;
}

static void assert_values(const struct config *config, const char *agent, const char *json)
{
	auto_value struct value *values = config_plugin_values(config, agent);
	struct buf text;

	buf_init(&text, 4096);
	assert_true(value_print(values, VALUE_SORTED, &text));
	assert_string_equal(text.data, json);
	buf_fini(&text);
}

static void keys_of_plugins_stand_where_they_are_written(void **state)
{
	auto_config struct config *config = config_of(
		"{" PLUGINS ", \"user\": \"top\", \"port\": 1, \"working_directory\": \"w\","
		" \"plugin_config\": {\"port\": 2, \"pass\": \"p\"},"
		" \"agents\": {\"VajbCoder\": {\"model\": \"m\", \"user\": \"own\"},"
		" \"b\": {\"working_directory\": \"v\"}}}");
	auto_value struct value *entry = NULL;
	struct err err = {0};

	(void)state;
	assert_values(config, "default",
		      "{\"pass\":\"p\",\"port\":2,\"user\":\"top\",\"working_directory\":\"w\"}");
	assert_values(config, "b",
		      "{\"pass\":\"p\",\"port\":2,\"user\":\"top\",\"working_directory\":\"v\"}");
	assert_values(config, "coder",
		      "{\"pass\":\"p\",\"port\":2,\"user\":\"own\",\"working_directory\":\"w\"}");
	assert_values(NULL, "coder", "{}");
	/* A policy is made of rows alone, and so are the rights of delegates. */
	assert_true(config_entry(config, NULL, "b", &entry, &err));
	assert_true(config_check_entry(entry, "b", &err));
	/* Of Glovebox's own keys one may be asked for, and stands where it always does. */
	assert_string_equal(value_text(config_own_value(config, "coder", "model")), "m");
	assert_null(config_own_value(config, "b", "model"));
	assert_string_equal(value_text(config_own_value(config, "b", "working_directory")),
			    "v");
}

static void a_key_that_no_plugin_declares_is_a_slip(void **state)
{
	static const struct {
		const char *text, *sentence;
	} cases[] = {
		{"{" PLUGINS ", \"mail_user\": 1, \"agents\": {\"a\": {\"mail_pass\": 1}}}",
		 NULL},
		{"{" PLUGINS ", \"mail_usr\": 1}",
		 "the configuration: /: there is no key \"mail_usr\" (did you mean \"mail_user\"?), "
		 "and no plugin declares it in its config_keys"},
		{"{" PLUGINS ", \"agents\": {\"a\": {\"comands\": \"list\"}}}",
		 "the configuration: /agents/a: there is no key \"comands\" (did you mean "
		 "\"commands\"?), and no plugin declares it in its config_keys"},
		{"{" PLUGINS ", \"minimum_levl\": \"L0\"}",
		 "the configuration: /: there is no key \"minimum_levl\" (did you mean "
		 "\"minimum_level\"?), and no plugin declares it in its config_keys"},
	};
	auto_value struct value *asked = value_of("[\"mail_user\", \"mail_pass\"]");
	struct err err = {0};

	(void)state;
	assert_true(config_check_plugin_keys(NULL, asked, &err));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_config struct config *config = config_of(cases[i].text);
		bool fine = config_check_plugin_keys(config, asked, &err);

		if (fine != (cases[i].sentence == NULL))
			fail_msg("%s: %s", cases[i].text, err.text);
		if (!fine)
			assert_string_equal(err.text, cases[i].sentence);
	}
}

static void without_plugins_no_key_can_be_theirs(void **state)
{
	static const char *const texts[] = {
		"{\"mail_user\": 1}",
		"{\"plugins\": [], \"mail_user\": 1}",
		"{\"agents\": {\"a\": {\"mail_user\": 1}}}",
		/* These are no entries of the configuration. */
		"{" PLUGINS ", \"plugin_policy\": {\"mail_user\": 1}}",
		"{" PLUGINS ", \"agents\": {\"a\": {\"limits\": {\"mail_user\": 1}}}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct config *config = NULL;
		struct err err = {0};

		assert_false(config_parse(str_of(texts[i]), "c", &config, &err));
		assert_non_null(strstr(err.text, "there is no key \"mail_user\""));
	}
}

static void a_policy_file_is_one_entry(void **state)
{
	auto_value struct value *entry = NULL;
	struct err err = {0};

	(void)state;
	assert_true(config_parse_policy(STR("{ // a\n \"write\": [\"o\"]}"), "p", &entry,
					&err));
	assert_int_equal(value_count(entry), 1);
	assert_false(config_parse_policy(STR("{\"prompt\": \"x\"}"), "p", &entry, &err));
	assert_string_equal(err.text, "p: /prompt: is a key of an agent, not of a policy");
	assert_false(config_parse_policy(STR("{\"agents\": {}}"), "p", &entry, &err));
	assert_false(config_parse_policy(STR(""), "p", &entry, &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comments_and_nothing_are_taken),
		cmocka_unit_test(what_is_wrong_is_named_with_its_place),
		cmocka_unit_test(a_huge_text_is_refused),
		cmocka_unit_test(defaults_hold_where_nothing_is_said),
		cmocka_unit_test(the_person_beats_the_config_beats_the_role),
		cmocka_unit_test(a_write_of_the_config_must_exist),
		cmocka_unit_test(an_absent_temperature_is_the_providers),
		cmocka_unit_test(an_unknown_agent_is_answered_with_those_there_are),
		cmocka_unit_test(what_the_person_asks_is_checked_too),
		cmocka_unit_test(the_highest_layer_is_found),
		cmocka_unit_test(a_role_of_the_user_lies_between),
		cmocka_unit_test(either_name_of_a_role_finds_its_entries),
		cmocka_unit_test(checks_are_laid_over_by_name),
		cmocka_unit_test(wrong_checks_are_named),
		cmocka_unit_test(keys_of_plugins_stand_where_they_are_written),
		cmocka_unit_test(a_key_that_no_plugin_declares_is_a_slip),
		cmocka_unit_test(without_plugins_no_key_can_be_theirs),
		cmocka_unit_test(a_policy_file_is_one_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
