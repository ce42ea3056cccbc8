/*
 * plugin_execute: in the worker: one script, one subcommand, and `error` when a run has failed;
 * see plugin_tool.h.
 */
#include "plugins/plugin_tool.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "plugins/describe.h"
#include "plugins/plugin_arguments.h"
#include "plugins/plugin_channel.h"
#include "plugins/plugin_redact.h"
#include "process/follow.h"
#include "process/program.h"
#include "tool/call.h"
#include "tool/limits.h"
#include "tool/spill.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	WORDS_MAX = 1024,
	INPUT_MAX = 64 << 20,
	/* Of the answer: what a model reads of a file; the rest is in a spill. */
	SHOWN_BYTES = 50000,
	SHOWN_LEAST = 2000,   /* of standard output, whatever texts it gave besides */
	ERROR_TAIL = 4 << 10, /* of stderr, behind a failure */
	/* The beginning gets one third: ends of outputs say what went wrong. */
	HEAD_SHARE = 3,
	OUTPUT_MAX = PROGRAM_HEAD + PROGRAM_TAIL + 4096,
	CLEAN_MAX = 4 * OUTPUT_MAX, /* \xHH for a byte */
	CODE_TIMED_OUT = 124,       /* as timeout(1) and shells have them */
	CODE_SIGNAL = 128,
};

/* The time that the subcommand `error` may take. */
#define ERROR_SECONDS 2.0
#define AFTER_SECONDS 3.0 /* kept of the call's own time, when that ends earlier */

struct script {
	struct call *call;
	struct tool_result *result;
	struct arena arena;
	struct plugin_channel channel;
	bool has_channel;
	struct plugin_redact_stream streams[2];
	bool streams_output, streams_error;
	bool runs; /* it does its work: what it prints is kept, too */
	struct spill spill;
	struct text_cut cut; /* of the answer */
	const struct value *secrets;
	struct program_run run;
	struct limit_watch limits;
};

static const struct value *carried(const struct script *script, const char *key)
{
	return value_member(script->call->carried, key);
}

static const char *carried_text(const struct script *script, const char *key)
{
	return value_text(carried(script, key));
}

static bool stopped(void *context)
{
	struct script *script = context;

	if (call_stopped(script->call) && script->call->cancelled)
		return true;
	if (script->has_channel)
		plugin_channel_turn(&script->channel);
	return false;
}

static void show(struct script *script, int stream, struct str bytes)
{
	struct buf shown;

	if (!script->runs)
		return;
	buf_init(&shown, PROGRAM_READ * 4);
	plugin_redact_piece(&script->streams[stream - 1], bytes, &shown);
	spill_add(&script->spill, buf_str(&shown));
	if (stream == 1 ? script->streams_output : script->streams_error)
		call_output(script->call, (enum call_stream)stream, buf_str(&shown));
	buf_fini(&shown);
}

static void output(void *context, int stream, struct str bytes)
{
	show(context, stream, bytes);
}

static void side(void *context)
{
	struct script *script = context;

	/* Ready without a byte: only when all who could write have closed it. */
	if (!plugin_channel_read(&script->channel))
		script->run.side_fd = -1;
}

static void add_variable(struct value *more, const char *name, const char *value)
{
	struct buf text;

	buf_init(&text, PLUGIN_ARGUMENT_MAX);
	if (buf_addf(&text, "%s=%s", name, value))
		value_append(more, value_new_str(buf_str(&text)));
	buf_fini(&text);
}

/* The first python3 that PATH leads to. */
static bool find_python(const char *const *environment, struct buf *path)
{
	for (; *environment != NULL; environment++) {
		struct str list = str_of(*environment), folder;

		if (!str_starts(list, STR("PATH=")))
			continue;
		list = str_part(list, strlen("PATH="), list.size);
		while (path_next_folder(&list, &folder)) {
			buf_clear(path);
			(void)buf_addf(path, "%.*s/python3", (int)folder.size, folder.data);
			if (access(path->data, X_OK) == 0)
				return true;
		}
	}
	return false;
}

