/*
 * undo: undoes all steps of one run, the newest first, after a check that
 * each of the run's files is as the run has left it.
 */

#include "base/clock.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/text/text.h"
#include "session/keeper.h"
#include "session/session.h"
#include "tool/tool.h"
#include "undo/plan.h"
#include "undo/store.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Undoes one step, by calls in the session's cell. */

enum { TITLE_ROOM = 64 };

struct undoing {
	struct session *session;
	struct undo_store *store;
	struct undo_steps steps;
	const struct undo_step *step;
	/* all steps above this one are undone together, and `step` is NULL */
	uint32_t above;
	struct undo_plan plan;
	struct tool_result *result;
	struct undo_told told;
	bool spares; /* a file that somebody has changed since is left, and the rest undone */
	int log;     /* the log of the undo, which is a step too */
	uint32_t number;
};

static bool step_choose(struct undoing *undoing, uint32_t number)
{
	undoing->step = undo_aim_step(&undoing->steps, number);
	if (undoing->step == NULL) {
		if (number == 0)
			(void)tool_fail(undoing->result, "There is nothing to undo here.");
		else
			(void)tool_fail(undoing->result,
					"There is no step %" PRIu32
					"; see: glovebox undo --list",
					number);
		return false;
	}
	if (undoing->step->work == UNDO_MARK) {
		(void)tool_fail(undoing->result,
				"Step %" PRIu32
				" is a mark and changed nothing. To undo all that "
				"came after it: glovebox undo --to %" PRIu32,
				number, number);
		return false;
	}
	if (undoing->step->undone) {
		(void)tool_fail(undoing->result, "Step %" PRIu32 " is undone already.",
				number);
		return false;
	}
	return true;
}

static bool is_in_git(const struct undo_state *state)
{
	return state->source == UNDO_IN_GIT || state->source == UNDO_LINKED;
}

/*
 * *PATH becomes the first path of PLAN that the step NUMBER has changed, owned by the
 * caller; NULL: none. Folders and git's index do not count: everybody changes them. A step
 * also counts when its old contents are in a repository that PLAN takes away.
 */
static bool step_touches(const struct undo_store *store, uint32_t number,
			 const struct undo_plan *plan, char **path, struct err *err)
{
	const bool takes_repository = undo_plan_takes_repository(plan);
	struct undo_plan other;

	undo_plan_init(&other);
	const bool fine = undo_plan_add(&other, store, number, err);
	for (size_t i = 0; fine && *path == NULL && i < other.count; i++) {
		const struct undo_item *item = &other.items[i];
		const bool is_everybodys = item->target.kind == UNDO_FOLDER ||
					   item->expected.kind == UNDO_FOLDER ||
					   str_is(item->path, UNDO_GIT_INDEX);

		if ((!is_everybodys && undo_plan_touches(plan, item->path)) ||
		    (takes_repository && is_in_git(&item->target)))
			*path = memory_copy_str(item->path);
	}
	undo_plan_fini(&other);
	return fine;
}

/* False when a later step touches the same files and is still in effect. */
static bool is_on_top(struct undoing *undoing, struct err *err)
{
	for (size_t i = 0; i < undoing->steps.count; i++) {
		const struct undo_step *later = &undoing->steps.steps[i];
		auto_free char *path = NULL;

		if (later->number <= undoing->step->number || later->undone ||
		    (later->work == UNDO_BY_UNDO &&
		     (undo_step_first(later) >= undoing->step->number || !later->whole)))
			continue;
		if (!step_touches(undoing->store, later->number, &undoing->plan, &path, err))
			return false;
		if (path == NULL)
			continue;
		(void)tool_fail(undoing->result,
				"Step %" PRIu32 " touched %.300s after step %" PRIu32
				". Undo that one first: glovebox undo %" PRIu32,
				later->number, path, undoing->step->number, later->number);
		return false;
	}
	return true;
}

