/*
 * policy_intersect: what two policies grant together, as tables, and on random pairs that it is
 * never more than either of them grants.
 */
#include "policy/policy.h"

#include "base/memory.h"
#include "policy/commands.h"
#include "policy/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORKSPACE "/ws/project"

static const struct policy_tool all_tools[] = {
	{"read_file", NULL, POLICY_READS, false},
	{"grep", "grep_codebase", POLICY_READS, false},
	{"write_file", NULL, POLICY_WRITES, false},
	{"run_tests", NULL, POLICY_READS | POLICY_WRITES | POLICY_RUNS, false},
	{"bash", NULL, POLICY_READS | POLICY_WRITES | POLICY_RUNS, false},
	{"delegate_agent", NULL, 0, true},
};

enum { ALL_TOOLS = sizeof(all_tools) / sizeof(all_tools[0]) };

/* A tool that runs nothing goes with patterns. */
#define NO_COMMANDS "\"tools\": [\"read_file\", \"grep\", \"write_file\"], "

static struct policy *policy_of(const char *name, const char *entry_text)
{
	auto_value struct value *entry = NULL;
	struct policy *policy = NULL;
	struct err err = {0};

	if (!value_parse(str_of(entry_text), VALUE_COMMENTS, &entry, &err) ||
	    !config_policy(NULL, entry, name, WORKSPACE, &policy, &err) ||
	    !policy_check_tools(policy, all_tools, ALL_TOOLS, &err))
		fail_msg("%s: %s", entry_text, err.text);
	return policy;
}

static struct policy *both_of(const char *a, const char *b)
{
	auto_policy struct policy *first = policy_of("a", a);
	auto_policy struct policy *second = policy_of("b", b);

	return policy_intersect(first, second);
}

static bool allows(const struct policy *policy, const char *path, bool writes)
{
	struct verdict verdict;

	policy_judge_path(policy, path, writes, true, &verdict);
	return verdict.answer == VERDICT_ALLOW;
}

