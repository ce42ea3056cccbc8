/* base_log: walks the upper folders of a review's layers, and notes what was below. */

#include "cell/layers/base_log.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "files/copied.h"
#include "files/overlay.h"
#include "files/record.h"
#include "view/review.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ROWS_MAX = UNDO_CHANGES_MAX,
	/* Each level holds two descriptors and the C library's buffers. */
	DEPTH_MAX = 64,
	HEAD_BYTES = 8 << 10, /* a NUL in them: no text, as for git */
	/* A walk takes as long as what was changed; a call does not wait longer. */
	WALK_MS = 30000,
	LOCK_MS = 200, /* another worker of the session is at work */
	CLOCK_MS = 50, /* some ticks of the slowest kernel */
	CLOCK_EVERY = 256,
	MS_NS = 1000000,
};

/* One walk copies and hashes so much at most. */
#define COPY_MAX ((uint64_t)1 << 30)
#define HASH_MAX ((uint64_t)4 << 30)

struct tree {
	const char *path;
	int fd; /* of the folder that holds its upper and lower */
	bool is_copy;
	struct copied *copied; /* the list of a copy, once it was read; or NULL */
};

struct base_log {
	const struct cell_spec *spec;
	struct tree *trees;
	size_t count;
};

/* A path that an earlier walk has noted. */
struct noted {
	const char *path;
	size_t order; /* in the log */
	struct undo_state before;
};

/* How much of a layer a walk has seen. */
enum extent {
	EXTENT_ALL,
	EXTENT_PART, /* a folder could not be read, or a path was too long */
	EXTENT_OVER, /* a limit has ended the walk */
};

/* One walk. */
struct walk {
	const struct base_log *base;
	struct undo_log log;
	struct noted *noted; /* in order of path */
	size_t noted_count;
	struct arena arena;
	struct review_counts counts;
	struct buf path;           /* absolute, of the entry */
	size_t top;                /* bytes of PATH that name the tree, with a slash */
	int lower;                 /* the tree below */
	const struct copied *list; /* the upper folder is a copy, and this its list; or NULL */
	int64_t deadline_ms;
	uint64_t copied, hashed;
	size_t seen;
	bool writes; /* the log can be written to */
	enum extent extent;
};

struct base_log *base_log_open(const struct cell_spec *spec)
{
	struct base_log *base = memory_alloc(sizeof(*base));

	base->spec = spec;
	base->trees = memory_array(spec->view.count + 1, sizeof(*base->trees));
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if (entry->kind == VIEW_OVERLAY && entry->lasts == VIEW_LASTS_REVIEW)
			base->trees[base->count++] =
				(struct tree){.path = entry->path,
					      .fd = entry->layer,
					      .is_copy = entry->copied};
	}
	return base;
}

/* The paths that were noted before. */

static bool noted_take(void *context, const struct undo_change *change)
{
	struct walk *walk = context;

	walk->noted = memory_more(walk->noted, walk->noted_count, sizeof(*walk->noted));
	walk->noted[walk->noted_count] =
		(struct noted){arena_copy(&walk->arena, change->path), walk->noted_count,
			       change->before};
	walk->noted_count++;
	return true;
}

static int noted_compare(const void *left, const void *right)
{
	const struct noted *a = left, *b = right;

	return strcmp(a->path, b->path);
}

/* A path that was landed since has another row, behind its first one. */
static int noted_order(const void *left, const void *right)
{
	const struct noted *a = left, *b = right;
	const int order = noted_compare(left, right);

	return order != 0 ? order : a->order < b->order ? -1 : 1;
}

/* Keep the last row of each path. */
static void noted_sort(struct walk *walk)
{
	size_t kept = 0;

	if (walk->noted_count > 0)
		qsort(walk->noted, walk->noted_count, sizeof(*walk->noted), noted_order);
	for (size_t i = 0; i < walk->noted_count; i++) {
		kept -= kept > 0 &&
			noted_compare(&walk->noted[kept - 1], &walk->noted[i]) == 0;
		walk->noted[kept++] = walk->noted[i];
	}
	walk->noted_count = kept;
}

