/*
 * runs: run/…: our own agent at work in the workspace of a cell. The front begins it as it
 * begins a delegate (agent/delegate.h): in a process of its own, which asks the model, with a
 * cell of its own over the same files, and bounded by the rights of the caller's cell. What
 * happens comes as notices `run/event`, and its end as `run/ended`. A run is a task of its
 * cell, and goes with it.
 */

#include "base/err.h"
#include "base/memory.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "serve/caller.h"
#include "serve/engine.h"
#include "tool/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum {
	PROMPT_MAX = 512 << 10, /* characters; as that of a delegate */
	MODEL_MAX = 256,
	PACE_MAX = 1024,
	SECONDS_MAX = 365 * 24 * 3600,
};

struct run_task {
	struct engine_task task; /* first: they are one and the same */
	struct engine_run *run;
	uint64_t number;
	struct value *told; /* what became of it; NULL: it works */
};

static void run_free(struct engine_task *task)
{
	struct run_task *run = (struct run_task *)task;

	if (run->run != NULL)
		task->engine->options.host.run_free(run->run);
	engine_task_fini(task);
	value_free(run->told);
	free(run);
}

static void run_turn(struct engine_task *task)
{
	struct run_task *run = (struct run_task *)task;

	if (run->told == NULL || !caller_reads(task->caller))
		return;
	(void)caller_tell(task->caller, "run/ended", run->told, false);
	run->told = NULL;
	task->over = true;
}

/* The members that each notice of RUN has. */
static struct value *new_notice(const struct run_task *run)
{
	struct value *told = value_new_object();

	value_set_text(told, "cell", run->task.cell->name);
	value_set_integer(told, "run", (int64_t)run->number);
	return told;
}

static void take_event(void *context, const struct value *event)
{
	static const char *const members[] = {"session", "agent", "parent", NULL};
	struct run_task *run = context;
	struct value *told = new_notice(run);

	value_set_members(told, event, members);
	value_set(told, "event", value_ref(value_member(event, "event_of")));
	(void)caller_tell(run->task.caller, "run/event", told, false);
}

static void take_end(void *context, struct value *take_told)
{
	struct run_task *run = context;

	value_set_text(take_told, "cell", run->task.cell->name);
	value_set_integer(take_told, "run", (int64_t)run->number);
	run->told = take_told;
}

static const struct row budget_rows[] = {
	{"tokens", ROW_COUNT, false, "in and out", .min = 1, .max = (double)INT64_MAX / 2},
	{"money", ROW_NUMBER, false, "US dollars", .min = 0.000001, .max = 1e9},
	{"seconds", ROW_COUNT, false, "of the clock", .min = 1, .max = SECONDS_MAX},
	{"answers", ROW_COUNT, false, "of the model", .min = 1, .max = INT32_MAX},
	{0},
};

static const struct row start_params[] = {
	ENGINE_ROW_CELL,
	{"prompt", ROW_TEXT, true, "what the agent is to do", .min = 1, .max = PROMPT_MAX},
	{"model", ROW_BYTES, false, "the model that is asked", .min = 1, .max = MODEL_MAX},
	{"agent", ROW_BYTES, false, "the agent; that of the cell unless told", .min = 1,
	 .max = ENGINE_NAME},
	{"pace", ROW_BYTES, false,
	 "a pipe: each request to the model takes a byte of it first", .min = 1,
	 .max = PACE_MAX},
	{"budget", ROW_OBJECT, false, "the most that it may use", .rows = budget_rows},
	{0},
};

static void start_run(const struct engine_request *request)
{
	struct engine *engine = request->engine;
	const struct engine_host *host = &engine->options.host;
	const struct value *params = request->params;
	struct run_task *run;
	struct value *told;
	struct err err = {0};

	if (!engine_has_room(request, 0))
		return;
	run = memory_alloc(sizeof(*run));
	const struct engine_run_wish wish = {
		.prompt = value_text(value_member(params, "prompt")),
		.model = value_text(value_member(params, "model")),
		.agent = value_text(value_member(params, "agent")),
		.budget = value_member(params, "budget"),
		.pace = value_text(value_member(params, "pace")),
		.event = take_event,
		.ended = take_end,
		.context = run,
	};
	run->number = ++engine->runs_made;
	run->task.turn = run_turn;
	run->task.free = run_free;
	run->task.engine = engine;
	run->task.cell = request->cell;
	run->run =
		host->run(host->context, &request->cell->place, &wish, engine->loop, &err);
	if (run->run == NULL) {
		free(run);
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = err.code == ENOENT
								     ? CALLER_NO_SUCH
								     : CALLER_UNAVAILABLE,
						     .error = err.code},
			      "run/start: %s", err.text);
		return;
	}
	engine_add_task(&run->task, request, NULL);
	told = value_new_object();
	value_set_integer(told, "run", (int64_t)run->number);
	caller_answer(request->caller, request->id, told);
}

static const struct row cancel_params[] = {
	ENGINE_ROW_CELL,
	{"run", ROW_ID, true, "its number, which run/start has answered", .min = 1,
	 .max = INT32_MAX},
	{0},
};

static void cancel_run(const struct engine_request *request)
{
	const int64_t number = value_integer(value_member(request->params, "run"));
	struct engine *engine = request->engine;

	for (struct engine_task *at = engine->tasks; at != NULL; at = at->next) {
		struct run_task *run = (struct run_task *)at;

		if (at->turn != run_turn || at->cell != request->cell ||
		    run->number != (uint64_t)number)
			continue;
		if (run->told == NULL)
			engine->options.host.run_end(run->run);
		caller_answer(request->caller, request->id, value_new_object());
		return;
	}
	caller_refuse(request->caller, request->id,
		      &(struct caller_fault){.kind = CALLER_NO_SUCH},
		      "run/cancel: no run %" PRId64 " is under way in cell %s", number,
		      request->cell->name);
}

const struct engine_method engine_runs[] = {
	{"run/start", start_params, start_run},
	{"run/cancel", cancel_params, cancel_run},
	{0},
};