static void paths_are_those_that_both_grant(void **state)
{
	static const struct {
		const char *a, *b, *path;
		bool read, write;
	} rows[] = {
		{"{\"write\": [\".\"]}", "{\"write\": [\"tests\"]}", "/tests/a", true, true},
		{"{\"write\": [\".\"]}", "{\"write\": [\"tests\"]}", "/src/a", true, false},
		{"{\"write\": [\"src\"]}", "{\"write\": [\"tests\"]}", "/src/a", true, false},
		{"{\"write\": [\"src\"]}", "{\"write\": [\"tests\"]}", "/tests/a", true,
		 false},
		{"{\"write\": [\"src\", \"docs\"]}", "{\"write\": [\"docs/x\", \"src\"]}",
		 "/docs/y", true, false},
		{"{\"write\": [\"src\", \"docs\"]}", "{\"write\": [\"docs/x\", \"src\"]}",
		 "/docs/x/y", true, true},
		/* what one of them only reads stays so */
		{"{\"write\": [\".\"], \"read\": [\".\", \"vendor\"]}",
		 "{\"write\": [\"vendor/x\"]}", "/vendor/x/f", true, false},
		{"{\"write\": [\".\"], \"read\": [\".\", \"vendor\"]}",
		 "{\"write\": [\".\"]}", "/vendor/x", true, false},
		{"{\"write\": [\".\"], \"read\": [\".\", \"vendor\"]}",
		 "{\"write\": [\".\"]}", "/src/x", true, true},
		{"{\"write\": [\".\", \"vendor/x\"], \"read\": [\".\", \"vendor\"]}",
		 "{\"write\": [\"vendor\"]}", "/vendor/x/f", true, true},
		/* reading */
		{"{\"read\": [\"src\"]}", "{\"read\": [\".\"]}", "/src/a", true, false},
		{"{\"read\": [\"src\"]}", "{\"read\": [\".\"]}", "/doc/a", false, false},
		{"{\"read\": [\"src\"]}", "{\"read\": [\"doc\"]}", "/src/a", false, false},
		{"{\"read\": [\"/\"]}", "{\"read\": [\".\"]}", "/src/a", true, false},
		{"{\"read\": []}", "{\"write\": [\".\"]}", "/src/a", false, false},
		/* what is hidden from one is hidden */
		{"{\"write\": [\".\"], \"blocked\": [\"a\"]}",
		 "{\"write\": [\".\"], \"blocked\": [\"b\"]}", "/a/x", false, false},
		{"{\"write\": [\".\"], \"blocked\": [\"a\"]}",
		 "{\"write\": [\".\"], \"blocked\": [\"b\"]}", "/b/x", false, false},
		{"{\"write\": [\".\"], \"blocked\": [\"a\"]}",
		 "{\"write\": [\".\"], \"blocked\": [\"b\"]}", "/c/x", true, true},
		/* a base of one's own */
		{"{\"base\": \"sub\", \"write\": [\"a\"]}", "{\"write\": [\"sub\"]}",
		 "/sub/a/x", true, true},
		{"{\"base\": \"sub\", \"write\": [\"a\"]}", "{\"write\": [\"a\"]}",
		 "/sub/a/x", true, false},
		/* patterns */
		{"{" NO_COMMANDS "\"write\": [\"*.md\"]}", "{\"write\": [\".\"]}",
		 "/a/b.md", true, true},
		{"{" NO_COMMANDS "\"write\": [\"*.md\"]}", "{\"write\": [\".\"]}",
		 "/a/b.c", true, false},
		{"{" NO_COMMANDS "\"write\": [\"*.md\"]}", "{\"write\": [\"docs\"]}",
		 "/docs/b.md", true, true},
		{"{" NO_COMMANDS "\"write\": [\"*.md\"]}", "{\"write\": [\"docs\"]}",
		 "/b.md", true, false},
		{"{" NO_COMMANDS "\"write\": [\"docs/**/*.md\"]}", "{\"write\": [\".\"]}",
		 "/docs/a/b.md", true, true},
		{"{" NO_COMMANDS "\"write\": [\"docs/**/*.md\"]}",
		 "{\"write\": [\"docs/a\"]}", "/docs/a/b.md", true, false},
		{"{" NO_COMMANDS "\"write\": [\"*.md\"]}",
		 "{" NO_COMMANDS "\"write\": [\"*.md\"]}", "/a/b.md", true, true},
		{"{" NO_COMMANDS "\"write\": [\"*.md\"]}",
		 "{" NO_COMMANDS "\"write\": [\"docs/*.md\"]}", "/docs/b.md", true, true},
		{"{" NO_COMMANDS "\"write\": [\"*.md\"]}",
		 "{" NO_COMMANDS "\"write\": [\"a.*\"]}", "/a.md", true, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int turned = 0; turned < 2; turned++) {
			auto_policy struct policy *both =
				both_of(turned ? rows[i].b : rows[i].a,
					turned ? rows[i].a : rows[i].b);
			char path[256];

			(void)snprintf(path, sizeof(path), WORKSPACE "%s", rows[i].path);
			if (allows(both, path, false) != rows[i].read ||
			    allows(both, path, true) != rows[i].write)
				fail_msg("%s & %s: %s read %d write %d", rows[i].a,
					 rows[i].b, rows[i].path, allows(both, path, false),
					 allows(both, path, true));
		}
	}
}

