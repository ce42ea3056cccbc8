/* Tests of base/base64: the vectors of RFC 4648, section 10. */
#include "unit.h"

#include <string.h>

#include "base/buf.h"

static const struct {
	const char *bytes, *text;
} vectors[] = {
	{"", ""},
	{"f", "Zg=="},
	{"fo", "Zm8="},
	{"foo", "Zm9v"},
	{"foob", "Zm9vYg=="},
	{"fooba", "Zm9vYmE="},
	{"foobar", "Zm9vYmFy"},
};

static void known_texts_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		struct buf out;

		buf_init(&out, 100);
		assert_true(buf_base64_add(str_of(vectors[i].bytes), &out));
		assert_string_equal(out.data, vectors[i].text);
		assert_true(buf_base64_is_valid(buf_str(&out)));
		buf_clear(&out);
		assert_true(buf_base64_read(str_of(vectors[i].text), &out));
		assert_string_equal(out.data, vectors[i].bytes);
		buf_fini(&out);
	}
}

static void only_the_one_form_is_read(void **state)
{
	static const char *const wrong[] = {"Z",    "Zg",       "Zg=",    "Zh==",
					    "Zm9=", "Zg==Zg==", "Zm9v!",  "====",
					    "=m9v", "Zm 9",     "Zm9v\n", "Zm=v"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct buf out;

		buf_init(&out, 100);
		if (buf_base64_read(str_of(wrong[i]), &out))
			fail_msg("%s was read", wrong[i]);
		if (buf_base64_is_valid(str_of(wrong[i])))
			fail_msg("%s is said to be valid", wrong[i]);
		assert_int_equal(out.size, 0);
		buf_fini(&out);
	}
}

static void every_byte_comes_back(void **state)
{
	char all[256];
	struct buf text, bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	buf_init(&text, 1000);
	buf_init(&bytes, 1000);
	assert_true(buf_base64_add((struct str){all, sizeof(all)}, &text));
	assert_true(buf_base64_read(buf_str(&text), &bytes));
	assert_int_equal(bytes.size, sizeof(all));
	assert_memory_equal(bytes.data, all, sizeof(all));
	buf_fini(&bytes);
	buf_fini(&text);
}

static void stops_at_a_ceiling(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 5);
	assert_false(buf_base64_add(STR("foobar"), &out));
	assert_false(buf_base64_read(STR("Zm9vYmFy"), &out));
	assert_int_equal(out.size, 0);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_texts_both_ways),
		cmocka_unit_test(only_the_one_form_is_read),
		cmocka_unit_test(every_byte_comes_back),
		cmocka_unit_test(stops_at_a_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
