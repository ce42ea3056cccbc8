/*
 * sandbox: the user that the cell runs as, the namespaces it is cloned into, its network,
 * the rights that a process gives up, and the order of all walls. Id maps are one line
 * each. Root of the host is not mapped into the cell, so a file of root stays closed to
 * the cell. Each step is one short function, so that the order can be read in
 * sandbox_enter and sandbox_settle.
 */

#include "sandbox/sandbox.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/str.h"
#include "sandbox/landlock.h"
#include "sandbox/view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* The front: which user the cell runs as, and copies of trees for its view. */

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
		 * Do not keep the group root for somebody else's workspace: it opens
		 * too many files.
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

/* Write id maps of one line each for users and groups: INSIDE stands for OUTSIDE. */
static bool write_maps(pid_t pid, uid_t inside_uid, gid_t inside_gid, uid_t outside_uid,
		       gid_t outside_gid, struct err *err)
{
	char line[64];

	/*
	 * An unprivileged process must give up setgroups before it writes a group map.
	 * The cell of root drops its groups later.
	 */
	if (geteuid() != 0 && !write_file(pid, "setgroups", "deny", err))
		return false;
	(void)snprintf(line, sizeof(line), "%u %u 1\n", inside_gid, outside_gid);
	if (!write_file(pid, "gid_map", line, err))
		return false;
	(void)snprintf(line, sizeof(line), "%u %u 1\n", inside_uid, outside_uid);
	return write_file(pid, "uid_map", line, err);
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

/*
 * The ID mapping of a mount is taken from a user namespace. A helper process creates
 * one for this purpose. It shares our memory and our descriptors, so that neither page tables
 * nor the descriptors of thousands of cells are copied, and lives until its namespace is held.
 */
__attribute__((no_sanitize("address", "undefined"), noinline)) static int mapping_main(
	void *context)
{
	const long *front = context;
	/* blocked signals, as the kernel's set */
	const unsigned long no_signals[1] = {0};

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
			     CLONE_VM | CLONE_FILES | CLONE_NEWUSER, stack);
	if (helper < 0) {
		int code = errno;
		sandbox_close_mapping(mapping);
		return err_set(err, code, "new namespaces: %s%s", strerror(code),
			       refusal_hint(code));
	}
	mapping->helper = helper;
	bool ok = mapping_hold(identity, mapping, err);
	(void)kill(helper, SIGKILL); /* reaped later, when it has ended long ago */
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

/*
 * Copies trees of the host for a cell. Root copies a mount directly. An ordinary user may
 * copy mounts only inside a mount namespace of their own. A child process creates one,
 * opens the tree in it and exits. It shares its descriptor table with us, so the open
 * descriptor keeps the copy alive.
 */

bool sandbox_copy_tree(int fd, int mapping, int *tree, struct err *err)
{
	auto_close int copy = kernel_open_tree(fd, "",
					       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
						       AT_RECURSIVE | AT_EMPTY_PATH);
	struct mount_attr attributes = {
		.attr_set = mapping >= 0 ? MOUNT_ATTR_IDMAP : 0,
		.userns_fd = mapping >= 0 ? (unsigned)mapping : 0,
		/*
		 * A copy of a shared mount would be a peer of that mount, because it is
		 * made in the host's mount namespace: the masks of the cell would
		 * appear on the host and stay there.
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

struct taking {
	const char *path;
	long answer;
	__attribute__((aligned(16))) char stack[SANDBOX_HELPER_STACK];
};

/* Use system calls only, on a stack that the sanitizers do not know. */
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

/* The anchor: from its clone to the last rights that it gives up. */

/* GROUP: a folder of a control group of version 2, in which the child is born; or -1. */
static pid_t raw_clone(unsigned long flags, int group, int *pidfd)
{
	const struct clone_args args = {
		.flags = (flags & ~(unsigned long)CSIGNAL) | CLONE_PIDFD | CLONE_INTO_CGROUP,
		.pidfd = (uintptr_t)pidfd,
		.exit_signal = flags & (unsigned long)CSIGNAL,
		.cgroup = (unsigned)group,
	};

	if (group >= 0)
		return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	return (pid_t)syscall(SYS_clone, flags | CLONE_PIDFD, NULL, pidfd, NULL, 0);
}

/* Clone a child with FLAGS, without id maps. */
static bool clone_plain(const char *what, unsigned long flags, int group, pid_t *pid,
			int *pidfd, struct err *err)
{
	int child_pidfd = -1;
	pid_t child = raw_clone(flags, group, &child_pidfd);

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

/*
 * Make the cell's private network. The kernel needs longer for it than for all the rest of
 * the set-up, so this helper process makes it while the anchor builds the view. The helper
 * shares the anchor's memory and descriptors, has a stack of its own, and has ended before
 * sandbox_join returns.
 *
 * Use system calls through kernel_raw only, because functions of the C library would
 * overwrite the anchor's errno. The sanitizers do not know this stack, so their code
 * must not run here.
 */
__attribute__((no_sanitize("address", "undefined"), noinline)) static int helper_main(
	void *context)
{
	struct sandbox_network *network = context;
	struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	long answer;

	network->step = "new network namespace";
	answer = kernel_raw(SYS_unshare, CLONE_NEWNET, 0, 0);
	if (answer == 0) {
		network->step = "loopback";
		answer = kernel_raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	}
	if (answer >= 0) {
		long fd = answer;
		answer = kernel_raw(SYS_ioctl, fd, SIOCSIFFLAGS, (long)&loopback);
		if (answer == 0) {
			network->step = "holding the network namespace";
			answer = kernel_raw(SYS_ioctl, fd, SIOCGSKNS, 0);
		}
		(void)kernel_raw(SYS_close, fd, 0, 0);
	}
	network->fd = answer < 0 ? -1 : (int)answer;
	network->code = answer < 0 ? (int)-answer : 0;
	return 0;
}

/*
 * Start the helper that makes a network namespace with `lo` up. The helper writes to
 * NETWORK, so NETWORK must not move until sandbox_join, which also reports a failure of
 * this function.
 */
static void network_begin(struct sandbox_network *network)
{
	network->fd = -1;
	network->step = "starting the network's helper";
	network->code = ECHILD; /* until the helper says otherwise */
	network->helper = clone(helper_main, network->stack + sizeof(network->stack),
				CLONE_VM | CLONE_FILES | SIGCHLD, network);
	if (network->helper < 0)
		network->code = errno;
}

/* The numbers that the user has inside the cell. */
static uid_t inside_uid(enum sandbox_level level, const struct sandbox_identity *identity)
{
	return level >= SANDBOX_SEALED && identity->root ? 0 : identity->uid;
}

static gid_t inside_gid(enum sandbox_level level, const struct sandbox_identity *identity)
{
	return level >= SANDBOX_SEALED && identity->root ? 0 : identity->gid;
}

bool sandbox_clone(enum sandbox_level level, const struct sandbox_identity *identity,
		   unsigned long flags, int group, struct sandbox_network *network,
		   pid_t *pid, int *pidfd, struct err *err)
{
	const unsigned long spaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID |
				     CLONE_NEWUTS | CLONE_NEWCGROUP |
				     (network != NULL ? CLONE_NEWIPC : 0);
	int go[2], child_pidfd = -1;

	if (level < SANDBOX_SEALED)
		return clone_plain("the anchor", flags, group, pid, pidfd, err);
	if (!fd_pipe(go, err))
		return false;
	pid_t child = raw_clone(spaces | flags, group, &child_pidfd);
	if (child < 0) {
		int code = errno;
		fd_close(&go[0]);
		fd_close(&go[1]);
		return err_set(err, code, "new namespaces: %s%s", strerror(code),
			       refusal_hint(code));
	}
	if (child == 0) {
		char byte = 0;
		if (network != NULL)
			network_begin(network); /* needs no id map and takes longest */
		fd_close(&go[1]);
		ssize_t n = read(go[0], &byte, 1);
		fd_close(&go[0]);
		if (n != 1)
			_exit(1); /* the parent has reported the reason */
		*pid = 0;
		return true;
	}
	fd_close(&go[0]);
	bool ok = write_maps(child, inside_uid(level, identity),
			     inside_gid(level, identity), identity->uid, identity->gid,
			     err);
	if (ok && write(go[1], "g", 1) != 1)
		ok = err_set(err, errno, "starting the anchor: %s", strerror(errno));
	fd_close(&go[1]); /* without the byte the child exits */
	if (!ok) {
		/* fails when CLONE_PARENT in FLAGS made the child another process's */
		(void)waitpid(child, NULL, __WALL);
		fd_close(&child_pidfd);
		return false;
	}
	*pid = child;
	*pidfd = child_pidfd;
	return true;
}

bool sandbox_become(enum sandbox_level level, const struct sandbox_identity *identity,
		    int parent_pidfd, struct err *err)
{
	struct pollfd parent = {.fd = parent_pidfd, .events = POLLIN};
	const uid_t uid = inside_uid(level, identity);
	const gid_t gid = inside_gid(level, identity);

	/*
	 * Call the kernel by number. The clone of a process with threads has only one
	 * of them, and the C library would wait for the others to change as well.
	 */
	if (identity->change) {
		if (syscall(SYS_setgroups, 0, NULL) < 0)
			return err_set(err, errno, "dropping groups: %s", strerror(errno));
		if (syscall(SYS_setresgid, gid, gid, gid) < 0)
			return err_set(err, errno, "becoming group %u: %s", gid,
				       strerror(errno));
		if (syscall(SYS_setresuid, uid, uid, uid) < 0)
			return err_set(err, errno, "becoming user %u: %s", uid,
				       strerror(errno));
	}
	/*
	 * Set the signal after the change of uid, which clears it. Then check whether
	 * the front is still alive.
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

bool sandbox_build(enum sandbox_level level, struct view *view, int *rules, struct err *err)
{
	/*
	 * Files of the view get exactly the modes that are named. Programs get the former
	 * umask, without the bits of the owner.
	 */
	mode_t mask = umask(0) & (S_IRWXG | S_IRWXO);
	bool ok = true;

	*rules = -1;
	if (level >= SANDBOX_SEALED)
		ok = view_build(view, err);
	else if (level == SANDBOX_RULES)
		ok = landlock_rules_make(view, landlock_abi(), rules, err);
	(void)umask(mask);
	return ok;
}

/* STEP failed with CODE: say how there is room where the kernel gives no more namespaces. */
static bool spaces_refused(const char *step, int code, struct err *err)
{
	return err_set(err, code, "%s: %s%s", step, strerror(code),
		       code == ENOSPC || code == EUSERS
			       ? "; raise user.max_net_namespaces and user.max_ipc_namespaces "
				 "(sysctl -w), or have fewer cells open at once"
			       : "");
}

/* Make a network and an IPC namespace in this process, which is a single thread; stay in them. */
static bool network_make(struct err *err)
{
	struct sandbox_network network;

	if (unshare(CLONE_NEWIPC) < 0)
		return spaces_refused("new IPC namespace", errno, err);
	(void)helper_main(&network);
	if (network.code != 0)
		return spaces_refused(network.step, network.code, err);
	fd_close(&network.fd);
	return true;
}

bool sandbox_join(struct sandbox_network *network, struct err *err)
{
	if (network == NULL)
		return network_make(err);
	/*
	 * A helper that ended before SIGCHLD was ignored stays a zombie until it is waited
	 * for. One that ends later is reaped by the kernel; then the answer is ECHILD.
	 */
	while (network->helper > 0 && waitpid(network->helper, NULL, 0) < 0 && errno == EINTR)
		;
	if (network->code != 0)
		return spaces_refused(network->step, network->code, err);
	if (setns(network->fd, CLONE_NEWNET) < 0)
		return err_set(err, errno, "entering the network namespace: %s",
			       strerror(errno));
	return true;
}

/*
 * Makes the listeners that a proxy serves, and the socket that receives questions for
 * names, on the loopback, the only device of the cell's network.
 */

/* Room for more waiting connections than a proxy serves at the same time. */
enum { BACKLOG = 1024 };

static int listen_at(const struct sockaddr *address, socklen_t size)
{
	const int yes = 1;
	auto_close int fd =
		socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (address->sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) < 0)
		return -1;
	if (bind(fd, address, size) < 0 || listen(fd, BACKLOG) < 0)
		return -1;
	return fd_take(&fd);
}

bool sandbox_listen(uint16_t port, int *four, int *six, struct err *err)
{
	const struct sockaddr_in address4 = {.sin_family = AF_INET,
					     .sin_port = htons(port),
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 address6 = {.sin6_family = AF_INET6,
					      .sin6_port = htons(port),
					      .sin6_addr = IN6ADDR_LOOPBACK_INIT};

	*six = -1;
	*four = -1;
	*four = listen_at((const struct sockaddr *)&address4, sizeof(address4));
	if (*four < 0)
		return err_set(err, errno, "listening on port %u of the loopback: %s",
			       port, strerror(errno));
	if (port != 0)
		*six = listen_at((const struct sockaddr *)&address6, sizeof(address6));
	return true;
}

bool sandbox_overhear(int *fd, struct err *err)
{
	/* offset in the UDP header, behind the source port */
	enum { NAME_SERVER = 53, PORT_AT = 2 };
	/*
	 * Packets of a raw socket begin with the IP header. Its first byte holds its
	 * length.
	 */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, PORT_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NAME_SERVER, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SANDBOX_QUESTION_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]),
					  .filter = code};
	auto_close int made =
		socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);

	if (made < 0 ||
	    setsockopt(made, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) < 0)
		return err_set(err, errno, "a socket for questions to name servers: %s",
			       strerror(errno));
	*fd = fd_take(&made);
	return true;
}