static bool call_quietly(struct session *session, const char *tool, struct value *arguments,
			 int a, int b, int c, struct tool_result *result)
{
	const struct request request = {
		.tool = tool,
		.arguments = arguments,
		.fds = {a, b, c},
		.fd_count = c >= 0 ? 3 : 2,
		.by_front = true,
		.quiet = true,
	};

	session_call(session, &request, result);
	return result->status == RESULT_DONE;
}

/* The arguments of restore (and, but for `log`, all 0, of git_contents). */
struct restore_order {
	unsigned log;
	bool look, more, spare;
};

static const struct field order_fields[] = {
	FIELD(struct restore_order, log),
	FIELD(struct restore_order, look, .optional = true),
	FIELD(struct restore_order, more, .optional = true),
	FIELD(struct restore_order, spare, .optional = true),
	{0},
};

/* The details of the undo of one step, of all above one, and of those of a run. */
struct said {
	unsigned step, above, undo;
	size_t steps;
};

static const struct field step_fields[] = {
	FIELD(struct said, step),
	FIELD(struct said, undo),
	{0},
};

static const struct field above_fields[] = {
	FIELD(struct said, above),
	FIELD(struct said, steps),
	FIELD(struct said, undo),
	{0},
};

static const struct field run_fields[] = {
	FIELD(struct said, steps),
	{0},
};

/* Fetch the contents of PLAN that git holds. */
static bool plan_fetch_git(struct session *session, const struct undo_store *store,
			   struct undo_plan *plan, int *from_git, struct err *err)
{
	auto_value struct value *arguments =
		fields_print(order_fields, &(struct restore_order){0});
	auto_close int wanted = -1, printed = -1;
	struct tool_result result;

	if (undo_plan_wants_git(plan) == 0)
		return true;
	wanted = undo_store_scratch(store, err);
	printed = undo_store_scratch(store, err);
	*from_git = undo_store_scratch(store, err);
	if (wanted < 0 || printed < 0 || *from_git < 0 ||
	    !undo_plan_print_wanted(plan, wanted, err))
		return false;
	tool_result_init(&result);
	bool fine = call_quietly(session, "git_contents", arguments, wanted, *from_git,
				 printed, &result) ||
		    err_set(err, EIO, "%.*s",
			    (int)str_part(buf_str(&result.text), 0, 500).size,
			    result.text.data);
	tool_result_fini(&result);
	return fine && undo_plan_take_git(plan, *from_git, err);
}

/* One call of restore: LOOKS only, or MORE follows. */
static bool restore(struct undoing *undoing, enum undo_part part, bool looks, bool more,
		    int from_git, struct err *err)
{
	const struct restore_order order = {undoing->number, looks, more, undoing->spares};
	auto_value struct value *arguments = fields_print(order_fields, &order);
	auto_close int file = undo_store_scratch(undoing->store, err);

	if (file < 0 || !undo_plan_print(&undoing->plan, undoing->store, part, !looks,
					 from_git, file, err))
		return false;
	tool_result_fini(undoing->result);
	tool_result_init(undoing->result);
	if (!call_quietly(undoing->session, "restore", arguments, file, undoing->log, -1,
			  undoing->result))
		return false;
	undo_told_add(&undoing->told, undoing->result->details);
	return true;
}

static bool has_git_part(const struct undo_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		if (record_is_gits(plan->items[i].path))
			return true;
	}
	return false;
}

/*
 * Git can give contents only from a repository that exists: one that the step removed is
 * restored first.
 */
static bool carry_out(struct undoing *undoing, struct err *err)
{
	auto_close int from_git = -1;
	enum undo_part rest = UNDO_PART_ALL;

	if (has_git_part(&undoing->plan) && undo_plan_wants_git(&undoing->plan) > 0) {
		if (!restore(undoing, UNDO_PART_ALL, true, false, -1, err) ||
		    !restore(undoing, UNDO_PART_GIT, false, true, -1, err))
			return false;
		rest = UNDO_PART_REST;
	}
	return plan_fetch_git(undoing->session, undoing->store, &undoing->plan, &from_git,
			      err) &&
	       restore(undoing, rest, false, false, from_git, err);
}

