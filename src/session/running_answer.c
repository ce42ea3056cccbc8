/*
 * running_answer: a call that is with a worker: the worker's frames, the result, the loss
 * of the worker.
 */
#include "guard/guard.h"
#include "session/session.h"
#include "session/session_undo.h"
#include "tool/denial.h"
#include "tool/tool.h"

enum {
	KILL_WAIT_MS = 1000, /* how long the end of a killed worker is waited for */
	/*
	 * The time from the end of a program to its result, unless there is much to look
	 * at.
	 */
	ENDING_US = 150,
};

void running_fail(struct running *running, const char *why)
{
	buf_clear(&running->result.text);
	(void)tool_fail(&running->result, "%s", why);
}

void running_kill_due(struct timer *timer)
{
	struct running *running = timer->context;
	struct worker_end *worker = running->worker;
	bool ended = cell_kill_worker(worker, KILL_WAIT_MS);

	running->worker = NULL;
	if (running->auditing) {
		running_finish_audited(running);
		return;
	}
	running_fail(running, ended ? "It gave no answer in time and was ended by force, "
				      "with all that it had started."
				    : "It could not be ended even by force: the kernel is "
				      "holding it (a broken disk or mount, or very much "
				      "memory to give back).");
	running->result.status = running->cancelled ? RESULT_CANCELLED : RESULT_TIMED_OUT;
	if (!ended)
		value_set_boolean(tool_details(&running->result), "unkillable", true);
	running_finish_audited(running);
}

/*
 * A worker that sends a result that cannot be read was taken over: its word about what it
 * did does not count.
 */
static void result_garbled(struct running *running, const struct err *why)
{
	running_fail(running, why->text);
	(void)cell_kill_worker(running->worker, KILL_WAIT_MS);
	running->worker = NULL;
	running_finish_audited(running);
}

/*
 * Say which files exist in the cell only. A file tool was asked for that file, so its
 * result says so each time. Programs leave something in /tmp with every second call, so
 * their results say so once in a session.
 */
static void own_tell(struct running *running)
{
	struct session *session = running->session;
	const bool is_program = (running->tool->effects & EFFECT_RUNS) != 0;
	struct buf line;

	/* `exec` has no text of its own; its verb prints this. */
	if ((is_program && session->told_own) || running->tool->internal)
		return;
	buf_init(&line, RESULT_TEXT_MAX);
	session_print_own(session, &running->result, &line);
	if (line.size > 0) {
		session->told_own = true;
		(void)buf_end_line(&running->result.text);
		(void)buf_addf(&running->result.text, "[%s]\n", line.data);
	}
	buf_fini(&line);
}

/* False: the result could not be read, and RUNNING has ended. */
static bool result_take(struct running *running, const struct frame *frame)
{
	struct session *session = running->session;
	struct err err;

	/*
	 * The seconds and the level in the worker's result are not used: this side sets
	 * them itself.
	 */
	tool_result_fini(&running->result);
	tool_result_init(&running->result);
	if (!tool_result_parse(frame->payload, &running->result, &err)) {
		result_garbled(running, &err);
		return false;
	}
	/*
	 * The result is about to be printed anew, as an answer, so the frame's memory is
	 * not needed.
	 */
	frame_done(&running->worker->reader);
	if (running->mends)
		cell_mended(session->cell);
	if (running->audits || running->job != NULL)
		running_audit_done(running, &running->result);
	/*
	 * A file tool that did what was asked met no limit. Looking would cost two system
	 * calls.
	 */
	if (!running_is_file_call(running) || running->result.status != RESULT_DONE)
		groups_tell(&running->worker->group, session->policy, &running->result);
	/* Take the proxy's refusals before what programs say about hosts. */
	running_end_network(running);
	claims_judge(session->policy, session_weighs_hosts(session, &running->result),
		     &running->result);
	running_take_left(running, &running->result);
	own_tell(running);
	return true;
}

/*
 * The result stands: RUNNING ends, now or after its checkpoint. WORKER serves the next
 * call or ends.
 */
