/*
 * rows: goes through the rows of two lists in order, keeps what only the newer one has,
 * and tells what differs.
 */

#include "tools/looks/rows.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "files/files.h"
#include "files/record.h"
#include "tool/call.h"
#include "tools/looks/checkpoint.h"
#include "undo/list.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Further files are listed but not copied (tools.md, Undo). */
enum { CHECKPOINT_COPIES_MAX = 200000 };
#define CHECKPOINT_BYTES_MAX ((uint64_t)1 << 30)

/* Has the file the state that the index records for it? */
static bool tracked_is_clean(const struct tracked_files *files,
			     const struct tracked *tracked, const struct undo_state *state)
{
	const bool executable = (state->mode & 0100) != 0;

	return !tracked->unsure && state->kind == UNDO_FILE && S_ISREG(tracked->mode) &&
	       executable == ((tracked->mode & 0100) != 0) &&
	       tracked->size == (uint32_t)state->size &&
	       tracked->inode == (uint32_t)state->inode &&
	       tracked->mtime_s == (uint32_t)(state->mtime_ns / CLOCK_SECOND_NS) &&
	       tracked->mtime_ns == (uint32_t)(state->mtime_ns % CLOCK_SECOND_NS) &&
	       tracked->ctime_s == (uint32_t)(state->ctime_ns / CLOCK_SECOND_NS) &&
	       tracked->ctime_ns == (uint32_t)(state->ctime_ns % CLOCK_SECOND_NS) &&
	       state->mtime_ns < files->index.mtime_ns;
}

/* The list made last. */

const struct undo_state *rows_before(const struct checkpoint *checkpoint, struct str path)
{
	const struct list_before *before = &checkpoint->before;
	const struct undo_row *row = undo_list_find(before->changed, path);

	if (row == NULL)
		row = undo_list_find(before->rows, path);
	return row != NULL && row->state.kind != UNDO_ABSENT ? &row->state : NULL;
}

bool rows_each_before(const struct checkpoint *checkpoint, struct str prefix,
		      bool (*each)(void *context, const struct undo_row *row), void *context)
{
	const struct list_before *before = &checkpoint->before;
	bool fine = true;

	for (size_t i = undo_list_at(before->changed, prefix);
	     fine && i < before->changed->count &&
	     str_starts(before->changed->rows[i].path, prefix);
	     i++) {
		if (before->changed->rows[i].state.kind != UNDO_ABSENT)
			fine = each(context, &before->changed->rows[i]);
	}
	for (size_t i = undo_list_at(before->rows, prefix);
	     fine && i < before->rows->count &&
	     str_starts(before->rows->rows[i].path, prefix);
	     i++) {
		if (before->changed->count == 0 ||
		    undo_list_find(before->changed, before->rows->rows[i].path) == NULL)
			fine = each(context, &before->rows->rows[i]);
	}
	return fine;
}

/* The differences from the old list, and copies of contents that no other place holds. */

/*
 * The kernel counts file times in ticks: a file that changed in the newest ticks may
 * change again and keep the same times. Such a row is compared by content the next time.
 */
#define TICKS_NS INT64_C(20000000)

/* A larger content is not compared with a git object's name, but copied. */
enum { BLOB_MAX = 64 << 20 };

/* Widen the folder *BELOW (NULL: none yet) so that it holds PATH too. */
static void widen(char **below, struct str path)
{
	const char *slash = memrchr(path.data, '/', path.size);
	struct str folder =
		str_part(path, 0, slash != NULL ? (size_t)(slash - path.data) : 0);

	if (*below == NULL) {
		*below = memory_copy_str(folder);
		return;
	}
	while (**below != '\0') {
		size_t size = strlen(*below);
		if (folder.size >= size && memcmp(folder.data, *below, size) == 0 &&
		    (folder.size == size || folder.data[size] == '/'))
			return;
		char *last = strrchr(*below, '/');
		*(last != NULL ? last : *below) = '\0';
	}
}

