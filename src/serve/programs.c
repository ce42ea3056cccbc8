/*
 * programs: exec/run and exec/start, and what is asked of a program that was started. A
 * program is a call of the internal tool `exec` on pipes, or on a terminal, of its own.
 *
 * exec/run gathers the outputs, each up to `keep` bytes, and counts the rest. exec/start
 * sends them as notices: after PROGRAM_UNREAD bytes for which no exec/more has come, the
 * pipe is not read, and the program waits when it has filled the pipe. The notice of its end
 * follows the last piece of its output.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "policy/ceiling.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "process/pty.h"
#include "sandbox/sandbox.h"
#include "serve/caller.h"
#include "serve/engine.h"
#include "session/session.h"
#include "tool/denial.h"
#include "tool/tool.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	READ_BYTES = 64 << 10,
	/* Of each output of exec/run, unless it asks for more; and the most it may ask for. */
	PROGRAM_KEEP = 1 << 20,
	PROGRAM_KEEP_MAX = 64 << 20,
	PROGRAM_UNREAD = 1 << 20, /* of exec/start, both outputs together */
	PROGRAM_INPUT = 12 << 20, /* bytes that a program has not read: those of a line */
	PROGRAM_ENDED = 64,       /* programs that have ended and can be waited for */
	VARIABLE_MAX = 128 << 10, /* bytes of one, as the kernel has it */
	ARGUMENTS_MAX = 4096,
	SECONDS_MAX = 30 * 24 * 3600,
	TERMINAL_MAX = UINT16_MAX,
	TEXT_MAX = 16 << 20,
	SAID_MAX = 16 << 10, /* of a program of the engine's own */
};

/* The descriptors that a program gets; the last one takes signals. */
enum { GIVEN_IN, GIVEN_OUT, GIVEN_ERROR, GIVEN_SIGNALS, GIVEN };

enum { STREAMS = 2 };

struct program;

/* One of the two outputs of a program. */
struct stream {
	struct program *program;
	const char *name;
	struct watch watch; /* its fd is -1 when it has ended */
	struct buf kept;    /* of exec/run */
	uint64_t dropped;
};

enum program_state {
	PROGRAM_RUNS,
	PROGRAM_DRAINS, /* its call is done, and output waits for exec/more */
	PROGRAM_OVER,   /* its end was told; exec/wait can still ask for it */
};

struct program {
	struct engine_task task; /* first: they are one and the same */
	const char *name;        /* of the method */
	uint64_t number;         /* of exec/start; 0: of exec/run */
	enum program_state state;
	struct tool tool;
	struct value *carried;
	int given[GIVEN]; /* closed once the cell has them */
	struct stream streams[STREAMS];
	struct watch input; /* its fd is -1 when there is no input, or no more */
	struct buf typed;
	size_t typed_from;
	uint64_t typed_kept; /* bytes of ENGINE_KEPT that are charged to `typed` */
	bool input_ends;     /* behind the bytes in `typed` */
	bool resizes;        /* SIZE is to be told to the terminal */
	struct pty_size size;
	bool tty, merge;
	int signals;
	uint64_t unread; /* bytes told since the last exec/more, and not taken by it */
	struct value *outcome; /* of its end */
	/* For a program of the engine's own, in place of an answer to its task. Or NULL. */
	void (*answer)(struct engine_task *task, const struct tool_result *result,
		       struct str said);
};

static struct program *program_of(struct engine_task *task)
{
	return (struct program *)task;
}

/* The output of programs. */

static void tell_output(struct stream *stream, struct str bytes)
{
	struct program *program = stream->program;
	struct value *told = value_new_object();
	struct buf text;

	buf_init(&text, 2 * READ_BYTES);
	(void)buf_base64_add(bytes, &text);
	value_set_integer(told, "process", (int64_t)program->number);
	value_set_text(told, "stream", stream->name);
	value_set_str(told, "bytes", buf_str(&text));
	buf_fini(&text);
	program->unread += bytes.size;
	(void)caller_tell(&program->task.engine->caller, "exec/output", told, false);
}

static void stream_end(struct stream *stream)
{
	loop_remove(&stream->watch);
	fd_close(&stream->watch.fd);
}

