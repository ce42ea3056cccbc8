/*
 * session_undo_run: undoes all steps of one run, the newest first, after a check that
 * each of the run's files is as the run has left it.
 */
#include "base/fd.h"
#include "base/text/text.h"
#include "session/session_undo_parts.h"
#include "undo/plan.h"

#include <inttypes.h>
#include <string.h>

struct run_undo {
	struct session *session;
	struct undo_store *store;
	struct undo_steps steps;
	struct undo_aim aim;
	uint32_t first;
	struct undo_plan plan;
	struct tool_result *result;
	size_t known, due; /* the run's steps, and those of them that are not undone */
};

static bool plan_fill(struct run_undo *undo, struct err *err)
{
	for (size_t i = 0; i < undo->steps.count; i++) {
		const struct undo_step *step = &undo->steps.steps[i];

		if (!undo_aim_has(&undo->aim, step))
			continue;
		undo->known++;
		if (step->undone)
			continue;
		if (undo->due++ == 0)
			undo->first = step->number;
		if (!undo_plan_add(&undo->plan, undo->store, step->number, err))
			return false;
	}
	undo_plan_settle(&undo->plan);
	return true;
}

static const char *name_of(const struct run_undo *undo)
{
	return undo->aim.turn_ms != 0 ? "turn" : "run";
}

/*
 * False when a step of somebody else came in between or on top, touches the same files
 * and is still in effect.
 */
static bool is_alone(struct run_undo *undo, struct err *err)
{
	for (size_t i = 0; i < undo->steps.count; i++) {
		const struct undo_step *other = &undo->steps.steps[i];
		auto_free char *path = NULL;

		if (other->number <= undo->first || other->undone ||
		    undo_aim_has(&undo->aim, other) ||
		    (other->work == UNDO_BY_UNDO &&
		     (other->undoes >= undo->first || !other->whole)))
			continue;
		if (!undo_step_touches(undo->store, other->number, &undo->plan, &path, err))
			return false;
		if (path == NULL)
			continue;
		(void)tool_fail(undo->result,
				"Nothing was undone: step %" PRIu32
				", which is not of this %s, touched %.300s. Undo that one "
				"first: glovebox undo %" PRIu32,
				other->number, name_of(undo), path, other->number);
		return false;
	}
	return true;
}

/* Compare all files before anything is undone: half a run undone helps nobody. */
static bool is_untouched(struct run_undo *undo, struct err *err)
{
	auto_value struct value *arguments = value_new_object();
	auto_close int plan = undo_store_scratch(undo->store, err);
	auto_close int log = undo_store_scratch(undo->store, err);
	const struct request request = {
		.tool = "restore",
		.arguments = arguments,
		.fds = {plan, log},
		.fd_count = 2,
		.by_front = true,
		.quiet = true,
	};

	if (plan < 0 || log < 0 ||
	    !undo_plan_print(&undo->plan, undo->store, UNDO_PART_ALL, false, -1, plan,
			     false, err))
		return false;
	value_set_integer(arguments, "log", 0);
	value_set_boolean(arguments, "look", true);
	tool_result_fini(undo->result);
	session_call(undo->session, &request, undo->result);
	return undo->result->status == RESULT_DONE;
}

static void say(struct run_undo *undo, size_t undone, const struct undo_told *told)
{
	struct buf *text = &undo->result->text;
	struct value *details = tool_details(undo->result);

	buf_clear(text);
	(void)buf_adds(text, "Undone: ");
	(void)text_add_count(text, undone, "step");
	(void)buf_addf(text, " of the %s, ", name_of(undo));
	undo_told_print_counts(told, text);
	(void)buf_adds(text, ".\n");
	undo_told_print_files(told, text);
	undo_told_print_left(told, text);
	value_set_integer(details, "steps", (int64_t)undone);
	undo_told_details(told, details);
	(void)tool_done(undo->result);
}

static void undo_each(struct run_undo *undo)
{
	struct undo_told told;
	size_t undone = 0;

	undo_told_init(&told);
	for (size_t i = undo->steps.count; i-- > 0;) {
		const struct undo_step *step = &undo->steps.steps[i];
		struct tool_result one;

		if (!undo_aim_has(&undo->aim, step) || step->undone || step->files == 0)
			continue;
		tool_result_init(&one);
		session_undo(undo->session, step->number, &one);
		if (one.status != RESULT_DONE) {
			tool_result_fini(undo->result);
			*undo->result = one;
			(void)buf_end_line(&undo->result->text);
			(void)buf_addf(&undo->result->text,
				       "%zu of the %s's steps are undone, that one is not.",
				       undone, name_of(undo));
			undo_told_fini(&told);
			return;
		}
		undo_told_add(&told, one.details);
		tool_result_fini(&one);
		undone++;
	}
	say(undo, undone, &told);
	undo_told_fini(&told);
}

static void run_undo(struct run_undo *undo)
{
	struct err err = {0};

	if (!plan_fill(undo, &err))
		(void)tool_fail(undo->result, "The %s cannot be undone: %s",
				name_of(undo), err.text);
	else if (undo->known == 0)
		(void)tool_fail(undo->result,
				"The steps of this %s are not in the store of %.300s, or no "
				"longer.",
				name_of(undo), session_workspace(undo->session));
	else if (undo->due == 0)
		say(undo, 0, &(struct undo_told){0});
	else if (is_alone(undo, &err) && is_untouched(undo, &err))
		undo_each(undo);
	else if (err.text[0] != '\0')
		(void)tool_fail(undo->result, "The %s cannot be undone: %s",
				name_of(undo), err.text);
}

void session_undo_run(struct session *session, const struct undo_aim *aim,
		      struct tool_result *result)
{
	struct run_undo undo = {.session = session, .aim = *aim, .result = result};
	struct err err = {0};

	undo.store = keeper_store(session->keeper);
	if (!keeper_keeps(session->keeper) ||
	    !undo_store_steps(undo.store, &undo.steps, &err)) {
		(void)tool_fail(result, "There is nothing to undo here%s%s.",
				err.text[0] != '\0' ? ": " : "", err.text);
		result->level = session_level(session);
		return;
	}
	undo_plan_init(&undo.plan);
	run_undo(&undo);
	undo_plan_fini(&undo.plan);
	undo_steps_fini(&undo.steps);
	result->level = session_level(session);
}
