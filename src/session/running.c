/*
 * running: the life of a call: queued, busy with a worker, done; its deadline, its
 * cancel, its end.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "cell/wire.h"
#include "guard/guard.h"
#include "policy/command_harm.h"
#include "session/approval.h"
#include "session/extra.h"
#include "session/session.h"
#include "session/session_undo.h"
#include "tool/call.h"
#include "tool/denial.h"
#include "tool/event.h"
#include "tool/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	/* the worker is killed when it has not answered this long after the deadline */
	KILL_AFTER_MS = 400,
	SEND_MS = 10000, /* a worker accepts the largest call in far less time */
	/* an audit looks at some hundred names; a loaded machine is slow */
	AUDIT_MS = 5000,
	/* A file tool that takes longer is waiting for something, such as a disk. */
	FILE_CALL_US = 150,
};

bool running_is_sent(const struct running *running)
{
	return running->state > RUNNING_QUEUED;
}

bool running_is_done(const struct running *running)
{
	return running->state == RUNNING_DONE;
}

const struct tool_result *running_result(const struct running *running)
{
	return &running->result;
}

/* Writes that could not be finished stay in the journal for the next session. */
static void journal_finish(struct running *running)
{
	if (running->journal.fd >= 0 && running->unfinished == NULL)
		cell_take_back_journal(running->session->cell, &running->journal);
	fd_close(&running->journal.fd);
	value_free(running->unfinished);
	running->unfinished = NULL;
}

/*
 * After a command that destroys much, say what to do next. A job says so in the answer in
 * which it began. The output of the front's own commands is a program's output, so only
 * the details say it.
 */
static void harm_tell(struct running *running)
{
	const struct command_harm *harm = running->harm;
	struct value *told;

	if (harm == NULL || !running->begun || running->job != NULL)
		return;
	told = value_new_object();
	value_set_text(told, "command", harm->name);
	value_set_text(told, "does", harm->does);
	value_set_text(told, "next", harm->next);
	value_set(tool_details(&running->result), "destroys", told);
	if (running->by_front)
		return;
	(void)buf_end_line(&running->result.text);
	(void)buf_addf(&running->result.text, "[%s %s. %s]\n", harm->name, harm->does,
		       harm->next);
}

void running_finish(struct running *running)
{
	struct session *session = running->session;
	struct err err;

	batch_recall(running);
	loop_remove_timer(&running->recall);
	loop_remove_timer(&running->kill_timer);
	loop_remove_timer(&running->patience);
	running->awaits = NULL;
	running->question = 0;
	approval_drop_all(running);
	extra_tell(running);
	harm_tell(running);
	extra_drop_all(running);
	schema_cap_tell(running->tool, running->capped, &running->result);
	running_set_state(running, RUNNING_DONE);
	running_end_network(running);
	running->result.seconds = (double)(clock_now_us() - running->began_us) / 1e6;
	running->result.level = session_level(session);
	denial_set_level(&running->result, running->result.level);
	session_memory_take(session, running);
	journal_finish(running);
	keeper_finish(session->keeper, running);
	if (session->said != NULL && !running->quiet) {
		audit_take(&running->result, session->said);
		tool_result_fini(session->said);
		free(session->said);
		session->said = NULL;
	}
	if (running->ending != NULL)
		running->ending(running->context, &running->result);
	auto_value struct value *data = session->sink.event != NULL && !running->quiet
						? tool_result_value(&running->result)
						: NULL;
	if (value_count(running->result.seen) > 0 && data != NULL)
		value_set(data, "seen", value_copy(running->result.seen));
	/* The call of a job has ended for its caller when it became the job. */
	if (running->job == NULL && !session_emit(session, EVENT_TOOL_ENDED, running,
						  (struct str){0}, data, &err)) {
		(void)buf_addf(&running->result.text,
			       "\nThis result could not be recorded: %s", err.text);
	}
	if (running->done != NULL)
		running->done(running->context, running);
}

/*
 * The cell of root runs as another user. A program there could not open a pipe of root's
 * by /dev/stdout, so the pipe is given to the cell's user.
 */
static void pipes_give(const struct running *running)
{
	const struct sandbox_identity *cell = &cell_spec(running->session->cell)->identity;
	struct stat st;

	for (size_t i = 0; cell->change && i < running->fd_count; i++) {
		int fd = running->fds[i];
		if (fd != running->log_fd && fd_is_pipe(fd) && fstat(fd, &st) == 0 &&
		    st.st_uid == geteuid())
			(void)!fchown(fd, cell->uid, cell->gid);
	}
}

/*
 * The writes that the worker must finish first: left by its predecessor in this call, or
 * by dead fronts.
 */
static struct value *unfinished_of(struct running *running)
{
	const struct value *left = cell_unfinished(running->session->cell);

	if (running->auditing)
		return value_ref(running->unfinished);
	running->mends = left != NULL;
	return value_ref(left);
}

/*
 * File tools do not write inside repositories, and a checkpoint reports the repositories
 * that they create.
 */
static struct value *nested_of(const struct running *running)
{
	const bool looks = running->audits || running->auditing ||
			   (running->tool->effects & EFFECT_RUNS) != 0;