/*
 * Read the log. Bytes that a killed worker left behind the last whole chunk are cut off. A
 * log with a wrong chunk is not written to any more.
 */
static void noted_read(struct walk *walk, int fd)
{
	struct undo_reader reader = {.change = noted_take, .context = walk};
	struct err err;
	struct stat st;

	walk->writes = undo_log_read(&reader, fd, &err) && fstat(fd, &st) == 0 &&
		       ((uint64_t)st.st_size == reader.sound ||
			ftruncate(fd, (off_t)reader.sound) == 0);
	noted_sort(walk);
}

static const struct undo_state *noted_find(const struct walk *walk)
{
	const struct noted key = {.path = walk->path.data};
	const struct noted *found = walk->noted_count > 0
					    ? bsearch(&key, walk->noted, walk->noted_count,
						      sizeof(key), noted_compare)
					    : NULL;

	return found != NULL ? &found->before : NULL;
}

/* The state below the layer. */

/* The path of the entry below the top of its tree. */
static const char *relative(const struct walk *walk)
{
	return walk->path.size > walk->top ? walk->path.data + walk->top : ".";
}

static bool is_text(int fd)
{
	char head[HEAD_BYTES];
	const ssize_t size = pread(fd, head, sizeof(head), 0);

	return size >= 0 && memchr(head, '\0', (size_t)size) == NULL;
}

/* Keep the file of SIZE bytes at the entry's place below; STATE is filled in. */
static bool below_keep_file(struct walk *walk, uint64_t size, struct undo_state *state)
{
	auto_close int fd = fd_open_beneath(walk->lower, relative(walk), O_RDONLY);
	struct err err;

	if (fd < 0)
		return false;
	if (size <= OVERLAY_TEXT_MAX && walk->copied + size <= COPY_MAX && is_text(fd)) {
		walk->copied += size;
		return undo_log_file(&walk->log, fd, OVERLAY_TEXT_MAX, state, &err);
	}
	if (walk->hashed + size > HASH_MAX)
		return false;
	walk->hashed += size;
	return undo_state_hash(fd, state, &err);
}

static bool below_keep_link(struct walk *walk, struct undo_state *state)
{
	char text[PATH_MAX];
	const ssize_t size = readlinkat(walk->lower, relative(walk), text, sizeof(text));
	struct err err;

	return size >= 0 && (size_t)size < sizeof(text) &&
	       undo_log_data(&walk->log, (struct str){text, (size_t)size}, state, &err);
}

/*
 * A file that the kernel has copied from below bears a note of its origin. A path with that note
 * was there when it was first written to, unless the file was renamed in the layer.
 */
static bool is_copied_up(int folder, const char *name)
{
	auto_close int fd =
		openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd >= 0 && overlay_is_copy(fd);
}

/*
 * Is the clock that stamps files not past the layer's time? Then it was set back, and a file
 * that is changed now looks older than the layer.
 */
static bool clock_is_back(const struct base_log *base)
{
	return clock_file_ns() <= base->spec->review_ms * MS_NS;
}

