/* scan: decides where to look for repositories. */

#include "guard/scan.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "guard/readers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

void git_scan_init(struct git_scan *scan, const struct git_scan_root *roots, size_t count)
{
	*scan = (struct git_scan){.roots = roots, .root_count = count};
}

static void git_scan_forget(struct git_scan *scan);

void git_scan_fini(struct git_scan *scan)
{
	git_scan_forget(scan);
	value_free(scan->files);
	value_free(scan->left);
	value_free(scan->nested);
	value_free(scan->places);
	free(scan->missed);
}

/* Forget the results about repositories. */
static void git_scan_forget(struct git_scan *scan)
{
	struct value **const lists[] = {&scan->repositories, &scan->held, &scan->leads,
					&scan->dangers, &scan->indexes};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		value_free(*lists[i]);
		*lists[i] = NULL;
	}
}

struct value *git_scan_list(struct value **list)
{
	if (*list == NULL)
		*list = value_new_object();
	return *list;
}

const char *const git_scan_repository[] = {"HEAD", "objects", "refs", NULL};

static bool is_whole(const struct scan_look *look)
{
	struct stat st;

	for (const char *const *name = git_scan_repository; *name != NULL; name++) {
		if (!scan_look_stat(look, *name, &st))
			return false;
	}
	return true;
}

/*
 * Is LOOK a linked worktree's part of a repository? Such a part is looked at together
 * with its repository.
 */
static bool is_part(const struct scan_look *look)
{
	struct buf above;
	bool part;

	buf_init(&above, PATH_MAX);
	part = scan_look_line_path(look, "commondir", look->path, &above) &&
	       str_starts(str_of(look->path), buf_str(&above)) &&
	       str_starts(str_of(look->path + above.size), STR("/worktrees/"));
	auto_close int fd = part ? scan_look_open_path(look->scan, above.data) : -1;
	const struct scan_look repository = {look->scan, fd, above.data};
	part = fd >= 0 && is_whole(&repository);
	buf_fini(&above);
	return part;
}

/*
 * A folder with a `commondir` is a git folder when it also has a HEAD, because git
 * reads everything else from the folder that `commondir` names.
 */
static bool is_bare(const struct scan_look *look)
{
	struct stat st;

	return is_whole(look) || (scan_look_stat(look, "HEAD", &st) &&
				  scan_look_stat(look, "commondir", &st) && !is_part(look));
}

void git_scan_worktree(struct git_scan *scan, int fd, const char *path, unsigned depth)
{
	const struct scan_look look = {scan, fd, path};
	char inside[PATH_MAX];
	struct stat st;

	if (is_bare(&look))
		git_scan_folder(scan, fd, path, NULL, depth);
	const bool has_git = scan_look_stat(&look, ".git", &st);
	if (has_git || depth == 0)
		git_scan_protected(&look, depth == 0);
	if (!has_git)
		return;
	if (S_ISREG(st.st_mode)) {
		git_scan_pointer(&look, &st, depth);
		return;
	}
	if (S_ISLNK(st.st_mode))
		git_scan_pointer_link(&look, depth);
	if (!S_ISDIR(st.st_mode)) {
		scan_look_mark_stat(&look, ".git", &st);
		return;
	}
	auto_close int folder = scan_look_enter(&look, ".git", inside);
	if (folder >= 0)
		git_scan_folder(scan, folder, inside, path, depth);
}

static void each_top(const struct scan_look *look, const char *name, void *context)
{
	char path[PATH_MAX];

	(void)context;
	if (look->scan->wants_files)
		git_scan_file(look, name);
	/*
	 * Folders with our mark are not left out: anybody may choose such a name, and no
	 * folder is moved aside here.
	 */
	if (strcmp(name, ".git") == 0 || (look->type != DT_DIR && look->type != DT_UNKNOWN) ||
	    (!scan_look_may_hold(look, name, ".git") &&
	     !scan_look_may_hold(look, name, "HEAD")))
		return;
	auto_close int fd = scan_look_enter(look, name, path);
	if (fd >= 0)
		git_scan_worktree(look->scan, fd, path, 1);
}

static void look_file(struct git_scan *scan, const char *path)
{
	auto_free char *folder = memory_copy(path);
	const char *name = path_base_name(path);
	struct stat st;

	folder[name - path - 1] = '\0';
	auto_close int fd = scan_look_open_path(scan, folder);
	const struct scan_look look = {scan, fd, folder};
	if (fd >= 0 && scan_look_stat(&look, name, &st))
		scan_look_mark_stat(&look, name, &st);
}

