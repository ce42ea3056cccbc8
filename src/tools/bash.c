/*
 * bash: runs a shell text, in the shell that waits in this worker or in a new one
 * (shell.h), and makes the answer of its output.
 */

#include "tools/bash.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "files/files.h"
#include "process/follow.h"
#include "process/loop.h"
#include "process/program.h"
#include "process/pty.h"
#include "tool/call.h"
#include "tool/denial.h"
#include "tool/limits.h"
#include "tool/tool.h"
#include "tools/shell.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

struct bash_terminal {
	struct pty pty;
	bool given;
	bool waits;       /* the command has only waited in one read for BASH_WAITS_MS */
	bool ended;       /* nobody typed for it, so the command was ended */
	int64_t since_ms; /* since when it sleeps in this read */
	int64_t told_ms;  /* when the front was told */
	struct reading sleeps;
};

/*
 * Of both streams together an answer has the beginning, which shows what ran, and more of
 * the end, where logs say what went wrong. A call may ask for more.
 */
#define BASH_SHOWN_BYTES     8000
#define BASH_BEGINNING_BYTES 2500 /* of these */
#define BASH_SHOWN_LEAST     1000
#define BASH_SHOWN_MOST      30000
#define BASH_SHOWN_LINES     2000

struct bash_answer {
	const struct program_run *run;
	double seconds;         /* how long it took, or has taken so far */
	bool running;           /* it has not ended: an answer about a job */
	bool waits;             /* it waits for input on its terminal */
	int64_t job;            /* 0: it is no job */
	struct bash_mark since; /* only later output is shown */
	struct str command;
	const struct files *files;
	const char *folder;      /* where the command ran */
	const char *next_folder; /* where the next command starts, when this changed */
	/* the remembered folder was gone, so the command ran in the workspace */
	bool folder_was_gone;
	size_t max_bytes; /* the most bytes that are shown */
	/* the cell ends with this call, and the spill file with it */
	bool is_last;
	const char *spill_folder;
	/* where the spill file is kept; empty: it is not kept yet */
	struct buf *spill_path;
	int timeout_max_s;
	const char *description; /* or NULL */
};

struct shell {
	struct call *call;
	struct tool_result *result;
	struct str command;
	struct file folder; /* where the command starts */
	struct buf spills;  /* folder of the spill files */
	struct buf spill_path;
	struct bash_job job;
	struct bash_terminal terminal;
	struct program_watch watch;
	pid_t pid; /* of the shell, and of its process group */
	int64_t began_us;
	struct bash_shell bash;
	struct program_run run;
	struct limit_watch limits;
	char told[PATH_MAX + 1]; /* the folder that the shell's last step reports */
	size_t told_size;
	bool spill_tried;
	bool folder_was_gone;
};

/* How far answers have shown the output. */

struct bash_mark bash_job_from(const struct bash_job *job, int64_t since)
{
	size_t at = job->count;

	while (at > 0 && since >= 0 &&
	       job->marks[at - 1].out + job->marks[at - 1].error > (uint64_t)since)
		at--;
	return at > 0 ? job->marks[at - 1] : (struct bash_mark){0};
}

void bash_job_shown(struct bash_job *job, struct bash_mark mark)
{
	if (job->count == BASH_MARKS) {
		job->count = BASH_MARKS / 2;
		memmove(job->marks, job->marks + BASH_MARKS - job->count,
			job->count * sizeof(job->marks[0]));
	}
	job->marks[job->count++] = mark;
}

/* Reads the programs of a plan from its list on the wire. */

static bool join_of(struct str text, enum program_join *join)
{
	static const char *const joins[] = {
		[PROGRAM_THEN] = ";", [PROGRAM_AND] = "&&", [PROGRAM_OR] = "||", [PROGRAM_PIPE] = "|"};

	for (size_t i = 0; i < sizeof(joins) / sizeof(joins[0]); i++) {
		if (str_is(text, joins[i])) {
			*join = (enum program_join)i;
			return true;
		}
	}
	return false;
}

const char **bash_plan_argv(const struct value *plan, size_t at, struct arena *arena)
{
	const struct value *list = value_member(value_item(plan, at), "argv");
	size_t count = value_count(list);
	const char **argv = arena_alloc(arena, (count + 1) * sizeof(*argv));

	for (size_t i = 0; i < count; i++)
		argv[i] = value_text(value_item(list, i));
	return argv;
}

/* Start the plan in FOLDER. The caller must then follow its programs to their end. */
static bool bash_plan_start(const struct call *call, const char *folder,
			    struct program_ahead *ahead, struct err *err)
{
	size_t count = value_count(call->plan);
	auto_free const char **environment =
		shell_command_environment(call->environment, NULL);
	auto_free struct program_item *items = memory_array(count, sizeof(*items));
	const struct program_start start = {
		.environment = environment,
		.folder = folder,
		.fds = {-1, -1, -1},
		.terms = call->terms,
	};
	struct arena arena;
	bool ok = true;

	arena_init(&arena);
	for (size_t i = 0; ok && i < count; i++) {
		const struct value *part = value_item(call->plan, i);

		items[i].argv = bash_plan_argv(call->plan, i, &arena);
		/* The front made this list, so it is well-formed. */
		ok = (items[i].argv[0] != NULL &&
		      join_of(value_str(value_member(part, "join")), &items[i].join)) ||
		     err_set(err, EPROTO, "a plan with a part that is none");
	}
	ok = ok && program_list_start_ahead(&start, items, count, ahead, err);
	arena_fini(&arena);
	return ok;
}

