/* cell: starts the anchor, requests and serves workers, and closes the cell. */

#include "cell/cell.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/memory.h"
#include "cell/anchor.h"
#include "cell/groups.h"
#include "cell/outlet.h"
#include "cell/pending.h"
#include "cell/starter.h"
#include "cell/vault.h"
#include "guard/guard.h"
#include "process/frame.h"
#include "process/loop.h"
#include "process/role.h"
#include "proxy/counts.h"
#include "tool/tool.h"
#include "view/shape.h"
#include "view/spec.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Longest time until the first worker is ready; a loaded machine takes a second. */
enum { CELL_OPEN_MS = 20000 };

/*
 * A short call is answered before this time, so no worker is made beside it. A longer
 * call leaves a ready worker to the next call.
 */
enum { REFILL_AFTER_MS = 5 };

/*
 * A cell that may be dormant makes something ahead, and groups, from this call of a program
 * on. Of many cells, most are asked once and then wait again.
 */
enum { DORMANT_CALLS = 2 };

/* Do not wait longer: a broken disk can keep a process in the kernel. */
enum { ANCHOR_END_MS = 5000 };

/* An anchor whose starter has ended has begun before, and says so in this time, or never. */
enum { ANCHOR_ALONE_MS = 200 };

/*
 * Does CELL get its first worker with its first call? Only where another cell has shown that
 * workers can lock themselves in on this machine.
 */
static bool first_worker_is_late(const struct cell *cell)
{
	const struct starter *starter = cell->options.starter;

	return cell->options.dormant && starter != NULL && starter->proven &&
	       starter->proven_level == cell->spec.built;
}

/* Does anything outside serve the network of CELL? */
static bool is_served(const struct cell_spec *spec)
{
	return spec->network.count > 0 || spec->asks_network || spec->publishes ||
	       spec->brokers;
}

/* Does CELL get its network with its first worker? The machine has shown that it can make one. */
static bool joins_later(const struct cell *cell)
{
	return first_worker_is_late(cell) && !is_served(&cell->spec);
}

/* The anchor has its own copies. */
static void doors_close(struct cell_spec *spec)
{
	for (int i = 0; i < CGROUP_FOLDERS; i++)
		fd_close(&spec->doors[i]);
}

/* Ask the anchor of CELL for an answer when the cell is built. A dead one left its reason. */
static void greet(const struct cell *cell)
{
	const char greeting = ANCHOR_GREET;

	(void)send(cell->control, &greeting, 1, MSG_NOSIGNAL);
}

/*
 * Start the anchor of CELL, by OWN where the cell shares no starter. It is cloned out of this
 * process only for one-shot verbs, which hold no key.
 */
static bool cell_start(struct cell *cell, struct starter *own, struct err *err)
{
	const struct cell_options *options = &cell->options;
	auto_close int front = -1;
	int ends[2];
	bool ok;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, errno, "the control socket: %s", strerror(errno));
	if (options->direct) {
		pid_t pid;
		ok = role_self(&front, err) &&
		     anchor_launch(&cell->spec, ends[1], front, options->tools, &pid,
				   &cell->anchor_pidfd, err);
	} else {
		ok = starter_launch(options->starter != NULL ? options->starter : own,
				    &cell->spec, joins_later(cell), ends[1], err);
		cell->starter = options->starter != NULL ? options->starter->started : 0;
	}
	fd_close(&ends[1]);
	sandbox_end_helper(&cell->spec.mapping);
	fd_close(&cell->spec.view.late);
	if (!ok) {
		fd_close(&ends[0]);
		return false;
	}
	cell->control = ends[0];
	return true;
}

/*
 * An anchor without a pid namespace ends the processes of the cell itself after its
 * control socket was closed. Wait for that, but not for ever.
 */
static void cell_wait_anchor(int pidfd)
{
	struct pollfd gone = {.fd = pidfd, .events = POLLIN};

	while (pidfd >= 0 && poll(&gone, 1, ANCHOR_END_MS) < 0 && errno == EINTR)
		;
}

/*
 * A front with many cells has many timers, and most of them are off: the loop knows only those
 * that are on.
 */
static void timer_start(struct cell *cell, struct timer *timer, int after_ms)
{
	timer->due_ms = clock_now_ms() + after_ms;
	loop_add_timer(cell->options.loop, timer);
}

static void timer_stop(struct timer *timer)
{
	timer->due_ms = CLOCK_NEVER;
	loop_remove_timer(timer);
}

/* The workers of a cell. Reads their frames, chooses one for a call, and ends them. */

static void cell_free_worker(struct worker_end *worker)
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

static size_t cell_count_workers(const struct cell *cell, enum worker_state state,
				 bool prepared)
{
	size_t count = 0;

	for (const struct worker_end *at = cell->workers; at != NULL; at = at->next)
		count += at->state == state && at->prepared == prepared &&
			 at->of_call == 0 && !at->resident;
	return count;
}

static bool cell_outlet_waits(const struct cell *cell);

static void worker_is_made(struct worker_end *worker)
{
	struct cell *cell = worker->cell;
	struct starter *starter = cell->options.starter;

	worker->made = true;
	cell->has_made = true;
	cell->lost_in_a_row = 0;
	if (starter != NULL) {
		starter->proven = true;
		starter->proven_level = cell->spec.built;
	}
	if (!cell_outlet_waits(cell))
		loop_remove_timer(&cell->open_timer);
}

static void cell_break(struct cell *cell, const struct err *err);

/* Break CELL because ERR refuses a worker. One that never had a worker was never built. */
static void cell_refused(struct cell *cell, const struct err *err)
{
	cell->built = cell->built && cell->has_made;
	cell_break(cell, err);
}

