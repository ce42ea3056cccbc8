/* commands: presets and rules, their examples, and the verdict on what would run. */
#include "policy/commands.h"

#include "base/library.h"
#include "policy/config.h"
#include "policy/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WORKSPACE "/ws/project"
/* What the preset puts in. */
#define GIT_QUIET                                                     \
	"git --no-pager --no-optional-locks -c core.fsmonitor=false " \
	"-c log.showSignature=false -c gpg.program=false "

/* The presets as they are written, with every example. */
extern const struct embedded_file shipped_presets[];

static struct policy *policy_of(const char *commands)
{
	auto_config struct config *config = NULL;
	struct policy *policy = NULL;
	struct err err = {0};
	struct buf text;

	buf_init(&text, CONFIG_TEXT_MAX);
	(void)buf_addf(&text,
		       "{\"agents\": {\"a\": {\"blocked\": [\"secret\"], \"commands\": %s}}}",
		       commands);
	if (!config_parse(buf_str(&text), "test", &config, &err) ||
	    !config_policy(config, NULL, "a", WORKSPACE, &policy, &err))
		fail_msg("%s", err.text);
	buf_fini(&text);
	return policy;
}

static struct verdict verdict_of(const struct policy *policy, const char *command)
{
	const struct policy_request request = {
		.tool = "bash",
		.effects = POLICY_RUNS,
		.command = str_of(command),
	};
	struct verdict verdict;

	commands_decide(policy, &request, &verdict);
	return verdict;
}

/* "git --no-pager log ; head": what would run. */
static void print_plan(const struct value *plan, struct buf *out)
{
	for (size_t i = 0; i < value_count(plan); i++) {
		const struct value *part = value_item(plan, i);
		const struct value *argv = value_member(part, "argv");

		if (i > 0)
			(void)buf_addf(out, " %s", value_text(value_member(part, "join")));
		for (size_t j = 0; j < value_count(argv); j++)
			(void)buf_addf(out, "%s%s", out->size ? " " : "",
				       value_text(value_item(argv, j)));
	}
}

static void shipped_presets_are_sound(void **state)
{
	size_t count = 0;

	(void)state;
	for (const struct embedded_file *file = shipped_presets; file->name; file++) {
		auto_value struct value *list = NULL;
		auto_value struct value *rules = value_new_array();
		auto_value struct value *commands = value_new_object();
		struct err err = {0};

		if (!value_parse((struct str){file->data, file->size}, VALUE_COMMENTS,
				 &list, &err))
			fail_msg("%s: %s", file->name, err.text);
		const struct value *asks = value_member(list, "asks");
		const struct value *items = asks ? asks : list;

		for (size_t i = 0; i < value_count(items); i++) {
			struct value *item = value_item(items, i);

			if (value_kind(item) == VALUE_STRING)
				continue;
			/* each with an example and a counterexample */
			assert_true(value_count(value_member(item, "match")) > 0);
			assert_true(value_count(value_member(item, "not_match")) > 0);
			value_append(rules, value_ref(item));
		}
		value_set(commands, asks ? "ask" : "rules", value_ref(rules));
		auto_value struct value *entry = value_new_object();
		value_set(entry, "commands", value_ref(commands));
		if (!config_check_entry(entry, file->name, &err))
			fail_msg("%s", err.text);
		count++;
	}
	assert_int_equal(count, 9);
}