/*
 * A terminal of a command's own (tty), and whether the command waits for somebody to
 * type on it.
 */

enum {
	/*
	 * A read that waits this long is a prompt: programs that poll for a key do not
	 * wait so long.
	 */
	BASH_WAITS_MS = 2000,
	/* a front makes the command a job within this time, if it can */
	TAKEN_MS = 1000,
	ROWS = 24,
	COLUMNS = 80,
};

static void bash_terminal_init(struct bash_terminal *terminal)
{
	*terminal = (struct bash_terminal){
		.pty = {.master = -1, .slave = -1, .input = -1, .output = -1},
	};
}

static void bash_terminal_fini(struct bash_terminal *terminal)
{
	pty_close(&terminal->pty);
}

/* Make a terminal for RUN. */
static bool bash_terminal_open(struct bash_terminal *terminal, struct program_run *run,
			       struct err *err)
{
	const struct pty_size size = {ROWS, COLUMNS};

	if (!pty_open(&terminal->pty, size, -1, -1, err))
		return false;
	terminal->given = true;
	run->pty = &terminal->pty;
	return true;
}

/* Type INPUT. RESULT is done, or says why the input could not be typed. */
static void bash_terminal_type(struct bash_terminal *terminal, struct str input,
			       struct tool_result *result)
{
	if (!terminal->given) {
		(void)tool_fail(
			result,
			"This job has no terminal to type on: its input is empty. Start "
			"it with \"tty\": true, or let it read from a file or a pipe.");
	} else if (!pty_type(&terminal->pty, input)) {
		(void)tool_fail(result,
				"It has not taken what was typed before (or this is over %d "
				"bytes): nothing was typed. Read it first.",
				PTY_PACKET);
	} else {
		terminal->waits = false;
		terminal->sleeps = (struct reading){0};
		(void)tool_done(result);
	}
}

/*
 * The process group in the terminal's foreground, which gets the typed bytes; 0: there is
 * none.
 */
static pid_t bash_terminal_group(const struct bash_terminal *terminal)
{
	pid_t group = terminal->given ? tcgetpgrp(terminal->pty.master) : 0;

	return group > 0 ? group : 0;
}

/*
 * Call it regularly: it tells the front once that the command waits. True: the command
 * waits and was not made a job (IS_JOB) in time, so it would wait for ever.
 */
static bool bash_terminal_look(struct bash_terminal *terminal, const struct call *call,
			       bool is_job)
{
	const int64_t now = clock_now_ms();
	struct reading sleeps;

	if (!terminal->given)
		return false;
	sleeps = reading_find(terminal->pty.master);
	if (sleeps.pid == 0 || !reading_is_same(&sleeps, &terminal->sleeps)) {
		terminal->sleeps = sleeps;
		terminal->since_ms = now;
		terminal->waits = false;
	} else if (!terminal->waits && now - terminal->since_ms >= BASH_WAITS_MS) {
		terminal->waits = true;
		terminal->told_ms = now;
		ask_tell_waiting(call);
	}
	terminal->ended = terminal->waits && !is_job && now - terminal->told_ms >= TAKEN_MS;
	return terminal->ended;
}

/*
 * The answer about a command that ran: its output in bounds, and one closing line with
 * everything that the model must not miss.
 */

enum {
	/*
	 * The share of standard error when both streams are long: errors are shorter, and
	 * each line matters more.
	 */
	ERROR_SHARE = 3,
	ERROR_LINES = 600,
};

/* When MOST bytes of an output are shown, the number of bytes from its beginning. */
static size_t beginning_of(size_t most)
{
	return most * BASH_BEGINNING_BYTES / BASH_SHOWN_BYTES;
}

/* The cleaned text of one part of an output can be four times as long (\xHH). */
enum { CLEAN_MAX = 4 * (PROGRAM_HEAD + PROGRAM_TAIL) + 4096 };

static void add_stream(const struct program_output *output, const struct text_limits *limits,
		       struct buf *out, struct text_cut *cut)
{
	const uint64_t missing = follow_output_missing(output);
	struct buf part, clean, tail;

	*cut = (struct text_cut){0};
	buf_init(&part, PROGRAM_HEAD + PROGRAM_TAIL);
	buf_init(&clean, CLEAN_MAX);
	buf_init(&tail, CLEAN_MAX);
	if (missing > 0) {
		follow_output_tail(output, &part);
		(void)text_clean(buf_str(&output->head), &clean);
		(void)text_clean(buf_str(&part), &tail);
		text_shorten_torn(buf_str(&clean), buf_str(&tail), missing, limits, out,
				  cut);
	} else {
		program_output_text(output, &part);
		(void)text_clean(buf_str(&part), &clean);
		(void)text_shorten(buf_str(&clean), limits, out, cut);
	}
	buf_fini(&part);
	buf_fini(&clean);
	buf_fini(&tail);
}

/* The line that stands for an empty output. */
static const char *no_output(const struct bash_answer *answer)
{
	if (answer->since.out || answer->since.error)
		return "(no new output)\n";
	if (answer->running)
		return "(no output yet)\n";
	return answer->run->ending == PROGRAM_ENDED ? "(command completed with no output)\n"
						    : "(no output until it was ended)\n";
}

/* Keep the spill file, if there is one, so that its path is known. */
static bool keep_spill(const struct bash_answer *answer)
{
	const struct program_run *run = answer->run;
	struct buf *path = answer->spill_path;

	return run->spill_fd >= 0 && run->spilled > 0 &&
	       (path->size > 0 || spill_keep(run->spill_fd, answer->spill_folder, path));
}

