/*
 * session_call: the way of one call (ARCHITECTURE.md), in its order: judged, recorded,
 * run. There is no other way.
 */
#include "base/clock.h"
#include "session/approval.h"
#include "session/session.h"
#include "tool/call.h"

#include <stdio.h>
#include <stdlib.h>

bool session_emit(struct session *session, enum event_kind kind,
		  const struct running *running, struct str text,
		  const struct value *data, struct err *err)
{
	const struct event event = {
		.kind = kind,
		.wall_ms = clock_wall_ms(),
		.call = running != NULL ? running->id : NULL,
		.tool = running != NULL && running->tool != NULL ? running->tool->name : NULL,
		.text = text,
		.data = data,
	};

	/*
	 * Somebody may be waiting for a long call of the session's own, so its progress
	 * is reported.
	 */
	const bool is_silent = running != NULL && running->quiet && kind != EVENT_PROGRESS;

	return session->sink.event == NULL || is_silent ||
	       session->sink.event(session->sink.context, &event, err);
}

static bool announce(struct running *running, const struct request *request)
{
	auto_value struct value *data = NULL;
	struct err err;

	if (running->session->sink.event == NULL || running->quiet)
		return true;
	data = value_new_object();
	if (running->arguments != NULL)
		value_set(data, "arguments", value_ref(running->arguments));
	else
		value_set_str(data, "arguments_text", request->arguments_text);
	if (running->tool == NULL)
		value_set_text(data, "tool_asked", request->tool);
	if (running->tool != NULL && (running->tool->effects & EFFECT_RUNS) != 0)
		value_set_text(data, "folder", running->session->folder);
	if (session_emit(running->session, EVENT_TOOL_BEGAN, running, (struct str){0},
			 data, &err))
		return true;
	buf_clear(&running->result.text);
	(void)tool_fail(&running->result, "Not run, because it could not be recorded: %s",
			err.text);
	return false;
}

static struct running *running_new(struct session *session, const struct request *request)
{
	struct running *running = memory_alloc(sizeof(*running));
	char id[32];

	running->session = session;
	running->number = ++session->next_id;
	if (request->id == NULL)
		(void)snprintf(id, sizeof(id), "c%zu", session->next_id);
	running->quiet = request->quiet;
	running->terse = request->terse;
	running->trace = value_ref(request->trace);
	running->log_fd = running->plan_fd = -1;
	running->journal.fd = -1;
	running->id = memory_copy(request->id != NULL ? request->id : id);
	running->began_us = clock_now_us();
	running->deadline_ms = CLOCK_NEVER;
	running->kill_timer.due_ms = CLOCK_NEVER;
	tool_result_init(&running->result);
	running->previous = session->last;
	if (session->last != NULL)
		session->last->next = running;
	else
		session->first = running;
	session->last = running;
	for (size_t i = 0; i < 3; i++)
		running->fds[i] = -1;
	for (size_t i = 0; i < request->fd_count && i < 3; i++)
		running->fds[running->fd_count++] = request->fds[i];
	return running;
}

struct running *running_of_session(struct session *session, const struct tool *tool)
{
	const struct request request = {.quiet = true};
	struct running *running = running_new(session, &request);

	running->tool = tool;
	return running;
}

static struct call call_in_front(const struct running *running)
{
	return (struct call){
		.tool = running->tool,
		.arguments = running->arguments,
		.workspace = session_workspace(running->session),
		.folder = running->session->folder,
		.deadline_ms = clock_deadline(running->timeout_s),
		.approved = running->leave != NULL && running->leave->given
				    ? running->leave->hash
				    : NULL,
		.control_fd = -1,
		.fds = {-1, -1, -1},
	};
}

static bool runs_in_front(const struct running *running)
{
	return running->tool->where == IN_FRONT && running->tool->begin == NULL;
}

/* Does RUNNING contain something to approve, and is there somebody who can approve it? */
static bool wants_leave(struct running *running)
{
	struct call call = call_in_front(running);
	struct leave leave = {.given = false};
	struct buf subject;
	bool wants;

	if (running->tool->leave == NULL || running->quiet ||
	    !running->session->answers_approvals)
		return false;
	buf_init(&subject, APPROVAL_SUBJECT_MAX);
	wants = running->tool->leave->asks(&call, &subject, leave.hash) &&
		!subject.overflowed;
	if (wants) {
		leave.subject = memory_copy(subject.data);
		running->leave = memory_alloc(sizeof(leave));
		*running->leave = leave;
	}
	buf_fini(&subject);
	return wants;
}

static void run_in_front(struct running *running)
{
	struct call call = call_in_front(running);

	(void)running->tool->execute(&call, &running->result);
	running_finish(running);
}

void running_unwant(struct running *running)
{
	free(running->wanted);
	running->wanted = NULL;
}

void running_proceed(struct running *running)
{
	if (runs_in_front(running)) {
		run_in_front(running);
		return;
	}
	if (running->tool->where == IN_JOBS) {
		jobs_call(running);
		return;
	}
	if (running->tool->begin != NULL) {
		elsewhere_call(running);
		return;
	}
	running_set_state(running, RUNNING_QUEUED);
	if (!job_is_wanted(running))
		job_begin_patience(running);
	running_dispatch(running->session);
}

struct running *session_start(struct session *session, const struct request *request,
			      void (*done)(void *context, struct running *running),
			      void *context)
{
	struct running *running = running_new(session, request);

	running->done = done;
	running->ending = request->ending;
	running->context = context;
	bool fits = session_judge(running, request);
	if (!announce(running, request) || !fits) {
		running_finish(running);
		return running;
	}
	if (runs_in_front(running) && !wants_leave(running)) {
		run_in_front(running);
		return running;
	}
	if (session->cancel_fd >= 0 && !running->quiet)
		loop_add(session->loop, &session->cancel_watch);
	/* A receiver of the event may have cancelled the call already. */
	if (running->state != RUNNING_NEW)
		return running;
	approval_ask(running);
	return running;
}

void session_call(struct session *session, const struct request *request,
		  struct tool_result *result)
{
	struct running *running = session_start(session, request, NULL, NULL);

	while (!running_is_done(running))
		loop_turn(session->loop, CLOCK_NEVER);
	*result = running->result;
	tool_result_init(&running->result);
	running_free(running);
}
