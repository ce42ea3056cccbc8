/*
 * cell_worker: the workers of a cell. Reads their frames, chooses one for a call, and
 * ends them.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "cell/cell_parts.h"
#include "cell/outlet.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

void cell_free_worker(struct worker_end *worker)
{
	struct worker_end **at = &worker->cell->workers;

	while (*at != worker)
		at = &(*at)->next;
	*at = worker->next;
	groups_drop(worker->cell->groups, &worker->group);
	/*
	 * A worker exits when its socket closes. A worker that was taken over by an
	 * attacker might not, so kill it.
	 */
	(void)syscall(SYS_pidfd_send_signal, worker->pidfd, SIGKILL, NULL, 0);
	loop_remove(&worker->watch);
	frame_reader_fini(&worker->reader);
	free(worker->refused);
	fd_close(&worker->socket);
	fd_close(&worker->pidfd);
	free(worker);
}

size_t cell_count_workers(const struct cell *cell, enum worker_state state, bool prepared)
{
	size_t count = 0;

	for (const struct worker_end *at = cell->workers; at != NULL; at = at->next)
		count += at->state == state && at->prepared == prepared && at->of_call == 0;
	return count;
}

static void worker_is_made(struct worker_end *worker)
{
	worker->made = true;
	if (!cell_outlet_waits(worker->cell))
		loop_remove_timer(&worker->cell->open_timer);
}

/*
 * A worker that cannot lock itself in breaks the cell: every other worker would fail in
 * the same way.
 */
static void worker_refused(struct worker_end *worker, const struct frame *frame)
{
	struct err err;

	/*
	 * A widened worker may have failed because of its additional folders. Its call
	 * reports that.
	 */
	if (worker->of_call != 0) {
		free(worker->refused);
		worker->refused = frame != NULL && frame->kind == FRAME_REFUSED
					  ? memory_copy_str(frame->payload)
					  : memory_copy("its worker ended");
		return;
	}
	if (frame != NULL && frame->kind == FRAME_REFUSED)
		(void)err_set(&err, ECHILD, "%.*s", (int)frame->payload.size,
			      frame->payload.data);
	else
		(void)err_set(&err, ECHILD,
			      "a worker of the cell ended before its first call");
	cell_break(worker->cell, &err);
}

/*
 * Handle a frame of a worker that serves no call. True when that may matter to a waiting
 * call.
 */
static bool idle_frame(struct worker_end *worker, const struct frame *frame)
{
	if (frame != NULL && frame->kind == FRAME_READY && worker->state == WORKER_MAKING) {
		worker_is_made(worker);
		worker->state = WORKER_IDLE;
		return true;
	}
	/* A worker that dies while idle is replaced. */
	if (worker->state == WORKER_MAKING)
		worker_refused(worker, frame);
	cell_free_worker(worker);
	return true;
}

/* Handle a frame of a worker for its call. True: the next frames are for another call. */
static bool busy_frame(struct worker_end *worker, const struct frame *frame)
{
	if (frame != NULL && frame->kind == FRAME_READY && !worker->made) {
		worker_is_made(worker);
		return false;
	}
	if (!worker->made && (frame == NULL || frame->kind == FRAME_REFUSED))
		worker_refused(worker, frame);
	return worker->frame(worker->context, frame);
}

bool cell_read_worker(struct worker_end *worker)
{
	struct frame frame;
	bool ok = frame_fill(&worker->reader, worker->socket, NULL);

	while (ok && frame_next(&worker->reader, &frame)) {
		bool last = frame.kind == FRAME_RESULT || frame.kind == FRAME_REFUSED;
		for (size_t i = 0; i < frame.fd_count; i++)
			(void)close(frame.fds[i]); /* a worker has no descriptors to send */
		if (worker->state != WORKER_BUSY)
			return idle_frame(worker, &frame);
		if (!busy_frame(worker, &frame) && last)
			return false; /* later frames are read in the next turn */
	}
	if (ok && !worker->reader.ended)
		return false;
	if (worker->state != WORKER_BUSY)
		return idle_frame(worker, NULL);
	(void)busy_frame(worker, NULL);
	return false;
}

void cell_catch_up_worker(struct worker_end *worker)
{
	struct cell *cell = worker->cell;

	if (cell_read_worker(worker))
		cell->options.changed(cell->options.context);
}

static void worker_ready(struct watch *watch, short events)
{
	(void)events;
	cell_catch_up_worker(watch->context);
}