/*
 * Rights that a process gives up: capabilities, limits and descriptors. An exec can never
 * restore what is dropped here.
 */

bool sandbox_privilege_reduce(uint64_t mask, struct err *err)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)mask, .permitted = (uint32_t)mask},
		{.effective = (uint32_t)(mask >> 32), .permitted = (uint32_t)(mask >> 32)},
	};

	if (syscall(SYS_capset, &header, data) < 0)
		return err_set(err, errno, "dropping capabilities: %s", strerror(errno));
	return true;
}

bool sandbox_privilege_limit(int which, uint64_t most, const char *name, struct err *err)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)which, &limit) < 0)
		return err_set(err, errno, "limit of %s: %s", name, strerror(errno));
	/* Never raise the user's own hard limit. */
	if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > most)
		limit.rlim_max = most;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit((__rlimit_resource_t)which, &limit) < 0)
		return err_set(err, errno, "limit of %s: %s", name, strerror(errno));
	return true;
}

static bool descriptors_close(const int *keep, size_t count, struct err *err)
{
	unsigned from = 0;

	for (size_t i = 0; i < count; i++) {
		unsigned kept = (unsigned)keep[i];
		if (kept > from && close_range(from, kept - 1, 0) < 0)
			return err_set(err, errno, "closing descriptors: %s",
				       strerror(errno));
		from = kept + 1;
	}
	if (close_range(from, UINT_MAX, 0) < 0)
		return err_set(err, errno, "closing descriptors: %s", strerror(errno));
	return true;
}

