/*
 * session_job: the life of a job: which calls may become one, the moment in which a call
 * becomes one, the job's end. How calls ask a job in between is in session_jobs.c.
 */
#include "base/clock.h"
#include "base/text/text.h"
#include "session/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	/*
	 * A server that cannot start says so within this time, and the answer shows it.
	 */
	BACKGROUND_LOOK_MS = 500,
	LABEL_MAX = 60, /* bytes of a command, to tell jobs apart */
};

static bool is_over(const struct job *job)
{
	return job->work == NULL || job->work->state == RUNNING_DONE;
}

static size_t count_running(const struct session *session)
{
	size_t count = 0;

	for (const struct job *at = session->first_job; at != NULL; at = at->next)
		count += !is_over(at);
	return count;
}

/*
 * In a session of one call the cell ends when that call is answered. A caller that starts
 * a job must also have the tool that reaches it.
 */
static bool has_jobs(const struct session *session)
{
	bool offered = false;

	for (size_t i = 0; session->offered[i] != NULL; i++)
		offered = offered || session->offered[i]->where == IN_JOBS;
	return offered && !session->one_call;
}

bool job_is_wanted(const struct running *running)
{
	return running->tool->job_max_s > 0 &&
	       value_is_true(value_member(running->arguments, "background"));
}

static bool there_is_room(struct running *running)
{
	if (count_running(running->session) < SESSION_JOBS_MAX)
		return true;
	(void)tool_fail(&running->result,
			"%d jobs are running, and more there may not be: end one (job "
			"{\"action\": \"list\"}, then \"signal\"), or run this without "
			"background.",
			SESSION_JOBS_MAX);
	return false;
}

bool job_may_begin(struct running *running)
{
	const struct session *session = running->session;
	const bool asks = running->tool->where == IN_JOBS;

	if (!asks && !job_is_wanted(running))
		return true;
	if (session->one_call) {
		(void)tool_fail(&running->result,
				"There are no jobs here: this is a single call, its cell ends "
				"with it, and with the cell all that runs. %s",
				asks ? "Jobs live in a session (glovebox run, the library)."
				     : "Leave background away and give it timeout_s, or use a "
				       "session (glovebox run, the library).");
		return false;
	}
	if (asks)
		return true;
	if (!has_jobs(session)) {
		(void)tool_fail(&running->result,
				"Without the tool job nobody could follow a job, and this agent "
				"has not got it: leave background away, or add \"job\" to its "
				"tools.");
		return false;
	}
	running->patience_s = BACKGROUND_LOOK_MS / 1000.0;
	return there_is_room(running);
}

bool job_writes(const struct session *session, const struct job *except)
{
	for (const struct job *at = session->first_job; at != NULL; at = at->next) {
		if (at != except && !is_over(at) &&
		    (at->work->tool->effects & (EFFECT_RUNS | EFFECT_WRITES)) != 0)
			return true;
	}
	return false;
}

void job_add_call(const struct job *job, const char *action, struct buf *text)
{
	(void)buf_addf(text, "job {\"id\": %" PRId64 ", \"action\": \"%s\"}", job->number,
		       action);
}

void job_add_label(const struct job *job, struct buf *text)
{
	const struct value *command = value_member(job->work->arguments, "command");
	struct str label = value_str(command);
	size_t line;

	if (value_text(command) == NULL)
		label = str_of(job->work->tool->name);
	line = str_find(label, STR("\n"), 0);
	if (line < label.size)
		label.size = line;
	const bool whole = label.size <= LABEL_MAX;
	if (!whole)
		label.size = text_character_border(label, LABEL_MAX);
	text_add_name(text, label);
	if (!whole)
		(void)buf_adds(text, "…");
}

/* This notice is for people: a model learns of the end when it asks. */
static void tell_end(struct job *job)
{
	const struct tool_result *result = &job->work->result;
	struct buf text;
	struct err err;

	buf_init(&text, LABEL_MAX * 8);
	(void)buf_addf(&text, "Job %" PRId64 " (", job->number);
	job_add_label(job, &text);
	(void)buf_adds(&text, ") ended: ");
	if (result->status == RESULT_DONE && result->signal != 0)
		(void)buf_addf(&text, "signal %d", result->signal);
	else if (result->status == RESULT_DONE && result->exit_code >= 0)
		(void)buf_addf(&text, "exit code %d", result->exit_code);
	else
		(void)buf_adds(&text, result_status_name(result->status));
	(void)buf_addf(&text, ", %.1f s.", result->seconds);
	(void)session_emit(job->session, EVENT_NOTICE, NULL, buf_str(&text), NULL, &err);
	buf_fini(&text);
}

/* JOB is not in the session's list any more. */
static void job_free(struct job *job)
{
	if (job->work != NULL)
		running_free(job->work);
	free(job);
}

/* Of the jobs that have ended only the newest SESSION_JOBS_MAX are kept. */
static void forget_old(struct session *session)
{
	size_t over = 0;

	for (const struct job *at = session->first_job; at != NULL; at = at->next)
		over += is_over(at);
	for (struct job **at = &session->first_job; over > SESSION_JOBS_MAX;) {
		struct job *job = *at;
		if (is_over(job)) {
			*at = job->next;
			job_free(job);
			over--;
		} else {
			at = &job->next;
		}
	}
}

