/*
 * running_batch: calls that only read, sent together to one worker. The worker answers
 * each call before it begins the next, so only the first is ever busy. The others wait
 * like queued calls, but behind the first one at its worker. Whatever happens to one of
 * the calls, the others are queued again, and another worker makes them: reading twice
 * does no harm. A worker that still has calls which others make now ends.
 */
#include "base/clock.h"
#include "cell/wire.h"
#include "session/session.h"

enum {
	/*
	 * So many calls need only one wake-up. More would gain little, and wait longer
	 * for a slow one.
	 */
	BATCH_MAX = 4,
	/* How much longer a call waits because it stands behind a slow one. */
	RECALL_MS = 20,
};

/*
 * The call leaves nothing, needs no files or folders of its own, and reads nothing from
 * its socket.
 */
static bool may_share(const struct running *running)
{
	const struct tool *tool = running->tool;

	return tool->effects == EFFECT_READS && tool->carrier == NULL && !tool->answers &&
	       !tool->wants_changes && running->fd_count == 0 && !running->auditing &&
	       running->extras == NULL;
}

/* Searches may take only some workers, so that no other call stands behind a search. */
static struct running *next_to_share(struct running *at, bool searches)
{
	while (at != NULL && (at->state != RUNNING_QUEUED ||
			      at->tool->searches != searches || !may_share(at)))
		at = at->next;
	return at;
}

/* Would a worker first have work to do that belongs to one call only? */
static bool has_duties(const struct cell *cell)
{
	return cell_audit_due(cell) || cell_unfinished(cell) != NULL;
}

/*
 * How many calls one worker gets: the busy call and the queued ones, divided by the
 * workers that may take them.
 */
static size_t share_of(const struct running *running)
{
	const bool searches = running->tool->searches;
	const size_t workers = running_room(running->session, searches) + 1;

	return (1 + running_queued(running->session, searches) + workers - 1) / workers;
}

static void gather(struct running *running)
{
	const size_t share = share_of(running);
	struct running *last = running, *next = running->session->first_queued;

	for (size_t count = 1; count < BATCH_MAX && count < share; count++) {
		next = next_to_share(next, running->tool->searches);
		if (next == NULL)
			return;
		running_set_state(next, RUNNING_AHEAD);
		last->after = next;
		next->before = last;
		last = next;
	}
}

static void recall_due(struct timer *timer)
{
	struct running *running = timer->context;

	/* No other worker could begin the calls behind RUNNING now. */
	if (running->after != NULL &&
	    running_room(running->session, running->tool->searches) == 0) {
		timer->due_ms = clock_now_ms() + RECALL_MS;
		return;
	}
	batch_recall(running);
	running_dispatch(running->session);
}

static void watch_over(struct running *running)
{
	running->recall = (struct timer){.due_ms = clock_now_ms() + RECALL_MS,
					 .due = recall_due,
					 .context = running};
	loop_add_timer(running->session->loop, &running->recall);
}

static bool print_all(struct running *running, const struct worker_end *worker,
		      struct buf *text)
{
	struct buf call;
	bool ok = true;

	buf_init(&call, FRAME_MAX);
	for (struct running *at = running; at != NULL && ok; at = at->after) {
		buf_clear(&call);
		ok = running_print(at, worker, &call) &&
		     wire_add_to_batch(buf_str(&call), text);
	}
	buf_fini(&call);
	return ok;
}

bool batch_print(struct running *running, const struct worker_end *worker, struct buf *text)
{
	const struct session *session = running->session;

	if (!worker->made || worker->of_call != 0 || session->one_call ||
	    !may_share(running) || has_duties(session->cell))
		return false;
	gather(running);
	if (running->after == NULL)
		return false;
	watch_over(running);
	if (print_all(running, worker, text))
		return true;
	batch_recall(running);
	running->recalled = false; /* nothing was sent */
	buf_clear(text);
	return false;
}

void batch_recall(struct running *running)
{
	struct running *first = running;

	while (first->before != NULL)
		first = first->before;
	if (first->after == NULL)
		return;
	first->recalled = true;
	first->recall.due_ms = 0; /* at the loop's next turn they go to other workers */
	for (struct running *at = first; at != NULL;) {
		struct running *next = at->after;

		at->after = at->before = NULL;
		if (at->state == RUNNING_AHEAD)
			running_set_state(at, RUNNING_QUEUED);
		at = next;
	}
}

bool batch_go_on(struct running *running, struct worker_end *worker)
{
	struct running *next = running->after;

	if (next == NULL)
		return false;
	running->after = NULL;
	next->before = NULL;
	running_begin(next, worker);
	if (next->after != NULL)
		watch_over(next);
	return true;
}