static void a_layer_is_kept_where_nothing_protected_is_written(void **state)
{
	static const struct {
		const char *a, *b;
		bool scratch;
	} rows[] = {
		{"{\"scratch\": true, \"write\": [\"tests\"]}", "{\"write\": [\".\"]}", true},
		{"{\"scratch\": true, \"write\": [\"tests\"]}", "{\"write\": [\"src\"]}",
		 false},
		{"{\"scratch\": true, \"write\": [\"tests\"]}",
		 "{\"write\": [\".\"], \"read\": [\".\", \"vendor\"]}", false},
		{"{\"scratch\": true}", "{\"scratch\": true}", true},
		{"{\"scratch\": true}", "{}", false},
		{"{\"write\": [\".\"]}", "{\"write\": [\".\"]}", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_policy struct policy *there = both_of(rows[i].a, rows[i].b);
		auto_policy struct policy *back = both_of(rows[i].b, rows[i].a);

		if (there->scratch != rows[i].scratch || back->scratch != rows[i].scratch)
			fail_msg("%s & %s: scratch %d", rows[i].a, rows[i].b,
				 there->scratch);
	}
}

static void the_base_is_that_of_the_bounds(void **state)
{
	auto_policy struct policy *given =
		both_of("{\"cell_base\": \"rootfs:/a\", \"cell_user\": \"plain\"}",
			"{\"cell_base\": \"rootfs:/b\"}");
	auto_policy struct policy *none = both_of("{\"cell_base\": \"rootfs:/a\"}", "{}");

	(void)state;
	assert_string_equal(given->cell_base, "rootfs:/b");
	assert_int_equal(given->cell_user, CELL_USER_PLAIN);
	/* Otherwise a role of a workspace could show a folder that its person never named. */
	assert_null(none->cell_base);
	assert_int_equal(none->cell_user, CELL_USER_ROOT);
}

/* The items of LIST with blanks between them. */
static const char *joined(const struct policy_names *list, char *text, size_t size)
{
	text[0] = '\0';
	for (size_t i = 0; i < list->count; i++)
		(void)snprintf(text + strlen(text), size - strlen(text), "%s%s",
			       i ? " " : "", list->items[i]);
	return text;
}

static void names_are_those_of_both(void **state)
{
	static const struct {
		const char *a, *b, *tools, *env, *network;
	} rows[] = {
		{"{\"tools\": [\"grep_codebase\", \"bash\"]}", "{}", "grep bash", "", ""},
		{"{\"tools\": [\"grep\"]}", "{\"tools\": [\"bash\"]}", "", "", ""},
		{"{\"tools\": [\"delegate_agent\"]}", "{}", "", "", ""},
		{"{\"tools\": [\"grep\"], \"env\": [\"A\", \"B=1\", \"C=1\", \"D=1\"]}",
		 "{\"env\": [\"A\", \"B\", \"C=2\", \"D=1\", \"AB\"]}", "grep",
		 "A B=1 D=1", ""},
		{"{\"tools\": [\"grep\"], \"network\": [\"*.a.org\", \"b.org\", \"c.org:80\", "
		 "\"tcp://d:5432\"]}",
		 "{\"network\": [\"x.a.org\", \"x.a.org:443\", \"*.y.a.org\", \"a.org\", \"*.b.org\", \"b.org\", "
		 "\"c.org\", \"tcp://d:5432\"]}",
		 "grep", "", "x.a.org x.a.org:443 *.y.a.org b.org tcp://d:5432"},
		{"{\"tools\": [\"grep\"], \"network\": [\"d:5432\", \"*.z.org\"]}",
		 "{\"network\": [\"tcp://d:5432\", \"*.z.org:80\", \"z.org\"]}", "grep",
		 "", ""},
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int turned = 0; turned < 2; turned++) {
			auto_policy struct policy *both =
				both_of(turned ? rows[i].b : rows[i].a,
					turned ? rows[i].a : rows[i].b);

			assert_string_equal(joined(&both->tools, text, sizeof(text)),
					    rows[i].tools);
			assert_string_equal(joined(&both->environment, text, sizeof(text)),
					    rows[i].env);
			assert_string_equal(joined(&both->network, text, sizeof(text)),
					    rows[i].network);
		}
	}
}

static void ports_are_published_when_both_say_the_same(void **state)
{
	auto_policy struct policy *both = both_of(
		"{\"publish\": [\"3000\", \"8080:80\", \"own:5000\", \"0:6000\"]}",
		"{\"publish\": [\"127.0.0.1:3000\", \"8081:80\", \"5000\", \"0:6000\"]}");
	char text[512];

	(void)state;
	assert_string_equal(joined(&both->publish, text, sizeof(text)), "3000 0:6000");
}