/* Read once. False at the end, and when there is nothing now. */
static bool stream_read(struct stream *stream)
{
	struct program *program = stream->program;
	char bytes[READ_BYTES];
	ssize_t n;
	size_t room;

	n = read(stream->watch.fd, bytes, sizeof(bytes));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return errno == EINTR;
	if (n <= 0) {
		stream_end(stream);
		return false;
	}
	if (program->number > 0) {
		tell_output(stream, (struct str){bytes, (size_t)n});
		return true;
	}
	room = stream->kept.max - stream->kept.size;
	room = room < (size_t)n ? room : (size_t)n;
	(void)buf_add(&stream->kept, bytes, room);
	stream->dropped += (uint64_t)n - room;
	return true;
}

/* May output of PROGRAM be read now? */
static bool may_read(const struct program *program)
{
	return program->number == 0 || (program->unread < PROGRAM_UNREAD &&
					caller_reads(&program->task.engine->caller));
}

static void stream_ready(struct watch *watch, short events)
{
	struct stream *stream = watch->context;

	(void)events;
	if (may_read(stream->program))
		(void)stream_read(stream);
	else
		loop_remove(watch);
}

/* The input of programs. */

/* Nothing is left to be written. */
static void forget_typed(struct program *program)
{
	buf_fini(&program->typed);
	program->typed_from = 0;
	(void)engine_charge(program->task.engine, &program->typed_kept, 0);
}

static void close_input(struct program *program)
{
	loop_remove(&program->input);
	fd_close(&program->input.fd);
	forget_typed(program);
}

