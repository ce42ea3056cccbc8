/*
 * probe: tries out each part of a cell on this kernel, and names the remedy for a
 * missing one.
 */

#include "sandbox/probe.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "sandbox/cgroup.h"
#include "sandbox/landlock.h"
#include "sandbox/sandbox.h"
#include "sandbox/view.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Enough for a sysctl, which is one number, and for a list of controllers, which is one
 * line.
 */
enum { SYSCTL_MAX = 256 };

/*
 * SPACES_UNTRIED: the try itself could not begin for want of processes, descriptors or
 * memory. The machine may have the namespaces or not.
 */
enum spaces_lacking {
	SPACES_NOTHING,
	SPACES_UNTRIED,
	SPACES_USER,
	SPACES_OTHERS,
	SPACES_PROC,
	SPACES_VIEW
};

/* The result of making namespaces as the anchor makes them. */
struct probe_spaces {
	enum spaces_lacking lacking; /* the first missing one */
	char because[PROBE_VALUE_MAX];
	char remedy[PROBE_REMEDY_MAX];
};

/* A sysctl that may forbid namespaces. */
struct probe_switch {
	const char *path;   /* NULL ends the rows */
	const char *closed; /* the values that forbid them, separated by blanks */
	bool holds_for_root;
	const char *remedy;
};

/*
 * Tries to make the namespaces of a cell as the anchor does, and finds the remedy for a
 * failure.
 */

enum { MAP_MAX = 32 << 10 }; /* 340 lines, the most that the kernel allows */

/* The steps of a child that does what the anchor does, in their order. */
enum step { STEP_USER, STEP_OTHERS, STEP_PROC, STEP_VIEW, STEPS_DONE };

struct outcome {
	enum step step; /* the first step that failed, or STEPS_DONE */
	int code;
};

