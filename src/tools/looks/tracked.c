/*
 * tracked: the files that git tracks, as its index records them, what an index says, and
 * all of a repository that a step has made.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "guard/readers.h"
#include "tool/call.h"
#include "tools/looks/checkpoint.h"
#include "undo/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int compare_tracked(const void *a, const void *b)
{
	const struct tracked *left = a, *right = b;

	return strcmp(left->path.data, right->path.data);
}

const struct tracked *tracked_find(const struct tracked_files *files, struct str path)
{
	const struct tracked wanted = {.path = path};

	return files->count > 0 ? bsearch(&wanted, files->items, files->count,
					  sizeof(wanted), compare_tracked)
				: NULL;
}

const struct tracked *tracked_next(const struct tracked_files *files, struct str path,
				   size_t *at)
{
	/* A path that is not behind the one before begins a new pass. */
	if (*at > files->count ||
	    (*at > 0 && strcmp(files->items[*at - 1].path.data, path.data) >= 0))
		*at = 0;
	while (*at < files->count && strcmp(files->items[*at].path.data, path.data) < 0)
		++*at;
	return *at < files->count && str_equal(files->items[*at].path, path)
		       ? &files->items[*at]
		       : NULL;
}

static bool take_entry(void *context, const struct git_index_entry *entry)
{
	struct tracked_files *files = context;

	if (files->count >= UNDO_ROWS_MAX)
		return false;
	files->items = memory_more(files->items, files->count, sizeof(*files->items));
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

bool tracked_read(struct tracked_files *files, int git)
{
	auto_close int fd = fd_open_beneath(git, "index", O_RDONLY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	undo_state_of(&st, &files->index);
	return read_either(fd, take_tracked_as, files);
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

bool tracked_index_says(int file, uint8_t digest[HASH_BYTES])
{
	struct says says = {.digest = digest};

	return read_either(file, take_said_as, &says);
}

bool tracked_is_object(struct str path, const char **name)
{
	if (!str_starts(path, STR(OBJECTS_PATH)))
		return false;
	*name = path.data + strlen(OBJECTS_PATH);
	return true;
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
	DIR *names = fd_open_names(folder);
	bool fine = true;

	if (names == NULL)
		return true;
	for (const struct dirent *at = readdir(names); fine && at != NULL;
	     at = readdir(names)) {
		if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
			fine = tell_name(checkpoint, folder, path, at->d_name, depth, err);
	}
	(void)closedir(names);
	return fine;
}

bool tracked_tell_made(struct checkpoint *checkpoint, int git, const char *name,
		       struct err *err)
{
	return tell_name(checkpoint, git, STR(UNDO_GIT), name, 0, err);
}