static enum plugin_mode mode_of(const struct script *script)
{
	for (int mode = PLUGIN_FLAGS; mode < PLUGIN_MODES; mode++) {
		if (str_is(value_str(carried(script, "mode")),
			   plugin_mode_name((enum plugin_mode)mode)))
			return (enum plugin_mode)mode;
	}
	return PLUGIN_JSON;
}

static bool is_toolbox(const struct script *script)
{
	return mode_of(script) >= PLUGIN_TOOLBOX_JSON;
}

/* From scratch: what every command of the cell has, and what the contract adds. */
static struct value *variables(const struct script *script, bool with_config)
{
	struct value *more = value_new_array();
	const struct value *config = carried(script, "env");
	const char *python = carried_text(script, "python");
	struct buf found;

	buf_init(&found, PLUGIN_ARGUMENT_MAX);
	if (python != NULL)
		add_variable(more, "AGENT_TOOL_PYTHON", python);
	else if (find_python(script->call->environment, &found))
		add_variable(more, "AGENT_TOOL_PYTHON", found.data);
	buf_fini(&found);
	if (is_toolbox(script))
		value_append(more, value_new_text(with_config ? TOOLBOX_EXECUTE
							      : TOOLBOX_DESCRIBE));
	for (size_t i = 0; with_config && i < value_count(config); i++)
		value_append(more, value_ref(value_item(config, i)));
	return more;
}

/* The words of one start; *INPUT_FD becomes what it reads, or stays -1. */
static bool words_of(struct script *script, const char *subcommand, const char *code,
		     const char ***argv, int *input_fd, struct err *err)
{
	const struct plugin_argument_rules rules = {.mode = mode_of(script),
						    .order = carried(script, "order"),
						    .positional =
							    carried(script, "positional")};
	const char **words = arena_alloc(&script->arena, (WORDS_MAX + 1) * sizeof(*words));
	size_t count = 0;
	const char *file = carried_text(script, script->call->has_view ? "file" : "copy");
	const bool tests = strcmp(subcommand, "test") == 0;
	const bool asks = tests || strcmp(subcommand, "schema") == 0;
	struct buf input;
	bool ok = true;

	if (tests)
		words[count++] = str_ends(str_of(file), STR(".bats")) ? "bats" : "bash";
	else if (!is_toolbox(script))
		words[count++] = "bash";
	words[count++] = file;
	if (!is_toolbox(script) && !tests)
		words[count++] = subcommand;
	if (code != NULL)
		words[count++] = code;
	buf_init(&input, INPUT_MAX);
	if (!asks)
		ok = plugin_arguments_build(&rules, script->call->arguments, &script->arena,
					    words, WORDS_MAX, &count, &input, err);
	if (ok && rules.mode >= PLUGIN_JSON && !asks)
		ok = fd_memory_file("arguments", buf_str(&input), input_fd, err);
	buf_fini(&input);
	*argv = words;
	return ok;
}

/* Start it and follow it to its end: script->run then holds what came of it. */
static bool follow(struct script *script, const char *subcommand, const char *code,
		   const struct value *more, int64_t deadline_ms, struct err *err)
{
	struct program_run *run = &script->run;
	const char *folder = carried_text(script, "folder");
	auto_free const char **environment =
		call_environment(script->call->environment, more);
	auto_close int input_fd = -1;
	const char **argv = NULL;

	program_run_init(run);
	if (!words_of(script, subcommand, code, &argv, &input_fd, err))
		return false;
	run->start.argv = argv;
	run->start.environment = environment;
	run->start.folder = folder != NULL ? folder : script->call->workspace;
	run->start.fds[0] = input_fd;
	run->start.terms = script->call->terms;
	run->start.launcher = script->call->launcher;
	run->deadline_ms = deadline_ms;
	run->stop_fd = script->call->control_fd;
	run->stopped = stopped;
	run->output = output;
	run->context = script;
	if (script->has_channel) {
		run->start.placed_fds = script->channel.script_fds;
		run->side_fd = script->channel.read_fd;
		run->side = side;
	}
	limit_watch_start(&script->limits, script->call, run);
	return program_follow(run, err);
}

