/* worker: lock in, wait, run one call at a time. */
#include "runtime/worker.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "process/children.h"
#include "process/frame.h"
#include "process/program.h"
#include "process/program_end.h"
#include "runtime/audit.h"
#include "runtime/audit_tell.h"
#include "runtime/call.h"
#include "runtime/claims.h"
#include "runtime/files.h"
#include "runtime/undo_log.h"
#include "runtime/wire.h"
#include "sandbox/sandbox.h"
#include "sandbox/view.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	/* Heap kept between calls, so that none begins with asking the kernel for it. */
	HEAP_KEPT = 512 << 10,
	HEAP_AHEAD = 64 << 10,
	REHEARSED_BYTES = 64 << 10,
	/* Then the front has other things to do, and this process is only in the way. */
	TAKEN_MS = 100,
	/* From a call's beginning in the front until it is sent, with cold caches. */
	COMING_US = 200,
	/* From an answer to the next call, of who asks without a pause. */
	FOLLOWS_US = 100,
};

struct worker {
	const struct cell_spec *spec;
	const struct tool *const *tools;
	struct files *files;
	struct audit *audit; /* or NULL */
	enum worker_kind kind;
	int socket;
	int rules; /* of the anchor; -1 where there are none */
	struct reach reach;
	struct program_terms terms;
	struct program_score score;
	const char *space; /* call.h */
	int listener;      /* call.h */
	const char *layer;
	struct frame_reader reader;
	/* the tool this worker was prepared for, and what that made; or NULL */
	const struct tool *prepared_for;
	void *prepared;
	bool alone; /* the call it has served last was: nobody else wants the processor */
	struct program_launcher *launcher; /* where nothing is prepared, or NULL */
};

static bool is_layer(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		if (spec->view.entries[i].kind == VIEW_OVERLAY &&
		    strcmp(spec->view.entries[i].path, path) == 0)
			return true;
	}
	return false;
}

/*
 * The first writable part of the workspace that is on disk, which a command can fill up for
 * others, or that is a LAYER of the cell's own; or NULL.
 */
static const char *space_of(const struct cell_spec *spec, bool layer)
{
	for (const char **at = spec->writable; *at != NULL; at++) {
		if ((path_within(*at, spec->workspace) || path_within(spec->workspace, *at)) &&
		    is_layer(spec, *at) == layer && strcmp(*at, "/tmp") != 0)
			return *at;
	}
	return NULL;
}

static bool roots_open(struct worker *worker, struct err *err)
{
	const struct cell_spec *spec = worker->spec;
	auto_free struct files_root *roots =
		memory_array(spec->root_count + 1, sizeof(*roots));

	for (size_t i = 0; i < spec->root_count; i++) {
		roots[i] = spec->roots[i];
		roots[i].passing = is_layer(spec, roots[i].path);
	}
	return files_open(roots, spec->root_count, spec->workspace, spec->blocked,
			  &worker->files, err);
}

static bool lock_in(struct worker *worker, struct err *err)
{
	const struct walls walls = {
		.level = worker->spec->built,
		.rules = worker->rules,
		.writable = worker->spec->writable,
		.processes = worker->spec->call_limits.pids,
		.listener = &worker->listener,
	};

	/* All others the anchor has made plain. */
	(void)signal(SIGCHLD, SIG_DFL);
	/* Nobody's default action ends a pid 1; where this process is none it has to ask. */
	if (getpid() != 1)
		(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, "glovebox-worker");
	if (!sandbox_enter(&walls, &worker->reach, err))
		return false;
	if (!roots_open(worker, err))
		return false;
	worker->audit = audit_open(worker->spec->guard);
	if (chdir(worker->spec->workspace) < 0)
		return err_set(err, errno, "%s: %s", worker->spec->workspace,
			       strerror(errno));
	return true;
}

static struct call call_of(struct worker *worker)
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
 * Everything below this worker goes. Who has no child has no descendant; and only who is
 * alone where signals reach may mean "all" when it says so.
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
	if (!wire_print_result(result, &text)) {
		struct tool_result small;
		tool_result_init(&small);
		(void)tool_fail(&small, "The answer is over %d bytes; ask for less of it.",
				FRAME_MAX);
		buf_clear(&text);
		(void)wire_print_result(&small, &text);
		tool_result_fini(&small);
	}
	(void)frame_send(worker->socket, FRAME_RESULT, buf_str(&text), NULL, 0,
			 CLOCK_NEVER, NULL);
	buf_fini(&text);
}

/*
 * A cancel that came in one read with its call: the socket will not become readable for
 * it again. Nobody there any more counts as one.
 */
static bool cancel_waits(const struct worker *worker)
{
	const struct frame_reader *reader = &worker->reader;

	return reader->ended ||
	       (reader->bytes.size > reader->taken &&
		(unsigned char)reader->bytes.data[reader->taken] != FRAME_ASK);
}

