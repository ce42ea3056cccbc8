/*
 * programs: exec/run and exec/start, and what is asked of a program that was started. A
 * program is one of session/piped.h: a call of the internal tool `exec` on pipes, or on a
 * terminal, of its own.
 *
 * exec/run gathers the outputs, each up to `keep` bytes, and counts the rest. exec/start
 * sends them as notices: after PROGRAM_UNREAD bytes for which no exec/more has come, the
 * pipe is not read, and the program waits when it has filled the pipe. When the program has
 * ended, exec/wait answers and the cell is free for other calls; what the pipes still hold is
 * kept here, charged to ENGINE_KEPT_MIB, until the caller has taken it. The notice of the end
 * follows the last piece of the output.
 *
 * A program that `stays` is a job: it outlives its caller, nobody holds it up, and its output is
 * one stream, of which a spool keeps the newest. Any caller may watch it. Only one caller types
 * at a time, and the others wait in the order in which they came.
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "policy/ceiling.h"
#include "process/loop.h"
#include "process/pty.h"
#include "serve/caller.h"
#include "serve/engine.h"
#include "serve/spool.h"
#include "session/piped.h"
#include "session/session.h"
#include "tool/denial.h"
#include "tool/tool.h"
#include "tools/tools.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	PIECE_BYTES = 64 << 10, /* of one notice */
	/* Of each output of exec/run, unless it asks for more; and the most it may ask for. */
	PROGRAM_KEEP = 1 << 20,
	PROGRAM_KEEP_MAX = 64 << 20,
	PROGRAM_UNREAD = 1 << 20, /* of exec/start, both outputs together */
	PROGRAM_INPUT = 12 << 20, /* bytes that a program has not read: those of a line */
	PROGRAM_ENDED = 64,       /* programs that have ended and can be waited for */
	/* An ended program with unread output counts as so many bytes at least, so that the
	   bytes bound their number as well. */
	PROGRAM_REST = 64 << 10,
	ARGUMENTS_MAX = 4096,
	TERMINAL_MAX = UINT16_MAX,
	TITLE_MAX = 200,   /* bytes of a command line in a list */
	WATCHERS_MAX = 64, /* of one job */
	TEXT_MAX = 16 << 20,
};

enum program_kind {
	PROGRAM_RUN,   /* of exec/run: its end answers the request */
	PROGRAM_START, /* of exec/start: it has a number */
};

enum program_state {
	PROGRAM_RUNS,
	PROGRAM_ENDED_UNREAD, /* its call is done, and output waits for exec/more */
	PROGRAM_OVER,         /* its end was told; exec/wait can still ask for it */
};

/* The output of a program that is kept here. */
struct kept {
	struct buf bytes;
	size_t from;      /* the bytes before were told */
	uint64_t dropped; /* bytes for which `bytes` had no room */
};

/* The part that a caller has who watches a job. */
enum watcher_part {
	WATCHER_LOOKS,
	WATCHER_WAITS, /* it types when nobody else does */
	WATCHER_TYPES,
};

struct watcher {
	struct watcher *next;
	struct caller *caller;
	enum watcher_part part;
	uint64_t at;     /* the position of the next byte that it gets */
	uint64_t unread; /* bytes told since its last exec/more, and not taken by it */
	bool told;       /* the end */
};

struct program {
	struct engine_task task; /* first: they are one and the same */
	enum program_kind kind;
	enum program_state state;
	uint64_t number; /* of exec/start */
	struct piped piped;
	struct value *carried;
	bool tty, merge;
	bool gathers; /* output is kept, and not told */
	struct kept kept[PIPED_STREAMS];
	uint64_t typed_kept; /* bytes of ENGINE_KEPT_MIB that are charged to its input */
	uint64_t rest_kept;  /* and to the output that it has left */
	uint64_t unread; /* bytes told since the last exec/more, and not taken by it */
	struct value *outcome; /* of its end; NULL: its call is under way */
	char *title;
	int64_t began_ms, ended_ms;
	struct pty_size size; /* of its terminal */
	bool stays;           /* it is a job, and has the following */
	struct spool spool;
	uint64_t spool_kept; /* bytes of ENGINE_KEPT_MIB that are charged to it */
	struct watcher *watchers;
	size_t watcher_count;
};

static struct program *program_of(struct engine_task *task)
{
	return (struct program *)task;
}

/* The name of the method that has begun PROGRAM. */
static const char *method_of(const struct program *program)
{
	return program->kind == PROGRAM_RUN ? "exec/run" : "exec/start";
}

/* The output of programs. */

/* May output of PROGRAM be taken now? */
static bool may_read(const struct program *program)
{
	return program->gathers || program->stays ||
	       (program->unread < PROGRAM_UNREAD && caller_reads(program->task.caller));
}

static const char *stream_name(const struct program *program, enum piped_stream stream)
{
	return program->tty ? "tty" : stream == PIPED_OUTPUT ? "stdout" : "stderr";
}

/* Tell CALLER that PROGRAM has printed BYTES, before which it has missed DROPPED. */
static void tell_piece(const struct program *program, struct caller *caller,
		       enum piped_stream stream, struct str bytes, uint64_t dropped)
{
	struct value *told = value_new_object();
	struct buf text;

