/* session_undo: decides when a checkpoint is due, and gives file tools their logs. */
#include "session/session_undo.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/text/text.h"
#include "cell/cell.h"
#include "session/approval.h"
#include "session/session_undo_parts.h"
#include "undo/undo_projects.h"
#include "view/spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* enough for a checkpoint of a large tree on a busy machine */
	KEEPER_CLOSE_MS = 10000,
	/* bytes of replaced files, when they cannot be kept on disk */
	MEMORY_MAX = 64 << 20,
	MEMORY_LOGS_MAX = 256, /* each is an open file */
};

/* This session still keeps replaced files, for its patch. */
static void stay_in_memory(struct keeper *keeper)
{
	keeper->store = undo_store_in_memory();
	keeper->in_memory = true;
	keeper->broken = true;
}

struct keeper *keeper_new(struct session *session, const char *folder, uint64_t space)
{
	struct keeper *keeper;
	uint64_t number = 0;

	keeper = memory_alloc(sizeof(*keeper));
	keeper->session = session;
	keeper->folder = memory_copy(folder);
	keeper->space = space > 0 ? space : UNDO_ALL_MAX;
	keeper->patch.fds[0] = keeper->patch.fds[1] = keeper->patch.fds[2] = -1;
	if (folder == NULL)
		stay_in_memory(keeper);
	keeper->objects = -2;
	for (size_t i = 0; i < 3; i++)
		keeper->fds[i] = -1;
	buf_init(&keeper->trouble, ERR_TEXT_MAX + 256);
	buf_init(&keeper->why, ERR_TEXT_MAX);
	(void)!getrandom(&number, sizeof(number), 0);
	(void)snprintf(keeper->run, sizeof(keeper->run), "%0*" PRIx64, RUN_DIGITS,
		       number >> (64 - 4 * RUN_DIGITS));
	return keeper;
}

const char *keeper_run(const struct keeper *keeper)
{
	return keeper->run;
}

static void keeper_adopt(struct keeper *keeper, const char *run, bool handed)
{
	struct undo_store *store = keeper_store(keeper);
	struct undo_steps steps;

	if (strlen(run) != RUN_DIGITS || strspn(run, "0123456789abcdef") != RUN_DIGITS)
		return;
	memcpy(keeper->run, run, sizeof(keeper->run));
	if (keeper->in_memory || !undo_store_steps(store, &steps, NULL))
		return;
	for (size_t i = 0; i < steps.count; i++) {
		const struct undo_step *step = &steps.steps[i];

		if (strcmp(step->run, run) == 0 && step->whole && !step->undone)
			keeper_add_step(keeper, step->number,
					!undo_store_is_ours(store, step->number));
	}
	undo_steps_fini(&steps);
	if (handed)
		keeper->handed = keeper->step_count;
}

const char *session_run(const struct session *session)
{
	return keeper_run(session->keeper);
}

void session_adopt(struct session *session, const char *run, bool handed)
{
	keeper_adopt(session->keeper, run, handed);
}

bool keeper_has_news(const struct keeper *keeper)
{
	return keeper->owed || keeper->step_count > keeper->handed;
}

void keeper_writes(const struct keeper *keeper, struct session_writes *writes)
{
	if (keeper == NULL)
		return;
	writes->found = keeper->changes + (uint64_t)keeper->lost;
	writes->writers = keeper->writers;
	writes->looks = !keeper->broken;
}

bool keeper_keeps(const struct keeper *keeper)
{
	return !keeper->in_memory;
}

struct undo_store *keeper_store(struct keeper *keeper)
{
	const bool opens = keeper->store == NULL;
	struct err err = {0};

	if (opens && !undo_store_open(keeper->folder, session_workspace(keeper->session),
				      &keeper->store, &err)) {
		keeper_give_up(keeper, err.text);
		stay_in_memory(keeper);
	} else if (opens) {
		auto_value struct value *rights =
			spec_rights(cell_spec(keeper->session->cell));
		undo_store_set_rights(keeper->store, rights);
	}
	return keeper->store;
}

void keeper_add_step(struct keeper *keeper, uint32_t number, bool foreign)
{
	if (keeper->step_count == keeper->step_room) {
		keeper->step_room = keeper->step_room > 0 ? 2 * keeper->step_room : 16;
		keeper->steps = memory_grow(keeper->steps, keeper->step_room,
					    sizeof(*keeper->steps));
	}
	keeper->steps[keeper->step_count++] =
		(struct keeper_step){.number = number, .foreign = foreign};
}