void git_scan_watch(struct git_scan *scan, const struct value *watched)
{
	for (size_t i = 0; i < value_count(watched); i++) {
		auto_free char *path = path_of_key(value_text(value_item(watched, i)));
		auto_close int fd = path != NULL ? scan_look_open_path(scan, path) : -1;

		if (fd >= 0)
			git_scan_worktree(scan, fd, path, 1);
	}
}

static void git_scan_deep(struct git_scan *scan, const struct git_scan_root *root);

/*
 * This search comes last, because a repository that is found in another way counts as
 * such.
 */
static void search_roots(struct git_scan *scan)
{
	scan->goes_through = true;
	for (size_t i = 0; value_count(scan->deep) > 0 && i < scan->root_count; i++) {
		auto_free char *key = path_key(scan->roots[i].path);

		if (value_has_text(scan->deep, key))
			git_scan_deep(scan, &scan->roots[i]);
	}
}

/* The time of the processor that this thread has taken. */
static int64_t worked_ns(void)
{
	struct timespec time;

	return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0 ? clock_ns(&time) : 0;
}

enum { BUSY_TIMES = 3 }; /* as in scan.h; a call's look must end in AUDIT_MS */

void git_scan_whole(struct git_scan *scan, int64_t work_ms)
{
	scan->work_end_ns = worked_ns() + work_ms * (CLOCK_SECOND_NS / 1000);
	scan->busy_ms = clock_now_ms() + work_ms;
	scan->deadline_ms = clock_now_ms() + BUSY_TIMES * work_ms;
	search_roots(scan);
}

bool git_scan_run(struct git_scan *scan, const struct value *watched,
		  const struct value *files, struct err *err)
{
	for (size_t i = 0; i < scan->root_count; i++) {
		const struct git_scan_root *root = &scan->roots[i];
		const struct scan_look look = {scan, root->fd, root->path};

		git_scan_worktree(scan, root->fd, root->path, 0);
		scan_look_names(&look, each_top, NULL);
	}
	git_scan_watch(scan, watched);
	for (size_t i = 0; i < value_count(files); i++) {
		auto_free char *path = path_of_key(value_text(value_item(files, i)));
		if (path != NULL && path[0] == '/')
			look_file(scan, path);
	}
	search_roots(scan);
	return scan->trouble.text[0] == '\0' ||
	       err_set(err, scan->trouble.code, "%s", scan->trouble.text);
}

int git_scan_open_parent(const struct git_scan *scan, const char *path, const char **name)
{
	struct git_scan own = *scan;
	const char *last = path_base_name(path);
	auto_free char *parent = memory_copy(path);

	parent[last - path - 1] = '\0';
	*name = last;
	return scan_look_open_path(&own, parent);
}

/* Finds the gitlinks of the repository that holds a root. */

struct above {
	const char *worktree, *folder;
	struct value *list;
};

static bool above_link(void *context, struct str path)
{
	const struct above *above = context;
	struct buf text;

	if (str_ends(path, STR("/")))
		return true;
	if (value_count(above->list) >= GIT_SCAN_LINKS)
		return false;
	buf_init(&text, PATH_MAX);
	if (buf_addf(&text, "%s/%.*s", above->worktree, (int)path.size, path.data) &&
	    path_within(text.data, above->folder)) {
		auto_free char *key = path_key(text.data);
		value_append(above->list, value_new_text(key));
	}
	buf_fini(&text);
	return true;
}

static bool above_read(const struct above *above, const char *index, struct err *err)
{
	struct git_index_reader reader = {.link = above_link,
					  .context = (void *)(uintptr_t)above};
	struct buf text;
	struct stat st;
	bool fine = true;

	if (lstat(index, &st) < 0 || !S_ISREG(st.st_mode))
		return true;
	buf_init(&text, GIT_INDEX_MAX);
	/*
	 * The size of the hashes is unknown. An index can be read with only one of the
	 * two sizes.
	 */
	if (fd_read_file(index, GIT_INDEX_MAX, &text, NULL)) {
		fine = readers_index_read(&reader, buf_str(&text), err);
		reader.sha256 = !fine;
		fine = fine || readers_index_read(&reader, buf_str(&text), err);
	}
	buf_fini(&text);
	return fine;
}

bool git_scan_above(const char *folder, struct value *list, struct err *err)
{
	auto_free char *at = memory_copy(folder);
	char index[PATH_MAX];
	struct stat st;

	for (char *slash = strrchr(at, '/'); slash != NULL && slash != at;
	     slash = strrchr(at, '/')) {
		*slash = '\0';
		const struct above above = {at, folder, list};

		if (snprintf(index, sizeof(index), "%s/.git", at) >= (int)sizeof(index))
			return true;
		if (lstat(index, &st) < 0)
			continue;
		if (snprintf(index, sizeof(index), "%s/.git/index", at) >=
		    (int)sizeof(index))
			return true;
		return above_read(&above, index, err);
	}
	return true;
}

