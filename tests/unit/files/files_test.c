/*
 * files: what is reached, what is refused, and what is suggested.
 */
#include "../base/tree.h"
#include "ground.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void assert_reach(struct ground *here, const char *path, enum files_want want,
			 int code, const char *content)
{
	char found[64];
	int got = ground_reach(here, path, want, found);

	if (got != code)
		fail_msg("%s: %d (%s) instead of %d", path, got, strerror(got), code);
	if (content)
		assert_string_equal(found, content);
}

static void reaches_what_lies_in_the_roots(void **state)
{
	struct ground *here = *state;
	char path[256];

	assert_reach(here, "src/a.c", FILES_READ, 0, "int a;\n");
	assert_reach(here, "./src//../src/a.c", FILES_READ, 0, "int a;\n");
	ground_at(here, "ws/src/a.c", path);
	assert_reach(here, path, FILES_READ, 0, "int a;\n");
	ground_at(here, "lib/lib.h", path);
	assert_reach(here, path, FILES_READ, 0, "lib\n");
	assert_reach(here, "../lib/lib.h", FILES_READ, 0, "lib\n");
	ground_at(here, "single", path);
	assert_reach(here, path, FILES_READ, 0, "one file\n");
	assert_reach(here, ".", FILES_FOLDER, 0, NULL);
	assert_reach(here, "src/", FILES_FOLDER, 0, NULL);
	assert_reach(here, "src", FILES_ANY, 0, NULL);
}

/* Nothing stands at the other place here: each path has to become one of the workspace. */
static void the_other_place_of_the_workspace_is_the_workspace(void **state)
{
	struct ground *here = *state;
	char link[256];

	files_stand_at(here->files, "/nowhere/testbed");
	assert_reach(here, "/nowhere/testbed/src/a.c", FILES_READ, 0, "int a;\n");
	assert_reach(here, "/nowhere/testbed", FILES_FOLDER, 0, NULL);
	assert_reach(here, "/nowhere/testbed/blocked/key", FILES_ANY, ENOENT, NULL);
	assert_reach(here, "/nowhere/testbed/../testbed/src/a.c", FILES_READ, 0, "int a;\n");
	assert_reach(here, "/nowhere/testbeds/src/a.c", FILES_ANY, ENOENT, NULL);
	ground_at(here, "ws/to_there", link);
	assert_int_equal(symlink("/nowhere/testbed/src/a.c", link), 0);
	assert_reach(here, "to_there", FILES_READ, 0, "int a;\n");
	files_stand_at(here->files, NULL);
	assert_reach(here, "to_there", FILES_READ, ENOENT, NULL);
}

static void missing_outside_and_blocked_are_one_answer(void **state)
{
	struct ground *here = *state;
	static const char *const paths[] = {"missing",     "../secret/data",
					    "/etc/passwd", "blocked/key",
					    "blocked",     "../../../../etc/shadow",
					    "/",           "../secret/missing"};
	struct buf expected;
	struct buf said;

	buf_init(&expected, 4096);
	buf_init(&said, 4096);
	for (size_t i = 0; i < UNIT_COUNT(paths); i++) {
		struct file file;
		struct err err = {0};

		file_init(&file);
		assert_false(files_reach(here->files, paths[i], FILES_ANY, &file, &err));
		assert_int_equal(err.code, ENOENT);
		buf_clear(&expected);
		buf_addf(&expected,
			 "%s does not exist, or lies outside of what this agent may reach.",
			 paths[i]);
		assert_string_equal(err.text, expected.data);
		file_fini(&file);
	}
	buf_fini(&expected);
	buf_fini(&said);
}

static void links_are_followed_inside_the_roots_only(void **state)
{
	struct ground *here = *state;
	char path[256];

	ground_link(here, "src/a.c", "ws/relative");
	ground_link(here, "../lib/lib.h", "ws/to_other_root");
	ground_link(here, "../secret/data", "ws/out");
	ground_link(here, "/etc/passwd", "ws/out_absolute");
	ground_at(here, "ws/src", path);
	ground_link(here, path, "ws/absolute");
	ground_at(here, "lib", path);
	ground_link(here, path, "ws/absolute_other");
	ground_link(here, "blocked/key", "ws/to_blocked");
	ground_link(here, "loop", "ws/loop");
	ground_link(here, "nowhere", "ws/dangling");
	ground_link(here, "absolute/../absolute/a.c", "ws/climbing");
	assert_reach(here, "relative", FILES_READ, 0, "int a;\n");
	assert_reach(here, "to_other_root", FILES_READ, 0, "lib\n");
	assert_reach(here, "absolute/a.c", FILES_READ, 0, "int a;\n");
	assert_reach(here, "absolute_other/lib.h", FILES_READ, 0, "lib\n");
	assert_reach(here, "climbing", FILES_READ, 0, "int a;\n");
	assert_reach(here, "out", FILES_READ, ENOENT, NULL);
	assert_reach(here, "out_absolute", FILES_READ, ENOENT, NULL);
	assert_reach(here, "to_blocked", FILES_READ, ENOENT, NULL);
	assert_reach(here, "dangling", FILES_READ, ENOENT, NULL);
	assert_reach(here, "loop", FILES_READ, ELOOP, NULL);
	assert_reach(here, "/proc/self/root/etc/passwd", FILES_READ, ENOENT, NULL);
}

