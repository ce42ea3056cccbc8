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
#include "guard/readers.h"
#include "guard/scan.h"
#include "policy/autoexec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

/* Writes down findings: paths as keys, and fingerprints. */

enum { NAME_TEXT_MAX = 2 * PATH_MAX };

/* The record of the index or folder KEY from an earlier scan; NULL: none. */
static const struct value *known_index(const struct git_scan *scan, const char *key)
{
	const struct value *known = value_member(scan->known_indexes, key);

	return known != NULL ? known : value_member(scan->more_indexes, key);
}

/*
 * Add KEY to LIST, an object of the scan, unless it is there: false when the search of a
 * root in `deep` has found it, else true.
 */
static void note(const struct git_scan *scan, struct value **list, const char *key)
{
	if (value_member(*list, key) == NULL)
		value_set_boolean(git_scan_list(list), key, !scan->goes_through);
}

static void status_print(const struct stat *st, struct buf *out)
{
	/* No program can set the ctime of an inode. */
	if (S_ISDIR(st->st_mode))
		(void)buf_addf(out, "folder %jx", (uintmax_t)st->st_ino);
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
	auto_free char *key = path_key(path.data);
	value_set_text(git_scan_list(&look->scan->dangers), key, fingerprint);
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

struct work {
	const char *folder, *name;
	size_t max;
	bool (*is_inert)(struct str text);
};

static const struct work works[] = {
	{"rebase-merge", "git-rebase-todo", GIT_TODO_MAX, readers_text_todo_is_inert},
	{"rebase-merge", "strategy", GIT_POINTER_MAX, readers_text_strategy_is_own},
	{"sequencer", "todo", GIT_TODO_MAX, readers_text_todo_is_inert},
	{"sequencer", "opts", GIT_POINTER_MAX, options_are_inert},
	{"rebase-apply", "apply-opt", GIT_POINTER_MAX, readers_text_apply_is_inert},
};

static void look_work(const struct scan_look *look, const struct work *work)
{
	char path[PATH_MAX];
	auto_close int fd = enter_or_mark(look, work->folder, path);
	const struct scan_look below = {look->scan, fd, path};
	struct buf text;
	struct stat st;

	if (fd < 0)
		return;
	buf_init(&text, work->max);
	enum look_found found = scan_look_read(&below, work->name, work->max, &text, &st);
	if (found == LOOK_ODD)
		scan_look_mark_stat(look, work->folder, &st);
	else if (found == LOOK_READ && !work->is_inert(buf_str(&text)))
		mark_content(look, work->folder, buf_str(&text));
	buf_fini(&text);
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
		       scan_look_is_straight(path);
	buf_init(&whole, PATH_MAX);
	fine = scan_look_is_straight(path) && path_normal(folder->worktree, path, &whole) &&
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

/* Check what an interrupted rebase or sequence will do in the git folder LOOK. */
static void look_works(const struct scan_look *look)
{
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		look_work(look, &works[i]);
}

/*
 * Finds the names of autoexec.h in one folder. Protected ones are dangers with a
 * fingerprint, like the programs that git runs. Those that are only reported are listed
 * when they have changed.
 */

enum {
	TREE_DEPTH = 32, /* of folders in a protected tree */
	/* of folders in a reported tree: a skill has its folder and scripts below it */
	REPORTED_DEPTH = 3,
	/* more files of one folder are only counted, so that they do not hide others */
	LISTED_OF_FOLDER = 8,
	NAME_PRINT_MAX = PATH_MAX + 64,
	PREFIX_ROOM = 64, /* the first part of a path in the table */
};

/* The beginning of the fingerprint of a protected name. */
#define PRINT "name "

bool git_scan_is_name(const char *fingerprint)
{
	return str_starts(str_of(fingerprint), STR(PRINT));
}

/*
 * May PATH, which is NAME or below it, be written because the policy names a place
 * between the two as writable?
 */
static bool is_opened(const struct git_scan *scan, const char *name, const char *path)
{
	auto_free char *name_key = path_key(name);
	auto_free char *key = path_key(path);

	for (size_t i = 0; i < value_count(scan->opened); i++) {
		const char *place = value_text(value_item(scan->opened, i));

		if (path_within(place, name_key) && path_within(key, place))
			return true;
	}
	return false;
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
	if (tree.depth > TREE_DEPTH) {
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

static const char *known_print(const struct git_scan *scan, const char *key)
{
	const char *known = value_text(value_member(scan->known_dangers, key));

	return known != NULL ? known : value_text(value_member(scan->more_dangers, key));
}

/*
 * The part of the fingerprint PRINT behind the hash of the status; "" when there is none.
 */
static const char *content_in(const char *print)
{
	const size_t size = strlen(PRINT) + HASH_HEX + 1;

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
		auto_free char *key = path_key(path);
		const char *there = content_in(known_print(scan, key));
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

static void set_print(struct git_scan *scan, const char *key, const char *print)
{
	value_set_text(git_scan_list(&scan->dangers), key, print);
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
	auto_free char *key = path_key(path);
	const char *known = known_print(scan, key);
	if (is_opened(scan, path, path) ||
	    !print_of(look, name, path, st, TELLS_STATUS, status))
		return;
	note(scan, &scan->held, key);
	(void)buf_addf(&text, PRINT "%s ", status);
	if (known != NULL && str_starts(str_of(known), buf_str(&text))) {
		set_print(scan, key, known);
	} else if (scan->in_cell && known == NULL && !has_twin(scan, row, "")) {
		/* The file is new, so its content does not matter. */
		set_print(scan, key, text.data);
	} else if (print_of(look, name, path, st, TELLS_CONTENT, content)) {
		(void)buf_adds(&text, content);
		/* A file with its old content again counts as unchanged. */
		if (strcmp(content_in(known), content) == 0)
			set_print(scan, key, known);
		else if (!scan->in_cell || !has_twin(scan, row, content))
			set_print(scan, key, text.data);
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
	char hex[HASH_HEX + 1], print[sizeof(PRINT) + HASH_HEX + sizeof("link ")];
	struct buf path;

	hash_text(to, hex);
	(void)snprintf(print, sizeof(print), PRINT "link %s", hex);
	buf_init(&path, 2 * PATH_MAX);
	(void)buf_addf(&path, "%s/%s", look->path, name);
	auto_free char *key = path_key(path.data);
	buf_fini(&path);
	const char *known = known_print(scan, key);
	set_print(scan, key, print);
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

void git_scan_protected(const struct scan_look *look, bool is_root)
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
	struct value *list; /* list of paths */
	unsigned depth;     /* levels of folders still to be searched */
	bool folder_changed;
};

static bool is_changed(const struct git_scan *scan, const struct stat *st)
{
	return st->st_ctim.tv_sec > scan->since.tv_sec ||
	       (st->st_ctim.tv_sec == scan->since.tv_sec &&
		st->st_ctim.tv_nsec >= scan->since.tv_nsec);
}

static void list_name(const struct scan_look *look, const char *name, struct value *list)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (buf_addf(&path, "%s/%s", look->path, name))
		value_append(list, value_new_text(path.data));
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

static struct value *files_of(struct git_scan *scan)
{
	if (scan->files == NULL)
		scan->files = value_new_array();
	return scan->files;
}

static void report_folder(const struct scan_look *look, const struct autoexec *row)
{
	auto_value struct value *list = value_new_array();
	struct changed changed = {
		.list = list,
		.depth = row->kind == AUTOEXEC_TREE ? REPORTED_DEPTH : 0,
	};
	char text[PREFIX_ROOM + 64];
	size_t count;

	changed_below(look, row->name, &changed);
	count = value_count(list);
	for (size_t i = 0; count <= LISTED_OF_FOLDER && i < count; i++)
		value_append(files_of(look->scan), value_ref(value_item(list, i)));
	if (count <= LISTED_OF_FOLDER)
		return;
	(void)snprintf(text, sizeof(text), "%s/* (%zu files)", row->name, count);
	list_name(look, text, files_of(look->scan));
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
		list_name(&there, name, files_of(look->scan));
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
	struct value *list;
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
	struct buf text;

	git_scan_left(look, reading->top ? "" : reading->place->name, name);
	if (type == DT_UNKNOWN && scan_look_stat(look, name, &st))
		type = (int)IFTODT(st.st_mode);
	const bool repositorys = reading->place->deep && is_repositorys(name);
	if (!repositorys && (type == DT_LNK ? !is_way(look, name, reading)
					    : type != DT_DIR || !reading->place->deep))
		return;
	buf_init(&text, 2 * NAME_MAX);
	(void)buf_addf(&text, "%s%s", name, type == DT_DIR && !repositorys ? "/" : "");
	auto_free char *key = path_key(text.data);
	value_append(reading->list, value_new_text(key));
	buf_fini(&text);
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

/*
 * The names of a folder, remembered like the gitlinks of an index. The caller frees the
 * value.
 */
static struct value *entries(const struct scan_look *look, const struct place *place,
			     bool top)
{
	char stamp[STAMP_BYTES];

	if (!print_stamp(look, stamp))
		return NULL;
	auto_free char *key = path_key(look->path);
	const struct value *known = known_index(look->scan, key);
	struct value *list;
	if (!was_changed(look) && str_equal(value_str(value_item(known, 0)), str_of(stamp))) {
		list = value_copy(known);
	} else {
		list = value_new_array();
		struct reading reading = {place, list, top};
		value_append(list, value_new_text(stamp));
		scan_look_names(look, each_entry, &reading);
	}
	if (place->kept)
		value_set(git_scan_list(&look->scan->indexes), key, value_ref(list));
	return list;
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
	auto_value struct value *list = entries(look, place, depth == 0);
	char path[PATH_MAX];

	if (depth > LINKS_DEPTH) {
		(void)scan_look_trouble(look, E2BIG, ".");
		return;
	}
	for (size_t i = 1; i < value_count(list); i++) {
		auto_free char *name = path_of_key(value_text(value_item(list, i)));
		size_t size = name != NULL ? strlen(name) : 0;

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

static bool each_link(void *context, struct str path)
{
	struct value *list = context;
	auto_free char *name = memory_copy_str(path);
	auto_free char *key = path_key(name);

	value_append(list, value_new_text(key));
	return value_count(list) <= GIT_SCAN_LINKS;
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
 * Look at KEY, a gitlink, or with a slash at its end a folder that a sparse index leaves
 * out. Such a folder is usually missing. When it exists, git looks at its files and
 * gitlinks.
 */
static void link_visit(const struct git_folder *folder, const char *key)
{
	auto_free char *link = path_of_key(key);
	const size_t size = link != NULL ? strlen(link) : 0;
	const bool is_sparse = size > 0 && link[size - 1] == '/';
	const struct sparse sparse = {folder->depth + 1, 0};
	struct git_scan *scan = folder->look.scan;
	struct buf path;

	if (is_sparse)
		link[size - 1] = '\0';
	buf_init(&path, PATH_MAX);
	if (link != NULL && buf_addf(&path, "%s/%s", folder->worktree, link)) {
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
 * Put the gitlinks of the index NAME into LIST. True: the index is split, and NEXT
 * becomes the name of its other part.
 */
static bool index_read(struct git_folder *folder, const char *name, struct value *list,
		       char next[2 * GIT_HASH_MAX + sizeof("sharedindex.")])
{
	struct git_index_reader reader = {.sha256 = folder->sha256,
					  .link = each_link,
					  .context = list};
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
	return fine && reader.shared[0] != '\0';
}

/*
 * The gitlinks of the index PATH. Reading takes some 10 ns for each file of the project,
 * so an index that has not changed since an earlier scan is not read again. A shared part
 * never changes, because its name is its hash.
 */
static struct value *index_links(struct git_folder *folder, const char *path)
{
	char next[2 * GIT_HASH_MAX + sizeof("sharedindex.")];
	struct value *list = value_new_array();
	struct buf print;
	struct stat st;

	if (!scan_look_stat(&folder->look, "index", &st))
		return list;
	buf_init(&print, PATH_MAX);
	status_print(&st, &print);
	auto_free char *key = path_key(path);
	const struct value *known = known_index(folder->look.scan, key);
	if (str_equal(value_str(value_item(known, 0)), buf_str(&print))) {
		value_free(list);
		list = value_copy(known);
	} else {
		value_append(list, value_new_str(buf_str(&print)));
		if (index_read(folder, "index", list, next))
			(void)index_read(folder, next, list, next);
	}
	buf_fini(&print);
	return list;
}

/* Look at the repositories that the index of FOLDER names. */
static void look_index(struct git_folder *folder)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/index", folder->look.path) >= (int)sizeof(path))
		return;
	struct value *list = index_links(folder, path);
	auto_free char *key = path_key(path);
	value_set(git_scan_list(&folder->look.scan->indexes), key, list);
	for (size_t i = 1; folder->worktree != NULL && i < value_count(list); i++)
		link_visit(folder, value_text(value_item(list, i)));
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
			auto_free char *key = path_key(path.data);
			auto_free char *parent = memory_copy(path.data);
			parent[name - path.data - 1] = '\0';
			const struct scan_look look = {scan, fd, parent, 0};
			if (fd >= 0 && value_member(scan->held, key) == NULL) {
				note(scan, &scan->held, key);
				config_read(&look, name, &included);
				look_included(scan, parent, &included, depth + 1);
				git_config_fini(&included);
			}
		}
		buf_fini(&path);
	}
}

/* Look at the configuration NAME in FOLDER and what it includes. */
static void look_config(struct git_folder *folder, const char *name)
{
	struct git_config config;

	config_read(&folder->look, name, &config);
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

/*
 * The worktree's `.gitmodules` gives a module its name, which may have our mark. So a
 * folder with our mark is looked at like a repository.
 */
static void each_module(const struct scan_look *look, const char *name, void *context)
{
	const struct git_folder *above = context;
	char path[PATH_MAX];

	if (!scan_look_is_aside(name)) {
		each_name(look, name, NULL);
		return;
	}
	auto_close int fd = enter_or_mark(look, name, path);
	if (fd >= 0)
		git_scan_folder(look->scan, fd, path, NULL, above->depth + 1);
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

static void look_info(const struct scan_look *look)
{
	static const char *const names[] = {"attributes", "exclude"};
	char path[PATH_MAX];
	auto_close int fd = enter_or_mark(look, "info", path);
	struct buf text;
	struct stat st;

	if (fd < 0)
		return;
	const struct scan_look info = {look->scan, fd, path};
	buf_init(&text, GIT_CONFIG_MAX);
	for (size_t i = 0; i < 2; i++) {
		enum look_found found =
			scan_look_read(&info, names[i], GIT_CONFIG_MAX, &text, &st);
		if (found == LOOK_ODD)
			scan_look_mark_stat(&info, names[i], &st);
		else if (found == LOOK_READ && !readers_text_is_empty(buf_str(&text)))
			mark_content(&info, names[i], buf_str(&text));
	}
	buf_fini(&text);
}

static void look_common(const struct scan_look *look)
{
	struct buf text;
	struct stat st;
	struct str line;

	buf_init(&text, GIT_POINTER_MAX);
	enum look_found found =
		scan_look_read(look, "commondir", GIT_POINTER_MAX, &text, &st);
	if (found == LOOK_ODD)
		scan_look_mark_stat(look, "commondir", &st);
	else if (found == LOOK_READ &&
		 (!readers_text_line(buf_str(&text), &line) || !str_is(line, COMMON)))
		mark_content(look, "commondir", buf_str(&text));
	buf_fini(&text);
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
	look_config(&folder, "config.worktree");
	look_works(&folder.look);
	look_links(&folder.look, above->depth);
	git_scan_inside(&folder.look, above->depth);
	/*
	 * If the part is also a complete repository, git uses it as one in this folder.
	 */
	git_scan_worktree(all->scan, fd, path, above->depth + 1);
	buf_init(&pointer, PATH_MAX);
	if (scan_look_line_path(&folder.look, "gitdir", path, &pointer) &&
	    str_ends(buf_str(&pointer), STR("/.git"))) {
		buf_truncate(&pointer, pointer.size - strlen("/.git"));
		folder.worktree = pointer.data;
		auto_close int tree = scan_look_open_path(all->scan, pointer.data);
		if (tree >= 0)
			git_scan_worktree(all->scan, tree, pointer.data, above->depth + 1);
	}
	look_index(&folder);
	look_resolutions(&folder);
	buf_fini(&pointer);
}

/*
 * Set `shared` for the items of `left` in the git folder LOOK when it has linked
 * worktrees. BEFORE is the number of items before this folder was looked at.
 */
static void share_left(const struct scan_look *look, size_t before)
{
	struct stat st;

	if (value_count(look->scan->left) == before ||
	    !scan_look_stat(look, "worktrees", &st))
		return;
	for (void *at = value_first(look->scan->left); at != NULL;
	     at = value_next(look->scan->left, at)) {
		auto_free char *path = path_of_key(value_key(at));
		if (path != NULL && path_within(path, look->path))
			value_set_boolean(value_at(at), "shared", true);
	}
}

void git_scan_folder(struct git_scan *scan, int fd, const char *path,
		     const char *worktree, unsigned depth)
{
	struct git_folder folder = {.look = {scan, fd, path},
				    .worktree = worktree,
				    .depth = depth};
	const size_t left = value_count(scan->left);
	struct stat st;

	auto_free char *key = path_key(path);
	if (value_member(scan->repositories, key) != NULL)
		return;
	if (depth > GIT_SCAN_DEPTH ||
	    value_count(scan->repositories) >= GIT_SCAN_REPOSITORIES) {
		(void)scan_look_trouble(&folder.look, E2BIG, "");
		return;
	}
	note(scan, &scan->repositories, key);
	/* Only a linked worktree's part has a `commondir`, so one here is a danger. */
	if (scan_look_stat(&folder.look, "commondir", &st))
		scan_look_mark_stat(&folder.look, "commondir", &st);
	look_config(&folder, "config");
	look_config(&folder, "config.worktree");
	look_entries(&folder.look, "hooks", each_hook, NULL);
	look_entries(&folder.look, "modules", each_module, &folder);
	/*
	 * The old places of remotes. Git reads them for names that are not in the
	 * configuration.
	 */
	look_entries(&folder.look, "remotes", each_name, NULL);
	look_entries(&folder.look, "branches", each_name, NULL);
	look_info(&folder.look);
	look_works(&folder.look);
	look_links(&folder.look, depth);
	git_scan_inside(&folder.look, depth);
	share_left(&folder.look, left);
	look_index(&folder);
	look_resolutions(&folder);
	look_entries(&folder.look, "worktrees", each_worktree, &folder);
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
	leads = scan_look_line_path(look, name, look->path, &path) &&
		strcmp(path.data, wanted) == 0;
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
	       (!scan_look_stat(look, "commondir", &st) ||
		line_leads_to(look, "commondir", repository));
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
	auto_free char *key = path_key(pointer);
	auto_free char *lead = path_key(repository);
	value_set_text(git_scan_list(&scan->leads), key, lead);
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
			git_scan_folder(scan, main_fd, repository.data, NULL, depth);
		}
	} else if (holds) {
		note_lead(scan, pointer, target);
		git_scan_folder(scan, fd, target, worktree, depth);
	}
	buf_fini(&repository);
	return holds;
}

void git_scan_pointer(const struct scan_look *look, const struct stat *st, unsigned depth)
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
	auto_free char *key = path_key(pointer.data);
	note(scan, &scan->held, key);
	if (scan_look_read(look, ".git", GIT_POINTER_MAX, &text, &read_st) == LOOK_READ) {
		holds = readers_text_pointer(buf_str(&text), &path);
		if (holds) {
			auto_free char *copy = memory_copy_str(path);
			holds = path_normal(look->path, copy, &target) &&
				target_holds(scan, target.data, look->path, pointer.data,
					     depth) &&
				scan_look_is_straight(copy);
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
void git_scan_pointer_link(const struct scan_look *look, unsigned depth)
{
	char target[PATH_MAX];
	struct buf path;
	ssize_t size = readlinkat(look->fd, ".git", target, sizeof(target) - 1);

	if (size <= 0)
		return;
	target[size] = '\0';
	buf_init(&path, PATH_MAX);
	if (path_normal(look->path, target, &path)) {
		auto_close int fd = scan_look_open_path(look->scan, path.data);
		if (fd >= 0)
			git_scan_folder(look->scan, fd, path.data, look->path, depth);
	}
	buf_fini(&path);
}