/*
 * Finds new repositories inside a git folder, where other looks do not go. A symlink
 * elsewhere may lead to such a repository, and git uses it there like any other. Git
 * makes no repositories in its folder, and no symlinks either, through which other
 * programs (git-lfs) would write. Objects are in some 256 folders; only those that have
 * changed since the commands began are opened.
 */

enum {
	INSIDE_DEPTH = 64,
	/* in one git folder; other programs may keep folders there */
	INSIDE_FOLDERS = 4096,
};

struct inside {
	unsigned repository, depth; /* depth of repositories, and of folders */
	size_t *seen;
	bool of_objects; /* the names are those in `objects` */
	bool in_objects; /* the names are those in a folder of `objects` */
	/* a folder above has changed, so this one may have been moved here */
	bool moved;
};

/* Is NAME a folder that other functions look at completely? */
static bool has_own_look(const char *name)
{
	return str_among("modules worktrees logs refs rr-cache", str_of(name));
}

/*
 * Is NAME a folder? These checks are not counted in `looks`, because there are many
 * folders and nearly all are unchanged.
 */
static bool is_folder(const struct scan_look *look, const char *name, struct stat *st)
{
	return (fstatat(look->fd, name, st, AT_SYMLINK_NOFOLLOW) == 0 ||
		(errno == EACCES && scan_look_stat(look, name, st))) &&
	       S_ISDIR(st->st_mode);
}

static void each_inside(const struct scan_look *look, const char *name, void *context)
{
	const struct inside *above = context;
	struct git_scan *scan = look->scan;
	struct inside inside = *above;
	char path[PATH_MAX];
	struct stat st;

	if (above->in_objects)
		git_scan_left(look, "objects/??", name);
	if (look->type == DT_LNK && above->depth > 0 && !scan_look_is_aside(name) &&
	    scan_look_stat(look, name, &st) && clock_ns(&st.st_ctim) >= scan->inside_ns)
		scan_look_mark_stat(look, name, &st);
	if ((look->type != DT_DIR && look->type != DT_UNKNOWN) ||
	    (above->depth == 0 && has_own_look(name)) || !is_folder(look, name, &st))
		return;
	const bool changed = above->moved || clock_ns(&st.st_ctim) >= scan->inside_ns;
	if (!changed && (above->of_objects || st.st_nlink == 2))
		return;
	if (above->depth >= INSIDE_DEPTH || (*above->seen)++ >= INSIDE_FOLDERS) {
		if (changed)
			(void)scan_look_trouble(look, E2BIG, name);
		return;
	}
	auto_close int fd = scan_look_enter(look, name, path);
	if (fd < 0)
		return;
	const struct scan_look below = {scan, fd, path, DT_DIR};
	inside.depth++;
	inside.in_objects = above->of_objects;
	inside.of_objects = above->depth == 0 && strcmp(name, "objects") == 0;
	inside.moved = changed && !inside.of_objects;
	if (changed)
		git_scan_worktree(scan, fd, path, above->repository);
	scan_look_names(&below, each_inside, &inside);
}

void git_scan_inside(const struct scan_look *look, unsigned depth)
{
	size_t seen = 0;
	struct inside inside = {.repository = depth + 1, .seen = &seen};

	if (look->scan->inside_ns > 0)
		scan_look_names(look, each_inside, &inside);
}

/* How a scan opens and reads names. All files that a scan meets may be hostile. */

/* openat2 answers EAGAIN when it races with a rename elsewhere. */
enum { OPEN_TRIES = 64, NAMES_READ = 4096 };

bool scan_look_trouble(const struct scan_look *look, int code, const char *name)
{
	struct err *trouble = &look->scan->trouble;

	if (trouble->text[0] == '\0')
		(void)err_set(trouble, code, "%s/%s: %s", look->path, name, strerror(code));
	return false;
}

