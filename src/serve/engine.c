/* engine: takes the requests of its caller, and has the cells and the tasks. */

#include "serve/engine.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "mcp/message.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "process/role.h"
#include "process/usage.h"
#include "sandbox/cgroup.h"
#include "sandbox/probe.h"
#include "serve/caller.h"
#include "session/session.h"
#include "tool/denial.h"
#include "tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

enum {
	SENTENCE_MAX = 1024,
	NAME_ROOM = 32,
	RULE_ROOM = 96, /* of the key of a policy */
	READY_MAX = 4,  /* workers that a caller may have made ahead */
	CLIENT_MAX = 256,
	OPENING_MAX = 8, /* cells that are built at the same time; more only wait for processors */
	REMOVERS = 16, /* threads that remove fresh workspaces at the end */
	IDLE_SECONDS_MAX = 365 * 24 * 3600,
	VARIABLES_MAX = 1024,
	LISTEN_AGAIN_MS = 200, /* before the next look for callers that cannot be taken now */
};

struct engine_caller {
	struct caller caller; /* first: they are one and the same */
	struct engine_caller *next;
	int owned;     /* its socket, which we have accepted; -1: none */
	bool did_read; /* before the tasks had their turn */
	bool looks;    /* it came when all other places were taken */
};

/* The parameters of a request. */

/* Say in SENTENCE what is wrong with the parameters of METHOD, as PROBLEM says. */
static void say_problem(const struct rows_problem *problem, struct buf *sentence)
{
	const char *place = problem->pointer[0] != '\0' ? problem->pointer + 1 : "params";
	const struct row *row = problem->row;

	switch (problem->fault) {
	case ROWS_KIND:
		(void)buf_addf(sentence, "%s must be %s, not %s", place,
			       value_kind_name(problem->wanted),
			       value_kind_name(value_kind(problem->value)));
		break;
	case ROWS_UNKNOWN:
		(void)buf_addf(sentence, "%s has no member \"%.100s\"%s%s%s", place,
			       problem->key, problem->nearest != NULL ? "; is it \"" : "",
			       problem->nearest != NULL ? problem->nearest : "",
			       problem->nearest != NULL ? "\"?" : "");
		break;
	case ROWS_MISSING:
		(void)buf_addf(sentence, "%s needs \"%s\": %s", place, row->name,
			       row->description);
		break;
	case ROWS_EMPTY:
		(void)buf_addf(sentence, "%s may not be empty", place);
		break;
	case ROWS_BELOW:
	case ROWS_ABOVE:
		(void)buf_addf(sentence, "%s must be %s %.15g%s", place,
			       problem->fault == ROWS_BELOW ? "at least" : "at most",
			       problem->bound,
			       value_is_number(problem->value) ? "" : " long");
		break;
	case ROWS_NUL:
		(void)buf_addf(sentence, "%s may not hold a NUL character", place);
		break;
	case ROWS_CHOICE:
		(void)buf_addf(sentence, "%s must be one of: %s", place, row->choices);
		break;
	case ROWS_OTHER:
		(void)buf_addf(sentence, "%s: %s", place, problem->why.text);
		break;
	}
}

/* Do PARAMS (NULL: none) fit METHOD? SENTENCE says what is wrong. */
static bool params_fit(const struct engine_method *method, const struct value *params,
		       struct buf *sentence)
{
	auto_value struct value *none = value_new_object();
	const struct row whole = {.kind = ROW_OBJECT, .rows = method->params};
	struct rows_problem problem;

	if (rows_check(&whole, params != NULL ? params : none, &problem))
		return true;
	(void)buf_addf(sentence, "%s: ", method->name);
	say_problem(&problem, sentence);
	return false;
}

bool engine_check_variables(const struct row *row, const struct value *value,
			    struct rows_problem *problem)
{
	(void)row;
	if (value_count(value) > VARIABLES_MAX)
		return rows_refuse(problem, NULL, "has more than %d variables",
				   VARIABLES_MAX);
	for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
		const struct str text = value_str(value_at(at));
		struct err err = {0};
		struct buf entry;
		bool fits;

		buf_init(&entry, ENGINE_VARIABLE);
		fits = value_kind(value_at(at)) == VALUE_STRING &&
		       memchr(text.data, '\0', text.size) == NULL &&
		       strchr(value_key(at), '=') == NULL;
		if (!fits)
			(void)err_set(&err, EINVAL,
				      "a value must be a text without NUL, and a name has no =");
		else if (!buf_addf(&entry, "%s=", value_key(at)) ||
			 !buf_addstr(&entry, text))
			fits = err_set(&err, E2BIG, "a variable has more than %d bytes",
				       ENGINE_VARIABLE);
		else
			fits = policy_check_variable(entry.data, &err);
		buf_fini(&entry);
		if (!fits)
			return rows_refuse(problem, NULL, "%s", err.text);
	}
	return true;
}

struct value *engine_variables(const struct value *env)
{
	struct value *list = value_new_array();

	for (void *at = value_first(env); at != NULL; at = value_next(env, at)) {
		struct buf text;

		buf_init(&text, ENGINE_VARIABLE);
		(void)buf_addf(&text, "%s=", value_key(at));
		(void)buf_addstr(&text, value_str(value_at(at)));
		value_append(list, value_new_str(buf_str(&text)));
		buf_fini(&text);
	}
	return list;
}

bool engine_path(const struct engine_cell *cell, const char *text, struct buf *path)
{
	return policy_normal(session_policy(cell->place.session),
			     cell->place.folder != NULL
				     ? cell->place.folder
				     : session_workspace(cell->place.session),
			     text, path);
}

/* Tasks. */

static const struct caller_fault calls_busy = {
	.kind = CALLER_BUSY, .remedy = "wait for an answer, or cancel a call"};

static void refuse_calls(struct caller *caller, const struct value *id)
{
	caller_refuse(caller, id, &calls_busy,
		      "%d calls are under way, which is the most", ENGINE_TASKS);
}

static const uint64_t kept_max = (uint64_t)ENGINE_KEPT_MIB << 20;

bool engine_has_room(const struct engine_request *request, uint64_t kept)
{
	struct engine *engine = request->engine;

	if (engine->task_count >= ENGINE_TASKS)
		refuse_calls(request->caller, request->id);
	else if (request->cell->tasks >= ENGINE_CELL_TASKS)
		caller_refuse(request->caller, request->id, &calls_busy,
			      "%d calls are under way in cell %s, which is the most",
			      ENGINE_CELL_TASKS, request->cell->name);
	else if (engine->kept + kept > kept_max)
		engine_refuse_kept(request->caller, request->id);
	else
		return true;
	return false;
}

