/*
 * jobs: notes of jobs and lanes are small objects in the store; the comparison holds one byte for
 * each task of a job in each of two lists.
 */

#include "fleet/queue/jobs.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "fleet/result.h"
#include "fleet/task.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	STRAYS_MOST = 1000, /* messages that one comparison takes out of a job */
};

/* The store's part of jobs and lanes for a fleet. */

static bool get_object(struct fleet_store *store, const char *name, struct value **object,
		       struct err *err)
{
	struct err why = {0};
	struct buf text;
	bool ok;

	*object = NULL;
	buf_init(&text, FLEET_OBJECT_MAX);
	ok = fleet_store_get(store, name, &text, &why) &&
	     value_parse(buf_str(&text), 0, object, &why);
	buf_fini(&text);
	return ok || why.code == ENOENT || err_set(err, why.code, "%s: %s", name, why.text);
}

static bool put_object(struct fleet_store *store, const char *name,
		       const struct value *object, enum fleet_put_how how, struct err *err)
{
	struct buf text;
	bool ok;

	buf_init(&text, FLEET_OBJECT_MAX);
	ok = (value_print(object, 0, &text) && buf_addc(&text, '\n')) ||
	     err_set(err, EFBIG, "%s is too large", name);
	ok = ok &&
	     fleet_store_put(store, name, buf_str(&text), how, err) != FLEET_PUT_FAILED;
	buf_fini(&text);
	return ok;
}

bool fleet_jobs_enlist(struct fleet_store *store, const char *fleet, const char *job,
		       bool paused, struct err *err)
{
	auto_value struct value *object = value_new_object();
	char name[FLEET_NAME_BYTES];

	(void)snprintf(name, sizeof(name), "jobs/%s/fleet.json", job);
	value_set_text(object, "fleet", fleet);
	value_set_boolean(object, "paused", paused);
	return put_object(store, name, object, FLEET_REPLACE, err);
}

bool fleet_jobs_enlisted(struct fleet_store *store, const char *fleet, const char *job,
			 bool *mine, bool *paused, struct err *err)
{
	auto_value struct value *object = NULL;
	char name[FLEET_NAME_BYTES];

	(void)snprintf(name, sizeof(name), "jobs/%s/fleet.json", job);
	if (!get_object(store, name, &object, err))
		return false;
	*mine = str_is(value_str(value_member(object, "fleet")), fleet);
	*paused = value_is_true(value_member(object, "paused"));
	return true;
}

bool fleet_jobs_limits(struct fleet_store *store, const char *fleet,
		       struct value **limits, struct err *err)
{
	char name[FLEET_NAME_BYTES];

	(void)snprintf(name, sizeof(name), "fleets/%s/lanes.json", fleet);
	if (!get_object(store, name, limits, err))
		return false;
	if (*limits == NULL)
		*limits = value_new_object();
	return true;
}

bool fleet_jobs_keep_limit(struct fleet_store *store, const char *fleet, const char *lane,
			   int permits, int per_minute, struct err *err)
{
	auto_value struct value *limits = NULL;
	struct value *limit = value_new_object();
	char name[FLEET_NAME_BYTES];

	(void)snprintf(name, sizeof(name), "fleets/%s/lanes.json", fleet);
	value_set_integer(limit, "permits", permits);
	value_set_integer(limit, "per_minute", per_minute);
	if (!fleet_jobs_limits(store, fleet, &limits, err)) {
		value_free(limit);
		return false;
	}
	value_set(limits, lane, limit);
	return put_object(store, name, limits, FLEET_REPLACE, err);
}

static void result_name(const char *job, const char *id, char name[FLEET_NAME_BYTES])
{
	(void)snprintf(name, FLEET_NAME_BYTES, "jobs/%s/results/%s.json", job, id);
}

bool fleet_jobs_result(struct fleet_store *store, const char *job, const char *id,
		       struct value **result, struct err *err)
{
	char name[FLEET_NAME_BYTES];

	result_name(job, id, name);
	return get_object(store, name, result, err);
}

bool fleet_jobs_cancel_one(struct fleet_store *store, const char *job, const char *id,
			   const char *worker, struct err *err)
{
	auto_value struct value *result = fleet_result_new(job, id, 0, FLEET_CANCELLED);
	char name[FLEET_NAME_BYTES];

	if (worker != NULL)
		value_set_text(result, "worker", worker);
	result_name(job, id, name);
	return put_object(store, name, result, FLEET_IF_NEW, err);
}

