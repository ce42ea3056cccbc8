/* hook_run: the input of hooks, their runs in the cell and on the host, and their answers. */

#include "extend/hook_run.h"

#include "agent/hooks.h"
#include "agent/tools/tool_search.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "extend/hook_call.h"
#include "extend/hook_output.h"
#include "extend/hooks.h"
#include "model/conversation.h"
#include "process/follow.h"
#include "session/session.h"
#include "tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	TRANSCRIPT_MAX = 8 << 20,
	MESSAGE_LINE_MAX = 4 << 20,
	INPUT_MAX = 16 << 20,
	VARIABLE_MAX = 32 << 10,
	NAME_DIGITS = 16,
	SHELL_NOT_RUN = 126, /* the exit code of a shell that cannot run a program */
};

/* The transcript. */

static struct value *content_of(const struct part *part)
{
	struct value *content = value_new_object(), *input = NULL;
	struct meant meant;

	switch (part->kind) {
	case PART_TEXT:
	case PART_THINKING:
		value_set_text(content, "type",
			       part->kind == PART_TEXT ? "text" : "thinking");
		value_set_text(content, part->kind == PART_TEXT ? "text" : "thinking",
			       part->text);
		break;
	case PART_CALL:
		tool_search_meant(part, &meant);
		value_set_text(content, "type", "tool_use");
		value_set_text(content, "id", part->call_id);
		value_set_text(content, "name", hook_call_name(meant.tool));
		(void)value_parse(str_of(meant.arguments), VALUE_REPAIR, &input, NULL);
		value_set(content, "input", input != NULL ? input : value_new_object());
		meant_fini(&meant);
		break;
	case PART_RESULT:
		value_set_text(content, "type", "tool_result");
		value_set_text(content, "tool_use_id", part->call_id);
		value_set_text(content, "content", part->text);
		value_set_boolean(content, "is_error", part->is_error);
		break;
	}
	return content;
}

static void add_line(const struct message *message, const char *session_id,
		     const char *workspace, struct buf *line)
{
	const char *speaker = message->speaker == SPEAKER_USER ? "user" : "assistant";
	auto_value struct value *row = value_new_object();
	struct value *said = value_new_object(), *content = value_new_array();

	for (size_t i = 0; i < message->part_count; i++)
		value_append(content, content_of(&message->parts[i]));
	value_set_text(said, "role", speaker);
	if (message->part_count == 1 && message->parts[0].kind == PART_TEXT &&
	    message->speaker == SPEAKER_USER)
		value_set_text(said, "content", message->parts[0].text);
	else
		value_set(said, "content", value_ref(content));
	value_free(content);
	value_set_text(row, "type", speaker);
	value_set_text(row, "sessionId", session_id);
	value_set_text(row, "cwd", workspace);
	value_set(row, "message", said);
	(void)value_print(row, 0, line);
	(void)buf_addc(line, '\n');
}

/*
 * Append the transcript of the session, a message in each line, in the form of Claude Code's.
 * The oldest messages are left out where there is no room.
 */
static void add_transcript(const struct hook_moment *moment, const char *workspace,
			   struct buf *out)
{
	const struct conversation *conversation = moment->conversation;
	const size_t count = conversation != NULL ? conversation->message_count : 0;
	auto_free struct buf *lines = memory_array(count + 1, sizeof(*lines));
	size_t first = count, bytes = 0;

	while (first > 0) {
		struct buf *line = &lines[first - 1];

		buf_init(line, MESSAGE_LINE_MAX);
		add_line(&conversation->messages[first - 1], moment->session_id,
			 workspace, line);
		if (line->overflowed || bytes + line->size > TRANSCRIPT_MAX) {
			buf_fini(line);
			break;
		}
		bytes += line->size;
		first--;
	}
	for (size_t i = first; i < count; i++) {
		(void)buf_addstr(out, buf_str(&lines[i]));
		buf_fini(&lines[i]);
	}
}

/* The input. */

/* A path in the member NAME of OBJECT that is at the other place becomes the workspace's own. */
static void take_own(const struct hook_options *options, struct value *object,
		     const char *name)
{
	const char *text = value_text(value_member(object, name));
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (options->at != NULL && text != NULL && buf_adds(&path, text) &&
	    path_move(&path, options->at, options->workspace))
		value_set_str(object, name, buf_str(&path));
	buf_fini(&path);
}

