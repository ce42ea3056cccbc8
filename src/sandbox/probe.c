/* probe: trying out what a cell is made of; see probe.h. */
#include "sandbox/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/cgroup.h"
#include "sandbox/sandbox.h"

/* A sysctl is one number. */
enum { SYSCTL_MAX = 64 };

/* The steps of the child, in their order. */
enum step { STEP_USER, STEP_MAP, STEP_OTHERS, STEP_FORK, STEP_PROC, STEPS_DONE };

struct outcome {
	enum step step; /* the first that failed, or STEPS_DONE */
	int code;
};

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

/*
 * The text of a sysctl file without its line end; false when this kernel has none of
 * that name.
 */
static bool read_sysctl(const char *path, char text[SYSCTL_MAX])
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, SYSCTL_MAX - 1);

	if (n < 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return true;
}

/* In the child: one step after the other as the anchor takes them. */
static struct outcome try_namespaces(uid_t uid)
{
	char map[64];
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWUSER) < 0)
		return (struct outcome){STEP_USER, errno};
	(void)fd_write_file("/proc/self/setgroups", "deny", NULL);
	(void)snprintf(map, sizeof(map), "%u %u 1", (unsigned)uid, (unsigned)uid);
	if (!fd_write_file("/proc/self/uid_map", map, NULL))
		return (struct outcome){STEP_MAP, errno};
	if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
		    CLONE_NEWNET | CLONE_NEWCGROUP) < 0)
		return (struct outcome){STEP_OTHERS, errno};
	pid = fork();
	if (pid < 0)
		return (struct outcome){STEP_FORK, errno};
	if (pid == 0) {
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
			  NULL) < 0)
			_exit(errno);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return (struct outcome){STEP_FORK, EIO};
	if (WEXITSTATUS(status) != 0)
		return (struct outcome){STEP_PROC, WEXITSTATUS(status)};
	return (struct outcome){STEPS_DONE, 0};
}

static struct outcome probe_namespaces(void)
{
	struct outcome outcome = {STEP_FORK, EIO};
	uid_t uid = geteuid();
	int ends[2];
	pid_t pid;

	if (!fd_pipe(ends, NULL))
		return outcome;
	pid = fork();
	if (pid == 0) {
		outcome = try_namespaces(uid);
		(void)!write(ends[1], &outcome, sizeof(outcome));
		_exit(0);
	}
	fd_close(&ends[1]);
	if (pid > 0) {
		if (read(ends[0], &outcome, sizeof(outcome)) != (ssize_t)sizeof(outcome))
			outcome = (struct outcome){STEP_FORK, EIO};
		(void)waitpid(pid, NULL, 0);
	}
	fd_close(&ends[0]);
	return outcome;
}

/* Why user namespaces are refused here: the switches that distributions have for it. */
static void explain_user_namespaces(struct probe_fact *fact, int code)
{
	char text[SYSCTL_MAX];

	/*
	 * The limits of all namespaces around this one count too, and only their owners
	 * see them.
	 */
	if (code == ENOSPC)
		set_missing(fact,
			    "the limit of user namespaces is reached, here or in what is "
			    "around: raise user.max_user_namespaces there");
	else if (read_sysctl("/proc/sys/user/max_user_namespaces", text) &&
		 strcmp(text, "0") == 0)
		set_missing(fact, "sudo sysctl -w user.max_user_namespaces=15000");
	else if (read_sysctl("/proc/sys/kernel/unprivileged_userns_clone", text) &&
		 strcmp(text, "0") == 0)
		set_missing(fact, "sudo sysctl -w kernel.unprivileged_userns_clone=1");
	else if (read_sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", text) &&
		 strcmp(text, "0") != 0)
		set_missing(fact,
			    "sudo sysctl -w "
			    "kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor "
			    "profile for glovebox with the rule \"userns,\"");
	else
		set_missing(fact,
			    "a container around us forbids them: run it with a seccomp "
			    "profile that allows unshare and clone, or run on the host");
}

static void add_namespaces(struct facts *facts)
{
	struct outcome outcome = probe_namespaces();
	struct probe_fact *fact;

	if (outcome.step <= STEP_MAP) {
		fact = add_fact(facts, "user namespaces", "%s: %s",
				outcome.step == STEP_USER ? "refused" : "no ID map",
				strerror(outcome.code));
		explain_user_namespaces(fact, outcome.code);
		return;
	}
	(void)add_fact(facts, "user namespaces", "yes");
	if (outcome.step <= STEP_FORK) {
		fact = add_fact(facts, "other namespaces", "refused: %s",
				strerror(outcome.code));
		set_missing(fact, "the kernel needs mount, pid, ipc, uts, net and cgroup "
				  "namespaces; see /proc/sys/user/max_*_namespaces");
		return;
	}
	(void)add_fact(facts, "other namespaces", "mount, pid, ipc, uts, net, cgroup");
	if (outcome.step == STEP_PROC) {
		fact = add_fact(facts, "a /proc of one's own", "refused: %s",
				strerror(outcome.code));
		set_missing(fact,
			    "a container runtime has hidden parts of /proc: run the "
			    "container with --security-opt systempaths=unconfined (docker) "
			    "or --security-opt unmask=ALL (podman)");
		return;
	}
	(void)add_fact(facts, "a /proc of one's own", "yes");
}

static void add_switches(struct facts *facts)
{
	static const char *const paths[] = {
		"user/max_user_namespaces",
		"kernel/unprivileged_userns_clone",
		"kernel/apparmor_restrict_unprivileged_userns",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char path[128], text[SYSCTL_MAX];

		(void)snprintf(path, sizeof(path), "/proc/sys/%s", paths[i]);
		if (read_sysctl(path, text))
			(void)add_fact(facts, strchr(paths[i], '/') + 1, "%s", text);
	}
}

static void add_landlock(struct facts *facts)
{
	int abi = sandbox_landlock_abi();

	if (abi > 0) {
		(void)add_fact(facts, "Landlock", "ABI %d", abi);
		return;
	}
	set_missing(add_fact(facts, "Landlock", "no"),
		    "a kernel of 5.13 or newer, started with landlock in its list: see "
		    "/sys/kernel/security/lsm, and lsm= on the kernel's command line");
}

static void add_seccomp(struct facts *facts)
{
	unsigned action = SECCOMP_RET_ERRNO;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
		(void)add_fact(facts, "seccomp filters", "yes");
	else
		set_missing(add_fact(facts, "seccomp filters", "no: %s", strerror(errno)),
			    "a kernel with CONFIG_SECCOMP_FILTER");
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

/* Nothing is missing without them: workers then count for themselves. */
static void add_groups(struct facts *facts)
{
	struct cgroup_place place;

	cgroup_find("", &place);
	if (place.version == 0)
		(void)add_fact(facts, "control groups",
			       "none for this user: memory and "
			       "processes are counted every 100 ms");
	else
		(void)add_fact(facts, "control groups", "version %d:%s%s", place.version,
			       place.folders[CGROUP_MEMORY] >= 0 ? " memory" : "",
			       place.folders[CGROUP_PIDS] >= 0 ? " pids" : "");
	cgroup_leave(&place);
}

size_t probe_kernel(struct probe_fact items[PROBE_FACTS_MAX])
{
	struct facts facts = {items, 0};
	struct utsname name;

	if (uname(&name) == 0)
		(void)add_fact(&facts, "kernel", "%s %s, %s", name.sysname, name.release,
			       name.machine);
	add_namespaces(&facts);
	add_switches(&facts);
	add_landlock(&facts);
	add_seccomp(&facts);
	add_openat2(&facts);
	add_groups(&facts);
	return facts.count;
}
