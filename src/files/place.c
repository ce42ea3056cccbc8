/*
 * place: writes contents to their places so that a killed writer leaves nothing half
 * done.
 */

#include "files/place.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "files/files.h"
#include "files/record.h"
#include "policy/autoexec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

struct place_item {
	struct place_change *change;
	struct journal_row row;
	struct temp temp;
	int old_fd; /* locked */
	bool in_place;
};

void place_init(struct place *place)
{
	memset(place, 0, sizeof(*place));
	place->folder_fd = -1;
	buf_init(&place->folder, PATH_MAX);
}

void place_fini(struct place *place)
{
	if (!place)
		return;
	fd_close(&place->folder_fd);
	buf_fini(&place->folder);
	free(place->name);
	place->name = NULL;
}

/* A write leaves with FILES the log of changes, notes and the replaced file. */

static bool keep_change(const struct files *files, const char *path, int old_fd,
			const struct stat *old, const struct undo_state *after,
			struct err *err)
{
	struct undo_log *log = files->log;
	struct undo_state before = undo_absent;

	if (log == NULL)
		return true;
	if (old_fd >= 0) {
		undo_state_of(old, &before);
		if (!undo_log_file(log, old_fd, UNDO_CONTENT_MAX, &before, err))
			return err_while(err, "what is there could not be kept for "
					      "`glovebox undo`, so nothing was written");
	}
	return undo_log_change(log, str_of(path_relative(path, files->workspace)),
			       &before, after, err) ||
	       err_while(err, "this change could not be noted for `glovebox undo`, so "
			      "nothing was written");
}

/*
 * Keep FD, of a file that has lost its name, open until files_settle or the next call of
 * this function.
 */
static void close_later(struct files *files, int fd)
{
	files_settle(files);
	files->replaced = fd;
}

