/* worker: locks itself in, waits, and runs one call at a time. */

#include "cell/worker.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "cell/layers/base_log.h"
#include "cell/layers/fresh.h"
#include "cell/layers/layer.h"
#include "cell/wire.h"
#include "files/files.h"
#include "files/place.h"
#include "files/record.h"
#include "guard/guard.h"
#include "process/follow.h"
#include "process/frame.h"
#include "process/loop.h"
#include "process/program.h"
#include "process/usage.h"
#include "sandbox/landlock.h"
#include "sandbox/sandbox.h"
#include "sandbox/view.h"
#include "tool/call.h"
#include "tool/denial.h"
#include "tool/secret.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdalign.h>
#include <stdbool.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * Files that the policy blocks, and that were opened while a call ran. Each of them is an empty file in
 * the view, so a program reads nothing, and gets no error by which it could say so. A watch of
 * inotify on each is all that this costs; a cell without blocked files has none.
 */

enum {
	BLOCKED_MAX = 16, /* files that are watched; more of them are not told of */
	EVENTS_BYTES = 4096,
};

struct blocked {
	int fd; /* -1: nothing is watched */
	const char *paths[BLOCKED_MAX];
	int watches[BLOCKED_MAX];
	size_t count;
};

/* Call this before a program of a call in the cell of SPEC (borrowed) begins. */
static void blocked_begin(struct blocked *blocked, const struct cell_spec *spec)
{
	struct stat st;

	*blocked = (struct blocked){.fd = -1};
	for (size_t i = 0; i < spec->view.count && blocked->count < BLOCKED_MAX; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if (entry->kind != VIEW_MASK || !entry->apart ||
		    lstat(entry->path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (blocked->fd < 0)
			blocked->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		const int watch =
			blocked->fd < 0
				? -1
				: inotify_add_watch(blocked->fd, entry->path, IN_OPEN);
		if (watch < 0)
			return;
		blocked->paths[blocked->count] =
			path_within(entry->path, spec->workspace)
				? path_relative(entry->path, spec->workspace)
				: entry->path;
		blocked->watches[blocked->count++] = watch;
	}
}

static void blocked_tell(const char *path, struct tool_result *result)
{
	struct buf shown;

	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, str_of(path));
	denial_add(result, &(struct denial){
				   .kind = DENIAL_FS,
				   .target = shown.data,
				   .rule = "blocked",
				   .remedy = "it was opened, and reads as empty here; only the "
					     "user can take it out of `blocked` in the "
					     "configuration",
			   });
	buf_fini(&shown);
}

/* Call this after the call: adds a denial to RESULT for each file that was opened. */
static void blocked_end(struct blocked *blocked, struct tool_result *result)
{
	alignas(struct inotify_event) char events[EVENTS_BYTES];
	bool opened[BLOCKED_MAX] = {false};
	ssize_t size;

	if (blocked->fd < 0)
		return;
	while ((size = read(blocked->fd, events, sizeof(events))) > 0) {
		for (ssize_t at = 0; at < size;) {
			const struct inotify_event *event = (const void *)(events + at);

			for (size_t i = 0; i < blocked->count; i++)
				opened[i] = opened[i] || blocked->watches[i] == event->wd;
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	for (size_t i = 0; i < blocked->count; i++) {
		if (opened[i])
			blocked_tell(blocked->paths[i], result);
	}
	fd_close(&blocked->fd);
}

struct worker {
	const struct cell_spec *spec;
	const struct tool *const *tools;
	struct files *files;
	struct audit *audit; /* or NULL */
	struct layers *layers;
	struct blocked blocked;
	struct base_log *base_log;
	const struct fresh *fresh;
	struct value *written; /* what a file tool wrote in this call, or NULL */
	struct value *heads;   /* folders above what it wrote that may be repositories */
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
	/*
	 * the tool this worker was prepared for, and the result of its `prepare`; or NULL
	 */
	const struct tool *prepared_for;
	void *prepared;
	/* of the call that is served */
	struct audit_call audits;
	struct marks nested; /* `more` of these */
	bool alone; /* the last call was the only one: nobody else wants the processor */
};

/* One call in a worker, from its frame to its answer. */

enum {
	NS_PER_MS = 1000000,
	/* the clock that stamps files advances in steps of some milliseconds */
	CLOCKS_APART_MS = 50,
};

/* A descriptor of the layer of a review that lies in memory; -1: there is none. */
static int review_memory_of(const struct cell_spec *spec)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		struct statfs fs;

		if (entry->kind == VIEW_OVERLAY && entry->lasts == VIEW_LASTS_REVIEW &&
		    fstatfs(entry->layer, &fs) == 0 && fs.f_type == TMPFS_MAGIC)
			return entry->layer;
	}
	return -1;
}

/* The folder of the changes of the cell's base; -1: it stands on none. */
static int base_layer_of(const struct cell_spec *spec)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		if (spec->view.entries[i].kind == VIEW_BASE)
			return spec->view.entries[i].layer;
	}
	return -1;
}

