/*
 * repository: looks at one git folder (`.git`, a bare repository, a linked
 * worktree's part) for names that make git run a program or look elsewhere. See
 * gitrepository-layout(5).
 */

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "base/value.h"
#include "guard/readers.h"
#include "guard/scan.h"
#include "policy/autoexec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

/* One git folder that the scan looks at. */
struct git_folder {
	struct scan_look look;
	const char *worktree; /* the worktree of the git folder; NULL: none */
	unsigned depth;       /* of repositories inside each other */
	/* its object names are long, according to its configuration */
	bool sha256;
};

/*
 * Look at a git folder and everything in it. WORKTREE: the worktree that it belongs to,
 * or NULL.
 */
static void repository_look(struct git_scan *scan, int fd, const char *path,
			    const char *worktree, unsigned depth);

/*
 * Does TEXT lead to the same place as its normal form, even with symlinks on the way? A
 * ".." behind a name is the parent of the folder that the kernel has reached, which a
 * symlink may have placed elsewhere.
 */
static bool is_straight(const char *text)
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

/* As path_normal, for the TEXT of a pointer (scan.h, `at`). */
static bool pointer_path(const struct git_scan *scan, const char *from, const char *text,
			 struct buf *path)
{
	if (!path_normal(from, text, path))
		return false;
	if (scan->at != NULL && scan->own != NULL)
		(void)path_move(path, scan->at, scan->own);
	return true;
}

/*
 * Put into PATH the path in the one-line file NAME (readers.h), made normal relative to
 * FROM.
 */
static bool line_path(const struct scan_look *look, const char *name, const char *from,
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
		fine = is_straight(copy) && pointer_path(look->scan, from, copy, path);
	}
	buf_fini(&text);
	return fine;
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

/* Writes down findings: paths and fingerprints. */

enum { NAME_TEXT_MAX = 2 * PATH_MAX };

/* The mark of an earlier scan; NULL: none. */
static const struct mark *known_mark(const struct git_scan *scan, enum mark_kind kind,
				     const char *path)
{
	const struct mark *known = marks_find(scan->known, kind, path);

	return known != NULL ? known : marks_find(scan->more, kind, path);
}

/* Find PATH unless it was found before. */
static void note(struct git_scan *scan, enum mark_kind kind, const char *path)
{
	if (marks_find(&scan->found, kind, path) == NULL)
		marks_add(&scan->found, kind, path, STR(""))->deep = scan->goes_through;
}

static void found_danger(struct git_scan *scan, const char *path, const char *fingerprint)
{
	(void)marks_add(&scan->found, MARK_DANGER, path, str_of(fingerprint));
}

static void status_print(const struct stat *st, struct buf *out)
{
	/* No program can set the ctime of an inode. */
	if (S_ISDIR(st->st_mode))
		(void)buf_addf(out, GIT_SCAN_FOLDER "%jx", (uintmax_t)st->st_ino);
	else
		(void)buf_addf(out, "%jx %jx %jd.%09ld %jd.%09ld", (uintmax_t)st->st_ino,
			       (uintmax_t)st->st_size, (intmax_t)st->st_mtim.tv_sec,
			       st->st_mtim.tv_nsec, (intmax_t)st->st_ctim.tv_sec,
			       st->st_ctim.tv_nsec);
}

static void mark(const struct scan_look *look, const char *name, const char *fingerprint)
{
	struct buf path;

	buf_init(&path, NAME_TEXT_MAX);
	(void)buf_addf(&path, "%s/%s", look->path, name);
	found_danger(look->scan, path.data, fingerprint);
	buf_fini(&path);
}

/* Mark NAME in LOOK as a danger, with a fingerprint of CONTENT. */
static void mark_content(const struct scan_look *look, const char *name, struct str content)
{
	char hex[HASH_HEX + 1];

	hash_text(content, hex);
	mark(look, name, hex);
}

void scan_look_mark_stat(const struct scan_look *look, const char *name,
			 const struct stat *st)
{
	char target[PATH_MAX];
	struct buf text;

	buf_init(&text, NAME_TEXT_MAX);
	if (S_ISLNK(st->st_mode)) {
		ssize_t size = readlinkat(look->fd, name, target, sizeof(target));
		(void)buf_adds(&text, "link ");
		if (size > 0)
			(void)buf_add(&text, target, (size_t)size);
	} else {
		status_print(st, &text);
	}
	mark(look, name, text.data);
	buf_fini(&text);
}

/*
 * Like scan_look_enter, for a name where git has a folder: anything else of this name is
 * marked as a danger.
 */
static int enter_or_mark(const struct scan_look *look, const char *name, char path[PATH_MAX])
{
	struct stat st;

	if (!scan_look_stat(look, name, &st))
		return -1;
	if (S_ISDIR(st.st_mode))
		return scan_look_enter(look, name, path);
	scan_look_mark_stat(look, name, &st);
	return -1;
}

/*
 * Checks interrupted work, which the user's `--continue` goes on with, and conflicts
 * whose resolution the user's next `git commit` copies from the files into the git
 * folder.
 */

static bool options_are_inert(struct str text)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		struct str at = str_trim(line);
		size_t equals = str_find(at, STR("="), 0);
		if (!str_starts(at, STR("strategy")) || equals == (size_t)-1)
			continue;
		if (str_is(str_trim(str_part(at, 0, equals)), "strategy") &&
		    !readers_text_strategy_is_own(str_part(at, equals + 1, at.size)))
			return false;
	}
	return true;
}

/* The file of a worktree's part that says where the repository is. */
#define COMMONDIR autoexec_git_names[AUTOEXEC_GIT_COMMONDIR]

struct work {
	const char *folder, *name; /* FOLDER NULL: the git folder itself */
	size_t max;
	bool (*is_inert)(struct str text);
	bool whole; /* the folder counts as the danger */
};

static const struct work works[] = {
	{"rebase-merge", "git-rebase-todo", GIT_TODO_MAX, readers_text_todo_is_inert, true},
	{"rebase-merge", "strategy", GIT_POINTER_MAX, readers_text_strategy_is_own, true},
	{"sequencer", "todo", GIT_TODO_MAX, readers_text_todo_is_inert, true},
	{"sequencer", "opts", GIT_POINTER_MAX, options_are_inert, true},
	{"rebase-apply", "apply-opt", GIT_POINTER_MAX, readers_text_apply_is_inert, true},
	{0},
};

static void look_work(const struct scan_look *look, const struct work *work)
{
	char path[PATH_MAX];
	auto_close int fd =
		work->folder != NULL ? enter_or_mark(look, work->folder, path) : -1;
	const struct scan_look inside = {look->scan, fd, path};
	const struct scan_look *below = work->folder != NULL ? &inside : look;
	const struct scan_look *marked = work->whole ? look : below;
	const char *name = work->whole && work->folder != NULL ? work->folder : work->name;
	struct buf text;
	struct stat st;

	if (below->fd < 0)
		return;
	buf_init(&text, work->max);
	enum look_found found = scan_look_read(below, work->name, work->max, &text, &st);
	if (found == LOOK_ODD)
		scan_look_mark_stat(marked, name, &st);
	else if (found == LOOK_READ && !work->is_inert(buf_str(&text)))
		mark_content(marked, name, buf_str(&text));
	buf_fini(&text);
}

/* Check the texts of what git is in the middle of. */
static void look_works(const struct scan_look *look)
{
	for (const struct work *work = works; work->name != NULL; work++)
		look_work(look, work);
}

/* Check the list NAME, which is one in `info`. */
static void look_list(const struct scan_look *look, enum autoexec_git name)
{
	const struct work list = {.folder = "info",
				  .name = path_base_name(autoexec_git_names[name]),
				  .max = GIT_CONFIG_MAX,
				  .is_inert = readers_text_is_empty};

	look_work(look, &list);
}