/* The answer of a tool, with the members that scripts look for. */
static struct value *response_of(const struct hook_options *options,
				 const struct hook_moment *moment)
{
	const struct tool_result *result = moment->result;
	const char *path = value_text(value_member(moment->arguments, "path"));
	struct value *response = value_new_object();

	if (moment->tool != NULL && (moment->tool->effects & EFFECT_RUNS) != 0) {
		value_set_str(response, "stdout", buf_str(&result->text));
		value_set_text(response, "stderr", "");
		value_set_boolean(response, "interrupted",
				  result->status == RESULT_CANCELLED);
		value_set_integer(response, "exit_code", result->exit_code);
	} else {
		value_set_str(response, "content", buf_str(&result->text));
	}
	if (path != NULL)
		value_set_text(response, "filePath", path);
	take_own(options, response, "filePath");
	value_set_boolean(response, "success", result->status == RESULT_DONE);
	return response;
}

static void add_moment(const struct hook_options *options,
		       const struct hook_moment *moment, struct value *input)
{
	const char *text = moment->text != NULL ? moment->text : "";

	switch (moment->kind) {
	case HOOK_SESSION_BEGAN:
		value_set_text(input, "source", moment->word);
		break;
	case HOOK_SESSION_ENDED:
		value_set_text(input, "reason", moment->word);
		break;
	case HOOK_PROMPT:
		value_set_text(input, "prompt", text);
		break;
	case HOOK_AFTER_CALL:
		value_set(input, "tool_response", response_of(options, moment));
		break;
	case HOOK_AFTER_FAILURE:
		value_set_str(input, "error", buf_str(&moment->result->text));
		value_set_boolean(input, "is_interrupt", false);
		break;
	case HOOK_STOP:
	case HOOK_DELEGATE_STOP:
		value_set_boolean(input, "stop_hook_active", moment->again);
		value_set_text(input, "last_assistant_message", text);
		break;
	case HOOK_COMPACTION:
		value_set_text(input, "trigger", moment->word);
		value_set_text(input, "custom_instructions", text);
		break;
	case HOOK_NOTIFICATION:
		value_set_text(input, "message", text);
		value_set_text(input, "notification_type", moment->word);
		break;
	default:
		break;
	}
}

/* The input about MOMENT, and about CALL when it is not NULL. The caller frees it. */
static struct value *input_of(const struct hook_options *options,
			      const struct hook_moment *moment, const struct hook_call *call)
{
	struct value *input = value_new_object();

	value_set_text(input, "session_id", moment->session_id);
	value_set_text(input, "transcript_path", "");
	value_set_text(input, "cwd", options->workspace);
	value_set_text(input, "permission_mode", options->mode(options->context));
	value_set_text(input, "hook_event_name", hook_kind_name(moment->kind));
	value_set_text(input, "agent_type", moment->agent_name);
	if (call != NULL) {
		value_set_text(input, "tool_name", call->names[0]);
		value_set(input, "tool_input", value_ref(call->input));
		if (moment->call != NULL)
			value_set_text(input, "tool_use_id", moment->call);
	}
	add_moment(options, moment, input);
	return input;
}

/* One hook that runs for one moment. */

struct run {
	const struct hook *hook;
	struct value *input;
	struct running *running;    /* in the cell; NULL: on the host */
	struct program_run program; /* on the host */
	struct hook_said said;
};

struct runs {
	const struct hook_options *options;
	const struct hook_moment *moment;
	struct run *items;
	size_t count;
	int transcript_fd;
};

/* Is the same command on the list already, for the same call? Twice would gain nothing. */
static bool is_listed(const struct runs *runs, size_t from, const struct hook *hook)
{
	for (size_t i = from; i < runs->count; i++) {
		if (runs->items[i].hook->place == hook->place &&
		    strcmp(runs->items[i].hook->command, hook->command) == 0)
			return true;
	}
	return false;
}

/* List the hooks whose matchers fit NAMES, to be told INPUT. */
static void list(struct runs *runs, const char *const *names, const struct value *input)
{
	const struct hooks *hooks = runs->options->hooks;
	const size_t from = runs->count;

	for (size_t i = 0; i < hooks->count; i++) {
		const struct hook *hook = &hooks->items[i];

		if (hook->kind != runs->moment->kind || !hook_fits(hook, names) ||
		    is_listed(runs, from, hook))
			continue;
		runs->items =
			memory_grow(runs->items, runs->count + 1, sizeof(*runs->items));
		runs->items[runs->count++] = (struct run){
			.hook = hook,
			.input = value_copy(input),
		};
	}
}

