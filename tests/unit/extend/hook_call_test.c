/* hook_call: calls in the words of hooks, and back. */
#include "extend/hook_call.h"

#include "base/buf.h"
#include "tools/tools.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct value *value_of(const char *text)
{
	struct value *value = NULL;
	struct err err = {0};

	if (!value_parse(str_of(text), 0, &value, &err))
		fail_msg("%s: %s", text, err.text);
	return value;
}

static void assert_value(const struct value *value, const char *wanted)
{
	auto_value struct value *other = value_of(wanted);
	struct buf text;

	buf_init(&text, 64 << 10);
	(void)value_print(value, 0, &text);
	if (!value_equal(value, other))
		fail_msg("%s is not %s", text.data, wanted);
	buf_fini(&text);
}

static const struct tool *tool_of(const char *name)
{
	static struct tool made;
	const struct tool *tool = tool_find(builtin_tools, name);

	if (tool != NULL)
		return tool;
	made = (struct tool){.name = name};
	return &made;
}

/* Calls of tools of ours: their name, and the arguments on both sides. */
static const struct {
	const char *tool, *ours, *name, *theirs;
} rows[] = {
	{"bash", "{\"command\":\"ls\",\"timeout_s\":2.5,\"background\":true}", "Bash",
	 "{\"command\":\"ls\",\"timeout\":2500,\"run_in_background\":true}"},
	{"read_file", "{\"path\":\"/w/a\",\"start_line\":3,\"limit\":2}", "Read",
	 "{\"file_path\":\"/w/a\",\"offset\":3,\"limit\":2}"},
	{"write_file", "{\"path\":\"/w/a\",\"content\":\"x\"}", "Write",
	 "{\"file_path\":\"/w/a\",\"content\":\"x\"}"},
	{"edit_file",
	 "{\"path\":\"/w/a\",\"edits\":[{\"old\":\"o\",\"new\":\"n\",\"replace_all\":true}]}",
	 "Edit",
	 "{\"file_path\":\"/w/a\",\"old_string\":\"o\",\"new_string\":\"n\",\"replace_all\":true}"},
	{"edit_file",
	 "{\"path\":\"/w/a\",\"edits\":[{\"old\":\"o\",\"new\":\"n\"},{\"old\":\"p\",\"new\":"
	 "\"q\"}]}",
	 "MultiEdit",
	 "{\"file_path\":\"/w/a\",\"edits\":[{\"old_string\":\"o\",\"new_string\":\"n\"},{\"old_"
	 "string\":\"p\",\"new_string\":\"q\"}]}"},
	{"edit_notebook",
	 "{\"path\":\"/w/a.ipynb\",\"cell\":2,\"source\":\"s\",\"action\":\"insert\"}",
	 "NotebookEdit",
	 "{\"notebook_path\":\"/w/a.ipynb\",\"cell_number\":2,\"new_source\":\"s\",\"edit_mode\":"
	 "\"insert\"}"},
	{"grep",
	 "{\"pattern\":\"x\",\"mode\":\"files\",\"ignore_case\":true,\"path\":\"/w/s\"}",
	 "Grep",
	 "{\"pattern\":\"x\",\"output_mode\":\"files_with_matches\",\"-i\":true,\"path\":\"/w/s\"}"},
	{"glob", "{\"pattern\":\"*.c\"}", "Glob", "{\"pattern\":\"*.c\"}"},
	{"web_fetch", "{\"url\":\"https://a/\"}", "WebFetch", "{\"url\":\"https://a/\"}"},
	{"delegate_agent", "{\"agent\":\"tester\",\"task\":\"t\"}", "Agent",
	 "{\"subagent_type\":\"tester\",\"prompt\":\"t\"}"},
	{"todo", "{\"items\":[{\"text\":\"a\",\"state\":\"active\"}]}", "TodoWrite",
	 "{\"todos\":[{\"content\":\"a\",\"status\":\"in_progress\",\"activeForm\":\"a\"}]}"},
	{"mine", "{\"x\":1}", "mine", "{\"x\":1}"},
};

