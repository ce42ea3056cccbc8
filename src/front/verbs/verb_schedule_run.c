/*
 * glovebox schedule run: carries out the runs that are due. A process first claims a run
 * in the database, so any number of timers may call this verb at the same time. Each run
 * is a process of its own with a time limit, and is in the journal like any other run.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/delegate.h"
#include "agent/when.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/agents.h"
#include "front/setup.h"
#include "front/verb.h"
#include "process/loop.h"

enum {
	MS_PER_S = 1000,
	/*
	 * Time limit of one run by default: long for a task, and short enough to end
	 * before the next day's run.
	 */
	RUN_S = 3600,
	RUN_MAX_S = 7 * 24 * 3600,
	/*
	 * LAST_S: the time to hand over after the time limit. CLAIM_S: the claim holds so
	 * much longer.
	 */
	LAST_S = 10,
	CLAIM_S = 30,
	OUTCOME_MAX = 512,
};

static const struct option_row run_options[] = {
	{"dry-run", 'n', OPTION_FLAG, NULL, "say what is due, and run nothing"},
	{"max-seconds", 0, OPTION_COUNT, "N", "one run may take so long (default: 3600)"},
	OPTION_ROW_HELP,
	{0},
};

/* A schedule that was due when we looked. */
struct due {
	struct schedule schedule;
	char *workspace, *agent, *task, *times, *zone;
};

struct dues {
	struct due items[SCHEDULES_MAX];
	size_t count;
	int64_t now_s;
};

static bool take_due(void *context, const struct schedule *schedule)
{
	struct dues *dues = context;
	struct due *due = &dues->items[dues->count];

	if (schedule->state != SCHEDULE_ACTIVE || !schedule->approved ||
	    schedule->next_s == 0 || schedule->next_s > dues->now_s ||
	    schedule->busy_until_s > dues->now_s)
		return true;
	due->schedule = *schedule;
	due->workspace = memory_copy_str(schedule->workspace);
	due->agent = memory_copy_str(schedule->agent);
	due->task = memory_copy_str(schedule->task);
	due->times = memory_copy_str(schedule->times);
	due->zone = memory_copy_str(schedule->zone);
	return ++dues->count < SCHEDULES_MAX;
}

static void dues_fini(struct dues *dues)
{
	for (size_t i = 0; i < dues->count; i++) {
		free(dues->items[i].workspace);
		free(dues->items[i].agent);
		free(dues->items[i].task);
		free(dues->items[i].times);
		free(dues->items[i].zone);
	}
}

struct errand {
	struct loop *loop;
	struct interrupt *interrupt;
	struct delegate *delegate;
	struct watch signals;
	struct timer too_long;
	bool ended, cancelled, late;
};

static void errand_ended(void *context, struct delegate *delegate)
{
	struct errand *errand = context;

	(void)delegate;
	errand->ended = true;
}

static void errand_cancel(struct watch *watch, short events)
{
	struct errand *errand = watch->context;

	(void)events;
	loop_remove(watch);
	errand->cancelled = true;
	delegate_ask_to_end(errand->delegate);
	errand->too_long.due_ms = clock_now_ms() + (int64_t)LAST_S * MS_PER_S;
}

static void errand_late(struct timer *timer)
{
	struct errand *errand = timer->context;

	errand->late = true;
	delegate_end(errand->delegate, clock_now_ms() + MS_PER_S);
	errand->ended = true;
}

/* Describe in OUTCOME how the run ended. */
static void errand_tell(const struct errand *errand, struct buf *outcome)
{
	const struct delegate_report *report = delegate_report_of(errand->delegate);
	const char *fault = delegate_fault(errand->delegate);
	const char *reason = value_text(value_member(report->ended, "reason"));

	if (errand->late)
		(void)buf_adds(outcome, "ended: it took too long");
	else if (fault != NULL)
		(void)buf_addf(outcome, "failed: %.300s", fault);
	else
		(void)buf_addf(outcome, "%.60s", reason != NULL ? reason : "ended");
}

static bool errand_is_good(const struct errand *errand)
{
	const struct delegate_report *report = delegate_report_of(errand->delegate);
	struct str reason = value_str(value_member(report->ended, "reason"));

	return !errand->late && delegate_fault(errand->delegate) == NULL &&
	       (str_is(reason, "stopped") || str_is(reason, "patch"));
}

static struct value *request_of(const struct due *due, uint64_t most_s)
{
	const struct setup setup = {.workspace = due->workspace};
	struct value *request = orchestrate_request(&setup, NULL);
	struct value *budget = value_new_object();

	value_set_text(request, "agent", due->agent);
	value_set_text(request, "task", due->task);
	value_set_integer(budget, "seconds", (int64_t)most_s);
	value_set(request, "budget", budget);
	return request;
}

/* Carry out a claimed run. OUTCOME and SESSION get its result and its session. */
static bool errand_run(struct errand *errand, const struct due *due, uint64_t most_s,
		       struct buf *outcome, char session[JOURNAL_ID + 1])
{
	auto_value struct value *request = request_of(due, most_s);
	const struct delegate_options options = {.loop = errand->loop,
						 .request = request,
						 .ended = errand_ended,
						 .context = errand};
	struct err err;
	bool good;

