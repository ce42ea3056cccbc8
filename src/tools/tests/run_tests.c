/*
 * run_tests: runs the tests of a project by the project's own runner and says which
 * failed, where and why. Only the runner's exit code decides whether they passed; failed
 * tests are run once more.
 */

#include "tools/tests/run_tests.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/pattern.h"
#include "base/text/text.h"
#include "files/files.h"
#include "process/follow.h"
#include "process/program.h"
#include "tool/call.h"
#include "tool/denial.h"
#include "tool/limits.h"
#include "tools/shell.h"
#include "tools/shown.h"
#include "tools/tests/report.h"
#include "tools/tools.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct test_choice {
	const struct test_runner *runner;
	struct test_project project;
	const char *prefix; /* of the project's folder in the workspace: "" or "sub/" */
	/* the name of the file that shows the runner; NULL: the runner was asked for */
	const char *because;
	const char *file; /* of the call, relative to the project's folder; or NULL */
	bool file_is_folder;
};

/* The result of one plan: one program after the other, until one fails. */
struct test_ran {
	struct test_report report;
	size_t step; /* the last one that ran */
	size_t steps;
	const char *const *argv; /* of that step */
	enum program_ending ending;
	int exit_code, signal;
	int64_t began_ms;
	double seconds;
	unsigned left_processes;
	struct buf out, error; /* of that step */
	struct limit_watch limits;
	struct program_run run; /* of that step, for limit_watch_tell */
};

/* The log of all programs of a call. */
struct test_log {
	int fd; /* -1: there is none */
	uint64_t bytes, dropped;
};

struct test_answer {
	struct call *call;
	const struct test_choice *choice;
	struct test_ran *first;
	const struct test_ran *again; /* the failures' second run, or NULL */
	struct test_log *log;
	const char *log_folder;
	const char *filter, *suite;
};

/* The answer about a test run, for a model. */

enum {
	SHOWN_FAILURES = 10,
	SHOWN_LINES = 20,       /* of each */
	SHOWN_LINE_BYTES = 300, /* of each such line */
	/*
	 * The part of the output that is shown when no failed test explains the exit
	 * code.
	 */
	END_LINES = 60,
	END_BYTES = 8000,
	DETAIL_FAILURES = 200,
	CLAIM_BYTES = 16 << 10, /* the end of each stream that is searched for causes */
	ARGV_SHOWN = 2000,
};

static bool is_flaky(const struct test_answer *answer, const struct test_failure *failure)
{
	const struct test_ran *again = answer->again;

	if (again == NULL || failure->failed_again)
		return false;
	/*
	 * When passed tests have no names, a run without a failure shows that the test
	 * passed.
	 */
	return failure->passed_again || (again->ending == PROGRAM_ENDED &&
					 again->exit_code == 0 && again->report.passed > 0);
}

static size_t count_flaky(const struct test_answer *answer)
{
	size_t flaky = 0;

	for (size_t i = 0; i < answer->first->report.count; i++)
		flaky += is_flaky(answer, &answer->first->report.failures[i]);
	return flaky;
}

static void add_counts(const struct test_report *report, struct buf *text)
{
	buf_addf(text, "%" PRIu64 " failed, %" PRIu64 " passed, %" PRIu64 " skipped",
		 report->failed, report->passed, report->skipped);
}

static void add_argv(const struct test_ran *ran, struct buf *text)
{
	struct buf line;

	buf_init(&line, 64 << 10);
	for (const char *const *at = ran->argv; *at != NULL; at++)
		(void)buf_addf(&line, "%s%s", at == ran->argv ? "" : " ", *at);
	text_add_name(text, str_part(buf_str(&line), 0, ARGV_SHOWN));
	buf_fini(&line);
}

static void add_ending(const struct test_answer *answer, struct buf *text)
{
	const struct test_ran *ran = answer->first;

	if (ran->ending == PROGRAM_TIMED_OUT)
		buf_addf(text,
			 "timed out after %.1f s and was ended: a longer timeout_s, or a part by "
			 "`file` or `filter`",
			 ran->seconds);
	else if (ran->ending == PROGRAM_CANCELLED)
		buf_addf(text, "cancelled after %.1f s", ran->seconds);
	else if (ran->ending == PROGRAM_QUIET)
		buf_addf(text, "ended after %.1f s for saying nothing", ran->seconds);
	else if (ran->ending == PROGRAM_LIMITED)
		buf_addf(text, "ended after %.1f s for using too much", ran->seconds);
	else if (ran->signal != 0)
		buf_addf(text, "ended by signal %d (SIG%s) after %.2f s", ran->signal,
			 sigabbrev_np(ran->signal) != NULL ? sigabbrev_np(ran->signal) : "?",
			 ran->seconds);
	else
		buf_addf(text, "exit code %d, %.2f s", ran->exit_code, ran->seconds);
}

/* The first line, with the most important facts. */
static void add_head(const struct test_answer *answer, struct buf *text)
{
	const struct test_ran *ran = answer->first;
	const struct test_report *report = &ran->report;
	size_t flaky = count_flaky(answer);

	if (ran->step + 1 < ran->steps) {
		buf_adds(text, "No test ran, for the build did not succeed: ");
		add_argv(ran, text);
		buf_adds(text, "\n");
	} else if (test_report_total(report) > 0) {
		add_counts(report, text);
		if (ran->ending != PROGRAM_ENDED)
			buf_adds(text, " when it was ended");
		if (flaky > 0)
			buf_addf(text, "; %zu of the failed passed when run again (flaky)",
				 flaky);
		buf_adds(text, "\n");
		if (report->failed > 0 && ran->ending == PROGRAM_ENDED &&
		    ran->exit_code == 0)
			buf_adds(text, "Its exit code 0 says that this is no failure.\n");
	} else {
		buf_adds(text, "No test was counted");
		if (answer->filter != NULL || answer->suite != NULL)
			buf_adds(text, ": perhaps no name fits");
		buf_adds(text, "\n");
	}
}

/* Is LINE empty, or a frame of the runner itself in a trace? */
static bool is_noise(struct str line)
{
	static const char *const own[] = {"(node:", "node:internal/", "/node_modules/",
					  "with `RUST_BACKTRACE="};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (str_find(line, str_of(own[i]), 0) != (size_t)-1)
			return true;
	}
	line = str_trim(line);
	return line.size == 0 || str_is(line, "...");
}

