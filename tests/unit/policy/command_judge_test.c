/* commands: what denies and asks, what destroys much, and what names code, as tables. */
#include "base/library.h"
#include "base/memory.h"
#include "base/str.h"
#include "policy/command.h"
#include "policy/commands.h"
#include "policy/config.h"
#include "policy/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WORKSPACE "/ws/project"

/* The files of tests/unit/policy/spellings. */
extern const struct embedded_file spellings[];

static bool try_policy(const char *commands, struct policy **policy, struct err *err)
{
	auto_config struct config *config = NULL;
	struct buf text;
	bool fine;

	buf_init(&text, CONFIG_TEXT_MAX);
	(void)buf_addf(&text,
		       "{\"agents\": {\"a\": {\"write\": [\".\", \"/data/set\"], \"commands\": %s}}}",
		       commands);
	fine = config_parse(buf_str(&text), "test", &config, err) &&
	       config_policy(config, NULL, "a", WORKSPACE, policy, err) &&
	       policy_paths_normal(*policy, WORKSPACE, err);
	buf_fini(&text);
	return fine;
}

static struct policy *policy_of(const char *commands)
{
	struct policy *policy = NULL;
	struct err err = {0};

	if (!try_policy(commands, &policy, &err))
		fail_msg("%s: %s", commands, err.text);
	return policy;
}

static struct verdict verdict_in(const struct policy *policy, const char *command,
				 const char *folder)
{
	const struct policy_request request = {
		.tool = "bash",
		.effects = POLICY_RUNS,
		.command = str_of(command),
		.folder = folder,
	};
	struct verdict verdict;

	commands_decide(policy, &request, &verdict);
	value_free(verdict.plan);
	verdict.plan = NULL;
	return verdict;
}

static const char *answer_of(const struct verdict *verdict)
{
	static const char *const words[] = {"deny", "ask", "allow"};

	return verdict->or_runs ? "ask or run" : words[verdict->answer];
}

struct judged {
	const char *command, *answer, *by;
};

static void play(const char *commands, const struct judged *rows, size_t count)
{
	auto_policy struct policy *policy = policy_of(commands);

	for (size_t i = 0; i < count; i++) {
		struct verdict verdict = verdict_in(policy, rows[i].command, NULL);

		if (strcmp(answer_of(&verdict), rows[i].answer) != 0 ||
		    strcmp(verdict.by, rows[i].by) != 0)
			fail_msg("%s: %s by \"%s\", not %s by \"%s\": %s",
				 rows[i].command, answer_of(&verdict), verdict.by,
				 rows[i].answer, rows[i].by, verdict.because);
	}
}

#define PLAY(commands, rows) play(commands, rows, sizeof(rows) / sizeof((rows)[0]))

static void deny_wins_then_ask_and_the_rest_of_a_box_runs(void **state)
{
	static const struct judged rows[] = {
		{"git push", "deny", "git push"},
		{"git push origin main", "deny", "git push"},
		{"git -C sub --no-pager push -u origin x", "deny", "git push"},
		{"/usr/bin/git push", "deny", "git push"},
		{"'git' \"push\"", "deny", "git push"},
		{"\\git push", "deny", "git push"},
		{"cd src && make && git push >log 2>&1", "deny", "git push"},
		{"if make; then git push; fi", "deny", "git push"},
		{"(cd a; git push) | tee log", "deny", "git push"},
		{"A=b sudo -u root env C=d git push", "deny", "git push"},
		{"timeout -k 5 10 git push", "deny", "git push"},
		{"xargs -n 1 git push <list", "deny", "git push"},
		{"bash -c 'git push'", "deny", "git push"},
		{"sh -ec \"cd a && git push\"", "deny", "git push"},
		{"eval 'bash -c \"git push\"'", "deny", "git push"},
		{"find . -name x -exec git push \\;", "deny", "git push"},
		{"cat >x <<'E'\ngit status\nE\ngit push", "deny", "git push"},
		{"echo $(git push)", "deny", "git push"},
		{"npm publish; git push", "deny", "git push"},
		{"npm publish", "ask", "npm publish"},
		{"npm --loglevel silent publish --tag next", "ask", "npm publish"},
		/* Only the data says it, or it is another command, or another subcommand. */
		{"cat >x <<'E'\ngit push\nE\necho", "allow", ""},
		{"cat >x <<-E\n\tgit push\n\tE\necho", "allow", ""},
		{"echo git push", "allow", ""},
		{"git log push", "allow", ""},
		{"git commit -m 'git push'", "allow", ""},
		{"git -c push.default=x log", "allow", ""},
		{"npm run publish", "allow", ""},
		{"legit push", "allow", ""},
		/* It cannot be seen: the rule is no wall. */
		{"$G push", "allow", ""},
		{"./script-that-pushes", "allow", ""},
		{"", "allow", ""},
		{"for f in *; do echo \"$f\"; done", "allow", ""},
	};

	(void)state;
	PLAY("{\"deny\": [{\"program\": \"git\", \"subcommand\": \"push\"}], "
	     "\"ask\": [{\"program\": \"npm\", \"subcommand\": \"publish\"},"
	     "{\"program\": \"git\", \"subcommand\": \"push\"}]}",
	     rows);
}

