/*
 * outside: the walls of a process that has the network and nothing else. Unlike the
 * filter of a worker, its filter lists the allowed calls; all others are refused.
 */
#include "sandbox/outside.h"

#include "base/kernel.h"
#include "sandbox/landlock.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define OUR_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#define LOAD(member) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ANSWER(value)         BPF_STMT(BPF_RET | BPF_K, (value))
#define EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define ALLOW(number)         EQUAL((number), 0, 1), ANSWER(SECCOMP_RET_ALLOW)
#define REFUSE                ANSWER(SECCOMP_RET_ERRNO | EPERM)

/*
 * The kernel caches calls that are allowed with any arguments, so the order costs
 * nothing.
 */
static const struct sock_filter filter[] = {
	LOAD(arch),
	EQUAL(OUR_ARCHITECTURE, 1, 0),
	ANSWER(SECCOMP_RET_KILL_PROCESS),
	LOAD(nr),
	/* existing sockets */
	ALLOW(SYS_recvfrom),
	ALLOW(SYS_sendto),
	ALLOW(SYS_recvmsg),
	ALLOW(SYS_sendmsg),
	ALLOW(SYS_accept4),
	ALLOW(SYS_connect),
	ALLOW(SYS_shutdown),
	ALLOW(SYS_getsockopt),
	ALLOW(SYS_setsockopt),
	ALLOW(SYS_getsockname),
	ALLOW(SYS_read),
	ALLOW(SYS_write),
	ALLOW(SYS_close),
/* waiting */
#if defined(SYS_epoll_wait)
	ALLOW(SYS_epoll_wait),
#endif
	ALLOW(SYS_epoll_pwait),
	ALLOW(SYS_epoll_ctl),
	ALLOW(SYS_epoll_create1),
	ALLOW(SYS_restart_syscall),
	ALLOW(SYS_rt_sigreturn),
	ALLOW(SYS_rt_sigprocmask),
	ALLOW(SYS_clock_gettime),
	ALLOW(SYS_getrandom),
	/* memory, and exit */
	ALLOW(SYS_brk),
	ALLOW(SYS_munmap),
	ALLOW(SYS_mremap),
	ALLOW(SYS_madvise),
	ALLOW(SYS_futex),
	ALLOW(SYS_sigaltstack),
	ALLOW(SYS_sched_yield),
	ALLOW(SYS_getpid),
	ALLOW(SYS_gettid),
	ALLOW(SYS_exit),
	ALLOW(SYS_exit_group),
	/* memory that is never executable */
	EQUAL(SYS_mmap, 1, 0),
	EQUAL(SYS_mprotect, 0, 4),
	LOAD(args[2]),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
	REFUSE,
	ANSWER(SECCOMP_RET_ALLOW),
	/* new Internet sockets */
	EQUAL(SYS_socket, 1, 0),
	REFUSE,
	LOAD(args[0]),
	EQUAL(AF_INET, 2, 0),
	EQUAL(AF_INET6, 1, 0),
	REFUSE,
	LOAD(args[1]),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(unsigned)(SOCK_CLOEXEC | SOCK_NONBLOCK)),
	EQUAL(SOCK_STREAM, 2, 0),
	EQUAL(SOCK_DGRAM, 1, 0),
	REFUSE,
	ANSWER(SECCOMP_RET_ALLOW),
};

/* For a role without network, beside the filter above: the stricter answer holds. */
static const struct sock_filter no_sockets[] = {
	LOAD(nr), EQUAL(SYS_socket, 1, 0),   EQUAL(SYS_connect, 0, 1),
	REFUSE,   ANSWER(SECCOMP_RET_ALLOW),
};

/* For a process that removes names: it opens folders to read them, and nothing to write. */
static const struct sock_filter removes[] = {
	LOAD(arch),
	EQUAL(OUR_ARCHITECTURE, 1, 0),
	ANSWER(SECCOMP_RET_KILL_PROCESS),
	LOAD(nr),
	ALLOW(SYS_unlinkat),
	ALLOW(SYS_getdents64),
	ALLOW(SYS_newfstatat),
	ALLOW(SYS_fstat),
	ALLOW(SYS_lseek),
	ALLOW(SYS_close),
#if defined(SYS_renameat)
	ALLOW(SYS_renameat),
#endif
	ALLOW(SYS_renameat2),
	ALLOW(SYS_fchmod),
	ALLOW(SYS_fchmodat),
	ALLOW(SYS_fgetxattr),
	ALLOW(SYS_fcntl),
	ALLOW(SYS_getrandom),
	ALLOW(SYS_brk),
	ALLOW(SYS_munmap),
	ALLOW(SYS_mremap),
	ALLOW(SYS_madvise),
	ALLOW(SYS_futex),
	ALLOW(SYS_rt_sigreturn),
	ALLOW(SYS_sigaltstack),
	ALLOW(SYS_gettid),
	ALLOW(SYS_exit_group),
	EQUAL(SYS_mmap, 1, 0),
	EQUAL(SYS_mprotect, 0, 4),
	LOAD(args[2]),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
	REFUSE,
	ANSWER(SECCOMP_RET_ALLOW),
	EQUAL(SYS_openat, 1, 0),
	REFUSE,
	LOAD(args[2]),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_ACCMODE | O_CREAT | O_TRUNC, 0, 1),
	REFUSE,
	ANSWER(SECCOMP_RET_ALLOW),
};

