/* policy_decide: the verdict as tables, and the sentence a model reads. */
#include "policy/policy.h"

#include "policy/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WORKSPACE "/ws/project"

static const struct policy_tool all_tools[] = {
	{"read_file", NULL, POLICY_READS, false},
	{"grep", "grep_codebase", POLICY_READS, false},
	{"write_file", NULL, POLICY_WRITES, false},
	{"edit_file", NULL, POLICY_READS | POLICY_WRITES, false},
	{"bash", NULL, POLICY_READS | POLICY_WRITES | POLICY_RUNS, false},
	{"delegate_agent", NULL, 0, true},
	{"present_plan", NULL, 0, true, .plans = true},
};

enum { ALL_TOOLS = sizeof(all_tools) / sizeof(all_tools[0]) };

static struct policy *policy_of(const char *agent, const char *text)
{
	auto_config struct config *config = NULL;
	struct policy *policy = NULL;
	struct err err = {0};

	if (!config_parse(str_of(text), "test", &config, &err) ||
	    !config_policy(config, NULL, agent, WORKSPACE, &policy, &err) ||
	    !policy_check_tools(policy, all_tools, ALL_TOOLS, &err))
		fail_msg("%s", err.text);
	policy_show(policy, "/usr", false);
	policy_show(policy, "/tmp", true);
	return policy;
}

static unsigned effects_of(const char *tool)
{
	for (size_t i = 0; tool && i < ALL_TOOLS; i++) {
		if (strcmp(all_tools[i].name, tool) == 0)
			return all_tools[i].effects;
	}
	return 0;
}

static struct verdict verdict_of(const struct policy *policy, const char *tool,
				 const char *path, bool writes)
{
	const struct policy_request_path paths[] = {{path, writes}};
	const struct policy_request request = {tool, effects_of(tool), paths, path ? 1 : 0};
	struct verdict verdict;

	memset(&verdict, 0xff, sizeof(verdict));
	policy_decide(policy, &request, &verdict);
	return verdict;
}

static const char tester[] =
	"{\"agents\": {\"tester\": {\"write\": [\"tests/\", \"docs/a\"], \"blocked\": [\"tests/secret\"],"
	" \"read\": [\".\", \"/srv/data\"]}}}";

static void paths_are_judged_component_by_component(void **state)
{
	static const struct {
		const char *path;
		bool writes;
		bool allowed;
	} rows[] = {
		{WORKSPACE, false, true},
		{WORKSPACE "/src/a.c", false, true},
		{WORKSPACE "/src/a.c", true, false},
		{WORKSPACE "/tests", true, true},
		{WORKSPACE "/tests/a/b.c", true, true},
		{WORKSPACE "/tests2/a.c", true, false},
		{WORKSPACE "/test", true, false},
		{WORKSPACE "/docs/a", true, true},
		{WORKSPACE "/docs/ab", true, false},
		{WORKSPACE "/docs", true, false},
		{WORKSPACE "/tests/secret", false, false},
		{WORKSPACE "/tests/secret/x", false, false},
		{WORKSPACE "/tests/secret/x", true, false},
		{WORKSPACE "/tests/secrets", true, true},
		{"/srv/data/x", false, true},
		{"/srv/data/x", true, false},
		{"/srv/database", false, false},
		{"/usr/include/stdio.h", false, true},
		{"/usr/include/stdio.h", true, false},
		{"/tmp/x", true, true},
		{"/tmp", false, true},
		{"/etc/shadow", false, false},
		{"/ws", false, false},
		{"/", false, false},
		{"/", true, false},
	};
	auto_policy struct policy *policy = policy_of("tester", tester);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct verdict verdict =
			verdict_of(policy, rows[i].writes ? "write_file" : "read_file",
				   rows[i].path, rows[i].writes);
		bool allowed = verdict.answer == VERDICT_ALLOW;

		if (allowed != rows[i].allowed)
			fail_msg("%s %s: %s", rows[i].path,
				 rows[i].writes ? "written" : "read", verdict.because);
		assert_int_equal(verdict.because[0] == '\0', allowed);
		assert_int_equal(verdict.rule[0] == '\0', allowed);
	}
}

