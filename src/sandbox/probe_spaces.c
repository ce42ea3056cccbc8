/*
 * probe_spaces: whether the namespaces of a cell can be had, found by going the anchor's
 * way, and what would mend it; see probe_parts.h.
 */
#include "sandbox/probe_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "sandbox/identity.h"
#include "sandbox/view.h"

enum { MAP_MAX = 32 << 10 }; /* 340 lines, the kernel's most */

/* The steps of a child that goes the anchor's way, in their order. */
enum step { STEP_USER, STEP_OTHERS, STEP_PROC, STEP_VIEW, STEPS_DONE };

struct outcome {
	enum step step; /* the first that failed, or STEPS_DONE */
	int code;
};

/* In the child: what a container around us may forbid of the mounts. */
static struct outcome try_mounts(const struct sandbox_identity *identity, int parent,
				 struct sandbox_network *network)
{
	struct view_entry folder = {.kind = VIEW_FOLDER,
				    .path = "/tmp",
				    .fd = -1,
				    .mode = S_IRWXU};
	struct view view = {&folder, 1};
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
	if (!sandbox_build(SANDBOX_SEALED, &view, &rules, &err))
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

/* The anchor's own call, and a view of one empty folder. */
static struct outcome try_anchor(void)
{
	const struct stat roots_own = {.st_uid = 0};
	struct sandbox_identity identity;
	struct sandbox_network network;
	struct err err = {0};
	auto_close int parent = kernel_pidfd_open(getpid());
	int pidfd = -1, ends[2];
	pid_t pid;

	if (parent < 0)
		return (struct outcome){STEP_USER, errno};
	if (!fd_pipe(ends, &err))
		return (struct outcome){STEP_USER, err.code};
	sandbox_identity(&roots_own, &identity);
	if (!sandbox_clone(SANDBOX_SEALED, &identity, 0, &network, &pid, &pidfd, &err)) {
		fd_close(&ends[0]);
		fd_close(&ends[1]);
		return (struct outcome){STEP_USER, err.code};
	}
	if (pid == 0)
		outcome_say(ends, try_mounts(&identity, parent, &network));
	fd_close(&pidfd);
	return outcome_read(ends, pid);
}

/* Which of the namespaces it is: unshared one after the other. */
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

const struct probe_switch probe_switches[] = {
	{"/proc/sys/user/max_user_namespaces", "0", true,
	 "sudo sysctl -w user.max_user_namespaces=15000"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", true,
	 "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1 2", false,
	 "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor "
	 "profile for glovebox with the rule \"userns,\""},
	{0},
};

bool probe_switch_closes(const struct probe_switch *row, const char *value)
{
	return (row->holds_for_root || geteuid() != 0) &&
	       str_among(row->closed, str_trim(str_of(value)));
}

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

/* A /proc in which this process is found by the number that it has for itself. */
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

/* A limit of the moment: of processes, descriptors or memory, not of namespaces. */
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

void probe_namespaces(struct probe_spaces *spaces)
{
	struct outcome outcome = try_anchor();
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
