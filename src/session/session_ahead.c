/*
 * session_ahead: what undo does while a session rests, so that no call waits for it: files for
 * the next steps and the next checkpoint, the look that the next command would begin with, and
 * a tidy store.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "cell/cell.h"
#include "session/session_undo.h"
#include "session/session_undo_parts.h"

enum {
	/* Calls of one answer follow each other faster than this. */
	REST_MS = 5,
	/*
	 * What changed just before a look is compared by content in the next one, once: better
	 * now, when it is older than the kernel's ticks (checkpoint_keep.c).
	 */
	SETTLE_MS = 25,
};

static bool is_quiet(const struct session *session)
{
	return session->queued_files + session->queued_others + session->busy_files +
		       session->busy_others ==
	       0;
}

static void rest_due(struct timer *timer)
{
	struct keeper *keeper = timer->context;
	struct session *session = keeper->session;
	const bool settles = keeper->settles;
	struct err err;

	if (keeper->broken || keeper->sync != NULL || keeper->starting ||
	    keeper->store == NULL || !is_quiet(session) ||
	    cell_broken(session->cell) != NULL)
		return;
	keeper_tidy(keeper);
	undo_store_make_ahead(keeper->store, UNDO_AHEAD_MAX);
	fd_close(&keeper->fds[0]);
	/* What cannot be made now is made, or told, when it is wanted. */
	if (keeper->listed)
		(void)keeper_sync_files(keeper, &err);
	/* One that takes long would be in the next call's way. */
	if (!keeper->listed || keeper->look_us > KEEPER_WAIT_US)
		return;
	if (!keeper->fresh || (keeper->young && settles))
		session_checkpoint(session, false);
	/* No more than that: somebody else may write here without end. */
	keeper->settles = true;
	if (!settles)
		timer->due_ms = clock_now_ms() + SETTLE_MS;
}

void session_rest(struct session *session)
{
	cell_rest(session->cell);
}

void keeper_look_ahead(struct keeper *keeper)
{
	struct timer *timer = &keeper->ahead;

	if (keeper->broken || keeper->session->one_call)
		return;
	keeper->settles = false;
	timer->due = rest_due;
	timer->context = keeper;
	timer->due_ms = clock_now_ms() + REST_MS;
	loop_add_timer(keeper->session->loop, timer);
}