static void a_workspace_below_a_shown_root_is_no_part_of_it(void **state)
{
	auto_policy struct policy *policy = policy_of("tester", tester);

	(void)state;
	policy_show(policy, "/ws", true);
	policy_show(policy, "/srv", true);
	assert_int_equal(verdict_of(policy, "write_file", WORKSPACE "/src/a.c", true).answer,
			 VERDICT_DENY);
	assert_int_equal(verdict_of(policy, "write_file", "/srv/data/x", true).answer,
			 VERDICT_DENY);
	assert_int_equal(verdict_of(policy, "write_file", WORKSPACE "/tests/a.c", true).answer,
			 VERDICT_ALLOW);
	assert_int_equal(verdict_of(policy, "write_file", "/ws/other", true).answer,
			 VERDICT_ALLOW);
	assert_int_equal(verdict_of(policy, "read_file", WORKSPACE "/src/a.c", false).answer,
			 VERDICT_ALLOW);
}

static void what_is_no_normal_path_is_denied(void **state)
{
	static const char *const paths[] = {
		"",
		"tests/a.c",
		"../etc/passwd",
		WORKSPACE "/tests/../src/a.c",
		WORKSPACE "/tests/./a.c",
		WORKSPACE "//tests/a.c",
		WORKSPACE "/tests/",
		WORKSPACE "/..",
		"//",
	};
	auto_policy struct policy *policy = policy_of("tester", tester);

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct verdict verdict = verdict_of(policy, "read_file", paths[i], false);

		assert_int_equal(verdict.answer, VERDICT_DENY);
		assert_non_null(strstr(verdict.because, "cannot be judged"));
	}
}

static void a_denial_names_rule_and_remedy(void **state)
{
	static const struct {
		const char *tool, *path;
		bool writes;
		const char *rule, *because;
	} rows[] = {
		{"write_file", WORKSPACE "/src/a.c", true, "agents.tester.write",
		 "write_file may not write src/a.c: agent \"tester\" writes only below tests/ and "
		 "docs/a. Write there, or ask the user to add \"src\" to agents.tester.write in the "
		 "configuration."},
		{"write_file", WORKSPACE "/a.c", true, "agents.tester.write",
		 "write_file may not write a.c: agent \"tester\" writes only below tests/ and docs/a. "
		 "Write there, or ask the user to add \"a.c\" to agents.tester.write in the "
		 "configuration, and to make it first if it is missing."},
		{"read_file", "/home/eve/notes", false, "agents.tester.read",
		 "read_file may not read /home/eve/notes: agent \"tester\" reads only below the "
		 "workspace and /srv/data. Read there, or ask the user to add \"/home/eve/notes\" "
		 "to agents.tester.read in the configuration."},
		{"read_file", "/x", false, "agents.tester.read",
		 "read_file may not read /x: agent \"tester\" reads only below the workspace and "
		 "/srv/data. Read there (in the workspace it would be x), or ask the user to add "
		 "\"/x\" to agents.tester.read in the "
		 "configuration."},
		{"write_file", "/src/a.c", true, "agents.tester.write",
		 "write_file may not write /src/a.c: agent \"tester\" writes only below tests/ and "
		 "docs/a. Write there (in the workspace it would be src/a.c), or ask the user to add "
		 "\"/src/a.c\" to agents.tester.write in the configuration, and to make it first if "
		 "it is missing."},
		{"read_file", WORKSPACE "/tests/secret/k", false, "agents.tester.blocked",
		 "read_file may not read tests/secret/k: tests/secret is blocked by the policy of agent "
		 "\"tester\". Do without it; only the user can take it out of agents.tester.blocked "
		 "in the configuration."},
		{"delegate_agent", NULL, false, "agents.tester.tools",
		 "agent \"tester\" has no tool delegate_agent; it has read_file, grep, write_file, "
		 "edit_file and bash. Use one of these, or ask the user to add \"delegate_agent\" to "
		 "agents.tester.tools in the configuration."},
	};
	auto_policy struct policy *policy = policy_of("tester", tester);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct verdict verdict =
			verdict_of(policy, rows[i].tool, rows[i].path, rows[i].writes);

		assert_int_equal(verdict.answer, VERDICT_DENY);
		assert_string_equal(verdict.rule, rows[i].rule);
		assert_string_equal(verdict.because, rows[i].because);
	}
}

/* What a person is advised to add for PATH, or the words in its place. */
static void check_advice(const struct policy *policy, const char *path, bool writes,
			 const char *expected)
{
	static const char before[] = "ask the user to add \"";
	struct verdict verdict;
	char *text;

	policy_judge_path(policy, path, writes, false, &verdict);
	assert_int_equal(verdict.answer, VERDICT_DENY);
	text = strstr(verdict.because, before);
	if (text != NULL) {
		text += sizeof(before) - 1;
		text[strcspn(text, "\"")] = '\0';
	}
	assert_string_equal(text != NULL ? text : verdict.because, expected);
}