/* The number of blanks with which all lines of TEXT begin. */
static size_t common_indent(struct str text)
{
	size_t least = SIZE_MAX;
	struct str line;

	while (str_next_line(&text, &line)) {
		size_t indent = 0;

		while (indent < line.size && line.data[indent] == ' ')
			indent++;
		if (!is_noise(line) && indent < least)
			least = indent;
	}
	return least;
}

/* The first lines of the words of one failure, indented. */
static void add_words(const char *words, struct buf *text)
{
	struct text_limits limits = {.line_bytes = SHOWN_LINE_BYTES};
	struct text_cut unused;
	struct buf clean, cut;
	size_t lines = 0, indent;
	struct str rest, line;

	buf_init(&clean, 4 * (size_t)TEST_TEXT_MAX + 1);
	buf_init(&cut, 8 * (size_t)TEST_TEXT_MAX + 1);
	(void)text_clean(str_of(words), &clean);
	(void)text_shorten(buf_str(&clean), &limits, &cut, &unused);
	rest = buf_str(&cut);
	indent = common_indent(rest);
	while (str_next_line(&rest, &line)) {
		if (is_noise(line))
			continue;
		if (lines++ >= SHOWN_LINES)
			continue;
		(void)buf_adds(text, "    ");
		(void)buf_addstr(text, str_part(line, indent, SIZE_MAX));
		(void)buf_addc(text, '\n');
	}
	if (lines > SHOWN_LINES)
		buf_addf(text, "    [… %zu more line%s]\n", lines - SHOWN_LINES,
			 lines == SHOWN_LINES + 1 ? "" : "s");
	buf_fini(&clean);
	buf_fini(&cut);
}

static void add_failures(const struct test_answer *answer,
			 const struct test_report *report, struct buf *text)
{
	for (size_t i = 0; i < report->count && i < SHOWN_FAILURES; i++) {
		const struct test_failure *failure = &report->failures[i];

		buf_addf(text, "\n%zu. ", i + 1);
		text_add_name(text, str_of(failure->name));
		if (failure->file != NULL) {
			(void)buf_adds(text, "  ");
			text_add_name(text, str_of(failure->file));
			if (failure->line > 0)
				buf_addf(text, ":%" PRIu64, failure->line);
		}
		(void)buf_adds(text, is_flaky(answer, failure) ? "  (flaky)\n" : "\n");
		add_words(failure->text, text);
	}
	if (report->failed > SHOWN_FAILURES)
		buf_addf(text, "\n[… %" PRIu64 " more failed]\n",
			 report->failed - SHOWN_FAILURES);
}

/* The end of an output, when nothing else says why the run failed. */
static void add_end(const struct buf *output, const char *title, struct buf *text)
{
	const struct text_limits limits = {.line_bytes = SHOWN_LINE_BYTES};
	struct str all = buf_str(output), end = all;
	struct text_cut unused;
	struct buf clean;
	size_t lines = 0;

	if (str_trim(all).size == 0)
		return;
	if (end.size > END_BYTES)
		end = str_part(end, end.size - END_BYTES, SIZE_MAX);
	for (size_t at = end.size; at > 1 && lines < END_LINES; at--) {
		lines += end.data[at - 2] == '\n';
		if (lines == END_LINES)
			end = str_part(end, at - 1, SIZE_MAX);
	}
	buf_init(&clean, 4 * (size_t)END_BYTES + 1);
	(void)text_clean(end, &clean);
	buf_addf(text, "%s%s:\n", title, end.size < all.size ? " (its end)" : "");
	(void)text_shorten(buf_str(&clean), &limits, text, &unused);
	(void)buf_end_line(text);
	buf_fini(&clean);
}

static void add_log(const struct test_answer *answer, struct tool_result *result)
{
	struct test_log *log = answer->log;
	struct buf *text = &result->text, path;
	char size[32];

	buf_init(&path, PATH_MAX);
	if (log->fd < 0 || log->bytes == 0 || answer->call->is_last ||
	    !spill_keep(log->fd, answer->log_folder, &path)) {
		buf_fini(&path);
		return;
	}
	buf_addf(text, "; all it printed (%s): read_file {\"path\": \"%s\"}",
		 text_size(log->bytes, size), path.data);
	if (log->dropped > 0)
		buf_addf(text, ", without the last %s", text_size(log->dropped, size));
	value_set_text(tool_details(result), "spill", path.data);
	buf_fini(&path);
}

static struct value *list_failures(const struct test_answer *answer,
				   const struct test_report *report)
{
	struct value *failures = value_new_array();

	for (size_t i = 0; i < report->count && i < DETAIL_FAILURES; i++) {
		struct value *one = value_new_object();

		value_set_text(one, "name", report->failures[i].name);
		if (report->failures[i].file != NULL)
			value_set_text(one, "file", report->failures[i].file);
		if (report->failures[i].line > 0)
			value_set_integer(one, "line", (int64_t)report->failures[i].line);
		value_set_text(one, "text", report->failures[i].text);
		value_set_boolean(one, "flaky", is_flaky(answer, &report->failures[i]));
		value_append(failures, one);
	}
	return failures;
}

/* Add the details that are already known while the tests run. */
static void add_details_so_far(const struct test_answer *answer,
			       const struct test_report *report, struct value *details)
{
	value_set_text(details, "runner", answer->choice->runner->name);
	value_set_text(details, "folder", answer->choice->project.folder);
	value_set(details, "argv", value_new_texts(answer->first->argv));
	value_set_integer(details, "passed", (int64_t)report->passed);
	value_set_integer(details, "failed", (int64_t)report->failed);
	value_set_integer(details, "skipped", (int64_t)report->skipped);
	value_set(details, "failures", list_failures(answer, report));
}

static void add_details(const struct test_answer *answer, struct tool_result *result)
{
	const struct test_report *report = &answer->first->report;
	struct value *details = tool_details(result);

	add_details_so_far(answer, report, details);
	value_set_integer(details, "flaky", (int64_t)count_flaky(answer));
	value_set_real(details, "test_seconds", answer->first->seconds);
	value_set_boolean(details, "rerun", answer->again != NULL);
	value_set_boolean(details, "timed_out", answer->first->ending == PROGRAM_TIMED_OUT);
}

/*
 * Search the output for files and hosts that the tests could not reach; the session knows
 * why.
 */
static void claim(const struct test_answer *answer, struct tool_result *result)
{
	const struct buf *streams[] = {&answer->first->error, &answer->first->out};

	if (answer->first->ending != PROGRAM_ENDED || answer->first->exit_code == 0)
		return;
	for (size_t i = 0; i < 2; i++) {
		struct str all = buf_str(streams[i]);
		size_t from = all.size > CLAIM_BYTES ? all.size - CLAIM_BYTES : 0;

		denial_claims_gather(str_part(all, from, SIZE_MAX),
				     answer->choice->project.folder, result);
	}
}