/*
 * Open /dev/null as 0, 1 and 2, so that no stray message of a library reaches a frame
 * or a file.
 */
static bool standard_streams_null(struct err *err)
{
	int fd = open("/dev/null", O_RDWR); /* becomes 0 */

	if (fd != 0 || dup2(fd, 1) != 1 || dup2(fd, 2) != 2)
		return err_set(err, errno, "/dev/null: %s", strerror(errno));
	return true;
}

bool sandbox_privilege_close(const int *keep, size_t count, struct err *err)
{
	return descriptors_close(keep, count, err) && standard_streams_null(err);
}

enum { STATUS_MAX = 16 << 10 };

static uint64_t status_number(const struct buf *status, const char *key)
{
	const char *at = strstr(status->data, key);

	return at == NULL ? UINT64_MAX : strtoull(at + strlen(key), NULL, 10);
}

/*
 * The number of processes and threads that the user has now on the whole machine, as
 * RLIMIT_NPROC counts them.
 */
static uint64_t tasks_of_user(void)
{
	DIR *proc = opendir("/proc");
	uint64_t count = 0;
	struct buf status;

	if (proc == NULL)
		return 0;
	buf_init(&status, STATUS_MAX);
	for (struct dirent *entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
		char name[sizeof("/status") + NAME_MAX];

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		(void)snprintf(name, sizeof(name), "%s/status", entry->d_name);
		if (fd_read_at(dirfd(proc), name, &status) &&
		    status_number(&status, "\nUid:") == getuid())
			count += status_number(&status, "\nThreads:");
	}
	(void)closedir(proc);
	buf_fini(&status);
	return count;
}