bool engine_charge(struct engine *engine, uint64_t *charged, uint64_t kept)
{
	if (kept > *charged && engine->kept + (kept - *charged) > kept_max)
		return false;
	engine->kept = engine->kept - *charged + kept;
	*charged = kept;
	return true;
}

void engine_refuse_kept(struct caller *caller, const struct value *id)
{
	caller_refuse(caller, id,
		      &(struct caller_fault){.kind = CALLER_BUSY,
					     .remedy = "wait for an answer, or ask for less "
						       "by `keep` or `size`"},
		      "the calls under way and files in pieces may keep %d MiB together, which "
		      "is the most",
		      ENGINE_KEPT_MIB);
}

void engine_add_task(struct engine_task *task, const struct engine_request *request,
		     const struct value *id)
{
	struct engine *engine = request->engine;
	struct engine_cell *cell = request->cell;
	struct engine_task **end = &engine->tasks;

	task->engine = engine;
	task->cell = cell;
	task->caller = request->caller;
	task->id = id != NULL ? value_copy(id) : NULL;
	while (*end != NULL)
		end = &(*end)->next;
	*end = task;
	engine->task_count++;
	engine->kept += task->kept;
	cell->tasks++;
	cell->calls++;
	cell->used_ms = clock_now_ms();
}

void engine_task_fini(struct engine_task *task)
{
	running_free(task->running);
	value_free(task->id);
}

void engine_rest_task(struct engine_task *task)
{
	if (task->rests)
		return;
	task->rests = true;
	task->engine->task_count--;
	(void)engine_charge(task->engine, &task->kept, 0);
	task->cell->tasks--;
	task->cell->used_ms = clock_now_ms();
}

/* Take the task at *AT out of the list and free it. */
static void task_drop(struct engine_task **at)
{
	struct engine_task *task = *at;

	*at = task->next;
	engine_rest_task(task);
	task->free(task);
}

struct value *engine_accounts(const struct tool_result *result)
{
	struct accounts accounts = result->accounts;

	accounts.limit = denial_limit(result);
	return accounts_value(&accounts);
}

static const char open_another[] = "open another cell";
static const char set_up_remedy[] = "glovebox doctor says what this machine lacks";

/* Add what all of CELL has used so far to TOLD. */
static void add_cell_accounts(const struct engine_cell *cell, struct value *told)
{
	struct value *hosts = value_new_array();
	struct accounts accounts;

	session_accounts(cell->place.session, &accounts, hosts);
	value_set(told, "accounts", accounts_value(&accounts));
	value_set(told, "network", hosts);
}

/*
 * Name the rule and the remedy of FAULT, a refusal of CELL for which nothing has a denial: the view
 * or the guard has refused a path. ROOM is for the rule.
 */
static void name_wall(const struct engine_cell *cell, struct caller_fault *fault,
		      char room[RULE_ROOM])
{
	switch (fault->error) {
	case EROFS:
		(void)snprintf(room, RULE_ROOM, "agents.%.64s.write",
			       session_policy(cell->place.session)->name);
		fault->rule = room;
		fault->remedy =
			"name a path below a folder of the policy's `write`, or add "
			"it to that when the cell is opened";
		break;
	case EKEYREJECTED:
		fault->rule = "protected";
		fault->remedy = "run git by exec/run instead";
		break;
	case EKEYREVOKED:
		fault->rule = "protected";
		fault->remedy =
			"name the file itself in the policy's `write`, once it is there";
		break;
	default:
		break;
	}
}

void engine_refuse_result(struct caller *caller, const struct engine_cell *cell,
			  const struct value *id, bool cancelled,
			  const struct tool_result *result, const char *what)
{
	const struct value *denial = value_item(denial_list(result), 0);
	const int64_t error = value_integer(value_member(result->details, "code"));
	const struct str text = str_trim(buf_str(&result->text));
	const char *broken = session_broken(cell->place.session);
	struct caller_fault fault = {
		.kind = CALLER_UNAVAILABLE,
		.rule = value_text(value_member(denial, "rule")),
		.remedy = value_text(value_member(denial, "remedy")),
		.error = error > 0 && error < INT_MAX ? (int)error : 0,
	};
	char rule[RULE_ROOM];

	if (cancelled)
		fault = (struct caller_fault){.kind = CALLER_CANCELLED};
	else if (broken != NULL && !session_is_built(cell->place.session))
		fault = (struct caller_fault){.kind = CALLER_SET_UP,
					      .remedy = set_up_remedy};
	else if (broken != NULL)
		fault = (struct caller_fault){.kind = CALLER_CLOSED, .remedy = open_another};
	else if (result->status == RESULT_DENIED)
		fault.kind = CALLER_DENIED;
	else if (result->status == RESULT_TIMED_OUT)
		fault.kind = CALLER_LIMIT;
	else
		fault.kind = caller_kind_of(fault.error);
	if (fault.kind == CALLER_DENIED && fault.rule == NULL)
		name_wall(cell, &fault, rule);
	if (cancelled)
		caller_refuse(caller, id, &fault, "%s was cancelled", what);
	else
		caller_refuse(caller, id, &fault, "%s: %.*s", what, (int)text.size,
			      text.data);
}

/* Cells. */

static struct engine_cell *cell_find(struct engine *engine, const char *name)
{
	for (struct engine_cell **at = &engine->cells; *at != NULL; at = &(*at)->next) {
		struct engine_cell *cell = *at;

		if (strcmp(cell->name, name) != 0)
			continue;
		/* The cells in use stand at the beginning of the list. */
		*at = cell->next;
		cell->next = engine->cells;
		engine->cells = cell;
		return cell;
	}
	return NULL;
}

/* Is NAME one that the engine gives: "c" and a number? */
static bool is_made_name(const char *name)
{
	const size_t digits = name[0] == 'c' ? strspn(name + 1, "0123456789") : 0;

	return digits > 0 && name[1 + digits] == '\0';
}

/* The number of the cell with the made name NAME; 0: the caller has chosen NAME. */
static uint64_t made_number(const char *name)
{
	return is_made_name(name) ? strtoull(name + 1, NULL, 10) : 0;
}

/* The cell that REQUEST of METHOD names; NULL after a refusal. */
static struct engine_cell *cell_of(const struct engine_request *request,
				   const struct engine_method *method)
{
	struct engine *engine = request->engine;
	const char *name = value_text(value_member(request->params, "cell"));
	struct engine_cell *cell = cell_find(engine, name);
	const uint64_t number = made_number(name);

	if (cell != NULL)
		return cell;
	if (number > 0 && number <= engine->cells_made)
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_CLOSED,
						     .remedy = open_another},
			      "%s: cell %.100s has been closed", method->name, name);
	else
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_NO_SUCH,
						     .remedy = "cell/list names those that "
							       "are open"},
			      "%s: there is no cell %.100s; cell/list names those that are open",
			      method->name, name);
	return NULL;
}

