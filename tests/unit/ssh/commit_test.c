/* commit: texts that git signs, those that it does not, and the form of a signature. */
#include "../base/unit.h"

#include "base/buf.h"
#include "ssh/commit.h"

#define ZEROS "0123456789abcdef0123456789abcdef01234567"
#define HEAD                                                           \
	"tree " ZEROS "\nparent " ZEROS "\nauthor Ann <a@b> 1 +0000\n" \
	"committer Bob <b@c> 1 +0000\n"

static void a_commit_says_who_and_what(void **state)
{
	struct ssh_commit commit;

	(void)state;
	assert_true(ssh_commit_read(STR(HEAD "\nThe subject\n\nand more\n"), &commit));
	assert_false(commit.tag);
	assert_true(str_is(commit.author, "Ann <a@b>"));
	assert_true(str_is(commit.committer, "Bob <b@c>"));
	assert_true(str_is(commit.subject, "The subject"));
	assert_true(ssh_commit_read(STR("tree " ZEROS
					"\nauthor Ann <a@b> 1 +0000\ncommitter Bob <b@c> 1 "
					"+0000\nencoding UTF-8\nmergetag object " ZEROS
					"\n type commit\n\nroot"),
				    &commit));
	assert_true(str_is(commit.subject, "root"));
	/* As git takes it: empty lines before it are none, and it goes on to the next one. */
	assert_true(ssh_commit_read(STR(HEAD "\n\n \t\nOne\ntwo\n \nthree\n"), &commit));
	assert_true(str_is(commit.subject, "One\ntwo"));
	/* Without a message. */
	assert_true(ssh_commit_read(STR(HEAD "\n"), &commit));
	assert_int_equal(commit.subject.size, 0);
}

static void a_tag_says_who_and_what(void **state)
{
	struct ssh_commit commit;

	(void)state;
	assert_true(ssh_commit_read(STR("object " ZEROS "\ntype commit\ntag v1\n"
					"tagger Ann <a@b> 1 +0000\n\nRelease\n"),
				    &commit));
	assert_true(commit.tag);
	assert_true(str_is(commit.author, "Ann <a@b>") && str_is(commit.subject, "Release"));
	assert_true(str_is(commit.name, "v1") && str_is(commit.type, "commit") &&
		    str_is(commit.object, ZEROS));
}

static void other_texts_are_refused(void **state)
{
	static const struct str texts[] = {
		STR(""),
		STR("hello"),
		STR(HEAD),
		STR("\n" HEAD "\nx"),
		STR("tree x\nauthor Ann <a@b> 1 +0000\ncommitter Bob <b@c> 1 +0000\n\nx"),
		STR("tree " ZEROS "\ncommitter Bob <b@c> 1 +0000\n\nx"),
		STR("tree " ZEROS "\nauthor Ann\ncommitter Bob <b@c> 1 +0000\n\nx"),
		STR(HEAD "\nx\0y"),
		/* Of two, git takes the last. */
		STR(HEAD "author Eve <e@f> 1 +0000\n\nx"),
		STR(HEAD "committer Eve <e@f> 1 +0000\n\nx"),
		STR(HEAD "encoding UTF-8\nauthor Eve <e@f> 1 +0000\n\nx"),
		STR(HEAD "encoding UTF-16BE\n\nx"),
		STR(HEAD "gpgsig x\n\nx"),
		STR("object " ZEROS "\ntype commit\ntag v1\ntagger Ann <a@b> 1 +0000\n"
		    "tagger Eve <e@f> 1 +0000\n\nx"),
		/* A signed push, which git signs in the same namespace. */
		STR("certificate version 0.1\npusher x\n\n" ZEROS " " ZEROS
		    " refs/heads/x\n"),
	};
	struct ssh_commit commit;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(texts); i++) {
		if (ssh_commit_read(texts[i], &commit))
			fail_msg("%zu", i);
	}
}

static void what_is_signed_is_in_the_namespace_of_git(void **state)
{
	static const struct str head =
		STR("SSHSIG\0\0\0\x03git\0\0\0\0\0\0\0\x06sha256\0\0\0\x20");
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	ssh_commit_add_signed(STR("abc"), &out);
	assert_true(str_starts(buf_str(&out), head));
	/* FIPS 180-4: SHA-256 of "abc" */
	assert_memory_equal(out.data + head.size, "\xba\x78\x16\xbf", 4);
	assert_int_equal(out.size, head.size + 32);
	buf_fini(&out);
}

static void a_signature_is_armoured_in_lines(void **state)
{
	struct buf whole, out;

	(void)state;
	buf_init(&whole, 4096);
	buf_init(&out, 4096);
	ssh_commit_add_signature(STR("key"), STR("signature"), &whole);
	assert_memory_equal(whole.data, "SSHSIG\0\0\0\x01\0\0\0\x03key\0\0\0\x03git", 24);
	ssh_commit_add_armour(buf_str(&whole), &out);
	assert_true(str_starts(buf_str(&out),
			       STR("-----BEGIN SSH SIGNATURE-----\nU1NIU0lH")));
	assert_true(str_ends(buf_str(&out), STR("\n-----END SSH SIGNATURE-----\n")));
	buf_fini(&out);
	buf_fini(&whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_commit_says_who_and_what),
		cmocka_unit_test(a_tag_says_who_and_what),
		cmocka_unit_test(other_texts_are_refused),
		cmocka_unit_test(what_is_signed_is_in_the_namespace_of_git),
		cmocka_unit_test(a_signature_is_armoured_in_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