/*
 * The replacement for a pid namespace in anchors and workers below L3. They adopt
 * orphans, and a Landlock domain keeps signals inside, so that kill(-1) reaches their
 * own processes and nothing else.
 */

static bool domain_begin(struct err *err)
{
	auto_close int ruleset = -1;

	return landlock_rules_domain(&ruleset, err) && landlock_enter(ruleset, err);
}

/*
 * Enter the domain, then test that signals cannot leave it: a child that was made
 * before is outside the domain and must be out of reach. Only when this holds does
 * kill(-1) end exactly the cell.
 */
static bool domain_enter(struct err *err)
{
	int ends[2];

	if (!fd_pipe(ends, err))
		return false;
	pid_t outside = fork();
	if (outside == 0) {
		char byte;
		(void)close(ends[1]);
		(void)!read(ends[0], &byte, 1);
		_exit(0);
	}
	bool ok = outside > 0 ? domain_begin(err)
			      : err_set(err, errno, "a child: %s", strerror(errno));
	if (ok && (kill(outside, 0) == 0 || errno != EPERM))
		ok = err_set(err, EINVAL, "Landlock does not keep signals in");
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	while (outside > 0 && waitpid(outside, NULL, 0) < 0 && errno == EINTR)
		;
	return ok;
}

/*
 * Without a pid namespace: adopt the orphans of a dead worker, and keep signals inside.
 */
