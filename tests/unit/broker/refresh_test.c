/* refresh: what the service gets, and what the cell gets, of the renewal of a login. */
#include "../base/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/value.h"
#include "broker/login.h"
#include "broker/refresh.h"

#define ACCESS     "access-token-0123456789"
#define TOKEN      "refresh-token-0123456789"
#define NEW_ACCESS "access-token-new-0123456789"
#define NEW_TOKEN  "refresh-token-new-0123456789"
#define JSON       "application/json; charset=utf-8"
#define URLENCODED "application/x-www-form-urlencoded"
#define ASKED      "{\"grant_type\":\"refresh_token\",\"refresh_token\":\"phantom-b\""
#define NOW_MS     INT64_C(1800000000000)

static const char entry_text[] =
	"{\"from\":[\"file:~/f#/o/a\"],\"hosts\":[\"a.example\"],\"place\":\"bearer\",\"shape\":\"sk-new-*\","
	"\"refresh\":{\"url\":\"https://a.example/t\",\"send\":[\"refresh_token\"],"
	"\"store\":{\"access_token\":\"/o/a\",\"refresh_token\":\"/o/r\"},"
	"\"expires\":\"/o/e\",\"scope\":\"/o/s\",\"keep\":[\"/o/e\",\"/o/s\",\"/o\",\"/long\"]}}";

static const char *const phantoms[] = {"phantom-a", "phantom-b"};

/* Does a field NAME: VALUE of an answer count as FIELD? */
static bool is_field(const char *name, const char *value, enum refresh_field field)
{
	const struct http_field made = {str_of(name), str_of(value)};

	return refresh_field(&made) == field;
}

struct desk {
	struct credential credential;
	struct refresh refresh;
	struct buf out;
	struct err err;
};

static void desk_open(struct desk *desk)
{
	auto_value struct value *entry = NULL;

	*desk = (struct desk){0};
	assert_true(value_parse(str_of(entry_text), 0, &entry, NULL));
	assert_true(credential_read("test", entry, &desk->credential, &desk->err));
	desk->refresh = (struct refresh){&desk->credential, phantoms};
	buf_init(&desk->out, 1 << 20);
}

static void desk_close(struct desk *desk)
{
	buf_fini(&desk->out);
	credential_fini(&desk->credential);
}

static struct refresh_tokens tokens_of(struct desk *desk, const char *text)
{
	struct refresh_tokens tokens = {0};

	assert_true(refresh_tokens_parse(&desk->credential, str_of(text), &tokens,
					 &desk->err));
	return tokens;
}