/* PART as a reader sees it: without secrets, escapes and NUL. */
static void clean_part(const struct script *script, struct str part, struct buf *out)
{
	struct buf plain;

	buf_init(&plain, OUTPUT_MAX);
	(void)buf_addstr(&plain, part);
	plugin_redact(script->secrets, &plain);
	(void)text_clean(buf_str(&plain), out);
	buf_fini(&plain);
}

/* The beginning of TEXT that fits in MOST bytes, in whole lines when there is one. */
static struct str beginning(struct str text, size_t most)
{
	const char *feed;

	if (text.size <= most)
		return text;
	feed = memrchr(text.data, '\n', most);
	return str_part(text, 0,
			feed != NULL ? (size_t)(feed - text.data) + 1
				     : text_character_border(text, most));
}

/* Likewise its end. */
static struct str ending(struct str text, size_t most)
{
	size_t from = text.size > most ? text.size - most : 0;
	const char *feed = from > 0 ? memchr(text.data + from - 1, '\n', most + 1) : NULL;

	if (feed != NULL && feed + 1 < text.data + text.size)
		from = (size_t)(feed - text.data) + 1;
	else
		from = text_character_border(text, from);
	return str_part(text, from, text.size - from);
}

/* An output whose middle was never kept. */
static void add_torn(struct script *script, const struct program_output *from,
		     size_t most, struct buf *text)
{
	uint64_t missing = program_output_missing(from);
	struct buf kept, head, tail;

	buf_init(&kept, PROGRAM_TAIL);
	buf_init(&head, CLEAN_MAX);
	buf_init(&tail, CLEAN_MAX);
	program_output_tail(from, &kept);
	clean_part(script, buf_str(&from->head), &head);
	clean_part(script, buf_str(&kept), &tail);
	const struct str first = beginning(buf_str(&head), most / HEAD_SHARE);
	const struct str last = ending(buf_str(&tail), most - most / HEAD_SHARE);
	missing += head.size - first.size + tail.size - last.size;
	(void)buf_addstr(text, first);
	(void)buf_end_line(text);
	(void)buf_addf(text, "[… %llu bytes left out …]\n", (unsigned long long)missing);
	(void)buf_addstr(text, last);
	script->cut.bytes += (size_t)missing;
	buf_fini(&tail);
	buf_fini(&head);
	buf_fini(&kept);
}

static void add_output(struct script *script, const struct program_output *from,
		       size_t most, struct buf *text)
{
	const struct text_limits limits = {.bytes = most};
	struct text_cut cut = {0};
	struct buf whole, clean;

	if (program_output_missing(from) > 0) {
		add_torn(script, from, most, text);
		return;
	}
	buf_init(&whole, OUTPUT_MAX);
	buf_init(&clean, CLEAN_MAX);
	program_output_text(from, &whole);
	clean_part(script, buf_str(&whole), &clean);
	(void)text_shorten(buf_str(&clean), &limits, text, &cut);
	script->cut.bytes += cut.bytes;
	script->cut.lines += cut.lines;
	buf_fini(&clean);
	buf_fini(&whole);
}

/* The line of the spill that the gap begins at; both streams are mixed there. */
static size_t line_of_gap(const struct script *script, struct str text)
{
	size_t gap = str_find(text, STR("[… "), 0);

	if (script->run.error.total > 0 || gap == (size_t)-1)
		return 1;
	return 1 + text_count_lines(str_part(text, 0, gap));
}

