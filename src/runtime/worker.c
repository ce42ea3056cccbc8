/* worker: lock in, wait, run one call at a time. */
#include "runtime/worker.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "process/frame.h"
#include "runtime/call.h"
#include "runtime/files.h"
#include "runtime/wire.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * They fault in what the first real start would: 1.06-1.24 x of a bare start without
 * them.
 */
enum { EMPTY_STARTS = 2 };

struct worker {
	const struct cell_spec *spec;
	const struct tool *const *tools;
	struct files *files;
	int socket;
	const char *space; /* call.h */
	int listener;      /* call.h */
	const char *layer;
	struct frame_reader reader;
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

static bool lock_in(struct worker *worker, struct err *err)
{
	const struct walls walls = {
		.writable = worker->spec->writable,
		.processes = worker->spec->processes,
		.listener = &worker->listener,
	};

	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, "glovebox-worker");
	if (!sandbox_enter(&walls, err))
		return false;
	if (!files_open(worker->spec->roots, worker->spec->root_count,
			worker->spec->workspace, worker->spec->blocked, &worker->files, err))
		return false;
	if (chdir(worker->spec->workspace) < 0)
		return err_set(err, errno, "%s: %s", worker->spec->workspace,
			       strerror(errno));
	for (int i = 0; i < (worker->spec->one_call ? 0 : EMPTY_STARTS); i++) {
		/* What a start will do. NOLINTNEXTLINE(clang-analyzer-security.*) */
		pid_t pid = vfork();
		if (pid == 0)
			_exit(0);
		if (pid < 0)
			return err_set(err, errno, "a first empty start: %s",
				       strerror(errno));
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return true;
}

/* Everything else in this pid namespace goes; without a program there is nothing. */
static void namespace_empty(void)
{
	(void)kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) >= 0 || errno == EINTR)
		;
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
	return worker->reader.ended || worker->reader.bytes.size > worker->reader.taken;
}

/* True when the worker may serve another call. */
static bool call_run(struct worker *worker, const struct frame *frame)
{
	struct tool_result result;
	struct wire_call wire;
	auto_value struct value *object = NULL;
	struct err err;
	bool keep = false;

	tool_result_init(&result);
	if (!wire_parse_call(frame->payload, &wire, &object, &err)) {
		(void)tool_fail(&result, "%s", err.text);
	} else {
		struct call call = {
			.tool = tool_find(worker->tools, wire.tool),
			.arguments = wire.arguments,
			.files = worker->files,
			.workspace = worker->spec->workspace,
			.folder = wire.folder,
			.environment = worker->spec->environment,
			.deadline_ms = wire.deadline_ms,
			.is_last = wire.is_last,
			.grace_s = wire.grace_s,
			.agent = wire.agent,
			.limits = wire.limits,
			.space = worker->space,
			.listener = worker->listener,
			.layer = worker->layer,
			.seen = wire.seen,
			.before = wire.before,
			.program_filter = sandbox_program_filter(),
			.control_fd = worker->socket,
			.cancelled = cancel_waits(worker),
		};
		_Static_assert((int)CALL_FDS_MAX == (int)FRAME_FDS_MAX,
			       "a call takes a frame's all");
		memcpy(call.fds, frame->fds, sizeof(call.fds));
		if (call.tool == NULL || call.tool->execute == NULL)
			(void)tool_fail(&result, "This cell has no tool %s.", wire.tool);
		else if (call.cancelled)
			(void)call_stop_result(&call, &result);
		else
			(void)call.tool->execute(&call, &result);
		keep = call.tool != NULL && (call.tool->effects & EFFECT_RUNS) == 0 &&
		       !call.cancelled;
	}
	for (size_t i = 0; i < frame->fd_count; i++)
		(void)close(frame->fds[i]);
	if (!keep)
		namespace_empty();
	result_send(worker, &result);
	tool_result_fini(&result);
	return keep;
}

static void serve(struct worker *worker)
{
	struct frame frame;

	for (;;) {
		if (!frame_wait(&worker->reader, worker->socket, CLOCK_NEVER, &frame, NULL))
			return;
		/* A cancel that came after its call's answer has nothing left to end. */
		if (frame.kind == FRAME_CALL && !call_run(worker, &frame))
			return;
	}
}

void worker_run(const struct cell_spec *spec, int socket, const struct tool *const *tools)
{
	struct worker worker = {.spec = spec,
				.tools = tools,
				.socket = socket,
				.space = space_of(spec, false),
				.layer = space_of(spec, true)};
	struct err err;

	frame_reader_init(&worker.reader);
	if (!lock_in(&worker, &err)) {
		(void)frame_send(socket, FRAME_REFUSED, str_of(err.text), NULL, 0,
				 CLOCK_NEVER, NULL);
		_exit(1);
	}
	if (frame_send(socket, FRAME_READY, (struct str){"", 0}, NULL, 0, CLOCK_NEVER, NULL))
		serve(&worker);
	_exit(0);
}