void cell_add_worker(struct cell *cell, const int fds[ANCHOR_FDS], enum worker_kind kind)
{
	struct worker_end *worker = memory_alloc(sizeof(*worker));

	worker->cell = cell;
	worker->socket = fds[0];
	worker->pidfd = fds[1];
	worker->state = WORKER_MAKING;
	worker->prepared = kind == WORKER_PREPARED;
	frame_reader_init(&worker->reader);
	worker->watch = (struct watch){.fd = fds[0],
				       .events = POLLIN,
				       .ready = worker_ready,
				       .context = worker,
				       .stays = true};
	worker->next = cell->workers;
	cell->workers = worker;
	/*
	 * A call is waiting for this worker. Moving it into a control group now would
	 * finish too late and would block every fork until then.
	 */
	if (kind != WORKER_AT_ONCE)
		groups_add(cell->groups, &worker->group, worker->pidfd);
	loop_add(cell->options.loop, &worker->watch);
}

enum { FITS_BEST = 4 }; /* idle, and prepared as it is wanted */

/*
 * How well does a worker fit? 0: it must not be taken. The list begins with the newest
 * worker; of equal ones the oldest is taken.
 */
static int worker_fits(const struct worker_end *worker, enum worker_want want)
{
	bool idle = worker->state == WORKER_IDLE;

	if (worker->state >= WORKER_BUSY || worker->of_call != 0 ||
	    (want == WANT_KEPT && worker->prepared))
		return 0;
	return 1 + idle * 2 + (worker->prepared == (want == WANT_PREPARED));
}

static struct worker_end *best_worker(struct cell *cell, enum worker_want want, int *fits)
{
	struct worker_end *found = NULL;

	*fits = 0;
	for (struct worker_end *at = cell->workers; at != NULL; at = at->next) {
		int here = worker_fits(at, want);
		if (here > 0 && here >= *fits) {
			*fits = here;
			found = at;
		}
	}
	return found;
}

/*
 * Unless an idle worker fits best, first read the messages that arrived since the last
 * turn of the loop: a better worker may be ready.
 */
static struct worker_end *best_of_all(struct cell *cell, enum worker_want want)
{
	int fits;
	struct worker_end *found = best_worker(cell, want, &fits);

	if (fits < FITS_BEST) {
		cell_catch_up(cell);
		found = best_worker(cell, want, &fits);
	}
	return found;
}

struct worker_end *cell_take_worker(struct cell *cell, enum worker_want want, size_t waiting)
{
	struct worker_end *found = best_of_all(cell, want);

	if (found == NULL || cell_outlet_waits(cell)) {
		cell_keep_ready(cell, waiting);
		return NULL;
	}
	found->state = WORKER_BUSY;
	groups_listen(cell->groups);
	if (waiting > 1)
		cell_keep_ready(cell, waiting - 1);
	else if (cell->refill.due_ms == CLOCK_NEVER)
		cell->refill.due_ms = clock_now_ms() + REFILL_AFTER_MS;
	return found;
}

void cell_expect(struct cell *cell, enum worker_want want)
{
	const struct worker_end *found = best_of_all(cell, want);

	if (found != NULL && found->state == WORKER_IDLE)
		(void)frame_send(found->socket, FRAME_COMING, (struct str){"", 0}, NULL,
				 0, 0, NULL);
}

void cell_give_back(struct worker_end *worker)
{
	struct cell *cell = worker->cell;

	worker->state = WORKER_IDLE;
	worker->frame = NULL;
	/*
	 * File calls that ran at the same time leave more workers than wanted. End the
	 * surplus.
	 */
	if (worker->stale ||
	    cell_count_workers(cell, WORKER_IDLE, false) > cell->options.ready + 1)
		cell_free_worker(worker);
}

void cell_let_go(struct worker_end *worker)
{
	worker->state = WORKER_OVER;
	loop_remove(&worker->watch);
	cell_refill(worker->cell);
}

bool cell_kill_worker(struct worker_end *worker, int wait_ms)
{
	struct pollfd gone = {.fd = worker->pidfd, .events = POLLIN};
	int answer;

	(void)syscall(SYS_pidfd_send_signal, worker->pidfd, SIGKILL, NULL, 0);
	do {
		answer = poll(&gone, 1, wait_ms);
	} while (answer < 0 && errno == EINTR);
	cell_free_worker(worker);
	return answer > 0;
}