/*
 * Open the log of the undo. When an undo of the same was killed, its log is continued.
 */
static bool log_open(struct undoing *undoing, struct err *err)
{
	const bool above = undoing->step == NULL;
	const uint32_t undoes = above ? undoing->above : undoing->step->number;
	char title[TITLE_ROOM];
	const int size = snprintf(title, sizeof(title), "undo of %s %" PRIu32,
				  above ? "all steps above" : "step", undoes);
	const struct undo_meta meta = {
		.work = UNDO_BY_UNDO,
		.run = keeper_run(undoing->session->keeper),
		.title = {title, (size_t)size},
		.wall_ms = clock_wall_ms(),
		.undoes = undoes,
		.above = above,
		.agent = undoing->session->policy->name,
	};

	for (size_t i = 0; i < undoing->steps.count; i++) {
		const struct undo_step *step = &undoing->steps.steps[i];
		struct undo_reader reader = {0};

		if (step->work != UNDO_BY_UNDO || step->whole || step->undoes != undoes ||
		    step->above != above ||
		    !undo_store_is_ours(undoing->store, step->number))
			continue;
		undoing->number = step->number;
		undoing->log = undo_store_open_log(undoing->store, step->number, true);
		if (undoing->log >= 0 && undo_log_read(&reader, undoing->log, err) &&
		    ftruncate(undoing->log, (off_t)reader.sound) == 0)
			return true;
		fd_close(&undoing->log);
	}
	undoing->log = undo_store_new_log(undoing->store, &meta, &undoing->number, err);
	return undoing->log >= 0;
}

/* Has the step OTHER of another session changed files of the step while that one ran? */
static bool is_beside(const struct undoing *undoing, const struct undo_step *other)
{
	const struct undo_step *step = undoing->step;
	const int64_t since_ms = other->since_ms != 0 ? other->since_ms : other->wall_ms;
	auto_free char *path = NULL;

	return !other->undone && strcmp(other->run, step->run) != 0 && step->since_ms != 0 &&
	       since_ms < step->wall_ms && other->wall_ms > step->since_ms &&
	       step_touches(undoing->store, other->number, &undoing->plan, &path, NULL) &&
	       path != NULL;
}

/*
 * May others have changed the step's files while it ran? The look may have found signs of
 * that, a file tool may have written beside the command, or another session has a step of
 * that time.
 */
static bool may_have_others(const struct undoing *undoing)
{
	const struct undo_step *step = undoing->step;

	if (step->work != UNDO_BY_COMMAND)
		return false;
	if (!step->alone || undoing->plan.mixed)
		return true;
	for (size_t i = 0; i < undoing->steps.count; i++) {
		if (is_beside(undoing, &undoing->steps.steps[i]))
			return true;
	}
	return false;
}

static void say_step(struct undoing *undoing)
{
	const struct undo_step *step = undoing->step;
	struct value *details;
	struct buf *text = &undoing->result->text;

	tool_result_fini(undoing->result);
	tool_result_init(undoing->result);
	undoing->result->status = RESULT_DONE;
	(void)buf_addf(text, "Undone: step %" PRIu32 ", %s%s", step->number, step->tool,
		       step->tool[0] != '\0' ? " " : "");
	text_add_exact(text, str_of(step->title));
	(void)buf_adds(text, "\n");
	undo_told_print_files(&undoing->told, text);
	undo_told_print_counts(&undoing->told, text);
	/* Two looks do not show who changed a file between them. */
	(void)buf_addf(text, "%s. To take that back: glovebox undo %" PRIu32 "\n",
		       may_have_others(undoing)
			       ? ", with what others changed in them while it ran"
			       : "",
		       undoing->number);
	undo_told_print_left(&undoing->told, text);
	details = tool_details(undoing->result);
	fields_set(details, step_fields,
		   &(struct said){.step = step->number, .undo = undoing->number});
	undo_told_details(&undoing->told, details);
}

