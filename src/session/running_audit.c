/*
 * running_audit: the end of a call that had a worker, and the audit of what the call
 * left.
 */
#include "base/clock.h"
#include "files/files.h"
#include "guard/guard.h"
#include "session/session.h"
#include "session/session_undo.h"
#include "tool/tool.h"

/* A whole look takes a second; more when the machine is busy */
enum { LOOK_MS = 6000 };

void running_finish_next(struct running *running)
{
	struct session *session = running->session;

	if (keeper_waits(session->keeper, running)) {
		loop_remove_timer(&running->kill_timer);
		running_dispatch(session);
		return;
	}

	running_finish(running);
	running_dispatch(session);
	cell_refill(session->cell);
}

enum audit_reach audit_reach_of(const struct running *running)
{
	const struct session *session = running->session;

	if (!running->audits)
		return AUDIT_NEAR;
	if (session->taken_over || keeper_misses_nested(session->keeper))
		return AUDIT_ALL;
	return running->reach;
}

/* A fresh worker audits before RUNNING is answered. */
static void audit_first(struct running *running)
{
	struct session *session = running->session;

	cell_set_audit_due(session->cell, true);
	session->audits_wanted++;
	running->auditing = true;
	running_set_state(running, RUNNING_QUEUED);
	loop_remove_timer(&running->kill_timer);
	running_dispatch(session);
}

/* May the call have left something where its own audit has not looked? */
static bool has_unseen(struct running *running)
{
	const struct value *guard = cell_spec(running->session->cell)->guard;

	if ((running->tool->effects & EFFECT_RUNS) == 0)
		return false;
	if (!running->session->one_call)
		return audit_is_partial(&running->result) ||
		       (value_member(guard, "deep") == NULL &&
			value_member(guard, "whole") != NULL) ||
		       keeper_misses_nested(running->session->keeper);
	return audit_take_partial(&running->result);
}

bool running_looks_again(struct running *running)
{
	bool again = running_left_waits(running);

	if (!running->auditing && has_unseen(running)) {
		running->session->unseen = true;
		if (running->session->one_call)
			running->reach = AUDIT_WHOLE;
		again |= running->session->one_call;
	}
	if (again)
		audit_first(running);
	return again;
}

/* This tool is in no table: a worker knows it by its name. */
static const struct tool look_tool = {
	.name = AUDIT_CALL,
	.description = "Look at what the session's commands have left.",
	.effects = EFFECT_READS,
	.internal = true,
};

static void look_tell(struct session *session, struct running *running)
{
	const struct str said = str_trim(buf_str(&running->result.text));
	struct err err;

	if (said.size > 0)
		(void)session_emit(session, EVENT_NOTICE, NULL, said, NULL, &err);
}

void session_look_whole(struct session *session, bool all)
{
	const int64_t deadline = clock_now_ms() + LOOK_MS;
	struct running *running;

	if (session->cell == NULL || cell_spec(session->cell)->guard == NULL)
		return;
	const bool due = cell_audit_due(session->cell);
	if (!due && (!session->unseen || session->one_call))
		return;
	/* When the look fails here, the next session makes it. */
	cell_set_audit_due(session->cell, true);
	if (cell_broken(session->cell) != NULL)
		return;
	running = running_of_session(session, &look_tool);
	running->reach = all || due ? AUDIT_ALL : AUDIT_WHOLE;
	if (due)
		running->sent_ns = value_integer(
			value_member(cell_spec(session->cell)->guard, "ticked"));
	audit_first(running);
	while (!running_is_done(running) && clock_now_ms() < deadline)
		loop_turn(session->loop, deadline);
	if (running_is_done(running))
		look_tell(session, running);
	running_free(running);
}

void running_finish_audited(struct running *running)
{
	struct session *session = running->session;

	if (running->auditing)
		audit_tell_lost(&running->result, "the worker ended");
	else if (running->journal.fd >= 0)
		running->unfinished = files_unfinished(running->journal.fd);
	if (!running->auditing && cell_spec(session->cell)->guard != NULL &&
	    (running->tool->effects & (EFFECT_RUNS | EFFECT_WRITES)) != 0) {
		if (session->one_call)
			running->reach = AUDIT_WHOLE;
		else
			session->unseen = true;
		audit_first(running);
		return;
	}
	running_finish_next(running);
}

void running_audit_done(const struct running *running, const struct tool_result *result)
{
	struct session *session = running->session;

	if (!audit_failed(result) && running->audits_of == session->audits_wanted &&
	    !job_writes(session, running->job)) {
		cell_set_audit_due(session->cell, false);
		session->taken_over = false;
	}
}

void running_audit_arrived(struct running *running, const struct frame *frame)
{
	struct tool_result audit;
	struct err err;

	tool_result_init(&audit);
	if (!tool_result_parse(frame->payload, &audit, &err)) {
		audit_tell_lost(&running->result, err.text);
	} else {
		running_take_left(running, &audit);
		audit_take(&running->result, &audit);
		value_free(running->unfinished);
		running->unfinished = NULL;
		running->mended = true;
		if (!running->mending)
			running_audit_done(running, &audit);
	}
	tool_result_fini(&audit);
}