static void a_rule_that_denies_names_a_part(void **state)
{
	static const struct judged rows[] = {
		{"git push --force", "deny", "git push"},
		{"git push --forc origin x", "deny", "git push"},
		{"git push origin x -f", "deny", "git push"},
		{"git push -uf origin x", "deny", "git push"},
		{"git push origin main", "deny", "git push"},
		{"git push -o ci.skip origin release", "deny", "git push"},
		{"git push --set-upstream \"$REMOTE\" main", "deny", "git push"},
		{"git push origin \"$BRANCH\"", "deny", "git push"},
		{"git push --force-with-lease", "allow", ""},
		{"git push origin topic", "allow", ""},
		{"git push -- --force", "allow", ""},
		{"docker run --memory=8 x", "deny", "docker run"},
		{"docker run --memory 16 x", "deny", "docker run"},
		{"docker run --memory=$M x", "deny", "docker run"},
		{"docker run --memory=2 x", "allow", ""},
		{"docker run x", "allow", ""},
		{"./dev/release now", "deny", "./dev/release"},
		{"dev/release now", "allow", ""},
	};

	(void)state;
	PLAY("{\"deny\": ["
	     "{\"program\": \"git\", \"subcommand\": \"push\", \"options\": [\"--force\", \"-f\"], "
	     "\"match\": [\"git push origin -f\"], \"not_match\": [\"git push\"]},"
	     "{\"program\": \"git\", \"subcommand\": \"push\", \"operands\": [\"main,release\"]},"
	     "{\"program\": \"docker\", \"subcommand\": \"run\", \"options\": [\"--memory=8,16\"]},"
	     "{\"program\": \"./dev/release\"}]}",
	     rows);
}

static void in_a_list_deny_and_ask_come_before_it(void **state)
{
	static const struct judged rows[] = {
		{"git status", "allow", ""},
		{"git log -n 3", "deny", "git log"},
		{"git push origin x", "ask", "git push"},
		{"git status && git push", "ask", "git push"},
		{"git push && git log", "deny", "git log"},
		{"git push && rm x", "deny", ""},
		{"git push >x", "deny", ""},
		{"rm x", "deny", ""},
	};
	static const struct judged boxed[] = {{"rm x", "allow", ""},
					      {"git log", "deny", "git log"}};
	static const struct judged allowed[] = {{"p a", "allow", ""},
						{"q", "allow", ""},
						{"r", "deny", ""}};

	(void)state;
	PLAY("{\"presets\": [\"git\"], \"deny\": [{\"program\": \"git\", \"subcommand\": \"log\"}],"
	     "\"ask\": [{\"program\": \"git\", \"subcommand\": \"push\"}]}",
	     rows);
	PLAY("{\"profile\": \"box\", \"presets\": [\"git\"], \"deny\": "
	     "[{\"program\": \"git\", \"subcommand\": \"log\"}]}",
	     boxed);
	PLAY("{\"allow\": [{\"program\": \"p\", \"operands\": [\"text\"]}], "
	     "\"rules\": [{\"program\": \"q\"}]}",
	     allowed);
}

