/* exec_server: the exec server's side of one conversation. */

#include "front/exec_server.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/verbs/exec.h"
#include "guard/guard.h"
#include "mcp/message.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "process/outbox.h"
#include "serve/caller.h"
#include "session/piped.h"
#include "session/session.h"
#include "tool/tool.h"
#include "tools/tools.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* How long file calls may still be answered after the end of the input. */
	LAST_WORD_MS = 1000,
	SENTENCE_MAX = 4 << 10,
	TOLD_MAX = 64 << 10,
	SESSION_NAME = 32,
	WRITE_NAMES = 128, /* names of writes that are remembered, of one process */
	BLOCK = 3 << 19,   /* of one call of fs_read; its texts can be joined */
	FILE_TRIES = 3,    /* a file that changes while it is read is read again */
	/* The size of a terminal whose client names none, as that of Codex. */
	TERMINAL_ROWS = 24,
	TERMINAL_COLUMNS = 80,
	CODE_MISSING = -32004,
};

/* A piece of output. */
struct chunk {
	struct chunk *next;
	uint64_t seq;
	const char *stream;
	size_t size;
	char bytes[];
};

enum process_state {
	PROCESS_RUNS,
	PROCESS_ENDED, /* its end was told; it can still be read */
};

struct process {
	struct server *server;
	struct process *next;
	enum process_state state;
	char *name;
	/* the request that the end of this process answers; NULL: it is the client's own */
	struct value *answers;
	struct piped piped;
	struct value *carried;
	bool tty;
	uint64_t next_seq;
	struct chunk *first, *last;
	size_t kept;
	int exit_code;
	char *writes[WRITE_NAMES];
	size_t write_at;
};

/* A `process/read` that waits for output. */
struct waiting_read {
	struct waiting_read *next;
	struct value *id;
	struct process *process;
	uint64_t after;
	size_t most;
	struct timer timer; /* it is answered when this one is off */
};

/* A file that the client has opened. */
struct handle {
	struct handle *next;
	char *name;
	char *uri;
	char *mark;
};

/* The answer that the result of a file call becomes. */
enum call_answer {
	ANSWERS_HELLO,   /* `initialize` */
	ANSWERS_DETAILS, /* the details as they are */
	ANSWERS_NOTHING,
	ANSWERS_FILE,  /* the whole content */
	ANSWERS_OPEN,  /* a new handle */
	ANSWERS_BLOCK, /* a part of the content */
};

struct file_call {
	struct file_call *next;
	struct value *id;
	struct running *running;
	enum call_answer answer;
	char *uri;          /* of a content */
	char *handle;       /* its name */
	char *mark;         /* of the blocks so far; or of the handle */
	struct buf content; /* as Base64 */
	int64_t offset;
	unsigned tries;
};

struct server {
	struct exec_server_options options;
	struct loop *loop;
	struct caller client;
	/* when file calls are not answered any more, after the end of the input */
	int64_t until_ms;
	struct watch stopping;
	bool stopped;
	bool greeted;
	struct process *processes;
	struct waiting_read *readings;
	struct file_call *calls;
	struct handle *handles;
};

/* Messages to the client. */

static void answer(struct server *server, const struct value *id, struct value *take_result)
{
	caller_answer(&server->client, id, take_result);
}

/* Answer the request ID with an error. */
__attribute__((format(printf, 4, 5))) static void refuse(struct server *server,
							 const struct value *id, int code,
							 const char *format, ...)
{
	char sentence[SENTENCE_MAX];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	caller_refuse(&server->client, id, &(struct caller_fault){.code = code}, "%s",
		      sentence);
}

static void notify(struct server *server, const char *method, struct value *take_params)
{
	(void)caller_tell(&server->client, method, take_params, false);
}

/* Parameters of a request. Each function refuses the request when they are wrong. */

/* TEXT as a C string; NULL when it is no text, or has a NUL. */
static const char *plain_text(const struct value *text)
{
	const char *bytes = value_text(text);

	return bytes != NULL && strlen(bytes) == value_str(text).size ? bytes : NULL;
}

static const char *take_text(struct server *server, const struct value *id,
			     const struct value *params, const char *key, size_t most)
{
	const char *text = plain_text(value_member(params, key));

	if (text == NULL)
		refuse(server, id, MCP_CODE_PARAMS, "%s must be a text", key);
	else if (strlen(text) > most)
		refuse(server, id, MCP_CODE_PARAMS, "%s has more than %zu bytes", key, most);
	else
		return text;
	return NULL;
}

/* A number, or ABSENT where there is none. */
static bool take_number(struct server *server, const struct value *id,
			const struct value *params, const char *key, int64_t absent,
			int64_t *number)
{
	const struct value *value = value_member(params, key);

	*number = absent;
	if (value_kind(value) == VALUE_NULL)
		return true;
	if (value_kind(value) != VALUE_INTEGER || value_integer(value) < 0) {
		refuse(server, id, MCP_CODE_PARAMS, "%s must be a number from 0 on", key);
		return false;
	}
	*number = value_integer(value);
	return true;
}

static bool take_flag(struct server *server, const struct value *id,
		      const struct value *params, const char *key, bool absent, bool *flag)
{
	const struct value *value = value_member(params, key);

	*flag = value_kind(value) == VALUE_BOOLEAN ? value_is_true(value) : absent;
	if (value_kind(value) == VALUE_NULL || value_kind(value) == VALUE_BOOLEAN)
		return true;
	refuse(server, id, MCP_CODE_PARAMS, "%s must be true or false", key);
	return false;
}

/* The path of a URI, in normal form. PATH is empty before. */
static bool take_path(struct server *server, const struct value *id,
		      const struct value *params, const char *key, struct buf *path)
{
	if (path_of_uri(value_str(value_member(params, key)), path) &&
	    text_is_utf8(buf_str(path)))
		return true;
	refuse(server, id, MCP_CODE_PARAMS, "%s must be a file:// URI of a path", key);
	return false;
}