/* Cancel all calls in CELL (NULL: in all cells). Is one of them still under way? */
static bool cancel_calls(const struct engine *engine, const struct engine_cell *cell)
{
	bool under_way = false;

	for (struct engine_task *at = engine->tasks; at != NULL; at = at->next) {
		if ((cell != NULL && at->cell != cell) || at->running == NULL)
			continue;
		running_cancel(at->running);
		under_way = under_way || !running_is_done(at->running);
	}
	return under_way;
}

/* End all that runs in CELL (NULL: in all cells), and answer the requests that wait. */
static void end_tasks(struct engine *engine, const struct engine_cell *cell)
{
	/* All are cancelled before the first of them is waited for. */
	(void)cancel_calls(engine, cell);
	for (struct engine_task **at = &engine->tasks; *at != NULL;) {
		struct engine_task *task = *at;

		if (cell != NULL && task->cell != cell) {
			at = &task->next;
			continue;
		}
		if (task->id != NULL && task->caller != NULL && !task->over)
			caller_refuse(task->caller, task->id,
				      &(struct caller_fault){.kind = CALLER_CLOSED,
							     .remedy = open_another},
				      "cell %s was closed while the call was under way",
				      task->cell->name);
		task_drop(at);
	}
}

/* Close CELL, in which no task is left. False: nothing of it is kept. */
static bool cell_end(struct engine *engine, struct engine_cell *cell, bool keeps)
{
	struct engine_cell **at = &engine->cells;

	while (*at != cell)
		at = &(*at)->next;
	*at = cell->next;
	engine->cell_count--;
	engine->passing -= (size_t)(cell->idle_s > 0) + (size_t)cell->failed;
	loop_remove_timer(&cell->idle);
	if (!keeps)
		session_drop_layer(cell->place.session);
	session_close(cell->place.session);
	const bool kept = engine->options.host.closed(engine->options.host.context,
						      &cell->place, keeps);
	engine_tools_free(cell);
	engine_files_forget(engine, cell, NULL);
	engine_trees_forget(engine, cell, NULL);
	free(cell->offered);
	free(cell->name);
	free(cell);
	return kept;
}

static void idle_due(struct timer *timer)
{
	(void)timer; /* its cell is closed between the turns of the loop */
}

/*
 * Close the cells that nobody has used for the time that their callers have named, and those
 * that could not be built.
 */
static void close_idle(struct engine *engine)
{
	const int64_t now = clock_now_ms();

	/* A look at thousands of cells in each turn would be a part of what each of them costs. */
	if (engine->passing == 0)
		return;
	for (struct engine_cell *at = engine->cells, *next; at != NULL; at = next) {
		const int64_t due = at->used_ms + (int64_t)(at->idle_s * 1000);

		next = at->next;
		if (at->failed) {
			end_tasks(engine, at);
			cell_end(engine, at, false);
			continue;
		}
		if (at->idle_s <= 0)
			continue;
		if (at->tasks > 0 || now < due) {
			at->idle.due_ms = at->tasks > 0 ? CLOCK_NEVER : due;
			continue;
		}
		struct value *told = value_new_object();

		value_set_text(told, "cell", at->name);
		value_set_text(told, "reason", "idle");
		/* Programs that have ended can still be asked for until now. */
		end_tasks(engine, at);
		(void)cell_end(engine, at, false);
		for (struct engine_caller *to = engine->callers; to != NULL; to = to->next)
			(void)caller_tell(&to->caller, "cell/closed", value_copy(told),
					  false);
		value_free(told);
	}
}

/* Methods about cells. */

/* Does this kernel lay layers? A module that nobody has used yet is not there. */
static bool has_overlay(void)
{
	struct buf names;
	bool has;

	buf_init(&names, SENTENCE_MAX * 16);
	has = fd_read_at(AT_FDCWD, "/proc/filesystems", &names) &&
	      strstr(names.data, "\toverlay\n") != NULL;
	buf_fini(&names);
	return has;
}

static void add_machine(struct value *told)
{
	struct cgroup_place place;
	struct probe_reach reach;

	probe_reach(&reach);
	tool_set_strength(told, reach.strength);
	if (reach.because[0] != '\0')
		value_set_text(told, "because", reach.because);
	value_set_integer(told, "cpus", clock_cores_usable());
	value_set_integer(told, "memory",
			  (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
	cgroup_find("", &place);
	value_set_text(told, "cgroup",
		       place.version == 2   ? "v2"
		       : place.version == 1 ? "v1"
					    : "none");
	cgroup_leave(&place);
	value_set_boolean(told, "overlay",
			  reach.strength.level == SANDBOX_SEALED && has_overlay());
}

static void add_limits(const struct engine *engine, struct value *told)
{
	struct value *limits = value_new_object();

	value_set_integer(limits, "cells", (int64_t)engine->options.max_cells);
	value_set_integer(limits, "calls", ENGINE_TASKS);
	value_set_integer(limits, "cell_calls", ENGINE_CELL_TASKS);
	value_set_integer(limits, "line", CALLER_LINE_MAX);
	value_set_integer(limits, "kept", (int64_t)kept_max);
	value_set(told, "limits", limits);
}

static struct value *method_names(void);

static const struct row hello_params[] = {
	{"version", ROW_INTEGER, true, "the version of the wire that the caller speaks"},
	{"client", ROW_BYTES, false, "the caller's name and version", .max = CLIENT_MAX},
	{0},
};

static void hello(const struct engine_request *request)
{
	struct engine *engine = request->engine;
	const int64_t version = value_integer(value_member(request->params, "version"));
	struct value *told;

	if (version != ENGINE_VERSION) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE},
			      "hello: version %" PRId64 " is not spoken here; ask for %d",
			      version, ENGINE_VERSION);
		return;
	}
	request->caller->greeted = true;
	told = value_new_object();
	value_set_text(told, "program", engine->options.program);
	value_set_integer(told, "version", ENGINE_VERSION);
	add_machine(told);
	add_limits(engine, told);
	value_set(told, "methods", method_names());
	caller_answer(request->caller, request->id, told);
}

static const struct row workspace_rows[] = {
	{"from", ROW_FOLDER, false, "the folder that a layer is laid over", .min = 1,
	 .max = PATH_MAX},
	{"snapshot", ROW_BYTES, false, "the snapshot that a layer is laid over", .min = 1,
	 .max = ENGINE_NAME},
	{0},
};

