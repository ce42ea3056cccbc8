/* Tests of proxy/dns: the question, its true answers, and everything that is none. */
#include "../base/unit.h"

#include <string.h>

#include "proxy/resolver.h"

enum { ID = 0x1234 };

/* A message made of pieces; QUESTION is that of a.example, type A. */
#define HEAD(flags, answers) "\x12\x34" flags "\0\x01\0" answers "\0\0\0\0"
#define QUESTION \
	"\x01"   \
	"a\x07"  \
	"example\0\0\x01\0\x01"
#define ADDRESS(name, a, b, c, d) name "\0\x01\0\x01\0\0\0\x3c\0\x04" a b c d
#define SELF                      "\xc0\x0c"

static enum dns_answer answer_of(const char *bytes, size_t size, struct dns_addresses *found)
{
	enum dns_answer answer;

	*found = (struct dns_addresses){.count = 77};
	answer = resolver_dns_read_answer((struct str){bytes, size}, "a.example", DNS_A,
					  ID, found);
	/* Cut anywhere it is strange or says less, and nothing is read behind its end. */
	for (size_t i = 0; i < size; i++) {
		char *part = malloc(i + 1);
		struct dns_addresses less;
		memcpy(part, bytes, i);
		(void)resolver_dns_read_answer((struct str){part, i}, "a.example", DNS_A,
					       ID, &less);
		free(part);
	}
	return answer;
}

#define ANSWER_OF(text, found) answer_of(text, sizeof(text) - 1, found)

static void a_question_is_printed(void **state)
{
	static const char expected[] = "\x12\x34\x01\0\0\x01\0\0\0\0\0\0"
				       "\x01"
				       "a\x07"
				       "example\0\0\x1c\0\x01";
	unsigned char out[DNS_QUESTION_MAX];
	char name[NETWORK_NAME_MAX + 1];

	(void)state;
	assert_int_equal(resolver_dns_print_question("a.example", DNS_AAAA, ID, out),
			 sizeof(expected) - 1);
	assert_memory_equal(out, expected, sizeof(expected) - 1);
	for (size_t i = 0; i < NETWORK_NAME_MAX; i++)
		name[i] = i % 2 ? '.' : 'a';
	name[NETWORK_NAME_MAX] = '\0';
	assert_int_equal(resolver_dns_print_question(name, DNS_A, ID, out),
			 DNS_QUESTION_MAX);
}

static void addresses_are_found_behind_aliases(void **state)
{
	struct dns_addresses found;

	(void)state;
	assert_int_equal(ANSWER_OF(HEAD("\x81\x80", "\x01")
					   QUESTION ADDRESS(SELF, "\x01", "\x02", "\x03",
							    "\x04"),
				   &found),
			 DNS_FOUND);
	assert_int_equal(found.count, 1);
	assert_memory_equal(found.bytes[0], "\x01\x02\x03\x04", 4);
	/* In another case, and behind b.example, which stands after the address. */
	assert_int_equal(ANSWER_OF(HEAD("\x81\x80", "\x02") "\x01"
							    "A\x07"
							    "eXample\0\0\x01\0\x01" ADDRESS(
								    "\x01"
								    "b\x07"
								    "example\0",
								    "\x05", "\x06",
								    "\x07", "\x08") SELF
				   "\0\x05\0\x01\0\0\0\x3c\0\x04\x01"
				   "b\xc0\x0e",
				   &found),
			 DNS_FOUND);
	assert_int_equal(found.count, 1);
	assert_memory_equal(found.bytes[0], "\x05\x06\x07\x08", 4);
	/* Somebody else's address is none of ours. */
	assert_int_equal(ANSWER_OF(HEAD("\x81\x80", "\x01")
					   QUESTION ADDRESS("\x01"
							    "x\0",
							    "\x01", "\x02", "\x03", "\x04"),
				   &found),
			 DNS_FOUND);
	assert_int_equal(found.count, 0);
	/* Neither is one behind somebody else's alias: x is b.example, which has one. */
	assert_int_equal(ANSWER_OF(HEAD("\x81\x80", "\x02") QUESTION
				   "\x01"
				   "x\0\0\x05\0\x01\0\0\0\x3c\0\x04\x01"
				   "b\xc0\x0e" ADDRESS("\x01"
						       "b\xc0\x0e",
						       "\x05", "\x06", "\x07", "\x08"),
				   &found),
			 DNS_FOUND);
	assert_int_equal(found.count, 0);
	/* There is no such name, whatever else it says. */
	assert_int_equal(ANSWER_OF(HEAD("\x81\x83", "\x01")
					   QUESTION ADDRESS(SELF, "\x01", "\x02", "\x03",
							    "\x04"),
				   &found),
			 DNS_FOUND);
	assert_int_equal(found.count, 0);
	assert_int_equal(ANSWER_OF(HEAD("\x83\x80", "\0") QUESTION, &found), DNS_CUT);
	assert_int_equal(ANSWER_OF(HEAD("\x81\x82", "\0") QUESTION, &found), DNS_FAILED);
}

static void what_answers_another_question_is_strange(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
	} rows[] = {
#define ROW(text) {text, sizeof(text) - 1}
		ROW(""),
		ROW("\x12\x34"),
		ROW("\x12\x35\x81\x80\0\x01\0\0\0\0\0\0" QUESTION),
		ROW(HEAD("\x01\x80", "\0") QUESTION),
		ROW(HEAD("\x91\x80", "\0") QUESTION),
		ROW("\x12\x34\x81\x80\0\0\0\0\0\0\0\0"),
		ROW("\x12\x34\x81\x80\0\x02\0\0\0\0\0\0" QUESTION QUESTION),
		ROW(HEAD("\x81\x80", "\0") "\x01"
					   "b\x07"
					   "example\0\0\x01\0\x01"),
		ROW(HEAD("\x81\x80", "\0") "\x01"
					   "a\x07"
					   "example\0\0\x1c\0\x01"),
		ROW(HEAD("\x81\x80", "\0") "\x01"
					   "a\x07"
					   "example\0\0\x01\0\x03"),
		/* "a.example" as one label */
		ROW(HEAD("\x81\x80", "\0") "\x09"
					   "a.example\0\0\x01\0\x01"),
		/* a pointer to itself, and one forwards */
		ROW(HEAD("\x81\x80", "\0") "\xc0\x0c\0\x01\0\x01"),
		ROW(HEAD("\x81\x80", "\0") "\xc0\x20\0\x01\0\x01"),
		/* an answer that ends too early */
		ROW(HEAD("\x81\x80", "\x01") QUESTION SELF
		    "\0\x01\0\x01\0\0\0\x3c\0\x09\x01"),
#undef ROW
	};
	struct dns_addresses found;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		if (answer_of(rows[i].bytes, rows[i].size, &found) != DNS_STRANGE)
			fail_msg("row %zu is taken", i);
		assert_int_equal(found.count, 77);
	}
}

static void aliases_in_a_circle_lead_nowhere(void **state)
{
	struct dns_addresses found;

	(void)state;
	assert_int_equal(ANSWER_OF(HEAD("\x81\x80", "\x02") QUESTION SELF
				   "\0\x05\0\x01\0\0\0\x3c\0\x02\xc0\x0c" ADDRESS(
					   SELF, "\x01", "\x02", "\x03", "\x04"),
				   &found),
			 DNS_FOUND);
	assert_int_equal(found.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_printed),
		cmocka_unit_test(addresses_are_found_behind_aliases),
		cmocka_unit_test(what_answers_another_question_is_strange),
		cmocka_unit_test(aliases_in_a_circle_lead_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
