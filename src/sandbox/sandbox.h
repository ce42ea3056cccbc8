/*
 * sandbox: how a process locks itself in. The functions are called in the order in
 * which they stand here. Each fails closed: when it returns false, the caller exits,
 * and no code of the user has run.
 *
 *   front    sandbox_identity, sandbox_open_mapping and sandbox_copy_tree (root only),
 *            sandbox_take_tree (not root)
 *   anchor   sandbox_clone, sandbox_become, sandbox_build, sandbox_join, sandbox_listen,
 *            sandbox_overhear, sandbox_settle
 *   worker   sandbox_clone_worker, sandbox_enter
 *
 * Each function takes the level at which the cell is built, and does what is possible
 * at that level. Below L3 no namespace is made, and at L2 the view is turned into rules
 * instead of mounts. At L3 the pid namespace guarantees that all processes end; below
 * L3 a signal domain and a subreaper do.
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
 * How strong a cell is (docs/levels.md). Zero is the weakest on purpose, so that a
 * forgotten level is never taken for L3. The numbers stand in results and records. Number
 * 1 is in records of former versions, where L0 with its filter was a level of its own.
 */
enum sandbox_level {
	SANDBOX_OPEN = 0,   /* L0: no wall over files; seccomp where the kernel has it */
	SANDBOX_RULES = 2,  /* L2: Landlock and seccomp */
	SANDBOX_SEALED = 3, /* L3: namespaces, Landlock and seccomp */
};

/*
 * The statement of a result on its cell. `unfiltered`: the cell is of L0, and the kernel has
 * no filter of system calls. It is never true at another level.
 */
struct sandbox_strength {
	enum sandbox_level level;
	bool unfiltered;
};

/* Bytes of stack for a helper that makes a handful of system calls, without recursion. */
enum { SANDBOX_HELPER_STACK = 16 << 10 };

struct sandbox_identity {
	uid_t uid; /* user outside and, by a one-line id map, inside the cell */
	gid_t gid;
	/*
	 * L3: inside the cell this user has the number 0 and takes itself for root. It has no
	 * capability, and outside it is the same user as ever.
	 */
	bool root;
	bool change;   /* the process is root and becomes uid:gid */
	bool map_root; /* root's own trees are shown as owned by uid (ID-mapped mounts) */
};

/*
 * The user of a cell that root starts: a number without an account. It is not 65534,
 * which stands for every unmapped owner. It is below 2^21, because a ustar archive has
 * seven octal digits for an owner.
 */
enum { SANDBOX_UID = 1985229 };

/*
 * Is this process root, with other users to become? In a user namespace that has no
 * other ID (`unshare -r`, some containers) root is another name of an ordinary user and
 * is treated as one: false.
 */
bool sandbox_is_root(void);

/*
 * An ordinary user keeps their own id. Root becomes the owner of the workspace
 * (WORKSPACE: its stat), or SANDBOX_UID when root owns the workspace.
 */
void sandbox_identity(const struct stat *workspace, struct sandbox_identity *identity);

/*
 * Root only. An ID mapping that shows uid 0 and gid 0 as those of IDENTITY, for
 * sandbox_copy_tree; one mapping serves all trees of a cell. Initialise the struct as
 * {.fd = -1}. The helper process ends early and stays a zombie: reap it with
 * sandbox_end_helper when there is time, or with sandbox_close_mapping.
 */
struct sandbox_mapping {
	int fd; /* -1: none */
	pid_t helper;
	void *stack; /* of the helper */
};
bool sandbox_open_mapping(const struct sandbox_identity *identity,
			  struct sandbox_mapping *mapping, struct err *err);
void sandbox_end_helper(struct sandbox_mapping *mapping);
void sandbox_close_mapping(struct sandbox_mapping *mapping);

/*
 * Root only: make a detached copy of the tree at FD. A cell of another user can show
 * the copy even if that user cannot reach the original place. MAPPING -1: owners stay.
 * EINVAL when the file system has no ID mapping.
 */
bool sandbox_copy_tree(int fd, int mapping, int *tree, struct err *err);

/*
 * A detached copy of the tree at PATH, for a process that is not root. PATH must still
 * lead to the file that HELD holds, else ESTALE.
 */
