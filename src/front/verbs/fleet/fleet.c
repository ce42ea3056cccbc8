/*
 * glovebox fleet: jobs on many machines: submitted, looked at, ended, tried again. The verbs
 * say what the store knows; the queue only adds what waits and what runs.
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "base/value.h"
#include "fleet/batch/job.h"
#include "fleet/queue/dead.h"
#include "fleet/queue/jobs.h"
#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/fleet/fleet_at.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	WATCH_MS = 2000, /* between two states of status --watch */
	CANCEL_S = 15,   /* for workers to end what was cancelled */
	CANCEL_LOOK_MS = 500,
	NAME_COLUMNS = 32,
	STATUS_COLUMNS = 9,
	CELL_BYTES = 64 << 10,
	LINE_BYTES = 1 << 20,
	DEAD_LISTED = 20, /* by the doctor, … */
	DEAD_OF_JOB = 5,  /* … and so many of one job */
};

/* The exit code of a failure: who asked in a wrong way is told so. */
static int complain(const char *verb, const struct err *err)
{
	/* An output that failed was told where it was printed. */
	if (err->text[0] == '\0')
		return CODE_FAILED;
	return verb_complain(err->code == EINVAL ? CODE_USAGE : CODE_FAILED,
			     "fleet %s: %s", verb, err->text);
}

/* NEED_NEW: a store that is not there is made; else a place that is lost would seem to be empty. */
enum need { NEED_QUEUE = 1, NEED_STORE = 2, NEED_WRITES = 4, NEED_NEW = 8 };

/* Open the store, to write when WRITES. One that is not there is made only when MAKES. */
static bool open_store(struct fleet_at *at_fleet, bool writes, bool makes, struct err *err)
{
	if (writes && !makes) {
		if (!fleet_at_open_store(at_fleet, false, err))
			return false;
		fleet_store_close(at_fleet->store);
		at_fleet->store = NULL;
	}
	return fleet_at_open_store(at_fleet, writes, err);
}

/*
 * Read OPTIONS and open what the verb NEEDs, of JOB (NULL: of none) where several fleets share the
 * jobs. Returns an exit code, -1: it goes on.
 */
static int open_place(struct fleet_at *at_fleet, const struct options *options,
		      const char *verb, const char *job, unsigned needs)
{
	struct err err = {0};

	if (!fleet_at_read(at_fleet, options, job, &err))
		return verb_complain(setup_code(&err), "fleet %s: %s", verb, err.text);
	if ((needs & NEED_STORE) != 0 && !open_store(at_fleet, (needs & NEED_WRITES) != 0,
						     (needs & NEED_NEW) != 0, &err))
		return complain(verb, &err);
	if ((needs & NEED_QUEUE) != 0 && !fleet_at_open_queue(at_fleet, &err))
		return complain(verb, &err);
	return -1;
}

/* Open the job NAME, which has to be one of the fleet's. */
static bool open_job(struct fleet_at *at_fleet, const char *name, struct fleet_job **job,
		     bool *paused, struct err *err)
{
	bool mine = false;

	if (!fleet_name_check(FLEET_JOB, name, err) ||
	    !fleet_jobs_enlisted(at_fleet->store, at_fleet->name, name, &mine, paused, err))
		return false;
	if (!mine)
		return err_set(err, ENOENT,
			       "%s: no job of the fleet %s has this name in %s; `glovebox fleet "
			       "status` lists them",
			       name, at_fleet->name, fleet_store_where(at_fleet->store));
	return fleet_job_open(at_fleet->store, name, job, err);
}

/* submit */

static const struct option_row submit_options[] = {
	{"job", 0, OPTION_TEXT, "NAME",
	 "the job's name (default: from the file's name and content)"},
	FLEET_AT_OPTION_ROWS,
	{0},
};

static bool forget_complete(struct fleet_at *at_fleet, const char *job, struct err *err)
{
	char key[FLEET_NAME_BYTES];

	(void)snprintf(key, sizeof(key), "complete.%s", job);
	return fleet_queue_unset(at_fleet->queue, FLEET_STATE, key, err);
}

/* Print the line of VERB for the job NAME, with the OPTIONS that say where the fleet is. */
static void print_next(const char *verb, const char *name, const struct options *options,
		       FILE *out)
{
	static const char *const places[] = {"fleet", "store", "fleet-name",
					     "credentials", "config"};
	struct buf line;

	buf_init(&line, LINE_BYTES);
	(void)buf_addf(&line, "glovebox fleet %s %s", verb, name);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const char *given = options_text(options, places[i]);

		if (given == NULL)
			continue;
		(void)buf_addf(&line, " --%s ", places[i]);
		/* A URL may have a password in it; @FILE names a file. */
		if (i == 0 && strchr(given + 1, '@') != NULL)
			(void)buf_adds(&line, "…");
		else
			shell_token_add_word(given, &line);
	}
	(void)fprintf(out, "%s\n", line.data);
	buf_fini(&line);
}

static bool submit_job(struct fleet_at *at_fleet, const char *path, const char *name,
		       struct fleet_tasks *take_tasks, const struct options *options,
		       FILE *out, struct err *err)
{
	struct fleet_reconciled found;
	struct fleet_job *job = NULL;
	bool ok, mine = false, paused = false;

	if (!fleet_job_begin(at_fleet->store, name, take_tasks, path, &job, err))
		return false;
	/* From here on the store knows all of it: a kill loses nothing. */
	ok = fleet_jobs_enlisted(at_fleet->store, at_fleet->name, name, &mine, &paused, err);
	/* A pause is the queue's as well: another fleet's does not hold here. */
	paused = paused && mine;
	ok = ok && fleet_jobs_enlist(at_fleet->store, at_fleet->name, name, paused, err) &&
	     forget_complete(at_fleet, name, err) &&
	     fleet_jobs_reconcile(at_fleet->queue, job, paused, &found, err);
	if (ok && paused)
		(void)fprintf(out,
			      "%s: %zu tasks, %zu have a result; it is paused, and nothing "
			      "was queued\nIt goes on with: ",
			      name, found.tasks, found.results);
	else if (ok)
		(void)fprintf(out,
			      "%s: %zu tasks, %zu queued now, %zu were queued, %zu have a "
			      "result\nHow far it is: ",
			      name, found.tasks, found.published, found.queued,
			      found.results);
	if (ok)
		print_next(paused ? "resume" : "status", name, options, out);
	else
		(void)err_while(err, "%s is in the store; the same line again goes on",
				name);
	fleet_job_free(job);
	return ok;
}

static int submit_run(const struct options *options, FILE *out)
{
	const char *path = options->words[0], *name = options_text(options, "job");
	struct fleet_tasks *tasks = NULL;
	char own[FLEET_NAME_MAX + 1];
	struct fleet_at at_fleet = {0};
	struct err err = {0};
	int code;

	if (name != NULL && !fleet_name_check(FLEET_JOB, name, &err))
		return verb_complain(CODE_USAGE, "fleet submit: --job: %s", err.text);
	/* Every line is checked before anything of it is sent anywhere. */
	if (!fleet_tasks_open(path, &tasks, &err))
		return verb_complain(CODE_USAGE, "fleet submit: %s", err.text);
	if (name == NULL) {
		fleet_job_name(path, fleet_tasks_hash(tasks), own);
		name = own;
	}
	code = open_place(&at_fleet, options, "submit", name,
			  NEED_QUEUE | NEED_STORE | NEED_WRITES | NEED_NEW);
	if (code < 0) {
		code = submit_job(&at_fleet, path, name, tasks, options, out, &err)
			       ? CODE_DONE
			       : complain("submit", &err);
		tasks = NULL;
	}
	fleet_tasks_free(tasks);
	fleet_at_fini(&at_fleet);
	return code;
}

