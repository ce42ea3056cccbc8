/* Tests of policy/rules. */
#include "../base/unit.h"

#include "base/buf.h"
#include "policy/rules.h"

static const char two[] =
	"// by hand\n{\"rules\": ["
	"{\"agent\": \"coder\", \"folder\": \"/a\", \"kind\": \"command\","
	" \"rule\": \"git push\", \"since\": \"2026-11-29\"},"
	"{\"agent\": \"coder\", \"folder\": \"/a\", \"kind\": \"host\","
	" \"rule\": \"[::1]:443\"},]}";

static void rules_come_back_as_they_are_written(void **state)
{
	struct rules rules, again;
	struct err err = {0};
	struct buf text;

	(void)state;
	if (!rules_parse(str_of(two), "rules.json", &rules, &err))
		fail_msg("%s", err.text);
	assert_int_equal(rules.count, 2);
	assert_int_equal(rules.items[1].kind, RULE_HOST);
	assert_null(rules.items[1].since);
	/* One that is there is not added again, whatever its day is. */
	rules.items[0].since[0] = '3';
	assert_true(rules_add(&rules, &rules.items[0]));
	assert_int_equal(rules.count, 2);
	buf_init(&text, 4096);
	assert_true(rules_print(&rules, &text));
	assert_true(rules_parse(buf_str(&text), "rules.json", &again, &err));
	assert_int_equal(again.count, 2);
	assert_int_equal(rules_find(&again, &rules.items[1]), 1);
	assert_string_equal(again.items[0].since, rules.items[0].since);
	rules_remove(&again, 0);
	assert_int_equal(again.count, 1);
	assert_int_equal(rules_find(&again, &rules.items[0]), 1);
	buf_fini(&text);
	rules_fini(&rules);
	rules_fini(&again);
	assert_true(rules_parse(STR(" \n"), "rules.json", &rules, &err));
	assert_int_equal(rules.count, 0);
}

/* Each of these commands, and what a rule for it would be; NULL: there is none. */
static const struct {
	const char *command, *rules;
} rows[] = {
	{"git push", "[\"git push\"]"},
	{"git push --force origin 'a b'", "[\"git push\"]"},
	{"cargo build --release && cargo test; ls src",
	 "[\"cargo build\",\"cargo test\",\"ls src\"]"},
	{"git log | head", NULL},
	{"git log | wc -l", NULL},
	{"git", NULL},
	{"git --version", NULL},
	{"git -c core.pager=x log", NULL},
	{"git log --ext-diff", NULL},
	{"git grep -O x", NULL},
	{"git 'pu sh'", NULL},
	{"git $x", NULL},
	{"git push > x", NULL},
	{"X=1 git push", NULL},
	{"(git push)", NULL},
	{"bash x.sh", NULL},
	{"/bin/ls src", NULL},
	{"./build all", NULL},
	{"env git push", NULL},
	{"python3.11 x.py", NULL},
	{"make all", NULL},
	{"npm run build", NULL},
	{"npm exec x", NULL},
	{"docker run x", NULL},
	{"npm ci", "[\"npm ci\"]"},
	{"", NULL},
};

static void a_rule_says_what_it_lets_in(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_value struct value *list = rules_of_text(str_of(rows[i].command));
		struct buf text;

		buf_init(&text, 4096);
		if (list)
			(void)value_print(list, 0, &text);
		if ((list != NULL) != (rows[i].rules != NULL) ||
		    (list && strcmp(text.data, rows[i].rules) != 0))
			fail_msg("%s: %s", rows[i].command, text.data);
		buf_fini(&text);
	}
}

static void a_rule_lets_in_its_words_alone(void **state)
{
	char push[] = "git push";
	char *items[] = {push};
	const struct policy_names always = {.items = items, .count = 1};
	const char *const in[][4] = {{"git", "push"}, {"git", "push", "--tags", "x"}};
	const char *const out[][4] = {{"git"},
				      {"git", "pull"},
				      {"git", "pushx"},
				      {"gitx", "push"},
				      {"/usr/bin/git", "push"},
				      {"git", "-C", "push"},
				      {"git", "push", "--receive-pack=x"},
				      {"git", "push", "--exec", "x"}};

	(void)state;
	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
		const char *argv[] = {in[i][0], in[i][1], in[i][2], in[i][3], NULL};

		if (!rules_let(&always, argv))
			fail_msg("not let: %zu", i);
	}
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		const char *argv[] = {out[i][0], out[i][1], out[i][2], out[i][3], NULL};

		if (rules_let(&always, argv))
			fail_msg("let: %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_come_back_as_they_are_written),
		cmocka_unit_test(a_rule_says_what_it_lets_in),
		cmocka_unit_test(a_rule_lets_in_its_words_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
