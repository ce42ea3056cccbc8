/*
 * peel_walls: the list of walls, and how each is taken away. A wall that is met nowhere
 * (because the cell is built in another way by now) stays standing, and its cases say so.
 */
#include "peel.h"

#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	OPEN_TREE = 428,
	MOVE_MOUNT = 429,
	FSMOUNT = 432,
	CLOSE_RANGE = 436,
	MOUNT_SETATTR = 442,
	LANDLOCK_RESTRICT = 446,
	EMPTY_PATH = 0x1000,
	/* Landlock's beside the worker's large filter there is the program's small one. */
	SMALL_FILTER = 16,
};

static bool calls_prctl(const struct process *process, int option)
{
	return process->number == SYS_prctl && (int)process->arguments[0] == option;
}

void peel_keep_dumpable(struct process *process)
{
	if (calls_prctl(process, PR_SET_DUMPABLE) && process->arguments[1] == 0)
		peel_answer(process, 0);
}

static void clear_clone(struct process *process, enum role role, unsigned long flag)
{
	if (process->number == SYS_clone && process->role == role &&
	    (process->arguments[0] & CLONE_NEWNS) != 0)
		peel_argument(process, 0, process->arguments[0] & ~flag);
}

/* The first word of a mount_setattr's block: what is set. */
static void clear_attribute(struct process *process, unsigned long bits)
{
	unsigned long set;

	if (process->number == FSMOUNT)
		peel_argument(process, 2, process->arguments[2] & ~bits);
	if (process->number == MOUNT_SETATTR && (process->arguments[2] & EMPTY_PATH) != 0 &&
	    peel_read(process, process->arguments[3], &set, sizeof(set)))
		peel_write_word(process, process->arguments[3], set & ~bits);
}

/* What is written to a file of this name is swallowed. */
static void swallow(struct process *process, const char *path)
{
	if (process->number == SYS_openat)
		process->wants_fd = peel_text_is(process, process->arguments[1], path);
	if (process->number == SYS_write && process->fd >= 0 &&
	    (int)process->arguments[0] == process->fd) {
		peel_answer(process, (long)process->arguments[2]);
		process->fd = -1;
	}
}

/* The filter that begins here lets everything pass. */
static void open_filter(struct process *process, bool small)
{
	const struct sock_filter pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program;
	unsigned long word;

	if (process->number != SYS_seccomp ||
	    process->arguments[0] != SECCOMP_SET_MODE_FILTER ||
	    !peel_read(process, process->arguments[2], &program, sizeof(program)) ||
	    (program.len < SMALL_FILTER) != small)
		return;
	memcpy(&word, &pass, sizeof(word));
	peel_write_word(process, (unsigned long)program.filter, word);
}

static void remove_old_root(struct process *process)
{
	if (process->number == SYS_umount2 && process->arguments[1] == MNT_DETACH)
		peel_answer(process, 0);
}

static void remove_read_only(struct process *process)
{
	clear_attribute(process, 1 /* MOUNT_ATTR_RDONLY */);
}

static void remove_closed_root(struct process *process)
{
	if (process->number == MOUNT_SETATTR && (process->arguments[2] & EMPTY_PATH) == 0)
		peel_answer(process, 0);
}

static void remove_nodev(struct process *process)
{
	clear_attribute(process, 4 /* MOUNT_ATTR_NODEV */);
}

/* A mask: the copy of our empty file or folder is never moved over the path. */
static void remove_blocked(struct process *process)
{
	if (process->number == OPEN_TREE)
		process->count = peel_text_is(process, process->arguments[1], "nothing.d") ||
				 peel_text_is(process, process->arguments[1], "nothing");
	if (process->number == MOVE_MOUNT && process->count > 0) {
		process->count = 0;
		peel_answer(process, 0);
	}
}

static void remove_pid(struct process *process)
{
	clear_clone(process, ROLE_ANCHOR, CLONE_NEWPID);
}