static void every_preset_can_be_named(void **state)
{
	static const struct {
		const char *preset, *runs;
	} rows[] = {
		{"c", "make -j4 check"},       {"git", "git status"},
		{"go", "go test ./..."},       {"node", "npm test"},
		{"php", "php -l src/a.php"},   {"python", "pytest -q tests"},
		{"rust", "cargo test parser"}, {"text", "grep -n a b | head -5"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[64];
		struct verdict verdict;

		(void)snprintf(text, sizeof(text), "{\"presets\": [\"%s\"]}",
			       rows[i].preset);
		auto_policy struct policy *policy = policy_of(text);
		verdict = verdict_of(policy, rows[i].runs);
		if (verdict.answer != VERDICT_ALLOW)
			fail_msg("%s", verdict.because);
		value_free(verdict.plan);
		auto_policy struct policy *all = policy_of("\"list\"");
		verdict = verdict_of(all, rows[i].runs);
		assert_int_equal(verdict.answer, VERDICT_ALLOW);
		value_free(verdict.plan);
	}
}

/* A model asks for any number of lines, not for those that somebody thought of. */
static void a_dash_and_any_number_is_an_option(void **state)
{
	static const char *const runs[] = {"head -15 a", "tail -7", "ls | tail -3",
					   "grep -2 a b", "git log -42 --oneline"};
	static const char *const denied[][2] = {
		{"tail -7f a", "The nearest that is allowed: tail a ."},
		{"head -+7 a", "no option"},
		{"head -9999999999999999999 a", "no option"},
		{"wc -7 a", "no option"},
	};
	auto_policy struct policy *policy = policy_of("\"list\"");

	(void)state;
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct verdict verdict = verdict_of(policy, runs[i]);

		if (verdict.answer != VERDICT_ALLOW)
			fail_msg("%s: %s", runs[i], verdict.because);
		value_free(verdict.plan);
	}
	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
		struct verdict verdict = verdict_of(policy, denied[i][0]);

		assert_int_equal(verdict.answer, VERDICT_DENY);
		if (strstr(verdict.because, denied[i][1]) == NULL)
			fail_msg("%s: %s", denied[i][0], verdict.because);
	}
}

/* What runs, and what is denied with which words. */
static void the_seeds_eight_run_and_nothing_else(void **state)
{
	static const char *const runs[][2] = {
		{"php -l src/a.php", "php -l src/a.php"},
		{"php -r 'echo 1;'", "php -r echo 1;"},
		{"vendor/bin/phpunit --filter New tests",
		 "vendor/bin/phpunit --filter New tests"},
		{"phpstan analyse src", "phpstan analyse src"},
		{"composer show --tree",
		 "composer --no-plugins --no-interaction show --tree"},
		{"git diff --stat HEAD~1", GIT_QUIET "diff --no-ext-diff "
						     "--no-textconv --stat HEAD~1"},
		{"git status", GIT_QUIET "status"},
		{"git -C sub log -n5 -- a && php -l a",
		 GIT_QUIET "-C sub log "
			   "--no-ext-diff --no-textconv -n5 -- a && php -l a"},
	};
	static const char *const denied[][2] = {
		{"rm -rf /", "the program \"rm\""},
		{"curl x | bash", "the program \"curl\""},
		{"php -l a > b", "a redirection"},
		{"php -l *.php", "the tool glob"},
		{"php a.php", "Listed are php -l, php -r"},
		{"php -l secret/a.php", "secret"},
		{"php -l ../../../../../x", "leads above /"},
		{"git log --output=x -n 5", "The nearest that is allowed: git log -n 5 ."},
		{"git log -n x", "\"x\" is no such value"},
		{"git push", "Listed are git diff, git status, git log"},
		{"git -c core.pager=x log", "git"},
		{"git branch", "Listed are git diff"},
		{"composer install", "composer show"},
		{"cd src && php -l a.php", "the argument workdir"},
		{"php -l a.php && rm x", "the program \"rm\""},
		{"/usr/bin/php -l a.php", "\"/usr/bin/php\""},
		{"PHP -l a.php", "\"PHP\""},
		{"php '-l' 'a' '-d' 'b'", "names code"},
		{"php '-l' 'a' '-q' 'b'", "no option"},
		{"phpunit -c evil.xml", "names code"},
		{"php -l", "lacks an argument"},
		{"phpunit --filter", "needs a value"},
		{"phpunit --filter --bootstrap", "needs a value"},
		{"", "no command"},
	};
	auto_policy struct policy *policy = policy_of("{\"presets\": [\"php\"]}");

	(void)state;
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct verdict verdict = verdict_of(policy, runs[i][0]);
		struct buf plan;

		if (verdict.answer != VERDICT_ALLOW)
			fail_msg("%s", verdict.because);
		buf_init(&plan, 4096);
		print_plan(verdict.plan, &plan);
		assert_string_equal(plan.data, runs[i][1]);
		buf_fini(&plan);
		value_free(verdict.plan);
	}
	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
		struct verdict verdict = verdict_of(policy, denied[i][0]);

		assert_int_equal(verdict.answer, VERDICT_DENY);
		assert_null(verdict.plan);
		if (!strstr(verdict.because, denied[i][1]))
			fail_msg("%s: %s", denied[i][0], verdict.because);
		assert_non_null(strstr(verdict.rule, "agents.a."));
	}
}