static void a_credential_is_used_when_both_name_it(void **state)
{
	auto_policy struct policy *both =
		both_of("{\"credentials\": [\"openai\", \"github\"]}",
			"{\"credentials\": [\"github\", \"google\"]}");
	auto_policy struct policy *none = both_of("{\"credentials\": [\"openai\"]}", "{}");
	char text[512];

	(void)state;
	assert_string_equal(joined(&both->credentials, text, sizeof(text)), "github");
	assert_string_equal(joined(&none->credentials, text, sizeof(text)), "");
}

static void the_narrower_limit_holds(void **state)
{
	auto_policy struct policy *both = both_of(
		"{\"limits\": {\"iterations\": 10, \"wall_s\": 9, \"shell_s\": 500, \"memory\": \"1G\","
		" \"loop_warn\": 0, \"loop_stop\": 20, \"free_space\": 0, \"tokens\": 100, \"pids\": 64, \"tmp\": \"1M\","
		" \"writers\": 4}}",
		"{\"limits\": {\"iterations\": 20, \"wall_s\": 7, \"free_space\": \"2G\","
		" \"quiet_s\": 5, \"loop_warn\": 4, \"cell_pids\": 100, \"file_size\": \"1M\", \"grace_s\": 0.1, \"writers\": 2}}");
	const struct policy_limits *limits = &both->limits;

	(void)state;
	assert_int_equal(limits->iterations, 10);
	assert_true(limits->wall_s == 7 && limits->shell_s == 500 && limits->quiet_s == 5);
	assert_true(limits->grace_s == 0.1);
	assert_int_equal(limits->memory, 1 << 30);
	assert_int_equal(limits->free_space, 2LL << 30);
	assert_int_equal(limits->tokens, 100);
	assert_int_equal(limits->loop_warn, 4);
	assert_int_equal(limits->loop_stop, 10);
	assert_int_equal(limits->pids, 64);
	assert_int_equal(limits->cell_pids, 100);
	assert_int_equal(limits->file_size, 1 << 20);
	assert_int_equal(limits->tmp, 1 << 20);
	assert_int_equal(limits->writers, 2);
}

static bool runs(const struct policy *policy, const char *text, struct verdict *verdict)
{
	const struct policy_request request = {
		.tool = "bash",
		.effects = POLICY_READS | POLICY_WRITES | POLICY_RUNS,
		.command = str_of(text),
	};

	policy_decide(policy, &request, verdict);
	return verdict->answer == VERDICT_ALLOW;
}

