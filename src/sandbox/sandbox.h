/*
 * sandbox: how a process locks itself in. The order of calls is that of the functions
 * here; each fails closed: on false the caller exits and nothing of the user's has run.
 *
 *   front    sandbox_identity, sandbox_open_mapping and sandbox_copy_tree (root only)
 *   anchor   sandbox_clone, sandbox_become, sandbox_build, sandbox_join, sandbox_listen,
 *            sandbox_overhear, sandbox_settle
 *   worker   sandbox_clone_worker, sandbox_enter
 *
 * Each takes the level at which the cell is built and does what that level can: below L3
 * no namespace is made, the view is not mounted but turned into rules, and what L3 has
 * from its pid namespace (that all ends) is had from a signal domain and a subreaper.
 *
 * Nothing here knows of tools, policies or calls.
 *
 * The system-call filter is made at build time (filter_make.c) and compiled in as a
 * table, so that a start pays only for installing it and the program does not need
 * libseccomp. That library gives the numbers of names. The instructions are ours,
 * because its own are twice as many and the kernel translates them for every worker. A
 * refused call is one row in filter_make.c; it is in calls_explained when its caller
 * deserves a sentence.
 *
 * A cell of root runs as the owner of the workspace or, when that is root, as
 * SANDBOX_UID with ID-mapped mounts of the workspace. The front copies trees below a
 * closed home (`/root/.cargo/bin`), which it can still reach, and hands them over
 * detached.
 *
 * Between start and exec every program gets a second, small filter under which
 * `openat2` does not exist, because no filter can see a set-id bit in the memory that
 * holds its mode. Workers need the call.
 *
 * A new wall is a function that sandbox_settle calls once for each cell, or
 * sandbox_enter for each worker. It comes with a case in tests/cell/ that succeeds
 * bare and fails in the cell.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct sock_fprog;
struct view;

/*
 * How strong a cell is (docs/security.md). Zero is the weakest on purpose: nobody
 * gets L3 by forgetting.
 */
enum sandbox_level {
	SANDBOX_NONE,   /* L0: no wall; environment, descriptors and limits only */
	SANDBOX_FILTER, /* L1: seccomp */
	SANDBOX_RULES,  /* L2: Landlock and seccomp */
	SANDBOX_SEALED, /* L3: namespaces, Landlock and seccomp */
};

/* Of a helper that makes a handful of calls of the kernel, without recursion. */
enum { SANDBOX_HELPER_STACK = 16 << 10 };

struct sandbox_identity {
	uid_t uid; /* inside and, by a one-line map, outside */
	gid_t gid;
	bool change;   /* the process is root and becomes uid:gid */
	bool map_root; /* root's own trees are shown as owned by uid (ID-mapped mounts) */
};

/*
 * A number without an account for what root's cell runs as: not 65534, which stands for
 * every unmapped owner, and below 2^21, since a ustar archive has seven octal digits for
 * an owner.
 */
enum { SANDBOX_UID = 1985229 };

/*
 * Is this process root, with other users to become? In a user namespace that has no other
 * ID (`unshare -r`, some containers) root is an ordinary user's other name, and counts as
 * him.
 */
bool sandbox_is_root(void);

/*
 * An ordinary user stays who he is. Root becomes the owner of the workspace (WORKSPACE:
 * its stat), or SANDBOX_UID when the workspace is root's own.
 */
void sandbox_identity(const struct stat *workspace, struct sandbox_identity *identity);

/*
 * Root only. An ID mapping that shows uid 0 and gid 0 as IDENTITY's, for
 * sandbox_copy_tree; one serves all trees of a cell. Start it as {.fd = -1}. Its helper
 * has ended, but is still to be waited for: by sandbox_end_helper, when there is time, or
 * sandbox_close_mapping.
 */
struct sandbox_mapping {
	int fd; /* -1: none */
	pid_t helper;
	void *stack; /* the helper's */
};
bool sandbox_open_mapping(const struct sandbox_identity *identity,
			  struct sandbox_mapping *mapping, struct err *err);
void sandbox_end_helper(struct sandbox_mapping *mapping);
void sandbox_close_mapping(struct sandbox_mapping *mapping);

/*
 * Root only: a detached copy of the tree at FD, which a cell of another user can show
 * although it could not reach the place. MAPPING -1: owners stay. EINVAL when the file
 * system has no ID mapping.
 */
bool sandbox_copy_tree(int fd, int mapping, int *tree, struct err *err);

/*
 * A detached copy of the tree at PATH, for a process that is not root. PATH must still
 * lead to the file that HELD holds, else ESTALE.
 */
bool sandbox_take_tree(int held, const char *path, int *tree, struct err *err);

/* The network on its way, between sandbox_clone and sandbox_join; nobody else's business. */
struct sandbox_network {
	int lives; /* the helper that makes it */
	int fd;    /* its namespace */
	int code;  /* errno of what failed, at `step` */
	const char *step;
	__attribute__((aligned(16))) char stack[SANDBOX_HELPER_STACK];
};

/*
 * Clone this process, at L3 into new user, mount, pid, ipc, uts, net and cgroup
 * namespaces. In the child returns true with *PID 0, after its id maps are written; its
 * network is still being made, in *NETWORK. FLAGS: CLONE_PARENT or 0. *PIDFD is of the
 * child, in the parent only.
 */
bool sandbox_clone(enum sandbox_level level, const struct sandbox_identity *identity,
		   unsigned long flags, struct sandbox_network *network, pid_t *pid,
		   int *pidfd, struct err *err);

