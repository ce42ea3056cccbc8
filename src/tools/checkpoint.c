/*
 * checkpoint: the front's own tool behind undo. It looks at the workspace, compares it
 * with the list made last, and keeps the contents that neither that list's store nor git
 * holds. fds: the old list, a file for the new list, the log that takes copies and, for a
 * step, the changes.
 */

#include "tools/checkpoint.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "files/files.h"
#include "files/record.h"
#include "guard/readers.h"
#include "guard/scan.h"
#include "tool/call.h"
#include "tools/search/walk.h"
#include "tools/tools.h"
#include "undo/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Further files are listed but not copied (tools.md, Undo). */
enum { CHECKPOINT_COPIES_MAX = 200000 };
#define CHECKPOINT_BYTES_MAX ((uint64_t)1 << 30)

/* The files that git tracks, and whether its index has any news about them. */

static int compare_tracked(const void *a, const void *b)
{
	const struct tracked *left = a, *right = b;

	return strcmp(left->path.data, right->path.data);
}

static const struct tracked *tracked_find(const struct tracked_files *files, struct str path)
{
	const struct tracked wanted = {.path = path};

	return files->count > 0 ? bsearch(&wanted, files->items, files->count,
					  sizeof(wanted), compare_tracked)
				: NULL;
}

static bool take_entry(void *context, const struct git_index_entry *entry)
{
	struct tracked_files *files = context;

	if (files->count >= UNDO_ROWS_MAX)
		return false;
	if (files->count == files->room) {
		files->room = files->room > 0 ? 2 * files->room : 256;
		files->items =
			memory_grow(files->items, files->room, sizeof(*files->items));
	}
	struct tracked *file = &files->items[files->count];
	*file = (struct tracked){
		.path = {arena_copy(&files->paths, entry->path), entry->path.size},
		.mode = entry->mode,
		.mtime_s = entry->mtime_s,
		.mtime_ns = entry->mtime_ns,
		.ctime_s = entry->ctime_s,
		.ctime_ns = entry->ctime_ns,
		.inode = entry->inode,
		.size = entry->size,
		.unsure = entry->unsure,
	};
	memcpy(file->object, entry->object, files->object_size);
	/*
	 * The stages of a conflict follow each other, and none of them is the file in the
	 * workspace.
	 */
	if (files->count > 0 &&
	    strcmp(files->items[files->count - 1].path.data, file->path.data) == 0) {
		files->items[files->count - 1].unsure = true;
		return true;
	}
	files->count++;
	return true;
}

/*
 * Read the index FILE with object names of 20 bytes, or else of 32. False: neither fits.
 */
static bool read_either(int file,
			bool (*take_as)(void *context, struct str text, bool sha256),
			void *context)
{
	struct buf text;
	struct stat st;

	buf_init(&text, GIT_INDEX_MAX);
	if (fstat(file, &st) == 0 && st.st_size > 0 && st.st_size < GIT_INDEX_MAX)
		(void)buf_reserve(&text, (size_t)st.st_size + 1);
	bool taken = fd_read_all(file, &text, "index", NULL) &&
		     (take_as(context, buf_str(&text), false) ||
		      take_as(context, buf_str(&text), true));
	buf_fini(&text);
	return taken;
}

static bool take_tracked_as(void *context, struct str text, bool sha256)
{
	struct tracked_files *files = context;
	struct git_index_reader reader = {
		.sha256 = sha256,
		.entry = take_entry,
		.context = files,
	};

	files->count = 0;
	files->object_size = sha256 ? 32 : 20;
	/* A split or broken index gives no information, so all files are copied. */
	if (!readers_index_read(&reader, text, NULL) || reader.shared[0] != '\0')
		files->count = 0;
	return files->count > 0;
}

