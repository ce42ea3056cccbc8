/*
 * outside: the walls of a process that has the network and nothing else. Unlike the
 * filter of a worker, its filter lists the allowed calls; all others are refused.
 */
#include "sandbox/outside.h"

#include "base/fd.h"
#include "base/kernel.h"
#include "sandbox/landlock.h"
#include "sandbox/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/*
 * A process with one folder. Its filter is these rows, then those of its work, then those of
 * every work.
 */
static const struct sock_filter folder_begin[] = {
	LOAD(arch),
	EQUAL(OUR_ARCHITECTURE, 1, 0),
	ANSWER(SECCOMP_RET_KILL_PROCESS),
	LOAD(nr),
};
static const struct sock_filter removes[] = {
	ALLOW(SYS_unlinkat), ALLOW(SYS_renameat2), ALLOW(SYS_fchmod),
	ALLOW(SYS_fchmodat), ALLOW(SYS_getrandom), ALLOW(SYS_fgetxattr),
#if defined(SYS_renameat)
	ALLOW(SYS_renameat),
#endif
};
static const struct sock_filter reads[] = {
	ALLOW(SYS_readlinkat), ALLOW(SYS_pread64),   ALLOW(SYS_write),
	ALLOW(SYS_flistxattr), ALLOW(SYS_fgetxattr),
};
/* Beside Landlock, no opened name may follow a link. */
static const struct sock_filter builds[] = {
	ALLOW(SYS_read),
	ALLOW(SYS_readlinkat),
	ALLOW(SYS_pwrite64),
	ALLOW(SYS_ftruncate),
	ALLOW(SYS_mkdirat),
	ALLOW(SYS_mknodat),
	ALLOW(SYS_symlinkat),
	ALLOW(SYS_linkat),
	ALLOW(SYS_unlinkat),
	ALLOW(SYS_fchmod),
	ALLOW(SYS_fchownat),
	ALLOW(SYS_utimensat),
	ALLOW(SYS_fsetxattr),
	ALLOW(SYS_fgetxattr),
	EQUAL(SYS_openat, 0, 4),
	LOAD(args[2]),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_NOFOLLOW, 0, 1),
	ANSWER(SECCOMP_RET_ALLOW),
	LOAD(nr),
};
/* Landlock alone says where it makes and writes files. */
static const struct sock_filter copies[] = {
	ALLOW(SYS_openat),          ALLOW(SYS_openat2),        ALLOW(SYS_read),
	ALLOW(SYS_write),           ALLOW(SYS_pread64),        ALLOW(SYS_pwrite64),
	ALLOW(SYS_copy_file_range), ALLOW(SYS_ftruncate),      ALLOW(SYS_readlinkat),
	ALLOW(SYS_flistxattr),      ALLOW(SYS_fgetxattr),      ALLOW(SYS_fsetxattr),
	ALLOW(SYS_mkdirat),         ALLOW(SYS_symlinkat),      ALLOW(SYS_linkat),
	ALLOW(SYS_unlinkat),        ALLOW(SYS_fchmod),         ALLOW(SYS_fchown),
	ALLOW(SYS_fchownat),        ALLOW(SYS_utimensat),      ALLOW(SYS_clock_gettime),
	ALLOW(SYS_clock_nanosleep), EQUAL(SYS_ioctl, 0, 4),    LOAD(args[1]),
	EQUAL(FICLONE, 0, 1),       ANSWER(SECCOMP_RET_ALLOW), LOAD(nr),
};
/* It opens folders and files to read them, and nothing to write. */
static const struct sock_filter folder_end[] = {
	ALLOW(SYS_getdents64),
	ALLOW(SYS_newfstatat),
	ALLOW(SYS_fstat),
	ALLOW(SYS_lseek),
	ALLOW(SYS_close),
	ALLOW(SYS_fcntl),
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

#define ROWS(rows) rows, sizeof(rows) / sizeof((rows)[0])

/* The system calls and rights of each work. */
static const struct {
	const struct sock_filter *rows;
	size_t count;
	uint64_t files;  /* rights of Landlock below the folder */
	uint64_t others; /* rights over files of others, which root may have */
} works[] = {
	/* A folder is moved up where it lies too deep (fd_folder_remove). */
	[OUTSIDE_REMOVES] = {ROWS(removes),
			     LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR |
				     LANDLOCK_ACCESS_FS_REMOVE_FILE |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | KERNEL_ACCESS_REFER,
			     1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_DAC_READ_SEARCH |
				     1ULL << CAP_FOWNER},
	[OUTSIDE_READS] = {ROWS(reads),
			   LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_READ_FILE,
			   1ULL << CAP_DAC_READ_SEARCH | 1ULL << CAP_DAC_OVERRIDE},
	[OUTSIDE_READS_ALL] = {ROWS(reads),
			       LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_READ_FILE,
			       1ULL << CAP_DAC_READ_SEARCH | 1ULL << CAP_DAC_OVERRIDE},
	[OUTSIDE_BUILDS] =
		{ROWS(builds),
		 LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_WRITE_FILE |
			 LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
			 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
			 LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_MAKE_FIFO |
			 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_CHAR |
			 KERNEL_ACCESS_REFER | KERNEL_ACCESS_TRUNCATE,
		 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_DAC_READ_SEARCH |
			 1ULL << CAP_FOWNER | 1ULL << CAP_FSETID | 1ULL << CAP_CHOWN},
	[OUTSIDE_COPIES] = {ROWS(copies), ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE,
			    1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_DAC_READ_SEARCH |
				    1ULL << CAP_FOWNER | 1ULL << CAP_CHOWN},
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
	return sandbox_privilege_reduce(0, err) && landlock_no_files(NULL, 0, err) &&
	       (!walls->no_network ||
		filter_load(no_sockets, sizeof(no_sockets) / sizeof(no_sockets[0]), err)) &&
	       filter_load(filter, sizeof(filter) / sizeof(filter[0]), err);
}

/* The rights that this process has; 0: they are not known. */
static uint64_t rights_of_ours(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	return syscall(SYS_capget, &header, data) < 0
		       ? 0
		       : data[0].permitted | (uint64_t)data[1].permitted << 32;
}

/*
 * In a user namespace of its own that holds its user and group only, a process may read the
 * files of its user whatever their permissions are. Where the kernel makes none, it reads what
 * the permissions allow.
 */
static void read_all_of_ours(void)
{
	const uid_t user = geteuid();
	const gid_t group = getegid();
	char line[64];

	if ((rights_of_ours() & 1ULL << CAP_DAC_READ_SEARCH) != 0 ||
	    unshare(CLONE_NEWUSER) < 0)
		return;
	/* The kernel gives root the maps of a process that is closed to debuggers. */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	(void)fd_write_file("/proc/self/setgroups", "deny", NULL);
	(void)snprintf(line, sizeof(line), "%u %u 1\n", group, group);
	(void)fd_write_file("/proc/self/gid_map", line, NULL);
	(void)snprintf(line, sizeof(line), "%u %u 1\n", user, user);
	(void)fd_write_file("/proc/self/uid_map", line, NULL);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Load the filter of WORK, which is the last wall. */
static bool filter_folder(enum outside_work work, struct err *err)
{
	struct sock_filter rows[128];
	const struct {
		const struct sock_filter *rows;
		size_t count;
	} parts[] = {{ROWS(folder_begin)},
		     {works[work].rows, works[work].count},
		     {ROWS(folder_end)}};
	size_t count = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		assert(count + parts[i].count <= sizeof(rows) / sizeof(rows[0]));
		memcpy(&rows[count], parts[i].rows, parts[i].count * sizeof(rows[0]));
		count += parts[i].count;
	}
	return filter_load(rows, count, err);
}

/* Give FD the number KEPT, out of the way of the descriptors that get theirs later. */
static int out_of_the_way(int fd)
{
	enum { BEHIND = 16 };

	return fcntl(fd, F_DUPFD_CLOEXEC, BEHIND);
}

/* Put the walls up around the calling process, whose parent is PARENT. */
static bool enter_folder(const struct outside_folder *walls, pid_t parent, struct err *err)
{
	const int kept[] = {OUTSIDE_FOLDER, OUTSIDE_FILE};
	const size_t count = walls->file >= 0 ? 2 : 1;
	const int given[] = {out_of_the_way(walls->folder),
			     count > 1 ? out_of_the_way(walls->file) : -1};
	sigset_t all;

	/* Ctrl+C is for the caller, which ends this process when it ends. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	if (walls->work == OUTSIDE_READS_ALL)
		read_all_of_ours();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		return err_set(err, ESRCH, "the process that wants it is gone");
	for (size_t i = 0; i < count; i++) {
		if (dup2(given[i], kept[i]) < 0)
			return err_set(err, errno, "its folder: %s", strerror(errno));
	}
	if (!sandbox_privilege_close(kept, count, err) ||
	    !sandbox_privilege_limit(RLIMIT_CORE, 0, "core files", err) ||
	    (walls->file < 0 && !sandbox_privilege_limit(RLIMIT_FSIZE, 0, "file size", err)))
		return false;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "no new privileges: %s", strerror(errno));
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_set(err, errno, "closing it to debuggers: %s", strerror(errno));
	(void)umask(0);
	const struct landlock_grant grants[] = {
		{OUTSIDE_FOLDER, works[walls->work].files},
		{OUTSIDE_FILE, LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_READ_FILE},
	};
	return sandbox_privilege_reduce(works[walls->work].others & rights_of_ours(), err) &&
	       landlock_no_files(grants, walls->work == OUTSIDE_COPIES ? 2 : 1, err) &&
	       filter_folder(walls->work, err);
}

int outside_run(const struct outside_folder *walls, int (*act)(void *context), void *context)
{
	const pid_t caller = getpid(), pid = fork();
	int status;

	if (pid == 0)
		_exit(enter_folder(walls, caller, NULL) ? act(context) : EPERM);
	if (pid < 0)
		return errno;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}
