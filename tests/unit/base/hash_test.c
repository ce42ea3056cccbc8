/* Tests of base/hash: the vectors of FIPS 180-4's examples. */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"

static const char abc[] =
	"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

static void known_digests(void **state)
{
	char hex[HASH_HEX + 1];

	(void)state;
	hash_text(STR("abc"), hex);
	assert_string_equal(hex, abc);
	hash_text((struct str){NULL, 0}, hex);
	assert_string_equal(
		hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	hash_text(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), hex);
	assert_string_equal(
		hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void prefixes_of_twelve_digits_match(void **state)
{
	(void)state;
	assert_true(hash_matches("ba7816bf8f01", abc));
	assert_true(hash_matches(abc, abc));
	assert_false(hash_matches("ba7816bf8f0", abc));
	assert_false(hash_matches("ba7816bf8f02", abc));
	assert_false(hash_matches("", abc));
	assert_false(hash_matches("BA7816BF8F01", abc));
	assert_false(hash_matches("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015"
				  "ad0",
				  abc));
}

static void only_lower_case_hex_is_valid(void **state)
{
	(void)state;
	assert_true(hash_is_valid("0123456789ab"));
	assert_false(hash_is_valid("0123456789a"));
	assert_false(hash_is_valid("0123456789ag"));
	assert_false(hash_is_valid("0123456789AB"));
	assert_false(hash_is_valid("0123456789ab "));
	assert_false(hash_is_valid(NULL));
}

/* The published test values of XXH3-128 are those of `xxhsum -H2`. */
static void marks_are_those_of_xxhsum(void **state)
{
	char hex[HASH_MARK_HEX + 1], pieces[HASH_MARK_HEX + 1];
	struct hash *hash = hash_new_mark();

	(void)state;
	hash_mark((struct str){NULL, 0}, hex);
	assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
	hash_mark(STR("abc"), hex);
	assert_string_equal(hex, "06b05ab6733a618578af5f94892f3950");
	hash_add(hash, STR("a"));
	hash_add(hash, STR(""));
	hash_add(hash, STR("bc"));
	hash_mark_hex(hash, pieces);
	hash_free(hash);
	assert_string_equal(pieces, hex);
	assert_true(hash_matches("06b05ab6733a", hex));
	assert_false(hash_matches(abc, hex));
}

static void pieces_give_the_digest_of_the_whole(void **state)
{
	uint8_t whole[HASH_BYTES], pieces[HASH_BYTES];
	struct hash *hash = hash_new();

	(void)state;
	hash_bytes(STR("abcdef"), whole);
	hash_add(hash, STR("abc"));
	hash_add(hash, STR(""));
	hash_add(hash, STR("def"));
	hash_digest(hash, pieces);
	hash_free(hash);
	assert_memory_equal(whole, pieces, HASH_BYTES);
}

/* As `git hash-object --stdin` has them. */
static void blobs_are_named_as_git_names_them(void **state)
{
	static const uint8_t hello[] = {0xce, 0x01, 0x36, 0x25, 0x03, 0x0b, 0xa8,
					0xdb, 0xa9, 0x06, 0xf7, 0x56, 0x96, 0x7f,
					0x9e, 0x9c, 0xa3, 0x94, 0x46, 0x4a};
	static const uint8_t empty[] = {0x47, 0x3a, 0x0f, 0x4c, 0x3b, 0xe8, 0xa9, 0x36};
	uint8_t digest[HASH_BYTES];

	(void)state;
	hash_git_blob(STR("hello\n"), false, digest);
	assert_memory_equal(digest, hello, sizeof(hello));
	hash_git_blob(STR(""), true, digest);
	assert_memory_equal(digest, empty, sizeof(empty));
}

/* Test case 2 of RFC 4231. */
static void keyed_digests_are_those_of_the_rfc(void **state)
{
	const struct str key = STR("Jefe"), text = STR("what do ya want for nothing?");
	uint8_t digest[HASH_BYTES];
	char hex[HASH_HEX + 1];

	(void)state;
	hash_hmac(key, text, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(
		hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void a_digest_of_pieces_has_its_text(void **state)
{
	struct hash *hash = hash_new();
	char hex[HASH_HEX + 1];

	(void)state;
	hash_add(hash, STR("a"));
	hash_add(hash, STR("bc"));
	hash_digest_text(hash, hex);
	assert_string_equal(hex, abc);
	hash_free(hash);
}

static void a_file_is_hashed_from_its_beginning_up_to_a_ceiling(void **state)
{
	char hex[HASH_HEX + 1];
	uint64_t size;
	int fd = memfd_create("hash_test", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(write(fd, "abc", 3), 3);
	assert_true(hash_file(fd, 3, hex, &size));
	assert_string_equal(hex, abc);
	assert_int_equal(size, 3);
	assert_false(hash_file(fd, 2, hex, &size));
	assert_int_equal(errno, EFBIG);
	(void)close(fd);
	assert_false(hash_file(fd, 3, hex, &size));
	assert_int_equal(errno, EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_digests),
		cmocka_unit_test(prefixes_of_twelve_digits_match),
		cmocka_unit_test(marks_are_those_of_xxhsum),
		cmocka_unit_test(pieces_give_the_digest_of_the_whole),
		cmocka_unit_test(blobs_are_named_as_git_names_them),
		cmocka_unit_test(only_lower_case_hex_is_valid),
		cmocka_unit_test(keyed_digests_are_those_of_the_rfc),
		cmocka_unit_test(a_digest_of_pieces_has_its_text),
		cmocka_unit_test(a_file_is_hashed_from_its_beginning_up_to_a_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