static bool send_packet(const struct program *program, const char *packet, size_t size)
{
	return send(program->input.fd, packet, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* How many bytes wait for PROGRAM to read? */
static size_t typed_size(const struct program *program)
{
	return program->typed.size - program->typed_from;
}

/* Write bytes once, as much as goes: a packet for a terminal, bytes for a pipe. */
static ssize_t write_typed(const struct program *program)
{
	const char *data = program->typed.data + program->typed_from;
	const size_t size = typed_size(program);
	char packet[1 + PTY_PACKET];
	ssize_t n;

	if (!program->tty)
		return write(program->input.fd, data, size);
	packet[0] = PTY_TYPED;
	n = (ssize_t)(size < PTY_PACKET ? size : PTY_PACKET);
	memcpy(packet + 1, data, (size_t)n);
	return send_packet(program, packet, (size_t)n + 1) ? n : -1;
}

/* Write the next of what waits: a new size of the terminal, bytes, the end of a terminal's. */
static bool write_next(struct program *program)
{
	static const char end = PTY_ENDED;
	char packet[1 + sizeof(program->size)] = {PTY_RESIZED};
	ssize_t n;

	if (program->resizes) {
		memcpy(packet + 1, &program->size, sizeof(program->size));
		program->resizes = !send_packet(program, packet, sizeof(packet));
		return !program->resizes;
	}
	if (typed_size(program) > 0) {
		n = write_typed(program);
		program->typed_from += n > 0 ? (size_t)n : 0;
		return n >= 0;
	}
	program->input_ends = !send_packet(program, &end, 1);
	return !program->input_ends;
}

/* Write on when it is possible, where something waits; a pipe ends behind its last byte. */
static void input_settle(struct program *program)
{
	const bool empty = typed_size(program) == 0;

	if (empty)
		forget_typed(program);
	if (empty && program->input_ends && !program->tty) {
		close_input(program);
		program->input_ends = false;
	} else if (!empty || program->resizes || program->input_ends) {
		loop_add(program->task.engine->loop, &program->input);
	} else {
		loop_remove(&program->input);
	}
}

static void input_ready(struct watch *watch, short events)
{
	struct program *program = watch->context;

	/* Only an error: nobody reads any more. */
	if (!(events & POLLOUT) ||
	    (!write_next(program) && errno != EAGAIN && errno != EINTR))
		close_input(program);
	else
		input_settle(program);
}

/* Take BYTES for the input of PROGRAM. False: too many wait already. */
static bool type(struct program *program, struct str bytes, bool ends)
{
	const size_t size = typed_size(program) + bytes.size;

	if (size > PROGRAM_INPUT ||
	    !engine_charge(program->task.engine, &program->typed_kept, size))
		return false;
	buf_remove(&program->typed, 0, program->typed_from);
	program->typed_from = 0;
	(void)buf_addstr(&program->typed, bytes);
	program->input_ends = program->input_ends || ends;
	input_settle(program);
	return true;
}

/* The life of programs. */

static void program_free(struct engine_task *task)
{
	struct program *program = program_of(task);

	for (size_t i = 0; i < GIVEN; i++)
		fd_close(&program->given[i]);
	for (size_t i = 0; i < STREAMS; i++) {
		stream_end(&program->streams[i]);
		buf_fini(&program->streams[i].kept);
	}
	close_input(program);
	fd_close(&program->signals);
	value_free(program->outcome);
	engine_task_fini(task);
	value_free(program->carried);
	free(program);
}

static void program_turn(struct engine_task *task);

static struct program *program_new(const char *name, size_t keep)
{
	struct program *program = memory_alloc(sizeof(*program));

	program->name = name;
	program->task.free = program_free;
	program->task.turn = program_turn;
	program->task.kept = STREAMS * keep;
	program->signals = -1;
	for (size_t i = 0; i < GIVEN; i++)
		program->given[i] = -1;
	for (size_t i = 0; i < STREAMS; i++) {
		program->streams[i] = (struct stream){
			.program = program,
			.name = i == 0 ? "stdout" : "stderr",
			.watch = {.fd = -1,
				  .events = POLLIN,
				  .ready = stream_ready,
				  .context = &program->streams[i]},
		};
		buf_init(&program->streams[i].kept, keep);
	}
	program->input = (struct watch){.fd = -1,
					.events = POLLOUT,
					.ready = input_ready,
					.context = program};
	buf_init(&program->typed, PROGRAM_INPUT);
	program->carried = value_new_object();
	/* As a program of exec-server, it is a step that can be undone. */
	program->tool = exec_tool;
	program->tool.carrier = exec_tool.name;
	program->tool.carried = program->carried;
	program->tool.is_step = true;
	return program;
}

/* Make the pipe of STREAM; the cell gets *GIVEN. */
static bool open_stream(struct stream *stream, int *given, struct err *err)
{
	int ends[2];

	if (!fd_pipe(ends, err))
		return false;
	stream->watch.fd = ends[0];
	*given = ends[1];
	return fd_set_blocking(ends[0], false, err);
}

/* A second descriptor of the output, for a place that needs one. */
static bool open_again(struct program *program, int *given, struct err *err)
{
	*given = fcntl(program->given[GIVEN_OUT], F_DUPFD_CLOEXEC, 0);
	return *given >= 0 || err_set(err, errno, "a descriptor: %s", strerror(errno));
}

static bool open_input(struct program *program, bool has_input, struct err *err)
{
	int ends[2];

	if (program->tty) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
			return err_set(err, errno, "a socket: %s", strerror(errno));
		program->given[GIVEN_IN] = ends[0];
		program->input.fd = ends[1];
		return true;
	}
	if (!fd_pipe(ends, err))
		return false;
	program->given[GIVEN_IN] = ends[0];
	program->input.fd = ends[1];
	if (!has_input)
		fd_close(&program->input.fd);
	return !has_input || fd_set_blocking(program->input.fd, false, err);
}

static bool open_signals(struct program *program, struct err *err)
{
	int ends[2];

	if (!fd_pipe(ends, err))
		return false;
	program->given[GIVEN_SIGNALS] = ends[0];
	program->signals = ends[1];
	return fd_set_blocking(program->signals, false, err);
}

/* Without HAS_INPUT the input of the program is at its end from the beginning. */
static bool open_all(struct program *program, bool has_input, struct err *err)
{
	return open_input(program, has_input, err) && open_signals(program, err) &&
	       open_stream(&program->streams[0], &program->given[GIVEN_OUT], err) &&
	       (program->tty || program->merge
			? open_again(program, &program->given[GIVEN_ERROR], err)
			: open_stream(&program->streams[1], &program->given[GIVEN_ERROR],
				      err));
}

/* The end of a program. */

/* The limit that ended the program, by its key; or null. */
static struct value *limit_value(const struct tool_result *result)
{
	const char *limit =
		result->status == RESULT_TIMED_OUT ? "timeout_s" : denial_limit(result);

	return limit != NULL ? value_new_text(limit) : value_new_null();
}

/* The denials of RESULT, and those that the error output of PROGRAM tells of. */
static struct value *denials_value(const struct program *program,
				   const struct tool_result *result)
{
	struct value *list = value_new_array();
	struct tool_result said;

	for (size_t i = 0; i < value_count(denial_list(result)); i++)
		value_append(list, value_ref(value_item(denial_list(result), i)));
	if (program->number > 0 || result->exit_code == 0)
		return list;
	tool_result_init(&said);
	session_judge_messages(program->task.cell->place.session,
			       buf_str(&program->streams[program->merge ? 0 : 1].kept),
			       &said);
	for (size_t i = 0; i < value_count(denial_list(&said)); i++)
		value_append(list, value_copy(value_item(denial_list(&said), i)));
	tool_result_fini(&said);
	return list;
}

static struct value *outcome_of(const struct program *program,
				const struct tool_result *result)
{
	struct value *told = value_new_object();
	const struct str text = str_trim(buf_str(&result->text));

	value_set(told, "exit",
		  result->exit_code >= 0 ? value_new_integer(result->exit_code)
					 : value_new_null());
	value_set(told, "signal",
		  result->signal > 0 ? value_new_integer(result->signal) : value_new_null());
	value_set_boolean(told, "timed_out", result->status == RESULT_TIMED_OUT);
	value_set_real(told, "seconds", result->seconds);
	value_set(told, "limit", limit_value(result));
	value_set(told, "denials", denials_value(program, result));
	value_set(told, "accounts", engine_accounts(result));
	/* The program could not be started, and nobody else can say why. */
	if (result->status == RESULT_FAILED && text.size > 0)
		value_set_str(told, "message", text);
	return told;
}

/* Did the program run, or fail to start by its own name? */
static bool has_run(const struct tool_result *result)
{
	return result->status == RESULT_DONE || result->status == RESULT_TIMED_OUT ||
	       result->exit_code >= 0 || result->signal > 0;
}

static void drain(struct program *program)
{
	int waiting;

	for (size_t i = 0; i < STREAMS; i++) {
		struct stream *stream = &program->streams[i];

		while (stream->watch.fd >= 0 && may_read(program) &&
		       ioctl(stream->watch.fd, FIONREAD, &waiting) == 0 && waiting > 0 &&
		       stream_read(stream))
			;
	}
}

/* Does output lie in the pipes? */
static bool has_output(const struct program *program)
{
	for (size_t i = 0; i < STREAMS; i++) {
		int waiting = 0;

		if (program->streams[i].watch.fd >= 0 &&
		    ioctl(program->streams[i].watch.fd, FIONREAD, &waiting) == 0 &&
		    waiting > 0)
			return true;
	}
	return false;
}

static void answer_run(struct program *program, const struct tool_result *result)
{
	struct value *told = outcome_of(program, result);
	uint64_t dropped = 0;

	for (size_t i = 0; i < STREAMS; i++) {
		struct stream *stream = &program->streams[i];
		struct buf text;

		buf_init(&text, 2 * PROGRAM_KEEP_MAX);
		(void)buf_base64_add(buf_str(&stream->kept), &text);
		value_set_str(told, stream->name, buf_str(&text));
		buf_fini(&text);
		dropped += stream->dropped;
	}
	value_set_integer(told, "dropped", (int64_t)dropped);
	caller_answer(&program->task.engine->caller, program->task.id, told);
}

/* The call of a program of exec/start is done, and all its output was told. */
static void tell_end(struct program *program)
{
	struct value *told = value_copy(program->outcome);

	value_set_integer(told, "process", (int64_t)program->number);
	(void)caller_tell(&program->task.engine->caller, "exec/exited", told, false);
	for (size_t i = 0; i < STREAMS; i++)
		stream_end(&program->streams[i]);
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
		    program_of(at)->state != PROGRAM_OVER)
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
	const struct tool_result *result = running_result(task->running);

	drain(program);
	close_input(program);
	fd_close(&program->signals);
	if (program->number > 0) {
		program->outcome = outcome_of(program, result);
		program->state = PROGRAM_DRAINS;
	} else {
		if (program->answer != NULL && !task->cancelled && has_run(result))
			program->answer(task, result, buf_str(&program->streams[0].kept));
		else if (task->cancelled || !has_run(result))
			engine_refuse_result(task->cell, task->id, task->cancelled,
					     result, program->name);
		else
			answer_run(program, result);
		task->over = true;
	}
	running_free(task->running);
	task->running = NULL;
}