static void add_runner(const struct test_answer *answer, struct buf *text)
{
	buf_adds(text, answer->choice->runner->name);
	if (answer->choice->prefix[0] != '\0') {
		buf_adds(text, " in ");
		shown_add(str_of(answer->choice->prefix), text);
	}
}

/*
 * The answer about a run that goes on as job JOB. SEEN has the results so far. ANSWER's
 * `first` is the run under way; SEEN's `first` is set when it is a second run.
 */
static void test_tell_so_far(const struct test_answer *answer,
			     const struct test_report *seen, int64_t job,
			     struct tool_result *result)
{
	const struct test_ran *ran = answer->first;
	const struct test_report *report =
		ran->report.first != NULL ? ran->report.first : seen;
	struct buf *text = &result->text;

	if (ran->step + 1 < ran->steps) {
		buf_adds(text, "No test runs yet, it builds: ");
		add_argv(ran, text);
		buf_adds(text, "\n");
	} else if (test_report_total(report) > 0) {
		add_counts(report, text);
		if (report != seen) {
			buf_adds(text, "; what failed is run once more\n");
		} else {
			buf_adds(text, " so far; the last one seen: ");
			text_add_name(text, str_of(report->last));
			buf_adds(text, "\n");
		}
	} else {
		buf_adds(text, "No test was counted so far\n");
	}
	add_failures(answer, report, text);
	if (test_report_total(report) == 0) {
		add_end(&ran->out, "OUTPUT", text);
		add_end(&ran->error, "STDERR", text);
	}
	buf_addf(text, "[job %" PRId64 " is running, %.1f s; ", job,
		 (double)(clock_now_ms() - ran->began_ms) / 1000);
	add_runner(answer, text);
	buf_adds(text, "]\n");
	add_details_so_far(answer, report, tool_details(result));
	(void)tool_done(result);
}

/* Fill RESULT: status, text, details. Keep the log. */
static void test_tell(const struct test_answer *answer, struct tool_result *result)
{
	struct test_ran *ran = answer->first;
	struct buf *text = &result->text;
	bool succeeded = ran->ending == PROGRAM_ENDED && ran->exit_code == 0;

	result->exit_code = ran->exit_code;
	result->signal = ran->signal;
	result->status = ran->ending == PROGRAM_TIMED_OUT   ? RESULT_TIMED_OUT
			 : ran->ending == PROGRAM_CANCELLED ? RESULT_CANCELLED
							    : RESULT_DONE;
	add_head(answer, text);
	add_failures(answer, &ran->report, text);
	if (ran->report.count == 0 && (!succeeded || test_report_total(&ran->report) == 0)) {
		add_end(&ran->out, "OUTPUT", text);
		add_end(&ran->error, "STDERR", text);
	}
	buf_adds(text, "[");
	add_runner(answer, text);
	buf_adds(text, ": ");
	add_ending(answer, text);
	if (ran->left_processes > 0)
		buf_addf(text, "; %u process%s left running %s ended",
			 ran->left_processes, ran->left_processes == 1 ? "" : "es",
			 ran->left_processes == 1 ? "was" : "were");
	if (answer->again != NULL && answer->again->ending != PROGRAM_ENDED)
		buf_adds(text, "; the second run of what failed did not come to its end");
	add_details(answer, result);
	add_log(answer, result);
	buf_adds(text, "]\n");
	limit_watch_tell(&ran->limits, &ran->run, result);
	claim(answer, result);
}

/* Runs the programs of a plan, one after the other. */

enum {
	/* Bytes of a stream that are read for tests. Its end is read as well. */
	OUT_MAX = 8 << 20,
	ERROR_MAX = 2 << 20,
	REPORT_MAX = 12 << 20, /* of the file that a runner writes */
};

struct runs {
	struct call *call;
	const struct test_choice *choice;
	const struct test_plan *plan;
	struct test_ran *ran;
	struct test_log *log;
};

static void test_ran_init(struct test_ran *ran, const struct test_choice *choice)
{
	memset(ran, 0, sizeof(*ran));
	test_report_init(&ran->report, choice->project.folder, choice->prefix);
	/* One more for the line end between the two parts. */
	buf_init(&ran->out, OUT_MAX + PROGRAM_TAIL + 1);
	buf_init(&ran->error, ERROR_MAX + PROGRAM_TAIL + 1);
	program_run_init(&ran->run);
	ran->exit_code = -1;
}

static void test_ran_fini(struct test_ran *ran)
{
	test_report_fini(&ran->report);
	program_run_fini(&ran->run);
	buf_fini(&ran->out);
	buf_fini(&ran->error);
}

/*
 * Read a file that a runner wrote. Tests may have put something else in its place, which
 * is not read.
 */
static void read_file(const char *path, struct buf *content)
{
	auto_close int fd = -1;
	struct stat st;

	if (path != NULL)
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	/* Of a file that is too large the beginning is read. */
	(void)fd_read_all(fd, content, path, NULL);
}

/* Read the output of the plan's last step so far into REPORT. */
static void read_tests(const struct runs *runs, struct test_report *report)
{
	const struct test_plan *plan = runs->plan;
	struct buf written, progress;

	buf_init(&written, REPORT_MAX);
	buf_init(&progress, REPORT_MAX);
	read_file(plan->report, &written);
	read_file(plan->progress, &progress);
	const struct test_output output = {
		.out = buf_str(&runs->ran->out),
		.error = buf_str(&runs->ran->error),
		.report = buf_str(&written),
		.progress = buf_str(&progress),
		.module = plan->module,
	};
	runs->choice->runner->parse(&output, report);
	buf_fini(&written);
	buf_fini(&progress);
}

static void tell_so_far(const struct runs *runs, int64_t job, struct tool_result *result)
{
	const struct test_answer answer = {
		.call = runs->call,
		.choice = runs->choice,
		.first = runs->ran,
	};
	struct test_report seen;

	test_report_init(&seen, runs->choice->project.folder, runs->choice->prefix);
	if (runs->ran->step + 1 == runs->ran->steps)
		read_tests(runs, &seen);
	test_tell_so_far(&answer, &seen, job, result);
	test_report_fini(&seen);
}

/*
 * Answer a question to this job. A signal cancels the run, and the results so far are
 * reported.
 */