/* Of an answer that was cut: where the rest is, with the call that reads it. */
static void add_rest(struct script *script)
{
	struct tool_result *result = script->result;
	const struct spill *spill = &script->spill;
	struct buf *text = &result->text, path;
	char size[32];

	result->left_out_bytes += script->cut.bytes;
	result->left_out_lines += script->cut.lines;
	if (script->cut.bytes == 0)
		return;
	const size_t line = line_of_gap(script, buf_str(text));
	(void)buf_end_line(text);
	(void)buf_addf(text, "[left out: %s", text_size(script->cut.bytes, size));
	buf_init(&path, PATH_MAX);
	if (script->call->is_last || !spill_name(spill, &path)) {
		(void)buf_adds(text, ", which is not kept: ask it for less]\n");
	} else {
		(void)buf_addf(text,
			       " of %s; read_file {\"path\": \"%s\", \"start_line\": %zu} "
			       "shows the rest",
			       text_size(spill->kept + spill->dropped, size), path.data,
			       line);
		if (spill->dropped > 0)
			(void)buf_addf(text, " of the first %s; what came later is not kept",
				       text_size(spill->kept, size));
		(void)buf_adds(text, "]\n");
		value_set_text(tool_details(result), "spill", path.data);
	}
	buf_fini(&path);
}

/* The bound that it met, and who may raise that of a run. */
static void add_lateness(const struct script *script, double timeout_s, struct buf *text)
{
	const bool own = timeout_s >= value_number(carried(script, "timeout_s"));
	const bool said = script->run.out.total + script->run.error.total > 0;

	(void)buf_addf(text,
		       "Timed out after %g s, and was ended with all it had started; %s.",
		       timeout_s,
		       said ? "what it had printed stands above" : "it had printed nothing");
	if (strcmp(carried_text(script, "subcommand"), "run") == 0)
		(void)buf_addf(text, " Ask it for less at once, or have the user raise %s.",
			       own ? "plugin_policy.bash_timeout_seconds"
				   : "limits.wall_s of this agent");
}

/* Returns what the texts of descriptor 3 leave of the answer to standard output. */
static size_t room_of(const struct script *script)
{
	const size_t shown = script->channel.text_shown;

	return shown < SHOWN_BYTES - SHOWN_LEAST ? SHOWN_BYTES - shown : SHOWN_LEAST;
}

/* The default for a run that failed: what it printed, why, and how it ended. */
static void add_failure(struct script *script, double timeout_s)
{
	const struct program_run *run = &script->run;
	struct buf *text = &script->result->text;
	const char *signal_name = run->signal ? sigabbrev_np(run->signal) : NULL;

	add_output(script, &run->out, room_of(script), text);
	(void)buf_end_line(text);
	if (run->error.total > 0) {
		(void)buf_adds(text, "STDERR:\n");
		add_output(script, &run->error, ERROR_TAIL, text);
		(void)buf_end_line(text);
	}
	if (run->ending == PROGRAM_TIMED_OUT)
		add_lateness(script, timeout_s, text);
	else if (run->ending == PROGRAM_CANCELLED)
		(void)buf_addf(text, "Cancelled after %.1f s.", run->seconds);
	else if (run->signal)
		(void)buf_addf(text, "It was ended by signal %d (SIG%s) after %.2f s.",
			       run->signal, signal_name ? signal_name : "?", run->seconds);
	else
		(void)buf_addf(text, "It failed with exit code %d after %.2f s.",
			       run->exit_code, run->seconds);
}

static void add_late(struct value *variables, double timeout_s)
{
	char seconds[32];

	(void)snprintf(seconds, sizeof(seconds), "%g", timeout_s);
	add_variable(variables, "AGENT_TOOL_TIMED_OUT", "1");
	add_variable(variables, "AGENT_TOOL_TIMEOUT_SECONDS", seconds);
}

