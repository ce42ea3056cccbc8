/* hook_output: exit codes and answers of hooks at each moment. */
#include "extend/hook_output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct answer {
	enum hook_kind kind;
	int exit_code;
	const char *out, *error;
	/* what it comes to: "deny" …, "ends", "failed" or "silent" */
	const char *decision;
	const char *reason, *context, *told; /* parts of them; NULL: they are empty */
};

#define SPECIFIC(name, members) \
	"{\"hookSpecificOutput\": {\"hookEventName\": \"" name "\", " members "}}"

static const struct answer rows[] = {
	/* exit codes */
	{HOOK_BEFORE_CALL, 0, "", "", "silent", NULL, NULL, NULL},
	{HOOK_BEFORE_CALL, 0, "chatter", "more", "silent", NULL, NULL, NULL},
	{HOOK_BEFORE_CALL, 2, "", "no rm\n", "deny", "no rm", NULL, NULL},
	{HOOK_BEFORE_CALL, 2, "no rm", "", "deny", "No reason is given by f.json: c",
	 NULL, "The PreToolUse hook f.json: c refused without a word on standard error"},
	{HOOK_BEFORE_CALL, 2, "", "", "deny", "No reason is given by f.json: c", NULL, NULL},
	{HOOK_BEFORE_CALL, 2, "{\"decision\": \"approve\"}", "no", "deny", "no", NULL, NULL},
	{HOOK_BEFORE_CALL, 1, "", "oh\nmore", "failed", NULL, NULL, "exit code 1: oh"},
	{HOOK_BEFORE_CALL, 127, "{\"decision\": \"block\"}", "", "failed", NULL, NULL,
	 "exit code 127."},
	{HOOK_PROMPT, 0, "the date", "", "silent", NULL, "the date", NULL},
	{HOOK_PROMPT, 2, "x", "secret", "deny", "secret", NULL, NULL},
	{HOOK_SESSION_BEGAN, 0, "the branch", "", "silent", NULL, "the branch", NULL},
	{HOOK_SESSION_BEGAN, 2, "", "broken", "silent", "broken", NULL, "broken"},
	{HOOK_SESSION_ENDED, 2, "", "broken", "silent", "broken", NULL, "broken"},
	{HOOK_NOTIFICATION, 2, "", "broken", "silent", "broken", NULL, "broken"},
	{HOOK_AFTER_CALL, 0, "text", "", "silent", NULL, NULL, NULL},
	{HOOK_AFTER_CALL, 2, "", "lint: 3", "silent", "lint: 3", "lint: 3", NULL},
	{HOOK_AFTER_FAILURE, 2, "", "try make", "silent", "try make", "try make", NULL},
	{HOOK_STOP, 2, "", "tests are red", "deny", "tests are red", NULL, NULL},
	{HOOK_DELEGATE_STOP, 2, "", "tests are red", "deny", "tests are red", NULL, NULL},
	{HOOK_COMPACTION, 2, "", "not now", "deny", "not now", NULL, NULL},
	/* a permission that is refused tells the model why */
	{HOOK_PERMISSION, 2, "", "never", "deny", "never", "never", NULL},
	/* answers of PreToolUse, in both forms */
	{HOOK_BEFORE_CALL, 0, "{\"decision\": \"block\", \"reason\": \"r\"}", "", "deny",
	 "r", NULL, NULL},
	{HOOK_BEFORE_CALL, 0, "{\"decision\": \"approve\", \"reason\": \"r\"}", "",
	 "allow", "r", NULL, NULL},
	{HOOK_BEFORE_CALL, 0,
	 SPECIFIC("PreToolUse", "\"permissionDecision\": \"deny\", \"permissionDecisionReason\": "
				"\"r\""),
	 "", "deny", "r", NULL, NULL},
	{HOOK_BEFORE_CALL, 0,
	 SPECIFIC("PreToolUse",
		  "\"permissionDecision\": \"ask\", \"permissionDecisionReason\": \"r\""),
	 "", "ask", "r", NULL, NULL},
	{HOOK_BEFORE_CALL, 0, SPECIFIC("PreToolUse", "\"permissionDecision\": \"allow\""),
	 "", "allow", NULL, NULL, NULL},
	{HOOK_BEFORE_CALL, 0, SPECIFIC("PreToolUse", "\"permissionDecision\": \"defer\""),
	 "", "silent", NULL, NULL, NULL},
	{HOOK_BEFORE_CALL, 0, SPECIFIC("PreToolUse", "\"additionalContext\": \"c\""), "",
	 "silent", NULL, "c", NULL},
	/* other moments */
	{HOOK_PERMISSION, 0,
	 SPECIFIC("PermissionRequest", "\"decision\": {\"behavior\": "
				       "\"allow\"}"),
	 "", "allow", NULL, NULL, NULL},
	{HOOK_PERMISSION, 0,
	 SPECIFIC("PermissionRequest",
		  "\"decision\": {\"behavior\": \"deny\", \"message\": \"m\"}"),
	 "", "deny", "m", "m", NULL},
	{HOOK_PERMISSION, 0,
	 SPECIFIC("PermissionRequest",
		  "\"decision\": {\"behavior\": \"deny\", \"message\": \"m\", \"interrupt\": true}"),
	 "", "ends", "m", "m", NULL},
	{HOOK_PROMPT, 0, SPECIFIC("UserPromptSubmit", "\"additionalContext\": \"c\""), "",
	 "silent", NULL, "c", NULL},
	{HOOK_PROMPT, 0, "{\"decision\": \"block\", \"reason\": \"r\"}", "", "deny", "r",
	 NULL, NULL},
	{HOOK_AFTER_CALL, 0, "{\"decision\": \"block\", \"reason\": \"r\"}", "", "silent",
	 "r", "r", NULL},
	{HOOK_AFTER_CALL, 0, SPECIFIC("PostToolUse", "\"additionalContext\": \"c\""), "",
	 "silent", NULL, "c", NULL},
	{HOOK_STOP, 0, "{\"decision\": \"block\", \"reason\": \"r\"}", "", "deny", "r",
	 NULL, NULL},
	/* the end of a turn, and words for the person */
	{HOOK_BEFORE_CALL, 0, "{\"continue\": false, \"stopReason\": \"enough\"}", "",
	 "ends", "enough", NULL, NULL},
	{HOOK_AFTER_CALL, 0, "{\"continue\": false}", "", "ends",
	 "A hook has ended the turn", NULL, NULL},
	{HOOK_SESSION_BEGAN, 0, "{\"continue\": false}", "", "silent",
	 "A hook has ended the turn", NULL, NULL},
	{HOOK_STOP, 0, "{\"continue\": true, \"suppressOutput\": true}", "", "silent",
	 NULL, NULL, NULL},
	{HOOK_STOP, 0, "{\"systemMessage\": \"a\\u001b[2Jb\"}", "", "silent", NULL, NULL,
	 "b"},
	/* what a hook may not decide at its moment */
	{HOOK_STOP, 0, "{\"decision\": \"approve\"}", "", "silent", NULL, NULL, NULL},
	{HOOK_PROMPT, 0, "{\"decision\": \"allow\"}", "", "silent", NULL, NULL, NULL},
	{HOOK_PERMISSION, 0,
	 SPECIFIC("PermissionRequest", "\"decision\": {\"behavior\": \"ask\"}"), "",
	 "silent", "No reason", NULL, NULL},
	/* answers that are none */
	{HOOK_BEFORE_CALL, 0, "{\"decision\": ", "", "failed", NULL, NULL, "no sound JSON"},
	{HOOK_BEFORE_CALL, 0, "{\"decision\": 1}", "", "failed", NULL, NULL, "no answer"},
	{HOOK_BEFORE_CALL, 0, "{\"decision\": \"perhaps\"}", "", "failed", NULL, NULL,
	 "no answer to PreToolUse"},
	{HOOK_BEFORE_CALL, 0, "{\"continue\": \"false\"}", "", "failed", NULL, NULL,
	 "no answer"},
	{HOOK_BEFORE_CALL, 0, SPECIFIC("PreToolUse", "\"permissionDecision\": true"), "",
	 "failed", NULL, NULL, "no answer"},
	{HOOK_BEFORE_CALL, 0, SPECIFIC("PreToolUse", "\"updatedInput\": []"), "",
	 "failed", NULL, NULL, "no answer"},
	{HOOK_BEFORE_CALL, 0, SPECIFIC("PostToolUse", "\"permissionDecision\": \"allow\""),
	 "", "failed", NULL, NULL, "no answer"},
	{HOOK_BEFORE_CALL, 0, "{\"hookSpecificOutput\": 1}", "", "failed", NULL, NULL,
	 "no answer"},
};

