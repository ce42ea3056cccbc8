/*
 * work: the order of a task's steps, and its result. Each step may end the task; what comes
 * after the run (the check, what is kept) is done as far as the run's end allows it.
 */

#include "fleet/work.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "fleet/client.h"
#include "fleet/result.h"
#include "fleet/steps/collect.h"
#include "fleet/steps/site.h"
#include "fleet/steps/step.h"
#include "fleet/task.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	WALL_S = 24 * 3600, /* of a task that names no limits.wall_s */
	OPEN_S = 3600, /* for its workspace and its cell, however little time it has then */
	ENDING_S = 20, /* for a run that was asked to end; as long again, when it is killed */
	QUOTED_MAX = 60, /* characters of a command in a sentence */
	SIGNALS = 128,
	BESIDE_MS = 1000, /* for the same signal to come to us */
	BESIDE_PAUSE_MS = 20,
};

/* A run of our own agent: what the reading thread hears of it. */
struct hearing {
	struct fleet_steps *steps;
	int64_t run;                 /* its number; 0: not known yet */
	struct value *ended;         /* owned */
	char said[ERR_TEXT_MAX / 2]; /* the last sentence for the person */
	bool done;                   /* set at last, atomically */
};

/* The whole of a task that is being done. */
struct doing {
	struct fleet_steps steps;
	struct fleet_site site;
	struct fleet_collect collect;
	struct value *result;
	int64_t tokens;
	double money;
	bool money_known;
};

/* WALL_MS as RFC 3339 has it, in UTC. */
static void set_time(struct value *result, const char *name, int64_t wall_ms)
{
	const time_t seconds = (time_t)(wall_ms / 1000);
	char text[32] = "", whole[40];
	struct tm parts;

	if (gmtime_r(&seconds, &parts) != NULL)
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
	(void)snprintf(whole, sizeof(whole), "%s.%03dZ", text, (int)(wall_ms % 1000));
	value_set_text(result, name, whole);
}

/* Note that STEP begins, for those who look on. */
static void note_begin(struct doing *doing, const char *step)
{
	struct value *note = value_new_object();

	value_set_text(note, "begins", step);
	fleet_steps_note(&doing->steps, note);
}

/* Commands. */

/* The end of a command, as that of a process of a shell. */
static void set_exit(struct value *result, int code)
{
	value_set_integer(result, "exit", code);
}

static const char *blank_or(const struct buf *said, const char *before)
{
	return said->size > 0 ? before : "";
}

/* Say by RAN what the run, called WHAT, has made of the task. */
static void judge(struct doing *doing, const char *what, const struct fleet_ran *ran)
{
	struct fleet_steps *steps = &doing->steps;
	const bool wall = strcmp(ran->limit, "wall_s") == 0;

	if (ran->timed_out || wall)
		(void)fleet_steps_end(steps, FLEET_TIMED_OUT,
				      "%s took longer than limits.wall_s", what);
	else if (ran->limit[0] != '\0' && ran->code != 0)
		(void)fleet_steps_end(steps, FLEET_LIMIT, "%s was ended by limits.%s",
				      what, ran->limit);
	else if (ran->code > SIGNALS)
		(void)fleet_steps_end(steps, FLEET_FAILED, "%s was ended by signal %d%s%s",
				      what, ran->code - SIGNALS,
				      blank_or(&ran->said, ": "), ran->said.data);
	else if (ran->code != 0)
		(void)fleet_steps_end(steps, FLEET_FAILED,
				      "%s ended with exit code %d%s%s", what, ran->code,
				      blank_or(&ran->said, ": "), ran->said.data);
}

static bool do_setup(struct doing *doing)
{
	const struct fleet_task *task = doing->steps.work->task;
	struct fleet_steps *steps = &doing->steps;
	bool ok = true;

	for (size_t i = 0; i < value_count(task->setup) && ok; i++) {
		const char *command = value_text(value_item(task->setup, i));
		const char *const argv[] = {"bash", "-c", command, NULL};
		struct fleet_ran ran;

		ok = fleet_steps_run(steps, doing->site.cell, "setup", argv, task->cwd,
				     &ran);
		if (ok && ran.timed_out)
			ok = fleet_steps_end(steps, FLEET_TIMED_OUT,
					     "setup: %.*s took longer than limits.wall_s",
					     QUOTED_MAX, command);
		else if (ok && ran.code != 0)
			ok = fleet_steps_end(steps, FLEET_SET_UP,
					     "setup: %.*s ended with exit code %d%s%s",
					     QUOTED_MAX, command, ran.code,
					     blank_or(&ran.said, ": "), ran.said.data);
		fleet_ran_fini(&ran);
	}
	return ok;
}

