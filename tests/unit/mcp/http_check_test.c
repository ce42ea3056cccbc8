/* Tests of mcp/http_check: who may ask. */
#include "../base/unit.h"

#include <string.h>

#include "base/buf.h"
#include "mcp/server/http.h"

static const char *const names[] = {"box.example", NULL};
static const struct http_guard open_guard = {NULL, names};
static const struct http_guard token_guard = {"0123456789abcdef", names};

static void hosts_are_names_of_this_machine(void **state)
{
	static const char *const ours[] = {"localhost",      "LOCALHOST:80",
					   "127.0.0.1:8080", "127.9.9.9",
					   "[::1]",          "[::1]:8080",
					   "box.example",    "Box.Example:1"};
	static const char *const others[] = {
		"",
		"evil.example",
		"localhost.evil.example",
		"127.0.0.1.evil.example",
		"[::1",
		"[::1]x",
		"10.0.0.1:8080",
		"box.example.evil",
		"::1",
		"user@localhost:8080x.y",
		"0.0.0.0",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (!http_host_is_ours(&open_guard, str_of(ours[i])))
			fail_msg("%s is refused", ours[i]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (http_host_is_ours(&open_guard, str_of(others[i])))
			fail_msg("%s is taken", others[i]);
	}
	/* An address cannot be pointed elsewhere, and the token keeps others out. */
	assert_true(http_host_is_ours(&token_guard, STR("10.0.0.1:8080")));
	assert_false(http_host_is_ours(&token_guard, STR("evil.example")));
	assert_false(http_host_is_ours(&open_guard, STR("localhost:evil.example")));
}

static void origins_are_pages_of_ours(void **state)
{
	(void)state;
	assert_true(http_origin_is_ours(&open_guard, NULL));
	assert_true(http_origin_is_ours(&open_guard, "http://localhost:3000"));
	assert_true(http_origin_is_ours(&open_guard, "https://box.example"));
	assert_false(http_origin_is_ours(&open_guard, "http://evil.example"));
	assert_false(http_origin_is_ours(&open_guard, "http://localhost:x@evil.example"));
	assert_false(http_origin_is_ours(&open_guard, "null"));
	assert_false(http_origin_is_ours(&open_guard, "file://"));
	assert_false(http_origin_is_ours(&open_guard, ""));
}

static void a_token_is_asked_for_where_there_is_one(void **state)
{
	(void)state;
	assert_true(http_token_fits(&open_guard, NULL));
	assert_true(http_token_fits(&token_guard, "Bearer 0123456789abcdef"));
	assert_true(http_token_fits(&token_guard, "bearer  0123456789abcdef "));
	assert_false(http_token_fits(&token_guard, NULL));
	assert_false(http_token_fits(&token_guard, "0123456789abcdef"));
	assert_false(http_token_fits(&token_guard, "Basic 0123456789abcdef"));
	assert_false(http_token_fits(&token_guard, "Bearer 0123456789abcdeF"));
	assert_false(http_token_fits(&token_guard, "Bearer "));
}

static void types_are_found_in_accept(void **state)
{
	const struct str json = STR("application/json");

	(void)state;
	assert_true(http_accepts(NULL, json));
	assert_true(http_accepts("text/event-stream, application/json;q=0.5", json));
	assert_true(http_accepts("*/*", json));
	assert_true(http_accepts("application/*", json));
	assert_true(http_accepts("Application/JSON", json));
	assert_false(http_accepts("text/html", json));
	assert_false(http_accepts("application/jsonx", json));
	assert_false(http_accepts("application/xml, text/*", json));
}

static void read_place(const char *text, const char *wanted, bool loopback)
{
	struct http_place place;
	struct err err;
	struct buf shown;

	if (!http_place_read(text, &place, &err))
		fail_msg("%s: %s", text, err.text);
	buf_init(&shown, 100);
	http_place_add(&place, &shown);
	assert_string_equal(shown.data, wanted);
	assert_int_equal(place.loopback, loopback);
	buf_fini(&shown);
}

static void an_address_has_a_port(void **state)
{
	static const char *const wrong[] = {"",           "localhost",
					    "1.2.3.4",    "evil.example:1",
					    "127.0.0.1:", "[::1]",
					    "65536",      "1.2.3:5",
					    "127.0.0.1:x"};
	struct http_place place;
	struct err err;

	(void)state;
	read_place("8080", "127.0.0.1:8080", true);
	read_place("localhost:1", "127.0.0.1:1", true);
	read_place("127.0.0.1:0", "127.0.0.1:0", true);
	read_place("[::1]:80", "[::1]:80", true);
	read_place("0.0.0.0:80", "0.0.0.0:80", false);
	read_place("[::]:80", "[::]:80", false);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (http_place_read(wrong[i], &place, &err))
			fail_msg("%s is taken", wrong[i]);
	}
}