/* Append NUMBER with separators for people: "4,096". */
static void add_grouped(uint64_t number, struct buf *text)
{
	if (number >= 1000) {
		add_grouped(number / 1000, text);
		(void)buf_addf(text, ",%03" PRIu64, number % 1000);
	} else {
		(void)buf_addf(text, "%" PRIu64, number);
	}
}

/*
 * Is the output no text? A stream that begins with binary bytes is binary in all its
 * parts.
 */
static bool is_binary(const struct program_output *whole, const struct program_output *part)
{
	return text_is_binary(buf_str(&whole->head)) ||
	       text_is_binary(buf_str(&part->head));
}

/*
 * In place of the bytes, add what they are and where they are kept. ALONE: the spill file
 * holds nothing else.
 */
static void add_binary(const struct bash_answer *answer, const struct program_output *output,
		       bool alone, struct tool_result *result)
{
	const char *kind = shown_binary_kind(buf_str(&output->head));
	struct buf *text = &result->text;
	char size[32];

	buf_adds(text, "[binary output, ");
	add_grouped(output->total, text);
	buf_addf(text, " bytes%s%s; ", kind ? ", looks like " : "", kind ? kind : "");
	if (answer->is_last || !keep_spill(answer)) {
		buf_adds(text,
			 "not kept: repeat it with its output in a file of the workspace");
	} else {
		value_set_text(tool_details(result), "saved", answer->spill_path->data);
		buf_addf(text, "saved as %s", answer->spill_path->data);
		if (!alone)
			buf_adds(text, ", where the other stream lies between");
		else if (answer->run->dropped)
			buf_addf(text, ", its first %s",
				 text_size(answer->run->spilled, size));
	}
	if (kind != NULL && strstr(kind, "NUL") != NULL)
		buf_adds(text, "; `| tr '\\0' '\\n'` makes lines of it");
	buf_adds(text, "]\n");
	result->left_out_bytes += output->total;
}

/* Add one stream of RUN. The complete stream is in the answer's run. */
static void add_one(const struct bash_answer *answer, const struct program_run *run,
		    bool is_error, const struct text_limits *limits,
		    struct tool_result *result, struct text_cut *cut)
{
	const struct program_run *whole = answer->run;
	const struct program_output *output = is_error ? &run->error : &run->out;
	struct buf *text = &result->text;

	if (is_binary(is_error ? &whole->error : &whole->out, output))
		add_binary(answer, output,
			   whole->out.total == 0 || whole->error.total == 0, result);
	else
		add_stream(output, limits, text, cut);
	buf_end_line(text);
}

/*
 * Add both streams of RUN, which is the answer's run or a part of it, one after the
 * other. CUT sums up what was left out of the text.
 */
static void add_output(const struct bash_answer *answer, const struct program_run *run,
		       struct tool_result *result, struct text_cut *cut)
{
	const size_t most = answer->max_bytes, error_most = most / ERROR_SHARE;
	struct text_limits out = {most, BASH_SHOWN_LINES, SHOWN_LONG_LINE, 0};
	struct text_limits error = out;
	struct text_cut parts[2] = {{0}};

	if (run->out.total + run->error.total > most) {
		size_t least = most - error_most;

		error.bytes = run->out.total < least ? most - run->out.total : error_most;
		out.bytes = run->error.total < error_most ? most - run->error.total : least;
	}
	out.head_bytes = beginning_of(out.bytes);
	error.head_bytes = beginning_of(error.bytes);
	if (run->out.total && run->error.total) {
		error.lines = ERROR_LINES;
		out.lines = BASH_SHOWN_LINES - ERROR_LINES;
	}
	if (run->out.total)
		add_one(answer, run, false, &out, result, &parts[0]);
	if (run->error.total) {
		buf_adds(&result->text, "STDERR:\n");
		add_one(answer, run, true, &error, result, &parts[1]);
	}
	if (!run->out.total && !run->error.total)
		buf_adds(&result->text, no_output(answer));
	cut->bytes = parts[0].bytes + parts[1].bytes;
	cut->lines = parts[0].lines + parts[1].lines;
	cut->long_lines = parts[0].long_lines + parts[1].long_lines;
}

static void add_ending(const struct bash_answer *answer, struct buf *text)
{
	const struct program_run *run = answer->run;
	const char *meaning = NULL;
	const char *name = run->signal ? sigabbrev_np(run->signal) : NULL;

	if (run->exit_code != 1 || run->error.total == 0)
		meaning = bash_hints_interactive_meaning(answer->command, run->exit_code);
	if (answer->job)
		buf_addf(text, "job %" PRId64 "%s", answer->job,
			 answer->running ? " is running" : ": ");
	if (answer->running)
		buf_addf(text, ", %.1f s%s; %" PRIu64 " bytes so far", answer->seconds,
			 answer->waits ? ", and waits for input" : "",
			 run->out.total + run->error.total);
	else if (run->ending == PROGRAM_TIMED_OUT)
		buf_addf(text,
			 "timed out after %.1f s and was ended; a longer timeout_s (at most %d) "
			 "gives it more time",
			 run->seconds, answer->timeout_max_s);
	else if (answer->waits)
		buf_addf(text,
			 "ended after %.1f s: it waited for input at its terminal, which nobody "
			 "gives here; let it read from a file, a pipe or an option",
			 run->seconds);
	else if (run->ending == PROGRAM_CANCELLED)
		buf_addf(text, "cancelled after %.1f s", run->seconds);
	else if (run->ending == PROGRAM_QUIET)
		buf_addf(text, "ended after %.1f s for saying nothing", run->seconds);
	else if (run->ending == PROGRAM_LIMITED)
		buf_addf(text, "ended after %.1f s for using too much", run->seconds);
	else if (run->signal)
		buf_addf(text, "ended by signal %d (SIG%s) after %.2f s", run->signal,
			 name ? name : "?", run->seconds);
	else
		buf_addf(text, "exit code %d%s%s%s, %.2f s", run->exit_code,
			 meaning ? " (" : "", meaning ? meaning : "", meaning ? ")" : "",
			 run->seconds);
}

