/* tool: words for statuses, names and aliases, and the one shape of a result. */
/* clang-format off: cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>
#include <string.h>

#include "tool/tool.h"

static void a_status_has_a_word_of_its_own(void **state)
{
	static const char *const words[] = {"failed", "done", "denied", "timed_out",
					    "cancelled"};

	(void)state;
	for (int i = RESULT_FAILED; i <= RESULT_CANCELLED; i++)
		assert_string_equal(result_status_name((enum result_status)i), words[i]);
	assert_string_equal(result_status_name((enum result_status)99), "failed");
}

static void tools_are_found_by_name_then_by_alias(void **state)
{
	static const struct tool read_tool = {.name = "read_file", .aliases = "read cat"};
	static const struct tool cat_tool = {.name = "cat"};
	static const struct tool *const tools[] = {&read_tool, &cat_tool, NULL};

	(void)state;
	assert_ptr_equal(tool_find(tools, "read_file"), &read_tool);
	assert_ptr_equal(tool_find(tools, "read"), &read_tool);
	assert_ptr_equal(tool_find(tools, "cat"), &cat_tool);
	assert_null(tool_find(tools, "rea"));
	assert_null(tool_find(tools, ""));
	assert_null(tool_find(tools, "read cat"));
}

static void a_failure_has_its_sentence(void **state)
{
	struct tool_result result;

	(void)state;
	tool_result_init(&result);
	assert_int_equal(tool_fail(&result, "Line %d does not exist.", 40), RESULT_FAILED);
	assert_int_equal(result.status, RESULT_FAILED);
	assert_string_equal(result.text.data, "Line 40 does not exist.");
	assert_int_equal(tool_done(&result), RESULT_DONE);
	tool_result_fini(&result);
	tool_result_fini(NULL);
}

static void the_whole_result_is_one_object(void **state)
{
	struct tool_result result;
	struct value *whole;

	(void)state;
	tool_result_init(&result);
	whole = tool_result_value(&result);
	assert_string_equal(value_text(value_member(whole, "status")), "failed");
	assert_int_equal(value_kind(value_member(whole, "exit_code")), VALUE_NULL);
	assert_null(value_member(whole, "signal"));
	assert_int_equal(value_kind(value_member(whole, "details")), VALUE_OBJECT);
	value_free(whole);
	result.exit_code = 3;
	result.signal = 0;
	result.left_out_bytes = 7;
	result.seen = value_new_object();
	value_set_integer(tool_details(&result), "n", 1);
	whole = tool_result_value(&result);
	assert_int_equal(value_integer(value_member(whole, "exit_code")), 3);
	assert_int_equal(value_integer(
				 value_member(value_member(whole, "left_out"), "bytes")),
			 7);
	assert_int_equal(value_integer(value_member(value_member(whole, "details"), "n")),
			 1);
	assert_null(value_member(whole, "seen"));
	value_free(whole);
	tool_result_fini(&result);
}

static struct value *item_of(size_t bytes)
{
	struct value *item = value_new_object();
	char *text = malloc(bytes);

	memset(text, 'A', bytes);
	value_set_text(item, "type", "image");
	value_set_str(item, "data", (struct str){text, bytes});
	free(text);
	return item;
}

static void content_stays_within_its_bounds(void **state)
{
	struct tool_result result;

	(void)state;
	tool_result_init(&result);
	assert_false(tool_add_content(&result, value_new_text("no object")));
	assert_false(tool_add_content(&result, value_new_object()));
	assert_null(result.content);
	assert_true(tool_add_content(&result, item_of(RESULT_CONTENT_BYTES_MAX / 2)));
	assert_false(tool_add_content(&result, item_of(RESULT_CONTENT_BYTES_MAX / 2)));
	for (int i = 1; i < RESULT_CONTENT_ITEMS_MAX; i++)
		assert_true(tool_add_content(&result, item_of(1)));
	assert_false(tool_add_content(&result, item_of(1)));
	assert_int_equal(value_count(result.content), RESULT_CONTENT_ITEMS_MAX);
	tool_result_fini(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_status_has_a_word_of_its_own),
		cmocka_unit_test(tools_are_found_by_name_then_by_alias),
		cmocka_unit_test(a_failure_has_its_sentence),
		cmocka_unit_test(the_whole_result_is_one_object),
		cmocka_unit_test(content_stays_within_its_bounds),
	};

	return cmocka_run_group_tests_name("tool-tool", tests, NULL, NULL);
}