int keeper_new_log(struct keeper *keeper, const struct undo_meta *meta, uint32_t *number,
		   struct err *err)
{
	int fd = undo_store_new_log(keeper->store, meta, number, err);

	keeper->untidy |= fd >= 0 && *number % UNDO_TIDY_EVERY == 0;
	return fd;
}

/* There are no workers any more, and so there are no more looks. */
static bool is_lost(const struct keeper *keeper)
{
	return cell_broken(keeper->session->cell) != NULL;
}

/* A job goes on beside other calls, and its changes count as theirs. */
static bool writes_now(const struct running *running)
{
	return running->state == RUNNING_BUSY && !running->keeping &&
	       running->job == NULL && running_is_writer(running);
}

/* Does a call write right now? Then nobody can say which call made a change. */
static bool somebody_writes(const struct keeper *keeper)
{
	const struct session *session = keeper->session;

	for (const struct running *at = session->busy_writers > 0 ? session->first : NULL;
	     at != NULL; at = at->next) {
		if (writes_now(at))
			return true;
	}
	return false;
}

const struct running *keeper_waiting_command(const struct keeper *keeper)
{
	const struct session *session = keeper->session;

	for (const struct running *at =
		     session->queued_commands > 0 ? session->first_queued : NULL;
	     at != NULL; at = at->next) {
		if (at->state == RUNNING_QUEUED && running_is_command(at) && !at->auditing)
			return at;
	}
	return NULL;
}

void keeper_begin(struct keeper *keeper)
{
	if (keeper != NULL && keeper->sync == NULL && !keeper->starting &&
	    (keeper->broken || is_lost(keeper)))
		keeper_release_owner(keeper);
	if (keeper == NULL || keeper->sync != NULL || keeper->starting ||
	    keeper->patch.fetch != NULL || somebody_writes(keeper) || is_lost(keeper))
		return;
	const bool wanted = patch_is_wanted(keeper);
	/* The changes that a job has made so far belong to the patch, too. */
	if (wanted && !keeper->patch.looked && job_writes(keeper->session, NULL))
		keeper->owed = true;
	keeper->patch.looked = wanted;
	if (!keeper->broken &&
	    (keeper->owed || (!keeper->fresh && keeper_waiting_command(keeper) != NULL)))
		keeper_sync_start(keeper);
	if (wanted && keeper->sync == NULL)
		patch_begin(keeper);
}

bool keeper_holds(const struct keeper *keeper, const struct running *running)
{
	const bool wants = running->tool != NULL && running->tool->wants_changes;

	if (keeper == NULL || running->auditing || is_lost(keeper) ||
	    (!running_is_writer(running) && !wants))
		return false;
	if (keeper->sync != NULL || keeper->starting || keeper->patch.fetch != NULL)
		return true;
	if (wants)
		return !keeper->patch.ready;
	if (keeper->broken || somebody_writes(keeper))
		return false;
	return keeper->owed || (!keeper->fresh && running_is_command(running));
}

static struct str title_of(const struct running *running)
{
	static const char *const keys[] = {"path", "command", "title"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		struct str text = value_str(value_member(running->arguments, keys[i]));
		if (text.size > 0)
			return str_part(text, 0,
					text_character_border(text, KEEPER_TITLE_MAX));
	}
	return STR("");
}

/*
 * The name by which a person knows TOOL: the front's own tools have names that nobody
 * types.
 */
static const char *name_of(const struct tool *tool)
{
	return tool->internal && tool->title != NULL ? tool->title : tool->name;
}

static bool give_log(struct keeper *keeper, struct running *running, struct err *err)
{
	const struct undo_meta meta = {
		.work = UNDO_BY_TOOL,
		.run = keeper->run,
		.tool = name_of(running->tool),
		.title = title_of(running),
		.wall_ms = clock_wall_ms(),
		.turn_ms = keeper->turn_ms,
	};

	if (keeper_store(keeper) == NULL)
		return err_set(err, EIO, "there is no place to keep it");
	if (keeper->in_memory &&
	    (keeper->kept > MEMORY_MAX || keeper->step_count >= MEMORY_LOGS_MAX)) {
		keeper->lost++;
		return true;
	}
	running->log_fd = keeper_new_log(keeper, &meta, &running->log, err);
	running->fds[0] = running->log_fd;
	running->fd_count = 1;
	return running->log_fd >= 0;
}