static void advice_is_the_narrowest_entry_that_helps(void **state)
{
	static const struct {
		const char *path;
		bool writes;
		const char *advice;
	} rows[] = {
		{"/var/lib/data/x", false, "/var/lib/data"},
		{"/data/x", false, "/data/x"},
		{"/home/ann/x", false, "/home/ann/x"},
		{"/home/ann/notes/x", false, "/home/ann/notes"},
		{"/home/ann/.nvm/versions/node/v1/bin/node", false,
		 "/home/ann/.nvm/versions"},
		{"/home/ann/.config/x", false, "/home/ann/.config/x"},
		{"/root/x", false, "/root/x"},
		{"/home/ann/.ssh/id", false, "do without it: no entry opens /home/ann/.ssh"},
		{"/proc/sys/x", true, "do without it: no entry opens /proc"},
		{"/home/ann", false,
		 "ask the user to add the file or folder below it that is wanted to "
		 "agents.tester.read in the configuration"},
		{"/", false,
		 "ask the user to add the file or folder below it that is wanted to "
		 "agents.tester.read in the configuration"},
		{"/usr/local/bin/x", true,
		 "put it into the workspace or the cell's own home (~): the system is read-only "
		 "in every cell"},
	};
	auto_policy struct policy *policy = policy_of("tester", tester);

	(void)state;
	policy_advise(policy, "/home/ann", ADVICE_NOT_WHOLE);
	policy_advise(policy, "/home/ann/.ssh", ADVICE_NOTHING);
	policy_advise(policy, "/home/ann/.config/gh", ADVICE_NOTHING);
	policy_advise(policy, "/home/ann/.nvm/versions", ADVICE_WHOLE);
	policy_advise(policy, "/proc", ADVICE_NOTHING);
	policy_advise(policy, "/usr", ADVICE_NOT_WRITTEN);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_advice(policy, rows[i].path, rows[i].writes, rows[i].advice);
	/* Beside the workspace: not the folder that holds both. */
	check_advice(policy, "/ws/sibling", false, "/ws/sibling");
}

static void the_deeper_entry_of_read_and_write_holds(void **state)
{
	static const struct {
		const char *path;
		bool allowed,
			by_program; /* with `scratch`, which changes nothing for file tools */
	} rows[] = {
		{WORKSPACE "/a", true, true},
		{WORKSPACE "/vendor", false, true},
		{WORKSPACE "/vendor/x", false, true},
		{WORKSPACE "/vendor/out", true, true},
		{WORKSPACE "/vendor/out/x", true, true},
		{WORKSPACE "/vendors", true, true},
		{WORKSPACE "/keys/x", false, false},
		{"/srv/data", false, true},
		{"/usr/x", false, false},
	};
	static const char keys[] =
		"\"write\": [\".\", \"vendor/out\"], \"blocked\": [\"keys\"],"
		" \"read\": [\".\", \"vendor\", \"/srv\"]";
	char text[512];

	(void)state;
	for (int scratch = 0; scratch < 2; scratch++) {
		(void)snprintf(text, sizeof(text),
			       "{\"agents\": {\"a\": {\"scratch\": %s, %s}}}",
			       scratch ? "true" : "false", keys);
		auto_policy struct policy *policy = policy_of("a", text);

		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct verdict verdict =
				verdict_of(policy, "write_file", rows[i].path, true);
			if ((verdict.answer == VERDICT_ALLOW) != rows[i].allowed)
				fail_msg("%s, scratch %d: %s", rows[i].path, scratch,
					 verdict.because);
			policy_judge_path(policy, rows[i].path, true, true, &verdict);
			if ((verdict.answer == VERDICT_ALLOW) !=
			    (scratch ? rows[i].by_program : rows[i].allowed))
				fail_msg("%s by a program, scratch %d: %s", rows[i].path,
					 scratch, verdict.because);
		}
		struct verdict verdict =
			verdict_of(policy, "write_file", WORKSPACE "/vendor/x", true);

		assert_string_equal(verdict.rule, "agents.a.read");
		assert_string_equal(
			verdict.because,
			"write_file may not write vendor/x: vendor is to be read only by "
			"agent \"a\". Do without it, or ask the user to take it out of "
			"agents.a.read in the configuration.");
	}
}