static bool family_settle(enum sandbox_level level, struct reach *reach, struct err *err)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "taking orphans in: %s", strerror(errno));
	reach->alone = level == SANDBOX_RULES && landlock_abi() >= LANDLOCK_ABI_SCOPES;
	return !reach->alone || domain_enter(err);
}

/* The last steps of the anchor. */

/*
 * Drop the bounding set and lock the bits by which an exec could regain capabilities.
 * Needs CAP_SETPCAP.
 */
static bool privilege_lock(struct err *err)
{
	const unsigned long bits =
		SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
		SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
		SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
		return err_set(err, errno, "locking the secure bits: %s", strerror(errno));
	/*
	 * Go on until EINVAL, because the kernel may know more capabilities than these
	 * headers.
	 */
	for (unsigned long i = 0; i < 64; i++) {
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL && i > 0)
			break;
		return err_set(err, errno, "dropping capability %lu: %s", i,
			       strerror(errno));
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_set(err, errno, "clearing ambient capabilities: %s",
			       strerror(errno));
	return true;
}

/*
 * The kernel counts processes per user and user namespace. Without a new namespace it
 * counts all other processes of the user as well.
 */
static bool limits_set(enum sandbox_level level, const struct sandbox_limits *limits,
		       struct err *err)
{
	return sandbox_privilege_limit(RLIMIT_CORE, 0, "core files", err) &&
	       sandbox_privilege_limit(RLIMIT_NOFILE, limits->open_files, "open files",
				       err) &&
	       sandbox_privilege_limit(RLIMIT_FSIZE, limits->file_size, "file size", err) &&
	       sandbox_privilege_limit(RLIMIT_NPROC,
				       limits->processes +
					       (level < SANDBOX_SEALED ? tasks_of_user() : 0),
				       "processes", err);
}

/* Set the host name, and forbid further user namespaces. */
static bool spaces_settle(struct err *err)
{
	if (sethostname(SANDBOX_HOST_NAME, strlen(SANDBOX_HOST_NAME)) < 0)
		return err_set(err, errno, "host name: %s", strerror(errno));
	return fd_write_file("/proc/sys/user/max_user_namespaces", "0", err);
}