/* The output of processes. */

static struct process *find_process(const struct server *server, const char *name)
{
	struct process *at = server->processes;

	while (at != NULL && (at->answers != NULL || strcmp(at->name, name) != 0))
		at = at->next;
	return at;
}

static size_t count_processes(const struct server *server, enum process_state state)
{
	size_t count = 0;

	for (const struct process *at = server->processes; at != NULL; at = at->next)
		count += at->state == state;
	return count;
}

static struct value *chunk_value(const struct chunk *chunk)
{
	struct value *value = value_new_object();
	struct buf text;

	buf_init(&text, 2 * chunk->size + 4);
	(void)buf_base64_add((struct str){chunk->bytes, chunk->size}, &text);
	value_set_integer(value, "seq", (int64_t)chunk->seq);
	value_set_text(value, "stream", chunk->stream);
	value_set_str(value, "chunk", buf_str(&text));
	buf_fini(&text);
	return value;
}

static void drop_first(struct process *process)
{
	struct chunk *chunk = process->first;

	process->first = chunk->next;
	if (process->first == NULL)
		process->last = NULL;
	process->kept -= chunk->size;
	free(chunk);
}

static void put_out(void *owner, enum piped_stream stream, struct str bytes)
{
	struct process *process = owner;
	struct chunk *chunk = memory_alloc(sizeof(*chunk) + bytes.size);
	struct value *told;

	chunk->seq = process->next_seq++;
	chunk->stream = process->tty            ? "pty"
			: stream == PIPED_ERROR ? "stderr"
						: "stdout";
	chunk->size = bytes.size;
	memcpy(chunk->bytes, bytes.data, bytes.size);
	if (process->last != NULL)
		process->last->next = chunk;
	else
		process->first = chunk;
	process->last = chunk;
	process->kept += bytes.size;
	while (process->kept > EXEC_SERVER_KEPT && process->first != chunk)
		drop_first(process);
	if (process->answers != NULL)
		return;
	told = chunk_value(chunk);
	value_set_text(told, "processId", process->name);
	notify(process->server, "process/output", told);
}

/* The life of processes. */

static void process_free(struct process *process)
{
	piped_stop(&process->piped);
	while (process->first != NULL)
		drop_first(process);
	for (size_t i = 0; i < WRITE_NAMES; i++)
		free(process->writes[i]);
	value_free(process->carried);
	value_free(process->answers);
	free(process->name);
	free(process);
}

/* Take PROCESS out of the list and free it, with the reads that wait for it. */
static void process_drop(struct process *process)
{
	struct server *server = process->server;
	struct process **at = &server->processes;

	while (*at != process)
		at = &(*at)->next;
	*at = process->next;
	process_free(process);
}

static struct process *process_new(struct server *server, const char *name)
{
	struct process *process = memory_alloc(sizeof(*process));
	struct process **end = &server->processes;
	struct piped_options options = {
		.input_max = EXEC_SERVER_INPUT,
		.said = put_out,
		.owner = process,
	};
	/*
	 * Unlike a program of `exec`, one of a client is a step that can be undone, and
	 * brings an environment and a folder.
	 */
	struct tool tool = exec_tool;

	tool.is_step = true;
	process->server = server;
	process->name = memory_copy(name);
	process->next_seq = 1;
	process->carried = value_new_object();
	options.tool = &tool;
	options.carried = process->carried;
	piped_init(&process->piped, &options);
	while (*end != NULL)
		end = &(*end)->next;
	*end = process;
	return process;
}

/* Start the program of ARGV in PROCESS. False: it was refused, and ERR says why. */
static bool process_start(struct process *process, struct value *take_argv,
			  const char *title, bool pipe_stdin, struct err *err)
{
	struct server *server = process->server;
	auto_value struct value *arguments = value_new_object();
	const double limit_s = server->options.time->seconds;
	const struct piped_wish wish = {
		.has_input = pipe_stdin,
		.takes_signals = true,
		.tty = process->tty,
		.take_error = -1,
	};
	const struct request like = {.arguments = arguments,
				     .timeout_s = limit_s > 0 ? limit_s : -1};

	value_set(arguments, "argv", take_argv);
	value_set_text(arguments, "title", title);
	if (process->tty) {
		value_set_integer(arguments, "rows", TERMINAL_ROWS);
		value_set_integer(arguments, "columns", TERMINAL_COLUMNS);
	}
	if (!piped_open(&process->piped, server->loop, &wish, err))
		return false;
	piped_start(&process->piped, server->options.session, &like, NULL, NULL);
	if (!running_is_done(process->piped.running))
		return true;
	const struct str why =
		str_trim(buf_str(&running_result(process->piped.running)->text));
	return err_set(err, EPERM, "%.*s", (int)why.size, why.data);
}

/* PROCESS answers a request: cp has ended. */
static void answer_program(struct process *process, const struct tool_result *result)
{
	struct buf said;
	bool missing;

	buf_init(&said, TOLD_MAX);
	for (const struct chunk *at = process->first; at != NULL; at = at->next)
		(void)buf_add(&said, at->bytes, at->size);
	missing = str_find(buf_str(&said), STR("No such file or directory"), 0) != SIZE_MAX;
	if (process->exit_code == 0 && !audit_quarantined(result))
		answer(process->server, process->answers, value_new_object());
	else
		refuse(process->server, process->answers,
		       missing ? CODE_MISSING : MCP_CODE_INVALID, "%s",
		       said.size > 0 ? said.data : "it could not be done");
	buf_fini(&said);
}