bool sandbox_take_tree(int held, const char *path, int *tree, struct err *err);

/*
 * A network that is being made, between sandbox_clone and sandbox_join. Only sandbox.c
 * uses the members.
 */
struct sandbox_network {
	pid_t helper; /* makes the network; negative: it could not be started */
	int fd;       /* the namespace of the network */
	int code;     /* errno of the failure, at `step` */
	const char *step;
	__attribute__((aligned(16))) char stack[SANDBOX_HELPER_STACK];
};

/*
 * Clone this process, at L3 into new user, mount, pid, ipc, uts, net and cgroup
 * namespaces. In the child, returns true with *PID 0 after the id maps of the child are
 * written; *NETWORK is then still being made. NETWORK NULL: the child stays in the network and
 * the IPC namespace of the host until sandbox_join, and may run nothing but our own code before
 * that. FLAGS: CLONE_PARENT or 0. GROUP: a folder of a
 * control group of version 2, in which the child is born; or -1. *PIDFD is the child's, and
 * set in the parent only.
 */
bool sandbox_clone(enum sandbox_level level, const struct sandbox_identity *identity,
		   unsigned long flags, int group, struct sandbox_network *network,
		   pid_t *pid, int *pidfd, struct err *err);

/*
 * In the child: become the identity and leave the terminal's session. At L3 the anchor
 * dies with the front (PARENT_PIDFD is the front's and is closed). Below L3
 * PARENT_PIDFD stays open: an anchor without a pid namespace has to outlive the front,
 * to end the processes of the cell.
 */
bool sandbox_become(enum sandbox_level level, const struct sandbox_identity *identity,
		    int parent_pidfd, struct err *err);

/*
 * L3: build VIEW under a new root and pivot into it; *RULES is -1. Entries are sorted
 * in place: shallow before deep; at one path trees, overlays, pins, read-only pins,
 * masks. L2: turn VIEW into a Landlock ruleset for the workers, *RULES; entries that
 * rules cannot express (texts, memory, overlays, pins) are left out. L0: do nothing;
 * *RULES is -1.
 */
bool sandbox_build(enum sandbox_level level, struct view *view, int *rules, struct err *err);

/*
 * Enter NETWORK as soon as it is ready, with its loopback up. NULL: one is made now, which may
 * come after sandbox_settle.
 */
bool sandbox_join(struct sandbox_network *network, struct err *err);
/*
 * Give up the rights that sandbox_settle has kept for a later sandbox_join. No worker may be
 * made before that.
 */
bool sandbox_drop_network_rights(struct err *err);

/*
 * Listen on the loopback of the cell, after sandbox_join and before the rights are
 * dropped: on 127.0.0.1, and on ::1 when there is one (*SIX is -1 otherwise). PORT 0:
 * any port, and *SIX is -1.
 */
bool sandbox_listen(uint16_t port, int *four, int *six, struct err *err);

/*
 * Open a socket that gets a copy of each datagram for port 53 of the cell's loopback,
 * with its IP and UDP headers, cut at SANDBOX_QUESTION_MAX bytes. No process has to
 * take part: the kernel keeps the copies until somebody reads them, and refuses the
 * datagrams themselves. Called after sandbox_join and before the rights are dropped.
 */
enum { SANDBOX_QUESTION_MAX = 1024 };
bool sandbox_overhear(int *fd, struct err *err);

struct sandbox_limits {
	uint64_t processes; /* per cell, RLIMIT_NPROC (not applied to real uid 0) */
	uint64_t file_size; /* bytes, RLIMIT_FSIZE */
	uint64_t open_files;
};

/* How an anchor or worker finds and ends the processes that are left behind. */
struct reach {
	/*
	 * kill(-1) reaches exactly these processes, thanks to a pid namespace or signal
	 * domain
	 */
	bool alone;
	/*
	 * without `alone`: the kernel's list of its children, to be read from the
	 * start; or -1
	 */
	int children_fd;
	/*
	 * a Landlock ruleset under which programs cannot send signals to their worker;
	 * or -1
	 */
	int ruleset;
	/*
	 * a worker's own oom_score_adj, which is 1000 now, and its former value; or -1.
	 * Programs of the worker cannot reach the file
	 */
	int score_fd;
	char score[8];
};

