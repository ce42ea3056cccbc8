/* Tests of cell/wire, view/spec and tool/event: what is written is read back. */
#include "../base/unit.h"

#include <string.h>

#include "base/clock.h"
#include "cell/wire.h"
#include "tool/call.h"
#include "tool/event.h"
#include "tool/tool.h"
#include "view/spec.h"

static void a_call_is_read_back(void **state)
{
	auto_value struct value *arguments = value_new_object();
	auto_value struct value *nothing = value_new_object();
	struct wire_call read;
	struct buf payload;
	struct err err;

	(void)state;
	value_set_str(arguments, "content", (struct str){"a\0b\xff\n", 5});
	auto_value struct value *carried = value_new_object();
	value_set_text(carried, "file", "/p/tool.bash");
	const struct wire_call written = {.tool = "write_file",
					  .arguments = arguments,
					  .carried = carried,
					  .folder = "/w",
					  .deadline_ms = CLOCK_NEVER,
					  .heralds = true,
					  .terse = true,
					  .alone = true,
					  .reach = GUARD_LAST,
					  .timeout_s = 0.5,
					  .keeps_pids = true,
					  .seen = nothing};
	buf_init(&payload, 1 << 16);
	assert_true(wire_print_call(&written, &payload));
	assert_true(wire_parse_call(buf_str(&payload), &read, &err));
	assert_string_equal(read.tool, "write_file");
	assert_string_equal(read.folder, "/w");
	assert_true(read.deadline_ms == CLOCK_NEVER);
	assert_true(read.timeout_s == 0.5);
	assert_true(read.heralds && read.terse && read.alone && read.keeps_pids);
	assert_false(read.is_last || read.audits || read.keeps_memory);
	assert_int_equal(read.reach, GUARD_LAST);
	/* NUL is kept; what is no UTF-8 becomes U+FFFD. */
	struct str content = value_str(value_member(read.arguments, "content"));
	assert_int_equal(content.size, 7);
	assert_memory_equal(content.data, "a\0b\xef\xbf\xbd\n", 7);
	assert_null(read.seen);
	assert_null(read.environment);
	assert_true(value_equal(read.carried, carried));
	wire_call_fini(&read);
	buf_fini(&payload);
	/* What does not fit is not written. */
	buf_init(&payload, 64);
	assert_false(wire_print_call(&written, &payload));
	buf_fini(&payload);
}

static void calls_of_a_batch_are_read_back(void **state)
{
	const struct str calls[] = {STR("first"), STR(""), STR("third")};
	struct str rest, one;
	struct buf batch;

	(void)state;
	buf_init(&batch, 64);
	for (size_t i = 0; i < UNIT_COUNT(calls); i++)
		assert_true(wire_add_to_batch(calls[i], &batch));
	rest = buf_str(&batch);
	for (size_t i = 0; i < UNIT_COUNT(calls); i++) {
		assert_true(wire_next_of_batch(&rest, &one));
		assert_true(str_is(one, calls[i].data));
	}
	assert_false(wire_next_of_batch(&rest, &one));
	/* Torn anywhere: what is whole, and no more. */
	for (size_t size = 0; size < batch.size; size++) {
		rest = str_part(buf_str(&batch), 0, size);
		while (wire_next_of_batch(&rest, &one))
			assert_true(one.data + one.size <= batch.data + size);
	}
	/* What does not fit is told. */
	assert_false(wire_add_to_batch(STR("more than there is room for, by some bytes, "
					   "and even more"),
				       &batch));
	buf_fini(&batch);
}