/*
 * Changes that the step's session had no right to make are not undone either. They are
 * told with the rest.
 */
static void take_refused(struct undoing *undoing)
{
	static const char granted[] =
		"what is written in a folder that a person granted is not undone";
	const struct undo_refused *refused = &undoing->plan.refused;
	const char *why = refused->unknown
				  ? "nobody knows any more what the session of this step "
				    "could write"
				  : "the session of this step could not write it";
	const size_t named = value_count(refused->names);
	struct buf line;

	buf_init(&line, 8 << 10);
	for (size_t i = 0; i < named; i++) {
		buf_clear(&line);
		const char *name = value_text(value_item(refused->names, i));
		/*
		 * A path outside of the workspace: the policy named it, or a person
		 * granted it for that time.
		 */
		(void)buf_addf(&line, "%s (%s)", name, name[0] == '/' ? granted : why);
		value_append(undoing->told.left, value_new_str(buf_str(&line)));
	}
	if (refused->unknown && undoing->step != NULL) {
		auto_close int log =
			undo_store_open_log(undoing->store, undoing->step->number, false);
		struct buf path;

		buf_init(&path, PATH_MAX);
		buf_clear(&line);
		if (log >= 0 && fd_real_path(log, &path) &&
		    buf_addf(&line, "what it held before is in %s", path.data))
			value_append(undoing->told.left, value_new_str(buf_str(&line)));
		buf_fini(&path);
	}
	if (refused->count > named) {
		buf_clear(&line);
		(void)buf_addf(&line, "%zu more (%s)", refused->count - named, why);
		value_append(undoing->told.left, value_new_str(buf_str(&line)));
	}
	buf_fini(&line);
}

/* Is there anything to put back, and may all of it be written now? */
static bool plan_is_allowed(struct undoing *undoing)
{
	const struct undo_plan *plan = &undoing->plan;
	struct buf *text = &undoing->result->text;

	if (plan->count == 0 && plan->refused.count > 0) {
		(void)tool_fail(undoing->result, "Nothing was undone:");
		for (size_t i = 0; i < value_count(undoing->told.left); i++)
			(void)buf_addf(text, "\n  %s",
				       value_text(value_item(undoing->told.left, i)));
		return false;
	}
	/*
	 * The worker would refuse such a write as well, but by then it would have the old
	 * contents of files that are not its own.
	 */
	for (size_t i = 0; i < plan->count; i++) {
		const struct str path = plan->items[i].path;

		if (undo_store_may_write(undoing->store, path))
			continue;
		/*
		 * A session that does more than undo cannot change its view
		 * (protected.c).
		 */
		(void)tool_fail(undoing->result,
				"%s %" PRIu32 " cannot be undone: %.300s may not be "
				"written by this agent%s",
				undoing->step ? "Step" : "The steps above",
				undoing->step ? undoing->step->number : undoing->above,
				path.data,
				record_is_gits(path)
					? " in this session. In one of its own "
					  "it may: leave, and run `glovebox undo`"
					: "");
		return false;
	}
	return true;
}

/*
 * The newest undo of several steps that was killed and that would undo the step NUMBER (0:
 * any step); NULL: there is none. Until it goes on, some files are as they were long before
 * that step.
 */
static const struct undo_step *killed_above(const struct undoing *undoing, uint32_t number)
{
	for (size_t i = undoing->steps.count; i-- > 0;) {
		const struct undo_step *step = &undoing->steps.steps[i];

		if (step->work == UNDO_BY_UNDO && step->above && !step->whole &&
		    (number == 0 || (step->undoes < number && number < step->number)))
			return step;
	}
	return NULL;
}