/* In the child: make the mounts that a container around us may forbid. */
static struct outcome try_mounts(const struct sandbox_identity *identity, struct view *view,
				 int parent, struct sandbox_network *network)
{
	struct err err = {0};
	int rules = -1;

	if (!sandbox_become(SANDBOX_SEALED, identity, parent, &err) ||
	    !sandbox_join(network, &err))
		return (struct outcome){STEP_OTHERS, err.code};
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return (struct outcome){STEP_OTHERS, errno};
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return (struct outcome){STEP_PROC, errno};
	auto_close int tree =
		kernel_open_tree(AT_FDCWD, "/",
				 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (tree < 0)
		return (struct outcome){STEP_VIEW, errno};
	if (!sandbox_build(SANDBOX_SEALED, view, &rules, &err))
		return (struct outcome){STEP_VIEW, err.code};
	return (struct outcome){STEPS_DONE, 0};
}

/* Read the outcome that the child PID writes before it ends, and wait for its end. */
static struct outcome outcome_read(int ends[2], pid_t pid)
{
	struct outcome outcome;

	fd_close(&ends[1]);
	if (read(ends[0], &outcome, sizeof(outcome)) != (ssize_t)sizeof(outcome))
		outcome = (struct outcome){STEP_OTHERS, EIO};
	fd_close(&ends[0]);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return outcome;
}

static _Noreturn void outcome_say(const int ends[2], struct outcome outcome)
{
	(void)!write(ends[1], &outcome, sizeof(outcome));
	_exit(0);
}

/* Make the same clone as the anchor, and VIEW, to be written to at WRITTEN (or NULL). */
static struct outcome try_anchor(const struct sandbox_identity *identity,
				 struct view *view, const char *written)
{
	struct sandbox_network network;
	struct err err = {0};
	auto_close int parent = kernel_pidfd_open(getpid());
	int pidfd = -1, ends[2];
	pid_t pid;

	if (parent < 0)
		return (struct outcome){STEP_USER, errno};
	if (!fd_pipe(ends, &err))
		return (struct outcome){STEP_USER, err.code};
	if (!sandbox_clone(SANDBOX_SEALED, identity, 0, -1, &network, &pid, &pidfd, &err)) {
		fd_close(&ends[0]);
		fd_close(&ends[1]);
		return (struct outcome){STEP_USER, err.code};
	}
	if (pid == 0) {
		struct outcome outcome = try_mounts(identity, view, parent, &network);
		struct statvfs fs;

		/* Where an overlay lacks something at its upper folder, it is read-only. */
		if (outcome.step == STEPS_DONE && written != NULL &&
		    statvfs(written, &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0)
			outcome = (struct outcome){STEP_VIEW, EROFS};
		outcome_say(ends, outcome);
	}
	fd_close(&pidfd);
	return outcome_read(ends, pid);
}

/* try_anchor, with a view of one empty folder. */
static struct outcome try_plain_anchor(void)
{
	const struct stat roots_own = {.st_uid = 0};
	struct view_entry folder = {.kind = VIEW_FOLDER,
				    .path = "/tmp",
				    .fd = -1,
				    .mode = S_IRWXU};
	struct view view = {&folder, 1};
	struct sandbox_identity identity;

	sandbox_identity(&roots_own, &identity);
	return try_anchor(&identity, &view, NULL);
}

int probe_view(struct view *view, const struct sandbox_identity *identity, const char *path)
{
	const struct outcome outcome = try_anchor(identity, view, path);

	return outcome.step != STEP_VIEW ? 0 : outcome.code != 0 ? outcome.code : EIO;
}

/* Find the namespace that fails: unshare the user namespace first, then the others. */
static struct outcome try_steps(void)
{
	const int others = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			   CLONE_NEWNET | CLONE_NEWCGROUP;
	int ends[2];

	if (!fd_pipe(ends, NULL))
		return (struct outcome){STEP_USER, EIO};
	pid_t pid = fork();
	if (pid != 0)
		return outcome_read(ends, pid);
	if (unshare(CLONE_NEWUSER) < 0)
		outcome_say(ends, (struct outcome){STEP_USER, errno});
	if (unshare(others) < 0)
		outcome_say(ends, (struct outcome){STEP_OTHERS, errno});
	outcome_say(ends, (struct outcome){STEPS_DONE, 0});
}

static const struct probe_switch probe_switches[] = {
	{"/proc/sys/user/max_user_namespaces", "0", true,
	 "sudo sysctl -w user.max_user_namespaces=15000"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", true,
	 "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1 2", false,
	 "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or the AppArmor "
	 "profile that the Debian package brings (docs/packages.md)"},
	{0},
};

/* Does VALUE of the sysctl ROW forbid namespaces to this user? */
static bool probe_switch_closes(const struct probe_switch *row, const char *value)
{
	return (row->holds_for_root || geteuid() != 0) &&
	       str_among(row->closed, str_trim(str_of(value)));
}

static bool probe_read(const char *path, char text[SYSCTL_MAX]);

static const char *switch_remedy(void)
{
	char value[SYSCTL_MAX];

	for (const struct probe_switch *row = probe_switches; row->path != NULL; row++) {
		if (probe_read(row->path, value) && probe_switch_closes(row, value))
			return row->remedy;
	}
	return NULL;
}

static void explain(struct probe_spaces *spaces, enum spaces_lacking lacking, int code,
		    const char *what, const char *remedy)
{
	spaces->lacking = lacking;
	(void)snprintf(spaces->because, sizeof(spaces->because), "%s: %s", what,
		       strerror(code));
	(void)snprintf(spaces->remedy, sizeof(spaces->remedy), "%s", remedy);
}

static void explain_user(struct probe_spaces *spaces, int code)
{
	const char *remedy = switch_remedy();

	/*
	 * The limits of all namespaces around this one count too, and only the owners
	 * of those see them.
	 */
	if (remedy == NULL)
		remedy = code == ENOSPC
				 ? "the limit of user namespaces is reached, here or in what "
				   "is around: raise user.max_user_namespaces there"
			 : code == EINVAL || code == ENOSYS
				 ? "a kernel with CONFIG_USER_NS"
				 : "a container around us forbids them: run it with a seccomp "
				   "profile that allows unshare and clone, or run on the host";
	explain(spaces, SPACES_USER, code, "refused", remedy);
}

/*
 * Does /proc belong to our own pid namespace? Then it shows this process under its own
 * pid.
 */
static bool has_own_proc(void)
{
	char pid[32], found[32] = "";

	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	return readlink("/proc/self", found, sizeof(found) - 1) > 0 &&
	       strcmp(pid, found) == 0 && access("/proc/self/uid_map", W_OK) == 0;
}

/* Is there a user UID in the namespace around us? */
static bool has_user(uid_t uid)
{
	struct buf map;
	bool found = false;

	buf_init(&map, MAP_MAX);
	if (fd_read_at(AT_FDCWD, "/proc/self/uid_map", &map)) {
		for (char *at = map.data; !found && *at != '\0' && *at != '\n';) {
			unsigned long long first = strtoull(at, &at, 10);
			(void)strtoull(at, &at, 10);
			unsigned long long count = strtoull(at, &at, 10);
			found = uid >= first && uid - first < count;
			at += *at == '\n';
		}
	}
	buf_fini(&map);
	return found;
}

static void explain_maps(struct probe_spaces *spaces, int code)
{
	const char *remedy = switch_remedy();

	if (remedy == NULL && !has_own_proc())
		remedy = "/proc has to be mounted, for this PID namespace and writable: mount -t "
			 "proc proc /proc";
	else if (remedy == NULL && geteuid() == 0 && !has_user(SANDBOX_UID))
		remedy = "the user namespace around us has too few users for root to become one "
			 "without an account: run glovebox as an ordinary user of it, or map 2^21 "
			 "users into it";
	else if (remedy == NULL && geteuid() == 0)
		remedy = "root here lacks capabilities: run the container with SETUID, SETGID "
			 "and (since Linux 5.12) SETFCAP, or glovebox as an ordinary user";
	else if (remedy == NULL)
		remedy = "something around us forbids ID maps of one's own: run on the host";
	explain(spaces, SPACES_USER, code, "no ID map", remedy);
}

static void explain_others(struct probe_spaces *spaces, int code, const char *what)
{
	const char *remedy = switch_remedy();

	if (remedy == NULL)
		remedy = "the kernel needs mount, pid, ipc, uts, net and cgroup namespaces (see "
			 "/proc/sys/user/max_*_namespaces), and what is around us must let "
			 "them be used";
	explain(spaces, SPACES_OTHERS, code, what, remedy);
}

/*
 * Is CODE a shortage of processes, descriptors or memory that may pass, not of
 * namespaces?
 */
static bool is_passing(int code)
{
	return code == EAGAIN || code == ENOMEM || code == EMFILE || code == ENFILE;
}

static void explain_failure(struct probe_spaces *spaces, int code)
{
	struct outcome outcome = try_steps();

	if (outcome.step == STEP_USER)
		explain_user(spaces, outcome.code);
	else if (outcome.step == STEP_OTHERS)
		explain_others(spaces, outcome.code, "refused");
	else if (code == ENOSPC || code == EUSERS)
		explain_user(spaces, ENOSPC);
	else
		explain_maps(spaces, code);
}

static void probe_namespaces(struct probe_spaces *spaces)
{
	struct outcome outcome = try_plain_anchor();
	int code = outcome.code;

	memset(spaces, 0, sizeof(*spaces));
	if (outcome.step == STEPS_DONE)
		return;
	if (is_passing(code))
		explain(spaces, SPACES_UNTRIED, code, "could not be tried",
			"raise the limit of processes (ulimit -u, pids.max of the control "
			"group), descriptors (ulimit -n) or memory");
	else if (outcome.step == STEP_USER)
		explain_failure(spaces, code);
	else if (outcome.step == STEP_OTHERS)
		explain_others(spaces, code, "cannot be used");
	else if (outcome.step == STEP_PROC)
		explain(spaces, SPACES_PROC, code, "refused",
			"a container runtime has hidden parts of /proc: run the container "
			"with --security-opt systempaths=unconfined (docker) or "
			"--security-opt unmask=ALL (podman)");
	else
		explain(spaces, SPACES_VIEW, code, "cannot be made",
			"a kernel of 5.12 or newer, and where a container is around us a "
			"seccomp profile that allows open_tree, move_mount, fsopen, fsconfig, "
			"fsmount, mount_setattr and pivot_root");
}

/* Read the first line of the small file PATH. False when this kernel has no such file. */
static bool probe_read(const char *path, char text[SYSCTL_MAX])
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, SYSCTL_MAX - 1);

	if (n < 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return true;
}

/* CODE: the errno of the kernel when it was asked for its ABI. */
static const char *probe_landlock_remedy(int code)
{
	if (code == EOPNOTSUPP)
		return "add landlock to lsm= on the kernel's command line (see "
		       "/sys/kernel/security/lsm)";
	if (code == EPERM || code == EACCES)
		return "a container around us forbids it: run it with a seccomp profile that "
		       "allows landlock_create_ruleset and its two sisters";
	return "a kernel of 5.13 or newer with CONFIG_SECURITY_LANDLOCK, or a seccomp profile "
	       "of the container that knows landlock_create_ruleset";
}

static const char *probe_seccomp_remedy(int code)
{
	if (code == EPERM || code == EACCES)
		return "a container around us forbids it: run it with a seccomp profile that "
		       "allows seccomp";
	return "a kernel with CONFIG_SECCOMP_FILTER";
}

static bool probe_seccomp(void)
{
	unsigned action = SECCOMP_RET_ERRNO;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

struct facts {
	struct probe_fact *items;
	size_t count;
};

__attribute__((format(printf, 3, 4))) static struct probe_fact *add_fact(
	struct facts *facts, const char *name, const char *format, ...)
{
	struct probe_fact *fact = &facts->items[facts->count++];
	va_list arguments;

	fact->name = name;
	fact->missing = false;
	fact->remedy[0] = '\0';
	va_start(arguments, format);
	(void)vsnprintf(fact->value, sizeof(fact->value), format, arguments);
	va_end(arguments);
	return fact;
}

__attribute__((format(printf, 2, 3))) static void set_missing(struct probe_fact *fact,
							      const char *remedy, ...)
{
	va_list arguments;

	fact->missing = true;
	va_start(arguments, remedy);
	(void)vsnprintf(fact->remedy, sizeof(fact->remedy), remedy, arguments);
	va_end(arguments);
}

/* Returns true when some are missing. */
static bool add_namespaces(struct facts *facts)
{
	struct probe_fact *user = add_fact(facts, "user namespaces", "yes");
	struct probe_fact *others;
	struct probe_spaces spaces;

	probe_namespaces(&spaces);
	if (spaces.lacking == SPACES_USER || spaces.lacking == SPACES_UNTRIED) {
		(void)snprintf(user->value, sizeof(user->value), "%s", spaces.because);
		set_missing(user, "%s", spaces.remedy);
		return true;
	}
	others = add_fact(facts, "other namespaces", "mount, pid, ipc, uts, net, cgroup");
	if (spaces.lacking == SPACES_OTHERS) {
		(void)snprintf(others->value, sizeof(others->value), "%s", spaces.because);
		set_missing(others, "%s", spaces.remedy);
		return true;
	}
	others = add_fact(facts, "a /proc of one's own", "yes");
	if (spaces.lacking == SPACES_PROC) {
		(void)snprintf(others->value, sizeof(others->value), "%s", spaces.because);
		set_missing(others, "%s", spaces.remedy);
		return true;
	}
	others = add_fact(facts, "a view of mounts", "yes");
	if (spaces.lacking == SPACES_VIEW) {
		(void)snprintf(others->value, sizeof(others->value), "%s", spaces.because);
		set_missing(others, "%s", spaces.remedy);
	}
	return spaces.lacking != SPACES_NOTHING;
}

static void add_switches(struct facts *facts, bool lacks_spaces)
{
	for (const struct probe_switch *row = probe_switches; row->path != NULL; row++) {
		char text[SYSCTL_MAX];
		struct probe_fact *fact;

		if (!probe_read(row->path, text))
			continue;
		fact = add_fact(facts, strrchr(row->path, '/') + 1, "%s", text);
		/*
		 * Another row says that namespaces are missing; this row says that its
		 * sysctl is the cause.
		 */
		if (lacks_spaces && probe_switch_closes(row, text)) {
			(void)snprintf(fact->value, sizeof(fact->value),
				       "%.32s: no user namespaces may be made here", text);
			set_missing(fact, "%s", row->remedy);
		}
	}
}

static void add_landlock(struct facts *facts)
{
	int abi = landlock_abi();
	int code = errno;

	if (abi >= LANDLOCK_ABI_SCOPES) {
		(void)add_fact(facts, "Landlock", "ABI %d", abi);
	} else if (abi > 0) {
		(void)add_fact(facts, "Landlock",
			       "ABI %d: at L2 programs cannot send signals by number, that "
			       "needs ABI %d (Linux 6.12)",
			       abi, LANDLOCK_ABI_SCOPES);
	} else {
		struct probe_fact *fact =
			add_fact(facts, "Landlock", "no: %s", strerror(code));
		set_missing(fact, "%s", probe_landlock_remedy(code));
	}
}

static void add_seccomp(struct facts *facts)
{
	bool found = probe_seccomp();
	int code = errno;

	if (found)
		(void)add_fact(facts, "seccomp filters", "yes");
	else
		set_missing(add_fact(facts, "seccomp filters", "no: %s", strerror(code)),
			    "%s", probe_seccomp_remedy(code));
}

static void add_openat2(struct facts *facts)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
	auto_close int fd = (int)syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof(how));

	if (fd >= 0)
		(void)add_fact(facts, "openat2", "yes");
	else
		set_missing(add_fact(facts, "openat2", "no: %s", strerror(errno)),
			    "a kernel of 5.12 or newer, and no seccomp profile that hides openat2");
}