/* A command that was asked for runs without a shell, as the list has it run, and with no words put in. */
static void what_is_asked_for_keeps_the_plan(void **state)
{
	auto_policy struct policy *policy =
		policy_of("{\"presets\": [\"git\"], \"ask\": [{\"program\": \"git\", "
			  "\"subcommand\": \"push\"}]}");
	const struct policy_request request = {.effects = POLICY_RUNS,
					       .command = STR("git status; git push 'a b'")};
	auto_value struct value *plan = NULL;
	struct verdict verdict;
	struct err err = {0};

	(void)state;
	commands_decide(policy, &request, &verdict);
	plan = verdict.plan;
	assert_int_equal(verdict.answer, VERDICT_ASK);
	assert_false(verdict.or_runs);
	assert_string_equal(verdict.rule, "agents.a.commands.ask");
	assert_non_null(strstr(verdict.because, "ask the user to run it"));
	assert_int_equal(value_count(plan), 2);
	assert_int_equal(value_count(value_member(value_item(plan, 1), "argv")), 3);
	/* Deny is never asked for, whatever else is. */
	auto_policy struct policy *both =
		policy_of("{\"presets\": [\"git\"], \"deny\": [{\"program\": \"rm\"}]}");
	assert_true(policy_add_ask(both, "commands", "--ask", &err));
	verdict = verdict_in(both, "rm x", NULL);
	assert_int_equal(verdict.answer, VERDICT_DENY);
	assert_string_equal(verdict.rule, "agents.a.commands.deny");
	assert_int_equal(verdict_in(both, "ls x", NULL).answer, VERDICT_ASK);
}

static void two_policies_deny_and_ask_what_either_does(void **state)
{
	auto_policy struct policy *a = policy_of("{\"deny\": [{\"program\": \"x\"}]}");
	auto_policy struct policy *b = policy_of(
		"{\"ask\": [{\"program\": \"y\"}], \"deny\": [{\"program\": \"z\"}]}");
	auto_policy struct policy *c = policy_of("{\"presets\": [\"text\"]}");
	auto_policy struct policy *box = policy_of("\"box\"");
	struct policy_names none = {.given = true};
	struct policy *all[] = {a, b, c, box};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		all[i]->tools = none;
	auto_policy struct policy *two = policy_intersect(a, b);
	auto_policy struct policy *three = policy_intersect(two, c);
	auto_policy struct policy *wide = policy_intersect(box, b);
	assert_false(commands_listed(two->commands));
	assert_true(commands_listed(three->commands));
	assert_int_equal(verdict_in(two, "x", NULL).answer, VERDICT_DENY);
	assert_int_equal(verdict_in(two, "y", NULL).answer, VERDICT_ASK);
	assert_int_equal(verdict_in(two, "z", NULL).answer, VERDICT_DENY);
	assert_int_equal(verdict_in(two, "ls", NULL).answer, VERDICT_ALLOW);
	assert_int_equal(verdict_in(three, "ls", NULL).answer, VERDICT_ALLOW);
	assert_int_equal(verdict_in(three, "x", NULL).answer, VERDICT_DENY);
	assert_int_equal(verdict_in(three, "y", NULL).answer, VERDICT_ASK);
	assert_int_equal(verdict_in(three, "w", NULL).answer, VERDICT_DENY);
	assert_int_equal(verdict_in(wide, "z", NULL).answer, VERDICT_DENY);
	assert_int_equal(verdict_in(wide, "w", NULL).answer, VERDICT_ALLOW);
	/* The texts, presets and unread of an agent hold for its delegates, too. */
	auto_policy struct policy *above = policy_of(
		"{\"deny\": [\"x -f\"], \"ask\": [\"danger\"], \"unread\": \"ask\"}");
	above->tools = none;
	auto_policy struct policy *delegate = policy_intersect(box, above);
	assert_int_equal(verdict_in(delegate, "x", NULL).answer, VERDICT_ALLOW);
	assert_int_equal(verdict_in(delegate, "x -qf", NULL).answer, VERDICT_DENY);
	assert_int_equal(verdict_in(delegate, "$X", NULL).answer, VERDICT_ASK);
	assert_int_equal(verdict_in(delegate, "tofu destroy", NULL).answer, VERDICT_ASK);
	assert_false(verdict_in(delegate, "rm -r .", NULL).or_runs);
	assert_true(verdict_in(box, "rm -r .", NULL).or_runs);
}

