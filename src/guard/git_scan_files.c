/*
 * git_scan_files: finds the names of autoexec.h in one folder. Protected ones are dangers
 * with a fingerprint, like the programs that git runs. Those that are only reported are
 * listed when they have changed.
 */
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/readers.h"
#include "guard/scan.h"
#include "policy/autoexec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

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

bool git_scan_is_file(const struct git_scan *scan, const char *key)
{
	auto_free char *path = path_of_key(key);
	const char *name;
	struct stat st;

	if (path == NULL)
		return false;
	auto_close int folder = git_scan_open_parent(scan, path, &name);
	return folder >= 0 && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode);
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
	if (!is_opened(look->scan, tree->name, path.data) && look_stat(look, name, &st)) {
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
		(void)look_trouble(look, E2BIG, name);
		return tree.object;
	}
	auto_close int fd = look_enter(look, name, path);
	if (fd < 0)
		return tree.object;
	const struct scan_look below = {look->scan, fd, path, DT_DIR};
	look_names(&below, each_of_tree, &tree);
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
	const bool fine = look->scan->contents < GIT_SCAN_CONTENTS &&
			  look_read(look, name, GIT_CONFIG_MAX, &text, &st) == LOOK_READ;
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
		look_fingerprint(st, &print);
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
	git_scan_note(scan, &scan->held, key);
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

	if (!look_stat(look, name, &st))
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
		if (fd >= 0 && look_stat(&there, last, &st) && !S_ISLNK(st.st_mode))
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

	if (!look_stat(look, name, &st))
		return -1;
	if (S_ISDIR(st.st_mode))
		return look_enter(look, name, path);
	if (!S_ISLNK(st.st_mode))
		return -1;
	buf_init(&real, PATH_MAX);
	if (mark_link(look, name, &real) && real.size < PATH_MAX) {
		memcpy(path, real.data, real.size + 1);
		fd = look_open_path(look->scan, path);
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
	if (look_is_aside(name))
		return;
	/* A symlink cannot be changed, only replaced, which changes its folder. */
	if ((look->type == DT_LNK && !changed->folder_changed) ||
	    !look_stat(look, name, &st))
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
	auto_close int fd = look_enter(look, name, path);

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	const struct scan_look folder = {look->scan, fd, path, DT_DIR};
	below.folder_changed = is_changed(look->scan, &st);
	below.depth -= below.depth > 0;
	look_names(&folder, each_file, &below);
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
		fd = look_enter(look, folder, path);
		if (fd < 0)
			return;
		there = (struct scan_look){look->scan, fd, path, DT_DIR};
	}
	if (look_stat(&there, name, &st) && !S_ISDIR(st.st_mode) &&
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
		    !look_may_hold(look, name, row->name + strlen(name) + 1))
			continue;
		if (row->kind == AUTOEXEC_FILE)
			report_file(look, row);
		else
			report_folder(look, row);
	}
}
