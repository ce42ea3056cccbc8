/*
 * identity: who the cell runs as, and the namespaces it is cloned into. Id maps are one
 * line each; root inside is nobody's, so a file of root stays closed to the cell.
 */
#include "base/fd.h"
#include "base/kernel.h"
#include "sandbox/network.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAP_MAX = 32 << 10 }; /* 340 lines, the kernel's most */

bool sandbox_is_root(void)
{
	static const char alone[] = " 1\n";
	struct buf map;

	if (geteuid() != 0)
		return false;
	buf_init(&map, MAP_MAX);
	bool is_alone = fd_read_at(AT_FDCWD, "/proc/self/uid_map", &map) &&
			str_ends(buf_str(&map), str_of(alone)) &&
			memchr(map.data, '\n', map.size) == map.data + map.size - 1;
	buf_fini(&map);
	return !is_alone;
}

void sandbox_identity(const struct stat *workspace, struct sandbox_identity *identity)
{
	*identity = (struct sandbox_identity){.uid = geteuid(), .gid = getegid()};
	if (!sandbox_is_root())
		return;
	identity->change = true;
	if (workspace->st_uid != 0) {
		identity->uid = workspace->st_uid;
		/*
		 * Group root opens too many files to be kept for a workspace of
		 * somebody else.
		 */
		identity->gid =
			workspace->st_gid != 0 ? workspace->st_gid : (gid_t)SANDBOX_UID;
		return;
	}
	identity->uid = SANDBOX_UID;
	identity->gid = SANDBOX_UID;
	identity->map_root = true;
}

static bool write_file(pid_t pid, const char *name, const char *text, struct err *err)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fd_write_file(path, text, err);
}

/* One line each: INSIDE is OUTSIDE, for users and groups. */
static bool write_maps(pid_t pid, uid_t inside_uid, gid_t inside_gid, uid_t outside_uid,
		       gid_t outside_gid, struct err *err)
{
	char line[64];

	/*
	 * An unprivileged writer must give up setgroups first; root's cell drops its
	 * groups.
	 */
	if (geteuid() != 0 && !write_file(pid, "setgroups", "deny", err))
		return false;
	(void)snprintf(line, sizeof(line), "%u %u 1\n", inside_gid, outside_gid);
	if (!write_file(pid, "gid_map", line, err))
		return false;
	(void)snprintf(line, sizeof(line), "%u %u 1\n", inside_uid, outside_uid);
	return write_file(pid, "uid_map", line, err);
}

static pid_t raw_clone(unsigned long flags, int *pidfd)
{
	return (pid_t)syscall(SYS_clone, flags | CLONE_PIDFD, NULL, pidfd, NULL, 0);
}

static const char *refusal_hint(int code)
{
	if (code == EPERM || code == EACCES)
		return "; user namespaces are forbidden here: see `glovebox doctor`";
	if (code == ENOSPC || code == EUSERS)
		return "; raise user.max_user_namespaces: see `glovebox doctor`";
	if (code == EAGAIN)
		return "; raise the limit of processes (ulimit -u, or pids.max of the control "
		       "group)";
	return "";
}

/* Clone a child with FLAGS, without id maps. */
static bool clone_plain(const char *what, unsigned long flags, pid_t *pid, int *pidfd,
			struct err *err)
{
	int child_pidfd = -1;
	pid_t child = raw_clone(flags, &child_pidfd);

	if (child < 0) {
		int code = errno;
		return err_set(err, code, "%s: %s%s", what, strerror(code),
			       code == EAGAIN ? refusal_hint(code) : "");
	}
	*pid = child;
	if (child != 0)
		*pidfd = child_pidfd;
	return true;
}

bool sandbox_clone(enum sandbox_level level, const struct sandbox_identity *identity,
		   unsigned long flags, struct sandbox_network *network, pid_t *pid,
		   int *pidfd, struct err *err)
{
	const unsigned long spaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID |
				     CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	int go[2], child_pidfd = -1;

	if (level < SANDBOX_SEALED)
		return clone_plain("the anchor", flags, pid, pidfd, err);
	if (!fd_pipe(go, err))
		return false;
	pid_t child = raw_clone(spaces | flags, &child_pidfd);
	if (child < 0) {
		int code = errno;
		fd_close(&go[0]);
		fd_close(&go[1]);
		return err_set(err, code, "new namespaces: %s%s", strerror(code),
			       refusal_hint(code));
	}
	if (child == 0) {
		char byte = 0;
		network_begin(network); /* it needs no id map, and takes longest */
		fd_close(&go[1]);
		ssize_t n = read(go[0], &byte, 1);
		fd_close(&go[0]);
		if (n != 1)
			_exit(1); /* the parent has said why */
		*pid = 0;
		return true;
	}
	fd_close(&go[0]);
	bool ok = write_maps(child, identity->uid, identity->gid, identity->uid,
			     identity->gid, err);
	if (ok && write(go[1], "g", 1) != 1)
		ok = err_set(err, errno, "starting the anchor: %s", strerror(errno));
	fd_close(&go[1]); /* without the byte the child ends */
	if (!ok) {
		(void)waitpid(child, NULL, __WALL); /* fails when FLAGS made it another's */
		fd_close(&child_pidfd);
		return false;
	}
	*pid = child;
	*pidfd = child_pidfd;
	return true;
}