static void assert_part(size_t row, const char *what, const struct buf *text,
			const char *part)
{
	if (part == NULL ? text->size > 0 : strstr(text->data, part) == NULL)
		fail_msg("row %zu: %s is \"%s\", not \"%s\"", row, what, text->data,
			 part != NULL ? part : "");
}

static const char *comes_to(const struct hook_said *said)
{
	return said->failed ? "failed"
	       : said->ends ? "ends"
			    : hook_decision_name(said->decision);
}

static void each_code_and_answer_has_its_meaning(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct answer *row = &rows[i];
		const struct hook hook = {.kind = row->kind,
					  .command = "c",
					  .source = "f.json"};
		const struct hook_output output = {.exit_code = row->exit_code,
						   .out = str_of(row->out),
						   .error = str_of(row->error)};
		struct hook_said said;

		hook_said_init(&said);
		hook_output_read(&output, &hook, &said);
		if (strcmp(comes_to(&said), row->decision) != 0)
			fail_msg("row %zu: %s, not %s", i, comes_to(&said), row->decision);
		assert_part(i, "the reason", &said.reason, row->reason);
		assert_part(i, "the context", &said.context, row->context);
		assert_part(i, "what the person is told", &said.told, row->told);
		hook_said_fini(&said);
	}
}

