/*
 * cell: the front's end of one cell: its anchor, and the workers that are ready, busy, or
 * on their way. Works in the caller's loop; nothing here waits but cell_open and
 * cell_close.
 */
#pragma once
#include "base/err.h"
#include "cell/groups.h"
#include "cell/pending.h"
#include "process/frame.h"
#include "process/loop.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <stdbool.h>
#include <stdint.h>

struct cell;
struct outlet;

enum worker_state { WORKER_MAKING, WORKER_IDLE, WORKER_BUSY, WORKER_OVER };

/* What a call wants of its worker. */
enum worker_want {
	/* one that nothing was started in, so that it can be kept: file tools */
	WANT_KEPT,
	WANT_ANY,      /* programs of any tool */
	WANT_PREPARED, /* better one that is prepared (tool.h) */
};

/* A worker as the front sees it. */
struct worker_end {
	struct cell *cell;
	enum worker_state state;
	bool prepared;
	bool made;        /* it has said that its walls stand */
	uint64_t of_call; /* it sees more, for this call alone (cell_ask_widened); 0: for any */
	bool stale; /* from before the cell was widened: it serves no further call */
	char *refused; /* why it could not lock itself in, when it is for one call; or NULL */
	int socket, pidfd;
	struct group_end group;
	struct frame_reader reader;
	struct watch watch;
	/*
	 * While busy: a frame came, or (frame NULL) the worker has died. True: it was a result,
	 * and the worker is busy with another call, whose frames may have come with it.
	 */
	bool (*frame)(void *context, const struct frame *frame);
	void *context;
	struct worker_end *next;
};

/* What is kept on disk of a cell for a later front (pending.h). */
struct cell_record {
	struct pending *pending; /* or NULL */
	bool audit_due;          /* something may be left that no audit has looked at */
};
/* For shape_options, whose context is a struct cell_record. */
void cell_hold_guard(void *record, const char *folder, const char *workspace,
		     struct value *guard);
bool cell_has_granted(void *record);
void cell_record_close(struct cell_record *record);

struct cell_options {
	/* both are moved into the cell, also on failure */
	struct cell_spec *take_spec;
	struct cell_record *take_record;
	struct loop *loop;
	const struct tool *const *tools;
	const char *program; /* as session.h */
	bool direct;
	const struct policy_limits *limits; /* of each worker's group (groups.h) */
	unsigned ready;                     /* workers kept idle ahead */
	/* these are prepared for commands; one plain worker more is kept for file tools */
	bool prepared;
	/* a worker became idle, or one could not be made */
	void (*changed)(void *context);
	bool rests; /* as session.h */
	/* once, while the cell is being made by others; not with `direct`; or NULL */
	void (*meanwhile)(void *context);
	void *meanwhile_context;
	/* the answer to the oldest cell_widen without one; ERR NULL: it is done */
	void (*widened)(void *context, const struct err *err);
	/* both as outlet.h */
	void (*asked)(void *context, uint64_t call, uint64_t connection,
		      const char *target, const char *because);
	void (*refused)(void *context, uint64_t call, const char *target,
			const char *remedy);
	void *context;
	/* turns why the cell broke into what the machine lacks for MINIMUM_LEVEL; or NULL */
	bool (*explain)(int minimum_level, struct err *err);
	int minimum_level;
};

/* Longest time until the first worker is ready; a loaded machine takes a second. */
enum { CELL_OPEN_MS = 20000 };

/*
 * Returns when the first worker is ready. With `direct` it returns at once: the call waits
 * in the worker's socket while that is being made, and what goes wrong with the making is
 * told by cell_broken and the end of the call.
 */
bool cell_open(const struct cell_options *options, struct cell **cell, struct err *err);
void cell_close(struct cell *cell);
const struct cell_spec *cell_spec(const struct cell *cell);
/* NULL when the policy lists no host. */
struct outlet *cell_outlet(const struct cell *cell);
/*
 * Has a packet found no way out of the cell since this was asked last? True also where that cannot
 * be known. Else no words of a program are true that say so.
 */
bool cell_lost_route(struct cell *cell);
/* Where programs' questions for names are read (lookups.h); -1: this cell keeps none. */
int cell_questions(const struct cell *cell);

/*
 * A worker, now busy; it may still be locking itself in, and takes its call when it has.
 * NULL when there is none yet: one is being made, and `changed` will be called. WAITING:
 * how many calls want one.
 */
struct worker_end *cell_take_worker(struct cell *cell, enum worker_want want,
				    size_t waiting);

/*
 * What a person lets a call, or all calls to come, have besides (shape_extra.h). ADDITION is
 * made by shape_extra and stays the caller's.
 *
 * cell_ask_widened has one worker made that sees it, for CALL (a number, never 0);
 * cell_take_widened gives it out, NULL as long as it is on its way; cell_forget_widened when
 * nobody will take it. It serves one call.
 *
 * cell_widen has all workers see it that are made from now on; those there are serve no further
 * call. `widened` is the answer. The calls under way see what they saw.
 */
bool cell_ask_widened(struct cell *cell, uint64_t call, struct cell_spec *addition,
		      struct err *err);
struct worker_end *cell_take_widened(struct cell *cell, uint64_t call);
void cell_forget_widened(struct cell *cell, uint64_t call);
bool cell_widen(struct cell *cell, struct cell_spec *addition, struct err *err);
/* The last cell_widen is done: what CELL is specified by has it, too. */
void cell_set_widened(struct cell *cell, const struct cell_spec *addition);

/* A call that WANTs a worker follows at once: the one it will get wakes up for it. */
void cell_expect(struct cell *cell, enum worker_want want);

/*
 * Something may have been left behind that no audit has looked at (audit.h): by a call whose
 * worker died, or by an earlier front. Kept on disk too, for the next front.
 */
bool cell_audit_due(const struct cell *cell);
void cell_set_audit_due(struct cell *cell, bool due);

/*
 * A journal for a call that writes, and back when its call is over; the writes that dead
 * fronts left, and that a worker has finished them (pending.h).
 */
void cell_give_journal(struct cell *cell, struct pending_journal *journal);
void cell_take_back_journal(struct cell *cell, struct pending_journal *journal);
const struct value *cell_unfinished(const struct cell *cell);
void cell_mended(struct cell *cell);
struct pending *cell_pending(const struct cell *cell);

/* Why no worker can be made any more, or NULL while they can. */
const char *cell_broken(const struct cell *cell);

/* The call is over and the worker may serve another. */
void cell_give_back(struct worker_end *worker);
/* The call is over; the worker ends by itself, and is let go of in one of the next turns. */
void cell_let_go(struct worker_end *worker);
/*
 * Ask for what is missing of the ready ones in one of the next turns of the loop: after an
 * answer has been taken, when the making is in nobody's way. While a call runs on the cell
 * does so itself, a few milliseconds after its start.
 */
void cell_refill(struct cell *cell);
/* The same now, since the loop will not turn for a while. */
void cell_rest(struct cell *cell);
/* Are workers on their way? Then they want a processor. */
bool cell_is_making(const struct cell *cell);
/*
 * Give what a busy WORKER has said to its call, without the loop; the worker may be gone then.
 */
void cell_catch_up_worker(struct worker_end *worker);
/* A worker has its call: what a call just before it left to do is done beside it. */
void cell_call_sent(struct cell *cell);
/* The same for a call that another's answer waits for: that comes first. */
void cell_hold(struct cell *cell);
/*
 * End it now, with all that runs in it; waits up to WAIT_MS for its end. False: it
 * could not be ended in time.
 */
bool cell_kill_worker(struct worker_end *worker, int wait_ms);
