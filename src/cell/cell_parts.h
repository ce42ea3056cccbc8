/* cell_parts: the inside of a cell, shared by cell*.c only. */
#pragma once
#include "cell/anchor.h"
#include "cell/cell.h"
#include "process/loop.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * A short call has its answer by then, and nothing is made beside it; a long one leaves a
 * ready worker to the next.
 */
enum { REFILL_AFTER_MS = 5 };

struct cell {
	struct cell_options options;
	struct timer refill;
	struct cell_spec spec;
	struct cell_record record;
	int control;
	int anchor_pidfd;
	int questions_fd;      /* sandbox_overhear; -1: none */
	uint64_t unrouted;     /* lookups_count_unrouted, when it was looked at last */
	bool grouped;          /* it was tried */
	struct groups *groups; /* or NULL: workers look after their limits */
	struct watch control_watch;
	struct outlet *outlet; /* NULL: no host is listed */
	struct worker_end *workers;
	/* asked of the anchor, not yet here: plain, prepared */
	size_t requested[2];
	/* calls that a widened worker is on its way for, in the order of asking; 0: given up */
	uint64_t *widening;
	size_t widening_count;
	struct timer open_timer; /* until the first worker is ready */
	struct err broken;
};

/* ERR is why nothing more can be made in CELL, unless something was before. */
void cell_break(struct cell *cell, const struct err *err);
/* No call may begin before the proxy is walled in too. */
bool cell_outlet_waits(const struct cell *cell);
/*
 * Read what has come since the loop last turned: a caller that turns it in its calls only
 * would else begin each with the news of the last.
 */
void cell_catch_up(struct cell *cell);

/* Ask for so many that COUNT of a KIND are idle or on their way (cell_ready.c). */
void cell_keep(struct cell *cell, enum worker_kind kind, size_t count);
/* The same for WAITING calls, or with none for the workers that are kept ahead. */
void cell_keep_ready(struct cell *cell, size_t waiting);
/* Of the timer `refill`: those that have answered go, and new ones are asked for. */
void cell_refill_due(struct timer *timer);

/* The worker behind the FDS of the anchor's reply, which are its own from now on. */
void cell_add_worker(struct cell *cell, const int fds[ANCHOR_FDS], enum worker_kind kind);
/* The same for one that was asked for by cell_ask_widened (cell_widen.c). */
void cell_add_widened(struct cell *cell, const int fds[ANCHOR_FDS]);
void cell_free_worker(struct worker_end *worker);
size_t cell_count_workers(const struct cell *cell, enum worker_state state, bool prepared);
/*
 * Give every whole frame to whoever waits; the worker may be gone after each. True when a
 * worker outside a call has spoken.
 */
bool cell_read_worker(struct worker_end *worker);
