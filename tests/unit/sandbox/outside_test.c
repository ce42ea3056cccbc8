/* outside: a process that is locked in with one folder can remove names there, and nothing else. */
#include "../base/tree.h"
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* Does ACT succeed in a process that has the folder `in` only? */
static bool works(bool (*act)(void))
{
	const int in = open("in", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int status;

	assert_true(in >= 0);
	const pid_t pid = fork();
	if (pid == 0)
		_exit(!outside_enter_folder(in, getppid(), NULL) ? 2 : act() ? 0 : 1);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)close(in);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 0;
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

static void it_has_one_folder(void **state)
{
	(void)state;
	assert_true(works(removes_in));
	assert_false(works(writes));
	assert_false(works(calls));
	assert_false(works(starts));
	assert_false(works(sees_a_descriptor));
	if (landlock_abi() == 0)
		skip();
	assert_false(works(removes_out));
	assert_false(works(reads_out));
}

/* The parent may have died before its child asks for its end with it. */
static void it_does_not_begin_without_its_parent(void **state)
{
	const int in = open("in", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int status;

	(void)state;
	assert_true(in >= 0);
	const pid_t pid = fork();
	if (pid == 0)
		_exit(outside_enter_folder(in, getpid(), NULL) ? 1 : 0);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)close(in);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_has_one_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(it_does_not_begin_without_its_parent,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