/* Each byte of a call gone, or one of its head changed: never more than it is. */
static void a_torn_call_is_refused(void **state)
{
	auto_value struct value *arguments = value_new_object();
	const struct wire_call written = {.tool = "bash",
					  .arguments = arguments,
					  .folder = "/w",
					  .deadline_ms = 7};
	struct wire_call read;
	struct buf payload;

	(void)state;
	value_set_text(arguments, "command", "true");
	buf_init(&payload, 1 << 16);
	assert_true(wire_print_call(&written, &payload));
	for (size_t size = 0; size < payload.size; size++)
		assert_false(wire_parse_call(str_part(buf_str(&payload), 0, size), &read,
					     NULL));
	for (size_t i = 0; i < payload.size; i++) {
		payload.data[i] ^= (char)0x80;
		if (wire_parse_call(buf_str(&payload), &read, NULL)) {
			assert_true(strlen(read.tool) < payload.size);
			assert_true(strlen(read.folder) < payload.size);
			assert_true(read.deadline_ms >= 0);
			wire_call_fini(&read);
		}
		payload.data[i] ^= (char)0x80;
	}
	/* A NUL inside a text would show two readers two texts. */
	payload.data[payload.size - strlen("{\"command\":\"true\"}") - 2] = '\0';
	assert_false(wire_parse_call(buf_str(&payload), &read, NULL));
	buf_fini(&payload);
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
	struct value *item = value_new_object();
	value_set_text(item, "type", "text");
	assert_true(tool_add_content(&written, item));
	buf_init(&text, 1 << 16);
	assert_true(tool_result_print(&written, &text));
	assert_true(tool_result_parse(buf_str(&text), &read, &err));
	assert_int_equal(read.status, RESULT_FAILED);
	assert_string_equal(read.text.data, "No such line: 40.");
	assert_int_equal(read.exit_code, 3);
	assert_int_equal(read.signal, 9);
	assert_int_equal(read.left_out_bytes, 77);
	assert_string_equal(value_text(value_member(read.details, "path")), "/w/a");
	assert_true(value_equal(read.content, written.content));
	assert_null(read.seen);
	tool_result_fini(&written);
	tool_result_fini(&read);
	buf_fini(&text);
}

static void the_text_of_a_result_is_made_utf_8(void **state)
{
	struct tool_result written, read;
	struct buf payload;
	struct err err;

	(void)state;
	tool_result_init(&written);
	tool_result_init(&read);
	(void)tool_done(&written);
	(void)buf_add(&written.text, "a\0b\xff\n", 5);
	buf_init(&payload, 1 << 16);
	assert_true(tool_result_print(&written, &payload));
	assert_true(tool_result_parse(buf_str(&payload), &read, &err));
	assert_int_equal(read.text.size, 7);
	assert_memory_equal(read.text.data, "a\0b\xef\xbf\xbd\n", 7);
	assert_null(read.details);
	tool_result_fini(&written);
	tool_result_fini(&read);
	buf_fini(&payload);
}

static void expect_refused(struct str payload)
{
	struct tool_result result;
	struct err err = {0};

	tool_result_init(&result);
	assert_false(tool_result_parse(payload, &result, &err));
	assert_true(err.text[0] != '\0');
	tool_result_fini(&result);
}

static void what_is_no_result_is_refused(void **state)
{
	/* From a head's begin on: the words that follow the two sizes, six accounts and two numbers. */
	enum { STATUS_AT = 72, DETAILS_AT = 80, BEFORE_AT = 92 };
	struct tool_result written;
	struct buf payload;

	(void)state;
	tool_result_init(&written);
	(void)tool_fail(&written, "No.");
	value_set_integer(tool_details(&written), "a", 1);
	buf_init(&payload, 1 << 16);
	assert_true(tool_result_print(&written, &payload));
	for (size_t size = 0; size < payload.size; size++)
		expect_refused(str_part(buf_str(&payload), 0, size));
	(void)buf_addc(&payload, '}');
	expect_refused(buf_str(&payload));
	buf_truncate(&payload, payload.size - 1);
	payload.data[STATUS_AT] = RESULT_CANCELLED + 1;
	expect_refused(buf_str(&payload));
	payload.data[STATUS_AT] = RESULT_FAILED;
	payload.data[DETAILS_AT + 3] = (char)0xff;
	expect_refused(buf_str(&payload));
	payload.data[DETAILS_AT + 3] = 0;
	payload.data[BEFORE_AT] = 1;
	expect_refused(buf_str(&payload));
	payload.data[BEFORE_AT] = 0;
	/* Details are an object, or nothing. */
	memcpy(payload.data + payload.size - strlen("{\"a\":1}"), "[\"a\",1]", 7);
	expect_refused(buf_str(&payload));
	tool_result_fini(&written);
	buf_fini(&payload);
}