static void result_stands(struct running *running, struct worker_end *worker)
{
	struct session *session = running->session;
	/*
	 * A worker that has received a cancel ends as well, even when its call was just
	 * done.
	 */
	const bool ends = (running->tool->effects & EFFECT_RUNS) != 0 ||
			  running->cancelled || running->recalled || worker->of_call != 0;

	if (!ends)
		cell_give_back(worker);
	const bool waits = keeper_waits(session->keeper, running);
	if (waits)
		loop_remove_timer(&running->kill_timer);
	else
		running_finish(running);
	if (ends)
		cell_let_go(worker);
	running_dispatch(session);
	if (!waits)
		cell_refill(session->cell);
}

/* True: the worker goes on with the next call of its batch. */
static bool result_arrived(struct running *running, const struct frame *frame)
{
	struct worker_end *worker = running->worker;

	if (running->auditing) {
		running_audit_arrived(running, frame);
		cell_let_go(worker);
		running->worker = NULL;
		if (!running_looks_again(running))
			running_finish_next(running);
		return false;
	}
	if (!result_take(running, frame))
		return false;
	running->worker = NULL;
	if (batch_go_on(running, worker)) {
		running_finish(running);
		return true;
	}
	if (running_looks_again(running))
		cell_let_go(worker);
	else
		result_stands(running, worker);
	return false;
}

void running_fail_without_cell(struct running *running)
{
	const char *why = cell_broken(running->session->cell);

	if (running->auditing)
		audit_tell_lost(&running->result, why);
	else
		running_fail(running, why);
	value_set_boolean(tool_details(&running->result), "cell_broken", true);
	running_finish(running);
}

static void worker_lost(struct running *running)
{
	struct session *session = running->session;
	bool was_made = running->worker->made;

	running->begun &= was_made;
	running->lost = true;
	if (running->worker->refused != NULL && !running->auditing) {
		running_fail(running, running->worker->refused);
		(void)cell_kill_worker(running->worker, KILL_WAIT_MS);
		running->worker = NULL;
		running_finish(running);
		running_dispatch(session);
		return;
	}
	if (!running->auditing) {
		running_fail(
			running,
			(running->tool->effects & EFFECT_RUNS) != 0
				? "The worker that ran this call ended before it answered "
				  "(killed, or out of memory), and with it all that the call "
				  "had started; what it printed is lost, what it wrote is not. "
				  "Look at that, and try again, with less at once."
				: "The worker that ran this call ended before it answered "
				  "(killed, or out of memory). Files are whole: old or new. "
				  "Try again, with less at once.");
		groups_tell(&running->worker->group, session->policy, &running->result);
	}
	/* The worker may have sent something that is not a frame, and still live. */
	(void)cell_kill_worker(running->worker, KILL_WAIT_MS);
	running->worker = NULL;
	if (was_made || cell_broken(session->cell) == NULL) {
		running_finish_audited(running);
		return;
	}
	running_fail_without_cell(running);
	running_dispatch(session);
}

bool running_frame_arrived(void *context, const struct frame *frame)
{
	struct running *running = context;
	struct err err;

	if (frame == NULL || frame->kind == FRAME_REFUSED) {
		worker_lost(running);
	} else if (frame->kind == FRAME_RESULT) {
		return result_arrived(running, frame);
	} else if (frame->kind == FRAME_ENDING && running->heralds) {
		running->heralds =
			false; /* a worker that says it again and again is not believed */
		running_stay(running->session, ENDING_US);
		if (keeper_will_look(running->session->keeper, running))
			cell_expect(running->session->cell, WANT_KEPT);
	} else if (frame->kind == FRAME_ANSWER && running->job != NULL) {
		jobs_answered(running->job, frame);
	} else if (frame->kind == FRAME_TELL) {
		running_told(running, frame->payload);
	} else if (frame->kind == FRAME_QUESTION) {
		running_asked(running, frame->payload);
	} else if (frame->kind == FRAME_WAITS) {
		if (running->job != NULL)
			jobs_waits(running->job);
		else
			(void)running_become_job(running);
	} else if (running->job == NULL &&
		   (frame->kind == FRAME_STDOUT || frame->kind == FRAME_STDERR)) {
		auto_value struct value *data = value_new_object();
		value_set_integer(data, "stream", frame->kind == FRAME_STDOUT ? 1 : 2);
		(void)session_emit(running->session, EVENT_TOOL_OUTPUT, running,
				   frame->payload, data, &err);
	}
	return false;
}