static void tell_end(struct process *process)
{
	struct value *told = value_new_object();

	value_set_text(told, "processId", process->name);
	value_set_integer(told, "seq", (int64_t)process->next_seq++);
	value_set_integer(told, "exitCode", process->exit_code);
	notify(process->server, "process/exited", told);
	told = value_new_object();
	value_set_text(told, "processId", process->name);
	value_set_integer(told, "seq", (int64_t)process->next_seq++);
	notify(process->server, "process/closed", told);
}

/*
 * The call of PROCESS is done, and nothing that it started runs any more: its last bytes
 * lie in the pipes.
 */
static void process_end(struct process *process)
{
	const struct tool_result *result = running_result(process->piped.running);
	struct buf told;

	piped_hold(&process->piped, false);
	piped_drain(&process->piped);
	piped_close(&process->piped);
	buf_init(&told, TOLD_MAX);
	exec_add_told(process->server->options.session, result,
		      process->server->options.words, process->server->options.time, &told);
	if (told.size > 0)
		put_out(process, PIPED_ERROR, buf_str(&told));
	buf_fini(&told);
	process->exit_code = exec_code(result);
	if (process->answers != NULL)
		answer_program(process, result);
	else
		tell_end(process);
	piped_stop(&process->piped);
	process->state = PROCESS_ENDED;
}

/* Requests about processes. */

/*
 * The variables of the client: `set` of its policy, and `env`, which goes first. The
 * cell's own variables cannot be replaced.
 */
static struct value *variables_of(const struct value *policy, const struct value *env)
{
	struct value *list = value_new_array();
	const struct value *objects[] = {env, value_member(policy, "set")};

	for (size_t i = 0; i < 2; i++) {
		for (void *at = value_first(objects[i]); at != NULL;
		     at = value_next(objects[i], at)) {
			const struct str value = value_str(value_at(at));
			struct buf text;

			if (i > 0 && value_member(env, value_key(at)) != NULL)
				continue;
			buf_init(&text, EXEC_SERVER_LINE);
			(void)buf_addf(&text, "%s=", value_key(at));
			(void)buf_addstr(&text, value);
			if (plain_text(value_at(at)) != NULL &&
			    policy_check_variable(text.data, NULL))
				value_append(list, value_new_str(buf_str(&text)));
			buf_fini(&text);
		}
	}
	return list;
}

/* A program of its own name: bash sets argv[0]. */
static struct value *argv_of(const struct value *argv, const char *name)
{
	struct value *list = value_new_array();

	if (name != NULL && strcmp(name, value_text(value_item(argv, 0))) != 0) {
		value_append(list, value_new_text("bash"));
		value_append(list, value_new_text("-c"));
		value_append(list, value_new_text("exec -a \"$0\" -- \"$@\""));
		value_append(list, value_new_text(name));
	}
	for (size_t i = 0; i < value_count(argv); i++)
		value_append(list, value_ref(value_item(argv, i)));
	return list;
}

/* The words by which `undo --list` names the process: a shell's text, or the program. */
static const char *title_of(const struct value *argv)
{
	const struct value *last = value_item(argv, value_count(argv) - 1);
	const char *option = value_text(value_item(argv, 1));

	return value_count(argv) == 3 && option[0] == '-'
		       ? value_text(last)
		       : value_text(value_item(argv, 0));
}

static bool is_argv(const struct value *argv)
{
	const size_t count = value_kind(argv) == VALUE_ARRAY ? value_count(argv) : 0;

	for (size_t i = 0; i < count; i++) {
		if (plain_text(value_item(argv, i)) == NULL)
			return false;
	}
	return count > 0 && value_text(value_item(argv, 0))[0] != '\0';
}

/* May one more process run? */
static bool has_room(struct server *server, const struct value *id)
{
	if (count_processes(server, PROCESS_RUNS) < EXEC_SERVER_PROCESSES)
		return true;
	refuse(server, id, MCP_CODE_INVALID, "%d processes run already",
	       EXEC_SERVER_PROCESSES);
	return false;
}

static void start_process(struct server *server, const struct value *id,
			  const struct value *params)
{
	const char *name = take_text(server, id, params, "processId", EXEC_SERVER_NAME);
	const struct value *argv = value_member(params, "argv");
	const struct value *policy = value_member(params, "envPolicy");
	const struct value *env = value_member(params, "env");
	struct process *process;
	struct err err = {0};
	struct buf folder;
	bool tty, pipe_stdin;

	if (name == NULL || !take_flag(server, id, params, "tty", false, &tty) ||
	    !take_flag(server, id, params, "pipeStdin", false, &pipe_stdin))
		return;
	if (!is_argv(argv)) {
		refuse(server, id, MCP_CODE_PARAMS, "argv must be a list of texts");
		return;
	}
	if ((value_kind(env) != VALUE_NULL && value_kind(env) != VALUE_OBJECT) ||
	    (value_kind(policy) != VALUE_NULL && value_kind(policy) != VALUE_OBJECT)) {
		refuse(server, id, MCP_CODE_PARAMS, "env and envPolicy must be objects");
		return;
	}
	if (find_process(server, name) != NULL) {
		refuse(server, id, MCP_CODE_INVALID, "process %s already exists", name);
		return;
	}
	buf_init(&folder, PATH_MAX);
	if (!has_room(server, id) || !take_path(server, id, params, "cwd", &folder)) {
		buf_fini(&folder);
		return;
	}
	process = process_new(server, name);
	process->tty = tty;
	value_set_str(process->carried, "folder", buf_str(&folder));
	value_set(process->carried, "env", variables_of(policy, env));
	if (value_kind(policy) == VALUE_OBJECT)
		value_set(process->carried, "inherit", value_copy(policy));
	buf_fini(&folder);
	if (process_start(process, argv_of(argv, plain_text(value_member(params, "arg0"))),
			  title_of(argv), pipe_stdin, &err)) {
		struct value *told = value_new_object();

		value_set_text(told, "processId", name);
		answer(server, id, told);
		return;
	}
	refuse(server, id, MCP_CODE_INTERNAL, "%s", err.text);
	process_drop(process);
}