/* List the hooks that fit CALL, or the word of the moment when CALL is NULL. */
static void list_for(struct runs *runs, const struct hook_call *call)
{
	const struct hook_moment *moment = runs->moment;
	const char *const words[] = {moment->kind == HOOK_DELEGATE_STOP ? moment->agent_name
									: moment->word,
				     NULL};
	auto_value struct value *input = input_of(runs->options, moment, call);

	list(runs, call != NULL ? call->names : words, input);
}

static void runs_fini(struct runs *runs)
{
	for (size_t i = 0; i < runs->count; i++) {
		hook_said_fini(&runs->items[i].said);
		value_free(runs->items[i].input);
	}
	free(runs->items);
	fd_close(&runs->transcript_fd);
}

static bool make_transcript(struct runs *runs, struct err *err)
{
	struct buf text;
	bool ok;

	buf_init(&text, TRANSCRIPT_MAX);
	add_transcript(runs->moment, runs->options->workspace, &text);
	ok = fd_memory_file("transcript", buf_str(&text), &runs->transcript_fd, err);
	buf_fini(&text);
	return ok;
}

/* Take what HOOK's program has printed. */
static void take(struct run *run, const struct hook_output *output)
{
	hook_output_read(output, run->hook, &run->said);
}

static void take_failure(struct run *run, const char *why)
{
	take(run, &(struct hook_output){.ending = HOOK_FAILED, .why = str_of(why)});
}

/* In the cell. */

static void start_in_cell(struct runs *runs, struct run *run)
{
	auto_value struct value *arguments = value_new_object();
	struct request request = {
		.tool = "hook",
		.arguments = arguments,
		.by_front = true,
		.unheard = true,
		.fds = {runs->transcript_fd},
		.fd_count = runs->transcript_fd >= 0 ? 1 : 0,
	};
	struct buf text;

	buf_init(&text, INPUT_MAX);
	if (!value_print(run->input, 0, &text)) {
		take_failure(run, "the call is too large to be told to a hook");
	} else {
		value_set_text(arguments, run->hook->own ? "own" : "command",
			       run->hook->command);
		value_set_str(arguments, "input", buf_str(&text));
		request.timeout_s = hook_timeout_s(run->hook);
		run->running = session_start(runs->moment->session, &request, NULL, NULL);
	}
	buf_fini(&text);
}

static void take_from_cell(struct run *run)
{
	const struct tool_result *result = running_result(run->running);
	const struct value *details = result->details;
	struct hook_output output = {
		.exit_code = result->exit_code,
		.signal = result->signal,
		.out = value_str(value_member(details, "stdout")),
		.error = value_str(value_member(details, "stderr")),
		.cut = value_is_true(value_member(details, "cut")),
		.why = buf_str(&result->text),
	};

	output.ending = result->status == RESULT_DONE        ? HOOK_ENDED
			: result->status == RESULT_TIMED_OUT ? HOOK_TIMED_OUT
			: result->status == RESULT_CANCELLED ? HOOK_CANCELLED
							     : HOOK_FAILED;
	take(run, &output);
}

/* On the host: a program of the person, with what a desktop's program needs and no more. */

static const char *const host_variables[] = {
	"PATH",
	"HOME",
	"USER",
	"LOGNAME",
	"SHELL",
	"LANG",
	"LC_ALL",
	"LC_CTYPE",
	"TZ",
	"TERM",
	"DISPLAY",
	"XAUTHORITY",
	"WAYLAND_DISPLAY",
	"XDG_RUNTIME_DIR",
	"DBUS_SESSION_BUS_ADDRESS",
};
enum { HOST_VARIABLES = sizeof(host_variables) / sizeof(host_variables[0]) };

static void add_variable(struct arena *arena, const char **environment, size_t *count,
			 const char *name, const char *value)
{
	struct buf text;

	buf_init(&text, VARIABLE_MAX);
	if (value != NULL && buf_addf(&text, "%s=%s", name, value))
		environment[(*count)++] = arena_copy(arena, buf_str(&text));
	buf_fini(&text);
}

static const char **host_environment(const char *workspace, struct arena *arena)
{
	const char **environment =
		arena_alloc(arena, (HOST_VARIABLES + 3) * sizeof(*environment));
	size_t count = 0;

	for (size_t i = 0; i < HOST_VARIABLES; i++)
		add_variable(arena, environment, &count, host_variables[i],
			     getenv(host_variables[i]));
	add_variable(arena, environment, &count, "CLAUDE_PROJECT_DIR", workspace);
	add_variable(arena, environment, &count, "GLOVEBOX_PROJECT_DIR", workspace);
	return environment;
}

