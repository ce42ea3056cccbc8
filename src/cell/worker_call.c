/* worker_call: one call in a worker, from its frame to its answer. */
#include "cell/worker_parts.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "cell/wire.h"
#include "files/record.h"
#include "guard/guard.h"
#include "process/follow.h"
#include "tool/denial.h"
#include "tool/tool.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	NS_PER_MS = 1000000,
	CLOCKS_APART_MS =
		50, /* the clock that stamps files advances in steps of some milliseconds */
};

struct call worker_call(struct worker *worker)
{
	return (struct call){
		.files = worker->files,
		.workspace = worker->spec->workspace,
		.folder = worker->spec->workspace,
		.environment = worker->spec->environment,
		.grace_s = worker->spec->grace_s,
		.agent = worker->spec->agent,
		.deadline_ms = CLOCK_NEVER,
		.terms = &worker->terms,
		.launcher = &worker->launcher,
		.space = worker->space,
		.listener = worker->listener,
		.layer = worker->layer,
		.has_view = spec_is_sealed(worker->spec),
		.control_fd = worker->socket,
		.fds = {-1, -1, -1},
	};
}

/*
 * End everything below this worker. A worker without a child has no descendants. kill(-1)
 * is allowed only where signals reach no process outside.
 */
static void below_empty(const struct worker *worker)
{
	if (waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD)
		return;
	if (!worker->reach.alone) {
		(void)children_end(worker->reach.children_fd, NULL, 0);
		return;
	}
	program_end_all(PROGRAM_END_PATIENCE_MS, NULL, NULL);
}

static void result_send(struct worker *worker, const struct tool_result *result)
{
	struct buf text;

	buf_init(&text, FRAME_MAX);
	if (!tool_result_print(result, &text)) {
		struct tool_result small;
		tool_result_init(&small);
		(void)tool_fail(&small, "The answer is over %d bytes; ask for less of it.",
				FRAME_MAX);
		buf_clear(&text);
		(void)tool_result_print(&small, &text);
		tool_result_fini(&small);
	}
	(void)frame_send(worker->socket, FRAME_RESULT, buf_str(&text), NULL, 0,
			 CLOCK_NEVER, NULL);
	buf_fini(&text);
}

bool worker_cancel_waits(const struct worker *worker)
{
	const struct frame_reader *reader = &worker->reader;

	return reader->ended ||
	       (reader->bytes.size > reader->taken &&
		(unsigned char)reader->bytes.data[reader->taken] != FRAME_ASK);
}

/*
 * Look at folders in which a file tool wrote and which may be new repositories: no
 * checkpoint looks for those. Repositories older than the session stay.
 */
static void heads_audit(struct worker *worker, struct tool_result *result)
{
	auto_value struct value *more = NULL;
	struct err err;

	if (worker->audit == NULL || value_count(worker->heads) == 0)
		return;
	more = value_new_object();
	value_set(more, "watched", value_ref(worker->heads));
	if (audit_begin_more(worker->spec->guard, more, true, &err))
		audit_run(worker->audit, more, AUDIT_NEAR, NULL, 0, result);
	else
		audit_tell_failed(result, err.text);
}

/*
 * The begin of a call, by the clock that stamps files and by the monotonic clock, which
 * nobody sets.
 */
struct call_began {
	struct timespec wall;
	int64_t ms;
};

static void began_note(struct call_began *began)
{
	*began = (struct call_began){.ms = clock_now_ms()};
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &began->wall);
}

/*
 * Was the wall clock set back since the begin of the call? Then files that a command made
 * now may look older than the call.
 */
static bool was_set_back(const struct call_began *began)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return (clock_ns(&now) - clock_ns(&began->wall)) / NS_PER_MS + CLOCKS_APART_MS <
	       clock_now_ms() - began->ms;
}

