/* cell: start the anchor, keep workers ready, follow their sockets. */
#include "runtime/cell.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "runtime/anchor.h"
#include "runtime/audit.h"
#include "runtime/cell_start.h"
#include "runtime/outlet.h"
#include "runtime/role.h"
#include "runtime/shape.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A short call has its answer by then, and nothing is made beside it; a long one leaves a
 * ready worker to the next.
 */
enum {
	REFILL_AFTER_MS = 5,
	TIDY_AFTER_MS = 1, /* the caller has its answer first */
};

struct cell {
	struct cell_options options;
	struct timer refill;
	struct cell_spec spec;
	int control;
	int anchor_pidfd;
	struct groups *groups; /* or NULL: workers look after their limits */
	struct watch control_watch;
	struct outlet *outlet; /* NULL: no host is listed */
	struct worker_end *workers;
	/* asked of the anchor, not yet here: plain, prepared */
	size_t requested[2];
	struct timer open_timer; /* until the first worker is ready */
	struct err broken;
};

const struct cell_spec *cell_spec(const struct cell *cell)
{
	return &cell->spec;
}

bool cell_audit_due(const struct cell *cell)
{
	return cell->spec.audit_due;
}

void cell_set_audit_due(struct cell *cell, bool due)
{
	cell->spec.audit_due = due && cell->spec.guard != NULL;
	audit_record_set_due(cell->spec.record, cell->spec.audit_due);
}

struct outlet *cell_outlet(const struct cell *cell)
{
	return cell->outlet;
}

/* No call may begin before the proxy is walled in too. */
static bool outlet_waits(const struct cell *cell)
{
	return cell->outlet != NULL && !outlet_is_ready(cell->outlet);
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
	groups_drop(worker->cell->groups, &worker->group);
	loop_remove(&worker->watch);
	frame_reader_fini(&worker->reader);
	fd_close(&worker->socket);
	fd_close(&worker->pidfd);
	free(worker);
}

static size_t workers_in(const struct cell *cell, enum worker_state state, bool prepared)
{
	size_t count = 0;

	for (const struct worker_end *at = cell->workers; at != NULL; at = at->next)
		count += at->state == state && at->prepared == prepared;
	return count;
}

/* What failed, or (once) what this machine lacks for it. */
static void broken_set(struct cell *cell, const struct err *err)
{
	cell->broken = *err;
	if (cell->options.explain != NULL)
		(void)cell->options.explain(cell->options.minimum_level, &cell->broken);
}

static void break_cell(struct cell *cell, const struct err *err)
{
	if (cell->broken.text[0] == '\0')
		broken_set(cell, err);
	loop_remove(&cell->control_watch);
	cell->requested[false] = cell->requested[true] = 0;
}

static void request_worker(struct cell *cell, enum worker_kind kind)
{
	const char request = (char)kind;
	struct err err;

	if (cell_broken(cell) != NULL)
		return;
	ssize_t n = send(cell->control, &request, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n == 1) {
		cell->requested[kind == WORKER_PREPARED]++;
	} else if (errno != EAGAIN && errno != EPIPE && errno != ECONNRESET) {
		/* An anchor that is gone left its reason in the socket: control_ready reads it. */
		(void)err_set(&err, errno, "asking for a worker: %s", strerror(errno));
		break_cell(cell, &err);
	}
}

/* So many that COUNT such workers are idle or on their way; what is asked for is a KIND. */
static void keep(struct cell *cell, enum worker_kind kind, size_t count)
{
	const bool prepared = kind == WORKER_PREPARED;
	size_t coming = cell->requested[prepared] +
			workers_in(cell, WORKER_MAKING, prepared) +
			workers_in(cell, WORKER_IDLE, prepared);

	for (; coming < count && cell_broken(cell) == NULL; coming++)
		request_worker(cell, kind);
}

/* What waits is served by plain ones, which are there first. */
static void keep_ready(struct cell *cell, size_t waiting)
{
	const struct cell_options *options = &cell->options;

	if (waiting > 0) {
		keep(cell, WORKER_AT_ONCE, waiting);
	} else if (!options->prepared) {
		keep(cell, WORKER_PLAIN, options->ready);
	} else {
		keep(cell, WORKER_PLAIN, 1);
		keep(cell, WORKER_PREPARED, options->ready);
	}
}

void cell_refill(struct cell *cell)
{
	int64_t soon = clock_now_ms() + TIDY_AFTER_MS;

	if (soon < cell->refill.due_ms)
		cell->refill.due_ms = soon;
}

/* Those that have answered go, and new ones are asked for. */
static void refill_due(struct timer *timer)
{
	struct cell *cell = timer->context;

	timer->due_ms = CLOCK_NEVER;
	for (struct worker_end *at = cell->workers; at != NULL;) {
		struct worker_end *next = at->next;
		if (at->state == WORKER_OVER)
			worker_free(at);
		at = next;
	}
	/* Calls that wait have asked for theirs: nothing is made ahead beside those. */
	if (cell->requested[false] > 1)
		cell->refill.due_ms = clock_now_ms() + REFILL_AFTER_MS;
	else
		keep_ready(cell, 0);
}