static void what_is_wrong_with_a_rule_is_said_where_it_stands(void **state)
{
	static const char *const rows[][2] = {
		{"{\"deny\": [{\"subcommand\": \"x\"}]}",
		 "/commands/deny/0: needs the key program"},
		{"{\"deny\": [{\"program\": \"ls,rm \"}]}",
		 "/commands/deny/0/program: no command is called \"rm \""},
		{"{\"deny\": [{\"program\": \"rm -rf\"}]}", "no command is called"},
		{"{\"deny\": [{\"program\": \"*\"}]}", "no command is called \"*\""},
		{"{\"deny\": [\"--force\"]}",
		 "/commands/deny/0: a rule that is a text begins with a program"},
		{"{\"deny\": [\"git push --force main\"]}",
		 "the subcommand stands before the options: \"main\" stands behind"},
		{"{\"ask\": [\"rm *\"]}", "/commands/ask/0: a rule that is a text names"},
		{"{\"ask\": [\"a,b \", \"rm?\"]}", "\"rm?\" is none: write an object"},
		{"{\"presets\": [\"danger\"]}",
		 "/commands/presets: \"danger\" lets nothing run; name it in ask or deny"},
		{"{\"deny\": [{\"program\": \"rm\", \"harm\": \"rm\"}]}",
		 "/commands/deny/0/harm: there is no harm \"rm\""},
		{"{\"allow\": [{\"program\": \"rm\", \"harm\": \"rm -r\"}]}",
		 "/commands/allow/0/harm: a rule that lets a command run"},
		{"{\"unread\": \"no\"}", "/commands/unread"},
		{"{\"denies\": []}", "did you mean \"deny\"?"},
		{"{\"ask\": [{\"program\": \"p\", \"insert\": [\"x\"]}]}",
		 "/commands/ask/0/insert: a rule that denies or asks only says"},
		{"{\"deny\": [{\"program\": \"p\", \"runs_code\": true}]}",
		 "deny/0/runs_code"},
		{"{\"deny\": [{\"program\": \"p\", \"executes\": [\"-c\"]}]}",
		 "name the options in \"options\""},
		{"{\"deny\": [{\"program\": \"p\", \"options\": [\"x\"]}]}",
		 "deny/0/options: \"x\" is no option"},
		{"{\"deny\": [{\"program\": \"p\", \"match\": [\"q\"]}]}",
		 "deny/0/match/0: \"q\" does not fit its rule \"p\""},
		{"{\"deny\": [{\"program\": \"p\", \"not_match\": [\"sudo p x\"]}]}",
		 "deny/0/not_match/0"},
		{"{\"deny\": \"rm\"}", "/commands/deny"},
		{"{\"allow\": [{\"program\": \"phpunit\", \"options\": [\"-c=path\"]}]}",
		 "allow/0/options/0: \"-c\" of \"phpunit\" names code (-c: a configuration"},
		{"{\"allow\": [{\"program\": \"phpunit\", \"options\": [\"--config=path\"]}]}",
		 "(--configuration: a configuration"},
		{"{\"allow\": [{\"program\": \"tar\", \"options\": [\"-xIf=path\"]}]}",
		 "(-I: a program"},
		{"{\"allow\": [{\"program\": \"go\", \"options\": [\"--exec=text\"]}]}",
		 "(-exec: "},
		{"{\"allow\": [{\"program\": \"git\", \"subcommand\": \"log\", \"global\": "
		 "[\"-c=text\"]}]}",
		 "global/0: \"-c\" of \"git log\" names code"},
		{"{\"allow\": [{\"program\": \"xargs\", \"operands\": [\"text+\"]}]}",
		 "operands/0: an operand of \"xargs\" is a program to start; name the choices"},
		{"{\"allow\": [{\"program\": \"node\", \"operands\": [\"path\"]}]}",
		 "or say \"runs_code\": true"},
	};
	static const char *const fine[] = {
		"{\"allow\": [{\"program\": \"phpunit\", \"executes\": [\"-c=path\"]}]}",
		"{\"allow\": [{\"program\": \"xargs\", \"operands\": [\"grep,wc\", \"text*\"]}]}",
		"{\"allow\": [{\"program\": \"node\", \"operands\": [\"path\"], \"runs_code\": true}]}",
		"{\"allow\": [{\"program\": \"git\", \"subcommand\": \"diff\", \"options\": [\"-c\"]}]}",
		"{\"allow\": [{\"program\": \"pytest\", \"options\": [\"--co\", \"-rA\"]}]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy *policy = NULL;
		struct err err = {0};

		if (try_policy(rows[i][0], &policy, &err))
			fail_msg("%s was taken", rows[i][0]);
		if (!strstr(err.text, rows[i][1]))
			fail_msg("%s: %s", rows[i][0], err.text);
	}
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		auto_policy struct policy *policy = policy_of(fine[i]);

		assert_true(commands_listed(policy->commands));
	}
}

