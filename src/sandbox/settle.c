/*
 * settle: the anchor's last steps. Each is one short function, so that the order can be
 * read in sandbox_settle.
 */
#include "base/fd.h"
#include "sandbox/family.h"
#include "sandbox/privilege.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * The kernel counts processes per user and user namespace. Without a new namespace it
 * counts all other processes of the user as well.
 */
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