/* The process that PARAMS name; NULL after a refusal. */
static struct process *known_process(struct server *server, const struct value *id,
				     const struct value *params)
{
	const char *name = take_text(server, id, params, "processId", EXEC_SERVER_NAME);
	struct process *process = name != NULL ? find_process(server, name) : NULL;

	if (name != NULL && process == NULL)
		refuse(server, id, MCP_CODE_INVALID, "unknown process id %s", name);
	return process;
}

/* The output behind AFTER. *WORTH: it tells the client something that it waits for. */
static struct value *output_value(const struct process *process, uint64_t after,
				  size_t most, bool *worth)
{
	const bool ended = process->state == PROCESS_ENDED;
	struct value *told = value_new_object(), *chunks = value_new_array();
	uint64_t next = process->next_seq;
	size_t size = 0;

	for (const struct chunk *at = process->first; at != NULL; at = at->next) {
		if (at->seq <= after)
			continue;
		if (size > 0 && size + at->size > most) {
			next = at->seq;
			break;
		}
		size += at->size;
		value_append(chunks, chunk_value(at));
	}
	*worth = value_count(chunks) > 0 || ended;
	value_set(told, "chunks", chunks);
	value_set_integer(told, "nextSeq", (int64_t)next);
	value_set_boolean(told, "exited", ended);
	value_set(told, "exitCode",
		  ended ? value_new_integer(process->exit_code) : value_new_null());
	value_set_boolean(told, "closed", ended);
	value_set(told, "failure", value_new_null());
	value_set_boolean(told, "sandboxDenied", false);
	return told;
}

static void reading_due(struct timer *timer)
{
	(void)timer; /* loop_turn has switched it off: the answer follows */
}

static void read_process(struct server *server, const struct value *id,
			 const struct value *params)
{
	struct process *process = known_process(server, id, params);
	struct waiting_read *reading;
	struct value *told;
	int64_t after, most, wait_ms;
	size_t count = 0;
	bool worth;

	if (process == NULL || !take_number(server, id, params, "afterSeq", 0, &after) ||
	    !take_number(server, id, params, "maxBytes", INT64_MAX, &most) ||
	    !take_number(server, id, params, "waitMs", 0, &wait_ms))
		return;
	for (const struct waiting_read *at = server->readings; at != NULL; at = at->next)
		count++;
	told = output_value(process, (uint64_t)after, (size_t)most, &worth);
	if (worth || wait_ms == 0 || count >= EXEC_SERVER_CALLS) {
		answer(server, id, told);
		return;
	}
	value_free(told);
	reading = memory_alloc(sizeof(*reading));
	reading->id = value_copy(id);
	reading->process = process;
	reading->after = (uint64_t)after;
	reading->most = (size_t)most;
	reading->timer = (struct timer){.due_ms = clock_deadline((double)wait_ms / 1000),
					.due = reading_due,
					.context = reading};
	loop_add_timer(server->loop, &reading->timer);
	reading->next = server->readings;
	server->readings = reading;
}

static void reading_free(struct waiting_read *reading)
{
	loop_remove_timer(&reading->timer);
	value_free(reading->id);
	free(reading);
}

/* Answer the reads that have waited long enough. */
static void settle_readings(struct server *server)
{
	struct waiting_read **at = &server->readings;

	while (*at != NULL) {
		struct waiting_read *reading = *at;
		bool worth;
		struct value *told = output_value(reading->process, reading->after,
						  reading->most, &worth);

		if (worth || reading->timer.due_ms == CLOCK_NEVER) {
			answer(server, reading->id, told);
			*at = reading->next;
			reading_free(reading);
		} else {
			value_free(told);
			at = &reading->next;
		}
	}
}

/* Has the write NAME been taken before? If not, it is remembered. */
static bool is_repeated(struct process *process, const char *name)
{
	for (size_t i = 0; i < WRITE_NAMES; i++) {
		if (process->writes[i] != NULL && strcmp(process->writes[i], name) == 0)
			return true;
	}
	free(process->writes[process->write_at]);
	process->writes[process->write_at] = memory_copy(name);
	process->write_at = (process->write_at + 1) % WRITE_NAMES;
	return false;
}

static void write_process(struct server *server, const struct value *id,
			  const struct value *params)
{
	const char *name = take_text(server, id, params, "processId", EXEC_SERVER_NAME);
	const char *status = "accepted";
	const char *write_name = plain_text(value_member(params, "writeId"));
	struct process *process = name != NULL ? find_process(server, name) : NULL;
	struct value *told;
	struct buf bytes;

	if (name == NULL)
		return;
	buf_init(&bytes, EXEC_SERVER_LINE);
	if (value_kind(value_member(params, "chunk")) != VALUE_STRING ||
	    !buf_base64_read(value_str(value_member(params, "chunk")), &bytes) ||
	    (write_name != NULL && strlen(write_name) > EXEC_SERVER_NAME)) {
		refuse(server, id, MCP_CODE_PARAMS,
		       "chunk must be Base64, and writeId a text of at most %d bytes",
		       EXEC_SERVER_NAME);
		buf_fini(&bytes);
		return;
	}
	if (process == NULL)
		status = "unknownProcess";
	else if (!piped_takes_input(&process->piped))
		status = "stdinClosed";
	else if (piped_waiting(&process->piped) + bytes.size > EXEC_SERVER_INPUT)
		status = NULL;
	else if (write_name == NULL || !is_repeated(process, write_name))
		(void)piped_type(&process->piped, buf_str(&bytes), false);
	buf_fini(&bytes);
	if (status == NULL) {
		refuse(server, id, MCP_CODE_INVALID,
		       "the process does not read its input; at most %d KiB wait for it",
		       EXEC_SERVER_INPUT >> 10);
		return;
	}
	told = value_new_object();
	value_set_text(told, "status", status);
	answer(server, id, told);
}