static void what_destroys_much_is_asked_about_where_one_can(void **state)
{
	static const struct judged rows[] = {
		{"rm -rf /", "ask or run", "rm -r"},
		{"rm -rf /*", "ask or run", "rm -r"},
		{"rm -fr ~", "ask or run", "rm -r"},
		{"rm -rf ~/", "ask or run", "rm -r"},
		{"rm -r -f \"$HOME\"", "ask or run", "rm -r"},
		{"rm -rf ${HOME}/*", "ask or run", "rm -r"},
		{"rm -rf .", "ask or run", "rm -r"},
		{"rm -rf ./", "ask or run", "rm -r"},
		{"rm -rf *", "ask or run", "rm -r"},
		{"rm -rf ./* .[!.]*", "ask or run", "rm -r"},
		{"rm -rf ..", "ask or run", "rm -r"},
		{"rm --recursive --force -- .", "ask or run", "rm -r"},
		{"rm --recurs .", "ask or run", "rm -r"},
		{"rm -rf " WORKSPACE, "ask or run", "rm -r"},
		{"rm -rf \"$PWD\"", "ask or run", "rm -r"},
		{"rm -rf $(pwd)/*", "ask or run", "rm -r"},
		{"rm -rf .git", "ask or run", "rm -r"},
		{"rm -rf build /data", "ask or run", "rm -r"},
		{"cd src && rm -rf ../*", "ask or run", "rm -r"},
		{"(cd src && make); rm -rf *", "ask or run", "rm -r"},
		{"sudo rm -rf / --no-preserve-root", "ask or run", "rm -r"},
		{"bash -c 'rm -rf *'", "ask or run", "rm -r"},
		{"git clean -fdx", "ask or run", "git clean -x"},
		{"git -C . clean -x -f", "ask or run", "git clean -x"},
		{"git push --force", "ask or run", "git push --force"},
		{"git push -f origin main", "ask or run", "git push --force"},
		{"git push origin +main", "ask or run", "git push --force"},
		{"git push --mirror", "ask or run", "git push --force"},
		{"dd if=/dev/zero of=/dev/sda", "ask or run", "dd of="},
		{"dd if=a of=disk.img", "ask or run", "dd of="},
		{"mkfs.ext4 /dev/sdb", "ask or run", "mkfs"},
		{"mkfs -t ext4 disk.img", "ask or run", "mkfs"},
		{"chmod -R 777 .", "ask or run", "chmod -R 777"},
		{"chmod a+rwx -R src", "ask or run", "chmod -R 777"},
		/* Undo has it all: told afterwards, not asked before. */
		{"git reset --hard HEAD~1", "allow", ""},
		{"git clean -fd", "allow", ""},
		/* People do this all day. */
		{"rm -rf build", "allow", ""},
		{"rm -rf ./build/*", "allow", ""},
		{"rm -rf \"$TMPDIR/x\"", "allow", ""},
		{"rm -rf $BUILD", "allow", ""},
		{"rm -rf '*'", "allow", ""},
		{"rm -rf /tmp/x /tmp/*", "allow", ""},
		{"rm -rf ~/.cache/x", "allow", ""},
		{"rm -rf sub/.git", "allow", ""},
		{"rm -f *", "allow", ""},
		{"rm *.o", "allow", ""},
		{"rm -rf *.o", "allow", ""},
		{"cd build && rm -rf *", "allow", ""},
		{"cd \"$D\" && rm -rf *", "allow", ""},
		{"cd \"$(mktemp -d)\" && rm -rf ./*", "allow", ""},
		{"(cd build; rm -rf *)", "allow", ""},
		{"echo rm -rf /", "allow", ""},
		{"git clean -ndx", "allow", ""},
		{"git push", "allow", ""},
		{"git push --force-with-lease", "allow", ""},
		{"git push --dry-run --force", "allow", ""},
		{"dd if=a of=/dev/null", "allow", ""},
		{"dd if=/dev/zero of=/tmp/x bs=1M count=1", "allow", ""},
		{"dd if=a of=\"$TMPDIR/x\"", "allow", ""},
		{"dd if=a", "allow", ""},
		{"mkfs --help", "allow", ""},
		{"chmod -R 755 .", "allow", ""},
		{"chmod 777 file", "allow", ""},
		{"chmod -R u+rwX .", "allow", ""},
		{"grep -rn 'rm -rf /' .", "allow", ""},
	};
	auto_policy struct policy *policy = policy_of("\"box\"");
	struct verdict verdict;

	(void)state;
	assert_null(policy->commands);
	PLAY("\"box\"", rows);
	verdict = verdict_in(policy, "git reset --hard", NULL);
	assert_non_null(verdict.harm);
	assert_non_null(strstr(verdict.harm->next, "glovebox undo"));
	verdict = verdict_in(policy, "git reset --hard; git push -f", NULL);
	assert_string_equal(verdict.by, "git push --force");
	assert_non_null(strstr(verdict.because, "agents.a.commands.allow"));
	/* The folder of the call counts. */
	assert_int_equal(verdict_in(policy, "rm -rf *", WORKSPACE "/build").answer,
			 VERDICT_ALLOW);
	assert_int_equal(verdict_in(policy, "rm -rf ../*", WORKSPACE "/build").answer,
			 VERDICT_ASK);
}

