/*
 * undo_aim: which steps an undo is about, known before its cell is made: what git follows is
 * bound read-only there (shape_git.c), except what these steps themselves have changed.
 */
#pragma once
#include "undo/undo_plan.h"
#include "undo/undo_store.h"

#include <stdbool.h>
#include <stdint.h>

struct undo_aim {
	const char *run; /* its steps up to STEP; NULL: that step alone */
	uint32_t step;   /* 0: the newest that was not undone */
	int64_t turn_ms; /* of RUN only the steps of this turn; 0: of all */
};

/* The step NUMBER; NULL: there is none. 0: the newest that holds and is no undo itself. */
const struct undo_step *undo_aim_step(const struct undo_steps *steps, uint32_t number);
/*
 * Make AIM, which names one step, the whole turn of that step, among STEPS, whose `run` it borrows.
 * A step of no turn (a single call, another agent's client) stays alone. False: there is no such
 * step.
 */
bool undo_aim_widen(struct undo_aim *aim, const struct undo_steps *steps);
/* Is STEP one of those of AIM, which names a run? */
bool undo_aim_has(const struct undo_aim *aim, const struct undo_step *step);

/*
 * What they have changed and their sessions could write, in PLAN, which is initialised, settled.
 * FOLDER as undo_store_open's. Whoever undoes says what is wrong: nothing is in the plan then.
 */
void undo_aim_plan(const struct undo_aim *aim, const char *folder, const char *workspace,
		   struct undo_plan *plan);