/*
 * Append where the rest of the output is, with the call that reads it, or that the rest
 * was not kept.
 */
static void add_spill(const struct bash_answer *answer, const struct text_cut *cut,
		      size_t shown_lines, struct tool_result *result)
{
	const struct program_run *run = answer->run;
	struct buf *text = &result->text;
	const char *path;
	char size[32];

	buf_addf(text, "; left out: %s", text_size(cut->bytes, size));
	if (!keep_spill(answer)) {
		buf_adds(text,
			 ", which is not kept anywhere: repeat it with its output in a file");
	} else if (answer->is_last) {
		buf_addf(text,
			 " of %s, which ends with this call: repeat it with its output in a "
			 "file of the workspace",
			 text_size(run->out.total + run->error.total, size));
	} else {
		path = answer->spill_path->data;
		buf_addf(text,
			 " of %s; read_file {\"path\": \"%s\", \"start_line\": %zu} shows "
			 "the rest, grep {\"pattern\": …, \"path\": \"%s\"} searches it",
			 text_size(run->out.total + run->error.total, size), path,
			 shown_lines, path);
		if (cut->long_lines > 0) {
			buf_adds(text, "; of a long line ");
			shown_add_line_calls(path, 0, text_line_head(SHOWN_LONG_LINE),
					     run->dropped == 0, text);
		}
		if (run->dropped)
			buf_addf(text, " of the first %s; what came later is not kept",
				 text_size(run->spilled, size));
		value_set_text(tool_details(result), "spill", path);
	}
}

/* The number of whole lines in the first SIZE bytes of the spill file. */
static size_t lines_before(int spill_fd, uint64_t size)
{
	char piece[16 << 10];
	size_t lines = 0;

	for (uint64_t at = 0; at < size;) {
		size_t wanted =
			size - at < sizeof(piece) ? (size_t)(size - at) : sizeof(piece);
		ssize_t got = pread(spill_fd, piece, wanted, (off_t)at);

		if (got <= 0)
			break;
		for (const char *end = piece + got, *feed = piece;
		     (feed = memchr(feed, '\n', (size_t)(end - feed))); feed++)
			lines++;
		at += (uint64_t)got;
	}
	return lines;
}

/*
 * The line of the spill file at which the gap begins or, when both streams are mixed in
 * the file, at which the shown part begins.
 */
static size_t line_of_gap(const struct bash_answer *answer, struct str text)
{
	size_t gap = str_find(text, STR("[… "), 0);
	size_t line = 1;

	if (answer->since.out || answer->since.error)
		line += lines_before(answer->run->spill_fd,
				     answer->since.out + answer->since.error);
	if (answer->run->error.total || gap == (size_t)-1)
		return line;
	return line + text_count_lines(str_part(text, 0, gap));
}

static void add_details(const struct bash_answer *answer, struct tool_result *result)
{
	const struct program_run *run = answer->run;
	struct value *details = tool_details(result);

	value_set_str(details, "command", answer->command);
	if (answer->description)
		value_set_text(details, "description", answer->description);
	value_set_text(details, "folder", answer->folder);
	if (answer->next_folder)
		value_set_text(details, "next_folder", answer->next_folder);
	if (answer->running)
		value_set_boolean(details, "waits_for_input", answer->waits);
	value_set_integer(details, "stdout_bytes", (int64_t)run->out.total);
	value_set_integer(details, "stderr_bytes", (int64_t)run->error.total);
	if (!answer->running) {
		value_set_boolean(details, "timed_out", run->ending == PROGRAM_TIMED_OUT);
		value_set_integer(details, "left_processes", (int64_t)run->left_processes);
	}
	value_set_integer(details, "not_kept_bytes", (int64_t)run->dropped);
}

/* Add the output that has not been shown yet, which usually is all of it. */
static void add_part(const struct bash_answer *answer, struct tool_result *result,
		     struct text_cut *cut)
{
	struct program_run part = *answer->run;

	follow_output_since(&answer->run->out, answer->since.out, &part.out);
	follow_output_since(&answer->run->error, answer->since.error, &part.error);
	add_output(answer, &part, result, cut);
	buf_fini(&part.out.head);
	buf_fini(&part.error.head);
}

/* When text was left out, add the lines of it that report a failure. */
static void add_failing(const struct bash_answer *answer, struct buf *text)
{
	const uint64_t since = answer->since.out + answer->since.error;
	const int spill = answer->run->spill_fd;
	struct buf lines;
	size_t count;

	if (spill < 0)
		return;
	buf_init(&lines, (size_t)FAILING_SHOWN * (FAILING_LINE_BYTES + 32));
	count = shown_failing_gather(spill, since, lines_before(spill, since) + 1,
				     buf_str(text), &lines);
	if (count > 0) {
		buf_adds(text, "[left out, but perhaps what failed");
		if (count > FAILING_SHOWN)
			buf_addf(text, ", %d of %zu lines", FAILING_SHOWN, count);
		buf_adds(text, ":]\n");
		buf_addstr(text, buf_str(&lines));
	}
	buf_fini(&lines);
}