static const char submit_help[] =
	"Give a file of tasks (docs/tasks.md) to a fleet. All lines are checked first: with a\n"
	"wrong one nothing is submitted. Then the tasks are written into the store, and at\n"
	"last into the queue. The same line again goes on with the same job: tasks that have\n"
	"a result or are queued stay as they are.";

const struct verb verb_fleet_submit = {
	.name = "fleet submit",
	.summary = "give a file of tasks to a fleet",
	.arguments = "TASKS",
	.help = submit_help,
	.example = "  glovebox fleet submit tasks.jsonl --job may",
	.options = submit_options,
	.words_least = 1,
	.words_most = 1,
	.run = submit_run,
};

/* status */

static const struct option_row status_options[] = {
	{"watch", 'w', OPTION_FLAG, NULL, "again each 2 s, until each task has a result"},
	{"json", 0, OPTION_FLAG, NULL, "print one JSON object a job"},
	FLEET_AT_OPTION_ROWS,
	{0},
};

/* How far a job is. */
struct state {
	const struct fleet_job *job;
	bool *done, *known; /* has a result; its status is counted */
	size_t tasks, results, queued, running, statuses[FLEET_STATUSES];
	size_t dead; /* messages that no worker could read */
	bool paused;
};

static void note_result(void *context, size_t nth)
{
	struct state *state = context;

	state->done[nth] = true;
	state->results++;
}

static bool note_notice(void *context, const char *id, struct str text)
{
	struct state *state = context;
	auto_value struct value *notice = NULL;
	const size_t nth = id != NULL ? fleet_job_find(state->job, id) : FLEET_JOB_NONE;
	enum fleet_status status;

	/* A notice is only a hint: the store says that there is a result. */
	if (nth == FLEET_JOB_NONE || !state->done[nth] || state->known[nth] ||
	    !value_parse(text, 0, &notice, NULL))
		return true;
	status = fleet_result_status(notice);
	if (status == FLEET_STATUSES)
		return true;
	state->known[nth] = true;
	state->statuses[status]++;
	return true;
}

static bool note_waiting(void *context, const char *id, const char *place)
{
	struct state *state = context;

	(void)id;
	(void)place;
	state->queued++;
	return true;
}

static bool read_state(struct fleet_at *at_fleet, const char *name,
		       const struct value *running, struct state *state, struct err *err)
{
	struct fleet_job *job = NULL;
	bool ok = open_job(at_fleet, name, &job, &state->paused, err);

	if (!ok)
		return false;
	state->job = job;
	state->tasks = fleet_tasks_count(fleet_job_tasks(job));
	state->done = memory_array(state->tasks + 1, sizeof(*state->done));
	state->known = memory_array(state->tasks + 1, sizeof(*state->known));
	state->running = value_count(value_member(running, name));
	ok = fleet_job_results(job, note_result, state, err);
	if (ok && at_fleet->queue != NULL)
		ok = fleet_queue_watch(at_fleet->queue, FLEET_WATCH_RESULTS, name, NULL,
				       false, note_notice, state, err) &&
		     fleet_queue_waiting(at_fleet->queue, name, note_waiting, state, err);
	for (size_t i = 0; ok && i < state->tasks; i++) {
		auto_value struct value *result = NULL;
		enum fleet_status status;

		if (!state->done[i] || state->known[i])
			continue;
		ok = fleet_job_result(job, i, &result, err);
		status = fleet_result_status(result);
		if (ok && status != FLEET_STATUSES)
			state->statuses[status]++;
	}
	free(state->done);
	free(state->known);
	fleet_job_free(job);
	state->job = NULL;
	return ok;
}

static void print_state(const char *name, const struct state *state, bool has_queue,
			FILE *out)
{
	const size_t waiting =
		state->queued > state->running ? state->queued - state->running : 0;

	verb_print_name(name, NAME_COLUMNS, out);
	(void)fprintf(out, " %zu of %zu", state->results, state->tasks);
	for (int i = 0; i < FLEET_STATUSES; i++) {
		if (state->statuses[i] > 0)
			(void)fprintf(out, ", %zu %s", state->statuses[i],
				      fleet_status_name((enum fleet_status)i));
	}
	if (state->running > 0)
		(void)fprintf(out, ", %zu running", state->running);
	if (waiting > 0)
		(void)fprintf(out, ", %zu waiting", waiting);
	if (state->dead > 0)
		(void)fprintf(out, ", %s%zu dead",
			      state->dead >= FLEET_DEAD_MOST ? "at least " : "",
			      state->dead);
	if (state->paused)
		(void)fprintf(out, ", paused");
	else if (has_queue && state->results + state->queued < state->tasks)
		(void)fprintf(out, ", %zu to be queued by a worker within a minute",
			      state->tasks - state->results - state->queued);
	(void)fprintf(out, "\n");
}

static struct value *state_value(const char *name, const struct state *state)
{
	struct value *object = value_new_object(), *statuses = value_new_object();

	value_set_text(object, "job", name);
	value_set_integer(object, "tasks", (int64_t)state->tasks);
	value_set_integer(object, "results", (int64_t)state->results);
	for (int i = 0; i < FLEET_STATUSES; i++)
		value_set_integer(statuses, fleet_status_name((enum fleet_status)i),
				  (int64_t)state->statuses[i]);
	value_set(object, "statuses", statuses);
	value_set_integer(object, "queued", (int64_t)state->queued);
	value_set_integer(object, "running", (int64_t)state->running);
	value_set_integer(object, "dead", (int64_t)state->dead);
	value_set_boolean(object, "paused", state->paused);
	return object;
}

/* How many items of DEAD are of the job NAME. */
static size_t count_dead(const struct value *dead, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < value_count(dead); i++) {
		if (str_is(value_str(value_member(value_item(dead, i), "job")), name))
			count++;
	}
	return count;
}

/* The names of the fleet's jobs; only NAME, unless it is NULL. */
static bool job_names(struct fleet_at *at_fleet, const char *name, struct value **names,
		      struct err *err)
{
	auto_value struct value *all = NULL;

	*names = value_new_array();
	if (name != NULL) {
		value_append(*names, value_new_text(name));
		return true;
	}
	if (!fleet_job_names(at_fleet->store, &all, err))
		return false;
	for (size_t i = 0; i < value_count(all); i++) {
		const char *job = value_text(value_item(all, i));
		bool mine = false, paused;

		if (!fleet_jobs_enlisted(at_fleet->store, at_fleet->name, job, &mine,
					 &paused, err))
			return false;
		if (mine)
			value_append(*names, value_new_text(job));
	}
	return true;
}

/* Print all states once. *LEFT: tasks without a result. */
static bool print_states(struct fleet_at *at_fleet, const struct options *options,
			 const char *only, size_t *left, size_t *bad, FILE *out,
			 struct err *err)
{
	auto_value struct value *names = NULL;
	auto_value struct value *dead = NULL;
	struct fleet_running running = {0};
	struct err why = {0};
	bool ok = job_names(at_fleet, only, &names, err), more_dead = false;

