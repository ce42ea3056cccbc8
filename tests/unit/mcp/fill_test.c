/* Tests of mcp/fill: places in texts and in URIs. */
#include "../base/unit.h"

#include <string.h>

#include "mcp/message.h"

static void filled(const char *text, const char *wanted)
{
	auto_value struct value *values = value_new_object();
	struct buf out;

	value_set_text(values, "a", "A");
	value_set_text(values, "brace", "{{a}}");
	value_set_text(values, "none", "");
	buf_init(&out, 1000);
	assert_true(message_fill_add(str_of(text), values, &out));
	assert_string_equal(out.data, wanted);
	buf_fini(&out);
}

static void known_places_are_filled_and_others_stay(void **state)
{
	(void)state;
	filled("", "");
	filled("x {{a}} {{ a }}{{a}}", "x A AA");
	filled("{{b}} {{a", "{{b}} {{a");
	filled("{{none}}|", "|");
	filled("{ {a}} {{}}", "{ {a}} {{}}");
}

static void what_is_filled_in_is_not_looked_at_again(void **state)
{
	(void)state;
	filled("{{brace}}", "{{a}}");
}

static void a_place_is_seen(void **state)
{
	(void)state;
	assert_true(message_fill_has_place(STR("x{{y}}")));
	assert_false(message_fill_has_place(STR("x{y}")));
	assert_false(message_fill_has_place(STR("{{y")));
}

static void a_uri_is_held_against_its_template(void **state)
{
	auto_value struct value *values = value_new_object();

	(void)state;
	assert_true(message_fill_match(STR("test://{id}/data/{b}"),
				       STR("test://12/data/x y"), values));
	assert_string_equal(value_text(value_member(values, "id")), "12");
	assert_string_equal(value_text(value_member(values, "b")), "x y");
	assert_false(
		message_fill_match(STR("test://{id}/data"), STR("test:///data"), values));
	assert_false(message_fill_match(STR("test://{id}/data"), STR("test://1/2/data"),
					values));
	assert_false(message_fill_match(STR("test://{id}/data"), STR("test://1/data/"),
					values));
	assert_false(message_fill_match(STR("test://{id}"), STR("test:"), values));
	assert_false(message_fill_match(STR("{id"), STR("x"), values));
	assert_true(message_fill_match(STR("plain"), STR("plain"), values));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_places_are_filled_and_others_stay),
		cmocka_unit_test(what_is_filled_in_is_not_looked_at_again),
		cmocka_unit_test(a_place_is_seen),
		cmocka_unit_test(a_uri_is_held_against_its_template),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