/* The capability that an anchor keeps, and those that it needs for its network. */
#define ANCHOR_RIGHTS  (1ULL << CAP_SYS_ADMIN)
#define NETWORK_RIGHTS (1ULL << CAP_NET_ADMIN | 1ULL << CAP_NET_RAW)

static bool privileges_settle(enum sandbox_level level, bool joins_later, struct err *err)
{
	uint64_t rights = 0;

	if (level >= SANDBOX_SEALED)
		rights = ANCHOR_RIGHTS | (joins_later ? NETWORK_RIGHTS : 0);
	/*
	 * A process without capabilities has nothing to lock. PR_SET_NO_NEW_PRIVS is
	 * enough for it.
	 */
	if ((level >= SANDBOX_SEALED || geteuid() == 0) && !privilege_lock(err))
		return false;
	if (!sandbox_privilege_reduce(rights, err))
		return false;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "no new privileges: %s", strerror(errno));
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_set(err, errno, "closing the anchor to debuggers: %s",
			       strerror(errno));
	return true;
}

bool sandbox_settle(enum sandbox_level level, const struct sandbox_limits *limits,
		    const int *keep, size_t count, bool joins_later, struct reach *reach,
		    struct err *err)
{
	*reach = (struct reach){.alone = level >= SANDBOX_SEALED,
				.children_fd = -1,
				.ruleset = -1};
	if (level >= SANDBOX_SEALED && !spaces_settle(err))
		return false;
	return limits_set(level, limits, err) && sandbox_privilege_close(keep, count, err) &&
	       privileges_settle(level, joins_later, err) &&
	       (level >= SANDBOX_SEALED || family_settle(level, reach, err));
}

bool sandbox_drop_network_rights(struct err *err)
{
	return sandbox_privilege_reduce(ANCHOR_RIGHTS, err);
}

/* The worker: its clone and its walls. */

bool sandbox_clone_worker(enum sandbox_level level, pid_t *pid, int *pidfd, struct err *err)
{
	const unsigned long spaces =
		level >= SANDBOX_SEALED ? CLONE_NEWPID | CLONE_NEWNS : 0;

	return clone_plain(spaces != 0 ? "namespaces of a worker" : "a worker",
			   spaces | SIGCHLD, -1, pid, pidfd, err);
}

/*
 * Die with the anchor, adopt orphans, and open the list of our own children now,
 * because /proc will be closed.
 */
static bool family_begin(uint64_t processes, struct reach *reach, struct err *err)
{
	char name[64];
	const pid_t anchor = getppid();

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_set(err, errno, "tying a worker to the anchor: %s",
			       strerror(errno));
	if (getppid() != anchor || anchor == 1)
		return err_set(err, ESRCH, "the anchor is gone");
	if (!sandbox_privilege_limit(RLIMIT_NPROC, tasks_of_user() + processes,
				     "processes", err))
		return false;
	if (setsid() < 0)
		return err_set(err, errno, "a session of its own: %s", strerror(errno));
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "taking orphans in: %s", strerror(errno));
	(void)snprintf(name, sizeof(name), "/proc/%d/task/%d/children", (int)getpid(),
		       (int)getpid());
	reach->children_fd = open(name, O_RDONLY | O_CLOEXEC);
	return reach->children_fd >= 0 ||
	       err_set(err, errno, "%s: %s", name, strerror(errno));
}

/*
 * Test that signals cannot leave: the anchor, which has the same user, must be out of
 * reach.
 */
static bool signals_stay_in(void)
{
	return kill(getppid(), 0) < 0 && errno == EPERM;
}

/* The last part of a worker: enter the file rules RULES, which are closed, and the domain. */
static bool family_close(int rules, struct reach *reach, struct err *err)
{
	if (!landlock_enter(rules, err))
		return false;
	(void)close(rules);
	reach->alone = signals_stay_in();
	if (!reach->alone && landlock_abi() >= LANDLOCK_ABI_SCOPES)
		return err_set(err, EINVAL, "Landlock does not keep signals in");
	/*
	 * Programs must not be able to end their worker, which is not protected as pid
	 * 1 would be. A domain of their own keeps their signals away from it.
	 */
	return !reach->alone || landlock_rules_domain(&reach->ruleset, err);
}

