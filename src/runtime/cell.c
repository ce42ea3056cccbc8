/* cell: start the anchor, keep workers ready, follow their sockets. */
#include "runtime/cell.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "runtime/anchor.h"
#include "runtime/cell_start.h"
#include "runtime/shape.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct cell {
	struct cell_options options;
	struct cell_spec spec;
	int control;
	int anchor_pidfd;
	struct watch control_watch;
	struct worker_end *workers;
	size_t requested;        /* asked of the anchor, not yet here */
	struct timer open_timer; /* until the first worker is ready */
	struct err broken;
};

const struct cell_spec *cell_spec(const struct cell *cell)
{
	return &cell->spec;
}

const char *cell_broken(const struct cell *cell)
{
	return cell->broken.text[0] != '\0' ? cell->broken.text : NULL;
}

static void worker_free(struct worker_end *worker)
{
	struct worker_end **at = &worker->cell->workers;

	while (*at != worker)
		at = &(*at)->next;
	*at = worker->next;
	loop_remove(&worker->watch);
	frame_reader_fini(&worker->reader);
	fd_close(&worker->socket);
	fd_close(&worker->pidfd);
	free(worker);
}

static size_t workers_in(const struct cell *cell, enum worker_state state)
{
	size_t count = 0;

	for (const struct worker_end *at = cell->workers; at != NULL; at = at->next)
		count += at->state == state;
	return count;
}

static void break_cell(struct cell *cell, const struct err *err)
{
	if (cell->broken.text[0] == '\0')
		cell->broken = *err;
	loop_remove(&cell->control_watch);
	cell->requested = 0;
}

static void request_worker(struct cell *cell)
{
	const char request = ANCHOR_REQUEST;
	struct err err;

	if (cell_broken(cell) != NULL)
		return;
	ssize_t n = send(cell->control, &request, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n == 1) {
		cell->requested++;
	} else if (errno != EAGAIN && errno != EPIPE && errno != ECONNRESET) {
		/* An anchor that is gone left its reason in the socket: control_ready reads it. */
		(void)err_set(&err, errno, "asking for a worker: %s", strerror(errno));
		break_cell(cell, &err);
	}
}

/* So many that WAITING calls and the ready ones ahead are served. */
static void keep_ready(struct cell *cell, size_t waiting)
{
	size_t coming = cell->requested + workers_in(cell, WORKER_MAKING) +
			workers_in(cell, WORKER_IDLE);

	for (; coming < waiting + cell->options.ready && cell_broken(cell) == NULL; coming++)
		request_worker(cell);
}

static void worker_is_made(struct worker_end *worker)
{
	worker->made = true;
	loop_remove_timer(&worker->cell->open_timer);
}

/* The first sign of a worker that has its call already; false when it is none. */
static bool making_frame(struct worker_end *worker, const struct frame *frame)
{
	struct err err;

	if (worker->made)
		return false;
	if (frame != NULL && frame->kind == FRAME_READY) {
		worker_is_made(worker);
		return true;
	}
	if (frame != NULL && frame->kind == FRAME_REFUSED)
		(void)err_set(&err, ECHILD, "%.*s", (int)frame->payload.size,
			      frame->payload.data);
	else
		(void)err_set(&err, ECHILD, "the cell's worker ended while it was made");
	break_cell(worker->cell, &err);
	worker->frame(worker->context, NULL);
	return true;
}

static void idle_frame(struct worker_end *worker, const struct frame *frame)
{
	struct cell *cell = worker->cell;
	struct err err;

	if (frame != NULL && frame->kind == FRAME_READY && worker->state == WORKER_MAKING) {
		worker_is_made(worker);
		worker->state = WORKER_IDLE;
		cell->options.changed(cell->options.context);
		return;
	}
	if (frame != NULL && frame->kind == FRAME_REFUSED)
		(void)err_set(&err, ECHILD, "%.*s", (int)frame->payload.size,
			      frame->payload.data);
	else
		(void)err_set(&err, ECHILD,
			      "a worker of the cell ended before its first call");
	/*
	 * A worker that dies idle is replaced; one that cannot lock itself in shows
	 * what every other would meet.
	 */
	if (worker->state == WORKER_MAKING)
		break_cell(cell, &err);
	worker_free(worker);
	cell->options.changed(cell->options.context);
}

/* Give every whole frame to whoever waits; the worker may be gone after each. */
static void worker_ready(struct watch *watch, short events)
{
	struct worker_end *worker = watch->context;
	struct frame frame;

	(void)events;
	bool ok = frame_fill(&worker->reader, worker->socket, NULL);
	while (ok && frame_next(&worker->reader, &frame)) {
		bool was_busy = worker->state == WORKER_BUSY;
		bool last = frame.kind == FRAME_RESULT || frame.kind == FRAME_REFUSED;
		for (size_t i = 0; i < frame.fd_count; i++)
			(void)close(frame.fds[i]); /* no worker has any to give */
		if (was_busy && making_frame(worker, &frame)) {
			if (last)
				return;
			continue;
		}
		if (was_busy)
			worker->frame(worker->context, &frame);
		else
			idle_frame(worker, &frame);
		if (last || !was_busy)
			return; /* whatever follows is read in the next turn */
	}
	if (ok && !worker->reader.ended)
		return;
	if (worker->state == WORKER_BUSY && making_frame(worker, NULL))
		return;
	if (worker->state == WORKER_BUSY)
		worker->frame(worker->context, NULL);
	else
		idle_frame(worker, NULL);
}