/* Was the folder of the entry changed below since the layer was made? */
static bool folder_changed(struct walk *walk)
{
	const char *name = relative(walk), *slash = strrchr(name, '/');
	auto_free char *above =
		slash != NULL ? memory_copy_str((struct str){name, (size_t)(slash - name)})
			      : memory_copy(".");
	struct stat st;

	return fstatat(walk->lower, above, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (clock_is_back(walk->base) ||
		clock_ns(&st.st_mtim) > walk->base->spec->review_ms * MS_NS);
}

static bool below_keep(struct walk *walk, const struct stat *st, struct undo_state *state)
{
	return S_ISREG(st->st_mode) ? below_keep_file(walk, (uint64_t)st->st_size, state)
	       : S_ISLNK(st->st_mode) ? below_keep_link(walk, state)
				      : false;
}

/*
 * The state below when the copy was made, by its list; false: it is not known, because the
 * user has changed it since.
 */
static bool listed_state(struct walk *walk, struct undo_state *state)
{
	const struct undo_state *before = copied_before(walk->list, relative(walk));
	struct stat st;

	*state = before != NULL ? *before : undo_absent;
	if (before == NULL || before->kind == UNDO_FOLDER)
		return true;
	if (fstatat(walk->lower, relative(walk), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	undo_state_of(&st, state);
	return copied_is_kept(before, state) && below_keep(walk, &st, state);
}

/*
 * The state below; false: it is not known. COPIED: the kernel copied the entry up, so
 * somebody may have removed it below since.
 */
static bool below_state(struct walk *walk, bool copied, struct undo_state *state)
{
	const int64_t made_ns = walk->base->spec->review_ms * MS_NS;
	struct stat st;

	if (walk->list != NULL)
		return listed_state(walk, state);
	if (fstatat(walk->lower, relative(walk), &st, AT_SYMLINK_NOFOLLOW) < 0) {
		*state = undo_absent;
		return (errno == ENOENT || errno == ENOTDIR) &&
		       !(copied && folder_changed(walk));
	}
	undo_state_of(&st, state);
	if (S_ISDIR(st.st_mode))
		return true;
	if (clock_is_back(walk->base) || clock_ns(&st.st_ctim) > made_ns ||
	    clock_ns(&st.st_mtim) > made_ns)
		return false;
	return below_keep(walk, &st, state);
}

/* The walk. */

static bool is_over(struct walk *walk)
{
	walk->seen++;
	if (walk->seen > ROWS_MAX ||
	    (walk->seen % CLOCK_EVERY == 0 && clock_now_ms() > walk->deadline_ms))
		walk->extent = EXTENT_OVER;
	return walk->extent == EXTENT_OVER;
}

/* The walk passes over a name, and goes on behind it. */
static void pass_over(struct walk *walk)
{
	if (walk->extent == EXTENT_ALL)
		walk->extent = EXTENT_PART;
}

/* Add NAME to the path of WALK. False: it is too long. */
static bool path_enter(struct walk *walk, const char *name)
{
	if (buf_addf(&walk->path, "%s%s",
		     walk->path.size > 0 && walk->path.data[walk->path.size - 1] == '/'
			     ? ""
			     : "/",
		     name))
		return true;
	pass_over(walk);
	return false;
}

/* Objects of git are named by what they hold, so they have no base. */
static bool has_base(const struct walk *walk)
{
	return !spec_is_blocked(walk->base->spec, walk->path.data) &&
	       strstr(walk->path.data, "/.git/objects/") == NULL;
}

/*
 * Note the entry, which the layer holds as AFTER, and return its state below, which goes to
 * STATE; NULL: nobody knows it.
 */
static const struct undo_state *entry_note(struct walk *walk, bool copied,
					   const struct undo_state *after,
					   struct undo_state *state)
{
	const struct undo_state *noted = noted_find(walk);
	const uint64_t begin = walk->log.at;
	struct err err;

	if (noted != NULL || !walk->writes || !has_base(walk))
		return noted;
	if (below_state(walk, copied, state) &&
	    undo_log_change(&walk->log, buf_str(&walk->path), state, after, &err))
		return state;
	undo_log_cut(&walk->log, begin);
	/* A full disk: nothing more can be noted now. */
	walk->writes = walk->log.at == begin;
	return NULL;
}

/* Does the file NAME of FOLDER hold what BEFORE describes? */
static bool holds_same(struct walk *walk, int folder, const char *name,
		       const struct stat *st, const struct undo_state *before)
{
	struct undo_state now;
	struct err err;

	if (before->kind != UNDO_FILE || !S_ISREG(st->st_mode) ||
	    before->size != (uint64_t)st->st_size ||
	    before->mode != (st->st_mode & ~(mode_t)S_IFMT) || !before->hashed ||
	    walk->hashed + before->size > HASH_MAX)
		return false;
	auto_close int fd =
		openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	undo_state_of(st, &now);
	walk->hashed += before->size;
	return fd >= 0 && undo_state_hash(fd, &now, &err) &&
	       memcmp(now.digest, before->digest, sizeof(now.digest)) == 0;
}

/* Git's own files are told as commits, and not counted. */
static bool counts(const struct walk *walk)
{
	return !path_names_git(walk->path.data);
}

/*
 * The entry differs from what is below, and is no counted file. Of git's own names only those
 * count from which commits come: git writes its index even to show a status.
 */
static void note_other(struct walk *walk)
{
	static const char *const names[] = {"refs", "packed-refs", "reftable", "HEAD", NULL};
	const char *git = counts(walk) ? NULL : strstr(walk->path.data, "/.git/");

	if (git == NULL) {
		walk->counts.other = true;
		return;
	}
	const char *name = git + strlen("/.git/");
	for (size_t i = 0; names[i] != NULL; i++) {
		const size_t size = strlen(names[i]);

		if (strncmp(name, names[i], size) == 0 &&
		    (name[size] == '\0' || name[size] == '/'))
			walk->counts.other = true;
	}
}

/* The file NAME of FOLDER holds what is below: do its attributes differ? */
static bool has_other_extra(const struct walk *walk, int folder, const char *name)
{
	auto_close int below = fd_open_beneath(walk->lower, relative(walk), O_RDONLY);
	auto_close int file =
		openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return below >= 0 && file >= 0 && !overlay_same_extra(below, file);
}

static void entry_file(struct walk *walk, int folder, const char *name)
{
	struct undo_state after, state;
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	undo_state_of(&st, &after);
	const bool copied =
		walk->list == NULL && S_ISREG(st.st_mode) && is_copied_up(folder, name);
	const struct undo_state *before = entry_note(walk, copied, &after, &state);
	if (before != NULL && holds_same(walk, folder, name, &st, before)) {
		if (counts(walk) && has_other_extra(walk, folder, name))
			note_other(walk);
		return;
	}
	if (!counts(walk)) {
		note_other(walk);
		return;
	}
	if (before != NULL && before->kind == UNDO_ABSENT)
		walk->counts.added++;
	else
		walk->counts.changed++;
	walk->counts.bytes += S_ISREG(st.st_mode) ? st.st_size : 0;
}

static void removed_folder(struct walk *walk, size_t depth);

/* Note that the entry, which may be a folder, is not there any more. */
static void entry_removed(struct walk *walk, size_t depth)
{
	const struct undo_state *before;
	struct undo_state state;

	if (is_over(walk))
		return;
	before = entry_note(walk, false, &undo_absent, &state);
	if (before != NULL && before->kind == UNDO_ABSENT)
		return;
	if (before == NULL || before->kind != UNDO_FOLDER) {
		if (counts(walk)) {
			walk->counts.removed++;
			return;
		}
	} else if (walk->list == NULL) {
		removed_folder(walk, depth);
	}
	note_other(walk);
}

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Open the folder FD's names; takes FD. NULL: they cannot be read. */
static DIR *folder_read(struct walk *walk, int take_fd, size_t depth)
{
	DIR *names = take_fd >= 0 && depth < DEPTH_MAX ? fdopendir(take_fd) : NULL;

	if (names == NULL) {
		fd_close(&take_fd);
		pass_over(walk);
	}
	return names;
}

/*
 * Note each name of the folder below, but those that the upper folder UPPER (-1: there is
 * none) holds.
 */
static void below_removed(struct walk *walk, int upper, size_t depth)
{
	DIR *names = folder_read(walk,
				 fd_open_beneath(walk->lower, relative(walk),
						 O_RDONLY | O_DIRECTORY),
				 depth);
	struct stat st;

	for (const struct dirent *at = names != NULL ? readdir(names) : NULL;
	     at != NULL && walk->extent < EXTENT_OVER; at = readdir(names)) {
		const size_t size = walk->path.size;

		if (is_dot(at->d_name) ||
		    (upper >= 0 &&
		     fstatat(upper, at->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) ||
		    !path_enter(walk, at->d_name))
			continue;
		entry_removed(walk, depth + 1);
		buf_truncate(&walk->path, size);
	}
	if (names != NULL)
		(void)closedir(names);
}

static void removed_folder(struct walk *walk, size_t depth)
{
	below_removed(walk, -1, depth);
}

static void folder_walk(struct walk *walk, int take_fd, bool hidden, size_t depth);

static void entry_folder(struct walk *walk, int folder, const char *name, bool hidden,
			 size_t depth)
{
	int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct undo_state after, state;
	struct stat st, below;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		fd_close(&fd);
		return;
	}
	undo_state_of(&st, &after);
	const bool is_folder =
		walk->list == NULL &&
		fstatat(walk->lower, relative(walk), &below, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISDIR(below.st_mode);
	/* A folder above a changed file is in the layer as it is below. */
	if (walk->list != NULL ? !copied_same(walk->list, relative(walk), &st)
			       : !is_folder || below.st_mode != st.st_mode) {
		(void)entry_note(walk, false, &after, &state);
		note_other(walk);
	}
	if (fd < 0 && walk->list != NULL && copied_same(walk->list, relative(walk), &st))
		return; /* what was closed when it was copied is empty */
	if (fd < 0)
		pass_over(walk); /* the call has closed the folder to its owner */
	else
		folder_walk(walk, fd, (hidden || overlay_hides(fd)) && is_folder, depth + 1);
}

/* The type of ENTRY, also where the file system does not tell it with the name. */
static unsigned type_of(int folder, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	return fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0
		       ? IFTODT(st.st_mode)
		       : DT_UNKNOWN;
}

/* Is the entry, which is no folder, as it was when the tree was copied? */
static bool is_as_copied(const struct walk *walk, int folder, const char *name)
{
	struct stat st;

	return walk->list != NULL && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       copied_same(walk->list, relative(walk), &st);
}

static void entry_look(struct walk *walk, int folder, const struct dirent *entry,
		       bool hidden, size_t depth)
{
	const unsigned type = type_of(folder, entry);

	if (type != DT_DIR && is_as_copied(walk, folder, entry->d_name))
		return;
	switch (type) {
	case DT_DIR:
		entry_folder(walk, folder, entry->d_name, hidden, depth);
		return;
	case DT_CHR:
		/* The only device that the kernel lets a cell make is a removed name. */
		if (walk->list == NULL)
			entry_removed(walk, depth);
		return;
	case DT_REG:
	case DT_LNK:
		entry_file(walk, folder, entry->d_name);
		return;
	default:
		return; /* sockets and FIFOs are never landed */
	}
}

/* Walk through the upper folder TAKE_FD. HIDDEN: it hides what is in the folder below. */
static void folder_walk(struct walk *walk, int take_fd, bool hidden, size_t depth)
{
	DIR *names = folder_read(walk, take_fd, depth);

	for (const struct dirent *at = names != NULL ? readdir(names) : NULL; at != NULL;
	     at = readdir(names)) {
		const size_t size = walk->path.size;

		if (is_dot(at->d_name))
			continue;
		if (is_over(walk))
			break;
		if (!path_enter(walk, at->d_name))
			continue;
		entry_look(walk, take_fd, at, hidden, depth);
		buf_truncate(&walk->path, size);
	}
	if (names != NULL && hidden && walk->extent < EXTENT_OVER)
		below_removed(walk, take_fd, depth);
	if (names != NULL)
		(void)closedir(names);
}

static bool note_gone(void *context, const char *path)
{
	struct walk *walk = context;
	const size_t size = walk->path.size;

	if (path_enter(walk, path))
		entry_removed(walk, 0);
	buf_truncate(&walk->path, size);
	return walk->extent < EXTENT_OVER;
}

/* The list of TREE when it is a copy. It stays as it is while a session works in the copy. */
static const struct copied *list_of(struct tree *tree)
{
	if (tree->is_copy && tree->copied == NULL) {
		auto_close int list =
			openat(tree->fd, COPIED_LIST, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

		(void)copied_read(list, &tree->copied, NULL);
	}
	return tree->copied;
}

static void tree_walk(struct walk *walk, struct tree *tree)
{
	auto_close int lower =
		openat(tree->fd, VIEW_LAYER_LOWER, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const int upper = openat(tree->fd, VIEW_LAYER_UPPER,
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	buf_clear(&walk->path);
	(void)buf_adds(&walk->path, tree->path);
	walk->top = walk->path.size + (tree->path[1] != '\0');
	walk->lower = lower;
	walk->list = list_of(tree);
	if (lower < 0 || (tree->is_copy && walk->list == NULL)) {
		pass_over(walk);
		if (upper >= 0)
			(void)close(upper);
		return;
	}
	auto_close int copy = walk->list != NULL ? fcntl(upper, F_DUPFD_CLOEXEC, 3) : -1;
	folder_walk(walk, upper, false, 0);
	if (copy >= 0 && walk->extent < EXTENT_OVER)
		(void)copied_each_gone(walk->list, copy, note_gone, walk);
}

/* Lock the log against other workers of the session. */
static bool lock_take(int fd)
{
	const struct timespec moment = {.tv_nsec = MS_NS};
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	const int64_t until_ms = clock_now_ms() + LOCK_MS;

	while (fcntl(fd, F_SETLK, &lock) < 0) {
		if ((errno != EAGAIN && errno != EACCES) || clock_now_ms() > until_ms)
			return false;
		(void)nanosleep(&moment, NULL);
	}
	return true;
}

static void lock_release(int fd)
{
	struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

	(void)fcntl(fd, F_SETLK, &lock);
}

static void counts_tell(struct walk *walk, struct tool_result *result)
{
	walk->counts.partial = walk->extent != EXTENT_ALL;
	value_set(tool_details(result), BASE_LOG_KEY,
		  fields_print(review_count_fields, &walk->counts));
}

void base_log_begin(const struct base_log *base)
{
	const struct timespec moment = {.tv_nsec = MS_NS / 4};
	const int64_t until_ms = clock_now_ms() + CLOCK_MS;

	/* A clock that was set back is not waited for at each call. */
	while (base->count > 0 && clock_is_back(base) &&
	       clock_file_ns() > (base->spec->review_ms - CLOCK_MS) * MS_NS &&
	       clock_now_ms() < until_ms)
		(void)nanosleep(&moment, NULL);
}

void base_log_end(struct base_log *base, struct tool_result *result)
{
	const int fd = base->spec->review_log;
	struct walk walk = {.base = base, .deadline_ms = clock_now_ms() + WALK_MS};

	if (base->count == 0 || fd < 0 || !lock_take(fd))
		return;
	arena_init(&walk.arena);
	buf_init(&walk.path, PATH_MAX);
	noted_read(&walk, fd);
	undo_log_begin(&walk.log, fd, 1);
	for (size_t i = 0; i < base->count; i++)
		tree_walk(&walk, &base->trees[i]);
	lock_release(fd);
	counts_tell(&walk, result);
	free(walk.noted);
	buf_fini(&walk.path);
	arena_fini(&walk.arena);
}