static bool check_workspace(const struct row *row, const struct value *value,
			    struct rows_problem *problem)
{
	(void)row;
	return value_kind(value) != VALUE_OBJECT || value_count(value) == 1 ||
	       rows_refuse(problem, NULL, "names either `from` or `snapshot`");
}

/* Every member of an object of variables or limits is checked where it is used. */
static const struct row open_params[] = {
	{"workspace", ROW_EITHER, false,
	 "a folder that exists, {\"from\": DIR} or {\"snapshot\": NAME}; a fresh one unless told",
	 .min = 1, .max = PATH_MAX, .rows = workspace_rows, .check = check_workspace},
	{"base", ROW_BYTES, false, "the root of the cell, as in `cell_base` of a policy",
	 .min = 1, .max = PATH_MAX},
	{"at", ROW_BYTES, false, "the place at which the cell shows the workspace as well",
	 .min = 1, .max = 2 * PATH_MAX},
	{"policy", ROW_VALUES, false, "what may be done, in place of an agent's rights"},
	{"agent", ROW_BYTES, false, "the agent whose rights hold", .max = ENGINE_NAME},
	{"within", ROW_BYTES, false, "an agent whose rights bound them, if it has an entry",
	 .min = 1, .max = ENGINE_NAME},
	{"name", ROW_BYTES, false, "a name for the cell", .min = 1, .max = ENGINE_NAME},
	{"env", ROW_VALUES, false, "variables of its programs",
	 .check = engine_check_variables},
	{"limits", ROW_VALUES, false, "limits in place of those of the policy"},
	{"ready", ROW_COUNT, false, "workers made ahead of calls", .max = READY_MAX},
	{"idle_s", ROW_SECONDS, false, "closed when it was not used for so long",
	 .min = 0.001, .max = IDLE_SECONDS_MAX},
	{0},
};

static struct value *layer_value(const struct engine_cell *cell)
{
	struct value *told = value_new_object();

	value_set_text(told, "id", cell->place.layer);
	value_set_text(told, "place", cell->place.layer_lies);
	return told;
}

/* Tell of BASE: `base` is its digest, where it has one. */
static void add_base(const struct session_base *base, struct value *told)
{
	if (base->word == NULL)
		return;
	value_set_text(told, "base_word", base->word);
	if (base->digest[0] != '\0')
		value_set_text(told, "base", base->digest);
	if (base->user[0] != '\0')
		value_set_text(told, "base_user", base->user);
}

static struct value *cell_value(const struct engine_cell *cell)
{
	struct session *session = cell->place.session;
	struct value *told = value_new_object();

	value_set_text(told, "cell", cell->name);
	tool_set_strength(told, session_strength(session));
	value_set_text(told, "workspace", session_workspace(session));
	if (cell->place.folder != NULL)
		value_set_text(told, "folder", cell->place.folder);
	if (strcmp(session_shown(session), session_workspace(session)) != 0)
		value_set_text(told, "at", session_shown(session));
	value_set_boolean(told, "fresh", cell->place.fresh != NULL);
	if (cell->place.layer != NULL)
		value_set(told, "layer", layer_value(cell));
	if (cell->place.snapshot != NULL)
		value_set_text(told, "snapshot", cell->place.snapshot);
	add_base(session_base(session), told);
	return told;
}

static struct value *info_value(const struct engine_cell *cell)
{
	const int64_t now = clock_now_ms();
	struct value *told = cell_value(cell);
	const char *broken = session_broken(cell->place.session);

	value_set_text(told, "state",
		       broken != NULL    ? "broken"
		       : cell->tasks > 0 ? "busy"
					 : "idle");
	if (broken != NULL)
		value_set_text(told, "because", broken);
	value_set_real(told, "age_s", (double)(now - cell->opened_ms) / 1000);
	value_set_real(told, "unused_s",
		       cell->tasks > 0 ? 0 : (double)(now - cell->used_ms) / 1000);
	value_set_integer(told, "calls", (int64_t)cell->calls);
	value_set_integer(told, "under_way", (int64_t)cell->tasks);
	return told;
}

/* May a cell with NAME (or NULL) be opened? False: the request was refused. */
static bool may_open(const struct engine_request *request, const char *name)
{
	struct engine *engine = request->engine;
	const struct value *params = request->params;

	if (engine->task_count >= ENGINE_TASKS)
		refuse_calls(request->caller, request->id);
	else if (engine->cell_count >= engine->options.max_cells)
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_BUSY,
						     .rule = "max_cells",
						     .remedy = "close a cell, or start with a "
							       "larger --max-cells"},
			      "cell/open: %zu cells are open, which is the most",
			      engine->cell_count);
	else if (name != NULL && is_made_name(name))
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE},
			      "cell/open: %s is the name of a cell without a name; choose "
			      "another",
			      name);
	else if (name != NULL && cell_find(engine, name) != NULL)
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE},
			      "cell/open: a cell %s is open already; close it, or choose another "
			      "name",
			      name);
	else if (value_member(params, "policy") != NULL &&
		 value_member(params, "agent") != NULL)
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE},
			      "cell/open: policy and agent exclude each other: give one of both");
	else
		return true;
	return false;
}

/*
 * The error of the kernel by which TEXT, why a cell could not be opened, says that descriptors have
 * run out; 0: it says something else. Then no wish is wrong, and this machine lacks nothing.
 */
static int ran_out(const char *text)
{
	if (strstr(text, strerror(EMFILE)) != NULL || strstr(text, "ulimit -n") != NULL)
		return EMFILE;
	return strstr(text, strerror(ENFILE)) != NULL ? ENFILE : 0;
}

static void cell_open_failed(struct caller *caller, const struct value *id,
			     const struct err *err)
{
	static const char advice[] = "; run ";
	struct caller_fault fault = {.kind = caller_kind_of(err->code), .error = err->code};
	const char *advised = strstr(err->text, advice);

	/* A wish that is wrong has no error of the system. */
	if (fault.kind == CALLER_UNAVAILABLE)
		fault.kind = CALLER_USAGE;
	if (fault.kind != CALLER_LIMIT && ran_out(err->text) != 0)
		fault = (struct caller_fault){.kind = CALLER_SET_UP,
					      .error = ran_out(err->text)};
	else if (fault.kind == CALLER_SET_UP)
		fault = (struct caller_fault){.kind = CALLER_SET_UP,
					      .remedy = set_up_remedy};
	/* A sentence about a base ends with the line that helps, if one does (image/base.h). */
	if (str_starts(str_of(err->text), STR("base "))) {
		fault.rule = "cell_base";
		fault.remedy = advised != NULL ? advised + sizeof("; ") - 1 : NULL;
	}
	caller_refuse(caller, id, &fault, "cell/open: %s", err->text);
}

/* A request to open a cell, which is being built. */

