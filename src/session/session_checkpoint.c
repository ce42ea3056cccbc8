/*
 * session_checkpoint: one checkpoint, from opening its files to reporting its findings.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/text/text.h"
#include "session/session_undo_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

enum {
	LOOK_TOLD_FROM = 10000, /* files; a person does not notice the time for fewer */
	STAY_MOST_US = 500,
	STAY_MORE_US = 150, /* the time of a frame to the worker and back */
};

void keeper_sync_close(struct keeper *keeper)
{
	for (size_t i = 0; i < 3; i++)
		fd_close(&keeper->fds[i]);
}

/*
 * A file in which nothing was written serves the next checkpoint. The list that was read
 * is closed later: when another list has its place, closing removes it from the disk, and
 * that takes the file system some time.
 */
static void files_put_back(struct keeper *keeper)
{
	if (keeper->fds[1] >= 0 && undo_store_is_used(keeper->fds[1]))
		fd_close(&keeper->fds[1]);
	if (keeper->fds[2] >= 0 && (!keeper->blank || undo_store_is_used(keeper->fds[2])))
		fd_close(&keeper->fds[2]);
}

/*
 * The front makes the links to git's objects: a worker has another mount, and the kernel
 * makes no links across mounts.
 */
static void objects_open(struct keeper *keeper)
{
	struct buf path;

	if (keeper->objects != -2)
		return;
	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s/.git", session_workspace(keeper->session));
	auto_close int git = open(path.data, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	buf_fini(&path);
	keeper->objects = git >= 0 ? openat(git, "objects",
					    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
				   : -1;
	keeper->may_link = keeper->objects >= 0 &&
			   undo_store_links_from(keeper->store, keeper->objects);
}

static struct undo_meta meta_of(const struct keeper *keeper, bool alone)
{
	return (struct undo_meta){
		.work = keeper->is_step ? UNDO_BY_COMMAND : UNDO_CHECKPOINT,
		.run = keeper->run,
		.tool = keeper->is_step ? "bash" : NULL,
		.title = str_of(keeper->is_step ? keeper->owes.title : NULL),
		.wall_ms = clock_wall_ms(),
		.turn_ms = keeper->turn_ms,
		.alone = alone,
	};
}

bool keeper_sync_files(struct keeper *keeper, struct err *err)
{
	if (keeper->fds[1] < 0)
		keeper->fds[1] = undo_store_new_list(keeper->store, err);
	if (keeper->fds[2] < 0)
		keeper->fds[2] = undo_store_blank_log(keeper->store);
	keeper->blank = keeper->fds[2] >= 0;
	return keeper->fds[1] >= 0;
}

static bool files_open_all(struct keeper *keeper, struct err *err)
{
	const struct undo_meta meta = meta_of(keeper, false);

	(void)keeper_store(keeper);
	if (keeper->in_memory)
		return err_set(err, EIO, "there is no place to keep it");
	objects_open(keeper);
	fd_close(&keeper->fds[0]);
	keeper->fds[0] = undo_store_open_list(keeper->store, err);
	if (keeper->fds[0] < 0 || !keeper_sync_files(keeper, err))
		return false;
	if (keeper->blank)
		keeper->log = undo_store_next_number(keeper->store);
	else
		keeper->fds[2] = keeper_new_log(keeper, &meta, &keeper->log, err);
	return keeper->fds[2] >= 0;
}

static void links_make(struct keeper *keeper, const struct value *names)
{
	for (size_t i = 0; i < value_count(names); i++) {
		const char *name = value_text(value_item(names, i));
		if (name != NULL && keeper->objects >= 0)
			(void)undo_store_link(keeper->store, keeper->objects, name);
	}
}

static void count_add(struct buf *text, const char *what, int64_t count, bool named)
{
	if (count <= 0)
		return;
	(void)buf_addf(text, "%s%s: ", text->size > 0 ? ", " : "", what);
	if (named)
		(void)text_add_count(text, (size_t)count, "file");
	else
		(void)buf_addf(text, "%" PRId64, count);
}

/* The counts of a look, in the order in which they are told. */
static const char *const change_keys[] = {"changed", "added", "removed"};
enum { CHANGE_KEYS = sizeof(change_keys) / sizeof(change_keys[0]) };

static bool has_changes(const struct value *details)
{
	for (size_t i = 0; i < CHANGE_KEYS; i++) {
		if (value_integer(value_member(details, change_keys[i])) > 0)
			return true;
	}
	return false;
}

/*
 * Say in RESULT: "while it ran, changed: 2 files, removed: 214 under src/; glovebox undo
 * takes it back". Two looks show that something has changed, and not who changed it.
 */
static void changes_tell(const struct value *details, struct tool_result *result)
{
	const char *below = value_text(value_member(details, "below"));
	struct value *counts;
	struct buf line;

	buf_init(&line, 8 << 10);
	for (size_t i = 0; i < CHANGE_KEYS; i++)
		count_add(&line, change_keys[i],
			  value_integer(value_member(details, change_keys[i])),
			  line.size == 0);
	if (line.size > 0) {
		if (below != NULL && below[0] != '\0') {
			(void)buf_adds(&line, " under ");
			text_add_name(&line, str_of(below));
			(void)buf_addc(&line, '/');
		}
		(void)buf_end_line(&result->text);
		(void)buf_addf(&result->text,
			       "[while it ran, %s; glovebox undo takes it back]\n",
			       line.data);
		counts = value_new_object();
		for (size_t i = 0; i < CHANGE_KEYS; i++)
			value_set_integer(counts, change_keys[i],
					  value_integer(
						  value_member(details, change_keys[i])));
		if (below != NULL)
			value_set_text(counts, "below", below);
		value_set(tool_details(result), "changes", counts);
	}
	buf_fini(&line);
}

static void left_note(struct keeper *keeper, const struct value *details)
{
	int64_t files = value_integer(value_member(details, "left_files"));
	char size[32];

	if (files <= 0 || keeper->told_left)
		return;
	keeper->told_left = true;
	(void)buf_addf(&keeper->trouble,
		       "[%" PRId64 " files (%s) that git does not hold are more than undo "
		       "keeps: what commands do to these stays]\n",
		       files,
		       text_size((uint64_t)value_integer(value_member(details, "left_bytes")),
				 size));
}

/*
 * A call has waited for the session's first look at a large tree: the log of its caller
 * says so, once. An agent's first look is made while its model works, and no call waits
 * for it.
 */
static void first_look_tell(const struct keeper *keeper, const struct tool_result *result)
{
	const int64_t files = value_integer(value_member(result->details, "files"));
	const struct running *waiting = keeper_waiting_command(keeper);
	auto_value struct value *data = NULL;
	struct buf text;
	struct err err;

	if (keeper->listed || keeper->turn_ms != 0 || waiting == NULL ||
	    files < LOOK_TOLD_FROM)
		return;
	buf_init(&text, ERR_TEXT_MAX);
	(void)buf_addf(&text,
		       "looked at %" PRId64 " files, %.1f s: for `glovebox undo`, before the "
		       "first command",
		       files, result->seconds);
	data = value_new_object();
	value_set_text(data, "level", "info");
	value_set_text(data, "logger", EVENT_LOG_UNDO);
	(void)session_emit(keeper->session, EVENT_LOG, waiting, buf_str(&text), data, &err);
	buf_fini(&text);
}

static void sync_take(struct keeper *keeper, const struct tool_result *result)
{
	const struct value *details = result->details;
	struct err err = {0};

	if (result->status != RESULT_DONE) {
		keeper_give_up(keeper, str_trim(buf_str(&result->text)).size > 0
					       ? result->text.data
					       : "the checkpoint failed");
		return;
	}
	if (keeper->owner != NULL)
		keeper->owner->looked = true;
	links_make(keeper, value_member(details, "link"));
	if (value_is_true(value_member(details, "list")) &&
	    !undo_store_take_list(keeper->store, &err)) {
		keeper_give_up(keeper, err.text);
		return;
	}
	keeper->young = value_is_true(value_member(details, "list"));
	first_look_tell(keeper, result);
	keeper->listed = true;
	keeper->look_us = value_integer(value_member(details, "us"));
	left_note(keeper, details);
	keeper->again = keeper_nested_take(keeper, details) && keeper->is_step;
	if (keeper->owner != NULL)
		changes_tell(details, &keeper->owner->result);
}

/*
 * Give the log its name in the store, or none when it holds nothing. False: the name is
 * taken, and with it the number that the log and the list contain.
 */
static bool log_settle(struct keeper *keeper, const struct tool_result *result)
{
	const bool used = keeper->fds[2] >= 0 && undo_store_is_used(keeper->fds[2]);
	const struct value *strange = value_member(result->details, "strange");
	const struct undo_meta meta =
		meta_of(keeper, keeper->is_step && !keeper->owes.with_jobs &&
					strange != NULL && value_integer(strange) == 0);
	struct err err = {0};

	if (used && keeper->blank &&
	    !undo_store_name_log(keeper->store, keeper->fds[2], keeper->log, &meta, &err)) {
		if (err.code == EEXIST)
			return false;
		keeper_give_up(keeper, err.text);
		return true;
	}
	if (!used && !keeper->blank && keeper->fds[2] >= 0)
		undo_store_drop_log(keeper->store, keeper->log);
	else if (used && keeper->is_step)
		keeper_add_step(keeper, keeper->log, false);
	/*
	 * A log may hold no changes, but only contents of files that are too young to be
	 * known by their times.
	 */
	keeper->changes += keeper->is_step && has_changes(result->details);
	keeper->untidy |= used && keeper->log % UNDO_TIDY_EVERY == 0;
	return true;
}

void keeper_release_owner(struct keeper *keeper)
{
	struct running *owner = keeper->owner;

	keeper->owner = NULL;
	if (owner == NULL)
		return;
	owner->keeping = false;
	running_finish(owner);
}

/*
 * Has the worker of the look been killed, or run out of memory, for the first time? Then
 * another worker looks again, once. The part of the log that the first worker had written
 * is no step.
 */
static bool is_lost_once(struct keeper *keeper, const struct running *running)
{
	const bool again = running->lost && !keeper->lost_one && !keeper->broken &&
			   cell_broken(keeper->session->cell) == NULL;

	keeper->lost_one = running->lost;
	if (again && !keeper->blank && keeper->fds[2] >= 0)
		undo_store_drop_log(keeper->store, keeper->log);
	return again;
}

/* A command that has ended during the look is owed a look of its own. */
static void owe_next(struct keeper *keeper)
{
	if (!keeper->owed_next || keeper->broken)
		return;
	keeper->owed_next = false;
	keeper->owed = true;
	keeper->fresh = false;
	free(keeper->owes.title);
	keeper->owes = keeper->owes_next;
	keeper->owes_next.title = NULL;
}

static void sync_done(void *context, struct running *running)
{
	struct keeper *keeper = context;
	struct err err;

	keeper->sync = NULL;
	keeper->over = running;
	if (is_lost_once(keeper, running) || !log_settle(keeper, &running->result)) {
		/*
		 * The look is still owed, and begins anew when the queue is next looked
		 * at.
		 */
		keeper_sync_close(keeper);
		return;
	}
	keeper->fresh = true;
	keeper->again = false;
	keeper_nested_tell(keeper, &running->result);
	if (!keeper->broken)
		sync_take(keeper, &running->result);
	files_put_back(keeper);
	keeper->owed = keeper->again;
	/*
	 * The worker of the next look audits first. A call that waits for this look waits
	 * for the next one, too.
	 */
	if (keeper->again)
		return;
	owe_next(keeper);
	if (keeper->owner != NULL) {
		keeper_release_owner(keeper);
	} else if (!keeper->broken) {
		/*
		 * No call waits now, but one may wait for the next checkpoint: make its
		 * files already.
		 */
		fd_close(&keeper->fds[0]);
		(void)keeper_sync_files(keeper, &err);
	}
}

void keeper_sync_start(struct keeper *keeper)
{
	auto_value struct value *arguments = value_new_object();
	struct err err = {0};

	running_free(keeper->over);
	keeper->over = NULL;
	keeper->is_step = keeper->owed;
	if (!files_open_all(keeper, &err)) {
		keeper_sync_close(keeper);
		keeper_give_up(keeper, err.text);
		keeper_release_owner(keeper);
		return;
	}
	value_set_integer(arguments, "log", keeper->log);
	value_set_boolean(arguments, "step", keeper->is_step);
	if (keeper->is_step) {
		value_set_integer(arguments, "began_ms", keeper->owes.began_ms);
		value_set_integer(arguments, "ended_ms", keeper->owes.ended_ms);
	}
	value_set_boolean(arguments, "known", keeper->listed);
	value_set_boolean(arguments, "links", keeper->may_link);
	const struct request request = {
		.tool = "checkpoint",
		.arguments = arguments,
		.fds = {keeper->fds[0], keeper->fds[1], keeper->fds[2]},
		.fd_count = 3,
		.by_front = true,
		.quiet = true,
	};
	/*
	 * The look will take as long as the last one. A loop that sleeps meanwhile would
	 * wake up later than the look ends.
	 */
	if (keeper->owner != NULL && keeper->session->cores > 1 &&
	    keeper->look_us < STAY_MOST_US)
		running_stay(keeper->session, keeper->look_us + STAY_MORE_US);
	keeper->starting = true;
	struct running *running =
		session_start(keeper->session, &request, sync_done, keeper);
	keeper->starting = false;
	if (!running_is_done(running))
		keeper->sync = running;
}