/* The host name of a cell with its own host name; the cell's /etc/hosts lists it. */
#define SANDBOX_HOST_NAME "glovebox"

/*
 * L3: set the host name, forbid further user namespaces, drop all capabilities except
 * CAP_SYS_ADMIN of this namespace. L2: drop all capabilities, and enter a signal domain
 * of the cell's own. All levels: set limits and no new privileges, and close every
 * descriptor except KEEP (sorted, COUNT). JOINS_LATER: keep also the two capabilities that a
 * later sandbox_join, sandbox_listen and sandbox_overhear need, until
 * sandbox_drop_network_rights.
 */
bool sandbox_settle(enum sandbox_level level, const struct sandbox_limits *limits,
		    const int *keep, size_t count, bool joins_later, struct reach *reach,
		    struct err *err);

/* Clone, at L3 into new pid and mount namespaces. In the child *PID is 0. */
bool sandbox_clone_worker(enum sandbox_level level, pid_t *pid, int *pidfd, struct err *err);

struct walls {
	enum sandbox_level level;
	bool unfiltered; /* of L0: the kernel has no filter of system calls to install */
	int rules;       /* from sandbox_build; sandbox_enter closes it */
	/* NULL-ended: paths of the view below which files may be written */
	const char *const *writable;
	/* per command: pid_max of its namespace, plus 300 that the kernel reserves */
	uint64_t processes;
	/*
	 * Receives the descriptor that reports refused calls (sandbox_refuse_next), or
	 * -1 on a kernel without one. NULL: nobody will listen, and all such calls are
	 * refused immediately.
	 */
	int *listener;
};

/*
 * Lock the worker in: its own /proc with masks (L3), no capabilities, Landlock (from L2
 * up), seccomp (at L0 unless `unfiltered`). None of this can be undone.
 */
bool sandbox_enter(const struct walls *walls, struct reach *reach, struct err *err);

/*
 * A system call that the filter refused and that deserves a sentence. The calling
 * program is blocked until the call is taken here, so poll LISTENER as long as a
 * program runs. The process that listens must never make such a call itself.
 */
struct sandbox_refusal {
	char call[64];      /* "mount", "socket(AF_PACKET)" */
	const char *remedy; /* a clause */
};

/*
 * Refuse the next call that waits at LISTENER (always EPERM, never continued) and fill
 * in REFUSAL. False when none waits. ROOT: as in sandbox_program_filter; a mode with set-id
 * bits is then set without them.
 */
bool sandbox_refuse_next(int listener, bool root, struct sandbox_refusal *refusal);

/*
 * A second filter, loaded between the start of a program in a worker and its exec; NULL
 * for an UNFILTERED cell of L0. It refuses openat2, which only the worker's own file
 * tools may use: the mode lies in memory, where no filter sees a set-id bit. Programs
 * fall back to openat. ROOT: programs take themselves for root, and are told that their
 * changes of owners, users and capabilities, and devices that they make, have worked,
 * while nothing is done (L3). *ASKS: calls that change modes, owners and times go to the
 * filter's listener, for landlock_answer (L2, because Landlock does not judge them).
 */
const struct sock_fprog *sandbox_program_filter(enum sandbox_level level, bool unfiltered,
						bool root, bool *asks);

/*
 * Load the system-call filter of LEVEL (written by filter_make.c), as the last step of
 * all of sandbox_enter. *LISTENER (LISTENER may be NULL) as in struct walls.
 */
bool sandbox_filter_enter(enum sandbox_level level, int *listener, struct err *err);

/* Steps of the above, for outside.c. They take rights away from the caller for good. */

/*
 * Keep exactly the capabilities in MASK (bit n: capability n), effective and permitted.
 * The process can never get the others back.
 */
bool sandbox_privilege_reduce(uint64_t mask, struct err *err);

/*
 * Close all descriptors except KEEP (sorted, COUNT), then open /dev/null as 0, 1 and 2.
 */
bool sandbox_privilege_close(const int *keep, size_t count, struct err *err);

/* Set RLIMIT WHICH to at most MOST. NAME is for the sentence of a failure. */
bool sandbox_privilege_limit(int which, uint64_t most, const char *name, struct err *err);