void rows_lost(struct checkpoint *checkpoint, struct str path)
{
	if (checkpoint->report.lost++ == 0)
		checkpoint->lost_name = memory_copy_str(path);
	widen(&checkpoint->lost_below, path);
}

/*
 * Does the change time show that the command did not make the change? Programs cannot set
 * this time.
 */
static bool is_strange(const struct checkpoint *checkpoint, const struct undo_state *after)
{
	return after->kind != UNDO_ABSENT &&
	       (after->ctime_ns < checkpoint->order.began_ms * 1000000 - TICKS_NS ||
		after->ctime_ns > checkpoint->order.ended_ms * 1000000 + TICKS_NS);
}

static void count(struct checkpoint *checkpoint, struct str path,
		  const struct undo_state *before, const struct undo_state *after)
{
	if (record_is_gits(path) || before->kind == UNDO_FOLDER || after->kind == UNDO_FOLDER)
		return;
	if (before->kind == UNDO_ABSENT)
		checkpoint->report.added++;
	else if (after->kind == UNDO_ABSENT)
		checkpoint->report.removed++;
	else
		checkpoint->report.changed++;
	checkpoint->report.strange += is_strange(checkpoint, after);
	widen(&checkpoint->below, path);
}

bool rows_is_passing(const struct checkpoint *checkpoint, struct str path)
{
	struct buf whole;
	bool passing;

	if (checkpoint->call->layer == NULL)
		return false;
	buf_init(&whole, PATH_MAX);
	passing = path_normal(files_workspace(checkpoint->call->files), path.data, &whole) &&
		  files_is_passing(checkpoint->call->files, whole.data);
	buf_fini(&whole);
	return passing;
}

/* Was git's index only refreshed, with the same entries and new times of files? */
static bool is_index_refreshed(struct str path, const struct undo_state *before,
			       const struct undo_state *after)
{
	return str_is(path, UNDO_GIT_INDEX) && before->kind == UNDO_FILE &&
	       after->kind == UNDO_FILE && before->mode == after->mode &&
	       before->object_size == HASH_BYTES && after->object_size == HASH_BYTES &&
	       memcmp(before->object, after->object, HASH_BYTES) == 0;
}

static bool tell_change(struct checkpoint *checkpoint, struct str path,
			const struct undo_state *before, const struct undo_state *after,
			struct err *err)
{
	const char *name;

	if (!checkpoint->is_step || rows_is_passing(checkpoint, path) ||
	    is_index_refreshed(path, before, after))
		return true;
	/*
	 * Undo leaves new objects of git in place: git removes unused ones itself. An
	 * object that is still there has never changed, whatever its times say. The
	 * folders of objects are not reported either.
	 */
	if (tracked_is_object(path, &name) &&
	    (after->kind != UNDO_ABSENT || before->kind == UNDO_FOLDER))
		return true;
	count(checkpoint, path, before, after);
	return undo_log_change(&checkpoint->log, path, before, after, err);
}

static bool has_room(struct checkpoint *checkpoint, uint64_t size)
{
	if (checkpoint->copies < CHECKPOINT_COPIES_MAX &&
	    size <= CHECKPOINT_BYTES_MAX - checkpoint->bytes) {
		checkpoint->copies++;
		checkpoint->bytes += size;
		return true;
	}
	checkpoint->report.left_files++;
	checkpoint->report.left_bytes += (int64_t)size;
	return false;
}

/*
 * STATE becomes the OLD state, whose copy still exists, with the mode and times of now.
 */
static void keep_old(struct checkpoint *checkpoint, const struct undo_state *old,
		     struct undo_state *state)
{
	struct undo_state read = *state;

	*state = *old;
	state->inode = read.inode;
	state->mode = read.mode;
	state->mtime_ns = read.mtime_ns;
	state->ctime_ns = read.ctime_ns;
	if (state->source == UNDO_LOGGED)
		(void)has_room(checkpoint, state->size);
}

/*
 * Has the file the content of the object in OLD? The content is read only when its size
 * is the same.
 */