/* After the first wrap of a pid namespace the kernel gives out no numbers below this. */
enum {
	PIDS_KEPT_BACK = 300,
	PIDS_MOST = 1 << 22, /* the kernel's own ceiling, PID_MAX_LIMIT */
};

/* Files of a worker's /proc that reveal the machine or act on it. */
static const char *const masked_files[] = {
	"/proc/kcore",         "/proc/keys",       "/proc/key-users",
	"/proc/kallsyms",      "/proc/kmsg",       "/proc/timer_list",
	"/proc/sysrq-trigger", "/proc/kpagecount", "/proc/kpageflags",
	"/proc/kpagecgroup",   "/proc/config.gz",
};

static bool mask_file(const char *path, struct err *err)
{
	if (mount("/dev/null", path, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
		return err_set(err, errno, "masking %s: %s", path, strerror(errno));
	return true;
}

/*
 * Before Linux 6.14 pid_max is one number for the whole machine, and root may write it.
 */
static bool pid_limit_is_ours(void)
{
	struct utsname name;
	char *rest;

	if (uname(&name) != 0)
		return false;
	unsigned long major = strtoul(name.release, &rest, 10);
	unsigned long minor = *rest == '.' ? strtoul(rest + 1, NULL, 10) : 0;
	return major > 6 || (major == 6 && minor >= 14);
}

static bool proc_mount(uint64_t processes, struct err *err)
{
	char text[32];

	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return err_set(err, errno, "/proc: %s%s", strerror(errno),
			       errno == EPERM ? "; a container around this one masks parts of "
						"its own /proc: see `glovebox doctor`"
					      : "");
	if (pid_limit_is_ours()) {
		const uint64_t wanted = processes + PIDS_KEPT_BACK;
		const uint64_t most = wanted < PIDS_MOST ? wanted : PIDS_MOST;
		(void)snprintf(text, sizeof(text), "%" PRIu64, most);
		if (!fd_write_file("/proc/sys/kernel/pid_max", text, err))
			return false;
	}
	for (size_t i = 0; i < sizeof(masked_files) / sizeof(masked_files[0]); i++) {
		if (!mask_file(masked_files[i], err))
			return false;
	}
	if (mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, "/proc/sys", NULL,
		  MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL) < 0)
		return err_set(err, errno, "/proc/sys: %s", strerror(errno));
	return true;
}

/*
 * When memory runs out, the kernel kills this worker before processes outside. A process
 * that is not dumpable may not write its own oom_score_adj, so the worker is dumpable for
 * that moment; nobody in the cell can reach it yet. The file and the former score are
 * kept in REACH, since a worker must outlive the programs it starts.
 */
static bool out_of_memory_first(struct reach *reach, struct err *err)
{
	int closed = prctl(PR_GET_DUMPABLE);

	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	reach->score_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	if (reach->score_fd >= 0) {
		(void)!read(reach->score_fd, reach->score, sizeof(reach->score) - 1);
		(void)!write(reach->score_fd, "1000", strlen("1000"));
	}
	if (closed != 1 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_set(err, errno, "closing a worker to debuggers: %s",
			       strerror(errno));
	return true;
}

bool sandbox_enter(const struct walls *walls, struct reach *reach, struct err *err)
{
	*reach = (struct reach){.alone = walls->level >= SANDBOX_SEALED,
				.children_fd = -1,
				.ruleset = -1,
				.score_fd = -1};
	if (walls->level >= SANDBOX_SEALED ? !proc_mount(walls->processes, err)
					   : !family_begin(walls->processes, reach, err))
		return false;
	if (!out_of_memory_first(reach, err) || !sandbox_privilege_reduce(0, err))
		return false;
	if (walls->level >= SANDBOX_SEALED)
		return landlock_write_below(walls->writable, err) &&
		       sandbox_filter_enter(walls->level, walls->listener, err);
	if (walls->level == SANDBOX_RULES && !family_close(walls->rules, reach, err))
		return false;
	return (walls->level == SANDBOX_OPEN && walls->unfiltered) ||
	       sandbox_filter_enter(walls->level, walls->listener, err);
}