/* After so many killed workers in a row the next one would be killed, too. */
enum { WORKERS_LOST_MAX = 3 };

/*
 * A worker that cannot lock itself in breaks the cell: every other worker would fail in
 * the same way. A worker that was killed, or ran out of memory, is replaced.
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
	const bool refuses = frame != NULL && frame->kind == FRAME_REFUSED;
	if (!refuses && worker->cell->has_made &&
	    ++worker->cell->lost_in_a_row < WORKERS_LOST_MAX)
		return;
	if (refuses)
		(void)err_set(&err, ECHILD, "%.*s", (int)frame->payload.size,
			      frame->payload.data);
	else
		(void)err_set(&err, ECHILD,
			      "a worker of the cell ended before its first call");
	cell_refused(worker->cell, &err);
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

/*
 * Give each complete frame to its receiver; WORKER may be gone after each. True when a
 * worker that serves no call has sent something.
 */
static bool cell_read_worker(struct worker_end *worker)
{
	struct frame frame;
	bool ok = frame_fill(&worker->reader, worker->socket, NULL);

	while (ok && frame_next(&worker->reader, &frame)) {
		bool last = frame.kind == FRAME_RESULT || frame.kind == FRAME_REFUSED;
		for (size_t i = 0; i < frame.fd_count; i++)
			/* a worker has no descriptors to send */
			(void)close(frame.fds[i]);
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

/* Add the worker of a reply of the anchor. The cell takes ownership of FDS. */
static void cell_add_worker(struct cell *cell, const int fds[ANCHOR_FDS],
			    enum worker_kind kind)
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
	    (want != WANT_ANY && want != WANT_PREPARED && worker->prepared) ||
	    (worker->resident && want != WANT_RESIDENT && want != WANT_BY_RESIDENT))
		return 0;
	return 1 + idle * 2 + (worker->prepared == (want == WANT_PREPARED)) +
	       worker->resident;
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

static void cell_catch_up(struct cell *cell);

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

static bool resident_is_busy(const struct cell *cell)
{
	for (const struct worker_end *at = cell->workers; at != NULL; at = at->next) {
		if (at->resident && at->state == WORKER_BUSY)
			return true;
	}
	return false;
}

static void cell_keep_ready(struct cell *cell, size_t waiting);

struct worker_end *cell_take_worker(struct cell *cell, enum worker_want want, size_t waiting)
{
	struct worker_end *found = best_of_all(cell, want);

	/* There is only one: another one would begin without what this one keeps. */
	if (want == WANT_RESIDENT && resident_is_busy(cell))
		return NULL;
	if (found == NULL || cell_outlet_waits(cell)) {
		cell_keep_ready(cell, waiting);
		return NULL;
	}
	found->state = WORKER_BUSY;
	timer_stop(&cell->dormant);
	cell->programs += want == WANT_ANY || want == WANT_PREPARED;
	found->resident =
		want == WANT_RESIDENT || (want == WANT_BY_RESIDENT && found->resident);
	groups_listen(cell->groups);
	if (waiting > 1)
		cell_keep_ready(cell, waiting - 1);
	else if (cell->refill.due_ms == CLOCK_NEVER)
		timer_start(cell, &cell->refill, REFILL_AFTER_MS);
	return found;
}

/* A call has ended. From now on the cell may become dormant. */
static void cell_count_down(struct cell *cell)
{
	if (cell->options.dormant)
		timer_start(cell, &cell->dormant, CELL_DORMANT_MS);
}

/* How long the groups process of a cell that became dormant has for its end. */
enum { GROUPS_END_MS = 3000 };

/*
 * The callback of the timer `dormant`. The groups process removes the groups of workers that
 * were just killed. The front may have many cells and does not wait for that: it reaps the
 * process later, by the same timer.
 */
static void cell_sleep(struct timer *timer)
{
	struct cell *cell = timer->context;

	timer_stop(timer);
	if (cell->groups != NULL && !cell->grouped) {
		groups_stop(cell->groups);
		cell->groups = NULL;
		if (cell->workers == NULL)
			return;
	}
	for (const struct worker_end *at = cell->workers; at != NULL; at = at->next) {
		if (at->state == WORKER_BUSY || at->of_call != 0)
			return; /* the end of its call begins the time anew */
	}
	if (cell->requested[false] + cell->requested[true] > 0) {
		cell_count_down(cell);
		return;
	}
	while (cell->workers != NULL)
		cell_free_worker(cell->workers); /* NOLINT(clang-analyzer-unix.Malloc) */
	timer_stop(&cell->refill);
	cell->programs = 0;
	groups_leave(cell->groups);
	cell->grouped = false;
	if (cell->groups != NULL)
		timer_start(cell, timer, GROUPS_END_MS);
}

void cell_give_back(struct worker_end *worker)
{
	struct cell *cell = worker->cell;

	worker->state = WORKER_IDLE;
	worker->frame = NULL;
	cell_count_down(cell);
	/*
	 * File calls that ran at the same time leave more workers than wanted. End the
	 * surplus.
	 */
	if (!worker->resident &&
	    (worker->stale ||
	     cell_count_workers(cell, WORKER_IDLE, false) > cell->options.ready + 1))
		cell_free_worker(worker);
}

void cell_let_go(struct worker_end *worker)
{
	worker->state = WORKER_OVER;
	cell_count_down(worker->cell);
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

/*
 * Make the control group that has waited for the first worker, and let the anchor enter it. Without
 * one the estimates of the calls are the accounts: no limit needs this group.
 */
static void group_join(struct cell *cell)
{
	const char request = ANCHOR_ENTER;
	int doors[CGROUP_FOLDERS];
	size_t count = 0;
	struct err err;

	if (!cell->group_waits)
		return;
	cell->group_waits = false;
	if (!groups_cell_open(cell->options.limits, cell->options.one, &cell->spec,
			      &cell->options.starter->groups, &cell->group, &err))
		return;
	for (size_t i = 0; i < CGROUP_FOLDERS; i++) {
		if (cell->spec.doors[i] >= 0)
			doors[count++] = cell->spec.doors[i];
	}
	/* The anchor misses descriptors that did not come: there are always as many. */
	for (; count > 0 && count < CGROUP_FOLDERS; count++)
		doors[count] = doors[0];
	/* The message waits in the socket, and comes before that for the worker. */
	const bool sent = fd_message_send(cell->control, &request, 1, doors, count, 0);
	/* An anchor that has not begun may have to be asked again, with its specification. */
	if (!sent || cell->anchor_pidfd >= 0)
		doors_close(&cell->spec);
	if (!sent) {
		groups_cell_close(&cell->group);
		cell->spec.group_version = 0;
	}
}

/* Decides which workers are requested from the anchor ahead of the calls, and when. */

enum { TIDY_AFTER_MS = 2 }; /* at least one, so that the caller gets its answer first */

/* False while the socket of the anchor is full. The remaining requests follow later. */
static bool request_worker(struct cell *cell, enum worker_kind kind)
{
	const char request = (char)kind;
	struct err err;

	group_join(cell);
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

/* Request workers until COUNT of KIND are idle or on their way. */
static void cell_keep(struct cell *cell, enum worker_kind kind, size_t count)
{
	const bool prepared = kind == WORKER_PREPARED;
	size_t coming = cell->requested[prepared] +
			cell_count_workers(cell, WORKER_MAKING, prepared) +
			cell_count_workers(cell, WORKER_IDLE, prepared);

	while (coming < count && cell_broken(cell) == NULL && request_worker(cell, kind))
		coming++;
}

/* Waiting calls get workers without preparation, because those are ready first. */
static void cell_keep_ready(struct cell *cell, size_t waiting)
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

static void groups_open(struct cell *cell);

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
		timer_start(cell, &cell->refill, TIDY_AFTER_MS);
}

/*
 * The callback of the timer `refill`: free the workers that are over, and request new
 * ones.
 */
static void cell_refill_due(struct timer *timer)
{
	struct cell *cell = timer->context;

	timer_stop(timer);
	for (struct worker_end *at = cell->workers; at != NULL;) {
		struct worker_end *next = at->next;
		if (at->state == WORKER_OVER)
			cell_free_worker(at);
		at = next;
	}
	if (cell->options.dormant && cell->programs < DORMANT_CALLS)
		return;
	if (cell->options.dormant && !cell->grouped)
		groups_open(cell);
	/*
	 * Waiting calls have requested their workers. Make no workers ahead beside those.
	 */
	if (cell->requested[false] > 1)
		timer_start(cell, &cell->refill, REFILL_AFTER_MS);
	else
		cell_keep_ready(cell, 0);
}

void cell_hold(struct cell *cell)
{
	if (cell->refill.due_ms != CLOCK_NEVER)
		timer_start(cell, &cell->refill, REFILL_AFTER_MS);
}

void cell_call_sent(struct cell *cell)
{
	if (cell->refill.due_ms <= clock_now_ms() + TIDY_AFTER_MS)
		cell_refill_due(&cell->refill);
}

/* Sends the folders that are additionally allowed to the anchor and its workers. */

/* Send the request KIND with ADDITION and its trees. */
static bool request_send(struct cell *cell, char kind, struct cell_spec *addition,
			 struct err *err)
{
	int fds[ANCHOR_REQUEST_FDS] = {-1};
	auto_free int *list = NULL;
	auto_close int file = -1;
	struct buf text;
	size_t trees;

	if (cell_broken(cell) != NULL)
		return err_set(err, ECHILD, "%s", cell_broken(cell));
	buf_init(&text, SPEC_BYTES_MAX);
	bool ok = spec_print(addition, &text, &list, &trees) ||
		  err_set(err, E2BIG, "what is to be protected is over %d bytes",
			  SPEC_BYTES_MAX);
	if (ok && trees > ANCHOR_EXTRAS_MAX)
		ok = err_set(err, E2BIG, "more than %d folders at once", ANCHOR_EXTRAS_MAX);
	ok = ok && fd_memory_file("glovebox-addition", buf_str(&text), &file, err);
	buf_fini(&text);
	if (!ok)
		return false;
	fds[0] = file;
	memcpy(fds + 1, list, trees * sizeof(fds[0]));
	if (kind != ANCHOR_WIDEN)
		group_join(cell);
	return fd_message_send(cell->control, &kind, 1, fds, 1 + trees, 0) ||
	       err_set(err, errno, "telling the cell's anchor: %s", strerror(errno));
}

bool cell_ask_widened(struct cell *cell, uint64_t call, struct cell_spec *addition,
		      struct err *err)
{
	if (!request_send(cell, WORKER_WIDENED, addition, err))
		return false;
	cell->widening = memory_grow(cell->widening, cell->widening_count + 1,
				     sizeof(cell->widening[0]));
	cell->widening[cell->widening_count++] = call;
	return true;
}

/* Like cell_add_worker, for a worker requested by cell_ask_widened. */
static void cell_add_widened(struct cell *cell, const int fds[ANCHOR_FDS])
{
	const uint64_t call = cell->widening_count > 0 ? cell->widening[0] : 0;

	if (cell->widening_count > 0)
		memmove(cell->widening, cell->widening + 1,
			--cell->widening_count * sizeof(cell->widening[0]));
	cell_add_worker(cell, fds, WORKER_WIDENED);
	cell->workers->of_call = call;
	if (call == 0)
		cell_free_worker(cell->workers);
}

static struct worker_end *find(struct cell *cell, uint64_t call)
{
	struct worker_end *at = cell->workers;

	while (at != NULL && (at->of_call != call || at->state >= WORKER_BUSY))
		at = at->next;
	return at;
}

struct worker_end *cell_take_widened(struct cell *cell, uint64_t call)
{
	struct worker_end *found = find(cell, call);

	if (found != NULL)
		found->state = WORKER_BUSY;
	return found;
}

void cell_forget_widened(struct cell *cell, uint64_t call)
{
	struct worker_end *found = find(cell, call);

	if (found != NULL)
		cell_free_worker(found);
	for (size_t i = 0; i < cell->widening_count; i++) {
		if (cell->widening[i] == call)
			cell->widening[i] = 0;
	}
}

bool cell_widen(struct cell *cell, struct cell_spec *addition, struct err *err)
{
	return request_send(cell, ANCHOR_WIDEN, addition, err);
}

void cell_set_widened(struct cell *cell, struct cell_spec *addition)
{
	spec_widen(&cell->spec, addition);
	for (struct worker_end *at = cell->workers; at != NULL;) {
		struct worker_end *next = at->next;

		/* The resident worker looks at nothing that was added. */
		at->stale = at->of_call == 0 && !at->resident;
		if (at->stale && at->state < WORKER_BUSY)
			cell_free_worker(at);
		at = next;
	}
	cell_refill(cell);
}

const struct cell_spec *cell_spec(const struct cell *cell)
{
	return &cell->spec;
}

bool cell_audit_due(const struct cell *cell)
{
	return cell->record.audit_due;
}

void cell_set_audit_due(struct cell *cell, bool due)
{
	cell->record.audit_due = due && cell->spec.guard != NULL;
	pending_set_audit_due(cell->record.pending, cell->record.audit_due);
}

bool cell_hold_log(struct cell *cell, int fd, struct pending_log *log)
{
	pending_hold(cell->record.pending, &cell->spec, fd, log);
	return log->number > 0 || !cell->record.wanted;
}

void cell_drop_log(struct cell *cell, struct pending_log *log)
{
	pending_drop(cell->record.pending, log);
}

struct pending *cell_pending(const struct cell *cell)
{
	return cell->record.pending;
}

void cell_hold_guard(void *record, const char *folder, const char *workspace,
		     struct guard *guard)
{
	struct cell_record *made = record;

	made->wanted = true;
	made->pending = pending_open(folder, workspace, guard, &made->audit_due);
	made->audit_due = made->audit_due && guard->root_count > 0;
	pending_set_audit_due(made->pending, made->audit_due);
}

bool cell_has_granted(void *record)
{
	const struct cell_record *made = record;
	const struct pending_left_log *log;

	for (size_t i = 0; (log = pending_left(made->pending, i)) != NULL; i++) {
		if (value_count(log->granted) > 0)
			return true;
	}
	return false;
}

void cell_record_close(struct cell_record *record)
{
	pending_close(record->pending);
	*record = (struct cell_record){0};
}

struct outlet *cell_outlet(const struct cell *cell)
{
	/* Without that listener the proxy takes no requests: it is there for ports only. */
	return cell->spec.listen_count > 0 ? cell->outlet : NULL;
}

struct vault *cell_vault(const struct cell *cell)
{
	return cell->vault;
}

const struct publish *cell_publish(const struct cell *cell)
{
	return &cell->publish;
}

bool cell_lost_route(struct cell *cell)
{
	uint64_t count, before = cell->unrouted;

	if (cell->questions_fd < 0 || !outlet_count_unrouted(cell->anchor_pidfd, &count))
		return true;
	cell->unrouted = count;
	return count != before;
}

/* The entry of the socket at PATH in the view; NULL: there is none. */
static struct view_entry *socket_find(struct cell *cell, const char *path)
{
	for (size_t i = 0; i < cell->spec.view.count; i++) {
		struct view_entry *entry = &cell->spec.view.entries[i];

		if (entry->kind == VIEW_SOCKET && strcmp(entry->path, path) == 0)
			return entry;
	}
	return NULL;
}

int cell_take_socket(struct cell *cell, const char *path)
{
	struct view_entry *entry = socket_find(cell, path);

	return entry != NULL ? fd_take(&entry->fd) : -1;
}

/* The anchor has made the socket that REPLY names. */
static void socket_add(struct cell *cell, struct anchor_reply *reply, int fds[ANCHOR_FDS])
{
	struct view_entry *entry;

	reply->text[sizeof(reply->text) - 1] = '\0';
	entry = socket_find(cell, reply->text);
	if (entry != NULL && entry->fd < 0)
		entry->fd = fd_take(&fds[0]);
	for (size_t i = 0; i < ANCHOR_FDS; i++)
		fd_close(&fds[i]);
}

int cell_questions(const struct cell *cell)
{
	return cell->questions_fd;
}

/* Is the proxy or the broker not walled in yet? No call may begin before that. */
static bool cell_outlet_waits(const struct cell *cell)
{
	return (cell->outlet != NULL && !outlet_is_ready(cell->outlet)) ||
	       (cell->vault != NULL && !vault_is_ready(cell->vault));
}

const char *cell_broken(const struct cell *cell)
{
	return cell->broken.text[0] != '\0' ? cell->broken.text : NULL;
}

/* Set the reason why CELL broke. `explain` may turn it into what this machine lacks. */
static void broken_set(struct cell *cell, const struct err *err)
{
	cell->broken = *err;
	if (cell->options.explain != NULL)
		(void)cell->options.explain(cell->options.minimum_level, &cell->broken);
}

/* Mark CELL as broken for the reason ERR, unless CELL already has a reason. */
static void cell_break(struct cell *cell, const struct err *err)
{
	if (cell->broken.text[0] == '\0')
		broken_set(cell, err);
	loop_remove(&cell->control_watch);
	cell->requested[false] = cell->requested[true] = 0;
}

static void listener_add(struct cell *cell, int port, int fds[ANCHOR_FDS])
{
	for (size_t i = 0; i < ANCHOR_FDS; i++) {
		if (cell->outlet != NULL)
			outlet_add_listener(cell->outlet, (uint16_t)port, &fds[i]);
		fd_close(&fds[i]);
	}
}

/* The proxy or the broker is ready, or it has ended. */
static void outlet_changed(void *context)
{
	struct cell *cell = context;
	const char *proxy = cell->outlet != NULL ? outlet_broken(cell->outlet) : NULL;
	const char *broker = cell->vault != NULL ? vault_broken(cell->vault) : NULL;
	struct err err;

	if (cell_outlet_waits(cell) && proxy == NULL && broker == NULL)
		return; /* the other one is not ready yet */
	if (cell_outlet_waits(cell)) {
		(void)err_set(&err, ECHILD, "%s: %s",
			      proxy != NULL ? "the network proxy" : "the broker",
			      proxy != NULL ? proxy : broker);
		cell_break(cell, &err);
	}
	for (const struct worker_end *at = cell->workers; at != NULL; at = at->next) {
		if (at->made)
			loop_remove_timer(&cell->open_timer);
	}
	if (cell->built)
		loop_remove_timer(&cell->open_timer);
	cell->options.changed(cell->options.context);
}

/*
 * Say in ERR why REPLY cannot be used: the anchor refuses, or this process has no room
 * for its descriptors.
 */
static bool reply_refused(struct anchor_reply *reply, struct err *err)
{
	if (reply->kind == ANCHOR_WORKER || reply->kind == ANCHOR_STARTED)
		return err_set(
			err, EMFILE,
			"a new worker could not be taken over: this program has too many "
			"files open; raise `ulimit -n`, or have less under way at once");
	reply->text[sizeof(reply->text) - 1] = '\0';
	return err_set(err, ECHILD, "%s",
		       reply->text[0] != '\0'
			       ? reply->text
			       : "the cell's anchor refuses, and says not why");
}

/*
 * The anchor has the trees of the view. A cell that is never widened needs them no more, and
 * each of them would keep a descriptor and a mount of this process.
 */
static void drop_trees(struct cell *cell)
{
	fd_close(&cell->spec.mapping.fd);
	for (size_t i = 0; i < cell->spec.view.count; i++) {
		if (cell->spec.view.entries[i].kind != VIEW_SOCKET)
			fd_close(&cell->spec.view.entries[i].fd);
	}
}

static void control_watch(struct cell *cell);

/*
 * The control socket has ended before the anchor began: the starter was killed while it was
 * asked for it. Ask a new one, once, and repeat what the anchor was asked. False: that is not
 * so, and ERR stays as it is; or it cannot be done, and ERR says why.
 */
static bool cell_start_again(struct cell *cell, struct err *err)
{
	const size_t requested[] = {cell->requested[false], cell->requested[true]};

	/* One that has said anything had begun, and programs may have left something in it. */
	if (cell->anchor_pidfd >= 0 || cell->anchor_pid != 0 || cell->built ||
	    cell->has_made || cell->workers != NULL)
		return false;
	if (cell->again || cell->options.starter == NULL || cell->widening_count > 0 ||
	    cell->spec.brokers)
		return false;
	cell->again = true;
	loop_remove(&cell->control_watch);
	fd_close(&cell->control);
	if (!cell_start(cell, NULL, err))
		return err_while(err,
				 "the starter was killed, and no new one could be asked");
	control_watch(cell);
	cell->requested[false] = cell->requested[true] = 0;
	if (first_worker_is_late(cell))
		greet(cell);
	cell_keep(cell, WORKER_PLAIN, requested[false]);
	cell_keep(cell, WORKER_PREPARED, requested[true]);
	return true;
}

/* False when there was no message. */
static bool control_read(struct cell *cell)
{
	struct anchor_reply reply = {0};
	int fds[ANCHOR_FDS];
	struct err err;

	if (!anchor_receive(cell->control, &reply, fds, &err)) {
		if (err.code == EAGAIN || cell_start_again(cell, &err))
			return false;
		cell_break(cell, &err);
	} else if (reply.kind == ANCHOR_WIDENED) {
		reply.text[sizeof(reply.text) - 1] = '\0';
		(void)err_set(&err, EINVAL, "%s", reply.text);
		cell->options.widened(cell->options.context,
				      reply.text[0] != '\0' ? &err : NULL);
	} else if (reply.kind == ANCHOR_WORKER && reply.worker == WORKER_WIDENED &&
		   fds[0] >= 0 && fds[1] >= 0) {
		cell_add_widened(cell, fds);
	} else if (reply.kind == ANCHOR_WORKER && fds[0] >= 0 && fds[1] >= 0) {
		bool prepared = reply.worker == WORKER_PREPARED;
		if (cell->requested[prepared] > 0)
			cell->requested[prepared]--;
		cell_add_worker(cell, fds, (enum worker_kind)reply.worker);
	} else if (reply.kind == ANCHOR_BUILT) {
		cell->built = true;
		drop_trees(cell);
		if (!cell_outlet_waits(cell))
			loop_remove_timer(&cell->open_timer);
	} else if (reply.kind == ANCHOR_LISTENER) {
		listener_add(cell, reply.code, fds);
	} else if (reply.kind == ANCHOR_PLAIN_DOOR && cell->vault != NULL) {
		vault_add_listener(cell->vault, &fds[0]);
		fd_close(&fds[1]);
	} else if (reply.kind == ANCHOR_INLET && cell->outlet != NULL && fds[0] >= 0) {
		outlet_add_inlet(cell->outlet, &fds[0]);
		fd_close(&fds[1]);
	} else if (reply.kind == ANCHOR_SOCKET) {
		socket_add(cell, &reply, fds);
	} else if (reply.kind == ANCHOR_QUESTIONS && cell->questions_fd < 0) {
		cell->questions_fd = fd_take(&fds[0]);
		fd_close(&fds[1]);
	} else if (reply.kind == ANCHOR_STARTED && cell->anchor_pidfd < 0 && fds[0] >= 0) {
		cell->anchor_pidfd = fds[0];
		doors_close(&cell->spec);
	} else if (reply.kind == ANCHOR_STARTED && cell->anchor_pidfd >= 0) {
		fd_close(&fds[0]); /* the second of the two that say so */
	} else {
		for (size_t i = 0; i < ANCHOR_FDS; i++)
			fd_close(&fds[i]);
		if (reply.kind == ANCHOR_STARTED && cell->anchor_pidfd < 0)
			cell->anchor_pid = (pid_t)reply.code;
		/* An anchor may have waited for a broker that failed: its reason comes first. */
		if (cell->vault != NULL)
			vault_hear(cell->vault);
		(void)reply_refused(&reply, &err);
		cell_refused(cell, &err);
	}
	return true;
}

static void control_ready(struct watch *watch, short events)
{
	struct cell *cell = watch->context;

	(void)events;
	(void)control_read(cell);
	cell->options.changed(cell->options.context);
}

static void control_watch(struct cell *cell)
{
	cell->control_watch = (struct watch){.fd = cell->control,
					     .events = POLLIN,
					     .ready = control_ready,
					     .context = cell,
					     .stays = true};
	loop_add(cell->options.loop, &cell->control_watch);
}

static bool is_readable(int fd)
{
	struct pollfd wanted = {.fd = fd, .events = POLLIN};

	return poll(&wanted, 1, 0) > 0;
}

/*
 * Read the messages that arrived since the last turn of the loop. A caller that turns the
 * loop only in its calls would otherwise begin each call with old messages.
 */
static void cell_catch_up(struct cell *cell)
{
	while (cell_broken(cell) == NULL && control_read(cell))
		;
	for (struct worker_end *at = cell->workers; at != NULL;) {
		struct worker_end *next = at->next;
		if (at->state == WORKER_MAKING && is_readable(at->socket))
			(void)cell_read_worker(at);
		at = next;
	}
}

/* The starter of CELL has not made an anchor in all the time that there was. */
static void starter_is_late(struct cell *cell)
{
	if (cell->anchor_pidfd < 0 && cell->anchor_pid == 0 && cell->options.starter != NULL)
		starter_give_up(cell->options.starter);
}

static void open_due(struct timer *timer)
{
	struct cell *cell = timer->context;
	struct err err;

	starter_is_late(cell);
	(void)err_set(&err, ECHILD, "the cell was not ready after %d s",
		      CELL_OPEN_MS / 1000);
	cell_break(cell, &err);
	for (struct worker_end *at = cell->workers; at != NULL; at = at->next) {
		if (at->state == WORKER_BUSY && !at->made) {
			at->frame(at->context, NULL);
			return; /* no other worker to look at: this one has been freed */
		}
	}
	cell->options.changed(cell->options.context);
}

static bool first_wait(struct cell *cell, struct err *err)
{
	int64_t deadline = clock_now_ms() + CELL_OPEN_MS;

	while (cell_count_workers(cell, WORKER_IDLE, false) == 0 || cell_outlet_waits(cell)) {
		if (cell_broken(cell) != NULL)
			return err_set(err, ECHILD, "%s", cell->broken.text);
		if (clock_now_ms() >= deadline) {
			starter_is_late(cell);
			return err_set(err, ECHILD, "the cell was not ready after %d s",
				       CELL_OPEN_MS / 1000);
		}
		loop_turn(cell->options.loop, deadline);
	}
	return true;
}

/*
 * Wait for the first worker only until its socket is here. The anchor and the helper that
 * makes its network use two processors. The caller has time to prepare its call while the
 * worker locks itself in.
 */
static void handing_over_wait(struct cell *cell)
{
	while (cell->workers == NULL && cell_broken(cell) == NULL)
		loop_turn(cell->options.loop, CLOCK_NEVER);
}

/* Called after the first worker is ready, because this would delay its start. */
static void groups_open(struct cell *cell)
{
	const struct cell_options *options = &cell->options;

	/* That of a cell that has slept is about to end, or has ended. */
	groups_stop(cell->groups);
	cell->grouped = true;
	cell->groups = groups_start(options->loop, options->program, options->starter,
				    options->limits, &cell->group);
	for (struct worker_end *at = cell->workers; at != NULL; at = at->next)
		groups_add(cell->groups, &at->group, at->pidfd);
}

void cell_rest(struct cell *cell)
{
	if (cell_broken(cell) != NULL)
		return;
	if (!cell->grouped)
		groups_open(cell);
	cell_catch_up(cell);
	cell_refill_due(&cell->refill);
	cell->options.changed(cell->options.context);
}

static bool outlet_make(struct cell *cell, struct err *err)
{
	const struct outlet_options options = {.loop = cell->options.loop,
					       .program = cell->options.program,
					       .spec = &cell->spec,
					       .changed = outlet_changed,
					       .owner = cell,
					       .refused = cell->options.refused,
					       .asked = cell->options.asked,
					       .context = cell->options.context};

	if (!outlet_open(&options, &cell->outlet, err)) {
		err->code = ECHILD;
		return false;
	}
	if (cell->spec.publishes)
		outlet_publish(cell->outlet, &cell->publish);
	return true;
}

/* Join the proxy to the broker, which serves some of its clients. */
static bool handing_make(struct cell *cell, struct err *err)
{
	int ends[2];

	if (cell->vault == NULL)
		return true;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, errno, "a socket for the broker: %s", strerror(errno));
	outlet_add_broker(cell->outlet, &ends[0]);
	vault_add_proxy(cell->vault, &ends[1]);
	return true;
}

/* Start the broker, where some credential has its key there. */
static bool vault_make(struct cell *cell, struct err *err)
{
	const struct vault_options options = {
		.loop = cell->options.loop,
		.program = cell->options.program,
		.spec = &cell->spec,
		.credentials = cell->options.credentials,
		.count = cell->options.credential_count,
		.home = cell->options.person_home,
		.environment = cell->options.person_environment,
		.changed = outlet_changed,
		.owner = cell,
		.refused = cell->options.refused,
		.context = cell->options.context,
	};

	if (options.count == 0)
		return true;
	assert(!cell->options.direct);
	if (!spec_is_sealed(&cell->spec))
		return err_set(err, EINVAL,
			       "credentials need a cell of level L3: below it a program has no "
			       "door of its own to the broker");
	if (!vault_open(&options, &cell->vault, err))
		return false;
	cell->spec.brokers = cell->vault != NULL;
	return true;
}

/* From the anchor's start until the cell can take a call. */
static bool first_steps(struct cell *cell, struct err *err)
{
	const struct cell_options *options = &cell->options;

	if (is_served(&cell->spec) && (!outlet_make(cell, err) || !handing_make(cell, err)))
		return false;
	const bool late = first_worker_is_late(cell);

	if (late)
		greet(cell);
	else
		cell_keep(cell, WORKER_PLAIN, 1);
	cell->open_timer = (struct timer){.due_ms = clock_now_ms() + CELL_OPEN_MS,
					  .due = open_due,
					  .context = cell};
	if (options->direct) {
		loop_add_timer(options->loop, &cell->open_timer);
		handing_over_wait(cell);
		return true;
	}
	if (options->meanwhile != NULL)
		options->meanwhile(options->meanwhile_context);
	if (late) {
		loop_add_timer(options->loop, &cell->open_timer);
		return true;
	}
	if (!first_wait(cell, err))
		return false;
	cell_count_down(cell);
	if (options->dormant)
		drop_trees(cell);
	if (!options->rests && !options->dormant) {
		groups_open(cell);
		cell_keep_ready(cell, 0);
	}
	return true;
}

/*
 * Does CELL get its group with its first worker? The kernel keeps much memory for a group. In
 * version 2 a process is born in its group, since a move may need rights that this one lacks.
 */
static bool group_is_late(const struct cell *cell)
{
	return first_worker_is_late(cell) &&
	       cell->options.starter->groups.place.version == 1;
}

/* Make the group of CELL, where it is wanted. Only some limits cannot do without. */
static bool group_make(struct cell *cell, struct err *err)
{
	const struct policy_limits *limits = cell->options.limits;
	const bool needed = limits->cpus > 0 || limits->cpu_s > 0 ||
			    limits->written > 0 || limits->io_write > 0;

	cell->group_waits = !needed && cell->options.exact && group_is_late(cell);
	return (!needed && !cell->options.exact) || cell->group_waits ||
	       groups_cell_open(limits, cell->options.one, &cell->spec,
				cell->options.starter != NULL ? &cell->options.starter->groups
							      : NULL,
				&cell->group, err) ||
	       !needed;
}

bool cell_open(const struct cell_options *options, struct cell **cell, struct err *err)
{
	struct cell *made = memory_alloc(sizeof(*made));
	struct starter own;
	bool ok;

	made->options = *options;
	made->spec = *options->take_spec;
	made->record = *options->take_record;
	spec_init(options->take_spec);
	*options->take_record = (struct cell_record){0};
	made->spec.one_call = options->direct;
	made->control = -1;
	made->anchor_pidfd = -1;
	made->questions_fd = -1;
	starter_init(&own, options->program);
	if (!group_make(made, err) || !publish_listen(&made->spec, &made->publish, err) ||
	    !vault_make(made, err)) {
		cell_close(made);
		return false;
	}
	if (!cell_start(made, &own, err)) {
		err->code = ECHILD;
		cell_close(made);
		return false;
	}
	if (made->options.direct)
		doors_close(&made->spec);
	made->refill = (struct timer){.due_ms = CLOCK_NEVER,
				      .due = cell_refill_due,
				      .context = made};
	made->dormant =
		(struct timer){.due_ms = CLOCK_NEVER, .due = cell_sleep, .context = made};
	control_watch(made);
	ok = first_steps(made, err);
	starter_fini(&own);
	if (!ok) {
		cell_close(made);
		return false;
	}
	*cell = made;
	return true;
}

bool cell_is_built(const struct cell *cell)
{
	return (cell->built || cell->has_made) && !cell_outlet_waits(cell);
}

/* Has the starter ended that was asked for the anchor of CELL? */
static bool starter_has_ended(const struct cell *cell)
{
	const struct starter *starter = cell->options.starter;

	return starter == NULL || starter->pidfd < 0 ||
	       starter->started != cell->starter || is_readable(starter->pidfd);
}

/*
 * The anchor of a cell that was just opened may still be on its way. Wait for it: nobody could
 * end it later. Without its starter it will not begin any more.
 */
static void anchor_await(struct cell *cell)
{
	enum { OF_ANCHOR, OF_STARTER, ALL };
	int64_t until = clock_now_ms() + ANCHOR_END_MS;
	bool alone = false;
	struct err err = {0};

	while (cell->anchor_pidfd < 0 && cell->anchor_pid == 0 && cell->control >= 0 &&
	       err.code != ECONNRESET && clock_now_ms() < until) {
		struct anchor_reply reply = {0};
		int fds[ANCHOR_FDS] = {-1, -1};

		if (!alone && starter_has_ended(cell)) {
			alone = true;
			until = clock_now_ms() + ANCHOR_ALONE_MS;
		}
		struct pollfd slots[ALL] = {
			[OF_ANCHOR] = {.fd = cell->control, .events = POLLIN},
			[OF_STARTER] = {.fd = alone ? -1 : cell->options.starter->pidfd,
					.events = POLLIN},
		};
		if (poll(slots, ALL, alone ? ANCHOR_ALONE_MS : ANCHOR_END_MS) > 0 &&
		    slots[OF_ANCHOR].revents != 0 &&
		    anchor_receive(cell->control, &reply, fds, &err) &&
		    reply.kind == ANCHOR_STARTED) {
			cell->anchor_pidfd = fd_take(&fds[0]);
			cell->anchor_pid = cell->anchor_pidfd < 0 ? (pid_t)reply.code : 0;
		}
		for (size_t i = 0; i < ANCHOR_FDS; i++)
			fd_close(&fds[i]);
	}
	if (cell->control >= 0 && err.code != ECONNRESET && !alone)
		starter_is_late(cell);
}

/*
 * The pidfd of the anchor has found no room. The control socket has been closed, so that there
 * may be some; a child that was not waited for keeps its number.
 */
static void anchor_find(struct cell *cell)
{
	siginfo_t info;

	if (cell->anchor_pid <= 0 || waitid(P_PID, (id_t)cell->anchor_pid, &info,
					    WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return;
	cell->anchor_pidfd = kernel_pidfd_open(cell->anchor_pid);
	if (cell->anchor_pidfd >= 0)
		return;
	(void)kill(cell->anchor_pid, SIGKILL);
	while (waitpid(cell->anchor_pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

/* Kill everything in CELL. */
static void kill_all(struct cell *cell)
{
	struct err err;

	anchor_await(cell);
	(void)err_set(&err, ECHILD, "the cell is being closed");
	cell_break(cell, &err);
	groups_leave(cell->groups);
	/* An anchor without a pid namespace ends the processes of the cell itself. */
	if (spec_is_sealed(&cell->spec))
		(void)syscall(SYS_pidfd_send_signal, cell->anchor_pidfd, SIGKILL, NULL, 0);
	else
		fd_close(&cell->control);
}

void cell_abandon(struct cell *cell, bool waits)
{
	if (!cell->abandoned)
		kill_all(cell);
	cell->abandoned = true;
	if (!waits)
		return;
	cell_wait_anchor(cell->anchor_pidfd);
	cell_record_close(&cell->record);
	fd_close(&cell->spec.home_lock);
	fd_close(&cell->spec.temp_lock);
	fd_close(&cell->spec.cache_lock);
}

void cell_accounts(const struct cell *cell, struct accounts *accounts, struct value *hosts)
{
	groups_cell_read(&cell->group, accounts);
	accounts->net_in = accounts->net_out = 0;
	accounts->net = cell->outlet != NULL ? ACCOUNTS_PROXY : ACCOUNTS_NONE;
	if (cell->outlet != NULL)
		counts_tell(outlet_counts(cell->outlet), hosts, &accounts->net_in,
			    &accounts->net_out);
	if (cell->vault != NULL)
		counts_tell(vault_counts(cell->vault), hosts, &accounts->net_in,
			    &accounts->net_out);
}

void cell_close(struct cell *cell)
{
	if (cell == NULL)
		return;
	/* The analyser does not see that a freed worker has left the list. */
	while (cell->workers != NULL)
		cell_free_worker(cell->workers); /* NOLINT(clang-analyzer-unix.Malloc) */
	loop_remove(&cell->control_watch);
	loop_remove_timer(&cell->open_timer);
	loop_remove_timer(&cell->refill);
	loop_remove_timer(&cell->dormant);
	anchor_await(cell);
	fd_close(&cell->control);
	anchor_find(cell);
	fd_close(&cell->questions_fd);
	outlet_close(cell->outlet);
	vault_close(cell->vault);
	publish_close(&cell->publish);
	if (!spec_is_sealed(&cell->spec))
		cell_wait_anchor(cell->anchor_pidfd);
	role_end(&cell->anchor_pidfd, !cell->options.direct);
	groups_stop(cell->groups);
	groups_cell_close(&cell->group);
	shape_tidy(&cell->spec);
	spec_fini(&cell->spec);
	cell_record_close(&cell->record);
	free(cell->widening);
	free(cell);
}