static void signal_process(struct server *server, const struct value *id,
			   const struct value *params)
{
	static const char control_c[] = "\003";
	struct process *process = known_process(server, id, params);
	const char *name = plain_text(value_member(params, "signal"));

	if (process == NULL)
		return;
	if (name == NULL || strcmp(name, "interrupt") != 0) {
		refuse(server, id, MCP_CODE_PARAMS, "signal must be \"interrupt\"");
		return;
	}
	if (process->tty && piped_takes_input(&process->piped))
		(void)piped_type(&process->piped, STR(control_c), false);
	else if (process->state == PROCESS_RUNS)
		/* Where the pipe is full, more than enough interrupts wait already. */
		(void)piped_signal(&process->piped, SIGINT);
	answer(server, id, value_new_object());
}

static void terminate_process(struct server *server, const struct value *id,
			      const struct value *params)
{
	const char *name = take_text(server, id, params, "processId", EXEC_SERVER_NAME);
	struct process *process = name != NULL ? find_process(server, name) : NULL;
	const bool runs = process != NULL && process->state == PROCESS_RUNS;
	struct value *told;

	if (name == NULL)
		return;
	if (runs)
		running_cancel(process->piped.running);
	told = value_new_object();
	value_set_boolean(told, "running", runs);
	answer(server, id, told);
}

/* Files. */

static void call_free(struct file_call *call)
{
	running_free(call->running);
	value_free(call->id);
	buf_fini(&call->content);
	free(call->uri);
	free(call->handle);
	free(call->mark);
	free(call);
}

static void call_begin(struct server *server, struct file_call *call, const char *tool,
		       const struct value *arguments)
{
	const struct request request = {.tool = tool,
					.arguments = arguments,
					.by_front = true};

	running_free(call->running);
	call->running = session_start(server->options.session, &request, NULL, NULL);
}

/* Ask for the next block of a content. */
static void call_block(struct server *server, struct file_call *call, int64_t size)
{
	auto_value struct value *arguments = value_new_object();

	value_set_text(arguments, "what", "content");
	value_set_text(arguments, "uri", call->uri);
	value_set_integer(arguments, "offset", call->offset);
	value_set_integer(arguments, "size", size < BLOCK ? size : BLOCK);
	call_begin(server, call, fs_read_tool.name, arguments);
}

/* A new call for the request ID; NULL after a refusal. */
static struct file_call *call_new(struct server *server, const struct value *id,
				  enum call_answer answers)
{
	struct file_call *call, **end = &server->calls;
	size_t count = 0;

	for (; *end != NULL; end = &(*end)->next)
		count++;
	if (count >= EXEC_SERVER_CALLS) {
		refuse(server, id, MCP_CODE_INVALID, "%zu file calls are under way", count);
		return NULL;
	}
	call = memory_alloc(sizeof(*call));
	call->id = value_copy(id);
	call->answer = answers;
	buf_init(&call->content, EXEC_SERVER_FILE / 3 * 4 + BLOCK * 2);
	*end = call;
	return call;
}

/* Begin a call of fs_read about the URI of PARAMS, with more ARGUMENTS. */
static void look(struct server *server, const struct value *id, const struct value *params,
		 const char *what, struct value *take_arguments)
{
	auto_value struct value *arguments = take_arguments;
	const char *uri = take_text(server, id, params, "path", 3 * PATH_MAX);
	struct file_call *call = uri != NULL ? call_new(server, id, ANSWERS_DETAILS) : NULL;

	if (call == NULL)
		return;
	value_set_text(arguments, "what", what);
	value_set_text(arguments, "uri", uri);
	call_begin(server, call, fs_read_tool.name, arguments);
}

static void get_metadata(struct server *server, const struct value *id,
			 const struct value *params)
{
	look(server, id, params, "metadata", value_new_object());
}

static void read_directory(struct server *server, const struct value *id,
			   const struct value *params)
{
	look(server, id, params, "names", value_new_object());
}

static void canonicalize(struct server *server, const struct value *id,
			 const struct value *params)
{
	look(server, id, params, "real", value_new_object());
}

static void walk(struct server *server, const struct value *id, const struct value *params)
{
	static const char *const keys[][2] = {{"maxDepth", "depth"},
					      {"maxDirectories", "folders"},
					      {"maxEntries", "entries"}};
	const struct value *options = value_member(params, "options");
	struct value *arguments = value_new_object();
	int64_t number;
	bool links;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!take_number(server, id, options, keys[i][0], -1, &number)) {
			value_free(arguments);
			return;
		}
		if (number >= 0)
			value_set_integer(arguments, keys[i][1], number);
	}
	if (!take_flag(server, id, options, "followDirectorySymlinks", false, &links)) {
		value_free(arguments);
		return;
	}
	value_set_boolean(arguments, "links", links);
	look(server, id, params, "walk", arguments);
}

static void read_file(struct server *server, const struct value *id,
		      const struct value *params)
{
	const char *uri = take_text(server, id, params, "path", 3 * PATH_MAX);
	struct file_call *call = uri != NULL ? call_new(server, id, ANSWERS_FILE) : NULL;

	if (call == NULL)
		return;
	call->uri = memory_copy(uri);
	call_block(server, call, BLOCK);
}

static struct handle **find_handle(struct server *server, const char *name)
{
	struct handle **at = &server->handles;

