/*
 * cell: the front's end of one cell: its anchor, and the workers that are ready, busy, or
 * on their way. Works in the caller's loop; nothing here waits but cell_open and
 * cell_close.
 *
 * The front opens every root once and makes the specification (view/shape.h). It has the
 * anchor made by a starter (starter.h), which has nothing of this process's memory, or, for
 * one-shot verbs that hold no key, clones it out of this process. A step of the set-up that fails ends the
 * set-up, and nothing has run.
 */
#pragma once

#include "base/err.h"
#include "cell/anchor.h"
#include "cell/groups.h"
#include "cell/pending.h"
#include "cell/publish.h"
#include "process/frame.h"
#include "process/loop.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long an idle cell that may be `dormant` keeps its workers. */
enum { CELL_DORMANT_MS = 30 * 1000 };

struct cell;
struct credential;
struct outlet;
struct starter;
struct vault;

enum worker_state { WORKER_MAKING, WORKER_IDLE, WORKER_BUSY, WORKER_OVER };

/* The kind of worker that a call wants. */
enum worker_want {
	/* a worker that has started no program and so can be kept: file tools */
	WANT_KEPT,
	WANT_ANY,      /* programs of any tool */
	WANT_PREPARED, /* a prepared one (tool.h) when there is one */
	WANT_RESIDENT, /* the one that makes all these calls (tool.h) */
	/* the resident one while it is idle, else as WANT_KEPT */
	WANT_BY_RESIDENT,
};

/* A worker as the front sees it. */
struct worker_end {
	struct cell *cell;
	enum worker_state state;
	bool prepared;
	bool resident; /* for WANT_RESIDENT and WANT_BY_RESIDENT only */
	bool made;     /* the worker has reported that its walls stand */
	/* the only call it serves, because it sees more (cell_ask_widened); 0: any */
	uint64_t of_call;
	bool stale; /* made before the cell was widened: it serves no further call */
	/* why it could not lock itself in, when it is for one call; or NULL */
	char *refused;
	int socket, pidfd;
	struct group_end group;
	struct frame_reader reader;
	struct watch watch;
	/*
	 * While busy: called with a FRAME that has arrived, or with NULL when the
	 * worker has died. Returns true when FRAME was a result and the worker is now
	 * busy with another call, whose frames may have arrived at the same time.
	 */
	bool (*frame)(void *context, const struct frame *frame);
	void *context;
	struct worker_end *next;
};

/* The part of a cell that is kept on disk for a later front (pending.h). */
struct cell_record {
	struct pending *pending; /* or NULL */
	bool wanted;    /* there is a state folder, so `pending` should not be NULL */
	bool audit_due; /* something may be left that no audit has looked at */
};
/* For shape_options, whose context is a struct cell_record. */
void cell_hold_guard(void *record, const char *folder, const char *workspace,
		     struct guard *guard);
bool cell_has_granted(void *record);
void cell_record_close(struct cell_record *record);

struct cell_options {
	/* both are moved into the cell, also on failure */
	struct cell_spec *take_spec;
	struct cell_record *take_record;
	struct loop *loop;
	const struct tool *const *tools;
	const char *program;     /* as in session.h */
	struct starter *starter; /* as in session.h */
	bool direct;
	const struct policy_limits *limits; /* of each worker's group, and the cell's (groups.h) */
	/* make a group of the whole cell for its accounts, where that is possible */
	bool exact;
	bool one;       /* … which is for one command */
	unsigned ready; /* workers kept idle ahead */
	/*
	 * these are prepared for commands; one plain worker more is kept for file tools
	 */
	bool prepared;
	/* a worker became idle, or one could not be made */
	void (*changed)(void *context);
	bool rests; /* as in session.h */
	/*
	 * After CELL_DORMANT_MS without a call the idle workers and the groups process end;
	 * the next call has new ones made. Nothing is made ahead of the first call, also no
	 * worker and, where no limit needs one, no control group of the cell when the starter is
	 * shared and another cell has had one. A second call
	 * before that has groups and a worker made for the next.
	 */
	bool dormant;
	/* as in cell/vault.h; not with `direct`, because the front gets to know keys */
	const struct credential *credentials;
	size_t credential_count;
	const char *person_home;
	const char *const *person_environment;
	/* called once, while other processes make the cell; not with `direct`; or NULL */
	void (*meanwhile)(void *context);
	void *meanwhile_context;
	/* answers the oldest cell_widen that has no answer yet; ERR NULL: it is done */
	void (*widened)(void *context, const struct err *err);
	/* both as in outlet.h */
	void (*asked)(void *context, uint64_t call, uint64_t connection,
		      const char *target, const char *because);
	void (*refused)(void *context, uint64_t call, const char *target,
			const char *rule, const char *remedy);
	void *context;
	/*
	 * turns the reason why the cell broke into what the machine lacks for
	 * MINIMUM_LEVEL; or NULL
	 */
	bool (*explain)(int minimum_level, struct err *err);
	int minimum_level;
};