	buf_init(&text, 2 * PIECE_BYTES);
	(void)buf_base64_add(bytes, &text);
	value_set_integer(told, "process", (int64_t)program->number);
	value_set_text(told, "stream", stream_name(program, stream));
	value_set_str(told, "bytes", buf_str(&text));
	buf_fini(&text);
	if (dropped > 0)
		value_set_integer(told, "dropped", (int64_t)dropped);
	(void)caller_tell(caller, "exec/output", told, false);
}

static void tell_output(struct program *program, enum piped_stream stream, struct str bytes)
{
	program->unread += bytes.size;
	tell_piece(program, program->task.caller, stream, bytes, 0);
}

static void tell_exited(const struct program *program, struct caller *caller)
{
	struct value *told = value_copy(program->outcome);

	value_set_integer(told, "process", (int64_t)program->number);
	(void)caller_tell(caller, "exec/exited", told, false);
}

/* Put BYTES into the spool of PROGRAM, which grows while there is room for it. */
static void keep_output(struct program *program, struct str bytes)
{
	const size_t wanted = spool_wants(&program->spool, bytes.size);

	if (wanted > program->spool.capacity &&
	    engine_charge(program->task.engine, &program->spool_kept, wanted))
		spool_grow(&program->spool, wanted);
	spool_add(&program->spool, bytes);
}

/* PROGRAM has printed BYTES. */
static void said(void *owner, enum piped_stream stream, struct str bytes)
{
	struct program *program = owner;
	struct kept *kept = &program->kept[stream];
	size_t room = kept->bytes.max - kept->bytes.size;

	if (program->task.left)
		return;
	if (program->stays) {
		keep_output(program, bytes);
		return;
	}
	if (!program->gathers) {
		tell_output(program, stream, bytes);
		piped_hold(&program->piped, !may_read(program));
		return;
	}
	room = room < bytes.size ? room : bytes.size;
	(void)buf_add(&kept->bytes, bytes.data, room);
	kept->dropped += bytes.size - room;
}

/* Keep what an ended program has left in its pipes. False: there is no room for it now. */
static bool keep_rest(struct program *program)
{
	const size_t size = piped_unread(&program->piped);

	if (!engine_charge(program->task.engine, &program->rest_kept,
			   size > PROGRAM_REST ? size : PROGRAM_REST))
		return false;
	program->gathers = true;
	for (size_t i = 0; i < PIPED_STREAMS; i++)
		buf_init(&program->kept[i].bytes, size);
	piped_hold(&program->piped, false);
	piped_drain(&program->piped);
	piped_end_output(&program->piped);
	program->gathers = false;
	return true;
}

/* Tell what an ended program has left, as far as the caller takes it. True: that was all. */
static bool tell_rest(struct program *program)
{
	for (size_t i = 0; i < PIPED_STREAMS; i++) {
		struct kept *kept = &program->kept[i];

		while (kept->from < kept->bytes.size) {
			const struct str piece =
				str_part(buf_str(&kept->bytes), kept->from, PIECE_BYTES);

			if (!may_read(program))
				return false;
			kept->from += piece.size;
			tell_output(program, (enum piped_stream)i, piece);
		}
	}
	return true;
}

/* The input of programs. */

/* Nothing more is charged to the input of PROGRAM than what waits for it. */
static void settle_typed(struct program *program)
{
	(void)engine_charge(program->task.engine, &program->typed_kept,
			    piped_waiting(&program->piped));
}

/* Take BYTES for the input of PROGRAM. False: too many wait already. */
static bool type(struct program *program, struct str bytes, bool ends)
{
	const bool taken = engine_charge(program->task.engine, &program->typed_kept,
					 piped_waiting(&program->piped) + bytes.size) &&
			   piped_type(&program->piped, bytes, ends);

	settle_typed(program);
	return taken;
}

/* Those who watch a job. */

/* Tell WATCHER what PROGRAM has printed, as far as it takes that, and the end. */
static void tell_watcher(struct program *program, struct watcher *watcher)
{
	const struct spool *spool = &program->spool;

	while (watcher->at < spool->total && watcher->unread < PROGRAM_UNREAD &&
	       caller_reads(watcher->caller)) {
		const uint64_t from = spool_begin(spool, watcher->at);
		const struct str piece = spool_piece(spool, from, PIECE_BYTES);

		tell_piece(program, watcher->caller, PIPED_OUTPUT, piece,
			   from - watcher->at);
		watcher->unread += piece.size;
		watcher->at = piece.size > 0 ? from + piece.size : spool->total;
	}
	if (program->state == PROGRAM_OVER && program->outcome != NULL &&
	    !watcher->told && watcher->at >= spool->total) {
		tell_exited(program, watcher->caller);
		watcher->told = true;
	}
}

static struct watcher *watcher_find(const struct program *program,
				    const struct caller *caller)
{
	struct watcher *at = program->watchers;

	while (at != NULL && at->caller != caller)
		at = at->next;
	return at;
}

static struct watcher *typist_of(const struct program *program)
{
	struct watcher *at = program->watchers;

	while (at != NULL && at->part != WATCHER_TYPES)
		at = at->next;
	return at;
}

static void set_part(const struct program *program, struct watcher *watcher,
		     enum watcher_part part)
{
	struct value *told = value_new_object();

	watcher->part = part;
	value_set_integer(told, "process", (int64_t)program->number);
	value_set_boolean(told, "types", part == WATCHER_TYPES);
	(void)caller_tell(watcher->caller, "exec/types", told, false);
}