	while (*at != NULL && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

static void handle_free(struct handle *handle)
{
	free(handle->name);
	free(handle->uri);
	free(handle->mark);
	free(handle);
}

static void open_file(struct server *server, const struct value *id,
		      const struct value *params)
{
	const char *name = take_text(server, id, params, "handleId", EXEC_SERVER_NAME);
	const char *uri =
		name != NULL ? take_text(server, id, params, "path", 3 * PATH_MAX) : NULL;
	struct file_call *call;
	size_t count = 0;

	if (uri == NULL)
		return;
	for (const struct handle *at = server->handles; at != NULL; at = at->next)
		count++;
	if (*find_handle(server, name) != NULL || count >= EXEC_SERVER_HANDLES) {
		refuse(server, id, MCP_CODE_INVALID,
		       count >= EXEC_SERVER_HANDLES ? "%zu files are open"
						    : "that handle is open (of %zu)",
		       count);
		return;
	}
	call = call_new(server, id, ANSWERS_OPEN);
	if (call == NULL)
		return;
	call->uri = memory_copy(uri);
	call->handle = memory_copy(name);
	call_block(server, call, 0);
}

static void read_block(struct server *server, const struct value *id,
		       const struct value *params)
{
	const char *name = take_text(server, id, params, "handleId", EXEC_SERVER_NAME);
	const struct handle *handle = name != NULL ? *find_handle(server, name) : NULL;
	struct file_call *call;
	int64_t offset, size;

	if (name == NULL || !take_number(server, id, params, "offset", 0, &offset) ||
	    !take_number(server, id, params, "len", BLOCK, &size))
		return;
	if (handle == NULL) {
		refuse(server, id, MCP_CODE_INVALID, "unknown handle %s", name);
		return;
	}
	call = call_new(server, id, ANSWERS_BLOCK);
	if (call == NULL)
		return;
	call->uri = memory_copy(handle->uri);
	call->mark = memory_copy(handle->mark);
	call->offset = offset;
	call_block(server, call, size);
}

static void close_file(struct server *server, const struct value *id,
		       const struct value *params)
{
	const char *name = take_text(server, id, params, "handleId", EXEC_SERVER_NAME);
	struct handle **at = name != NULL ? find_handle(server, name) : NULL;
	struct handle *handle = at != NULL ? *at : NULL;

	if (name == NULL)
		return;
	if (handle != NULL) {
		*at = handle->next;
		handle_free(handle);
	}
	answer(server, id, value_new_object());
}

static void write_file(struct server *server, const struct value *id,
		       const struct value *params)
{
	const struct value *content = value_member(params, "dataBase64");
	auto_value struct value *arguments = NULL;
	struct file_call *call = NULL;
	struct buf path;

	if (value_kind(content) != VALUE_STRING) {
		refuse(server, id, MCP_CODE_PARAMS, "dataBase64 must be a text");
		return;
	}
	buf_init(&path, PATH_MAX);
	if (take_path(server, id, params, "path", &path))
		call = call_new(server, id, ANSWERS_NOTHING);
	if (call != NULL) {
		arguments = value_new_object();
		value_set_str(arguments, "path", buf_str(&path));
		value_set(arguments, "content", value_ref(content));
		call_begin(server, call, fs_write_tool.name, arguments);
	}
	buf_fini(&path);
}

/* Let the program ARGV answer the request ID. */
static void answer_by(struct server *server, const struct value *id,
		      struct value *take_argv, const char *title)
{
	struct value *variables;
	struct process *process;
	struct err err = {0};

	if (!has_room(server, id)) {
		value_free(take_argv);
		return;
	}
	process = process_new(server, "");
	process->answers = value_copy(id);
	variables = value_new_array();
	/* The words about a missing file are found in its message. */
	value_append(variables, value_new_text("LC_ALL=C"));
	value_set(process->carried, "env", variables);
	if (process_start(process, take_argv, title, false, &err))
		return;
	refuse(server, id, MCP_CODE_INTERNAL, "%s", err.text);
	process_drop(process);
}

static struct value *words_new(const char *program, const char *const *options)
{
	struct value *argv = value_new_array();

	value_append(argv, value_new_text(program));
	for (; *options != NULL; options++) {
		if (**options != '\0')
			value_append(argv, value_new_text(*options));
	}
	value_append(argv, value_new_text("--"));
	return argv;
}

/* Let fs_change do WHAT with the path of PARAMS, with the flags ALL and GONE. */
static void change(struct server *server, const struct value *id,
		   const struct value *params, const char *what, bool all, bool gone)
{
	auto_value struct value *arguments = value_new_object();
	struct file_call *call = NULL;
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (take_path(server, id, params, "path", &path))
		call = call_new(server, id, ANSWERS_NOTHING);
	if (call != NULL) {
		value_set_text(arguments, "what", what);
		value_set_str(arguments, "path", buf_str(&path));
		value_set_boolean(arguments, "all", all);
		value_set_boolean(arguments, "gone", gone);
		call_begin(server, call, fs_change_tool.name, arguments);
	}
	buf_fini(&path);
}

static void create_directory(struct server *server, const struct value *id,
			     const struct value *params)
{
	bool recursive;

	if (take_flag(server, id, params, "recursive", true, &recursive))
		change(server, id, params, "make_dir", recursive, false);
}

static void remove_name(struct server *server, const struct value *id,
			const struct value *params)
{
	bool recursive, force;

	if (take_flag(server, id, params, "recursive", true, &recursive) &&
	    take_flag(server, id, params, "force", true, &force))
		change(server, id, params, "remove", recursive, force);
}

static void copy_name(struct server *server, const struct value *id,
		      const struct value *params)
{
	struct buf from, to;
	struct value *argv;
	bool recursive;

	buf_init(&from, PATH_MAX);
	buf_init(&to, PATH_MAX);
	if (take_flag(server, id, params, "recursive", false, &recursive) &&
	    take_path(server, id, params, "sourcePath", &from) &&
	    take_path(server, id, params, "destinationPath", &to)) {
		argv = words_new("cp", (const char *const[]){"--preserve=mode", "-T",
							     recursive ? "-R" : "", NULL});
		value_append(argv, value_new_str(buf_str(&from)));
		value_append(argv, value_new_str(buf_str(&to)));
		answer_by(server, id, argv, "fs/copy");
	}
	buf_fini(&from);
	buf_fini(&to);
}

/* The results of file calls. */

static void refuse_call(struct server *server, const struct file_call *call,
			const struct tool_result *result)
{
	const int64_t code = value_integer(value_member(result->details, "code"));
	const struct str text = str_trim(buf_str(&result->text));
	/* A change that was taken away again has no code. */
	const bool wrong = code == EINVAL || code == EACCES || code == EPERM ||
			   code == ENOTEMPTY || code == EEXIST || audit_quarantined(result);

	refuse(server, call->id,
	       code == ENOENT                             ? CODE_MISSING
	       : wrong || result->status == RESULT_DENIED ? MCP_CODE_INVALID
							  : MCP_CODE_INTERNAL,
	       "%.*s", (int)text.size, text.data);
}

/* Do both marks name the same file, whatever it holds? They begin with device and inode. */
static bool is_same_file(const char *a, const char *b)
{
	size_t size = strcspn(a, ":");

	size += a[size] != '\0' ? 1 + strcspn(a + size + 1, ":") : 0;
	return strncmp(a, b, size + 1) == 0;
}

/* One more block of a whole file has come. True: the next one has been asked for. */
static bool take_block(struct server *server, struct file_call *call,
		       const struct tool_result *result)
{
	const char *mark = value_text(value_member(result->details, "mark"));
	struct value *told;

	if (value_integer(value_member(result->details, "size")) > EXEC_SERVER_FILE) {
		refuse(server, call->id, MCP_CODE_INVALID,
		       "the file has more than %d MiB; fs/open and fs/readBlock read it",
		       EXEC_SERVER_FILE >> 20);
		return false;
	}
	if (mark != NULL && call->mark != NULL && strcmp(mark, call->mark) != 0) {
		buf_clear(&call->content);
		call->offset = 0;
		free(call->mark);
		call->mark = NULL;
		if (++call->tries < FILE_TRIES) {
			call_block(server, call, BLOCK);
			return true;
		}
		refuse(server, call->id, MCP_CODE_INTERNAL,
		       "the file is being changed; read it again");
		return false;
	}
	if (call->mark == NULL)
		call->mark = memory_copy(mark);
	if (!buf_addstr(&call->content, buf_str(&result->text))) {
		refuse(server, call->id, MCP_CODE_INTERNAL, "the file is too large");
		return false;
	}
	if (!value_is_true(value_member(result->details, "eof"))) {
		call->offset += BLOCK;
		call_block(server, call, BLOCK);
		return true;
	}
	told = value_new_object();
	value_set_str(told, "dataBase64", buf_str(&call->content));
	answer(server, call->id, told);
	return false;
}

static void take_handle(struct server *server, const struct file_call *call,
			const struct tool_result *result)
{
	struct handle *handle = memory_alloc(sizeof(*handle));
	struct value *told = value_new_object();

	handle->name = memory_copy(call->handle);
	handle->uri = memory_copy(call->uri);
	handle->mark = memory_copy(value_text(value_member(result->details, "mark")));
	handle->next = server->handles;
	server->handles = handle;
	value_set_text(told, "handleId", call->handle);
	answer(server, call->id, told);
}

static void answer_block(struct server *server, const struct file_call *call,
			 const struct tool_result *result)
{
	const char *mark = value_text(value_member(result->details, "mark"));
	struct value *told;

	if (mark == NULL || call->mark == NULL || !is_same_file(call->mark, mark)) {
		refuse(server, call->id, MCP_CODE_INTERNAL,
		       "the name of the file leads to another file now");
		return;
	}
	told = value_new_object();
	value_set_str(told, "chunk", buf_str(&result->text));
	value_set_boolean(told, "eof", value_is_true(value_member(result->details, "eof")));
	answer(server, call->id, told);
}

static void greet(struct server *server, const struct file_call *call,
		  const struct tool_result *result)
{
	struct value *told = value_new_object();
	char name[SESSION_NAME];

	message_seal_name_make(name, sizeof(name));
	value_set_text(told, "sessionId", name);
	value_set(told, "environmentInfo", value_copy(result->details));
	answer(server, call->id, told);
}

/* The result of CALL is there. True: the call goes on. */
static bool call_end(struct server *server, struct file_call *call)
{
	const struct tool_result *result = running_result(call->running);

	if (result->status != RESULT_DONE || audit_quarantined(result)) {
		refuse_call(server, call, result);
		return false;
	}
	switch (call->answer) {
	case ANSWERS_HELLO:
		greet(server, call, result);
		break;
	case ANSWERS_DETAILS:
		answer(server, call->id, value_copy(result->details));
		break;
	case ANSWERS_NOTHING:
		answer(server, call->id, value_new_object());
		break;
	case ANSWERS_FILE:
		return take_block(server, call, result);
	case ANSWERS_OPEN:
		take_handle(server, call, result);
		break;
	case ANSWERS_BLOCK:
		answer_block(server, call, result);
		break;
	}
	return false;
}

/* Requests. */

static void ask_environment(struct server *server, const struct value *id,
			    enum call_answer answers)
{
	auto_value struct value *arguments = value_new_object();
	struct file_call *call = call_new(server, id, answers);

	if (call == NULL)
		return;
	value_set_text(arguments, "what", "environment");
	call_begin(server, call, fs_read_tool.name, arguments);
}

static void initialize(struct server *server, const struct value *id,
		       const struct value *params)
{
	(void)params;
	if (server->greeted) {
		refuse(server, id, MCP_CODE_INVALID, "initialize was sent already");
		return;
	}
	server->greeted = true;
	ask_environment(server, id, ANSWERS_HELLO);
}

static void tell_environment(struct server *server, const struct value *id,
			     const struct value *params)
{
	(void)params;
	ask_environment(server, id, ANSWERS_DETAILS);
}

static const struct method {
	const char *name;
	void (*take)(struct server *server, const struct value *id,
		     const struct value *params);
} methods[] = {
	{"initialize", initialize},
	{"environment/info", tell_environment},
	{"process/start", start_process},
	{"process/read", read_process},
	{"process/write", write_process},
	{"process/signal", signal_process},
	{"process/terminate", terminate_process},
	{"fs/readFile", read_file},
	{"fs/writeFile", write_file},
	{"fs/createDirectory", create_directory},
	{"fs/getMetadata", get_metadata},
	{"fs/readDirectory", read_directory},
	{"fs/canonicalize", canonicalize},
	{"fs/walk", walk},
	{"fs/remove", remove_name},
	{"fs/copy", copy_name},
	{"fs/open", open_file},
	{"fs/readBlock", read_block},
	{"fs/close", close_file},
};

static void take_request(struct server *server, const struct value *id,
			 const char *method, const struct value *params)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strcmp(methods[i].name, method) != 0)
			continue;
		if (!server->greeted && methods[i].take != initialize)
			refuse(server, id, MCP_CODE_INVALID, "initialize comes first");
		else
			methods[i].take(server, id, params);
		return;
	}
	refuse(server, id, MCP_CODE_METHOD, "there is no method %.100s here", method);
}

