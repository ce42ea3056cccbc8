/*
 * filter: installs the system-call filter that filter_make wrote at build time. Making it
 * needs libseccomp and half a millisecond; installing it needs neither.
 */

#include "base/kernel.h"
#include "sandbox/filter_names.h"
#include "sandbox/filter_table.h"
#include "sandbox/landlock.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

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

const struct sock_fprog *sandbox_program_filter(enum sandbox_level level, bool unfiltered,
						bool root, bool *asks)
{
	static const struct sock_fprog sealed = PROGRAM(program_table);
	static const struct sock_fprog rooted = PROGRAM(program_root_table);
	static const struct sock_fprog rules = PROGRAM(program_rules_table);
	static const struct sock_fprog old_rules = PROGRAM(program_old_rules_table);
	static const struct sock_fprog alone = PROGRAM(program_filter_table);

	*asks = level == SANDBOX_RULES;
	switch (level) {
	case SANDBOX_SEALED:
		return root ? &rooted : &sealed;
	case SANDBOX_RULES:
		return landlock_abi() >= LANDLOCK_ABI_SCOPES ? &rules : &old_rules;
	case SANDBOX_OPEN:
		break;
	}
	return unfiltered ? NULL : &alone;
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

bool sandbox_filter_enter(enum sandbox_level level, int *listener, struct err *err)
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
		 * A listener cannot be installed on kernels before 5.0 (EINVAL), or
		 * when a container around us listens (EBUSY). Below L3 none is
		 * installed here, because only one listener is possible and the filter
		 * of the programs needs it.
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

/*
 * Puts refused calls into words. Only the number of a call and its arguments as numbers
 * are known; nothing in the caller's memory is read.
 */

/* The struct of a newer kernel may be longer, and the kernel writes all of it. */
enum {
	NOTIFICATION_MAX = 512,
	/* changes of modes before the caller may look at its deadline again */
	MODES_AT_ONCE = 16,
};

struct word {
	uint64_t value;
	const char *name;
};

static const struct word families[] = {
	{AF_PACKET, "AF_PACKET"},
	{AF_VSOCK, "AF_VSOCK"},
	{AF_ALG, "AF_ALG"},
	{AF_BLUETOOTH, "AF_BLUETOOTH"},
	{AF_CAN, "AF_CAN"},
	{AF_TIPC, "AF_TIPC"},
	{AF_XDP, "AF_XDP"},
	{AF_KEY, "AF_KEY"},
	{0},
};

static const struct word namespaces[] = {
	{CLONE_NEWUSER, "CLONE_NEWUSER"},     {CLONE_NEWNS, "CLONE_NEWNS"},
	{CLONE_NEWPID, "CLONE_NEWPID"},       {CLONE_NEWNET, "CLONE_NEWNET"},
	{CLONE_NEWIPC, "CLONE_NEWIPC"},       {CLONE_NEWUTS, "CLONE_NEWUTS"},
	{CLONE_NEWCGROUP, "CLONE_NEWCGROUP"}, {0},
};

enum group { ELSE, MOUNTS, NAMESPACES, SOCKETS, SET_ID, TERMINALS };

static const char *const remedies[] = {
	[ELSE] = "it reaches into the kernel: run it outside of the cell",
	[MOUNTS] = "what a cell shows is decided by `read` and `write` of the policy; no "
		   "command can change it",
	[NAMESPACES] = "containers cannot be made inside a cell: run it outside, or without "
		       "a sandbox of its own",
	[SOCKETS] = "a cell has Unix, IPv4 and IPv6 sockets only",
	[SET_ID] = "no file or folder gets a set-id bit in a cell: leave that bit to the "
		   "user (git, where a group shares the repository: git -c "
		   "core.sharedRepository=umask …)",
	[TERMINALS] = "nothing in a cell may type for the user",
};

static const struct {
	const char *name;
	enum group group;
} groups[] = {
	{"mount", MOUNTS},     {"umount2", MOUNTS},   {"pivot_root", MOUNTS},
	{"chroot", MOUNTS},    {"open_tree", MOUNTS}, {"move_mount", MOUNTS},
	{"fsopen", MOUNTS},    {"fsconfig", MOUNTS},  {"fsmount", MOUNTS},
	{"fspick", MOUNTS},    {"setns", NAMESPACES}, {"unshare", NAMESPACES},
	{"clone", NAMESPACES}, {"socket", SOCKETS},   {"chmod", SET_ID},
	{"fchmod", SET_ID},    {"fchmodat", SET_ID},  {"fchmodat2", SET_ID},
	{"mknod", SET_ID},     {"mknodat", SET_ID},   {"creat", SET_ID},
	{"open", SET_ID},      {"openat", SET_ID},    {"ioctl", TERMINALS},
};

static const char *name_of(int number)
{
	for (size_t i = 0; i < sizeof(explained_calls) / sizeof(explained_calls[0]); i++) {
		if (explained_calls[i].number == number)
			return explained_calls[i].name;
	}
	return NULL;
}

static enum group group_of(const char *name)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (strcmp(groups[i].name, name) == 0)
			return groups[i].group;
	}
	return ELSE;
}

