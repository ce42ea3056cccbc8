/* scan: the set of marks, and the decision where to look for repositories. */

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
#include <search.h>
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

/* The set of marks. */

/* The members of a set in JSON. NULL: the kind is not printed. */
static const struct {
	const char *name;
	enum { KIND_PATH, KIND_TEXT, KIND_NAMES } form;
} kinds[MARK_KINDS] = {
	[MARK_WATCHED] = {"watched", KIND_PATH}, [MARK_FILE] = {"files", KIND_PATH},
	[MARK_OPENED] = {"opened", KIND_PATH},   [MARK_DANGER] = {"dangers", KIND_TEXT},
	[MARK_LEAD] = {"leads", KIND_TEXT},      [MARK_NAMES] = {"indexes", KIND_NAMES},
	[MARK_PLACE] = {"places", KIND_TEXT},
};

static int mark_compare(const void *a, const void *b)
{
	const struct mark *one = a, *other = b;

	if (one->kind != other->kind)
		return one->kind < other->kind ? -1 : 1;
	return strcmp(one->path, other->path);
}

/* The tree does not own its marks. */
static void mark_stays(void *mark)
{
	(void)mark;
}

void marks_fini(struct marks *marks)
{
	tdestroy(marks->tree, mark_stays);
	for (size_t i = 0; i < marks->count; i++) {
		free(marks->items[i]->path);
		free(marks->items[i]->text);
		free(marks->items[i]);
	}
	free(marks->items);
	*marks = (struct marks){0};
}

/* The mark in the set, for change. */
static struct mark *mark_at(const struct marks *marks, enum mark_kind kind, const char *path)
{
	const struct mark wanted = {.kind = kind, .path = (char *)(uintptr_t)path};
	struct mark *const *node;

	if (marks == NULL || marks->counts[kind] == 0)
		return NULL;
	/* A node of the tree begins with the pointer to its item: tsearch(3). */
	node = tfind(&wanted, &marks->tree, mark_compare);
	return node != NULL ? *node : NULL;
}

const struct mark *marks_find(const struct marks *marks, enum mark_kind kind,
			      const char *path)
{
	return mark_at(marks, kind, path);
}

const struct mark *marks_find_above(const struct marks *marks, enum mark_kind kind,
				    const char *path)
{
	auto_free char *at = memory_copy(path);
	const struct mark *mark = marks_find(marks, kind, at);

	while (mark == NULL && at[0] == '/') {
		at[path_base_name(at) - at - 1] = '\0';
		mark = marks_find(marks, kind, at);
	}
	return mark;
}

struct mark *marks_add(struct marks *marks, enum mark_kind kind, const char *path,
		       struct str text)
{
	struct mark *mark = mark_at(marks, kind, path);
	char *copy = memory_copy_str(text);

	if (mark == NULL) {
		mark = memory_alloc(sizeof(*mark));
		*mark = (struct mark){.kind = kind,
				      .index = marks->count,
				      .path = memory_copy(path)};
		marks->items =
			memory_more(marks->items, marks->count, sizeof(struct mark *));
		marks->items[marks->count++] = mark;
		marks->counts[kind]++;
		if (tsearch(mark, &marks->tree, mark_compare) == NULL)
			memory_exhausted(sizeof(*mark));
	}
	free(mark->text);
	mark->text = copy;
	mark->size = text.size;
	return mark;
}

const struct mark *marks_next(const struct marks *marks, enum mark_kind kind,
			      const struct mark *mark)
{
	if (marks == NULL || marks->counts[kind] == 0)
		return NULL;
	for (size_t i = mark != NULL ? mark->index + 1 : 0; i < marks->count; i++) {
		if (marks->items[i]->kind == kind)
			return marks->items[i];
	}
	return NULL;
}

static struct value *text_print(const char *text)
{
	auto_free char *key = path_key(text);

	return value_new_text(key);
}

static void mark_print(const struct mark *mark, struct value *member)
{
	auto_free char *key = path_key(mark->path);
	struct value *list;

	switch (kinds[mark->kind].form) {
	case KIND_PATH:
		value_append(member, value_new_text(key));
		break;
	case KIND_TEXT:
		value_set(member, key, text_print(mark->text));
		break;
	case KIND_NAMES:
		list = value_new_array();
		for (size_t at = 0; at < mark->size; at += strlen(mark->text + at) + 1)
			value_append(list, text_print(mark->text + at));
		value_set(member, key, list);
		break;
	}
}