/* CALLER watches PROGRAM no more. Where it has typed, the next one does. */
static void unwatch(struct program *program, const struct caller *caller)
{
	struct watcher **at = &program->watchers;
	struct watcher *gone;

	while (*at != NULL && (*at)->caller != caller)
		at = &(*at)->next;
	if (*at == NULL)
		return;
	gone = *at;
	*at = gone->next;
	program->watcher_count--;
	for (struct watcher *next = program->watchers;
	     gone->part == WATCHER_TYPES && next != NULL; next = next->next) {
		if (next->part == WATCHER_WAITS) {
			set_part(program, next, WATCHER_TYPES);
			break;
		}
	}
	free(gone);
}

/* The life of programs. */

static void program_free(struct engine_task *task)
{
	struct program *program = program_of(task);

	piped_stop(&program->piped);
	task->running = NULL;
	settle_typed(program);
	(void)engine_charge(task->engine, &program->rest_kept, 0);
	for (size_t i = 0; i < PIPED_STREAMS; i++)
		buf_fini(&program->kept[i].bytes);
	value_free(program->outcome);
	engine_task_fini(task);
	value_free(program->carried);
	while (program->watchers != NULL) {
		struct watcher *watcher = program->watchers;

		program->watchers = watcher->next;
		free(watcher);
	}
	(void)engine_charge(task->engine, &program->spool_kept, 0);
	spool_fini(&program->spool);
	free(program->title);
	free(program);
}

static void program_turn(struct engine_task *task);

static struct program *program_new(enum program_kind kind, size_t keep)
{
	struct program *program = memory_alloc(sizeof(*program));
	struct piped_options options = {
		.input_max = PROGRAM_INPUT,
		.said = said,
		.owner = program,
	};
	/* As a program of exec-server, it is a step that can be undone. */
	struct tool tool = exec_tool;

	tool.is_step = true;
	program->kind = kind;
	program->began_ms = clock_now_ms();
	program->task.free = program_free;
	program->task.turn = program_turn;
	program->task.kept = PIPED_STREAMS * keep;
	program->gathers = kind == PROGRAM_RUN;
	for (size_t i = 0; i < PIPED_STREAMS; i++)
		buf_init(&program->kept[i].bytes, keep);
	program->carried = value_new_object();
	options.tool = &tool;
	options.carried = program->carried;
	piped_init(&program->piped, &options);
	return program;
}

/* The end of a program. */

/* The denials of RESULT, and those that the error output of PROGRAM tells of. */
static struct value *denials_value(const struct program *program,
				   const struct tool_result *result)
{
	struct value *list = value_new_array();
	struct tool_result judged;

	for (size_t i = 0; i < value_count(denial_list(result)); i++)
		value_append(list, value_ref(value_item(denial_list(result), i)));
	if (program->kind == PROGRAM_START || result->exit_code == 0)
		return list;
	tool_result_init(&judged);
	session_judge_messages(
		program->task.cell->place.session,
		buf_str(&program->kept[program->merge ? PIPED_OUTPUT : PIPED_ERROR].bytes),
		&judged);
	for (size_t i = 0; i < value_count(denial_list(&judged)); i++)
		value_append(list, value_copy(value_item(denial_list(&judged), i)));
	tool_result_fini(&judged);
	return list;
}

static struct value *outcome_of(const struct program *program,
				const struct tool_result *result)
{
	struct value *told = value_new_object();
	const struct str text = str_trim(buf_str(&result->text));
	const char *limit = denial_limit(result);
	const int64_t code = value_integer(value_member(result->details, "code"));
	const char *error = code > 0 && code < INT_MAX ? strerrorname_np((int)code) : NULL;

	value_set(told, "exit",
		  result->exit_code >= 0 ? value_new_integer(result->exit_code)
					 : value_new_null());
	value_set(told, "signal",
		  result->signal > 0 ? value_new_integer(result->signal) : value_new_null());
	value_set_boolean(told, "timed_out", result->status == RESULT_TIMED_OUT);
	value_set_real(told, "seconds", result->seconds);
	value_set(told, "limit", limit != NULL ? value_new_text(limit) : value_new_null());
	value_set(told, "denials", denials_value(program, result));
	value_set(told, "accounts", engine_accounts(result));
	/* The program could not be started, and nobody else can say why. */
	if (result->status == RESULT_FAILED && text.size > 0)
		value_set_str(told, "message", text);
	if (error != NULL)
		value_set_text(told, "error", error);
	return told;
}

/* Did the program run, or fail to start by its own name? */
static bool has_run(const struct tool_result *result)
{
	return result->status == RESULT_DONE || result->status == RESULT_TIMED_OUT ||
	       result->exit_code >= 0 || result->signal > 0;
}

static void answer_run(struct program *program, const struct tool_result *result)
{
	struct value *told = outcome_of(program, result);
	uint64_t dropped = 0;

	for (size_t i = 0; i < PIPED_STREAMS; i++) {
		struct buf text;

		buf_init(&text, 2 * PROGRAM_KEEP_MAX);
		(void)buf_base64_add(buf_str(&program->kept[i].bytes), &text);
		value_set_str(told, i == PIPED_OUTPUT ? "stdout" : "stderr", buf_str(&text));
		buf_fini(&text);
		dropped += program->kept[i].dropped;
	}
	value_set_integer(told, "dropped", (int64_t)dropped);
	caller_answer(program->task.caller, program->task.id, told);
}