static void opening_free(struct engine_task *task)
{
	engine_task_fini(task);
	free(task);
}

static void opening_turn(struct engine_task *task)
{
	struct engine_cell *cell = task->cell;
	const char *broken = session_broken(cell->place.session);
	struct err err;

	if (task->cancelled) {
		caller_refuse(task->caller, task->id,
			      &(struct caller_fault){.kind = CALLER_CANCELLED},
			      "cell/open was cancelled");
	} else if (broken != NULL) {
		(void)err_set(&err, ECHILD, "%s", broken);
		cell_open_failed(task->caller, task->id, &err);
	} else if (session_is_built(cell->place.session)) {
		caller_answer(task->caller, task->id, cell_value(cell));
		task->over = true;
		return;
	} else {
		return;
	}
	cell->failed = true;
	task->engine->passing++;
	task->over = true;
}

static void opening_begin(const struct engine_request *request, struct engine_cell *cell)
{
	struct engine_task *task = memory_alloc(sizeof(*task));

	task->turn = opening_turn;
	task->free = opening_free;
	struct engine_request of_cell = *request;

	of_cell.cell = cell;
	engine_add_task(task, &of_cell, request->id);
	cell->calls--; /* it is none */
}

/* Wait while as many cells are being built as are built at the same time, or until the end. */
static void opening_wait(struct engine *engine)
{
	size_t count;

	do {
		count = 0;
		for (const struct engine_task *at = engine->tasks; at != NULL; at = at->next)
			count += at->turn == opening_turn &&
				 !session_is_built(at->cell->place.session) &&
				 session_broken(at->cell->place.session) == NULL;
		if (count >= OPENING_MAX && !engine->stopped)
			loop_turn(engine->loop, CLOCK_NEVER);
	} while (count >= OPENING_MAX && !engine->stopped);
}

/* Begin to open the cell NAME (NULL: the engine names it). NULL with ERR: it cannot be opened. */
static struct engine_cell *cell_begin(struct engine *engine, const struct engine_wish *wish,
				      const char *name, double idle_s, struct err *err)
{
	struct engine_cell *cell = memory_alloc(sizeof(*cell));
	char made[NAME_ROOM];

	if (!engine->options.host.open(engine->options.host.context, wish, engine->loop,
				       &cell->place, err)) {
		free(cell);
		return NULL;
	}
	(void)snprintf(made, sizeof(made), "c%" PRIu64, ++engine->cells_made);
	cell->engine = engine;
	cell->name = memory_copy(name != NULL ? name : made);
	cell->opened_ms = cell->used_ms = clock_now_ms();
	cell->idle_s = idle_s;
	cell->idle =
		(struct timer){.due_ms = CLOCK_NEVER, .due = idle_due, .context = cell};
	if (cell->idle_s > 0) {
		loop_add_timer(engine->loop, &cell->idle);
		engine->passing++;
	}
	cell->next = engine->cells;
	engine->cells = cell;
	engine->cell_count++;
	return cell;
}

static void open_cell(const struct engine_request *request)
{
	struct engine *engine = request->engine;
	const struct value *params = request->params;
	const char *name = value_text(value_member(params, "name"));
	const struct value *workspace = value_member(params, "workspace");
	const struct value *from = value_member(workspace, "from");
	const struct engine_wish wish = {
		.workspace = value_text(from != NULL ? from : workspace),
		.layered = from != NULL,
		.snapshot = value_text(value_member(workspace, "snapshot")),
		.base = value_text(value_member(params, "base")),
		.at = value_text(value_member(params, "at")),
		.agent = value_text(value_member(params, "agent")),
		.within = value_text(value_member(params, "within")),
		.policy = value_member(params, "policy"),
		.env = value_member(params, "env"),
		.limits = value_member(params, "limits"),
		.ready = (unsigned)value_integer(value_member(params, "ready")),
	};
	struct engine_cell *cell;
	struct err err = {0};

	if (!may_open(request, name))
		return;
	opening_wait(engine);
	if (engine->stopped) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_CLOSED},
			      "cell/open: the engine ends");
		return;
	}
	cell = cell_begin(engine, &wish, name,
			  value_number(value_member(params, "idle_s")), &err);
	if (cell == NULL) {
		cell_open_failed(request->caller, request->id, &err);
		return;
	}
	if (session_is_built(cell->place.session))
		caller_answer(request->caller, request->id, cell_value(cell));
	else
		opening_begin(request, cell);
}

static const struct row close_params[] = {
	ENGINE_ROW_CELL,
	{"keep", ROW_FLAG, false,
	 "a fresh workspace or a layer stays, and the answer says which"},
	{0},
};

static void close_cell(const struct engine_request *request)
{
	struct engine *engine = request->engine;
	const bool keeps = value_is_true(value_member(request->params, "keep"));
	struct engine_cell *cell = request->cell;
	struct value *told, *layer;

	if (keeps && cell->place.snapshot != NULL) {
		caller_refuse(
			request->caller, request->id,
			&(struct caller_fault){.kind = CALLER_USAGE,
					       .remedy = "cell/snapshot keeps its files"},
			"cell/close: a layer over a snapshot goes with its cell, and cannot "
			"be kept");
		return;
	}
	told = value_new_object();
	end_tasks(engine, cell);
	value_set_integer(told, "calls", (int64_t)cell->calls);
	add_cell_accounts(cell, told);
	if (keeps || cell->place.fresh == NULL)
		value_set_text(told, "workspace", session_workspace(cell->place.session));
	layer = keeps && cell->place.layer != NULL ? layer_value(cell) : NULL;
	if (cell_end(engine, cell, keeps) && layer != NULL)
		value_set(told, "layer", layer);
	else
		value_free(layer);
	caller_answer(request->caller, request->id, told);
}

static const struct row no_params[] = {{0}};
const struct row engine_cell_params[] = {ENGINE_ROW_CELL, {0}};

static void list_cells(const struct engine_request *request)
{
	struct value *told = value_new_object(), *list = value_new_array();

	for (struct engine_cell *at = request->engine->cells; at != NULL; at = at->next)
		value_append(list, info_value(at));
	value_set(told, "cells", list);
	caller_answer(request->caller, request->id, told);
}

static void tell_cell(const struct engine_request *request)
{
	caller_answer(request->caller, request->id, info_value(request->cell));
}

static void tell_accounts(const struct engine_request *request)
{
	struct value *told = value_new_object();

	add_cell_accounts(request->cell, told);
	caller_answer(request->caller, request->id, told);
}

static const struct row cancel_params[] = {
	{"id", ROW_ANY, true, "the id of the request that is to end"},
	{0},
};

