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

enum { FILTER_LENGTH = sizeof(filter_table) / sizeof(filter_table[0]) };

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

static bool install(const struct sock_filter *filter, unsigned flags, int *listener)
{
	const struct sock_fprog program = {
		.len = (unsigned short)FILTER_LENGTH,
		/* The kernel only reads it. */
		.filter = (struct sock_filter *)(uintptr_t)filter,
	};
	long answer = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);

	if (answer >= 0 && flags != 0)
		*listener = (int)answer;
	return answer >= 0;
}

/* Without somebody who answers, what would be explained is refused at once. */
static bool install_plain(void)
{
	struct sock_filter plain[FILTER_LENGTH];

	memcpy(plain, filter_table, sizeof(plain));
	for (size_t i = 0; i < FILTER_LENGTH; i++) {
		if (plain[i].code == (BPF_RET | BPF_K) &&
		    plain[i].k == SECCOMP_RET_USER_NOTIF)
			plain[i].k = SECCOMP_RET_ERRNO | EPERM;
	}
	return install(plain, 0, NULL);
}

bool filter_enter(int *listener, struct err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "no new privileges: %s", strerror(errno));
	if (listener != NULL) {
		*listener = -1;
		/* Older than 5.0 (EINVAL), or a container around us listens (EBUSY). */
		if (install(filter_table, SECCOMP_FILTER_FLAG_NEW_LISTENER, listener))
			return true;
	}
	if (install_plain())
		return true;
	return err_set(err, errno, "system-call filter: %s%s", strerror(errno),
		       errno == EINVAL ? "; this kernel has no seccomp filters" : "");
}
