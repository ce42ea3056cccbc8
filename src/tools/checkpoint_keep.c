/* checkpoint_keep: what differs from the old list, and copies of what nobody else holds. */
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "files/files.h"
#include "tools/checkpoint_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The kernel counts file times in ticks: a file that changed in the newest ticks may
 * change again and keep the same times. Such a row is compared by content the next time.
 */
#define TICKS_NS   INT64_C(20000000)
#define STOP_EVERY 256

/* A content over this is not held against a git object's name: it is copied. */
enum { BLOB_MAX = 64 << 20 };

static bool same_times(const struct undo_state *a, const struct undo_state *b)
{
	return a->inode != 0 && a->inode == b->inode && a->kind == b->kind &&
	       a->size == b->size && a->mode == b->mode && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns;
}

/* The folder that holds both what was there and PATH. */
static void note_place(struct checkpoint *checkpoint, struct str path)
{
	const char *slash = memrchr(path.data, '/', path.size);
	struct str folder =
		str_part(path, 0, slash != NULL ? (size_t)(slash - path.data) : 0);
	char *below = checkpoint->below;

	if (below == NULL) {
		checkpoint->below = memory_copy_str(folder);
		return;
	}
	while (below[0] != '\0') {
		size_t size = strlen(below);
		if (folder.size >= size && memcmp(folder.data, below, size) == 0 &&
		    (folder.size == size || folder.data[size] == '/'))
			return;
		char *last = strrchr(below, '/');
		*(last != NULL ? last : below) = '\0';
	}
}

/* Does the time of the change say that the command did not make it? Programs cannot set it. */
static bool is_strange(const struct checkpoint *checkpoint, const struct undo_state *after)
{
	return after->kind != UNDO_ABSENT &&
	       (after->ctime_ns < checkpoint->command_began_ns - TICKS_NS ||
		after->ctime_ns > checkpoint->command_ended_ns + TICKS_NS);
}

static void count(struct checkpoint *checkpoint, struct str path,
		  const struct undo_state *before, const struct undo_state *after)
{
	if (undo_is_gits(path) || before->kind == UNDO_FOLDER || after->kind == UNDO_FOLDER)
		return;
	if (before->kind == UNDO_ABSENT)
		checkpoint->added++;
	else if (after->kind == UNDO_ABSENT)
		checkpoint->removed++;
	else
		checkpoint->changed++;
	checkpoint->strange += is_strange(checkpoint, after);
	note_place(checkpoint, path);
}

bool checkpoint_passes(const struct checkpoint *checkpoint, struct str path)
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

/* Was git's index only refreshed: the same entries, with new times of files? */
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

	if (!checkpoint->is_step || checkpoint_passes(checkpoint, path) ||
	    is_index_refreshed(path, before, after))
		return true;
	/*
	 * Undo leaves new objects of git in place: git removes unused ones itself. An
	 * object that is still there has never changed, whatever its times say. The
	 * folders of objects are not reported either.
	 */
	if (checkpoint_is_object(path, &name) &&
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
	checkpoint->left_files++;
	checkpoint->left_bytes += size;
	return false;
}

/* Make STATE the OLD one, whose copy is still there, with the mode and times of now. */
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

/* Is the file what the object of OLD says? Only a content of the same size is asked. */
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

/* Has the content stayed what it was, whatever the times say? */
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

/* Is the content of OLD lost? A repository held it, and that is gone. */
static bool is_lost(const struct checkpoint *checkpoint, const struct undo_state *old)
{
	return old->source == UNDO_IN_GIT && !checkpoint->has_git;
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
		/* Closed to us it is known again by its times; gone meanwhile, by nothing. */
		if (errno != EACCES)
			state->inode = 0;
		checkpoint->unreadable++;
		return true;
	}
	if (clean) {
		/* Undo has to know it again. */
		(void)undo_state_hash(file, state, NULL);
		return true;
	}
	const bool is_old = is_content_of(old, file);
	if (is_old && is_lost(checkpoint, old)) {
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
	/* It changes under our eyes: the next checkpoint looks again. */
	state->inode = why.code == EAGAIN ? 0 : inode;
	if (why.code == ENOSPC || why.code == EDQUOT || why.code == EFBIG) {
		checkpoint->left_files++;
		checkpoint->left_bytes += state->size;
		return true;
	}
	return why.code == EAGAIN || why.code == EACCES || why.code == EIO ||
	       err_set(err, why.code, "%s", why.text);
}

/*
 * Put a hash of what the index says in the place of an object's name: the copy of an index
 * has none.
 */
static void note_index(const struct checkpoint *checkpoint, struct undo_state *state)
{
	auto_close int file =
		fd_open_beneath(checkpoint->start.fd, UNDO_GIT_INDEX, O_RDONLY);
	struct undo_state now;
	struct stat st;

	state->object_size = 0;
	if (file < 0 || !checkpoint_index_says(file, state->object) || fstat(file, &st) < 0)
		return;
	undo_state_of(&st, &now);
	if (same_times(&now, state))
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

	if (checkpoint->may_link && state->kind == UNDO_FILE &&
	    checkpoint_is_object(row->path, &name) && strncmp(name, "info/", 5) != 0) {
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
	 * A file changed just now could change again unseen: the next checkpoint looks
	 * again. That does not concern a file that is closed to us, as nothing of it was
	 * read.
	 */
	if (is_young && checkpoint->unreadable == unreadable)
		state->inode = 0;
	return fine;
}

/* Both lists, in order: what is only in the old one, in both, only in the new one. */
bool checkpoint_keep(struct checkpoint *checkpoint, struct err *err)
{
	const struct undo_list *old = &checkpoint->old;
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
			checkpoint->differs = true;
			fine = tell_change(checkpoint, old->rows[at].path,
					   &old->rows[at].state, &undo_absent, err);
		}
		if (row == NULL || !fine)
			break;
		if (at < old->count && str_equal(old->rows[at].path, row->path))
			was = &old->rows[at++].state;
		if (was != NULL && same_times(was, &row->state) &&
		    !is_lost(checkpoint, was)) {
			keep_old(checkpoint, was, &row->state);
			continue;
		}
		if (checkpoint_passes(checkpoint, row->path)) {
			/* The layer hides the disk: the next session looks there. */
			row->state.inode = 0;
			continue;
		}
		checkpoint->differs = true;
		if (i % STOP_EVERY == 0 && call_stopped(checkpoint->call))
			return err_set(err, ETIMEDOUT, "there was no time to copy it all");
		fine = keep_row(checkpoint, row, was, err);
		if (fine && (was == NULL || !undo_state_same(was, &row->state)))
			fine = tell_change(checkpoint, row->path,
					   was != NULL ? was : &undo_absent, &row->state,
					   err);
	}
	return fine;
}