void marks_print(const struct marks *marks, struct value *object)
{
	for (enum mark_kind kind = 0; kind < MARK_KINDS; kind++) {
		if (kinds[kind].name == NULL || marks->counts[kind] == 0)
			continue;
		struct value *member = kinds[kind].form == KIND_PATH ? value_new_array()
								     : value_new_object();
		for (const struct mark *mark = marks_next(marks, kind, NULL);
		     mark != NULL; mark = marks_next(marks, kind, mark))
			mark_print(mark, member);
		value_set(object, kinds[kind].name, member);
	}
}

/* Add the mark KEY of KIND, with its text or names in VALUE. */
static void mark_parse(enum mark_kind kind, const char *key, const struct value *value,
		       struct marks *marks)
{
	auto_free char *path = path_of_key(key);
	auto_free char *text = path_of_key(value_text(value));
	struct buf names;

	if (path == NULL || path[0] != '/' ||
	    (kinds[kind].form == KIND_TEXT && text == NULL))
		return;
	buf_init(&names, GIT_SCAN_PATHS);
	for (size_t i = 0; kinds[kind].form == KIND_NAMES && i < value_count(value); i++) {
		auto_free char *name = path_of_key(value_text(value_item(value, i)));

		/* With a name less, the index or folder would look as if it did not hold it. */
		if (name == NULL || !buf_add(&names, name, strlen(name) + 1)) {
			buf_fini(&names);
			return;
		}
	}
	(void)marks_add(marks, kind, path,
			kinds[kind].form == KIND_NAMES ? buf_str(&names) : str_of(text));
	buf_fini(&names);
}

void marks_parse(const struct value *object, struct marks *marks)
{
	for (enum mark_kind kind = 0; kind < MARK_KINDS; kind++) {
		const struct value *member =
			kinds[kind].name != NULL ? value_member(object, kinds[kind].name)
						 : NULL;

		if (kinds[kind].form == KIND_PATH) {
			for (size_t i = 0; i < value_count(member); i++)
				mark_parse(kind, value_text(value_item(member, i)), NULL,
					   marks);
			continue;
		}
		for (void *at = value_first(member); at != NULL; at = value_next(member, at))
			mark_parse(kind, value_key(at), value_at(at), marks);
	}
}

void git_left_fini(struct git_left *left)
{
	for (size_t i = 0; i < left->count; i++) {
		free(left->items[i].path);
		free(left->items[i].held);
	}
	free(left->items);
	*left = (struct git_left){0};
}

struct git_left_file *git_left_add(struct git_left *left, const char *path, const char *file)
{
	for (size_t i = 0; i < left->count; i++) {
		if (strcmp(left->items[i].path, path) == 0)
			return &left->items[i];
	}
	if (left->count >= GIT_LEFT_MAX || strlen(file) >= GIT_SCAN_FILE)
		return NULL;
	left->items = memory_grow(left->items, left->count + 1, sizeof(*left->items));
	struct git_left_file *item = &left->items[left->count++];
	*item = (struct git_left_file){.path = memory_copy(path)};
	memcpy(item->file, file, strlen(file) + 1);
	return item;
}

/* The places at which a scan looks by itself. */

void git_scan_fini(struct git_scan *scan)
{
	marks_fini(&scan->found);
	git_left_fini(&scan->left);
	free(scan->missed);
}

