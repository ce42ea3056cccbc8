/* running_audit: the end of a call that had a worker, and the look at what it left. */
#include "runtime/audit.h"
#include "runtime/audit_tell.h"
#include "runtime/files.h"
#include "runtime/session_parts.h"
#include "runtime/wire.h"

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

void running_finish_audited(struct running *running)
{
	struct session *session = running->session;

	if (running->auditing)
		audit_tell_lost(&running->result, "the worker ended");
	else if (running->journal.fd >= 0)
		running->unfinished = files_unfinished(running->journal.fd);
	if (!running->auditing && cell_spec(session->cell)->guard != NULL &&
	    (running->tool->effects & (EFFECT_RUNS | EFFECT_WRITES)) != 0) {
		cell_set_audit_due(session->cell, true);
		session->audits_wanted++;
		running->auditing = true;
		running_set_state(running, RUNNING_QUEUED);
		loop_remove_timer(&running->kill_timer);
		running_dispatch(session);
		return;
	}
	running_finish_next(running);
}

void running_audit_done(const struct running *running, const struct tool_result *result)
{
	struct session *session = running->session;

	if (!audit_failed(result) && running->audits_of == session->audits_wanted &&
	    !job_writes(session, running->job))
		cell_set_audit_due(session->cell, false);
}

void running_audit_arrived(struct running *running, const struct frame *frame)
{
	struct tool_result audit;
	struct err err;

	tool_result_init(&audit);
	if (!wire_parse_result(frame->payload, &audit, &err)) {
		audit_tell_lost(&running->result, err.text);
	} else {
		audit_take(&running->result, &audit);
		value_free(running->unfinished);
		running->unfinished = NULL;
		running->mended = true;
		if (!running->mending)
			running_audit_done(running, &audit);
	}
	tool_result_fini(&audit);
}