/* Does PATH stay in the worktree, without a symlink on the way? */
static bool is_in_worktree(const struct git_folder *folder, const char *path)
{
	struct git_scan *scan = folder->look.scan;
	struct buf whole;
	struct stat st;
	const char *name;
	bool fine;

	if (path[0] == '\0' || path[0] == '/')
		return false;
	/*
	 * The worktree is not ours, so no command of the cell has made its symlinks. Only
	 * the text of PATH is checked.
	 */
	if (folder->worktree == NULL)
		return strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 &&
		       is_straight(path);
	buf_init(&whole, PATH_MAX);
	fine = is_straight(path) && path_normal(folder->worktree, path, &whole) &&
	       path_within(whole.data, folder->worktree);
	auto_close int fd = fine ? git_scan_open_parent(scan, whole.data, &name) : -1;
	/*
	 * A symlink among the folders of the path is refused. A missing folder leads
	 * nowhere and is harmless.
	 */
	if (fine)
		fine = fd >= 0 ? fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
					 !S_ISLNK(st.st_mode)
			       : errno == ENOENT;
	buf_fini(&whole);
	return fine;
}

/* Check the files whose resolution git will write down at the user's next commit. */
static void look_resolutions(const struct git_folder *folder)
{
	struct str rest, path;
	struct buf text;
	struct stat st;
	bool fine = true;

	buf_init(&text, GIT_TODO_MAX);
	enum look_found found =
		scan_look_read(&folder->look, "MERGE_RR", GIT_TODO_MAX, &text, &st);
	rest = buf_str(&text);
	while (found == LOOK_READ && fine && readers_text_next_conflict(&rest, &path)) {
		auto_free char *copy = memory_copy_str(path);
		fine = is_in_worktree(folder, copy);
	}
	if (found == LOOK_ODD)
		scan_look_mark_stat(&folder->look, "MERGE_RR", &st);
	else if (!fine)
		mark_content(&folder->look, "MERGE_RR", buf_str(&text));
	buf_fini(&text);
}

/*
 * Finds the names of autoexec.h in one folder. Protected ones are dangers with a
 * fingerprint, like the programs that git runs. Those that are only reported are listed
 * when they have changed.
 */

enum {
	/* of folders in a reported tree: a skill has its folder and scripts below it */
	REPORTED_DEPTH = 3,
	/* more files of one folder are only counted, so that they do not hide others */
	LISTED_OF_FOLDER = 8,
	NAME_PRINT_MAX = PATH_MAX + 64,
	PREFIX_ROOM = 64, /* the first part of a path in the table */
};

/*
 * May PATH, which is NAME or below it, be written because the policy names a place
 * between the two as writable?
 */
static bool is_opened(const struct git_scan *scan, const char *name, const char *path)
{
	const struct mark *place = marks_find_above(scan->known, MARK_OPENED, path);

	return place != NULL && path_within(place->path, name);
}

/* Fingerprints of protected names. */

/* The base of a fingerprint: the status, or the content. */
enum tells { TELLS_STATUS, TELLS_CONTENT };

struct tree {
	struct value *object; /* name -> text, or an object of this kind for a folder */
	enum tells tells;
	unsigned depth;
	const char *name; /* the path of the protected name */
};

static struct value *tree_of(const struct scan_look *look, const char *name,
			     const struct stat *st, const struct tree *above);

static void each_of_tree(const struct scan_look *look, const char *name, void *context)
{
	const struct tree *tree = context;
	struct buf path;
	struct stat st;

	buf_init(&path, 2 * PATH_MAX);
	(void)buf_addf(&path, "%s/%s", look->path, name);
	if (!is_opened(look->scan, tree->name, path.data) &&
	    scan_look_stat(look, name, &st)) {
		auto_free char *key = path_key(name);
		value_set(tree->object, key, tree_of(look, name, &st, tree));
	}
	buf_fini(&path);
}

static struct value *folder_of(const struct scan_look *look, const char *name,
			       const struct tree *above)
{
	struct tree tree = *above;
	char path[PATH_MAX];

	tree.object = value_new_object();
	tree.depth++;
	if (tree.depth > GIT_SCAN_TREE) {
		(void)scan_look_trouble(look, E2BIG, name);
		return tree.object;
	}
	auto_close int fd = scan_look_enter(look, name, path);
	if (fd < 0)
		return tree.object;
	const struct scan_look below = {look->scan, fd, path, DT_DIR};
	scan_look_names(&below, each_of_tree, &tree);
	return tree.object;
}

/*
 * Append the hash of the content and the execute bits. Files that agree in these are the
 * same, even when git wrote them anew.
 */
static bool content_print(const struct scan_look *look, const char *name, struct buf *print)
{
	char hex[HASH_HEX + 1];
	struct buf text;
	struct stat st;

	buf_init(&text, GIT_CONFIG_MAX);
	const bool fine =
		look->scan->contents < GIT_SCAN_CONTENTS &&
		scan_look_read(look, name, GIT_CONFIG_MAX, &text, &st) == LOOK_READ;
	look->scan->contents += text.size;
	if (fine) {
		hash_text(buf_str(&text), hex);
		(void)buf_addf(print, "%s %o", hex, (unsigned)st.st_mode & 0111);
	}
	buf_fini(&text);
	return fine;
}

/* The value for NAME in LOOK, with the status ST; the caller frees it. */
static struct value *tree_of(const struct scan_look *look, const char *name,
			     const struct stat *st, const struct tree *above)
{
	char target[PATH_MAX];
	struct value *value;
	struct buf print;

	if (S_ISDIR(st->st_mode))
		return folder_of(look, name, above);
	buf_init(&print, NAME_PRINT_MAX);
	if (S_ISLNK(st->st_mode)) {
		const ssize_t size = readlinkat(look->fd, name, target, sizeof(target));
		const struct str to = {target, size > 0 ? (size_t)size : 0};
		char hex[HASH_HEX + 1];

		hash_text(to, hex);
		(void)buf_addf(&print, "link %s", hex);
	} else if (above->tells == TELLS_STATUS || !S_ISREG(st->st_mode) ||
		   !content_print(look, name, &print)) {
		status_print(st, &print);
	}
	value = value_new_str(buf_str(&print));
	buf_fini(&print);
	return value;
}

/* Print the fingerprint of NAME into HEX. False: an empty folder, which is harmless. */
static bool print_of(const struct scan_look *look, const char *name, const char *path,
		     const struct stat *st, enum tells tells, char hex[HASH_HEX + 1])
{
	const struct tree tree = {.tells = tells, .name = path};
	auto_value struct value *value = tree_of(look, name, st, &tree);
	struct buf text;

	if (value_kind(value) == VALUE_OBJECT && value_count(value) == 0)
		return false;
	buf_init(&text, VALUE_TEXT_MAX);
	(void)value_print(value, VALUE_SORTED, &text);
	hash_text(buf_str(&text), hex);
	buf_fini(&text);
	return true;
}

static const char *known_print(const struct git_scan *scan, const char *path)
{
	const struct mark *known = known_mark(scan, MARK_DANGER, path);

	return known != NULL ? known->text : NULL;
}

/*
 * The part of the fingerprint PRINT behind the hash of the status; "" when there is none.
 */
static const char *content_in(const char *print)
{
	const size_t size = strlen(GIT_SCAN_NAME) + HASH_HEX + 1;

	return print != NULL && strlen(print) == size + HASH_HEX ? print + size : "";
}

