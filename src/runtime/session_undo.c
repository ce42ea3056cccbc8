/* session_undo: checkpoints around commands, logs for file tools; see session_undo.h. */
#include "runtime/session_undo.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "runtime/session_undo_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	KEEPER_CLOSE_MS = 10000, /* a checkpoint of a large tree on a busy machine */
	TITLE_MAX = 400,
	TIDY_EVERY = 32,       /* logs; looking at all of them takes milliseconds */
	MEMORY_MAX = 64 << 20, /* of replaced files, where they cannot be on disk */
	MEMORY_LOGS_MAX = 256, /* each is an open file */
};

/* What is replaced is still known in this session, for its patch. */
static void stay_in_memory(struct keeper *keeper)
{
	keeper->store = undo_store_in_memory();
	keeper->in_memory = true;
	keeper->broken = true;
}

struct keeper *keeper_new(struct session *session, const char *folder)
{
	struct keeper *keeper;
	uint64_t number = 0;

	keeper = memory_alloc(sizeof(*keeper));
	keeper->session = session;
	keeper->folder = memory_copy(folder);
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

bool keeper_has_news(const struct keeper *keeper)
{
	return keeper->owed || keeper->step_count > keeper->handed;
}

static void give_up(struct keeper *keeper, const char *why)
{
	if (!keeper->broken && keeper->trouble.size == 0)
		(void)buf_addf(&keeper->trouble,
			       "[what commands change cannot be undone: %s]\n", why);
	if (!keeper->broken)
		(void)buf_adds(&keeper->why, why);
	keeper->broken = true;
	keeper->owed = false;
}

bool keeper_keeps(const struct keeper *keeper)
{
	return !keeper->in_memory;
}

struct undo_store *keeper_store(struct keeper *keeper)
{
	struct err err = {0};

	if (keeper->store == NULL &&
	    !undo_store_open(keeper->folder, session_workspace(keeper->session),
			     &keeper->store, &err)) {
		give_up(keeper, err.text);
		stay_in_memory(keeper);
	}
	return keeper->store;
}

static void step_add(struct keeper *keeper, uint32_t number)
{
	if (keeper->step_count == keeper->step_room) {
		keeper->step_room = keeper->step_room > 0 ? 2 * keeper->step_room : 16;
		keeper->steps = memory_grow(keeper->steps, keeper->step_room,
					    sizeof(*keeper->steps));
	}
	keeper->steps[keeper->step_count++] = number;
}

/* ---- the checkpoint ---- */

static void fds_close(struct keeper *keeper)
{
	for (size_t i = 0; i < 3; i++)
		fd_close(&keeper->fds[i]);
}

/* Objects are linked by us: a worker has another mount, which the kernel links nothing across. */
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

static int new_log(struct keeper *keeper, const struct undo_meta *meta, uint32_t *number,
		   struct err *err)
{
	int fd = undo_store_new_log(keeper->store, meta, number, err);

