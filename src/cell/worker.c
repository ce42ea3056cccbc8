/* worker: lock in, wait, run one call at a time. */
#include "cell/worker_parts.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/path.h"
#include "cell/wire.h"
#include "files/files.h"
#include "guard/guard.h"
#include "process/follow.h"
#include "process/frame.h"
#include "process/loop.h"
#include "process/program.h"
#include "sandbox/sandbox.h"
#include "sandbox/view.h"
#include "tool/call.h"
#include "tool/tool.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
	/* Heap kept between calls, so that none begins with asking the kernel for it. */
	HEAP_KEPT = 512 << 10,
	HEAP_AHEAD = 64 << 10,
	REHEARSED_BYTES = 64 << 10,
	/*
	 * After this time the front has other work, and this process need not wait for
	 * it.
	 */
	TAKEN_MS = 100,
	/* From a call's beginning in the front until it is sent, with cold caches. */
	COMING_US = 200,
	/* From an answer to the next call of a caller that makes no pause. */
	FOLLOWS_US = 100,
};

/*
 * The first writable part of the workspace, or NULL. With LAYER: one that is a layer of
 * the cell. Else: one on disk, which a command could fill up for others.
 */
static const char *space_of(const struct cell_spec *spec, bool layer)
{
	for (const char **at = spec->writable; *at != NULL; at++) {
		if ((path_within(*at, spec->workspace) || path_within(spec->workspace, *at)) &&
		    spec_is_layer(spec, *at) == layer &&
		    (layer || !spec_is_memory(spec, *at)))
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
		roots[i].passing = spec_is_layer(spec, roots[i].path);
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

	/* The anchor has reset all other signals. */
	(void)signal(SIGCHLD, SIG_DFL);
	/*
	 * The default action of a signal never ends pid 1. A worker that is not pid 1
	 * must ignore these two.
	 */
	if (getpid() != 1) {
		(void)signal(SIGPIPE, SIG_IGN);
		(void)signal(SIGXFSZ, SIG_IGN);
	}
	(void)prctl(PR_SET_NAME, "glovebox-worker");
	if (!sandbox_enter(&walls, &worker->reach, err))
		return false;
	if (!roots_open(worker, err))
		return false;
	worker->audit = audit_open(worker->spec->guard);
	worker->layers = layers_open(worker->spec);
	if (chdir(worker->spec->workspace) < 0)
		return err_set(err, errno, "%s: %s", worker->spec->workspace,
			       strerror(errno));
	return true;
}

/*
 * Run one call without effect, so that the pages that the first real call needs are
 * faulted in. The program it starts is a folder, so the start fails in the last step. A
 * worker that prepares a shell starts a program anyway, so its rehearsal names no tool.
 */
static void rehearse(struct worker *worker, enum worker_kind kind)
{
	auto_value struct value *arguments = value_new_object();
	struct wire_call call = {.tool = kind == WORKER_PREPARED ? "" : "exec",
				 .folder = "/",
				 .arguments = arguments,
				 .deadline_ms = CLOCK_NEVER};
	struct frame frame = {.kind = FRAME_CALL, .fds = {-1, -1, -1}};
	const int64_t began_us = clock_now_us();
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
	(void)worker_execute(worker, &frame, &tool, &result);
	value_set_real(tool_details(&result), "seconds",
		       (double)(clock_now_us() - began_us) / 1e6);
	buf_clear(&sent);
	(void)tool_result_print(&result, &sent);
	buf_fini(&sent);
	tool_result_fini(&result);
}

/*
 * Wait until the front has taken the answer and closed the socket. The end of this
 * process takes as long as some answers, and the kernel often wakes the front on this
 * processor. When many calls wait, no processor is idle, and this extra wake-up would
 * only cost time.
 */
static void wait_until_taken(const struct worker *worker)
{
	struct pollfd front = {.fd = worker->socket, .events = POLLRDHUP};

	(void)poll(&front, 1, TAKEN_MS);
}

/*
 * The next frame is expected before UNTIL_US. Poll without sleeping, because waking up
 * would take longer.
 */
static void stay_awake(const struct worker *worker, int64_t until_us)
{
	struct pollfd front = {.fd = worker->socket, .events = POLLIN};

	(void)awake_poll(&front, 1, until_us);
}

static void serve(struct worker *worker)
{
	struct frame frame;
	int64_t answered_us = 0;
	bool follows = false;

	for (;;) {
		/*
		 * The last call came soon after an answer, so the next one is likely to
		 * do the same.
		 */
		if (follows && worker->alone)
			stay_awake(worker, answered_us + FOLLOWS_US);
		if (!frame_wait(&worker->reader, worker->socket, CLOCK_NEVER, &frame, NULL))
			return;
		if (frame.kind == FRAME_COMING && worker->prepared != NULL &&
		    worker->prepared_for->rouse != NULL)
			worker->prepared_for->rouse(worker->prepared);
		if (frame.kind == FRAME_COMING && !worker_cancel_waits(worker))
			stay_awake(worker, clock_now_us() + COMING_US);
		/*
		 * A cancel that arrives after the answer of its call has nothing to end.
		 */
		if (frame.kind != FRAME_CALL && frame.kind != FRAME_BATCH)
			continue;
		follows = clock_now_us() - answered_us < FOLLOWS_US;
		const bool stays = frame.kind == FRAME_CALL
					   ? worker_serve_call(worker, &frame)
					   : worker_serve_batch(worker, &frame);
		if (!stays && worker->kind != WORKER_AT_ONCE &&
		    worker->kind != WORKER_WIDENED)
			wait_until_taken(worker);
		if (!stays)
			return;
		answered_us = clock_now_us();
	}
}

static bool call_waits(const struct worker *worker)
{
	struct pollfd call = {.fd = worker->socket, .events = POLLIN};

	return poll(&call, 1, 0) > 0;
}

/* Rehearse and prepare, unless a call waits already. */
static void settle(struct worker *worker, enum worker_kind kind)
{
	if (kind == WORKER_AT_ONCE || kind == WORKER_WIDENED || worker->spec->one_call ||
	    call_waits(worker))
		return;
	rehearse(worker, kind);
	if (kind == WORKER_PREPARED && !call_waits(worker))
		worker->prepared_for = tool_prepared(worker->tools);
	if (worker->prepared_for != NULL) {
		const struct call call = worker_call(worker);
		worker->prepared = worker->prepared_for->prepare(&call);
	}
	/* A launcher needs plain signals, which a worker has only as pid 1. */
	if (kind == WORKER_PLAIN && getpid() == 1 && worker->terms.answer == NULL &&
	    !call_waits(worker))
		worker->launcher = program_launcher_make(&worker->terms);
}

static void program_asks(void *context, int listener)
{
	const struct worker *worker = context;

	sandbox_answer(listener, worker->spec->writable);
}

/* Set the terms of every program that this worker starts. */
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