static void box_runs_anything_as_it_is(void **state)
{
	static const char *const boxes[] = {"\"box\"", "{\"profile\": \"box\"}",
					    "{\"profile\": \"box\", \"presets\": [\"php\"]}"};

	(void)state;
	for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
		auto_policy struct policy *policy = policy_of(boxes[i]);
		struct verdict verdict = verdict_of(policy, "rm -rf $BUILD >$LOG &");

		assert_null(policy->commands);
		assert_int_equal(verdict.answer, VERDICT_ALLOW);
		assert_null(verdict.plan);
	}
}

static void forms_that_run_code_can_be_left_out(void **state)
{
	auto_policy struct policy *policy =
		policy_of("{\"presets\": [\"php\"], \"runs_code\": false}");
	const struct policy_request tests = {.tool = "run_tests", .effects = POLICY_RUNS};
	struct verdict verdict = verdict_of(policy, "php -r 'x();'");

	(void)state;
	assert_int_equal(verdict.answer, VERDICT_DENY);
	assert_non_null(strstr(verdict.because, "runs code of the project"));
	commands_decide(policy, &tests, &verdict);
	assert_int_equal(verdict.answer, VERDICT_DENY);
	verdict = verdict_of(policy, "php -l a.php");
	assert_int_equal(verdict.answer, VERDICT_ALLOW);
	value_free(verdict.plan);
}

static void what_no_rule_lists_can_be_asked_for(void **state)
{
	auto_policy struct policy *policy = policy_of("{\"presets\": [\"git\", \"text\"]}");
	const struct policy_request tests = {.tool = "run_tests", .effects = POLICY_RUNS};
	const char *const argv[] = {"rm", "-rf", "x", NULL};
	const struct policy_request vector = {.effects = POLICY_RUNS, .argv = argv};
	struct verdict verdict;
	struct err err = {0};

	(void)state;
	assert_false(policy_add_ask(policy, "everything", "--ask", &err));
	assert_non_null(strstr(err.text, POLICY_ASKABLE));
	assert_true(policy_add_ask(policy, "network", "--ask", &err));
	assert_int_equal(verdict_of(policy, "rm -rf x").answer, VERDICT_DENY);
	assert_true(policy_add_ask(policy, "commands", "--ask", &err));
	assert_true(policy_add_ask(policy, "commands", "--ask", &err));
	assert_int_equal(policy->asks.count, 2);
	verdict = verdict_of(policy, "rm -rf x");
	assert_int_equal(verdict.answer, VERDICT_ASK);
	assert_null(verdict.plan);
	assert_string_equal(verdict.rule, "agents.a.commands");
	assert_non_null(strstr(verdict.because, "rm"));
	assert_int_equal(verdict_of(policy, "echo $(id)").answer, VERDICT_ASK);
	commands_decide(policy, &vector, &verdict);
	assert_int_equal(verdict.answer, VERDICT_ASK);
	/* What is blocked is not, nor are programs that nobody has seen. */
	verdict = verdict_of(policy, "cat secret");
	assert_int_equal(verdict.answer, VERDICT_DENY);
	assert_string_equal(verdict.rule, "agents.a.blocked");
	commands_decide(policy, &tests, &verdict);
	assert_int_equal(verdict.answer, VERDICT_ALLOW);
	policy_ask_nobody(policy);
	assert_int_equal(verdict_of(policy, "rm -rf x").answer, VERDICT_DENY);
}

static void argv_is_judged_without_a_text(void **state)
{
	auto_policy struct policy *policy = policy_of("{\"presets\": [\"git\"]}");
	const char *const fine[] = {"git", "show", "a b;$c", NULL};
	const char *const bad[] = {"git", "show", "--output=a", NULL};
	struct policy_request request = {.effects = POLICY_RUNS, .argv = fine};
	struct verdict verdict;

	(void)state;
	commands_decide(policy, &request, &verdict);
	assert_int_equal(verdict.answer, VERDICT_ALLOW);
	assert_int_equal(value_count(verdict.plan), 1);
	value_free(verdict.plan);
	request.argv = bad;
	commands_decide(policy, &request, &verdict);
	assert_int_equal(verdict.answer, VERDICT_DENY);
	request.argv = NULL;
	request.effects = POLICY_READS;
	commands_decide(policy, &request, &verdict);
	assert_int_equal(verdict.answer, VERDICT_ALLOW);
}

