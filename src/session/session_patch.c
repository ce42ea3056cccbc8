/*
 * session_patch: gathers the changes of a session for the call that hands them over. The
 * logs of the session's steps become one plan (undo_plan.h), and a call of the session's
 * own fetches the contents that git holds.
 */
#include "base/fd.h"
#include "session/session_undo_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool patch_is_wanted(const struct keeper *keeper)
{
	if (keeper->patch.begun)
		return false;
	for (const struct running *at = keeper->session->first_queued; at != NULL;
	     at = at->next) {
		if (at->state == RUNNING_QUEUED && at->tool->wants_changes && !at->auditing)
			return true;
	}
	return false;
}

static void fetch_free(struct keeper *keeper)
{
	struct running *fetch = keeper->patch.fetch;

	keeper->patch.fetch = NULL;
	running_free(fetch);
}

void patch_forget(struct keeper *keeper)
{
	fetch_free(keeper);
	running_free(keeper->patch.over);
	keeper->patch.over = NULL;
	if (keeper->patch.begun)
		undo_plan_fini(&keeper->patch.plan);
	for (size_t i = 0; i < 3; i++)
		fd_close(&keeper->patch.fds[i]);
	keeper->patch.begun = keeper->patch.ready = false;
	keeper->patch.trouble.text[0] = '\0';
}

/*
 * Fill PLAN with all steps of this session as one. Steps whose logs were removed are left
 * out. When a step was made under other rights, the plan keeps only the paths that this
 * session may read.
 */
static void plan_fill(const struct keeper *keeper, struct undo_plan *plan)
{
	bool foreign = false;
	size_t kept = 0;

	undo_plan_init(plan);
	for (size_t i = 0; i < keeper->step_count; i++) {
		plan->own = !keeper->steps[i].foreign;
		foreign = foreign || !plan->own;
		(void)undo_plan_add(plan, keeper->store, keeper->steps[i].number, NULL);
	}
	undo_plan_settle(plan);
	for (size_t i = 0; foreign && i < plan->count; i++) {
		if (undo_store_may_read(keeper->store, plan->items[i].path))
			plan->items[kept++] = plan->items[i];
	}
	plan->count = foreign ? kept : plan->count;
}

static void fetch_done(void *context, struct running *running)
{
	struct keeper *keeper = context;

	/* Contents that git cannot give are left out of the patch, which says so. */
	if (running->result.status == RESULT_DONE)
		(void)undo_plan_take_git(&keeper->patch.plan, keeper->patch.fds[1], NULL);
	keeper->patch.ready = true;
	keeper->patch.fetch = NULL;
	keeper->patch.over = running;
}

static bool fetch_begin(struct keeper *keeper, struct err *err)
{
	auto_value struct value *arguments = value_new_object();
	int *fds = keeper->patch.fds;

	for (size_t i = 0; i < 3; i++) {
		fds[i] = undo_store_scratch(keeper->store, err);
		if (fds[i] < 0)
			return false;
	}
	if (!undo_plan_print_wanted(&keeper->patch.plan, fds[0], err))
		return false;
	value_set_integer(arguments, "log", 0);
	const struct request request = {
		.tool = "git_contents",
		.arguments = arguments,
		.fds = {fds[0], fds[1], fds[2]},
		.fd_count = 3,
		.by_front = true,
		.quiet = true,
	};
	/* The call may be done, and freed, before session_start returns. */
	keeper->starting = true;
	struct running *running =
		session_start(keeper->session, &request, fetch_done, keeper);
	keeper->starting = false;
	if (!running_is_done(running))
		keeper->patch.fetch = running;
	return true;
}

void patch_begin(struct keeper *keeper)
{
	struct err err = {0};

	keeper->patch.begun = true;
	plan_fill(keeper, &keeper->patch.plan);
	if (undo_plan_wants_git(&keeper->patch.plan) == 0)
		keeper->patch.ready = true;
	else if (!fetch_begin(keeper, &err)) {
		keeper->patch.trouble = err;
		keeper->patch.ready = true;
	}
}

enum { NAMES_MAX = 16 }; /* so many granted folders are named */

static struct value *names_of(const struct value *object)
{
	struct value *names = object != NULL ? value_new_array() : NULL;

	for (void *at = value_first(object); at != NULL && value_count(names) < NAMES_MAX;
	     at = value_next(object, at))
		value_append(names, value_new_text(value_key(at)));
	return names;
}

/* Print to FD what the patch does not cover, for those who read it. */
static bool limits_print(const struct keeper *keeper, int fd, struct err *err)
{
	auto_value struct value *object = value_new_object();
	struct value *outside;
	struct undo_log log;
	struct buf text;
	bool fine;

	if (keeper->broken)
		value_set_text(object, "without_commands",
			       keeper->why.size > 0 ? keeper->why.data
						    : "there is no state folder");
	value_set_integer(object, "lost", keeper->lost);
	outside = names_of(keeper->session->outside);
	if (outside != NULL)
		value_set(object, "outside", outside);
	buf_init(&text, UNDO_META_MAX);
	undo_log_begin(&log, fd, 0);
	fine = (value_print(object, 0, &text) || err_set(err, E2BIG, "a sentence")) &&
	       undo_log_meta(&log, buf_str(&text), err);
	buf_fini(&text);
	return fine;
}

static bool plan_end(int fd, struct err *err)
{
	struct undo_log log;

	undo_log_begin(&log, fd, 0);
	return undo_log_end(&log, err);
}

int patch_take(struct keeper *keeper, struct err *err)
{
	auto_close int fd = -1;
	bool fine = false;

	if (!keeper->patch.ready)
		(void)err_set(err, EIO, "the cell is broken");
	else if (keeper->patch.trouble.text[0] != '\0')
		*err = keeper->patch.trouble;
	else if (keeper->store == NULL)
		fine = fd_memory_file("glovebox-plan", STR(""), &fd, err) &&
		       limits_print(keeper, fd, err) && plan_end(fd, err);
	else
		fine = (fd = undo_store_scratch(keeper->store, err)) >= 0 &&
		       limits_print(keeper, fd, err) &&
		       undo_plan_print(&keeper->patch.plan, keeper->store, UNDO_PART_REST,
				       true, keeper->patch.fds[1], fd, true, err);
	patch_forget(keeper);
	if (!fine) {
		(void)err_while(err, "gathering what was changed");
		return -1;
	}
	return fd_take(&fd);
}

const char *const *session_changed(struct session *session)
{
	struct keeper *keeper = session->keeper;
	struct undo_plan plan;
	size_t count = 0;

	if (session->changed != NULL) {
		for (char **at = session->changed; *at != NULL; at++)
			free(*at);
		free(session->changed);
	}
	plan_fill(keeper, &plan);
	session->changed = memory_array(plan.count + 1, sizeof(char *));
	for (size_t i = 0; i < plan.count; i++) {
		const struct undo_item *item = &plan.items[i];
		if (!undo_is_of_folders(item->target.kind, item->expected.kind) &&
		    !str_starts(item->path, STR(".git/")))
			session->changed[count++] = memory_copy_str(item->path);
	}
	undo_plan_fini(&plan);
	return (const char *const *)session->changed;
}

bool session_has_news(const struct session *session)
{
	return keeper_has_news(session->keeper);
}

void session_writes(const struct session *session, struct session_writes *writes)
{
	*writes = (struct session_writes){0};
	keeper_writes(session->keeper, writes);
	for (const struct job *at = session->first_job; at != NULL; at = at->next) {
		if (at->ended_us == 0 && at->work != NULL &&
		    at->work->tool->effects != EFFECT_READS)
			writes->writing = true;
	}
}