static void content_is_a_bounded_list_of_items(void **state)
{
	static const char *const lists[] = {"{}", "[1]", "[{}]", "[{\"type\":1}]"};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(lists); i++) {
		struct tool_result written, read;
		struct buf payload;

		tool_result_init(&written);
		tool_result_init(&read);
		assert_true(value_parse(str_of(lists[i]), 0, &written.content, NULL));
		buf_init(&payload, 1 << 16);
		assert_true(tool_result_print(&written, &payload));
		/* An empty one is left out. */
		assert_int_equal(tool_result_parse(buf_str(&payload), &read, NULL), i == 0);
		tool_result_fini(&written);
		tool_result_fini(&read);
		buf_fini(&payload);
	}
}

static void questions_and_replies_are_read_back(void **state)
{
	auto_value struct value *object = NULL;
	auto_value struct value *answer = value_new_object();
	auto_value struct value *got = NULL;
	struct tell_question written = {.id = 3, .kind = "sampling"}, read;
	int64_t id = 0;
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 16);
	written.request = answer;
	assert_true(call_tell_print_question(&written, &text));
	assert_true(call_tell_parse_question(buf_str(&text), &read, &object, NULL));
	assert_int_equal(read.id, 3);
	assert_string_equal(read.kind, "sampling");
	buf_clear(&text);
	value_set_text(answer, "action", "cancel");
	assert_true(call_tell_print_reply(7, answer, &text));
	assert_true(call_tell_parse_reply(buf_str(&text), &id, &got, NULL));
	assert_int_equal(id, 7);
	assert_true(value_equal(got, answer));
	buf_clear(&text);
	value_set_text(answer, "action", "shrug");
	assert_true(call_tell_print_reply(7, answer, &text));
	assert_false(call_tell_parse_reply(buf_str(&text), &id, &got, NULL));
	buf_fini(&text);
}

/* In SPEC every member that the anchor needs differs from the zero of its kind. */
static void specification_fill(struct cell_spec *spec)
{
	struct view_entry *entry = spec_add_entry(spec, VIEW_MEMORY, "/tmp", "source");

	entry->fd = 900;
	entry->detached = entry->writable = entry->optional = entry->late = true;
	entry->lasts = VIEW_LASTS_REVIEW;
	entry->mode = 01777;
	entry->size = 1 << 20;
	spec_add_root(spec, "/w", true, "*.md");
	spec_add(spec, &spec->writable, "/w");
	spec_add(spec, &spec->blocked, "/w/secret");
	spec_add_environment(spec, "PATH=%s", "/bin");
	spec->listen[spec->listen_count++] = 65535;
	spec->kept[spec->kept_count++] = 3000;
	spec->workspace = "/w";
	spec->home = "/home/glovebox";
	spec->temp = "/tmp/session";
	spec->agent = "tester";
	spec->strength = (struct sandbox_strength){SANDBOX_RULES, true};
	spec->built = SANDBOX_SEALED;
	spec->identity = (struct sandbox_identity){
		.uid = 4294967294,
		.gid = 1001,
		.root = true,
		.change = true,
		.map_root = true,
	};
	spec->limits = (struct sandbox_limits){1, UINT64_C(1) << 40, 3};
	spec->call_limits = (struct call_limits){.memory = 4,
						 .pids = 5,
						 .file_size = 6,
						 .tmp = 7,
						 .free_space = 8,
						 .quiet_s = 1.5,
						 .read_bytes = 9,
						 .write_bytes = 10};
	spec->grace_s = 0.25;
}

