/*
 * running_elsewhere: calls that no worker of this session's cell carries out: their time,
 * their end, and what others are told about them meanwhile.
 */
#include "base/clock.h"
#include "cell/cell.h"
#include "session/session.h"
#include "view/spec.h"

static void stop(struct running *running)
{
	if (running->tool->stop != NULL)
		running->tool->stop(running->tool->keeper, running);
}

/* A person may be at lunch, but the call must not stay open for ever. */
enum { ASKED_MS = 600000 };

static void too_late(struct timer *timer)
{
	struct running *running = timer->context;

	if (running->question != 0 && clock_now_ms() < running->deadline_ms + ASKED_MS) {
		timer->due_ms = clock_deadline(running->timeout_s);
		return;
	}
	(void)tool_fail(&running->result,
			"%s has not answered in %g s, and was told to stop.",
			running->tool->name, running->timeout_s);
	running->result.status = RESULT_TIMED_OUT;
	stop(running);
	running_finish(running);
}

/* The next audit sees what the call has left in the workspace. */
static void look_later(const struct running *running)
{
	const struct session *session = running->session;

	if ((running->tool->effects & (EFFECT_RUNS | EFFECT_WRITES)) != 0 &&
	    session->cell != NULL && cell_spec(session->cell)->guard != NULL)
		cell_set_audit_due(session->cell, true);
}

void elsewhere_call(struct running *running)
{
	const struct session *session = running->session;

	if (running->timeout_s > 0) {
		running->deadline_ms = clock_deadline(running->timeout_s);
		running->kill_timer = (struct timer){
			.due_ms = running->deadline_ms,
			.due = too_late,
			.context = running,
		};
		loop_add_timer(session->loop, &running->kill_timer);
	}
	look_later(running);
	if (running->tool->where == ELSEWHERE && running->tool->moved != NULL)
		job_begin_patience(running);
	running->tool->begin(running->tool->keeper, running);
}

void elsewhere_cancel(struct running *running)
{
	(void)tool_fail(&running->result, "Cancelled after %.1f s.",
			(double)(clock_now_us() - running->began_us) / 1e6);
	running->result.status = RESULT_CANCELLED;
	stop(running);
	running_finish(running);
}

const struct value *running_arguments(const struct running *running)
{
	return running->arguments;
}

const struct value *running_trace(const struct running *running)
{
	return running->trace;
}

const char *running_id(const struct running *running)
{
	return running->id;
}

void running_end(struct running *running, struct tool_result *take_result)
{
	if (running->state == RUNNING_DONE) {
		tool_result_fini(take_result);
		return;
	}
	tool_result_fini(&running->result);
	running->result = *take_result;
	/* The job may have written files after a later call made its audit. */
	if (running->job != NULL)
		look_later(running);
	running_finish(running);
}