enum { GROUPS_TEXT_MAX = 64 };

/* How exact the accounts of a cell can be, and what they and some limits lack here. */
static void add_accounts(const struct cgroup_place *place, struct facts *facts)
{
	if (place->folders[CGROUP_TIME] < 0)
		(void)add_fact(facts, "accounts",
			       "estimates; exact ones, --cpus and limits.cpu_s need a control "
			       "group: systemd-run %s--scope -p Delegate=yes glovebox …",
			       geteuid() == 0 ? "" : "--user ");
	else if (place->folders[CGROUP_CPU] < 0)
		(void)add_fact(facts, "accounts", "exact; --cpus lacks the controller cpu");
	else if (place->folders[CGROUP_IO] < 0)
		(void)add_fact(facts, "accounts",
			       "exact but for bytes of disks; limits.written and --io-write "
			       "need %s",
			       place->version == 2 ? "the controller io"
						   : "control groups of version 2");
	else
		(void)add_fact(facts, "accounts", "exact");
}

/* Control groups are optional: without them workers count by themselves. */
static void add_groups(struct facts *facts)
{
	static const char *const names[CGROUP_FOLDERS] = {
		[CGROUP_MEMORY] = " memory", [CGROUP_PIDS] = " pids",
		[CGROUP_TIME] = " time",     [CGROUP_CPU] = " cpu",
		[CGROUP_IO] = " io",
	};
	struct cgroup_place place;
	struct buf found;

	cgroup_find("", &place);
	buf_init(&found, GROUPS_TEXT_MAX);
	for (int i = 0; i < CGROUP_FOLDERS; i++)
		(void)buf_adds(&found, place.folders[i] >= 0 ? names[i] : "");
	if (place.version == 0)
		(void)add_fact(facts, "control groups",
			       "none for this user: memory and "
			       "processes are counted every 100 ms");
	else
		(void)add_fact(facts, "control groups", "version %d:%s", place.version,
			       found.data);
	add_accounts(&place, facts);
	buf_fini(&found);
	cgroup_leave(&place);
}

