/* deferred: which tools of servers a model is not told. */
/* clang-format off: cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

#include "base/memory.h"
#include "base/value.h"
#include "tool/deferred.h"

#include <string.h>

enum { LISTED_MAX = 2 * DEFERRED_TOOLS_MAX };

/* A tool of our own, and COUNT tools of a server with DEFER, whose schema is SCHEMA. */
struct listed {
	struct tool own, of_server[LISTED_MAX];
	const struct tool *tools[LISTED_MAX + 2];
};

static void list(struct listed *listed, size_t count, enum tool_defer defer,
		 const struct value *schema)
{
	*listed = (struct listed){.own = {.name = "read_file", .description = ""}};
	listed->tools[0] = &listed->own;
	for (size_t i = 0; i < count; i++) {
		listed->of_server[i] = (struct tool){.name = "s_tool",
						     .description = "",
						     .schema = schema,
						     .server = "s",
						     .defer = defer};
		listed->tools[i + 1] = &listed->of_server[i];
	}
}

static bool is_deferred(const struct listed *listed)
{
	const struct deferred deferred = deferred_of(listed->tools);
	const bool first = deferred_has(deferred, &listed->of_server[0]);

	assert_int_equal(deferred.any, first);
	assert_false(deferred_has(deferred, &listed->own));
	return first;
}

static void many_tools_are_deferred(void **state)
{
	auto_value struct value *schema = value_new_object();
	struct listed listed;

	(void)state;
	list(&listed, DEFERRED_TOOLS_MAX, DEFER_AUTO, schema);
	assert_false(is_deferred(&listed));
	list(&listed, DEFERRED_TOOLS_MAX + 1, DEFER_AUTO, schema);
	assert_true(is_deferred(&listed));
}

static void long_definitions_are_deferred(void **state)
{
	auto_value struct value *schema = value_new_object();
	auto_free char *text = memory_alloc(DEFERRED_BYTES_MAX + 1);
	struct listed listed;

	(void)state;
	memset(text, 'x', DEFERRED_BYTES_MAX);
	value_set_str(schema, "description", (struct str){text, DEFERRED_BYTES_MAX / 2});
	list(&listed, 1, DEFER_AUTO, schema);
	assert_false(is_deferred(&listed));
	list(&listed, 2, DEFER_AUTO, schema);
	assert_true(is_deferred(&listed));
	value_set_text(schema, "description", text);
	list(&listed, 1, DEFER_AUTO, schema);
	assert_true(is_deferred(&listed));
}

static void a_server_may_be_always_or_never_deferred(void **state)
{
	auto_value struct value *schema = value_new_object();
	struct listed listed;

	(void)state;
	list(&listed, 1, DEFER_ALWAYS, schema);
	assert_true(is_deferred(&listed));
	list(&listed, LISTED_MAX, DEFER_NEVER, schema);
	assert_false(is_deferred(&listed));
	/* Those that are told anyway, or never, make no others deferred. */
	listed.of_server[0].defer = DEFER_AUTO;
	assert_false(is_deferred(&listed));
}

static void no_tool_is_no_deferred_one(void **state)
{
	const struct tool *const none[] = {NULL};

	(void)state;
	assert_false(deferred_of(none).any);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_tools_are_deferred),
		cmocka_unit_test(long_definitions_are_deferred),
		cmocka_unit_test(a_server_may_be_always_or_never_deferred),
		cmocka_unit_test(no_tool_is_no_deferred_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
