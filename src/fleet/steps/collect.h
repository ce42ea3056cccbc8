/*
 * collect: what is kept of a task: patches, its journal and files of its cell, each as a blob of
 * the store, and named in the result by its SHA-256. A thing that is not there is null in the
 * result, with a sentence among its `notes`; it does not change what became of the task.
 */
#pragma once

#include "base/value.h"
#include "fleet/steps/site.h"
#include "fleet/steps/step.h"
#include "fleet/task.h"

#include <stdbool.h>
#include <stddef.h>

/* The state of the repositories of which a patch is wanted, as it was before the run. */
struct fleet_collect {
	char *trees[FLEET_COLLECT_MAX]; /* of the entry with that number; or NULL */
};

/* Does TASK want "journal"? */
bool fleet_collect_wants_journal(const struct fleet_task *task);
/* Note how the repositories are before the run. False: the task has ended. */
bool fleet_collect_begin(struct fleet_steps *steps, const struct fleet_site *site,
			 struct fleet_collect *collect);
/*
 * Put all that the task wants into the store and into RESULT; the cell is still open. False: the
 * store did not take a blob, or the cell of a task that was done so far has gone before its files
 * were kept. The task has ended with that reason, and is done again.
 */
bool fleet_collect_all(struct fleet_steps *steps, const struct fleet_site *site,
		       const struct fleet_collect *collect, struct value *result);
void fleet_collect_fini(struct fleet_collect *collect);