bool keeper_give(struct keeper *keeper, struct running *running, struct err *err)
{
	if (keeper == NULL || running->auditing || running_is_ours(running->tool))
		return true;
	if (running->tool->wants_changes && running->fd_count == 0) {
		running->fds[0] = running->plan_fd = patch_take(keeper, err);
		running->fd_count = 1;
		return running->plan_fd >= 0;
	}
	if ((running->tool->effects & EFFECT_WRITES) != 0 && running->log_fd < 0)
		return give_log(keeper, running, err) ||
		       err_while(err, "what it replaces could not be kept for `glovebox "
				      "undo`, so nothing was written");
	return true;
}

void keeper_sent(struct keeper *keeper, const struct running *running)
{
	/* A session of one call has no next call. */
	if (keeper != NULL && running->log_fd >= 0 && !keeper->session->one_call)
		undo_store_make_ahead(keeper->store, 1);
}

static char *title_of_command(const struct running *running, bool has_jobs)
{
	struct buf title, outside;

	buf_init(&outside, KEEPER_TITLE_MAX);
	buf_init(&title, 3 * KEEPER_TITLE_MAX);
	/* These notes stand before the title, because a list shows only the beginning. */
	if (has_jobs)
		(void)buf_adds(&title, "(with jobs beside it) ");
	extra_print_written(running, &outside);
	if (outside.size > 0)
		(void)buf_addf(&title, "(not what it wrote in %s) ", outside.data);
	buf_fini(&outside);
	(void)buf_addstr(&title, title_of(running));
	return buf_take(&title);
}

/*
 * RUNNING has ended: note it in OWNER as the command to which the next look belongs. The
 * look does not see files in folders that a person granted, and it cannot tell changes of
 * a job from changes of the command.
 */
static void owner_take(struct keeper_owner *owner, const struct running *running)
{
	const int64_t ran_ms = (clock_now_us() - running->began_us) / 1000;

	free(owner->title);
	owner->with_jobs = job_writes(running->session, running->job);
	owner->title = title_of_command(running, owner->with_jobs);
	owner->ended_ms = clock_wall_ms() + 1;
	owner->began_ms = owner->ended_ms - ran_ms - 2;
}

/*
 * A session of one call would not end sooner without waiting: it looks before it is
 * closed.
 */
static bool result_waits(const struct keeper *keeper)
{
	return keeper->session->one_call || keeper->look_us <= KEEPER_WAIT_US;
}

bool keeper_will_look(const struct keeper *keeper, const struct running *running)
{
	return keeper != NULL && running_is_command(running) && !keeper->broken &&
	       running->job == NULL && result_waits(keeper);
}

bool keeper_waits(struct keeper *keeper, struct running *running)
{
	if (keeper == NULL || !running_is_command(running) || keeper->broken)
		return false;
	/* The look that is under way may have passed the changed places already. */
	if (keeper->sync != NULL || keeper->starting) {
		keeper->owed_next = true;
		owner_take(&keeper->owes_next, running);
		return false;
	}
	keeper->owed = true;
	keeper->fresh = false;
	owner_take(&keeper->owes, running);
	if (running->job != NULL || !result_waits(keeper))
		return false;
	running->keeping = true;
	if (somebody_writes(keeper)) {
		running->keeping = false;
		return false;
	}
	keeper->owner = running;
	return true;
}

/*
 * The details of the patch name the run and the last step of which the patch is made, so
 * that these steps can be undone.
 */
static void hand_over(struct keeper *keeper, struct running *running)
{
	struct value *details = tool_details(&running->result);

	keeper->handed = keeper->step_count;
	value_remove(details, "run");
	value_remove(details, "last_step");
	if (!keeper_keeps(keeper) || keeper->step_count == 0)
		return;
	value_set_text(details, "run", keeper->run);
	value_set_integer(details, "last_step",
			  keeper->steps[keeper->step_count - 1].number);
}