static void say_above(struct undoing *undoing, size_t count)
{
	struct buf *text = &undoing->result->text;
	struct value *details;

	tool_result_fini(undoing->result);
	tool_result_init(undoing->result);
	undoing->result->status = RESULT_DONE;
	(void)buf_adds(text, "Undone: ");
	(void)text_add_count(text, count, "step");
	(void)buf_addf(text, " above %" PRIu32 "\n", undoing->above);
	undo_told_print_files(&undoing->told, text);
	undo_told_print_counts(&undoing->told, text);
	(void)buf_addf(text, ". To take that back: glovebox undo %" PRIu32 "\n",
		       undoing->number);
	undo_told_print_left(&undoing->told, text);
	details = tool_details(undoing->result);
	fields_set(details, above_fields,
		   &(struct said){.above = undoing->above,
				  .steps = count,
				  .undo = undoing->number});
	undo_told_details(&undoing->told, details);
}

/*
 * Is every step above there to be undone? *COUNT gets the number of those that are in
 * effect. An undo that was killed has to be finished first.
 */
static bool above_fill(struct undoing *undoing, size_t *count, struct err *err)
{
	const struct undo_aim aim = {.step = undoing->above, .above = true};
	const struct undo_step *killed = NULL;
	bool fine = true;

	for (size_t i = 0; fine && i < undoing->steps.count; i++) {
		const struct undo_step *step = &undoing->steps.steps[i];
		const bool is_undo = step->work == UNDO_BY_UNDO;

		if (!undo_aim_has(&aim, step))
			continue;
		if (is_undo && !step->whole) {
			/* This one goes on with the same files. */
			if (!step->above || step->undoes != undoing->above)
				killed = step;
			continue;
		}
		*count += !step->undone && !is_undo && undo_step_changes(step);
		fine = undo_plan_add(&undoing->plan, undoing->store, step->number, err);
	}
	if (fine && killed != NULL) {
		(void)tool_fail(undoing->result,
				"Nothing was undone: step %" PRIu32
				", an undo, was cut short. "
				"Finish it first: glovebox undo%s%" PRIu32,
				killed->number, killed->above ? " --to " : " ",
				killed->undoes);
		return false;
	}
	undo_plan_settle(&undoing->plan);
	return fine;
}

/* Undo all steps above one, as one step: all of them, or nothing. */
static void undo_above(struct undoing *undoing)
{
	struct err err = {0};
	size_t count = 0;
	bool fine = above_fill(undoing, &count, &err);

	if (fine && undoing->plan.torn.data != NULL) {
		fine = tool_fail(undoing->result,
				 "Nothing was undone: somebody else changed %.300s between two "
				 "of these steps. `glovebox undo` takes back one step at a "
				 "time, the newest first, and leaves that change.",
				 undoing->plan.torn.data);
	} else if (fine && undoing->plan.count == 0 && undoing->plan.refused.count == 0) {
		fine = tool_fail(undoing->result,
				 "There is nothing to undo above %" PRIu32 ".",
				 undoing->above);
	}
	take_refused(undoing);
	fine = fine && plan_is_allowed(undoing) && log_open(undoing, &err) &&
	       carry_out(undoing, &err);
	if (fine)
		say_above(undoing, count);
	else if (err.text[0] != '\0')
		(void)tool_fail(undoing->result,
				"The steps above %" PRIu32 " cannot be undone: %s",
				undoing->above, err.text);
	if (!fine && undoing->log >= 0 && !undo_store_is_used(undoing->log))
		undo_store_drop_log(undoing->store, undoing->number);
}

static void undo_step(struct undoing *undoing, uint32_t number)
{
	const struct undo_step *killed = killed_above(undoing, number);
	struct err err = {0};

	if (killed != NULL && number == 0) {
		undoing->above = killed->undoes;
		undo_above(undoing);
		return;
	}
	if (killed != NULL) {
		(void)tool_fail(undoing->result,
				"Step %" PRIu32 ", the undo of all steps above %" PRIu32
				", was cut short. Finish it first: glovebox undo --to %" PRIu32,
				killed->number, killed->undoes, killed->undoes);
		return;
	}
	if (!step_choose(undoing, number))
		return;
	bool fine =
		undo_plan_add(&undoing->plan, undoing->store, undoing->step->number, &err);
	undo_plan_settle(&undoing->plan);
	take_refused(undoing);
	fine = fine && plan_is_allowed(undoing) &&
	       (undoing->spares || is_on_top(undoing, &err)) && log_open(undoing, &err) &&
	       carry_out(undoing, &err);
	if (fine)
		say_step(undoing);
	else if (err.text[0] != '\0')
		(void)tool_fail(undoing->result, "Step %" PRIu32 " cannot be undone: %s",
				undoing->step->number, err.text);
	if (!fine && undoing->log >= 0 && !undo_store_is_used(undoing->log))
		undo_store_drop_log(undoing->store, undoing->number);
}

