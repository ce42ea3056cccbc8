/* Tests of runtime/wire, runtime/spec and runtime/event: what is written is read back. */
#include "../base/unit.h"

#include <string.h>

#include "base/clock.h"
#include "runtime/event.h"
#include "runtime/spec.h"
#include "runtime/wire.h"

static void a_call_is_read_back(void **state)
{
	auto_value struct value *arguments = value_new_object();
	auto_value struct value *object = NULL;
	struct wire_call read;
	struct buf text;
	struct err err;

	(void)state;
	value_set_str(arguments, "content", (struct str){"a\0b\xff\n", 5});
	const struct wire_call written = {.tool = "write_file",
					  .arguments = arguments,
					  .folder = "/w",
					  .deadline_ms = CLOCK_NEVER,
					  .grace_s = 0.25,
					  .agent = "tester",
					  .limits = {.memory = 5, .pids = 6, .quiet_s = 1.5}};
	buf_init(&text, 1 << 16);
	assert_true(wire_print_call(&written, &text));
	assert_true(wire_parse_call(buf_str(&text), &read, &object, &err));
	assert_string_equal(read.tool, "write_file");
	assert_true(read.deadline_ms == CLOCK_NEVER);
	assert_true(read.grace_s > 0.2 && read.grace_s < 0.3);
	assert_string_equal(read.agent, "tester");
	assert_int_equal(read.limits.memory, 5);
	assert_int_equal(read.limits.pids, 6);
	assert_true(read.limits.quiet_s == 1.5 && read.limits.free_space == 0);
	/* NUL is kept; what is no UTF-8 becomes U+FFFD. */
	struct str content = value_str(value_member(read.arguments, "content"));
	assert_int_equal(content.size, 7);
	assert_memory_equal(content.data, "a\0b\xef\xbf\xbd\n", 7);
	assert_null(read.seen);
	buf_fini(&text);
}

static void a_result_is_read_back(void **state)
{
	struct tool_result written, read;
	struct buf text;
	struct err err;

	(void)state;
	tool_result_init(&written);
	tool_result_init(&read);
	(void)tool_fail(&written, "No such line: %d.", 40);
	written.exit_code = 3;
	written.signal = 9;
	written.left_out_bytes = 77;
	value_set_text(tool_details(&written), "path", "/w/a");
	buf_init(&text, 1 << 16);
	assert_true(wire_print_result(&written, &text));
	assert_true(wire_parse_result(buf_str(&text), &read, &err));
	assert_int_equal(read.status, RESULT_FAILED);
	assert_string_equal(read.text.data, "No such line: 40.");
	assert_int_equal(read.exit_code, 3);
	assert_int_equal(read.signal, 9);
	assert_int_equal(read.left_out_bytes, 77);
	assert_string_equal(value_text(value_member(read.details, "path")), "/w/a");
	assert_null(read.seen);
	tool_result_fini(&written);
	tool_result_fini(&read);
	buf_fini(&text);
}

static void what_is_no_result_is_refused(void **state)
{
	static const char *const texts[] = {"",
					    "[]",
					    "{}",
					    "{\"status\": 1}",
					    "{\"status\": \"perfect\"}",
					    "{\"status\": \"done\""};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(texts); i++) {
		struct tool_result result;
		struct err err = {0};
		tool_result_init(&result);
		assert_false(wire_parse_result(str_of(texts[i]), &result, &err));
		assert_true(err.text[0] != '\0');
		tool_result_fini(&result);
	}
}

static void a_specification_is_read_back(void **state)
{
	struct cell_spec written, read;
	struct buf text;
	struct err err;

	(void)state;
	spec_init(&written);
	spec_init(&read);
	struct view_entry *entry = spec_add_entry(&written, VIEW_MEMORY, "/tmp", NULL);
	entry->mode = 01777;
	entry->size = 1 << 20;
	spec_add_entry(&written, VIEW_TREE, "/w", "/w")->writable = true;
	spec_add_root(&written, "/w", true, "*.md");
	spec_add_writable(&written, "/w");
	spec_add_blocked(&written, "/w/secret");
	spec_add_environment(&written, "PATH=%s", "/bin");
	written.workspace = "/w";
	written.home = "/home/glovebox";
	written.identity.uid = 1000;
	written.processes = 512;
	buf_init(&text, 1 << 16);
	assert_true(spec_print(&written, &text));
	assert_true(spec_parse(buf_str(&text), &read, &err));
	assert_int_equal(read.view.count, 2);
	assert_int_equal(read.view.entries[0].mode, 01777);
	assert_int_equal(read.view.entries[0].size, 1 << 20);
	assert_int_equal(read.view.entries[0].fd, -1);
	assert_true(read.view.entries[1].writable);
	assert_string_equal(read.roots[0].pattern, "*.md");
	assert_string_equal(read.writable[0], "/w");
	assert_null(read.writable[1]);
	assert_string_equal(read.blocked[0], "/w/secret");
	assert_string_equal(read.environment[0], "PATH=/bin");
	assert_int_equal(read.identity.uid, 1000);
	assert_int_equal(read.processes, 512);
	spec_fini(&written);
	spec_fini(&read);
	buf_fini(&text);
}

static void an_event_is_one_json_object(void **state)
{
	auto_value struct value *data = value_new_object();
	auto_value struct value *read = NULL;
	struct buf text;
	struct err err;

	(void)state;
	value_set_integer(data, "stream", 2);
	const struct event event = {.number = 7,
				    .kind = EVENT_TOOL_OUTPUT,
				    .wall_ms = 12,
				    .call = "c1",
				    .tool = "bash",
				    .text = STR("line\n"),
				    .data = data};
	buf_init(&text, 1 << 16);
	assert_true(event_print(&event, &text));
	assert_true(value_parse(buf_str(&text), 0, &read, &err));
	assert_string_equal(value_text(value_member(read, "event")), "tool_output");
	assert_int_equal(value_integer(value_member(read, "n")), 7);
	assert_int_equal(value_integer(value_member(read, "stream")), 2);
	assert_string_equal(value_text(value_member(read, "text")), "line\n");
	buf_fini(&text);
	buf_init(&text, 20);
	assert_false(event_print(&event, &text));
	assert_int_equal(text.size, 0);
	buf_fini(&text);
}

static void every_kind_of_event_has_a_name_of_its_own(void **state)
{
	enum event_kind found;

	(void)state;
	for (int kind = EVENT_SESSION_BEGAN; kind <= EVENT_TURN_ENDED; kind++) {
		assert_true(
			event_kind_parse(event_kind_name((enum event_kind)kind), &found));
		assert_int_equal(found, kind);
	}
	assert_false(event_kind_parse("unknown", &found));
	assert_true(event_is_kept(EVENT_TOOL_ENDED));
	assert_false(event_is_kept(EVENT_TEXT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_read_back),
		cmocka_unit_test(a_result_is_read_back),
		cmocka_unit_test(what_is_no_result_is_refused),
		cmocka_unit_test(a_specification_is_read_back),
		cmocka_unit_test(an_event_is_one_json_object),
		cmocka_unit_test(every_kind_of_event_has_a_name_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