/*
 * Returns when the first worker is ready. With `dormant` and a starter that is shared, it
 * returns for all cells but the first while the cell is being built: `changed` is called when
 * cell_is_built or cell_broken may say something new. With `direct` it returns immediately: the call
 * waits in the socket of the worker while the worker is being made. Errors of the making
 * are then reported by cell_broken and the end of the call.
 */
bool cell_open(const struct cell_options *options, struct cell **cell, struct err *err);
void cell_close(struct cell *cell);
/*
 * Can CELL run calls? Calls that begin before that wait; cell_broken says when it cannot. A cell
 * whose first worker was refused was not built: nothing has run in it.
 */
bool cell_is_built(const struct cell *cell);
/*
 * Kill everything in CELL, which is broken from then on. A caller that ends many cells calls
 * this for all of them first. WAITS: wait until nothing of it is left, and close its files,
 * after which no later front looks for what it may have left. After a call without it, this may
 * be done in a thread for each cell.
 */
void cell_abandon(struct cell *cell, bool waits);
/*
 * Replace the estimates in ACCOUNTS by what was counted for all of CELL so far: by its control
 * group where it has one, and the bytes of the network by its proxy and its broker. HOSTS
 * (or NULL) gets {host, in, out} for each host.
 */
void cell_accounts(const struct cell *cell, struct accounts *accounts, struct value *hosts);
const struct cell_spec *cell_spec(const struct cell *cell);
/* NULL when the policy neither lists a host nor asks for hosts, and uses no credential. */
struct outlet *cell_outlet(const struct cell *cell);
/* NULL when the cell uses no credential. */
struct vault *cell_vault(const struct cell *cell);
/* Where the ports of the cell are published. */
const struct publish *cell_publish(const struct cell *cell);
/*
 * Has a packet found no route out of the cell since the last call of this function? Also
 * true when that is unknown. When false, no program can rightly say that it had no route.
 */
bool cell_lost_route(struct cell *cell);
/*
 * Take the listener of the socket that the view has at PATH (VIEW_SOCKET). -1: there is no
 * such socket, the anchor has not made it yet, or it was taken before.
 */
int cell_take_socket(struct cell *cell, const char *path);
/*
 * The socket that receives the questions of programs for names (outlet.h); -1: there is
 * none.
 */
int cell_questions(const struct cell *cell);

/*
 * Take a worker, which becomes busy. A worker that is still locking itself in takes its
 * call when it is done. NULL when there is none yet: one is being made, and `changed`
 * will be called. WAITING: the number of calls that want a worker.
 */
struct worker_end *cell_take_worker(struct cell *cell, enum worker_want want,
				    size_t waiting);

/*
 * Widening: what a person allows one call, or all later calls, in addition
 * (shape.h). ADDITION is made by shape_extra and stays the property of the caller.
 *
 * cell_ask_widened has a worker made that sees ADDITION, for CALL (a number, never 0)
 * only. cell_take_widened returns that worker, or NULL while it is on its way.
 * cell_forget_widened drops it when no call will take it.
 *
 * cell_widen makes ADDITION visible to all workers made from now on; existing workers
 * serve no further call. `widened` is the answer. The view of running calls does not
 * change.
 */
bool cell_ask_widened(struct cell *cell, uint64_t call, struct cell_spec *addition,
		      struct err *err);
