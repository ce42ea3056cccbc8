/*
 * undo_aim: the steps that an undo is about. They are known before its cell is made,
 * because the cell binds the files that git follows read-only (shape_git.c), except those
 * that these steps have changed.
 */
#pragma once
#include "undo/store.h"
#include "undo/undo_plan.h"

#include <stdbool.h>
#include <stdint.h>

struct undo_aim {
	const char *run; /* its steps up to `step`; NULL: only `step` itself */
	uint32_t step;   /* 0: the newest step that was not undone */
	int64_t turn_ms; /* only the steps of `run` in this turn; 0: in all turns */
};

/*
 * The step NUMBER, or for 0 the newest step with files that was not undone and is no
 * undo. NULL: there is none.
 */
const struct undo_step *undo_aim_step(const struct undo_steps *steps, uint32_t number);
/*
 * Widen AIM from one step to all steps of its turn in STEPS; AIM borrows `run` from them.
 * A step without a turn (a single call, another agent's client) stays the only one.
 * False: there is no such step.
 */
bool undo_aim_widen(struct undo_aim *aim, const struct undo_steps *steps);
/* Is STEP one of the steps of AIM, which names a run? */
bool undo_aim_has(const struct undo_aim *aim, const struct undo_step *step);

/*
 * Fill PLAN (initialised) with the changes of these steps that their sessions could
 * write, and settle it. FOLDER is as for undo_store_open. On failure PLAN is empty; the
 * undo itself reports the error later.
 */
void undo_aim_plan(const struct undo_aim *aim, const char *folder, const char *workspace,
		   struct undo_plan *plan);
