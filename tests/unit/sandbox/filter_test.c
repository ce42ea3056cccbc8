/* filter: what the tables answer, read as the kernel reads them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "sandbox/filter_table.h"

#if defined(__x86_64__)
#define OUR_ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define OUR_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

enum {
	OPENAT2 = 437,
	CLONE3 = 435,
	X32 = 0x40000000,
	ALL_CALLS = 600,
	ALLOW = 0,
	EXPLAIN = 0xeee,
	KILL = 0xfff,
};

static uint32_t answer_in_kernel(int answer)
{
	if (answer == ALLOW)
		return SECCOMP_RET_ALLOW;
	if (answer == EXPLAIN)
		return SECCOMP_RET_USER_NOTIF;
	if (answer == KILL)
		return SECCOMP_RET_KILL_PROCESS;
	return SECCOMP_RET_ERRNO | (uint32_t)answer;
}

static uint32_t word_at(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word;

	assert_in_range(offset, 0, sizeof(*data) - sizeof(word));
	memcpy(&word, (const char *)data + offset, sizeof(word));
	return word;
}

static bool jumps(const struct sock_filter *at, uint32_t word)
{
	switch (at->code) {
	case BPF_JMP | BPF_JEQ | BPF_K:
		return word == at->k;
	case BPF_JMP | BPF_JGE | BPF_K:
		return word >= at->k;
	case BPF_JMP | BPF_JSET | BPF_K:
		return (word & at->k) != 0;
	default:
		fail_msg("instruction %#x", at->code);
		return false;
	}
}

static uint32_t run(const struct sock_filter *filter, size_t count,
		    const struct seccomp_data *data)
{
	uint32_t word = 0;

	for (size_t i = 0; i < count; i++) {
		const struct sock_filter *at = &filter[i];
		if (at->code == (BPF_LD | BPF_W | BPF_ABS))
			word = word_at(data, at->k);
		else if (at->code == (BPF_ALU | BPF_AND | BPF_K))
			word &= at->k;
		else if (at->code == (BPF_RET | BPF_K))
			return at->k;
		else
			i += jumps(at, word) ? at->jt : at->jf;
	}
	fail_msg("the filter ends without an answer");
	return 0;
}

struct row {
	int number;
	uint64_t arguments[4];
	int answer;
};

static void rows_hold(const struct sock_filter *filter, size_t count,
		      const struct row *rows, size_t row_count)
{
	for (size_t i = 0; i < row_count; i++) {
		struct seccomp_data data = {.nr = rows[i].number, .arch = OUR_ARCHITECTURE};
		memcpy(data.args, rows[i].arguments, sizeof(rows[i].arguments));
		if (run(filter, count, &data) != answer_in_kernel(rows[i].answer))
			fail_msg("row %zu, call %d: %#x", i, data.nr,
				 run(filter, count, &data));
	}
}

/* What any cell refuses and allows. */
static const struct row everywhere[] = {
	{SYS_read, {0}, ALLOW},
	{SYS_execve, {0}, ALLOW},
	{OPENAT2, {0}, ALLOW}, /* the worker's */
	{ALL_CALLS, {0}, ALLOW},
	{CLONE3, {0}, ENOSYS},
	{X32, {0}, ENOSYS},
	{X32 + 1, {0}, ENOSYS},
	{425 /* io_uring_setup */, {0}, ENOSYS},
	{SYS_mount, {0}, EXPLAIN},
	{SYS_keyctl, {0}, EXPLAIN},
	{SYS_bpf, {0}, EXPLAIN},
	{428 /* open_tree */, {0}, EXPLAIN},
	{442 /* mount_setattr */, {0}, EPERM},
	{SYS_kcmp, {0}, EPERM},
	{SYS_process_vm_writev, {0}, EPERM},
	{SYS_clone, {CLONE_VM | CLONE_VFORK | SIGCHLD}, ALLOW},
	{SYS_clone, {CLONE_NEWUSER | SIGCHLD}, EXPLAIN},
	{SYS_clone, {CLONE_NEWPID}, EXPLAIN},
	{SYS_unshare, {CLONE_FILES}, ALLOW},
	{SYS_unshare, {CLONE_NEWNET}, EXPLAIN},
	{SYS_unshare, {0x80 /* CLONE_NEWTIME */}, EXPLAIN},
	{SYS_fchmod, {3, 0755}, ALLOW},
	{SYS_fchmod, {3, 04755}, EXPLAIN},
	{SYS_fchmod, {3, 02755}, EXPLAIN},
	{SYS_fchmodat, {0, 0, 01777}, ALLOW},
	{SYS_fchmodat, {0, 0, 06755}, EXPLAIN},
	{452 /* fchmodat2 */, {0, 0, 04000}, EXPLAIN},
	{SYS_mknodat, {0, 0, S_IFREG | 02644}, EXPLAIN},
	{SYS_mknodat, {0, 0, S_IFIFO | 0644}, ALLOW},
	{SYS_openat, {0, 0, O_RDONLY, 04755}, ALLOW},
	{SYS_openat, {0, 0, O_WRONLY | O_CREAT, 0644}, ALLOW},
	{SYS_openat, {0, 0, O_WRONLY | O_CREAT, 04755}, EXPLAIN},
	{SYS_openat, {0, 0, O_WRONLY | O_TMPFILE, 02755}, EXPLAIN},
	{SYS_openat, {0, 0, O_RDONLY | O_DIRECTORY, 02755}, ALLOW},
	{SYS_socketpair, {AF_UNIX, SOCK_STREAM}, ALLOW},
	{SYS_socketpair, {AF_INET, SOCK_STREAM}, EPERM},
	{SYS_ioctl, {0, FIONREAD}, ALLOW},
	{SYS_ioctl, {0, TIOCSTI}, EXPLAIN},
	/* The kernel looks at the low half of a request, whatever stands above it. */
	{SYS_ioctl, {0, TIOCSTI | 1ULL << 32}, EXPLAIN},
	{SYS_prlimit64, {0}, ALLOW},
	{SYS_prlimit64, {1}, EPERM},
	{SYS_personality, {0}, ALLOW},
	{SYS_personality, {0x0040000}, ALLOW},
	{SYS_personality, {0xffffffff}, ALLOW},
	{SYS_personality, {0x0400000 /* READ_IMPLIES_EXEC */}, EPERM},
	{SYS_socket, {AF_UNIX, SOCK_STREAM}, ALLOW},
};