/* The call of a program of exec/start is done, and all its output was told or kept. */
static void tell_end(struct program *program)
{
	if (!program->stays)
		tell_exited(program, program->task.caller);
	program->ended_ms = clock_now_ms();
	piped_close(&program->piped);
	for (size_t i = 0; i < PIPED_STREAMS; i++)
		buf_fini(&program->kept[i].bytes);
	(void)engine_charge(program->task.engine, &program->rest_kept, 0);
	program->state = PROGRAM_OVER;
	engine_rest_task(&program->task);
}

/* Forget the oldest ended program of CELL when there are too many. */
static void forget_oldest(struct engine_cell *cell)
{
	struct engine_task *oldest = NULL;
	size_t count = 0;

	for (struct engine_task *at = cell->engine->tasks; at != NULL; at = at->next) {
		if (at->cell != cell || at->free != program_free || at->over ||
		    program_of(at)->state != PROGRAM_OVER ||
		    program_of(at)->watchers != NULL)
			continue;
		oldest = oldest != NULL ? oldest : at;
		count++;
	}
	if (count > PROGRAM_ENDED)
		oldest->over = true;
}

/* The call of PROGRAM is done: nothing that it started runs any more. */
static void program_end(struct program *program)
{
	struct engine_task *task = &program->task;
	const struct tool_result *result = running_result(program->piped.running);

	piped_end_input(&program->piped);
	settle_typed(program);
	if (program->kind == PROGRAM_START) {
		program->outcome = outcome_of(program, result);
		program->state = PROGRAM_ENDED_UNREAD;
	} else {
		piped_drain(&program->piped);
		if (task->cancelled || !has_run(result))
			engine_refuse_result(task->caller, task->cell, task->id,
					     task->cancelled, result, method_of(program));
		else
			answer_run(program, result);
		task->over = true;
	}
	running_free(program->piped.running);
	program->piped.running = task->running = NULL;
}

/* Tell the output that PROGRAM, whose call is done, has left, and then its end. */
static void finish(struct program *program)
{
	if (!program->task.rests) {
		piped_hold(&program->piped, !may_read(program));
		piped_drain(&program->piped);
		if (piped_unread(&program->piped) == 0)
			piped_end_output(&program->piped);
		else if (!keep_rest(program))
			return; /* it stays in the pipes, and the call in its place */
		engine_rest_task(&program->task);
	}
	if (!tell_rest(program))
		return;
	tell_end(program);
	forget_oldest(program->task.cell);
}

static void program_turn(struct engine_task *task)
{
	struct program *program = program_of(task);

	if (program->state == PROGRAM_RUNS && !task->over) {
		piped_settle(&program->piped);
		settle_typed(program);
		if (running_is_done(task->running) &&
		    (program->stays || caller_reads(task->caller)))
			program_end(program);
		else
			piped_hold(&program->piped, !may_read(program));
	}
	if (program->state == PROGRAM_ENDED_UNREAD)
		finish(program);
	for (struct watcher *at = program->watchers; at != NULL; at = at->next)
		tell_watcher(program, at);
}

/* Requests that start a program. */

static bool check_bytes(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	(void)row;
	return (value_kind(value) == VALUE_STRING && buf_base64_is_valid(value_str(value))) ||
	       rows_refuse(problem, NULL, "must be bytes as Base64, with padding");
}

#define PROGRAM_ROWS                                                                       \
	ENGINE_ROW_CELL, {"argv",   ROW_ARGV,                                              \
			  false,    "the program and its arguments",                       \
			  .min = 1, .max = ARGUMENTS_MAX},                                 \
		{"command", ROW_BYTES,      false, "a text for bash -c, in place of argv", \
		 .min = 1,  .max = TEXT_MAX},                                              \
		{"cwd",    ROW_FOLDER,                                                     \
		 false,    "where it starts; the workspace unless told",                   \
		 .min = 1, .max = PATH_MAX},                                               \
		{"env", ROW_VALUES, false, "variables, beside those of the cell",          \
		 .check = engine_check_variables},                                         \
		{"timeout_s",        ROW_SECONDS,  false,                                  \
		 "when it is ended", .min = 0.001, .max = ENGINE_SECONDS},                 \
	{                                                                                  \
		"merge", ROW_FLAG, false, "the error output goes into the output"          \
	}

static const struct row run_params[] = {
	PROGRAM_ROWS,
	{"stdin", ROW_ANY, false, "its input, as bytes", .check = check_bytes},
	{"keep", ROW_COUNT, false, "bytes kept of each output", .min = 0,
	 .max = PROGRAM_KEEP_MAX},
	{0},
};

/* The columns of a terminal, under one of their two names (size_of). */
#define COLUMNS_ROWS                                                                \
	{"columns", ROW_COUNT,          false, "columns of the terminal",           \
	 .min = 1,  .max = TERMINAL_MAX},                                           \
	{                                                                           \
		"cols", ROW_COUNT, false, "the same", .min = 1, .max = TERMINAL_MAX \
	}

static const struct row tty_rows[] = {
	{"rows", ROW_COUNT, true, "lines of the terminal", .min = 1, .max = TERMINAL_MAX},
	COLUMNS_ROWS,
	{0},
};

static const struct row start_params[] = {
	PROGRAM_ROWS,
	{"stdin", ROW_ANY, false, "the beginning of its input, as bytes",
	 .check = check_bytes},
	{"input", ROW_FLAG, false, "more input comes by exec/write"},
	{"tty", ROW_OBJECT, false, "a terminal", .rows = tty_rows},
	{"stays", ROW_FLAG, false,
	 "it outlives the caller, as a job: exec/watch shows its output"},
	{0},
};