static void a_rule_that_allows_takes_the_question_away(void **state)
{
	static const struct judged rows[] = {
		{"rm -rf .", "allow", ""},
		{"git clean -f -d -x", "allow", ""},
		{"git clean -fdx", "ask or run", "git clean -x"},
		{"rm -rf . && git push -f", "ask or run", "git push --force"},
	};
	static const struct judged listed[] = {{"rm -rf .", "allow", ""}};
	static const struct judged ruled[] = {{"rm -rf .", "deny", "rm"},
					      {"git push -f", "ask", "git push"}};

	(void)state;
	PLAY("{\"profile\": \"box\", \"allow\": [{\"program\": \"rm\", \"options\": [\"-rf\"], "
	     "\"operands\": [\"text+\"]}, {\"program\": \"git\", \"subcommand\": \"clean\", "
	     "\"options\": [\"-f\", \"-d\", \"-x\"]}]}",
	     rows);
	PLAY("{\"allow\": [{\"program\": \"rm\", \"options\": [\"-rf\"], \"operands\": [\"path\"]}]}",
	     listed);
	PLAY("{\"deny\": [{\"program\": \"rm\"}], \"ask\": [{\"program\": \"git\", "
	     "\"subcommand\": \"push\"}]}",
	     ruled);
}

/* A rule that names the program alone grants no word that names code. */
static void words_that_name_code_need_a_word_of_their_own(void **state)
{
	static const char *const denied[][2] = {
		{"phpunit -c evil.xml", "(-c: a configuration"},
		{"phpunit -cevil.xml", "(-c: a configuration"},
		{"phpunit --boot=evil.php", "(--bootstrap: a script to load first)"},
		{"phpunit --bootstrap evil.php", "\"--bootstrap\" in \"executes\""},
		{"php vendor/bin/phpunit --conf=x", "(--configuration: "},
		{"phpstan analyse -a x", "(-a: a script"},
		{"make SHELL=./x", "\"NAME=\" in \"executes\""},
		{"make CC=./x all", "(=: a variable"},
		{"make -fevil.mk", "(-f: a makefile)"},
		{"make --eval=x", "(--eval: "},
		{"git -c core.pager=x log", "(-c: a setting"},
		{"git --exec-path=. log", "(--exec-path: "},
		{"pytest -p evil", "(-p: a plugin"},
		{"pytest -pevil", "(-p: a plugin"},
		{"tar -xf a --to-com=x", "(--to-command: "},
		{"tar -Ix -f a", "(-I: "},
		{"tar -f a --checkpoint-action=exec=x", "(--checkpoint-action: "},
		{"find . -exec x", "(-exec: "},
		{"find . -delete", "(-delete: "},
		{"find -- . -exec", "(-exec: "},
		{"sed -n '1e x' a", "(the script: one that may start programs"},
		{"sed 's/a/x/e' a", "\"runs_code\": true"},
		{"sed -e 'w out' a", "(the script: "},
		{"awk 'BEGIN { system(\"x\") }'", "(the script: "},
		{"awk '{ print > \"out\" }'", "(the script: "},
		{"sort --compress-prog=x", "(--compress-program: "},
		{"rg --pre ./x a", "(--pre: "},
		{"npm test --script-shell=x", "(--script-shell: "},
		{"go test -exec ./x", "(-exec: "},
		{"cargo test --config x", "(--config: "},
		{"node --test --require x", "(--require: "},
		{"npx eslint --resolve-plugins-relative-to x",
		 "(--resolve-plugins-relative-to: "},
		{"tsc --noEmit --proj x", "(--project: "},
		{"mypy --config-file=x src", "(--config-file: "},
	};
	static const char *const runs[] = {
		"phpunit --filter X",
		"phpunit --filter='X::test' tests/A.php",
		"php -l src/a.php",
		"git diff --stat",
		"make -j4 check V=1",
		"pytest -rA --co",
		"sed -n '1,20p' a",
		"sed -n '/a b/,$p' a",
		"sed 's/a/b\\/c/g; s|x|y|2; /^$/d' a",
		"awk '{ print $1 }' a",
		"awk '$1 > 2 || $2 { s += $3 } END { print s }' a",
		"find . -name '*.c'",
		"node --test --test-reporter=tap a",
	};
	auto_policy struct policy *policy = policy_of(
		"{\"presets\": [\"php\", \"c\", \"python\", \"git\", \"node\", \"go\", \"rust\", \"text\"], "
		"\"allow\": [{\"program\": \"tar\", \"options\": [\"-f=path\", \"-x\", \"-xf=path\"]},"
		"{\"program\": \"find\", \"options\": [\"-name=text\"], \"operands\": [\"text*\", \"--\", "
		"\"text*\"]},"
		"{\"program\": \"sed\", \"options\": [\"-n\", \"-e=text\"], \"operands\": [\"text?\", "
		"\"path*\"]},"
		"{\"program\": \"awk\", \"operands\": [\"text\", \"path*\"]},"
		"{\"program\": \"rg\", \"operands\": [\"text+\"]}]}");

	(void)state;
	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
		struct verdict verdict = verdict_in(policy, denied[i][0], NULL);

		if (verdict.answer != VERDICT_DENY || !strstr(verdict.because, denied[i][1]))
			fail_msg("%s: %s", denied[i][0], verdict.because);
	}
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct verdict verdict = verdict_in(policy, runs[i], NULL);

		if (verdict.answer != VERDICT_ALLOW)
			fail_msg("%s: %s", runs[i], verdict.because);
	}
}