static void cancel(const struct engine_request *request)
{
	const struct value *id = value_member(request->params, "id");

	for (struct engine_task *at = request->engine->tasks; at != NULL; at = at->next) {
		if (at->caller != request->caller || at->id == NULL || at->over ||
		    at->rests || !value_equal(at->id, id))
			continue;
		at->cancelled = true;
		if (at->running != NULL)
			running_cancel(at->running);
	}
	if (request->id != NULL)
		caller_answer(request->caller, request->id, value_new_object());
}

/* Methods and their requests. */

static const struct engine_method engine_own[] = {
	{"hello", hello_params, hello},
	{"cell/open", open_params, open_cell},
	{"cell/close", close_params, close_cell},
	{"cell/list", no_params, list_cells},
	{"cell/info", engine_cell_params, tell_cell},
	{"cell/accounts", engine_cell_params, tell_accounts},
	{"$/cancel", cancel_params, cancel},
	{0},
};

static const struct engine_method *const tables[] = {engine_own,   engine_programs,
						     engine_files, engine_tools,
						     engine_trees, engine_runs};

static const struct engine_method *method_find(const char *name)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		for (const struct engine_method *at = tables[i]; at->name != NULL; at++) {
			if (strcmp(at->name, name) == 0)
				return at;
		}
	}
	return NULL;
}

static struct value *method_names(void)
{
	struct value *names = value_new_array();

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		for (const struct engine_method *at = tables[i]; at->name != NULL; at++)
			value_append(names, value_new_text(at->name));
	}
	return names;
}

bool engine_check(const char *name, const struct value *params)
{
	const struct engine_method *method = method_find(name);
	struct buf sentence;
	bool fits;

	buf_init(&sentence, SENTENCE_MAX);
	fits = method != NULL && params_fit(method, params, &sentence);
	buf_fini(&sentence);
	return fits;
}

static void refuse_method(struct caller *caller, const struct mcp_message *message)
{
	auto_value struct value *names = method_names();

	caller_refuse(caller, message->id,
		      &(struct caller_fault){.kind = CALLER_NO_SUCH,
					     .code = MCP_CODE_METHOD,
					     .remedy = "data.known lists those that there are",
					     .known = names},
		      "there is no method %.100s; data.known lists those that there are",
		      message->method);
}

static void refuse_callers(struct caller *caller, const struct value *id)
{
	caller_refuse(caller, id,
		      &(struct caller_fault){.kind = CALLER_BUSY,
					     .remedy = "end one of them, or try again"},
		      "%d callers use this cell, which is the most", ENGINE_CALLERS);
}

/*
 * Methods for which a caller always finds a place: those that tell what runs, and those
 * that end it.
 */
static const char of_lookers[] = "hello cell/list cell/info cell/accounts cell/close "
				 "exec/list exec/signal $/cancel";

/* A request or a notice. Nobody is told of a notice that is wrong. */
static void take_request(struct engine *engine, struct caller *caller,
			 const struct mcp_message *message)
{
	const struct engine_method *method = method_find(message->method);
	struct engine_request request = {.engine = engine,
					 .caller = caller,
					 .id = message->id,
					 .params = message->params};
	struct buf sentence;
	bool fits;

	if (message->id == NULL && (method == NULL || method->take != cancel))
		return;
	if (method == NULL) {
		refuse_method(caller, message);
		return;
	}
	if (!caller->greeted && method->take != hello) {
		caller_refuse(caller, message->id,
			      &(struct caller_fault){.kind = CALLER_USAGE,
						     .code = MCP_CODE_INVALID,
						     .remedy = "send hello with version 1"},
			      "%s: hello comes first", method->name);
		return;
	}
	if (((const struct engine_caller *)caller)->looks &&
	    !str_among(of_lookers, str_of(method->name))) {
		refuse_callers(caller, message->id);
		return;
	}
	buf_init(&sentence, SENTENCE_MAX);
	fits = params_fit(method, message->params, &sentence);
	if (!fits && message->id != NULL)
		caller_refuse(caller, message->id,
			      &(struct caller_fault){.kind = CALLER_USAGE}, "%s",
			      sentence.data);
	buf_fini(&sentence);
	if (!fits)
		return;
	if (rows_find(method->params, "cell") != NULL) {
		request.cell = cell_of(&request, method);
		if (request.cell == NULL)
			return;
		request.cell->used_ms = clock_now_ms();
	}
	method->take(&request);
}

/* One turn of the loop. */

static void take_messages(struct engine *engine, struct caller *caller)
{
	struct mcp_message message = {0};

	while (!engine->stopped && caller->out.gone == 0 && caller_next(caller, &message)) {
		if (message.kind == MCP_RESPONSE)
			engine_tools_answer(engine, caller_answered(&message), &message);
		else
			take_request(engine, caller, &message);
		mcp_message_fini(&message);
	}
}

static void turn_tasks(struct engine *engine)
{
	for (struct engine_task *at = engine->tasks; at != NULL; at = at->next) {
		if (!at->left || at->tidies)
			at->turn(at);
		else
			at->over = at->running == NULL || running_is_done(at->running);
	}
	for (struct engine_task **at = &engine->tasks; *at != NULL;) {
		if ((*at)->over)
			task_drop(at);
		else
			at = &(*at)->next;
	}
}

/* The caller at *AT has gone: end what it has begun, but for what stays. */
static void caller_drop(struct engine *engine, struct engine_caller **at)
{
	struct engine_caller *gone = *at;

	for (struct engine_task *task = engine->tasks; task != NULL; task = task->next) {
		if (task->caller != &gone->caller)
			continue;
		task->left = true;
		task->caller = NULL;
		if (task->running != NULL)
			running_cancel(task->running);
	}
	engine_programs_forget(engine, &gone->caller);
	engine_files_forget(engine, NULL, &gone->caller);
	engine_trees_forget(engine, NULL, &gone->caller);
	*at = gone->next;
	caller_close(&gone->caller);
	fd_close(&gone->owned);
	free(gone);
}

static struct engine_caller *caller_add(struct engine *engine, int input, int output)
{
	struct engine_caller *added = memory_alloc(sizeof(*added));

	caller_open(&added->caller, engine->loop, input, output);
	added->owned = -1;
	added->next = engine->callers;
	engine->callers = added;
	return added;
}

/* Has any caller just read enough, so that what had to wait for that goes on? */
static bool goes_on(const struct engine *engine)
{
	for (const struct engine_caller *at = engine->callers; at != NULL; at = at->next) {
		if (at->caller.life != CALLER_LOST && caller_reads(&at->caller) &&
		    (at->caller.in.size > 0 || !at->did_read))
			return true;
	}
	return false;
}