static void a_changed_input_is_kept(void **state)
{
	const struct hook hook = {.kind = HOOK_BEFORE_CALL, .command = "c", .source = "f"};
	const struct hook_output output = {
		.out = STR(SPECIFIC("PreToolUse",
				    "\"updatedInput\": {\"command\": \"ls\"}"))};
	struct hook_said said;

	(void)state;
	hook_said_init(&said);
	hook_output_read(&output, &hook, &said);
	assert_string_equal(value_text(value_member(said.input, "command")), "ls");
	assert_int_equal(said.decision, HOOK_SILENT);
	hook_said_fini(&said);
}

static void a_hook_that_gives_no_answer_refuses_where_it_must_answer(void **state)
{
	static const struct hook_output outputs[] = {
		{.ending = HOOK_TIMED_OUT, .exit_code = -1},
		{.ending = HOOK_FAILED, .why = STR("no shell")},
		{.ending = HOOK_CANCELLED, .exit_code = -1},
		{.exit_code = 1},
		{.exit_code = -1, .signal = 11},
		{.out = STR("{")},
		{.out = STR("{}"), .cut = true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		for (int required = 0; required < 2; required++) {
			const struct hook hook = {.kind = HOOK_BEFORE_CALL,
						  .command = "c",
						  .source = "f",
						  .required = required};
			struct hook_said said;

			hook_said_init(&said);
			hook_output_read(&outputs[i], &hook, &said);
			assert_true(said.failed);
			assert_int_equal(said.decision, required ? HOOK_DENY : HOOK_SILENT);
			assert_true(said.told.size > 0 ||
				    outputs[i].ending == HOOK_CANCELLED);
			hook_said_fini(&said);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_code_and_answer_has_its_meaning),
		cmocka_unit_test(a_changed_input_is_kept),
		cmocka_unit_test(a_hook_that_gives_no_answer_refuses_where_it_must_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