	errand->ended = errand->late = false;
	if (!delegate_start(&options, &errand->delegate, &err)) {
		(void)buf_addf(outcome, "failed: %.300s", err.text);
		return false;
	}
	errand->too_long = (struct timer){.due_ms = clock_now_ms() +
						    (int64_t)(most_s + LAST_S) * MS_PER_S,
					  .due = errand_late,
					  .context = errand};
	loop_add_timer(errand->loop, &errand->too_long);
	errand->signals = (struct watch){.fd = interrupt_fd(errand->interrupt),
					 .events = POLLIN,
					 .ready = errand_cancel,
					 .context = errand};
	loop_add(errand->loop, &errand->signals);
	while (!errand->ended)
		loop_turn(errand->loop, CLOCK_NEVER);
	loop_remove(&errand->signals);
	loop_remove_timer(&errand->too_long);
	errand_tell(errand, outcome);
	good = errand_is_good(errand);
	memcpy(session, delegate_report_of(errand->delegate)->session, JOURNAL_ID + 1);
	delegate_free(errand->delegate);
	errand->delegate = NULL;
	return good;
}

static void print_line(const struct due *due, const char *outcome, const char *session,
		       FILE *out)
{
	struct buf line;

	buf_init(&line, 8 << 10);
	(void)buf_addf(&line, "%" PRId64 "  ", due->schedule.id);
	text_add_name(&line, str_of(due->agent));
	(void)buf_adds(&line, "  in ");
	text_add_name(&line, str_of(due->workspace));
	(void)buf_adds(&line, ": ");
	text_add_name(&line, str_of(outcome));
	if (session[0] != '\0')
		(void)buf_addf(&line, " (session %s)", session);
	(void)fprintf(out, "%s\n", line.data);
	(void)fflush(out);
	buf_fini(&line);
}

/*
 * Claim DUE and carry it out. *GOOD: another process had claimed it, or the run ended
 * well. False: the database failed.
 */
static bool run_due(struct errand *errand, struct schedules *schedules,
		    const struct due *due, uint64_t most_s, bool *good, struct err *err,
		    FILE *out)
{
	const int64_t now_s = clock_wall_ms() / MS_PER_S;
	const int64_t until_s = now_s + (int64_t)most_s + LAST_S + CLAIM_S;
	const int64_t next_s = schedule_next(str_of(due->times), str_of(due->zone),
					     due->schedule.made_s, now_s);
	char session[JOURNAL_ID + 1] = "";
	struct buf outcome;
	bool claimed, kept;

	*good = true;
	if (!schedules_claim(schedules, &due->schedule, now_s, until_s, next_s, &claimed,
			     err))
		return false;
	if (!claimed)
		return true;
	buf_init(&outcome, OUTCOME_MAX);
	*good = errand_run(errand, due, most_s, &outcome, session);
	print_line(due, outcome.data, session, out);
	kept = schedules_end(schedules, due->schedule.id, until_s, outcome.data, session,
			     err);
	buf_fini(&outcome);
	return kept;
}

static int run_all(struct errand *errand, struct schedules *schedules, struct dues *dues,
		   uint64_t most_s, FILE *out)
{
	struct err err = {0};
	bool good;
	int code = CODE_DONE;

	for (size_t i = 0; i < dues->count && !errand->cancelled; i++) {
		if (!run_due(errand, schedules, &dues->items[i], most_s, &good, &err, out))
			return verb_complain(CODE_FAILED, "%s", err.text);
		if (!good)
			code = CODE_FAILED;
	}
	return errand->cancelled ? CODE_CANCELLED : code;
}

static int run_run(const struct options *options, FILE *out)
{
	const uint64_t most_s = options_count(options, "max-seconds", RUN_S);
	struct dues *dues = memory_alloc(sizeof(*dues));
	struct errand errand = {0};
	struct schedules *schedules = NULL;
	struct err err = {0};
	int code = CODE_DONE;

	dues->now_s = clock_wall_ms() / MS_PER_S;
	if (most_s > RUN_MAX_S) {
		code = verb_complain(CODE_USAGE, "--max-seconds: at most %d, a week",
				     RUN_MAX_S);
	} else if (!schedules_open_default(&schedules, &err) ||
		   !schedules_find(schedules, NULL, 0, take_due, dues, &err) ||
		   !interrupt_open(&errand.interrupt, &err)) {
		code = verb_complain(CODE_FAILED, "%s", err.text);
	} else if (options_given(options, "dry-run")) {
		for (size_t i = 0; i < dues->count; i++)
			print_line(&dues->items[i], "due", "", out);
		if (dues->count == 0)
			(void)fputs("Nothing is due.\n", out);
	} else if (dues->count > 0) {
		errand.loop = loop_new();
		if (interrupt_start(errand.interrupt, &err))
			code = run_all(&errand, schedules, dues, most_s, out);
		else
			code = verb_complain(CODE_FAILED, "%s", err.text);
		loop_free(errand.loop);
	}
	interrupt_close(errand.interrupt);
	schedules_close(schedules);
	dues_fini(dues);
	free(dues);
	return code;
}

const struct verb verb_schedule_run = {
	.name = "schedule run",
	.summary = "work on what is due now (for timers)",
	.arguments = "",
	.help = "Work on every schedule that is due and approved, one after the other, and print\n"
		"a line for each. What was missed while the machine was off runs once. However\n"
		"many timers call this at once, each run is made once.\n\n"
		"Exit codes: 0 done (also when nothing was due), 1 a run failed, 130 cancelled.",
	.example = "  glovebox schedule run --dry-run\n"
		   "  systemctl --user enable --now glovebox-schedule.timer",
	.options = run_options,
	.run = run_run,
};
