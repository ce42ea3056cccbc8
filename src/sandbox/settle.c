/*
 * settle: the anchor's last steps, and a worker's own walls. Each step is one short
 * function, so that the order can be read in sandbox_settle and sandbox_enter.
 */
#include "base/fd.h"
#include "sandbox/family.h"
#include "sandbox/privilege.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define HOST_NAME "glovebox"

/* Numbers below this are not given out again after the first wrap of a pid namespace. */
enum {
	PIDS_KEPT_BACK = 300,
	PIDS_MOST = 1 << 22, /* the kernel's own ceiling, PID_MAX_LIMIT */
};

bool privilege_limit(int which, uint64_t most, const char *name, struct err *err)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)which, &limit) < 0)
		return err_set(err, errno, "limit of %s: %s", name, strerror(errno));
	/* Never above what the user himself is held to. */
	if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > most)
		limit.rlim_max = most;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit((__rlimit_resource_t)which, &limit) < 0)
		return err_set(err, errno, "limit of %s: %s", name, strerror(errno));
	return true;
}

static bool descriptors_close(const int *keep, size_t count, struct err *err)
{
	unsigned from = 0;

	for (size_t i = 0; i < count; i++) {
		unsigned kept = (unsigned)keep[i];
		if (kept > from && close_range(from, kept - 1, 0) < 0)
			return err_set(err, errno, "closing descriptors: %s",
				       strerror(errno));
		from = kept + 1;
	}
	if (close_range(from, UINT_MAX, 0) < 0)
		return err_set(err, errno, "closing descriptors: %s", strerror(errno));
	return true;
}

/*
 * 0, 1 and 2 lead nowhere, so that no stray message of a library reaches a frame or a
 * file.
 */
static bool standard_streams_null(struct err *err)
{
	int fd = open("/dev/null", O_RDWR); /* becomes 0 */

	if (fd != 0 || dup2(fd, 1) != 1 || dup2(fd, 2) != 2)
		return err_set(err, errno, "/dev/null: %s", strerror(errno));
	return true;
}

bool privilege_close(const int *keep, size_t count, struct err *err)
{
	return descriptors_close(keep, count, err) && standard_streams_null(err);
}

/* The kernel counts per user and user namespace; without a new one all his others too. */
static bool limits_set(enum sandbox_level level, const struct sandbox_limits *limits,
		       struct err *err)
{
	return privilege_limit(RLIMIT_CORE, 0, "core files", err) &&
	       privilege_limit(RLIMIT_NOFILE, limits->open_files, "open files", err) &&
	       privilege_limit(RLIMIT_FSIZE, limits->file_size, "file size", err) &&
	       privilege_limit(RLIMIT_NPROC,
			       limits->processes +
				       (level < SANDBOX_SEALED ? tasks_of_user() : 0),
			       "processes", err);
}

/* What the anchor's own namespaces are given. */
static bool spaces_settle(struct err *err)
{
	if (sethostname(HOST_NAME, strlen(HOST_NAME)) < 0)
		return err_set(err, errno, "host name: %s", strerror(errno));
	return fd_write_file("/proc/sys/user/max_user_namespaces", "0", err);
}

static bool privileges_settle(enum sandbox_level level, struct err *err)
{
	/* Who has no capability has none to lock: no new privileges is enough. */
	if ((level >= SANDBOX_SEALED || geteuid() == 0) && !privilege_lock(err))
		return false;
	if (!privilege_reduce(level >= SANDBOX_SEALED ? 1ULL << CAP_SYS_ADMIN : 0, err))
		return false;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "no new privileges: %s", strerror(errno));
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_set(err, errno, "closing the anchor to debuggers: %s",
			       strerror(errno));
	return true;
}

bool sandbox_settle(enum sandbox_level level, const struct sandbox_limits *limits,
		    const int *keep, size_t count, struct reach *reach, struct err *err)
{
	*reach = (struct reach){.alone = level >= SANDBOX_SEALED,
				.children_fd = -1,
				.ruleset = -1};
	if (level >= SANDBOX_SEALED && !spaces_settle(err))
		return false;
	return limits_set(level, limits, err) && privilege_close(keep, count, err) &&
	       privileges_settle(level, err) &&
	       (level >= SANDBOX_SEALED || family_settle(level, reach, err));
}

/* ---- a worker's /proc ---- */

static const char *const masked_files[] = {
	"/proc/kcore",         "/proc/keys",       "/proc/key-users",
	"/proc/kallsyms",      "/proc/kmsg",       "/proc/timer_list",
	"/proc/sysrq-trigger", "/proc/kpagecount", "/proc/kpageflags",
	"/proc/kpagecgroup",
};

static bool mask_file(const char *path, struct err *err)
{
	if (mount("/dev/null", path, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
		return err_set(err, errno, "masking %s: %s", path, strerror(errno));
	return true;
}

/* Before Linux 6.14 this number is the whole machine's, and root may write it from anywhere. */
static bool pid_limit_is_ours(void)
{
	struct utsname name;
	char *rest;

	if (uname(&name) != 0)
		return false;
	unsigned long major = strtoul(name.release, &rest, 10);
	unsigned long minor = *rest == '.' ? strtoul(rest + 1, NULL, 10) : 0;
	return major > 6 || (major == 6 && minor >= 14);
}

static bool proc_mount(uint64_t processes, struct err *err)
{
	char text[32];

	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return err_set(err, errno, "/proc: %s%s", strerror(errno),
			       errno == EPERM ? "; a container around this one masks parts of "
						"its own /proc: see `glovebox doctor`"
					      : "");
	if (pid_limit_is_ours()) {
		const uint64_t wanted = processes + PIDS_KEPT_BACK;
		const uint64_t most = wanted < PIDS_MOST ? wanted : PIDS_MOST;
		(void)snprintf(text, sizeof(text), "%" PRIu64, most);
		if (!fd_write_file("/proc/sys/kernel/pid_max", text, err))
			return false;
	}
	for (size_t i = 0; i < sizeof(masked_files) / sizeof(masked_files[0]); i++) {
		if (!mask_file(masked_files[i], err))
			return false;
	}
	if (mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, "/proc/sys", NULL,
		  MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL) < 0)
		return err_set(err, errno, "/proc/sys: %s", strerror(errno));
	return true;
}

/*
 * Who runs out of memory dies here first. A closed process may not write this about
 * itself, so it is open for that moment; nobody of the cell can reach it yet.
 */
static bool out_of_memory_first(struct err *err)
{
	int closed = prctl(PR_GET_DUMPABLE);

	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	(void)fd_write_file("/proc/self/oom_score_adj", "1000", NULL);
	if (closed != 1 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_set(err, errno, "closing a worker to debuggers: %s",
			       strerror(errno));
	return true;
}

bool sandbox_enter(const struct walls *walls, struct reach *reach, struct err *err)
{
	*reach = (struct reach){.alone = walls->level >= SANDBOX_SEALED,
				.children_fd = -1,
				.ruleset = -1};
	if (walls->level >= SANDBOX_SEALED ? !proc_mount(walls->processes, err)
					   : !family_begin(walls->processes, reach, err))
		return false;
	if (!out_of_memory_first(err) || !privilege_reduce(0, err))
		return false;
	if (walls->level >= SANDBOX_SEALED)
		return landlock_write_below(walls->writable, err) &&
		       filter_enter(walls->level, walls->listener, err);
	if (walls->level == SANDBOX_RULES && !family_close(walls->rules, reach, err))
		return false;
	return walls->level == SANDBOX_NONE ||
	       filter_enter(walls->level, walls->listener, err);
}
