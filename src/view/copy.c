/* copy: counts a tree, copies it, and writes the list of the copy. */

#include "view/copy.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "files/copied.h"
#include "files/overlay.h"
#include "files/record.h"
#include "sandbox/outside.h"
#include "sandbox/sandbox.h"
#include "sandbox/view.h"
#include "undo/place.h"
#include "view/removal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum {
	FROM = OUTSIDE_FILE, /* the descriptors of the process that copies */
	TREE = OUTSIDE_FOLDER,
	/* Each level holds three descriptors; no project is half as deep. */
	DEPTH_MAX = 200,
	NAMES_MAX = UNDO_CHANGES_MAX, /* files and folders, as a list can hold */
	LIST_MODE = 0600,
	BLOCK = 512,      /* of st_blocks */
	CLOCK_TRIES = 50, /* of 1 ms: some ticks of the slowest kernel */
	CLOCK_NS = 1000000,
	VALUE_MAX = 64 << 10, /* of an attribute, by the kernel */
};

#define TRIED_NAME   "tried"
#define DEFAULT_LIST "system.posix_acl_default"

/* The report of the process to its caller, in memory that both share. */
struct told {
	struct copy_size size;
	int code;            /* a number of errno.h; 0: nothing failed */
	char path[PATH_MAX]; /* where it failed, below the tree; "" at its top */
};

/* A path that was copied. */
struct taken {
	const char *path;
	struct undo_state before;
};

/* A file of several names, and the first one. */
struct linked {
	dev_t device;
	ino_t inode;
	const char *path;
};

struct copying {
	struct told *told;
	const struct copy_except *except;
	bool (*act)(struct copying *copying);
	struct arena texts;
	struct taken *entries;
	size_t count;
	void *links;       /* a tree of struct linked (tsearch) */
	const char *tried; /* a file with data, to try whether blocks can be shared; or NULL */
	size_t names;
	int64_t begun_ns;
	bool owns; /* root: files keep their owners */
	int upper; /* the top of the copy */
};

/* Note that it failed at PATH with the number CODE. Returns false. */
static bool fail(struct copying *copying, const char *path, int code)
{
	copying->told->code = code;
	(void)snprintf(copying->told->path, sizeof(copying->told->path), "%s", path);
	return false;
}

/* The names of a folder, of which an open folder is not kept. */
struct names {
	const char **items;
	size_t count;
};

/* Read the names of FOLDER. False with errno. */
static bool names_read(struct copying *copying, int folder, struct names *names)
{
	DIR *open = fd_open_names(folder);

	*names = (struct names){0};
	for (const struct dirent *at = open != NULL ? readdir(open) : NULL; at != NULL;
	     at = readdir(open)) {
		if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0)
			continue;
		names->items =
			memory_more(names->items, names->count, sizeof(*names->items));
		names->items[names->count++] =
			arena_copy(&copying->texts, str_of(at->d_name));
	}
	if (open != NULL)
		(void)closedir(open);
	return open != NULL;
}

static bool join(const char *folder, const char *name, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s%s%s", folder, folder[0] != '\0' ? "/" : "",
			name) < PATH_MAX;
}

static bool is_excepted(const struct copying *copying, const struct stat *st)
{
	const struct stat *folder = copying->except->folder;

	return folder != NULL && S_ISDIR(st->st_mode) && st->st_dev == folder->st_dev &&
	       st->st_ino == folder->st_ino;
}

/* Is PATH of the tree one whose content stays where it is? */
static bool is_shut(const struct copying *copying, const char *path)
{
	const char *top = copying->except->top;
	const char *const *at = copying->except->closed;
	char whole[PATH_MAX];

	if (*at == NULL || !join(strcmp(top, "/") == 0 ? "" : top, path, whole))
		return false;
	while (*at != NULL && strcmp(*at, whole) != 0)
		at++;
	return *at != NULL;
}

static bool is_copied(mode_t mode)
{
	return S_ISREG(mode) || S_ISLNK(mode) || S_ISDIR(mode);
}