static bool is_object_of(const struct undo_state *old, int file)
{
	uint8_t digest[HASH_BYTES];
	struct stat st;
	struct buf content;
	bool same = false;

	if (old->object_size == 0 || fstat(file, &st) < 0 || st.st_size > BLOB_MAX ||
	    (uint64_t)st.st_size != old->size)
		return false;
	buf_init(&content, BLOB_MAX);
	if (undo_log_content(file, 0, old->size, &content, NULL)) {
		hash_git_blob(buf_str(&content), old->object_size == 32, digest);
		same = memcmp(digest, old->object, old->object_size) == 0;
	}
	buf_fini(&content);
	return same;
}

/* Is the content unchanged? The times of the file are not considered. */
static bool is_content_of(const struct undo_state *old, int file)
{
	struct undo_state now = {0};
	struct stat st;

	if (old == NULL || old->kind != UNDO_FILE || old->source == UNDO_NOWHERE ||
	    fstat(file, &st) < 0 || (uint64_t)st.st_size != old->size)
		return false;
	if (!old->hashed)
		return is_object_of(old, file);
	return undo_state_hash(file, &now, NULL) &&
	       memcmp(now.digest, old->digest, UNDO_DIGEST) == 0;
}

/* Is it the file of OLD, not written since? Its permissions do not count. */
static bool is_same_writing(const struct undo_state *old, const struct undo_state *state)
{
	return old != NULL && old->kind == UNDO_FILE && old->inode != 0 &&
	       old->inode == state->inode && old->size == state->size &&
	       old->mtime_ns == state->mtime_ns;
}

static bool keep_file(struct checkpoint *checkpoint, struct undo_row *row,
		      const struct undo_state *old, struct err *err)
{
	struct undo_state *state = &row->state;
	const struct tracked *tracked = tracked_find(&checkpoint->tracked, row->path);
	bool clean =
		tracked != NULL && tracked_is_clean(&checkpoint->tracked, tracked, state);
	struct err why = {0};

	if (clean) {
		state->source = UNDO_IN_GIT;
		state->object_size = checkpoint->tracked.object_size;
		memcpy(state->object, tracked->object, state->object_size);
		if (!checkpoint->is_step)
			return true;
	}
	auto_close int file =
		fd_open_beneath(checkpoint->start.fd, row->path.data, O_RDONLY);
	if (file < 0) {
		/*
		 * A file that we may not read is recognised by its times. If it was closed
		 * since the last list, the content that is kept of it is taken to be still
		 * its own: otherwise a later step that removes the file would lose it. A
		 * file that has disappeared is not recognised.
		 */
		if (errno != EACCES)
			state->inode = 0;
		else if (is_same_writing(old, state) &&
			 (state->ctime_ns == old->ctime_ns || state->mode != old->mode))
			keep_old(checkpoint, old, state);
		checkpoint->unreadable++;
		return true;
	}
	if (clean) {
		/* Undo must be able to recognise the file. */
		(void)undo_state_hash(file, state, NULL);
		return true;
	}
	const bool is_old = is_content_of(old, file);
	if (is_old && rows_is_lost(checkpoint, tracked, old)) {
		/* The next checkpoint finds the content by the name that git gave it. */
		state->object_size = old->object_size;
		memcpy(state->object, old->object, sizeof(state->object));
	} else if (is_old) {
		keep_old(checkpoint, old, state);
		/* Only the mode has changed. Undo cannot use git's name: add a hash. */
		if (checkpoint->is_step && !state->hashed && state->mode != old->mode)
			(void)undo_state_hash(file, state, NULL);
		return true;
	}
	if (!has_room(checkpoint, state->size)) {
		if (checkpoint->is_step)
			(void)undo_state_hash(file, state, NULL);
		return true;
	}
	const uint64_t inode = state->inode;
	if (undo_log_file(&checkpoint->log, file, CHECKPOINT_BYTES_MAX, state, &why))
		return true;
	/* The file changes while it is read, so the next checkpoint looks again. */
	state->inode = why.code == EAGAIN ? 0 : inode;
	if (why.code == ENOSPC || why.code == EDQUOT || why.code == EFBIG) {
		checkpoint->report.left_files++;
		checkpoint->report.left_bytes += (int64_t)state->size;
		return true;
	}
	return why.code == EAGAIN || why.code == EACCES || why.code == EIO ||
	       err_set(err, why.code, "%s", why.text);
}