static void program_turn(struct engine_task *task)
{
	struct program *program = program_of(task);
	const bool reads = may_read(program);

	if (program->state == PROGRAM_RUNS &&
	    (running_is_sent(task->running) || running_is_done(task->running))) {
		for (size_t i = 0; i < GIVEN; i++)
			fd_close(&program->given[i]);
		if (running_is_done(task->running) && caller_reads(&task->engine->caller))
			program_end(program);
	}
	if (program->state == PROGRAM_DRAINS) {
		drain(program);
		if (!has_output(program)) {
			tell_end(program);
			forget_oldest(task->cell);
		}
	}
	if (program->state != PROGRAM_RUNS || task->over)
		return;
	for (size_t i = 0; i < STREAMS; i++) {
		if (reads && program->streams[i].watch.fd >= 0)
			loop_add(task->engine->loop, &program->streams[i].watch);
		else
			loop_remove(&program->streams[i].watch);
	}
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
		 "when it is ended", .min = 0.001, .max = SECONDS_MAX},                    \
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

static const struct row tty_rows[] = {
	{"rows", ROW_COUNT, true, "lines of the terminal", .min = 1, .max = TERMINAL_MAX},
	{"columns", ROW_COUNT, true, "columns of the terminal", .min = 1,
	 .max = TERMINAL_MAX},
	{0},
};