	return looks ? value_ref(keeper_nested(running->session->keeper)) : NULL;
}

/*
 * Each file that the call writes is to be entirely old or entirely new, even when a
 * process is killed.
 */
static void journal_give(struct running *running)
{
	if (!running->auditing && (running->tool->effects & EFFECT_WRITES) != 0 &&
	    running->fd_count < FRAME_FDS_MAX)
		cell_give_journal(running->session->cell, &running->journal);
}

/*
 * Variables of this call only, beside those that the cell gives every program. NULL:
 * none.
 */
static struct value *environment_of(struct running *running)
{
	struct value *list = running_begin_network(running);

	if (running->trace == NULL || (running->tool->effects & EFFECT_RUNS) == 0)
		return list;
	list = list != NULL ? list : value_new_array();
	trace_add_variables(running->trace, list);
	return list;
}

bool running_print(struct running *running, const struct worker_end *worker, struct buf *text)
{
	struct session *session = running->session;
	const bool is_behind = running->before != NULL;
	auto_value struct value *seen = session_memory_for(session, running);
	auto_value struct value *environment = environment_of(running);
	auto_value struct value *unfinished = unfinished_of(running);
	auto_value struct value *nested = nested_of(running);
	auto_value struct value *left =
		running->auditing ? running_left_carried(running) : NULL;
	const struct wire_call wire = {
		.log = running->log_fd >= 0 ? running->log : 0,
		.tool = running->auditing                ? AUDIT_CALL
			: running->tool->carrier != NULL ? running->tool->carrier
							 : running->tool->name,
		.arguments = running->arguments,
		.carried = running->auditing ? left : running->tool->carried,
		.plan = running->auditing ? NULL : running->plan,
		.audits = running->audits,
		.quiet_ns = session->quiet_ns,
		.reach = running->reach,
		.heralds = running->heralds,
		.alone = running->alone,
		.terse = running->terse,
		.folder = session->folder,
		.deadline_ms = is_behind ? CLOCK_NEVER : running->deadline_ms,
		.timeout_s = is_behind && running->timeout_s > 0 ? running->timeout_s : 0,
		.is_last = session->one_call,
		.keeps_memory = !groups_rely(&worker->group, CGROUP_MEMORY),
		.keeps_pids = !groups_rely(&worker->group, CGROUP_PIDS),
		.environment = environment,
		.seen = seen,
		.has_journal = !running->auditing && running->journal.fd >= 0,
		.unfinished = unfinished,
		.nested = nested,
	};

	return wire_print_call(&wire, text);
}

static bool call_send(struct running *running, struct worker_end *worker, struct err *err)
{
	struct buf text;
	int fds[FRAME_FDS_MAX];
	size_t fd_count = running->auditing ? 0 : running->fd_count;

	memcpy(fds, running->fds, sizeof(running->fds));
	if (!running->auditing && running->journal.fd >= 0)
		fds[fd_count++] = running->journal.fd;
	pipes_give(running);
	buf_init(&text, FRAME_MAX);
	const enum frame_kind kind =
		batch_print(running, worker, &text) ? FRAME_BATCH : FRAME_CALL;
	bool ok = kind == FRAME_BATCH || running_print(running, worker, &text) ||
		  err_set(err, 0, "The arguments are over %d bytes; send less at once.",
			  FRAME_MAX);
	ok = ok && frame_send(worker->socket, kind, buf_str(&text), fds, fd_count,
			      clock_now_ms() + SEND_MS, err);
	buf_fini(&text);
	return ok;
}

void running_begin(struct running *running, struct worker_end *worker)
{
	struct session *session = running->session;

	running_set_state(running, RUNNING_BUSY);
	running->worker = worker;
	running->audits_of = session->audits_wanted;
	if (!running->auditing && running->tool != NULL &&
	    (running->tool->effects & EFFECT_RUNS) != 0)
		running->sent_ns = clock_file_ns();
	running->deadline_ms = running->auditing ? clock_now_ms() + AUDIT_MS
			       : running->timeout_s > 0
				       ? clock_deadline(running->timeout_s)
				       : CLOCK_NEVER;
	worker->frame = running_frame_arrived;
	worker->context = running;
	running->kill_timer.due = running_kill_due;
	running->kill_timer.context = running;
	if (running->deadline_ms != CLOCK_NEVER)
		running->kill_timer.due_ms = running->deadline_ms + KILL_AFTER_MS;
	loop_add_timer(session->loop, &running->kill_timer);
}

/* RUNNING begins: note the time when nothing else could write until now. */
static void quiet_note(const struct running *running)
{
	struct session *session = running->session;
	struct timespec now = {0};

	if (cell_audit_due(session->cell) ||
	    session->busy_writers > running_is_writer(running))
		return;
	/* The kernel stamps files by this clock. */
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	session->quiet_ns = clock_ns(&now);
}

