/*
 * session_ahead: work that undo does while a session rests, so that no call waits for it.
 * It makes the files for the next steps and the next checkpoint, it takes the look with
 * which the next command would begin, and it tidies the store.
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
	 * A file that changed just before a look is compared by its content in the next
	 * look, once. That is better done now, when the change is older than the kernel's
	 * ticks (checkpoint_keep.c).
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
	/*
	 * Files that cannot be made now are made when they are needed, and a failure is
	 * reported then.
	 */
	if (keeper->listed)
		(void)keeper_sync_files(keeper, &err);
	/* A look that takes long would delay the next call. */
	if (!keeper->listed || keeper->look_us > KEEPER_WAIT_US)
		return;
	if (!keeper->fresh || (keeper->young && settles))
		session_checkpoint(session, false);
	/* Do not look more often: somebody else may write here without end. */
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