/* Note for files_note_heads that a file in FOLDER (real) was written. */
static void add_heads(const struct files *files, const char *folder)
{
	const struct files_held *root = files_root_of(files, folder);
	auto_free char *at = memory_copy(folder);
	char head[PATH_MAX];

	if (files->heads == NULL || root == NULL)
		return;
	while (strlen(at) > strlen(root->path)) {
		auto_free char *key = path_key(at);

		if (snprintf(head, sizeof(head), "%s/HEAD", at) < (int)sizeof(head) &&
		    faccessat(AT_FDCWD, head, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !value_has_text(files->heads, key))
			value_append(files->heads, value_new_text(key));
		*strrchr(at, '/') = '\0';
	}
}

/* Maximum number of paths that files_note_written collects. */
enum { NOTED_MAX = 64 };

/* Note for files_note_written that NAME in FOLDER (real) was written. */
static void add_written(const struct files *files, const char *folder, const char *name)
{
	struct buf path;

	if (files->written == NULL || value_count(files->written) >= NOTED_MAX)
		return;
	buf_init(&path, PATH_MAX);
	if (buf_addf(&path, "%s%s%s", folder,
		     str_ends(str_of(folder), STR("/")) ? "" : "/", name) &&
	    text_is_utf8(buf_str(&path)))
		value_append(files->written, value_new_text(path.data));
	buf_fini(&path);
}

/* Where a path may be written. */

/*
 * Is REAL git's own record? Git would take a file that a tool puts there (a HEAD, a ref,
 * an index) as its own, and no audit could tell it from git's work. A root inside a
 * `.git` was named by the policy as writable, so its files do not count.
 */
static bool is_gits(const struct files *files, const char *real)
{
	const struct files_held *root = files_root_of(files, real);

	if (!root)
		return false;
	return path_names_git(path_relative(real, root->path)) ||
	       path_names_git(path_base_name(root->path));
}

/* Is the folder in ROOT, named by the first SIZE bytes of RELATIVE, a worktree of git? */
static bool is_worktree(const struct files_held *root, const char *relative, size_t size)
{
	char git[PATH_MAX];
	struct stat st;

	return snprintf(git, sizeof(git), "%.*s/.git", (int)size, relative) <
		       (int)sizeof(git) &&
	       fstatat(root->fd, git, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * The row of autoexec.h for REAL, when REAL is a name at the top of a root or of a
 * worktree that another agent would run; NULL: it is no such name. The audit would put
 * such a file away later. An error now lets the caller do something else.
 */
static const struct autoexec *autoexec_of_real(const struct files *files, const char *real)
{
	const struct files_held *root = files_root_of(files, real);
	const struct autoexec *row;

	if (!root)
		return NULL;
	const char *relative = path_relative(real, root->path);
	row = autoexec_protects(root->path, relative);
	for (const char *slash = strchr(relative, '/'); !row && slash;
	     slash = strchr(slash + 1, '/')) {
		row = autoexec_protects("/", slash + 1);
		if (row && !is_worktree(root, relative, (size_t)(slash - relative)))
			row = NULL;
	}
	return row;
}

/* May REAL (folder and name put together) be written at all? */
static bool check_writable(const struct files *files, const char *real, const char *shown,
			   struct err *err)
{
	if (files_is_blocked(files, real))
		return files_say_missing(shown, err);
	if (!files_is_writable(files, real))
		return err_set(err, EROFS, "%s may not be written by this agent.", shown);
	if (is_gits(files, real))
		return err_set(err, FILES_PROTECTED,
			       "%s is protected: what is in .git is written by git alone.",
			       shown);
	const struct autoexec *row = autoexec_of_real(files, real);
	if (row)
		return err_set(err, FILES_AUTOEXEC,
			       "%s is protected: %s runs what stands there, or takes its settings "
			       "from it, outside of the cell and without a question.",
			       shown, row->reader);
	return true;
}

static void join(const char *folder, const char *name, struct buf *out)
{
	buf_clear(out);
	buf_adds(out, folder);
	if (!str_ends(buf_str(out), STR("/")))
		buf_addc(out, '/');
	buf_adds(out, name);
}

/*
 * Make the folders REST (several names) beneath the folder of PLACE, which becomes the
 * last of them. A folder that another process has made in the meantime is not counted.
 */
static bool make_below(struct place *place, char *rest, const char *shown, struct err *err)
{
	const struct undo_state folder = {.kind = UNDO_FOLDER};
	struct buf made;
	bool ok = true;

	buf_init(&made, PATH_MAX);
	while (ok && rest && *rest) {
		const char *name = strsep(&rest, "/");

		join(place->folder.data, name, &made);
		if (faccessat(place->folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
		    !keep_change(place->files, made.data, -1, NULL, &folder, err)) {
			ok = false;
			break;
		}
		bool ours = mkdirat(place->folder_fd, name, 0777) == 0;
		int next = ours || errno == EEXIST
				   ? files_open_below(place->folder_fd, name, FILES_FOLDER)
				   : -1;

		ok = next >= 0 || files_say(errno, shown, err);
		place->made_folders = ours ? place->made_folders + 1 : 0;
		if (!ok)
			break;
		fd_close(&place->folder_fd);
		place->folder_fd = next;
		buf_clear(&place->folder);
		buf_addstr(&place->folder, buf_str(&made));
	}
	buf_fini(&made);
	return ok;
}

void place_unmake_folders(struct place *place)
{
	struct buf real;
	struct err err;

	buf_init(&real, PATH_MAX);
	for (; place->made_folders > 0; place->made_folders--) {
		char *slash = strrchr(place->folder.data, '/');
		auto_free char *name = slash ? memory_copy(slash + 1) : NULL;
		auto_close int above = -1;

		if (!slash || slash == place->folder.data)
			break;
		buf_truncate(&place->folder, (size_t)(slash - place->folder.data));
		above = files_open_real(place->files, place->folder.data,
					O_PATH | O_DIRECTORY, &real, place->name, &err);
		if (above < 0 || unlinkat(above, name, AT_REMOVEDIR) < 0)
			break;
	}
	place->made_folders = 0;
	buf_fini(&real);
}

/* The folder ABSOLUTE is missing: make it below the deepest part of it that exists. */
static bool make_folders(const struct files *files, const char *absolute,
			 struct place *place, const char *shown, struct err *err)
{
	auto_free char *above = memory_copy(absolute);
	auto_free char *rest = NULL;
	struct buf whole;
	struct err why = {0};
	bool ok = false;

	do {
		char *slash = strrchr(above, '/');

		if (!slash || slash == above)
			return files_say_missing(shown, err);
		*slash = '\0';
		place->folder_fd = files_open_real(files, above, O_PATH | O_DIRECTORY,
						   &place->folder, shown, &why);
	} while (place->folder_fd < 0 && why.code == ENOENT);
	if (place->folder_fd < 0)
		return err_set(err, why.code, "%s", why.text);
	rest = memory_copy(absolute + strlen(above) + 1);
	buf_init(&whole, PATH_MAX);
	join(place->folder.data, rest, &whole);
	if (check_writable(files, whole.data, shown, err) &&
	    make_below(place, rest, shown, err)) {
		ok = true;
	}
	if (!ok)
		place_unmake_folders(place);
	buf_fini(&whole);
	return ok;
}

/*
 * Open the folder of PATH (normal, absolute) and look at its last name. When the last
 * name is a link, PATH becomes its target. Returns 1: look again, 0: done, -1: failed.
 */
static int look_at(const struct files *files, struct buf *path, bool make,
		   struct place *place, const char *shown, struct err *err)
{
	auto_free char *folder = memory_copy(path->data);
	char *slash = strrchr(folder, '/');
	char target[PATH_MAX];
	ssize_t size;

	free(place->name);
	place->name = memory_copy(slash + 1);
	slash[slash == folder] = '\0';
	fd_close(&place->folder_fd);
	place->folder_fd = files_open_real(files, folder, O_PATH | O_DIRECTORY,
					   &place->folder, shown, err);
	if (place->folder_fd < 0 && (!make || err->code != ENOENT ||
				     !make_folders(files, folder, place, shown, err)))
		return -1;
	place->exists = fstatat(place->folder_fd, place->name, &place->st,
				AT_SYMLINK_NOFOLLOW) == 0;
	if (!place->exists)
		return errno == ENOENT ? 0 : (files_say(errno, shown, err), -1);
	if (!S_ISLNK(place->st.st_mode))
		return 0;
	size = readlinkat(place->folder_fd, place->name, target, sizeof(target) - 1);
	if (size < 0)
		return files_say(errno, shown, err), -1;
	target[size] = '\0';
	buf_clear(path);
	if (!path_normal(place->folder.data, target, path))
		return files_say_missing(shown, err), -1;
	return 1;
}

/*
 * Is ABSOLUTE the folder of a root, or "/"? The parent of a root may lie outside all
 * roots, so this must be known before the parent is opened.
 */
static bool is_root_folder(const struct files *files, const char *absolute)
{
	struct stat st;

	for (size_t i = 0; i < files->root_count; i++) {
		if (strcmp(files->roots[i].path, absolute) == 0)
			return fstat(files->roots[i].fd, &st) == 0 && S_ISDIR(st.st_mode);
	}
	return strcmp(absolute, "/") == 0;
}

static bool place_find(const struct files *files, const char *path, bool make,
		       struct place *place, struct buf *absolute, struct err *err)
{
	int more = 1;

	if (!files_normal(files, path, absolute, err))
		return false;
	for (int links = 0; more > 0; links++) {
		if (links > FILES_LINKS_MAX)
			return files_say(ELOOP, path, err);
		if (is_root_folder(files, absolute->data))
			return files_say(EISDIR, path, err);
		more = look_at(files, absolute, make, place, path, err);
	}
	if (more < 0)
		return false;
	if (place->exists && S_ISDIR(place->st.st_mode))
		return files_say(EISDIR, path, err);
	if (place->exists && !S_ISREG(place->st.st_mode))
		return files_say(ENXIO, path, err);
	if (files_asks_folder(path))
		return place->exists
			       ? files_say_no_folder(path, err)
			       : err_set(err, EISDIR,
					 "%s ends as the path of a folder does.", path);
	join(place->folder.data, place->name, absolute);
	place->root = files_root_of(files, absolute->data);
	return check_writable(files, absolute->data, path, err);
}

/* A file that is a root of its own is a mount point, which no rename can replace. */
static bool is_lone_file(const struct files *files, const char *absolute)
{
	struct stat st;

	for (size_t i = 0; i < files->root_count; i++) {
		if (strcmp(files->roots[i].path, absolute) == 0 &&
		    fstat(files->roots[i].fd, &st) == 0)
			return S_ISREG(st.st_mode);
	}
	return false;
}

bool files_place(struct files *files, const char *path, bool make, struct place *place,
		 struct err *err)
{
	struct err why = {0};
	struct buf absolute;
	bool found;

	place->files = files;
	buf_init(&absolute, PATH_MAX);
	if (files_normal(files, path, &absolute, NULL) &&
	    is_lone_file(files, absolute.data)) {
		buf_fini(&absolute);
		return err_set(err, EPERM,
			       "%s is open to this agent as a single file, which cannot be "
			       "replaced in one piece. Change it with a command, or ask the "
			       "user to name its folder in `write`.",
			       path);
	}
	place->files = files;
	found = place_find(files, path, make, place, &absolute, &why);
	if (!found)
		place_unmake_folders(place);
	buf_fini(&absolute);
	return found || err_set(err, why.code, "%s", why.text);
}

/* Open the regular file at PLACE for reading and put its status into ST. -1 with ERR. */
static int place_open_old(const struct place *place, struct stat *st, struct err *err)
{
	int fd = files_open_regular(place->folder_fd, place->name, st);

	if (fd < 0)
		files_say(errno, place->name, err);
	return fd;
}

bool place_read(const struct place *place, size_t max, struct buf *content,
		struct stat *st, struct err *err)
{
	auto_close int fd = place_open_old(place, st, err);

	if (fd < 0)
		return false;
	if (st->st_size > 0 && (uint64_t)st->st_size > max)
		return err_set(err, EFBIG, "%s has %jd bytes; at most %zu are taken.",
			       place->name, (intmax_t)st->st_size, max);
	return fd_read_looked(fd, st->st_size, content, place->name, err);
}

/*
 * A journal is lines of JSON. Each object is a folder that is open for a while. Behind these
 * lines, a write has two arrays: the rows that will be written, and, when all temporary
 * files exist, their inodes and times. Paths are written as in scan.h, because JSON holds
 * only UTF-8.
 */

/* Far more than the rows of one patch. */
enum {
	JOURNAL_BYTES_MAX = 4 << 20,
	/* Half of it, some ten thousand folders, leaves room for the rows of a write. */
	JOURNAL_OPENED_MAX = JOURNAL_BYTES_MAX / 2,
};

/* The member by which the row of a folder is known, and its name, which is no file's. */
#define JOURNAL_MODE   "mode"
#define JOURNAL_ITSELF "."

/* A whole number of 64 bits as text: JSON's integers are signed. */
static void set_number(struct value *object, const char *key, uint64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, number);
	value_set_text(object, key, text);
}

/* The size and time of ST, under keys that begin with PREFIX. */
static void set_times(struct value *object, const char *prefix, const struct stat *st)
{
	char key[16];

	(void)snprintf(key, sizeof(key), "%ssize", prefix);
	set_number(object, key, (uint64_t)st->st_size);
	(void)snprintf(key, sizeof(key), "%ss", prefix);
	set_number(object, key, (uint64_t)st->st_mtim.tv_sec);
	(void)snprintf(key, sizeof(key), "%sns", prefix);
	value_set_integer(object, key, st->st_mtim.tv_nsec);
}

static bool add_line(int fd, const struct value *list)
{
	struct buf line;
	struct err err;
	bool ok;

	buf_init(&line, JOURNAL_BYTES_MAX);
	ok = value_print(list, 0, &line) && buf_addc(&line, '\n');
	if (!ok)
		errno = EFBIG;
	if (ok && !fd_write_all(fd, line.data, line.size, &err)) {
		errno = err.code ? err.code : EIO;
		ok = false;
	}
	buf_fini(&line);
	return ok;
}

static bool add_rows(int fd, const struct journal_row *rows, size_t count)
{
	auto_value struct value *list = value_new_array();

	for (size_t i = 0; i < count; i++) {
		struct value *item = value_new_object();

		auto_free char *folder = path_key(rows[i].folder);
		auto_free char *name = path_key(rows[i].name);

		value_set_text(item, "folder", folder);
		value_set_text(item, "name", name);
		value_set_text(item, "temp", rows[i].temp);
		value_set_text(item, "keep", rows[i].keep);
		value_set_boolean(item, "removes", rows[i].removes);
		value_append(list, item);
	}
	return add_line(fd, list);
}

bool place_journal_begin(const struct files *files, const struct journal_row *rows,
			 size_t count, bool lasting)
{
	if (files->journal < 0)
		return true;
	if (lseek(files->journal, (off_t)files->journal_at, SEEK_SET) >= 0 &&
	    add_rows(files->journal, rows, count) &&
	    (!lasting || fdatasync(files->journal) == 0))
		return true;
	place_journal_end(files);
	return false;
}

void place_journal_end(const struct files *files)
{
	int code = errno;

	if (files->journal >= 0)
		(void)!ftruncate(files->journal, (off_t)files->journal_at);
	errno = code;
}

void place_journal_opened(struct files *files, const char *folder, mode_t mode)
{
	auto_value struct value *row = value_new_object();
	auto_free char *key = path_key(folder);

	if (files->journal < 0 || files->journal_at > JOURNAL_OPENED_MAX)
		return;
	value_set_text(row, "folder", key);
	value_set_text(row, "name", JOURNAL_ITSELF);
	value_set_integer(row, JOURNAL_MODE, mode);
	if (lseek(files->journal, (off_t)files->journal_at, SEEK_SET) >= 0 &&
	    add_line(files->journal, row))
		files->journal_at = (uint64_t)lseek(files->journal, 0, SEEK_CUR);
	else
		place_journal_end(files);
}

void place_journal_closed(struct files *files)
{
	files->journal_at = 0;
	place_journal_end(files);
}

/*
 * Note that all temporary files are on disk. From now on a killed write is finished, not
 * undone.
 */
static bool journal_commit(const struct files *files, const struct journal_row *rows,
			   size_t count)
{
	auto_value struct value *list = NULL;

	if (files->journal < 0)
		return true;
	list = value_new_array();
	for (size_t i = 0; i < count; i++) {
		struct value *item = value_new_object();

		set_number(item, "new", rows[i].made.st_ino);
		if (!rows[i].removes)
			set_times(item, "new_", &rows[i].made);
		value_set_boolean(item, "existed", rows[i].existed);
		if (rows[i].existed) {
			set_number(item, "old", rows[i].old.st_ino);
			set_times(item, "", &rows[i].old);
		}
		value_append(list, item);
	}
	return add_line(files->journal, list) && fdatasync(files->journal) == 0;
}

/*
 * Append the rows of OPENED to ROWS. A folder in another one was opened after that one, and
 * is closed before it. Of several lines of one folder the last one counts.
 */
static void add_opened(struct value *rows, const struct value *opened)
{
	auto_value struct value *added = value_new_object();

	for (size_t i = value_count(opened); i-- > 0;) {
		struct value *row = value_item(opened, i);
		const char *folder = value_text(value_member(row, "folder"));

		if (folder == NULL || value_member(added, folder) != NULL)
			continue;
		value_set_boolean(added, folder, true);
		value_append(rows, value_ref(row));
	}
}

struct value *place_unfinished(int fd)
{
	auto_value struct value *known = NULL, *opened = value_new_array();
	struct value *rows = NULL;
	struct str rest, line;
	struct buf text;

	buf_init(&text, JOURNAL_BYTES_MAX);
	if (lseek(fd, 0, SEEK_SET) < 0 || !fd_read_all(fd, &text, "a journal", NULL))
		buf_clear(&text);
	rest = buf_str(&text);
	/* A line without its newline was not written completely and does not count. */
	while (known == NULL && str_find(rest, STR("\n"), 0) != (size_t)-1 &&
	       str_next_line(&rest, &line)) {
		struct value *found = NULL;

		(void)value_parse(line, 0, &found, NULL);
		if (rows != NULL)
			known = found;
		else if (value_kind(found) == VALUE_OBJECT)
			value_append(opened, found);
		else
			rows = found;
		if (found == NULL)
			break;
	}
	for (size_t i = 0;
	     value_count(known) == value_count(rows) && i < value_count(rows); i++) {
		struct value *row = value_item(rows, i);
		if (value_kind(row) == VALUE_OBJECT)
			value_set(row, "known", value_ref(value_item(known, i)));
	}
	buf_fini(&text);
	if (value_kind(rows) != VALUE_ARRAY) {
		value_free(rows);
		rows = value_new_array();
	}
	add_opened(rows, opened);
	if (value_count(rows) > 0)
		return rows;
	value_free(rows);
	return NULL;
}

/* The temporary file that receives a content before it is renamed to its place. */

#define TEMP_PREFIX ".glovebox-"
#define TEMP_SUFFIX ".tmp"

enum {
	TEMP_DIGITS = 16,
	TEMP_XATTR_LIST = 65536, /* XATTR_LIST_MAX and XATTR_SIZE_MAX of the kernel */
};

void temp_make_name(char name[TEMP_NAME])
{
	uint64_t random = 0;

	while (getrandom(&random, sizeof(random), 0) != sizeof(random))
		;
	(void)snprintf(name, TEMP_NAME, TEMP_PREFIX "%016" PRIx64 TEMP_SUFFIX, random);
}

static bool temp_is_name(const char *name)
{
	struct str text = str_of(name);

	return str_starts(text, STR(TEMP_PREFIX)) && str_ends(text, STR(TEMP_SUFFIX)) &&
	       text.size == strlen(TEMP_PREFIX TEMP_SUFFIX) + TEMP_DIGITS &&
	       strspn(name + strlen(TEMP_PREFIX), "0123456789abcdef") == TEMP_DIGITS;
}

void temp_drop(struct temp *temp)
{
	int saved = errno;

	if (temp->name[0])
		(void)unlinkat(temp->folder_fd, temp->name, 0);
	temp->name[0] = '\0';
	fd_close(&temp->fd);
	errno = saved;
}

bool temp_open(struct temp *temp, int folder_fd, const char *name, mode_t mode)
{
	temp->folder_fd = folder_fd;
	temp->name[0] = '\0';
	if (!name)
		temp->fd = openat(folder_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
	else
		temp->fd = openat(folder_fd, name,
				  O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC,
				  mode);
	if (temp->fd >= 0 && name)
		(void)snprintf(temp->name, sizeof(temp->name), "%s", name);
	return temp->fd >= 0;
}

static bool temp_write(struct temp *temp, struct str content)
{
	struct err err;

	if (!fd_write_all(temp->fd, content.data, content.size, &err)) {
		errno = err.code ? err.code : EIO;
		return false;
	}
	return true;
}

bool temp_link(const struct temp *temp, const char *name)
{
	return fd_link(temp->fd, temp->folder_fd, name);
}

/*
 * Write the names in the folder to disk. True also for a folder that may be written but
 * not read, which cannot be synced; the contents of the files are safe.
 */
static bool temp_sync_folder(int folder_fd)
{
	auto_close int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) == 0 || errno == EINVAL;
}

/*
 * Copy the attributes of the old file to the new one. An attribute that the file system
 * refuses is left out.
 */
static void copy_xattrs(int from, int to)
{
	auto_free char *names = memory_alloc(TEMP_XATTR_LIST);
	auto_free char *data = NULL;
	ssize_t size = flistxattr(from, names, TEMP_XATTR_LIST);

	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t length;

		if (!data)
			data = memory_alloc(TEMP_XATTR_LIST);
		length = fgetxattr(from, names + at, data, TEMP_XATTR_LIST);
		if (length >= 0)
			(void)fsetxattr(to, names + at, data, (size_t)length, 0);
	}
}

/*
 * Rename FROM to TO in the folder; TO must be free. On a file system without such a
 * rename, the file keeps the name FROM as well.
 */
static bool temp_take_name(int folder_fd, const char *from, const char *to)
{
	if (renameat2(folder_fd, from, folder_fd, to, RENAME_NOREPLACE) == 0)
		return true;
	/* Without RENAME_NOREPLACE, use a hard link, which replaces no file either. */
	return (errno == EINVAL || errno == ENOSYS) &&
	       linkat(folder_fd, from, folder_fd, to, 0) == 0;
}

/*
 * Copy owner, mode, xattrs and ACL of the old file, which is open as FROM and has the
 * status ST.
 */
static bool temp_copy_attributes(const struct temp *temp, int from, const struct stat *st)
{
	const int to = temp->fd;
	struct stat made;
	/*
	 * A changed file loses its set-id bits, as after write(2). A cell refuses these
	 * bits anyway.
	 */
	mode_t mode = st->st_mode & 01777;

	if (fstat(to, &made) < 0)
		return false;
	if (made.st_uid != st->st_uid || made.st_gid != st->st_gid) {
		/*
		 * A user may keep a group of their own even when they may not keep the
		 * owner.
		 */
		if (fchown(to, st->st_uid, st->st_gid) < 0 &&
		    fchown(to, (uid_t)-1, st->st_gid) < 0)
			errno = 0; /* the file belongs to us then, as any new file */
	}
	if (fchmod(to, mode) < 0)
		return false;
	copy_xattrs(from, to);
	return true;
}

/*
 * Finishes or undoes the writes that a killed worker had begun, each set of files as a
 * whole.
 */

/* One row of a journal that was found, with its folder opened again beneath the roots. */
struct finishing {
	int folder_fd; /* -1: the row must not be touched */
	char *name;
	const char *temp, *keep;
	bool removes;
	const struct value *known; /* NULL: no file was put in place yet */
};

static bool is_number(const struct value *object, const char *key, uint64_t number)
{
	const char *given = value_text(value_member(object, key));
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, number);
	return given && strcmp(given, text) == 0;
}

/* Do size and time of ST equal the members of KNOWN whose keys begin with PREFIX? */
static bool is_as(const struct value *known, const char *prefix, const struct stat *st)
{
	char size[16], seconds[16], nanoseconds[16];

	(void)snprintf(size, sizeof(size), "%ssize", prefix);
	(void)snprintf(seconds, sizeof(seconds), "%ss", prefix);
	(void)snprintf(nanoseconds, sizeof(nanoseconds), "%sns", prefix);
	return is_number(known, size, (uint64_t)st->st_size) &&
	       is_number(known, seconds, (uint64_t)st->st_mtim.tv_sec) &&
	       value_integer(value_member(known, nanoseconds)) == st->st_mtim.tv_nsec;
}

static bool is_plain_name(const char *name)
{
	return name && *name && !strchr(name, '/') && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0 && strlen(name) <= NAME_MAX;
}

static bool look(const struct finishing *row, const char *name, struct stat *st)
{
	return fstatat(row->folder_fd, name, st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st->st_mode);
}

static bool is_absent(const struct finishing *row, const char *name)
{
	struct stat st;

	return fstatat(row->folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	       errno == ENOENT;
}

static bool is_old(const struct finishing *row, const char *name)
{
	struct stat st;

	return value_is_true(value_member(row->known, "existed")) && look(row, name, &st) &&
	       is_number(row->known, "old", st.st_ino) && is_as(row->known, "", &st);
}

/* Is NAME the file that was written, even with a content changed since? */
static bool is_new(const struct finishing *row, const char *name)
{
	struct stat st;

	return look(row, name, &st) && is_number(row->known, "new", st.st_ino);
}

static bool is_new_and_untouched(const struct finishing *row)
{
	struct stat st;

	return is_new(row, row->name) && look(row, row->name, &st) &&
	       is_as(row->known, "new_", &st);
}

/* Is the row done already, or can it be done without touching a file of somebody else? */
static bool may_finish(const struct finishing *row)
{
	const bool existed = value_is_true(value_member(row->known, "existed"));

	if (row->folder_fd < 0)
		return false;
	if (row->removes)
		return is_absent(row, row->name) || is_old(row, row->name);
	if (is_new(row, row->name))
		return true;
	if (!is_new(row, row->temp))
		return false;
	if (is_absent(row, row->name))
		return !existed || is_old(row, row->keep);
	return is_old(row, row->name);
}

static bool finish_row(const struct finishing *row)
{
	if (row->removes)
		return !is_old(row, row->name) ||
		       unlinkat(row->folder_fd, row->name, 0) == 0;
	if (is_new(row, row->name))
		return true;
	if (is_old(row, row->name))
		return renameat(row->folder_fd, row->temp, row->folder_fd, row->name) == 0;
	return temp_take_name(row->folder_fd, row->temp, row->name);
}

/*
 * Restore the old file when the name still holds the file that the write put there, or
 * nothing.
 */
static bool take_back(const struct finishing *row)
{
	const char *old = is_old(row, row->keep)   ? row->keep
			  : is_old(row, row->temp) ? row->temp
						   : NULL;

	if (is_absent(row, row->name))
		return old == NULL || temp_take_name(row->folder_fd, old, row->name);
	if (row->removes || !is_new_and_untouched(row))
		return true;
	if (!value_is_true(value_member(row->known, "existed")))
		return unlinkat(row->folder_fd, row->name, 0) == 0;
	return old == NULL || renameat(row->folder_fd, old, row->folder_fd, row->name) == 0;
}

static void remove_temp(const struct finishing *row, const char *name)
{
	struct stat st;

	/* Undo makes temporary symbolic links, too. */
	if (fstatat(row->folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)))
		(void)unlinkat(row->folder_fd, name, 0);
}

/*
 * Read ITEM into ROW and open its folder beneath the roots. A folder reached through a
 * link is refused, because the writer noted a real path.
 */
static void open_row(const struct files *files, const struct value *item,
		     struct finishing *row)
{
	auto_free char *folder = path_of_key(value_text(value_member(item, "folder")));
	struct buf real;
	struct err err;

	*row = (struct finishing){
		.folder_fd = -1,
		.name = path_of_key(value_text(value_member(item, "name"))),
		.temp = value_text(value_member(item, "temp")),
		.keep = value_text(value_member(item, "keep")),
		.removes = value_is_true(value_member(item, "removes")),
		.known = value_member(item, "known"),
	};
	if (folder == NULL || folder[0] != '/' || !is_plain_name(row->name) ||
	    row->temp == NULL || !temp_is_name(row->temp) || row->keep == NULL ||
	    !temp_is_name(row->keep))
		return;
	buf_init(&real, PATH_MAX);
	if (files_normal(files, folder, &real, &err))
		row->folder_fd = files_open_real(files, real.data, O_PATH | O_DIRECTORY,
						 &real, folder, &err);
	if (row->folder_fd >= 0 &&
	    (strcmp(real.data, folder) != 0 || !buf_addf(&real, "/%s", row->name) ||
	     files_is_blocked(files, real.data) || !files_is_writable(files, real.data)))
		fd_close(&row->folder_fd);
	buf_fini(&real);
}

/* Finish or undo the COUNT rows of one write. */
static void take_set(const struct files *files, const struct value *rows, size_t first,
		     size_t count)
{
	struct finishing *set = memory_array(count, sizeof(*set));
	bool finishes = true;

	for (size_t i = 0; i < count; i++) {
		open_row(files, value_item(rows, first + i), &set[i]);
		finishes = finishes && set[i].known != NULL && may_finish(&set[i]);
	}
	for (size_t i = 0; i < count; i++) {
		const struct finishing *row = &set[i];
		bool settled = row->folder_fd >= 0;

		if (settled && row->known != NULL)
			settled = finishes ? finish_row(row) : take_back(row);
		/* After a failure, such a name may hold the only copy of a content. */
		if (settled) {
			remove_temp(row, row->temp);
			remove_temp(row, row->keep);
		}
		fd_close(&set[i].folder_fd);
		free(set[i].name);
	}
	free(set);
}

/*
 * Give the folder of ROW its permissions, unless it has other ones by now than those with
 * which it was open.
 */
static void close_folder(const struct files *files, const struct value *row)
{
	auto_free char *folder = path_of_key(value_text(value_member(row, "folder")));
	const int64_t wanted = value_integer(value_member(row, JOURNAL_MODE));
	const mode_t mode = folder_mode_opened((mode_t)wanted, 0);
	char name[FD_NAME_ROOM];
	struct buf real;
	struct stat st;
	struct err err;

	if (folder == NULL || folder[0] != '/')
		return;
	buf_init(&real, PATH_MAX);
	auto_close int fd =
		files_normal(files, folder, &real, &err)
			? files_open_real(files, real.data, O_PATH | O_DIRECTORY, &real,
					  folder, &err)
			: -1;
	if (fd >= 0 && strcmp(real.data, folder) == 0 &&
	    buf_adds(&real, "/" JOURNAL_ITSELF) && !files_is_blocked(files, folder) &&
	    files_is_writable(files, real.data) && fstat(fd, &st) == 0 &&
	    folder_mode_opened(st.st_mode, 0) == folder_mode_opened(mode, S_IRWXU))
		(void)!chmod(fd_name(fd, name), mode);
	buf_fini(&real);
}

void place_finish(struct files *files, const struct value *rows)
{
	const size_t count = value_count(rows);

	for (size_t i = 0; i < count;) {
		const struct value *set = value_member(value_item(rows, i), JOURNAL_SET);
		size_t folders, next = i + 1;

		while (next < count &&
		       value_integer(value_member(value_item(rows, next), JOURNAL_SET)) ==
			       value_integer(set))
			next++;
		/* Folders come last: a write in one is finished while it is open. */
		folders = i;
		while (folders < next &&
		       value_member(value_item(rows, folders), JOURNAL_MODE) == NULL)
			folders++;
		if (folders > i)
			take_set(files, rows, i, folders - i);
		for (; folders < next; folders++)
			close_folder(files, value_item(rows, folders));
		i = next;
	}
}

/*
 * One file of a write, from locking the old content to naming the new one. The
 * functions are called in the order below. When one fails, place_item_take_back and
 * temp_drop clean up.
 */

enum {
	/*
	 * Our writers hold the lock for one write. Only a foreign program holds it
	 * longer.
	 */
	PLACE_LOCK_MS = 5000,
	PLACE_LOCK_STEP_MS = 2,
	/* tries when a file is exchanged while it is opened */
	PLACE_TRIES = 64,
};

/*
 * Set ERR to the failure CODE of a writer, with the assurance that nothing was lost.
 * Returns false.
 */
static bool place_say_write(int code, const struct place *place, struct err *err)
{
	const char *kept =
		place->exists ? "the old file is unchanged" : "nothing was written";
	char path[2 * PATH_MAX];
	const char *shown;

	(void)snprintf(path, sizeof(path), "%s/%s",
		       strcmp(place->folder.data, "/") == 0 ? "" : place->folder.data,
		       place->name);
	shown = place->files ? files_shown(place->files, path) : path;
	switch (code) {
	case ENOSPC:
		return err_set(err, code, "%s: no space is left on this file system; %s.",
			       shown, kept);
	case EDQUOT:
		return err_set(err, code, "%s: the disk quota is used up; %s.", shown, kept);
	case EFBIG:
		return err_set(err, code, "%s: larger than the limit for files here; %s.",
			       shown, kept);
	case EEXIST:
		return err_set(err, code, "%s exists already.", shown);
	/*
	 * The policy allowed this write, so the view forbids it: a bind mount, or a
	 * read-only mount.
	 */
	case EROFS:
	case EBUSY:
		return err_set(err, code,
			       "%s is held read-only in the cell (%s): a file that git or a "
			       "program outside runs or follows is protected; %s.",
			       shown, strerror(code), kept);
	default:
		return err_set(err, code, "%s: %s; %s.", shown, strerror(code), kept);
	}
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Open and lock the file that has the name. -1 with ERR. */
static int lock_old(struct place *place, struct stat *st, struct err *err)
{
	int64_t deadline = clock_now_ms() + PLACE_LOCK_MS;

	for (int i = 0; i < PLACE_TRIES || clock_now_ms() < deadline;) {
		auto_close int fd = place_open_old(place, st, err);
		struct stat named;

		if (fd < 0)
			return -1;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
			if (clock_now_ms() >= deadline)
				break;
			(void)poll(NULL, 0, PLACE_LOCK_STEP_MS);
			continue;
		}
		if (fstatat(place->folder_fd, place->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		    same_file(&named, st)) {
			/* The status as it is under the lock. */
			*st = named;
			return fd_take(&fd);
		}
		i++;
	}
	(void)err_set(err, EBUSY, "%s is locked by another program for more than %d s.",
		      place->name, PLACE_LOCK_MS / 1000);
	return -1;
}

static bool say_changed(const struct place *place, struct err *err)
{
	return err_set(err, EAGAIN, "%s was changed by somebody else in the meantime.",
		       place->name);
}

/* Has the locked old file the content that was expected? */
static bool check_mark(int fd, const struct stat *st, const struct place_change *change,
		       struct err *err)
{
	const struct place *place = change->place;
	char mark[FILES_MARK];
	struct buf old;
	bool ok = true;

	buf_init(&old, FILES_HASHED_MAX);
	if (st->st_size <= FILES_HASHED_MAX)
		ok = fd_read_looked(fd, st->st_size, &old, place->name, err);
	if (ok && st->st_size <= FILES_HASHED_MAX && change->expected.data) {
		ok = str_equal(buf_str(&old), change->expected) || say_changed(place, err);
	} else if (ok) {
		files_mark(buf_str(&old), st, mark);
		ok = strcmp(mark, change->expected_mark) == 0 || say_changed(place, err);
	} else if (err->code == EFBIG) {
		say_changed(place, err);
	}
	buf_fini(&old);
	return ok;
}

/* The last check before the rename, because some programs write without a lock. */
static bool still_the_same(const struct place *place, const struct stat *st)
{
	struct stat now;

	return fstatat(place->folder_fd, place->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       same_file(&now, st) && now.st_size == st->st_size &&
	       now.st_mtim.tv_sec == st->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

/* Lock the old file and compare it. */
static bool place_item_lock(struct place_item *item, struct err *err)
{
	struct place_change *change = item->change;

	item->row.existed = change->expected_mark != NULL;
	if (!item->row.existed)
		return !change->place->exists ||
		       place_say_write(EEXIST, change->place, err);
	item->old_fd = lock_old(change->place, &item->row.old, err);
	return item->old_fd >= 0 && check_mark(item->old_fd, &item->row.old, change, err);
}

static bool copy_attributes(struct place_item *item)
{
	const struct place_change *change = item->change;
	struct stat st;

	if (item->row.existed) {
		if (!temp_copy_attributes(&item->temp, item->old_fd, &item->row.old))
			return false;
	} else if (change->like) {
		auto_close int fd = place_open_old(change->like, &st, NULL);

		if (fd < 0 || !temp_copy_attributes(&item->temp, fd, &st))
			return false;
	}
	return change->mode == 0 || fchmod(item->temp.fd, change->mode & 0777) == 0;
}

/*
 * Write the new content into a temporary file (NAMED or nameless) in the same folder, and
 * wait until it is on disk. False with errno.
 */
static bool place_item_write(struct place_item *item, bool named)
{
	const struct place_change *change = item->change;
	mode_t mode = item->row.existed ? 0600 : 0666;

	if (change->removes)
		return true;
	if (!temp_open(&item->temp, change->place->folder_fd,
		       named ? item->row.temp : NULL, mode) ||
	    !temp_write(&item->temp, change->content) || !copy_attributes(item) ||
	    fsync(item->temp.fd) < 0 || fstat(item->temp.fd, &item->row.made) < 0)
		return false;
	return true;
}

/*
 * Before the file changes, write its old content and its new state to the log for undo.
 */
static bool place_item_keep(const struct place_item *item, struct err *err)
{
	const struct place *place = item->change->place;
	struct undo_state after = undo_absent;
	struct buf path;

	if (place->files == NULL || place->files->log == NULL)
		return true;
	if (!item->change->removes) {
		undo_state_of(&item->row.made, &after);
		undo_state_hash_text(item->change->content, &after);
	}
	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s/%s",
		       str_is(buf_str(&place->folder), "/") ? "" : place->folder.data,
		       place->name);
	bool kept = keep_change(place->files, path.data, item->old_fd, &item->row.old,
				&after, err);
	buf_fini(&path);
	return kept;
}

/*
 * Give the temporary file the name that is in the journal. False: a nameless file can get
 * no name here.
 */
static bool place_item_link(struct place_item *item)
{
	if (item->change->removes || item->temp.name[0])
		return true;
	if (!temp_link(&item->temp, item->row.temp))
		return false;
	memcpy(item->temp.name, item->row.temp, sizeof(item->temp.name));
	return true;
}

/*
 * Exchange the names of the new and the old file. Afterwards the old content has the name
 * of the temporary file, or the name KEEP where names cannot be exchanged. So it can be
 * restored as long as the set is not complete.
 */
static bool put_exchanged(struct place_item *item)
{
	const struct place *place = item->change->place;
	int folder_fd = place->folder_fd;
	int saved;

	if (renameat2(folder_fd, item->temp.name, folder_fd, place->name,
		      RENAME_EXCHANGE) == 0)
		return true;
	if (errno != EINVAL && errno != ENOSYS)
		return false;
	if (renameat(folder_fd, place->name, folder_fd, item->row.keep) < 0)
		return false;
	if (renameat(folder_fd, item->temp.name, folder_fd, place->name) == 0) {
		memcpy(item->temp.name, item->row.keep, sizeof(item->temp.name));
		return true;
	}
	saved = errno;
	(void)renameat(folder_fd, item->row.keep, folder_fd, place->name);
	errno = saved;
	return false;
}

/*
 * Put the new content in place. Unless ALONE, the old content is kept, so that
 * place_item_take_back can restore it.
 */
static bool place_item_put(struct place_item *item, bool alone, struct err *err)
{
	const struct place *place = item->change->place;
	bool ok;

	if (item->row.existed && !still_the_same(place, &item->row.old))
		return say_changed(place, err);
	if (!item->row.existed) {
		ok = temp_take_name(place->folder_fd, item->temp.name, place->name);
	} else if (item->change->removes) {
		ok = renameat(place->folder_fd, place->name, place->folder_fd,
			      item->row.keep) == 0;
		item->temp.folder_fd = place->folder_fd;
		if (ok)
			memcpy(item->temp.name, item->row.keep, sizeof(item->temp.name));
	} else if (alone) {
		ok = renameat(place->folder_fd, item->temp.name, place->folder_fd,
			      place->name) == 0;
		if (ok)
			item->temp.name[0] = '\0';
	} else {
		ok = put_exchanged(item);
	}
	item->in_place = ok;
	return ok || place_say_write(errno, place, err);
}

/* Undo place_item_put. A file that somebody else has put there since stays. */
static void place_item_take_back(struct place_item *item)
{
	const struct place *place = item->change->place;
	const char *temp = item->temp.name;
	/* the temporary name is the only name of the old content, and must stay */
	bool keeps = false;
	struct stat now;

	if (!item->in_place)
		return;
	item->in_place = false;
	if (item->change->removes)
		keeps = !temp_take_name(place->folder_fd, temp, place->name) &&
			errno != EEXIST;
	else if (fstatat(place->folder_fd, place->name, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
		 now.st_ino != item->row.made.st_ino)
		return;
	else if (!item->row.existed)
		(void)unlinkat(place->folder_fd, place->name, 0);
	else
		keeps = renameat(place->folder_fd, temp, place->folder_fd, place->name) < 0;
	if (keeps)
		item->temp.name[0] = '\0';
}

/*
 * Puts contents at their places so that every reader sees the old file or the new one,
 * for one file and for a set of them. A content is first written to a nameless file
 * (O_TMPFILE). While that file has a temporary name, the name is in the journal, so
 * that the file of a killed writer is removed later.
 */

struct staging {
	struct place_item *items;
	size_t count;
	struct journal_row *rows; /* in the order of items */
	bool begun;               /* the rows are in the journal */
};

/* Two sets that want the same files lock them in the same order. */
static int compare_items(const void *a, const void *b)
{
	const struct journal_row *left = &((const struct place_item *)a)->row;
	const struct journal_row *right = &((const struct place_item *)b)->row;
	int order = strcmp(left->folder, right->folder);

	return order != 0 ? order : strcmp(left->name, right->name);
}

static void staging_init(struct staging *staging, struct place_change *changes, size_t count)
{
	memset(staging, 0, sizeof(*staging));
	staging->items = memory_array(count, sizeof(*staging->items));
	staging->rows = memory_array(count, sizeof(*staging->rows));
	staging->count = count;
	for (size_t i = 0; i < count; i++) {
		struct place_item *item = &staging->items[i];

		item->change = &changes[i];
		item->old_fd = item->temp.fd = -1;
		item->row.folder = changes[i].place->folder.data;
		item->row.name = changes[i].place->name;
		item->row.removes = changes[i].removes;
		temp_make_name(item->row.temp);
		temp_make_name(item->row.keep);
	}
	qsort(staging->items, count, sizeof(*staging->items), compare_items);
}

static void staging_fini(struct staging *staging)
{
	for (size_t i = 0; i < staging->count; i++) {
		temp_drop(&staging->items[i].temp);
		fd_close(&staging->items[i].old_fd);
	}
	if (staging->begun)
		place_journal_end(staging->items[0].change->place->files);
	free(staging->items);
	free(staging->rows);
}

static bool staging_begin(struct staging *staging, struct err *err)
{
	const struct place *place = staging->items[0].change->place;

	if (staging->begun)
		return true;
	for (size_t i = 0; i < staging->count; i++)
		staging->rows[i] = staging->items[i].row;
	staging->begun = place_journal_begin(place->files, staging->rows, staging->count,
					     staging->count > 1);
	return staging->begun ||
	       err_set(err, errno,
		       "%s: the journal of this write, in the user's state folder, could not "
		       "be written (%s); nothing was changed.",
		       place->name, strerror(errno));
}

/*
 * Does the error CODE mean that nameless files do not work here, so that a named one may?
 */
static bool wants_names(int code)
{
	return code == EOPNOTSUPP || code == EISDIR || code == EINVAL || code == ENOENT ||
	       code == EPERM || code == ENOSYS;
}

static bool staging_write(struct staging *staging, bool named, struct err *err)
{
	for (size_t i = 0; i < staging->count; i++) {
		struct place_item *item = &staging->items[i];

		if (place_item_write(item, named))
			continue;
		if (!named && wants_names(errno)) {
			for (size_t j = 0; j <= i; j++)
				temp_drop(&staging->items[j].temp);
			return staging_begin(staging, err) &&
			       staging_write(staging, true, err);
		}
		return place_say_write(errno, item->change->place, err);
	}
	return true;
}

static bool staging_link(struct staging *staging, struct err *err)
{
	for (size_t i = 0; i < staging->count; i++) {
		struct place_item *item = &staging->items[i];

		if (place_item_link(item))
			continue;
		/*
		 * A nameless file can get a name only through /proc, which is missing
		 * here.
		 */
		temp_drop(&item->temp);
		if (!place_item_write(item, true))
			return place_say_write(errno, item->change->place, err);
	}
	return true;
}

/* Write the temporary names to disk before the journal relies on them. */
static bool staging_commit(struct staging *staging, struct err *err)
{
	const struct place *place = staging->items[0].change->place;

	if (staging->count == 1)
		return true;
	for (size_t i = 0; i < staging->count; i++) {
		/*
		 * Lock the new files, so that a writer that opens one early waits for the
		 * whole set.
		 */
		if (staging->items[i].temp.fd >= 0)
			(void)flock(staging->items[i].temp.fd, LOCK_EX | LOCK_NB);
		if (!temp_sync_folder(staging->items[i].change->place->folder_fd))
			return place_say_write(errno, place, err);
		staging->rows[i] = staging->items[i].row;
	}
	return journal_commit(place->files, staging->rows, staging->count) ||
	       place_say_write(errno, place, err);
}

static bool staging_put(struct staging *staging, struct err *err)
{
	size_t done = 0;

	while (done < staging->count &&
	       place_item_put(&staging->items[done], staging->count == 1, err))
		done++;
	if (done == staging->count)
		return true;
	while (done-- > 0)
		place_item_take_back(&staging->items[done]);
	return false;
}

static bool staging_sync(struct staging *staging, struct err *err)
{
	for (size_t i = 0; i < staging->count; i++) {
		struct place *place = staging->items[i].change->place;

		if (!temp_sync_folder(place->folder_fd))
			return err_set(err, errno,
				       "%s was written, but its folder could not be "
				       "synced: %s.",
				       place->name, strerror(errno));
		place->exists = fstatat(place->folder_fd, place->name, &place->st,
					AT_SYMLINK_NOFOLLOW) == 0;
		place->made_folders = 0;
	}
	return true;
}

static bool staging_keep(const struct staging *staging, struct err *err)
{
	for (size_t i = 0; i < staging->count; i++) {
		if (!place_item_keep(&staging->items[i], err))
			return false;
	}
	return true;
}

/* Create a single new file: write it nameless and give it its final name directly. */
static bool create_alone(struct place_item *item, struct err *err)
{
	err->code = 0;
	return place_item_write(item, false) && place_item_keep(item, err) &&
	       temp_link(&item->temp, item->change->place->name);
}

static bool write_all(struct staging *staging, struct err *err)
{
	struct place_item *first = &staging->items[0];
	bool created = false;

	for (size_t i = 0; i < staging->count; i++) {
		if (!place_item_lock(&staging->items[i], err))
			return false;
	}
	if (staging->count == 1 && !first->row.existed) {
		created = create_alone(first, err);
		if (!created && err->code != 0)
			return false;
		if (!created && !wants_names(errno))
			return place_say_write(errno, first->change->place, err);
		if (!created)
			temp_drop(&first->temp);
	}
	return (created ||
		(staging_write(staging, false, err) && staging_keep(staging, err) &&
		 staging_begin(staging, err) && staging_link(staging, err) &&
		 staging_commit(staging, err) && staging_put(staging, err))) &&
	       staging_sync(staging, err);
}

bool place_write_set(struct place_change *changes, size_t count, struct err *err)
{
	struct staging staging;
	struct err why = {0};
	bool ok;

	staging_init(&staging, changes, count);
	ok = write_all(&staging, &why);
	if (ok && count == 1 && changes->place->files != NULL)
		close_later(changes->place->files, fd_take(&staging.items->old_fd));
	staging_fini(&staging);
	for (size_t i = count; i-- > 0;) {
		const struct place *place = changes[i].place;

		if (ok)
			add_heads(place->files, place->folder.data);
		else
			place_unmake_folders(changes[i].place);
		if (ok && !changes[i].removes)
			add_written(place->files, place->folder.data, place->name);
	}
	return ok || err_set(err, why.code, "%s", why.text);
}

bool place_write(struct place *place, struct str content, const char *expected_mark,
		 struct err *err)
{
	struct place_change change = {.place = place,
				      .content = content,
				      .expected_mark = expected_mark};

	return place_write_set(&change, 1, err);
}