/*
 * Undo the step, or all steps above it, of AIM; SPARES as in struct undoing. The caller holds
 * the store.
 */
static void undo_held(struct session *session, const struct undo_aim *aim, bool spares,
		      struct tool_result *result)
{
	struct undoing undoing = {.session = session,
				  .result = result,
				  .spares = spares,
				  .log = -1};
	struct err err = {0};

	undoing.store = keeper_store(session->keeper);
	if (!undo_store_steps(undoing.store, &undoing.steps, &err)) {
		(void)tool_fail(result, "Nothing was undone: %s.", err.text);
		return;
	}
	undo_told_init(&undoing.told);
	undo_plan_init(&undoing.plan);
	undoing.above = aim->step;
	if (aim->above)
		undo_above(&undoing);
	else
		undo_step(&undoing, aim->step);
	undo_plan_fini(&undoing.plan);
	undo_steps_fini(&undoing.steps);
	undo_told_fini(&undoing.told);
	fd_close(&undoing.log);
}

/* Hold the store of SESSION in *HELD. False: RESULT says why nothing can be undone. */
static bool hold(struct session *session, int *held, struct tool_result *result)
{
	struct err err = {0};

	*held = -1;
	if (!keeper_keeps(session->keeper))
		(void)tool_fail(result, "There is nothing to undo here.");
	else if (!undo_store_hold(keeper_store(session->keeper), held, &err))
		(void)tool_fail(result, "Nothing was undone: %s.", err.text);
	else
		return true;
	return false;
}

void session_note_undone(struct session *session)
{
	struct undo_steps steps;

	if (!keeper_keeps(session->keeper) ||
	    !undo_store_steps(keeper_store(session->keeper), &steps, NULL))
		return;
	keeper_note_undone(session->keeper, &steps);
	undo_steps_fini(&steps);
}

void session_undo_aim(struct session *session, const struct undo_aim *aim,
		      struct tool_result *result)
{
	auto_close int held = -1;

	if (hold(session, &held, result))
		undo_held(session, aim, false, result);
	session_note_undone(session);
	result->strength = session_strength(session);
}

void session_undo(struct session *session, uint32_t number, struct tool_result *result)
{
	session_undo_aim(session, &(const struct undo_aim){.step = number}, result);
}

bool session_made_step(struct session *session, uint32_t number)
{
	struct undo_store *store = keeper_store(session->keeper);
	const struct undo_step *step;
	struct undo_steps steps;
	bool made;

	if (!keeper_keeps(session->keeper) || !undo_store_steps(store, &steps, NULL))
		return true;
	step = undo_aim_step(&steps, number);
	made = step == NULL || undo_store_is_ours(store, step->number);
	undo_steps_fini(&steps);
	return made;
}

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
		     (undo_step_first(other) >= undo->first || !other->whole)))
			continue;
		if (!step_touches(undo->store, other->number, &undo->plan, &path, err))
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

/* False when somebody else changed a file between two steps: half a run undone helps nobody. */
static bool is_joined(struct run_undo *undo)
{
	const struct str torn = undo->plan.torn;

	if (torn.data == NULL)
		return true;
	(void)tool_fail(undo->result,
			"Nothing was undone: somebody else changed %.300s between two steps "
			"of this %s. `glovebox undo` takes back one step at a time, the newest "
			"first, and leaves that change.",
			torn.data, name_of(undo));
	return false;
}