static void run_command(struct doing *doing)
{
	const struct fleet_task *task = doing->steps.work->task;
	const char *const argv[] = {"bash", "-c", task->run.command, NULL};
	struct fleet_ran ran;

	if (fleet_steps_run(&doing->steps, doing->site.cell, "run", argv, task->cwd, &ran)) {
		set_exit(doing->result, ran.code);
		judge(doing, "the command", &ran);
	}
	fleet_ran_fini(&ran);
}

static void run_wrapped(struct doing *doing)
{
	struct fleet_ran ran;

	/* Nobody counts what an agent of somebody else's costs. */
	doing->money_known = false;
	if (fleet_site_wrap(&doing->steps, &doing->site, &ran)) {
		set_exit(doing->result, ran.code);
		judge(doing, doing->steps.work->task->run.profile, &ran);
	}
	fleet_ran_fini(&ran);
}

/* Our own agent. */

/* Tell of the request to the model that EVENT stands for, if it stands for one. */
static void tell_asked(const struct fleet_work *work, const struct value *event)
{
	static const char *const answers[] = {"message", "compacted", "sampled"};
	/* A delegate asks as well. */
	const struct value *own = value_member(event, "event_of") != NULL
					  ? value_member(event, "event_of")
					  : event;
	const struct str kind = value_str(value_member(own, "event"));
	const struct str again = value_str(value_member(own, "again"));
	bool asked = str_is(kind, "notice") && again.size > 0;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		asked = asked || str_is(kind, answers[i]);
	if (asked && work->asked != NULL)
		work->asked(work->context, str_is(again, "limited"));
}

/* Called by the reading thread. */
static void hear(void *context, const char *method, const struct value *params)
{
	struct hearing *hearing = context;
	const struct value *event = value_member(params, "event");

	if (strcmp(method, "run/event") == 0 && value_kind(event) == VALUE_OBJECT) {
		struct value *line = value_copy(event);
		const char *agent = value_text(value_member(params, "agent"));
		const char *text = value_text(value_member(event, "text"));

		if (agent != NULL)
			value_set_text(line, "agent", agent);
		if (text != NULL &&
		    str_is(value_str(value_member(event, "event")), "notice"))
			(void)snprintf(hearing->said, sizeof(hearing->said), "%s", text);
		tell_asked(hearing->steps->work, event);
		fleet_steps_note(hearing->steps, line);
	} else if (strcmp(method, "run/ended") == 0 && hearing->ended == NULL) {
		/* Its owners are counted by both threads: each has its own. */
		hearing->ended = value_copy(params);
		__atomic_store_n(&hearing->done, true, __ATOMIC_RELEASE);
	}
}

/* A copy of the number NAME of FROM as TO of the budget. */
static void set_bound(struct value *budget, const char *to, const struct value *from,
		      const char *name)
{
	const struct value *bound = value_member(from, name);

	if (bound != NULL)
		value_set(budget, to, value_ref(bound));
}

static struct value *run_params(const struct doing *doing)
{
	const struct fleet_task *task = doing->steps.work->task;
	struct value *params = value_new_object(), *budget = value_new_object();
	const double left = fleet_steps_left(&doing->steps);

	value_set_text(params, "cell", doing->site.cell);
	value_set_text(params, "prompt", task->run.prompt);
	if (task->run.model != NULL)
		value_set_text(params, "model", task->run.model);
	if (task->run.agent != NULL)
		value_set_text(params, "agent", task->run.agent);
	if (doing->steps.work->pace != NULL)
		value_set_text(params, "pace", doing->steps.work->pace);
	set_bound(budget, "tokens", task->limits, "tokens");
	set_bound(budget, "money", task->limits, "money");
	set_bound(budget, "answers", task->limits, "iterations");
	value_set_integer(budget, "seconds", left > 1 ? (int64_t)left : 1);
	value_set(params, "budget", budget);
	return params;
}

/* Ask the run to end, and kill it when it does not. False: its engine is gone. */
static bool end_run(struct doing *doing, struct hearing *hearing)
{
	struct fleet_client *client = doing->steps.work->client;
	struct fleet_refusal refusal;

	for (int tries = 0; tries < 2; tries++) {
		struct value *params = value_new_object(), *answer = NULL;

		value_set_text(params, "cell", doing->site.cell);
		value_set_integer(params, "run", hearing->run);
		if (fleet_client_call(client, "run/cancel", params, ENDING_S, NULL,
				      &answer, &refusal))
			value_free(answer);
		if (fleet_client_wait(client, &hearing->done, ENDING_S, NULL, &refusal))
			return true;
	}
	return false;
}