/*
 * Fill RESULT: status, text, exit code, signal, the amount that was left out, details.
 * Keep the spill file when it is needed.
 */
static void bash_tell(const struct bash_answer *answer, struct tool_result *result)
{
	const struct program_run *run = answer->run;
	struct buf *text = &result->text;
	struct text_cut cut = {0};
	size_t gap;

	add_details(answer, result);
	if (answer->since.out || answer->since.error)
		add_part(answer, result, &cut);
	else
		add_output(answer, run, result, &cut);
	gap = cut.bytes || cut.lines ? line_of_gap(answer, buf_str(text)) : 0;
	if (gap > 0)
		add_failing(answer, text);
	buf_addc(text, '[');
	add_ending(answer, text);
	buf_adds(text, "; in ");
	shown_add(str_of(files_shown(answer->files, answer->folder)), text);
	if (answer->folder_was_gone)
		buf_adds(text, " (the folder of the last command is gone)");
	if (answer->next_folder) {
		buf_adds(text, "; the next command starts in ");
		shown_add(str_of(files_shown(answer->files, answer->next_folder)), text);
	}
	if (cut.bytes || cut.lines)
		add_spill(answer, &cut, gap, result);
	if (run->left_processes)
		buf_addf(text, "; %u process%s it left running %s ended",
			 run->left_processes, run->left_processes == 1 ? "" : "es",
			 run->left_processes == 1 ? "was" : "were");
	buf_adds(text, "]\n");
	result->left_out_bytes += cut.bytes;
	result->left_out_lines = cut.lines;
	result->exit_code = run->exit_code;
	result->signal = run->signal;
	result->status = answer->running                    ? RESULT_DONE
			 : run->ending == PROGRAM_TIMED_OUT ? RESULT_TIMED_OUT
			 : run->ending == PROGRAM_CANCELLED ? RESULT_CANCELLED
							    : RESULT_DONE;
}

/* Functions that program_run calls while a command of the tool bash runs. */

/* Time from a shell's last step to its end. Before its end it frees its memory. */
enum { ENDING_US = 400 };

static struct bash_answer shell_answer(const struct shell *shell);

static void show_so_far(struct shell *shell, int64_t since, struct tool_result *result)
{
	struct bash_answer told = shell_answer(shell);
	const struct bash_mark all = {shell->run.out.total, shell->run.error.total};

	told.running = true;
	told.waits = shell->terminal.waits;
	told.spill_path = &shell->spill_path;
	told.since = bash_job_from(&shell->job, since);
	bash_tell(&told, result);
	bash_job_shown(&shell->job, all);
}

/*
 * On a terminal signal the program in the foreground too, which has a process group of
 * its own.
 */
static void shell_signal(const struct shell *shell, int number)
{
	pid_t group = bash_terminal_group(&shell->terminal);

	if (group > 1 && group != shell->pid)
		(void)kill(-group, number);
	if (group <= 1 || group == shell->pid || number == SIGKILL || number == SIGTERM)
		(void)kill(-shell->pid, number);
}

/* Answer a question to this job. */
static void shell_asked(struct shell *shell, const struct ask *ask)
{
	struct tool_result answer;

	tool_result_init(&answer);
	shell->job.number = ask->job;
	if (ask->reads) {
		show_so_far(shell, ask->since, &answer);
	} else if (ask->signal > 0) {
		shell_signal(shell, ask->signal);
		(void)tool_done(&answer);
	} else {
		bash_terminal_type(&shell->terminal, ask->input, &answer);
	}
	ask_answer(shell->call, &answer);
	tool_result_fini(&answer);
}

/* program_run asks: must the command stop? Answers questions to the job, too. */
static bool shell_stopped(void *context)
{
	struct shell *shell = context;
	struct ask ask;

	while (ask_next(shell->call, &ask)) {
		shell_asked(shell, &ask);
		ask_fini(&ask);
	}
	return shell->call->cancelled;
}

/* Pass on BYTES, which the command printed, to the listeners of the call. */
static void shell_output(void *context, int stream, struct str bytes)
{
	struct shell *shell = context;

	/*
	 * Most commands print nothing or little, so the spill file is made only for the
	 * first byte.
	 */
	if (!shell->spill_tried)
		shell->run.spill_fd =
			spill_open(spill_folder(shell->call->environment, &shell->spills));
	shell->spill_tried = true;
	call_output(shell->call, stream == 1 ? CALL_STDOUT : CALL_STDERR, bytes);
}

/* Look at the terminal, in addition to the limits. */
static bool shell_looked_at(void *context, int64_t *again_ms)
{
	struct shell *shell = context;
	const struct program_watch *limits = &shell->limits.watch;

	return limits->reached(limits->context, again_ms) ||
	       bash_terminal_look(&shell->terminal, shell->call, shell->job.number != 0);
}

static void shell_refused(void *context)
{
	struct limit_watch *limits = &((struct shell *)context)->limits;

	limits->watch.ready(limits);
}

static void shell_over(void *context)
{
	struct limit_watch *limits = &((struct shell *)context)->limits;

	limits->watch.over(limits);
}