	*left = *bad = 0;
	if (ok && at_fleet->queue != NULL &&
	    (!fleet_running_read(at_fleet->queue, &running, &why) ||
	     !fleet_dead_list(at_fleet->queue, only, &dead, &more_dead, &why)))
		(void)verb_complain(0, "fleet status: %s", why.text);
	for (size_t i = 0; ok && i < value_count(names); i++) {
		const char *name = value_text(value_item(names, i));
		struct state state = {.dead = count_dead(dead, name)};

		ok = read_state(at_fleet, name, running.jobs, &state, err);
		/* A job that this release cannot read is no reason to leave out the others. */
		if (!ok && only == NULL && err->code == ENOTSUP) {
			(void)verb_complain(0, "fleet status: %s: %s", name, err->text);
			ok = true;
			continue;
		}
		if (!ok)
			break;
		*left += state.tasks - state.results;
		*bad += state.tasks - state.statuses[FLEET_DONE];
		if (options_given(options, "json")) {
			auto_value struct value *object = state_value(name, &state);

			ok = verb_print_json(object, 0, out) == CODE_DONE;
		} else {
			print_state(name, &state, at_fleet->queue != NULL, out);
		}
	}
	if (ok && !options_given(options, "json")) {
		if (value_count(names) == 0)
			(void)fprintf(out, "The fleet %s has no jobs in %s.\n",
				      at_fleet->name, fleet_store_where(at_fleet->store));
		if (running.workers > 0)
			(void)fprintf(out, "%zu workers, %zu of %zu cells busy\n",
				      running.workers, running.busy, running.cells);
		else if (at_fleet->queue != NULL && *left > 0)
			(void)fprintf(out, "No worker is there: glovebox worker --fleet … "
					   "--store …\n");
		if (value_count(dead) > 0)
			(void)fprintf(out,
				      "%s%zu dead message%s, which no worker could read: glovebox "
				      "fleet doctor lists %s\n",
				      more_dead ? "at least " : "", value_count(dead),
				      value_count(dead) == 1 ? "" : "s",
				      value_count(dead) == 1 ? "it" : "them");
	}
	value_free(running.jobs);
	return ok;
}

static int status_run(const struct options *options, FILE *out)
{
	const char *only = options->word_count > 0 ? options->words[0] : NULL;
	struct fleet_at at_fleet = {0};
	struct err err = {0};
	size_t left = 0, bad = 0;
	bool ok = true;
	int code = open_place(&at_fleet, options, "status", only, NEED_STORE);

	/* The store knows the most. Without the queue, only the store's part is printed. */
	if (code < 0 && !fleet_at_open_queue(&at_fleet, &err))
		(void)verb_complain(0, "fleet status: %s. What the store knows:", err.text);
	while (code < 0) {
		ok = print_states(&at_fleet, options, only, &left, &bad, out, &err);
		(void)fflush(out);
		if (!ok || left == 0 || !options_given(options, "watch"))
			code = ok ? CODE_DONE : complain("status", &err);
		else
			(void)poll(NULL, 0, WATCH_MS);
	}
	fleet_at_fini(&at_fleet);
	return code;
}

static const char status_help[] =
	"How far the jobs of a fleet are: results by their status, tasks that run and wait.\n"
	"The results are counted in the store; when the queue is away, they are all that is\n"
	"told.";

const struct verb verb_fleet_status = {
	.name = "fleet status",
	.summary = "how far the jobs of a fleet are",
	.arguments = "[JOB]",
	.help = status_help,
	.example = "  glovebox fleet status may --watch",
	.options = status_options,
	.words_most = 1,
	.run = status_run,
};

/* logs */

static const struct option_row logs_options[] = {
	{"follow", 'f', OPTION_FLAG, NULL, "go on as more comes, until a signal"},
	{"json", 0, OPTION_FLAG, NULL, "print the events as lines of JSON"},
	FLEET_AT_OPTION_ROWS,
	{0},
};

struct logging {
	FILE *out;
	bool json;
	size_t printed;
};

/* Append the last line of TEXT that has words. */
static void add_last_line(struct str text, struct buf *out)
{
	text = str_trim(text);
	for (size_t at = text.size; at > 0; at--) {
		if (text.data[at - 1] == '\n') {
			text = str_part(text, at, text.size);
			break;
		}
	}
	if (text.size > 0)
		(void)buf_addf(out, ": %.*s", (int)text.size, text.data);
}

/* Append the LINE of a task's journal in words. */
static void add_journal_line(const struct value *line, struct buf *out)
{
	static const char *const members[] = {"tool", "status", "reason", "text"};
	const struct value *event = value_member(line, "event");
	const struct str begins = value_str(value_member(line, "begins"));
	const struct str step = value_str(value_member(line, "step"));
	const struct str limit = value_str(value_member(line, "limit"));
	const struct str why = value_str(value_member(line, "message"));
	const struct str errors = value_str(value_member(line, "stderr"));
	const struct value *code = value_member(line, "exit");
	const struct value *number = value_member(line, "signal");

	if (begins.size > 0) {
		(void)buf_addf(out, "%.*s begins", (int)begins.size, begins.data);
	} else if (step.size > 0) {
		(void)buf_addf(out, "%.*s ends", (int)step.size, step.data);
		if (value_is_number(number))
			(void)buf_addf(out, " by signal %" PRId64, value_integer(number));
		else if (value_is_number(code))
			(void)buf_addf(out, " with exit code %" PRId64, value_integer(code));
		if (limit.size > 0)
			(void)buf_addf(out, " (limit %.*s)", (int)limit.size, limit.data);
		add_last_line(why.size > 0      ? why
			      : errors.size > 0 ? errors
						: value_str(value_member(line, "stdout")),
			      out);
	} else {
		(void)buf_addstr(out, value_str(event));
		for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
			const struct str text = value_str(value_member(line, members[i]));

			if (text.size > 0)
				(void)buf_addf(out, " %.*s", (int)text.size, text.data);
		}
	}
}

static bool print_event(void *context, const char *id, struct str text)
{
	struct logging *logging = context;
	auto_value struct value *event = NULL, *line = NULL;
	char when[CLOCK_TEXT] = "";
	const char *word;
	struct buf clean;

	if (id == NULL)
		return fflush(logging->out) == 0;
	/* An event is anybody's who may publish. */
	if (!value_parse(text, 0, &event, NULL) || value_kind(event) != VALUE_OBJECT)
		return true;
	logging->printed++;
	if (logging->json) {
		value_set_text(event, "id", id);
		return verb_print_json(event, 0, logging->out) == CODE_DONE;
	}
	clock_text_local(value_integer(value_member(event, "at_ms")), when);
	word = value_text(value_member(event, "event"));
	(void)fprintf(logging->out, "%s ", when);
	verb_print_name(id, NAME_COLUMNS, logging->out);
	buf_init(&clean, LINE_BYTES);
	const struct str said = value_str(value_member(event, "text"));
	if (word != NULL && strcmp(word, "line") != 0)
		(void)buf_addf(&clean, "%s%s%.*s", word, said.size > 0 ? " " : "",
			       (int)said.size, said.data);
	else if (value_parse(said, 0, &line, NULL))
		add_journal_line(line, &clean);
	else
		(void)buf_addstr(&clean, said);
	(void)fputc(' ', logging->out);
	verb_print_name(clean.data, 1, logging->out);
	(void)fputc('\n', logging->out);
	buf_fini(&clean);
	return true;
}