static void who_writes_nothing_is_told_so(void **state)
{
	auto_policy struct policy *policy = policy_of("default", "");
	struct verdict verdict = verdict_of(policy, "write_file", WORKSPACE "/a.c", true);

	(void)state;
	assert_int_equal(verdict.answer, VERDICT_DENY);
	assert_string_equal(
		verdict.because,
		"write_file may not write a.c: agent \"default\" writes nothing here. Do "
		"without it, or ask the user to add \"a.c\" to agents.default.write in the "
		"configuration, and to make it first if it is missing.");
	verdict = verdict_of(policy, "write_file", NULL, false);
	assert_int_equal(verdict.answer, VERDICT_DENY);
	assert_string_equal(verdict.rule, "agents.default.write");
	/* What a command may change is for the kernel to say. */
	assert_int_equal(verdict_of(policy, "bash", NULL, false).answer, VERDICT_ALLOW);
}

static void a_pattern_holds_for_writing_and_shows_its_folder(void **state)
{
	static const struct {
		const char *path;
		bool writes;
		bool allowed;
	} rows[] = {
		{WORKSPACE "/README.md", true, true},
		{WORKSPACE "/a/b/c.md", true, true},
		{WORKSPACE "/a/b/c.mdx", true, false},
		{WORKSPACE "/main.c", true, false},
		{WORKSPACE "/docs/any.c", true, true},
		{WORKSPACE "/lib/x.txt", true, true},
		{WORKSPACE "/lib/x.c", true, false},
		{WORKSPACE "/main.c", false, true},
	};
	auto_policy struct policy *policy =
		policy_of("documenter",
			  "{\"agents\": {\"documenter\": {\"tools\": [\"read_file\","
			  " \"write_file\"], \"write\": [\"docs\", \"*.md\","
			  " \"lib/*.txt\"]}}}");
	struct verdict verdict;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		verdict = verdict_of(policy, rows[i].writes ? "write_file" : "read_file",
				     rows[i].path, rows[i].writes);
		if ((verdict.answer == VERDICT_ALLOW) != rows[i].allowed)
			fail_msg("%s: %s", rows[i].path, verdict.because);
	}
	verdict = verdict_of(policy, "write_file", WORKSPACE "/main.c", true);
	assert_non_null(
		strstr(verdict.because,
		       "writes only below docs, *.md in the workspace and *.txt in lib."));
}

static void each_path_of_a_request_must_be_allowed(void **state)
{
	const struct policy_request_path paths[] = {
		{WORKSPACE "/tests/a", true},
		{WORKSPACE "/src/b", false},
		{WORKSPACE "/src/c", true},
	};
	auto_policy struct policy *policy = policy_of("tester", tester);
	struct policy_request request = {"edit_file", POLICY_WRITES, paths, 2};
	struct verdict verdict;

	(void)state;
	policy_decide(policy, &request, &verdict);
	assert_int_equal(verdict.answer, VERDICT_ALLOW);
	request.path_count = 3;
	policy_decide(policy, &request, &verdict);
	assert_int_equal(verdict.answer, VERDICT_DENY);
	assert_non_null(strstr(verdict.because, "src/c"));
}

static void the_real_path_takes_the_place_of_the_text(void **state)
{
	auto_policy struct policy *policy =
		policy_of("tester", "{\"agents\": {\"tester\": {\"write\": [\"/link\"]}}}");

	(void)state;
	policy_set_path(&policy->write.items[0], "/real/place");
	assert_int_equal(verdict_of(policy, "write_file", "/link/a", true).answer,
			 VERDICT_DENY);
	assert_int_equal(verdict_of(policy, "write_file", "/real/place/a", true).answer,
			 VERDICT_ALLOW);
}

static void a_policy_nobody_filled_in_denies(void **state)
{
	auto_policy struct policy *policy = policy_new(NULL, WORKSPACE);

	(void)state;
	assert_int_equal(VERDICT_DENY, 0);
	assert_int_equal(verdict_of(policy, "read_file", WORKSPACE, false).answer,
			 VERDICT_DENY);
	assert_int_equal(verdict_of(policy, NULL, NULL, false).answer, VERDICT_DENY);
}

static void long_and_strange_paths_stay_readable(void **state)
{
	auto_policy struct policy *policy = policy_of("tester", tester);
	char path[4096];
	struct verdict verdict;

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	memcpy(path, "/a\033[31m\n/", 9);
	verdict = verdict_of(policy, "write_file", path, true);
	assert_int_equal(verdict.answer, VERDICT_DENY);
	assert_null(strchr(verdict.because, '\033'));
	assert_non_null(strstr(verdict.because, "in the configuration, and"));
}