/* Start to watch the command's limits, and its terminal if it has one. */
static void shell_watch_start(struct shell *shell)
{
	struct program_run *run = &shell->run;

	limit_watch_start(&shell->limits, shell->call, run);
	/* A server may print nothing for hours. */
	if (call_flag(shell->call, "background"))
		run->quiet_s = 0;
	if (!shell->terminal.given)
		return;
	shell->watch = (struct program_watch){
		.after_ms = shell->limits.watch.after_ms,
		.reached = shell_looked_at,
		.fd = shell->limits.watch.fd,
		.ready = shell_refused,
		.over = shell_over,
		.context = shell,
	};
	run->watch = &shell->watch;
}

/*
 * The shell reports its folder in its last step (or a process that it started pretends to
 * be the shell). The end is then near: waiting a moment is faster than being woken for
 * it.
 */
static void shell_tells(void *context)
{
	struct shell *shell = context;
	ssize_t size = read(shell->bash.folder_fd, shell->told + shell->told_size,
			    sizeof(shell->told) - 1 - shell->told_size);

	/* Later bytes are read at the end. */
	shell->run.side_fd = -1;
	if (size <= 0)
		return;
	shell->told_size += (size_t)size;
	shell->run.stay_until_us = clock_now_us() + ENDING_US;
}

#define BASH_TIMEOUT_S   120
#define SHOWN_BYTES_TEXT SHOWN_NUMBER(BASH_SHOWN_BYTES)
/*
 * No call waits longer for one answer: MCP clients and model loops give up between 5 and
 * 10 minutes. A command that needs more time runs in the background.
 */
#define BASH_TIMEOUT_MAX_S 600
/* For servers and long builds. A job that somebody forgot ends after this time. */
#define BASH_JOB_MAX_S 7200

enum {
	NOT_EXECUTABLE = 126,
	CLAIM_BYTES = 16 << 10, /* the end of each stream that is searched for causes */
	CLAIM_SLACK = 256,      /* the line between head and tail */
};

static const struct row bash_params[] = {
	{"command", ROW_COMMAND, true, "Shell text to run", .aliases = "cmd script code",
	 .min = 1, .max = INT32_MAX},
	/* There is no default here, because the policy has it. */
	{"timeout_s", ROW_SECONDS, false,
	 "Seconds until it is ended; " SHOWN_NUMBER(BASH_TIMEOUT_S) " unless told otherwise",
	 .aliases = "timeout"},
	{"workdir", ROW_FOLDER, false,
	 "Folder to run in; else where the last command's cd ended",
	 .aliases = "cwd working_directory directory"},
	{"description", ROW_TEXT, false, "What it is for, in a few words",
	 .aliases = "reason"},
	{"background", ROW_FLAG, false,
	 "Run it as a job: the answer comes at once, the tool job follows it",
	 .aliases = "run_in_background is_background"},
	{"max_bytes", ROW_COUNT, false,
	 "Bytes of output to show; " SHOWN_BYTES_TEXT " unless told otherwise",
	 .aliases = "max_output max_output_bytes", .min = BASH_SHOWN_LEAST,
	 .max = BASH_SHOWN_MOST},
	{"tty", ROW_FLAG, false,
	 "Give it a terminal, for a program that wants one; what it asks is typed with the tool "
	 "job",
	 .aliases = "pty"},
	{0},
};

static void shell_init(struct shell *shell, struct call *call, struct tool_result *result)
{
	memset(shell, 0, sizeof(*shell));
	shell->call = call;
	shell->result = result;
	shell->command = call_str(call, "command");
	bash_shell_init(&shell->bash);
	bash_terminal_init(&shell->terminal);
	file_init(&shell->folder);
	buf_init(&shell->spills, PATH_MAX);
	buf_init(&shell->spill_path, PATH_MAX);
	program_run_init(&shell->run);
}

static void shell_fini(struct shell *shell)
{
	bash_shell_fini(&shell->bash);
	bash_terminal_fini(&shell->terminal);
	fd_close(&shell->run.spill_fd);
	file_fini(&shell->folder);
	buf_fini(&shell->spills);
	buf_fini(&shell->spill_path);
	program_run_fini(&shell->run);
}

/*
 * Find the folder to start in: the argument, else the folder in which the last command
 * ended, else (when this one is gone) the workspace.
 */
static bool find_folder(struct shell *shell, struct err *err)
{
	const char *wanted = call_text(shell->call, "workdir");
	struct files *files = shell->call->files;
	struct stat st;

	if (wanted)
		return files_reach(files, wanted, FILES_FOLDER, &shell->folder, err);
	/*
	 * The usual case. The name of the workspace is its real path, and all of it can
	 * be read.
	 */
	if (shell->call->folder && strcmp(shell->call->folder, shell->call->workspace) == 0 &&
	    files_is_root(files, shell->call->workspace) &&
	    stat(shell->call->workspace, &st) == 0 && S_ISDIR(st.st_mode) && st.st_nlink > 0)
		return buf_adds(&shell->folder.path, shell->call->workspace);
	if (shell->call->folder &&
	    files_reach(files, shell->call->folder, FILES_FOLDER, &shell->folder, err))
		return true;
	shell->folder_was_gone = shell->call->folder != NULL &&
				 strcmp(shell->call->folder, shell->call->workspace) != 0;
	if (files_reach(files, shell->call->workspace, FILES_FOLDER, &shell->folder, err))
		return true;
	/*
	 * Only parts of the workspace may be read, and the folder is the empty one that
	 * holds these parts.
	 */
	if (stat(shell->call->workspace, &st) < 0 || st.st_nlink == 0)
		return false;
	return buf_adds(&shell->folder.path, shell->call->workspace);
}