static int logs_run(const struct options *options, FILE *out)
{
	const char *id = options->word_count > 1 ? options->words[1] : NULL;
	struct logging logging = {.out = out, .json = options_given(options, "json")};
	struct fleet_at at_fleet = {0};
	struct err err = {0};
	int code;

	if (!fleet_name_check(FLEET_JOB, options->words[0], &err) ||
	    (id != NULL && !fleet_name_check(FLEET_ID, id, &err)))
		return verb_complain(CODE_USAGE, "fleet logs: %s", err.text);
	code = open_place(&at_fleet, options, "logs", options->words[0], NEED_QUEUE);
	if (code < 0)
		code = fleet_queue_watch(at_fleet.queue, FLEET_WATCH_EVENTS,
					 options->words[0], id,
					 options_given(options, "follow"), print_event,
					 &logging, &err)
			       ? CODE_DONE
			       : complain("logs", &err);
	if (code == CODE_DONE && logging.printed == 0)
		(void)verb_complain(CODE_DONE,
				    "fleet logs: nothing was said by %s%s%s within a day; "
				    "glovebox fleet results %s says what became of it",
				    options->words[0], id != NULL ? " " : "",
				    id != NULL ? id : "", options->words[0]);
	fleet_at_fini(&at_fleet);
	return code;
}

static const char logs_help[] =
	"The begins, ends and last lines of a job's tasks, of a day at most. The whole journal\n"
	"of a task is among its files: glovebox fleet results JOB --out DIR.";

const struct verb verb_fleet_logs = {
	.name = "fleet logs",
	.summary = "what tasks of a job have said",
	.arguments = "JOB [ID]",
	.help = logs_help,
	.example = "  glovebox fleet logs may django__django-11099 -f",
	.options = logs_options,
	.words_least = 1,
	.words_most = 2,
	.run = logs_run,
};

/* results */

static const struct option_row results_options[] = {
	{"follow", 0, OPTION_FLAG, NULL, "go on until each task has a result"},
	{"csv", 0, OPTION_FLAG, NULL, "print a table with commas"},
	{"json", 0, OPTION_FLAG, NULL, "print each result as a line of JSON"},
	{"out", 'o', OPTION_TEXT, "DIR", "write patches, journals and files to DIR/ID/"},
	FLEET_AT_OPTION_ROWS,
	{0},
};

struct printing {
	struct fleet_at *at_fleet;
	const struct options *options;
	const struct fleet_job *job;
	FILE *out;
	bool *printed;
	size_t left, bad; /* without a result; with one that is not "done" */
	bool ok;
	struct err err;
};

static void add_cell(const struct value *value, FILE *out)
{
	const char *text = value_text(value);
	struct buf number, cell;

	if (text != NULL) {
		const bool quotes = text[strcspn(text, ",\"\r\n")] != '\0';

		buf_init(&cell, CELL_BYTES);
		if (quotes)
			(void)buf_addc(&cell, '"');
		for (; *text != '\0'; text++) {
			if (*text == '"')
				(void)buf_addc(&cell, '"');
			(void)buf_addc(&cell, *text);
		}
		if (quotes)
			(void)buf_addc(&cell, '"');
		verb_print_name(cell.data, 0, out);
		buf_fini(&cell);
	} else if (value_kind(value) != VALUE_NULL) {
		buf_init(&number, LINE_BYTES);
		(void)value_print(value, 0, &number);
		(void)fputs(number.data, out);
		buf_fini(&number);
	}
}

static const char *const csv_columns[] = {"id",
					  "status",
					  "attempt",
					  "exit",
					  "/check/passed",
					  "/accounts/wall_s",
					  "/accounts/cpu_s",
					  "tokens",
					  "money",
					  "worker",
					  "host",
					  "began",
					  "ended"};

static void print_csv_head(FILE *out)
{
	for (size_t i = 0; i < sizeof(csv_columns) / sizeof(csv_columns[0]); i++)
		(void)fprintf(out, "%s%s", i > 0 ? "," : "", path_base_name(csv_columns[i]));
	(void)fputc('\n', out);
}

static void print_csv(struct value *result, FILE *out)
{
	for (size_t i = 0; i < sizeof(csv_columns) / sizeof(csv_columns[0]); i++) {
		const char *column = csv_columns[i];

		if (i > 0)
			(void)fputc(',', out);
		add_cell(column[0] == '/' ? value_at_pointer(result, column)
					  : value_member(result, column),
			 out);
	}
	(void)fputc('\n', out);
}

/*
 * Write the blob HASH as FOLDER/NAME, which stays below FOLDER; EINVAL: it would not, or one of
 * WRITTEN, the paths of this result, is the same.
 */
static bool write_blob(struct fleet_at *at_fleet, const char *folder, const char *name,
		       const char *hash, struct value *written, struct err *err)
{
	struct buf path;
	auto_close int fd = -1;
	bool ok;

	/* A file of the cell that has an absolute name. */
	name += strspn(name, "/");
	buf_init(&path, PATH_MAX);
	ok = (path_normal(folder, name, &path) && path_within(path.data, folder) &&
	      strcmp(path.data, folder) != 0) ||
	     err_set(err, EINVAL, "\"%.64s\" is no name of a file", name);
	if (ok && value_member(written, path.data) != NULL)
		ok = err_set(err, EINVAL,
			     "%s is another file of this result already: the store has this "
			     "one as the blob %s",
			     path.data, hash);
	ok = ok && fd_make_folders(path.data, err);
	if (ok) {
		value_set_boolean(written, path.data, true);
		/* A file that is there is another one's, or of an earlier line like this. */
		(void)unlink(path.data);
		fd = open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			  0644);
		ok = fd >= 0 || err_set(err, errno, "%s: %s", path.data, strerror(errno));
	}
	ok = ok && fleet_store_fetch(at_fleet->store, hash, fd, err);
	buf_fini(&path);
	return ok;
}

static bool write_blobs(struct printing *printing, const char *id, const struct value *result)
{
	static const char *const single[] = {"patch", "journal", NULL};
	const struct value *files = value_member(result, "files");
	auto_value struct value *written = value_new_object();
	struct err *err = &printing->err;
	struct buf folder;
	char *here = getcwd(NULL, 0);
	bool ok;

	buf_init(&folder, PATH_MAX);
	ok = (here != NULL &&
	      path_normal(here, options_text(printing->options, "out"), &folder) &&
	      buf_addf(&folder, "/%s", id)) ||
	     err_set(err, ENAMETOOLONG, "--out: the path is too long");
	free(here);
	for (const char *const *name = single; ok && *name != NULL; name++) {
		const char *hash = value_text(value_member(result, *name));

		if (hash != NULL)
			ok = write_blob(printing->at_fleet, folder.data, *name, hash,
					written, err);
	}
	for (void *at = value_first(files); ok && at != NULL; at = value_next(files, at)) {
		const char *hash = value_text(value_at(at));

		if (hash != NULL)
			ok = write_blob(printing->at_fleet, folder.data, value_key(at),
					hash, written, err);
		/* The others are wanted all the same. */
		if (!ok && err->code == EINVAL) {
			(void)complain("results", err);
			ok = true;
		}
	}
	buf_fini(&folder);
	return ok || err_while(err, "%s", id);
}

