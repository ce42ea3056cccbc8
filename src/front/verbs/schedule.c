/*
 * glovebox schedule list, add, approve, enable, disable and remove; see
 * docs/orchestration.md.
 */

#include "agent/delegate.h"
#include "agent/when.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/agents.h"
#include "front/interrupt.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"
#include "model/model.h"
#include "policy/config.h"
#include "process/loop.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST_MAX = 16 << 20, MS_PER_S = 1000 };

static const struct option_row list_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print one object per line"},
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row add_options[] = {
	{"when", 'w', OPTION_TEXT, "TIME",
	 "\"0 9 * * 1-5\" (cron) or \"Mon..Fri 09:00\" (OnCalendar)"},
	{"zone", 'z', OPTION_TEXT, "ZONE", "time zone of TIME (default: the machine's)"},
	{"agent", 'a', OPTION_TEXT, "NAME", "the agent that does it (default: default)",
	 NAMES_AGENTS},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row id_options[] = {OPTION_ROW_HELP, {0}};

static int64_t now_s(void)
{
	return clock_wall_ms() / MS_PER_S;
}

static bool id_of(const char *word, int64_t *id, struct err *err)
{
	uint64_t number;

	if (!text_parse_count(word, INT32_MAX, &number, NULL) || number == 0)
		return err_set(err, EINVAL, "\"%.40s\" is no number of a schedule", word);
	*id = (int64_t)number;
	return true;
}

static void print_object(const struct schedule *schedule, FILE *out)
{
	auto_value struct value *row = value_new_object();
	struct schedule shown;
	struct buf text, times;

	buf_init(&times, WHEN_TEXT_MAX);
	(void)when_schedule_renew(schedule, &times, &shown);
	value_set_integer(row, "id", schedule->id);
	value_set_text(row, "state", schedule_state_name(schedule->state));
	value_set_boolean(row, "approved", schedule->approved);
	value_set_text(row, "hash", schedule->hash);
	value_set_str(row, "agent", schedule->agent);
	value_set_str(row, "workspace", schedule->workspace);
	value_set_str(row, "task", schedule->task);
	value_set_str(row, "when", shown.times);
	value_set_str(row, "zone", shown.zone);
	value_set_str(row, "by", schedule->by);
	value_set_integer(row, "next_s", schedule->next_s);
	value_set_integer(row, "last_s", schedule->last_s);
	value_set_str(row, "last_outcome", schedule->last_outcome);
	value_set_str(row, "last_session", schedule->last_session);
	buf_init(&text, LIST_MAX);
	(void)value_print(row, 0, &text);
	(void)fprintf(out, "%s\n", text.data);
	buf_fini(&text);
	buf_fini(&times);
}

struct listing {
	FILE *out; /* of JSON */
	bool json;
	size_t count;
	struct buf text;
};

static bool list_one(void *context, const struct schedule *schedule)
{
	struct listing *listing = context;

	listing->count++;
	if (listing->json)
		print_object(schedule, listing->out);
	else
		when_schedule_add(schedule, now_s(), &listing->text);
	return true;
}

static int list_run(const struct options *options, FILE *out)
{
	struct listing listing = {.out = out, .json = options_given(options, "json")};
	struct schedules *schedules = NULL;
	struct err err = {0};
	int code = CODE_DONE;

	buf_init(&listing.text, LIST_MAX);
	if (!when_open_default(&schedules, &err) ||
	    !schedules_find(schedules, NULL, 0, list_one, &listing, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else if (listing.count == 0 && !listing.json)
		(void)fputs("There are no schedules; see: glovebox schedule add --help\n",
			    out);
	(void)fputs(listing.text.data, out);
	buf_fini(&listing.text);
	schedules_close(schedules);
	return code;
}

static bool join_words(const struct options *options, struct buf *task, struct err *err)
{
	for (size_t i = 0; i < options->word_count; i++)
		(void)buf_addf(task, "%s%s", i > 0 ? " " : "", options->words[i]);
	return !task->overflowed || err_set(err, E2BIG, "the task has more than %d KiB",
					    SCHEDULES_TASK_MAX >> 10);
}

/*
 * Rows for the options whose values become members of a run's request (front/talk.h).
 */
static const struct option_row setup_rows[] = {
	OPTION_ROW_WORKSPACE, OPTION_ROW_CONFIG, OPTION_ROW_AGENT, OPTION_ROW_LEVEL, {0},
};

/*
 * Check in advance that a run would work: the agent exists, and its rights and its model
 * are valid.
 */
static bool check_agent(const char *agent, const char *workspace, struct err *err)
{
	const char *const words[] = {"-C", workspace, "--agent", agent, NULL};
	const struct setup_flags flags = {.quiet_plugins = true};
	struct setup setup = {0};
	struct model_name name;
	struct options options;
	bool ok;

	ok = options_parse(&options, setup_rows, words, false, err) &&
	     setup_init(&setup, &options, &flags, err) &&
	     (setup.role.model == NULL || model_name_parse(setup.role.model, &name, err));
	if (ok && setup.role.model == NULL && getenv("GLOVEBOX_MODEL") == NULL)
		(void)verb_complain(CODE_DONE,
				    "no model is named for it: a run plays the built-in recording "
				    "unless GLOVEBOX_MODEL is set where glovebox schedule run is "
				    "called, or agents.%.64s.model in the configuration",
				    agent);
	setup_fini(&setup);
	options_fini(&options);
	return ok || err_set(err, ENOENT, "%s", err->text);
}

static bool add(const struct options *options, struct buf *task, struct buf *times,
		struct err *err, FILE *out)
{
	const char *folder = options_text(options, "workspace");
	const char *agent = options_text(options, "agent");
	const char *zone = options_text(options, "zone");
	const char *when = options_text(options, "when");
	auto_free char *workspace = realpath(folder != NULL ? folder : ".", NULL);
	struct schedules *schedules = NULL;
	struct schedule wanted = {.zone = str_of(zone)};
	struct listing listing = {0};
	char hash[HASH_HEX + 1];
	int64_t id = 0;
	bool ok;

	if (when == NULL)
		return err_set(err, EINVAL,
			       "--when TIME is missing, as --when \"0 9 * * *\" or "
			       "--when 09:00");
	if (workspace == NULL)
		return err_set(err, errno, "%s: %s", folder, strerror(errno));
	wanted.agent = str_of(agent != NULL ? agent : POLICY_NAME_DEFAULT);
	if (!config_check_name(wanted.agent.data, err) || !join_words(options, task, err) ||
	    !when_schedule_settle(when, zone, now_s(), times, &wanted.next_s, err) ||
	    !check_agent(wanted.agent.data, workspace, err))
		return false;
	wanted.workspace = str_of(workspace);
	wanted.task = buf_str(task);
	wanted.times = buf_str(times);
	buf_init(&listing.text, LIST_MAX);
	ok = when_open_default(&schedules, err) &&
	     schedules_add(schedules, &wanted, &id, hash, err) &&
	     schedules_find(schedules, NULL, id, list_one, &listing, err);
	(void)fputs(listing.text.data, out);
	buf_fini(&listing.text);
	schedules_close(schedules);
	return ok;
}

static int add_run(const struct options *options, FILE *out)
{
	struct buf task, times;
	struct err err = {0};
	int code = CODE_DONE;

	buf_init(&task, SCHEDULES_TASK_MAX);
	buf_init(&times, WHEN_TEXT_MAX * 4);
	if (!add(options, &task, &times, &err, out))
		code = verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED, "%s",
				     err.text);
	buf_fini(&times);
	buf_fini(&task);
	return code;
}

/* The schedule that is to be approved, as it was found. */
struct approval {
	struct listing listing;
	struct arena arena;
	struct schedule schedule; /* in `arena` */
	bool found;
};

/* A copy of the content of SCHEDULE and its numbers, whose texts end in NUL. */
static struct schedule copy_of(const struct schedule *schedule, struct arena *arena)
{
	struct schedule copy = *schedule;

	copy.workspace.data = arena_copy(arena, schedule->workspace);
	copy.agent.data = arena_copy(arena, schedule->agent);
	copy.task.data = arena_copy(arena, schedule->task);
	copy.times.data = arena_copy(arena, schedule->times);
	copy.zone.data = arena_copy(arena, schedule->zone);
	copy.by = copy.session = copy.last_session = copy.last_outcome = STR("");
	return copy;
}

static int64_t next_of(const struct schedule *schedule)
{
	return when_schedule_next(schedule->times, schedule->zone, schedule->made_s,
				  now_s());
}

/*
 * Write SCHEDULE, which has just been saved, in the form of today. A schedule that cannot
 * be written anew stays as it is, and runs at the same times.
 */
static void renew(struct schedules *schedules, const struct schedule *schedule)
{
	struct schedule renewed;
	struct buf times;

	buf_init(&times, WHEN_TEXT_MAX);
	if (when_schedule_renew(schedule, &times, &renewed))
		(void)schedules_renew(schedules, schedule, &renewed, NULL);
	buf_fini(&times);
}

static bool take_content(void *context, const struct schedule *schedule)
{
	struct approval *approval = context;

	approval->found = true;
	approval->schedule = copy_of(schedule, &approval->arena);
	return list_one(&approval->listing, schedule);
}

/*
 * Ask for consent on a terminal; elsewhere the person names the content (NAMED, its
 * hash).
 */
static bool is_meant(const struct approval *approval, const char *id, const char *named,
		     struct err *err, FILE *out)
{
	if (named != NULL)
		return (hash_is_valid(named) &&
			hash_matches(named, approval->schedule.hash)) ||
		       err_set(err, ESTALE,
			       "schedule %s has another content than %.64s: look at it again "
			       "(glovebox schedule list)",
			       id, named);
	if (!isatty(STDIN_FILENO))
		return err_set(err, EINVAL,
			       "nobody can be asked here: name the content that is approved, as in: "
			       "glovebox schedule approve %s %.*s",
			       id, HASH_SHOWN, approval->schedule.hash);
	return talk_confirm(out, "Is this to run by itself from now on?") ||
	       err_set(err, ECANCELED, "not approved");
}

static bool approve(const struct options *options, struct schedules *schedules,
		    struct approval *approval, struct err *err, FILE *out)
{
	const char *word = options->words[0];
	int64_t id = 0;

	if (!id_of(word, &id, err) ||
	    !schedules_find(schedules, NULL, id, take_content, approval, err))
		return false;
	if (!approval->found)
		return err_set(err, ENOENT,
			       "there is no schedule %s; see: glovebox schedule list",
			       word);
	(void)fputs(approval->listing.text.data, out);
	if (!is_meant(approval, word, options->word_count > 1 ? options->words[1] : NULL,
		      err, out))
		return false;
	if (!schedules_approve(schedules, id, approval->schedule.hash,
			       next_of(&approval->schedule), err))
		return false;
	renew(schedules, &approval->schedule);
	return true;
}

static int approve_run(const struct options *options, FILE *out)
{
	struct approval approval = {0};
	struct schedules *schedules = NULL;
	struct err err = {0};
	int code = CODE_DONE;

	buf_init(&approval.listing.text, LIST_MAX);
	if (!when_open_default(&schedules, &err) ||
	    !approve(options, schedules, &approval, &err, out))
		code = verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED, "%s",
				     err.text);
	else
		(void)fputs("Approved.\n", out);
	buf_fini(&approval.listing.text);
	arena_fini(&approval.arena);
	schedules_close(schedules);
	return code;
}

/* Change the state of the schedule that OPTIONS name. */
static int set_state(const struct options *options, enum schedule_state state, FILE *out)
{
	struct approval approval = {0};
	struct schedules *schedules = NULL;
	struct err err = {0};
	int64_t id = 0, next_s = 0;
	int code = CODE_DONE;

	buf_init(&approval.listing.text, LIST_MAX);
	if (!id_of(options->words[0], &id, &err)) {
		code = verb_complain(CODE_USAGE, "%s", err.text);
	} else if (!when_open_default(&schedules, &err) ||
		   !schedules_find(schedules, NULL, id, take_content, &approval, &err)) {
		code = verb_complain(CODE_FAILED, "%s", err.text);
	} else {
		if (state == SCHEDULE_ACTIVE && approval.found)
			next_s = next_of(&approval.schedule);
		if (!schedules_set_state(schedules, id, state, next_s, &err))
			code = verb_complain(CODE_FAILED, "%s", err.text);
		else if (state == SCHEDULE_ACTIVE)
			(void)fprintf(out,
				      "Schedule %" PRId64 " is active from now on.\n", id);
		else
			(void)fprintf(out,
				      "Schedule %" PRId64
				      " is disabled and stays in the list; "
				      "glovebox schedule enable %" PRId64
				      " lets it run again.\n",
				      id, id);
		if (code == CODE_DONE)
			renew(schedules, &approval.schedule);
	}
	buf_fini(&approval.listing.text);
	arena_fini(&approval.arena);
	schedules_close(schedules);
	return code;
}

static int enable_run(const struct options *options, FILE *out)
{
	return set_state(options, SCHEDULE_ACTIVE, out);
}

static int disable_run(const struct options *options, FILE *out)
{
	return set_state(options, SCHEDULE_DISABLED, out);
}

static int remove_run(const struct options *options, FILE *out)
{
	struct schedules *schedules = NULL;
	struct err err = {0};
	int64_t id = 0;
	int code = CODE_DONE;

	if (!id_of(options->words[0], &id, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	if (!when_open_default(&schedules, &err) || !schedules_remove(schedules, id, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		(void)fprintf(out, "Schedule %" PRId64 " is removed.\n", id);
	schedules_close(schedules);
	return code;
}

const struct verb verb_schedule_list = {
	.name = "schedule list",
	.summary = "list the schedules, also those that wait for approval",
	.arguments = "",
	.help = "List all schedules: number, state, content hash, agent, folder, times, task.\n"
		"Those that an agent asked for are pending until you approve them.",
	.example = "  glovebox schedule list",
	.options = list_options,
	.folds = true,
	.run = list_run,
};

const struct verb verb_schedule_add = {
	.name = "schedule add",
	.summary = "have an agent work on this folder by itself",
	.arguments = "PROMPT…",
	.help = "Write down that an agent is to work on PROMPT in a folder at certain times. It\n"
		"runs when glovebox schedule run is called then, which the systemd timer that\n"
		"comes along does each minute (docs/orchestration.md).",
	.example = "  glovebox schedule add --agent reviewer --when \"Mon..Fri 09:00\" \\\n"
		   "      \"Review what was committed since yesterday.\"",
	.options = add_options,
	.words_least = 1,
	.words_most = VERB_WORDS_ANY,
	.run = add_run,
};

const struct verb verb_schedule_approve = {
	.name = "schedule approve",
	.summary = "let a schedule run that an agent has asked for",
	.arguments = "ID [HASH]",
	.help = "Show the schedule ID with all it says, and approve exactly that content. On a\n"
		"terminal you are asked; elsewhere give HASH, that of the content which you looked\n"
		"at (12 digits or more, as list shows it).",
	.example = "  glovebox schedule approve 3\n  glovebox schedule approve 3 8a1f0c22b19d",
	.options = id_options,
	.words_least = 1,
	.words_most = 2,
	.names = NAMES_SCHEDULES,
	.run = approve_run,
};

const struct verb verb_schedule_enable = {
	.name = "schedule enable",
	.summary = "let a disabled schedule run again",
	.arguments = "ID",
	.help = "Let the schedule ID, which was approved once, run again from now on.",
	.example = "  glovebox schedule enable 3",
	.options = id_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_SCHEDULES,
	.run = enable_run,
};

const struct verb verb_schedule_disable = {
	.name = "schedule disable",
	.summary = "keep a schedule, but do not run it",
	.arguments = "ID",
	.help = "Keep the schedule ID, but do not run it. A run under way goes on.",
	.example = "  glovebox schedule disable 3",
	.options = id_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_SCHEDULES,
	.run = disable_run,
};

const struct verb verb_schedule_remove = {
	.name = "schedule remove",
	.summary = "forget a schedule",
	.arguments = "ID",
	.help = "Forget the schedule ID. Its number is not used again.",
	.example = "  glovebox schedule remove 3",
	.options = id_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_SCHEDULES,
	.run = remove_run,
};

/*
 * `glovebox schedule run` carries out the runs that are due. A process first claims a run
 * in the database, so any number of timers may call this verb at the same time. Each run
 * is a process of its own with a time limit, and is in the journal like any other run.
 */

enum {
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
	{"dry-run", 'n', OPTION_FLAG, NULL,
	 "list the schedules that are due, and run nothing"},
	{"max-seconds", 0, OPTION_COUNT, "N", "one run may take so long (default: 3600)"},
	OPTION_ROW_HELP,
	{0},
};

/* The schedules that were due when we looked. */
struct dues {
	struct schedule items[SCHEDULES_MAX]; /* in `arena` */
	struct arena arena;
	size_t count;
	int64_t now_s;
};

static bool take_due(void *context, const struct schedule *schedule)
{
	struct dues *dues = context;

	if (schedule->state != SCHEDULE_ACTIVE || !schedule->approved ||
	    schedule->next_s == 0 || schedule->next_s > dues->now_s ||
	    schedule->busy_until_s > dues->now_s)
		return true;
	dues->items[dues->count] = copy_of(schedule, &dues->arena);
	return ++dues->count < SCHEDULES_MAX;
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

static struct value *request_of(const struct schedule *due, uint64_t most_s)
{
	auto_free char *workspace = memory_copy_str(due->workspace);
	const struct setup setup = {.workspace = workspace};
	struct value *request = orchestrate_request(&setup, NULL);
	struct value *budget = value_new_object();

	value_set_str(request, "agent", due->agent);
	value_set_str(request, "task", due->task);
	value_set_integer(budget, "seconds", (int64_t)most_s);
	value_set(request, "budget", budget);
	return request;
}

/* Carry out a claimed run. OUTCOME and SESSION get its result and its session. */
static bool errand_run(struct errand *errand, const struct schedule *due, uint64_t most_s,
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

static void print_line(const struct schedule *due, const char *outcome,
		       const char *session, FILE *out)
{
	struct buf line;

	buf_init(&line, 8 << 10);
	(void)buf_addf(&line, "%" PRId64 "  ", due->id);
	text_add_name(&line, due->agent);
	(void)buf_adds(&line, "  in ");
	text_add_name(&line, due->workspace);
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
		    const struct schedule *due, uint64_t most_s, bool *good,
		    struct err *err, FILE *out)
{
	const int64_t now_s = clock_wall_ms() / MS_PER_S;
	const int64_t until_s = now_s + (int64_t)most_s + LAST_S + CLAIM_S;
	const int64_t next_s =
		when_schedule_next(due->times, due->zone, due->made_s, now_s);
	char session[JOURNAL_ID + 1] = "";
	struct buf outcome;
	bool claimed, kept;

	*good = true;
	if (!schedules_claim(schedules, due, now_s, until_s, next_s, &claimed, err))
		return false;
	if (!claimed)
		return true;
	buf_init(&outcome, OUTCOME_MAX);
	*good = errand_run(errand, due, most_s, &outcome, session);
	print_line(due, outcome.data, session, out);
	kept = schedules_end(schedules, due->id, until_s, outcome.data, session, err);
	renew(schedules, due);
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
	} else if (!when_open_default(&schedules, &err) ||
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
	arena_fini(&dues->arena);
	free(dues);
	return code;
}

const struct verb verb_schedule_run = {
	.name = "schedule run",
	.summary = "run the schedules that are due now (for timers)",
	.arguments = "",
	.help = "Work on every schedule that is due and approved, one after the other, and print\n"
		"a line for each. A run that was missed while the machine was off is made once.\n"
		"However many timers call this at the same time, each run is made once.\n\n"
		"Exit codes: 0 done (also when nothing was due), 1 a run failed, 130 cancelled.",
	.example = "  glovebox schedule run --dry-run\n"
		   "  systemctl --user enable --now glovebox-schedule.timer",
	.options = run_options,
	.run = run_run,
};