static void a_command_must_fit_both_lists(void **state)
{
	static const char git[] = "{\"commands\": {\"presets\": [\"git\", \"text\"]}}";
	static const char own[] =
		"{\"commands\": {\"runs_code\": false, \"rules\": ["
		"{\"program\": \"git\", \"subcommand\": \"status\", \"operands\": [\"path*\"]},"
		"{\"program\": \"make\", \"runs_code\": true}]}}";
	static const struct {
		const char *a, *b, *command;
		const char *plan; /* NULL: denied */
	} rows[] = {
		{"{}", "{}", "make x", ""},
		{git, "{}", "make", NULL},
		{"{}", git, "make", NULL},
		{git, own, "make", NULL},
		{git, own, "git log", NULL},
		{git, own, "git status /root", NULL},
		{own, git, "git log", NULL},
		{git, git, "git status",
		 "git --no-pager --no-optional-locks -c core.fsmonitor=false -c "
		 "log.showSignature=false -c gpg.program=false status"},
		{own, git, "git status",
		 "git --no-pager --no-optional-locks -c core.fsmonitor=false -c "
		 "log.showSignature=false -c gpg.program=false status"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_policy struct policy *both = both_of(rows[i].a, rows[i].b);
		struct verdict verdict;
		bool allowed = runs(both, rows[i].command, &verdict);
		auto_value struct value *plan = verdict.plan;
		const struct value *argv = value_member(value_item(plan, 0), "argv");
		char text[512] = "";

		for (size_t j = 0; j < value_count(argv); j++)
			(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
				       "%s%s", j ? " " : "",
				       value_text(value_item(argv, j)));
		if (allowed != (rows[i].plan != NULL))
			fail_msg("%s: %s", rows[i].command, verdict.because);
		if (rows[i].plan)
			assert_string_equal(text, rows[i].plan);
	}
}

static void tools_that_choose_what_runs_need_the_leave_of_both(void **state)
{
	const struct policy_request request = {
		.tool = "run_tests",
		.effects = POLICY_READS | POLICY_WRITES | POLICY_RUNS,
	};
	auto_policy struct policy *both =
		both_of("{\"commands\": {\"presets\": [\"c\"]}}",
			"{\"commands\": {\"presets\": [\"c\"], \"runs_code\": false}}");
	struct verdict verdict;

	(void)state;
	policy_decide(both, &request, &verdict);
	assert_int_equal(verdict.answer, VERDICT_DENY);
	assert_string_equal(verdict.rule, "agents.a.commands");
}

static void lists_of_lists_stay_flat(void **state)
{
	static const char git[] = "{\"commands\": {\"presets\": [\"git\"]}}";
	static const char text[] = "{\"commands\": {\"presets\": [\"text\"]}}";
	auto_policy struct policy *one = both_of(git, text);
	auto_policy struct policy *other = both_of(text, git);
	auto_policy struct policy *both = policy_intersect(one, other);

	(void)state;
	assert_non_null(both->commands->within);
	assert_null(both->commands->within->within);
}

static void a_copy_has_the_same_rights_and_asks_nobody(void **state)
{
	auto_policy struct policy *one =
		policy_of("a", "{\"write\": [\"src\"], \"blocked\": [\"src/key\"], \"network\": [\"a.org\"], "
			       "\"ask\": [\"write\"], \"limits\": {\"pids\": 99}}");
	auto_policy struct policy *copy = policy_copy(one);

	(void)state;
	assert_true(allows(copy, WORKSPACE "/src/a", true));
	assert_false(allows(copy, WORKSPACE "/src/key", false));
	assert_false(allows(copy, WORKSPACE "/docs/a", true));
	assert_true(allows(copy, WORKSPACE "/docs/a", false));
	assert_int_equal(copy->network.count, 1);
	assert_int_equal(copy->limits.pids, 99);
	assert_true(policy_asks(one, "write"));
	assert_false(policy_asks(copy, "write"));
}

static void links_are_followed_as_far_as_both_name_the_entry(void **state)
{
	auto_policy struct policy *both =
		both_of("{\"read\": [], \"write\": [\"a/b\"]}", "{\"write\": [\"a\"]}");
	auto_policy struct policy *outside =
		both_of("{\"read\": [], \"write\": [\"/srv/x\"]}", "{\"write\": [\"/\"]}");

	(void)state;
	assert_string_equal(both->write.items[0].path, WORKSPACE "/a/b");
	assert_int_equal(both->write.items[0].trunk, strlen(WORKSPACE "/a"));
	assert_string_equal(outside->write.items[0].path, "/srv/x");
	assert_int_equal(outside->write.items[0].trunk, 1);
}

/* A few names, so that entries meet. */
static const char *random_path(char *text, size_t size, unsigned *seed)
{
	size_t depth = (size_t)rand_r(seed) % 4;

	text[0] = '\0';
	for (size_t i = 0; i < depth; i++)
		(void)snprintf(text + strlen(text), size - strlen(text), "%s%c",
			       i ? "/" : "", 'a' + rand_r(seed) % 2);
	if (depth == 0)
		(void)snprintf(text, size, ".");
	return text;
}

static struct policy *random_policy(bool plain, unsigned *seed)
{
	static const char *const keys[] = {"read", "write", "blocked"};
	static const char *const patterns[] = {"*.md", "*.c", "b/*", "**/b"};
	auto_value struct value *entry = value_new_object();
	struct policy *policy = NULL;
	struct err err = {0};
	char text[64];

	value_set_boolean(entry, "scratch", !plain && rand_r(seed) % 4 == 0);
	for (size_t i = 0; i < 3; i++) {
		struct value *list = value_new_array();
		int count = rand_r(seed) % (i == 2 ? 2 : 4);

		for (int j = 0; j < count; j++) {
			(void)random_path(text, sizeof(text), seed);
			if (i == 2 && strcmp(text, ".") == 0)
				continue;
			if (i == 1 && !plain && rand_r(seed) % 3 == 0)
				(void)snprintf(text + strlen(text),
					       sizeof(text) - strlen(text), "/%s",
					       patterns[rand_r(seed) % 4]);
			value_append(list, value_new_text(text));
		}
		value_set(entry, keys[i], list);
	}
	if (!config_policy(NULL, entry, "r", WORKSPACE, &policy, &err))
		fail_msg("%s", err.text);
	policy->tools.given = true;
	return policy;
}

/* PLAIN ones can be said exactly. */
static void try_pairs(bool plain, int pairs, unsigned seed)
{
	enum { PATHS = 60 };
	size_t granted = 0;

	for (int i = 0; i < pairs; i++) {
		auto_policy struct policy *a = random_policy(plain, &seed);
		auto_policy struct policy *b = random_policy(plain, &seed);
		auto_policy struct policy *both = policy_intersect(a, b);

		for (int j = 0; j < PATHS; j++) {
			char name[64], path[128];
			bool writes = j % 2 != 0;
			bool by_each, by_both;

			(void)snprintf(path, sizeof(path), WORKSPACE "/%s%s",
				       random_path(name, sizeof(name), &seed),
				       j % 3 == 0 ? "/x.md" : "/b");
			if (strstr(path, "/./"))
				continue;
			by_each = allows(a, path, writes) && allows(b, path, writes);
			by_both = allows(both, path, writes);
			granted += by_both;
			if (by_both != by_each && (plain || by_both))
				fail_msg("pair %d: %s, writes %d", i, path, writes);
		}
	}
	assert_true(granted > (size_t)pairs);
}

static void never_more_than_either_grants(void **state)
{
	(void)state;
	try_pairs(false, 3000, 20260801);
}

static void plain_entries_are_exact(void **state)
{
	(void)state;
	try_pairs(true, 3000, 20260802);
}

static void secrets_are_shown_where_both_show_them(void **state)
{
	static const struct {
		const char *a, *b;
		bool shown;
		size_t show, files;
	} rows[] = {
		{"{\"secrets\": \"show\"}", "{}", false, 0, 0},
		{"{}", "{\"secrets\": \"show\"}", false, 0, 0},
		{"{\"secrets\": \"show\"}", "{\"secrets\": \"show\"}", true, 0, 0},
		{"{\"secrets\": \"show\"}", "{\"secrets\": {\"show\": [\"a\"]}}", false,
		 1, 0},
		{"{\"secrets\": {\"show\": [\"a\", \"b\"]}}",
		 "{\"secrets\": {\"show\": [\"b\", \"c\"]}}", false, 1, 0},
		{"{\"secrets\": {\"files\": [\"x.ini\"]}}",
		 "{\"secrets\": {\"files\": [\"x.ini\", \"y.ini\"]}}", false, 0, 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_policy struct policy *both = both_of(rows[i].a, rows[i].b);

		assert_int_equal(both->secrets.shown, rows[i].shown);
		assert_int_equal(both->secrets.show.count, rows[i].show);
		assert_int_equal(both->secrets.files.count, rows[i].files);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secrets_are_shown_where_both_show_them),
		cmocka_unit_test(paths_are_those_that_both_grant),
		cmocka_unit_test(a_layer_is_kept_where_nothing_protected_is_written),
		cmocka_unit_test(names_are_those_of_both),
		cmocka_unit_test(ports_are_published_when_both_say_the_same),
		cmocka_unit_test(a_credential_is_used_when_both_name_it),
		cmocka_unit_test(the_narrower_limit_holds),
		cmocka_unit_test(a_command_must_fit_both_lists),
		cmocka_unit_test(tools_that_choose_what_runs_need_the_leave_of_both),
		cmocka_unit_test(lists_of_lists_stay_flat),
		cmocka_unit_test(a_copy_has_the_same_rights_and_asks_nobody),
		cmocka_unit_test(links_are_followed_as_far_as_both_name_the_entry),
		cmocka_unit_test(never_more_than_either_grants),
		cmocka_unit_test(plain_entries_are_exact),
		cmocka_unit_test(the_base_is_that_of_the_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
