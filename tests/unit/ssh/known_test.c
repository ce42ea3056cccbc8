/* known: the forms of a line in a file of known hosts. */
#include "../base/unit.h"

#include "base/buf.h"
#include "ssh/known.h"

#define ED \
	"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIKjITr1V5U2AMmTXHFLJCsnp/7XQCm74OYHb4HcMBxG"
#define EC                                                             \
	"ecdsa-sha2-nistp256 "                                         \
	"AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBNIvsk92" \
	"4Q8VU2skYEndL9/psAW4volLVVRkzMIVr8U7xIaGliH0ZyTmyWE1YMQPO5zH" \
	"VgRNxUTpdY4/m/TfV9E="
/* Hashed by ssh-keygen -H: git.example, and [git.example]:2222. */
#define HASHED      "|1|/FhoQofR1AmM9d06CZieUlYZKKE=|FRDqCUyFsU2TZ/Qug7qaPey4dvE="
#define HASHED_PORT "|1|24I1TwYhUkdrl5YfC506i/c6kdM=|cHmfoSVVPiy6G64AWYeWpbed0wY="

static void read_known(struct ssh_known *known, const char *host, const char *text)
{
	struct err err = {0};

	ssh_known_init(known);
	if (!ssh_known_set_host(known, str_of(host), &err))
		fail_msg("%s", err.text);
	ssh_known_read(known, str_of(text));
}

/* A cell would be shown WANTED of TEXT for HOST. */
static void expect(const char *host, const char *text, const char *wanted)
{
	struct ssh_known known;
	struct buf out;

	read_known(&known, host, text);
	buf_init(&out, 4096);
	ssh_known_print(&known, &out);
	if (strcmp(out.data, wanted) != 0)
		fail_msg("%s in\n%s\ngives\n%s", host, text, out.data);
	buf_fini(&out);
	ssh_known_fini(&known);
}

static void a_name_may_be_plain_hashed_or_a_pattern(void **state)
{
	static const char *const lines[] = {
		"git.example " ED,
		"GIT.example " ED " a comment",
		"a,git.example,b " ED,
		HASHED " " ED,
		"*.example " ED,
		"g?t.ex*le " ED,
		"\t git.example\t" ED "",
		"# x\n\ngit.example " ED "\r\n",
		"* " ED,
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(lines); i++)
		expect("git.example", lines[i], "git.example " ED "\n");
}

static void other_lines_give_no_key(void **state)
{
	static const char *const lines[] = {
		"",
		"git.example",
		"git.example ssh-ed25519",
		"git.example.org " ED,
		"xgit.example " ED,
		"!git.example,*.example " ED,
		"*.example,!git.example " ED,
		HASHED_PORT " " ED,
		"[git.example]:2222 " ED,
		"#git.example " ED,
		"@cert-authority git.example " ED,
		"@revoked git.example " ED,
		"@other git.example " ED,
		"git.example ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIA==",
		"git.example ssh-ed25519 AAAA",
		"git.example ssh-ed25519 ????",
		"|1||| " ED,
		"|1|AAAA " ED,
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(lines); i++)
		expect("git.example", lines[i], "");
}

static void another_port_has_a_name_of_its_own(void **state)
{
	(void)state;
	expect("git.example:2222", "[git.example]:2222 " ED, "[git.example]:2222 " ED "\n");
	expect("git.example:2222", HASHED_PORT " " ED, "[git.example]:2222 " ED "\n");
	expect("git.example:2222", "git.example " ED, "");
	expect("git.example:22", "git.example " ED, "git.example " ED "\n");
}

static void several_keys_are_kept_once_each(void **state)
{
	(void)state;
	expect("git.example",
	       "git.example " ED "\ngit.example " EC "\n*.example " ED "\nother " ED,
	       "git.example " ED "\ngit.example " EC "\n");
}

static void a_revoked_key_is_none_wherever_it_stands(void **state)
{
	(void)state;
	expect("git.example", "git.example " ED "\n@revoked * " ED "\ngit.example " EC,
	       "git.example " EC "\n");
	expect("git.example", "@revoked git.example " ED "\ngit.example " ED, "");
	/* It is revoked for another host. */
	expect("git.example", "@revoked other " ED "\ngit.example " ED,
	       "git.example " ED "\n");
}

static void an_authority_is_noted_and_gives_no_key(void **state)
{
	struct ssh_known known;

	(void)state;
	read_known(&known, "git.example", "@cert-authority *.example " ED);
	assert_true(known.authority);
	assert_int_equal(known.count, 0);
	ssh_known_fini(&known);
}

static void a_host_is_a_name_or_an_address(void **state)
{
	static const char *const wrong[] = {"",        "*.example", "git@x", "a b", "x:0",
					    "x:65536", "-o",        "x\n",   "[::1"};
	struct ssh_known known;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(wrong); i++) {
		ssh_known_init(&known);
		if (ssh_known_set_host(&known, str_of(wrong[i]), NULL))
			fail_msg("%s", wrong[i]);
		ssh_known_fini(&known);
	}
	expect("127.0.0.1:2200", "[127.0.0.1]:2200 " ED, "[127.0.0.1]:2200 " ED "\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_may_be_plain_hashed_or_a_pattern),
		cmocka_unit_test(other_lines_give_no_key),
		cmocka_unit_test(another_port_has_a_name_of_its_own),
		cmocka_unit_test(several_keys_are_kept_once_each),
		cmocka_unit_test(a_revoked_key_is_none_wherever_it_stands),
		cmocka_unit_test(an_authority_is_noted_and_gives_no_key),
		cmocka_unit_test(a_host_is_a_name_or_an_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