/* The words of the program, and a title for the list of steps; NULL after a refusal. */
static struct value *argv_of(const struct engine_request *request, const char **title)
{
	const struct value *argv = value_member(request->params, "argv");
	const char *command = value_text(value_member(request->params, "command"));
	struct value *list;

	if ((argv == NULL) == (command == NULL)) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE},
			      "exec: give argv or command, and not both");
		return NULL;
	}
	*title = command != NULL ? command : value_text(value_item(argv, 0));
	if (argv != NULL)
		return value_ref(argv);
	list = value_new_array();
	value_append(list, value_new_text("bash"));
	value_append(list, value_new_text("-c"));
	value_append(list, value_new_text(command));
	return list;
}

/* Put the folder and the variables of REQUEST into what PROGRAM carries. */
static bool carry(const struct engine_request *request, struct program *program)
{
	const char *folder = value_text(value_member(request->params, "cwd"));
	const struct value *env = value_member(request->params, "env");
	struct buf path;
	bool fits;

	buf_init(&path, PATH_MAX);
	fits = engine_path(request->cell, folder != NULL ? folder : ".", &path);
	value_set_str(program->carried, "folder", buf_str(&path));
	buf_fini(&path);
	value_set(program->carried, "env", engine_variables(env));
	if (!fits)
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE},
			      "exec: the path of cwd is too long");
	return fits;
}

/* The deadline of a program: its own, else that of the policy, within the ceiling's. */
static double deadline_of(const struct engine_request *request)
{
	const struct value *asked = value_member(request->params, "timeout_s");
	const double wall_s = request->cell->place.wall_s;

	return asked != NULL ? value_number(asked) : wall_s > 0 ? wall_s : -1;
}

/* Type the `stdin` of REQUEST; without `input` it is all that there is. */
static void type_stdin(const struct engine_request *request, struct program *program)
{
	const bool more = value_is_true(value_member(request->params, "input"));
	struct buf input;

	buf_init(&input, PROGRAM_INPUT);
	(void)buf_base64_read(value_str(value_member(request->params, "stdin")), &input);
	if (piped_takes_input(&program->piped))
		(void)type(program, buf_str(&input), !program->tty && !more);
	buf_fini(&input);
}

/* Open the pipes of PROGRAM and begin its call with ARGUMENTS. False: it was refused. */
static bool begin(const struct engine_request *request, struct program *program,
		  bool has_input, const struct value *arguments)
{
	const struct piped_wish wish = {
		.has_input = has_input,
		.takes_signals = true,
		.tty = program->tty,
		.merge = program->merge,
		.take_error = -1,
	};
	const struct request call = {
		.arguments = arguments,
		.timeout_s = deadline_of(request),
		.most_s = ceiling_wall_s(session_ceiling()),
	};
	struct err err = {0};

	if (!piped_open(&program->piped, request->engine->loop, &wish, &err)) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_LIMIT, .error = err.code},
			      "exec: %s", err.text);
		return false;
	}
	type_stdin(request, program);
	piped_start(&program->piped, request->cell->place.session, &call, NULL, NULL);
	program->task.running = program->piped.running;
	return true;
}

/* The SIZE of a terminal, as OBJECT of REQUEST has it. False: REQUEST of METHOD was refused. */
static bool size_of(const struct engine_request *request, const char *method,
		    const struct value *object, struct pty_size *size)
{
	const struct value *columns = value_member(object, "columns"),
			   *cols = value_member(object, "cols");

	size->rows = (uint16_t)value_integer(value_member(object, "rows"));
	size->columns = (uint16_t)value_integer(columns != NULL ? columns : cols);
	if ((columns == NULL) != (cols == NULL))
		return true;
	caller_refuse(request->caller, request->id,
		      &(struct caller_fault){.kind = CALLER_USAGE},
		      "%s: a terminal needs rows and columns (or cols, which is the same)",
		      method);
	return false;
}

/* The words of ARGV, for a list of programs. */
static char *title_of(const struct value *argv)
{
	struct buf title;
	char *text;

	buf_init(&title, TITLE_MAX);
	for (size_t i = 0; i < value_count(argv); i++) {
		const struct str word = value_str(value_item(argv, i));
		const size_t room = title.max - title.size;

		if (i > 0 && room > 0)
			(void)buf_addc(&title, ' ');
		(void)buf_addstr(&title, str_part(word, 0, title.max - title.size));
	}
	text = memory_copy(title.data);
	buf_fini(&title);
	return text;
}

/* Start PROGRAM as REQUEST wants it. False: it was refused. */
static bool start(const struct engine_request *request, struct program *program,
		  bool has_input)
{
	const struct value *tty = value_member(request->params, "tty");
	auto_value struct value *arguments = value_new_object();
	const char *title = "";
	struct value *argv = argv_of(request, &title);

	/* It is a task from now on, so that it is freed like one. */
	engine_add_task(&program->task, request,
			program->kind == PROGRAM_RUN ? request->id : NULL);
	program->tty = tty != NULL;
	program->stays = value_is_true(value_member(request->params, "stays"));
	program->merge =
		program->stays || value_is_true(value_member(request->params, "merge"));
	if (program->stays)
		program->task.caller = NULL;
	if (argv == NULL || !carry(request, program) ||
	    (tty != NULL && !size_of(request, "exec/start: tty", tty, &program->size))) {
		value_free(argv);
		return false;
	}
	program->title = title_of(argv);
	value_set(arguments, "argv", argv);
	value_set_text(arguments, "title", title);
	if (program->tty) {
		value_set_integer(arguments, "rows", program->size.rows);
		value_set_integer(arguments, "columns", program->size.columns);
	}
	return begin(request, program, has_input, arguments);
}

