/* cell: start the anchor, follow its socket, close all. */
#include "cell/cell.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "cell/cell_parts.h"
#include "cell/cell_start.h"
#include "cell/lookups.h"
#include "cell/outlet.h"
#include "cell/pending.h"
#include "process/role.h"
#include "view/shape.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

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

void cell_give_journal(struct cell *cell, struct pending_journal *journal)
{
	pending_give(cell->record.pending, &cell->spec, journal);
}

void cell_take_back_journal(struct cell *cell, struct pending_journal *journal)
{
	pending_take_back(cell->record.pending, journal);
}

const struct value *cell_unfinished(const struct cell *cell)
{
	return pending_writes(cell->record.pending);
}

void cell_mended(struct cell *cell)
{
	pending_mended(cell->record.pending, &cell->spec);
}

struct pending *cell_pending(const struct cell *cell)
{
	return cell->record.pending;
}

void cell_hold_guard(void *record, const char *folder, const char *workspace,
		     struct value *guard)
{
	struct cell_record *made = record;

	made->pending = pending_open(folder, workspace, guard, &made->audit_due);
}

bool cell_has_granted(void *record)
{
	const struct cell_record *made = record;
	const struct value *roots = NULL;

	return pending_granted(made->pending, &roots) != NULL;
}

void cell_record_close(struct cell_record *record)
{
	pending_close(record->pending);
	*record = (struct cell_record){0};
}

struct outlet *cell_outlet(const struct cell *cell)
{
	return cell->outlet;
}

bool cell_lost_route(struct cell *cell)
{
	uint64_t count, before = cell->unrouted;

	if (cell->questions_fd < 0 || !lookups_count_unrouted(cell->anchor_pidfd, &count))
		return true;
	cell->unrouted = count;
	return count != before;
}

int cell_questions(const struct cell *cell)
{
	return cell->questions_fd;
}

bool cell_outlet_waits(const struct cell *cell)
{
	return cell->outlet != NULL && !outlet_is_ready(cell->outlet);
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

void cell_break(struct cell *cell, const struct err *err)
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

/* The proxy is ready, or it has ended. */
static void outlet_changed(void *context)
{
	struct cell *cell = context;
	struct err err;

	if (cell_outlet_waits(cell)) {
		(void)err_set(&err, ECHILD, "the network proxy: %s",
			      outlet_broken(cell->outlet));
		cell_break(cell, &err);
	}
	for (const struct worker_end *at = cell->workers; at != NULL; at = at->next) {
		if (at->made)
			loop_remove_timer(&cell->open_timer);
	}
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

/* False when there was no message. */
static bool control_read(struct cell *cell)
{
	struct anchor_reply reply = {0};
	int fds[ANCHOR_FDS];
	struct err err;

	if (!anchor_receive(cell->control, &reply, fds, &err)) {
		if (err.code == EAGAIN)
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
	} else if (reply.kind == ANCHOR_LISTENER) {
		listener_add(cell, reply.code, fds);
	} else if (reply.kind == ANCHOR_QUESTIONS && cell->questions_fd < 0) {
		cell->questions_fd = fd_take(&fds[0]);
		fd_close(&fds[1]);
	} else if (reply.kind == ANCHOR_STARTED && cell->anchor_pidfd < 0 && fds[0] >= 0) {
		cell->anchor_pidfd = fds[0];
	} else {
		for (size_t i = 0; i < ANCHOR_FDS; i++)
			fd_close(&fds[i]);
		(void)reply_refused(&reply, &err);
		cell_break(cell, &err);
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

static bool is_readable(int fd)
{
	struct pollfd wanted = {.fd = fd, .events = POLLIN};

	return poll(&wanted, 1, 0) > 0;
}

void cell_catch_up(struct cell *cell)
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

static void open_due(struct timer *timer)
{
	struct cell *cell = timer->context;
	struct err err;

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

static bool first_worker_wait(struct cell *cell, struct err *err)
{
	int64_t deadline = clock_now_ms() + CELL_OPEN_MS;

	while (cell_count_workers(cell, WORKER_IDLE, false) == 0 || cell_outlet_waits(cell)) {
		if (cell_broken(cell) != NULL)
			return err_set(err, ECHILD, "%s", cell->broken.text);
		if (clock_now_ms() >= deadline)
			return err_set(err, ECHILD, "the cell was not ready after %d s",
				       CELL_OPEN_MS / 1000);
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

	cell->grouped = true;
	cell->groups = groups_start(options->loop, options->program, options->limits);
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

	if (outlet_open(&options, &cell->outlet, err))
		return true;
	err->code = ECHILD;
	return false;
}

/* From the anchor's start until the cell can take a call. */
static bool first_steps(struct cell *cell, struct err *err)
{
	const struct cell_options *options = &cell->options;

	if ((cell->spec.network_count > 0 || cell->spec.asks_network) &&
	    !outlet_make(cell, err))
		return false;
	loop_add_timer(options->loop, &cell->refill);
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
	if (!first_worker_wait(cell, err))
		return false;
	if (!options->rests) {
		groups_open(cell);
		cell_keep_ready(cell, 0);
	}
	return true;
}

bool cell_open(const struct cell_options *options, struct cell **cell, struct err *err)
{
	struct cell *made = memory_alloc(sizeof(*made));
	struct cell_start start = {.program = options->program,
				   .direct = options->direct,
				   .tools = options->tools};
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
	made->refill = (struct timer){.due_ms = CLOCK_NEVER,
				      .due = cell_refill_due,
				      .context = made};
	loop_add(options->loop, &made->control_watch);
	ok = first_steps(made, err);
	cell_start_end(&start);
	if (!ok) {
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
		cell_free_worker(cell->workers);
	loop_remove(&cell->control_watch);
	loop_remove_timer(&cell->open_timer);
	loop_remove_timer(&cell->refill);
	fd_close(&cell->control);
	fd_close(&cell->questions_fd);
	outlet_close(cell->outlet);
	if (!spec_is_sealed(&cell->spec))
		cell_wait_anchor(cell->anchor_pidfd);
	role_end(&cell->anchor_pidfd, !cell->options.direct);
	groups_stop(cell->groups);
	shape_tidy(&cell->spec);
	spec_fini(&cell->spec);
	cell_record_close(&cell->record);
	free(cell->widening);
	free(cell);
}