/* A notice: `initialized` is the only one, and nothing waits for it. */
static void take_message(struct server *server, const struct mcp_message *message)
{
	if (message->kind == MCP_REQUEST)
		take_request(server, message->id, message->method, message->params);
	else if (message->kind == MCP_RESPONSE)
		refuse(server, message->id, MCP_CODE_INVALID, "a message has a method");
}

static void stop_ready(struct watch *watch, short events)
{
	struct server *server = watch->context;

	(void)events;
	server->stopped = true;
}

static void take_messages(struct server *server)
{
	struct mcp_message message = {0};

	while (!server->stopped && caller_next(&server->client, &message)) {
		take_message(server, &message);
		mcp_message_fini(&message);
	}
}

/* Everything that has happened in the turn of the loop. */

static void settle_calls(struct server *server)
{
	struct file_call **at = &server->calls;

	while (*at != NULL) {
		struct file_call *call = *at;

		if (!running_is_done(call->running)) {
			at = &call->next;
		} else if (!call_end(server, call)) {
			*at = call->next;
			call_free(call);
		}
	}
}

/* Forget the oldest processes that have ended, and those whose answer was sent. */
static void forget_processes(struct server *server)
{
	size_t ended = count_processes(server, PROCESS_ENDED);

	for (struct process *at = server->processes, *next; at != NULL; at = next) {
		next = at->next;
		if (at->state == PROCESS_RUNS ||
		    (at->answers == NULL && ended <= EXEC_SERVER_ENDED))
			continue;
		process_drop(at);
		ended--;
	}
}