static void tools_are_settled_against_those_there_are(void **state)
{
	static const struct {
		const char *entry, *error;
	} rows[] = {
		{"{\"tools\": [\"read_fil\"]}",
		 "agents.a.tools: there is no tool \"read_fil\" (did you mean \"read_file\"?); there "
		 "are read_file, grep, write_file, edit_file, bash, delegate_agent"},
		{"{\"write\": [\"*.md\"]}",
		 "agents.a.write: the pattern \"*.md\" cannot hold for an agent with the tool bash, "
		 "whose commands the kernel keeps to folders only; name a folder, or leave bash out of "
		 "agents.a.tools"},
	};
	auto_policy struct policy *policy = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_config struct config *config = config_new();
		auto_value struct value *entry = NULL;
		auto_policy struct policy *refused = NULL;
		struct err err = {0};

		assert_true(value_parse(str_of(rows[i].entry), 0, &entry, &err));
		config_know_agent(config, "a");
		assert_true(config_policy(config, entry, "a", WORKSPACE, &refused, &err));
		assert_false(policy_check_tools(refused, all_tools, ALL_TOOLS, &err));
		assert_string_equal(err.text, rows[i].error);
	}
	policy = policy_of("a", "{\"agents\": {\"a\": {\"tools\": [\"grep_codebase\"]}}}");
	assert_true(policy_has_tool(policy, "grep"));
	assert_false(policy_has_tool(policy, "grep_codebase"));
	assert_false(policy_has_tool(policy, "bash"));
}

/* What is named is asked for, and nothing else: blocked and protected paths stay refused. */
static void what_lies_outside_is_asked_for_where_ask_names_it(void **state)
{
	static const struct {
		const char *path;
		bool writes;
		enum verdict_answer answer;
	} rows[] = {
		{"/ws/project/a.c", false, VERDICT_ALLOW},
		{"/home/eve/b.c", false, VERDICT_ASK},
		{"/home/eve/b.c", true, VERDICT_DENY},
		{"/ws/project/tests/secret/x", false, VERDICT_DENY},
		{"/home/../etc", false, VERDICT_DENY},
	};
	auto_policy struct policy *policy = policy_of("tester", tester);
	struct verdict verdict;

	(void)state;
	assert_int_equal(verdict_of(policy, "read_file", "/home/eve/b.c", false).answer,
			 VERDICT_DENY);
	assert_true(policy_add_ask(policy, "read", "test", NULL));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		verdict = verdict_of(policy, "edit_file", rows[i].path, rows[i].writes);
		if (verdict.answer != rows[i].answer)
			fail_msg("%s: %d", rows[i].path, verdict.answer);
		assert_true((verdict.outside != NULL) == (rows[i].answer == VERDICT_ASK));
	}
	assert_true(policy_add_ask(policy, "write", "test", NULL));
	verdict = verdict_of(policy, "edit_file", "/home/eve/b.c", true);
	assert_int_equal(verdict.answer, VERDICT_ASK);
	assert_string_equal(verdict.rule, "agents.tester.write");
	assert_int_equal(verdict_of(policy, "edit_file", "/ws/project/tests/secret", true).answer,
			 VERDICT_DENY);
	/* An entry of `read` inside of a writable folder says that it stays as it is. */
	auto_policy struct policy *held =
		policy_of("a", "{\"agents\": {\"a\": {\"write\": [\".\"], \"read\": [\".\", \"kept\"],"
			       " \"ask\": [\"write\"]}}}");
	assert_int_equal(verdict_of(held, "edit_file", "/ws/project/kept/x", true).answer,
			 VERDICT_DENY);
}

static void what_is_wanted_is_judged_no_more_but_for_what_is_blocked(void **state)
{
	auto_policy struct policy *policy = policy_of("tester", tester);
	struct policy_request_path paths[] = {{"/home/eve/b.c", false, true},
					      {"/ws/project/tests/secret/x", false, true}};
	struct policy_request request = {"read_file", POLICY_READS, paths, 1};
	struct verdict verdict;

	(void)state;
	policy_decide(policy, &request, &verdict);
	assert_int_equal(verdict.answer, VERDICT_ALLOW);
	request.path_count = 2;
	policy_decide(policy, &request, &verdict);
	assert_int_equal(verdict.answer, VERDICT_DENY);
	assert_string_equal(verdict.rule, "agents.tester.blocked");
}