static void a_specification_is_read_back(void **state)
{
	struct cell_spec written, read;
	auto_free int *fds = NULL;
	struct buf text;
	struct err err;
	size_t count;

	(void)state;
	spec_init(&written);
	spec_init(&read);
	specification_fill(&written);
	buf_init(&text, 1 << 16);
	assert_true(spec_print(&written, &text, &fds, &count));
	/* A descriptor stands in the text as its place in the list. */
	assert_int_equal(written.view.entries[0].fd, 900);
	assert_int_equal(count, 1);
	assert_int_equal(fds[0], 900);
	assert_true(spec_parse(buf_str(&text), NULL, 0, &read, &err));
	assert_int_equal(read.view.entries[0].fd, -1);
	spec_fini(&read);
	assert_true(spec_parse(buf_str(&text), fds, count, &read, &err));
	assert_int_equal(fds[0], -1);
	assert_int_equal(read.view.count, 1);
	struct view_entry *entry = &read.view.entries[0];
	assert_int_equal(entry->kind, VIEW_MEMORY);
	assert_string_equal(entry->path, "/tmp");
	assert_string_equal(entry->source, "source");
	assert_int_equal(entry->fd, 900);
	assert_true(entry->detached && entry->writable && entry->optional && entry->late);
	assert_int_equal(entry->lasts, VIEW_LASTS_REVIEW);
	assert_int_equal(entry->mode, 01777);
	assert_int_equal(entry->size, 1 << 20);
	assert_int_equal(read.root_count, 1);
	assert_string_equal(read.roots[0].path, "/w");
	assert_true(read.roots[0].writable);
	assert_string_equal(read.roots[0].pattern, "*.md");
	assert_string_equal(read.writable.items[0], "/w");
	assert_null(read.writable.items[1]);
	assert_string_equal(read.blocked.items[0], "/w/secret");
	assert_string_equal(read.environment.items[0], "PATH=/bin");
	assert_int_equal(read.listen_count, 1);
	assert_int_equal(read.listen[0], 65535);
	assert_int_equal(read.kept_count, 1);
	assert_int_equal(read.kept[0], 3000);
	assert_null(read.guard);
	assert_string_equal(read.workspace, "/w");
	assert_string_equal(read.home, "/home/glovebox");
	assert_string_equal(read.temp, "/tmp/session");
	assert_string_equal(read.agent, "tester");
	assert_int_equal(read.strength.level, SANDBOX_RULES);
	assert_true(read.strength.unfiltered);
	assert_int_equal(read.built, SANDBOX_SEALED);
	assert_int_equal(read.identity.uid, 4294967294);
	assert_int_equal(read.identity.gid, 1001);
	assert_true(read.identity.change && read.identity.map_root && read.identity.root);
	assert_int_equal(read.limits.processes, 1);
	assert_int_equal(read.limits.file_size, UINT64_C(1) << 40);
	assert_int_equal(read.limits.open_files, 3);
	assert_int_equal(read.call_limits.memory, 4);
	assert_int_equal(read.call_limits.pids, 5);
	assert_int_equal(read.call_limits.file_size, 6);
	assert_int_equal(read.call_limits.tmp, 7);
	assert_int_equal(read.call_limits.free_space, 8);
	assert_true(read.call_limits.quiet_s == 1.5 && read.grace_s == 0.25);
	assert_int_equal(read.call_limits.read_bytes, 9);
	assert_int_equal(read.call_limits.write_bytes, 10);
	written.view.entries[0].fd = entry->fd = -1;
	spec_fini(&written);
	spec_fini(&read);
	buf_fini(&text);
}

static void specification_is_refused(const struct value *object)
{
	struct cell_spec read;
	struct err err = {0};
	struct buf text;

	spec_init(&read);
	buf_init(&text, 1 << 16);
	assert_true(value_print(object, 0, &text));
	assert_false(spec_parse(buf_str(&text), NULL, 0, &read, &err));
	assert_non_null(strstr(err.text, "the cell's specification: "));
	spec_fini(&read);
	buf_fini(&text);
}