/* The files of the repository whose git folder is GIT, an open one. */
static bool checkpoint_read_index(struct checkpoint *checkpoint, int git)
{
	auto_close int fd = fd_open_beneath(git, "index", O_RDONLY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	checkpoint->tracked.index_mtime_ns = clock_ns(&st.st_mtim);
	return read_either(fd, take_tracked_as, &checkpoint->tracked);
}

struct says {
	struct hash *hash;
	uint8_t object_size;
	uint8_t *digest;
};

static bool add_said(void *context, const struct git_index_entry *entry)
{
	const struct says *says = context;

	if (entry->unsure)
		return false;
	hash_add(says->hash, (struct str){(const char *)&entry->mode, sizeof(entry->mode)});
	hash_add(says->hash, (struct str){(const char *)entry->object, says->object_size});
	hash_add(says->hash, entry->path);
	hash_add(says->hash, (struct str){"", 1});
	return true;
}

/* Of a submodule only its path is reported. */
static bool refuse_link(void *context, struct str path)
{
	(void)context;
	(void)path;
	return false;
}

static bool take_said_as(void *context, struct str text, bool sha256)
{
	struct says *says = context;
	struct git_index_reader reader = {
		.sha256 = sha256,
		.entry = add_said,
		.link = refuse_link,
		.context = says,
	};

	says->hash = hash_new();
	says->object_size = sha256 ? 32 : 20;
	bool all = readers_index_read(&reader, text, NULL) && reader.shared[0] == '\0';
	hash_digest(says->hash, says->digest);
	hash_free(says->hash);
	return all;
}

bool checkpoint_index_says(int file, uint8_t digest[HASH_BYTES])
{
	struct says says = {.digest = digest};

	return read_either(file, take_said_as, &says);
}

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
	       state->mtime_ns < files->index_mtime_ns;
}

/* The differences from the old list, and copies of contents that no other place holds. */

/*
 * The kernel counts file times in ticks: a file that changed in the newest ticks may
 * change again and keep the same times. Such a row is compared by content the next time.
 */
#define TICKS_NS   INT64_C(20000000)
#define STOP_EVERY 256

/* A larger content is not compared with a git object's name, but copied. */
enum { BLOB_MAX = 64 << 20 };

static bool same_times(const struct undo_state *a, const struct undo_state *b)
{
	return a->inode != 0 && a->inode == b->inode && a->kind == b->kind &&
	       a->size == b->size && a->mode == b->mode && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns;
}

/* Widen the folder of all changes so that it holds PATH too. */
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

/*
 * Does the change time show that the command did not make the change? Programs cannot set
 * this time.
 */
static bool is_strange(const struct checkpoint *checkpoint, const struct undo_state *after)
{
	return after->kind != UNDO_ABSENT &&
	       (after->ctime_ns < checkpoint->command_began_ns - TICKS_NS ||
		after->ctime_ns > checkpoint->command_ended_ns + TICKS_NS);
}

static void count(struct checkpoint *checkpoint, struct str path,
		  const struct undo_state *before, const struct undo_state *after)
{
	if (record_is_gits(path) || before->kind == UNDO_FOLDER || after->kind == UNDO_FOLDER)
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

/*
 * Is PATH in a layer that the cell throws away? A change there is no change of the
 * workspace.
 */
static bool checkpoint_passes(const struct checkpoint *checkpoint, struct str path)
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

/* Is the content of OLD lost, because the repository that held it is gone? */
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
		/*
		 * A file that we may not read is recognised by its times. A file that has
		 * disappeared is not recognised.
		 */
		if (errno != EACCES)
			state->inode = 0;
		checkpoint->unreadable++;
		return true;
	}
	if (clean) {
		/* Undo must be able to recognise the file. */
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
	/* The file changes while it is read, so the next checkpoint looks again. */
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
	 * A file that changed just now could change again without a new time, so the next
	 * checkpoint looks again. A file that we may not read is excepted, because its
	 * content was not read.
	 */
	if (is_young && checkpoint->unreadable == unreadable)
		state->inode = 0;
	return fine;
}

/*
 * Go through both lists in order: rows only in the old list, in both, only in the new
 * list.
 */
static bool checkpoint_keep(struct checkpoint *checkpoint, struct err *err)
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
			/*
			 * The layer hides the file on the disk, so the next session looks
			 * at it.
			 */
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

/* Rows for the files in the git folder of the workspace. */

enum {
	/* of folders in a git folder, because names of refs have slashes */
	GIT_DEPTH = 24,
	GIT_ROWS_MAX = 200000, /* refs and their logs; objects are counted separately */
	OBJECTS_MAX = 200000,
	GIT_LINKED_BYTES = 41, /* "ab/" and 38 digits */
};

