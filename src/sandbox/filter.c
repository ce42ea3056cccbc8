/*
 * filter: installs the system-call filter that filter_make wrote at build time. Making it
 * needs libseccomp and half a millisecond; installing it needs neither.
 */
#include "base/kernel.h"
#include "sandbox/identity.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#include "sandbox/filter_table.h"

enum { FILTER_LENGTH_MAX = 1024, FILTER_BYTES_MAX = FILTER_LENGTH_MAX * 8 };

static const struct sock_filter program_table[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

/* The kernel only reads the table, although its field is not const. */
#define PROGRAM(table)                                             \
	{                                                          \
		.len = sizeof(table) / sizeof((table)[0]),         \
		.filter = (struct sock_filter *)(uintptr_t)(table) \
	}

const struct sock_fprog *sandbox_program_filter(enum sandbox_level level, bool *asks)
{
	static const struct sock_fprog sealed = PROGRAM(program_table);
	static const struct sock_fprog rules = PROGRAM(program_rules_table);
	static const struct sock_fprog old_rules = PROGRAM(program_old_rules_table);
	static const struct sock_fprog alone = PROGRAM(program_filter_table);

	*asks = level == SANDBOX_RULES;
	switch (level) {
	case SANDBOX_SEALED:
		return &sealed;
	case SANDBOX_RULES:
		return sandbox_landlock_abi() >= LANDLOCK_ABI_SCOPES ? &rules : &old_rules;
	case SANDBOX_FILTER:
		return &alone;
	case SANDBOX_NONE:
		break;
	}
	return NULL;
}

static bool install(const struct sock_fprog *program, unsigned flags, int *listener)
{
	long answer = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);

	if (answer >= 0 && flags != 0)
		*listener = (int)answer;
	return answer >= 0;
}

/* Without a listener, calls that would be explained are refused immediately. */
static bool install_plain(const struct sock_fprog *program)
{
	struct sock_filter plain[FILTER_LENGTH_MAX];
	const struct sock_fprog refusing = {.len = program->len, .filter = plain};

	memcpy(plain, program->filter, program->len * sizeof(plain[0]));
	for (size_t i = 0; i < program->len; i++) {
		if (plain[i].code == (BPF_RET | BPF_K) &&
		    plain[i].k == SECCOMP_RET_USER_NOTIF)
			plain[i].k = SECCOMP_RET_ERRNO | EPERM;
	}
	return install(&refusing, 0, NULL);
}

bool filter_enter(enum sandbox_level level, int *listener, struct err *err)
{
	static const struct sock_fprog sealed = PROGRAM(filter_table);
	static const struct sock_fprog open = PROGRAM(filter_rules_table);
	const struct sock_fprog *program = level == SANDBOX_SEALED ? &sealed : &open;

	_Static_assert(sizeof(filter_table) <= FILTER_BYTES_MAX &&
			       sizeof(filter_rules_table) <= FILTER_BYTES_MAX,
		       "room for a copy");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "no new privileges: %s", strerror(errno));
	if (listener != NULL) {
		*listener = -1;
		/*
		 * Older than 5.0 (EINVAL), or a container around us listens (EBUSY). Below
		 * L3 the one listener there can be is the programs' own.
		 */
		if (level == SANDBOX_SEALED &&
		    install(program, SECCOMP_FILTER_FLAG_NEW_LISTENER, listener))
			return true;
	}
	if (install_plain(program))
		return true;
	return err_set(err, errno, "system-call filter: %s%s", strerror(errno),
		       errno == EINVAL ? "; this kernel has no seccomp filters" : "");
}