/* The use of the model. */
static void take_usage(struct doing *doing, const struct value *usage)
{
	doing->tokens += value_integer(value_member(usage, "input")) +
			 value_integer(value_member(usage, "output"));
	doing->money += value_number(value_member(usage, "money"));
	doing->money_known =
		doing->money_known && value_is_true(value_member(usage, "money_known"));
}

/* Say by the event of its end what the run has made of the task. */
static void judge_run(struct doing *doing, const struct value *told, const char *said)
{
	static const struct {
		const char *reason;
		enum fleet_status status;
	} reasons[] = {
		{"stopped", FLEET_DONE},     {"patch", FLEET_DONE},
		{"plan", FLEET_DONE},        {"cancelled", FLEET_CANCELLED},
		{"iterations", FLEET_LIMIT}, {"tokens", FLEET_LIMIT},
		{"money", FLEET_LIMIT},      {"wall", FLEET_TIMED_OUT},
		{"shell", FLEET_LIMIT},
	};
	const struct value *ended = value_member(told, "ended");
	const char *reason = value_text(value_member(ended, "reason"));
	const char *failed = value_text(value_member(told, "failed"));
	enum fleet_status status = FLEET_FAILED;

	if (reason == NULL) {
		(void)fleet_steps_end(&doing->steps, FLEET_SET_UP,
				      "the run did not begin: %s",
				      failed != NULL ? failed : "nobody knows why");
		return;
	}
	take_usage(doing, value_member(ended, "usage"));
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (strcmp(reasons[i].reason, reason) == 0)
			status = reasons[i].status;
	}
	if (value_is_true(value_member(ended, "may_pass")))
		status = FLEET_SET_UP;
	set_exit(doing->result, status == FLEET_DONE ? 0 : 1);
	if (status != FLEET_DONE)
		(void)fleet_steps_end(&doing->steps, status, "the run ended: %s%s%s",
				      reason, said[0] != '\0' ? ": " : "", said);
}

static void run_prompt(struct doing *doing)
{
	struct fleet_client *client = doing->steps.work->client;
	struct hearing hearing = {.steps = &doing->steps};
	auto_value struct value *answer = NULL;
	struct fleet_refusal refusal;
	bool ended;

	fleet_client_watch(client, doing->site.cell, hear, &hearing);
	if (fleet_steps_call(&doing->steps, "run/start", run_params(doing), &answer)) {
		hearing.run = value_integer(value_member(answer, "run"));
		ended = fleet_client_wait(client, &hearing.done,
					  fleet_steps_left(&doing->steps) + ENDING_S,
					  doing->steps.work->cancel, &refusal);
		if (!ended && strcmp(refusal.kind, "closed") != 0)
			ended = end_run(doing, &hearing);
		if (!ended)
			(void)fleet_steps_refused(&doing->steps, &refusal);
	}
	fleet_client_watch(client, doing->site.cell, NULL, NULL);
	if (hearing.ended != NULL)
		judge_run(doing, hearing.ended, hearing.said);
	value_free(hearing.ended);
}

/* The check. */

/* May the check still say something about what the run has made? */
static bool is_checked(const struct fleet_steps *steps)
{
	return !steps->ended || steps->status == FLEET_FAILED ||
	       steps->status == FLEET_LIMIT;
}

static void do_check(struct doing *doing)
{
	const struct fleet_task *task = doing->steps.work->task;
	const char *const argv[] = {"bash", "-c", task->check, NULL};
	/* An earlier end stays, whatever the check says. */
	struct fleet_steps *steps = &doing->steps, own = *steps;
	struct value *check;
	struct fleet_ran ran;

	own.ended = false;
	note_begin(doing, "check");
	if (fleet_steps_run(&own, doing->site.cell, "check", argv, task->cwd, &ran)) {
		check = value_new_object();
		value_set_integer(check, "exit", ran.code);
		value_set_boolean(check, "passed", ran.code == 0);
		value_set(doing->result, "check", check);
		judge(doing, "the check", &ran);
	} else {
		(void)fleet_steps_end(steps, own.status, "%s", own.said);
	}
	steps->journal_size = own.journal_size;
	fleet_ran_fini(&ran);
}

/* The whole. */

static void do_run(struct doing *doing)
{
	note_begin(doing, "run");
	doing->steps.runs = true;
	switch (doing->steps.work->task->run.kind) {
	case FLEET_PROMPT:
		run_prompt(doing);
		break;
	case FLEET_COMMAND:
		run_command(doing);
		break;
	case FLEET_WRAP:
		run_wrapped(doing);
		break;
	}
}