static const struct row with_a_network[] = {
	{SYS_socket, {AF_INET, SOCK_STREAM}, ALLOW},
	{SYS_socket, {AF_INET6, SOCK_DGRAM}, ALLOW},
	{SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}, ALLOW},
	{SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_GENERIC}, EPERM},
	{SYS_socket, {AF_PACKET, SOCK_RAW}, EXPLAIN},
	{SYS_socket, {AF_VSOCK, SOCK_STREAM}, EXPLAIN},
	{SYS_connect, {0}, ALLOW},
	{SYS_process_vm_readv, {0}, EPERM},
	{SYS_setpriority, {0 /* PRIO_PROCESS */, 5}, ALLOW},
	{SYS_setpriority, {0, 1 /* the worker */}, EPERM},
	{SYS_setpriority, {1 /* PRIO_PGRP */, 0}, ALLOW},
	{SYS_setpriority, {2 /* PRIO_USER */, 0}, EPERM},
	{SYS_ioprio_set, {1 /* IOPRIO_WHO_PROCESS */, 5}, ALLOW},
	{SYS_ioprio_set, {1, 1}, EPERM},
	{SYS_ioprio_set, {3 /* IOPRIO_WHO_USER */, 0}, EPERM},
	{SYS_sched_setaffinity, {7}, ALLOW},
	{SYS_sched_setaffinity, {1}, EPERM},
	{SYS_sched_setscheduler, {1}, EPERM},
	{SYS_sched_setparam, {1}, EPERM},
	{SYS_sched_setattr, {1}, EPERM},
};