/*
 * Is there the name ROW with this CONTENT ("": any) at the top of a root already? A
 * person who runs it there may have the same file in a clone or a worktree.
 */
static bool has_twin(const struct git_scan *scan, const char *row, const char *content)
{
	char path[PATH_MAX];
	bool found = false;

	for (size_t i = 0; !found && i < scan->root_count; i++) {
		if (snprintf(path, sizeof(path), "%s/%s", scan->roots[i].path, row) >=
		    (int)sizeof(path))
			continue;
		const char *there = content_in(known_print(scan, path));
		found = there[0] != '\0' &&
			(content[0] == '\0' || strcmp(there, content) == 0);
	}
	return found;
}

/*
 * Is NAME a folder in a read-only mount? In a cell such a folder is unchanged, and
 * reading a large one is not needed.
 */
static bool is_read_only(const struct scan_look *look, const char *name)
{
	auto_close int fd =
		openat(look->fd, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 && (fs.f_flags & ST_RDONLY) != 0;
}

/* Mark NAME in LOOK, with the status ST and no symlink, as protected by ROW. */
static void mark_name(const struct scan_look *look, const char *name,
		      const struct stat *st, const char *row)
{
	struct git_scan *scan = look->scan;
	char status[HASH_HEX + 1], content[HASH_HEX + 1];
	struct buf text;

	if (scan->in_cell && S_ISDIR(st->st_mode) && is_read_only(look, name))
		return;
	buf_init(&text, 2 * PATH_MAX);
	(void)buf_addf(&text, "%s/%s", look->path, name);
	auto_free char *path = buf_take(&text);
	const char *known = known_print(scan, path);
	if (is_opened(scan, path, path) ||
	    !print_of(look, name, path, st, TELLS_STATUS, status))
		return;
	note(scan, MARK_HELD, path);
	(void)buf_addf(&text, GIT_SCAN_NAME "%s ", status);
	if (known != NULL && str_starts(str_of(known), buf_str(&text))) {
		found_danger(scan, path, known);
	} else if (scan->in_cell && known == NULL && !has_twin(scan, row, "")) {
		/* The file is new, so its content does not matter. */
		found_danger(scan, path, text.data);
	} else if (print_of(look, name, path, st, TELLS_CONTENT, content)) {
		(void)buf_adds(&text, content);
		/* A file with its old content again counts as unchanged. */
		if (strcmp(content_in(known), content) == 0)
			found_danger(scan, path, known);
		else if (!scan->in_cell || !has_twin(scan, row, content))
			found_danger(scan, path, text.data);
	}
	buf_fini(&text);
}

/*
 * Mark the symlink NAME in LOOK, which stands for a protected name or a folder of such
 * names. True, and REAL is the path that it leads to, when that must be looked at. A link
 * that a command has made is moved aside, so its target is harmless and not looked at.
 */
static bool mark_link(const struct scan_look *look, const char *name, struct buf *real)
{
	char target[PATH_MAX];
	struct git_scan *scan = look->scan;
	const ssize_t size = readlinkat(look->fd, name, target, sizeof(target));
	const struct str to = {target, size > 0 ? (size_t)size : 0};
	char hex[HASH_HEX + 1], print[sizeof(GIT_SCAN_NAME) + HASH_HEX + sizeof("link ")];
	struct buf path;

	hash_text(to, hex);
	(void)snprintf(print, sizeof(print), GIT_SCAN_NAME "link %s", hex);
	buf_init(&path, 2 * PATH_MAX);
	(void)buf_addf(&path, "%s/%s", look->path, name);
	const char *known = known_print(scan, path.data);
	found_danger(scan, path.data, print);
	buf_fini(&path);
	if (scan->in_cell && (known == NULL || strcmp(known, print) != 0))
		return false;
	auto_close int fd = openat(look->fd, name, O_PATH | O_CLOEXEC);
	return fd >= 0 && fd_real_path(fd, real);
}

/* Look at the protected name ROW, which is NAME in LOOK. */
static void look_protected(const struct scan_look *look, const char *name, const char *row)
{
	struct buf real;
	struct stat st;

	if (!scan_look_stat(look, name, &st))
		return;
	if (!S_ISLNK(st.st_mode)) {
		mark_name(look, name, &st, row);
		return;
	}
	buf_init(&real, PATH_MAX);
	if (mark_link(look, name, &real) && strcmp(real.data, "/") != 0) {
		const char *last;
		auto_close int fd = git_scan_open_parent(look->scan, real.data, &last);
		auto_free char *folder = memory_copy(real.data);

		folder[last - real.data - 1] = '\0';
		const struct scan_look there = {look->scan, fd, folder, DT_DIR};
		if (fd >= 0 && scan_look_stat(&there, last, &st) && !S_ISLNK(st.st_mode))
			mark_name(&there, last, &st, row);
	}
	buf_fini(&real);
}

/* Open the folder NAME in LOOK, or the folder that a symlink NAME leads to. */
static int enter_group(const struct scan_look *look, const char *name, char path[PATH_MAX])
{
	struct stat st;
	struct buf real;
	int fd = -1;

	if (!scan_look_stat(look, name, &st))
		return -1;
	if (S_ISDIR(st.st_mode))
		return scan_look_enter(look, name, path);
	if (!S_ISLNK(st.st_mode))
		return -1;
	buf_init(&real, PATH_MAX);
	if (mark_link(look, name, &real) && real.size < PATH_MAX) {
		memcpy(path, real.data, real.size + 1);
		fd = scan_look_open_path(look->scan, path);
	}
	buf_fini(&real);
	return fd;
}

/*
 * Look at the rows from ROW on whose names are in the same folder. Returns the first row
 * of another folder.
 */
static const struct autoexec *look_group(const struct scan_look *look,
					 const struct autoexec *row)
{
	const size_t size = strcspn(row->name, "/");
	char name[PREFIX_ROOM], path[PATH_MAX];

	(void)snprintf(name, sizeof(name), "%.*s", (int)size, row->name);
	auto_close int fd = enter_group(look, name, path);
	const struct scan_look below = {look->scan, fd, path, DT_DIR};
	for (; row->name != NULL && strncmp(row->name, name, size) == 0 &&
	       row->name[size] == '/';
	     row++) {
		if (fd >= 0 && row->care == AUTOEXEC_PROTECTED)
			look_protected(&below, row->name + size + 1, row->name);
	}
	return row;
}

/*
 * When a folder such as `.claude` is itself a root, its files are protected as they are
 * below a root.
 */
static void look_own(const struct scan_look *look)
{
	const char *last = path_base_name(look->path);
	size_t count;
	const struct autoexec *rows = autoexec_of(last, &count);

	for (size_t i = 0; i < count; i++) {
		if (rows[i].care == AUTOEXEC_PROTECTED && rows[i].name[strlen(last)] == '/')
			look_protected(look, rows[i].name + strlen(last) + 1, rows[i].name);
	}
}

/* Find the protected names of autoexec.h in LOOK, a root or a worktree. */
static void look_protected_names(const struct scan_look *look, bool is_root)
{
	const struct autoexec *row = autoexec_names;

	if (is_root)
		look_own(look);
	while (row->name != NULL) {
		if (row->care != AUTOEXEC_PROTECTED) {
			row++;
		} else if (strchr(row->name, '/') != NULL) {
			row = look_group(look, row);
		} else {
			look_protected(look, row->name, row->name);
			row++;
		}
	}
}

/* Names that are only reported. */

struct changed {
	struct marks *list; /* MARK_CHANGED */
	unsigned depth;     /* levels of folders still to be searched */
	bool folder_changed;
};

static bool is_changed(const struct git_scan *scan, const struct stat *st)
{
	return clock_ns(&st->st_ctim) >= scan->since_ns;
}

static void list_name(const struct scan_look *look, const char *name, struct marks *list)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (buf_addf(&path, "%s/%s", look->path, name))
		(void)marks_add(list, MARK_CHANGED, path.data, STR(""));
	buf_fini(&path);
}