static bool host_stopped(void *context)
{
	(void)context;
	return true;
}

/* Write the transcript where only the person may read it. False: there is no such place. */
static bool host_transcript(const struct runs *runs, struct buf *path, struct err *err)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	char digits[NAME_DIGITS + 1] = "";
	struct buf text;
	bool ok;

	buf_init(&text, TRANSCRIPT_MAX);
	add_transcript(runs->moment, runs->options->workspace, &text);
	(void)text_random_hex(digits, NAME_DIGITS);
	(void)buf_addf(path, "%s/glovebox-transcript-%s.jsonl",
		       folder != NULL && folder[0] == '/' ? folder : "/tmp", digits);
	auto_close int fd =
		open(path->data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		     S_IRUSR | S_IWUSR);
	ok = fd >= 0 ? fd_write_all(fd, text.data, text.size, err)
		     : err_set(err, errno, "%s: %s", path->data, strerror(errno));
	if (fd < 0)
		buf_clear(path);
	buf_fini(&text);
	return ok;
}

/*
 * A hook on the host has a process of our own program above it, its keeper, so that it ends
 * with this process however that ends. The kernel tells the keeper of our end by SIGTERM. The
 * keeper adopts whatever the hook leaves behind, and ends all of it.
 */

static const char keeper_word[] = "hook-on-host";

/* The arguments of the keeper. */
enum {
	KEEPER_WORD = 1,
	KEEPER_TRANSCRIPT, /* the path, removed at the end; "": there is none */
	KEEPER_COMMAND,
	KEEPER_ARGUMENTS,
};

/* End as the hook has ended, by SIGNAL. */
static void end_by_signal(int signal_number)
{
	const struct rlimit none = {0};
	sigset_t open;

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)signal(signal_number, SIG_DFL);
	(void)sigemptyset(&open);
	(void)sigaddset(&open, signal_number);
	(void)sigprocmask(SIG_UNBLOCK, &open, NULL);
	(void)raise(signal_number);
}

