/* family: subreaper, signal domain, and the count of tasks; see family.h. */
#include "sandbox/family.h"

#include "base/buf.h"
#include "base/fd.h"
#include "sandbox/privilege.h"
#include "sandbox/rules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_MAX = 16 << 10 };

static uint64_t status_number(const struct buf *status, const char *key)
{
	const char *at = strstr(status->data, key);

	return at == NULL ? UINT64_MAX : strtoull(at + strlen(key), NULL, 10);
}

uint64_t tasks_of_user(void)
{
	DIR *proc = opendir("/proc");
	uint64_t count = 0;
	struct buf status;

	if (proc == NULL)
		return 0;
	buf_init(&status, STATUS_MAX);
	for (struct dirent *entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
		char name[sizeof("/status") + NAME_MAX];

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		(void)snprintf(name, sizeof(name), "%s/status", entry->d_name);
		if (fd_read_at(dirfd(proc), name, &status) &&
		    status_number(&status, "\nUid:") == getuid())
			count += status_number(&status, "\nThreads:");
	}
	(void)closedir(proc);
	buf_fini(&status);
	return count;
}

static bool domain_begin(struct err *err)
{
	auto_close int ruleset = -1;

	return rules_domain(&ruleset, err) && landlock_enter(ruleset, err);
}

/*
 * Enter the domain, then test that it keeps signals in: a child that was made before, and
 * so stays outside, must be out of reach. Only then does kill(-1) end the cell and
 * nothing else.
 */
static bool domain_enter(struct err *err)
{
	int ends[2];

	if (!fd_pipe(ends, err))
		return false;
	pid_t outside = fork();
	if (outside == 0) {
		char byte;
		(void)close(ends[1]);
		(void)!read(ends[0], &byte, 1);
		_exit(0);
	}
	bool ok = outside > 0 ? domain_begin(err)
			      : err_set(err, errno, "a child: %s", strerror(errno));
	if (ok && (kill(outside, 0) == 0 || errno != EPERM))
		ok = err_set(err, EINVAL, "Landlock does not keep signals in");
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	while (outside > 0 && waitpid(outside, NULL, 0) < 0 && errno == EINTR)
		;
	return ok;
}

/*
 * Without a pid namespace: adopt the orphans of a dead worker, and keep signals inside.
 */
bool family_settle(enum sandbox_level level, struct reach *reach, struct err *err)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "taking orphans in: %s", strerror(errno));
	reach->alone =
		level == SANDBOX_RULES && sandbox_landlock_abi() >= LANDLOCK_ABI_SCOPES;
	return !reach->alone || domain_enter(err);
}

/*
 * Die with the anchor, take orphans in, and hold the list of one's children open: /proc
 * will be closed.
 */
bool family_begin(uint64_t processes, struct reach *reach, struct err *err)
{
	char name[64];
	const pid_t anchor = getppid();

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_set(err, errno, "tying a worker to the anchor: %s",
			       strerror(errno));
	if (getppid() != anchor || anchor == 1)
		return err_set(err, ESRCH, "the anchor is gone");
	if (!privilege_limit(RLIMIT_NPROC, tasks_of_user() + processes, "processes", err))
		return false;
	if (setsid() < 0)
		return err_set(err, errno, "a session of its own: %s", strerror(errno));
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return err_set(err, errno, "taking orphans in: %s", strerror(errno));
	(void)snprintf(name, sizeof(name), "/proc/%d/task/%d/children", (int)getpid(),
		       (int)getpid());
	reach->children_fd = open(name, O_RDONLY | O_CLOEXEC);
	return reach->children_fd >= 0 ||
	       err_set(err, errno, "%s: %s", name, strerror(errno));
}

/* Tried as well: the anchor, of the same user, must be out of reach. */
static bool signals_stay_in(void)
{
	return kill(getppid(), 0) < 0 && errno == EPERM;
}

bool family_close(int rules, struct reach *reach, struct err *err)
{
	if (!landlock_enter(rules, err))
		return false;
	(void)close(rules);
	reach->alone = signals_stay_in();
	if (!reach->alone && sandbox_landlock_abi() >= LANDLOCK_ABI_SCOPES)
		return err_set(err, EINVAL, "Landlock does not keep signals in");
	/* As pid 1 does: a worker lives on whatever its programs do. */
	return !reach->alone || rules_domain(&reach->ruleset, err);
}