static const struct row without_one[] = {
	{SYS_socket, {AF_INET, SOCK_STREAM}, EPERM},
	{SYS_socket, {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC}, EPERM},
	{SYS_socketpair, {AF_UNIX, SOCK_DGRAM}, EPERM},
	{SYS_connect, {0}, EPERM},
	{SYS_shmget, {0}, EPERM},
	{SYS_inotify_init1, {0}, ENOSYS},
	{SYS_setxattr, {0}, EOPNOTSUPP},
	{469 /* file_setattr */, {0}, EOPNOTSUPP},
	{SYS_process_vm_readv, {0}, ALLOW},
	{SYS_openat, {0, 0, O_ACCMODE}, EPERM},
	{SYS_openat, {0, 0, O_RDONLY | O_TRUNC}, EPERM},
	{SYS_openat, {0, 0, O_RDWR | O_TRUNC}, ALLOW},
	{SYS_sched_setaffinity, {0}, ALLOW},
	{SYS_sched_setaffinity, {7}, EPERM},
	{SYS_setpriority, {0 /* PRIO_PROCESS */, 0}, ALLOW},
	{SYS_setpriority, {2 /* PRIO_USER */, 0}, EPERM},
	{SYS_setpriority, {0, 5}, EPERM},
};

static void every_cell_answers_by_call_and_argument(void **state)
{
	(void)state;
	rows_hold(filter_table, COUNT(filter_table), everywhere, COUNT(everywhere));
	rows_hold(filter_table, COUNT(filter_table), with_a_network, COUNT(with_a_network));
	rows_hold(filter_rules_table, COUNT(filter_rules_table), everywhere,
		  COUNT(everywhere));
	rows_hold(filter_rules_table, COUNT(filter_rules_table), without_one,
		  COUNT(without_one));
}

static void another_architecture_is_killed(void **state)
{
	const struct seccomp_data data = {.nr = SYS_read, .arch = AUDIT_ARCH_I386};

	(void)state;
	assert_int_equal(run(filter_table, COUNT(filter_table), &data),
			 answer_in_kernel(KILL));
	assert_int_equal(run(filter_rules_table, COUNT(filter_rules_table), &data),
			 answer_in_kernel(KILL));
}

static void programs_have_no_openat2(void **state)
{
	static const struct row asking[] = {
		{OPENAT2, {0}, ENOSYS},           {SYS_read, {0}, ALLOW},
		{SYS_fchmod, {3, 0644}, EXPLAIN}, {SYS_utimensat, {0}, EXPLAIN},
		{SYS_kill, {7, 9}, ALLOW}, /* a domain keeps signals in */
	};
	static const struct row alone[] = {
		{OPENAT2, {0}, ENOSYS},      {SYS_ptrace, {0}, EPERM},
		{SYS_kill, {0, 9}, ALLOW},   {SYS_kill, {7, 0}, ALLOW},
		{SYS_kill, {7, 9}, EPERM},   {SYS_tgkill, {0}, EPERM},
		{SYS_fcntl, {0, 8}, EPERM},  {SYS_fcntl, {0, F_GETFL}, ALLOW},
		{SYS_fchmod, {3, 0}, ALLOW}, {SYS_truncate, {0}, ALLOW},
	};

	(void)state;
	rows_hold(program_rules_table, COUNT(program_rules_table), asking, COUNT(asking));
	rows_hold(program_filter_table, COUNT(program_filter_table), alone, COUNT(alone));
	rows_hold(program_old_rules_table, COUNT(program_old_rules_table),
		  &(struct row){SYS_truncate, {0}, EPERM}, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cell_answers_by_call_and_argument),
		cmocka_unit_test(another_architecture_is_killed),
		cmocka_unit_test(programs_have_no_openat2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
