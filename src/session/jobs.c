/*
 * jobs: which calls may become a job, the moment in which a call becomes one, the job's
 * end, and the calls that ask a job in between.
 */

#include "base/clock.h"
#include "base/json/fields.h"
#include "base/str.h"
#include "base/text/text.h"
#include "session/session.h"
#include "tool/call.h"
#include "tool/tool.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
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
	return job->work == NULL || job->work->state == RUNNING_OVER;
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
	running->times.patience_s = BACKGROUND_LOOK_MS / 1000.0;
	return there_is_room(running);
}

const struct running *job_writer(const struct session *session, const struct job *except)
{
	for (const struct job *at = session->first_job; at != NULL; at = at->next) {
		if (at != except && !is_over(at) &&
		    (at->work->tool->effects & (EFFECT_RUNS | EFFECT_WRITES)) != 0)
			return at->work;
	}
	return NULL;
}

/* Append to TEXT the call that does ACTION to JOB: job {"id": 3, "action": "wait"}. */
static void add_call(const struct job *job, const char *action, struct buf *text)
{
	(void)buf_addf(text, "job {\"id\": %" PRId64 ", \"action\": \"%s\"}", job->number,
		       action);
}

/* Append to TEXT a short name of JOB: the beginning of its command, or its tool. */
static void add_label(const struct job *job, struct buf *text)
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

void session_jobs_running(const struct session *session, struct buf *text)
{
	for (const struct job *job = session->first_job; job != NULL; job = job->next) {
		if (is_over(job))
			continue;
		(void)buf_addf(text, "%" PRId64 ": ", job->number);
		add_label(job, text);
		(void)buf_addc(text, '\n');
	}
}

/* This notice is for people: a model learns of the end when it asks. */
static void tell_end(struct job *job)
{
	const struct tool_result *result = &job->work->result;
	struct buf text;
	struct err err;

	buf_init(&text, LABEL_MAX * 8);
	(void)buf_addf(&text, "Job %" PRId64 " (", job->number);
	add_label(job, &text);
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

/* End the call of JOB. The call is freed, unless its caller still has to free it. */
static void work_free(struct job *job)
{
	struct running *work = job->work;

	job->work = NULL;
	/* Nothing that comes while the loop turns may answer its caller by a job without work. */
	loop_remove_timer(&work->awaits.timer);
	work->awaits.job = NULL;
	running_cancel_work(work);
	while (work->state != RUNNING_OVER)
		loop_turn(job->session->loop, CLOCK_NEVER);
	work->job = NULL;
	if (work->caller.state == CALLER_GONE)
		running_free(work);
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
			work_free(job);
			free(job);
			over--;
		} else {
			at = &job->next;
		}
	}
}

static void job_ended(struct job *job);

void session_jobs_over(struct job *job)
{
	/* The session closes: nobody is told any more. */
	if (job->work == NULL)
		return;
	job->ended_us = clock_now_us();
	tell_end(job);
	job_ended(job);
}