/* Audit the places that the call could write, after all its processes have ended. */
static void call_audit(struct worker *worker, const struct tool *tool,
		       const struct call_began *began, struct tool_result *result)
{
	const bool is_command = tool != NULL && (tool->effects & EFFECT_RUNS) != 0;

	if (!is_command && (tool == NULL || (tool->effects & EFFECT_WRITES) == 0))
		return;
	if (was_set_back(began))
		worker->quiet_ns = 0;
	audit_run(worker->audit, worker->nested, AUDIT_NEAR,
		  is_command ? &began->wall : NULL, worker->quiet_ns, result);
	if (!is_command)
		heads_audit(worker, result);
	if (is_command)
		layers_end(worker->layers, &began->wall, result);
	else
		layers_note_written(worker->layers, worker->written, result);
	/*
	 * The file that the tool wrote was taken away again, so its answer is not true.
	 */
	if (!is_command && audit_quarantined(result))
		result->status = RESULT_DENIED;
}

/*
 * Limits of memory and processes are summed over a pid namespace. Without one, only the
 * kernel's own limit of the processes of the user applies.
 */
static struct call_limits limits_here(const struct worker *worker,
				      const struct wire_call *wire)
{
	struct call_limits limits = worker->spec->call_limits;
	const bool sealed = spec_is_sealed(worker->spec);

	if (!sealed || !wire->keeps_memory)
		limits.memory = 0;
	if (!sealed || !wire->keeps_pids)
		limits.pids = 0;
	return limits;
}

/* The call that came as WIRE, with FRAME's descriptors. */
static struct call call_arrived(struct worker *worker, const struct wire_call *wire,
				const struct frame *frame)
{
	struct call call = worker_call(worker);

	call.tool = tool_find(worker->tools, wire->tool);
	call.arguments = wire->arguments;
	call.carried = wire->carried;
	call.plan = wire->plan;
	call.folder = wire->folder;
	call.deadline_ms =
		wire->timeout_s > 0 ? clock_deadline(wire->timeout_s) : wire->deadline_ms;
	call.is_last = wire->is_last;
	call.heralds = wire->heralds;
	call.terse = wire->terse;
	call.limits = limits_here(worker, wire);
	call.seen = wire->seen;
	call.reader = &worker->reader;
	call.cancelled = worker_cancel_waits(worker);
	_Static_assert((int)CALL_FDS_MAX == (int)FRAME_FDS_MAX,
		       "a call takes a frame's all");
	memcpy(call.fds, frame->fds, sizeof(call.fds));
	return call;
}

/*
 * Run the tool. When the call came with an undo log, keep there what the tool replaces.
 */
static void tool_execute(struct worker *worker, uint32_t number, struct call *call,
			 struct tool_result *result)
{
	struct undo_log log;

	value_free(worker->heads);
	worker->heads = value_new_array();
	files_note_heads(worker->files, worker->heads);
	value_free(worker->written);
	worker->written = value_new_array();
	files_note_written(worker->files, worker->written);
	if ((call->tool->effects & EFFECT_RUNS) != 0)
		layers_begin(worker->layers);
	if (number == 0 || call->fds[0] < 0) {
		(void)call->tool->execute(call, result);
		return;
	}
	undo_log_begin(&log, call->fds[0], number);
	const uint64_t begin = log.at;
	files_keep(worker->files, &log);
	(void)call->tool->execute(call, result);
	files_keep(worker->files, NULL);
	if (log.at > begin)
		(void)undo_log_end(&log, NULL);
}

/* A call that is only an audit also looks at what killed git processes left. */
static void left_look(struct worker *worker, const struct value *carried,
		      struct tool_result *result)
{
	const int64_t since_ns = value_integer(value_member(carried, LEFT_SINCE));
	const struct value *left = value_member(carried, LEFT_FOUND);

	if (value_count(left) > 0)
		audit_put_left_away(worker->audit, left, result);
	else if (since_ns > 0)
		audit_find_left(worker->audit, worker->nested, since_ns, result);
}

/* First do the audit that an earlier call has left, then run the tool. */
static void call_execute(struct worker *worker, const struct wire_call *wire,
			 struct call *call, struct tool_result *result)
{
	const bool is_audit = strcmp(wire->tool, AUDIT_CALL) == 0;

