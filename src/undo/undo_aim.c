/* undo_aim: see undo_aim.h. */
#include "undo/undo_aim.h"

#include <stddef.h>
#include <string.h>

const struct undo_step *undo_aim_step(const struct undo_steps *steps, uint32_t number)
{
	for (size_t i = steps->count; i-- > 0;) {
		const struct undo_step *step = &steps->steps[i];

		if (number != 0 ? step->number == number
				: !step->undone && step->work != UNDO_BY_UNDO &&
					  step->files > 0)
			return step;
	}
	return NULL;
}

bool undo_aim_widen(struct undo_aim *aim, const struct undo_steps *steps)
{
	const struct undo_step *step = undo_aim_step(steps, aim->step);

	if (step == NULL)
		return false;
	aim->step = step->number;
	if (step->turn_ms == 0 || step->work == UNDO_BY_UNDO)
		return true;
	aim->run = step->run;
	aim->turn_ms = step->turn_ms;
	for (size_t i = 0; i < steps->count; i++) {
		if (steps->steps[i].number > aim->step &&
		    steps->steps[i].turn_ms == aim->turn_ms &&
		    strcmp(steps->steps[i].run, aim->run) == 0)
			aim->step = steps->steps[i].number;
	}
	return true;
}

bool undo_aim_has(const struct undo_aim *aim, const struct undo_step *step)
{
	return step->work != UNDO_BY_UNDO && step->number <= aim->step &&
	       (aim->turn_ms == 0 || step->turn_ms == aim->turn_ms) &&
	       strcmp(step->run, aim->run) == 0;
}

static bool plan_fill(const struct undo_aim *aim, const struct undo_store *store,
		      const struct undo_steps *steps, struct undo_plan *plan)
{
	if (aim->run == NULL) {
		const struct undo_step *step = undo_aim_step(steps, aim->step);
		return step == NULL || undo_plan_add(plan, store, step->number, NULL);
	}
	for (size_t i = 0; i < steps->count; i++) {
		const struct undo_step *step = &steps->steps[i];
		if (undo_aim_has(aim, step) && !step->undone &&
		    !undo_plan_add(plan, store, step->number, NULL))
			return false;
	}
	return true;
}

void undo_aim_plan(const struct undo_aim *aim, const char *folder, const char *workspace,
		   struct undo_plan *plan)
{
	struct undo_store *store = NULL;
	struct undo_steps steps = {0};

	if (folder != NULL && undo_store_open_old(folder, workspace, &store, NULL) &&
	    store != NULL && undo_store_steps(store, &steps, NULL) &&
	    plan_fill(aim, store, &steps, plan))
		undo_plan_settle(plan);
	else
		plan->count = 0;
	undo_steps_fini(&steps);
	undo_store_close(store);
}