struct worker_end *cell_take_widened(struct cell *cell, uint64_t call);
void cell_forget_widened(struct cell *cell, uint64_t call);
bool cell_widen(struct cell *cell, struct cell_spec *addition, struct err *err);
/* The last cell_widen is done: add ADDITION to the specification of CELL as well. */
void cell_set_widened(struct cell *cell, struct cell_spec *addition);

/*
 * Has a call whose worker died, or an earlier front, possibly left something behind that
 * no audit has looked at (guard.h)? The answer is also kept on disk for the next front.
 */
bool cell_audit_due(const struct cell *cell);
void cell_set_audit_due(struct cell *cell, bool due);

/*
 * The log FD of a call that writes is held for the next front (pending_hold) until
 * cell_drop_log; FD -1: make one. False: there is a state folder, but the next front will
 * not find the log.
 */
bool cell_hold_log(struct cell *cell, int fd, struct pending_log *log);
void cell_drop_log(struct cell *cell, struct pending_log *log);
struct pending *cell_pending(const struct cell *cell);

/* The reason why no worker can be made any more; NULL while workers can be made. */
const char *cell_broken(const struct cell *cell);

/* The call is over and the worker may serve another. */
void cell_give_back(struct worker_end *worker);
/* The call is over and WORKER ends by itself. Free it in one of the next turns. */
void cell_let_go(struct worker_end *worker);
/*
 * Request the missing ready workers in one of the next turns of the loop. Call this after
 * an answer has been taken, when making workers delays nobody. While a call runs, the
 * cell does this itself, a few milliseconds after the start of the call.
 */
void cell_refill(struct cell *cell);
/* Like cell_refill, but immediately, because the loop will not turn for a while. */
void cell_rest(struct cell *cell);
/* Are workers being made? They need a processor. */
bool cell_is_making(const struct cell *cell);
/*
 * Read the frames of a busy WORKER and give them to its call, without the loop. WORKER
 * may be gone afterwards.
 */
void cell_catch_up_worker(struct worker_end *worker);
/* A worker has got its call: work that the last call left is now done beside it. */
void cell_call_sent(struct cell *cell);
/*
 * Another answer waits for a call that was just sent: postpone that work, so that the
 * call comes first.
 */
void cell_hold(struct cell *cell);
/*
 * End WORKER now, with everything that runs in it; wait up to WAIT_MS for that. False
 * when WORKER did not end in time.
 */
bool cell_kill_worker(struct worker_end *worker, int wait_ms);

/* The inside of a cell, for cell.c only. */

struct cell {
	struct cell_options options;
	struct timer refill;
	size_t programs;      /* calls of programs since the cell was last dormant */
	struct timer dormant; /* due when its workers have been idle for so long */
	struct cell_spec spec;
	struct cell_record record;
	int control;
	int anchor_pidfd;
	pid_t anchor_pid; /* of one whose pidfd has found no room; 0: none */
	int questions_fd; /* sandbox_overhear; -1: none */
	/* the result of outlet_count_unrouted when it was last read */
	uint64_t unrouted;
	bool grouped;          /* groups_open was called */
	struct groups *groups; /* or NULL: workers watch their limits themselves */
	struct groups_cell group;
	bool group_waits; /* it is made with the first worker */
	struct watch control_watch;
	struct vault *vault; /* NULL: no credential is used */
	/* NULL: no host is listed or asked for, no port published, no credential used */
	struct outlet *outlet;
	struct publish publish; /* where it is published; the proxy has the listeners */
	struct worker_end *workers;
	/* requested from the anchor, but not here yet: plain, prepared */
	size_t requested[2];
	/*
	 * calls that wait for a widened worker, in the order of the requests; 0: given up
	 */
	uint64_t *widening;
	size_t widening_count;
	struct timer open_timer; /* until the first worker is ready */
	struct err broken;
	bool abandoned; /* everything in it was killed */
	bool built;     /* the anchor has said so, where it was asked */
	bool again; /* its first starter was killed while it was asked for the anchor */
	uint64_t starter; /* `started` of the starter that was asked for the anchor */
	bool has_made;    /* a worker has locked itself in: this machine can do it */
	/* workers that ended before they had locked themselves in; 0 after one that has */
	size_t lost_in_a_row;
};