	if (worker->prepared != NULL && call->tool == worker->prepared_for)
		call->prepared = worker->prepared;
	else if (worker->prepared != NULL)
		below_empty(worker);
	files_finish_writes(worker->files, wire->unfinished);
	if (wire->audits)
		audit_run(worker->audit, worker->nested, wire->reach, NULL,
			  worker->quiet_ns, result);
	if (is_audit)
		left_look(worker, wire->carried, result);
	if (is_audit)
		(void)(audit_failed(result) || tool_done(result));
	else if (call->tool == NULL || call->tool->execute == NULL)
		(void)tool_fail(result, "This cell has no tool %s.", wire->tool);
	else if (call->cancelled)
		(void)call_stop_result(call, result);
	else
		tool_execute(worker, wire->log, call, result);
}

/*
 * Drop the details, because nobody will read them. Claims of programs are kept: the front
 * judges them.
 */
static void details_drop(struct tool_result *result)
{
	if (result->status != RESULT_DONE ||
	    value_member(result->details, CLAIMS_KEY) != NULL)
		return;
	value_free(result->details);
	result->details = NULL;
}

bool worker_execute(struct worker *worker, const struct frame *frame,
		    const struct tool **tool, struct tool_result *result)
{
	struct wire_call wire;
	auto_free const char **environment = NULL;
	auto_free char *folder = NULL;
	struct err err;

	*tool = NULL;
	if (!wire_parse_call(frame->payload, &wire, &err)) {
		(void)tool_fail(result, "%s", err.text);
		for (size_t i = 0; i < frame->fd_count; i++)
			(void)close(frame->fds[i]);
		return false;
	}
	struct call call = call_arrived(worker, &wire, frame);
	worker->alone = wire.alone;
	worker->quiet_ns = wire.quiet_ns;
	value_free(worker->nested);
	worker->nested = wire.nested;
	wire.nested = NULL;
	int journal = -1;
	if (wire.has_journal && frame->fd_count > 0) {
		journal = frame->fds[frame->fd_count - 1];
		call.fds[frame->fd_count - 1] = -1;
	}
	if (wire.environment != NULL) {
		environment = call_environment(worker->spec->environment, wire.environment);
		call.environment = environment;
	}
	*tool = call.tool;
	/* Copy the folder: the payload is lost at the next read (ask.h, tell.h). */
	folder = memory_copy(wire.folder);
	call.folder = folder;
	files_journal(worker->files, journal);
	if (wire.heralds && call.tool != NULL && (call.tool->effects & EFFECT_RUNS) != 0)
		program_launcher_rouse(worker->launcher);
	call_execute(worker, &wire, &call, result);
	files_journal(worker->files, -1);
	fd_close(&journal);
	call_ending(&call);
	/* A tool that gave a descriptor away has set it to -1. */
	for (size_t i = 0; i < frame->fd_count; i++)
		fd_close(&call.fds[i]);
	if (wire.terse && !wire.audits)
		details_drop(result);
	value_free(call.reply);
	wire_call_fini(&wire);
	return call.tool != NULL && (call.tool->effects & EFFECT_RUNS) == 0 &&
	       !call.cancelled && worker->prepared == NULL;
}

bool worker_serve_call(struct worker *worker, const struct frame *frame)
{
	struct tool_result result;
	const struct tool *tool;
	struct call_began began;

	began_note(&began);
	tool_result_init(&result);
	bool keep = worker_execute(worker, frame, &tool, &result);
	if (!keep)
		below_empty(worker);
	call_audit(worker, tool, &began, &result);
	result_send(worker, &result);
	files_settle(worker->files);
	tool_result_fini(&result);
	return keep;
}

bool worker_serve_batch(struct worker *worker, const struct frame *frame)
{
	/* The payload is lost at the next read. */
	auto_free char *copy = memory_copy_str(frame->payload);
	struct str rest = {copy, frame->payload.size};
	struct frame one = {.kind = FRAME_CALL, .fds = {-1, -1, -1}};

	while (wire_next_of_batch(&rest, &one.payload)) {
		if (!worker_serve_call(worker, &one))
			return false;
	}
	return true;
}
