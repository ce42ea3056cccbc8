/* Tests of mcp/message: what is a message, and what is said of what is none. */
#include "../base/unit.h"

#include <string.h>

#include "mcp/message.h"

static void a_request_has_id_method_and_params(void **state)
{
	struct mcp_message message;
	struct err err;

	(void)state;
	assert_true(mcp_message_read(STR("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\","
					 "\"params\":{\"a\":1},\"more\":true}"),
				     &message, &err));
	assert_int_equal(message.kind, MCP_REQUEST);
	assert_int_equal(value_integer(message.id), 7);
	assert_string_equal(message.method, "ping");
	assert_int_equal(value_count(message.params), 1);
	mcp_message_fini(&message);
}

static void without_an_id_it_is_a_notice(void **state)
{
	struct mcp_message message;
	struct err err;

	(void)state;
	assert_true(
		mcp_message_read(STR("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":null}"),
				 &message, &err));
	assert_int_equal(message.kind, MCP_NOTIFICATION);
	assert_null(message.params);
	mcp_message_fini(&message);
}

static void without_a_method_it_is_a_response(void **state)
{
	struct mcp_message message;
	struct err err;

	(void)state;
	assert_true(mcp_message_read(STR("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}"),
				     &message, &err));
	assert_int_equal(message.kind, MCP_RESPONSE);
	assert_non_null(message.result);
	assert_null(message.error);
	mcp_message_fini(&message);
}

/* TEXT is refused with CODE, and answered under the id 1 when HAS_ID. */
static void refused(const char *text, int code, bool has_id)
{
	struct mcp_message message;
	struct err err = {0};

	if (mcp_message_read(str_of(text), &message, &err))
		fail_msg("taken: %s", text);
	if (err.code != code || (message.id != NULL) != has_id)
		fail_msg("%s: code %d: %s", text, err.code, err.text);
	mcp_message_fini(&message);
}

static void a_list_of_messages_is_no_message(void **state)
{
	static const char *const lists[] = {
		"[{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\"}]",
		" \t[{\"jsonrpc\":\"2.0\",\"method\":\"b\"}]\r",
		"[[{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\"}]]",
		"[]",
		/* A list is not parsed. */
		"[",
		"[{\"jsonrpc\":",
	};
	struct mcp_message message;
	struct err err;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(lists); i++) {
		assert_false(mcp_message_read(str_of(lists[i]), &message, &err));
		assert_int_equal(err.code, MCP_CODE_INVALID);
		assert_non_null(strstr(err.text, "by itself"));
		assert_null(message.id);
		assert_null(message.whole);
		mcp_message_fini(&message);
	}
}

static void a_member_of_a_list_is_read_by_itself(void **state)
{
	auto_value struct value *list = NULL;
	struct mcp_message message;
	struct err err;

	(void)state;
	assert_true(value_parse(STR("[{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\"},[]]"),
				0, &list, &err));
	assert_true(mcp_message_of(value_item(list, 0), &message, &err));
	assert_int_equal(message.kind, MCP_REQUEST);
	assert_int_equal(message.bytes, 0);
	mcp_message_fini(&message);
	assert_false(mcp_message_of(value_item(list, 1), &message, &err));
	assert_int_equal(err.code, MCP_CODE_INVALID);
	mcp_message_fini(&message);
}

static void what_is_wrong_has_its_code_and_keeps_the_id(void **state)
{
	(void)state;
	refused("", MCP_CODE_PARSE, false);
	refused("{", MCP_CODE_PARSE, false);
	refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"m\"}",
		MCP_CODE_PARSE, false);
	refused("5", MCP_CODE_INVALID, false);
	refused("[]", MCP_CODE_INVALID, false);
	refused("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}", MCP_CODE_INVALID,
		false);
	refused("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"m\"}", MCP_CODE_INVALID,
		false);
	refused("{\"id\":1,\"method\":\"m\"}", MCP_CODE_INVALID, true);
	refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":3}", MCP_CODE_INVALID, true);
	refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000b\"}",
		MCP_CODE_INVALID, true);
	refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[]}",
		MCP_CODE_PARAMS, true);
	refused("{\"jsonrpc\":\"2.0\",\"id\":1}", MCP_CODE_INVALID, true);
	refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":1}",
		MCP_CODE_INVALID, true);
	refused("{\"jsonrpc\":\"2.0\",\"result\":1}", MCP_CODE_INVALID, false);
}

static void large_integers_are_taken_but_for_ids(void **state)
{
	struct mcp_message message;
	struct err err;

	(void)state;
	assert_true(mcp_message_read(STR("{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,"
					 "\"method\":\"m\","
					 "\"params\":{\"a\":18446744073709551616}}"),
				     &message, &err));
	assert_int_equal(value_integer(message.id), 9007199254740993);
	assert_true(value_number(value_member(message.params, "a")) > 1.8e19);
	mcp_message_fini(&message);
	refused("{\"jsonrpc\":\"2.0\",\"id\":18446744073709551616,\"method\":\"m\"}",
		MCP_CODE_INVALID, false);
}

static void an_id_has_a_longest_length(void **state)
{
	char text[MCP_ID_MAX + 100] = "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":\"";
	size_t size = strlen(text);
	struct mcp_message message;

	(void)state;
	memset(text + size, 'x', MCP_ID_MAX + 1);
	memcpy(text + size + MCP_ID_MAX + 1, "\"}", sizeof("\"}"));
	refused(text, MCP_CODE_INVALID, false);
	memcpy(text + size + MCP_ID_MAX, "\"}", sizeof("\"}"));
	assert_true(mcp_message_read(str_of(text), &message, NULL));
	mcp_message_fini(&message);
}

static void a_message_has_a_largest_size(void **state)
{
	char *text = test_malloc(MCP_MESSAGE_MAX + 1);
	struct mcp_message message;
	struct err err;

	(void)state;
	memset(text, ' ', MCP_MESSAGE_MAX + 1);
	assert_false(mcp_message_read((struct str){text, MCP_MESSAGE_MAX + 1}, &message,
				      &err));
	assert_int_equal(err.code, MCP_CODE_PARSE);
	mcp_message_fini(&message);
	test_free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_has_id_method_and_params),
		cmocka_unit_test(without_an_id_it_is_a_notice),
		cmocka_unit_test(without_a_method_it_is_a_response),
		cmocka_unit_test(a_list_of_messages_is_no_message),
		cmocka_unit_test(a_member_of_a_list_is_read_by_itself),
		cmocka_unit_test(what_is_wrong_has_its_code_and_keeps_the_id),
		cmocka_unit_test(large_integers_are_taken_but_for_ids),
		cmocka_unit_test(an_id_has_a_longest_length),
		cmocka_unit_test(a_message_has_a_largest_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
