/* cell_parts: the inside of a cell, shared by cell*.c only. */
#pragma once
#include "cell/anchor.h"
#include "cell/cell.h"
#include "process/loop.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * A short call is answered before this time, so no worker is made beside it. A longer
 * call leaves a ready worker to the next call.
 */
enum { REFILL_AFTER_MS = 5 };

struct cell {
	struct cell_options options;
	struct timer refill;
	struct cell_spec spec;
	struct cell_record record;
	int control;
	int anchor_pidfd;
	int questions_fd;  /* sandbox_overhear; -1: none */
	uint64_t unrouted; /* the result of lookups_count_unrouted when it was last read */
	bool grouped;      /* groups_open was called */
	struct groups *groups; /* or NULL: workers watch their limits themselves */
	struct watch control_watch;
	struct outlet *outlet; /* NULL: no host is listed or asked for */
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
};

/* Mark CELL as broken for the reason ERR, unless CELL already has a reason. */
void cell_break(struct cell *cell, const struct err *err);
/* Is the proxy not walled in yet? No call may begin before that. */
bool cell_outlet_waits(const struct cell *cell);
/*
 * Read the messages that arrived since the last turn of the loop. A caller that turns the
 * loop only in its calls would otherwise begin each call with old messages.
 */
void cell_catch_up(struct cell *cell);

/* Request workers until COUNT of KIND are idle or on their way (cell_ready.c). */
void cell_keep(struct cell *cell, enum worker_kind kind, size_t count);
/*
 * The same for WAITING calls or, when WAITING is 0, for the workers that are kept ahead.
 */
void cell_keep_ready(struct cell *cell, size_t waiting);
/*
 * The callback of the timer `refill`: free the workers that are over, and request new
 * ones.
 */
void cell_refill_due(struct timer *timer);

/* Add the worker of a reply of the anchor. The cell takes ownership of FDS. */
void cell_add_worker(struct cell *cell, const int fds[ANCHOR_FDS], enum worker_kind kind);
/* The same for a worker requested by cell_ask_widened (cell_widen.c). */
void cell_add_widened(struct cell *cell, const int fds[ANCHOR_FDS]);
void cell_free_worker(struct worker_end *worker);
size_t cell_count_workers(const struct cell *cell, enum worker_state state, bool prepared);
/*
 * Give each complete frame to its receiver; WORKER may be gone after each. True when a
 * worker that serves no call has sent something.
 */
bool cell_read_worker(struct worker_end *worker);