/* The struct call of this worker, before a frame is read. */
static struct call worker_call(struct worker *worker)
{
	return (struct call){
		.files = worker->files,
		.workspace = worker->spec->workspace,
		.folder = worker->spec->workspace,
		.environment = worker->spec->environment.items,
		.grace_s = worker->spec->grace_s,
		.agent = worker->spec->agent,
		.deadline_ms = CLOCK_NEVER,
		.terms = &worker->terms,
		.space = worker->space,
		.listener = worker->listener,
		.as_root = worker->spec->identity.root,
		.layer = worker->layer,
		.review_memory = review_memory_of(worker->spec),
		.base_layer = base_layer_of(worker->spec),
		.has_view = spec_is_sealed(worker->spec),
		.control_fd = worker->socket,
		.fds = {[0 ... CALL_FDS_MAX - 1] = -1},
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
		(void)follow_children_end(worker->reach.children_fd, NULL, 0);
		return;
	}
	follow_end_all(PROGRAM_END_PATIENCE_MS, NULL, NULL);
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

/*
 * Was a cancel read together with its call? The socket will not become readable for it
 * again. A closed socket counts as a cancel.
 */
static bool worker_cancel_waits(const struct worker *worker)
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
	struct marks more = {0};
	const struct audit_call heads = {.more = &more};
	struct err err;

	if (worker->audit == NULL || value_count(worker->heads) == 0)
		return;
	for (size_t i = 0; i < value_count(worker->heads); i++) {
		auto_free char *path =
			path_of_key(value_text(value_item(worker->heads, i)));
		if (path != NULL)
			(void)marks_add(&more, MARK_WATCHED, path, STR(""));
	}
	if (audit_begin_more(worker->spec->guard, &more, true, &err))
		audit_run(worker->audit, &heads, result);
	else
		audit_tell_failed(result, err.text);
	marks_fini(&more);
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
	struct audit_call audits = worker->audits;
	if (was_set_back(began))
		audits.quiet_ns = 0;
	audits.reach = GUARD_CALLS;
	audits.since = is_command ? &began->wall : NULL;
	audit_run(worker->audit, &audits, result);
	if (!is_command)
		heads_audit(worker, result);
	if (is_command) {
		layers_end(worker->layers, &began->wall, result);
		blocked_end(&worker->blocked, result);
	} else {
		layers_note_written(worker->layers, worker->written, result);
	}
	base_log_end(worker->base_log, result);
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
	memcpy(call.fds, frame->fds, sizeof(call.fds));
	return call;
}

/*
 * Run the tool. When the call came with an undo log, keep there what the tool replaces.
 */
static void tool_execute(struct worker *worker, const struct wire_call *wire,
			 struct call *call, struct tool_result *result)
{
	struct undo_log log;

	value_free(worker->heads);
	worker->heads = value_new_array();
	files_note_heads(worker->files, worker->heads);
	value_free(worker->written);
	worker->written = value_new_array();
	files_note_written(worker->files, worker->written);
	if ((call->tool->effects & EFFECT_RUNS) != 0) {
		layers_begin(worker->layers);
		blocked_begin(&worker->blocked, worker->spec);
	}
	if (!wire->has_log || call->fds[0] < 0) {
		(void)call->tool->execute(call, result);
		return;
	}
	undo_log_begin(&log, call->fds[0], wire->log);
	const uint64_t begin = log.at;
	files_keep(worker->files, &log);
	(void)call->tool->execute(call, result);
	files_keep(worker->files, NULL);
	if (log.at > begin)
		(void)undo_log_end(&log, NULL);
}

enum { SECRETS_MS = 10000 }; /* the front reads all the time */

/*
 * Tell the front the secrets of the workspace, before a program of the call could change
 * what is told.
 */
