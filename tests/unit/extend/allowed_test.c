/* Tests of extend/allowed: which calls the entries of a skill let in. */
#include "../base/unit.h"

#include <string.h>

#include "extend/allowed.h"

/* Is TOOL let in with COMMAND by `allowed-tools`, the JSON text VALUE? */
static bool lets_in(const char *value, const char *tool, const char *command)
{
	const struct tool called = {.name = tool};
	auto_value struct value *arguments = value_new_object();
	auto_value struct value *matter = NULL;
	struct allowed allowed;
	struct buf text;
	bool has;

	buf_init(&text, 256);
	(void)buf_addf(&text, "{\"allowed-tools\": %s}", value);
	assert_true(value_parse(buf_str(&text), 0, &matter, NULL));
	buf_fini(&text);
	if (command != NULL)
		value_set_text(arguments, "command", command);
	allowed_take(&allowed, matter);
	has = allowed_has(&allowed, &called, arguments);
	allowed_fini(&allowed);
	return has;
}

static void entries_let_calls_in(void **state)
{
	static const struct {
		const char *value, *tool, *command;
		bool has;
	} rows[] = {
		{"null", "write_file", NULL, true},
		{"\"Read\"", "read_file", NULL, true},
		{"\"read_file\"", "read_file", NULL, true},
		{"\"Read\"", "write_file", NULL, false},
		{"\"Read, Grep\"", "grep", NULL, true},
		{"\"Read Grep\"", "grep", NULL, true},
		{"[\"Read\", \"Grep\"]", "grep", NULL, true},
		{"[]", "grep", NULL, false},
		{"\"\"", "grep", NULL, false},
		{"7", "grep", NULL, false},
		{"\"*\"", "grep", NULL, true},
		{"\"Task\"", "delegate_agent", NULL, true},
		{"\"Bash\"", "bash", "rm x; ls", true},
		{"\"Bash(git log:*)\"", "bash", "git log -3", true},
		{"\"Bash(git log *)\"", "bash", "git log", true},
		{"\"Bash(git log:*)\"", "bash", "git logs", false},
		{"\"Bash(git log:*)\"", "bash", "git push", false},
		{"\"Bash(git log:*)\"", "bash", "git log; git push", false},
		{"\"Bash(git log:*), Bash(wc:*)\"", "bash", "git log | wc -l", true},
		{"\"Bash(git log:*)\"", "bash", "git log $(id)", false},
		{"\"Bash(git log:*)\"", "bash", "git log >x", false},
		{"\"Bash(make check)\"", "bash", "make check", true},
		{"\"Bash(make check)\"", "bash", "make check install", false},
		{"\"Bash(make check)\"", "bash", "make", false},
		{"\"Bash()\"", "bash", "make", false},
		{"\"Bash(*)\"", "bash", "make", false},
		{"\"Bash(:*)\"", "bash", "make", false},
		{"\"Bash(git log:*\"", "bash", "git log", true},
		{"\"Read(docs/**)\"", "read_file", NULL, false},
		{"\"Bash(git log:*)\"", "bash", "", false},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		if (lets_in(rows[i].value, rows[i].tool, rows[i].command) != rows[i].has)
			fail_msg("%s: %s %s", rows[i].value, rows[i].tool,
				 rows[i].command != NULL ? rows[i].command : "");
	}
}

static void entries_are_printed(void **state)
{
	auto_value struct value *matter = value_new_object();
	struct allowed allowed;
	struct buf text;

	(void)state;
	value_set_text(matter, "allowed-tools", "Read,  Bash(git log:*)");
	allowed_take(&allowed, matter);
	buf_init(&text, 256);
	allowed_print(&allowed, &text);
	assert_string_equal(text.data, "Read, Bash(git log:*)");
	allowed_fini(&allowed);
	buf_clear(&text);
	value_set_text(matter, "allowed-tools", "");
	allowed_take(&allowed, matter);
	allowed_print(&allowed, &text);
	assert_string_equal(text.data, "none");
	allowed_fini(&allowed);
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_let_calls_in),
		cmocka_unit_test(entries_are_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