/* What the call could write is looked at when nothing of it runs any more. */
static void call_audit(struct worker *worker, const struct tool *tool,
		       const struct timespec *since, struct tool_result *result)
{
	bool is_command = tool != NULL && (tool->effects & EFFECT_RUNS) != 0;

	if (!is_command && (tool == NULL || (tool->effects & EFFECT_WRITES) == 0))
		return;
	audit_run(worker->audit, is_command ? since : NULL, result);
	/* What a file tool wrote is gone again: it has not done what it says. */
	if (!is_command && audit_quarantined(result))
		result->status = RESULT_DENIED;
}

/*
 * Memory and processes are added up over a pid namespace. Without one there is only the
 * kernel's own count of the user's processes.
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
	struct call call = call_of(worker);

	call.tool = tool_find(worker->tools, wire->tool);
	call.arguments = wire->arguments;
	call.carried = wire->carried;
	call.plan = wire->plan;
	call.folder = wire->folder;
	call.deadline_ms = wire->deadline_ms;
	call.is_last = wire->is_last;
	call.heralds = wire->heralds;
	call.terse = wire->terse;
	call.limits = limits_here(worker, wire);
	call.seen = wire->seen;
	call.reader = &worker->reader;
	call.cancelled = cancel_waits(worker);
	_Static_assert((int)CALL_FDS_MAX == (int)FRAME_FDS_MAX,
		       "a call takes a frame's all");
	memcpy(call.fds, frame->fds, sizeof(call.fds));
	return call;
}

/* The tool, with what it replaces kept in the log that came with the call, if one did. */
static void tool_execute(struct worker *worker, uint32_t number, struct call *call,
			 struct tool_result *result)
{
	struct undo_log log;

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

/* First what an earlier call has left to be looked at, then the tool. */
static void call_execute(struct worker *worker, const struct wire_call *wire,
			 struct call *call, struct tool_result *result)
{
	if (worker->prepared != NULL && call->tool == worker->prepared_for)
		call->prepared = worker->prepared;
	else if (worker->prepared != NULL)
		below_empty(worker);
	files_finish_writes(worker->files, wire->unfinished);
	if (wire->audits)
		audit_run(worker->audit, NULL, result);
	if (wire->audits && strcmp(wire->tool, AUDIT_CALL) == 0)
		(void)(audit_failed(result) || tool_done(result));
	else if (call->tool == NULL || call->tool->execute == NULL)
		(void)tool_fail(result, "This cell has no tool %s.", wire->tool);
	else if (call->cancelled)
		(void)call_stop_result(call, result);
	else
		tool_execute(worker, wire->log, call, result);
}

/* Nobody would look at them; what programs claim is judged by the front. */
static void details_drop(struct tool_result *result)
{
	if (result->status != RESULT_DONE ||
	    value_member(result->details, CLAIMS_KEY) != NULL)
		return;
	value_free(result->details);
	result->details = NULL;
}

/* *TOOL is what was called, NULL when nothing was. True: the worker may serve another call. */
static bool frame_execute(struct worker *worker, const struct frame *frame,
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
	/* The payload goes when something else is read (ask.h, tell.h). */
	folder = memory_copy(wire.folder);
	call.folder = folder;
	files_journal(worker->files, journal);
	if (wire.heralds && call.tool != NULL && (call.tool->effects & EFFECT_RUNS) != 0)
		program_launcher_rouse(worker->launcher);
	call_execute(worker, &wire, &call, result);
	files_journal(worker->files, -1);
	fd_close(&journal);
	call_ending(&call);
	/* A tool that gave one away has left -1. */
	for (size_t i = 0; i < frame->fd_count; i++)
		fd_close(&call.fds[i]);
	if (wire.terse && !wire.audits)
		details_drop(result);
	value_free(call.reply);
	wire_call_fini(&wire);
	return call.tool != NULL && (call.tool->effects & EFFECT_RUNS) == 0 &&
	       !call.cancelled && worker->prepared == NULL;
}

/* True when the worker may serve another call. */
static bool call_run(struct worker *worker, const struct frame *frame)
{
	struct tool_result result;
	const struct tool *tool;
	struct timespec since = {0};

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &since);
	tool_result_init(&result);
	bool keep = frame_execute(worker, frame, &tool, &result);
	if (!keep)
		below_empty(worker);
	call_audit(worker, tool, &since, &result);
	result_send(worker, &result);
	tool_result_fini(&result);
	return keep;
}

/*
 * The way of a call once through, to no effect: it faults in what the first real one
 * would. A start of a folder fails in its very last step.
 */
static void rehearse(struct worker *worker)
{
	auto_value struct value *arguments = value_new_object();
	struct wire_call call = {.tool = "exec",
				 .folder = "/",
				 .arguments = arguments,
				 .deadline_ms = CLOCK_NEVER};
	struct frame frame = {.kind = FRAME_CALL, .fds = {-1, -1, -1}};
	const struct tool *tool;
	struct tool_result result;
	struct file folder;
	struct buf sent;
	struct err err;

	value_set(arguments, "argv", value_new_array());
	value_append(value_member(arguments, "argv"), value_new_text("/"));
	file_init(&folder);
	(void)files_reach(worker->files, worker->spec->workspace, FILES_FOLDER, &folder,
			  &err);
	file_fini(&folder);
	(void)mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
	(void)mallopt(M_TOP_PAD, HEAP_AHEAD);
	free(memory_alloc(REHEARSED_BYTES));
	tool_result_init(&result);
	buf_init(&sent, REHEARSED_BYTES);
	(void)wire_print_call(&call, &sent);
	frame.payload = buf_str(&sent);
	(void)frame_execute(worker, &frame, &tool, &result);
	value_set_real(tool_details(&result), "seconds", 0.1);
	buf_clear(&sent);
	(void)wire_print_result(&result, &sent);
	buf_fini(&sent);
	tool_result_fini(&result);
}