/* Compare all files before anything is undone. */
static bool is_untouched(struct run_undo *undo, struct err *err)
{
	auto_value struct value *arguments =
		fields_print(order_fields, &(struct restore_order){.look = true});
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
	    !undo_plan_print(&undo->plan, undo->store, UNDO_PART_ALL, false, -1, plan, err))
		return false;
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
	fields_set(details, run_fields, &(struct said){.steps = undone});
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

		if (!undo_aim_has(&undo->aim, step) || step->undone ||
		    !undo_step_changes(step))
			continue;
		tool_result_init(&one);
		undo_held(undo->session, &(const struct undo_aim){.step = step->number},
			  false, &one);
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
	else if (is_joined(undo) && is_alone(undo, &err) && is_untouched(undo, &err))
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

	auto_close int held = -1;

	undo.store = keeper_store(session->keeper);
	/* For all of its steps: another undo in between would find half of them. */
	if (hold(session, &held, result)) {
		undo_plan_init(&undo.plan);
		if (undo_store_steps(undo.store, &undo.steps, &err))
			run_undo(&undo);
		else
			(void)tool_fail(result, "Nothing was undone: %s.", err.text);
		undo_plan_fini(&undo.plan);
		undo_steps_fini(&undo.steps);
	}
	session_note_undone(session);
	result->strength = session_strength(session);
}

/* Is STEP a change of the run RUN since SINCE_MS that is in effect? */
static bool is_since(const struct undo_step *step, const char *run, int64_t since_ms)
{
	return strcmp(step->run, run) == 0 && step->wall_ms >= since_ms && !step->undone &&
	       (step->work == UNDO_BY_TOOL || step->work == UNDO_BY_COMMAND) &&
	       undo_step_changes(step);
}

/* A step that could not be undone at all is named with those files that were left. */
static void tell_stuck(struct undo_told *told, const struct undo_step *step,
		       const struct tool_result *why)
{
	struct buf line;

	buf_init(&line, PATH_MAX + ERR_TEXT_MAX);
	(void)buf_addf(&line, "step %" PRIu32 ": ", step->number);
	text_add_name(&line, str_part(str_trim(buf_str(&why->text)), 0, ERR_TEXT_MAX / 4));
	value_append(told->left, value_new_str(buf_str(&line)));
	buf_fini(&line);
}

static void rewind_held(struct session *session, int64_t since_ms, struct tool_result *result)
{
	struct undo_steps steps;
	struct undo_told told;
	struct err err = {0};
	size_t undone = 0;

	if (!undo_store_steps(keeper_store(session->keeper), &steps, &err)) {
		(void)tool_fail(result, "Nothing was undone: %s.", err.text);
		return;
	}
	undo_told_init(&told);
	for (size_t i = steps.count; i-- > 0;) {
		const struct undo_step *step = &steps.steps[i];
		struct tool_result one;

		if (!is_since(step, keeper_run(session->keeper), since_ms))
			continue;
		tool_result_init(&one);
		undo_held(session, &(const struct undo_aim){.step = step->number}, true,
			  &one);
		if (one.status == RESULT_DONE) {
			undo_told_add(&told, one.details);
			undone++;
		} else {
			tell_stuck(&told, step, &one);
		}
		tool_result_fini(&one);
	}
	(void)text_add_count(&result->text, undone, "step");
	(void)buf_adds(&result->text, " undone: ");
	undo_told_print_counts(&told, &result->text);
	(void)buf_adds(&result->text, ".\n");
	undo_told_print_files(&told, &result->text);
	undo_told_print_left(&told, &result->text);
	undo_told_details(&told, tool_details(result));
	(void)tool_done(result);
	undo_told_fini(&told);
	undo_steps_fini(&steps);
}

void session_rewind(struct session *session, int64_t since_ms, struct tool_result *result)
{
	auto_close int held = -1;

	if (hold(session, &held, result))
		rewind_held(session, since_ms, result);
	session_note_undone(session);
	result->strength = session_strength(session);
}
