/*
 * outside: a process that is locked in with one folder can remove names there, and nothing else;
 * one with two can copy from one to the other.
 */
#include "../base/tree.h"
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/landlock.h"
#include "sandbox/outside.h"

static char folder[64];

static int setup(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/outside-XXXXXX");
	if (mkdtemp(folder) == NULL || chdir(folder) < 0)
		return -1;
	return mkdir("in", 0700) < 0 || mkdir("out", 0700) < 0 ||
	       mkdir("in/d", 0700) < 0 || mkdir("out/d", 0700) < 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)!chdir("/");
	tree_remove(folder);
	return 0;
}

static int file = -1;

static int run(void *act)
{
	return (*(bool (*const *)(void))act)() ? 0 : ENOENT;
}

/* Does ACT succeed in a process that does WORK in the folder `in` only? */
static bool works(enum outside_work work, bool (*act)(void))
{
	const int in = open("in", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct outside_folder walls = {work, in, file};

	assert_true(in >= 0);
	const int code = outside_run(&walls, run, &act);
	(void)close(in);
	assert_true(code == 0 || code == ENOENT);
	return code == 0;
}

static bool removes_in(void)
{
	return unlinkat(3, "d", AT_REMOVEDIR) == 0;
}

static bool removes_out(void)
{
	return unlinkat(AT_FDCWD, "out/d", AT_REMOVEDIR) == 0 ||
	       unlinkat(3, "../out/d", AT_REMOVEDIR) == 0;
}

static bool writes(void)
{
	return openat(3, "new", O_WRONLY | O_CREAT, 0600) >= 0 ||
	       mkdirat(3, "new", 0700) == 0;
}

static bool reads_out(void)
{
	return open("/etc/passwd", O_RDONLY) >= 0;
}

static bool calls(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0;
}

static bool starts(void)
{
	return execl("/bin/true", "true", (char *)NULL) == 0;
}

static bool sees_a_descriptor(void)
{
	return fcntl(0, F_GETFD) >= 0 && write(1, "", 1) == 1;
}

static bool reads_in(void)
{
	char byte;

	return read(openat(3, "f", O_RDONLY | O_NOFOLLOW), &byte, 1) == 1 ||
	       pread(openat(3, "f", O_RDONLY | O_NOFOLLOW), &byte, 1, 0) == 1;
}

static bool follows(void)
{
	return openat(3, "l", O_WRONLY | O_NOFOLLOW) >= 0 ||
	       openat(3, "l", O_WRONLY | O_CREAT, 0600) >= 0;
}

static bool writes_out(void)
{
	return open("out/f", O_WRONLY | O_CREAT | O_NOFOLLOW, 0600) >= 0 ||
	       mkdirat(3, "../out/new", 0700) == 0 || linkat(3, "f", 3, "../out/g", 0) == 0;
}

static bool makes_a_device(void)
{
	return mknodat(3, "null", S_IFBLK | 0600, makedev(7, 0)) == 0;
}

static bool has_the_file(void)
{
	return lseek(OUTSIDE_FILE, 0, SEEK_CUR) >= 0;
}

static void it_has_one_folder(void **state)
{
	(void)state;
	assert_true(works(OUTSIDE_REMOVES, removes_in));
	for (enum outside_work work = OUTSIDE_REMOVES; work <= OUTSIDE_BUILDS; work++) {
		assert_false(works(work, calls));
		assert_false(works(work, starts));
		assert_false(works(work, has_the_file));
		assert_false(works(work, makes_a_device));
		if (landlock_abi() == 0)
			continue;
		assert_false(works(work, removes_out));
		assert_false(works(work, reads_out));
		assert_false(works(work, writes_out));
	}
	assert_false(works(OUTSIDE_REMOVES, writes));
	assert_false(works(OUTSIDE_REMOVES, sees_a_descriptor));
}

static void each_work_has_its_own_rights(void **state)
{
	(void)state;
	file = open("in/f", O_RDWR | O_CREAT | O_CLOEXEC, 0);
	assert_int_equal(write(file, "x", 1), 1);
	assert_int_equal(symlink("f", "in/l"), 0);
	/* Its own user's file without any permission, in a process that holds keys. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	assert_true(works(OUTSIDE_READS_ALL, reads_in));
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	assert_true(works(OUTSIDE_READS, has_the_file));
	assert_false(works(OUTSIDE_READS, writes));
	assert_false(works(OUTSIDE_READS, removes_in));
	assert_false(works(OUTSIDE_BUILDS, follows));
	assert_true(works(OUTSIDE_BUILDS, writes));
	if (landlock_abi() > 0)
		assert_false(works(OUTSIDE_BUILDS, reads_in));
	(void)close(file);
	file = -1;
}

static bool copies_a_file(void)
{
	const int from = openat(OUTSIDE_FILE, "file", O_RDONLY);
	const int to = openat(OUTSIDE_FOLDER, "file", O_WRONLY | O_CREAT | O_EXCL, 0600);
	char byte;

	return from >= 0 && to >= 0 && read(from, &byte, 1) == 1 &&
	       write(to, &byte, 1) == 1 && mkdirat(OUTSIDE_FOLDER, "made", 0700) == 0;
}

static bool changes_the_source(void)
{
	return openat(OUTSIDE_FILE, "file", O_WRONLY) >= 0 ||
	       openat(OUTSIDE_FILE, "new", O_WRONLY | O_CREAT, 0600) >= 0 ||
	       unlinkat(OUTSIDE_FILE, "d", AT_REMOVEDIR) == 0 ||
	       mkdirat(OUTSIDE_FILE, "made", 0700) == 0;
}

static void one_that_copies_has_two_folders(void **state)
{
	(void)state;
	auto_close int source = open("out/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(source, "x", 1), 1);
	file = open("out", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(works(OUTSIDE_COPIES, copies_a_file));
	assert_false(works(OUTSIDE_COPIES, calls));
	assert_false(works(OUTSIDE_COPIES, starts));
	assert_false(works(OUTSIDE_COPIES, makes_a_device));
	if (landlock_abi() > 0) {
		assert_false(works(OUTSIDE_COPIES, changes_the_source));
		assert_false(works(OUTSIDE_COPIES, reads_out));
	}
	(void)close(file);
	file = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_that_copies_has_two_folders, setup,
						teardown),
		cmocka_unit_test_setup_teardown(it_has_one_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(each_work_has_its_own_rights, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