void cell_call_sent(struct cell *cell)
{
	if (cell->refill.due_ms <= clock_now_ms() + TIDY_AFTER_MS)
		refill_due(&cell->refill);
}

static void worker_is_made(struct worker_end *worker)
{
	worker->made = true;
	if (!outlet_waits(worker->cell))
		loop_remove_timer(&worker->cell->open_timer);
}

/* A worker that cannot lock itself in shows what every other would meet. */
static void worker_refused(struct worker_end *worker, const struct frame *frame)
{
	struct err err;

	if (frame != NULL && frame->kind == FRAME_REFUSED)
		(void)err_set(&err, ECHILD, "%.*s", (int)frame->payload.size,
			      frame->payload.data);
	else
		(void)err_set(&err, ECHILD,
			      "a worker of the cell ended before its first call");
	break_cell(worker->cell, &err);
}

/* What a worker says outside a call. True when that may matter to a call that waits. */
static bool idle_frame(struct worker_end *worker, const struct frame *frame)
{
	if (frame != NULL && frame->kind == FRAME_READY && worker->state == WORKER_MAKING) {
		worker_is_made(worker);
		worker->state = WORKER_IDLE;
		return true;
	}
	/* One that dies idle is replaced. */
	if (worker->state == WORKER_MAKING)
		worker_refused(worker, frame);
	worker_free(worker);
	return true;
}

/* What a worker says to its call. */
static void busy_frame(struct worker_end *worker, const struct frame *frame)
{
	if (frame != NULL && frame->kind == FRAME_READY && !worker->made) {
		worker_is_made(worker);
		return;
	}
	if (!worker->made && (frame == NULL || frame->kind == FRAME_REFUSED))
		worker_refused(worker, frame);
	worker->frame(worker->context, frame);
}

/*
 * Give every whole frame to whoever waits; the worker may be gone after each. True when a
 * worker outside a call has spoken.
 */
static bool worker_read(struct worker_end *worker)
{
	struct frame frame;
	bool ok = frame_fill(&worker->reader, worker->socket, NULL);

	while (ok && frame_next(&worker->reader, &frame)) {
		bool last = frame.kind == FRAME_RESULT || frame.kind == FRAME_REFUSED;
		for (size_t i = 0; i < frame.fd_count; i++)
			(void)close(frame.fds[i]); /* no worker has any to give */
		if (worker->state != WORKER_BUSY)
			return idle_frame(worker, &frame);
		busy_frame(worker, &frame);
		if (last)
			return false; /* whatever follows is read in the next turn */
	}
	if (ok && !worker->reader.ended)
		return false;
	if (worker->state != WORKER_BUSY)
		return idle_frame(worker, NULL);
	busy_frame(worker, NULL);
	return false;
}

static void worker_ready(struct watch *watch, short events)
{
	struct worker_end *worker = watch->context;
	struct cell *cell = worker->cell;

	(void)events;
	if (worker_read(worker))
		cell->options.changed(cell->options.context);
}

static void worker_add(struct cell *cell, const int fds[ANCHOR_FDS], enum worker_kind kind)
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
				       .context = worker};
	worker->next = cell->workers;
	cell->workers = worker;
	/* A call waits for it: what moves it would come late, and hold up every fork meanwhile. */
	if (kind != WORKER_AT_ONCE)
		groups_add(cell->groups, &worker->group, worker->pidfd);
	loop_add(cell->options.loop, &worker->watch);
}

static void listener_add(struct cell *cell, int port, int fds[ANCHOR_FDS])
{
	for (size_t i = 0; i < ANCHOR_FDS; i++) {
		if (cell->outlet != NULL)
			outlet_add_listener(cell->outlet, (uint16_t)port, &fds[i]);
		fd_close(&fds[i]);
	}
}

/* The proxy is ready, or it has ended. */
static void outlet_changed(void *context)
{
	struct cell *cell = context;
	struct err err;

	if (outlet_waits(cell)) {
		(void)err_set(&err, ECHILD, "the network proxy: %s",
			      outlet_broken(cell->outlet));
		break_cell(cell, &err);
	}
	for (const struct worker_end *at = cell->workers; at != NULL; at = at->next) {
		if (at->made)
			loop_remove_timer(&cell->open_timer);
	}
	cell->options.changed(cell->options.context);
}

static void control_read(struct cell *cell)
{
	struct anchor_reply reply;
	int fds[ANCHOR_FDS];
	struct err err;

	if (!anchor_receive(cell->control, &reply, fds, 0, &err)) {
		break_cell(cell, &err);
	} else if (reply.kind == ANCHOR_WORKER && fds[0] >= 0 && fds[1] >= 0) {
		bool prepared = reply.worker == WORKER_PREPARED;
		if (cell->requested[prepared] > 0)
			cell->requested[prepared]--;
		worker_add(cell, fds, (enum worker_kind)reply.worker);
	} else if (reply.kind == ANCHOR_LISTENER) {
		listener_add(cell, reply.code, fds);
	} else if (reply.kind == ANCHOR_STARTED && cell->anchor_pidfd < 0) {
		cell->anchor_pidfd = fds[0];
	} else {
		reply.text[sizeof(reply.text) - 1] = '\0';
		(void)err_set(&err, ECHILD, "%s", reply.text);
		break_cell(cell, &err);
	}
}