/* Tasks that run, and tasks that are cancelled. */

int fleet_running_number(const struct value *beat, const char *key)
{
	const int64_t number = value_integer(value_member(beat, key));

	return number < 0 ? 0 : number > FLEET_BEAT_MOST ? FLEET_BEAT_MOST : (int)number;
}

static bool add_running(void *context, const char *key, struct str text)
{
	struct fleet_running *running = context;
	auto_value struct value *beat = NULL;
	const struct value *jobs;

	if (!value_parse(text, 0, &beat, NULL))
		return true;
	running->workers++;
	running->cells += (size_t)fleet_running_number(beat, "cells");
	running->busy += (size_t)fleet_running_number(beat, "busy");
	jobs = value_member(beat, "running");
	for (void *at = value_first(jobs); at != NULL; at = value_next(jobs, at)) {
		if (value_member(running->jobs, value_key(at)) == NULL)
			value_set(running->jobs, value_key(at), value_new_object());
		for (size_t i = 0; i < value_count(value_at(at)); i++) {
			const char *id = value_text(value_item(value_at(at), i));

			if (id != NULL)
				value_set_text(value_member(running->jobs, value_key(at)),
					       id, key);
		}
	}
	return true;
}

bool fleet_running_read(struct fleet_queue *queue, struct fleet_running *running,
			struct err *err)
{
	*running = (struct fleet_running){.jobs = value_new_object()};
	return fleet_queue_keys(queue, FLEET_WORKERS, "", add_running, running, err);
}

static void mark_result(void *context, size_t nth)
{
	bool *has = context;

	has[nth] = true;
}

/* Is ID one of those that WORDS name (none: all)? */
static bool is_named(const char *const *words, const char *id)
{
	if (*words == NULL)
		return true;
	for (; *words != NULL; words++) {
		if (strcmp(*words, id) == 0)
			return true;
	}
	return false;
}

bool fleet_jobs_cancel(struct fleet_queue *queue, struct fleet_store *store,
		       const struct fleet_job *job, const char *const *ids, bool all,
		       size_t *written, size_t *left, struct err *err)
{
	const struct fleet_tasks *tasks = fleet_job_tasks(job);
	const size_t count = fleet_tasks_count(tasks);
	auto_free bool *has = memory_array(count + 1, sizeof(*has));
	const struct value *mine;
	struct fleet_running running = {0};
	bool ok = fleet_running_read(queue, &running, err) &&
		  fleet_job_results(job, mark_result, has, err);

	*left = 0;
	mine = value_member(running.jobs, fleet_job_name_of(job));
	for (size_t i = 0; ok && i < count; i++) {
		const char *id = fleet_tasks_id(tasks, i);

		if (has[i] || !is_named(ids, id))
			continue;
		if (!all && value_member(mine, id) != NULL) {
			(*left)++;
			continue;
		}
		ok = fleet_jobs_cancel_one(store, fleet_job_name_of(job), id, NULL, err);
		(*written)++;
	}
	value_free(running.jobs);
	return ok;
}

/* The queue is made again from the store. */

struct comparison {
	const struct fleet_job *job;
	bool *queued, *done;
	struct fleet_queue *queue;
	struct fleet_reconciled *found;
	/* Of each kind of tasks the places up to the id; NULL: not known. The last one is of the
	 * kinds beyond, which are read each time. */
	char *places[FLEET_TASK_KINDS + 1];
	char **strays; /* places of messages that are no task's */
	size_t stray_count;
};

/*
 * Is PLACE, which ends with the id of the task NTH, that of the task? A message in a lane of no
 * worker would keep it from running for ever. A look has up to FLEET_TASKS_MAX of them: the line of
 * one task of a kind is read.
 */
static bool is_in_place(struct comparison *comparison, size_t nth, const char *place)
{
	const struct fleet_tasks *tasks = fleet_job_tasks(comparison->job);
	const size_t kind = fleet_tasks_kind(tasks, nth),
		     id_size = strlen(fleet_tasks_id(tasks, nth)),
		     size = strlen(place) - id_size;
	char **known = &comparison->places[kind];
	struct fleet_task task;
	struct err err;

	if (*known == NULL || kind == FLEET_TASK_KINDS) {
		if (!fleet_tasks_get(tasks, nth, &task, &err))
			return true;
		free(*known);
		*known = fleet_queue_place(comparison->queue,
					   fleet_job_name_of(comparison->job), &task);
		(*known)[strlen(*known) - id_size] = '\0';
		fleet_task_fini(&task);
	}
	return strlen(*known) == size && strncmp(*known, place, size) == 0;
}

