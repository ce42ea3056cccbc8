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
#include "files/rights.h"
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
	char temp_name[TEMP_NAME]; /* the new content; after an exchange, the old one */
	char keep_name[TEMP_NAME]; /* the old content where names cannot be exchanged */
	bool existed;
	struct stat old;
	struct stat made; /* the new content, under its temporary name */
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
		/* A log without a number is no step: nobody will ask for the content. */
		if (log->number != 0 &&
		    !undo_log_file(log, old_fd, UNDO_CONTENT_MAX, &before, err))
			return err_while(err, "what is there could not be kept for "
					      "`glovebox undo`, so nothing was written");
	}
	return undo_log_change(log, str_of(path_relative(path, files->workspace)),
			       &before, after, err) ||
	       err_while(err, "this change could not be noted for `glovebox undo`, so "
			      "nothing was written");
}

static bool note_folder(const struct files *files, const char *path, struct err *err)
{
	const struct undo_note note = {.kind = UNDO_NOTE_MAKES, .path = str_of(path)};

	return undo_log_note(files->log, &note, err) ||
	       err_while(err, "the folder could not be noted, so nothing was written");
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

bool place_may_write(const struct files *files, const char *real, const char *shown,
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
	struct undo_log *log = place->files->log;
	struct buf made;
	bool ok = true;

	buf_init(&made, PATH_MAX);
	while (ok && rest && *rest) {
		const char *name = strsep(&rest, "/");

		join(place->folder.data, name, &made);
		const uint64_t from = log != NULL ? log->at : 0;
		if (faccessat(place->folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
		    !(note_folder(place->files, made.data, err) &&
		      keep_change(place->files, made.data, -1, NULL, &folder, err))) {
			ok = false;
			break;
		}
		bool ours = mkdirat(place->folder_fd, name, 0777) == 0;
		/* A folder of somebody else must be removed neither after a kill nor by undo. */
		if (!ours)
			undo_log_cut(log, from);
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
	if (place_may_write(files, whole.data, shown, err) &&
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
	files_own(files, path);
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
	return place_may_write(files, absolute->data, path, err);
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
 * Works off the write that a killed process has left in its log: puts back a set that does
 * not stand, and removes the temporary files of any write.
 */

/* A move that restores a file of the write. Each of them can be undone. */
enum left_move {
	MOVE_NOTHING,
	MOVE_RETURN, /* the old file takes the free name */
	MOVE_SWAP,   /* the old file and the new one exchange their names */
	MOVE_AWAY,   /* the new file leaves the name free */
};

/* One file of the write. The last four members are those of a row that is open. */
struct left_row {
	char *path; /* absolute */
	char temp[TEMP_NAME], keep[TEMP_NAME];
	bool known;      /* the states are */
	bool renumbered; /* its files may have other inodes by now */
	struct undo_state before, after;
	enum left_move move;
	int folder_fd;
	const char *name;  /* the last part of `path` */
	const char *old;   /* the temporary name of the old file; NULL: it has none */
	const char *spare; /* a temporary name that is free; NULL: there is none */
};

/* A folder that the write made, or one that is open to its owner and gets MODE. */
struct left_folder {
	char *path;
	mode_t mode;
};
struct left_folders {
	struct left_folder *items;
	size_t count;
};

struct left_write {
	const struct files *files;
	struct rights *rights;
	struct left_row *rows;
	size_t count;
	size_t known; /* rows whose states are known */
	struct left_folders made, opened;
	enum { WRITE_ALONE, WRITE_SET, WRITE_STANDS } state;
	bool in_layer;
	struct buf *told;
};

/* The answer of a look at a name: does it hold the file that it should? */
enum left_look {
	LOOK_IS,
	LOOK_IS_NOT,
	LOOK_FAILED, /* only a later look can tell */
};

/* The end of one file of the write. */
enum left_end {
	LEFT_AS_BEFORE,
	LEFT_ALONE, /* somebody has changed it since, or the writer had no right to it */
	LEFT_FOR_LATER,
};

static void folders_clear(struct left_folders *folders)
{
	while (folders->count > 0)
		free(folders->items[--folders->count].path);
}

static void folders_add(struct left_folders *folders, char *take_path, mode_t mode)
{
	if (folders->count == UNDO_NOTES_MAX) {
		free(take_path);
		return;
	}
	folders->items =
		memory_more(folders->items, folders->count, sizeof(*folders->items));
	folders->items[folders->count++] = (struct left_folder){take_path, mode};
}

/* The write that was read so far is over. */
static void left_clear(struct left_write *left)
{
	while (left->count > 0)
		free(left->rows[--left->count].path);
	left->known = 0;
	left->state = WRITE_ALONE;
	folders_clear(&left->made);
}

static void left_fini(struct left_write *left)
{
	left_clear(left);
	folders_clear(&left->opened);
	free(left->rows);
	free(left->made.items);
	free(left->opened.items);
	rights_free(left->rights);
}

/*
 * A row whose names are not ours is not taken, so that no state that follows belongs to
 * the file that it is read for.
 */
static void row_add(struct left_write *left, const struct undo_note *note)
{
	struct left_row row = {.folder_fd = -1};

	if (left->count == UNDO_NOTES_MAX || !temp_is_name(note->temp) ||
	    (note->keep[0] != '\0' && !temp_is_name(note->keep)))
		return;
	left->rows = memory_more(left->rows, left->count, sizeof(*left->rows));
	memcpy(row.temp, note->temp, sizeof(row.temp));
	memcpy(row.keep, note->keep, sizeof(row.keep));
	row.path = memory_copy_str(note->path);
	left->rows[left->count++] = row;
}

static bool left_note(void *context, const struct undo_note *note)
{
	struct left_write *left = context;

	switch (note->kind) {
	case UNDO_NOTE_MAKES:
		folders_add(&left->made, memory_copy_str(note->path), 0);
		break;
	case UNDO_NOTE_TEMPS:
		row_add(left, note);
		break;
	case UNDO_NOTE_SET:
	case UNDO_NOTE_PUTS:
		left->state = WRITE_SET;
		break;
	case UNDO_NOTE_STANDS:
		left->state = WRITE_STANDS;
		break;
	case UNDO_NOTE_OVER:
		left_clear(left);
		break;
	case UNDO_NOTE_OPENED:
		folders_add(&left->opened, memory_copy_str(note->path), note->mode);
		break;
	case UNDO_NOTE_CLOSED:
		folders_clear(&left->opened);
		break;
	}
	return true;
}

/*
 * A file that was copied into a layer has another inode when the layer is mounted again. It is
 * known by its size and time, unless the old and the new file have the same.
 */
static bool may_be_renumbered(const struct left_write *left, const struct left_row *row)
{
	return left->in_layer && row->known &&
	       (row->before.kind != UNDO_FILE || row->after.kind != UNDO_FILE ||
		row->before.size != row->after.size ||
		row->before.mtime_ns != row->after.mtime_ns);
}

/* The changes of files stand in the order of the rows. */
static bool left_change(void *context, const struct undo_change *change)
{
	struct left_write *left = context;
	struct buf path;

	if (left->known == left->count ||
	    undo_is_of_folders(change->before.kind, change->after.kind))
		return true;
	struct left_row *row = &left->rows[left->known++];
	buf_init(&path, 2 * PATH_MAX);
	if (change->path.data[0] != '/')
		(void)buf_addf(&path, "%s/", left->files->workspace);
	(void)buf_addstr(&path, change->path);
	row->known = str_is(buf_str(&path), row->path);
	row->before = change->before;
	row->after = change->after;
	row->renumbered = may_be_renumbered(left, row);
	buf_fini(&path);
	return true;
}

/* Does the error CODE of a look say that the file is absent? Others say nothing. */
static bool says_absent(int code)
{
	return code == ENOENT || code == ENOTDIR;
}

/*
 * Does NAME hold the file of STATE? A file that was written since counts only when it need
 * not be UNTOUCHED.
 */
static enum left_look row_look(const struct left_row *row, const char *name,
			       const struct undo_state *state, bool untouched)
{
	struct stat st;

	if (name[0] == '\0')
		return LOOK_IS_NOT;
	if (fstatat(row->folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (!says_absent(errno))
			return LOOK_FAILED;
		return state->kind == UNDO_ABSENT ? LOOK_IS : LOOK_IS_NOT;
	}
	if (state->kind != UNDO_FILE || !S_ISREG(st.st_mode))
		return LOOK_IS_NOT;
	const bool same = (uint64_t)st.st_size == state->size &&
			  clock_ns(&st.st_mtim) == state->mtime_ns;
	if (st.st_ino != state->inode && !row->renumbered)
		return LOOK_IS_NOT;
	return same || (!untouched && st.st_ino == state->inode) ? LOOK_IS : LOOK_IS_NOT;
}

/*
 * Find the old file and a free name among the temporary names. The old file may have been
 * written since, by somebody who had it open. False: nobody can tell where it is.
 */
static bool row_find_old(struct left_row *row)
{
	const char *const names[] = {row->keep, row->temp};

	row->old = row->spare = NULL;
	for (size_t i = 0; i < 2; i++) {
		const enum left_look old = row_look(row, names[i], &row->before, false);
		const enum left_look free = row_look(row, names[i], &undo_absent, false);

		if (old == LOOK_FAILED || free == LOOK_FAILED)
			return false;
		if (free == LOOK_IS)
			row->spare = names[i];
		else if (old == LOOK_IS && row->old == NULL)
			row->old = names[i];
	}
	return true;
}

/* Choose the move of ROW, and say how the row will end with it. */
static enum left_end row_judge(const struct left_write *left, struct left_row *row)
{
	row->move = MOVE_NOTHING;
	if (left->state != WRITE_SET || !row->known)
		return LEFT_AS_BEFORE;
	const enum left_look before = row_look(row, row->name, &row->before, false);
	const enum left_look after = row_look(row, row->name, &row->after, true);
	const enum left_look free = row_look(row, row->name, &undo_absent, false);
	if (before == LOOK_FAILED || after == LOOK_FAILED || free == LOOK_FAILED ||
	    !row_find_old(row))
		return LEFT_FOR_LATER;
	if (before == LOOK_IS)
		return LEFT_AS_BEFORE;
	const bool is_new = row->before.kind == UNDO_ABSENT;
	if ((free != LOOK_IS && after != LOOK_IS) || (row->old == NULL && !is_new))
		return LEFT_ALONE;
	row->move = free == LOOK_IS ? MOVE_RETURN : is_new ? MOVE_AWAY : MOVE_SWAP;
	return LEFT_AS_BEFORE;
}

/*
 * Exchange the names TEMP and NAME in the folder. Where the file system cannot exchange
 * names, the file of NAME gets the free name SPARE; without one (NULL) it is replaced.
 * Returns the name that the file of NAME has now; NULL with errno.
 */
static const char *names_exchange(int folder_fd, const char *temp, const char *name,
				  const char *spare)
{
	if (renameat2(folder_fd, temp, folder_fd, name, RENAME_EXCHANGE) == 0)
		return temp;
	if (errno != EINVAL && errno != ENOSYS)
		return NULL;
	if (spare != NULL && renameat(folder_fd, name, folder_fd, spare) < 0)
		return NULL;
	if (renameat(folder_fd, temp, folder_fd, name) == 0)
		return spare != NULL ? spare : temp;
	const int saved = errno;
	if (spare != NULL)
		(void)renameat(folder_fd, spare, folder_fd, name);
	errno = saved;
	return NULL;
}

/* Judge ROW once more, and move its files. */
static enum left_end row_move(const struct left_write *left, struct left_row *row)
{
	const enum left_end end = row_judge(left, row);
	const int fd = row->folder_fd;
	bool moved = true;

	switch (row->move) {
	case MOVE_NOTHING:
		break;
	case MOVE_RETURN:
		moved = temp_take_name(fd, row->old, row->name);
		break;
	case MOVE_SWAP:
		moved = names_exchange(fd, row->old, row->name, row->spare) != NULL;
		break;
	case MOVE_AWAY:
		moved = row->spare != NULL ? renameat(fd, row->name, fd, row->spare) == 0
					   : unlinkat(fd, row->name, 0) == 0;
		break;
	}
	if (!moved)
		row->move = MOVE_NOTHING;
	return moved ? end : LEFT_FOR_LATER;
}

/* Nothing is moved: is the file of ROW as before, as far as that is known? */
static enum left_end row_look_before(const struct left_write *left, struct left_row *row)
{
	const enum left_look look =
		row->known ? row_look(row, row->name, &row->before, false) : LOOK_IS;

	(void)left;
	return look == LOOK_FAILED ? LEFT_FOR_LATER
	       : look == LOOK_IS   ? LEFT_AS_BEFORE
				   : LEFT_ALONE;
}

/* Undo the move of ROW. Nothing is lost when that fails: a later session does the rest. */
static enum left_end row_unmove(const struct left_write *left, struct left_row *row)
{
	const int fd = row->folder_fd;

	(void)left;
	if (row->move == MOVE_NOTHING || !row_find_old(row) ||
	    row_look(row, row->name, &row->before, false) != LOOK_IS)
		return LEFT_FOR_LATER;
	const char *new =
		row_look(row, row->temp, &row->after, true) == LOOK_IS   ? row->temp
		: row_look(row, row->keep, &row->after, true) == LOOK_IS ? row->keep
									 : NULL;
	if (row->move == MOVE_RETURN && row->old != NULL)
		(void)unlinkat(fd, row->name, 0); /* it was a second link */
	else if (row->move == MOVE_RETURN && row->spare != NULL)
		(void)renameat(fd, row->name, fd, row->spare);
	else if (row->move == MOVE_SWAP && new != NULL)
		(void)names_exchange(fd, new, row->name, row->spare);
	else if (row->move == MOVE_AWAY && new != NULL)
		(void)temp_take_name(fd, new, row->name);
	return LEFT_FOR_LATER;
}

/* Tell that NAME holds an old file, for which there is no other place. */
static void tell_old(const struct left_write *left, const struct left_row *row,
		     const char *name)
{
	if (left->told == NULL)
		return;
	(void)buf_adds(left->told, "[A write of ");
	text_add_name(left->told, str_of(files_shown(left->files, row->path)));
	(void)buf_addf(left->told,
		       " was killed, and somebody else has changed that file since. What it "
		       "held before the write lies beside it, as %s.]\n",
		       name);
}

/*
 * May the temporary file NAME be removed? Not when somebody else has put a file there, nor
 * when it is the old file and lies nowhere else.
 */
static enum left_look temp_may_go(const struct left_write *left,
				  const struct left_row *row, const char *name)
{
	enum left_look look;

	/* Without their states no set has begun to exchange names (record.h). */
	if (left->state != WRITE_SET || !row->known)
		return LOOK_IS;
	look = row_look(row, name, &row->after, false);
	if (look != LOOK_IS_NOT)
		return look;
	look = row_look(row, name, &row->before, false);
	if (look != LOOK_IS)
		return look;
	look = row_look(row, row->name, &row->before, false);
	if (look == LOOK_IS_NOT)
		tell_old(left, row, name);
	return look;
}

/* Remove the temporary file NAME if it may go. False: a later session looks again. */
static bool remove_temp(const struct left_write *left, const struct left_row *row,
			const char *name)
{
	struct stat st;

	if (name[0] == '\0')
		return true;
	if (fstatat(row->folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return says_absent(errno);
	/* Undo makes temporary symbolic links, too. */
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return true;
	const enum left_look look = temp_may_go(left, row, name);
	if (look != LOOK_IS)
		return look == LOOK_IS_NOT;
	return unlinkat(row->folder_fd, name, 0) == 0 || says_absent(errno);
}

static enum left_end row_sync(const struct left_write *left, struct left_row *row)
{
	(void)left;
	return temp_sync_folder(row->folder_fd) ? LEFT_AS_BEFORE : LEFT_FOR_LATER;
}

/*
 * Neither the file of ROW nor its old file is where it was: somebody has moved them, or
 * their disk is away. Tell under which name the old file may come back.
 */
static void tell_away(const struct left_write *left, const struct left_row *row)
{
	if (left->told == NULL || left->state != WRITE_SET || !row->known ||
	    row->before.kind != UNDO_FILE)
		return;
	(void)buf_adds(left->told, "[A write of ");
	text_add_name(left->told, str_of(files_shown(left->files, row->path)));
	(void)buf_addf(left->told,
		       " was killed, and neither the file nor its old content is there now. "
		       "Should its folder come back, look beside the file for %s%s%s: that "
		       "is what it held before.]\n",
		       row->temp, row->keep[0] != '\0' ? " and " : "", row->keep);
}

static enum left_end row_clean(const struct left_write *left, struct left_row *row)
{
	if (row_look(row, row->name, &undo_absent, false) == LOOK_IS &&
	    row_find_old(row) && row->old == NULL)
		tell_away(left, row);
	return remove_temp(left, row, row->temp) && remove_temp(left, row, row->keep)
		       ? LEFT_AS_BEFORE
		       : LEFT_FOR_LATER;
}

/*
 * Open PATH, of a folder that the writer has noted, beneath the roots, name by name. A
 * folder that is reached through a link is another one: the writer noted a real path.
 */
static enum left_look open_noted(const struct files *files, const char *path, int *fd)
{
	const struct files_held *root = files_root_of(files, path);

	*fd = -1;
	if (root == NULL)
		return LOOK_IS_NOT;
	auto_free char *names = memory_copy(path_relative(path, root->path));
	auto_close int at = fcntl(root->fd, F_DUPFD_CLOEXEC, 3);
	for (char *rest = names; at >= 0 && rest != NULL;) {
		const int next = files_open_below(at, strsep(&rest, "/"), FILES_ANY);
		const int code = errno;

		fd_close(&at);
		at = next;
		errno = code;
	}
	struct stat st;
	if (at < 0 || fstat(at, &st) < 0)
		return at < 0 && says_absent(errno) ? LOOK_IS_NOT : LOOK_FAILED;
	if (!S_ISDIR(st.st_mode))
		return LOOK_IS_NOT;
	*fd = fd_take(&at);
	return LOOK_IS;
}

static enum left_look open_folder_of(const struct files *files, const char *path, int *fd)
{
	const char *name = path_base_name(path);
	auto_free char *folder = memory_copy_str(
		(struct str){path, name - path > 1 ? (size_t)(name - path) - 1 : 1});

	return open_noted(files, folder, fd);
}

/* May this session do anything at PATH? */
static bool is_open_to_us(const struct files *files, const char *path)
{
	return !files_is_blocked(files, path) && files_is_writable(files, path);
}

/* Open the folder of ROW, and do WHAT there. */
static enum left_end row_visit(const struct left_write *left, struct left_row *row,
			       enum left_end (*what)(const struct left_write *left,
						     struct left_row *row))
{
	auto_close int folder = -1;

	if (!rights_may_write(left->rights, row->path))
		return LEFT_ALONE;
	if (!is_open_to_us(left->files, row->path))
		return LEFT_FOR_LATER;
	const enum left_look look = open_folder_of(left->files, row->path, &folder);
	if (look == LOOK_FAILED)
		return LEFT_FOR_LATER;
	if (look == LOOK_IS_NOT && what == row_clean)
		tell_away(left, row);
	if (look == LOOK_IS_NOT)
		return row->known && row->before.kind == UNDO_ABSENT ? LEFT_AS_BEFORE
								     : LEFT_ALONE;
	row->folder_fd = folder;
	row->name = path_base_name(row->path);
	return what(left, row);
}

/*
 * Do WHAT with the first COUNT rows. Stops at the first one that is left for later, and
 * returns how many were done. *ALONE: one of them is not as it was before the write.
 */
static size_t rows_visit(const struct left_write *left, size_t count,
			 enum left_end (*what)(const struct left_write *left,
					       struct left_row *row),
			 bool *alone)
{
	for (size_t i = 0; i < count; i++) {
		const enum left_end end = row_visit(left, &left->rows[i], what);

		if (end == LEFT_FOR_LATER)
			return i;
		*alone = *alone || end == LEFT_ALONE;
	}
	return count;
}

/*
 * Put the files of the write back. All rows are judged before the first one is moved, and
 * the old files are in place before a temporary file is removed. So a set of which one row
 * has to be left for later (false) stays as it is. *ALONE as above.
 */
static bool rows_work_off(const struct left_write *left, bool *alone)
{
	if (rows_visit(left, left->count, row_judge, alone) < left->count)
		return false;
	size_t moved = rows_visit(left, left->count, row_move, alone);
	if (moved == left->count)
		return rows_visit(left, left->count, row_sync, alone) == left->count &&
		       rows_visit(left, left->count, row_clean, alone) == left->count &&
		       rows_visit(left, left->count, row_sync, alone) == left->count;
	while (moved-- > 0)
		(void)row_visit(left, &left->rows[moved], row_unmove);
	return false;
}

/* The log is damaged: tell which temporary names lie beside the file of ROW. */
static enum left_end row_tell_temps(const struct left_write *left, struct left_row *row)
{
	const char *const names[] = {row->temp, row->keep};
	struct stat st;

	for (size_t i = 0; i < 2; i++) {
		if (names[i][0] == '\0' ||
		    fstatat(row->folder_fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		(void)buf_adds(left->told, "[A write of ");
		text_add_name(left->told, str_of(files_shown(left->files, row->path)));
		(void)buf_addf(left->told,
			       " was killed, and its record is damaged. Beside the file lies "
			       "%s, which may be what it held before, or the new content.]\n",
			       names[i]);
	}
	return LEFT_AS_BEFORE;
}

/* Remove the folders that the write had made, as far as they are empty. */
static bool unmake_folders(const struct left_write *left)
{
	bool all = true;

	for (size_t i = left->made.count; i-- > 0;) {
		const char *path = left->made.items[i].path;
		auto_close int above = -1;

		if (!rights_may_write(left->rights, path))
			continue;
		const enum left_look look =
			is_open_to_us(left->files, path)
				? open_folder_of(left->files, path, &above)
				: LOOK_FAILED;
		/* A folder that is in use, or holds something, stays. */
		if (look == LOOK_FAILED ||
		    (look == LOOK_IS &&
		     unlinkat(above, path_base_name(path), AT_REMOVEDIR) < 0 &&
		     !says_absent(errno) && errno != ENOTEMPTY && errno != EEXIST &&
		     errno != EBUSY))
			all = false;
	}
	return all;
}

/*
 * Give the folder its permissions, unless it has other ones by now than those with which
 * it was open.
 */
static bool close_folder(const struct left_write *left, const struct left_folder *folder)
{
	const mode_t mode = folder_mode_opened(folder->mode, 0);
	char name[FD_NAME_ROOM];
	struct buf inside;
	struct stat st;

	buf_init(&inside, PATH_MAX);
	/* A name in the folder is judged: the folder may be a root itself. */
	join(folder->path, ".", &inside);
	const bool may = rights_may_write(left->rights, inside.data);
	const bool later = may && !is_open_to_us(left->files, inside.data);
	buf_fini(&inside);
	if (!may || later)
		return !later;
	auto_close int fd = -1;
	const enum left_look look = open_noted(left->files, folder->path, &fd);
	if (look != LOOK_IS)
		return look == LOOK_IS_NOT;
	if (fstat(fd, &st) < 0)
		return false;
	return folder_mode_opened(st.st_mode, 0) != folder_mode_opened(mode, S_IRWXU) ||
	       chmod(fd_name(fd, name), mode) == 0 || errno == EPERM;
}

/*
 * Close the folders. A folder in another one was opened after that one, and is closed
 * before it. Of several notes of one folder the last one counts.
 */
static bool close_folders(const struct left_write *left)
{
	auto_value struct value *closed = value_new_object();
	bool all = true;

	for (size_t i = left->opened.count; i-- > 0;) {
		auto_free char *key = path_key(left->opened.items[i].path);

		if (value_member(closed, key) != NULL)
			continue;
		value_set_boolean(closed, key, true);
		all = close_folder(left, &left->opened.items[i]) && all;
	}
	return all;
}

/* Note in the log FD that it is worked off. AS_BEFORE: all files are as before the set. */
static bool log_work_off(int fd, const struct undo_reader *reader, bool as_before)
{
	struct undo_log log;

	undo_log_begin(&log, fd, 0);
	if (as_before) {
		log.at = UINT64_MAX; /* until it is cut */
		undo_log_cut(&log, reader->over);
		return log.at == reader->over;
	}
	if (ftruncate(fd, (off_t)reader->sound) < 0)
		return false;
	log.at = reader->sound;
	return undo_log_say(&log, UNDO_NOTE_OVER, NULL) &&
	       undo_log_say(&log, UNDO_NOTE_CLOSED, NULL);
}

bool place_put_back(struct files *files, int fd, const struct value *rights, struct buf *told)
{
	struct left_write left = {
		.files = files,
		.rights = rights_read(rights),
		.in_layer = value_is_true(value_member(rights, RIGHTS_LAYER)),
		.told = told,
	};
	struct undo_reader reader = {.change = left_change,
				     .note = left_note,
				     .context = &left};
	struct err err = {0};
	bool alone = false;

	/* Of a log that a power failure has torn, the part before the tear counts. */
	bool all = undo_log_read(&reader, fd, &err) || err.code == UNDO_UNSOUND;
	if (reader.damaged) {
		for (size_t i = 0; told != NULL && i < left.count; i++)
			(void)row_visit(&left, &left.rows[i], row_tell_temps);
		left_fini(&left);
		return true;
	}
	const bool is_set = left.state == WRITE_SET && left.opened.count == 0;
	if (reader.unmoved && left.state == WRITE_SET) {
		left.state = WRITE_ALONE;
		all = all && rows_visit(&left, left.count, row_look_before, &alone) ==
				     left.count;
	}
	all = all && rows_work_off(&left, &alone);
	/* Folders come last: a write in one is worked off while it is open. */
	all = all && unmake_folders(&left) && close_folders(&left);
	if (all && reader.unfinished)
		all = log_work_off(fd, &reader, is_set && !alone);
	left_fini(&left);
	return all;
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

	item->existed = change->expected_mark != NULL;
	if (!item->existed)
		return !change->place->exists ||
		       place_say_write(EEXIST, change->place, err);
	item->old_fd = lock_old(change->place, &item->old, err);
	return item->old_fd >= 0 && check_mark(item->old_fd, &item->old, change, err);
}

static bool copy_attributes(struct place_item *item)
{
	const struct place_change *change = item->change;
	struct stat st;

	if (item->existed) {
		if (!temp_copy_attributes(&item->temp, item->old_fd, &item->old))
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
	mode_t mode = item->existed ? 0600 : 0666;

	if (change->removes)
		return true;
	if (!temp_open(&item->temp, change->place->folder_fd,
		       named ? item->temp_name : NULL, mode) ||
	    !temp_write(&item->temp, change->content) || !copy_attributes(item) ||
	    fsync(item->temp.fd) < 0 || fstat(item->temp.fd, &item->made) < 0)
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
		undo_state_of(&item->made, &after);
		undo_state_hash_text(item->change->content, &after);
	}
	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s/%s",
		       str_is(buf_str(&place->folder), "/") ? "" : place->folder.data,
		       place->name);
	bool kept = keep_change(place->files, path.data, item->old_fd, &item->old, &after,
				err);
	buf_fini(&path);
	return kept;
}

/*
 * Give the temporary file the name that is in the log. False: a nameless file can get
 * no name here.
 */
static bool place_item_link(struct place_item *item)
{
	if (item->change->removes || item->temp.name[0])
		return true;
	if (!temp_link(&item->temp, item->temp_name))
		return false;
	memcpy(item->temp.name, item->temp_name, sizeof(item->temp.name));
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
	const char *old = names_exchange(place->folder_fd, item->temp.name, place->name,
					 item->keep_name);

	if (old == item->keep_name)
		memcpy(item->temp.name, item->keep_name, sizeof(item->temp.name));
	return old != NULL;
}

/*
 * Put the new content in place. Unless ALONE, the old content is kept, so that
 * place_item_take_back can restore it.
 */
static bool place_item_put(struct place_item *item, bool alone, struct err *err)
{
	const struct place *place = item->change->place;
	bool ok;

	if (item->existed && !still_the_same(place, &item->old))
		return say_changed(place, err);
	if (!item->existed) {
		ok = temp_take_name(place->folder_fd, item->temp.name, place->name);
	} else if (item->change->removes) {
		ok = renameat(place->folder_fd, place->name, place->folder_fd,
			      item->keep_name) == 0;
		item->temp.folder_fd = place->folder_fd;
		if (ok)
			memcpy(item->temp.name, item->keep_name, sizeof(item->temp.name));
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
		 now.st_ino != item->made.st_ino)
		return;
	else if (!item->existed)
		(void)unlinkat(place->folder_fd, place->name, 0);
	else
		keeps = renameat(place->folder_fd, temp, place->folder_fd, place->name) < 0;
	if (keeps)
		item->temp.name[0] = '\0';
}

/*
 * Puts contents at their places so that every reader sees the old file or the new one,
 * for one file and for a set of them. A content is first written to a nameless file
 * (O_TMPFILE). While that file has a temporary name, the name is in the log, so that the
 * file of a killed writer is removed later.
 */

struct staging {
	struct place_item *items;
	size_t count;
	struct files *files;
	uint64_t from; /* where the log ended before this write */
	bool begun;    /* the temporary names are in the log */
};

/* Two sets that want the same files lock them in the same order. */
static int compare_items(const void *a, const void *b)
{
	const struct place *left = ((const struct place_item *)a)->change->place;
	const struct place *right = ((const struct place_item *)b)->change->place;
	int order = strcmp(left->folder.data, right->folder.data);

	return order != 0 ? order : strcmp(left->name, right->name);
}

static struct undo_log *staging_log(const struct staging *staging)
{
	return staging->files != NULL ? staging->files->log : NULL;
}

static void staging_init(struct staging *staging, struct place_change *changes, size_t count)
{
	memset(staging, 0, sizeof(*staging));
	staging->items = memory_array(count, sizeof(*staging->items));
	staging->count = count;
	staging->files = changes->place->files;
	staging->from = staging_log(staging) != NULL ? staging_log(staging)->at : 0;
	for (size_t i = 0; i < count; i++) {
		struct place_item *item = &staging->items[i];

		item->change = &changes[i];
		item->old_fd = item->temp.fd = -1;
		temp_make_name(item->temp_name);
		temp_make_name(item->keep_name);
	}
	qsort(staging->items, count, sizeof(*staging->items), compare_items);
}

static void staging_fini(struct staging *staging)
{
	for (size_t i = 0; i < staging->count; i++) {
		temp_drop(&staging->items[i].temp);
		fd_close(&staging->items[i].old_fd);
	}
	/*
	 * Where this note finds no space, the successor of a killed process looks for the
	 * names once more, in vain.
	 */
	if (staging_log(staging) != NULL && staging_log(staging)->at > staging->from)
		(void)undo_log_say(staging_log(staging), UNDO_NOTE_OVER, NULL);
	free(staging->items);
}

static bool say_no_log(const struct staging *staging, int code, struct err *err)
{
	return err_set(err, code,
		       "%s: the log of this write, in the user's state folder, could not be "
		       "written (%s); nothing was changed.",
		       staging->items[0].change->place->name, strerror(code));
}

/*
 * Write the log of a set to the disk, with the note KIND and the mark that goes with it:
 * before an old file loses its name, and before it loses its temporary name.
 */
static bool log_sync(const struct staging *staging, enum undo_note_kind kind, struct err *err)
{
	struct undo_log *log = staging_log(staging);
	struct err why = {0};

	if (log == NULL || staging->count == 1)
		return true;
	if (!undo_log_say(log, kind, &why))
		return say_no_log(staging, why.code, err);
	return fsync(log->fd) == 0 || say_no_log(staging, errno, err);
}

static bool note_temps(const struct staging *staging, const struct place_item *item,
		       struct err *err)
{
	struct undo_note note = {.kind = UNDO_NOTE_TEMPS};
	struct buf path;

	memcpy(note.temp, item->temp_name, sizeof(note.temp));
	memcpy(note.keep, item->keep_name, sizeof(note.keep));
	buf_init(&path, PATH_MAX);
	join(item->change->place->folder.data, item->change->place->name, &path);
	note.path = buf_str(&path);
	const bool noted = path.overflowed
				   ? err_set(err, ENAMETOOLONG, "a path")
				   : undo_log_note(staging_log(staging), &note, err);
	buf_fini(&path);
	return noted;
}

/* Note the temporary names, before the first of them exists. */
static bool staging_begin(struct staging *staging, struct err *err)
{
	struct err why = {0};

	if (staging->begun)
		return true;
	if (staging->count > UNDO_NOTES_MAX)
		return say_no_log(staging, E2BIG, err);
	staging->begun = true;
	bool noted = staging->count == 1 ||
		     undo_log_say(staging_log(staging), UNDO_NOTE_SET, &why);
	for (size_t i = 0; noted && i < staging->count; i++)
		noted = note_temps(staging, &staging->items[i], &why);
	return noted || say_no_log(staging, why.code, err);
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

/* Write the temporary names to disk before one of them holds the only old content. */
static bool staging_settle(struct staging *staging, struct err *err)
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
	}
	return true;
}

static bool staging_take_back(struct staging *staging, size_t done)
{
	while (done-- > 0)
		place_item_take_back(&staging->items[done]);
	return false;
}

static bool staging_put(struct staging *staging, struct err *err)
{
	size_t done = 0;

	while (done < staging->count &&
	       place_item_put(&staging->items[done], staging->count == 1, err))
		done++;
	return done == staging->count || staging_take_back(staging, done);
}

/*
 * All names are exchanged and on disk. From now on a killed set stays. A set whose log
 * cannot say so is taken back: otherwise a later process would take it back.
 */
static bool staging_stand(struct staging *staging, struct err *err)
{
	if (log_sync(staging, UNDO_NOTE_STANDS, err))
		return true;
	/* The note may be in the log, and is not true any more. */
	(void)undo_log_say(staging_log(staging), UNDO_NOTE_PUTS, NULL);
	return staging_take_back(staging, staging->count);
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
	if (staging->count == 1 && !first->existed) {
		created = create_alone(first, err);
		if (!created && err->code != 0)
			return false;
		if (!created && !wants_names(errno))
			return place_say_write(errno, first->change->place, err);
		if (!created)
			temp_drop(&first->temp);
	}
	/*
	 * The states are noted when the new files have their names: a file that could get
	 * none is written once more, as another file.
	 */
	if (!created && !(staging_write(staging, false, err) && staging_begin(staging, err) &&
			  staging_link(staging, err) && staging_keep(staging, err) &&
			  log_sync(staging, UNDO_NOTE_PUTS, err) &&
			  staging_settle(staging, err) && staging_put(staging, err)))
		return false;
	/* A set is in place even where its folders cannot be synced. */
	const bool synced = staging_sync(staging, err);
	return staging_stand(staging, synced ? err : NULL) && synced;
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
		changes[i].place->made_folders = 0;
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