/*
 * Store a hash of the index's entries in place of an object's name, which the copy of an
 * index does not have.
 */
static void note_index(const struct checkpoint *checkpoint, struct undo_state *state)
{
	auto_close int file =
		fd_open_beneath(checkpoint->start.fd, UNDO_GIT_INDEX, O_RDONLY);
	struct undo_state now;
	struct stat st;

	state->object_size = 0;
	if (file < 0 || !tracked_index_says(file, state->object) || fstat(file, &st) < 0)
		return;
	undo_state_of(&st, &now);
	if (rows_same_times(&now, state))
		state->object_size = HASH_BYTES;
}

static bool keep_link(struct checkpoint *checkpoint, struct undo_row *row, struct err *err)
{
	const char *name = strrchr(row->path.data, '/');
	auto_free char *folder = memory_copy_str(row->path);
	char target[PATH_MAX];

	name = name != NULL ? name + 1 : row->path.data;
	folder[name - row->path.data] = '\0';
	auto_close int fd =
		fd_open_beneath(checkpoint->start.fd, folder[0] != '\0' ? folder : ".",
				O_PATH | O_DIRECTORY);
	ssize_t size = fd >= 0 ? readlinkat(fd, name, target, sizeof(target)) : -1;
	if (size < 0) {
		row->state.inode = 0;
		return true;
	}
	return !has_room(checkpoint, (uint64_t)size) ||
	       undo_log_data(&checkpoint->log, (struct str){target, (size_t)size},
			     &row->state, err);
}

static bool keep_row(struct checkpoint *checkpoint, struct undo_row *row,
		     const struct undo_state *old, struct err *err)
{
	struct undo_state *state = &row->state;
	const bool is_young = state->ctime_ns > checkpoint->began_ns - TICKS_NS;
	const uint64_t unreadable = checkpoint->unreadable;
	const char *name;
	bool fine = true;

	if ((checkpoint->order.wishes & UNDO_LOOK_LINKS) != 0 && state->kind == UNDO_FILE &&
	    tracked_is_object(row->path, &name) && strncmp(name, "info/", 5) != 0) {
		state->source = UNDO_LINKED;
		value_append(checkpoint->links, value_new_text(name));
		return true;
	}
	if (state->kind == UNDO_FILE)
		fine = keep_file(checkpoint, row, old, err);
	else if (state->kind == UNDO_LINK)
		fine = keep_link(checkpoint, row, err);
	if (state->kind == UNDO_FILE && str_is(row->path, UNDO_GIT_INDEX))
		note_index(checkpoint, state);
	/*
	 * A file that changed just now could change again without a new time, so the next
	 * checkpoint looks again. A file that we may not read is excepted, because its
	 * content was not read.
	 */
	if (is_young && checkpoint->unreadable == unreadable)
		state->inode = 0;
	return fine;
}

/* The copy of WAS is not needed any more, or it is counted anew. */
static void give_room(struct checkpoint *checkpoint, const struct undo_state *was)
{
	if (was->source != UNDO_LOGGED)
		return;
	checkpoint->copies -= checkpoint->copies > 0;
	checkpoint->bytes -= was->size < checkpoint->bytes ? was->size : checkpoint->bytes;
}

/* Has STATE a content? */
static bool is_kept(const struct undo_state *state)
{
	return state->kind == UNDO_FILE || state->kind == UNDO_LINK;
}

/*
 * Is the file PATH still there? Then it has only left the list: rules ignore it now, and
 * git tracks it no more. STATE becomes its state.
 */
static bool is_there(const struct checkpoint *checkpoint, struct str path,
		     struct undo_state *state)
{
	auto_close int fd = fd_open_beneath(checkpoint->start.fd, path.data, O_PATH);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || record_is_gits(path))
		return false;
	undo_state_of(&st, state);
	return is_kept(state);
}