/*
 * A specification that lacks one member makes no cell: the zero of a number may be no
 * wall, and without the list of blocked paths nothing would be blocked.
 */
static void a_specification_without_a_member_is_refused(void **state)
{
	static const char *const optional[] = {"at", "home", "temp", "agent"};
	static const struct {
		const char *member, *value;
	} odd[] = {
		{"blocked", "{}"},
		{"blocked", "[\"/a\",null]"},
		{"guard", "[]"},
		{"listen", "[65536]"},
		{"listen", "[-1]"},
		{"listen", "[\"80\"]"},
		{"listen",
		 "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"},
		{"roots", "[{\"writable\":true}]"},
		{"view", "[]"},
		{"view", "[{\"path\":\"/a\"}]"},
	};
	static const struct {
		const char *part, *member;
		int number;
	} ranges[] = {
		{"view", "kind", 0},
		{"view", "kind", -1},
		{"view", "kind", VIEW_ALSO + 1},
		{"view", "lasts", VIEW_LASTS_NOTHING + 1},
		{"fields", "built", SANDBOX_SEALED + 1},
		{"fields", "strength.level", -1},
	};
	auto_value struct value *whole = NULL;
	auto_free int *fds = NULL;
	struct cell_spec written;
	struct buf text;
	size_t count;

	(void)state;
	spec_init(&written);
	specification_fill(&written);
	buf_init(&text, 1 << 16);
	assert_true(spec_print(&written, &text, &fds, &count));
	assert_true(value_parse(buf_str(&text), 0, &whole, NULL));
	for (void *at = value_first(whole); at != NULL; at = value_next(whole, at)) {
		auto_value struct value *less = value_copy(whole);

		value_remove(less, value_key(at));
		specification_is_refused(less);
	}
	const struct value *fields = value_member(whole, "fields");
	for (void *at = value_first(fields); at != NULL; at = value_next(fields, at)) {
		auto_value struct value *less = value_copy(whole);
		bool needed = true;

		for (size_t i = 0; i < UNIT_COUNT(optional); i++)
			needed = needed && strcmp(value_key(at), optional[i]) != 0;
		value_remove(value_member(less, "fields"), value_key(at));
		if (needed)
			specification_is_refused(less);
	}
	for (size_t i = 0; i < UNIT_COUNT(odd); i++) {
		auto_value struct value *other = value_copy(whole);
		struct value *value = NULL;

		assert_true(value_parse(str_of(odd[i].value), 0, &value, NULL));
		value_set(other, odd[i].member, value);
		specification_is_refused(other);
	}
	for (size_t i = 0; i < UNIT_COUNT(ranges); i++) {
		auto_value struct value *other = value_copy(whole);
		struct value *part = value_member(other, ranges[i].part);

		if (value_kind(part) == VALUE_ARRAY)
			part = value_item(part, 0);
		value_set_integer(part, ranges[i].member, ranges[i].number);
		specification_is_refused(other);
	}
	written.view.entries[0].fd = -1;
	spec_fini(&written);
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
		cmocka_unit_test(calls_of_a_batch_are_read_back),
		cmocka_unit_test(a_torn_call_is_refused),
		cmocka_unit_test(a_result_is_read_back),
		cmocka_unit_test(the_text_of_a_result_is_made_utf_8),
		cmocka_unit_test(what_is_no_result_is_refused),
		cmocka_unit_test(content_is_a_bounded_list_of_items),
		cmocka_unit_test(questions_and_replies_are_read_back),
		cmocka_unit_test(a_specification_is_read_back),
		cmocka_unit_test(a_specification_without_a_member_is_refused),
		cmocka_unit_test(an_event_is_one_json_object),
		cmocka_unit_test(every_kind_of_event_has_a_name_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