void keeper_finish(struct keeper *keeper, struct running *running)
{
	if (keeper == NULL || running->quiet)
		return;
	fd_close(&running->plan_fd);
	/* Even a tool that writes nothing itself may let others write: a delegate. */
	keeper->writers += running->tool != NULL && running->tool->effects != EFFECT_READS;
	if (running->tool != NULL && running->tool->wants_changes &&
	    running->result.status == RESULT_DONE)
		hand_over(keeper, running);
	if (running->log_fd >= 0) {
		struct stat st;
		/* A log that cannot be looked at may hold something. */
		const bool known = fstat(running->log_fd, &st) == 0;
		if (known && st.st_size == 0) {
			undo_store_drop_log(keeper->store, running->log);
		} else {
			keeper->fresh = false;
			keeper_add_step(keeper, running->log, false);
			keeper->changes++;
			keeper->kept += known ? (uint64_t)st.st_size : 0;
		}
		fd_close(&running->log_fd);
	}
	if (running_is_command(running))
		keeper_tell_result(keeper, running);
	keeper_look_ahead(keeper);
}

void keeper_cancel(struct keeper *keeper)
{
	if (keeper == NULL)
		return;
	/*
	 * The command waits no more, and the look makes its changes a step all the same.
	 * In a session of one call the look itself is cancelled.
	 */
	if (!keeper->session->one_call)
		keeper_release_owner(keeper);
	else if (keeper->sync != NULL)
		running_cancel(keeper->sync);
}

void session_checkpoint(struct session *session, bool begins_turn)
{
	struct keeper *keeper = session->keeper;

	if (keeper == NULL || keeper->broken)
		return;
	if (begins_turn)
		keeper->turn_ms = clock_wall_ms();
	if (keeper->sync != NULL || keeper->starting || somebody_writes(keeper))
		return;
	for (size_t i = 0; session->offered[i] != NULL; i++) {
		if ((session->offered[i]->effects & EFFECT_RUNS) == 0)
			continue;
		/*
		 * When a command is owed a look, that look is made now, and it serves as
		 * the checkpoint.
		 */
		keeper->fresh = false;
		keeper_sync_start(keeper);
		return;
	}
}

/* Make the look that is owed to a command, and one more when that look asks for it. */
static void close_look(struct keeper *keeper, int64_t deadline)
{
	do {
		if (keeper->session->cell != NULL)
			keeper_begin(keeper);
		/* A look that is owed to no command serves nobody any more. */
		if (keeper->sync == NULL || !keeper->is_step)
			return;
		loop_turn(keeper->session->loop, deadline);
	} while (clock_now_ms() < deadline);
}

/*
 * The keeper makes no look from now on: report the command whose changes nobody has seen.
 */
static void keeper_end(struct keeper *keeper)
{
	const struct cell *cell = keeper->session->cell;
	const char *why = cell != NULL ? cell_broken(cell) : NULL;

	if (why == NULL)
		why = "the session has ended before anybody had looked at it";
	if (!keeper->broken)
		(void)buf_adds(&keeper->why, why);
	keeper->broken = true;
	keeper_tell_unseen(keeper, why);
}

void keeper_tidy(struct keeper *keeper)
{
	if (!keeper->untidy || keeper->in_memory)
		return;
	undo_store_tidy(keeper->store);
	(void)undo_projects_tidy(keeper->folder, keeper->space);
	keeper->untidy = false;
}

void keeper_close(struct keeper *keeper)
{
	int64_t deadline = clock_now_ms() + KEEPER_CLOSE_MS;

	if (keeper == NULL)
		return;
	loop_remove_timer(&keeper->ahead);
	/* The changes that the jobs have made until now are owed a look, too. */
	while ((somebody_writes(keeper) || job_writes(keeper->session, NULL)) &&
	       clock_now_ms() < deadline)
		loop_turn(keeper->session->loop, deadline);
	close_look(keeper, deadline);
	keeper_end(keeper);
	running_free(keeper->sync);
	running_free(keeper->over);
	keeper->sync = keeper->over = NULL;
	/* The owner's look did not end in time, or never began. */
	keeper_release_owner(keeper);
	loop_remove_timer(&keeper->ahead);
	patch_forget(keeper);
	keeper_sync_close(keeper);
	keeper_tidy(keeper);
	undo_store_close(keeper->store);
	free(keeper->steps);
	if (keeper->objects >= 0)
		(void)close(keeper->objects);
	buf_fini(&keeper->trouble);
	buf_fini(&keeper->why);
	value_free(keeper->nested);
	value_free(keeper->nested_keys);
	free(keeper->owes.title);
	free(keeper->owes_next.title);
	free(keeper->folder);
	free(keeper);
}