static void print_plain(const char *id, const struct value *result, FILE *out)
{
	const char *status = value_text(value_member(result, "status"));
	const struct value *accounts = value_member(result, "accounts");
	const char *message = value_text(value_member(result, "message"));

	verb_print_name(id, NAME_COLUMNS, out);
	(void)fputc(' ', out);
	verb_print_name(status != NULL ? status : "?", STATUS_COLUMNS, out);
	if (value_member(accounts, "wall_s") != NULL)
		(void)fprintf(out, " %8.1f s",
			      value_number(value_member(accounts, "wall_s")));
	if (value_number(value_member(result, "money")) > 0)
		(void)fprintf(out, "  $%.4f", value_number(value_member(result, "money")));
	if (message != NULL) {
		(void)fputs("  ", out);
		verb_print_name(message, 1, out);
	}
	(void)fputc('\n', out);
}

/* Print the result of the task NTH, once. */
static bool print_result(struct printing *printing, size_t nth)
{
	const char *id = fleet_tasks_id(fleet_job_tasks(printing->job), nth);
	auto_value struct value *result = NULL;

	if (printing->printed[nth])
		return true;
	printing->ok = fleet_job_result(printing->job, nth, &result, &printing->err);
	if (!printing->ok && printing->err.code == ENOENT)
		return printing->ok = true;
	if (!printing->ok)
		return false;
	printing->printed[nth] = true;
	printing->left--;
	if (fleet_result_status(result) != FLEET_DONE)
		printing->bad++;
	if (options_given(printing->options, "json")) {
		printing->ok = verb_print_json(result, 0, printing->out) == CODE_DONE;
	} else if (options_given(printing->options, "csv")) {
		print_csv(result, printing->out);
	} else {
		print_plain(id, result, printing->out);
	}
	if (printing->ok && options_given(printing->options, "out"))
		printing->ok = write_blobs(printing, id, result);
	return printing->ok;
}

static void mark_result(void *context, size_t nth)
{
	bool *has = context;

	has[nth] = true;
}

/* Print what the store has. */
static bool print_stored(struct printing *printing)
{
	const size_t count = fleet_tasks_count(fleet_job_tasks(printing->job));
	auto_free bool *has = memory_array(count + 1, sizeof(*has));

	printing->ok = fleet_job_results(printing->job, mark_result, has, &printing->err);
	for (size_t i = 0; printing->ok && i < count; i++) {
		if (has[i])
			(void)print_result(printing, i);
	}
	(void)fflush(printing->out);
	return printing->ok;
}

/* A notice says that there is something to look for; a second without one looks as well. */
static bool take_notice(void *context, const char *id, struct str text)
{
	struct printing *printing = context;
	const size_t nth = id != NULL ? fleet_job_find(printing->job, id) : FLEET_JOB_NONE;

	(void)text;
	if (nth != FLEET_JOB_NONE)
		(void)print_result(printing, nth);
	else if (id == NULL)
		(void)print_stored(printing);
	return printing->ok && printing->left > 0;
}

static int results_run(const struct options *options, FILE *out)
{
	const char *name = options->words[0];
	struct fleet_at at_fleet = {0};
	struct printing printing = {.at_fleet = &at_fleet,
				    .options = options,
				    .out = out,
				    .ok = true};
	const bool follows = options_given(options, "follow");
	struct fleet_job *job = NULL;
	auto_free bool *printed = NULL;
	bool paused;
	int code;

	if (options_given(options, "csv") && options_given(options, "json"))
		return verb_complain(CODE_USAGE,
				     "fleet results: --csv and --json exclude each other");
	code = open_place(&at_fleet, options, "results", name,
			  follows ? NEED_QUEUE | NEED_STORE : NEED_STORE);
	if (code < 0 && !open_job(&at_fleet, name, &job, &paused, &printing.err))
		code = complain("results", &printing.err);
	if (code < 0) {
		printing.job = job;
		printing.left = fleet_tasks_count(fleet_job_tasks(job));
		printed = memory_array(printing.left + 1, sizeof(*printed));
		printing.printed = printed;
		if (options_given(options, "csv"))
			print_csv_head(out);
		if (print_stored(&printing) && follows && printing.left > 0)
			printing.ok = fleet_queue_watch(at_fleet.queue, FLEET_WATCH_RESULTS,
							name, NULL, true, take_notice,
							&printing, &printing.err) &&
				      printing.ok;
		if (printing.ok && printing.left > 0)
			(void)verb_complain(0,
					    "fleet results: %zu of the %zu tasks of %s have no "
					    "result yet; --follow waits for them",
					    printing.left,
					    fleet_tasks_count(fleet_job_tasks(job)), name);
		code = !printing.ok ? complain("results", &printing.err)
		       : printing.left + printing.bad > 0 ? CODE_FAILED
							  : CODE_DONE;
	}
	fleet_job_free(job);
	fleet_at_fini(&at_fleet);
	return code;
}

static const char results_help[] =
	"The results of a job, as the store has them. Exits with 1 when a task has no result\n"
	"\"done\" yet.";

const struct verb verb_fleet_results = {
	.name = "fleet results",
	.summary = "the results of a job",
	.arguments = "JOB",
	.help = results_help,
	.example = "  glovebox fleet results may --csv >may.csv\n"
		   "  glovebox fleet results may --follow --out may/",
	.options = results_options,
	.words_least = 1,
	.words_most = 1,
	.run = results_run,
};

/* cancel, retry, pause, resume */

static const struct option_row plain_options[] = {
	FLEET_AT_OPTION_ROWS,
	{0},
};

static bool set_cancels(struct fleet_at *at_fleet, const char *job,
			const char *const *ids, uint64_t *removed, struct err *err)
{
	char key[FLEET_NAME_BYTES];
	bool ok = true;

	if (*ids == NULL) {
		(void)snprintf(key, sizeof(key), "cancel.%s", job);
		return fleet_queue_set(at_fleet->queue, FLEET_STATE, key, STR("true"), err) &&
		       fleet_queue_purge(at_fleet->queue, job, NULL, removed, err);
	}
	for (; ok && *ids != NULL; ids++) {
		(void)snprintf(key, sizeof(key), "cancel.%s.%s", job, *ids);
		ok = fleet_queue_set(at_fleet->queue, FLEET_STATE, key, STR("true"), err) &&
		     fleet_queue_purge(at_fleet->queue, job, *ids, removed, err);
	}
	return ok;
}

static bool cancel_job(struct fleet_at *at_fleet, const struct fleet_job *job,
		       const char *const *ids, FILE *out, struct err *err)
{
	const int64_t end_ms = clock_now_ms() + CANCEL_S * INT64_C(1000);
	const char *name = fleet_job_name_of(job);
	size_t written = 0, left = 0;
	uint64_t removed = 0;

	for (const char *const *id = ids; *id != NULL; id++) {
		if (fleet_job_find(job, *id) == FLEET_JOB_NONE)
			return err_set(err, EINVAL, "%s has no task \"%.128s\"", name, *id);
	}
	if (!set_cancels(at_fleet, name, ids, &removed, err) ||
	    !fleet_jobs_cancel(at_fleet->queue, at_fleet->store, job, ids, false,
			       &written, &left, err))
		return false;
	while (left > 0) {
		(void)poll(NULL, 0, CANCEL_LOOK_MS);
		if (!fleet_jobs_cancel(at_fleet->queue, at_fleet->store, job, ids,
				       clock_now_ms() >= end_ms, &written, &left, err))
			return false;
	}
	(void)fprintf(out, "%s: %" PRIu64 " tasks taken out of the queue, %zu cancelled\n",
		      name, removed, written);
	return true;
}