static void worker_add(struct cell *cell, const int fds[ANCHOR_FDS])
{
	struct worker_end *worker = memory_alloc(sizeof(*worker));

	worker->cell = cell;
	worker->socket = fds[0];
	worker->pidfd = fds[1];
	worker->state = WORKER_MAKING;
	frame_reader_init(&worker->reader);
	worker->watch = (struct watch){.fd = fds[0],
				       .events = POLLIN,
				       .ready = worker_ready,
				       .context = worker};
	worker->next = cell->workers;
	cell->workers = worker;
	loop_add(cell->options.loop, &worker->watch);
}

static void control_ready(struct watch *watch, short events)
{
	struct cell *cell = watch->context;
	struct anchor_reply reply;
	int fds[ANCHOR_FDS];
	struct err err;

	(void)events;
	if (!anchor_receive(cell->control, &reply, fds, 0, &err)) {
		break_cell(cell, &err);
	} else if (reply.kind == ANCHOR_WORKER && fds[0] >= 0 && fds[1] >= 0) {
		if (cell->requested > 0)
			cell->requested--;
		worker_add(cell, fds);
		if (!cell->options.direct)
			return;
	} else if (reply.kind == ANCHOR_STARTED && cell->anchor_pidfd < 0) {
		cell->anchor_pidfd = fds[0];
		return;
	} else {
		reply.text[sizeof(reply.text) - 1] = '\0';
		(void)err_set(&err, ECHILD, "%s", reply.text);
		break_cell(cell, &err);
	}
	cell->options.changed(cell->options.context);
}

static void open_due(struct timer *timer)
{
	struct cell *cell = timer->context;
	struct err err;

	(void)err_set(&err, ECHILD, "the cell was not ready after %d s",
		      CELL_OPEN_MS / 1000);
	break_cell(cell, &err);
	for (struct worker_end *at = cell->workers; at != NULL; at = at->next) {
		if (at->state == WORKER_BUSY && !at->made) {
			at->frame(at->context, NULL);
			return; /* the only one: it has been freed */
		}
	}
	cell->options.changed(cell->options.context);
}

static bool first_worker_wait(struct cell *cell, struct err *err)
{
	int64_t deadline = clock_now_ms() + CELL_OPEN_MS;

	while (workers_in(cell, WORKER_IDLE) == 0) {
		if (cell_broken(cell) != NULL)
			return err_set(err, ECHILD, "%s", cell->broken.text);
		if (clock_now_ms() >= deadline)
			return err_set(err, ECHILD, "the cell was not ready after %d s",
				       CELL_OPEN_MS / 1000);
		loop_turn(cell->options.loop, deadline);
	}
	return true;
}

bool cell_open(const struct cell_options *options, struct cell **cell, struct err *err)
{
	struct cell *made = memory_alloc(sizeof(*made));
	struct cell_start start = {.program = options->program,
				   .direct = options->direct,
				   .tools = options->tools};

	made->options = *options;
	made->spec = *options->take_spec;
	spec_init(options->take_spec);
	made->spec.one_call = options->direct;
	made->control = -1;
	made->anchor_pidfd = -1;
	start.spec = &made->spec;
	if (!cell_start(&start, &made->control, &made->anchor_pidfd, err)) {
		err->code = ECHILD;
		cell_close(made);
		return false;
	}
	made->control_watch = (struct watch){.fd = made->control,
					     .events = POLLIN,
					     .ready = control_ready,
					     .context = made};
	loop_add(options->loop, &made->control_watch);
	keep_ready(made, options->ready == 0);
	made->open_timer = (struct timer){.due_ms = clock_now_ms() + CELL_OPEN_MS,
					  .due = open_due,
					  .context = made};
	if (options->direct) {
		loop_add_timer(options->loop, &made->open_timer);
	} else if (!first_worker_wait(made, err)) {
		cell_close(made);
		return false;
	}
	*cell = made;
	return true;
}

void cell_close(struct cell *cell)
{
	if (cell == NULL)
		return;
	while (cell->workers != NULL)
		worker_free(cell->workers);
	loop_remove_timer(&cell->open_timer);
	loop_remove(&cell->control_watch);
	fd_close(&cell->control);
	cell_end_anchor(&cell->anchor_pidfd, !cell->options.direct);
	shape_tidy(&cell->spec);
	spec_fini(&cell->spec);
	free(cell);
}

struct worker_end *cell_take_worker(struct cell *cell, size_t waiting)
{
	struct worker_end *found = NULL;

	/* The list is newest first; the oldest idle one has had most time to settle. */
	for (struct worker_end *at = cell->workers; at != NULL; at = at->next) {
		if (at->state == WORKER_IDLE ||
		    (at->state == WORKER_MAKING && cell->options.direct))
			found = at;
	}
	if (found != NULL)
		found->state = WORKER_BUSY;
	else
		keep_ready(cell, waiting);
	return found;
}

void cell_give_back(struct worker_end *worker)
{
	struct cell *cell = worker->cell;

	worker->state = WORKER_IDLE;
	worker->frame = NULL;
	/* File calls at once leave more than are wanted: the surplus ends. */
	if (workers_in(cell, WORKER_IDLE) > cell->options.ready + 1)
		worker_free(worker);
}

void cell_let_go(struct worker_end *worker)
{
	struct cell *cell = worker->cell;

	worker_free(worker);
	keep_ready(cell, 0);
}

bool cell_kill_worker(struct worker_end *worker, int wait_ms)
{
	struct pollfd gone = {.fd = worker->pidfd, .events = POLLIN};
	int answer;

	(void)syscall(SYS_pidfd_send_signal, worker->pidfd, SIGKILL, NULL, 0);
	do {
		answer = poll(&gone, 1, wait_ms);
	} while (answer < 0 && errno == EINTR);
	cell_let_go(worker);
	return answer > 0;
}