size_t probe_kernel(struct probe_fact items[PROBE_FACTS_MAX])
{
	struct facts facts = {items, 0};
	struct utsname name;

	if (uname(&name) == 0)
		(void)add_fact(&facts, "kernel", "%s %s, %s", name.sysname, name.release,
			       name.machine);
	add_switches(&facts, add_namespaces(&facts));
	add_landlock(&facts);
	add_seccomp(&facts);
	add_openat2(&facts);
	add_groups(&facts);
	return facts.count;
}

/* Finds the level of this machine, and the reason why it is not higher. */

const struct level_row probe_levels[] = {
	{"L3", SANDBOX_SEALED, "namespaces, Landlock and seccomp",
	 "what is outside does not exist; all promises hold"},
	{"L2", SANDBOX_RULES, "Landlock and seccomp",
	 "files outside are closed (their names and sizes can be seen), no network, not even a "
	 "loopback, no signals out; nothing can be hidden in a writable folder, /tmp and memory "
	 "have no limit"},
	{"L0", SANDBOX_OPEN, "seccomp where the kernel has it; no wall over files",
	 "every file of yours can be read and changed; with seccomp no network, no sockets of "
	 "the host, no signals out, no tracing, a small kernel; without it, which every result "
	 "says, only an environment of its own, closed descriptors, limits and an end"},
	{0},
};