/*
 * In the child: become the identity, leave the terminal's session. At L3 die with the
 * front (PARENT_PIDFD is the front's and is closed); below it stay open to it: an anchor
 * without a pid namespace has to outlive the front, to end what is in the cell.
 */
bool sandbox_become(enum sandbox_level level, const struct sandbox_identity *identity,
		    int parent_pidfd, struct err *err);

/*
 * L3: build VIEW under a new root and pivot into it. Entries are sorted in place: shallow
 * before deep; at one path trees, overlays, pins, read-only pins, masks. *RULES is -1.
 * L2: turn VIEW into a Landlock ruleset for the workers, *RULES; what rules cannot say
 * (texts, memory, overlays, pins) is left out. Below: nothing, -1.
 */
bool sandbox_build(enum sandbox_level level, struct view *view, int *rules, struct err *err);

/*
 * In an anchor or in a worker of it that has not entered: add the entries of VIEW, whose
 * trees are detached, to the view that stands (L3). False: it may stand in part, so a
 * worker ends; in an anchor sandbox_narrow takes PATH's mount away again.
 */
bool sandbox_widen(struct view *view, struct err *err);
void sandbox_narrow(const char *path);

/* Enter NETWORK as soon as it is ready, with its loopback up. */
bool sandbox_join(struct sandbox_network *network, struct err *err);

/*
 * Listeners on the loopback of the cell, after sandbox_join and before its rights are
 * dropped: on 127.0.0.1, and on ::1 when there is one (*SIX is -1 else). PORT 0: any, and
 * no second one.
 */
bool sandbox_listen(uint16_t port, int *four, int *six, struct err *err);

/*
 * A socket that gets a copy of each datagram for port 53 of the cell's loopback, with its
 * IP and UDP headers, cut at SANDBOX_QUESTION_MAX bytes. No process has to take part: the
 * kernel keeps the copies until somebody reads them, and refuses the datagrams
 * themselves. At the same place as sandbox_listen.
 */
enum { SANDBOX_QUESTION_MAX = 1024 };
bool sandbox_overhear(int *fd, struct err *err);

struct sandbox_limits {
	uint64_t processes; /* per cell, RLIMIT_NPROC (not applied to real uid 0) */
	uint64_t file_size; /* bytes, RLIMIT_FSIZE */
	uint64_t open_files;
};

/* How an anchor or worker finds and ends what is left behind. */
struct reach {
	/* kill(-1) reaches that and nothing else: own pid namespace or signal domain */
	bool alone;
	/* else the kernel's list of its children, to be read from the start; or -1 */
	int children_fd;
	/* a Landlock ruleset that puts programs out of reach of their worker; or -1 */
	int ruleset;
	/*
	 * a worker's own oom_score_adj, which is 1000 now, and what it was before; or -1.
	 * Its programs cannot reach it
	 */
	int score_fd;
	char score[8];
};

/* The name of the machine in a cell that has one of its own; its /etc/hosts knows it. */
#define SANDBOX_HOST_NAME "glovebox"

/*
 * L3: host name, no further user namespaces, capabilities down to CAP_SYS_ADMIN of this
 * namespace. L2: none, and a signal domain of the cell's own. All: limits, no new
 * privileges, and every descriptor but KEEP (sorted, COUNT) closed.
 */
bool sandbox_settle(enum sandbox_level level, const struct sandbox_limits *limits,
		    const int *keep, size_t count, struct reach *reach, struct err *err);

/* Clone, at L3 into new pid and mount namespaces. In the child *PID is 0. */
bool sandbox_clone_worker(enum sandbox_level level, pid_t *pid, int *pidfd, struct err *err);

struct walls {
	enum sandbox_level level;
	int rules; /* of sandbox_build; closed */
	/* NULL-ended: paths of the view below which files may be written */
	const char *const *writable;
	/* per command: pid_max of its namespace, plus 300 that the kernel keeps back */
	uint64_t processes;
	/*
	 * Becomes the descriptor that tells of refused calls (sandbox_refuse_next), -1 on
	 * a kernel that has none; NULL: nobody will listen, all are refused at once.
	 */
	int *listener;
};

/*
 * Own /proc with its masks (L3), no capabilities, Landlock, seccomp. Afterwards nothing
 * can be undone.
 */
bool sandbox_enter(const struct walls *walls, struct reach *reach, struct err *err);

/*
 * A call that the filter refused, of those that are worth a sentence. A program waits in
 * its call until it is taken here, so LISTENER is polled as long as one runs; the process
 * that listens must never make such a call itself.
 */
struct sandbox_refusal {
	char call[64];      /* "mount", "socket(AF_PACKET)" */
	const char *remedy; /* a clause */
};

/*
 * Refuse the next call that waits at LISTENER (always EPERM, never continued) and say
 * which it was. False when none waits.
 */
bool sandbox_refuse_next(int listener, struct sandbox_refusal *refusal);

/*
 * A second filter, loaded between the start of a program in a worker and its exec. At
 * every level openat2 is for the worker's own file tools: its mode lies in memory, where
 * no filter sees a set-id bit; programs fall back to openat. *ASKS: calls that change
 * modes, owners and times come to the filter's listener, for sandbox_answer (L2: Landlock
 * does not judge them).
 */
const struct sock_fprog *sandbox_program_filter(enum sandbox_level level, bool *asks);

/*
 * Take one call from LISTENER and do in the program's place what it wanted when the file
 * lies at or below one of WRITABLE (NULL-ended, real paths); else it gets EPERM. The file
 * is held while it is judged and changed, so swapping names gains nothing.
 */
void sandbox_answer(int listener, const char *const *writable);

/* The ABI of this kernel's Landlock, 0 when there is none. */
int sandbox_landlock_abi(void);
