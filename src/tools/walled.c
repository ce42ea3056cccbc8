#include "tools/walled.h"

#include "base/kernel.h"

#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* A right or member that a later version of Landlock brought. */
enum { ABI_MOVES = 2, ABI_TRUNCATE = 3, ABI_TCP = 4, ABI_SCOPES = 6 };
/* The part of KERNEL_LANDLOCK_TCP that binds. */
enum { LISTENING = 1 };

static bool wall_files(bool network)
{
	const long abi = syscall(KERNEL_LANDLOCK_CREATE, NULL, 0, KERNEL_LANDLOCK_VERSION);
	struct kernel_landlock_ruleset none = {
		.handled_access_fs =
			LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
			LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
			LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
			LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
			LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM |
			(abi >= ABI_MOVES ? KERNEL_ACCESS_REFER : 0) |
			(abi >= ABI_TRUNCATE ? KERNEL_ACCESS_TRUNCATE : 0),
		.handled_access_net = network ? LISTENING : KERNEL_LANDLOCK_TCP,
		.scoped = KERNEL_LANDLOCK_SCOPE_ABSTRACT | KERNEL_LANDLOCK_SCOPE_SIGNAL,
	};
	/* An older kernel accepts only the size that it knows. */
	const size_t size = abi >= ABI_SCOPES ? sizeof(none)
			    : abi >= ABI_TCP
				    ? offsetof(struct kernel_landlock_ruleset, scoped)
				    : sizeof(none.handled_access_fs);
	long ruleset;

	if (abi < 1)
		return false;
	ruleset = syscall(KERNEL_LANDLOCK_CREATE, &none, size, 0);
	return ruleset >= 0 && syscall(KERNEL_LANDLOCK_RESTRICT, (int)ruleset, 0) == 0 &&
	       close((int)ruleset) == 0;
}

/* System calls that the programs do not need. Some architectures lack the older ones. */
static const unsigned refused[] = {
	/* these of the network first */
	SYS_socket,
	SYS_socketpair,
	SYS_connect,
	SYS_ptrace,
	SYS_kill,
	SYS_tkill,
	SYS_rt_sigqueueinfo,
	424, /* pidfd_send_signal */
	438, /* pidfd_getfd */
	440, /* process_madvise */
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_setpgid,
	SYS_setpriority,
	SYS_ioprio_set,
	SYS_sched_setaffinity,
	SYS_sched_setattr,
	SYS_sched_setparam,
	SYS_sched_setscheduler,
	SYS_migrate_pages,
	SYS_move_pages,
	SYS_truncate,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_fchmod,
	SYS_fchmodat,
	SYS_fchown,
	SYS_fchownat,
	SYS_utimensat,
	SYS_setxattr,
	SYS_lsetxattr,
	SYS_fsetxattr,
	SYS_removexattr,
	SYS_lremovexattr,
	SYS_fremovexattr,
	SYS_io_uring_setup,
	452, /* fchmodat2 */
	463, /* setxattrat */
	466, /* removexattrat */
#ifdef SYS_chmod
	SYS_chmod,
	SYS_chown,
	SYS_lchown,
	SYS_utime,
	SYS_utimes,
	SYS_futimesat,
#endif
};

enum { REFUSED = sizeof(refused) / sizeof(refused[0]), REFUSED_NETWORK = 3 };

/*
 * The filter of the cell judges the architecture, and holds as well. The limits of another
 * process may not be changed: those of the worker would hold for its later calls.
 */
static bool wall_calls(bool network)
{
	enum { LIMITS = REFUSED + 1, ALLOW = LIMITS + 3, REFUSE, RULES };
	struct sock_filter rules[RULES] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		[LIMITS] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0 /* the caller itself */, 0, 1),
		[ALLOW] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		[REFUSE] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	const struct sock_fprog program = {.len = RULES, .filter = rules};

	for (unsigned i = 0; i < REFUSED; i++)
		rules[i + 1] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K,
			refused[network && i < REFUSED_NETWORK ? REFUSED_NETWORK : i],
			(unsigned char)(REFUSE - i - 2), 0);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* The shadow memory of sanitizer builds has terabytes of addresses. */
static bool wall_addresses(uint64_t most)
{
#if defined(__SANITIZE_ADDRESS__)
	most = RLIM_INFINITY;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
	most = RLIM_INFINITY;
#endif
#endif
	return most == RLIM_INFINITY ||
	       setrlimit(RLIMIT_AS, &(struct rlimit){most, most}) == 0;
}

static bool wall_sizes(const struct walled *walls)
{
	const struct rlimit none = {0, 0};
	const struct rlimit cpu = {walls->cpu_s, walls->cpu_s};

	return wall_addresses(walls->memory) && setrlimit(RLIMIT_CPU, &cpu) == 0 &&
	       setrlimit(RLIMIT_FSIZE, &none) == 0 && setrlimit(RLIMIT_CORE, &none) == 0;
}

bool walled_enter(const struct walled *walls)
{
	return wall_sizes(walls) && wall_files(walls->network) &&
	       wall_calls(walls->network);
}