static void say(struct probe_reach *reach, enum sandbox_level level, const char *what,
		const char *why, const char *remedy)
{
	reach->strength.level = level;
	(void)snprintf(reach->because, sizeof(reach->because), "%s: %.*s", what,
		       PROBE_VALUE_MAX / 2, why);
	(void)snprintf(reach->remedy, sizeof(reach->remedy), "%s", remedy);
}

static struct probe_reach found;
static pthread_once_t found_once = PTHREAD_ONCE_INIT;

static void find_reach(void)
{
	struct probe_reach *reach = &found;
	struct probe_spaces spaces;
	int shown;

	reach->strength.level = SANDBOX_SEALED;
	if (!probe_seccomp()) {
		int code = errno;
		say(reach, SANDBOX_OPEN, "no seccomp filters", strerror(code),
		    probe_seccomp_remedy(code));
		reach->strength.unfiltered = true;
		return;
	}
	if (landlock_abi() == 0) {
		int code = errno;
		say(reach, SANDBOX_OPEN, "no Landlock", strerror(code),
		    probe_landlock_remedy(code));
		return;
	}
	/*
	 * The kernel gives root the ID maps of the children of a process that hides its memory: an
	 * ordinary user could write none, and would seem to have no user namespaces.
	 */
	shown = prctl(PR_GET_DUMPABLE);
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	probe_namespaces(&spaces);
	if (shown != 1)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/*
	 * A shortage of the moment does not lower the level. A cell of L3 reports it
	 * itself, and is never built weaker.
	 */
	if (spaces.lacking != SPACES_NOTHING && spaces.lacking != SPACES_UNTRIED)
		say(reach, SANDBOX_RULES,
		    spaces.lacking == SPACES_USER     ? "user namespaces"
		    : spaces.lacking == SPACES_OTHERS ? "namespaces"
		    : spaces.lacking == SPACES_PROC   ? "a /proc of one's own"
						      : "a view of mounts",
		    spaces.because, spaces.remedy);
}

void probe_reach(struct probe_reach *reach)
{
	(void)pthread_once(&found_once, find_reach);
	*reach = found;
}
