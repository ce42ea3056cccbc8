/* test_run: the programs of a plan, one after the other; see run_tests.h. */
#include "base/clock.h"
#include "base/fd.h"
#include "process/follow.h"
#include "tool/call.h"
#include "tools/shell.h"
#include "tools/tests/run_tests.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* Bytes of a stream that are read for tests: the end is read besides. */
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

void test_ran_init(struct test_ran *ran, const struct test_choice *choice)
{
	memset(ran, 0, sizeof(*ran));
	test_report_init(&ran->report, choice->project.folder, choice->prefix);
	/* And the line end between the two. */
	buf_init(&ran->out, OUT_MAX + PROGRAM_TAIL + 1);
	buf_init(&ran->error, ERROR_MAX + PROGRAM_TAIL + 1);
	program_run_init(&ran->run);
	ran->exit_code = -1;
}

void test_ran_fini(struct test_ran *ran)
{
	test_report_fini(&ran->report);
	program_run_fini(&ran->run);
	buf_fini(&ran->out);
	buf_fini(&ran->error);
}

/* A file that a runner wrote; what tests put there instead is no file. */
static void read_file(const char *path, struct buf *content)
{
	auto_close int fd = -1;
	struct stat st;

	if (path != NULL)
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	/* Of one that is too large the beginning is read. */
	(void)fd_read_all(fd, content, path, NULL);
}

/* Read into REPORT what the last step of the plan has said so far. */
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

/* A question to this job. To end it is to cancel it: what was seen by then is told. */
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

/* The end of a stream that was longer than what is kept of it: there are the sums. */
static void add_tail(const struct program_output *output, size_t max, struct buf *kept)
{
	struct buf tail;

	if (output->total <= max)
		return;
	buf_init(&tail, PROGRAM_TAIL);
	program_output_tail(output, &tail);
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
	run->start.launcher = runs->call->launcher;
	run->deadline_ms = runs->call->deadline_ms;
	run->grace_s = runs->call->grace_s;
	run->stop_fd = runs->call->control_fd;
	run->stopped = stopped;
	run->output = take_output;
	run->context = runs;
	run->spill_fd = runs->log->fd;
	limit_watch_start(&ran->limits, runs->call, run);
	ok = program_follow(run, err);
	if (ok) {
		add_tail(&run->out, OUT_MAX, &ran->out);
		add_tail(&run->error, ERROR_MAX, &ran->error);
		ran->ending = run->ending;
		ran->exit_code = run->exit_code;
		ran->signal = run->signal;
		ran->seconds += run->seconds;
		ran->left_processes += run->left_processes;
		ran->out_total = run->out.total;
		ran->error_total = run->error.total;
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

bool test_run(struct call *call, const struct test_choice *choice, struct test_plan *plan,
	      struct test_log *log, struct test_ran *ran, struct err *err)
{
	struct runs runs = {call, choice, plan, ran, log};
	/* A plan's one more; CI is told to test runners alone. */
	const char *const more[] = {"CI=1", plan->environment, NULL};
	const char **environment = commands_environment(call->environment, more);
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