static void asked(const struct runs *runs, const struct ask *ask)
{
	struct tool_result result;

	tool_result_init(&result);
	if (ask->reads) {
		tell_so_far(runs, ask->job, &result);
	} else if (ask->signal == SIGTERM || ask->signal == SIGINT ||
		   ask->signal == SIGKILL) {
		runs->call->cancelled = true;
		(void)tool_done(&result);
	} else if (ask->signal > 0) {
		(void)tool_fail(&result,
				"Of tests that run only TERM is taken: it ends them.");
	} else {
		(void)tool_fail(&result, "This job takes no input.");
	}
	ask_answer(runs->call, &result);
	tool_result_fini(&result);
}

static bool stopped(void *context)
{
	const struct runs *runs = context;
	struct ask ask;

	while (ask_next(runs->call, &ask)) {
		asked(runs, &ask);
		ask_fini(&ask);
	}
	return runs->call->cancelled;
}

static void take_output(void *context, int stream, struct str bytes)
{
	struct runs *runs = context;
	struct buf *kept = stream == 1 ? &runs->ran->out : &runs->ran->error;
	size_t max = stream == 1 ? OUT_MAX : ERROR_MAX;

	if (kept->size < max)
		(void)buf_addstr(kept, str_part(bytes, 0, max - kept->size));
	call_output(runs->call, stream == 1 ? CALL_STDOUT : CALL_STDERR, bytes);
}

/*
 * Add the end of a stream that was longer than its kept part, because the sums are at the
 * end.
 */
static void add_tail(const struct program_output *output, size_t max, struct buf *kept)
{
	struct buf tail;

	if (output->total <= max)
		return;
	buf_init(&tail, PROGRAM_TAIL);
	follow_output_tail(output, &tail);
	(void)buf_end_line(kept);
	if (output->total - max < tail.size)
		(void)buf_addstr(kept, str_part(buf_str(&tail),
						tail.size - (size_t)(output->total - max),
						SIZE_MAX));
	else
		(void)buf_addstr(kept, buf_str(&tail));
	buf_fini(&tail);
}

/* The log shows the programs too. */
static void log_argv(struct test_log *log, const char *const *argv)
{
	struct buf line;

	if (log->fd < 0)
		return;
	buf_init(&line, 64 << 10);
	(void)buf_adds(&line, "$");
	for (; *argv != NULL; argv++)
		(void)buf_addf(&line, " %s", *argv);
	(void)buf_addc(&line, '\n');
	if (fd_write_all(log->fd, line.data, line.size, NULL))
		log->bytes += line.size;
	buf_fini(&line);
}

static bool run_step(struct runs *runs, const char *const *environment,
		     const char *const *argv, struct err *err)
{
	struct test_ran *ran = runs->ran;
	struct program_run *run = &ran->run;
	bool ok;

	buf_clear(&ran->out);
	buf_clear(&ran->error);
	ran->argv = argv;
	log_argv(runs->log, argv);
	program_run_fini(run);
	program_run_init(run);
	run->start.argv = argv;
	run->start.environment = environment;
	run->start.folder = runs->choice->project.folder;
	run->start.terms = runs->call->terms;
	run->deadline_ms = runs->call->deadline_ms;
	run->grace_s = runs->call->grace_s;
	run->stop_fd = runs->call->control_fd;
	run->stopped = stopped;
	run->output = take_output;
	run->context = runs;
	run->spill_fd = runs->log->fd;
	limit_watch_start(&ran->limits, runs->call, run);
	ok = follow_program(run, err);
	if (ok) {
		add_tail(&run->out, OUT_MAX, &ran->out);
		add_tail(&run->error, ERROR_MAX, &ran->error);
		ran->ending = run->ending;
		ran->exit_code = run->exit_code;
		ran->signal = run->signal;
		ran->seconds += run->seconds;
		ran->left_processes += run->left_processes;
		runs->log->bytes += run->spilled;
		runs->log->dropped += run->dropped;
	}
	return ok;
}

static bool ended_well(const struct test_ran *ran)
{
	return ran->ending == PROGRAM_ENDED && ran->exit_code == 0;
}

static void remove_files(const struct test_plan *plan)
{
	if (plan->report != NULL)
		(void)unlink(plan->report);
	if (plan->progress != NULL)
		(void)unlink(plan->progress);
}

/*
 * Run PLAN and read what it says into RAN's report. False: a program could not be started
 * (ERR.code as of program_start, RAN->argv names it). A question that comes meanwhile is
 * answered with the results so far (test_tell_so_far).
 */
static bool test_run(struct call *call, const struct test_choice *choice,
		     struct test_plan *plan, struct test_log *log, struct test_ran *ran,
		     struct err *err)
{
	struct runs runs = {call, choice, plan, ran, log};
	/* The plan's own variable. Only test runners are told CI. */
	const char *const more[] = {"CI=1", plan->environment, NULL};
	const char **environment = shell_command_environment(call->environment, more);
	bool ok = true;

	ran->steps = plan->count;
	ran->began_ms = clock_now_ms();
	remove_files(plan);
	for (size_t i = 0; ok && i < plan->count; i++) {
		ran->step = i;
		ok = run_step(&runs, environment, plan->steps[i].argv, err);
		if (ok && !ended_well(ran))
			break;
	}
	free(environment);
	if (!ok || ran->step + 1 < ran->steps)
		return ok;
	read_tests(&runs, &ran->report);
	remove_files(plan);
	return true;
}

/* The content of a folder. */

enum {
	SETTINGS_MAX = 1 << 20, /* bytes of a project's own file that are read */
	NAMES_MAX = 10000,      /* names of one folder */
	FOLDERS_MAX = 300,      /* names in a folder whose subfolders are searched too */
};

static const char *path_of(const struct test_project *project, const char *name)
{
	struct buf path;
	const char *kept;

	buf_init(&path, 2 * PATH_MAX);
	(void)buf_addf(&path, "%s/%s", project->folder, name);
	kept = arena_copy(project->arena, buf_str(&path));
	buf_fini(&path);
	return kept;
}

bool test_project_has(const struct test_project *project, const char *name)
{
	struct file file;
	struct err err;
	bool there;

	file_init(&file);
	there = files_reach(project->call->files, path_of(project, name), FILES_ANY,
			    &file, &err);
	file_fini(&file);
	return there;
}

const char *test_project_first(const struct test_project *project, const char *names)
{
	struct str rest = str_of(names), word;

	while (str_next_word(&rest, &word)) {
		const char *name = arena_copy(project->arena, word);

		if (test_project_has(project, name))
			return name;
	}
	return NULL;
}

