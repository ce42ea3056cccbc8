/*
 * kernel: system calls and constants that the headers of Debian 12 or an older C
 * library lack; the calls are made by number. Sources: the kernel's include/uapi
 * (mount.h, landlock.h, openat2.h).
 */
#pragma once
#include <errno.h>
#include <linux/mount.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* x86-64, arm64 and every architecture added since 5.1 share these numbers. */
enum {
	KERNEL_OPEN_TREE = 428,
	KERNEL_MOVE_MOUNT = 429,
	KERNEL_FSOPEN = 430,
	KERNEL_FSCONFIG = 431,
	KERNEL_FSMOUNT = 432,
	KERNEL_PIDFD_OPEN = 434,
	KERNEL_MOUNT_SETATTR = 442,
	KERNEL_LANDLOCK_CREATE = 444,
	KERNEL_LANDLOCK_ADD = 445,
	KERNEL_LANDLOCK_RESTRICT = 446,
};

/* landlock.h up to ABI 7; the headers of Debian 12 stop at ABI 2. */
struct kernel_landlock_ruleset {
	uint64_t handled_access_fs;
	uint64_t handled_access_net; /* ABI 4 */
	uint64_t scoped;             /* ABI 6 */
};
struct kernel_landlock_beneath {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));
enum {
	KERNEL_LANDLOCK_VERSION = 1,
	KERNEL_LANDLOCK_BENEATH = 1,
	KERNEL_LANDLOCK_SCOPE_ABSTRACT = 1,
	KERNEL_LANDLOCK_SCOPE_SIGNAL = 2,
	KERNEL_LANDLOCK_TCP = 3, /* binding and connecting, ABI 4 */
};
/*
 * File rights, by the ABI that introduced them; <linux/landlock.h> of Debian 12 ends at
 * ABI 2.
 */
#define KERNEL_ACCESS_REFER        (1ULL << 13) /* ABI 2 */
#define KERNEL_ACCESS_TRUNCATE     (1ULL << 14) /* ABI 3 */
#define KERNEL_ACCESS_IOCTL_DEV    (1ULL << 15) /* ABI 5 */
#define KERNEL_ACCESS_RESOLVE_UNIX (1ULL << 16) /* ABI 9 */

/*
 * The most bytes that the kernel passes in one argument or variable of a program, without
 * the NUL (MAX_ARG_STRLEN in execve(2), with pages of 4 KiB).
 */
enum { KERNEL_ARGUMENT_MAX = (128 << 10) - 1 };

static inline int kernel_open_tree(int folder, const char *path, unsigned flags)
{
	return (int)syscall(KERNEL_OPEN_TREE, folder, path, flags);
}

static inline int kernel_move_mount(int from, int to)
{
	return (int)syscall(KERNEL_MOVE_MOUNT, from, "", to, "",
			    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* When TO is a link, it is not followed. */
static inline int kernel_move_mount_at(int from, int folder, const char *to)
{
	return (int)syscall(KERNEL_MOVE_MOUNT, from, "", folder, to,
			    MOVE_MOUNT_F_EMPTY_PATH);
}

static inline int kernel_pidfd_open(pid_t pid)
{
	return (int)syscall(KERNEL_PIDFD_OPEN, pid, 0);
}

/* The pidfd of a socket's peer, since Linux 6.5 (asm-generic/socket.h). */
enum { KERNEL_SO_PEERPIDFD = 77 };

/*
 * As in the first version of include/uapi/linux/pidfd.h. The kernel fills the members
 * that it knows.
 */
struct kernel_pidfd_info {
	uint64_t mask, cgroup;
	uint32_t pid, rest[11];
};
#define KERNEL_PIDFD_GET_INFO _IOWR(0xff, 11, struct kernel_pidfd_info)

/*
 * The pid, as the caller sees it, of the process behind PIDFD; 0 when the process has
 * ended; -1 before Linux 6.13.
 */
static inline pid_t kernel_pidfd_pid(int pidfd)
{
	struct kernel_pidfd_info info = {.mask = 1};

	if (ioctl(pidfd, KERNEL_PIDFD_GET_INFO, &info) == 0)
		return (pid_t)info.pid;
	return errno == ESRCH ? 0 : -1;
}

/*
 * A system call that does not set errno: a negative answer is the error. For a process
 * that shares the memory of another one, which runs at the same time.
 */
static inline long kernel_raw(long number, long first, long second, long third)
{
#if defined(__x86_64__)
	long answer;

	__asm__ volatile("syscall"
			 : "=a"(answer)
			 : "0"(number), "D"(first), "S"(second), "d"(third)
			 : "rcx", "r11", "memory");
	return answer;
#elif defined(__aarch64__)
	register long call __asm__("x8") = number;
	register long one __asm__("x0") = first;
	register long two __asm__("x1") = second;
	register long three __asm__("x2") = third;

	__asm__ volatile("svc 0"
			 : "+r"(one)
			 : "r"(call), "r"(two), "r"(three)
			 : "memory");
	return one;
#else
#error "calls of the kernel are not written for this architecture"
#endif
}