bool sandbox_clone_worker(enum sandbox_level level, pid_t *pid, int *pidfd, struct err *err)
{
	const unsigned long spaces =
		level >= SANDBOX_SEALED ? CLONE_NEWPID | CLONE_NEWNS : 0;

	return clone_plain(spaces != 0 ? "namespaces of a worker" : "a worker",
			   spaces | SIGCHLD, pid, pidfd, err);
}

/*
 * A mount's ID mapping is taken from a user namespace: one is made for the purpose, with a
 * helper in it that shares our memory (no page table is copied) and lives until its
 * namespace is held.
 */
__attribute__((no_sanitize("address", "undefined"), noinline)) static int mapping_main(
	void *context)
{
	const long *front = context;
	const unsigned long no_signals[1] = {0}; /* blocked: the kernel's set */

	(void)kernel_raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
	while (kernel_raw(SYS_getppid, 0, 0, 0) == *front)
		(void)kernel_raw(SYS_rt_sigsuspend, (long)no_signals, sizeof(no_signals), 0);
	return 0;
}

static bool mapping_hold(const struct sandbox_identity *identity,
			 struct sandbox_mapping *mapping, struct err *err)
{
	char path[64];

	if (!write_maps(mapping->helper, 0, 0, identity->uid, identity->gid, err))
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)mapping->helper);
	mapping->fd = open(path, O_RDONLY | O_CLOEXEC);
	return mapping->fd >= 0 || err_set(err, errno, "%s: %s", path, strerror(errno));
}

bool sandbox_open_mapping(const struct sandbox_identity *identity,
			  struct sandbox_mapping *mapping, struct err *err)
{
	long *stack = mmap(NULL, SANDBOX_HELPER_STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (stack == MAP_FAILED)
		return err_set(err, errno, "a helper's stack: %s", strerror(errno));
	mapping->stack = stack;
	stack[0] = getpid();
	pid_t helper = clone(mapping_main, (char *)stack + SANDBOX_HELPER_STACK,
			     CLONE_VM | CLONE_NEWUSER, stack);
	if (helper < 0) {
		int code = errno;
		sandbox_close_mapping(mapping);
		return err_set(err, code, "new namespaces: %s%s", strerror(code),
			       refusal_hint(code));
	}
	mapping->helper = helper;
	bool ok = mapping_hold(identity, mapping, err);
	(void)kill(helper, SIGKILL); /* waited for later, when it is long gone */
	return ok;
}

void sandbox_end_helper(struct sandbox_mapping *mapping)
{
	while (mapping->helper > 0 && waitpid(mapping->helper, NULL, __WALL) < 0 &&
	       errno == EINTR)
		;
	if (mapping->stack != NULL)
		(void)munmap(mapping->stack, SANDBOX_HELPER_STACK);
	mapping->helper = 0;
	mapping->stack = NULL;
}

void sandbox_close_mapping(struct sandbox_mapping *mapping)
{
	sandbox_end_helper(mapping);
	fd_close(&mapping->fd);
}

bool sandbox_copy_tree(int fd, int mapping, int *tree, struct err *err)
{
	auto_close int copy = kernel_open_tree(fd, "",
					       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
						       AT_RECURSIVE | AT_EMPTY_PATH);
	struct mount_attr attributes = {
		.attr_set = mapping >= 0 ? MOUNT_ATTR_IDMAP : 0,
		.userns_fd = mapping >= 0 ? (unsigned)mapping : 0,
		/*
		 * A copy of a shared mount, made out here, would be its peer: the cell's
		 * masks would appear on the host and stay there.
		 */
		.propagation = MS_PRIVATE,
	};

	if (copy < 0)
		return err_set(err, errno, "copying the mount: %s", strerror(errno));
	if (syscall(KERNEL_MOUNT_SETATTR, copy, "", AT_EMPTY_PATH | AT_RECURSIVE,
		    &attributes, sizeof(attributes)) < 0)
		return err_set(err, errno, "%s the mount: %s",
			       mapping >= 0 ? "ID-mapping" : "keeping apart",
			       strerror(errno));
	*tree = fd_take(&copy);
	return true;
}

bool sandbox_become(enum sandbox_level level, const struct sandbox_identity *identity,
		    int parent_pidfd, struct err *err)
{
	struct pollfd parent = {.fd = parent_pidfd, .events = POLLIN};

	/*
	 * By number: a clone of a process with threads has one of them only, and the C library
	 * would wait for the others to change as well.
	 */
	if (identity->change) {
		if (syscall(SYS_setgroups, 0, NULL) < 0)
			return err_set(err, errno, "dropping groups: %s", strerror(errno));
		if (syscall(SYS_setresgid, identity->gid, identity->gid, identity->gid) < 0)
			return err_set(err, errno, "becoming group %u: %s", identity->gid,
				       strerror(errno));
		if (syscall(SYS_setresuid, identity->uid, identity->uid, identity->uid) < 0)
			return err_set(err, errno, "becoming user %u: %s", identity->uid,
				       strerror(errno));
	}
	/*
	 * After the change of uid, which clears it; then look whether the front is
	 * still there.
	 */
	if (level >= SANDBOX_SEALED && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_set(err, errno, "tying the anchor to the front: %s",
			       strerror(errno));
	if (poll(&parent, 1, 0) != 0)
		return err_set(err, ESRCH, "the front is gone");
	if (level >= SANDBOX_SEALED)
		(void)close(parent_pidfd);
	if (setsid() < 0)
		return err_set(err, errno, "leaving the terminal: %s", strerror(errno));
	return true;
}