static void requests_are_judged_and_filled(void **state)
{
	static const struct {
		const char *type, *body;
		const char *sent; /* NULL: refused with … */
		const char *why;
	} rows[] = {
		{JSON, ASKED ",\"client_id\":\"c\",\"n\":1}",
		 "{\"grant_type\":\"refresh_token\",\"refresh_token\":\"" TOKEN
		 "\",\"client_id\":\"c\"}",
		 NULL},
		{URLENCODED,
		 "grant_type=refresh_token&refresh_token=phantom%2Db&client_id=a+b%26",
		 "grant_type=refresh_token&refresh_token=" TOKEN "&client_id=a%20b%26",
		 NULL},
		{JSON,
		 ASKED ",\"scope\":\"less\",\"Scope\":\"s\",\"authorization_details\":\"d\","
		       "\"expires_in\":1,\"client_secret\":\"s\",\"resource\":\"r\"}",
		 "{\"grant_type\":\"refresh_token\",\"refresh_token\":\"" TOKEN "\"}", NULL},
		{URLENCODED, "refresh_token=phantom-b&scope%5B%5D=s&scopes=s",
		 "refresh_token=" TOKEN, NULL},
		{JSON, "{\"refresh_token\":\"phantom-b\"}",
		 "{\"refresh_token\":\"" TOKEN "\"}", NULL},
		{JSON, "{\"refresh_token\":\"" TOKEN "\"}", NULL, "another token"},
		{JSON, "{\"refresh_token\":1}", NULL, "another token"},
		{JSON, "{\"refresh_token\":\"phantom-a\"}", NULL, "another token"},
		{JSON, "{\"grant_type\":\"refresh_token\"}", NULL, "only a renewal"},
		{JSON, "{}", NULL, "only a renewal"},
		{JSON, "[]", NULL, "neither"},
		{JSON, "{\"refresh_token\":\"phantom-b\",\"refresh_token\":\"phantom-b\"}",
		 NULL, "neither"},
		{JSON, ASKED ",\"a\":{\"b\":1}}", NULL, "neither"},
		{JSON, ASKED ",\"a\":\"b\\u0000c\"}", NULL, "neither"},
		{JSON, ASKED ",\"code\":\"c\"}", NULL, "another token"},
		{JSON, ASKED ",\"Access-Token\":\"c\"}", NULL, "another token"},
		{JSON, "{\"grant_type\":\"password\",\"refresh_token\":\"phantom-b\"}",
		 NULL, "log in outside"},
		{URLENCODED, "refresh_token=phantom-b&refresh_token=phantom-b", NULL,
		 "neither"},
		{URLENCODED, "refresh_token=phantom-b&x=%4", NULL, "neither"},
		{URLENCODED, "refresh_token=phantom-b&x=%00", NULL, "neither"},
		{URLENCODED, "refresh_token", NULL, "neither"},
		{"text/plain", ASKED "}", NULL, "neither"},
		{"", ASKED "}", NULL, "neither"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct desk desk;

		desk_open(&desk);
		struct refresh_tokens tokens =
			tokens_of(&desk, "{\"access_token\":\"" ACCESS
					 "\",\"refresh_token\":\"" TOKEN "\"}");
		for (int filled = 0; filled < 2; filled++) {
			const bool fine =
				refresh_request(&desk.refresh, str_of(rows[i].type),
						str_of(rows[i].body),
						filled ? &tokens : NULL, &desk.out,
						&desk.err);

			assert_int_equal(fine, rows[i].sent != NULL);
			if (!fine && strstr(desk.err.text, rows[i].why) == NULL)
				fail_msg("%s: %s", rows[i].body, desk.err.text);
			assert_string_equal(desk.out.data,
					    filled && fine ? rows[i].sent : "");
		}
		refresh_tokens_fini(&tokens);
		desk_close(&desk);
	}
}

static void a_token_that_the_login_lacks_is_not_sent(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	struct refresh_tokens tokens =
		tokens_of(&desk, "{\"access_token\":\"" ACCESS "\"}");
	assert_false(refresh_request(&desk.refresh, str_of(JSON), str_of(ASKED "}"),
				     &tokens, &desk.out, &desk.err));
	assert_non_null(strstr(desk.err.text, "no such token"));
	refresh_tokens_fini(&tokens);
	desk_close(&desk);
}

static void answers_have_phantoms_or_do_not_reach_the_cell(void **state)
{
	static const struct {
		unsigned status;
		const char *body;
		enum refresh_outcome outcome;
		bool fresh;
		const char *out; /* or what ERR has */
	} rows[] = {
		{200,
		 "{\"access_token\":\"" NEW_ACCESS "\",\"refresh_token\":\"" NEW_TOKEN
		 "\",\"expires_in\":3600}",
		 REFRESH_RENEWED, true,
		 "{\"access_token\":\"phantom-a\",\"refresh_token\":\"phantom-b\","
		 "\"expires_in\":3600}"},
		{200, "{\"access_token\":\"" NEW_ACCESS "\",\"refresh_token\":null}",
		 REFRESH_RENEWED, true,
		 "{\"access_token\":\"phantom-a\",\"refresh_token\":null}"},
		{200,
		 "{\"access_token\":\"" NEW_ACCESS "\",\"id_token\":\"a.bcdefghijklmnop.q\"}",
		 REFRESH_BAD, true, "id_token"},
		{200,
		 "{\"access_token\":\"" NEW_ACCESS
		 "\",\"a\":[{\"API-key\":\"abcdefghijklmnop\"}]}",
		 REFRESH_BAD, true, "API-key"},
		{200, "{\"access_token\":\"with blank in it\"}", REFRESH_BAD, false,
		 "access_token is no token"},
		{200, "{\"access_token\":1}", REFRESH_BAD, false, "access_token is no token"},
		{200, "no JSON", REFRESH_BAD, false, "no JSON object"},
		{200, "[]", REFRESH_BAD, false, "no JSON object"},
		{200, "{}", REFRESH_REFUSED, false, "{}"},
		{400, "{\"error\":\"invalid_grant\"}", REFRESH_STALE, false,
		 "{\"error\":\"invalid_grant\"}"},
		{401, "{\"error\":{\"type\":\"invalid_grant\"}}", REFRESH_STALE, false,
		 "{\"error\":{\"type\":\"invalid_grant\"}}"},
		{200, "{\"error\":\"invalid_grant\"}", REFRESH_STALE, false,
		 "{\"error\":\"invalid_grant\"}"},
		{200, "{\"error\":\"bad_refresh_token\",\"access_token\":\"" NEW_ACCESS "\"}",
		 REFRESH_STALE, false, "{\"error\":\"bad_refresh_token\"}"},
		/* A refusal, whose members say what is wrong. */
		{400,
		 "{\"error\":\"invalid_request\",\"refresh_token\":\"not_of_this_client\","
		 "\"access_token\":[\"unknown-to-this-service\"]}",
		 REFRESH_REFUSED, false, "{\"error\":\"invalid_request\"}"},
		{503, "{\"access_token\":\"undefined\"}", REFRESH_REFUSED, false, "{}"},
		{200, "{\"error\":{\"a\":1},\"access_token\":\"" NEW_ACCESS "\"}",
		 REFRESH_REFUSED, false, "{\"error\":{\"a\":1}}"},
		{200, "{\"error\":null,\"access_token\":\"" NEW_ACCESS "\"}",
		 REFRESH_RENEWED, true, "{\"error\":null,\"access_token\":\"phantom-a\"}"},
		/* Loose forms, whose tokens would be lost. */
		{200,
		 "\xef\xbb\xbf{\"access_token\":\"" NEW_ACCESS
		 "\",\"o\":{\"name\":\"\\ud83d\",\"n\":1e400}}",
		 REFRESH_RENEWED, true,
		 "{\"access_token\":\"phantom-a\",\"o\":{\"name\":\"\xef\xbf\xbd\",\"n\":1e+308}}"},
		{200,
		 "{\"a\":1,\"a\":2,\"access_token\":\"" ACCESS
		 "\",\"access_token\":\"" NEW_ACCESS "\"}",
		 REFRESH_RENEWED, true, "{\"a\":2,\"access_token\":\"phantom-a\"}"},
		{429, "{\"error\":\"slow_down\"}", REFRESH_REFUSED, false,
		 "{\"error\":\"slow_down\"}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct refresh_tokens fresh = {0};
		struct desk desk;

		desk_open(&desk);
		assert_int_equal(refresh_answer(&desk.refresh, rows[i].status,
						str_of(rows[i].body), &fresh, &desk.out,
						&desk.err),
				 rows[i].outcome);
		assert_int_equal(refresh_tokens_are_any(&fresh), rows[i].fresh);
		if (rows[i].outcome == REFRESH_BAD)
			assert_non_null(strstr(desk.err.text, rows[i].out));
		else
			assert_string_equal(desk.out.data, rows[i].out);
		refresh_tokens_fini(&fresh);
		desk_close(&desk);
	}
}

static void tokens_go_over_the_wire_and_back(void **state)
{
	struct desk desk;

	(void)state;
	desk_open(&desk);
	struct refresh_tokens tokens = tokens_of(&desk, "{\"refresh_token\":\"" TOKEN
							"\",\"expires_in\":3600.7}");
	assert_int_equal(tokens.expires_s, 3600);
	assert_true(refresh_tokens_print(&desk.credential, &tokens, &desk.out));
	assert_string_equal(desk.out.data,
			    "{\"refresh_token\":\"" TOKEN "\",\"expires_in\":3600}");
	refresh_tokens_fini(&tokens);
	tokens = tokens_of(&desk,
			   "{\"refresh_token\":\"" TOKEN "\",\"expires_in\":\"28800\"}");
	assert_int_equal(tokens.expires_s, 28800);
	refresh_tokens_fini(&tokens);
	assert_false(refresh_tokens_are_any(&tokens));
	assert_false(refresh_tokens_parse(&desk.credential,
					  STR("{\"access_token\":\"short\"}"), &tokens,
					  &desk.err));
	refresh_tokens_fini(&tokens);
	desk_close(&desk);
}

static void other_answers_are_searched_for_tokens(void **state)
{
	struct desk desk;

	(void)state;
	assert_true(is_field("content-type", "application/JSON; charset=utf-8",
			     REFRESH_JSON));
	assert_true(is_field("Content-Type", "application/problem+json", REFRESH_JSON));
	assert_true(is_field("Content-Type", "application/jsonl", REFRESH_PLAIN));
	assert_true(is_field("Content-Type", "text/event-stream", REFRESH_PLAIN));
	assert_true(is_field("Content-Type", "json", REFRESH_PLAIN));
	assert_true(is_field("Content-Type", "", REFRESH_PLAIN));
	assert_true(is_field("X-Refresh-Token", "r", REFRESH_TOKEN));
	assert_true(is_field("access_token", "a", REFRESH_TOKEN));
	assert_true(is_field("authorization", "Bearer a", REFRESH_TOKEN));
	assert_true(is_field("X-Request-Id", "r", REFRESH_PLAIN));
	desk_open(&desk);
	/* By the beginning of the value. */
	assert_false(refresh_check(&desk.refresh,
				   STR("[{\"value\":\"sk-new-0123456789ab\"}]"), &desk.err));
	assert_non_null(strstr(desk.err.text, "\"sk-new-*\""));
	assert_true(refresh_check(&desk.refresh,
				  STR("[\"sk-new-********0000\",\"sk-new-0\",\"the key sk-new-"
				      "0123456789ab\",\"sk-new-0123456789ab is a key\"]"),
				  &desk.err));
	assert_true(refresh_check(&desk.refresh, STR("{\"access_token\":\"phantom-a\"}"),
				  NULL));
	assert_true(refresh_check(&desk.refresh,
				  STR("{\"id_token\":\"short\",\"x\":[1]}"), NULL));
	assert_true(refresh_check(&desk.refresh,
				  STR("{\"text\":\"{\\\"access_token\\\":\\\"" ACCESS
				      "\\\"}\"}"),
				  NULL));
	assert_false(refresh_check(&desk.refresh, STR("[[{\"rawKey\":\"" ACCESS "\"}]]"),
				   &desk.err));
	assert_non_null(strstr(desk.err.text, "\"rawKey\""));
	assert_false(refresh_check(&desk.refresh,
				   STR("{\"access_token\":[\"phantom-a\",\"" ACCESS "\"]}"),
				   &desk.err));
	assert_false(refresh_check(&desk.refresh,
				   STR("{\"api_key\":{\"value\":\"" ACCESS "\"}}"),
				   &desk.err));
	assert_non_null(strstr(desk.err.text, "\"api_key\""));
	/* The text itself goes on, so a token that stands twice must be seen twice. */
	assert_false(refresh_check(&desk.refresh, STR("{\"a\":1,\"a\":2}"), &desk.err));
	assert_true(refresh_check(
		&desk.refresh,
		STR("\xef\xbb\xbf{\"half\":\"\\ud83d\",\"n\":[1e400,-1e999]}"), NULL));
	desk_close(&desk);
}

#define FILE_TEXT                                                                \
	"{\"z\":[1],\"o\":{\"r\":\"" TOKEN "\",\"a\":\"" ACCESS                  \
	"\",\"e\":1700000000000,\"s\":[\"one\",\"two\"],\"secret\":\"hidden\"}," \
	"\"long\":\"%s\"}"

static void a_copy_has_phantoms_and_what_is_kept(void **state)
{
	struct desk desk;
	char text[16384], pad[8192];

	(void)state;
	memset(pad, 'x', sizeof(pad) - 1);
	pad[sizeof(pad) - 1] = '\0';
	desk_open(&desk);
	(void)snprintf(text, sizeof(text), FILE_TEXT, pad);
	assert_true(login_print_copy(&desk.refresh, str_of(text), &desk.out, &desk.err));
	/* "/o" is a place of `keep`: all of it but the tokens. What is too long is left out. */
	assert_string_equal(desk.out.data,
			    "{\"o\":{\"r\":\"phantom-b\",\"a\":\"phantom-a\",\"e\":1700000000000,"
			    "\"s\":[\"one\",\"two\"],\"secret\":\"hidden\"}}");
	buf_clear(&desk.out);
	assert_true(login_print_copy(&desk.refresh, STR("{\"o\":{\"a\":\"x\"},\"p\":1}"),
				     &desk.out, &desk.err));
	assert_string_equal(desk.out.data, "{\"o\":{\"a\":\"phantom-a\"}}");
	assert_false(login_print_copy(&desk.refresh, STR("[]"), &desk.out, &desk.err));
	desk_close(&desk);
}

static void a_renewed_file_keeps_all_other_members(void **state)
{
	static const struct {
		const char *old, *new;
	} rows[] = {
		{"{\"z\":[1,2.5],\"o\":{\"r\":\"" TOKEN "\",\"e\":1700000000000},\"y\":null}",
		 "{\"z\":[1,2.5],\"o\":{\"r\":\"" NEW_TOKEN
		 "\",\"e\":1800003600000,\"a\":\"" NEW_ACCESS "\"},\"y\":null}"},
		{"{\"o\":{\"e\":1700000000}}", "{\"o\":{\"e\":1800003600,\"a\":\"" NEW_ACCESS
					       "\",\"r\":\"" NEW_TOKEN "\"}}"},
		{"{}", "{\"o\":{\"a\":\"" NEW_ACCESS "\",\"r\":\"" NEW_TOKEN
		       "\",\"e\":1800003600000}}"},
		{"{\n  \"o\": {}\n}\n",
		 "{\n  \"o\": {\n    \"a\": \"" NEW_ACCESS "\",\n    \"r\": \"" NEW_TOKEN
		 "\",\n    \"e\": 1800003600000\n  }\n}"},
		{"{\"o\":1}", NULL},
		{"[]", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct desk desk;

		desk_open(&desk);
		struct refresh_tokens fresh =
			tokens_of(&desk, "{\"access_token\":\"" NEW_ACCESS
					 "\",\"refresh_token\":\"" NEW_TOKEN
					 "\",\"expires_in\":3600}");
		assert_int_equal(login_print_renewed(&desk.credential, str_of(rows[i].old),
						     &fresh, NOW_MS, &desk.out, &desk.err),
				 rows[i].new != NULL);
		assert_string_equal(desk.out.data, rows[i].new != NULL ? rows[i].new : "");
		refresh_tokens_fini(&fresh);
		desk_close(&desk);
	}
}

static void an_answer_is_made_from_the_file(void **state)
{
	struct desk desk;
	char text[1024];

	(void)state;
	desk_open(&desk);
	(void)snprintf(text, sizeof(text), FILE_TEXT, "");
	assert_true(login_print_answer(&desk.refresh, str_of(text),
				       INT64_C(1700000000000) - 90000, &desk.out,
				       &desk.err));
	assert_string_equal(
		desk.out.data,
		"{\"token_type\":\"Bearer\",\"access_token\":\"phantom-a\","
		"\"refresh_token\":\"phantom-b\",\"expires_in\":90,\"scope\":\"one two\"}");
	buf_clear(&desk.out);
	/* It has expired: the client asks again at once. */
	assert_true(login_print_answer(&desk.refresh,
				       STR("{\"o\":{\"a\":\"x\",\"s\":\"one\"}}"), NOW_MS,
				       &desk.out, &desk.err));
	assert_string_equal(desk.out.data,
			    "{\"token_type\":\"Bearer\",\"access_token\":\"phantom-a\","
			    "\"expires_in\":1,\"scope\":\"one\"}");
	desk_close(&desk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_judged_and_filled),
		cmocka_unit_test(a_token_that_the_login_lacks_is_not_sent),
		cmocka_unit_test(answers_have_phantoms_or_do_not_reach_the_cell),
		cmocka_unit_test(tokens_go_over_the_wire_and_back),
		cmocka_unit_test(other_answers_are_searched_for_tokens),
		cmocka_unit_test(a_copy_has_phantoms_and_what_is_kept),
		cmocka_unit_test(a_renewed_file_keeps_all_other_members),
		cmocka_unit_test(an_answer_is_made_from_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