/* How many bytes of input does REQUEST bring at most? */
static uint64_t stdin_size(const struct engine_request *request)
{
	return value_str(value_member(request->params, "stdin")).size / 4 * 3;
}

/* PROGRAM was refused, and its request was told. */
static void program_refuse(struct program *program)
{
	program->task.over = true;
	program->state = PROGRAM_OVER;
}

static void run(const struct engine_request *request)
{
	const struct value *wanted = value_member(request->params, "keep");
	const size_t keep =
		wanted != NULL ? (size_t)value_integer(wanted) : (size_t)PROGRAM_KEEP;
	struct program *program;

	if (!engine_has_room(request, PIPED_STREAMS * keep + stdin_size(request)))
		return;
	program = program_new(PROGRAM_RUN, keep);
	if (!start(request, program, value_member(request->params, "stdin") != NULL))
		program_refuse(program);
}

static void start_program(const struct engine_request *request)
{
	struct engine *engine = request->engine;
	struct program *program;
	struct value *told;

	if (!engine_has_room(request, stdin_size(request)))
		return;
	program = program_new(PROGRAM_START, 0);
	program->number = ++engine->programs_made;
	if (!start(request, program,
		   value_is_true(value_member(request->params, "input")) ||
			   value_member(request->params, "stdin") != NULL)) {
		program_refuse(program);
		return;
	}
	if (running_is_done(program->task.running) &&
	    !has_run(running_result(program->task.running))) {
		/* The policy has refused it: this is the answer, and no notice follows. */
		engine_refuse_result(request->caller, request->cell, request->id, false,
				     running_result(program->task.running),
				     method_of(program));
		program_refuse(program);
		return;
	}
	told = value_new_object();
	value_set_integer(told, "process", (int64_t)program->number);
	caller_answer(request->caller, request->id, told);
}

/* Requests about a program that was started. */

#define PROGRAM_ROW                                                                \
	{                                                                          \
		"process", ROW_ID, true, "the number that exec/start has answered" \
	}

/* The program NUMBER (0: none) of CELL; or NULL. */
static struct program *program_find(const struct engine *engine,
				    const struct engine_cell *cell, uint64_t number)
{
	for (struct engine_task *at = engine->tasks; at != NULL; at = at->next) {
		if (at->free == program_free && at->cell == cell && number > 0 &&
		    program_of(at)->number == number && !at->over && !at->left)
			return program_of(at);
	}
	return NULL;
}

/* The program that REQUEST names; NULL after a refusal. */
static struct program *known_program(const struct engine_request *request)
{
	const int64_t number = value_integer(value_member(request->params, "process"));
	struct program *program =
		program_find(request->engine, request->cell, (uint64_t)number);

	if (program != NULL)
		return program;
	caller_refuse(request->caller, request->id,
		      &(struct caller_fault){.kind = CALLER_NO_SUCH},
		      "there is no process %" PRId64
		      " in cell %s; it may have ended long ago",
		      number, request->cell->name);
	return NULL;
}

static void answer_done(const struct engine_request *request)
{
	caller_answer(request->caller, request->id, value_new_object());
}

static const struct row write_params[] = {
	ENGINE_ROW_CELL,
	PROGRAM_ROW,
	{"bytes", ROW_ANY, false, "what is typed", .check = check_bytes},
	{"end", ROW_FLAG, false, "its input ends behind these bytes"},
	{"taken", ROW_FLAG, false, "answer when the program has taken all that was typed"},
	{0},
};

/* A request that waits for a program. */
struct waiting {
	struct engine_task task;
	uint64_t number;
};

static void waiting_free(struct engine_task *task)
{
	engine_task_fini(task);
	free(task);
}

static void wait_for(const struct engine_request *request, const struct program *program,
		     void (*turn)(struct engine_task *task))
{
	struct waiting *waiting = memory_alloc(sizeof(*waiting));

	waiting->number = program->number;
	waiting->task.turn = turn;
	waiting->task.free = waiting_free;
	engine_add_task(&waiting->task, request, request->id);
}

/* Answer when nothing of what was typed waits any more, or the program takes nothing more. */
static void taking_turn(struct engine_task *task)
{
	const struct waiting *waiting = (const struct waiting *)task;
	const struct program *program =
		program_find(task->engine, task->cell, waiting->number);

	const bool waits = program != NULL && program->state == PROGRAM_RUNS &&
			   piped_waiting(&program->piped) > 0;

	if (waits && !task->cancelled)
		return;
	if (waits)
		caller_refuse(task->caller, task->id,
			      &(struct caller_fault){.kind = CALLER_CANCELLED},
			      "exec/write was cancelled; the program still gets what was typed");
	else
		caller_answer(task->caller, task->id, value_new_object());
	task->over = true;
}

/* May the caller of REQUEST type at PROGRAM? False: it was refused. */
static bool may_type(const struct engine_request *request, const struct program *program,
		     const char *method)
{
	const struct watcher *typist = typist_of(program);

	if (typist == NULL || typist->caller == request->caller)
		return true;
	caller_refuse(request->caller, request->id,
		      &(struct caller_fault){.kind = CALLER_BUSY,
					     .remedy = "watch it with types: take"},
		      "%s: another caller types at process %" PRIu64, method,
		      program->number);
	return false;
}