static int repeated(const struct http_repeated *headers, const char *body)
{
	struct mcp_message message;
	struct err err = {0};

	assert_true(mcp_message_read(str_of(body), &message, &err));
	(void)http_repeats(headers, &message, &err);
	mcp_message_fini(&message);
	return err.code;
}

static void headers_repeat_what_the_body_says(void **state)
{
	static const char body[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		"\"caf\xc3\xa9\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
		"\"2026-07-28\"}}}";
	const char *version = "2026-07-28", *method = "tools/call";

	(void)state;
	assert_int_equal(repeated(&(struct http_repeated){version, method, "caf\xc3\xa9"},
				  body),
			 0);
	assert_int_equal(repeated(&(struct http_repeated){version, method,
							  " =?base64?Y2Fmw6k=?= "},
				  body),
			 0);
	assert_int_equal(repeated(&(struct http_repeated){NULL, method, "caf\xc3\xa9"}, body),
			 MCP_CODE_HEADER);
	assert_int_equal(repeated(&(struct http_repeated){"2025-11-25", method, "x"}, body),
			 MCP_CODE_HEADER);
	assert_int_equal(repeated(&(struct http_repeated){version, "TOOLS/CALL",
							  "caf\xc3\xa9"},
				  body),
			 MCP_CODE_HEADER);
	assert_int_equal(repeated(&(struct http_repeated){version, method, NULL}, body),
			 MCP_CODE_HEADER);
	assert_int_equal(repeated(&(struct http_repeated){version, method,
							  "=?base64?Y2Fmw6l=?="},
				  body),
			 MCP_CODE_HEADER);
}

static const char *one_header(void *context, const char *name, size_t *count)
{
	const char *const *pair = context;

	*count = strcmp(pair[0], name) == 0 ? 1 : 0;
	return *count > 0 ? pair[1] : NULL;
}

static bool argument_fits(const char *name, const char *said, const char *arguments)
{
	static const char text[] =
		"{\"properties\":{\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
		"\"in\":{\"properties\":{\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"},"
		"\"b\":{\"type\":\"boolean\",\"x-mcp-header\":\"B\"}}},"
		"\"odd\":{\"x-mcp-header\":\"a b\"}}}";
	const char *pair[] = {name, said};
	auto_value struct value *schema = NULL, *given = NULL;
	struct err err = {0};

	assert_true(value_parse(str_of(text), 0, &schema, &err));
	assert_true(value_parse(str_of(arguments), 0, &given, &err));
	const bool fits = http_repeats_arguments(schema, given, one_header, pair, &err);
	assert_int_equal(err.code, fits ? 0 : MCP_CODE_HEADER);
	return fits;
}

static void headers_repeat_marked_arguments(void **state)
{
	(void)state;
	assert_true(argument_fits("none", "", "{\"odd\": 1, \"region\": null}"));
	assert_true(argument_fits("Mcp-Param-Region", "eu", "{\"region\": \"eu\"}"));
	assert_true(argument_fits("Mcp-Param-Region",
				  " =?base64?SGVsbG8=?= ", "{\"region\": \"Hello\"}"));
	assert_true(argument_fits("Mcp-Param-Region",
				  "SGVsbG8=", "{\"region\": \"SGVsbG8=\"}"));
	assert_false(argument_fits("Mcp-Param-Region",
				   "=?base64?SGVsbG8?=", "{\"region\": \"Hello\"}"));
	assert_false(argument_fits("Mcp-Param-Region", "EU", "{\"region\": \"eu\"}"));
	assert_false(argument_fits("none", "", "{\"region\": \"eu\"}"));
	assert_false(argument_fits("Mcp-Param-Region", "eu", "{}"));
	assert_true(argument_fits("Mcp-Param-N", "42", "{\"in\": {\"n\": 42}}"));
	assert_true(argument_fits("Mcp-Param-N", "42.0", "{\"in\": {\"n\": 42}}"));
	assert_true(argument_fits("Mcp-Param-N", "9007199254740993",
				  "{\"in\": {\"n\": 9007199254740993}}"));
	assert_false(argument_fits("Mcp-Param-N", "9007199254740992",
				   "{\"in\": {\"n\": 9007199254740993}}"));
	assert_false(argument_fits("Mcp-Param-N", "0x2a", "{\"in\": {\"n\": 42}}"));
	assert_false(argument_fits("Mcp-Param-N", "", "{\"in\": {\"n\": 0}}"));
	assert_true(argument_fits("Mcp-Param-B", "true", "{\"in\": {\"b\": true}}"));
	assert_false(argument_fits("Mcp-Param-B", "1", "{\"in\": {\"b\": true}}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_are_names_of_this_machine),
		cmocka_unit_test(origins_are_pages_of_ours),
		cmocka_unit_test(a_token_is_asked_for_where_there_is_one),
		cmocka_unit_test(types_are_found_in_accept),
		cmocka_unit_test(an_address_has_a_port),
		cmocka_unit_test(headers_repeat_what_the_body_says),
		cmocka_unit_test(headers_repeat_marked_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