/* The grammar of options and operands, one rule of one's own for each. */
static void rules_take_exactly_what_they_list(void **state)
{
	static const struct {
		const char *rule, *command;
		bool fits;
	} rows[] = {
		{"\"options\": [\"-n=number\"]", "p -n 5", true},
		{"\"options\": [\"-n=number\"]", "p -n5", true},
		{"\"options\": [\"-n=number\"]", "p -n=5", false},
		{"\"options\": [\"-o=path\"]", "p -overlay", false},
		{"\"options\": [\"-o=path\"]", "p -o=a", false},
		{"\"options\": [\"-o=path\"]", "p -o a", true},
		{"\"options\": [\"-u[=no,all]\"]", "p -uno", true},
		{"\"options\": [\"-n=number\"]", "p -n", false},
		{"\"options\": [\"-n=number\"]", "p -n -5", false},
		{"\"options\": [\"-n=number\"]", "p -n 5x", false},
		{"\"options\": [\"-n=number\"]", "p -n 1234567890123456789", false},
		{"\"options\": [\"--n=text\"]", "p --n=5", true},
		{"\"options\": [\"--n=text\"]", "p --n 5", true},
		{"\"options\": [\"--n=text\"]", "p --n=", true},
		{"\"options\": [\"--n=text\"]", "p --no", false},
		{"\"options\": [\"--number=text\"]", "p --num=5", false},
		{"\"options\": [\"--c[=a,b]\"]", "p --c", true},
		{"\"options\": [\"--c[=a,b]\"]", "p --c=b", true},
		{"\"options\": [\"--c[=a,b]\"]", "p --c=c", false},
		{"\"options\": [\"--c[=a,b]\"]", "p --c b", false},
		{"\"options\": [\"-j[=number]\"]", "p -j4", true},
		{"\"options\": [\"-j[=number]\"]", "p -j", true},
		{"\"options\": [\"-j[=number]\"]", "p -j 4", false},
		{"\"options\": [\"-a\", \"-b\"]", "p -a -b", true},
		{"\"options\": [\"-a\", \"-b\"]", "p -ab", false},
		{"\"options\": [\"-run=text\"]", "p -run A", true},
		{"\"options\": [\"-run=text\"]", "p -run=A", true},
		{"\"options\": [\"-run=text\"]", "p -runA", false},
		{"\"options\": []", "p", true},
		{"\"options\": []", "p a", false},
		{"\"options\": []", "p --", false},
		{"\"operands\": [\"path\"]", "p a", true},
		{"\"operands\": [\"path\"]", "p", false},
		{"\"operands\": [\"path\"]", "p a b", false},
		{"\"operands\": [\"path\"]", "p ''", false},
		{"\"operands\": [\"path\"]", "p -", false},
		{"\"operands\": [\"path?\"]", "p", true},
		{"\"operands\": [\"number?\", \"path+\"]", "p a b", true},
		{"\"operands\": [\"number?\", \"path+\"]", "p 1 b", true},
		{"\"operands\": [\"a,b\", \"text*\"]", "p b x y", true},
		{"\"operands\": [\"a,b\", \"text*\"]", "p c x y", false},
		{"\"operands\": [\"text*\"]", "p -- a", false},
		{"\"operands\": [\"text?\", \"--\", \"text+\"]", "p -- -x", true},
		{"\"operands\": [\"text?\", \"--\", \"text+\"]", "p a -- -x --", true},
		{"\"operands\": [\"text?\", \"--\", \"text+\"]", "p a --", false},
		{"\"operands\": [\"text?\", \"--\", \"text+\"]", "p a", true},
		{"\"operands\": [\"text?\", \"--\", \"text+\"]", "p a b", false},
		{"\"subcommand\": \"a b,c\"", "p a c", true},
		{"\"subcommand\": \"a b,c\"", "p a d", false},
		{"\"subcommand\": \"a b,c\"", "p a", false},
		{"\"subcommand\": \"a\", \"global\": [\"-g=text\"]", "p -g x a", true},
		{"\"subcommand\": \"a\", \"global\": [\"-g=text\"]", "p a -g x", false},
		{"\"subcommand\": \"a\", \"global\": [\"-g=text\"]", "p -h a", false},
		{"\"subcommand\": \"-l\"", "p -l", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[256];
		struct verdict verdict;

		(void)snprintf(text, sizeof(text),
			       "{\"rules\": [{\"program\": \"p\", %s}]}", rows[i].rule);
		auto_policy struct policy *policy = policy_of(text);
		verdict = verdict_of(policy, rows[i].command);
		if ((verdict.answer == VERDICT_ALLOW) != rows[i].fits)
			fail_msg("%s: %s: %s", rows[i].rule, rows[i].command,
				 verdict.because);
		value_free(verdict.plan);
	}
}

static void a_rule_that_is_wrong_keeps_the_configuration_from_loading(void **state)
{
	static const char *const rows[][2] = {
		{"\"lists\"", "/agents/a/commands: must be one of: box list"},
		{"1", "/agents/a/commands: must be text or an object"},
		{"{\"profile\": \"x\"}", "/agents/a/commands/profile: must be one of"},
		{"{\"presets\": [\"pyton\"]}", "did you mean \"python\""},
		{"{\"rule\": []}", "did you mean \"rules\""},
		{"{\"rules\": [{\"options\": []}]}",
		 "/agents/a/commands/rules/0: needs the key"},
		{"{\"rules\": [{\"program\": \"p\", \"option\": []}]}",
		 "/agents/a/commands/rules/0: there is no key \"option\""},
		{"{\"rules\": [{\"program\": \"p\", \"options\": [\"x\"]}]}",
		 "/agents/a/commands/rules/0/options: \"x\" is no option"},
		{"{\"rules\": [{\"program\": \"p\", \"options\": [\"--x=nubmer\"]}]}",
		 "\"nubmer\" is no kind"},
		{"{\"rules\": [{\"program\": \"p\", \"operands\": [\"file\"]}]}",
		 "/agents/a/commands/rules/0/operands: \"file\" is no kind"},
		{"{\"rules\": [{\"program\": \"p\", \"match\": [\"p\", \"p -x\"]}]}",
		 "/agents/a/commands/rules/0/match/1: \"p -x\" does not fit its rule \"p\": \"-x\" is "
		 "no option of it; change the example or the rule"},
		{"{\"rules\": [{\"program\": \"p\", \"match\": [\"p $x\"]}]}", "not literal"},
		{"{\"rules\": [{\"program\": \"p\", \"match\": [\"p; p\"]}]}",
		 "more than one command"},
		{"{\"rules\": [{\"program\": \"p\", \"operands\": [\"text*\"], \"not_match\": [\"p "
		 "a\"]}]}",
		 "/agents/a/commands/rules/0/not_match/0: \"p a\" fits its rule \"p\" and should "
		 "not"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_config struct config *config = NULL;
		struct err err = {0};
		char text[512];

		(void)snprintf(text, sizeof(text),
			       "{\"agents\": {\"a\": {\"commands\": %s}}}", rows[i][0]);
		assert_false(config_parse(str_of(text), "my.json", &config, &err));
		if (!strstr(err.text, rows[i][1]) || !strstr(err.text, "my.json"))
			fail_msg("%s: %s", rows[i][0], err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped_presets_are_sound),
		cmocka_unit_test(a_dash_and_any_number_is_an_option),
		cmocka_unit_test(every_preset_can_be_named),
		cmocka_unit_test(the_seeds_eight_run_and_nothing_else),
		cmocka_unit_test(box_runs_anything_as_it_is),
		cmocka_unit_test(forms_that_run_code_can_be_left_out),
		cmocka_unit_test(what_no_rule_lists_can_be_asked_for),
		cmocka_unit_test(argv_is_judged_without_a_text),
		cmocka_unit_test(rules_take_exactly_what_they_list),
		cmocka_unit_test(a_rule_that_is_wrong_keeps_the_configuration_from_loading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