static void settle_processes(struct server *server)
{
	const bool reads = caller_reads(&server->client);

	for (struct process *at = server->processes; at != NULL; at = at->next) {
		if (at->state != PROCESS_RUNS)
			continue;
		piped_settle(&at->piped);
		if (running_is_done(at->piped.running))
			process_end(at);
		else
			piped_hold(&at->piped, !reads);
	}
	settle_readings(server);
	forget_processes(server);
}

static void settle(struct server *server)
{
	struct caller *client = &server->client;
	bool was_read;

	/* Where the client has just read enough, go on with what had to wait for that. */
	do {
		take_messages(server);
		settle_calls(server);
		was_read = caller_reads(client);
		settle_processes(server);
		caller_settle(client);
	} while (!server->stopped && client->life != CALLER_LOST &&
		 caller_reads(client) && (client->in.size > 0 || !was_read));
	if (client->life == CALLER_ENDED && server->until_ms == CLOCK_NEVER)
		server->until_ms = clock_now_ms() + LAST_WORD_MS;
}

static bool is_over(const struct server *server)
{
	const struct caller *client = &server->client;
	const bool said_all = server->calls == NULL && outbox_size(&client->out) == 0 &&
			      client->in.size == 0;

	return server->stopped || client->life == CALLER_LOST ||
	       clock_now_ms() >= server->until_ms ||
	       (client->life == CALLER_ENDED && said_all);
}

static void begin(struct server *server)
{
	const struct exec_server_options *options = &server->options;

	server->loop = session_loop(options->session);
	server->until_ms = CLOCK_NEVER;
	caller_open(&server->client, server->loop, options->input, options->output);
	server->client.bare = true;
	server->stopping = (struct watch){.fd = options->stop_fd,
					  .events = POLLIN,
					  .ready = stop_ready,
					  .context = server};
	loop_add(server->loop, &server->stopping);
}

static void end(struct server *server)
{
	loop_remove(&server->stopping);
	while (server->readings != NULL) {
		struct waiting_read *next = server->readings->next;
		reading_free(server->readings);
		server->readings = next;
	}
	/* All are cancelled before the first of them is waited for. */
	for (struct process *at = server->processes; at != NULL; at = at->next) {
		if (at->piped.running != NULL)
			running_cancel(at->piped.running);
	}
	while (server->processes != NULL)
		process_drop(server->processes);
	while (server->calls != NULL) {
		struct file_call *next = server->calls->next;
		call_free(server->calls);
		server->calls = next;
	}
	while (server->handles != NULL) {
		struct handle *next = server->handles->next;
		handle_free(server->handles);
		server->handles = next;
	}
	caller_close(&server->client);
}

bool exec_server_run(const struct exec_server_options *options, struct err *err)
{
	struct server server = {.options = *options};

	begin(&server);
	while (!is_over(&server)) {
		loop_turn(server.loop, server.until_ms);
		settle(&server);
	}
	const int gone = server.client.out.gone;
	end(&server);
	if (gone != 0 && gone != EPIPE)
		return err_set(err, gone, "standard output: the client reads nothing: %s",
			       strerror(gone));
	return true;
}
