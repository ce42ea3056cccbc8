/*
 * sandbox: the walls of a worker, and the last steps of an anchor. Each step is one
 * short function, so that the order can be read in sandbox_enter and sandbox_settle.
 */

#include "sandbox/sandbox.h"

#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "sandbox/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The walls of a worker. */

/* After the first wrap of a pid namespace the kernel gives out no numbers below this. */
enum {
	PIDS_KEPT_BACK = 300,
	PIDS_MOST = 1 << 22, /* the kernel's own ceiling, PID_MAX_LIMIT */
};

/* Files of a worker's /proc that reveal the machine or act on it. */
static const char *const masked_files[] = {
	"/proc/kcore",         "/proc/keys",       "/proc/key-users",
	"/proc/kallsyms",      "/proc/kmsg",       "/proc/timer_list",
	"/proc/sysrq-trigger", "/proc/kpagecount", "/proc/kpageflags",
	"/proc/kpagecgroup",   "/proc/config.gz",
};

static bool mask_file(const char *path, struct err *err)
{
	if (mount("/dev/null", path, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
		return err_set(err, errno, "masking %s: %s", path, strerror(errno));
	return true;
}

/*
 * Before Linux 6.14 pid_max is one number for the whole machine, and root may write it.
 */
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
 * When memory runs out, the kernel kills this worker before processes outside. A process
 * that is not dumpable may not write its own oom_score_adj, so the worker is dumpable for
 * that moment; nobody in the cell can reach it yet. The file and the former score are
 * kept in REACH, since a worker must outlive the programs it starts.
 */
static bool out_of_memory_first(struct reach *reach, struct err *err)
{
	int closed = prctl(PR_GET_DUMPABLE);

	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	reach->score_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	if (reach->score_fd >= 0) {
		(void)!read(reach->score_fd, reach->score, sizeof(reach->score) - 1);
		(void)!write(reach->score_fd, "1000", strlen("1000"));
	}
	if (closed != 1 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_set(err, errno, "closing a worker to debuggers: %s",
			       strerror(errno));
	return true;
}

bool sandbox_enter(const struct walls *walls, struct reach *reach, struct err *err)
{
	*reach = (struct reach){.alone = walls->level >= SANDBOX_SEALED,
				.children_fd = -1,
				.ruleset = -1,
				.score_fd = -1};
	if (walls->level >= SANDBOX_SEALED
		    ? !proc_mount(walls->processes, err)
		    : !identity_family_begin(walls->processes, reach, err))
		return false;
	if (!out_of_memory_first(reach, err) || !identity_privilege_reduce(0, err))
		return false;
	if (walls->level >= SANDBOX_SEALED)
		return identity_landlock_write_below(walls->writable, err) &&
		       identity_filter_enter(walls->level, walls->listener, err);
	if (walls->level == SANDBOX_RULES &&
	    !identity_family_close(walls->rules, reach, err))
		return false;
	return walls->level == SANDBOX_NONE ||
	       identity_filter_enter(walls->level, walls->listener, err);
}

/* The last steps of the anchor. */

/*
 * The kernel counts processes per user and user namespace. Without a new namespace it
 * counts all other processes of the user as well.
 */
static bool limits_set(enum sandbox_level level, const struct sandbox_limits *limits,
		       struct err *err)
{
	return identity_privilege_limit(RLIMIT_CORE, 0, "core files", err) &&
	       identity_privilege_limit(RLIMIT_NOFILE, limits->open_files, "open files",
					err) &&
	       identity_privilege_limit(RLIMIT_FSIZE, limits->file_size, "file size", err) &&
	       identity_privilege_limit(RLIMIT_NPROC,
					limits->processes +
						(level < SANDBOX_SEALED
							 ? identity_tasks_of_user()
							 : 0),
					"processes", err);
}

/* Set the host name, and forbid further user namespaces. */
static bool spaces_settle(struct err *err)
{
	if (sethostname(SANDBOX_HOST_NAME, strlen(SANDBOX_HOST_NAME)) < 0)
		return err_set(err, errno, "host name: %s", strerror(errno));
	return fd_write_file("/proc/sys/user/max_user_namespaces", "0", err);
}

static bool privileges_settle(enum sandbox_level level, struct err *err)
{
	/*
	 * A process without capabilities has nothing to lock. PR_SET_NO_NEW_PRIVS is
	 * enough for it.
	 */
	if ((level >= SANDBOX_SEALED || geteuid() == 0) && !identity_privilege_lock(err))
		return false;
	if (!identity_privilege_reduce(level >= SANDBOX_SEALED ? 1ULL << CAP_SYS_ADMIN : 0,
				       err))
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
	return limits_set(level, limits, err) &&
	       identity_privilege_close(keep, count, err) && privileges_settle(level, err) &&
	       (level >= SANDBOX_SEALED || identity_family_settle(level, reach, err));
}