static bool is_closed(int code)
{
	return code == EACCES || code == EPERM;
}

/* Was the file removed, or replaced by something else, while it was looked at? */
static bool is_vanished(int code)
{
	return code == ENOENT || code == ENOTDIR || code == ELOOP || code == ENXIO;
}

static int open_folder(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Counting. */

static bool count_folder(struct copying *copying, int folder, const char *path,
			 unsigned depth);

static bool count_entry(struct copying *copying, int folder, const char *name,
			const char *path, const struct stat *st, unsigned depth)
{
	struct copy_size *size = &copying->told->size;
	const uint64_t blocks = (uint64_t)st->st_blocks * BLOCK;

	if (++copying->names > NAMES_MAX)
		return fail(copying, "", E2BIG);
	if (S_ISDIR(st->st_mode)) {
		if (is_shut(copying, path))
			return true;
		auto_close int below = open_folder(folder, name);

		return below < 0 ? is_closed(errno) || is_vanished(errno) ||
					   fail(copying, path, errno)
				 : count_folder(copying, below, path, depth + 1);
	}
	size->files++;
	if (S_ISREG(st->st_mode))
		size->bytes +=
			(uint64_t)st->st_size < blocks ? (uint64_t)st->st_size : blocks;
	if (copying->tried == NULL && S_ISREG(st->st_mode) && st->st_size > 0)
		copying->tried = arena_copy(&copying->texts, str_of(path));
	return true;
}

/* Count what is in FOLDER, the folder PATH of the tree. */
static bool count_folder(struct copying *copying, int folder, const char *path,
			 unsigned depth)
{
	struct names names;
	bool fine = true;

	if (depth > DEPTH_MAX)
		return fail(copying, path, ELOOP);
	if (!names_read(copying, folder, &names))
		return fail(copying, path, errno);
	for (size_t i = 0; i < names.count && fine; i++) {
		char whole[PATH_MAX];
		struct stat st;

		if (!join(path, names.items[i], whole))
			fine = fail(copying, path, ENAMETOOLONG);
		else if (fstatat(folder, names.items[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			 is_copied(st.st_mode) && !is_excepted(copying, &st))
			fine = count_entry(copying, folder, names.items[i], whole, &st,
					   depth);
	}
	free(names.items);
	return fine;
}

/* Can the copy share blocks with the tree? */
static bool shares_blocks(const struct copying *copying)
{
	if (copying->tried == NULL)
		return false;
	auto_close int from = fd_open_beneath(FROM, copying->tried, O_RDONLY);
	auto_close int to =
		openat(TREE, TRIED_NAME,
		       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, LIST_MODE);
	const bool shares = from >= 0 && to >= 0 && ioctl(to, FICLONE, from) == 0;

	(void)unlinkat(TREE, TRIED_NAME, 0);
	return shares;
}

/* Count the tree. False: it is over the ceilings. */
static bool measure(struct copying *copying)
{
	const struct copy_size *size = &copying->told->size;
	auto_close int top = open_folder(FROM, ".");

	if (top < 0)
		return fail(copying, "", errno);
	return count_folder(copying, top, "", 0) &&
	       ((size->files <= COPY_FILES_MAX && size->bytes <= COPY_BYTES_MAX &&
		 copying->names <= 2 * (size_t)COPY_FILES_MAX) ||
		shares_blocks(copying) || fail(copying, "", E2BIG));
}

/* Copying. */

/* PATH, which was ST in the tree, is in the copy. Its state there is looked at in the end. */
static void note(struct copying *copying, const char *path, const struct stat *st, bool known)
{
	struct taken *entry;

	copying->entries =
		memory_more(copying->entries, copying->count, sizeof(*copying->entries));
	entry = &copying->entries[copying->count++];
	entry->path = arena_copy(&copying->texts, str_of(path));
	undo_state_of(st, &entry->before);
	/*
	 * A file that changed while it was copied may be half old and half new. One that
	 * changed since the copy began may have changed again in the same tick of the clock.
	 */
	if (!known || entry->before.ctime_ns > copying->begun_ns)
		entry->before.ctime_ns = 0;
}

struct extra {
	int to, code;
};

static void extra_set(void *context, const char *name, struct str value)
{
	struct extra *extra = context;

	if (fsetxattr(extra->to, name, value.data, value.size, 0) < 0)
		extra->code = errno;
}

/* Give TO the attributes of FROM, and its owner, permissions and times ST. False with errno. */
static bool dress(const struct copying *copying, int to, int from, const struct stat *st)
{
	/* The right of files to act as their owner is not copied. */
	const mode_t kept = S_ISDIR(st->st_mode) ? 03777 : 01777;
	const struct timespec times[] = {st->st_atim, st->st_mtim};
	struct extra extra = {.to = to};

	if (copying->owns && fchown(to, st->st_uid, st->st_gid) < 0)
		return false;
	if (fchmod(to, st->st_mode & kept) < 0)
		return false;
	if (from >= 0)
		overlay_each_extra(from, extra_set, &extra);
	if (from >= 0 && S_ISDIR(st->st_mode)) {
		auto_free char *value = memory_alloc(VALUE_MAX);
		const ssize_t size = fgetxattr(from, DEFAULT_LIST, value, VALUE_MAX);

		if (size > 0)
			extra_set(&extra, DEFAULT_LIST, (struct str){value, (size_t)size});
	}
	if (extra.code != 0) {
		errno = extra.code;
		return false;
	}
	(void)futimens(to, times);
	return true;
}

static int compare_linked(const void *a, const void *b)
{
	const struct linked *one = a, *other = b;

	if (one->device != other->device)
		return one->device < other->device ? -1 : 1;
	return one->inode < other->inode ? -1 : one->inode > other->inode;
}

/* Is ST another name of a file that was copied, so that NAME in TO is one too? */
static bool link_to_first(struct copying *copying, int to, const char *name,
			  const char *path, const struct stat *st)
{
	const struct linked key = {st->st_dev, st->st_ino, NULL};

	if (st->st_nlink < 2)
		return false;
	struct linked *const *found = tfind(&key, &copying->links, compare_linked);
	if (found != NULL)
		return linkat(copying->upper, (*found)->path, to, name, 0) == 0;
	struct linked *first = arena_alloc(&copying->texts, sizeof(*first));
	*first = key;
	first->path = arena_copy(&copying->texts, str_of(path));
	(void)tsearch(first, &copying->links, compare_linked);
	return false;
}

/* Did the file FD stay as ST said? */
static bool is_unchanged(int fd, const struct stat *st)
{
	struct stat now;

	return fstat(fd, &now) == 0 && now.st_size == st->st_size &&
	       clock_ns(&now.st_mtim) == clock_ns(&st->st_mtim) &&
	       clock_ns(&now.st_ctim) == clock_ns(&st->st_ctim);
}

/* A file or folder that is not read is there, empty and closed to everybody. */
static bool put_closed(struct copying *copying, int to, const char *name,
		       const char *path, const struct stat *st)
{
	if (S_ISDIR(st->st_mode)) {
		if (mkdirat(to, name, 0) < 0)
			return fail(copying, path, errno);
		note(copying, path, st, true);
		return true;
	}
	auto_close int file =
		openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0);

	if (file < 0)
		return fail(copying, path, errno);
	note(copying, path, st, false);
	return true;
}

static bool copy_file(struct copying *copying, int from, int to, const char *name,
		      const char *path)
{
	auto_close int file =
		openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (file < 0 && is_closed(errno) &&
	    fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return put_closed(copying, to, name, path, &st);
	if (file < 0)
		return is_vanished(errno) || fail(copying, path, errno);
	if (fstat(file, &st) < 0 || !S_ISREG(st.st_mode))
		return true;
	if (link_to_first(copying, to, name, path, &st)) {
		note(copying, path, &st, true);
		return true;
	}
	auto_close int made =
		openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       S_IRUSR | S_IWUSR);
	if (made < 0 || !undo_place_copy_data(made, file, st.st_size)) {
		/* A file that became shorter has no more bytes to read. */
		if (made < 0 || is_unchanged(file, &st))
			return fail(copying, path, errno != 0 ? errno : EIO);
	}
	if (!dress(copying, made, file, &st))
		return fail(copying, path, errno);
	note(copying, path, &st, is_unchanged(file, &st));
	return true;
}

static bool copy_link(struct copying *copying, int from, int to, const char *name,
		      const char *path, const struct stat *st)
{
	const struct timespec times[] = {st->st_atim, st->st_mtim};
	char target[PATH_MAX];
	const ssize_t size = readlinkat(from, name, target, sizeof(target) - 1);

	if (size < 0)
		return is_vanished(errno) || errno == EINVAL || fail(copying, path, errno);
	target[size] = '\0';
	if (symlinkat(target, to, name) < 0 ||
	    (copying->owns &&
	     fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0))
		return fail(copying, path, errno);
	(void)utimensat(to, name, times, AT_SYMLINK_NOFOLLOW);
	note(copying, path, st, true);
	return true;
}

static bool copy_names(struct copying *copying, int from, int to, const char *path,
		       unsigned depth);

static bool copy_folder(struct copying *copying, int from, int to, const char *name,
			const char *path, const struct stat *st, unsigned depth)
{
	auto_close int folder = open_folder(from, name);
	const bool closed = folder < 0 && is_closed(errno);

	if (folder < 0 && !closed)
		return is_vanished(errno) || fail(copying, path, errno);
	if (mkdirat(to, name, S_IRWXU) < 0)
		return fail(copying, path, errno);
	auto_close int made = open_folder(to, name);
	if (made < 0)
		return fail(copying, path, errno);
	note(copying, path, st, true);
	return (closed || copy_names(copying, folder, made, path, depth + 1)) &&
	       (dress(copying, made, folder, st) || fail(copying, path, errno));
}

/* Copy NAME of the folder FROM, the path PATH of the tree, into the folder TO. */
static bool copy_entry(struct copying *copying, int from, int to, const char *name,
		       const char *path, unsigned depth)
{
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return is_vanished(errno) || fail(copying, path, errno);
	if (!is_copied(st.st_mode) || is_excepted(copying, &st))
		return true;
	/* The tree may grow while it is copied. */
	if (copying->count >= NAMES_MAX)
		return fail(copying, "", E2BIG);
	if (is_shut(copying, path) && !S_ISLNK(st.st_mode))
		return put_closed(copying, to, name, path, &st);
	return S_ISDIR(st.st_mode) ? copy_folder(copying, from, to, name, path, &st, depth)
	       : S_ISLNK(st.st_mode) ? copy_link(copying, from, to, name, path, &st)
				     : copy_file(copying, from, to, name, path);
}

static bool copy_names(struct copying *copying, int from, int to, const char *path,
		       unsigned depth)
{
	struct names names;
	bool fine = true;

	if (depth > DEPTH_MAX)
		return fail(copying, path, ELOOP);
	if (!names_read(copying, from, &names))
		return fail(copying, path, errno);
	for (size_t i = 0; i < names.count && fine; i++) {
		char whole[PATH_MAX];

		fine = join(path, names.items[i], whole)
			       ? copy_entry(copying, from, to, names.items[i], whole, depth)
			       : fail(copying, path, ENAMETOOLONG);
	}
	free(names.items);
	return fine;
}

/* The list. */

static int open_list(int tree, int flags)
{
	return openat(tree, COPIED_LIST, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		      LIST_MODE);
}

/* Add what was copied to the list. Each file has all its names by now. */
static bool list_add(struct copying *copying, int list)
{
	struct undo_log log;
	struct err err;

	undo_log_begin(&log, list, 1);
	for (size_t i = 0; i < copying->count; i++) {
		const struct taken *entry = &copying->entries[i];
		struct undo_state after;
		struct stat st;

		if (fstatat(copying->upper, entry->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return fail(copying, entry->path, errno);
		undo_state_of(&st, &after);
		if (!undo_log_change(&log, str_of(entry->path), &entry->before, &after, &err))
			return fail(copying, entry->path, err.code);
	}
	return true;
}

/* A file that changes after this bears a later time than those that are there. */
static void pass_tick(void)
{
	const struct timespec moment = {.tv_nsec = CLOCK_NS};
	const int64_t from_ns = clock_file_ns();

	for (int i = 0; i < CLOCK_TRIES && clock_file_ns() <= from_ns; i++)
		(void)nanosleep(&moment, NULL);
}

/* In the process itself. */

static bool make_copy(struct copying *copying)
{
	struct stat st, tree;

	if (!measure(copying))
		return false;
	copying->begun_ns = clock_file_ns();
	pass_tick();
	auto_close int from = open_folder(FROM, ".");
	auto_close int list = open_list(TREE, O_RDWR | O_CREAT | O_EXCL);
	if (from < 0 || list < 0 || fstat(from, &st) < 0 || fstat(TREE, &tree) < 0 ||
	    mkdirat(TREE, VIEW_LAYER_UPPER, S_IRWXU) < 0)
		return fail(copying, "", errno);
	copying->upper = open_folder(TREE, VIEW_LAYER_UPPER);
	/* The workers of the cell read the list. */
	if (copying->upper < 0 ||
	    (copying->owns && fchown(list, tree.st_uid, tree.st_gid) < 0))
		return fail(copying, "", errno);
	if (!copy_names(copying, from, copying->upper, "", 0))
		return false;
	if (!dress(copying, copying->upper, from, &st))
		return fail(copying, "", errno);
	if (!list_add(copying, list))
		return false;
	pass_tick();
	return true;
}

static bool try_copy(struct copying *copying)
{
	return measure(copying);
}

struct forgetting {
	struct undo_log log;
	struct err err;
	bool failed;
};

static void forget(void *context, const char *relative)
{
	struct forgetting *forgetting = context;

	forgetting->failed |=
		!undo_log_change(&forgetting->log, str_of(relative), &undo_absent,
				 &undo_absent, &forgetting->err);
}

/* The folder of RELATIVE in the folder TOP; -1 with errno. */
static int open_above(int top, const char *relative)
{
	const char *name = path_base_name(relative);
	char above[PATH_MAX];

	(void)snprintf(above, sizeof(above), "%.*s",
		       name > relative ? (int)(name - relative - 1) : 0, relative);
	return name > relative ? fd_open_beneath(top, above, O_RDONLY | O_DIRECTORY)
			       : open_folder(top, ".");
}

/*
 * Take RELATIVE, which is told by the caller in `told`, out of the list. A copy that is removed
 * before that would look as if the session had removed it.
 */
static bool forget_copy(struct copying *copying)
{
	auto_free char *relative = memory_copy(copying->told->path);
	auto_close int list = open_list(TREE, O_RDWR);
	auto_close int upper = open_folder(TREE, VIEW_LAYER_UPPER);
	auto_close int above = upper >= 0 ? open_above(upper, relative) : -1;
	struct copied *copied = NULL;
	struct forgetting forgetting = {0};

	if (list < 0 || above < 0)
		return fail(copying, relative, errno == ENOTDIR ? ENOENT : errno);
	if (!copied_read(list, &copied, &forgetting.err))
		return fail(copying, relative, EIO);
	const bool differs = copied_differs(copied, upper, relative);
	undo_log_begin(&forgetting.log, list, 1);
	if (differs)
		copied_each(copied, relative, forget, &forgetting);
	copied_free(copied);
	return (differs || fail(copying, relative, ENOENT)) &&
	       (!forgetting.failed || fail(copying, relative, forgetting.err.code));
}

/* Copy RELATIVE, which is told by the caller in `told`, again. */
static bool copy_again(struct copying *copying)
{
	auto_free char *relative = memory_copy(copying->told->path);
	auto_close int list = open_list(TREE, O_RDWR);
	auto_close int from = open_above(FROM, relative);
	struct stat st;

	if (from < 0)
		return is_vanished(errno) || fail(copying, relative, errno);
	copying->begun_ns = clock_file_ns();
	pass_tick();
	copying->upper = open_folder(TREE, VIEW_LAYER_UPPER);
	auto_close int to = copying->upper >= 0 ? open_above(copying->upper, relative) : -1;
	if (list < 0 || to < 0 || fstat(to, &st) < 0)
		return fail(copying, relative, errno);
	const struct timespec times[] = {st.st_atim, st.st_mtim};
	/* A name in a read-only folder comes back as well; the folder stays as it is. */
	const bool shut = (st.st_mode & S_IRWXU) != S_IRWXU &&
			  fchmod(to, (st.st_mode & ALLPERMS) | S_IRWXU) == 0;
	const bool fine =
		copy_entry(copying, from, to, path_base_name(relative), relative, 0);
	if (shut)
		(void)fchmod(to, st.st_mode & ALLPERMS);
	(void)futimens(to, times);
	return list_add(copying, list) && fine;
}

/* The caller. */

/* The process of COPYING. */
static int act(void *context)
{
	struct copying *copying = context;

	arena_init(&copying->texts);
	copying->told->code = 0;
	return copying->act(copying)      ? 0
	       : copying->told->code != 0 ? copying->told->code
					  : EIO;
}

/* Let a process that has FROM and TREE do WORK. Returns a number of errno.h. */
static int run(int from, int tree, const struct copy_except *except, struct told *told,
	       bool (*work)(struct copying *copying))
{
	const struct outside_folder walls = {OUTSIDE_COPIES, tree, from};
	struct copying copying = {
		.told = told,
		.except = except,
		.act = work,
		.owns = sandbox_is_root(),
		.upper = -1,
	};

	return outside_run(&walls, act, &copying);
}

static struct told *told_new(void)
{
	void *memory = mmap(NULL, sizeof(struct told), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory != MAP_FAILED ? memory : NULL;
}

/* run, with what it tells in SIZE and ERR. */
static bool run_telling(int from, int tree, const struct copy_except *except,
			struct copy_size *size, bool (*work)(struct copying *copying),
			struct err *err)
{
	struct told *told = told_new();
	const int code = told != NULL ? run(from, tree, except, told, work) : errno;

	*size = told != NULL ? told->size : (struct copy_size){0};
	if (code != 0)
		(void)err_set(err, code, "%s%s%s", told != NULL ? told->path : "",
			      told != NULL && told->path[0] != '\0' ? ": " : "",
			      strerror(code));
	if (told != NULL)
		(void)munmap(told, sizeof(*told));
	return code == 0;
}

bool copy_make(int from, int tree, const struct copy_except *except,
	       struct copy_size *size, struct err *err)
{
	return run_telling(from, tree, except, size, make_copy, err);
}

bool copy_try(int from, int tree, const struct copy_except *except,
	      struct copy_size *size, struct err *err)
{
	return run_telling(from, tree, except, size, try_copy, err);
}

int copy_renew(int from, int tree, const char *relative, const struct copy_except *except)
{
	struct told *told = told_new();
	char copy[PATH_MAX];
	int code = told == NULL ? errno : 0;

	if (told == NULL || snprintf(copy, sizeof(copy), VIEW_LAYER_UPPER "/%s",
				     relative) >= (int)sizeof(copy))
		return told == NULL ? code : ENAMETOOLONG;
	(void)snprintf(told->path, sizeof(told->path), "%s", relative);
	code = run(from, tree, except, told, forget_copy);
	if (code == 0)
		code = removal_run(tree, copy);
	if (code == ENOENT && told->code == 0)
		code = 0; /* the session had removed it */
	(void)snprintf(told->path, sizeof(told->path), "%s", relative);
	if (code == 0)
		code = run(from, tree, except, told, copy_again);
	(void)munmap(told, sizeof(*told));
	return code;
}
