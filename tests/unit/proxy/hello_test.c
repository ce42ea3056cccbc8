/* Tests of proxy/hello: the name in a greeting, however it is cut; and what is none. */
#include "../base/unit.h"

#include <string.h>

#include "base/buf.h"
#include "proxy/http.h"

static void add_number(struct buf *out, size_t value, int bytes)
{
	while (bytes-- > 0)
		(void)buf_addc(out, (char)(value >> (8 * bytes) & 0xff));
}

/* An extension with a list of one name. */
static void add_name(struct buf *out, const char *name)
{
	size_t size = strlen(name);

	add_number(out, 0, 2);
	add_number(out, size + 5, 2);
	add_number(out, size + 3, 2);
	add_number(out, 0, 1);
	add_number(out, size, 2);
	(void)buf_adds(out, name);
}

/* A greeting with EXTENSIONS, in records of at most RECORD bytes. */
static void make_hello(struct buf *out, struct str extensions, size_t record)
{
	struct buf message;

	buf_init(&message, 64 << 10);
	size_t body = 2 + 32 + 1 + 2 + 2 + 2 + 2 + extensions.size;
	add_number(&message, 1, 1);
	add_number(&message, body, 3);
	add_number(&message, 0x0303, 2);
	for (int i = 0; i < 32; i++)
		(void)buf_addc(&message, (char)i);
	add_number(&message, 0, 1);
	add_number(&message, 2, 2);
	add_number(&message, 0x1301, 2);
	add_number(&message, 0x0100, 2);
	add_number(&message, extensions.size, 2);
	(void)buf_addstr(&message, extensions);
	for (size_t at = 0; at < message.size; at += record) {
		struct str part = str_part(buf_str(&message), at, record);
		add_number(out, 22, 1);
		add_number(out, 0x0301, 2);
		add_number(out, part.size, 2);
		(void)buf_addstr(out, part);
	}
	buf_fini(&message);
}

static enum hello_answer hello_of(struct str extensions, size_t record, char *name)
{
	struct buf hello;
	struct err err;
	enum hello_answer answer;

	buf_init(&hello, 64 << 10);
	make_hello(&hello, extensions, record);
	answer = http_hello_read(buf_str(&hello), name, &err);
	for (size_t size = 1; answer == HELLO_GOOD && size < hello.size; size++) {
		char part[NETWORK_NAME_MAX + 1];
		assert_int_equal(http_hello_read(str_part(buf_str(&hello), 0, size), part,
						 &err),
				 HELLO_MORE);
	}
	buf_fini(&hello);
	return answer;
}

static void a_name_is_found_in_any_records(void **state)
{
	static const size_t records[] = {1, 2, 3, 7, 40, 16384};
	char name[NETWORK_NAME_MAX + 1];
	struct buf extensions;

	(void)state;
	buf_init(&extensions, 1024);
	add_number(&extensions, 43, 2);
	add_number(&extensions, 1, 2);
	add_number(&extensions, 0, 1);
	add_name(&extensions, "Packages.Example.org");
	for (size_t i = 0; i < UNIT_COUNT(records); i++) {
		assert_int_equal(hello_of(buf_str(&extensions), records[i], name),
				 HELLO_GOOD);
		assert_string_equal(name, "packages.example.org");
	}
	buf_clear(&extensions);
	assert_int_equal(hello_of(buf_str(&extensions), 100, name), HELLO_GOOD);
	assert_string_equal(name, "");
	buf_fini(&extensions);
}

static void two_names_and_no_names_are_refused(void **state)
{
	char name[NETWORK_NAME_MAX + 1];
	struct buf extensions;

	(void)state;
	buf_init(&extensions, 1024);
	add_name(&extensions, "a.example");
	add_name(&extensions, "b.example");
	assert_int_equal(hello_of(buf_str(&extensions), 100, name), HELLO_BAD);
	static const char *const names[] = {"", "a b", "a.example.", "a_b", "127.1"};
	for (size_t i = 0; i < UNIT_COUNT(names); i++) {
		buf_clear(&extensions);
		add_name(&extensions, names[i]);
		assert_int_equal(hello_of(buf_str(&extensions), 100, name), HELLO_BAD);
	}
	/* One extension with two names in its list. */
	static const char two[] = "\0\0\0\x0e\0\x0c\0\0\x03"
				  "a.b\0\0\x03"
				  "c.d";
	assert_int_equal(hello_of((struct str){two, sizeof(two) - 1}, 100, name), HELLO_BAD);
	/* A length that leads out of the extension. */
	static const char longer[] = "\0\0\0\x08\0\x06\0\0\x09"
				     "a.b";
	assert_int_equal(hello_of((struct str){longer, sizeof(longer) - 1}, 100, name),
			 HELLO_BAD);
	buf_fini(&extensions);
}

static void what_is_no_greeting_is_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
	} rows[] = {
		{"\x16\x03\x01\0\0", 5},
		{"\x16\x03\x01\xff\xff", 5},
		{"\x16\x02\x01\0\x05hello", 10},
		{"\x17\x03\x01\0\x05hello", 10},
		{"\x16\x03\x01\0\x05\x02\0\0\x01x", 10},
		{"\x16\x03\x01\0\x04\x01\xff\xff\xff", 9},
		{"\x16\x03\x01\0\x05\x01\0\0\x01x", 10},
		/* the second record is no handshake */
		{"\x16\x03\x01\0\x05\x01\0\0\x40x\x15\x03\x01\0\x02\0\0", 17},
	};
	char name[NETWORK_NAME_MAX + 1];
	char much[HELLO_MAX] = "\x16\x03\x01\x3f\xff\x01\0\x3f\xfc";
	struct err err;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++)
		assert_int_equal(http_hello_read((struct str){rows[i].bytes, rows[i].size},
						 name, &err),
				 HELLO_BAD);
	assert_false(http_hello_begins(STR("GET / HTTP/1.1")));
	assert_true(http_hello_begins(STR("\x16")));
	assert_true(http_hello_begins(STR("\x16\x03")));
	assert_false(http_hello_begins(STR("\x16\x01")));
	assert_int_equal(http_hello_read((struct str){much, HELLO_MAX - 1}, name, &err),
			 HELLO_MORE);
	assert_int_equal(http_hello_read((struct str){much, HELLO_MAX}, name, &err),
			 HELLO_BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_found_in_any_records),
		cmocka_unit_test(two_names_and_no_names_are_refused),
		cmocka_unit_test(what_is_no_greeting_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