static void changed_below(const struct scan_look *look, const char *name,
			  struct changed *changed);

static void each_file(const struct scan_look *look, const char *name, void *context)
{
	struct changed *changed = context;
	struct stat st;

	/* No program runs a file that an audit has moved aside. */
	if (scan_look_is_aside(name))
		return;
	/* A symlink cannot be changed, only replaced, which changes its folder. */
	if ((look->type == DT_LNK && !changed->folder_changed) ||
	    !scan_look_stat(look, name, &st))
		return;
	if (S_ISDIR(st.st_mode)) {
		if (changed->depth > 0)
			changed_below(look, name, changed);
	} else if (is_changed(look->scan, &st) &&
		   autoexec_protects(look->path, name) == NULL) {
		list_name(look, name, changed->list);
	}
}

static void changed_below(const struct scan_look *look, const char *name,
			  struct changed *changed)
{
	struct changed below = *changed;
	char path[PATH_MAX];
	struct stat st;
	auto_close int fd = scan_look_enter(look, name, path);

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	const struct scan_look folder = {look->scan, fd, path, DT_DIR};
	below.folder_changed = is_changed(look->scan, &st);
	below.depth -= below.depth > 0;
	scan_look_names(&folder, each_file, &below);
}

static void report_folder(const struct scan_look *look, const struct autoexec *row)
{
	struct marks list = {0};
	struct changed changed = {
		.list = &list,
		.depth = row->kind == AUTOEXEC_TREE ? REPORTED_DEPTH : 0,
	};
	char text[PREFIX_ROOM + 64];

	changed_below(look, row->name, &changed);
	for (size_t i = 0; list.count <= LISTED_OF_FOLDER && i < list.count; i++)
		(void)marks_add(&look->scan->found, MARK_CHANGED, list.items[i]->path,
				STR(""));
	if (list.count > LISTED_OF_FOLDER) {
		(void)snprintf(text, sizeof(text), "%s/* (%zu files)", row->name,
			       list.count);
		list_name(look, text, &look->scan->found);
	}
	marks_fini(&list);
}

static void report_file(const struct scan_look *look, const struct autoexec *row)
{
	const char *name = path_base_name(row->name);
	char folder[PREFIX_ROOM], path[PATH_MAX];
	struct scan_look there = *look;
	auto_close int fd = -1;
	struct stat st;

	if (name != row->name) {
		(void)snprintf(folder, sizeof(folder), "%.*s",
			       (int)(name - row->name - 1), row->name);
		fd = scan_look_enter(look, folder, path);
		if (fd < 0)
			return;
		there = (struct scan_look){look->scan, fd, path, DT_DIR};
	}
	if (scan_look_stat(&there, name, &st) && !S_ISDIR(st.st_mode) &&
	    is_changed(look->scan, &st))
		list_name(&there, name, &look->scan->found);
}

/* May the name be written, because the policy names it? */
static bool is_open_name(const struct scan_look *look, const struct autoexec *row)
{
	struct buf path;

	buf_init(&path, 2 * PATH_MAX);
	(void)buf_addf(&path, "%s/%s", look->path, row->name);
	const bool opened = is_opened(look->scan, path.data, path.data);
	buf_fini(&path);
	return opened;
}

void git_scan_file(const struct scan_look *look, const char *name)
{
	size_t count;
	const struct autoexec *rows = autoexec_of(name, &count);

	for (size_t i = 0; i < count; i++) {
		const struct autoexec *row = &rows[i];

		if (row->care == AUTOEXEC_PROTECTED && !is_open_name(look, row))
			continue;
		if (row->name[strlen(name)] == '/' &&
		    !scan_look_may_hold(look, name, row->name + strlen(name) + 1))
			continue;
		if (row->kind == AUTOEXEC_FILE)
			report_file(look, row);
		else
			report_folder(look, row);
	}
}

/*
 * Finds the files that a killed git leaves in a git folder: locks, which stop every
 * later git, and temporary files. A git that ends normally removes them.
 */

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

/*
 * LOOK is the subfolder FOLDER of a git folder ("": its top; "objects/??": one of these
 * folders). Add NAME to `left` when it is a file that a killed git may have left since
 * `left_ns`.
 */