static void calls_are_told_in_their_words_and_come_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_value struct value *ours = value_of(rows[i].ours);
		const struct tool *tool = tool_of(rows[i].tool);
		auto_value struct value *back = NULL;
		struct hook_calls calls;

		hook_calls_of(tool, ours, "/w", &calls);
		assert_int_equal(calls.count, 1);
		assert_string_equal(calls.items[0].names[0], rows[i].name);
		assert_value(calls.items[0].input, rows[i].theirs);
		back = hook_call_back(tool, calls.items[0].input);
		assert_value(back, rows[i].ours);
		hook_calls_fini(&calls);
	}
}

static void paths_become_absolute(void **state)
{
	auto_value struct value *ours =
		value_of("{\"path\":\"src/../a\",\"content\":\"\"}");
	struct hook_calls calls;

	(void)state;
	hook_calls_of(tool_of("write_file"), ours, "/w", &calls);
	assert_value(calls.items[0].input, "{\"file_path\":\"/w/a\",\"content\":\"\"}");
	hook_calls_fini(&calls);
}

static void a_patch_is_an_edit_of_each_file(void **state)
{
	static const char patch[] = "--- a/one\n+++ b/one\n@@ -1 +1 @@\n-a\n+b\n"
				    "--- /dev/null\n+++ b/two\n@@ -0,0 +1 @@\n+c\n";
	auto_value struct value *ours = value_new_object();
	struct hook_calls calls;
	size_t found = 0;

	(void)state;
	value_set_text(ours, "patch", patch);
	hook_calls_of(tool_of("apply_patch"), ours, "/w", &calls);
	for (size_t i = 0; i < calls.count; i++) {
		const struct value *input = calls.items[i].input;
		const char *path = value_text(value_member(input, "file_path"));

		assert_string_equal(calls.items[i].names[0], "Edit");
		assert_string_equal(calls.items[i].names[1], "Write");
		assert_string_equal(value_text(value_member(input, "new_string")), patch);
		found += strcmp(path, "/w/one") == 0 || strcmp(path, "/w/two") == 0;
	}
	assert_true(calls.count >= 2 && found == calls.count);
	assert_null(hook_call_back(tool_of("apply_patch"), calls.items[0].input));
	hook_calls_fini(&calls);
}

static void a_patch_that_cannot_be_read_is_told(void **state)
{
	auto_value struct value *ours = value_of("{\"patch\":\"nothing\"}");
	struct hook_calls calls;

	(void)state;
	hook_calls_of(tool_of("apply_patch"), ours, "/w", &calls);
	assert_int_equal(calls.count, 1);
	assert_string_equal(calls.items[0].names[0], "Edit");
	hook_calls_fini(&calls);
}

static void a_batch_is_a_read_of_each_file(void **state)
{
	auto_value struct value *ours = value_of(
		"{\"files\":[{\"path\":\"a\"},{\"path\":\"b\",\"start_line\":2}]}");
	struct hook_calls calls;

	(void)state;
	hook_calls_of(tool_of("batch_read"), ours, "/w", &calls);
	assert_int_equal(calls.count, 2);
	assert_string_equal(calls.items[1].names[0], "Read");
	assert_value(calls.items[1].input, "{\"file_path\":\"/w/b\",\"offset\":2}");
	assert_null(hook_call_back(tool_of("batch_read"), calls.items[0].input));
	hook_calls_fini(&calls);
}

static void other_names_and_ours_fit_as_well(void **state)
{
	auto_value struct value *ours = value_of("{\"agent\":\"a\",\"task\":\"t\"}");
	struct hook_calls calls;

	(void)state;
	hook_calls_of(tool_of("delegate_agent"), ours, "/w", &calls);
	assert_string_equal(calls.items[0].names[1], "Task");
	assert_string_equal(calls.items[0].names[2], "delegate_agent");
	assert_null(calls.items[0].names[3]);
	hook_calls_fini(&calls);
	assert_string_equal(hook_call_name("read_file"), "Read");
	assert_string_equal(hook_call_name("run_tests"), "run_tests");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_told_in_their_words_and_come_back),
		cmocka_unit_test(paths_become_absolute),
		cmocka_unit_test(a_patch_is_an_edit_of_each_file),
		cmocka_unit_test(a_patch_that_cannot_be_read_is_told),
		cmocka_unit_test(a_batch_is_a_read_of_each_file),
		cmocka_unit_test(other_names_and_ours_fit_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
