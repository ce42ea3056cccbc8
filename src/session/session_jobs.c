/*
 * session_jobs: calls that ask a job. Only the job's worker knows what the job has
 * printed and whether a program waits for input, so the worker is asked (ask.h). No call
 * waits for that worker longer than for any other.
 */
#include "base/clock.h"
#include "session/session.h"
#include "tool/call.h"
#include "tool/tool.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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

static bool is_over(const struct job *job)
{
	return job->ended_us != 0;
}

static double seconds_of(const struct job *job)
{
	return is_over(job) ? job->work->result.seconds
			    : (double)(clock_now_us() - job->work->began_us) / 1e6;
}

static void set_details(struct running *running, const struct job *job)
{
	struct value *details = tool_details(&running->result);

	value_set_integer(details, "job", job->number);
	value_set_text(details, "state", is_over(job) ? "ended" : "running");
}

/* RUNNING has not asked for a job but has become JOB: its result must say so. */
static void add_handle(struct running *running, const struct job *job)
{
	struct buf *text = &running->result.text;
	const int64_t deadline = job->work->deadline_ms;

	if (running->tool->where == IN_JOBS || is_over(job))
		return;
	(void)buf_end_line(text);
	(void)buf_addf(text, "[It goes on as job %" PRId64 "", job->number);
	if (deadline != CLOCK_NEVER)
		(void)buf_addf(text, ", for %" PRId64 " s at most",
			       (deadline - clock_now_ms() + 999) / 1000);
	(void)buf_adds(text, ": ");
	job_add_call(job, "wait", text);
	(void)buf_addf(text,
		       " waits for its end, \"read\" shows what is new, %s\"signal\" ends it]\n",
		       job->waits ? "\"input\" types, " : "");
}

static void finish(struct running *running, const struct job *job)
{
	set_details(running, job);
	add_handle(running, job);
	running_finish(running);
}

/*
 * Answer RUNNING with the state of JOB without asking a worker. WHY says why it was not
 * asked.
 */
static void tell_without_worker(struct running *running, const struct job *job,
				const char *why)
{
	struct buf *text = &running->result.text;

	(void)tool_done(&running->result);
	(void)buf_addf(text, "[job %" PRId64 " (", job->number);
	job_add_label(job, text);
	(void)buf_addf(text, ") is running, %.1f s; %s]\n", seconds_of(job), why);
	finish(running, job);
}

static void wish_due(struct timer *timer)
{
	struct running *running = timer->context;

	if (running->wish == WISH_EFFECT || running->wish == WISH_END)
		jobs_read(running, running->awaits);
	else
		tell_without_worker(running, running->awaits,
				    "its worker is too busy to answer; ask again");
}

/* RUNNING waits for the event WISH of JOB, MS milliseconds at most. */
static void wait_for(struct running *running, struct job *job, enum job_wish wish, int64_t ms)
{
	running->awaits = job;
	running->wish = wish;
	loop_remove_timer(&running->kill_timer);
	running->kill_timer = (struct timer){.due_ms = clock_now_ms() + ms,
					     .due = wish_due,
					     .context = running};
	loop_add_timer(running->session->loop, &running->kill_timer);
}

