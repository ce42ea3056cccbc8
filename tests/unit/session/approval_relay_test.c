/* approval_relay: what a delegate says of its question, which may be anything. */
#include "session/approval.h"

#include "base/text/text.h"
#include "session/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char sound[] =
	"{\"effect\":\"command\",\"subject\":\"make x\",\"command\":\"make x\",\"because\":\"b\","
	"\"rule\":\"r\",\"scope\":\"exactly this text\",\"folder\":\"/ws\",\"workspace\":\"/ws\","
	"\"hash\":\"h1\",\"extra\":\"e\"}";

static struct value *asked_of(const char *text)
{
	struct value *asked = NULL;
	struct err err;

	if (!value_parse(str_of(text), 0, &asked, &err))
		fail_msg("%s", err.text);
	return asked;
}

static struct value *data_of(const struct value *asked)
{
	struct policy *policy = policy_new("boss", "/ws");
	struct session session = {.policy = policy};
	const struct running running = {.session = &session};
	struct value *data = approval_relay_data(&running, "junior", asked);

	policy_free(policy);
	return data;
}

static const char *hash_of(const struct value *data)
{
	return value_text(value_member(data, "hash"));
}

static void a_question_says_who_asks_and_is_bound_to_what_it_was(void **state)
{
	auto_value struct value *asked = asked_of(sound);
	auto_value struct value *data = data_of(asked);
	const struct value *delegates = value_member(data, "delegates");
	const char *const changes[] = {"subject", "command", "scope",     "folder",
				       "hash",    "because", "workspace", "rule"};

	(void)state;
	assert_string_equal(value_text(value_member(data, "agent")), "junior");
	assert_int_equal(value_count(delegates), 1);
	assert_string_equal(value_text(value_item(delegates, 0)), "boss");
	assert_string_equal(value_text(value_member(data, "delegate_hash")), "h1");
	assert_null(value_member(data, "extra"));
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		auto_value struct value *other = value_copy(asked);
		auto_value struct value *changed = NULL;

		value_set_text(other, changes[i], "another");
		changed = data_of(other);
		assert_string_not_equal(hash_of(changed), hash_of(data));
	}
}

static void what_no_person_could_judge_is_no_question(void **state)
{
	static const char *const missing[] = {"effect",  "subject",   "command",
					      "because", "rule",      "scope",
					      "folder",  "workspace", "hash"};
	auto_value struct value *asked = asked_of(sound);
	auto_value struct value *deep = value_copy(asked);
	auto_value struct value *strange = value_copy(asked);
	struct value *many = value_new_array();

	(void)state;
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		auto_value struct value *other = value_copy(asked);

		value_remove(other, missing[i]);
		assert_null(data_of(other));
		value_set_integer(other, missing[i], 1);
		assert_null(data_of(other));
	}
	value_set_text(strange, "effect", "everything");
	assert_null(data_of(strange));
	for (int i = 0; i < 100; i++)
		value_append(many, value_new_text("a"));
	value_set(deep, "delegates", many);
	value_set_text(deep, "agent", "a");
	assert_null(data_of(deep));
}

/* A person sees all of what they judge, and the hash is that of all of it. */
static void what_is_too_large_is_no_question(void **state)
{
	enum { LARGE = 300000, LINES = 32 << 10 };
	auto_value struct value *asked = asked_of(sound);
	auto_value struct value *of_hash = value_copy(asked);
	auto_value struct value *of_delegate = value_copy(asked);
	auto_value struct value *of_lines = value_copy(asked);
	struct value *delegates = value_new_array();
	auto_value struct value *data = NULL;
	static char large[LARGE + 1], lines[LINES + 1];

	(void)state;
	memset(large, 'A', LARGE);
	value_set_text(of_hash, "hash", large);
	assert_null(data_of(of_hash));
	value_append(delegates, value_new_text(large));
	value_set(of_delegate, "delegates", delegates);
	value_set_text(of_delegate, "agent", "a");
	assert_null(data_of(of_delegate));
	memset(lines, '\n', LINES);
	lines[LINES - 1] = 'Z';
	value_set_text(of_lines, "subject", lines);
	data = data_of(of_lines);
	assert_non_null(
		strchr(value_text(value_member(value_member(data, "request"), "message")),
		       'Z'));
}

static void nothing_in_it_moves_the_cursor(void **state)
{
	static const char *const members[] = {"subject", "command", "scope", "folder",
					      "agent"};
	auto_value struct value *asked = asked_of(sound);
	auto_value struct value *data = NULL;
	struct value *delegates = value_new_array();
	const char *shown;

	(void)state;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		value_set_text(asked, members[i],
			       "a\x1b[2Jb\r\xe2\x80\xae"
			       "c");
	value_append(delegates, value_new_text("d\x1b[2J"));
	value_set(asked, "delegates", delegates);
	data = data_of(asked);
	assert_non_null(data);
	shown = value_text(value_member(value_member(data, "request"), "message"));
	assert_null(strpbrk(shown, "\x1b\r"));
	assert_null(strstr(shown, "\xe2\x80\xae"));
	assert_non_null(strstr(shown, "depth 2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_says_who_asks_and_is_bound_to_what_it_was),
		cmocka_unit_test(what_no_person_could_judge_is_no_question),
		cmocka_unit_test(what_is_too_large_is_no_question),
		cmocka_unit_test(nothing_in_it_moves_the_cursor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