void hook_run_role(int argc, char **argv)
{
	const char *const words[] = {"/bin/sh", "-c",
				     argc > KEEPER_COMMAND ? argv[KEEPER_COMMAND] : "",
				     NULL};
	struct program_run program;
	struct err err = {0};
	sigset_t told;

	if (argc != KEEPER_ARGUMENTS || strcmp(argv[KEEPER_WORD], keeper_word) != 0)
		return;
	program_run_init(&program);
	(void)sigemptyset(&told);
	(void)sigaddset(&told, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &told, NULL);
	program.stop_fd = signalfd(-1, &told, SFD_CLOEXEC | SFD_NONBLOCK);
	/* Until here the kernel would have killed this process (ends_with_us). */
	if (program.stop_fd < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		_exit(SHELL_NOT_RUN);
	program.stopped = host_stopped;
	program.patient = true;
	program.start.argv = words;
	program.start.environment = (const char *const *)environ;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		program.start.fds[fd] = fd;
	program.start.ends_with_us = true;
	if (!follow_program(&program, &err)) {
		(void)dprintf(STDERR_FILENO, "%s\n", err.text);
		program.exit_code = SHELL_NOT_RUN;
	}
	if (argv[KEEPER_TRANSCRIPT][0] != '\0')
		(void)unlink(argv[KEEPER_TRANSCRIPT]);
	if (program.signal != 0)
		end_by_signal(program.signal);
	_exit(program.exit_code);
}

static bool follow_on_host(const struct runs *runs, struct run *run,
			   const char *transcript, struct arena *arena, struct err *err)
{
	const char *const argv[] = {"/proc/self/exe", keeper_word, transcript,
				    run->hook->command, NULL};
	auto_close int input_fd = -1;
	struct program_run *program = &run->program;
	struct buf text;
	bool ok;

	buf_init(&text, INPUT_MAX);
	ok = (value_print(run->input, 0, &text) && buf_addc(&text, '\n')) ||
	     err_set(err, E2BIG, "the call is too large to be told to a hook");
	ok = ok && fd_memory_file("hook", buf_str(&text), &input_fd, err);
	buf_fini(&text);
	if (!ok)
		return false;
	program->start.argv = argv;
	program->start.environment = host_environment(runs->options->workspace, arena);
	program->start.folder = runs->options->workspace;
	program->start.fds[0] = input_fd;
	program->start.ends_with_us = true;
	program->deadline_ms = clock_deadline(hook_timeout_s(run->hook));
	program->stop_fd = runs->options->cancel_fd;
	program->stopped = host_stopped;
	return follow_program(program, err);
}

static void run_on_host(const struct runs *runs, struct run *run)
{
	struct program_run *program = &run->program;
	struct err err = {0};
	struct arena arena;
	struct buf path;

	arena_init(&arena);
	buf_init(&path, PATH_MAX);
	program_run_init(program);
	if (host_transcript(runs, &path, &err))
		value_set_text(run->input, "transcript_path", path.data);
	if (follow_on_host(runs, run, path.data, &arena, &err))
		take(run,
		     &(struct hook_output){
			     .ending = program->ending == PROGRAM_TIMED_OUT ? HOOK_TIMED_OUT
				       : program->ending == PROGRAM_CANCELLED ? HOOK_CANCELLED
									      : HOOK_ENDED,
			     .exit_code = program->exit_code,
			     .signal = program->signal,
			     .out = buf_str(&program->out.head),
			     .error = buf_str(&program->error.head),
			     .cut = program->out.total > program->out.head.size,
		     });
	else
		take_failure(run, err.text);
	if (path.size > 0)
		(void)unlink(path.data);
	program_run_fini(program);
	buf_fini(&path);
	arena_fini(&arena);
}

static void run_all(struct runs *runs)
{
	struct session *session = runs->moment->session;
	size_t done = 0;

	for (size_t i = 0; i < runs->count; i++) {
		hook_said_init(&runs->items[i].said);
		if (runs->items[i].hook->place == HOOK_IN_CELL)
			start_in_cell(runs, &runs->items[i]);
	}
	for (size_t i = 0; i < runs->count; i++) {
		if (runs->items[i].hook->place == HOOK_ON_HOST)
			run_on_host(runs, &runs->items[i]);
	}
	while (done < runs->count) {
		struct running *running = runs->items[done].running;

		if (running != NULL && !running_is_done(running)) {
			loop_turn(session_loop(session), CLOCK_NEVER);
			continue;
		}
		if (running != NULL)
			take_from_cell(&runs->items[done]);
		running_free(running);
		done++;
	}
}

/* One answer of all. */

static void add_lines(struct buf *to, const struct buf *from)
{
	if (from->size == 0)
		return;
	(void)buf_end_line(to);
	(void)buf_addstr(to, buf_str(from));
}

/* Does what RUN said count at this moment? */
static bool counts(const struct run *run, const struct hook_moment *moment)
{
	return run->said.decision != HOOK_ALLOW || !moment->outside || run->hook->own;
}

static void merge_decision(const struct run *run, const struct hook_moment *moment,
			   struct hook_answer *answer)
{
	const enum hook_decision decision =
		counts(run, moment) ? run->said.decision : HOOK_SILENT;
	const bool first = decision > answer->decision;

	if (decision == HOOK_SILENT && !run->said.ends)
		return;
	if (first)
		answer->decision = decision;
	/* Only the reasons of the decision that holds are told. */
	if (first && !answer->ends)
		buf_clear(&answer->reason);
	if (decision == answer->decision || run->said.ends)
		add_lines(&answer->reason, &run->said.reason);
	answer->ends = answer->ends || run->said.ends;
}

static void merge(const struct run *run, const struct hook_moment *moment,
		  struct hook_answer *answer)
{
	const struct hook_said *said = &run->said;
	const bool says = said->decision != HOOK_SILENT || said->ends ||
			  said->context.size > 0 || said->input != NULL;
	struct buf name;

	merge_decision(run, moment, answer);
	add_lines(&answer->context, &said->context);
	add_lines(&answer->told, &said->told);
	if (said->input != NULL && moment->tool != NULL) {
		struct value *ours = hook_call_back(moment->tool, said->input);

		if (ours != NULL) {
			value_free(answer->arguments);
			answer->arguments = ours;
		}
	}
	if (!says)
		return;
	buf_init(&name, PATH_MAX);
	hook_output_name(run->hook, &name);
	if (answer->by.size > 0)
		(void)buf_adds(&answer->by, "; ");
	(void)buf_addstr(&answer->by, buf_str(&name));
	buf_fini(&name);
}

static void calls_of(const struct hook_options *options, const struct hook_moment *moment,
		     struct hook_calls *calls)
{
	static const char *const members[] = {"file_path", "path", "notebook_path",
					      "workdir"};

	hook_calls_of(moment->tool, moment->arguments, options->workspace, calls);
	for (size_t i = 0; i < calls->count; i++) {
		for (size_t j = 0; j < sizeof(members) / sizeof(members[0]); j++)
			take_own(options, calls->items[i].input, members[j]);
	}
}

void hook_run_ask(void *context, const struct hook_moment *moment, struct hook_answer *answer)
{
	const struct hook_options *options = context;
	struct runs runs = {.options = options, .moment = moment, .transcript_fd = -1};
	struct hook_calls calls = {0};
	struct err err = {0};

	if (!hooks_has(options->hooks, moment->kind))
		return;
	if (moment->tool != NULL)
		calls_of(options, moment, &calls);
	else
		list_for(&runs, NULL);
	for (size_t i = 0; i < calls.count; i++)
		list_for(&runs, &calls.items[i]);
	/* A hook that cannot be told of the session is told of the moment. */
	if (runs.count > 0)
		(void)make_transcript(&runs, &err);
	run_all(&runs);
	for (size_t i = 0; i < runs.count; i++)
		merge(&runs.items[i], moment, answer);
	runs_fini(&runs);
	hook_calls_fini(&calls);
}

/* Moments that are about a call. */
static bool is_of_call(enum hook_kind kind)
{
	return kind == HOOK_BEFORE_CALL || kind == HOOK_PERMISSION ||
	       kind == HOOK_AFTER_CALL || kind == HOOK_AFTER_FAILURE;
}

/* The member of the input of KIND that a matcher is compared with; NULL: none is. */
static const char *word_of(enum hook_kind kind)
{
	switch (kind) {
	case HOOK_SESSION_BEGAN:
		return "source";
	case HOOK_SESSION_ENDED:
		return "reason";
	case HOOK_COMPACTION:
		return "trigger";
	case HOOK_NOTIFICATION:
		return "notification_type";
	case HOOK_DELEGATE_STOP:
		return "agent_type";
	default:
		return is_of_call(kind) ? "tool_name" : NULL;
	}
}

/* The word of a moment that is only played. */
static const char *word_played(enum hook_kind kind)
{
	switch (kind) {
	case HOOK_SESSION_BEGAN:
		return "startup";
	case HOOK_COMPACTION:
		return "manual";
	case HOOK_NOTIFICATION:
		return "permission_prompt";
	default:
		return "other";
	}
}

/* Play RUNS, whose hooks are told of CALL, but for what GIVEN has in the place of it. */
static void play(struct runs *runs, const struct hook_call *call, const struct value *given)
{
	const char *word = word_of(runs->moment->kind);
	auto_value struct value *input = input_of(runs->options, runs->moment, call);
	const char *names[] = {NULL, NULL};
	struct err err;

	for (void *at = value_first(given); at != NULL; at = value_next(given, at))
		value_set(input, value_key(at), value_copy(value_at(at)));
	if (word != NULL)
		names[0] = value_text(value_member(input, word));
	list(runs, names, input);
	(void)make_transcript(runs, &err);
	run_all(runs);
}

size_t hook_run_play(const struct hook_options *options, struct session *session,
		     enum hook_kind kind, const struct value *given,
		     void (*tell)(void *context, const struct hook *hook,
				  const struct value *input, const struct hook_said *said),
		     void *tell_context)
{
	const struct tool tool = {.name = "bash", .effects = EFFECT_RUNS};
	auto_value struct value *arguments = value_new_object();
	struct tool_result result;
	const struct hook_moment moment = {
		.kind = kind,
		.word = word_played(kind),
		.text = "hello",
		.call = "c1",
		.tool = &tool,
		.arguments = arguments,
		.result = &result,
		.session = session,
		.session_id = "test",
		.agent_name = session_policy(session)->name,
	};
	struct runs runs = {.options = options, .moment = &moment, .transcript_fd = -1};
	struct hook_calls calls = {0};
	size_t count;

	tool_result_init(&result);
	value_set_text(arguments, "command", "true");
	hook_calls_of(&tool, arguments, options->workspace, &calls);
	play(&runs, is_of_call(kind) ? &calls.items[0] : NULL, given);
	count = runs.count;
	for (size_t i = 0; i < count; i++)
		tell(tell_context, runs.items[i].hook, runs.items[i].input,
		     &runs.items[i].said);
	runs_fini(&runs);
	hook_calls_fini(&calls);
	tool_result_fini(&result);
	return count;
}
