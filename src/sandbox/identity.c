/*
 * identity: the user that the cell runs as, the namespaces it is cloned into, its
 * network, and the rights that a process gives up. Id maps are one line each. Root of
 * the host is not mapped into the cell, so a file of root stays closed to the cell.
 */

#include "sandbox/identity.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "sandbox/landlock.h"
#include "sandbox/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/filter.h>
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
#include <sys/wait.h>
#include <unistd.h>

/*
 * The cell's private network. The kernel needs longer to make one than for all the rest
 * of the set-up, so a helper process makes it while the anchor builds the view. The
 * helper shares the anchor's memory and descriptors, has a stack of its own, and has
 * ended before sandbox_join returns.
 */

/*
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
	network->code = ECHILD; /* the helper overwrites this code */
	network->helper = clone(helper_main, network->stack + sizeof(network->stack),
				CLONE_VM | CLONE_FILES | SIGCHLD, network);
	if (network->helper < 0)
		network->code = errno;
}

bool sandbox_join(struct sandbox_network *network, struct err *err)
{
	/*
	 * A helper that ended before SIGCHLD was ignored stays a zombie until it is waited
	 * for. One that ends later is reaped by the kernel; then the answer is ECHILD.
	 */
	while (network->helper > 0 && waitpid(network->helper, NULL, 0) < 0 && errno == EINTR)
		;
	if (network->code != 0)
		return err_set(err, network->code, "%s: %s", network->step,
			       strerror(network->code));
	if (setns(network->fd, CLONE_NEWNET) < 0)
		return err_set(err, errno, "entering the network namespace: %s",
			       strerror(errno));
	return true;
}

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
		network_begin(network); /* begin early: this takes longest */
		fd_close(&go[1]);
		ssize_t n = read(go[0], &byte, 1);
		fd_close(&go[0]);
		if (n != 1)
			_exit(1); /* the parent has reported the reason */
		*pid = 0;
		return true;
	}
	fd_close(&go[0]);
	bool ok = write_maps(child, identity->uid, identity->gid, identity->uid,
			     identity->gid, err);
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

bool sandbox_clone_worker(enum sandbox_level level, pid_t *pid, int *pidfd, struct err *err)
{
	const unsigned long spaces =
		level >= SANDBOX_SEALED ? CLONE_NEWPID | CLONE_NEWNS : 0;

	return clone_plain(spaces != 0 ? "namespaces of a worker" : "a worker",
			   spaces | SIGCHLD, pid, pidfd, err);
}

/*
 * The ID mapping of a mount is taken from a user namespace. A helper process creates
 * one for this purpose. It shares our memory, so that no page table is copied, and
 * lives until its namespace is held.
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
			     CLONE_VM | CLONE_NEWUSER, stack);
	if (helper < 0) {
		int code = errno;
		sandbox_close_mapping(mapping);
		return err_set(err, code, "new namespaces: %s%s", strerror(code),
			       refusal_hint(code));
	}
	mapping->helper = helper;
	bool ok = mapping_hold(identity, mapping, err);
	(void)kill(helper, SIGKILL); /* sandbox_end_helper reaps it later, without a wait */
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

bool sandbox_become(enum sandbox_level level, const struct sandbox_identity *identity,
		    int parent_pidfd, struct err *err)
{
	struct pollfd parent = {.fd = parent_pidfd, .events = POLLIN};

	/*
	 * Call the kernel by number. The clone of a process with threads has only one
	 * of them, and the C library would wait for the others to change as well.
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

/* Makes a process a subreaper, enters a signal domain, and counts the user's tasks. */

enum { STATUS_MAX = 16 << 10 };

static uint64_t status_number(const struct buf *status, const char *key)
{
	const char *at = strstr(status->data, key);

	return at == NULL ? UINT64_MAX : strtoull(at + strlen(key), NULL, 10);
}

uint64_t identity_tasks_of_user(void)
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

static bool domain_begin(struct err *err)
{
	auto_close int ruleset = -1;

	return landlock_rules_domain(&ruleset, err) &&
	       identity_landlock_enter(ruleset, err);
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
bool identity_family_settle(enum sandbox_level level, struct reach *reach, struct err *err)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "taking orphans in: %s", strerror(errno));
	reach->alone =
		level == SANDBOX_RULES && sandbox_landlock_abi() >= LANDLOCK_ABI_SCOPES;
	return !reach->alone || domain_enter(err);
}

/*
 * Die with the anchor, adopt orphans, and open the list of our own children now,
 * because /proc will be closed.
 */
bool identity_family_begin(uint64_t processes, struct reach *reach, struct err *err)
{
	char name[64];
	const pid_t anchor = getppid();

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_set(err, errno, "tying a worker to the anchor: %s",
			       strerror(errno));
	if (getppid() != anchor || anchor == 1)
		return err_set(err, ESRCH, "the anchor is gone");
	if (!identity_privilege_limit(RLIMIT_NPROC, identity_tasks_of_user() + processes,
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

bool identity_family_close(int rules, struct reach *reach, struct err *err)
{
	if (!identity_landlock_enter(rules, err))
		return false;
	(void)close(rules);
	reach->alone = signals_stay_in();
	if (!reach->alone && sandbox_landlock_abi() >= LANDLOCK_ABI_SCOPES)
		return err_set(err, EINVAL, "Landlock does not keep signals in");
	/*
	 * Programs must not be able to end their worker, which is not protected as pid
	 * 1 would be. A domain of their own keeps their signals away from it.
	 */
	return !reach->alone || landlock_rules_domain(&reach->ruleset, err);
}

/*
 * Drops capabilities, locks securebits, sets limits, and closes descriptors. An exec
 * can never restore what is dropped here.
 */

bool identity_privilege_reduce(uint64_t mask, struct err *err)
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

bool identity_privilege_lock(struct err *err)
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

bool identity_privilege_limit(int which, uint64_t most, const char *name, struct err *err)
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

bool identity_privilege_close(const int *keep, size_t count, struct err *err)
{
	return descriptors_close(keep, count, err) && standard_streams_null(err);
}
