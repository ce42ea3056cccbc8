/* Tests of mcp/seal: HMAC-SHA-256, and what is taken back. */
#include "../base/unit.h"

#include <string.h>

#include "mcp/message.h"

static const struct seal_key key = {{1, 2, 3}};

static struct buf seal(const struct seal_key *with, const char *purpose, const char *text)
{
	struct buf sealed;

	buf_init(&sealed, 1000);
	message_seal_add(with, str_of(purpose), str_of(text), &sealed);
	return sealed;
}

static void what_was_sealed_comes_back(void **state)
{
	struct buf sealed = seal(&key, "tools/call a", "7.1");
	struct str text;

	(void)state;
	assert_true(message_seal_check(&key, STR("tools/call a"), buf_str(&sealed), &text));
	assert_true(str_is(text, "7.1"));
	buf_fini(&sealed);
}

static void a_change_anywhere_is_seen(void **state)
{
	struct buf sealed = seal(&key, "p", "7.1");
	struct str text;

	(void)state;
	for (size_t i = 0; i < sealed.size; i++) {
		sealed.data[i] ^= 1;
		assert_false(message_seal_check(&key, STR("p"), buf_str(&sealed), &text));
		sealed.data[i] ^= 1;
	}
	assert_false(message_seal_check(&key, STR("p"),
					str_part(buf_str(&sealed), 0, sealed.size - 1),
					&text));
	assert_false(message_seal_check(&key, STR("p"), STR(""), &text));
	buf_fini(&sealed);
}

static void it_holds_for_its_purpose_and_key_alone(void **state)
{
	const struct seal_key other = {{1, 2, 4}};
	struct buf sealed = seal(&key, "pq", "r");
	struct buf shifted = seal(&key, "p", "qr");
	struct str text;

	(void)state;
	assert_false(message_seal_check(&key, STR("p"), buf_str(&sealed), &text));
	assert_false(message_seal_check(&other, STR("pq"), buf_str(&sealed), &text));
	assert_string_not_equal(sealed.data + 2, shifted.data + 3);
	buf_fini(&shifted);
	buf_fini(&sealed);
}

static void made_keys_differ(void **state)
{
	struct seal_key a, b;

	(void)state;
	seal_key_make(&a);
	seal_key_make(&b);
	assert_memory_not_equal(a.bytes, b.bytes, SEAL_KEY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_sealed_comes_back),
		cmocka_unit_test(a_change_anywhere_is_seen),
		cmocka_unit_test(it_holds_for_its_purpose_and_key_alone),
		cmocka_unit_test(made_keys_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