static const struct row start_params[] = {
	PROGRAM_ROWS,
	{"stdin", ROW_ANY, false, "the beginning of its input, as bytes",
	 .check = check_bytes},
	{"input", ROW_FLAG, false, "more input comes by exec/write"},
	{"tty", ROW_OBJECT, false, "a terminal", .rows = tty_rows},
	{0},
};

/* The words of the program, and a title for the list of steps; NULL after a refusal. */
static struct value *argv_of(const struct engine_request *request, const char **title)
{
	const struct value *argv = value_member(request->params, "argv");
	const char *command = value_text(value_member(request->params, "command"));
	struct value *list;

	if ((argv == NULL) == (command == NULL)) {
		caller_refuse(&request->engine->caller, request->id,
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
	struct value *list = value_new_array();
	struct buf text;
	bool fits;

	buf_init(&text, PATH_MAX);
	fits = engine_path(request->cell, folder != NULL ? folder : ".", &text);
	value_set_str(program->carried, "folder", buf_str(&text));
	buf_fini(&text);
	for (void *at = value_first(env); at != NULL; at = value_next(env, at)) {
		buf_init(&text, VARIABLE_MAX);
		(void)buf_addf(&text, "%s=", value_key(at));
		(void)buf_addstr(&text, value_str(value_at(at)));
		value_append(list, value_new_str(buf_str(&text)));
		buf_fini(&text);
	}
	value_set(program->carried, "env", list);
	if (!fits)
		caller_refuse(&request->engine->caller, request->id,
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

static void begin_call(const struct engine_request *request, struct program *program,
		       struct value *arguments)
{
	struct request call = {
		.tool = exec_tool.name,
		.made = &program->tool,
		.arguments = arguments,
		.fd_count = GIVEN,
		.by_front = true,
		.timeout_s = deadline_of(request),
		.most_s = ceiling_wall_s(session_ceiling()),
	};

	memcpy(call.fds, program->given, sizeof(program->given));
	program->task.running =
		session_start(request->cell->place.session, &call, NULL, NULL);
}

/* Start PROGRAM with ARGV as REQUEST wants it. False: it was refused. */
static bool start(const struct engine_request *request, struct program *program,
		  bool has_input)
{
	const struct value *bytes = value_member(request->params, "stdin");
	const struct value *tty = value_member(request->params, "tty");
	struct caller *caller = &request->engine->caller;
	auto_value struct value *arguments = value_new_object();
	const char *title = "";
	struct value *argv = argv_of(request, &title);
	struct err err = {0};
	struct buf input;

	/* It is a task from now on, so that it is freed like one. */
	engine_add_task(&program->task, request->cell,
			program->number == 0 ? request->id : NULL);
	program->tty = tty != NULL;
	program->merge = value_is_true(value_member(request->params, "merge"));
	if (program->tty)
		program->streams[0].name = "tty";
	if (argv == NULL || !carry(request, program)) {
		value_free(argv);
		return false;
	}
	value_set(arguments, "argv", argv);
	value_set_text(arguments, "title", title);
	if (program->tty) {
		value_set(arguments, "rows", value_ref(value_member(tty, "rows")));
		value_set(arguments, "columns", value_ref(value_member(tty, "columns")));
	}
	if (!open_all(program, has_input, &err)) {
		caller_refuse(caller, request->id,
			      &(struct caller_fault){.kind = CALLER_LIMIT, .error = err.code},
			      "exec: %s", err.text);
		return false;
	}
	buf_init(&input, PROGRAM_INPUT);
	(void)buf_base64_read(value_str(bytes), &input);
	if (program->input.fd >= 0)
		(void)type(program, buf_str(&input),
			   !program->tty &&
				   !value_is_true(value_member(request->params, "input")));
	buf_fini(&input);
	begin_call(request, program, arguments);
	return true;
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

	if (!engine_has_room(request, STREAMS * keep + stdin_size(request)))
		return;
	program = program_new("exec/run", keep);
	if (!start(request, program, value_member(request->params, "stdin") != NULL))
		program_refuse(program);
}

void engine_run_own(const struct engine_request *request, const char *name,
		    struct value *take_argv, int *take_input, uint64_t input_size,
		    void (*answer)(struct engine_task *task,
				   const struct tool_result *result, struct str said))
{
	auto_value struct value *arguments = value_new_object();
	struct value *variables = value_new_array();
	struct program *program = program_new(name, SAID_MAX);
	struct err err = {0};

	program->merge = true;
	program->answer = answer;
	engine_add_task(&program->task, request->cell, request->id);
	value_set(arguments, "argv", take_argv);
	value_set_text(arguments, "title", name);
	/* Errors are told apart by their words. */
	value_append(variables, value_new_text("LC_ALL=C"));
	value_set(program->carried, "env", variables);
	program->given[GIVEN_IN] = take_input != NULL ? fd_take(take_input) : -1;
	(void)engine_charge(request->engine, &program->task.kept,
			    program->task.kept + input_size);
	if (take_input == NULL
		    ? open_all(program, false, &err)
		    : open_signals(program, &err) &&
			      open_stream(&program->streams[0],
					  &program->given[GIVEN_OUT], &err) &&
			      open_again(program, &program->given[GIVEN_ERROR], &err)) {
		begin_call(request, program, arguments);
		return;
	}
	caller_refuse(&request->engine->caller, request->id,
		      &(struct caller_fault){.kind = CALLER_LIMIT, .error = err.code},
		      "%s: %s", name, err.text);
	program_refuse(program);
}

static void start_program(const struct engine_request *request)
{
	struct engine *engine = request->engine;
	struct program *program;
	struct value *told;

	if (!engine_has_room(request, stdin_size(request)))
		return;
	program = program_new("exec/start", 0);
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
		engine_refuse_result(request->cell, request->id, false,
				     running_result(program->task.running), program->name);
		program_refuse(program);
		return;
	}
	told = value_new_object();
	value_set_integer(told, "process", (int64_t)program->number);
	caller_answer(&engine->caller, request->id, told);
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
		    program_of(at)->number == number && (!at->over || at->rests))
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
	caller_refuse(&request->engine->caller, request->id,
		      &(struct caller_fault){.kind = CALLER_NO_SUCH},
		      "there is no process %" PRId64
		      " in cell %s; it may have ended long ago",
		      number, request->cell->name);
	return NULL;
}

static void answer_done(const struct engine_request *request)
{
	caller_answer(&request->engine->caller, request->id, value_new_object());
}

static const struct row write_params[] = {
	ENGINE_ROW_CELL,
	PROGRAM_ROW,
	{"bytes", ROW_ANY, false, "what is typed", .check = check_bytes},
	{"end", ROW_FLAG, false, "its input ends behind these bytes"},
	{0},
};

static void write_program(const struct engine_request *request)
{
	struct program *program = known_program(request);
	const bool ends = value_is_true(value_member(request->params, "end"));
	struct buf bytes;
	bool taken;

	if (program == NULL)
		return;
	if (program->input.fd < 0 || program->input_ends) {
		caller_refuse(&request->engine->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_CLOSED, .error = EPIPE},
			      "exec/write: process %" PRIu64 " has no input, or no more",
			      program->number);
		return;
	}
	buf_init(&bytes, PROGRAM_INPUT);
	(void)buf_base64_read(value_str(value_member(request->params, "bytes")), &bytes);
	taken = type(program, buf_str(&bytes), ends);
	buf_fini(&bytes);
	if (taken)
		answer_done(request);
	else
		caller_refuse(&request->engine->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_BUSY,
						     .remedy = "write less at a time"},
			      "exec/write: the program does not read its input: %zu bytes wait "
			      "for it",
			      typed_size(program));
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
	const char number = (char)value_integer(value_member(request->params, "signal"));