/* PATH, which had the state WAS, is gone. */
static bool keep_gone(struct checkpoint *checkpoint, struct str path,
		      const struct undo_state *was, struct err *err)
{
	struct undo_state state;

	checkpoint->report.findings |= UNDO_FOUND_DIFFERS;
	if (was->kind != UNDO_IGNORED)
		return tell_change(checkpoint, path, was, &undo_absent, err);
	/* A watcher tells it file by file. It may also be in a folder that is ignored now. */
	if (checkpoint->is_step && checkpoint->watcher == NULL &&
	    !is_there(checkpoint, path, &state))
		rows_lost(checkpoint, path);
	return true;
}

/* Is PATH, or a folder above it, ignored now? */
static bool is_ignored_now(const struct checkpoint *checkpoint, struct str path)
{
	for (size_t end = 1; end <= path.size; end++) {
		if (end < path.size && path.data[end] != '/')
			continue;
		const struct undo_row *row =
			undo_list_find(&checkpoint->now, str_part(path, 0, end));
		if (row != NULL && row->state.kind == UNDO_IGNORED)
			return true;
	}
	return false;
}

/*
 * PATH, which had the state WAS, has left the list. A file that is still there belongs to
 * the step if the step has also changed it: this look is the last one at the file.
 */
static bool keep_left(struct checkpoint *checkpoint, struct str path,
		      const struct undo_state *was, struct err *err)
{
	struct undo_row row = {.path = path};

	if (was->kind == UNDO_IGNORED || !is_there(checkpoint, path, &row.state))
		return keep_gone(checkpoint, path, was, err);
	checkpoint->report.findings |= UNDO_FOUND_DIFFERS;
	if (rows_same_times(was, &row.state) || rows_is_passing(checkpoint, path))
		return true;
	const bool fine = keep_row(checkpoint, &row, was, err);
	/* No list has the row, so the copy is not counted. */
	give_room(checkpoint, &row.state);
	return fine && (undo_state_same(was, &row.state) ||
			tell_change(checkpoint, path, was, &row.state, err));
}

/* PATH, which had the state WAS, is ignored; NULL: it was not there. */
static bool keep_ignored(struct checkpoint *checkpoint, struct str path,
			 const struct undo_state *was, struct err *err)
{
	if (was != NULL && was->kind == UNDO_IGNORED)
		return true;
	checkpoint->report.findings |= UNDO_FOUND_DIFFERS;
	return was == NULL || keep_left(checkpoint, path, was, err);
}

/* Tell that ROW differs from WAS, unless it has only come into view. */
static bool tell_present(struct checkpoint *checkpoint, const struct undo_row *row,
			 const struct undo_state *was, struct err *err)
{
	if (was == NULL && checkpoint->is_step && rows_was_ignored(checkpoint, row->path)) {
		checkpoint->report.unignored += row->state.kind != UNDO_FOLDER;
		return true;
	}
	return tell_change(checkpoint, row->path, was != NULL ? was : &undo_absent,
			   &row->state, err);
}

/* ROW is there, and had the state WAS; NULL: there was none. */
static bool keep_present(struct checkpoint *checkpoint, struct undo_row *row,
			 const struct undo_state *was, struct err *err)
{
	if (row->state.kind == UNDO_IGNORED)
		return keep_ignored(checkpoint, row->path, was, err);
	if (was != NULL && was->kind == UNDO_IGNORED)
		was = NULL;
	if (was != NULL && rows_same_times(was, &row->state) &&
	    (was->source != UNDO_IN_GIT ||
	     !rows_is_lost(checkpoint,
			   tracked_next(&checkpoint->tracked, row->path,
					&checkpoint->tracked_at),
			   was))) {
		keep_old(checkpoint, was, &row->state);
		return true;
	}
	if (rows_is_passing(checkpoint, row->path)) {
		/*
		 * The layer hides the file on the disk, so the next session looks at it.
		 */
		row->state.inode = 0;
		return true;
	}
	checkpoint->report.findings |= UNDO_FOUND_DIFFERS;
	if (++checkpoint->looked % ROWS_STOP_EVERY == 0 && call_stopped(checkpoint->call))
		return err_set(err, ETIMEDOUT, "there was no time to copy it all");
	return keep_row(checkpoint, row, was, err) &&
	       ((was != NULL && undo_state_same(was, &row->state)) ||
		tell_present(checkpoint, row, was, err));
}

