/*
 * probe_spaces: whether the namespaces of a cell can be had, found by going the anchor's
 * way, and what would mend it; see probe_parts.h.
 */
#include "sandbox/probe_parts.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/network.h"

/* The steps of a child that goes the anchor's way, in their order. */
enum step { STEP_USER, STEP_OTHERS, STEPS_DONE };

/* How its exit status says which mount was refused, and why: errors end before 128. */
enum { CODE_MASK = 0x7f, CODE_OF_PROC = 0x80 };

struct outcome {
	enum step step; /* the first that failed, or STEPS_DONE */
	int code;
};

static bool switch_is(const char *path, const char *value)
{
	char text[SYSCTL_MAX];

	return probe_read(path, text) && strcmp(text, value) == 0;
}

/* The anchor's own call, and the mounts that a container around us may forbid. */
static struct outcome try_anchor(struct err *err)
{
	const struct stat roots_own = {.st_uid = 0};
	struct sandbox_identity identity;
	struct sandbox_network network;
	int pidfd = -1, status = 0;
	pid_t pid;

	sandbox_identity(&roots_own, &identity);
	if (!sandbox_clone(SANDBOX_SEALED, &identity, 0, &network, &pid, &pidfd, err))
		return (struct outcome){STEP_USER, err->code};
	if (pid == 0) {
		if (!sandbox_join(&network, err))
			_exit(err->code & CODE_MASK);
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(errno & CODE_MASK);
		if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
			  NULL) < 0)
			_exit(CODE_OF_PROC | (errno & CODE_MASK));
		_exit(0);
	}
	fd_close(&pidfd);
	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	return (struct outcome){STEPS_DONE, status};
}

/* Which of the namespaces it is: unshared one after the other. */
static struct outcome try_steps(void)
{
	const int others = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			   CLONE_NEWNET | CLONE_NEWCGROUP;
	struct outcome outcome = {STEP_USER, EIO};
	int ends[2];

	if (!fd_pipe(ends, NULL))
		return outcome;
	pid_t pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER) < 0)
			outcome = (struct outcome){STEP_USER, errno};
		else if (unshare(others) < 0)
			outcome = (struct outcome){STEP_OTHERS, errno};
		else
			outcome = (struct outcome){STEPS_DONE, 0};
		(void)!write(ends[1], &outcome, sizeof(outcome));
		_exit(0);
	}
	fd_close(&ends[1]);
	if (pid > 0) {
		if (read(ends[0], &outcome, sizeof(outcome)) != (ssize_t)sizeof(outcome))
			outcome = (struct outcome){STEP_USER, EIO};
		(void)waitpid(pid, NULL, 0);
	}
	fd_close(&ends[0]);
	return outcome;
}

static const char *switch_remedy(void)
{
	static const char sys[] = "/proc/sys/kernel/";
	char path[64];

	if (switch_is("/proc/sys/user/max_user_namespaces", "0"))
		return "sudo sysctl -w user.max_user_namespaces=15000";
	(void)snprintf(path, sizeof(path), "%sunprivileged_userns_clone", sys);
	if (switch_is(path, "0"))
		return "sudo sysctl -w kernel.unprivileged_userns_clone=1";
	(void)snprintf(path, sizeof(path), "%sapparmor_restrict_unprivileged_userns", sys);
	if (geteuid() != 0 && (switch_is(path, "1") || switch_is(path, "2")))
		return "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an "
		       "AppArmor profile for glovebox with the rule \"userns,\"";
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
	 * The limits of all namespaces around this one count too, and only their owners see
	 * them.
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

static void explain_maps(struct probe_spaces *spaces, int code)
{
	const char *remedy = switch_remedy();

	if (remedy == NULL && geteuid() == 0)
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

void probe_namespaces(struct probe_spaces *spaces)
{
	struct err err = {0};
	struct outcome outcome = try_anchor(&err);
	int code = WEXITSTATUS(outcome.code);

	memset(spaces, 0, sizeof(*spaces));
	if (outcome.step != STEPS_DONE)
		explain_failure(spaces, outcome.code);
	else if (!WIFEXITED(outcome.code))
		explain_others(spaces, EIO, "cannot be used");
	else if (code > CODE_OF_PROC)
		explain(spaces, SPACES_PROC, code & CODE_MASK, "refused",
			"a container runtime has hidden parts of /proc: run the container "
			"with --security-opt systempaths=unconfined (docker) or "
			"--security-opt unmask=ALL (podman)");
	else if (code != 0)
		explain_others(spaces, code, "cannot be used");
}