/* Facts of a cell from when it was opened, and when it was closed. */
static void tell_cell(struct value *result, const struct value *opened,
		      const struct value *closed)
{
	const struct value *base = value_member(opened, "base");
	const struct value *level = value_member(opened, "level");
	const struct value *accounts = value_member(closed, "accounts");

	value_set(result, "base_digest", base != NULL ? value_ref(base) : value_new_null());
	value_set(result, "level", level != NULL ? value_ref(level) : value_new_null());
	value_set(result, "accounts",
		  accounts != NULL ? value_ref(accounts) : value_new_null());
}

static double wall_of(const struct fleet_task *task)
{
	const struct value *wall = value_member(task->limits, "wall_s");

	return wall != NULL ? value_number(wall) : WALL_S;
}

static void do_all(struct doing *doing)
{
	const struct fleet_task *task = doing->steps.work->task;
	struct fleet_steps *steps = &doing->steps;

	note_begin(doing, "workspace");
	if (!fleet_site_open(steps, task->run.kind == FLEET_WRAP, &doing->site))
		return;
	fleet_steps_begin(steps, wall_of(task));
	if (value_count(task->setup) > 0)
		note_begin(doing, "setup");
	if (do_setup(doing) && fleet_collect_begin(steps, &doing->site, &doing->collect))
		do_run(doing);
	if (steps->runs && task->check != NULL && is_checked(steps))
		do_check(doing);
}

/* The members of a result that has them all, as null where nothing is known. */
static struct value *new_result(const struct fleet_work *work)
{
	static const char *const members[] = {"exit",    "check", "patch",
					      "journal", "files", "accounts",
					      "tokens",  "money", "base_digest",
					      "level"};
	struct value *result =
		fleet_result_new(work->job, work->task->id, work->attempt, FLEET_DONE);
	const struct value *labels = value_member(work->task->line, "labels");

	if (work->worker != NULL)
		value_set_text(result, "worker", work->worker);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		value_set(result, members[i], value_new_null());
	if (labels != NULL)
		value_set(result, "labels", value_ref(labels));
	return result;
}

/*
 * Was the run ended by what ends processes from outside? A scheduler, a service manager and a shell
 * send it to all processes of a job, and one of the task may get it before this one.
 */
static bool is_ended_from_outside(const struct doing *doing)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGKILL};
	const struct fleet_steps *steps = &doing->steps;
	const int64_t code = value_integer(value_member(doing->result, "exit"));
	bool found = steps->cell_lost;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		found = found || code == SIGNALS + signals[i];
	return found && steps->ended && steps->status == FLEET_FAILED;
}

static void finish(struct doing *doing)
{
	struct fleet_steps *steps = &doing->steps;
	auto_value struct value *opened = NULL, *closed = NULL;
	struct value *result = doing->result;
	const int64_t beside_ms = clock_now_ms() + BESIDE_MS;

	while (is_ended_from_outside(doing) && !fleet_steps_cancelled(steps) &&
	       clock_now_ms() < beside_ms)
		(void)poll(NULL, 0, BESIDE_PAUSE_MS);
	if (doing->site.cell != NULL && !fleet_steps_cancelled(steps) &&
	    !fleet_client_gone(steps->work->client))
		(void)fleet_collect_all(steps, &doing->site, &doing->collect, result);
	if (fleet_steps_cancelled(steps) &&
	    !(steps->ended && steps->status == FLEET_SET_UP)) {
		steps->ended = false;
		(void)fleet_steps_end(steps, FLEET_CANCELLED, "the task was cancelled");
	}
	opened = value_ref(doing->site.opened);
	fleet_site_close(steps, &doing->site, &closed);
	tell_cell(result, opened, closed);
	value_set_text(result, "status",
		       fleet_status_name(steps->ended ? steps->status : FLEET_DONE));
	value_set_integer(result, "tokens", doing->tokens);
	value_set(result, "money",
		  doing->money_known ? value_new_real(doing->money) : value_new_null());
	if (steps->ended && steps->said[0] != '\0')
		value_set_text(result, "message", steps->said);
}

struct value *fleet_work_do(const struct fleet_work *work)
{
	struct doing doing = {.result = new_result(work), .money_known = true};
	struct err err;

	set_time(doing.result, "began", clock_wall_ms());
	if (fleet_steps_init(&doing.steps, work, OPEN_S,
			     fleet_collect_wants_journal(work->task), &err))
		do_all(&doing);
	else
		(void)fleet_steps_end(&doing.steps, FLEET_SET_UP, "%s", err.text);
	finish(&doing);
	set_time(doing.result, "ended", clock_wall_ms());
	fleet_collect_fini(&doing.collect);
	fleet_steps_fini(&doing.steps);
	return doing.result;
}