#define OBJECTS_PATH ".git/objects/"

/* Names in the git folder without rows, except the objects themselves; NULL-ended. */
static const char *const checkpoint_unlisted[] = {"objects", "hooks", "modules", "lfs",
						  NULL};

static bool is_left_out(const char *name, unsigned depth)
{
	struct str text = str_of(name);

	for (size_t i = 0; depth == 0 && checkpoint_unlisted[i] != NULL; i++) {
		if (strcmp(name, checkpoint_unlisted[i]) == 0)
			return true;
	}
	return str_ends(text, STR(".lock")) || strcmp(name, ".") == 0 ||
	       strcmp(name, "..") == 0;
}

static bool look_below(struct checkpoint *checkpoint, int folder, const char *path,
		       unsigned depth, size_t *rows);

static bool look_name(struct checkpoint *checkpoint, int folder, const char *path,
		      const char *name, unsigned depth, size_t *rows)
{
	char whole[PATH_MAX];
	struct undo_state state;
	struct stat st;
	int size = snprintf(whole, sizeof(whole), "%s/%s", path, name);

	if (size >= (int)sizeof(whole) ||
	    fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	undo_state_of(&st, &state);
	if (state.kind == UNDO_ABSENT)
		return true;
	if (++*rows > GIT_ROWS_MAX ||
	    !undo_list_add(&checkpoint->now, (struct str){whole, (size_t)size}, &state))
		return false;
	if (state.kind != UNDO_FOLDER || depth >= GIT_DEPTH)
		return true;
	auto_close int below = fd_open_beneath(folder, name, O_RDONLY | O_DIRECTORY);
	return below < 0 || look_below(checkpoint, below, whole, depth + 1, rows);
}

static bool look_below(struct checkpoint *checkpoint, int folder, const char *path,
		       unsigned depth, size_t *rows)
{
	int fd = fcntl(folder, F_DUPFD_CLOEXEC, 0);
	DIR *names = fd >= 0 ? fdopendir(fd) : NULL;
	bool fine = true;

	if (names == NULL) {
		fd_close(&fd);
		return true;
	}
	for (const struct dirent *at = readdir(names); fine && at != NULL;
	     at = readdir(names)) {
		if (!is_left_out(at->d_name, depth))
			fine = look_name(checkpoint, folder, path, at->d_name, depth, rows);
	}
	(void)closedir(names);
	return fine;
}

bool checkpoint_is_object(struct str path, const char **name)
{
	if (!str_starts(path, STR(OBJECTS_PATH)))
		return false;
	*name = path.data + strlen(OBJECTS_PATH);
	return true;
}

/* Copy the rows of the old list below PREFIX. */
static bool copy_old(struct checkpoint *checkpoint, struct str prefix)
{
	const struct undo_list *old = &checkpoint->old;

	for (size_t i = undo_list_at(old, prefix); i < old->count; i++) {
		if (!str_starts(old->rows[i].path, prefix))
			break;
		if (!undo_list_add(&checkpoint->now, old->rows[i].path, &old->rows[i].state))
			return false;
	}
	return true;
}

/*
 * Objects never change, so only the times of the folder tell whether its names must be
 * read.
 */
static bool look_objects_in(struct checkpoint *checkpoint, int objects, const char *name,
			    size_t *count)
{
	char prefix[64], path[PATH_MAX];
	struct undo_state state;
	struct stat st;
	bool fine = true;
	int size = snprintf(prefix, sizeof(prefix), OBJECTS_PATH "%s/", name);
	struct str folder_path = {prefix, (size_t)size - 1};

	auto_close int folder = fd_open_beneath(objects, name, O_RDONLY | O_DIRECTORY);
	if (folder < 0 || fstat(folder, &st) < 0)
		return true;
	undo_state_of(&st, &state);
	const struct undo_row *old = undo_list_find(&checkpoint->old, folder_path);
	bool same = old != NULL && old->state.inode == state.inode &&
		    old->state.ctime_ns == state.ctime_ns &&
		    old->state.mtime_ns == state.mtime_ns;
	if (!undo_list_add(&checkpoint->now, folder_path, &state))
		return false;
	if (same)
		return copy_old(checkpoint, (struct str){prefix, (size_t)size});
	DIR *names = fdopendir(fcntl(folder, F_DUPFD_CLOEXEC, 0));
	if (names == NULL)
		return true;
	for (const struct dirent *at = readdir(names); fine && at != NULL;
	     at = readdir(names)) {
		size_t length = strlen(at->d_name);
		/* Skip files that are being written, and marks that git leaves. */
		if (at->d_name[0] == '.' || strncmp(at->d_name, "tmp_", 4) == 0 ||
		    str_ends(str_of(at->d_name), STR(".keep")) ||
		    (strcmp(name, "pack") != 0 && length + 3 < GIT_LINKED_BYTES) ||
		    fstatat(folder, at->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		undo_state_of(&st, &state);
		size = snprintf(path, sizeof(path), "%s%s", prefix, at->d_name);
		fine = ++*count <= OBJECTS_MAX &&
		       undo_list_add(&checkpoint->now, (struct str){path, (size_t)size},
				     &state);
	}
	(void)closedir(names);
	return fine;
}

static bool look_objects(struct checkpoint *checkpoint, int git)
{
	auto_close int objects = fd_open_beneath(git, "objects", O_RDONLY | O_DIRECTORY);
	struct undo_state state;
	size_t count = 0;
	char name[4];
	struct stat st;

	if (objects < 0 || fstat(objects, &st) < 0)
		return true;
	undo_state_of(&st, &state);
	if (!undo_list_add(&checkpoint->now, STR(".git/objects"), &state))
		return false;
	for (unsigned i = 0; i < 256; i++) {
		(void)snprintf(name, sizeof(name), "%02x", i);
		if (!look_objects_in(checkpoint, objects, name, &count))
			return false;
	}
	if (!look_objects_in(checkpoint, objects, "pack", &count))
		return false;
	/* The files that name other places of objects. */
	auto_close int info = fd_open_beneath(objects, "info", O_RDONLY | O_DIRECTORY);
	return info < 0 ||
	       look_name(checkpoint, info, ".git/objects/info", "alternates", 1, &count);
}

/* Add rows for the git folder of the workspace. */
static bool checkpoint_look_git(struct checkpoint *checkpoint, int git)
{
	struct undo_state state;
	struct stat st;
	size_t rows = 0;

	if (fstat(git, &st) < 0)
		return true;
	undo_state_of(&st, &state);
	return undo_list_add(&checkpoint->now, STR(".git"), &state) &&
	       look_below(checkpoint, git, ".git", 0, &rows) &&
	       look_objects(checkpoint, git);
}

/* Rows for all files of the workspace as they are now. */

/*
 * The most folders with a repository of their own that one thread reports. The session
 * takes fewer.
 */
enum { NESTED_MAX = 1024, KEY_MAX = 8 * PATH_MAX };

/* The findings of one thread of the walk. */
struct finder {
	struct undo_list rows;
	struct value *nested;
	bool full;
};

struct looking {
	struct checkpoint *checkpoint;
	struct finder finders[WALK_THREADS_MAX];
};

/*
 * Note a repository. Those in the folders at the top are left out, because each audit
 * looks there anyway.
 */
static void add_nested(struct finder *finder, struct str path)
{
	if (str_find(path, STR("/"), 0) == (size_t)-1 ||
	    value_count(finder->nested) >= NESTED_MAX)
		return;
	auto_free char *copy = memory_copy_str(path);
	auto_free char *key = path_key(copy);
	value_append(finder->nested, value_new_text(key));
}

static void note_nested(struct finder *finder, const struct walk_entry *entry)
{
	struct stat st;

	/* A folder that may be listed but not entered counts too. */
	if (entry->path.size > 0 && entry->folder_fd >= 0 &&
	    (fstatat(entry->folder_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	     errno == EACCES))
		add_nested(finder, entry->path);
}

#define HEAD "HEAD"

/*
 * A folder with a HEAD may be a bare repository. git_scan decides whether git takes it
 * for one.
 */
static void note_bare(struct finder *finder, const struct walk_entry *entry)
{
	if (strcmp(entry->name, HEAD) == 0 && entry->path.size > sizeof(HEAD))
		add_nested(finder,
			   str_part(entry->path, 0, entry->path.size - sizeof(HEAD)));
}

static void visit(void *owner, struct walker *walker, const struct walk_entry *entry)
{
	struct looking *looking = owner;
	struct finder *finder = &looking->finders[walker_number(walker)];
	struct undo_state state;
	struct stat st;
	bool is_folder = entry->kind == WALK_FOLDER;

	if (is_folder)
		note_nested(finder, entry);
	else
		note_bare(finder, entry);
	if (entry->kind == WALK_OTHER || entry->path.size == 0 ||
	    (is_folder ? entry->folder_fd < 0 || fstat(entry->folder_fd, &st) < 0
		       : fstatat(entry->folder_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) <
				 0))
		return;
	undo_state_of(&st, &state);
	/* Skip a temporary file of ours, which gets its final name soon. */
	if (state.kind == UNDO_ABSENT || !record_path_is_sound(entry->path) ||
	    (strncmp(entry->name, ".glovebox-", 10) == 0 &&
	     str_ends(entry->path, STR(".tmp"))))
		return;
	finder->full = finder->full || !undo_list_add(&finder->rows, entry->path, &state);
}

/*
 * An ignored file is not kept; a repository among the ignored ones is reported
 * nevertheless.
 */
static void visit_ignored(void *owner, struct walker *walker, const struct walk_entry *entry)
{
	struct looking *looking = owner;
	struct finder *finder = &looking->finders[walker_number(walker)];

	if (entry->kind == WALK_FOLDER)
		note_nested(finder, entry);
	else
		note_bare(finder, entry);
}

static bool walk_whole(struct looking *looking, bool ignored, uint64_t *left_out,
		       struct err *err)
{
	struct checkpoint *checkpoint = looking->checkpoint;
	const struct walk_options options = {
		.call = checkpoint->call,
		.with_folders = true,
		.ignored_only = ignored,
		.opens = true,
		.visit = ignored ? visit_ignored : visit,
		.owner = looking,
	};
	struct walk_summary summary;

	walk_summary_init(&summary);
	walk_run(&checkpoint->start, &options, &summary);
	bool fine =
		summary.end == WALK_COMPLETE ||
		err_set(err, summary.end == WALK_FULL ? E2BIG : ETIMEDOUT, "%s",
			summary.end == WALK_FULL ? "the workspace has too many files"
						 : "there was no time to look at it all");
	checkpoint->unreadable += summary.unreadable;
	*left_out = summary.ignored;
	walk_summary_fini(&summary);
	return fine;
}

/* Report a repository, with its absolute path as key, as git_scan does. */
static void nested_tell(struct checkpoint *checkpoint, const char *key)
{
	auto_free char *workspace = path_key(files_workspace(checkpoint->call->files));
	struct buf whole;

	buf_init(&whole, KEY_MAX);
	if (buf_addf(&whole, "%s/%s", workspace, key))
		value_append(checkpoint->nested, value_new_str(buf_str(&whole)));
	buf_fini(&whole);
}

static bool take_found(struct looking *looking, struct err *err)
{
	struct checkpoint *checkpoint = looking->checkpoint;
	bool full = false;

	for (size_t i = 0; i < WALK_THREADS_MAX; i++) {
		struct finder *finder = &looking->finders[i];

		full = full || finder->full;
		for (size_t j = 0; j < finder->rows.count && !full; j++)
			full = !undo_list_add(&checkpoint->now, finder->rows.rows[j].path,
					      &finder->rows.rows[j].state);
		for (size_t j = 0; j < value_count(finder->nested); j++)
			nested_tell(checkpoint, value_text(value_item(finder->nested, j)));
		undo_list_fini(&finder->rows);
		value_free(finder->nested);
	}
	return !full ||
	       err_set(err, E2BIG, "the workspace has over %d files", UNDO_ROWS_MAX);
}

/*
 * A tracked file belongs to git even when an ignore rule names it. Both lists are sorted;
 * new rows are added at the end.
 */
static bool add_ignored_tracked(struct checkpoint *checkpoint)
{
	const struct tracked_files *tracked = &checkpoint->tracked;
	struct undo_list *now = &checkpoint->now;
	const size_t found = now->count;
	size_t at = 0;

	for (size_t i = 0; i < tracked->count; i++) {
		const struct str path = tracked->items[i].path;
		struct undo_state state;
		struct stat st;

		while (at < found && strcmp(now->rows[at].path.data, path.data) < 0)
			at++;
		if (at < found && str_equal(now->rows[at].path, path))
			continue;
		auto_close int fd =
			fd_open_beneath(checkpoint->start.fd, path.data, O_PATH);
		if (fd < 0 || fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))
			continue;
		undo_state_of(&st, &state);
		if (state.kind != UNDO_ABSENT && record_path_is_sound(path) &&
		    !undo_list_add(now, path, &state))
			return false;
	}
	return true;
}

/*
 * Open the git folder of the workspace: `.git`, or the target of a pointer there. -1:
 * none.
 */
static int open_git(const struct checkpoint *checkpoint, bool *is_own)
{
	int workspace = checkpoint->start.fd;
	int fd = fd_open_beneath(workspace, ".git", O_RDONLY | O_DIRECTORY);
	struct buf text;
	struct str path;

	*is_own = fd >= 0;
	if (fd >= 0 || errno != ENOTDIR)
		return fd;
	auto_close int pointer = fd_open_beneath(workspace, ".git", O_RDONLY);
	buf_init(&text, GIT_POINTER_MAX);
	if (pointer >= 0 && fd_read_all(pointer, &text, ".git", NULL) &&
	    readers_text_pointer(buf_str(&text), &path)) {
		auto_free char *name = memory_copy_str(path);
		/* It is only read, and the view decides what can be reached. */
		fd = openat(workspace, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	buf_fini(&text);
	return fd;
}

static bool look_pointer(struct checkpoint *checkpoint)
{
	struct undo_state state;
	struct stat st;

	if (fstatat(checkpoint->start.fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    S_ISDIR(st.st_mode))
		return true;
	undo_state_of(&st, &state);
	return state.kind == UNDO_ABSENT ||
	       undo_list_add(&checkpoint->now, STR(".git"), &state);
}

/* Fill `now`, sorted, from the workspace, `tracked` and `nested`. */
static bool checkpoint_look(struct checkpoint *checkpoint, struct err *err)
{
	struct looking looking = {.checkpoint = checkpoint};
	uint64_t ignored, more;
	bool is_own, fine;

	for (size_t i = 0; i < WALK_THREADS_MAX; i++) {
		undo_list_init(&looking.finders[i].rows);
		looking.finders[i].nested = value_new_array();
	}
	fine = walk_whole(&looking, false, &ignored, err) &&
	       (ignored == 0 || walk_whole(&looking, true, &more, err));
	fine = take_found(&looking, err) && fine;
	if (!fine)
		return false;
	undo_list_sort(&checkpoint->now);
	auto_close int git = open_git(checkpoint, &is_own);
	if (git >= 0 && checkpoint_read_index(checkpoint, git))
		fine = add_ignored_tracked(checkpoint);
	if (git >= 0 && is_own)
		fine = fine && checkpoint_look_git(checkpoint, git);
	fine = fine && look_pointer(checkpoint);
	undo_list_sort(&checkpoint->now);
	return fine ||
	       err_set(err, E2BIG, "the workspace has over %d files", UNDO_ROWS_MAX);
}

/*
 * When the step itself made the repository: its objects, hooks and modules, which no list
 * has. With them undo can remove the whole repository, and nothing else.
 */

enum { MADE_DEPTH = 48 }; /* of folders: modules hold repositories that hold modules */

static bool hash_entry(int folder, const char *name, struct undo_state *state)
{
	char target[PATH_MAX];
	ssize_t size;

	if (state->kind == UNDO_FILE) {
		auto_close int file = fd_open_beneath(folder, name, O_RDONLY);
		return file >= 0 && undo_state_hash(file, state, NULL);
	}
	if (state->kind == UNDO_LINK) {
		size = readlinkat(folder, name, target, sizeof(target));
		if (size >= 0)
			undo_state_hash_text((struct str){target, (size_t)size}, state);
		return size >= 0;
	}
	return state->kind == UNDO_FOLDER;
}

static bool tell_folder(struct checkpoint *checkpoint, int folder, struct str path,
			unsigned depth, struct err *err);

/*
 * An entry that has disappeared, or that we may not read, is not reported. Undo then
 * finds it in the folder, and stops.
 */
static bool tell_name(struct checkpoint *checkpoint, int folder, struct str above,
		      const char *name, unsigned depth, struct err *err)
{
	char path[PATH_MAX];
	struct undo_state state;
	struct stat st;
	const int size =
		snprintf(path, sizeof(path), "%.*s/%s", (int)above.size, above.data, name);
	const struct str whole = {path, (size_t)size};

	if (call_stopped(checkpoint->call))
		return err_set(err, ETIMEDOUT, "there was no time to look at it all");
	if (size >= (int)sizeof(path) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	undo_state_of(&st, &state);
	if (!hash_entry(folder, name, &state))
		return true;
	if (!undo_log_change(&checkpoint->log, whole, &undo_absent, &state, err))
		return false;
	if (state.kind != UNDO_FOLDER || depth >= MADE_DEPTH)
		return true;
	auto_close int below = fd_open_beneath(folder, name, O_RDONLY | O_DIRECTORY);
	return below < 0 || tell_folder(checkpoint, below, whole, depth + 1, err);
}

static bool tell_folder(struct checkpoint *checkpoint, int folder, struct str path,
			unsigned depth, struct err *err)
{
	int fd = fcntl(folder, F_DUPFD_CLOEXEC, 0);
	DIR *names = fd >= 0 ? fdopendir(fd) : NULL;
	bool fine = true;

	if (names == NULL) {
		fd_close(&fd);
		return true;
	}
	for (const struct dirent *at = readdir(names); fine && at != NULL;
	     at = readdir(names)) {
		if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
			fine = tell_name(checkpoint, folder, path, at->d_name, depth, err);
	}
	(void)closedir(names);
	return fine;
}

/* When the step made the repository, add these entries to the log too. */
static bool checkpoint_tell_made(struct checkpoint *checkpoint, struct err *err)
{
	const struct undo_row *row = undo_list_find(&checkpoint->now, STR(UNDO_GIT));
	bool fine = true;

	if (!checkpoint->is_step || row == NULL || row->state.kind != UNDO_FOLDER ||
	    undo_list_find(&checkpoint->old, STR(UNDO_GIT)) != NULL ||
	    checkpoint_passes(checkpoint, STR(UNDO_GIT)))
		return true;
	auto_close int git =
		fd_open_beneath(checkpoint->start.fd, UNDO_GIT, O_RDONLY | O_DIRECTORY);
	for (size_t i = 0; fine && git >= 0 && checkpoint_unlisted[i] != NULL; i++)
		fine = tell_name(checkpoint, git, STR(UNDO_GIT), checkpoint_unlisted[i],
				 0, err);
	return fine;
}

enum { FD_OLD, FD_NEW, FD_LOG };

static const struct tool_param checkpoint_params[] = {
	{"log", PARAM_ID, true, "Number of the log", .max = UINT32_MAX},
	{"step", PARAM_BOOLEAN, false, "What differs is a command's", .initial = "false"},
	{"began_ms", PARAM_COUNT, false, "When that command began", .max = INT64_MAX},
	{"ended_ms", PARAM_COUNT, false, "When it ended", .max = INT64_MAX},
	{"known", PARAM_BOOLEAN, false,
	 "The old list is of this session, even if it is empty", .initial = "false"},
	{"links", PARAM_BOOLEAN, false, "Objects are linked", .initial = "false"},
	{0},
};

static bool list_write(const struct checkpoint *checkpoint, int fd, struct err *err)
{
	struct buf text;

	buf_init(&text, UNDO_LIST_MAX);
	undo_list_print(&checkpoint->now, &text);
	bool fine = !text.overflowed && fd_write_all(fd, text.data, text.size, err);
	if (text.overflowed)
		(void)err_set(err, E2BIG, "the list of the workspace is too long");
	buf_fini(&text);
	return fine;
}

static void tell(struct checkpoint *checkpoint, struct tool_result *result)
{
	struct value *details = tool_details(result);
	size_t files = 0;

	for (size_t i = 0; i < checkpoint->now.count; i++)
		files += checkpoint->now.rows[i].state.kind != UNDO_FOLDER;
	value_set_boolean(details, "list", checkpoint->differs);
	value_set_integer(details, "files", (int64_t)files);
	value_set_integer(details, "changed", (int64_t)checkpoint->changed);
	value_set_integer(details, "added", (int64_t)checkpoint->added);
	value_set_integer(details, "removed", (int64_t)checkpoint->removed);
	value_set_integer(details, "strange", (int64_t)checkpoint->strange);
	value_set_integer(details, "left_files", (int64_t)checkpoint->left_files);
	value_set_integer(details, "left_bytes", (int64_t)checkpoint->left_bytes);
	value_set_integer(details, "unreadable", (int64_t)checkpoint->unreadable);
	if (checkpoint->below != NULL)
		value_set_text(details, "below", checkpoint->below);
	value_set(details, "nested", value_ref(checkpoint->nested));
	value_set(details, "link", value_ref(checkpoint->links));
}

static void old_read(struct checkpoint *checkpoint, int fd)
{
	bool known = call_flag(checkpoint->call, "known");

	/*
	 * An old list that cannot be read counts as none: all files are looked at and
	 * copied again.
	 */
	if (!undo_list_read(fd, &checkpoint->old, NULL)) {
		undo_list_fini(&checkpoint->old);
		undo_list_init(&checkpoint->old);
		known = false;
	}
	/* Without an old list there is no change to report. */
	if (checkpoint->old.count == 0 && !known)
		checkpoint->is_step = false;
}

static enum result_status checkpoint_execute(struct call *call, struct tool_result *result)
{
	struct checkpoint checkpoint = {
		.call = call,
		.is_step = call_flag(call, "step"),
		.may_link = call_flag(call, "links"),
		.began_ns = clock_wall_ns(),
		.command_began_ns = (int64_t)call_count(call, "began_ms", 0) * 1000000,
		.command_ended_ns = (int64_t)call_count(call, "ended_ms", 0) * 1000000,
		.nested = value_new_array(),
		.links = value_new_array(),
	};
	int64_t began_us = clock_now_us(), look_us = 0;
	struct err err = {0};

	undo_list_init(&checkpoint.old);
	undo_list_init(&checkpoint.now);
	arena_init(&checkpoint.tracked.paths);
	undo_log_begin(&checkpoint.log, call->fds[FD_LOG],
		       (uint32_t)call_count(call, "log", 0));
	old_read(&checkpoint, call->fds[FD_OLD]);
	bool fine = walk_start_open(&checkpoint.start, call, ".", &err) &&
		    checkpoint_look(&checkpoint, &err);
	look_us = clock_now_us() - began_us;
	const uint64_t begin = checkpoint.log.at;
	fine = fine && checkpoint_keep(&checkpoint, &err) &&
	       checkpoint_tell_made(&checkpoint, &err);
	fine = fine &&
	       (!checkpoint.differs || list_write(&checkpoint, call->fds[FD_NEW], &err));
	fine = fine && (!checkpoint.is_step || checkpoint.log.at == begin ||
			undo_log_end(&checkpoint.log, &err));
	if (fine) {
		tell(&checkpoint, result);
		value_set_integer(tool_details(result), "us", look_us);
		(void)tool_done(result);
	} else if (call_stopped(call)) {
		(void)call_stop_result(call, result);
	} else {
		(void)tool_fail(result, "%s", err.text);
	}
	walk_start_fini(&checkpoint.start);
	undo_list_fini(&checkpoint.old);
	undo_list_fini(&checkpoint.now);
	arena_fini(&checkpoint.tracked.paths);
	free(checkpoint.tracked.items);
	free(checkpoint.below);
	value_free(checkpoint.nested);
	value_free(checkpoint.links);
	return result->status;
}

const struct tool checkpoint_tool = {
	.name = "checkpoint",
	.description = "List the workspace and keep what could not be had again.",
	.example = "{\"log\": 1}",
	.params = checkpoint_params,
	.effects = EFFECT_READS,
	.timeout_s = 120, /* copying 1 GiB from a slow disk */
	.internal = true,
	.execute = checkpoint_execute,
};