static void a_chain_of_absolute_links_ends(void **state)
{
	struct ground *here = *state;
	char target[256];
	char name[32];

	for (int i = 0; i < 12; i++) {
		(void)snprintf(name, sizeof(name), "ws/l%d", i + 1);
		ground_at(here, name, target);
		(void)snprintf(name, sizeof(name), "ws/l%d", i);
		ground_link(here, target, name);
	}
	ground_put(here, "ws/l12", "end\n");
	assert_reach(here, "l4", FILES_READ, 0, "end\n");
	assert_reach(here, "l0", FILES_READ, ELOOP, NULL);
}

static void special_files_are_never_opened(void **state)
{
	struct ground *here = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_close int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char path[256];
	int64_t began = clock_now_ms();

	ground_at(here, "ws/fifo", path);
	assert_int_equal(mkfifo(path, 0644), 0);
	ground_at(here, "ws/sock", path);
	assert_true(strlen(path) < sizeof(address.sun_path));
	memcpy(address.sun_path, path, strlen(path));
	assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_reach(here, "fifo", FILES_READ, ENXIO, NULL);
	assert_reach(here, "sock", FILES_READ, ENXIO, NULL);
	assert_reach(here, "fifo", FILES_ANY, 0, NULL);
	assert_reach(here, "src", FILES_READ, EISDIR, NULL);
	assert_reach(here, "src/a.c", FILES_FOLDER, ENOTDIR, NULL);
	assert_reach(here, "fifo", FILES_FOLDER, ENOTDIR, NULL);
	assert_reach(here, "src/a.c/x", FILES_READ, ENOTDIR, NULL);
	assert_true(clock_now_ms() - began < 30000);
}

static void odd_paths_have_an_answer(void **state)
{
	struct ground *here = *state;
	auto_free char *longest = memory_alloc(8192);
	auto_free char *name = memory_alloc(512);

	memset(longest, 'a', 8191);
	memset(name, 'b', 300);
	assert_reach(here, longest, FILES_READ, ENAMETOOLONG, NULL);
	assert_reach(here, name, FILES_READ, ENAMETOOLONG, NULL);
	assert_reach(here, "", FILES_READ, ENOENT, NULL);
	assert_reach(here, "src/\xff\xfe", FILES_READ, ENOENT, NULL);
}

static void a_workspace_that_is_gone_is_told(void **state)
{
	struct ground *here = *state;
	char path[256];
	struct file file;
	struct err err = {0};

	tree_remove(here->workspace);
	file_init(&file);
	assert_false(files_reach(here->files, "src/a.c", FILES_READ, &file, &err));
	assert_non_null(strstr(err.text, "is gone"));
	file_fini(&file);
	ground_at(here, "ws", path);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void assert_near(struct ground *here, const char *path, const char *said)
{
	struct buf out;

	buf_init(&out, 4096);
	files_add_near(here->files, path, &out);
	if (strcmp(out.data, said) != 0)
		fail_msg("%s: \"%s\" instead of \"%s\"", path, out.data, said);
	buf_fini(&out);
}

static void near_names_are_suggested(void **state)
{
	struct ground *here = *state;

	ground_folder(here, "ws/lib");
	ground_put(here, "ws/lib/a.c", "");
	ground_put(here, "ws/lib/parser.c", "");
	assert_near(here, "b/a.c", " Did you mean: lib/a.c, src/a.c?");
	assert_near(here, "lib/praser.c", " Did you mean: lib/parser.c?");
	assert_near(here, "/src/a.c", " Did you mean: src/a.c?");
	assert_near(here, "lib/Parser.c", " Did you mean: lib/parser.c?");
	assert_near(here, "blocked/keys", "");
	assert_near(here, "key", "");
	assert_near(here, "nothing_like_it.zzz", "");
}

/* A folder and a link out, exchanged as fast as possible. */

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, ground_set_up, ground_tear_down)
		TEST(reaches_what_lies_in_the_roots),
		TEST(the_other_place_of_the_workspace_is_the_workspace),
		TEST(missing_outside_and_blocked_are_one_answer),
		TEST(links_are_followed_inside_the_roots_only),
		TEST(a_chain_of_absolute_links_ends),
		TEST(special_files_are_never_opened),
		TEST(odd_paths_have_an_answer),
		TEST(a_workspace_that_is_gone_is_told),
		TEST(near_names_are_suggested),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	return failed +
	       (ground_refuse_openat2()
			? cmocka_run_group_tests_name("without openat2", tests, NULL, NULL)
			: 1);
}