/* Is any caller gone, and dropped? The engine of one caller ends with it. */
static bool drop_gone(struct engine *engine)
{
	bool dropped = false;

	for (struct engine_caller **at = &engine->callers; *at != NULL;) {
		if ((*at)->caller.life == CALLER_TALKS) {
			at = &(*at)->next;
			continue;
		}
		if (engine->options.standing != NULL) {
			caller_drop(engine, at);
			dropped = true;
			continue;
		}
		engine->stopped = true;
		engine->failed = (*at)->caller.life == CALLER_LOST;
		engine->gone = (*at)->caller.out.gone;
		at = &(*at)->next;
	}
	return dropped;
}

static void settle(struct engine *engine)
{
	do {
		for (struct engine_caller *at = engine->callers; at != NULL; at = at->next) {
			take_messages(engine, &at->caller);
			at->did_read = caller_reads(&at->caller);
		}
		turn_tasks(engine);
		close_idle(engine);
		for (struct engine_caller *at = engine->callers; at != NULL; at = at->next)
			caller_settle(&at->caller);
	} while (!engine->stopped && goes_on(engine));
	/* One that looks at the same job may hear that it types now. */
	while (drop_gone(engine)) {
		for (struct engine_caller *at = engine->callers; at != NULL; at = at->next)
			caller_settle(&at->caller);
	}
}

/* Callers of a cell that outlives them. */

/* The user namespace of the process that PROCESS names in /proc, as text. */
static bool read_namespace(const char *process, char text[NAME_ROOM])
{
	char path[NAME_ROOM + sizeof("/proc//ns/user")];
	ssize_t size;

	(void)snprintf(path, sizeof(path), "/proc/%s/ns/user", process);
	size = readlink(path, text, NAME_ROOM - 1);
	text[size > 0 ? size : 0] = '\0';
	return size > 0 && size < NAME_ROOM - 1;
}

/*
 * Does the PEER of FD work in our user namespace? Every sealed cell has one of its own, so a
 * program in it is none of our user, though its user is the same. A peer that has ended is
 * none either: its number may be that of another process by now.
 */
static bool is_outside_cells(int fd, const struct ucred *peer)
{
	char number[NAME_ROOM], theirs[NAME_ROOM], ours[NAME_ROOM];
	struct pollfd process = {.fd = -1, .events = POLLIN};
	socklen_t size = sizeof(process.fd);
	bool is_ours;

	if (getsockopt(fd, SOL_SOCKET, KERNEL_SO_PEERPIDFD, &process.fd, &size) < 0)
		process.fd = errno == ENOPROTOOPT ? kernel_pidfd_open(peer->pid) : -1;
	(void)snprintf(number, sizeof(number), "%d", (int)peer->pid);
	is_ours = process.fd >= 0 && peer->pid > 0 && read_namespace(number, theirs) &&
		  read_namespace("self", ours) && strcmp(theirs, ours) == 0 &&
		  poll(&process, 1, 0) == 0;
	fd_close(&process.fd);
	return is_ours;
}

static bool is_of_user(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return false;
	/* Root's processes cannot be looked at, and no cell of ours has one. */
	return peer.uid == geteuid() ? is_outside_cells(fd, &peer) : peer.uid == 0;
}

static void listen_again(struct timer *timer)
{
	struct engine *engine = timer->context;

	loop_add(engine->loop, &engine->listening);
}

/* Callers wait that cannot be accepted: look for them again after a moment. */
static void listen_later(struct engine *engine)
{
	loop_remove(&engine->listening);
	engine->listens_again.due_ms = clock_now_ms() + LISTEN_AGAIN_MS;
}