/* So many rows of both lists are done. */
static void tell_kept(struct checkpoint *checkpoint, size_t now, size_t old)
{
	const size_t now_all = checkpoint->now.count,
		     old_all = checkpoint->before.rows->count;

	if (now % CHECKPOINT_COUNTED_BY == 0 || old % CHECKPOINT_COUNTED_BY == 0)
		checkpoint_tell_progress(checkpoint, now > old ? now : old,
					 now_all > old_all ? now_all : old_all);
}

/*
 * Go through both lists in order: rows only in the old list, in both, only in the new
 * list.
 */
static bool keep_all(struct checkpoint *checkpoint, struct err *err)
{
	const struct undo_list *old = checkpoint->before.rows;
	struct undo_list *now = &checkpoint->now;
	size_t at = 0;
	bool fine = true;

	checkpoint->has_git = undo_list_find(now, STR(UNDO_GIT)) != NULL;
	for (size_t i = 0; fine && i <= now->count; i++) {
		struct undo_row *row = i < now->count ? &now->rows[i] : NULL;
		const struct undo_state *was = NULL;

		for (; fine && at < old->count &&
		       (row == NULL || strcmp(old->rows[at].path.data, row->path.data) < 0);
		     at++) {
			fine = keep_left(checkpoint, old->rows[at].path,
					 &old->rows[at].state, err);
			tell_kept(checkpoint, i, at);
		}
		if (row == NULL || !fine)
			break;
		if (at < old->count && str_equal(old->rows[at].path, row->path))
			was = &old->rows[at++].state;
		checkpoint->files += is_kept(&row->state);
		fine = keep_present(checkpoint, row, was, err);
		tell_kept(checkpoint, i, at);
	}
	return fine;
}

/*
 * The same for the rows that were told: `now` has those that are there, GONE the paths
 * that may be gone. The rows of GONE that were in the list are added to NEWS, as absent.
 */
static bool keep_told(struct checkpoint *checkpoint, const struct undo_list *gone,
		      struct undo_list *news, struct err *err)
{
	struct undo_list *now = &checkpoint->now;
	size_t at = 0;
	bool fine = true;

	for (size_t i = 0; fine && i <= now->count; i++) {
		struct undo_row *row = i < now->count ? &now->rows[i] : NULL;
		const struct undo_state *was;

		for (;
		     fine && at < gone->count &&
		     (row == NULL || strcmp(gone->rows[at].path.data, row->path.data) <= 0);
		     at++) {
			const struct str path = gone->rows[at].path;

			was = rows_before(checkpoint, path);
			if (was == NULL || (row != NULL && str_equal(path, row->path)))
				continue;
			give_room(checkpoint, was);
			checkpoint->files -= is_kept(was);
			fine = undo_list_add(news, path, &undo_absent);
			if (fine && is_ignored_now(checkpoint, path))
				fine = keep_left(checkpoint, path, was, err);
			else if (fine)
				fine = keep_gone(checkpoint, path, was, err);
		}
		if (row == NULL || !fine)
			break;
		was = rows_before(checkpoint, row->path);
		if (was != NULL) {
			give_room(checkpoint, was);
			checkpoint->files -= is_kept(was);
		}
		checkpoint->files += is_kept(&row->state);
		fine = keep_present(checkpoint, row, was, err) &&
		       undo_list_add(news, row->path, &row->state);
	}
	return fine;
}

bool rows_keep(struct checkpoint *checkpoint, const struct undo_list *gone,
	       struct undo_list *news, struct err *err)
{
	return gone != NULL ? keep_told(checkpoint, gone, news, err)
			    : keep_all(checkpoint, err);
}