/*
 * The end of this process takes as long as some answers, and the kernel likes to wake the
 * front on this very processor: the front first takes the answer and lets go of the socket.
 * Where many calls wait no processor is idle, and one more wake-up would only take its time.
 */
static void wait_until_taken(const struct worker *worker)
{
	struct pollfd front = {.fd = worker->socket, .events = POLLRDHUP};

	(void)poll(&front, 1, TAKEN_MS);
}

static void serve(struct worker *worker)
{
	struct frame frame;
	int64_t answered_us = 0;
	bool follows = false;

	for (;;) {
		/* Calls follow each other: the next is likely to come as soon as this one. */
		if (follows && worker->alone)
			frame_stay(worker->socket, answered_us + FOLLOWS_US);
		if (!frame_wait(&worker->reader, worker->socket, CLOCK_NEVER, &frame, NULL))
			return;
		if (frame.kind == FRAME_COMING && worker->prepared != NULL &&
		    worker->prepared_for->rouse != NULL)
			worker->prepared_for->rouse(worker->prepared);
		if (frame.kind == FRAME_COMING && !cancel_waits(worker))
			frame_stay(worker->socket, clock_now_us() + COMING_US);
		if (frame.kind == FRAME_CALL)
			follows = clock_now_us() - answered_us < FOLLOWS_US;
		/* A cancel that came after its call's answer has nothing left to end. */
		if (frame.kind == FRAME_CALL && !call_run(worker, &frame)) {
			if (worker->kind != WORKER_AT_ONCE && worker->kind != WORKER_WIDENED)
				wait_until_taken(worker);
			return;
		}
		if (frame.kind == FRAME_CALL)
			answered_us = clock_now_us();
	}
}

static bool call_waits(const struct worker *worker)
{
	struct pollfd call = {.fd = worker->socket, .events = POLLIN};

	return poll(&call, 1, 0) > 0;
}

/* What can be made ahead, unless somebody waits already. */
static void settle(struct worker *worker, enum worker_kind kind)
{
	if (kind == WORKER_AT_ONCE || kind == WORKER_WIDENED || worker->spec->one_call ||
	    call_waits(worker))
		return;
	rehearse(worker);
	if (kind == WORKER_PREPARED && !call_waits(worker))
		worker->prepared_for = tool_prepared(worker->tools);
	if (worker->prepared_for != NULL) {
		const struct call call = call_of(worker);
		worker->prepared = worker->prepared_for->prepare(&call);
	}
	/* Its signals are plain where it is the first process. */
	if (kind == WORKER_PLAIN && getpid() == 1 && worker->terms.answer == NULL &&
	    !call_waits(worker))
		worker->launcher = program_launcher_make(&worker->terms);
}

static void program_asks(void *context, int listener)
{
	const struct worker *worker = context;

	sandbox_answer(listener, worker->spec->writable);
}

/* What holds for every program that is started here. */
static void terms_settle(struct worker *worker)
{
	bool asks;

	worker->terms = (struct program_terms){
		.filter = sandbox_program_filter(worker->spec->built, &asks),
		.ruleset = worker->reach.ruleset > 0 ? worker->reach.ruleset : 0,
		.alone = worker->reach.alone,
		.children_fd = worker->reach.children_fd,
		.context = worker,
	};
	if (asks)
		worker->terms.answer = program_asks;
	worker->score = (struct program_score){.fd = worker->reach.score_fd,
					       .own = worker->reach.score};
	if (worker->score.fd >= 0 && worker->reach.score[0] != '\0')
		worker->terms.score = &worker->score;
	if (worker->reach.alone || getpid() == 1)
		worker->terms.ends_fd = program_ends_open(NULL);
}

void worker_refuse(int socket, const struct err *err)
{
	(void)frame_send(socket, FRAME_REFUSED, str_of(err->text), NULL, 0, CLOCK_NEVER,
			 NULL);
}

void worker_run(const struct cell_spec *spec, int socket, int rules,
		enum worker_kind kind, const struct tool *const *tools)
{
	struct worker worker = {.spec = spec,
				.tools = tools,
				.kind = kind,
				.socket = socket,
				.rules = rules,
				.space = space_of(spec, false),
				.layer = space_of(spec, true)};
	struct err err;

	frame_reader_init(&worker.reader);
	if (!lock_in(&worker, &err)) {
		worker_refuse(socket, &err);
		_exit(1);
	}
	terms_settle(&worker);
	settle(&worker, kind);
	if (frame_send(socket, FRAME_READY, (struct str){"", 0}, NULL, 0, CLOCK_NEVER, NULL))
		serve(&worker);
	_exit(0);
}
