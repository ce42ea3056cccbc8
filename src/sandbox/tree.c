/*
 * tree: a tree of the host for a cell that is built already. An ordinary user may copy
 * mounts only inside a mount namespace of their own. A child process creates one, opens
 * the tree in it and exits. It shares its descriptor table with us, so the open
 * descriptor keeps the copy alive.
 */
#include "base/fd.h"
#include "base/kernel.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct taking {
	const char *path;
	long answer;
	__attribute__((aligned(16))) char stack[SANDBOX_HELPER_STACK];
};

/* As in network.c: calls of the kernel only, on a stack that no sanitizer knows. */
__attribute__((no_sanitize("address", "undefined"), noinline)) static int taking_main(
	void *context)
{
	struct taking *taking = context;

	taking->answer = kernel_raw(KERNEL_OPEN_TREE, AT_FDCWD, (long)taking->path,
				    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
					    AT_SYMLINK_NOFOLLOW);
	return 0;
}

bool sandbox_take_tree(int held, const char *path, int *tree, struct err *err)
{
	struct taking taking = {.path = path, .answer = -ECHILD};
	struct stat wanted, found;
	/*
	 * The helper shares our descriptors; CLONE_VFORK suspends us until it has ended.
	 */
	pid_t helper =
		clone(taking_main, taking.stack + sizeof(taking.stack),
		      CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_NEWUSER | CLONE_NEWNS,
		      &taking);

	if (helper < 0)
		return err_set(err, errno, "new namespaces: %s", strerror(errno));
	while (waitpid(helper, NULL, __WALL) < 0 && errno == EINTR)
		;
	auto_close int fd = taking.answer < 0 ? -1 : (int)taking.answer;
	if (fd < 0)
		return err_set(err, (int)-taking.answer, "%s: %s", path,
			       strerror((int)-taking.answer));
	if (fstat(held, &wanted) < 0 || fstat(fd, &found) < 0 ||
	    wanted.st_dev != found.st_dev || wanted.st_ino != found.st_ino)
		return err_set(err, ESTALE, "%s was replaced meanwhile", path);
	*tree = fd_take(&fd);
	return true;
}