static void control_ready(struct watch *watch, short events)
{
	struct cell *cell = watch->context;

	(void)events;
	control_read(cell);
	cell->options.changed(cell->options.context);
}

static bool is_readable(int fd)
{
	struct pollfd wanted = {.fd = fd, .events = POLLIN};

	return poll(&wanted, 1, 0) > 0;
}

/*
 * What has come since the loop last turned: a caller that turns it in its calls only
 * would else begin each with the news of the last.
 */
static void catch_up(struct cell *cell)
{
	while (cell_broken(cell) == NULL && is_readable(cell->control))
		control_read(cell);
	for (struct worker_end *at = cell->workers; at != NULL;) {
		struct worker_end *next = at->next;
		if (at->state == WORKER_MAKING && is_readable(at->socket))
			(void)worker_read(at);
		at = next;
	}
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

	while (workers_in(cell, WORKER_IDLE, false) == 0 || outlet_waits(cell)) {
		if (cell_broken(cell) != NULL)
			return err_set(err, ECHILD, "%s", cell->broken.text);
		if (clock_now_ms() >= deadline)
			return err_set(err, ECHILD, "the cell was not ready after %d s",
				       CELL_OPEN_MS / 1000);
		loop_turn(cell->options.loop, deadline);
	}
	return true;
}

/* After the first worker, whose start it would delay. */
static void groups_open(struct cell *cell)
{
	const struct cell_options *options = &cell->options;

	cell->groups = groups_start(options->loop, options->program, options->limits);
	for (struct worker_end *at = cell->workers; at != NULL; at = at->next)
		groups_add(cell->groups, &at->group, at->pidfd);
}

static bool outlet_make(struct cell *cell, struct err *err)
{
	const struct outlet_options options = {.loop = cell->options.loop,
					       .program = cell->options.program,
					       .spec = &cell->spec,
					       .changed = outlet_changed,
					       .owner = cell,
					       .refused = cell->options.refused,
					       .context = cell->options.context};

	if (outlet_open(&options, &cell->outlet, err))
		return true;
	err->code = ECHILD;
	return false;
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
	made->refill =
		(struct timer){.due_ms = CLOCK_NEVER, .due = refill_due, .context = made};
	loop_add(options->loop, &made->control_watch);
	if (made->spec.network_count > 0 && !outlet_make(made, err)) {
		cell_close(made);
		return false;
	}
	loop_add_timer(options->loop, &made->refill);
	keep(made, WORKER_PLAIN, 1);
	made->open_timer = (struct timer){.due_ms = clock_now_ms() + CELL_OPEN_MS,
					  .due = open_due,
					  .context = made};
	if (options->direct) {
		loop_add_timer(options->loop, &made->open_timer);
	} else if (!first_worker_wait(made, err)) {
		cell_close(made);
		return false;
	} else {
		groups_open(made);
		keep_ready(made, 0);
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
	loop_remove(&cell->control_watch);
	loop_remove_timer(&cell->open_timer);
	loop_remove_timer(&cell->refill);
	fd_close(&cell->control);
	outlet_close(cell->outlet);
	if (!spec_is_sealed(&cell->spec))
		cell_wait_anchor(cell->anchor_pidfd);
	role_end(&cell->anchor_pidfd, !cell->options.direct);
	groups_stop(cell->groups);
	shape_tidy(&cell->spec);
	spec_fini(&cell->spec);
	free(cell);
}

/* How well a worker fits; 0: not at all. The list is newest first, the oldest is best. */
static int worker_fits(const struct worker_end *worker, enum worker_want want)
{
	bool idle = worker->state == WORKER_IDLE;

	if (worker->state >= WORKER_BUSY || (want == WANT_KEPT && worker->prepared))
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

struct worker_end *cell_take_worker(struct cell *cell, enum worker_want want, size_t waiting)
{
	int fits;
	struct worker_end *found = best_worker(cell, want, &fits);

	if (found == NULL || found->state != WORKER_IDLE) {
		catch_up(cell);
		found = best_worker(cell, want, &fits);
	}
	if (found == NULL || outlet_waits(cell)) {
		keep_ready(cell, waiting);
		return NULL;
	}
	found->state = WORKER_BUSY;
	groups_listen(cell->groups);
	if (waiting > 1)
		keep_ready(cell, waiting - 1);
	else if (cell->refill.due_ms == CLOCK_NEVER)
		cell->refill.due_ms = clock_now_ms() + REFILL_AFTER_MS;
	return found;
}

void cell_give_back(struct worker_end *worker)
{
	struct cell *cell = worker->cell;

	worker->state = WORKER_IDLE;
	worker->frame = NULL;
	/* File calls at once leave more than are wanted: the surplus ends. */
	if (workers_in(cell, WORKER_IDLE, false) > cell->options.ready + 1)
		worker_free(worker);
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
	worker_free(worker);
	return answer > 0;
}
