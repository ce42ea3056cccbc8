/*
 * job: a file of tasks under its name in a store: jobs/J/job.json says which file it is,
 * jobs/J/tasks.jsonl is a copy of it, jobs/J/results/ has what became of each task. A name
 * belongs to one file for ever; the same file again continues the same job.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "fleet/store.h"
#include "fleet/task.h"

#include <stdbool.h>
#include <stddef.h>

#define FLEET_JOB_NONE ((size_t)-1)

struct fleet_job;

/*
 * The job's name of the file PATH unless told: the name of the file, without its ending and what a
 * name cannot have, "-", and the first 8 digits of HASH.
 */
void fleet_job_name(const char *path, const char *hash, char name[FLEET_NAME_MAX + 1]);

/*
 * Begin or continue the job NAME of TASKS, which were read from PATH. The job frees TASKS,
 * also on failure. EEXIST in ERR: another file has this name.
 */
bool fleet_job_begin(struct fleet_store *store, const char *name,
		     struct fleet_tasks *take_tasks, const char *path,
		     struct fleet_job **job, struct err *err);
/*
 * The job NAME with the tasks that the store has. ENOENT in ERR: there is none; ENOTSUP: a newer
 * release has written its lines in a format that this one cannot read.
 */
bool fleet_job_open(struct fleet_store *store, const char *name, struct fleet_job **job,
		    struct err *err);
void fleet_job_free(struct fleet_job *job);

const char *fleet_job_name_of(const struct fleet_job *job);
const struct fleet_tasks *fleet_job_tasks(const struct fleet_job *job);
/* The number of the task ID; FLEET_JOB_NONE. */
size_t fleet_job_find(const struct fleet_job *job, const char *id);

/* Tell TAKE the number of each task that has a result. */
bool fleet_job_results(const struct fleet_job *job, void (*take)(void *context, size_t nth),
		       void *context, struct err *err);
/* The result of the task NTH, owned by the caller. ENOENT in ERR: it has none. */
bool fleet_job_result(const struct fleet_job *job, size_t nth, struct value **result,
		      struct err *err);
/* Take the result of the task NTH away, so that it is done once more. */
bool fleet_job_forget(const struct fleet_job *job, size_t nth, struct err *err);

/* The names of all jobs of STORE, sorted, as an array of texts. */
bool fleet_job_names(struct fleet_store *store, struct value **names, struct err *err);