static int cancel_run(const struct options *options, FILE *out)
{
	struct fleet_at at_fleet = {0};
	struct fleet_job *job = NULL;
	struct err err = {0};
	bool paused;
	int code = open_place(&at_fleet, options, "cancel", options->words[0],
			      NEED_QUEUE | NEED_STORE | NEED_WRITES);

	if (code < 0)
		code = open_job(&at_fleet, options->words[0], &job, &paused, &err) &&
				       cancel_job(&at_fleet, job, options->words + 1, out,
						  &err)
			       ? CODE_DONE
			       : complain("cancel", &err);
	fleet_job_free(job);
	fleet_at_fini(&at_fleet);
	return code;
}

static const char cancel_help[] =
	"End tasks of a job, or all of them: those that wait are taken out of the queue, those\n"
	"that run are ended by their workers. Each gets the result \"cancelled\", unless it has\n"
	"one already. When this is interrupted, the same line again completes it, and so do the\n"
	"workers within a minute.";

const struct verb verb_fleet_cancel = {
	.name = "fleet cancel",
	.summary = "end a job, or tasks of it",
	.arguments = "JOB [ID…]",
	.help = cancel_help,
	.example = "  glovebox fleet cancel may django__django-11099",
	.options = plain_options,
	.words_least = 1,
	.words_most = VERB_WORDS_ANY,
	.run = cancel_run,
};

static const struct option_row retry_options[] = {
	{"status", 0, OPTION_TEXT, "STATUS,…",
	 "tasks with such a result: set_up, gave_up, failed, cancelled …"},
	{"dead", 0, OPTION_FLAG, NULL,
	 "tasks whose messages no worker could read (`fleet doctor` lists them)"},
	FLEET_AT_OPTION_ROWS,
	{0},
};

/* Take the result of the task NTH away, in store and queue, and what cancelled it. */
static bool forget_one(struct fleet_at *at_fleet, const struct fleet_job *job, size_t nth,
		       struct err *err)
{
	const char *id = fleet_tasks_id(fleet_job_tasks(job), nth);
	const char *name = fleet_job_name_of(job);
	char key[FLEET_NAME_BYTES];

	(void)snprintf(key, sizeof(key), "cancel.%s.%s", name, id);
	return fleet_queue_unset(at_fleet->queue, FLEET_STATE, key, err) &&
	       fleet_queue_purge(at_fleet->queue, name, id, NULL, err) &&
	       fleet_queue_forget(at_fleet->queue, name, id, err) &&
	       fleet_job_forget(job, nth, err);
}

static bool retry_job(struct fleet_at *at_fleet, const struct fleet_job *job,
		      unsigned statuses, bool paused, FILE *out, struct err *err)
{
	const size_t count = fleet_tasks_count(fleet_job_tasks(job));
	auto_free bool *has = memory_array(count + 1, sizeof(*has));
	struct fleet_reconciled found;
	char key[FLEET_NAME_BYTES];
	size_t again = 0;
	bool ok;

	(void)snprintf(key, sizeof(key), "cancel.%s", fleet_job_name_of(job));
	ok = fleet_job_results(job, mark_result, has, err) &&
	     fleet_queue_unset(at_fleet->queue, FLEET_STATE, key, err);
	for (size_t i = 0; ok && i < count; i++) {
		auto_value struct value *result = NULL;
		enum fleet_status status;

		if (!has[i])
			continue;
		ok = fleet_job_result(job, i, &result, err);
		status = fleet_result_status(result);
		if (!ok || status == FLEET_STATUSES || (statuses & 1U << status) == 0)
			continue;
		ok = forget_one(at_fleet, job, i, err);
		again++;
	}
	ok = ok && forget_complete(at_fleet, fleet_job_name_of(job), err) &&
	     fleet_jobs_reconcile(at_fleet->queue, job, paused, &found, err);
	if (!ok)
		return false;
	/* The worker that compares queue and store may have been faster with some of them. */
	if (!paused && found.published < again)
		found.published = again;
	(void)fprintf(out, "%s: %zu results taken away, %zu tasks queued\n",
		      fleet_job_name_of(job), again, found.published);
	return true;
}

static int retry_run(const struct options *options, FILE *out)
{
	const char *text = options_text(options, "status"), *name = options->words[0];
	const bool dead = options_given(options, "dead");
	struct fleet_at at_fleet = {0};
	struct fleet_job *job = NULL;
	struct err err = {0};
	size_t forgotten = 0;
	unsigned statuses;
	bool paused, ok;
	int code;

	if (!fleet_name_check(FLEET_JOB, name, &err) ||
	    !fleet_status_read_set("--status", text != NULL ? text : "", &statuses, &err) ||
	    (statuses == 0 && !dead &&
	     !err_set(&err, EINVAL,
		      "--status is missing: set_up,gave_up for example; or --dead")))
		return verb_complain(CODE_USAGE, "fleet retry: %s", err.text);
	code = open_place(&at_fleet, options, "retry", name,
			  NEED_QUEUE | NEED_STORE | NEED_WRITES);
	if (code < 0) {
		ok = !dead ||
		     fleet_dead_forget(at_fleet.queue, name, NULL, &forgotten, &err);
		if (ok && forgotten > 0)
			(void)fprintf(out, "%s: %zu dead message%s forgotten\n", name,
				      forgotten, forgotten == 1 ? "" : "s");
		ok = ok && open_job(&at_fleet, name, &job, &paused, &err);
		/* Dead messages may name a job that nobody has submitted. */
		if (ok)
			ok = retry_job(&at_fleet, job, statuses, paused, out, &err);
		else
			ok = err.code == ENOENT && forgotten > 0;
		code = ok ? CODE_DONE : complain("retry", &err);
	}
	fleet_job_free(job);
	fleet_at_fini(&at_fleet);
	return code;
}

static const char retry_help[] =
	"Take the results with these statuses away, and queue their tasks once more. A failed\n"
	"run is a result: nothing is tried again but what is named here, and tasks of which\n"
	"nothing had run. --dead: queue tasks once more whose messages no worker could read.";

const struct verb verb_fleet_retry = {
	.name = "fleet retry",
	.summary = "do tasks of a job once more",
	.arguments = "JOB",
	.help = retry_help,
	.example = "  glovebox fleet retry may --status set_up,gave_up\n"
		   "  glovebox fleet retry may --dead",
	.options = retry_options,
	.words_least = 1,
	.words_most = 1,
	.run = retry_run,
};

