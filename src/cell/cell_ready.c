/*
 * cell_ready: decides which workers are requested from the anchor ahead of the calls, and
 * when.
 */
#include "base/clock.h"
#include "cell/cell_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { TIDY_AFTER_MS = 2 }; /* at least one, so that the caller gets its answer first */

/* False while the socket of the anchor is full. The remaining requests follow later. */
static bool request_worker(struct cell *cell, enum worker_kind kind)
{
	const char request = (char)kind;
	struct err err;

	ssize_t n = send(cell->control, &request, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n == 1) {
		cell->requested[kind == WORKER_PREPARED]++;
		return true;
	}
	if (errno != EAGAIN && errno != EPIPE && errno != ECONNRESET) {
		/*
		 * A dead anchor left its reason in the socket, which control_ready reads.
		 */
		(void)err_set(&err, errno, "asking for a worker: %s", strerror(errno));
		cell_break(cell, &err);
	}
	return false;
}

void cell_keep(struct cell *cell, enum worker_kind kind, size_t count)
{
	const bool prepared = kind == WORKER_PREPARED;
	size_t coming = cell->requested[prepared] +
			cell_count_workers(cell, WORKER_MAKING, prepared) +
			cell_count_workers(cell, WORKER_IDLE, prepared);

	while (coming < count && cell_broken(cell) == NULL && request_worker(cell, kind))
		coming++;
}

/* Waiting calls get workers without preparation, because those are ready first. */
void cell_keep_ready(struct cell *cell, size_t waiting)
{
	const struct cell_options *options = &cell->options;

	if (waiting > 0) {
		cell_keep(cell, WORKER_AT_ONCE, waiting);
	} else if (!options->prepared) {
		cell_keep(cell, WORKER_PLAIN, options->ready);
	} else {
		cell_keep(cell, WORKER_PLAIN, 1);
		cell_keep(cell, WORKER_PREPARED, options->ready);
	}
}

bool cell_is_making(const struct cell *cell)
{
	return cell->requested[false] + cell->requested[true] > 0 ||
	       cell_count_workers(cell, WORKER_MAKING, false) > 0 ||
	       cell_count_workers(cell, WORKER_MAKING, true) > 0;
}

void cell_refill(struct cell *cell)
{
	int64_t soon = clock_now_ms() + TIDY_AFTER_MS;

	if (soon < cell->refill.due_ms)
		cell->refill.due_ms = soon;
}

void cell_refill_due(struct timer *timer)
{
	struct cell *cell = timer->context;

	timer->due_ms = CLOCK_NEVER;
	for (struct worker_end *at = cell->workers; at != NULL;) {
		struct worker_end *next = at->next;
		if (at->state == WORKER_OVER)
			cell_free_worker(at);
		at = next;
	}
	/*
	 * Waiting calls have requested their workers. Make no workers ahead beside those.
	 */
	if (cell->requested[false] > 1)
		cell->refill.due_ms = clock_now_ms() + REFILL_AFTER_MS;
	else
		cell_keep_ready(cell, 0);
}

void cell_hold(struct cell *cell)
{
	if (cell->refill.due_ms != CLOCK_NEVER)
		cell->refill.due_ms = clock_now_ms() + REFILL_AFTER_MS;
}

void cell_call_sent(struct cell *cell)
{
	if (cell->refill.due_ms <= clock_now_ms() + TIDY_AFTER_MS)
		cell_refill_due(&cell->refill);
}
