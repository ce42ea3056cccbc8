/*
 * filter: installs the system-call filter that filter_make wrote at build time. Making it
 * needs libseccomp and half a millisecond; installing it needs neither.
 */
#include "sandbox/kernel.h"
#include "sandbox/privilege.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#include "sandbox/filter_table.h"

static const struct sock_filter program_table[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

const struct sock_fprog *sandbox_program_filter(void)
{
	static const struct sock_fprog program = {
		.len = sizeof(program_table) / sizeof(program_table[0]),
		/* The kernel only reads it. */
		.filter = (struct sock_filter *)(uintptr_t)program_table,
	};

	return &program;
}

bool filter_enter(struct err *err)
{
	const struct sock_fprog program = {
		.len = (unsigned short)(sizeof(filter_table) / sizeof(filter_table[0])),
		/* The kernel only reads it. */
		.filter = (struct sock_filter *)(uintptr_t)filter_table,
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "no new privileges: %s", strerror(errno));
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return err_set(err, errno, "system-call filter: %s%s", strerror(errno),
			       errno == EINVAL ? "; this kernel has no seccomp filters"
					       : "");
	return true;
}