static bool set_paused(struct fleet_at *at_fleet, const struct fleet_job *job, bool pause,
		       FILE *out, struct err *err)
{
	const char *name = fleet_job_name_of(job);
	struct fleet_reconciled found = {0};
	char key[FLEET_NAME_BYTES];

	(void)snprintf(key, sizeof(key), "pause.%s", name);
	if (!fleet_jobs_enlist(at_fleet->store, at_fleet->name, name, pause, err))
		return false;
	if (pause) {
		if (!fleet_queue_set(at_fleet->queue, FLEET_STATE, key, STR("true"), err))
			return false;
		(void)fprintf(out, "%s: no more tasks begin; what runs goes on\n", name);
		return true;
	}
	if (!fleet_queue_unset(at_fleet->queue, FLEET_STATE, key, err) ||
	    !forget_complete(at_fleet, name, err) ||
	    !fleet_jobs_reconcile(at_fleet->queue, job, false, &found, err))
		return false;
	(void)fprintf(out, "%s: goes on, %zu tasks queued again\n", name, found.published);
	return true;
}

static int pausing_run(const struct options *options, FILE *out, bool pause)
{
	const char *verb = pause ? "pause" : "resume";
	struct fleet_at at_fleet = {0};
	struct fleet_job *job = NULL;
	struct err err = {0};
	bool paused;
	int code = open_place(&at_fleet, options, verb, options->words[0],
			      NEED_QUEUE | NEED_STORE | NEED_WRITES);

	if (code < 0)
		code = open_job(&at_fleet, options->words[0], &job, &paused, &err) &&
				       set_paused(&at_fleet, job, pause, out, &err)
			       ? CODE_DONE
			       : complain(verb, &err);
	fleet_job_free(job);
	fleet_at_fini(&at_fleet);
	return code;
}

static int pause_run(const struct options *options, FILE *out)
{
	return pausing_run(options, out, true);
}

static int resume_run(const struct options *options, FILE *out)
{
	return pausing_run(options, out, false);
}

const struct verb verb_fleet_pause = {
	.name = "fleet pause",
	.summary = "begin no more tasks of a job",
	.arguments = "JOB",
	.help = "Begin no more tasks of a job until it is resumed; what runs goes on.",
	.example = "  glovebox fleet pause may",
	.options = plain_options,
	.words_least = 1,
	.words_most = 1,
	.run = pause_run,
};

const struct verb verb_fleet_resume = {
	.name = "fleet resume",
	.summary = "go on with a job that was paused",
	.arguments = "JOB",
	.help = "Queue the tasks of a paused job that have no result.",
	.example = "  glovebox fleet resume may",
	.options = plain_options,
	.words_least = 1,
	.words_most = 1,
	.run = resume_run,
};

/* workers */

static const struct option_row workers_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print each worker as a line of JSON"},
	FLEET_AT_OPTION_ROWS,
	{0},
};

struct listing {
	FILE *out;
	bool json;
	size_t count;
};

static bool print_worker(void *context, const char *key, struct str text)
{
	struct listing *listing = context;
	auto_value struct value *beat = NULL;
	const struct value *labels;
	const char *program;
	double load;

	if (!value_parse(text, 0, &beat, NULL))
		return true;
	listing->count++;
	if (listing->json)
		return verb_print_json(beat, 0, listing->out) == CODE_DONE;
	program = value_text(value_member(beat, "program"));
	verb_print_name(key, NAME_COLUMNS, listing->out);
	load = value_number(value_member(beat, "load"));
	(void)fprintf(listing->out, " %d of %d cells busy, load %.1f, ",
		      fleet_running_number(beat, "busy"),
		      fleet_running_number(beat, "cells"),
		      load > FLEET_BEAT_MOST ? FLEET_BEAT_MOST
		      : load > 0             ? load
					     : 0);
	verb_print_name(program != NULL ? program : "?", 1, listing->out);
	labels = value_member(beat, "labels");
	for (size_t i = 0; i < value_count(labels); i++) {
		const char *label = value_text(value_item(labels, i));

		(void)fputs(i == 0 ? ", " : " ", listing->out);
		verb_print_name(label != NULL ? label : "?", 1, listing->out);
	}
	(void)fprintf(listing->out, "%s\n",
		      value_is_true(value_member(beat, "draining")) ? ", drains" : "");
	return true;
}

static int workers_run(const struct options *options, FILE *out)
{
	struct listing listing = {out, options_given(options, "json"), 0};
	struct fleet_at at_fleet = {0};
	struct err err = {0};
	int code = open_place(&at_fleet, options, "workers", NULL, NEED_QUEUE);

	if (code < 0)
		code = fleet_queue_keys(at_fleet.queue, FLEET_WORKERS, "", print_worker,
					&listing, &err)
			       ? CODE_DONE
			       : complain("workers", &err);
	if (code == CODE_DONE && listing.count == 0 && !listing.json)
		(void)fprintf(out,
			      "No worker is there: glovebox worker --fleet … --store …\n");
	fleet_at_fini(&at_fleet);
	return code;
}

const struct verb verb_fleet_workers = {
	.name = "fleet workers",
	.summary = "the workers of a fleet, and what they do",
	.arguments = "",
	.help = "The workers that have given a sign of life in the last 45 seconds.",
	.example = "  glovebox fleet workers",
	.options = workers_options,
	.run = workers_run,
};

/* limit */

static const struct option_row limit_options[] = {
	{"per-minute", 0, OPTION_COUNT, "N",
	 "requests to a model in a minute; a task without one counts as one"},
	FLEET_AT_OPTION_ROWS,
	{0},
};

static int limit_run(const struct options *options, FILE *out)
{
	const char *lane = options->words[0], *text = options->words[1];
	const uint64_t per_minute = options_count(options, "per-minute", 0);
	struct fleet_at at_fleet = {0};
	struct err err = {0};
	char *end = NULL;
	long permits;
	int code;

	errno = 0;
	permits = strtol(text, &end, 10);
	if (errno != 0 || *end != '\0' || end == text || permits < 0 ||
	    permits > INT_MAX || per_minute > INT_MAX)
		return verb_complain(CODE_USAGE,
				     "fleet limit: \"%.40s\" is no number of tasks; 0 is no limit",
				     text);
	if (!fleet_name_check(FLEET_LANE, lane, &err))
		return verb_complain(CODE_USAGE, "fleet limit: %s", err.text);
	/*
	 * A worker's share of the rate is that of its runs, which heartbeats tell. Only permits bound
	 * what others can claim to run, and how many runs under way ask at the same time.
	 */
	if (per_minute > 0 && permits == 0)
		return verb_complain(
			CODE_USAGE,
			"fleet limit: --per-minute needs a number of tasks as well, which "
			"bounds what a worker may claim of it: glovebox fleet limit %s 20 "
			"--per-minute %" PRIu64,
			lane, per_minute);
	code = open_place(&at_fleet, options, "limit", NULL,
			  NEED_QUEUE | NEED_STORE | NEED_WRITES | NEED_NEW);
	if (code < 0)
		code = fleet_jobs_keep_limit(at_fleet.store, at_fleet.name, lane,
					     (int)permits, (int)per_minute, &err) &&
				       fleet_queue_limit(at_fleet.queue, lane, (int)permits,
							 (int)per_minute, &err)
			       ? CODE_DONE
			       : complain("limit", &err);
	if (code == CODE_DONE && permits > 0)
		(void)fprintf(out, "%s: at most %ld tasks at the same time", lane, permits);
	else if (code == CODE_DONE)
		(void)fprintf(out, "%s: as many tasks at the same time as there are cells",
			      lane);
	if (code == CODE_DONE && per_minute > 0)
		(void)fprintf(out, ", %" PRIu64 " requests to a model in a minute",
			      per_minute);
	if (code == CODE_DONE)
		(void)fputc('\n', out);
	fleet_at_fini(&at_fleet);
	return code;
}