static int open_below(int at, const char *name, int flags)
{
	const struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd = -1;

	for (int i = 0; i < OPEN_TRIES; i++) {
		fd = syscall(SYS_openat2, at, name, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return (int)fd;
}

static bool budget(const struct scan_look *look)
{
	if (look->scan->looks++ < GIT_SCAN_LOOKS)
		return true;
	return scan_look_trouble(look, E2BIG, "");
}

/*
 * Make NAME accessible to its owner. A folder or file without rights for the owner would
 * be hidden from the scan, but the user may make it accessible later. Only NAME itself is
 * changed, never the target of a symlink.
 */
static void mend(const struct scan_look *look, const char *name, mode_t mode)
{
	struct stat st;

	if (fstatat(look->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(st.st_mode))
		(void)!fchmodat(look->fd, name, folder_mode_opened(st.st_mode, mode), 0);
}

static bool is_absence(int code)
{
	return code == ENOENT || code == ENOTDIR || code == ELOOP || code == EXDEV;
}

static int open_part(const struct scan_look *look, const char *name, int flags, mode_t mode)
{
	int fd = open_below(look->fd, name, flags);

	if (fd < 0 && errno == EACCES && look->scan->may_mend) {
		mend(look, name, mode);
		fd = open_below(look->fd, name, flags);
	}
	return fd;
}

/*
 * Is NAME inaccessible to us, and may we not change that? Then no command of the cell
 * could put a file there. The owner's number is not enough to decide: owners without a
 * mapping have the number of the user nobody, which may also be ours. So the kernel is
 * asked by a chmod.
 */
static bool is_somebodys(const struct scan_look *look, const char *name)
{
	struct stat st;

	return !look->scan->may_mend ||
	       (fstatat(look->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		(st.st_uid != geteuid() ||
		 (fchmodat(look->fd, name, folder_mode_opened(st.st_mode, 0), 0) < 0 &&
		  errno == EPERM)));
}

static int open_folder(const struct scan_look *look, const char *name)
{
	auto_free char *copy = memory_copy(name);
	auto_close int at = fcntl(look->fd, F_DUPFD_CLOEXEC, 0);
	char *rest = copy;

	while (at >= 0 && rest != NULL) {
		const struct scan_look here = {look->scan, at, look->path};
		const char *part = strsep(&rest, "/");

		if (!budget(look))
			return -1;
		int next = open_part(&here, part, O_RDONLY | O_DIRECTORY, S_IRWXU);
		if (next < 0) {
			int code = errno;
			if (!is_absence(code) &&
			    !(code == EACCES && is_somebodys(&here, part)))
				(void)scan_look_trouble(look, code, name);
			return -1;
		}
		fd_close(&at);
		at = next;
	}
	return fd_take(&at);
}

int scan_look_enter(const struct scan_look *look, const char *name, char path[PATH_MAX])
{
	if (snprintf(path, PATH_MAX, "%s/%s", look->path, name) >= PATH_MAX)
		return -1;
	return open_folder(look, name);
}

int scan_look_open_path(struct git_scan *scan, const char *path)
{
	for (size_t i = 0; i < scan->root_count; i++) {
		const struct git_scan_root *root = &scan->roots[i];
		const struct scan_look look = {scan, root->fd, root->path};

		if (path_within(path, root->path))
			return open_folder(&look, path_relative(path, root->path));
	}
	errno = EXDEV;
	return -1;
}

/* Like scan_look_open_path, for PATH below ROOT, with one system call when possible. */
static int look_open_whole(struct git_scan *scan, const struct git_scan_root *root,
			   const char *path)
{
	const struct scan_look look = {scan, root->fd, root->path};
	const char *name = path_relative(path, root->path);

	if (!budget(&look))
		return -1;
	int fd = open_below(root->fd, name, O_RDONLY | O_DIRECTORY);
	/*
	 * Going step by step, inaccessible folders can be opened to the owner, or an
	 * error is reported.
	 */
	if (fd < 0 && errno == EACCES)
		return open_folder(&look, name);
	if (fd < 0 && !is_absence(errno))
		(void)scan_look_trouble(&look, errno, name);
	return fd;
}

bool scan_look_may_hold(const struct scan_look *look, const char *folder, const char *name)
{
	char path[2 * NAME_MAX + 2];
	struct stat st;

	if (!budget(look) ||
	    snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return true;
	return fstatat(look->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 || !is_absence(errno);
}

/* A folder may be inaccessible to its owner though its names may be read. */
static bool mend_folder(const struct scan_look *look)
{
	struct stat st;

	return look->scan->may_mend && fstat(look->fd, &st) == 0 &&
	       fchmod(look->fd, folder_mode_opened(st.st_mode, S_IRWXU)) == 0;
}

bool scan_look_stat(const struct scan_look *look, const char *name, struct stat *st)
{
	if (!budget(look))
		return false;
	if (fstatat(look->fd, name, st, AT_SYMLINK_NOFOLLOW) == 0 ||
	    (errno == EACCES && mend_folder(look) &&
	     fstatat(look->fd, name, st, AT_SYMLINK_NOFOLLOW) == 0))
		return true;
	if (!is_absence(errno) && errno != EACCES)
		(void)scan_look_trouble(look, errno, name);
	return false;
}

enum look_found scan_look_read(const struct scan_look *look, const char *name, size_t max,
			       struct buf *content, struct stat *st)
{
	struct err err;

	buf_clear(content);
	if (!scan_look_stat(look, name, st))
		return LOOK_ABSENT;
	if (!S_ISREG(st->st_mode) || st->st_size > (off_t)max)
		return LOOK_ODD;
	auto_close int fd = open_part(look, name, O_RDONLY, S_IRUSR);
	if (fd < 0 && errno == ENOENT)
		return LOOK_ABSENT;
	if (fd < 0 || fstat(fd, st) < 0 || !S_ISREG(st->st_mode))
		return LOOK_ODD;
	return fd_read_all(fd, content, name, &err) ? LOOK_READ : LOOK_ODD;
}

/* Is the time of SCAN over? Then `partial` is set. */
static bool look_is_late(struct git_scan *scan)
{
	const int64_t now_ms = scan->deadline_ms != 0 ? clock_now_ms() : 0;

	/* A thread has not worked longer than the clock went, and its own time is dear. */
	if (scan->deadline_ms == 0 || now_ms < scan->busy_ms ||
	    (now_ms < scan->deadline_ms && worked_ns() < scan->work_end_ns))
		return false;
	scan->partial = true;
	return true;
}

bool scan_look_is_aside(const char *name)
{
	return strstr(name, GIT_QUARANTINE) != NULL;
}

bool scan_look_is_straight(const char *text)
{
	bool named = text[0] == '/';

	while (*text != '\0') {
		const size_t size = strcspn(text, "/");
		const bool up = size == 2 && text[0] == '.' && text[1] == '.';

		if (up && named)
			return false;
		named = named || (size > 0 && !up && (size > 1 || text[0] != '.'));
		text += size;
		text += *text == '/';
	}
	return true;
}

bool scan_look_line_path(const struct scan_look *look, const char *name, const char *from,
			 struct buf *path)
{
	struct buf text;
	struct stat st;
	struct str line;
	bool fine;

	buf_init(&text, GIT_POINTER_MAX);
	fine = scan_look_read(look, name, GIT_POINTER_MAX, &text, &st) == LOOK_READ &&
	       readers_text_line(buf_str(&text), &line);
	if (fine) {
		auto_free char *copy = memory_copy_str(line);
		buf_clear(path);
		fine = scan_look_is_straight(copy) && path_normal(from, copy, path);
	}
	buf_fini(&text);
	return fine;
}

/* Call EACH for NAME. False: the ceiling is reached. */
static bool name_give(struct scan_look *here, const char *name, int type,
		      void (*each)(const struct scan_look *look, const char *name,
				   void *context),
		      void *context)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return true;
	if (here->scan->names++ >= GIT_SCAN_NAMES)
		return scan_look_trouble(here, E2BIG, ".");
	here->type = type;
	each(here, name, context);
	return true;
}

static int open_names(const struct scan_look *look)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int fd = openat(look->fd, ".", flags);

	if (fd < 0 && errno == EACCES && mend_folder(look))
		fd = openat(look->fd, ".", flags);
	return fd;
}

void scan_look_names(const struct scan_look *look,
		     void (*each)(const struct scan_look *look, const char *name,
				  void *context),
		     void *context)
{
	/* The kernel's records, without the 32 KiB of the C library's reader. */
	_Alignas(struct dirent64) char bytes[NAMES_READ];
	auto_close int fd = open_names(look);
	struct scan_look here = *look;
	ssize_t size = -1;
	bool more = fd >= 0;

	while (more && (size = getdents64(fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t at = 0; more && at < size;) {
			const struct dirent64 *entry = (const void *)(bytes + at);

			more = name_give(&here, entry->d_name, entry->d_type, each, context);
			at += entry->d_reclen;
		}
		more = more && !look_is_late(look->scan);
	}
	if (size < 0)
		(void)scan_look_trouble(look, errno, ".");
}

/*
 * Decides whether a file was at its place before a moment. An old file may have been
 * moved there later together with a folder. Such a rename changes the moved folder and
 * the folder that it comes into, but nothing below. So the times of all folders up to
 * the root are compared.
 */

/* Is CHANGED at or after BEFORE_NS? */
static bool look_is_since(const struct timespec *changed, int64_t before_ns)
{
	return clock_ns(changed) >= before_ns;
}

/*
 * Does PLACES have the folder PATH with the inode of ST, so that it was not moved there
 * since?
 */
static bool look_is_in_place(const struct value *places, const char *path,
			     const struct stat *st)
{
	auto_free char *key = places != NULL ? path_key(path) : NULL;
	const struct value *inode = key != NULL ? value_member(places, key) : NULL;

	return inode != NULL && value_integer(inode) == (int64_t)st->st_ino;
}

/* The way down from a root to the file. */
struct way {
	const struct git_scan *scan;
	const struct git_scan_when *when;
	int64_t before_ns;
	bool above_changed; /* the folder above has changed */
	enum git_scan_age age;
};

static void grow(struct way *way, enum git_scan_age age)
{
	if (age > way->age)
		way->age = age;
}

/* Take account of the folder PATH, with the status ST, which is on the way. */
static void pass(struct way *way, const char *path, const struct stat *st)
{
	const bool changed = look_is_since(&st->st_ctim, way->before_ns);

	/*
	 * A rename changes only the ctime of the moved folder. A new name in it changes
	 * its mtime, too, and then a move is only possible, not certain.
	 */
	if (changed && way->above_changed && !look_is_in_place(way->when->places, path, st))
		grow(way, look_is_since(&st->st_mtim, way->before_ns) ? GIT_SCAN_DOUBTFUL
								      : GIT_SCAN_NEW);
	/* A changed repository may have become one by its last change. */
	auto_free char *key = changed ? path_key(path) : NULL;
	if (changed && value_member(way->scan->repositories, key) != NULL)
		grow(way, GIT_SCAN_DOUBTFUL);
	way->above_changed = changed;
}

/* Go from the folder ROOT down PATH, whose part from REST on is relative to ROOT. */
static void descend(struct way *way, int root, char *path, char *rest)
{
	auto_close int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
	struct stat st;

	while (at >= 0) {
		char *slash = strchr(rest, '/');

		if (slash != NULL)
			*slash = '\0';
		if (fstatat(at, rest, &st, AT_SYMLINK_NOFOLLOW) < 0)
			break;
		if (slash == NULL) {
			if (look_is_since(&st.st_ctim, way->before_ns))
				grow(way, GIT_SCAN_NEW);
			return;
		}
		pass(way, path, &st);
		int next = openat(at, rest, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		*slash = '/';
		rest = slash + 1;
		fd_close(&at);
		at = next;
	}
	grow(way, GIT_SCAN_NEW);
}

enum git_scan_age git_scan_age(const struct git_scan *scan, const char *key,
			       const struct git_scan_when *when)
{
	auto_free char *path = path_of_key(key);
	struct way way = {.scan = scan, .when = when, .before_ns = when->before_ns};
	struct stat st;

	for (size_t i = 0; path != NULL && i < scan->root_count; i++) {
		const struct git_scan_root *root = &scan->roots[i];

		if (!path_within(path, root->path) || strcmp(path, root->path) == 0)
			continue;
		if (fstat(root->fd, &st) < 0)
			return GIT_SCAN_NEW;
		way.above_changed = look_is_since(&st.st_ctim, way.before_ns);
		const size_t size = strlen(path_relative(path, root->path));
		descend(&way, root->fd, path, path + strlen(path) - size);
		return way.age;
	}
	return GIT_SCAN_NEW;
}

/*
 * Finds repositories further down than git_scan_run looks by itself, those near the root
 * first. Folders are opened by their whole path beneath the root and not kept open, so a
 * tree may be of any depth. Most folders have no subfolders; they are not opened when
 * the link count shows it.
 */

/* Changes to a folder since git_scan.when. */
enum state {
	STATE_CHANGED = 1,
	STATE_MOVED = 2, /* perhaps the folder, or one above it, was moved */
};

/* The folders that wait to be read, and findings about the one being read. */
struct deep {
	const struct git_scan_root *root;
	bool counts_folders; /* the link count of a folder is 2 plus its subfolders */
	size_t seen;
	char **paths;          /* relative to the root; "" is the root */
	unsigned char *states; /* enum state of each */
	unsigned state;        /* of the folder being read */
	/* of the waiting folders: a hostile tree may have long names */
	size_t count, bytes;
	const char *at;
	bool is_repository;
};

/*
 * Can the folder NAME with the status ST be left out? It has no subfolders, and is no new
 * repository (`.git` file, or HEAD) whose folders are elsewhere.
 */
static bool is_empty(const struct scan_look *look, const char *name,
		     const struct stat *st, unsigned state)
{
	/*
	 * An unchanged folder has no new names, because a new name changes its ctime,
	 * which no program can set.
	 */
	return st->st_nlink == 2 &&
	       (state == 0 || (!scan_look_may_hold(look, name, ".git") &&
			       !scan_look_may_hold(look, name, "HEAD")));
}

/* The state of PATH, with the status ST, in the folder being read. */
static unsigned state_of(const struct git_scan *scan, const struct deep *deep,
			 const char *path, const struct stat *st)
{
	const unsigned changed =
		look_is_since(&st->st_ctim, scan->when.before_ns) ? STATE_CHANGED : 0;
	const unsigned moved = deep->state & STATE_MOVED;

	if (changed == 0 || moved != 0 || (deep->state & STATE_CHANGED) == 0 ||
	    look_is_in_place(scan->when.places, path, st))
		return changed | moved;
	return changed | STATE_MOVED;
}

/*
 * Set `partial`, and note the first folder that is left out, so that the report can name
 * it.
 */
static void miss(struct git_scan *scan, const struct git_scan_root *root, const char *path)
{
	struct buf whole;

	scan->partial = true;
	if (scan->missed != NULL)
		return;
	buf_init(&whole, 2 * PATH_MAX);
	(void)buf_addf(&whole, "%s%s%s", root->path, path[0] != '\0' ? "/" : "", path);
	scan->missed = buf_take(&whole);
}

static void note_place(struct git_scan *scan, const char *path, const struct stat *st)
{
	if (!scan->wants_places || value_count(scan->places) >= GIT_SCAN_PLACES)
		return;
	auto_free char *key = path_key(path);
	value_set_integer(git_scan_list(&scan->places), key, (int64_t)st->st_ino);
}

static void push(const struct scan_look *look, struct deep *deep, const char *name)
{
	struct git_scan *scan = look->scan;
	char path[PATH_MAX];
	unsigned state = 0;
	struct stat st;

	if (deep->seen >= scan->folders_max || deep->bytes >= GIT_SCAN_PATHS) {
		miss(scan, deep->root, deep->at);
		return;
	}
	deep->seen++;
	/* No program can open a longer path, so git cannot either. */
	if (snprintf(path, sizeof(path), "%s/%s", look->path, name) >= (int)sizeof(path))
		return;
	if ((deep->counts_folders || scan->wants_places) &&
	    fstatat(look->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		state = state_of(scan, deep, path, &st);
		if (deep->counts_folders && is_empty(look, name, &st, state))
			return;
		note_place(scan, path, &st);
	}
	char *relative = memory_copy(path_relative(path, deep->root->path));
	deep->bytes += strlen(relative);
	deep->states[deep->count] = (unsigned char)state;
	deep->paths[deep->count++] = relative;
}

static void each_below(const struct scan_look *look, const char *name, void *context)
{
	struct deep *deep = context;
	int type = look->type;
	struct stat st;

	if (strcmp(name, ".git") == 0 || strcmp(name, "HEAD") == 0)
		deep->is_repository = true;
	if (type == DT_UNKNOWN && scan_look_stat(look, name, &st))
		type = (int)IFTODT(st.st_mode);
	if (type == DT_DIR && strcmp(name, ".git") != 0)
		push(look, deep, name);
}

/* git_scan_run has already looked at the root and the folders directly in it. */
static bool is_near(const char *path)
{
	return strchr(path, '/') == NULL;
}

/* When each repository is judged by itself, the ceilings count for each one anew. */
static void give(struct git_scan *scan)
{
	if (scan->each == NULL)
		return;
	scan->each(scan, scan->context);
	git_scan_forget(scan);
}

static void note_nested(struct git_scan *scan, const char *path)
{
	auto_free char *key = path_key(path);

	if (scan->nested == NULL)
		scan->nested = value_new_array();
	value_append(scan->nested, value_new_text(key));
}

static void look_deep(struct git_scan *scan, const struct git_scan_root *root,
		      struct deep *deep)
{
	const struct scan_look above = {scan, root->fd, root->path, DT_DIR};
	char path[PATH_MAX];

	if (scan->each != NULL)
		scan->looks = scan->names = 0;
	/*
	 * Nothing below this folder will be read. Looking for two names costs less than
	 * reading all of them.
	 */
	if (deep->seen >= scan->folders_max &&
	    !scan_look_may_hold(&above, deep->at, ".git") &&
	    !scan_look_may_hold(&above, deep->at, "HEAD")) {
		miss(scan, root, deep->at);
		return;
	}
	if (snprintf(path, sizeof(path), "%s%s%s", root->path,
		     deep->at[0] != '\0' ? "/" : "", deep->at) >= (int)sizeof(path))
		return;
	auto_close int fd = look_open_whole(scan, root, path);
	const struct scan_look look = {scan, fd, path, DT_DIR};
	if (fd < 0)
		return;
	deep->is_repository = false;
	scan_look_names(&look, each_below, deep);
	if (!deep->is_repository || is_near(deep->at))
		return;
	if (scan->each == NULL)
		note_nested(scan, path);
	git_scan_worktree(scan, fd, path, 1);
	give(scan);
}

/*
 * Does the link count of a folder tell the number of its subfolders? Other file systems
 * say 1 or any number.
 */
static bool counts_folders(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == TMPFS_MAGIC ||
		fs.f_type == XFS_SUPER_MAGIC);
}

/* Find repositories anywhere below ROOT, except those near ROOT. */
static void git_scan_deep(struct git_scan *scan, const struct git_scan_root *root)
{
	struct deep deep = {.root = root,
			    .paths = memory_array(scan->folders_max, sizeof(char *)),
			    .states = memory_array(scan->folders_max, 1),
			    .counts_folders = counts_folders(root->fd),
			    .at = ""};
	struct stat st;

	if (deep.counts_folders && fstat(root->fd, &st) == 0)
		deep.state = state_of(scan, &deep, root->path, &st);
	look_deep(scan, root, &deep);
	for (size_t i = 0; i < deep.count; i++) {
		deep.at = deep.paths[i];
		deep.state = deep.states[i];
		if (look_is_late(scan))
			miss(scan, root, deep.at);
		else
			look_deep(scan, root, &deep);
		deep.bytes -= strlen(deep.at);
		free(deep.paths[i]);
	}
	scan->folders += deep.seen;
	free(deep.states);
	free(deep.paths);
}

/*
 * Finds the files that a killed git leaves in a git folder: locks, which stop every
 * later git, and temporary files. A git that ends normally removes them.
 */

/* The most items of one scan; a later scan finds the rest. */
enum { LEFT_MAX = 256 };

/*
 * Temporary files that are no locks, by the beginning of their name. They stop no other
 * git.
 */
static const struct {
	const char *folder, *begins;
} temporary[] = {
	{"", "packed-refs.new"},
	{"", "index.stash."},
	{"info", "refs_"},
	{"objects", "tmp_"},
	{"objects/??", "tmp_obj_"},
	{"objects/info", "packs_"},
	{"objects/info/commit-graphs", "tmp_graph_"},
	{"objects/pack", "tmp_"},
	{"objects/pack", ".tmp-"},
};

bool git_scan_is_lock(const char *name)
{
	/* No reference can have such a name, because git refuses the ending. */
	return str_ends(str_of(name), STR(".lock")) || strcmp(name, "gc.pid") == 0;
}

static bool is_left(const char *folder, const char *name)
{
	/* In `objects` there are locks only near the top. */
	if (git_scan_is_lock(name))
		return strcmp(folder, "objects/??") != 0;
	for (size_t i = 0; i < sizeof(temporary) / sizeof(temporary[0]); i++) {
		if (strcmp(temporary[i].folder, folder) == 0 &&
		    strncmp(temporary[i].begins, name, strlen(temporary[i].begins)) == 0)
			return true;
	}
	return false;
}

void git_scan_left(const struct scan_look *look, const char *folder, const char *name)
{
	struct git_scan *scan = look->scan;
	char path[PATH_MAX], file[GIT_SCAN_FILE];
	struct stat st;

	if (scan->left_ns == 0 || !is_left(folder, name) ||
	    value_count(scan->left) >= LEFT_MAX || !scan_look_stat(look, name, &st) ||
	    !S_ISREG(st.st_mode) || clock_ns(&st.st_ctim) < scan->left_ns ||
	    snprintf(path, sizeof(path), "%s/%s", look->path, name) >= (int)sizeof(path))
		return;
	auto_free char *key = path_key(path);
	struct value *left = value_new_object();
	git_scan_print_file(&st, file);
	value_set_text(left, "file", file);
	value_set_boolean(left, "shared", strstr(path, "/worktrees/") != NULL);
	value_set(git_scan_list(&scan->left), key, left);
}

void git_scan_print_file(const struct stat *st, char text[GIT_SCAN_FILE])
{
	(void)snprintf(text, GIT_SCAN_FILE, "%jx:%jx:%jd.%09ld", (uintmax_t)st->st_dev,
		       (uintmax_t)st->st_ino, (intmax_t)st->st_ctim.tv_sec,
		       st->st_ctim.tv_nsec);
}