	if (program == NULL)
		return;
	if (program->state != PROGRAM_RUNS) {
		answer_done(request);
		return;
	}
	/* A cell without a pid namespace can only end all that it has started. */
	if (number == SIGKILL ||
	    session_strength(request->cell->place.session).level < SANDBOX_SEALED)
		running_cancel(program->task.running);
	else if (program->signals >= 0 &&
		 write(program->signals, &number, sizeof(number)) < 0 && errno == EAGAIN) {
		caller_refuse(&request->engine->caller, request->id,
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
	{"columns", ROW_COUNT, true, "columns of the terminal", .min = 1,
	 .max = TERMINAL_MAX},
	{0},
};

static void resize_program(const struct engine_request *request)
{
	struct program *program = known_program(request);
	const struct pty_size size = {
		.rows = (uint16_t)value_integer(value_member(request->params, "rows")),
		.columns = (uint16_t)value_integer(value_member(request->params, "columns")),
	};

	if (program == NULL)
		return;
	if (!program->tty) {
		caller_refuse(&request->engine->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE, .error = ENOTTY},
			      "exec/resize: process %" PRIu64
			      " has no terminal; start it with "
			      "`tty`",
			      program->number);
		return;
	}
	if (program->input.fd >= 0) {
		program->size = size;
		program->resizes = true;
		input_settle(program);
	}
	answer_done(request);
}

static const struct row program_params[] = {ENGINE_ROW_CELL, PROGRAM_ROW, {0}};

/* A request that waits for the end of a program. */
struct waiting {
	struct engine_task task;
	uint64_t number;
};

static void waiting_free(struct engine_task *task)
{
	engine_task_fini(task);
	free(task);
}

static void waiting_turn(struct engine_task *task)
{
	const struct waiting *waiting = (const struct waiting *)task;
	struct caller *caller = &task->engine->caller;
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
	else if (program->state == PROGRAM_OVER)
		caller_answer(caller, task->id, value_copy(program->outcome));
	else
		return;
	task->over = true;
}

static void wait_program(const struct engine_request *request)
{
	const struct program *program = known_program(request);
	struct waiting *waiting;

	if (program == NULL || !engine_has_room(request, 0))
		return;
	waiting = memory_alloc(sizeof(*waiting));
	waiting->number = program->number;
	waiting->task.turn = waiting_turn;
	waiting->task.free = waiting_free;
	engine_add_task(&waiting->task, request->cell, request->id);
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

	if (program == NULL)
		return;
	program->unread -= bytes < program->unread ? bytes : program->unread;
	answer_done(request);
}

const struct engine_method engine_programs[] = {
	{"exec/run", run_params, run},
	{"exec/start", start_params, start_program},
	{"exec/write", write_params, write_program},
	{"exec/signal", signal_params, signal_program},
	{"exec/resize", resize_params, resize_program},
	{"exec/wait", program_params, wait_program},
	{"exec/more", more_params, more_output},
	{0},
};