static const char limit_help[] =
	"At most N tasks of a lane at the same time, over all workers; 0: no limit. Workers\n"
	"know it after five seconds. What runs already goes on. --per-minute needs an N above 0.";

const struct verb verb_fleet_limit = {
	.name = "fleet limit",
	.summary = "how many tasks of a lane may run at the same time",
	.arguments = "LANE N",
	.help = limit_help,
	.example = "  glovebox fleet limit sonnet 10 --per-minute 60",
	.options = limit_options,
	.words_least = 2,
	.words_most = 2,
	.run = limit_run,
};

/* doctor */

static const struct option_row doctor_options[] = {
	{"nats-config", 0, OPTION_FLAG, NULL,
	 "print the users and permissions for the server's configuration"},
	{"json", 0, OPTION_FLAG, NULL, "print one JSON list"},
	FLEET_AT_OPTION_ROWS,
	{0},
};

static int print_permissions(const char *name, FILE *out)
{
	struct buf text;
	int code = CODE_DONE;

	buf_init(&text, LINE_BYTES);
	if (fleet_queue_permissions(name, &text))
		(void)fputs(text.data, out);
	else
		code = verb_complain(CODE_USAGE,
				     "fleet doctor: \"%.64s\" is no fleet's name", name);
	buf_fini(&text);
	return code;
}

static int print_report(const struct value *report, const struct options *options, FILE *out)
{
	bool wrong = false;

	for (size_t i = 0; i < value_count(report); i++) {
		const struct value *finding = value_item(report, i);

		wrong = wrong || str_is(value_str(value_member(finding, "state")), "wrong");
	}
	if (options_given(options, "json"))
		return verb_print_json(report, VALUE_PRETTY, out) != CODE_DONE || wrong
			       ? CODE_FAILED
			       : CODE_DONE;
	for (size_t i = 0; i < value_count(report); i++) {
		const struct value *finding = value_item(report, i);
		const char *text = value_text(value_member(finding, "text")),
			   *name = value_text(value_member(finding, "name")),
			   *state = value_text(value_member(finding, "state"));

		(void)fprintf(out, "%-8s ", state);
		verb_print_name(name, 1, out);
		(void)fputs(": ", out);
		verb_print_name(text, 1, out);
		(void)fputc('\n', out);
	}
	return wrong ? CODE_FAILED : CODE_DONE;
}

static void add_finding(struct value *report, const char *name, const char *state,
			const char *text)
{
	struct value *finding = value_new_object();

	value_set_text(finding, "name", name);
	value_set_text(finding, "state", state);
	value_set_text(finding, "text", text);
	value_append(report, finding);
}

static void add_store_finding(struct fleet_at *at_fleet, struct value *report)
{
	struct err err = {0};
	const bool ok = open_store(at_fleet, true, false, &err);

	/* The first submit makes it. */
	add_finding(report, "store",
		    ok                   ? "ok"
		    : err.code == ENOENT ? "warning"
					 : "wrong",
		    ok ? fleet_store_where(at_fleet->store) : err.text);
}

struct dead_findings {
	const struct value *dead; /* as of fleet_dead_list */
	const struct value *jobs; /* the names of those that the store has */
	struct value *listed;     /* {JOB: how many of it} */
	size_t count;             /* of all that are listed */
};

/* Add those of jobs that are KNOWN in the store, or the others. */
static void list_dead(struct dead_findings *findings, bool known, struct value *report)
{
	struct buf text;

	buf_init(&text, ERR_TEXT_MAX + LINE_BYTES);
	for (size_t i = 0; i < value_count(findings->dead); i++) {
		const struct value *item = value_item(findings->dead, i);
		const char *job = value_text(value_member(item, "job")),
			   *id = value_text(value_member(item, "id")),
			   *why = value_text(value_member(item, "why"));
		const int64_t before = value_integer(value_member(findings->listed, job));

		if (findings->count == DEAD_LISTED)
			break;
		if (before == DEAD_OF_JOB || value_has_text(findings->jobs, job) != known)
			continue;
		value_set_integer(findings->listed, job, before + 1);
		findings->count++;
		buf_clear(&text);
		(void)buf_addf(&text,
			       "%s/%s: %s; `glovebox fleet retry --dead %s%s` queues the task "
			       "that the store has, and forgets this",
			       job, id, why != NULL && why[0] != '\0' ? why : "?",
			       job[0] == '-' ? "-- " : "", job);
		add_finding(report, "dead", "warning", text.data);
	}
	buf_fini(&text);
}

/* Anybody who may publish can fill the list: jobs of the store stand first, and each has its part. */
static void add_dead_findings(struct fleet_at *at_fleet, struct value *report)
{
	auto_value struct value *dead = NULL;
	auto_value struct value *jobs = NULL;
	auto_value struct value *listed = value_new_object();
	struct dead_findings findings = {.listed = listed};
	struct err err = {0};
	char line[64];
	bool more = false;

	if (!fleet_dead_list(at_fleet->queue, NULL, &dead, &more, &err)) {
		add_finding(report, "dead", "warning", err.text);
		return;
	}
	if (value_count(dead) == 0)
		add_finding(report, "dead", "ok", "none");
	/* Without a store all of them are unknown. */
	else if (at_fleet->store != NULL)
		(void)fleet_job_names(at_fleet->store, &jobs, &err);
	findings.dead = dead;
	findings.jobs = jobs;
	list_dead(&findings, true, report);
	list_dead(&findings, false, report);
	if (more || value_count(dead) > findings.count) {
		(void)snprintf(line, sizeof(line), "%s%zu more", more ? "at least " : "",
			       value_count(dead) - findings.count);
		add_finding(report, "dead", "warning", line);
	}
}

static int doctor_run(const struct options *options, FILE *out)
{
	auto_value struct value *report = NULL;
	struct fleet_at at_fleet = {0};
	struct err err = {0};
	int code = open_place(&at_fleet, options, "doctor", NULL,
			      options_given(options, "nats-config") ? 0 : NEED_QUEUE);

	if (code < 0 && options_given(options, "nats-config")) {
		code = print_permissions(at_fleet.name, out);
	} else if (code < 0 && !fleet_queue_examine(at_fleet.queue, &report, &err)) {
		code = complain("doctor", &err);
	} else if (code < 0) {
		add_store_finding(&at_fleet, report);
		add_dead_findings(&at_fleet, report);
		code = print_report(report, options, out);
	}
	fleet_at_fini(&at_fleet);
	return code;
}

static const char doctor_help[] =
	"Look at the server and the store of a fleet, make what the server misses, and say what\n"
	"is at stake: version, replicas, sync_interval, streams. Exits with 1 when something\n"
	"is wrong.";

const struct verb verb_fleet_doctor = {
	.name = "fleet doctor",
	.summary = "is the fleet's server sound?",
	.arguments = "",
	.help = doctor_help,
	.example = "  glovebox fleet doctor\n"
		   "  glovebox fleet doctor --nats-config >>/etc/nats-server.conf",
	.options = doctor_options,
	.run = doctor_run,
};