static void a_word_of_its_own_grants_it(void **state)
{
	static const struct judged rows[] = {
		{"phpunit -c phpunit.xml", "allow", ""},
		{"phpunit -c evil.xml", "deny", ""},
		{"phpunit --bootstrap x.php", "deny", ""},
		{"git -c color.ui=never log", "allow", ""},
		{"make CC=clang all", "allow", ""},
		{"make SHELL=x all", "deny", ""},
		{"git bisect run", "allow", ""},
	};

	(void)state;
	PLAY("{\"allow\": ["
	     "{\"program\": \"phpunit\", \"executes\": [\"-c=phpunit.xml,ci.xml\"]},"
	     "{\"program\": \"git\", \"subcommand\": \"log\", \"executes\": [\"-c=text\"]},"
	     "{\"program\": \"git\", \"subcommand\": \"bisect\", \"executes\": [\"run\"], "
	     "\"operands\": [\"text+\"]},"
	     "{\"program\": \"make\", \"executes\": [\"CC=\"], \"operands\": [\"text*\"]}]}",
	     rows);
}

/* Each find names the next: as many as a text holds. */
static void finds_within_finds_are_seen_to_a_depth(void **state)
{
	enum { FINDS = 60000 };
	auto_policy struct policy *policy =
		policy_of("{\"deny\": [{\"program\": \"git\", \"subcommand\": \"push\"}]}");
	struct verdict verdict;
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 20);
	for (int i = 0; i < FINDS; i++)
		assert_true(buf_adds(&text, "find . -exec "));
	assert_true(buf_adds(&text, "true"));
	verdict = verdict_in(policy, text.data, NULL);
	assert_string_equal(answer_of(&verdict), "allow");
	buf_fini(&text);
	verdict = verdict_in(policy, "find . -exec find . -exec git push \\;", NULL);
	assert_string_equal(answer_of(&verdict), "deny");
}