static void hand_over(struct running *running, struct worker_end *worker)
{
	struct session *session = running->session;
	struct err err;

	running_begin(running, worker);
	/* The findings of an audit are told in a call whose result somebody reads. */
	running->audits = cell_audit_due(session->cell) && !running->mending;
	quiet_note(running);
	running->reach = audit_reach_of(running);
	running->alone = running_is_alone(running);
	running->heralds = running->alone && !running_is_file_call(running);
	running->recalled = false;
	if (job_is_wanted(running))
		job_begin_patience(running);
	journal_give(running);
	if (keeper_give(session->keeper, running, &err) && call_send(running, worker, &err)) {
		running->begun = true;
		if (running->quiet)
			cell_hold(session->cell);
		else
			cell_call_sent(session->cell);
		keeper_sent(session->keeper, running);
		if (running->alone && !running->heralds)
			running_stay(session, FILE_CALL_US);
		return;
	}
	const bool gone = err.code == EPIPE || err.code == ECONNRESET;
	if (gone && !worker->made)
		return; /* the worker's reason is in the socket, and is read next */
	running->worker = NULL;
	cell_let_go(worker);
	if (running->auditing) {
		audit_tell_lost(&running->result, err.text);
		running_finish(running);
		return;
	}
	running_fail(running, gone ? "The worker ended before it took this call "
				     "(killed, or out of memory). Nothing was "
				     "done; try again."
				   : err.text);
	running_finish(running);
}

static enum worker_want wanted_worker(const struct running *running)
{
	if (running_is_file_call(running) || running->auditing)
		return WANT_KEPT;
	return running->tool->prepare != NULL ? WANT_PREPARED : WANT_ANY;
}

void running_expect(const struct running *running)
{
	const struct session *session = running->session;

	/* A call that only reads is sent before a sleeping worker would be awake. */
	if (session->cell != NULL && running->tool->where == IN_CELL &&
	    running->tool->effects != EFFECT_READS && running_is_alone(running))
		cell_expect(session->cell, wanted_worker(running));
}

void running_dispatch(struct session *session)
{
	size_t waiting;

	if (session->cell == NULL)
		return; /* the session is still being opened */
	keeper_begin(session->keeper);
	for (;;) {
		struct running *running = running_next_queued(session, &waiting);
		if (running == NULL)
			return;
		struct err why = {0};
		struct worker_end *worker =
			extra_needs_worker(running)
				? extra_take_worker(running, &why)
				: cell_take_worker(session->cell, wanted_worker(running),
						   waiting);
		if (worker != NULL) {
			hand_over(running, worker);
			continue;
		}
		if (cell_broken(session->cell) != NULL) {
			running_fail_without_cell(running);
			continue;
		}
		if (why.code == 0)
			return;
		/* The folder that was granted does not exist any more. */
		if (running->auditing)
			audit_tell_lost(&running->result, why.text);
		else
			running_fail(running, why.text);
		running_finish(running);
	}
}

void running_cancel(struct running *running)
{
	int64_t due = clock_now_ms() + KILL_AFTER_MS;

	/* An audit goes on to its end: it is short, and its findings are told. */
	if (running->state == RUNNING_DONE || running->auditing)
		return;
	/* A call that was cancelled while it worked may wait for a look now. */
	if (running->cancelled && !running->keeping)
		return;
	running->cancelled = true;
	if (running->awaits != NULL) {
		jobs_cancel(running);
		return;
	}
	if (running->tool != NULL && running->tool->begin != NULL) {
		elsewhere_cancel(running);
		return;
	}
	if (running->keeping) {
		keeper_cancel(running->session->keeper);
		return;
	}
	batch_recall(running);
	if (running->state <= RUNNING_QUEUED) {
		(void)tool_fail(&running->result, "Cancelled before it began.");
		running->result.status = RESULT_CANCELLED;
		running_finish(running);
		return;
	}
	(void)frame_send(running->worker->socket, FRAME_CANCEL, (struct str){"", 0}, NULL,
			 0, due, NULL);
	if (due < running->kill_timer.due_ms)
		running->kill_timer.due_ms = due;
}

void running_cancel_all(struct session *session)
{
	for (struct running *at = session->first; at != NULL;) {
		struct running *next = at->next;
		if (at->job == NULL && !at->quiet)
			running_cancel(at);
		at = next;
	}
}

void running_free(struct running *running)
{
	struct session *session;

	if (running == NULL)
		return;
	session = running->session;
	running->ending = NULL;
	running->done = NULL;
	if (running->job != NULL)
		running->job->work = NULL;
	running_cancel(running);
	while (running->state != RUNNING_DONE)
		loop_turn(session->loop, CLOCK_NEVER);
	if (running->previous != NULL)
		running->previous->next = running->next;
	else
		session->first = running->next;
	if (running->next != NULL)
		running->next->previous = running->previous;
	else
		session->last = running->previous;
	if (session->first == NULL)
		loop_remove(&session->cancel_watch);
	value_free(running->arguments);
	value_free(running->capped);
	value_free(running->plan);
	value_free(running->trace);
	value_free(running->refused);
	value_free(running->left);
	free(running->wanted);
	if (running->leave != NULL)
		free(running->leave->subject);
	free(running->leave);
	tool_result_fini(&running->result);
	free(running->id);
	free(running);
}
