/* authority: certificates for the hosts of a cell, and for no other. */
#include "../base/unit.h"

#include <string.h>

#include "broker/authority.h"
#include "policy/network.h"

enum { TEXT_MAX = 64 << 10, FULL = 40 };

static struct network_host host(const char *text)
{
	struct network_host read;

	assert_true(network_parse_host(str_of(text), &read, NULL));
	return read;
}

/* They live as long as the process. */
static struct authority *made_so_far[8];
static size_t made_count;

static struct authority *make(const char *const *texts, size_t count)
{
	struct network_entry entries[8];
	struct authority *made = NULL;
	struct err err = {0};

	for (size_t i = 0; i < count; i++)
		assert_true(network_parse_entry(str_of(texts[i]), &entries[i], NULL));
	if (!authority_new(entries, count, &made, &err))
		fail_msg("%s", err.text);
	made_so_far[made_count++] = made;
	return made;
}

/* Is BYTES one element of DER, with no byte behind it? */
static bool is_whole(struct str bytes)
{
	const unsigned char *at = (const unsigned char *)bytes.data;

	return bytes.size > 4 && at[0] == 0x30 && at[1] == 0x82 &&
	       ((size_t)at[2] << 8 | at[3]) + 4 == bytes.size;
}

static void only_hosts_of_the_cell_have_a_leaf(void **state)
{
	static const char *const hosts[] = {"api.test:8443", "api.test", "10.0.0.7:8080"};
	static const struct {
		const char *text;
		bool good;
	} rows[] = {{"api.test", true},       {"API.test", true},    {"10.0.0.7", true},
		    {"evil.test", false},     {"a.api.test", false}, {"10.0.0.8", false},
		    {"[::ffff:a00:7]", false}};
	struct authority *authority = make(hosts, 3);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct network_host asked = host(rows[i].text);
		const struct str leaf = authority_leaf(authority, &asked);

		if (is_whole(leaf) != rows[i].good)
			fail_msg("%s", rows[i].text);
		assert_true(rows[i].good || leaf.size == 0);
	}
}

static void a_leaf_is_made_once_and_names_its_host(void **state)
{
	static const char *const hosts[] = {"api.test", "b.test"};
	struct authority *authority = make(hosts, 2);
	const struct network_host a = host("api.test"), b = host("b.test");
	const struct str first = authority_leaf(authority, &a);
	const struct str other = authority_leaf(authority, &b);
	const struct str again = authority_leaf(authority, &a);

	(void)state;
	assert_ptr_equal(first.data, again.data);
	assert_int_equal(first.size, again.size);
	assert_true(str_find(first, STR("api.test"), 0) != (size_t)-1);
	assert_true(str_find(first, STR("b.test"), 0) == (size_t)-1);
	assert_true(str_find(other, STR("b.test"), 0) != (size_t)-1);
}

static void two_authorities_are_different(void **state)
{
	static const char *const hosts[] = {"api.test"};
	struct authority *one = make(hosts, 1), *two = make(hosts, 1);
	const struct network_host a = host("api.test");
	struct buf first, second;

	(void)state;
	buf_init(&first, TEXT_MAX);
	buf_init(&second, TEXT_MAX);
	assert_true(authority_print(one, &first));
	assert_true(authority_print(two, &second));
	assert_true(str_starts(buf_str(&first), STR("-----BEGIN CERTIFICATE-----\n")));
	assert_true(str_ends(buf_str(&first), STR("\n-----END CERTIFICATE-----\n")));
	assert_string_not_equal(first.data, second.data);
	assert_false(str_equal(authority_leaf(one, &a), authority_leaf(two, &a)));
	assert_ptr_not_equal(authority_leaf_key(one), authority_leaf_key(two));
	buf_fini(&second);
	buf_init(&second, FULL);
	assert_false(authority_print(one, &second));
	buf_fini(&second);
	buf_fini(&first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_hosts_of_the_cell_have_a_leaf),
		cmocka_unit_test(a_leaf_is_made_once_and_names_its_host),
		cmocka_unit_test(two_authorities_are_different),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