/* The script's own words for its failure, when it has some. */
static bool ask_for_words(struct script *script, const struct value *more,
			  double timeout_s, struct buf *words)
{
	const struct program_run failed = script->run;
	const struct limit_watch failed_limits = script->limits;
	const bool late = failed.ending == PROGRAM_TIMED_OUT;
	auto_value struct value *variables = value_copy(more);
	char code[16];
	struct err err;

	(void)snprintf(code, sizeof(code), "%d",
		       late            ? CODE_TIMED_OUT
		       : failed.signal ? CODE_SIGNAL + failed.signal
				       : failed.exit_code);
	if (late)
		add_late(variables, timeout_s);
	bool ok = follow(script, "error", code, variables, clock_deadline(ERROR_SECONDS),
			 &err);
	ok = ok && script->run.ending == PROGRAM_ENDED && script->run.exit_code == 0 &&
	     script->run.out.total > 0;
	if (ok)
		add_output(script, &script->run.out, SHOWN_BYTES, words);
	program_run_fini(&script->run);
	script->run = failed;
	script->limits = failed_limits;
	return ok && str_trim(buf_str(words)).size > 0;
}

static double time_of(const struct script *script)
{
	double own = value_number(carried(script, "timeout_s"));
	double left = (double)(script->call->deadline_ms - clock_now_ms()) / 1000;

	if (script->call->deadline_ms == CLOCK_NEVER || own + AFTER_SECONDS <= left)
		return own;
	return left > 2 * AFTER_SECONDS ? left - AFTER_SECONDS : left / 2;
}

static void fail_run(struct script *script, const struct value *more, double timeout_s)
{
	struct tool_result *result = script->result;
	const struct program_run *run = &script->run;
	const struct text_cut before = script->cut;
	struct buf words;

	script->runs = script->has_channel = false;
	buf_init(&words, OUTPUT_MAX);
	if (run->ending != PROGRAM_CANCELLED && !is_toolbox(script) &&
	    ask_for_words(script, more, timeout_s, &words)) {
		(void)buf_addstr(&result->text, buf_str(&words));
	} else {
		script->cut = before;
		add_failure(script, timeout_s);
	}
	buf_fini(&words);
	result->status = run->ending == PROGRAM_TIMED_OUT   ? RESULT_TIMED_OUT
			 : run->ending == PROGRAM_CANCELLED ? RESULT_CANCELLED
							    : RESULT_FAILED;
}

static void end_streams(struct script *script)
{
	for (int stream = 1; stream <= 2; stream++) {
		show(script, stream, (struct str){0});
		plugin_redact_end(&script->streams[stream - 1]);
	}
}

static enum result_status run_script(struct script *script)
{
	struct tool_result *result = script->result;
	auto_value struct value *more = variables(script, true);
	const double timeout_s = time_of(script);
	struct plugin_channel *channel = &script->channel;
	struct err err = {0};

	script->runs = script->streams_output = true;
	script->streams_error = value_is_true(carried(script, "stream_stderr"));
	for (int i = 0; i < 2; i++)
		plugin_redact_begin(&script->streams[i], script->secrets);
	bool ok = plugin_channel_open(channel, script->call, result, script->secrets,
				      &script->spill, &err);
	script->has_channel = ok;
	ok = ok && follow(script, "run", NULL, more, clock_deadline(timeout_s), &err);
	end_streams(script);
	plugin_channel_end(channel);
	script->cut = channel->cut;
	if (!ok) {
		(void)tool_fail(result, "%s: %s", carried_text(script, "id"), err.text);
	} else {
		result->exit_code = script->run.exit_code;
		result->signal = script->run.signal;
		if (script->run.ending == PROGRAM_ENDED && script->run.exit_code == 0) {
			add_output(script, &script->run.out, room_of(script), &result->text);
			(void)tool_done(result);
		} else {
			fail_run(script, more, timeout_s);
		}
		add_rest(script);
		limit_watch_tell(&script->limits, &script->run, result);
	}
	plugin_channel_close(channel);
	return result->status;
}