void job_free_all(struct session *session)
{
	for (struct job *job = session->first_job; job != NULL; job = job->next)
		work_free(job);
	for (struct job *next, *job = session->first_job; job != NULL; job = next) {
		next = job->next;
		free(job);
	}
	session->first_job = NULL;
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

/* RUNNING runs where it can go on after its caller was answered. */
static bool can_go_on(const struct running *running)
{
	return running->tool->where == IN_CELL ||
	       (running->tool->where == ELSEWHERE && running->tool->goes_on);
}

static void job_read(struct running *running, struct job *job);

bool running_become_job(struct running *running)
{
	struct session *session = running->session;

	/* Its result stands already when a look keeps it from ending. */
	if (running->state >= RUNNING_STANDING || running->job != NULL ||
	    running->told.quiet || running->awaits.job != NULL || !can_go_on(running) ||
	    running->asking.question != 0 || running->due != DUE_CALL ||
	    running->cancelled || running->asking.first != NULL || !has_jobs(session) ||
	    count_running(session) >= SESSION_JOBS_MAX)
		return false;
	struct job *job = job_new(session);
	job->work = running;
	running_set_job(running, job);
	/*
	 * The audit at the job's end sees what the job writes from now on. Until then
	 * every call audits first. When the front is killed, the next session audits.
	 */
	if (cell_spec(session->cell)->guard != NULL && job_writes(session, NULL))
		cell_set_audit_due(session->cell, true);
	job_read(running, job);
	return true;
}

static void patience_due(struct timer *timer)
{
	struct running *running = timer->context;

	/*
	 * The call waits for an answer to its question, and nobody could answer a job; or
	 * there are too many jobs now.
	 */
	if (running->asking.question != 0 || running->asking.first != NULL ||
	    !running_become_job(running))
		timer->due_ms = clock_deadline(running->times.patience_s);
}

void job_begin_patience(struct running *running)
{
	if (running->times.patience_s <= 0 || running->times.patience.due != NULL)
		return;
	running->times.patience = (struct timer){
		.due_ms = clock_deadline(running->times.patience_s),
		.due = patience_due,
		.context = running,
	};
	loop_add_timer(running->session->loop, &running->times.patience);
}

/*
 * Calls that ask a job. Only the job's worker knows what the job has printed and whether
 * a program waits for input, so the session asks that worker. A call waits no longer for
 * a job's worker than for any other worker.
 */

enum {
	/* a worker that lives answers in far less time, also on a loaded machine */
	ANSWER_MS = 3000,
	SEND_MS = 100, /* a question is small, and each caller asks one at a time */
	/* the effect of input or a signal on a program shows within this time */
	EFFECT_MS = 300,
	ASK_MAX = 1 << 20,
};

static const struct {
	const char *name;
	int number;
} signals[] = {
	{"TERM", SIGTERM}, {"INT", SIGINT},   {"KILL", SIGKILL},
	{"HUP", SIGHUP},   {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},
	{"USR2", SIGUSR2}, {"STOP", SIGSTOP}, {"CONT", SIGCONT},
};

static double seconds_of(const struct job *job)
{
	return is_over(job) ? job->work->result.seconds
			    : (double)(clock_now_us() - job->work->times.began_us) / 1e6;
}

/* A job as the details of results have it: in the list, and as the handle of one call. */
struct job_said {
	int64_t id;
	const char *tool, *state;
	double seconds;
};

static const struct field item_fields[] = {
	FIELD(struct job_said, id),
	FIELD(struct job_said, tool),
	FIELD(struct job_said, state),
	FIELD(struct job_said, seconds),
	{0},
};

static const struct field handle_fields[] = {
	FIELD_NAMED(struct job_said, id, "job"),
	FIELD(struct job_said, state),
	{0},
};

static const char *state_of(const struct job *job)
{
	return is_over(job) ? "ended" : "running";
}

/* The arguments of a call of the tool job, in which a number may be NONE. */
struct job_asked {
	const char *action, *signal;
	struct str input; /* without data: none */
	int64_t id, since;
};

enum { NONE = -1 };

static const struct field asked_fields[] = {
	FIELD(struct job_asked, action, .optional = true),
	FIELD(struct job_asked, signal, .optional = true),
	FIELD(struct job_asked, input, .optional = true),
	FIELD(struct job_asked, id, .optional = true),
	FIELD(struct job_asked, since, .optional = true),
	{0},
};

static struct job_asked asked_of(const struct running *running)
{
	struct job_asked asked = {.action = "", .id = NONE, .since = NONE};

	/* They fit the tool's parameters already. */
	if (running->tool->where == IN_JOBS)
		(void)fields_read(running->arguments, asked_fields, &asked, NULL, NULL);
	return asked;
}

static void set_details(struct running *running, const struct job *job)
{
	const struct job_said said = {.id = job->number, .state = state_of(job)};

	fields_set(tool_details(running_told(running)), handle_fields, &said);
}

/* RUNNING has not asked for a job but has become JOB: its result must say so. */
static void add_handle(struct running *running, const struct job *job)
{
	struct buf *text = &running_told(running)->text;
	const int64_t deadline = job->work->times.deadline_ms;

	if (running->tool->where == IN_JOBS || is_over(job))
		return;
	(void)buf_end_line(text);
	(void)buf_addf(text, "[It goes on as job %" PRId64 "", job->number);
	if (deadline != CLOCK_NEVER)
		(void)buf_addf(text, ", for %" PRId64 " s at most",
			       (deadline - clock_now_ms() + 999) / 1000);
	(void)buf_adds(text, ": ");
	add_call(job, "wait", text);
	(void)buf_addf(text,
		       " waits for its end, \"read\" shows what is new, %s\"signal\" ends it]\n",
		       job->waits ? "\"input\" types, " : "");
}

static void finish(struct running *running, const struct job *job)
{
	set_details(running, job);
	add_handle(running, job);
	if (running->job != NULL)
		running_tell(running);
	else
		running_finish(running);
}

/*
 * Answer RUNNING with the state of JOB without asking a worker. WHY says why it was not
 * asked.
 */
static void tell_without_worker(struct running *running, const struct job *job,
				const char *why)
{
	struct tool_result *result = running_told(running);
	struct buf *text = &result->text;

	(void)tool_done(result);
	(void)buf_addf(text, "[job %" PRId64 " (", job->number);
	add_label(job, text);
	(void)buf_addf(text, ") is running, %.1f s; %s]\n", seconds_of(job), why);
	finish(running, job);
}

static void wish_due(struct timer *timer)
{
	struct running *running = timer->context;

	if (running->awaits.wish == WISH_EFFECT || running->awaits.wish == WISH_END)
		job_read(running, running->awaits.job);
	else
		tell_without_worker(running, running->awaits.job,
				    "its worker is too busy to answer; ask again");
}

/* RUNNING waits for the event WISH of JOB, MS milliseconds at most. */
static void wait_for(struct running *running, struct job *job, enum job_wish wish, int64_t ms)
{
	running->awaits.job = job;
	running->awaits.wish = wish;
	loop_remove_timer(&running->awaits.timer);
	running->awaits.timer = (struct timer){.due_ms = clock_now_ms() + ms,
					       .due = wish_due,
					       .context = running};
	loop_add_timer(running->session->loop, &running->awaits.timer);
	if (running->job == NULL)
		running_step(running, HAPPENS_AWAITS);
}

static void ask_worker(struct running *running, struct job *job, struct ask *ask)
{
	struct buf text;
	struct err err;

	ask->job = job->number;
	buf_init(&text, ASK_MAX);
	const bool ok = ask_print(ask, &text) &&
			frame_send(job->work->busy.worker->socket, FRAME_ASK,
				   buf_str(&text), NULL, 0, clock_now_ms() + SEND_MS, &err);
	buf_fini(&text);
	if (!ok) {
		tell_without_worker(running, job,
				    "its worker takes no question now; ask again");
		return;
	}
	job->waits = false;
	running->awaits.ask = ++job->asked;
	wait_for(running, job, ask->reads ? WISH_ANSWER : WISH_DONE, ANSWER_MS);
}

/* The part of a result's TEXT that follows the output: how the job ended. */
static struct str closing_of(struct str text)
{
	const struct str mark = STR("\n[job ");

	for (size_t at = text.size; at-- > 0;) {
		if (text.data[at] == '\n' &&
		    str_starts(str_part(text, at, text.size - at), mark))
			return str_part(text, at + 1, text.size - at - 1);
	}
	return text;
}

/* The details of the output of an ended job. */
struct output {
	struct str whole; /* without data: the result has all of it */
	int64_t unread_from, stdout_bytes, stderr_bytes;
};

static const struct field output_fields[] = {
	FIELD(struct output, whole, .optional = true),
	FIELD(struct output, unread_from, .optional = true),
	FIELD(struct output, stdout_bytes, .optional = true, .max = INT64_MAX / 2),
	FIELD(struct output, stderr_bytes, .optional = true, .max = INT64_MAX / 2),
	{0},
};

/*
 * Add the part of an ended job's output that SINCE asks for; with NONE the part that
 * nobody has seen yet.
 */
static void add_ended(struct job *job, int64_t since, struct buf *text)
{
	const struct tool_result *result = &job->work->result;
	struct output output = {.stdout_bytes = NONE};
	const bool told = job->told;

	job->told = true;
	(void)fields_read(result->details, output_fields, &output, NULL, NULL);
	const int64_t total = output.stdout_bytes + output.stderr_bytes;
	/*
	 * A job without streams has one result, which is told as often as a call asks for
	 * it.
	 */
	if (output.stdout_bytes == NONE)
		(void)buf_addstr(text, buf_str(&result->text));
	else if (since == NONE ? told : (since > 0 && since >= total)) {
		(void)buf_adds(text, "(no new output)\n");
		(void)buf_addstr(text, closing_of(buf_str(&result->text)));
	} else if (output.whole.data != NULL && since != NONE &&
		   since != output.unread_from) {
		(void)buf_addstr(text, output.whole);
	} else {
		(void)buf_addstr(text, buf_str(&result->text));
	}
}

/* The job is over: RUNNING is answered with its result. */
static void end_details(struct running *running, struct job *job)
{
	const struct tool_result *result = &job->work->result;
	struct tool_result *told = running_told(running);
	const bool asks = running->tool->where == IN_JOBS;

	tool_result_fini(told);
	tool_result_init(told);
	if (result->details != NULL)
		told->details = value_copy(result->details);
	if (result->content != NULL)
		told->content = value_copy(result->content);
	add_ended(job, asked_of(running).since, &told->text);
	value_remove(tool_details(told), "whole");
	value_remove(tool_details(told), "unread_from");
	/* A timeout or a cancel is the fate of the job, not of the call that asks. */
	told->status = asks && (result->status == RESULT_TIMED_OUT ||
				result->status == RESULT_CANCELLED)
			       ? RESULT_DONE
			       : result->status;
	told->exit_code = result->exit_code;
	told->signal = result->signal;
	told->left_out_bytes = result->left_out_bytes;
	told->left_out_lines = result->left_out_lines;
	finish(running, job);
}

/*
 * Ask JOB's worker for RUNNING, or answer RUNNING immediately when the job gives no
 * answers.
 */
static void job_read(struct running *running, struct job *job)
{
	struct ask ask = {.reads = true, .since = asked_of(running).since};

	if (is_over(job)) {
		end_details(running, job);
	} else if (job->work->tool->where == IN_CELL &&
		   (job->work->busy.worker == NULL || job->work->due != DUE_CALL)) {
		tell_without_worker(running, job, "it waits for its turn");
	} else if (!job->work->tool->answers) {
		tell_without_worker(running, job, "it shows its result when it has ended");
	} else {
		ask_worker(running, job, &ask);
	}
}

void session_jobs_cancel(struct running *running)
{
	struct buf *text = &running->result.text;
	const struct job *job = running->awaits.job;

	(void)tool_fail(&running->result, "Cancelled; it goes on: ");
	add_call(job, "read", text);
	(void)buf_adds(text, " shows what it does.");
	running->result.status = RESULT_CANCELLED;
	set_details(running, job);
	running_finish(running);
}

/*
 * The call that asked the question NUMBER and still waits; NULL: it was answered already.
 */
static struct running *find_asker(const struct job *job, uint64_t number)
{
	struct running *at = job->session->first;

	while (at != NULL &&
	       (at->awaits.job != job || at->awaits.ask != number ||
		(at->awaits.wish != WISH_ANSWER && at->awaits.wish != WISH_DONE)))
		at = at->next;
	return at;
}

/*
 * A call that waits for JOB to end or to want input; NULL: there is none. The call that has
 * become JOB and was cancelled waits for the end only.
 */
static struct running *find_waiting(const struct job *job)
{
	struct running *at = job->session->first;

	while (at != NULL &&
	       (at->awaits.job != job || at == job->work ||
		(at->awaits.wish != WISH_END && at->awaits.wish != WISH_EFFECT)))
		at = at->next;
	return at;
}

void session_jobs_answered(struct job *job, const struct frame *frame)
{
	struct running *running = find_asker(job, ++job->answered);
	struct tool_result answer;
	struct err err;

	if (running == NULL)
		return;
	tool_result_init(&answer);
	if (!tool_result_parse(frame->payload, &answer, &err))
		(void)tool_fail(&answer, "%s", err.text);
	if (running->awaits.wish == WISH_DONE && answer.status == RESULT_DONE) {
		tool_result_fini(&answer);
		wait_for(running, job, WISH_EFFECT, EFFECT_MS);
		return;
	}
	/* The marks of the files that the job has read are told once, at its end. */
	value_free(answer.seen);
	answer.seen = NULL;
	tool_result_fini(running_told(running));
	*running_told(running) = answer;
	job->waits = value_is_true(value_member(answer.details, "waits_for_input"));
	finish(running, job);
}

void session_jobs_waits(struct job *job)
{
	struct running *running;

	job->waits = true;
	while ((running = find_waiting(job)) != NULL)
		job_read(running, job);
}

static void job_ended(struct job *job)
{
	for (;;) {
		struct running *found = NULL;
		for (struct running *at = job->session->first; at != NULL; at = at->next) {
			if (at->awaits.job == job)
				found = at;
		}
		if (found == NULL)
			return;
		end_details(found, job);
	}
}

/*
 * Read what workers have sent since the loop last turned: the caller may turn the loop
 * only inside of calls.
 */
static void catch_up(struct session *session)
{
	for (struct job *at = session->first_job; at != NULL; at = at->next) {
		struct pollfd news = {.fd = -1, .events = POLLIN};
		if (!is_over(at) && at->work->busy.worker != NULL)
			news.fd = at->work->busy.worker->socket;
		if (poll(&news, 1, 0) > 0)
			cell_catch_up_worker(at->work->busy.worker);
	}
}

static void list(struct running *running)
{
	struct buf *text = &running->result.text;
	struct value *items = value_new_array();

	for (const struct job *at = running->session->first_job; at != NULL; at = at->next) {
		const struct tool_result *result = &at->work->result;
		const struct job_said said = {at->number, at->work->tool->name,
					      state_of(at), seconds_of(at)};

		(void)buf_addf(text, "job %" PRId64 ": ", at->number);
		add_label(at, text);
		if (!is_over(at))
			(void)buf_addf(text, " — running, %.1f s%s\n", seconds_of(at),
				       at->waits ? ", waits for input" : "");
		else if (result->exit_code >= 0)
			(void)buf_addf(text, " — ended, exit code %d, %.1f s\n",
				       result->exit_code, seconds_of(at));
		else
			(void)buf_addf(text, " — ended, %s, %.1f s\n",
				       result->signal != 0
					       ? "by a signal"
					       : result_status_name(result->status),
				       seconds_of(at));
		value_append(items, fields_print(item_fields, &said));
	}
	if (value_count(items) == 0)
		(void)buf_adds(text,
			       "(no jobs; bash with \"background\": true starts one)\n");
	value_set(tool_details(&running->result), "jobs", items);
	(void)tool_done(&running->result);
	running_finish(running);
}

/* The job ID that RUNNING means; when it gives no number (NONE), the only job. */
static struct job *find_job(struct running *running, int64_t id)
{
	struct job *first = running->session->first_job;
	struct buf *text = &running->result.text;

	if (id == NONE && first != NULL && first->next == NULL)
		return first;
	for (struct job *at = first; at != NULL && id != NONE; at = at->next) {
		if (at->number == id)
			return at;
	}
	if (id != NONE)
		(void)tool_fail(&running->result, "There is no job %" PRId64 ". ", id);
	else if (first != NULL)
		(void)tool_fail(&running->result, "Which job? Give its id. ");
	(void)tool_fail(&running->result, first == NULL ? "No job was started: bash with "
							  "\"background\": true starts one."
							: "There are: ");
	for (const struct job *at = first; at != NULL; at = at->next) {
		(void)buf_addf(text, "%s%" PRId64 " (", at == first ? "" : ", ", at->number);
		add_label(at, text);
		(void)buf_addf(text, is_over(at) ? ", ended)" : ")");
	}
	running_finish(running);
	return NULL;
}

/* NAME may be NULL. */
static int signal_number(const char *name)
{
	for (size_t i = 0; name != NULL && i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (strcmp(signals[i].name, name) == 0)
			return signals[i].number;
	}
	return SIGTERM;
}

/* For a job whose worker takes no questions: a signal can only mean to end the job. */
static void end_call(struct running *running, struct job *job, int number)
{
	if (number != SIGTERM && number != SIGINT && number != SIGKILL) {
		(void)tool_fail(&running->result,
				"Job %" PRId64 " runs no program that could be signalled; "
				"TERM ends it.",
				job->number);
		running_finish(running);
		return;
	}
	wait_for(running, job, WISH_END, ANSWER_MS);
	running_cancel_work(job->work);
}

static void act(struct running *running, struct job *job, const struct job_asked *asks)
{
	const bool asked = job->work->busy.worker != NULL && job->work->tool->answers &&
			   job->work->due == DUE_CALL;
	struct ask ask = {.since = -1};

	if (strcmp(asks->action, "signal") == 0) {
		ask.signal = signal_number(asks->signal);
		if (!asked) {
			end_call(running, job, ask.signal);
			return;
		}
	} else if (asks->input.data == NULL || !asked) {
		(void)tool_fail(&running->result,
				asks->input.data == NULL
					? "There is nothing to type: give it as \"input\", a "
					  "line with its end: \"yes\\n\"."
					: "This job takes no input.");
		running_finish(running);
		return;
	} else {
		ask.input = asks->input;
	}
	ask_worker(running, job, &ask);
}

void session_jobs_call(struct running *running)
{
	const struct job_asked asked = asked_of(running);
	struct job *job;

	catch_up(running->session);
	if (strcmp(asked.action, "list") == 0) {
		list(running);
		return;
	}
	job = find_job(running, asked.id);
	if (job == NULL)
		return;
	if (is_over(job) || strcmp(asked.action, "read") == 0)
		job_read(running, job);
	else if (strcmp(asked.action, "wait") != 0)
		act(running, job, &asked);
	else if (job->waits)
		job_read(running, job);
	else
		wait_for(running, job, WISH_END, (int64_t)(running->times.timeout_s * 1000));
}