static void remove_proc(struct process *process)
{
	if (process->number == SYS_mount && process->role == ROLE_WORKER &&
	    peel_text_is(process, process->arguments[2], "proc"))
		peel_answer(process, 0);
}

static void remove_proc_masks(struct process *process)
{
	if (process->number == SYS_mount &&
	    peel_text_is(process, process->arguments[0], "/dev/null"))
		peel_answer(process, 0);
}

static void remove_proc_sys(struct process *process)
{
	if (process->number == SYS_mount && (process->arguments[3] & MS_REMOUNT) != 0)
		peel_answer(process, 0);
}

static void remove_pid_max(struct process *process)
{
	swallow(process, "/proc/sys/kernel/pid_max");
}

/* A helper makes the network, and the anchor enters it. */
static void remove_net(struct process *process)
{
	if (process->number == SYS_setns && process->arguments[1] == CLONE_NEWNET)
		peel_answer(process, 0);
}

static void remove_ipc(struct process *process)
{
	clear_clone(process, ROLE_FRONT, CLONE_NEWIPC);
	clear_clone(process, ROLE_STARTER, CLONE_NEWIPC);
}

static void remove_uts(struct process *process)
{
	clear_clone(process, ROLE_FRONT, CLONE_NEWUTS);
	clear_clone(process, ROLE_STARTER, CLONE_NEWUTS);
	if (process->number == SYS_sethostname)
		peel_answer(process, 0);
}

static void remove_cgroup(struct process *process)
{
	clear_clone(process, ROLE_FRONT, CLONE_NEWCGROUP);
	clear_clone(process, ROLE_STARTER, CLONE_NEWCGROUP);
}

static void remove_user_namespaces(struct process *process)
{
	swallow(process, "/proc/sys/user/max_user_namespaces");
}

/* User and group stay root's; so do the capabilities of the new user namespace. */
static void remove_identity(struct process *process)
{
	if (process->number == SYS_setresuid || process->number == SYS_setresgid)
		peel_answer(process, 0);
}

/* The third word of a mount_setattr's block: the propagation. */
static void remove_private_mounts(struct process *process)
{
	if (process->number == MOUNT_SETATTR && process->role == ROLE_FRONT)
		peel_write_word(process,
				process->arguments[3] + 2 * sizeof(unsigned long), 0);
}

static void remove_groups(struct process *process)
{
	if (process->number == SYS_setgroups)
		peel_answer(process, 0);
}

static void remove_landlock(struct process *process)
{
	if (process->number == LANDLOCK_RESTRICT)
		peel_answer(process, 0);
}

static void remove_writes(struct process *process)
{
	remove_landlock(process);
	remove_read_only(process);
}

static void remove_filter(struct process *process)
{
	open_filter(process, false);
}

static void remove_program_filter(struct process *process)
{
	open_filter(process, true);
}

static void remove_namespaces(struct process *process)
{
	remove_filter(process);
	remove_user_namespaces(process);
}

static void remove_capabilities(struct process *process)
{
	if (process->number == SYS_capset && process->role == ROLE_WORKER)
		peel_answer(process, 0);
}

static void remove_bounding(struct process *process)
{
	if (calls_prctl(process, PR_CAPBSET_DROP) && process->arguments[1] < 40)
		peel_answer(process, 0);
}

static void remove_secure_bits(struct process *process)
{
	if (calls_prctl(process, PR_SET_SECUREBITS))
		peel_answer(process, 0);
}

static void remove_no_new_privs(struct process *process)
{
	if (calls_prctl(process, PR_SET_NO_NEW_PRIVS))
		peel_answer(process, 0);
}

static void remove_limits(struct process *process)
{
	if (process->number == SYS_prlimit64 && process->arguments[2] != 0)
		peel_answer(process, 0);
}

static void remove_death_signal(struct process *process)
{
	if (calls_prctl(process, PR_SET_PDEATHSIG))
		peel_answer(process, 0);
}