static void each_top(const struct scan_look *look, const char *name, void *context)
{
	char path[PATH_MAX];

	(void)context;
	if (look->scan->since_ns > 0)
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

/* Look at the folders that KNOWN (NULL: none) watches. */
static void look_watched(struct git_scan *scan, const struct marks *known)
{
	for (const struct mark *mark = marks_next(known, MARK_WATCHED, NULL);
	     mark != NULL; mark = marks_next(known, MARK_WATCHED, mark)) {
		auto_close int fd = scan_look_open_path(scan, mark->path);

		if (fd >= 0)
			git_scan_worktree(scan, fd, mark->path, 1);
	}
}

static void root_walk(struct git_scan *scan, struct git_scan_root *root);

/* The walks come last: a repository that is found in another way counts as such. */
static void roots_walk(struct git_scan *scan)
{
	scan->goes_through = true;
	for (size_t i = 0; i < scan->root_count; i++) {
		if (scan->roots[i].walk)
			root_walk(scan, &scan->roots[i]);
	}
}

/* The time of the processor that this thread has taken. */
static int64_t worked_ns(void)
{
	struct timespec time;

	return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0 ? clock_ns(&time) : 0;
}

enum { BUSY_TIMES = 3 }; /* as in scan.h; the look of a call must end in AUDIT_MS */

/* The walks end in time, for a person waits for them. */
static void time_begin(struct git_scan *scan)
{
	scan->work_end_ns = worked_ns() + scan->work_ms * (CLOCK_SECOND_NS / 1000);
	scan->busy_ms = clock_now_ms() + scan->work_ms;
	scan->deadline_ms = clock_now_ms() + BUSY_TIMES * scan->work_ms;
}

/* Look at all that a scan looks at without a walk. */
static void look_near(struct git_scan *scan)
{
	/* First, so that the depth of repositories inside each other is not theirs. */
	look_watched(scan, scan->more);
	for (size_t i = 0; i < scan->root_count; i++) {
		const struct git_scan_root *root = &scan->roots[i];
		const struct scan_look look = {scan, root->fd, root->path};

		git_scan_worktree(scan, root->fd, root->path, 0);
		scan_look_names(&look, each_top, NULL);
	}
	look_watched(scan, scan->known);
	for (const struct mark *mark = marks_next(scan->known, MARK_FILE, NULL);
	     mark != NULL; mark = marks_next(scan->known, MARK_FILE, mark))
		look_file(scan, mark->path);
}

bool git_scan_run(struct git_scan *scan, struct err *err)
{
	if (scan->part == GIT_SCAN_ALL)
		look_near(scan);
	else if (scan->part == GIT_SCAN_WATCHED)
		look_watched(scan, scan->more);
	else
		time_begin(scan);
	if (scan->part != GIT_SCAN_WATCHED)
		roots_walk(scan);
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
	struct marks *marks;
};

static bool above_link(void *context, struct str path)
{
	const struct above *above = context;
	struct buf text;

	if (str_ends(path, STR("/")))
		return true;
	if (above->marks->counts[MARK_WATCHED] >= GIT_SCAN_LINKS)
		return false;
	buf_init(&text, PATH_MAX);
	if (buf_addf(&text, "%s/%.*s", above->worktree, (int)path.size, path.data) &&
	    path_within(text.data, above->folder))
		(void)marks_add(above->marks, MARK_WATCHED, text.data, STR(""));
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

bool git_scan_above(const char *folder, struct marks *marks, struct err *err)
{
	auto_free char *at = memory_copy(folder);
	char index[PATH_MAX];
	struct stat st;

	for (char *slash = strrchr(at, '/'); slash != NULL && slash != at;
	     slash = strrchr(at, '/')) {
		*slash = '\0';
		const struct above above = {at, folder, marks};

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

	if (fd < 0 && errno == EACCES && look->scan->in_cell) {
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

	return !look->scan->in_cell ||
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

	return look->scan->in_cell && fstat(look->fd, &st) == 0 &&
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

enum { INODE_TEXT = 24 };

static void inode_print(const struct stat *st, char text[INODE_TEXT])
{
	(void)snprintf(text, INODE_TEXT, "%ju", (uintmax_t)st->st_ino);
}

/*
 * Does PLACES have the folder PATH with the inode of ST, so that it was not moved there
 * since?
 */
static bool look_is_in_place(const struct marks *places, const char *path,
			     const struct stat *st)
{
	const struct mark *place = marks_find(places, MARK_PLACE, path);
	char inode[INODE_TEXT];

	inode_print(st, inode);
	return place != NULL && strcmp(place->text, inode) == 0;
}

/* The way down from a root to the file. */
struct way {
	const struct git_scan *scan;
	const struct git_scan_when *when;
	int64_t before_ns;
	bool above_changed; /* the folder above has changed */
	bool of_content;    /* a folder at its end is as new as the newest name in it */
	unsigned depth;     /* in that folder */
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
	if (changed && marks_find(&way->scan->found, MARK_REPOSITORY, path) != NULL)
		grow(way, GIT_SCAN_DOUBTFUL);
	way->above_changed = changed;
}

static void age_below(struct way *way, const struct scan_look *above, const char *name);

static void each_age(const struct scan_look *look, const char *name, void *context)
{
	struct way *way = context;
	struct stat st;

	if (!scan_look_stat(look, name, &st) || look_is_since(&st.st_ctim, way->before_ns))
		grow(way, GIT_SCAN_NEW);
	else if (S_ISDIR(st.st_mode) && way->age != GIT_SCAN_NEW)
		age_below(way, look, name);
}

/* Take account of all that is in the folder NAME in ABOVE. */
static void age_below(struct way *way, const struct scan_look *above, const char *name)
{
	char path[PATH_MAX];
	auto_close int fd = scan_look_enter(above, name, path);
	const struct scan_look look = {above->scan, fd, path, DT_DIR};

	if (fd < 0 || way->depth >= GIT_SCAN_TREE) {
		grow(way, GIT_SCAN_NEW);
		return;
	}
	way->depth++;
	scan_look_names(&look, each_age, way);
	way->depth--;
}

/*
 * The folder NAME in AT is a danger because of its content. A file that is overwritten
 * changes no folder.
 */
static void age_content(struct way *way, int at, const char *path, const char *name)
{
	struct git_scan own = *way->scan;
	auto_free char *parent = memory_copy(path);
	const struct scan_look look = {&own, at, parent, DT_DIR};

	parent[path_base_name(path) - path - 1] = '\0';
	own.deadline_ms = 0; /* names that are left out would count as old */
	own.trouble.text[0] = '\0';
	age_below(way, &look, name);
	if (own.trouble.text[0] != '\0')
		grow(way, GIT_SCAN_NEW);
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
			else if (S_ISDIR(st.st_mode) && way->of_content)
				age_content(way, at, path, rest);
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

enum git_scan_age git_scan_age(const struct git_scan *scan, const struct mark *mark,
			       const struct git_scan_when *when)
{
	const char *path = mark->path;
	auto_free char *copy = memory_copy(path);
	struct way way = {
		.scan = scan,
		.when = when,
		.before_ns = when->before_ns,
		.of_content = !str_starts(str_of(mark->text), STR(GIT_SCAN_FOLDER)),
	};
	struct stat st;

	for (size_t i = 0; i < scan->root_count; i++) {
		const struct git_scan_root *root = &scan->roots[i];

		if (!path_within(path, root->path) || strcmp(path, root->path) == 0)
			continue;
		if (fstat(root->fd, &st) < 0)
			return GIT_SCAN_NEW;
		way.above_changed = look_is_since(&st.st_ctim, way.before_ns);
		const size_t size = strlen(path_relative(path, root->path));
		descend(&way, root->fd, copy, copy + strlen(path) - size);
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

/* Changes to a folder since `before_ns` of a walk. */
enum state {
	STATE_CHANGED = 1,
	STATE_MOVED = 2, /* perhaps the folder, or one above it, was moved */
};

/* The folders that wait to be read, and findings about the one being read. */
struct deep {
	struct git_scan_root *root;
	int64_t before_ns;   /* older folders may be left out; 0: none */
	int64_t layer_ns;    /* older ones are below the layer; 0: it is none */
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
		look_is_since(&st->st_ctim, deep->before_ns) ? STATE_CHANGED : 0;
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
static void miss(struct git_scan *scan, struct git_scan_root *root, const char *path)
{
	struct buf whole;

	scan->partial = root->partial = true;
	if (scan->missed != NULL)
		return;
	buf_init(&whole, 2 * PATH_MAX);
	(void)buf_addf(&whole, "%s%s%s", root->path, path[0] != '\0' ? "/" : "", path);
	scan->missed = buf_take(&whole);
}

static void note_place(struct git_scan *scan, const char *path, const struct stat *st)
{
	char inode[INODE_TEXT];

	if (scan->in_cell || scan->found.counts[MARK_PLACE] >= GIT_SCAN_PLACES)
		return;
	inode_print(st, inode);
	(void)marks_add(&scan->found, MARK_PLACE, path, str_of(inode));
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
	if ((deep->counts_folders || !scan->in_cell || deep->layer_ns > 0) &&
	    fstatat(look->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (deep->layer_ns > 0 && !look_is_since(&st.st_ctim, deep->layer_ns))
			return;
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

/* look_near has already looked at the root and the folders directly in it. */
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
	marks_fini(&scan->found);
}

static void look_deep(struct git_scan *scan, struct git_scan_root *root, struct deep *deep)
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
		(void)marks_add(&scan->found, MARK_WATCHED, path, STR(""));
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
static void root_walk(struct git_scan *scan, struct git_scan_root *root)
{
	struct deep deep = {.root = root,
			    .before_ns = root->aged ? scan->when.before_ns : 0,
			    .layer_ns = root->layer ? scan->when.before_ns : 0,
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
	root->folders = deep.seen;
	scan->folders += deep.seen;
	free(deep.states);
	free(deep.paths);
}

void git_scan_print_file(const struct stat *st, char text[GIT_SCAN_FILE])
{
	(void)snprintf(text, GIT_SCAN_FILE, "%jx:%jx:%jd.%09ld", (uintmax_t)st->st_dev,
		       (uintmax_t)st->st_ino, (intmax_t)st->st_ctim.tv_sec,
		       st->st_ctim.tv_nsec);
}