static void secrets_tell(const struct worker *worker, struct value *arguments,
			 const struct call *call)
{
	struct call gathers = *call;
	struct tool_result found;
	struct buf text;

	gathers.tool = tool_find(worker->tools, SECRET_TOOL);
	gathers.arguments = arguments;
	if (gathers.tool == NULL || gathers.tool->execute == NULL)
		return;
	tool_result_init(&found);
	buf_init(&text, FRAME_MAX);
	(void)gathers.tool->execute(&gathers, &found);
	if (tool_result_print(&found, &text))
		(void)frame_send(worker->socket, FRAME_SECRETS, buf_str(&text), NULL, 0,
				 clock_now_ms() + SECRETS_MS, NULL);
	if (text.capacity > 0)
		explicit_bzero(text.data, text.capacity);
	buf_fini(&text);
	tool_result_fini(&found);
}

/*
 * First do the audit that an earlier call has left, then run the tool. A call that is
 * only an audit also looks at what killed git processes left.
 */
static void call_execute(struct worker *worker, const struct wire_call *wire,
			 struct call *call, struct tool_result *result)
{
	const bool is_audit = strcmp(wire->tool, AUDIT_CALL) == 0;

	if (worker->prepared != NULL && call->tool == worker->prepared_for)
		call->prepared = worker->prepared;
	else if (worker->prepared != NULL)
		below_empty(worker);
	if (wire->unfinished != NULL && call->fds[0] >= 0) {
		(void)place_put_back(worker->files, call->fds[0], wire->unfinished,
				     &result->text);
		if (result->text.size > 0)
			value_set_boolean(tool_details(result), "old_files_beside", true);
	}
	if (wire->secrets != NULL)
		secrets_tell(worker, wire->secrets, call);
	if (wire->audits)
		audit_run(worker->audit, &worker->audits, result);
	if (is_audit)
		audit_look_left(worker->audit, &worker->nested, wire->carried, result);
	if (is_audit)
		(void)(audit_failed(result) || tool_done(result));
	else if (call->tool == NULL || call->tool->execute == NULL)
		(void)tool_fail(result, "This cell has no tool %s.", wire->tool);
	else if (call->cancelled)
		(void)call_stop_result(call, result);
	else
		tool_execute(worker, wire, call, result);
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

/*
 * Execute the call in FRAME. *TOOL is the called tool, NULL when there is none. True: the
 * worker may serve another call.
 */
static bool worker_execute(struct worker *worker, const struct frame *frame,
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
	marks_fini(&worker->nested);
	worker->nested = wire.nested;
	wire.nested = (struct marks){0};
	worker->audits = (struct audit_call){
		.more = &worker->nested,
		.reach = wire.reach,
		.quiet_ns = wire.quiet_ns,
		.is_last = wire.is_last,
	};
	if (wire.environment != NULL) {
		environment = call_environment(worker->spec->environment.items,
					       wire.environment);
		call.environment = environment;
	}
	*tool = call.tool;
	/* Copy the folder: the payload is lost at the next read (call.h). */
	folder = memory_copy(wire.folder);
	call.folder = folder;
	call_execute(worker, &wire, &call, result);
	if (call.tool != NULL && (call.tool->effects & EFFECT_RUNS) != 0)
		accounts_of_children(&result->accounts);
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

/*
 * Execute the call in FRAME, then audit and answer. True: the worker may serve another
 * call.
 */
static bool worker_serve_call(struct worker *worker, const struct frame *frame)
{
	struct tool_result result;
	const struct tool *tool;
	struct call_began began;

	const bool is_fresh = fresh_ask(worker->fresh);
	base_log_begin(worker->base_log);
	began_note(&began);
	tool_result_init(&result);
	bool keep = worker_execute(worker, frame, &tool, &result);
	if (!is_fresh)
		(void)buf_adds(&result.text,
			       "\n[The layer could not be mounted anew: files that somebody "
			       "outside saved since the last call may show as they were.]");
	if (!keep)
		below_empty(worker);
	call_audit(worker, tool, &began, &result);
	result_send(worker, &result);
	files_settle(worker->files);
	tool_result_fini(&result);
	return keep;
}

/*
 * Serve the calls of a batch; each is answered before the next begins. False, without the
 * rest, after a call that the worker cannot outlive, like a cancelled one.
 */
static bool worker_serve_batch(struct worker *worker, const struct frame *frame)
{
	/* The payload is lost at the next read. */
	auto_free char *copy = memory_copy_str(frame->payload);
	struct str rest = {copy, frame->payload.size};
	struct frame one = {.kind = FRAME_CALL, .fds = {[0 ... FRAME_FDS_MAX - 1] = -1}};

	while (wire_next_of_batch(&rest, &one.payload)) {
		if (!worker_serve_call(worker, &one))
			return false;
	}
	return true;
}

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
	/* From an answer to the next call of a caller that makes no pause. */
	FOLLOWS_US = 100,
};

/*
 * The first writable part of the workspace, or NULL. With LAYER: one that is a layer of
 * the cell. Else: one on disk, which a command could fill up for others.
 */
static const char *space_of(const struct cell_spec *spec, bool layer)
{
	for (const char **at = spec->writable.items; *at != NULL; at++) {
		if ((path_within(*at, spec->workspace) || path_within(spec->workspace, *at)) &&
		    spec_is_layer(spec, *at) == layer &&
		    (layer || !spec_is_memory(spec, *at)))
			return *at;
	}
	return NULL;
}

static bool roots_open(const struct cell_spec *spec, struct files **files, struct err *err)
{
	auto_free struct files_root *roots =
		memory_array(spec->root_count + 1, sizeof(*roots));

	for (size_t i = 0; i < spec->root_count; i++) {
		roots[i] = spec->roots[i];
		roots[i].passing = spec_is_layer(spec, roots[i].path);
	}
	if (!files_open(roots, spec->root_count, spec->workspace, spec->blocked.items,
			files, err))
		return false;
	files_stand_at(*files, spec->at);
	return true;
}

bool worker_can_begin(const struct cell_spec *spec, struct err *err)
{
	struct files *files;

	if (!roots_open(spec, &files, err))
		return false;
	files_close(files);
	return access(spec->workspace, X_OK) == 0 ||
	       err_set(err, errno, "%s: %s", spec->workspace, strerror(errno));
}

static bool lock_in(struct worker *worker, struct err *err)
{
	const struct walls walls = {
		.level = worker->spec->built,
		.unfiltered = worker->spec->strength.unfiltered,
		.rules = worker->rules,
		.writable = worker->spec->writable.items,
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
	if (!roots_open(worker->spec, &worker->files, err))
		return false;
	/* The anchor has noted what its roots are: files and audits are found by their paths. */
	if (!guard_holds(worker->spec->guard, err))
		return err_while(err, "the folders of the cell");
	worker->audit = audit_open(worker->spec->guard);
	worker->layers = layers_open(worker->spec);
	worker->base_log = base_log_open(worker->spec);
	if (chdir(spec_shown(worker->spec)) < 0)
		return err_set(err, errno, "%s: %s", spec_shown(worker->spec),
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
	struct frame frame = {.kind = FRAME_CALL, .fds = {[0 ... FRAME_FDS_MAX - 1] = -1}};
	const int64_t began_us = clock_now_us();
	const struct tool *tool;
	struct tool_result result;
	struct file folder;
	struct buf sent;
	struct err err;

	value_set(arguments, "argv", value_new_texts((const char *const[]){"/", NULL}));
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

	(void)loop_awake_poll(&front, 1, until_us);
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
}

static void program_asks(void *context, int listener)
{
	const struct worker *worker = context;

	landlock_answer(listener, worker->spec->writable.items);
}

/* Set the terms of every program that this worker starts. */
static void terms_settle(struct worker *worker)
{
	bool asks;

	worker->terms = (struct program_terms){
		.filter = sandbox_program_filter(worker->spec->built,
						 worker->spec->strength.unfiltered,
						 worker->spec->identity.root, &asks),
		.ruleset = worker->reach.ruleset > 0 ? worker->reach.ruleset : 0,
		.alone = worker->reach.alone,
		.children_fd = worker->reach.children_fd,
		.context = worker,
		.own = worker->spec->at != NULL ? worker->spec->workspace : NULL,
		.shown = worker->spec->at,
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

void worker_run(const struct cell_spec *spec, int socket, int rules, enum worker_kind kind,
		const struct tool *const *tools, const struct fresh *fresh)
{
	struct worker worker = {.spec = spec,
				.blocked = {.fd = -1},
				.tools = tools,
				.kind = kind,
				.socket = socket,
				.rules = rules,
				.fresh = fresh,
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