static void spares_open(struct engine *engine)
{
	for (size_t i = 0; i < ENGINE_SPARE; i++) {
		if (engine->spare[i] < 0)
			engine->spare[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
}

static void spares_close(struct engine *engine)
{
	for (size_t i = 0; i < ENGINE_SPARE; i++)
		fd_close(&engine->spare[i]);
}

/* The number of callers that only look (LOOKS), or of all others. */
static size_t count_callers(const struct engine *engine, bool looks)
{
	size_t count = 0;

	for (const struct engine_caller *at = engine->callers; at != NULL; at = at->next)
		count += at->looks == looks;
	return count;
}

/*
 * The socket FD is that of a new caller, of this user; NULL: it was closed. A look at its process
 * needs a descriptor, which may be the last spare one.
 */
static struct engine_caller *caller_of(struct engine *engine, int fd)
{
	struct engine_caller *added = NULL;

	fd_close(&engine->spare[ENGINE_SPARE - 1]);
	if (is_of_user(fd)) {
		added = caller_add(engine, fd, fd);
		added->owned = fd;
	} else {
		(void)close(fd);
	}
	spares_open(engine);
	return added;
}

/*
 * No descriptor is left for the next caller. It gets one that was kept for it, so that it is told;
 * otherwise it would wait, and the socket would wake this process in each turn of the loop.
 */
static void refuse_next(struct engine *engine)
{
	struct engine_caller *added = NULL;
	int fd;

	spares_close(engine);
	fd = accept4(engine->listening.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		added = caller_of(engine, fd);
	if (added != NULL) {
		caller_refuse(&added->caller, NULL,
			      &(struct caller_fault){.kind = CALLER_BUSY,
						     .remedy = "end programs in it, or try "
							       "again",
						     .error = EMFILE},
			      "the front behind this cell has as many files open as it may");
		caller_settle(&added->caller);
		caller_drop(engine, &engine->callers);
	}
	spares_open(engine);
	if (fd < 0 || engine->spare[0] < 0)
		listen_later(engine);
}

static void listening_ready(struct watch *watch, short events)
{
	struct engine *engine = watch->context;
	const int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct engine_caller *added;

	(void)events;
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		refuse_next(engine);
	else if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		listen_later(engine);
	added = fd >= 0 ? caller_of(engine, fd) : NULL;
	if (added == NULL || count_callers(engine, false) <= ENGINE_CALLERS)
		return;
	added->looks = true;
	if (count_callers(engine, true) <= ENGINE_LOOKERS)
		return;
	refuse_callers(&added->caller, NULL);
	caller_settle(&added->caller);
	caller_drop(engine, &engine->callers);
}

/* Open the one cell of an engine that outlives its callers, and listen. */
static bool stand(struct engine *engine, struct err *err)
{
	const struct engine_standing *standing = engine->options.standing;
	const struct engine_wish wish = {0};
	struct engine_cell *cell = cell_begin(engine, &wish, NULL, 0, err);
	const char *broken;

	if (cell == NULL)
		return false;
	while (!engine->stopped && !session_is_built(cell->place.session) &&
	       session_broken(cell->place.session) == NULL)
		loop_turn(engine->loop, CLOCK_NEVER);
	broken = session_broken(cell->place.session);
	if (broken != NULL)
		return err_set(err, ECHILD, "%s", broken);
	if (engine->stopped)
		return err_set(err, EINTR, "it was ended by a signal");
	engine->listening = (struct watch){.fd = standing->listener,
					   .events = POLLIN,
					   .ready = listening_ready,
					   .context = engine};
	loop_add(engine->loop, &engine->listening);
	engine->listens_again = (struct timer){.due_ms = CLOCK_NEVER,
					       .due = listen_again,
					       .context = engine};
	loop_add_timer(engine->loop, &engine->listens_again);
	spares_open(engine);
	return standing->ready(standing->context, &cell->place, &cell->name, err);
}

/* An engine that outlives its callers ends with its cell. */
static bool has_fallen(const struct engine *engine)
{
	return engine->options.standing != NULL &&
	       (engine->cells == NULL ||
		session_broken(engine->cells->place.session) != NULL);
}

static void stop_ready(struct watch *watch, short events)
{
	struct engine *engine = watch->context;

	(void)events;
	engine->stopped = true;
}

/* Others may hold our input open after our parent has died, so watch it as well. */
static void watch_parent(struct engine *engine)
{
	int fd = -1;

	if (!role_parent(&fd))
		engine->stopped = true;
	engine->parent = (struct watch){.fd = fd,
					.events = POLLIN,
					.ready = stop_ready,
					.context = engine};
	if (fd >= 0)
		loop_add(engine->loop, &engine->parent);
}

static void begin(struct engine *engine)
{
	const struct engine_options *options = &engine->options;

	engine->loop = loop_new();
	for (size_t i = 0; i < ENGINE_SPARE; i++)
		engine->spare[i] = -1;
	if (options->standing == NULL)
		(void)caller_add(engine, options->input, options->output);
	engine->stopping = (struct watch){.fd = options->stop_fd,
					  .events = POLLIN,
					  .ready = stop_ready,
					  .context = engine};
	if (options->stop_fd >= 0)
		loop_add(engine->loop, &engine->stopping);
	engine->parent.fd = -1;
	if (options->standing == NULL)
		watch_parent(engine);
}

/* A thread that removes each REMOVERS-th fresh workspace from the one with the number FIRST on. */
struct remover {
	const struct engine *engine;
	size_t first;
	pthread_t thread;
	bool runs;
};

static void *remove_some(void *context)
{
	const struct remover *remover = context;
	size_t number = 0;

	for (struct engine_cell *at = remover->engine->cells; at != NULL; at = at->next) {
		if (number++ % REMOVERS != remover->first || at->place.fresh == NULL)
			continue;
		session_abandon(at->place.session, true);
		fd_folder_remove(at->place.fresh);
	}
	return NULL;
}

/*
 * Wait until the cells of all fresh workspaces are gone, and remove their folders. The kernel
 * takes milliseconds for the end of a cell, for a folder on which something was mounted, and
 * for the watch of a folder. Most of that is waiting, so several threads share the work.
 */
static void remove_fresh(const struct engine *engine)
{
	struct remover removers[REMOVERS];

	for (size_t i = 0; i < REMOVERS; i++) {
		struct remover *remover = &removers[i];

		*remover = (struct remover){.engine = engine, .first = i};
		remover->runs =
			engine->cell_count >= REMOVERS &&
			pthread_create(&remover->thread, NULL, remove_some, remover) == 0;
		if (!remover->runs)
			(void)remove_some(remover);
	}
	for (size_t i = 0; i < REMOVERS; i++) {
		if (removers[i].runs)
			(void)pthread_join(removers[i].thread, NULL);
	}
}

/* Does all that was written in CELL go with it? */
static bool is_passing(const struct engine_cell *cell)
{
	return cell->place.fresh != NULL || cell->place.layer != NULL;
}

/*
 * End everything. A cell with a workspace of the caller's is closed like any session, which
 * may look at it, as long as there is time. Nobody will look at a fresh workspace or a layer:
 * its cell is killed, and its folder removed. When the time is over, the memory of cells that are
 * gone is left to the end of this process.
 */
/* End all calls. False: one has not ended UNTIL then, though everything in its cell was killed. */
static bool end_calls(struct engine *engine, int64_t until)
{
	const int64_t kills = (clock_now_ms() + until) / 2;

	while (cancel_calls(engine, NULL) && clock_now_ms() < kills)
		loop_turn(engine->loop, kills);
	if (!cancel_calls(engine, NULL))
		return true;
	for (struct engine_cell *at = engine->cells; at != NULL; at = at->next)
		session_abandon(at->place.session, false);
	while (cancel_calls(engine, NULL) && clock_now_ms() < until)
		loop_turn(engine->loop, until);
	return !cancel_calls(engine, NULL);
}

static void end(struct engine *engine)
{
	const int64_t now = clock_now_ms();

	/* Its descriptor stays ready once the parent has gone. */
	loop_remove(&engine->parent);
	for (struct engine_cell *at = engine->cells; at != NULL; at = at->next) {
		if (is_passing(at))
			session_abandon(at->place.session, false);
	}
	/* The end of this process takes a call that would be waited for without an end. */
	if (!end_calls(engine, now + ENGINE_CALLS_MS))
		return;
	end_tasks(engine, NULL);
	for (struct engine_cell *at = engine->cells, *next; at != NULL; at = next) {
		next = at->next;
		if (is_passing(at))
			continue;
		if (clock_now_ms() < now + ENGINE_LOOK_MS)
			(void)cell_end(engine, at, false);
		else
			session_abandon(at->place.session, false);
	}
	remove_fresh(engine);
	while (engine->cells != NULL && clock_now_ms() < now + ENGINE_END_MS)
		(void)cell_end(engine, engine->cells, false);
	loop_remove(&engine->stopping);
	loop_remove(&engine->listening);
	loop_remove_timer(&engine->listens_again);
	spares_close(engine);
	fd_close(&engine->parent.fd);
	while (engine->callers != NULL) {
		caller_settle(&engine->callers->caller);
		caller_drop(engine, &engine->callers);
	}
	if (engine->cells == NULL)
		loop_free(engine->loop);
}

bool engine_run(const struct engine_options *options, struct err *err)
{
	struct engine engine = {.options = *options};
	bool stands;

	begin(&engine);
	stands = options->standing == NULL || stand(&engine, err);
	while (stands && !engine.stopped && !has_fallen(&engine)) {
		loop_turn(engine.loop, CLOCK_NEVER);
		settle(&engine);
	}
	end(&engine);
	if (!stands)
		return false;
	return !engine.failed || engine.gone == EPIPE ||
	       err_set(err, engine.gone, "the caller reads nothing: %s",
		       strerror(engine.gone));
}