static void remove_descriptors(struct process *process)
{
	/* 0, 1 and 2 go all the same, so that nothing takes their places. */
	if (process->number == CLOSE_RANGE && process->arguments[0] == 0)
		peel_argument(process, 1, 2);
	else if (process->number == CLOSE_RANGE)
		peel_answer(process, 0);
}

/*
 * The caller's variables stand behind those of the program, below the end of its stack,
 * which is small: those that fit are enough.
 */
static void remove_environment(struct process *process)
{
	enum { ROOM = 2 << 10, POINTERS = 96 };
	unsigned long pointers[POINTERS];
	char text[ROOM - sizeof(pointers)] = "";
	unsigned long base = peel_stack(process) - 2 * ROOM;
	size_t count = 0, used = 0;

	if (process->number != SYS_execve || process->role != ROLE_COMMAND)
		return;
	while (count < POINTERS / 2 &&
	       peel_read(process, process->arguments[2] + count * sizeof(pointers[0]),
			 &pointers[count], sizeof(pointers[0])) &&
	       pointers[count] != 0)
		count++;
	for (char **at = environ; *at != NULL && count < POINTERS - 1; at++) {
		size_t size = strlen(*at) + 1;
		if (used + size > sizeof(text))
			continue;
		memcpy(text + used, *at, size);
		pointers[count++] = base + sizeof(pointers) + used;
		used += size;
	}
	pointers[count] = 0;
	peel_write(process, base, pointers, sizeof(pointers));
	peel_write(process, base + sizeof(pointers), text, sizeof(text));
	peel_argument(process, 2, base);
}

static void remove_session(struct process *process)
{
	if (process->number == SYS_setsid)
		peel_answer(process, 0);
}

const struct wall peel_walls[] = {
	{"old-root", "the host's root is let go", remove_old_root},
	{"read-only", "what is not writable is mounted read-only", remove_read_only},
	{"closed-root", "the root of the view is closed", remove_closed_root},
	{"nodev", "devices in shown trees are dead", remove_nodev},
	{"blocked", "masks over what the policy blocks", remove_blocked},
	{"pid", "the worker's pid namespace", remove_pid},
	{"proc", "the worker's own /proc", remove_proc},
	{"proc-masks", "masks over the kernel's files in /proc", remove_proc_masks},
	{"proc-sys", "/proc/sys is read-only", remove_proc_sys},
	{"pid-max", "the number of processes of a command", remove_pid_max},
	{"net", "the network namespace", remove_net},
	{"ipc", "the IPC namespace", remove_ipc},
	{"uts", "the UTS namespace", remove_uts},
	{"cgroup", "the cgroup namespace", remove_cgroup},
	{"user-namespaces", "no further user namespace", remove_user_namespaces},
	{"identity", "root becomes somebody else", remove_identity, "closed for root"},
	{"private-mounts", "copies of the host's mounts are no peers of them",
	 remove_private_mounts},
	{"groups", "the caller's groups are dropped", remove_groups},
	{"landlock+read-only", "both walls against writing", remove_writes},
	{"filter", "the system-call filter", remove_filter},
	{"filter+user-namespaces", "both walls against namespaces", remove_namespaces},
	{"program-filter", "no openat2 for programs", remove_program_filter},
	{"capabilities", "the worker's last capability is dropped", remove_capabilities},
	{"bounding", "the bounding set is empty", remove_bounding},
	{"secure-bits", "the secure bits are locked", remove_secure_bits},
	{"no-new-privs", "no new privileges", remove_no_new_privs, "closed"},
	{"limits", "resource limits", remove_limits},
	{"death-signal", "the anchor dies with the front", remove_death_signal},
	{"environment", "the environment is made from scratch", remove_environment},
	{"descriptors", "descriptors of the caller are closed", remove_descriptors},
	{"session", "the terminal's session is left", remove_session},
	{"dumpable", "anchor and worker are closed to debuggers", peel_keep_dumpable},
	{0},
};