static void left_note(const struct scan_look *look, const char *folder, const char *name)
{
	struct git_scan *scan = look->scan;
	char path[PATH_MAX], file[GIT_SCAN_FILE];
	struct stat st;

	if (scan->left_ns == 0 || !is_left(folder, name) ||
	    scan->left.count >= GIT_SCAN_LEFT || !scan_look_stat(look, name, &st) ||
	    !S_ISREG(st.st_mode) || clock_ns(&st.st_ctim) < scan->left_ns ||
	    snprintf(path, sizeof(path), "%s/%s", look->path, name) >= (int)sizeof(path))
		return;
	git_scan_print_file(&st, file);
	struct git_left_file *item = git_left_add(&scan->left, path, file);
	if (item != NULL)
		item->shared = strstr(path, "/worktrees/") != NULL;
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
		left_note(look, "objects/??", name);
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

/* Find repositories that a command has put into the git folder LOOK. */
static void look_inside(const struct scan_look *look, unsigned depth)
{
	size_t seen = 0;
	struct inside inside = {.repository = depth + 1, .seen = &seen};

	if (look->scan->inside_ns > 0)
		scan_look_names(look, each_inside, &inside);
}

/*
 * Finds symlinks in a git folder. Git writes messages, logs and lists through symlinks,
 * and objects and references into folders behind them. So with a symlink that a command
 * left there, the user's next `git commit` would write to a place where the command
 * itself may not write.
 */

enum {
	/* folders in the name of a branch; usual names have up to four */
	LINKS_DEPTH = 64,
	STAMP_BYTES = 128,
};

/*
 * The places where git writes to names that may exist already; "/" is the git folder
 * itself.
 */
static const struct place {
	const char *name;
	/* kept: the names are remembered as long as the folder does not change */
	bool deep, kept;
	bool holds_references;
} places[] = {
	{"/", false, true, false},
	{"logs", true, true, false},
	{"refs", true, true, true},
	{"info", false, true, false},
	{"objects", false, true, false},
	{"objects/info", false, true, false},
	{"objects/info/commit-graphs", false, true, false},
	{"objects/pack", false, true, false},
	{"rebase-merge", false, true, false},
	{"rebase-apply", false, true, false},
	{"sequencer", false, true, false},
	{"lost-found", true, false, false},
	{"rr-cache", true, false, false}, /* has a folder for each earlier conflict */
};

struct reading {
	const struct place *place;
	struct buf *list;
	bool top;
};

/*
 * Is the symlink NAME a symbolic reference in the old form? Git replaces such a symlink.
 */
static bool is_reference(const struct scan_look *look, const char *name)
{
	char target[PATH_MAX];
	const ssize_t size = readlinkat(look->fd, name, target, sizeof(target));
	const struct str text = {target, size > 0 ? (size_t)size : 0};

	return str_starts(text, STR("refs/")) && str_find(text, STR(".."), 0) == (size_t)-1;
}

/*
 * Does git write through the symlink NAME? A HEAD that is a symlink is only read and
 * replaced.
 */
static bool is_way(const struct scan_look *look, const char *name,
		   const struct reading *reading)
{
	if (scan_look_is_aside(name))
		return false;
	if (reading->place->holds_references)
		return !is_reference(look, name);
	return !reading->top || strcmp(name, "HEAD") != 0;
}

/* Does NAME show that its folder may be a repository, where no other function looks? */
static bool is_repositorys(const char *name)
{
	return strcmp(name, ".git") == 0 || strcmp(name, "HEAD") == 0;
}

/*
 * Add NAME to the list when it must be looked at; a folder to be searched gets a "/" at
 * its end.
 */
static void each_entry(const struct scan_look *look, const char *name, void *context)
{
	const struct reading *reading = context;
	int type = look->type;
	struct stat st;

	left_note(look, reading->top ? "" : reading->place->name, name);
	if (type == DT_UNKNOWN && scan_look_stat(look, name, &st))
		type = (int)IFTODT(st.st_mode);
	const bool repositorys = reading->place->deep && is_repositorys(name);
	if (!repositorys && (type == DT_LNK ? !is_way(look, name, reading)
					    : type != DT_DIR || !reading->place->deep))
		return;
	if (!buf_addf(reading->list, "%s%s%c", name,
		      type == DT_DIR && !repositorys ? "/" : "", '\0'))
		(void)scan_look_trouble(look, E2BIG, name);
}

/*
 * Print a stamp of the folder that changes with every name that comes or goes, even when
 * somebody sets the clock.
 */
static bool print_stamp(const struct scan_look *look, char stamp[STAMP_BYTES])
{
	struct stat st;

	if (fstat(look->fd, &st) < 0)
		return scan_look_trouble(look, errno, ".");
	(void)snprintf(stamp, STAMP_BYTES, "%jx %jd.%09ld %jd.%09ld", (uintmax_t)st.st_ino,
		       (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
		       (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	return true;
}

/*
 * Has the folder changed since `left_ns`, so that a killed git may have left files in it?
 */
static bool was_changed(const struct scan_look *look)
{
	struct stat st;

	return look->scan->left_ns > 0 && fstat(look->fd, &st) == 0 &&
	       clock_ns(&st.st_ctim) >= look->scan->left_ns;
}

/* The text that begins with STAMP of an earlier mark of names; empty when it is outdated. */
static struct str known_names(const struct git_scan *scan, const char *path,
			      const char *stamp)
{
	const struct mark *known = known_mark(scan, MARK_NAMES, path);

	return known != NULL && strcmp(known->text, stamp) == 0
		       ? (struct str){known->text, known->size}
		       : STR("");
}

/*
 * Remember NAMES, which begins with a stamp, for later scans of the index or folder PATH.
 * Nobody asks for those that an audit has read, and after an error some may be missing.
 */
static void names_keep(struct git_scan *scan, const char *path, struct str names)
{
	if (!scan->in_cell && scan->trouble.text[0] == '\0')
		(void)marks_add(&scan->found, MARK_NAMES, path, names);
}

/* The name behind NAME, or the first one when NAME is NULL; NULL at the end of NAMES. */
static const char *names_next(struct str names, const char *name)
{
	const char *end = names.data + names.size;

	if (name == NULL)
		name = names.data; /* the stamp */
	name += name < end ? strlen(name) + 1 : 0;
	return name < end ? name : NULL;
}

/* The stamp and the names of a folder; READ holds them when they are not known. */
static struct str entries(const struct scan_look *look, const struct place *place,
			  bool top, struct buf *read)
{
	struct str names = STR("");
	char stamp[STAMP_BYTES];

	if (!print_stamp(look, stamp))
		return names;
	if (!was_changed(look))
		names = known_names(look->scan, look->path, stamp);
	if (names.size == 0) {
		const struct reading reading = {place, read, top};

		(void)buf_add(read, stamp, strlen(stamp) + 1);
		scan_look_names(look, each_entry, (void *)(uintptr_t)&reading);
		names = buf_str(read);
	}
	if (place->kept)
		names_keep(look->scan, look->path, names);
	return names;
}

static void look_name(const struct scan_look *look, const struct place *place,
		      const char *name, unsigned repository)
{
	struct stat st;

	if (place->deep && is_repositorys(name))
		git_scan_worktree(look->scan, look->fd, look->path, repository);
	if (scan_look_stat(look, name, &st) && S_ISLNK(st.st_mode) &&
	    (!place->holds_references || !is_reference(look, name)))
		scan_look_mark_stat(look, name, &st);
}

/*
 * Look at the folder LOOK of PLACE, DEPTH levels down. REPOSITORY: the depth of
 * repositories that are found in it.
 */
static void look_below(const struct scan_look *look, const struct place *place,
		       unsigned depth, unsigned repository)
{
	char path[PATH_MAX];
	struct buf read;

	if (depth > LINKS_DEPTH) {
		(void)scan_look_trouble(look, E2BIG, ".");
		return;
	}
	buf_init(&read, GIT_SCAN_PATHS);
	const struct str names = entries(look, place, depth == 0, &read);
	for (const char *at = names_next(names, NULL); at != NULL;
	     at = names_next(names, at)) {
		auto_free char *name = memory_copy(at);
		const size_t size = strlen(name);

		if (size == 0 || name[size - 1] != '/') {
			if (size > 0)
				look_name(look, place, name, repository);
			continue;
		}
		name[size - 1] = '\0';
		auto_close int fd = scan_look_enter(look, name, path);
		if (fd < 0)
			continue;
		const struct scan_look below = {look->scan, fd, path, DT_DIR};
		look_below(&below, place, depth + 1, repository);
	}
	buf_fini(&read);
}

/*
 * Find symlinks in the git folder LOOK, DEPTH repositories down, that git would write
 * through.
 */
static void look_links(const struct scan_look *look, unsigned depth)
{
	char path[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const struct place *place = &places[i];

		if (strcmp(place->name, "/") == 0) {
			look_below(look, place, 0, depth + 1);
			continue;
		}
		if (!scan_look_stat(look, place->name, &st) || !S_ISDIR(st.st_mode))
			continue;
		auto_close int fd = scan_look_enter(look, place->name, path);
		const struct scan_look below = {look->scan, fd, path, DT_DIR};
		if (fd >= 0)
			look_below(&below, place, 1, depth + 1);
	}
}

/*
 * Looks at the repositories that the index of a git folder names, and at those in
 * folders that a sparse index leaves out.
 */

enum {
	SPARSE_DEPTH = 64
}; /* levels of folders that a sparse index leaves out and that exist */

/* The stamp and the gitlinks of an index. */
struct links {
	struct buf *text;
	size_t count;
	bool whole; /* one file has told all, and nothing was odd in it */
};

static bool each_link(void *context, struct str path)
{
	struct links *links = context;

	return ++links->count <= GIT_SCAN_LINKS && buf_addstr(links->text, path) &&
	       buf_addc(links->text, '\0');
}

struct sparse {
	unsigned repository, depth; /* depth of repositories, and of folders */
};

static void each_sparse(const struct scan_look *look, const char *name, void *context)
{
	const struct sparse *above = context;
	const struct sparse sparse = {above->repository, above->depth + 1};
	char path[PATH_MAX];

	if ((look->type != DT_DIR && look->type != DT_UNKNOWN) || strcmp(name, ".git") == 0)
		return;
	auto_close int fd = scan_look_enter(look, name, path);
	if (fd < 0)
		return;
	if (sparse.depth > SPARSE_DEPTH) {
		(void)scan_look_trouble(look, E2BIG, name);
		return;
	}
	const struct scan_look below = {look->scan, fd, path, DT_DIR};
	git_scan_worktree(look->scan, fd, path, sparse.repository);
	scan_look_names(&below, each_sparse, (void *)(uintptr_t)&sparse);
}

/*
 * Look at NAME, a gitlink, or with a slash at its end a folder that a sparse index leaves
 * out. Such a folder is usually missing. When it exists, git looks at its files and
 * gitlinks.
 */
static void link_visit(const struct git_folder *folder, const char *name)
{
	auto_free char *link = memory_copy(name);
	const size_t size = strlen(link);
	const bool is_sparse = size > 0 && link[size - 1] == '/';
	const struct sparse sparse = {folder->depth + 1, 0};
	struct git_scan *scan = folder->look.scan;
	struct buf path;

	if (is_sparse)
		link[size - 1] = '\0';
	buf_init(&path, PATH_MAX);
	if (buf_addf(&path, "%s/%s", folder->worktree, link)) {
		auto_close int fd = scan_look_open_path(scan, path.data);
		const struct scan_look look = {scan, fd, path.data, DT_DIR};
		if (fd >= 0)
			git_scan_worktree(scan, fd, path.data, folder->depth + 1);
		if (fd >= 0 && is_sparse)
			scan_look_names(&look, each_sparse, (void *)(uintptr_t)&sparse);
	}
	buf_fini(&path);
}

/* Git refuses such an index too. The error tells the way to repair it. */
static bool index_trouble(struct git_folder *folder, const char *name, const struct err *why)
{
	struct err *trouble = &folder->look.scan->trouble;

	if (trouble->text[0] == '\0')
		(void)err_set(trouble, why->code,
			      "%s/%s: %s; removing it and running git reset makes a new one of the "
			      "last commit (files stay as they are)",
			      folder->look.path, name, why->text);
	return false;
}

/*
 * Put the gitlinks of the index NAME into LINKS. True: the index is split, and NEXT
 * becomes the name of its other part.
 */
static bool index_read(struct git_folder *folder, const char *name, struct links *links,
		       char next[2 * GIT_HASH_MAX + sizeof("sharedindex.")])
{
	struct git_index_reader reader = {.sha256 = folder->sha256,
					  .link = each_link,
					  .context = links};
	struct err err = {0};
	struct buf text;
	struct stat st;
	bool fine = false;

	buf_init(&text, GIT_INDEX_MAX);
	enum look_found found =
		scan_look_read(&folder->look, name, GIT_INDEX_MAX, &text, &st);
	/* An index that cannot be read may have any gitlinks, so this is an error. */
	if (found == LOOK_ODD)
		(void)scan_look_trouble(&folder->look, EFBIG, name);
	else if (found == LOOK_READ)
		fine = readers_index_read(&reader, buf_str(&text), &err) ||
		       index_trouble(folder, name, &err);
	/* Git checks out such names unchanged, even through ".." and into its hooks. */
	if (reader.unsound)
		mark_content(&folder->look, name, buf_str(&text));
	buf_fini(&text);
	(void)snprintf(next, 2 * GIT_HASH_MAX + sizeof("sharedindex."), "sharedindex.%s",
		       reader.shared);
	links->whole = fine && !reader.unsound && reader.shared[0] == '\0';
	return fine && reader.shared[0] != '\0';
}

/*
 * The last large index that this process has read. An engine makes many cells in one
 * repository, and reading takes longer than all else that makes a cell. Sessions of several
 * threads share it.
 */
static struct {
	pthread_mutex_t lock;
	char *key;
	char *names; /* as index_links returns them */
	size_t size;
} large = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum {
	LARGE_INDEX = 1 << 20,
	/* A file may change again with the same times as long as it is younger. */
	YOUNG_NS = 20000000,
};

/* By its file system, form, place and stamp an index is the same in another cell. */
static char *large_key(const struct git_folder *folder, const char *path,
		       const struct stat *st, const char *stamp)
{
	struct buf key;

	buf_init(&key, 2 * PATH_MAX);
	(void)buf_addf(&key, "%jx %d %s %s", (uintmax_t)st->st_dev, folder->sha256, stamp,
		       path);
	return buf_take(&key);
}

static void large_keep(char **take_key, struct str names)
{
	(void)pthread_mutex_lock(&large.lock);
	free(large.key);
	free(large.names);
	large.key = *take_key;
	*take_key = NULL;
	large.names = memory_alloc(names.size + 1);
	memcpy(large.names, names.data, names.size);
	large.size = names.size;
	(void)pthread_mutex_unlock(&large.lock);
}

/* Put what is known of the index with KEY into READ. False: it is not the last one. */
static bool large_take(const char *key, struct buf *read)
{
	(void)pthread_mutex_lock(&large.lock);
	const bool known = large.key != NULL && strcmp(large.key, key) == 0;

	if (known) {
		buf_clear(read);
		(void)buf_add(read, large.names, large.size);
	}
	(void)pthread_mutex_unlock(&large.lock);
	return known;
}

/*
 * The stamp and the gitlinks of the index PATH; READ holds them when they are not known.
 * Reading takes some 100 ns for each file of the project, so an index that has not changed
 * since an earlier scan is not read again, nor is a large one for another cell of this process.
 * A shared part never changes, because its name is its hash.
 */
static struct str index_links(struct git_folder *folder, const char *path, struct buf *read)
{
	char next[2 * GIT_HASH_MAX + sizeof("sharedindex.")];
	struct links links = {.text = read};
	struct stat st;

	if (!scan_look_stat(&folder->look, "index", &st))
		return STR("");
	status_print(&st, read);
	const struct str known = known_names(folder->look.scan, path, read->data);
	if (known.size > 0)
		return known;
	const bool is_large = !folder->look.scan->in_cell && st.st_size >= LARGE_INDEX;
	const bool is_old = clock_ns(&st.st_ctim) < clock_file_ns() - YOUNG_NS;
	auto_free char *key = is_large ? large_key(folder, path, &st, read->data) : NULL;
	if (is_large && large_take(key, read))
		return buf_str(read);
	(void)buf_addc(read, '\0');
	if (index_read(folder, "index", &links, next))
		(void)index_read(folder, next, &links, next);
	else if (is_large && is_old && links.whole)
		large_keep(&key, buf_str(read));
	return buf_str(read);
}

/* Look at the repositories that the index of FOLDER names. */
static void look_index(struct git_folder *folder)
{
	char path[PATH_MAX];
	struct buf read;

	if (snprintf(path, sizeof(path), "%s/index", folder->look.path) >= (int)sizeof(path))
		return;
	buf_init(&read, (size_t)GIT_SCAN_LINKS * PATH_MAX);
	const struct str names = index_links(folder, path, &read);
	if (names.size > 0)
		names_keep(folder->look.scan, path, names);
	for (const char *name = names_next(names, NULL);
	     folder->worktree != NULL && name != NULL; name = names_next(names, name))
		link_visit(folder, name);
	buf_fini(&read);
}

/* Looks at the configuration of a git folder and at the files that it includes. */

enum { CONFIG_DEPTH = 10 }; /* of files that include each other: git's own limit */

static void config_read(const struct scan_look *look, const char *name,
			struct git_config *config)
{
	struct buf text;
	struct stat st;

	buf_init(&text, GIT_CONFIG_MAX);
	git_config_init(config);
	enum look_found found = scan_look_read(look, name, GIT_CONFIG_MAX, &text, &st);
	if (found == LOOK_ODD)
		scan_look_mark_stat(look, name, &st);
	if (found == LOOK_READ)
		git_config_read(buf_str(&text), config);
	if (config->active.size > 0)
		mark_content(look, name, buf_str(&config->active));
	buf_fini(&text);
}

/*
 * Look at the files that a configuration in FOLDER includes, if they are in a place that
 * commands may write.
 */
static void look_included(struct git_scan *scan, const char *folder,
			  const struct git_config *config, unsigned depth)
{
	struct str rest = buf_str(&config->active), line;

	while (depth < CONFIG_DEPTH && str_next_line(&rest, &line)) {
		struct git_config included;
		struct buf path;

		buf_init(&path, PATH_MAX);
		if (git_config_included(line, folder, scan->home, &path)) {
			const char *name;
			auto_close int fd = git_scan_open_parent(scan, path.data, &name);
			auto_free char *parent = memory_copy(path.data);
			parent[name - path.data - 1] = '\0';
			const struct scan_look look = {scan, fd, parent, 0};
			if (fd >= 0 &&
			    marks_find(&scan->found, MARK_HELD, path.data) == NULL) {
				note(scan, MARK_HELD, path.data);
				config_read(&look, name, &included);
				look_included(scan, parent, &included, depth + 1);
				git_config_fini(&included);
			}
		}
		buf_fini(&path);
	}
}

/* Look at the configuration NAME in FOLDER and what it includes. */
static void look_config(struct git_folder *folder, enum autoexec_git name)
{
	struct git_config config;

	config_read(&folder->look, autoexec_git_names[name], &config);
	look_included(folder->look.scan, folder->look.path, &config, 0);
	folder->sha256 = folder->sha256 || config.sha256;
	git_config_fini(&config);
}

/* The path in `commondir` of every linked worktree's folder. */
#define COMMON "../.."

static void each_hook(const struct scan_look *look, const char *name, void *context)
{
	struct stat st;

	(void)context;
	if (!str_ends(str_of(name), STR(".sample")) && !scan_look_is_aside(name) &&
	    scan_look_stat(look, name, &st))
		scan_look_mark_stat(look, name, &st);
}

static void each_name(const struct scan_look *look, const char *name, void *context)
{
	struct stat st;

	(void)context;
	if (!scan_look_is_aside(name) && scan_look_stat(look, name, &st))
		scan_look_mark_stat(look, name, &st);
}

enum { MODULES_DEPTH = 64 }; /* folders in the name of a module */

struct modules {
	unsigned repository, depth; /* depth of repositories, and of folders */
	bool aside;                 /* they were moved aside together */
};

/*
 * Look at NAME, a module or a folder of modules, whose names may have slashes. Modules
 * that no worktree uses count too: `git submodule update` uses them again. The worktree's
 * `.gitmodules` gives a module its name, which may have our mark. So a folder with our
 * mark is looked at like any other.
 */
static void each_module(const struct scan_look *look, const char *name, void *context)
{
	const struct modules *above = context;
	const struct modules modules = {above->repository, above->depth + 1,
					above->aside || scan_look_is_aside(name)};
	char path[PATH_MAX];

	/* The rest of a removed module may hold thousands of files. */
	if (above->depth > 0 && look->type == DT_REG)
		return;
	if (!modules.aside)
		each_name(look, name, NULL);
	auto_close int fd = enter_or_mark(look, name, path);
	const struct scan_look below = {look->scan, fd, path, DT_DIR};
	if (fd < 0)
		return;
	if (is_whole(&below))
		repository_look(look->scan, fd, path, NULL, above->repository);
	else if (modules.depth > MODULES_DEPTH)
		(void)scan_look_trouble(look, E2BIG, name);
	else if (strcmp(name, "objects") != 0)
		scan_look_names(&below, each_module, (void *)(uintptr_t)&modules);
}

/*
 * Call EACH for the entries of the folder NAME. Anything but a folder is marked as a
 * danger.
 */
static void look_entries(const struct scan_look *look, const char *name,
			 void (*each)(const struct scan_look *, const char *, void *),
			 void *context)
{
	char path[PATH_MAX];
	auto_close int fd = enter_or_mark(look, name, path);

	if (fd < 0)
		return;
	const struct scan_look below = {look->scan, fd, path};
	scan_look_names(&below, each, context);
}

/*
 * Look at the modules in the git folder LOOK, DEPTH repositories down. A repository that
 * was looked at with its worktree is not looked at again.
 */
static void look_modules(const struct scan_look *look, unsigned depth)
{
	const char *name = autoexec_git_names[AUTOEXEC_GIT_MODULES];
	struct modules modules = {.repository = depth + 1};

	/* In a cell those of a read-only mount are unchanged. */
	if (!look->scan->in_cell || !is_read_only(look, name))
		look_entries(look, name, each_module, &modules);
}

static bool common_is_inert(struct str text)
{
	struct str line;

	return readers_text_line(text, &line) && str_is(line, COMMON);
}

/* Check a worktree's COMMONDIR. */
static void look_common(const struct scan_look *look)
{
	const struct work common = {.name = COMMONDIR,
				    .max = GIT_POINTER_MAX,
				    .is_inert = common_is_inert};

	look_work(look, &common);
}

/* Look at NAME, a worktree's part of the repository CONTEXT. */
static void each_worktree(const struct scan_look *all, const char *name, void *context)
{
	const struct git_folder *above = context;
	char path[PATH_MAX];
	struct buf pointer;
	struct stat st;

	if (!scan_look_stat(all, name, &st))
		return;
	if (!S_ISDIR(st.st_mode)) {
		if (S_ISLNK(st.st_mode) && !scan_look_is_aside(name))
			scan_look_mark_stat(all, name, &st);
		return;
	}
	auto_close int fd = scan_look_enter(all, name, path);
	if (fd < 0)
		return;
	struct git_folder folder = {.look = {all->scan, fd, path},
				    .depth = above->depth,
				    .sha256 = above->sha256};
	look_common(&folder.look);
	look_config(&folder, AUTOEXEC_GIT_CONFIG_WORKTREE);
	look_works(&folder.look);
	look_links(&folder.look, above->depth);
	look_inside(&folder.look, above->depth);
	/*
	 * If the part is also a complete repository, git uses it as one in this folder.
	 */
	git_scan_worktree(all->scan, fd, path, above->depth + 1);
	buf_init(&pointer, PATH_MAX);
	if (line_path(&folder.look, "gitdir", path, &pointer) &&
	    str_ends(buf_str(&pointer), STR("/.git"))) {
		buf_truncate(&pointer, pointer.size - strlen("/.git"));
		folder.worktree = pointer.data;
		auto_close int tree = scan_look_open_path(all->scan, pointer.data);
		if (tree >= 0)
			git_scan_worktree(all->scan, tree, pointer.data, above->depth + 1);
	}
	look_index(&folder);
	look_resolutions(&folder);
	look_modules(&folder.look, above->depth);
	buf_fini(&pointer);
}

/*
 * Set `shared` for the items of `left` in the git folder LOOK when it has linked
 * worktrees. BEFORE is the number of items before this folder was looked at.
 */
static void share_left(const struct scan_look *look, size_t before)
{
	struct git_left *left = &look->scan->left;
	struct stat st;

	if (left->count == before || !scan_look_stat(look, "worktrees", &st))
		return;
	for (size_t i = 0; i < left->count; i++) {
		if (path_within(left->items[i].path, look->path))
			left->items[i].shared = true;
	}
}

static void repository_look(struct git_scan *scan, int fd, const char *path,
			    const char *worktree, unsigned depth)
{
	struct git_folder folder = {.look = {scan, fd, path},
				    .worktree = worktree,
				    .depth = depth};
	const size_t left = scan->left.count;
	const struct mark *looked = marks_find(&scan->found, MARK_REPOSITORY, path);
	struct stat st;

	/* Once more when its worktree is found later: there lie what its index names. */
	if (looked != NULL && (worktree == NULL || looked->size > 0))
		return;
	if (looked == NULL &&
	    (depth > GIT_SCAN_DEPTH ||
	     scan->found.counts[MARK_REPOSITORY] >= GIT_SCAN_REPOSITORIES)) {
		(void)scan_look_trouble(&folder.look, E2BIG, "");
		return;
	}
	note(scan, MARK_REPOSITORY, path);
	if (worktree != NULL)
		(void)marks_add(&scan->found, MARK_REPOSITORY, path, str_of(worktree));
	/* Only a linked worktree's part has a `commondir`, so one here is a danger. */
	if (scan_look_stat(&folder.look, COMMONDIR, &st))
		scan_look_mark_stat(&folder.look, COMMONDIR, &st);
	look_config(&folder, AUTOEXEC_GIT_CONFIG);
	look_config(&folder, AUTOEXEC_GIT_CONFIG_WORKTREE);
	look_entries(&folder.look, autoexec_git_names[AUTOEXEC_GIT_HOOKS], each_hook, NULL);
	/*
	 * The old places of remotes. Git reads them for names that are not in the
	 * configuration.
	 */
	look_entries(&folder.look, "remotes", each_name, NULL);
	look_entries(&folder.look, "branches", each_name, NULL);
	look_list(&folder.look, AUTOEXEC_GIT_ATTRIBUTES);
	look_list(&folder.look, AUTOEXEC_GIT_EXCLUDE);
	look_works(&folder.look);
	look_links(&folder.look, depth);
	look_inside(&folder.look, depth);
	share_left(&folder.look, left);
	look_index(&folder);
	look_resolutions(&folder);
	look_entries(&folder.look, "worktrees", each_worktree, &folder);
	look_modules(&folder.look, depth);
}

/*
 * Follows `.git` files and symlinks, and checks whether they lead to a matching git
 * folder.
 */

/* Does the one-line file NAME lead to WANTED? */
static bool line_leads_to(const struct scan_look *look, const char *name, const char *wanted)
{
	struct buf path;
	bool leads;

	buf_init(&path, PATH_MAX);
	leads = line_path(look, name, look->path, &path) && strcmp(path.data, wanted) == 0;
	buf_fini(&path);
	return leads;
}

/*
 * Put REPOSITORY of a PATH of the form REPOSITORY/worktrees/NAME there; false for any
 * other form.
 */
static bool repository_of(const char *path, struct buf *repository)
{
	(void)buf_add(repository, path, (size_t)(path_base_name(path) - path));
	if (!str_ends(buf_str(repository), STR("/worktrees/")))
		return false;
	buf_truncate(repository, repository->size - strlen("/worktrees/"));
	return true;
}

/*
 * Do the worktree's part LOOK and POINTER name each other, and is the repository where
 * git puts it? A part that is just being made has no `commondir` yet.
 */
static bool is_linked(const struct scan_look *look, const char *pointer,
		      const char *repository)
{
	struct stat st;

	return line_leads_to(look, "gitdir", pointer) &&
	       (!scan_look_stat(look, COMMONDIR, &st) ||
		line_leads_to(look, COMMONDIR, repository));
}

/*
 * Note a pointer to a repository outside any `.git`. Usual pointers, of worktrees and
 * modules, lead into a `.git`. Any other pointer makes the programs of REPOSITORY run in
 * the pointer's folder.
 */
static void note_lead(struct git_scan *scan, const char *pointer, const char *repository)
{
	if (strstr(repository, "/.git/") != NULL ||
	    str_ends(str_of(repository), STR("/.git")))
		return;
	(void)marks_add(&scan->found, MARK_LEAD, pointer, str_of(repository));
}

/* Is TARGET a git folder below the roots that matches POINTER? Then it is looked at. */
static bool target_holds(struct git_scan *scan, const char *target, const char *worktree,
			 const char *pointer, unsigned depth)
{
	auto_close int fd = scan_look_open_path(scan, target);
	const struct scan_look look = {.scan = scan, .fd = fd, .path = target};
	struct buf repository;
	bool holds = fd >= 0;

	buf_init(&repository, PATH_MAX);
	if (holds && repository_of(target, &repository)) {
		auto_close int main_fd = scan_look_open_path(scan, repository.data);
		holds = main_fd >= 0 && is_linked(&look, pointer, repository.data);
		if (holds) {
			note_lead(scan, pointer, repository.data);
			repository_look(scan, main_fd, repository.data, NULL, depth);
		}
	} else if (holds) {
		note_lead(scan, pointer, target);
		repository_look(scan, fd, target, worktree, depth);
	}
	buf_fini(&repository);
	return holds;
}

/* Look at the `.git` in LOOK, a file with the status ST. */
static void pointer_look(const struct scan_look *look, const struct stat *st, unsigned depth)
{
	struct git_scan *scan = look->scan;
	struct buf text, target, pointer;
	struct str path;
	struct stat read_st;
	bool holds;

	buf_init(&text, GIT_POINTER_MAX);
	buf_init(&target, PATH_MAX);
	buf_init(&pointer, PATH_MAX);
	(void)buf_addf(&pointer, "%s/.git", look->path);
	note(scan, MARK_HELD, pointer.data);
	if (scan_look_read(look, ".git", GIT_POINTER_MAX, &text, &read_st) == LOOK_READ) {
		holds = readers_text_pointer(buf_str(&text), &path);
		if (holds) {
			auto_free char *copy = memory_copy_str(path);
			holds = pointer_path(scan, look->path, copy, &target) &&
				target_holds(scan, target.data, look->path, pointer.data,
					     depth) &&
				is_straight(copy);
		}
		if (!holds)
			mark_content(look, ".git", buf_str(&text));
	} else {
		scan_look_mark_stat(look, ".git", st);
	}
	buf_fini(&pointer);
	buf_fini(&target);
	buf_fini(&text);
}

/* Look at the git folder that a symlink `.git` leads to, if it is below a root. */
static void pointer_link(const struct scan_look *look, unsigned depth)
{
	char target[PATH_MAX];
	struct buf path;
	ssize_t size = readlinkat(look->fd, ".git", target, sizeof(target) - 1);

	if (size <= 0)
		return;
	target[size] = '\0';
	buf_init(&path, PATH_MAX);
	if (pointer_path(look->scan, look->path, target, &path)) {
		auto_close int fd = scan_look_open_path(look->scan, path.data);
		if (fd >= 0)
			repository_look(look->scan, fd, path.data, look->path, depth);
	}
	buf_fini(&path);
}

/* Looks at a folder that may hold a `.git` or be a bare repository. */

/*
 * Is LOOK a linked worktree's part of a repository? Such a part is looked at together
 * with its repository.
 */
static bool is_part(const struct scan_look *look)
{
	struct buf above;
	bool part;

	buf_init(&above, PATH_MAX);
	part = line_path(look, COMMONDIR, look->path, &above) &&
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
				  scan_look_stat(look, COMMONDIR, &st) && !is_part(look));
}

void git_scan_worktree(struct git_scan *scan, int fd, const char *path, unsigned depth)
{
	const struct scan_look look = {scan, fd, path};
	char inside[PATH_MAX];
	struct stat st;

	if (is_bare(&look))
		repository_look(scan, fd, path, NULL, depth);
	const bool has_git = scan_look_stat(&look, ".git", &st);
	if (has_git || depth == 0)
		look_protected_names(&look, depth == 0);
	if (!has_git)
		return;
	if (S_ISREG(st.st_mode)) {
		pointer_look(&look, &st, depth);
		return;
	}
	if (S_ISLNK(st.st_mode))
		pointer_link(&look, depth);
	if (!S_ISDIR(st.st_mode)) {
		scan_look_mark_stat(&look, ".git", &st);
		return;
	}
	auto_close int folder = scan_look_enter(&look, ".git", inside);
	if (folder >= 0)
		repository_look(scan, folder, inside, path, depth);
}