static bool note_queued(void *context, const char *id, const char *place)
{
	struct comparison *comparison = context;
	const size_t nth = fleet_job_find(comparison->job, id);

	if (nth == FLEET_JOB_NONE || !is_in_place(comparison, nth, place)) {
		if (comparison->stray_count < STRAYS_MOST)
			comparison->strays[comparison->stray_count++] = memory_copy(place);
		return true;
	}
	comparison->queued[nth] = true;
	comparison->found->queued++;
	return true;
}

static void note_done(void *context, size_t nth)
{
	struct comparison *comparison = context;

	comparison->done[nth] = true;
	comparison->found->results++;
}

static bool publish_missing(struct comparison *comparison, struct err *err)
{
	const struct fleet_tasks *tasks = fleet_job_tasks(comparison->job);
	auto_free struct fleet_task *batch = memory_array(QUEUE_BATCH, sizeof(*batch));
	const size_t count = fleet_tasks_count(tasks);
	size_t filled = 0, there = 0;
	bool ok = true;

	for (size_t i = 0; ok && i < count; i++) {
		if (!comparison->done[i] && !comparison->queued[i]) {
			ok = fleet_tasks_get(tasks, i, &batch[filled], err);
			filled += ok ? 1 : 0;
		}
		if (filled == QUEUE_BATCH || (filled > 0 && i + 1 == count)) {
			ok = ok && fleet_queue_publish(comparison->queue,
						       fleet_job_name_of(comparison->job),
						       batch, filled, &there, err);
			comparison->found->published += ok ? filled : 0;
			while (filled > 0)
				fleet_task_fini(&batch[--filled]);
		}
	}
	while (filled > 0)
		fleet_task_fini(&batch[--filled]);
	comparison->found->published -=
		there < comparison->found->published ? there : comparison->found->published;
	return ok;
}

static bool remove_done(struct comparison *comparison, struct err *err)
{
	const struct fleet_tasks *tasks = fleet_job_tasks(comparison->job);
	uint64_t removed = 0;
	bool ok = true;

	for (size_t i = 0; ok && i < fleet_tasks_count(tasks); i++) {
		if (comparison->done[i] && comparison->queued[i])
			ok = fleet_queue_purge(comparison->queue,
					       fleet_job_name_of(comparison->job),
					       fleet_tasks_id(tasks, i), &removed, err);
	}
	comparison->found->removed = (size_t)removed;
	return ok;
}

static bool remove_strays(struct comparison *comparison, struct err *err)
{
	for (size_t i = 0; i < comparison->stray_count; i++) {
		if (!fleet_queue_remove(comparison->queue, comparison->strays[i], err))
			return false;
		comparison->found->strays++;
	}
	return true;
}

bool fleet_jobs_reconcile(struct fleet_queue *queue, const struct fleet_job *job,
			  bool paused, struct fleet_reconciled *found, struct err *err)
{
	const size_t count = fleet_tasks_count(fleet_job_tasks(job));
	auto_free bool *queued = memory_array(count + 1, sizeof(*queued));
	auto_free bool *done = memory_array(count + 1, sizeof(*done));
	auto_free char **strays = memory_array(STRAYS_MOST, sizeof(*strays));
	struct comparison comparison = {.job = job,
					.queued = queued,
					.done = done,
					.queue = queue,
					.found = found,
					.strays = strays};
	bool ok;

	*found = (struct fleet_reconciled){.tasks = count};
	/* The queue first: a task that ends between the two has a result then. */
	ok = fleet_queue_waiting(queue, fleet_job_name_of(job), note_queued, &comparison,
				 err) &&
	     fleet_job_results(job, note_done, &comparison, err) &&
	     remove_strays(&comparison, err) &&
	     (paused || publish_missing(&comparison, err)) && remove_done(&comparison, err);
	for (size_t i = 0; i < comparison.stray_count; i++)
		free(strays[i]);
	for (size_t i = 0; i <= FLEET_TASK_KINDS; i++)
		free(comparison.places[i]);
	return ok;
}