/* The spellings of tests/unit/policy/spellings, each by the rule in front of it. */
static void spellings_are_found_and_others_are_not(void **state)
{
	static const char commands[] =
		"{\"unread\": \"ask\", \"ask\": [\"danger\"], \"deny\": [\"git push --force\", "
		"\"rm -rf\", \"npm publish\", \"shutdown\", \"pkexec\", \"unshare -U\", {\"program\": \"kubectl\", \"subcommand\": "
		"\"delete\"}]}";
	auto_policy struct policy *policy = policy_of(commands);
	size_t found = 0, passed = 0, wrong = 0;

	(void)state;
	for (const struct embedded_file *file = spellings; file->name; file++) {
		struct str rest = {file->data, file->size}, line;

		while (str_next_line(&rest, &line)) {
			struct str text = line, by;
			struct verdict verdict;

			if (line.size == 0 || line.data[0] == '#')
				continue;
			/* ANSWER, RULE and TEXT between tabs, with \\n for a line end */
			const size_t first = str_find(text, STR("\t"), 0);
			const size_t second = str_find(text, STR("\t"), first + 1);
			auto_free char *answer = memory_copy_str(str_part(text, 0, first));
			auto_free char *command =
				memory_copy_str(str_part(text, second + 1, text.size));
			by = str_part(text, first + 1, second - first - 1);
			for (char *at = command; (at = strstr(at, "\\n")) != NULL; at++) {
				*at = '\n';
				memmove(at + 1, at + 2, strlen(at + 2) + 1);
			}
			verdict = verdict_in(policy, command, NULL);
			wrong += strcmp(answer_of(&verdict), answer) != 0 ||
				 !str_is(by, verdict.by);
			if (strcmp(answer_of(&verdict), answer) != 0 ||
			    !str_is(by, verdict.by))
				print_error("%.*s: %s by \"%s\"\n", (int)line.size,
					    line.data, answer_of(&verdict), verdict.by);
			*(strcmp(answer, "allow") == 0 ? &passed : &found) += 1;
		}
	}
	assert_int_equal(wrong, 0);
	assert_true(found >= 200);
	assert_true(passed >= 50);
}

/* A command that lies in many texts within others takes no longer than one text may. */
static void texts_within_texts_are_bounded(void **state)
{
	enum { DEEP = 40000 };
	static const char *const pieces[] = {"$(", "eval \"$(", "sh -c '",  "`",
					     "<(", "eval ",     "x <<E\n$("};
	auto_policy struct policy *policy =
		policy_of("{\"unread\": \"ask\", \"deny\": [\"git push\"]}");

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct verdict verdict;
		struct buf text;

		buf_init(&text, 1 << 20);
		for (int j = 0; j < DEEP; j++)
			(void)buf_adds(&text, pieces[i]);
		verdict = verdict_in(policy, text.data, NULL);
		assert_string_not_equal(answer_of(&verdict), "deny");
		buf_fini(&text);
	}
}

/*
 * Braces in number expand to nothing that is kept, and would take minutes. Those of a text are
 * read up to a bound, and what stands behind them is judged as it is written.
 */
static void braces_are_bounded_in_a_whole_text(void **state)
{
	enum { LINES = 1000, TIMES = 16, OPEN = 900 };
	static const char *const pieces[] = {"{,}", "{a,b}", "{,}"};
	auto_policy struct policy *policy =
		policy_of("{\"unread\": \"ask\", \"deny\": [\"git push\"]}");

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct verdict verdict;
		struct buf text;

		buf_init(&text, 4 << 20);
		for (int line = 0; line < LINES; line++) {
			(void)buf_adds(&text, i == 2 ? "$(true " : "true ");
			for (int j = 0; i == 1 && j < OPEN; j++)
				(void)buf_addc(&text, '{');
			for (int j = 0; j < TIMES; j++)
				(void)buf_adds(&text, pieces[i]);
			(void)buf_adds(&text, i == 2 ? ")\n" : "\n");
		}
		verdict = verdict_in(policy, text.data, NULL);
		assert_string_equal(answer_of(&verdict), "ask");
		(void)buf_adds(&text, "git push\n");
		verdict = verdict_in(policy, text.data, NULL);
		assert_string_equal(answer_of(&verdict), "deny");
		buf_fini(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deny_wins_then_ask_and_the_rest_of_a_box_runs),
		cmocka_unit_test(spellings_are_found_and_others_are_not),
		cmocka_unit_test(texts_within_texts_are_bounded),
		cmocka_unit_test(braces_are_bounded_in_a_whole_text),
		cmocka_unit_test(finds_within_finds_are_seen_to_a_depth),
		cmocka_unit_test(a_rule_that_denies_names_a_part),
		cmocka_unit_test(in_a_list_deny_and_ask_come_before_it),
		cmocka_unit_test(what_is_asked_for_keeps_the_plan),
		cmocka_unit_test(two_policies_deny_and_ask_what_either_does),
		cmocka_unit_test(what_is_wrong_with_a_rule_is_said_where_it_stands),
		cmocka_unit_test(what_destroys_much_is_asked_about_where_one_can),
		cmocka_unit_test(a_rule_that_allows_takes_the_question_away),
		cmocka_unit_test(words_that_name_code_need_a_word_of_their_own),
		cmocka_unit_test(a_word_of_its_own_grants_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