static void work_done(void *context, struct running *work)
{
	struct job *job = context;

	(void)work;
	job->ended_us = clock_now_us();
	tell_end(job);
	jobs_ended(job);
}

void job_free_all(struct session *session)
{
	struct job *job = session->first_job;

	session->first_job = NULL;
	while (job != NULL) {
		struct job *next = job->next;
		job_free(job);
		job = next;
	}
}

static struct job *job_new(struct session *session)
{
	struct job *job = memory_alloc(sizeof(*job));
	struct job **at = &session->first_job;

	forget_old(session);
	while (*at != NULL)
		at = &(*at)->next;
	job->session = session;
	job->number = ++session->next_job;
	*at = job;
	return job;
}

/*
 * Put WORK directly before RUNNING: the list is in the order of numbers, and WORK has
 * RUNNING's number.
 */
static void insert_before(struct running *work, struct running *running)
{
	if (work->previous != NULL)
		work->previous->next = work;
	else
		work->session->first = work;
	work->next = running;
	running->previous = work;
}

/* Point everything that held RUNNING (worker, tool, timers) to WORK. */
static void work_announce(struct running *work, struct running *running)
{
	struct loop *loop = work->session->loop;

	if (work->worker != NULL)
		work->worker->context = work;
	else if (work->tool->moved != NULL)
		work->tool->moved(work->tool->keeper, running, work);
	if (work->worker != NULL || work->tool->where == ELSEWHERE) {
		work->kill_timer.context = work;
		loop_add_timer(loop, &work->kill_timer);
	}
	if (work->recalled) {
		work->recall.context = work;
		loop_add_timer(loop, &work->recall);
	}
}

/*
 * Turn RUNNING into an empty shell after WORK has taken its worker, files and timers.
 * RUNNING keeps its arguments and its trace, because its end is still reported.
 */
static void leave_shell(struct running *running, const struct running *work)
{
	running->arguments = value_ref(work->arguments);
	running->trace = value_ref(work->trace);
	running->plan = NULL;
	running->wanted = NULL;
	running->extras = NULL;
	running->asked_worker = false;
	running->granted = NULL;
	running->worker = NULL;
	running->awaits = NULL;
	running->asks = false;
	running->refused = NULL;
	running->number = 0;
	running->fd_count = 0;
	running->log_fd = running->plan_fd = -1;
	running->journal.fd = -1;
	running->unfinished = NULL;
	running->kill_timer = (struct timer){.due_ms = CLOCK_NEVER};
	running->recall = (struct timer){.due_ms = CLOCK_NEVER};
	tool_result_init(&running->result);
}

/*
 * Move everything that the job needs from RUNNING to a new call, the job's work. RUNNING
 * stays as an empty shell for the code that waits for it.
 */
static struct running *work_take(struct running *running, struct job *job)
{
	const enum running_state state = running->state;
	struct running *work = memory_alloc(sizeof(*work));

	loop_remove_timer(&running->kill_timer);
	loop_remove_timer(&running->patience);
	loop_remove_timer(&running->recall);
	running_set_state(running, RUNNING_NEW);
	*work = *running;
	work->id = memory_copy(running->id);
	work->job = job;
	work->ending = NULL;
	work->done = work_done;
	work->context = job;
	work->heralds = false;
	/* RUNNING keeps this: the answer that its caller gets now tells it */
	work->capped = NULL;
	work->patience = (struct timer){.due_ms = CLOCK_NEVER};
	work->patience_s = 0;
	insert_before(work, running);
	work_announce(work, running);
	leave_shell(running, work);
	running_set_state(work, state);
	return work;
}

/* RUNNING runs where it can go on after its caller was answered. */
static bool can_go_on(const struct running *running)
{
	return running->tool->where == IN_CELL ||
	       (running->tool->where == ELSEWHERE && running->tool->moved != NULL);
}

bool running_become_job(struct running *running)
{
	struct session *session = running->session;

	if (running->state == RUNNING_DONE || running->job != NULL ||
	    running->awaits != NULL || !can_go_on(running) || running->question != 0 ||
	    running->auditing || running->cancelled || running->first_approval != NULL ||
	    !has_jobs(session) || count_running(session) >= SESSION_JOBS_MAX)
		return false;
	batch_recall(running);
	struct job *job = job_new(session);
	job->work = work_take(running, job);
	/*
	 * The audit at the job's end sees what the job writes from now on. Until then
	 * every call audits first. When the front is killed, the next session audits.
	 */
	if (cell_spec(session->cell)->guard != NULL && job_writes(session, NULL))
		cell_set_audit_due(session->cell, true);
	jobs_read(running, job);
	return true;
}

static void patience_due(struct timer *timer)
{
	struct running *running = timer->context;

	/* The call waits for an answer to its question, and nobody could answer a job. */
	if (running->question != 0 || running->first_approval != NULL)
		timer->due_ms = clock_deadline(running->patience_s);
	else
		(void)running_become_job(running);
}

void job_begin_patience(struct running *running)
{
	if (running->patience_s <= 0 || running->patience.due != NULL)
		return;
	running->patience = (struct timer){
		.due_ms = clock_deadline(running->patience_s),
		.due = patience_due,
		.context = running,
	};
	loop_add_timer(running->session->loop, &running->patience);
}