static void write_program(const struct engine_request *request)
{
	struct program *program = known_program(request);
	const bool ends = value_is_true(value_member(request->params, "end"));
	const bool waits = value_is_true(value_member(request->params, "taken"));
	struct buf bytes;
	bool taken;

	if (program == NULL || !may_type(request, program, "exec/write") ||
	    (waits && !engine_has_room(request, 0)))
		return;
	if (!piped_takes_input(&program->piped)) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_CLOSED, .error = EPIPE},
			      "exec/write: process %" PRIu64 " has no input, or no more",
			      program->number);
		return;
	}
	buf_init(&bytes, PROGRAM_INPUT);
	(void)buf_base64_read(value_str(value_member(request->params, "bytes")), &bytes);
	taken = type(program, buf_str(&bytes), ends);
	buf_fini(&bytes);
	if (taken && waits)
		wait_for(request, program, taking_turn);
	else if (taken)
		answer_done(request);
	else
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_BUSY,
						     .remedy = "write less at a time"},
			      "exec/write: the program does not read its input: %zu bytes wait "
			      "for it",
			      piped_waiting(&program->piped));
}

static const struct row signal_params[] = {
	ENGINE_ROW_CELL,
	PROGRAM_ROW,
	{"signal", ROW_INTEGER, true, "its number", .min = 1, .max = 64},
	{0},
};

static void signal_program(const struct engine_request *request)
{
	struct program *program = known_program(request);
	const int64_t number = value_integer(value_member(request->params, "signal"));

	if (program == NULL)
		return;
	if (program->state == PROGRAM_RUNS &&
	    piped_signal(&program->piped, (int)number) == PIPED_FULL) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_BUSY},
			      "exec/signal: the cell takes no signals of process %" PRIu64
			      " now, and as many as fit wait for it",
			      program->number);
		return;
	}
	answer_done(request);
}

static const struct row resize_params[] = {
	ENGINE_ROW_CELL,
	PROGRAM_ROW,
	{"rows", ROW_COUNT, true, "lines of the terminal", .min = 1, .max = TERMINAL_MAX},
	COLUMNS_ROWS,
	{0},
};

static void resize_program(const struct engine_request *request)
{
	struct program *program = known_program(request);
	struct pty_size size;

	if (program == NULL || !may_type(request, program, "exec/resize") ||
	    !size_of(request, "exec/resize", request->params, &size))
		return;
	if (!program->tty) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE, .error = ENOTTY},
			      "exec/resize: process %" PRIu64
			      " has no terminal; start it with "
			      "`tty`",
			      program->number);
		return;
	}
	program->size = size;
	piped_resize(&program->piped, size);
	answer_done(request);
}

static const struct row program_params[] = {ENGINE_ROW_CELL, PROGRAM_ROW, {0}};

/* Answer when the program has ended. */
static void waiting_turn(struct engine_task *task)
{
	const struct waiting *waiting = (const struct waiting *)task;
	struct caller *caller = task->caller;
	const struct program *program =
		program_find(task->engine, task->cell, waiting->number);

	if (task->cancelled)
		caller_refuse(caller, task->id,
			      &(struct caller_fault){.kind = CALLER_CANCELLED},
			      "exec/wait was cancelled; the process goes on");
	else if (program == NULL)
		caller_refuse(caller, task->id,
			      &(struct caller_fault){.kind = CALLER_NO_SUCH},
			      "exec/wait: process %" PRIu64 " was forgotten",
			      waiting->number);
	else if (program->outcome != NULL)
		caller_answer(caller, task->id, value_copy(program->outcome));
	else
		return;
	task->over = true;
}

static void wait_program(const struct engine_request *request)
{
	const struct program *program = known_program(request);

	if (program != NULL && engine_has_room(request, 0))
		wait_for(request, program, waiting_turn);
}

static const struct row more_params[] = {
	ENGINE_ROW_CELL,
	PROGRAM_ROW,
	{"bytes", ROW_COUNT, true, "how many bytes of output have been dealt with"},
	{0},
};

static void more_output(const struct engine_request *request)
{
	struct program *program = known_program(request);
	const uint64_t bytes =
		(uint64_t)value_integer(value_member(request->params, "bytes"));
	struct watcher *watcher;
	uint64_t *unread;

	if (program == NULL)
		return;
	watcher = watcher_find(program, request->caller);
	unread = watcher != NULL ? &watcher->unread : &program->unread;
	*unread -= bytes < *unread ? bytes : *unread;
	answer_done(request);
}

static void cancel_program(const struct engine_request *request)
{
	const struct program *program = known_program(request);

	if (program == NULL)
		return;
	if (program->state == PROGRAM_RUNS)
		running_cancel(program->task.running);
	answer_done(request);
}

static const struct row end_output_params[] = {
	ENGINE_ROW_CELL,
	PROGRAM_ROW,
	{"stream", ROW_CHOICE, true, "the output that nobody reads any more",
	 .choices = "stdout stderr"},
	{0},
};

static void end_output(const struct engine_request *request)
{
	struct program *program = known_program(request);
	const char *stream = value_text(value_member(request->params, "stream"));

	if (program == NULL)
		return;
	if (program->stays || program->tty) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE},
			      "exec/end_output: a job and a terminal keep their output");
		return;
	}
	if (program->state == PROGRAM_RUNS)
		piped_end_stream(&program->piped, strcmp(stream, "stdout") == 0
							  ? PIPED_OUTPUT
							  : PIPED_ERROR);
	answer_done(request);
}