	if (fd >= 0 && *number % TIDY_EVERY == 0)
		undo_store_tidy(keeper->store);
	return fd;
}

static bool files_open_all(struct keeper *keeper, struct err *err)
{
	const struct undo_meta meta = {
		.work = keeper->is_step ? UNDO_BY_COMMAND : UNDO_CHECKPOINT,
		.run = keeper->run,
		.tool = keeper->is_step ? "bash" : NULL,
		.title = str_of(keeper->is_step ? keeper->title : NULL),
		.wall_ms = clock_wall_ms(),
	};

	(void)keeper_store(keeper);
	if (keeper->in_memory)
		return err_set(err, EIO, "there is no place to keep it");
	objects_open(keeper);
	keeper->fds[0] = undo_store_open_list(keeper->store, err);
	keeper->fds[1] = keeper->fds[0] >= 0 ? undo_store_new_list(keeper->store, err) : -1;
	keeper->fds[2] =
		keeper->fds[1] >= 0 ? new_log(keeper, &meta, &keeper->log, err) : -1;
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

/* "changed: 2 files, removed: 214 under src/; glovebox undo takes it back" */
static void changes_tell(const struct value *details, struct tool_result *result)
{
	const char *below = value_text(value_member(details, "below"));
	static const char *const keys[] = {"changed", "added", "removed"};
	struct value *counts;
	struct buf line;

	buf_init(&line, 8 << 10);
	for (size_t i = 0; i < 3; i++)
		count_add(&line, keys[i], value_integer(value_member(details, keys[i])),
			  line.size == 0);
	if (line.size > 0) {
		if (below != NULL && below[0] != '\0') {
			(void)buf_adds(&line, " under ");
			text_add_name(&line, str_of(below));
			(void)buf_addc(&line, '/');
		}
		(void)buf_end_line(&result->text);
		(void)buf_addf(&result->text, "[%s; glovebox undo takes it back]\n",
			       line.data);
		counts = value_new_object();
		for (size_t i = 0; i < 3; i++)
			value_set_integer(counts, keys[i],
					  value_integer(value_member(details, keys[i])));
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

static void trouble_tell(struct keeper *keeper, struct tool_result *result)
{
	if (keeper->trouble.size == 0)
		return;
	(void)buf_end_line(&result->text);
	(void)buf_addstr(&result->text, buf_str(&keeper->trouble));
	buf_clear(&keeper->trouble);
}

static void sync_take(struct keeper *keeper, const struct tool_result *result)
{
	const struct value *details = result->details;
	struct err err = {0};

	if (result->status != RESULT_DONE) {
		give_up(keeper, str_trim(buf_str(&result->text)).size > 0
					? result->text.data
					: "the checkpoint failed");
		return;
	}
	links_make(keeper, value_member(details, "link"));
	if (value_is_true(value_member(details, "list")) &&
	    !undo_store_take_list(keeper->store, &err)) {
		give_up(keeper, err.text);
		return;
	}
	keeper->listed = true;
	keeper->look_us = value_integer(value_member(details, "us"));
	left_note(keeper, details);
	if (keeper->owner != NULL)
		changes_tell(details, &keeper->owner->result);
}

static void sync_done(void *context, struct running *running)
{
	struct keeper *keeper = context;
	struct running *owner = keeper->owner;

	keeper->fresh = true;
	keeper->owed = false;
	sync_take(keeper, &running->result);
	if (keeper->fds[2] >= 0 && !undo_store_is_used(keeper->fds[2]))
		undo_store_drop_log(keeper->store, keeper->log);
	else if (keeper->fds[2] >= 0 && keeper->is_step)
		step_add(keeper, keeper->log);
	fds_close(keeper);
	keeper->sync = NULL;
	keeper->owner = NULL;
	keeper->over = running;
	if (owner != NULL) {
		owner->keeping = false;
		running_finish(owner);
	}
}

static void sync_start(struct keeper *keeper)
{
	auto_value struct value *arguments = value_new_object();
	struct err err = {0};

	running_free(keeper->over);
	keeper->over = NULL;
	keeper->is_step = keeper->owed;
	if (!files_open_all(keeper, &err)) {
		struct running *owner = keeper->owner;
		fds_close(keeper);
		give_up(keeper, err.text);
		keeper->owner = NULL;
		if (owner != NULL) {
			owner->keeping = false;
			running_finish(owner);
		}
		return;
	}
	value_set_integer(arguments, "log", keeper->log);
	value_set_boolean(arguments, "step", keeper->is_step);
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
	keeper->starting = true;
	struct running *running =
		session_start(keeper->session, &request, sync_done, keeper);
	keeper->starting = false;
	if (!running_is_done(running))
		keeper->sync = running;
}

/* ---- around calls ---- */

static bool is_command(const struct running *running)
{
	return running->tool != NULL && !running->tool->internal &&
	       (running->tool->effects & EFFECT_RUNS) != 0;
}

static bool is_writer(const struct running *running)
{
	return running->tool != NULL && !running->tool->internal &&
	       (running->tool->effects & (EFFECT_WRITES | EFFECT_RUNS)) != 0;
}

/* Does somebody write right now? Then nobody can say whose a change is. */
static bool somebody_writes(const struct keeper *keeper)
{
	for (const struct running *at = keeper->session->first; at != NULL; at = at->next) {
		/* A job goes on beside the others: what it does counts as theirs. */
		if (at->state == RUNNING_BUSY && !at->keeping && at->job == NULL &&
		    is_writer(at))
			return true;
	}
	return false;
}

static bool command_waits(const struct keeper *keeper)
{
	for (const struct running *at = keeper->session->first; at != NULL; at = at->next) {
		if (at->state == RUNNING_QUEUED && is_command(at) && !at->auditing)
			return true;
	}
	return false;
}

void keeper_begin(struct keeper *keeper)
{
	if (keeper == NULL || keeper->sync != NULL || keeper->starting ||
	    keeper->patch.fetch != NULL || somebody_writes(keeper) ||
	    cell_broken(keeper->session->cell) != NULL)
		return;
	const bool wanted = patch_is_wanted(keeper);
	/* What a job does meanwhile belongs to the patch, too. */
	if (wanted && !keeper->patch.looked && job_writes(keeper->session, NULL))
		keeper->owed = true;
	keeper->patch.looked = wanted;
	if (!keeper->broken && (keeper->owed || (!keeper->fresh && command_waits(keeper))))
		sync_start(keeper);
	if (wanted && keeper->sync == NULL)
		patch_begin(keeper);
}

bool keeper_holds(const struct keeper *keeper, const struct running *running)
{
	const bool wants = running->tool != NULL && running->tool->wants_changes;

	if (keeper == NULL || running->auditing || (!is_writer(running) && !wants))
		return false;
	if (keeper->sync != NULL || keeper->starting || keeper->patch.fetch != NULL)
		return true;
	if (wants)
		return !keeper->patch.ready && cell_broken(keeper->session->cell) == NULL;
	if (keeper->broken || somebody_writes(keeper))
		return false;
	return keeper->owed || (!keeper->fresh && is_command(running));
}

static struct str title_of(const struct running *running)
{
	static const char *const keys[] = {"path", "command", "title"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		struct str text = value_str(value_member(running->arguments, keys[i]));
		if (text.size > 0)
			return str_part(text, 0, text_character_border(text, TITLE_MAX));
	}
	return STR("");
}

static bool give_log(struct keeper *keeper, struct running *running, struct err *err)
{
	const struct undo_meta meta = {
		.work = UNDO_BY_TOOL,
		.run = keeper->run,
		.tool = running->tool->name,
		.title = title_of(running),
		.wall_ms = clock_wall_ms(),
	};

	if (keeper_store(keeper) == NULL)
		return err_set(err, EIO, "there is no place to keep it");
	if (keeper->in_memory &&
	    (keeper->kept > MEMORY_MAX || keeper->step_count >= MEMORY_LOGS_MAX)) {
		keeper->lost++;
		return true;
	}
	running->log_fd = new_log(keeper, &meta, &running->log, err);
	running->fds[0] = running->log_fd;
	running->fd_count = 1;
	return running->log_fd >= 0;
}

bool keeper_give(struct keeper *keeper, struct running *running, struct err *err)
{
	if (keeper == NULL || running->auditing || running->tool->internal)
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

/* What a job changes meanwhile cannot be told from what the command does. */
static char *title_with_jobs(const struct running *running)
{
	const bool has_jobs = job_writes(running->session, running->job);
	struct buf title;

	buf_init(&title, TITLE_MAX + sizeof("(with jobs beside it) "));
	/* Before it: a list shows the beginning alone. */
	if (has_jobs)
		(void)buf_adds(&title, "(with jobs beside it) ");
	(void)buf_addstr(&title, title_of(running));
	return buf_take(&title);
}

bool keeper_waits(struct keeper *keeper, struct running *running)
{
	if (keeper == NULL || !is_command(running) || keeper->broken)
		return false;
	keeper->owed = true;
	keeper->fresh = false;
	free(keeper->title);
	keeper->title = title_with_jobs(running);
	if (running->job != NULL || keeper->look_us > KEEPER_WAIT_US ||
	    keeper->sync != NULL || keeper->starting)
		return false;
	running->keeping = true;
	if (somebody_writes(keeper)) {
		running->keeping = false;
		return false;
	}
	keeper->owner = running;
	return true;
}

void keeper_finish(struct keeper *keeper, struct running *running)
{
	if (keeper == NULL || running->quiet)
		return;
	fd_close(&running->plan_fd);
	if (running->tool != NULL && running->tool->wants_changes &&
	    running->result.status == RESULT_DONE)
		keeper->handed = keeper->step_count;
	if (running->log_fd >= 0) {
		struct stat st;
		const bool used = undo_store_is_used(running->log_fd);
		if (used) {
			keeper->fresh = false;
			step_add(keeper, running->log);
		}
		if (used && fstat(running->log_fd, &st) == 0)
			keeper->kept += (uint64_t)st.st_size;
		if (!used)
			undo_store_drop_log(keeper->store, running->log);
		fd_close(&running->log_fd);
	}
	if (is_command(running))
		trouble_tell(keeper, &running->result);
}

void keeper_cancel(struct keeper *keeper)
{
	if (keeper != NULL && keeper->sync != NULL)
		running_cancel(keeper->sync);
}

void session_checkpoint(struct session *session)
{
	struct keeper *keeper = session->keeper;

	if (keeper == NULL || keeper->broken || keeper->sync != NULL ||
	    keeper->starting || somebody_writes(keeper))
		return;
	for (size_t i = 0; session->offered[i] != NULL; i++) {
		if ((session->offered[i]->effects & EFFECT_RUNS) == 0)
			continue;
		/* What is owed to a command is looked at first, and is as good. */
		keeper->fresh = false;
		sync_start(keeper);
		return;
	}
}

void keeper_close(struct keeper *keeper)
{
	int64_t deadline = clock_now_ms() + KEEPER_CLOSE_MS;

	if (keeper == NULL)
		return;
	while (somebody_writes(keeper) && clock_now_ms() < deadline)
		loop_turn(keeper->session->loop, deadline);
	if (keeper->session->cell != NULL)
		keeper_begin(keeper);
	while (keeper->sync != NULL && clock_now_ms() < deadline)
		loop_turn(keeper->session->loop, deadline);
	keeper->broken = true;
	running_free(keeper->sync);
	running_free(keeper->over);
	patch_forget(keeper);
	fds_close(keeper);
	undo_store_close(keeper->store);
	free(keeper->steps);
	if (keeper->objects >= 0)
		(void)close(keeper->objects);
	buf_fini(&keeper->trouble);
	buf_fini(&keeper->why);
	free(keeper->title);
	free(keeper->folder);
	free(keeper);
}