/*
 * The argument that decided, in words: a socket family, or the first of the namespaces.
 */
static const char *argument_of(enum group group, const struct seccomp_data *data)
{
	if (group == SOCKETS) {
		for (const struct word *at = families; at->name; at++) {
			if (at->value == (uint32_t)data->args[0])
				return at->name;
		}
	} else if (group == NAMESPACES) {
		for (const struct word *at = namespaces; at->name; at++) {
			if (data->args[0] & at->value)
				return at->name;
		}
	} else if (group == SET_ID) {
		return "set-id";
	}
	return NULL;
}

static void describe(const struct seccomp_data *data, struct sandbox_refusal *refusal)
{
	const char *name = name_of(data->nr);
	enum group group = name ? group_of(name) : ELSE;
	const char *argument = argument_of(group, data);

	refusal->remedy = remedies[group];
	if (!name)
		(void)snprintf(refusal->call, sizeof(refusal->call), "system call %d",
			       data->nr);
	else if (argument)
		(void)snprintf(refusal->call, sizeof(refusal->call), "%s(%s)", name,
			       argument);
	else if (group == SOCKETS)
		(void)snprintf(refusal->call, sizeof(refusal->call), "socket(%u)",
			       (unsigned)data->args[0]);
	else
		(void)snprintf(refusal->call, sizeof(refusal->call), "%s", name);
}

/* A call that waits at a listener. A newer kernel may write a longer struct. */
union asked {
	struct seccomp_notif told;
	char room[NOTIFICATION_MAX];
};

/* Take the next call that waits at LISTENER. False: there is none. */
static bool take_next(int listener, union asked *asked)
{
	struct pollfd waiting = {.fd = listener, .events = POLLIN};

	/* SECCOMP_IOCTL_NOTIF_RECV blocks when no call waits, so poll first. */
	if (poll(&waiting, 1, 0) <= 0 || (waiting.revents & POLLIN) == 0)
		return false;
	memset(asked, 0, sizeof(*asked));
	/* It fails when the caller was killed meanwhile. */
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked->told) == 0;
}

bool sandbox_refuse_next(int listener, bool root, struct sandbox_refusal *refusal)
{
	struct seccomp_notif_resp answer;
	union asked asked;

	/*
	 * Programs that take themselves for root unpack files with set-id bits, and would give
	 * up. They get the mode without these bits, which nothing in a cell could use.
	 */
	for (int i = 0;; i++) {
		if (i == MODES_AT_ONCE || !take_next(listener, &asked))
			return false;
		if (!root || !landlock_change_mode(listener, &asked.told))
			break;
	}
	answer = (struct seccomp_notif_resp){.id = asked.told.id, .error = -EPERM};
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	describe(&asked.told.data, refusal);
	return true;
}