/* The first line without what a terminal obeys. */
static void add_preview(struct str output, struct buf *text)
{
	struct str line;

	if (!str_next_line(&output, &line))
		return;
	for (size_t at = 0, shown = 0; at < line.size && shown < PLUGIN_PREVIEW_MAX;) {
		struct str rest = str_part(line, at, line.size - at);
		size_t length = text_utf8_length(rest);
		const unsigned char *byte = (const unsigned char *)rest.data;
		/* U+0080 to U+009F, too */
		bool control = length == 0 || byte[0] < 0x20 || byte[0] == 0x7f ||
			       (byte[0] == 0xc2 && length == 2 && byte[1] < 0xa0);

		if (!control) {
			(void)buf_add(text, rest.data, length);
			shown++;
		}
		at += length > 0 ? length : 1;
	}
}

static enum result_status look(struct script *script, const char *subcommand)
{
	struct tool_result *result = script->result;
	const bool preview = strcmp(subcommand, "preview") == 0;
	const bool asks = strcmp(subcommand, "schema") == 0;
	const char *code = carried_text(script, "code");
	const double late_s = value_number(carried(script, "late_s"));
	auto_value struct value *more = variables(script, code != NULL);
	const struct program_run *run = &script->run;
	struct err err = {0};
	struct buf output;

	if (late_s > 0)
		add_late(more, late_s);
	if (!follow(script, subcommand, code, more, clock_deadline(time_of(script)), &err))
		return tool_fail(result, "%s: %s", subcommand, err.text);
	result->exit_code = run->exit_code;
	result->signal = run->signal;
	const bool ended = run->ending == PROGRAM_ENDED && run->exit_code == 0;
	if (!ended && !preview) {
		add_failure(script, value_number(carried(script, "timeout_s")));
		result->status = run->ending == PROGRAM_TIMED_OUT ? RESULT_TIMED_OUT
								  : RESULT_FAILED;
		return result->status;
	}
	if (asks && run->out.total > PLUGIN_SCHEMA_MAX)
		return tool_fail(result, "over %d bytes were printed", PLUGIN_SCHEMA_MAX);
	if (!preview && !asks) {
		add_output(script, &run->out, SHOWN_BYTES, &result->text);
		return tool_done(result);
	}
	buf_init(&output, OUTPUT_MAX);
	program_output_text(&run->out, &output);
	if (asks)
		(void)buf_addstr(&result->text, buf_str(&output));
	else if (ended)
		add_preview(buf_str(&output), &result->text);
	buf_fini(&output);
	return tool_done(result);
}

static enum result_status plugin_execute(struct call *call, struct tool_result *result)
{
	struct script script = {.call = call, .result = result};
	const char *subcommand = carried_text(&script, "subcommand");

	if (subcommand == NULL || carried_text(&script, "file") == NULL ||
	    carried_text(&script, "copy") == NULL)
		return tool_fail(result, "No script to run.");
	/* A toolbox has no subcommand for a preview or an error. */
	if (is_toolbox(&script) && !str_among("run schema", str_of(subcommand)))
		return tool_done(result);
	script.secrets = carried(&script, "secrets");
	script.spill = (struct spill){.environment = call->environment, .fd = -1};
	arena_init(&script.arena);
	program_run_init(&script.run);
	if (strcmp(subcommand, "run") == 0)
		(void)run_script(&script);
	else
		(void)look(&script, subcommand);
	spill_fini(&script.spill);
	program_run_fini(&script.run);
	arena_fini(&script.arena);
	return result->status;
}

static const struct tool_param no_params[] = {{0}};

const struct tool plugin_tool = {
	.name = "plugin",
	.description = "Carry out a tool that is a script.",
	.example = "{}",
	.params = no_params,
	.effects = EFFECT_RUNS,
	.timeout_s = 60,
	.internal = true,
	.execute = plugin_execute,
};