struct str test_project_read(const struct test_project *project, const char *name)
{
	struct str text = {"", 0};
	struct file file;
	struct buf content;
	struct err err;

	file_init(&file);
	buf_init(&content, SETTINGS_MAX);
	if (files_reach(project->call->files, path_of(project, name), FILES_READ, &file,
			&err) &&
	    fd_read_all(file.fd, &content, name, &err))
		text = (struct str){arena_copy(project->arena, buf_str(&content)),
				    content.size};
	buf_fini(&content);
	file_fini(&file);
	return text;
}

static bool fits_one(const char *patterns, const char *name)
{
	struct str rest = str_of(patterns), pattern;

	while (str_next_word(&rest, &pattern)) {
		if (pattern_match(pattern, str_of(name), PATTERN_BASENAME))
			return true;
	}
	return false;
}

/* Open the folder NAME to list it; NULL: there is none. */
static DIR *open_folder(const struct test_project *project, const char *name)
{
	struct file file;
	struct err err;
	DIR *dir = NULL;

	file_init(&file);
	if (files_reach(project->call->files, path_of(project, name), FILES_FOLDER, &file,
			&err)) {
		dir = fdopendir(file.fd);
		if (dir != NULL)
			file.fd = -1;
	}
	file_fini(&file);
	return dir;
}

/* Append the names of the folders right below that hold one of NAMES, ", " between. */
static void test_project_each_folder(const struct test_project *project,
				     const char *names, struct buf *out)
{
	DIR *dir = open_folder(project, ".");

	for (int i = 0; dir != NULL && i < NAMES_MAX; i++) {
		struct dirent *entry = readdir(dir);
		struct test_project inner = *project;

		if (entry == NULL)
			break;
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		inner.folder = path_of(project, entry->d_name);
		if (test_project_first(&inner, names) == NULL)
			continue;
		(void)buf_adds(out, out->size > 0 ? ", " : "");
		text_add_name(out, str_of(entry->d_name));
	}
	if (dir != NULL)
		(void)closedir(dir);
}

const char *test_project_fits(const struct test_project *project, const char *name,
			      const char *patterns)
{
	DIR *dir = open_folder(project, name);
	const char *found = NULL;

	for (int i = 0; dir != NULL && found == NULL && i < NAMES_MAX; i++) {
		struct dirent *entry = readdir(dir);

		if (entry == NULL)
			break;
		if (fits_one(patterns, entry->d_name))
			found = arena_copy(project->arena, str_of(entry->d_name));
	}
	if (dir != NULL)
		(void)closedir(dir);
	return found;
}

/* Folders of generated or foreign files. */
#define OTHERS "node_modules venv env vendor site-packages target build dist third_party"

/* The folder FOLDER (relative) and, DEPTH times, those below it. */
static const char *fits_below(const struct test_project *project, const char *folder,
			      const char *name, const char *patterns, const char *own,
			      int depth)
{
	DIR *dir = open_folder(project, folder);
	const char *found = NULL;

	for (int i = 0; dir != NULL && found == NULL && i < FOLDERS_MAX; i++) {
		struct dirent *entry = readdir(dir);
		struct test_project inner = *project;
		char path[PATH_MAX], tests[PATH_MAX];

		if (entry == NULL)
			break;
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
		    str_among(OTHERS, str_of(entry->d_name)) ||
		    snprintf(path, sizeof(path), "%s%s%s", folder[0] != '.' ? folder : "",
			     folder[0] != '.' ? "/" : "",
			     entry->d_name) >= (int)sizeof(path) ||
		    snprintf(tests, sizeof(tests), "%s/%s", path, name) >=
			    (int)sizeof(tests))
			continue;
		inner.folder = path_of(project, path);
		if (test_project_first(&inner, own) != NULL)
			continue;
		if (test_project_fits(project, tests, patterns) != NULL)
			found = arena_copy(project->arena, str_of(tests));
		else if (depth > 0)
			found = fits_below(project, path, name, patterns, own, depth - 1);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return found;
}

const char *test_project_fits_below(const struct test_project *project, const char *name,
				    const char *patterns, const char *own)
{
	return fits_below(project, ".", name, patterns, own, 1);
}

/*
 * Chooses the runner and its folder: that of the file when one is named, else the
 * workspace.
 */

enum { SENTENCE_MAX = 8192, RUNNERS_MAX = 16 };

/* A folder with one of these names holds tests, in any language. */
#define TEST_FOLDERS "test tests t spec specs __tests__ testing Test Tests"

/* Does FILE, when it is a folder, or a folder above it have such a name? */
static bool in_test_folder(const char *file, bool is_folder)
{
	for (const char *at = file; *at != '\0';) {
		size_t size = strcspn(at, "/");

		if ((at[size] == '/' || is_folder) &&
		    str_among(TEST_FOLDERS, (struct str){at, size}))
			return true;
		at += size;
		at += *at == '/';
	}
	return false;
}

static bool fits(const char *patterns, const char *file)
{
	struct str rest = str_of(patterns), pattern;

	while (str_next_word(&rest, &pattern)) {
		if (pattern_match(pattern, str_of(path_base_name(file)), PATTERN_BASENAME))
			return true;
	}
	return false;
}

static bool in_test_root(const struct test_choice *choice)
{
	const struct test_runner *runner = choice->runner;

	if (in_test_folder(choice->file, choice->file_is_folder) ||
	    (!choice->file_is_folder && runner->files != NULL &&
	     fits(runner->files, choice->file)))
		return true;
	/* The folder is the project itself, with tests beside its sources. */
	if (choice->file_is_folder && runner->files != NULL &&
	    test_project_fits(&choice->project, choice->file, runner->files) != NULL)
		return true;
	return runner->is_root != NULL && runner->is_root(&choice->project, choice->file);
}

/*
 * Add the runners that fit the project. A runner that yields is added only when no other
 * one fits.
 */
static size_t find_runners(const struct test_project *project,
			   const struct test_runner **found, const char **because)
{
	size_t count = 0;

	for (int pass = 0; pass < 2 && count == 0; pass++) {
		for (size_t i = 0; test_runners[i] != NULL; i++) {
			const char *name;

			if (test_runners[i]->yields != (pass == 1))
				continue;
			name = test_runners[i]->detect(project);
			if (name == NULL)
				continue;
			found[count] = test_runners[i];
			because[count++] = name;
		}
	}
	return count;
}