static bool filter_load(const struct sock_filter *rows, size_t count, struct err *err)
{
	const struct sock_fprog program = {
		.len = (unsigned short)count,
		/* The kernel only reads it. */
		.filter = (struct sock_filter *)(uintptr_t)rows,
	};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return err_set(err, errno, "system-call filter: %s", strerror(errno));
	return true;
}

static bool become_nobody(struct err *err)
{
	const uid_t id = SANDBOX_OUTSIDE_UID;

	if (!sandbox_is_root())
		return true;
	if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
		return err_set(err, errno, "becoming an ordinary user: %s", strerror(errno));
	return true;
}

static bool die_with(int parent_pidfd, struct err *err)
{
	struct pollfd parent = {.fd = parent_pidfd, .events = POLLIN};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_set(err, errno, "tying it to the front: %s", strerror(errno));
	if (poll(&parent, 1, 0) != 0)
		return err_set(err, ESRCH, "the front is gone");
	return true;
}

bool outside_enter(const struct sandbox_outside *walls, struct err *err)
{
	/* Change the user first, because that clears the parent-death signal. */
	if (!become_nobody(err) || !die_with(walls->parent_pidfd, err) ||
	    !sandbox_privilege_close(&walls->keep, 1, err))
		return false;
	/*
	 * Leave the session, so that the terminal sends no signals. The front tells the
	 * proxy when to exit.
	 */
	if (setsid() < 0)
		return err_set(err, errno, "leaving the terminal: %s", strerror(errno));
	if (!sandbox_privilege_limit(RLIMIT_CORE, 0, "core files", err) ||
	    !sandbox_privilege_limit(RLIMIT_FSIZE, 0, "file size", err) ||
	    !sandbox_privilege_limit(RLIMIT_NPROC, 0, "processes", err) ||
	    !sandbox_privilege_limit(RLIMIT_NOFILE, walls->open_files, "open files", err))
		return false;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "no new privileges: %s", strerror(errno));
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_set(err, errno, "closing it to debuggers: %s", strerror(errno));
	/* The filter that lists calls is the last one: it allows no further one. */
	return sandbox_privilege_reduce(0, err) && landlock_no_files(-1, err) &&
	       (!walls->no_network ||
		filter_load(no_sockets, sizeof(no_sockets) / sizeof(no_sockets[0]), err)) &&
	       filter_load(filter, sizeof(filter) / sizeof(filter[0]), err);
}

/* Of the rights over files of others keep those that this process has, and no other one. */
static bool keep_rights_over_files(struct err *err)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	const uint64_t wanted = 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_DAC_READ_SEARCH |
				1ULL << CAP_FOWNER;

	if (syscall(SYS_capget, &header, data) < 0)
		return err_set(err, errno, "reading capabilities: %s", strerror(errno));
	return sandbox_privilege_reduce(wanted & data[0].permitted, err);
}

bool outside_enter_folder(int folder, pid_t parent, struct err *err)
{
	enum { KEPT = 3 };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		return err_set(err, ESRCH, "the process that wants it is gone");
	if (dup2(folder, KEPT) < 0)
		return err_set(err, errno, "its folder: %s", strerror(errno));
	if (!sandbox_privilege_close(&(const int){KEPT}, 1, err) ||
	    !sandbox_privilege_limit(RLIMIT_CORE, 0, "core files", err) ||
	    !sandbox_privilege_limit(RLIMIT_FSIZE, 0, "file size", err))
		return false;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "no new privileges: %s", strerror(errno));
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_set(err, errno, "closing it to debuggers: %s", strerror(errno));
	return keep_rights_over_files(err) && landlock_no_files(KEPT, err) &&
	       filter_load(removes, sizeof(removes) / sizeof(removes[0]), err);
}