/* The state of the command's run, for an answer. */
static struct bash_answer shell_answer(const struct shell *shell)
{
	return (struct bash_answer){
		.run = &shell->run,
		.seconds = (double)(clock_now_us() - shell->began_us) / 1e6,
		.job = shell->job.number,
		.command = shell->command,
		.files = shell->call->files,
		.folder = shell->folder.path.data,
		.folder_was_gone = shell->folder_was_gone,
		.max_bytes = (size_t)call_count(shell->call, "max_bytes", BASH_SHOWN_BYTES),
		.is_last = shell->call->is_last,
		.spill_folder = shell->spills.data,
		.timeout_max_s = shell->job.number ? BASH_JOB_MAX_S : BASH_TIMEOUT_MAX_S,
		.description = call_text(shell->call, "description"),
	};
}

/*
 * Take the shell that waits in this worker, or start a new one. Where the policy has a
 * list, there is no shell.
 */
static bool shell_begin(struct shell *shell, struct err *err)
{
	const struct bash_text text = {
		.text = shell->command,
		.folder = shell->folder.path.data,
		.terms = shell->call->terms,
		.environment = shell->call->environment,
		/*
		 * On a terminal, a program is distinguished from the shell by its process
		 * group.
		 */
		.stays = shell->terminal.given,
	};
	struct bash_shell *ready = shell->call->prepared;
	struct program_ahead *ahead = &shell->run.ahead;

	if (shell->call->plan != NULL || shell->terminal.given) {
		/* The waiting shell has no terminal. */
		if (ready != NULL)
			bash_shell_fini(ready);
		ready = NULL;
	}
	if (shell->call->plan != NULL)
		return bash_plan_start(shell->call, text.folder, ahead, err);
	bool ok = ready != NULL && bash_shell_take(ready, &shell->bash, &text);
	ok = (ok || bash_shell_start(&shell->bash, shell->call, text.folder,
				     shell->terminal.pty.slave, err)) &&
	     bash_shell_go(&shell->bash, &text, err);
	if (ok)
		*ahead = bash_shell_take_program(&shell->bash);
	return ok;
}

static bool shell_run(struct shell *shell, struct err *err)
{
	struct program_run *run = &shell->run;

	if (shell->call->plan != NULL && call_flag(shell->call, "tty"))
		return err_set(err, ENOTTY,
			       "Where the policy lists commands they run without a "
			       "shell and a terminal: leave tty away.");
	if (call_flag(shell->call, "tty") && !bash_terminal_open(&shell->terminal, run, err))
		return false;
	if (!shell_begin(shell, err))
		return false;
	shell->pid = run->ahead.pid;
	shell->began_us = clock_now_us();
	run->start.terms = shell->call->terms;
	run->deadline_ms = shell->call->deadline_ms;
	run->grace_s = shell->call->grace_s;
	run->stop_fd = shell->call->control_fd;
	run->stopped = shell_stopped;
	run->output = shell_output;
	run->context = shell;
	if (shell->call->heralds && shell->call->plan == NULL) {
		run->side_fd = shell->bash.folder_fd;
		run->side = shell_tells;
	}
	shell_watch_start(shell);
	return follow_program(run, err);
}

/*
 * The folder that the shell reported last. Every program of the command had the
 * descriptor for this report open, so the folder counts only when it is inside the roots.
 */
static void take_folder(struct shell *shell, struct buf *next)
{
	char *said = shell->told;
	ssize_t more = read(shell->bash.folder_fd, said + shell->told_size,
			    sizeof(shell->told) - 1 - shell->told_size);
	const size_t size = shell->told_size + (more > 0 ? (size_t)more : 0);
	struct file file;
	struct err err;

	if (size < 2 || said[size - 1] != '\n' || said[0] != '/')
		return;
	said[size - 1] = '\0';
	if (strcmp(said, shell->folder.path.data) == 0)
		return;
	file_init(&file);
	if (files_reach(shell->call->files, said, FILES_FOLDER, &file, &err) &&
	    strcmp(file.path.data, shell->folder.path.data) != 0) {
		call_set_folder(shell->call, shell->result, file.path.data);
		buf_addstr(next, buf_str(&file.path));
	}
	file_fini(&file);
}

/*
 * Search the command's output, standard error first, for files and hosts that it could
 * not reach.
 */
static void claim(struct shell *shell)
{
	const struct program_output *streams[] = {&shell->run.error, &shell->run.out};
	const char *folder = shell->folder.path.data;
	struct buf text;

	const int code = shell->run.ending == PROGRAM_ENDED ? shell->run.exit_code : 0;

	/* After "not found" the shell could read the folders, so this is no denial. */
	if (code == INTERACTIVE_NOT_FOUND)
		return;
	buf_init(&text, PROGRAM_HEAD + PROGRAM_TAIL + CLAIM_SLACK);
	for (size_t i = 0; i < 2; i++) {
		buf_clear(&text);
		program_output_text(streams[i], &text);
		if (text.size > CLAIM_BYTES)
			buf_remove(&text, 0, text.size - CLAIM_BYTES);
		if (code == NOT_EXECUTABLE)
			denial_claims_gather_hidden(buf_str(&text), shell->result);
		else
			denial_claims_gather(buf_str(&text), folder, shell->result);
	}
	buf_fini(&text);
}