/* Of several runners keep those whose files have names like FILE. */
static size_t keep_fitting(const char *file, const struct test_runner **found,
			   const char **because, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (found[i]->files == NULL || !fits(found[i]->files, file))
			continue;
		found[kept] = found[i];
		because[kept++] = because[i];
	}
	return kept;
}

static bool is_guess(const struct test_runner *runner, const struct test_project *project)
{
	return runner->is_guess != NULL && runner->is_guess(project);
}

/* Does the makefile NAME call RUNNER? */
static bool calls(const struct test_project *project, const char *name,
		  const struct test_runner *runner)
{
	const struct str text = test_project_read(project, name);
	struct str rest = str_of(runner->called_by), word;

	while (str_next_word(&rest, &word)) {
		if (str_find(text, word, 0) != (size_t)-1)
			return true;
	}
	return false;
}

/* Where no file of tests is named, a runner that is a guess gives way to any other one. */
static size_t drop_guesses(const struct test_project *project,
			   const struct test_runner **found, const char **because,
			   size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (is_guess(found[i], project))
			continue;
		found[kept] = found[i];
		because[kept++] = because[i];
	}
	if (kept > 0 || count == 0)
		return kept;
	for (size_t i = 0; test_runners[i] != NULL; i++) {
		const char *name =
			test_runners[i]->yields ? test_runners[i]->detect(project) : NULL;

		if (name == NULL || calls(project, name, found[0]))
			continue;
		found[0] = test_runners[i];
		because[0] = name;
		return 1;
	}
	return count;
}

static void add_all_needs(struct buf *out)
{
	for (size_t i = 0; test_runners[i] != NULL; i++)
		(void)buf_addf(out, "%s%s (%s)", i > 0 ? ", " : "", test_runners[i]->name,
			       test_runners[i]->needs);
}

/* No runner fits the workspace: say what was looked for, and which folder has one. */
static void tell_none(struct call *call, struct arena *arena, struct tool_result *result)
{
	static const char *const markers =
		"phpunit.xml phpunit.xml.dist pytest.ini conftest.py go.mod Cargo.toml "
		"package.json meson.build CMakeLists.txt Makefile";
	struct test_project top = {call, arena, call->workspace};
	struct buf text, names;

	buf_init(&text, SENTENCE_MAX);
	buf_init(&names, SENTENCE_MAX);
	add_all_needs(&text);
	(void)tool_fail(result,
			"No test runner was found in the workspace. Looked for: %s. Name a test "
			"with `file` when the project is a folder of the workspace, or run the "
			"tests with bash.",
			text.data);
	test_project_each_folder(&top, markers, &names);
	if (names.size > 0)
		buf_addf(&result->text, " Projects are in: %s.", names.data);
	buf_fini(&text);
	buf_fini(&names);
}

static void tell_several(const struct test_runner *const *found,
			 const char *const *because, size_t count,
			 const struct test_choice *choice, struct tool_result *result)
{
	struct buf text;

	buf_init(&text, SENTENCE_MAX);
	for (size_t i = 0; i < count; i++)
		(void)buf_addf(&text, "%s%s (%s%s)", i > 0 ? ", " : "", found[i]->name,
			       choice->prefix, because[i]);
	(void)tool_fail(result,
			"Several test runners fit: %s. Call again with one of them, like "
			"{\"runner\": \"%s\"}, or name a test with `file`.",
			text.data, found[0]->name);
	buf_fini(&text);
}

/* Make FOLDER (the workspace or a folder below it) that of the project. */
static void set_folder(struct test_choice *choice, const char *folder)
{
	const char *below = path_relative(folder, choice->project.call->workspace);
	char room[PATH_MAX];
	struct buf prefix;

	buf_init(&prefix, PATH_MAX);
	if (strcmp(below, ".") != 0)
		(void)buf_addf(&prefix, "%s/", below);
	choice->project.folder =
		arena_copy(choice->project.arena,
			   str_of(program_folder(choice->project.call->terms, folder, room)));
	choice->prefix = arena_copy(choice->project.arena, buf_str(&prefix));
	buf_fini(&prefix);
}

/* Find the runners of one folder: WANTED, or all that fit. */
static size_t look(struct test_choice *choice, const char *folder,
		   const struct test_runner *wanted, const struct test_runner **found,
		   const char **because)
{
	set_folder(choice, folder);
	if (wanted == NULL)
		return find_runners(&choice->project, found, because);
	found[0] = wanted;
	because[0] = wanted->detect(&choice->project);
	return because[0] != NULL;
}

/*
 * Go up from PATH to the workspace, to the first folder that uses WANTED, or any runner.
 * A folder of tests counts only when no folder above it does.
 */
static size_t climb(struct test_choice *choice, const char *path,
		    const struct test_runner *wanted, const struct test_runner **found,
		    const char **because)
{
	const char *workspace = choice->project.call->workspace;
	struct buf folder;
	size_t count = 0;

	buf_init(&folder, PATH_MAX);
	for (int pass = 0; pass < 2 && count == 0; pass++) {
		buf_clear(&folder);
		(void)buf_adds(&folder, path);
		while (count == 0 && path_within(folder.data, workspace)) {
			bool last = strcmp(folder.data, workspace) == 0;

			if (last || pass == 1 ||
			    !in_test_folder(path_relative(folder.data, workspace), true))
				count = look(choice, folder.data, wanted, found, because);
			if (last)
				break;
			buf_truncate(&folder,
				     (size_t)(path_base_name(folder.data) - folder.data) -
					     1);
		}
	}
	buf_fini(&folder);
	return count;
}

/*
 * Find the file of the call, whose real path must be inside the workspace. *FOLDER is its
 * folder.
 */
static bool reach_file(struct call *call, const char *name, struct file *file,
		       struct buf *folder, struct tool_result *result)
{
	struct err err;

	if (!files_reach(call->files, name, FILES_ANY, file, &err)) {
		(void)shown_fail(call, result, name, &err);
		if (name[0] == '-')
			buf_adds(&result->text,
				 " `file` is the path of a test file or folder, no option, and not "
				 "standard input: leave it out to run all tests.");
		return false;
	}
	if (!path_within(file->path.data, call->workspace)) {
		(void)tool_fail(result,
				"%s lies outside the workspace; tests of it cannot be run.",
				name);
		return false;
	}
	(void)buf_addstr(folder, buf_str(&file->path));
	if (!S_ISDIR(file->st.st_mode) && strcmp(folder->data, call->workspace) != 0)
		buf_truncate(folder,
			     (size_t)(path_base_name(folder->data) - folder->data) - 1);
	return true;
}

