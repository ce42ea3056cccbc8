/* test_tell: what a model is told of a test run; see run_tests.h. */
#include "base/clock.h"
#include "base/text/text.h"
#include "tool/denial.h"
#include "tool/spill.h"
#include "tools/shown.h"
#include "tools/tests/run_tests.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

enum {
	SHOWN_FAILURES = 10,
	SHOWN_LINES = 20,       /* of each */
	SHOWN_LINE_BYTES = 300, /* of each of these */
	/* Of the output, when no failed test explains the exit code. */
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
	/* Where what passed has no name, a run without a failure tells it. */
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

/* The first line: what is most wanted. */
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

/* A line without content, or a frame of the runner's own in a trace. */
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

/* Blanks that all lines of TEXT begin with. */
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

/* The end of what it printed: nothing else says why it failed. */
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

/* Add the details that are known while the tests still run, too. */
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
 * Look in the output for what the tests say that they could not reach: the session knows
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

		claims_gather(str_part(all, from, SIZE_MAX),
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

void test_tell_so_far(const struct test_answer *answer, const struct test_report *seen,
		      int64_t job, struct tool_result *result)
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

void test_tell(const struct test_answer *answer, struct tool_result *result)
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