/* Requests about jobs. */

static const struct row watch_params[] = {
	ENGINE_ROW_CELL,
	PROGRAM_ROW,
	{"last", ROW_COUNT, false,
	 "how many of the bytes that are kept come first; all unless "
	 "told"},
	{"types", ROW_CHOICE, false,
	 "the caller types when nobody else does, or in any case", .choices = "free take"},
	{0},
};

/* Add the caller of REQUEST to those who watch PROGRAM; it gets all bytes from AT on. */
static struct watcher *watch_add(const struct engine_request *request,
				 struct program *program, uint64_t at)
{
	const char *types = value_text(value_member(request->params, "types"));
	struct watcher *watcher = memory_alloc(sizeof(*watcher)),
		       *typist = typist_of(program);
	struct watcher **end = &program->watchers;

	watcher->caller = request->caller;
	watcher->at = at;
	if (types != NULL && typist != NULL && strcmp(types, "take") == 0) {
		set_part(program, typist, WATCHER_WAITS);
		typist = NULL;
	}
	watcher->part = types == NULL    ? WATCHER_LOOKS
			: typist != NULL ? WATCHER_WAITS
					 : WATCHER_TYPES;
	while (*end != NULL)
		end = &(*end)->next;
	*end = watcher;
	program->watcher_count++;
	return watcher;
}

static void watch_program(const struct engine_request *request)
{
	struct program *program = known_program(request);
	const struct value *last = value_member(request->params, "last");
	const struct watcher *watcher;
	struct value *told;

	if (program == NULL)
		return;
	if (!program->stays || program->watcher_count >= WATCHERS_MAX) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = program->stays ? CALLER_BUSY
									    : CALLER_USAGE},
			      program->stays
				      ? "exec/watch: as many as may watch process %" PRIu64
					" watch it"
				      : "exec/watch: process %" PRIu64
					" is no job, and its own caller has its output",
			      program->number);
		return;
	}
	unwatch(program, request->caller);
	const uint64_t total = program->spool.total;
	const uint64_t wanted = last != NULL ? (uint64_t)value_integer(last) : total;
	const uint64_t from =
		spool_begin(&program->spool, wanted < total ? total - wanted : 0);

	watcher = watch_add(request, program, from);
	told = value_new_object();
	value_set_integer(told, "from", (int64_t)from);
	value_set_integer(told, "to", (int64_t)total);
	value_set_integer(told, "first", (int64_t)spool_first(&program->spool));
	value_set_boolean(told, "tty", program->tty);
	value_set_boolean(told, "types", watcher->part == WATCHER_TYPES);
	value_set_boolean(told, "running", program->outcome == NULL);
	caller_answer(request->caller, request->id, told);
}

static void unwatch_program(const struct engine_request *request)
{
	struct program *program = known_program(request);

	if (program == NULL)
		return;
	unwatch(program, request->caller);
	answer_done(request);
}

static struct value *program_value(const struct program *program)
{
	static const char *const copied[] = {"exit", "signal", "timed_out", "message", NULL};
	const int64_t now = clock_now_ms();
	const bool runs = program->outcome == NULL;
	struct value *told = value_new_object();

	value_set_integer(told, "process", (int64_t)program->number);
	value_set_text(told, "command", program->title != NULL ? program->title : "");
	value_set_boolean(told, "running", runs);
	value_set_boolean(told, "stays", program->stays);
	value_set_boolean(told, "tty", program->tty);
	value_set_real(told, "age_s", (double)(now - program->began_ms) / 1000);
	value_set_integer(told, "watchers", (int64_t)program->watcher_count);
	if (program->stays)
		value_set_integer(told, "bytes", (int64_t)program->spool.total);
	if (runs)
		return told;
	value_set_real(told, "ended_s",
		       program->ended_ms > 0 ? (double)(now - program->ended_ms) / 1000 : 0);
	value_set_members(told, program->outcome, copied);
	return told;
}

static void list_programs(const struct engine_request *request)
{
	struct value *told = value_new_object(), *list = value_new_array();

	for (struct engine_task *at = request->engine->tasks; at != NULL; at = at->next) {
		if (at->free == program_free && at->cell == request->cell && !at->over &&
		    !at->left && program_of(at)->number > 0)
			value_append(list, program_value(program_of(at)));
	}
	value_set(told, "processes", list);
	caller_answer(request->caller, request->id, told);
}

void engine_programs_forget(struct engine *engine, const struct caller *caller)
{
	for (struct engine_task *at = engine->tasks; at != NULL; at = at->next) {
		if (at->free == program_free)
			unwatch(program_of(at), caller);
	}
}

const struct engine_method engine_programs[] = {
	{"exec/run", run_params, run},
	{"exec/start", start_params, start_program},
	{"exec/write", write_params, write_program},
	{"exec/signal", signal_params, signal_program},
	{"exec/resize", resize_params, resize_program},
	{"exec/wait", program_params, wait_program},
	{"exec/more", more_params, more_output},
	{"exec/cancel", program_params, cancel_program},
	{"exec/end_output", end_output_params, end_output},
	{"exec/list", engine_cell_params, list_programs},
	{"exec/watch", watch_params, watch_program},
	{"exec/unwatch", program_params, unwatch_program},
	{0},
};