static bool check_file(struct test_choice *choice, const struct file *file,
		       struct tool_result *result)
{
	const struct test_runner *runner = choice->runner;
	char room[PATH_MAX];
	/* The runner names files as it sees them. */
	const char *path =
		program_folder(choice->project.call->terms, file->path.data, room);

	choice->file = arena_copy(choice->project.arena,
				  str_of(path_relative(path, choice->project.folder)));
	choice->file_is_folder = S_ISDIR(file->st.st_mode);
	if (runner->no_file != NULL)
		(void)tool_fail(result, "`file` does not go with %s: %s.", runner->name,
				runner->no_file);
	else if (choice->file_is_folder && runner->no_folder != NULL)
		(void)tool_fail(result, "%s.", runner->no_folder);
	else if (!in_test_root(choice))
		(void)tool_fail(result,
				"%s%s is in no folder of tests, and by its name %s does not take "
				"it for a test (%s). Name a file below tests/ or the like.",
				choice->prefix, choice->file, runner->name,
				runner->files != NULL ? runner->files : "no names");
	else if (choice->file[0] == '-')
		(void)tool_fail(result,
				"`file` begins with a dash, which %s would take for an "
				"option: rename it.",
				runner->name);
	else
		return true;
	return false;
}

static bool choose(struct test_choice *choice, const struct file *file, const char *folder,
		   const struct test_runner *wanted, struct tool_result *result)
{
	struct call *call = choice->project.call;
	const struct test_runner *found[RUNNERS_MAX];
	const char *because[RUNNERS_MAX];
	size_t count = climb(choice, folder, wanted, found, because);

	if (wanted == NULL && file == NULL)
		count = drop_guesses(&choice->project, found, because, count);
	if (count > 1 && file != NULL) {
		size_t kept = keep_fitting(file->path.data, found, because, count);

		count = kept > 0 ? kept : count;
	}
	if (count > 1) {
		tell_several(found, because, count, choice, result);
		return false;
	}
	if (count == 1) {
		choice->runner = found[0];
		choice->because = because[0];
	} else if (wanted != NULL) {
		/*
		 * The runner was asked for by name: use it in the workspace, even if no
		 * file shows it.
		 */
		choice->runner = wanted;
		set_folder(choice, call->workspace);
	} else {
		tell_none(call, choice->project.arena, result);
		return false;
	}
	return file == NULL || check_file(choice, file, result);
}

/* Choose the runner and the folder. False: RESULT says what was found instead. */
static bool test_choose(struct call *call, struct arena *arena,
			struct test_choice *choice, struct tool_result *result)
{
	const char *name = call_text(call, "file"), *runner = call_text(call, "runner");
	const struct test_runner *wanted = runner != NULL ? test_runner_find(runner) : NULL;
	struct file file;
	struct buf folder;
	bool ok;

	*choice = (struct test_choice){.project = {.call = call, .arena = arena}};
	file_init(&file);
	buf_init(&folder, PATH_MAX);
	if (name == NULL)
		(void)buf_adds(&folder, call->workspace);
	ok = (name == NULL || reach_file(call, name, &file, &folder, result)) &&
	     choose(choice, name != NULL ? &file : NULL, folder.data, wanted, result);
	buf_fini(&folder);
	file_fini(&file);
	return ok;
}

#define RUN_TESTS_TIMEOUT_S 600
/* The same as for a job: a whole suite may be so slow, and nothing else waits for it. */
#define RUN_TESTS_TIMEOUT_MAX_S 7200

enum { TEXT_ARGUMENT_MAX = 1000 }; /* of a name, or a pattern of names */

static const struct row run_tests_params[] = {
	{"file", ROW_PATH, false, "Test file or folder to run; all unless told",
	 .aliases = "path file_path test_file"},
	{"filter", ROW_TEXT, false, "Run the tests whose name fits, as the runner has it",
	 .aliases = "pattern name test", .min = 1, .max = TEXT_ARGUMENT_MAX},
	{"suite", ROW_TEXT, false,
	 "A suite: phpunit's, a marker of pytest, a label of ctest, a target of make, a package "
	 "of Go",
	 .aliases = "testsuite target", .min = 1, .max = TEXT_ARGUMENT_MAX},
	{"runner", ROW_CHOICE, false, "Runner to use; found in the workspace unless told",
	 .choices = "auto phpunit pytest go cargo node jest vitest mocha meson ctest prove make",
	 .initial = "\"auto\""},
	/*
	 * A default of its own, because suites take longer than commands (the policy's
	 * wall_s).
	 */
	{"timeout_s", ROW_SECONDS, false, "Seconds until it is ended",
	 .aliases = "timeout", .initial = SHOWN_NUMBER(RUN_TESTS_TIMEOUT_S)},
	{"rerun_failed", ROW_FLAG, false,
	 "Run failed tests once more: those that then pass are flaky", .initial = "true"},
	{0},
};

/* A value must not look like an option, or end a line of a log. */
static bool check_shape(const struct call *call, const char *name, struct tool_result *result)
{
	struct str text = call_str(call, name);

	if (text.size > 0 && text.data[0] == '-')
		(void)tool_fail(
			result,
			"`%s` begins with a dash, which a test runner would take for an "
			"option. Options cannot be given, and nothing is read from standard "
			"input: leave `%s` out to run all, or give it as plain text.",
			name, name);
	else if (text.size > 0 && (memchr(text.data, '\0', text.size) != NULL ||
				   memchr(text.data, '\n', text.size) != NULL))
		(void)tool_fail(result, "`%s` holds a line end or a NUL byte.", name);
	else
		return true;
	return false;
}

static bool check_taken(const struct call *call, const char *name, const char *not_taken,
			const char *runner, struct tool_result *result)
{
	if (not_taken == NULL || call_str(call, name).size == 0)
		return true;
	(void)tool_fail(result, "`%s` does not go with %s: %s.", name, runner, not_taken);
	return false;
}

static bool check_texts(const struct call *call, const struct test_runner *runner,
			struct tool_result *result)
{
	return check_taken(call, "filter", runner->no_filter, runner->name, result) &&
	       check_taken(call, "suite", runner->no_suite, runner->name, result);
}