static enum verdict_answer answer_to(const struct policy *policy, const char *tool,
				     unsigned effects, bool by_front)
{
	const struct policy_request_path path = {"/ws/project/a.c",
						 (effects & POLICY_WRITES) != 0};
	const struct policy_request request = {
		.tool = tool,
		.effects = effects,
		.paths = &path,
		.path_count = 1,
		.by_front = by_front,
	};
	struct verdict verdict;

	policy_decide(policy, &request, &verdict);
	return verdict.answer;
}

static const char worker[] = "{\"agents\": {\"a\": {\"write\": [\".\", \"/srv\"],"
			     " \"ask\": [\"write\", \"read\"], \"review\": true}}}";

static void what_writes_or_runs_is_asked_about_in_mode_ask(void **state)
{
	auto_policy struct policy *policy = policy_of("a", worker);
	struct verdict verdict;

	(void)state;
	policy_set_mode(policy, MODE_ASK);
	assert_int_equal(answer_to(policy, "edit_file", POLICY_WRITES, false), VERDICT_ASK);
	assert_int_equal(answer_to(policy, "bash", POLICY_RUNS, false), VERDICT_ASK);
	assert_int_equal(answer_to(policy, "read_file", POLICY_READS, false), VERDICT_ALLOW);
	assert_int_equal(answer_to(policy, "bash", POLICY_RUNS, true), VERDICT_ALLOW);
	verdict = verdict_of(policy, "edit_file", "/ws/project/a.c", true);
	assert_string_equal(verdict.rule, "agents.a.mode");
	policy_set_mode(policy, MODE_AUTO);
	assert_int_equal(answer_to(policy, "bash", POLICY_RUNS, false), VERDICT_ALLOW);
}

static void mode_plan_writes_nothing_and_reads_as_before(void **state)
{
	auto_policy struct policy *policy = policy_of("a", worker);

	(void)state;
	policy_set_mode(policy, MODE_PLAN);
	assert_true(policy_check_tools(policy, all_tools, ALL_TOOLS, NULL));
	assert_int_equal(answer_to(policy, "edit_file", POLICY_WRITES, false), VERDICT_DENY);
	assert_int_equal(verdict_of(policy, "read_file", "/srv/x", false).answer,
			 VERDICT_ALLOW);
	assert_int_equal(policy->write.count, 0);
	assert_true(policy->scratch && !policy->review);
	assert_false(policy_asks(policy, "write"));
	assert_true(policy_asks(policy, "read"));
	assert_false(policy_has_tool(policy, "edit_file"));
	assert_true(policy_has_tool(policy, "bash"));
	assert_true(policy_has_tool(policy, "present_plan"));
}

static void two_policies_have_the_stricter_mode(void **state)
{
	auto_policy struct policy *policy = policy_of("a", worker);
	auto_policy struct policy *other = policy_of("a", worker);

	(void)state;
	policy_set_mode(other, MODE_ASK);
	auto_policy struct policy *both = policy_intersect(policy, other);
	assert_int_equal(both->mode, MODE_ASK);
	auto_policy struct policy *again = policy_intersect(other, policy);
	assert_int_equal(again->mode, MODE_ASK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_judged_component_by_component),
		cmocka_unit_test(what_is_no_normal_path_is_denied),
		cmocka_unit_test(a_denial_names_rule_and_remedy),
		cmocka_unit_test(advice_is_the_narrowest_entry_that_helps),
		cmocka_unit_test(the_deeper_entry_of_read_and_write_holds),
		cmocka_unit_test(who_writes_nothing_is_told_so),
		cmocka_unit_test(a_pattern_holds_for_writing_and_shows_its_folder),
		cmocka_unit_test(a_workspace_below_a_shown_root_is_no_part_of_it),
		cmocka_unit_test(each_path_of_a_request_must_be_allowed),
		cmocka_unit_test(the_real_path_takes_the_place_of_the_text),
		cmocka_unit_test(a_policy_nobody_filled_in_denies),
		cmocka_unit_test(long_and_strange_paths_stay_readable),
		cmocka_unit_test(tools_are_settled_against_those_there_are),
		cmocka_unit_test(what_lies_outside_is_asked_for_where_ask_names_it),
		cmocka_unit_test(what_is_wanted_is_judged_no_more_but_for_what_is_blocked),
		cmocka_unit_test(what_writes_or_runs_is_asked_about_in_mode_ask),
		cmocka_unit_test(mode_plan_writes_nothing_and_reads_as_before),
		cmocka_unit_test(two_policies_have_the_stricter_mode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