static void ask_worker(struct running *running, struct job *job, struct ask *ask)
{
	struct buf text;
	struct err err;

	ask->job = job->number;
	buf_init(&text, ASK_MAX);
	const bool ok = ask_print(ask, &text) &&
			frame_send(job->work->worker->socket, FRAME_ASK, buf_str(&text),
				   NULL, 0, clock_now_ms() + SEND_MS, &err);
	buf_fini(&text);
	if (!ok) {
		tell_without_worker(running, job,
				    "its worker takes no question now; ask again");
		return;
	}
	job->waits = false;
	running->ask = ++job->asked;
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

/*
 * Add the part of an ended job's output that SINCE asks for; without SINCE the part that
 * nobody has seen yet.
 */
static void add_ended(struct job *job, const struct value *since, struct buf *text)
{
	const struct tool_result *result = &job->work->result;
	const struct value *details = result->details;
	const struct value *whole = value_member(details, "whole");
	const int64_t from = value_integer(value_member(details, "unread_from"));
	const int64_t total = value_integer(value_member(details, "stdout_bytes")) +
			      value_integer(value_member(details, "stderr_bytes"));
	const int64_t wanted = value_integer(since);
	const bool told = job->told;

	job->told = true;
	/*
	 * A job without streams has one result, which is told as often as a call asks for
	 * it.
	 */
	if (value_member(details, "stdout_bytes") == NULL)
		(void)buf_addstr(text, buf_str(&result->text));
	else if (since == NULL ? told : (wanted > 0 && wanted >= total)) {
		(void)buf_adds(text, "(no new output)\n");
		(void)buf_addstr(text, closing_of(buf_str(&result->text)));
	} else if (value_text(whole) != NULL && since != NULL && wanted != from) {
		(void)buf_addstr(text, value_str(whole));
	} else {
		(void)buf_addstr(text, buf_str(&result->text));
	}
}

/* The job is over: RUNNING is answered with its result. */
static void tell_end(struct running *running, struct job *job)
{
	const struct tool_result *result = &job->work->result;
	const bool asks = running->tool->where == IN_JOBS;

	tool_result_fini(&running->result);
	tool_result_init(&running->result);
	if (result->details != NULL)
		running->result.details = value_copy(result->details);
	add_ended(job, asks ? value_member(running->arguments, "since") : NULL,
		  &running->result.text);
	value_remove(tool_details(&running->result), "whole");
	value_remove(tool_details(&running->result), "unread_from");
	/* A timeout or a cancel is the fate of the job, not of the call that asks. */
	running->result.status =
		result->status == RESULT_TIMED_OUT || result->status == RESULT_CANCELLED
			? RESULT_DONE
			: result->status;
	running->result.exit_code = result->exit_code;
	running->result.signal = result->signal;
	running->result.left_out_bytes = result->left_out_bytes;
	running->result.left_out_lines = result->left_out_lines;
	finish(running, job);
}

void jobs_read(struct running *running, struct job *job)
{
	const struct value *since = value_member(running->arguments, "since");
	struct ask ask = {.reads = true, .since = -1};

	if (is_over(job)) {
		tell_end(running, job);
	} else if (job->work->tool->where == IN_CELL &&
		   (job->work->worker == NULL || job->work->auditing)) {
		tell_without_worker(running, job, "it waits for its turn");
	} else if (!job->work->tool->answers) {
		tell_without_worker(running, job, "it shows its result when it has ended");
	} else {
		if (running->tool->where == IN_JOBS && since != NULL)
			ask.since = value_integer(since);
		ask_worker(running, job, &ask);
	}
}

void jobs_cancel(struct running *running)
{
	struct buf *text = &running->result.text;
	const struct job *job = running->awaits;

	(void)tool_fail(&running->result, "Cancelled; it goes on: ");
	job_add_call(job, "read", text);
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

	while (at != NULL && (at->awaits != job || at->ask != number ||
			      (at->wish != WISH_ANSWER && at->wish != WISH_DONE)))
		at = at->next;
	return at;
}

/* A call that waits for something to happen to JOB, or NULL. */
static struct running *find_waiting(const struct job *job)
{
	struct running *at = job->session->first;

	while (at != NULL &&
	       (at->awaits != job || (at->wish != WISH_END && at->wish != WISH_EFFECT)))
		at = at->next;
	return at;
}

void jobs_answered(struct job *job, const struct frame *frame)
{
	struct running *running = find_asker(job, ++job->answered);
	struct tool_result answer;
	struct err err;

	if (running == NULL)
		return;
	tool_result_init(&answer);
	if (!tool_result_parse(frame->payload, &answer, &err))
		(void)tool_fail(&answer, "%s", err.text);
	if (running->wish == WISH_DONE && answer.status == RESULT_DONE) {
		tool_result_fini(&answer);
		wait_for(running, job, WISH_EFFECT, EFFECT_MS);
		return;
	}
	/* The marks of the files that the job has read are told once, at its end. */
	value_free(answer.seen);
	answer.seen = NULL;
	tool_result_fini(&running->result);
	running->result = answer;
	job->waits = value_is_true(value_member(answer.details, "waits_for_input"));
	finish(running, job);
}

void jobs_waits(struct job *job)
{
	struct running *running;

	job->waits = true;
	while ((running = find_waiting(job)) != NULL)
		jobs_read(running, job);
}

void jobs_ended(struct job *job)
{
	for (;;) {
		struct running *found = NULL;
		for (struct running *at = job->session->first; at != NULL; at = at->next) {
			if (at->awaits == job)
				found = at;
		}
		if (found == NULL)
			return;
		tell_end(found, job);
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
		if (!is_over(at) && at->work->worker != NULL)
			news.fd = at->work->worker->socket;
		if (poll(&news, 1, 0) > 0)
			cell_catch_up_worker(at->work->worker);
	}
}

static void list(struct running *running)
{
	struct buf *text = &running->result.text;
	struct value *items = value_new_array();

	for (const struct job *at = running->session->first_job; at != NULL; at = at->next) {
		const struct tool_result *result = &at->work->result;
		struct value *item = value_new_object();
		(void)buf_addf(text, "job %" PRId64 ": ", at->number);
		job_add_label(at, text);
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
		value_set_integer(item, "id", at->number);
		value_set_text(item, "tool", at->work->tool->name);
		value_set_text(item, "state", is_over(at) ? "ended" : "running");
		value_set_real(item, "seconds", seconds_of(at));
		value_append(items, item);
	}
	if (value_count(items) == 0)
		(void)buf_adds(text,
			       "(no jobs; bash with \"background\": true starts one)\n");
	value_set(tool_details(&running->result), "jobs", items);
	(void)tool_done(&running->result);
	running_finish(running);
}

/* The job that RUNNING means; when it gives no number, the only job. */
static struct job *find_job(struct running *running)
{
	const struct value *id = value_member(running->arguments, "id");
	struct job *first = running->session->first_job;
	struct buf *text = &running->result.text;

	if (id == NULL && first != NULL && first->next == NULL)
		return first;
	for (struct job *at = first; at != NULL && id != NULL; at = at->next) {
		if (at->number == value_integer(id))
			return at;
	}
	if (id != NULL)
		(void)tool_fail(&running->result, "There is no job %" PRId64 ". ",
				value_integer(id));
	else if (first != NULL)
		(void)tool_fail(&running->result, "Which job? Give its id. ");
	(void)tool_fail(&running->result, first == NULL ? "No job was started: bash with "
							  "\"background\": true starts one."
							: "There are: ");
	for (const struct job *at = first; at != NULL; at = at->next) {
		(void)buf_addf(text, "%s%" PRId64 " (", at == first ? "" : ", ", at->number);
		job_add_label(at, text);
		(void)buf_addf(text, is_over(at) ? ", ended)" : ")");
	}
	running_finish(running);
	return NULL;
}

static int signal_number(const struct running *running)
{
	const char *name = value_text(value_member(running->arguments, "signal"));

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
	running_cancel(job->work);
}

static void act(struct running *running, struct job *job, const char *action)
{
	const struct value *input = value_member(running->arguments, "input");
	const bool asked = job->work->worker != NULL && job->work->tool->answers;
	struct ask ask = {.since = -1};

	if (strcmp(action, "signal") == 0) {
		ask.signal = signal_number(running);
		if (!asked) {
			end_call(running, job, ask.signal);
			return;
		}
	} else if (value_text(input) == NULL || !asked) {
		(void)tool_fail(&running->result,
				value_text(input) == NULL
					? "There is nothing to type: give it as \"input\", a "
					  "line with its end: \"yes\\n\"."
					: "This job takes no input.");
		running_finish(running);
		return;
	} else {
		ask.input = value_str(input);
	}
	ask_worker(running, job, &ask);
}

void jobs_call(struct running *running)
{
	const char *action = value_text(value_member(running->arguments, "action"));
	struct job *job;

	catch_up(running->session);
	if (strcmp(action, "list") == 0) {
		list(running);
		return;
	}
	job = find_job(running);
	if (job == NULL)
		return;
	if (is_over(job) || strcmp(action, "read") == 0)
		jobs_read(running, job);
	else if (strcmp(action, "wait") != 0)
		act(running, job, action);
	else if (job->waits)
		jobs_read(running, job);
	else
		wait_for(running, job, WISH_END, (int64_t)(running->timeout_s * 1000));
}