/* Everything that one call holds. */
struct tests {
	struct call *call;
	struct tool_result *result;
	struct arena arena;
	struct test_choice choice;
	struct test_request request;
	struct test_ran first, again;
	struct test_log log;
	struct buf spills;   /* folder of the logs */
	struct buf report;   /* the folder of the report, later with its file name */
	struct buf progress; /* the same for the file that is written during the run */
	char *folder;
	bool ran_again;
};

/* Make a folder for the runner's file, which no other call of this cell knows. */
static bool make_report(struct tests *tests, struct err *err)
{
	struct buf *path = &tests->report;

	(void)buf_addf(path, "%s/", spill_folder(tests->call->environment, &tests->spills));
	if (!fd_make_folders(path->data, err))
		return false;
	(void)buf_adds(path, "tests-XXXXXX");
	if (mkdtemp(path->data) == NULL)
		return err_set(err, errno, "%s: %s", path->data, strerror(errno));
	tests->folder = memory_copy(path->data);
	(void)buf_addf(&tests->progress, "%s/progress", path->data);
	(void)buf_adds(path, "/report");
	return true;
}

static enum result_status start_failed(const struct tests *tests,
				       const struct test_ran *ran, const struct err *err)
{
	const struct test_runner *runner = tests->choice.runner;

	if (err->code == ENOENT)
		return tool_fail(tests->result,
				 "%s is not there, so %s cannot run the tests (%s): %s.",
				 ran->argv[0], runner->name,
				 tests->choice.because != NULL ? tests->choice.because
							       : "asked for",
				 runner->missing);
	return tool_fail(tests->result, "The tests did not run. %s", err->text);
}

/* Is a second run of the failed tests useful? */
static bool wants_again(const struct tests *tests)
{
	const struct test_ran *first = &tests->first;
	size_t can = 0;

	if (!call_flag(tests->call, "rerun_failed") || first->ending != PROGRAM_ENDED ||
	    first->exit_code == 0 || first->step + 1 < first->steps ||
	    first->report.failed > TEST_AGAIN_MAX || call_stopped(tests->call))
		return false;
	for (size_t i = 0; i < first->report.count; i++)
		can += tests->choice.runner->no_again ||
		       first->report.failures[i].select != NULL ||
		       first->report.failures[i].file != NULL;
	return can > 0;
}

static void run_again(struct tests *tests)
{
	struct test_plan plan = {0};
	struct buf sentence;
	struct err err;

	buf_init(&sentence, 4096);
	test_ran_init(&tests->again, &tests->choice);
	tests->again.report.first = &tests->first.report;
	tests->request.again = &tests->first.report;
	tests->ran_again = tests->choice.runner->plan(&tests->request, &plan, &sentence) &&
			   test_run(tests->call, &tests->choice, &plan, &tests->log,
				    &tests->again, &err);
	buf_fini(&sentence);
}

static enum result_status run_tests(struct tests *tests)
{
	struct tool_result *result = tests->result;
	struct test_plan plan = {0};
	struct err err;
	struct buf sentence;
	bool ok;

	if (!make_report(tests, &err))
		return tool_fail(result, "The tests did not run. %s", err.text);
	tests->request = (struct test_request){
		.project = &tests->choice.project,
		.file = tests->choice.file,
		.file_is_folder = tests->choice.file_is_folder,
		.filter = call_text(tests->call, "filter"),
		.suite = call_text(tests->call, "suite"),
		.report = tests->report.data,
		.progress = tests->progress.data,
	};
	buf_init(&sentence, 8192);
	ok = tests->choice.runner->plan(&tests->request, &plan, &sentence);
	if (!ok)
		(void)tool_fail(result, "%s", sentence.data);
	buf_fini(&sentence);
	if (!ok)
		return result->status;
	tests->log.fd = spill_open(tests->spills.data);
	if (!test_run(tests->call, &tests->choice, &plan, &tests->log, &tests->first, &err))
		return start_failed(tests, &tests->first, &err);
	if (wants_again(tests))
		run_again(tests);
	const struct test_answer answer = {
		.call = tests->call,
		.choice = &tests->choice,
		.first = &tests->first,
		.again = tests->ran_again ? &tests->again : NULL,
		.log = &tests->log,
		.log_folder = tests->spills.data,
		.filter = tests->request.filter,
		.suite = tests->request.suite,
	};
	test_tell(&answer, result);
	return result->status;
}

static enum result_status run_tests_execute(struct call *call, struct tool_result *result)
{
	struct tests *tests = memory_alloc(sizeof(*tests));
	enum result_status status = RESULT_FAILED;

	tests->call = call;
	tests->result = result;
	tests->log.fd = -1;
	arena_init(&tests->arena);
	buf_init(&tests->spills, PATH_MAX);
	buf_init(&tests->report, PATH_MAX);
	buf_init(&tests->progress, PATH_MAX);
	if (check_shape(call, "filter", result) && check_shape(call, "suite", result) &&
	    test_choose(call, &tests->arena, &tests->choice, result) &&
	    check_texts(call, tests->choice.runner, result)) {
		test_ran_init(&tests->first, &tests->choice);
		status = run_tests(tests);
	}
	fd_folder_remove(tests->folder);
	test_ran_fini(&tests->first);
	test_ran_fini(&tests->again);
	fd_close(&tests->log.fd);
	free(tests->folder);
	buf_fini(&tests->spills);
	buf_fini(&tests->report);
	buf_fini(&tests->progress);
	arena_fini(&tests->arena);
	free(tests);
	return status;
}

const struct tool run_tests_tool = {
	.name = "run_tests",
	.description = "Run the project's tests by their own runner. Says how many passed, "
		       "which failed, where and why, and which of these are flaky.",
	.example = "{\"file\": \"tests/test_sums.py\", \"filter\": \"zero\"}",
	.aliases = "test run_test",
	.params = run_tests_params,
	.effects = EFFECT_RUNS,
	.timeout_s = RUN_TESTS_TIMEOUT_S,
	.timeout_max_s = RUN_TESTS_TIMEOUT_MAX_S,
	.answers = true,
	.execute = run_tests_execute,
};

/* The table of all runners. */

const struct test_runner *const test_runners[] = {
	&phpunit_runner, &pytest_runner, &go_runner,    &cargo_runner, &node_runner,
	&jest_runner,    &vitest_runner, &meson_runner, &ctest_runner, &prove_runner,
	&make_runner,    &mocha_runner,  NULL,
};

const struct test_runner *test_runner_find(const char *name)
{
	for (size_t i = 0; test_runners[i] != NULL; i++) {
		if (strcmp(test_runners[i]->name, name) == 0)
			return test_runners[i];
	}
	return NULL;
}