/*
 * The answer shows only the output since the last answer. `whole` in the details has all
 * of it.
 */
static void add_whole(struct shell *shell, struct bash_answer *told)
{
	struct value *details = tool_details(shell->result);
	struct tool_result whole;

	tool_result_init(&whole);
	value_set_integer(details, "unread_from",
			  (int64_t)(told->since.out + told->since.error));
	told->since = (struct bash_mark){0};
	bash_tell(told, &whole);
	value_set_str(details, "whole", buf_str(&whole.text));
	tool_result_fini(&whole);
}

static void answer(struct shell *shell)
{
	struct buf next;
	struct bash_answer told = shell_answer(shell);

	buf_init(&next, PATH_MAX);
	/* The folder of a job is its own, and does not change that of the session. */
	if (shell->job.number == 0)
		take_folder(shell, &next);
	if (next.size)
		told.next_folder = next.data;
	told.waits = shell->terminal.ended;
	told.spill_path = &shell->spill_path;
	told.since = bash_job_from(&shell->job, -1);
	bash_tell(&told, shell->result);
	if (told.since.out || told.since.error)
		add_whole(shell, &told);
	bash_hints_git_said(shell->command, buf_str(&shell->result->text), shell->result);
	denial_claims_protected(buf_str(&shell->result->text), shell->result);
	limit_watch_tell(&shell->limits, &shell->run, shell->result);
	claim(shell);
	buf_fini(&next);
}

static enum result_status run_shell(struct shell *shell)
{
	const char *wanted = call_text(shell->call, "workdir");
	struct tool_result *result = shell->result;
	struct err err = {0};

	if (memchr(shell->command.data, '\0', shell->command.size))
		return tool_fail(result,
				 "The command holds a NUL byte, which no shell takes. Use "
				 "printf '\\0' to make one.");
	if (!call_flag(shell->call, "tty") &&
	    bash_hints_interactive_refuses(shell->command, shell->call->is_last,
					   &result->text)) {
		result->status = RESULT_FAILED;
		return RESULT_FAILED;
	}
	if (!find_folder(shell, &err))
		return shown_fail(shell->call, result, wanted ? wanted : "The workspace",
				  &err);
	if (!shell_run(shell, &err))
		return tool_fail(result, "The command did not run. %s", err.text);
	call_ending(shell->call);
	answer(shell);
	return result->status;
}

static enum result_status bash_execute(struct call *call, struct tool_result *result)
{
	struct shell shell;
	enum result_status status;

	shell_init(&shell, call, result);
	status = run_shell(&shell);
	shell_fini(&shell);
	return status;
}

static void *bash_prepare(const struct call *call)
{
	struct bash_shell *shell = memory_alloc(sizeof(*shell));
	struct err err;

	bash_shell_init(shell);
	if (bash_shell_start_ahead(shell, call, &err))
		return shell;
	free(shell);
	return NULL;
}

const struct tool bash_tool = {
	.name = "bash",
	.description =
		"Run a shell command. No terminal and no input; the folder carries over "
		"between calls, variables do not. Shows " SHOWN_BYTES_TEXT
		" bytes of output, beginning and end; the rest is kept in a file.",
	.example = "{\"command\": \"make test\", \"timeout_s\": 300}",
	.aliases = "shell run_command execute_command",
	.params = bash_params,
	.effects = EFFECT_RUNS,
	.timeout_s = BASH_TIMEOUT_S,
	.timeout_max_s = BASH_TIMEOUT_MAX_S,
	.job_max_s = BASH_JOB_MAX_S,
	.answers = true,
	.execute = bash_execute,
	.prepare = bash_prepare,
};

/*
 * The tool that asks about the jobs of a session. The session answers it
 * (session/jobs.c), with the worker of the job.
 */

#define JOB_WAIT_S     20
#define JOB_WAIT_MAX_S 600

static const struct row job_params[] = {
	{"id", ROW_ID, false, "Number of the job; may be omitted when there is only one job",
	 .aliases = "job job_id"},
	{"action", ROW_CHOICE, false,
	 "read: what it has printed since it was last asked; wait: until it ends or waits for "
	 "input; input: type on its terminal; signal: send it one; list: all jobs",
	 .choices = "read wait input signal list", .initial = "\"read\""},
	{"since", ROW_COUNT, false,
	 "Show output from this byte on (0: all) instead of what is new"},
	{"input", ROW_TEXT, false, "What is typed, line ends included: \"yes\\n\"",
	 .aliases = "text", .min = 1, .max = 4096},
	{"signal", ROW_CHOICE, false, "Signal to send; TERM unless told otherwise",
	 .choices = "TERM INT KILL HUP QUIT USR1 USR2 STOP CONT"},
	{"timeout_s", ROW_SECONDS, false,
	 "Seconds that wait waits; " SHOWN_NUMBER(JOB_WAIT_S) " unless told otherwise",
	 .aliases = "timeout"},
	{0},
};

const struct tool job_tool = {
	.name = "job",
	.description =
		"Follow a job (bash with background=true, or a call that took too long): "
		"read its output, wait for it, type for it, end it.",
	.example = "{\"id\": 1, \"action\": \"wait\"}",
	.aliases = "jobs",
	.params = job_params,
	.effects = EFFECT_RUNS,
	.timeout_s = JOB_WAIT_S,
	.timeout_max_s = JOB_WAIT_MAX_S,
	.where = IN_JOBS,
};
