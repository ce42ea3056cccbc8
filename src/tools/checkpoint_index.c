/* checkpoint_index: the files that git tracks, and whether its index says anything new of them. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "guard/readers.h"
#include "tools/checkpoint_parts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
	/* Stages of a conflict follow each other; none of them is what lies there. */
	if (files->count > 0 &&
	    strcmp(files->items[files->count - 1].path.data, file->path.data) == 0) {
		files->items[files->count - 1].unsure = true;
		return true;
	}
	files->count++;
	return true;
}

/* The index FILE, taken with names of one size, or else the other. What neither fits is false. */
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
	/* A split or broken index holds nothing for us: all is copied. */
	if (!git_index_read(&reader, text, NULL) || reader.shared[0] != '\0')
		files->count = 0;
	return files->count > 0;
}

bool checkpoint_read_index(struct checkpoint *checkpoint, int git)
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

/* Of a submodule nothing but its path is told. */
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
	bool all = git_index_read(&reader, text, NULL) && reader.shared[0] == '\0';
	hash_digest(says->hash, says->digest);
	hash_free(says->hash);
	return all;
}

bool checkpoint_index_says(int file, uint8_t digest[HASH_BYTES])
{
	struct says says = {.digest = digest};

	return read_either(file, take_said_as, &says);
}

bool tracked_is_clean(const struct tracked_files *files, const struct tracked *tracked,
		      const struct undo_state *state)
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
