/* Tests of tool/denial: what was refused, as data and as a line. */
#include "../base/unit.h"

#include <stdio.h>
#include <string.h>

#include "tool/denial.h"

static const struct denial memory = {
	.kind = DENIAL_LIMIT,
	.target = "4G of memory",
	.rule = "limits.memory",
	.remedy = "raise it, or use less at once",
};

static void a_denial_is_an_item_and_a_line(void **state)
{
	struct tool_result result;

	(void)state;
	tool_result_init(&result);
	(void)buf_adds(&result.text, "out");
	denial_add(&result, &memory);
	assert_string_equal(result.text.data, "out\n[limit reached: 4G of memory "
					      "(limits.memory); raise it, or use less at "
					      "once]\n");
	const struct value *item = value_item(denial_list(&result), 0);
	assert_string_equal(value_text(value_member(item, "kind")), "limit");
	assert_string_equal(value_text(value_member(item, "target")), "4G of memory");
	assert_string_equal(value_text(value_member(item, "rule")), "limits.memory");
	denial_set_level(&result, 3);
	assert_int_equal(value_integer(value_member(item, "level")), 3);
	tool_result_fini(&result);
}

static void the_same_denial_is_told_once(void **state)
{
	struct tool_result result;

	(void)state;
	tool_result_init(&result);
	denial_add(&result, &memory);
	size_t size = result.text.size;
	denial_add(&result, &memory);
	denial_note(&result, &memory);
	assert_int_equal(value_count(denial_list(&result)), 1);
	assert_int_equal(result.text.size, size);
	tool_result_fini(&result);
}

static void a_note_leaves_the_text_alone(void **state)
{
	struct tool_result result;

	(void)state;
	tool_result_init(&result);
	denial_note(&result, &memory);
	assert_int_equal(result.text.size, 0);
	assert_int_equal(value_count(denial_list(&result)), 1);
	tool_result_fini(&result);
}

static void many_denials_are_counted_not_kept(void **state)
{
	struct tool_result result;
	char target[32];

	(void)state;
	tool_result_init(&result);
	for (int i = 0; i < DENIALS_MAX + 5; i++) {
		(void)snprintf(target, sizeof(target), "host%d:443", i);
		denial_add(&result, &(struct denial){.kind = DENIAL_NET,
						     .target = target,
						     .rule = "network"});
	}
	assert_int_equal(value_count(denial_list(&result)), DENIALS_MAX);
	assert_int_equal(value_integer(value_member(result.details, "denials_left_out")), 5);
	assert_null(strstr(result.text.data, "host20"));
	tool_result_fini(&result);
}

static void a_list_that_is_none_is_not_believed(void **state)
{
	struct tool_result result;

	(void)state;
	tool_result_init(&result);
	value_set_text(tool_details(&result), "denials", "nonsense");
	assert_null(denial_list(&result));
	denial_set_level(&result, 3);
	denial_add(&result, &memory);
	value_append(value_member(result.details, "denials"), value_new_integer(1));
	denial_set_level(&result, 2);
	assert_int_equal(value_count(denial_list(&result)), 2);
	tool_result_fini(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_denial_is_an_item_and_a_line),
		cmocka_unit_test(the_same_denial_is_told_once),
		cmocka_unit_test(a_note_leaves_the_text_alone),
		cmocka_unit_test(many_denials_are_counted_not_kept),
		cmocka_unit_test(a_list_that_is_none_is_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
