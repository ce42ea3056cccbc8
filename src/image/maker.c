/* maker: walks names component by component below one folder, and makes what is allowed. */

#include "image/maker.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define REMOVED_PREFIX ".wh."
#define HIDES_NAME     ".wh..wh..opq"
#define OVERLAY_PREFIX "user.overlay."
#define OVERLAY_HIDES  OVERLAY_PREFIX "opaque"
/*
 * Has the kernel look for removed names in a folder that no layer below has. Without it, the names
 * would be listed there, though they cannot be opened.
 */
#define OVERLAY_ORIGIN OVERLAY_PREFIX "origin"
#define USER_PREFIX    "user."

#define FOLDER_FLAGS   (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

enum {
	MADE_FOLDER_MODE = S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH,
	OWNER_FILE = S_IRUSR | S_IWUSR, /* what the owner can always do */
	PERMISSIONS = S_IRWXU | S_IRWXG | S_IRWXO,
	SET_ID = S_ISUID | S_ISGID,
	/* Names of folders that are remembered for their times; later ones get none. */
	TIMES_BYTES_MAX = 256 << 20,
	/*
	 * Folders opened to set these times, in about a second: a few bytes of an archive can
	 * name deep folders over and over. Trees of a million folders take fewer.
	 */
	TIMES_STEPS_MAX = 1 << 20,
};

/* A folder whose time is set when nothing more is made in it. */
struct folder_time {
	char *path; /* below the folder, resolved */
	struct timespec changed;
};

enum maker_state { MAKER_BETWEEN, MAKER_DROPPED, MAKER_OPEN };

struct maker {
	int folder;
	enum maker_rules rules;
	struct maker_limits limits;
	struct maker_counts *counts;
	enum maker_state state;
	/* the entry under way, while MAKER_OPEN */
	int fd; /* -1: it takes no data */
	bool is_folder;
	mode_t mode;
	uint64_t size;
	struct timespec changed;
	struct buf shown; /* its name for sentences */
	/* the folder of the last entry: as it was named, where it is, and open */
	struct buf parent_name, parent_real;
	int parent;
	struct buf real; /* of the entry under way */
	bool hides;      /* some folder hides the one below it */
	struct arena arena;
	struct folder_time *times;
	size_t time_count;
};

struct maker *maker_open(int folder, enum maker_rules rules,
			 const struct maker_limits *limits, struct maker_counts *counts)
{
	struct maker *maker = memory_alloc(sizeof(*maker));

	maker->folder = folder;
	maker->rules = rules;
	if (limits != NULL)
		maker->limits = *limits;
	if (maker->limits.bytes == 0)
		maker->limits.bytes = MAKER_BYTES_MAX;
	if (maker->limits.entries == 0)
		maker->limits.entries = MAKER_ENTRIES_MAX;
	if (maker->limits.depth == 0)
		maker->limits.depth = MAKER_DEPTH_MAX;
	maker->counts = counts;
	maker->fd = maker->parent = -1;
	buf_init(&maker->shown, ERR_TEXT_MAX / 2);
	buf_init(&maker->parent_name, MAKER_NAME_MAX);
	buf_init(&maker->parent_real, MAKER_NAME_MAX);
	buf_init(&maker->real, MAKER_NAME_MAX);
	arena_init(&maker->arena);
	return maker;
}

void maker_close(struct maker *maker)
{
	if (maker == NULL)
		return;
	fd_close(&maker->fd);
	fd_close(&maker->parent);
	buf_fini(&maker->shown);
	buf_fini(&maker->parent_name);
	buf_fini(&maker->parent_real);
	buf_fini(&maker->real);
	arena_fini(&maker->arena);
	free(maker->times);
	free(maker);
}

static bool refuse(const struct maker *maker, int code, const char *because, struct err *err)
{
	return err_set(err, code, "the entry \"%s\" %s", maker->shown.data, because);
}

static bool failed(const struct maker *maker, struct err *err)
{
	const int code = errno;

	return err_set(err, code, "the entry \"%s\" cannot be made: %s",
		       maker->shown.data, strerror(code));
}

/* Names. */

/* Take the next component from *REST, without its slashes. False: none is left. */
static bool next_name(struct str *rest, struct str *name)
{
	size_t from = 0, end;

	while (from < rest->size && rest->data[from] == '/')
		from++;
	end = from;
	while (end < rest->size && rest->data[end] != '/')
		end++;
	*name = str_part(*rest, from, end - from);
	*rest = str_part(*rest, end, rest->size);
	return name->size > 0;
}

/* The last component of PATH, which no slash follows, and the part before it. */
static void split(struct str path, struct str *folder, struct str *name)
{
	while (path.size > 0 && path.data[path.size - 1] == '/')
		path.size--;
	size_t at = path.size;
	while (at > 0 && path.data[at - 1] != '/')
		at--;
	*folder = str_part(path, 0, at);
	*name = str_part(path, at, path.size);
}

static size_t depth_of(struct str path)
{
	struct str name;
	size_t depth = 0;

	while (next_name(&path, &name))
		depth++;
	return depth;
}

/* Is ST that of a name which the layer has removed? */
static bool is_removed(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* The entry NAME in FOLDER, as a C string in ROOM. False with errno. */
enum { COMPONENT_ROOM = 256 };
static bool component(struct str name, char room[COMPONENT_ROOM])
{
	if (name.size >= COMPONENT_ROOM) {
		errno = ENAMETOOLONG;
		return false;
	}
	memcpy(room, name.data, name.size);
	room[name.size] = '\0';
	return true;
}

/* A walk through a name. `fd` and `real` are where it has come to. */
struct walk {
	struct maker *maker;
	int fd;
	struct buf real;    /* "usr/lib", "" for the folder itself */
	struct buf pending; /* the part that is still to be walked */
	size_t links;
	bool makes; /* missing folders are made */
};

static bool walk_to_root(struct walk *walk)
{
	fd_close(&walk->fd);
	buf_clear(&walk->real);
	walk->fd = fcntl(walk->maker->folder, F_DUPFD_CLOEXEC, 0);
	return walk->fd >= 0;
}

/* Open the resolved path REAL below the folder; no part of it is a link. -1 with errno. */
static int open_real(const struct maker *maker, struct str real)
{
	char room[COMPONENT_ROOM];
	struct str name;
	auto_close int fd = fcntl(maker->folder, F_DUPFD_CLOEXEC, 0);

	while (fd >= 0 && next_name(&real, &name)) {
		const int next =
			component(name, room) ? openat(fd, room, FOLDER_FLAGS) : -1;

		fd_close(&fd);
		fd = next;
	}
	return fd_take(&fd);
}

static bool walk_up(struct walk *walk, struct err *err)
{
	struct maker *maker = walk->maker;

	if (maker->rules != MAKER_LAYER)
		return refuse(maker, EXDEV, "has \"..\" in its name", err);
	if (walk->real.size == 0) {
		maker->counts->outside++;
		return true;
	}
	while (walk->real.size > 0 && walk->real.data[walk->real.size - 1] != '/')
		buf_truncate(&walk->real, walk->real.size - 1);
	if (walk->real.size > 0)
		buf_truncate(&walk->real, walk->real.size - 1);
	fd_close(&walk->fd);
	walk->fd = open_real(maker, buf_str(&walk->real));
	return walk->fd >= 0 || failed(maker, err);
}

static bool hide_below(struct maker *maker, int folder, struct err *err)
{
	maker->hides = true;
	if (fsetxattr(folder, OVERLAY_HIDES, "y", 1, 0) == 0)
		return true;
	if (errno == ENOTSUP)
		return refuse(maker, ENOTSUP,
			      "hides a folder, and the file system here keeps no attributes "
			      "of users; use a cache on another one (XDG_CACHE_HOME)",
			      err);
	return failed(maker, err);
}

/*
 * Make the folder NAME, where nothing is, or a name that this layer has removed before:
 * the new folder then hides the one below. -1 with ERR.
 */
static int make_folder(struct maker *maker, int at, const char *name, mode_t mode,
		       struct err *err)
{
	struct stat st;
	bool hides = false;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_removed(&st)) {
		hides = true;
		(void)unlinkat(at, name, 0);
	}
	if (mkdirat(at, name, mode) < 0) {
		(void)failed(maker, err);
		return -1;
	}
	auto_close int fd = openat(at, name, FOLDER_FLAGS);
	if (fd < 0)
		(void)failed(maker, err);
	else if (hides && !hide_below(maker, fd, err))
		fd_close(&fd);
	return fd_take(&fd);
}

/* The walk stands before NAME, which is no folder that can be opened. */
static bool walk_other(struct walk *walk, const char *name, int code, struct err *err)
{
	struct maker *maker = walk->maker;
	char target[MAKER_NAME_MAX + 1];
	struct buf rest;

	const ssize_t size = readlinkat(walk->fd, name, target, sizeof(target));
	if (size < 0) {
		struct stat st;
		const bool is_free =
			code == ENOENT ||
			(fstatat(walk->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			 is_removed(&st));

		if (!is_free || !walk->makes) {
			errno = code;
			return failed(maker, err);
		}
		const int made = make_folder(maker, walk->fd, name, MADE_FOLDER_MODE, err);
		if (made < 0)
			return false;
		fd_close(&walk->fd);
		walk->fd = made;
		return true;
	}
	if (maker->rules != MAKER_LAYER)
		return refuse(maker, ELOOP, "leads through a link", err);
	if (++walk->links > MAKER_LINKS_MAX || size == sizeof(target))
		return refuse(maker, ELOOP, "leads through too many links", err);
	buf_init(&rest, 2 * MAKER_NAME_MAX);
	const bool fits = buf_add(&rest, target, (size_t)size) && buf_addc(&rest, '/') &&
			  buf_addstr(&rest, buf_str(&walk->pending));
	buf_swap(&rest, &walk->pending);
	buf_fini(&rest);
	if (!fits)
		return refuse(maker, ENAMETOOLONG, "leads through too long links", err);
	if (size > 0 && target[0] == '/' && !walk_to_root(walk))
		return failed(maker, err);
	/* The name itself is not part of the way. */
	return true;
}

/* Walk one NAME further. */
static bool walk_into(struct walk *walk, struct str name, struct err *err)
{
	struct maker *maker = walk->maker;
	char room[COMPONENT_ROOM];

	if (str_is(name, "."))
		return true;
	if (str_is(name, ".."))
		return walk_up(walk, err);
	if (!component(name, room))
		return failed(maker, err);
	const int next = openat(walk->fd, room, FOLDER_FLAGS);
	const int code = errno;
	const size_t links = walk->links;

	if (next >= 0) {
		fd_close(&walk->fd);
		walk->fd = next;
	} else if (code != ENOENT && code != ENOTDIR && code != ELOOP) {
		return failed(maker, err);
	} else if (!walk_other(walk, room, code, err)) {
		return false;
	} else if (walk->links != links) {
		return true;
	}
	if ((walk->real.size > 0 && !buf_addc(&walk->real, '/')) ||
	    !buf_adds(&walk->real, room))
		return refuse(maker, ENAMETOOLONG, "has a name that is too long", err);
	if (depth_of(buf_str(&walk->real)) > maker->limits.depth)
		return refuse(maker, E2BIG, "lies in too many folders", err);
	return true;
}

/*
 * Open the folder PATH, links in it resolved inside or refused; *REAL is where it is. MAKES: missing
 * folders are made. -1 with ERR, whose code is ENOENT when something is missing.
 */
static int reach(struct maker *maker, struct str path, bool makes, struct buf *real,
		 struct err *err)
{
	struct walk walk = {.maker = maker, .fd = -1, .makes = makes};
	struct str name;
	bool reached;

	buf_init(&walk.real, MAKER_NAME_MAX);
	buf_init(&walk.pending, 2 * MAKER_NAME_MAX);
	if (path.size > MAKER_NAME_MAX || !buf_addstr(&walk.pending, path))
		reached = refuse(maker, ENAMETOOLONG, "has a name that is too long", err);
	else
		reached = walk_to_root(&walk) || failed(maker, err);
	while (reached) {
		struct str rest = buf_str(&walk.pending);

		if (!next_name(&rest, &name))
			break;
		char room[COMPONENT_ROOM];

		if (!component(name, room)) {
			reached = failed(maker, err);
			break;
		}
		buf_remove(&walk.pending, 0, walk.pending.size - rest.size);
		reached = walk_into(&walk, str_of(room), err);
	}
	if (reached)
		buf_swap(&walk.real, real);
	else
		fd_close(&walk.fd);
	buf_fini(&walk.real);
	buf_fini(&walk.pending);
	return walk.fd;
}

/* Open the folder of the entry, which is often that of the entry before. */
static bool reach_parent(struct maker *maker, struct str folder, struct err *err)
{
	if (maker->parent >= 0 && str_equal(buf_str(&maker->parent_name), folder))
		return true;
	fd_close(&maker->parent);
	buf_clear(&maker->parent_name);
	maker->parent = reach(maker, folder, true, &maker->parent_real, err);
	return maker->parent >= 0 && buf_addstr(&maker->parent_name, folder);
}

/* Entries. */

/* Remove what is at NAME, which is to be replaced by something that is no folder. */
static bool clear_place(struct maker *maker, const char *name, struct err *err)
{
	if (unlinkat(maker->parent, name, 0) == 0 || errno == ENOENT)
		return true;
	if (errno != EISDIR && errno != EPERM)
		return failed(maker, err);
	if (unlinkat(maker->parent, name, AT_REMOVEDIR) == 0)
		return true;
	return errno == ENOTEMPTY || errno == EEXIST
		       ? refuse(maker, EEXIST, "is a folder with files already", err)
		       : failed(maker, err);
}

/* Keep what the entry gets at its end, and count it. */
static void open_entry(struct maker *maker, int take_fd, const struct maker_entry *entry)
{
	maker->state = MAKER_OPEN;
	maker->fd = take_fd;
	maker->is_folder = entry->kind == MAKER_FOLDER;
	maker->mode = entry->mode;
	maker->size = entry->size;
	maker->changed = entry->changed;
	if ((entry->mode & SET_ID) != 0)
		maker->counts->set_id++;
}

static bool begin_folder(struct maker *maker, const char *name,
			 const struct maker_entry *entry, struct err *err)
{
	auto_close int fd = openat(maker->parent, name, FOLDER_FLAGS);

	if (fd < 0) {
		struct stat st;

		if (fstatat(maker->parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !is_removed(&st) && !clear_place(maker, name, err))
			return false;
		fd = make_folder(maker, maker->parent, name, S_IRWXU, err);
		if (fd < 0)
			return false;
	}
	maker->counts->folders++;
	open_entry(maker, fd_take(&fd), entry);
	return true;
}

static bool begin_file(struct maker *maker, const char *name,
		       const struct maker_entry *entry, struct err *err)
{
	if (entry->size > maker->limits.bytes ||
	    maker->counts->bytes > maker->limits.bytes - entry->size)
		return refuse(maker, E2BIG, "makes the files of the archive too large", err);
	maker->counts->bytes += entry->size;
	if (!clear_place(maker, name, err))
		return false;
	auto_close int fd =
		openat(maker->parent, name,
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, OWNER_FILE);
	if (fd < 0)
		return failed(maker, err);
	if (entry->size > 0 && ftruncate(fd, (off_t)entry->size) < 0)
		return failed(maker, err);
	maker->counts->files++;
	open_entry(maker, fd_take(&fd), entry);
	return true;
}

static void set_name_time(struct maker *maker, const char *name,
			  const struct maker_entry *entry)
{
	const struct timespec times[2] = {entry->changed, entry->changed};

	(void)utimensat(maker->parent, name, times, AT_SYMLINK_NOFOLLOW);
}

/*
 * Does TARGET, of a link in the folder of DEPTH names, stay inside? Only `..` at its beginning may
 * lead up: behind a name that is a link, nobody could say where it leads to.
 */
static bool stays_inside(const char *target, size_t depth)
{
	struct str rest = str_of(target), name;
	bool down = false;

	if (rest.size == 0 || rest.data[0] == '/')
		return false;
	while (next_name(&rest, &name)) {
		if (str_is(name, "."))
			continue;
		if (!str_is(name, "..")) {
			down = true;
			continue;
		}
		if (down || depth-- == 0)
			return false;
	}
	return true;
}

static bool begin_link(struct maker *maker, const char *name,
		       const struct maker_entry *entry, struct err *err)
{
	if (maker->rules == MAKER_TREE &&
	    !stays_inside(entry->target, depth_of(buf_str(&maker->parent_real))))
		return refuse(maker, EXDEV, "is a link that may lead out of the folder",
			      err);
	if (!clear_place(maker, name, err))
		return false;
	if (symlinkat(entry->target, maker->parent, name) < 0)
		return failed(maker, err);
	maker->counts->links++;
	set_name_time(maker, name, entry);
	return true;
}

/* A hard link of a layer to a file that it does not have itself. */
static bool begin_across(struct maker *maker, const char *name,
			 const struct maker_entry *entry, struct err *err)
{
	struct str rest = str_of(entry->target), part;
	struct buf target;
	bool made;

	buf_init(&target, MAKER_NAME_MAX);
	while (next_name(&rest, &part)) {
		if (!str_is(part, ".") && !str_is(part, ".."))
			(void)(buf_addc(&target, '/') && buf_addstr(&target, part));
	}
	made = clear_place(maker, name, err);
	if (made && symlinkat(target.data, maker->parent, name) < 0)
		made = failed(maker, err);
	buf_fini(&target);
	maker->counts->across++;
	maker->counts->links++;
	return made;
}

static bool begin_again(struct maker *maker, const char *name,
			const struct maker_entry *entry, struct err *err)
{
	struct str folder, last;
	struct stat target, there;
	char target_name[COMPONENT_ROOM];
	struct buf real;
	struct err missing = {0};

	split(str_of(entry->target), &folder, &last);
	if (maker->rules != MAKER_LAYER && entry->target[0] == '/')
		return refuse(maker, EXDEV, "is a hard link to an absolute name", err);
	if (last.size == 0 || str_is(last, ".") || str_is(last, "..") ||
	    !component(last, target_name))
		return refuse(maker, EINVAL, "is a hard link to no file", err);
	buf_init(&real, MAKER_NAME_MAX);
	auto_close int at = reach(maker, folder, false, &real, &missing);
	buf_fini(&real);
	const bool is_there =
		at >= 0 && fstatat(at, target_name, &target, AT_SYMLINK_NOFOLLOW) == 0;
	if (!is_there && maker->rules == MAKER_LAYER &&
	    (at >= 0 || missing.code == ENOENT || missing.code == ENOTDIR))
		return begin_across(maker, name, entry, err);
	if (!is_there)
		return refuse(maker, ENOENT,
			      "is a hard link to a file that the archive did not bring",
			      err);
	if (S_ISDIR(target.st_mode) ||
	    (maker->rules != MAKER_LAYER && !S_ISREG(target.st_mode)))
		return refuse(maker, EINVAL, "is a hard link to no file", err);
	if (fstatat(maker->parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	    there.st_dev == target.st_dev && there.st_ino == target.st_ino)
		return true;
	if (!clear_place(maker, name, err))
		return false;
	if (linkat(at, target_name, maker->parent, name, 0) < 0)
		return failed(maker, err);
	maker->counts->links++;
	return true;
}

static bool begin_pipe(struct maker *maker, const char *name,
		       const struct maker_entry *entry, struct err *err)
{
	if (!clear_place(maker, name, err))
		return false;
	if (mknodat(maker->parent, name,
		    S_IFIFO | (entry->mode & PERMISSIONS) | OWNER_FILE, 0) < 0)
		return failed(maker, err);
	set_name_time(maker, name, entry);
	return true;
}

/* The layer removes NAME of the layers below, but not a NAME of its own. */
static bool remove_name(struct maker *maker, const char *name, struct err *err)
{
	auto_close int own = -1;

	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return refuse(maker, EINVAL, "removes no name", err);
	maker->counts->removed++;
	if (mknodat(maker->parent, name, S_IFCHR, makedev(0, 0)) == 0) {
		(void)fsetxattr(maker->parent, OVERLAY_ORIGIN, "", 0, 0);
		return true;
	}
	if (errno != EEXIST)
		return failed(maker, err);
	own = openat(maker->parent, name, FOLDER_FLAGS);
	return own < 0 || hide_below(maker, own, err);
}

static bool begin_removed(struct maker *maker, const char *name, struct err *err)
{
	if (strcmp(name, HIDES_NAME) == 0) {
		maker->counts->removed++;
		return hide_below(maker, maker->parent, err);
	}
	name += strlen(REMOVED_PREFIX);
	/* Other names of that form are notes of aufs for itself. */
	return strncmp(name, REMOVED_PREFIX, strlen(REMOVED_PREFIX)) == 0 ||
	       remove_name(maker, name, err);
}

/* The entry is the folder itself. */
static bool begin_root(struct maker *maker, const struct maker_entry *entry, struct err *err)
{
	if (entry->kind != MAKER_FOLDER)
		return refuse(maker, EINVAL, "has no name", err);
	auto_close int fd = openat(maker->folder, ".", FOLDER_FLAGS);

	if (fd < 0)
		return failed(maker, err);
	buf_clear(&maker->real);
	open_entry(maker, fd_take(&fd), entry);
	return true;
}

static bool begin_named(struct maker *maker, const char *name,
			const struct maker_entry *entry, struct err *err)
{
	switch (entry->kind) {
	case MAKER_FILE:
		return begin_file(maker, name, entry, err);
	case MAKER_FOLDER:
		return begin_folder(maker, name, entry, err);
	case MAKER_LINK:
		return begin_link(maker, name, entry, err);
	case MAKER_AGAIN:
		return begin_again(maker, name, entry, err);
	case MAKER_PIPE:
		return begin_pipe(maker, name, entry, err);
	case MAKER_DEVICE:
		maker->counts->devices++;
		return true;
	}
	return true;
}

bool maker_begin(struct maker *maker, const struct maker_entry *entry, struct err *err)
{
	const struct str path = str_of(entry->path);
	char room[COMPONENT_ROOM];
	struct str folder, name, rest = path;
	bool is_root = true;

	assert(maker->state == MAKER_BETWEEN);
	buf_clear(&maker->shown);
	text_add_name(&maker->shown, path);
	maker->state = MAKER_DROPPED;
	if (++maker->counts->entries > maker->limits.entries)
		return err_set(err, E2BIG, "the archive has more than %llu entries",
			       (unsigned long long)maker->limits.entries);
	if (path.size > MAKER_NAME_MAX)
		return refuse(maker, ENAMETOOLONG, "has a name that is too long", err);
	if (maker->rules != MAKER_LAYER && path.size > 0 && path.data[0] == '/')
		return refuse(maker, EXDEV, "has an absolute name", err);
	while (next_name(&rest, &name))
		is_root = is_root && str_is(name, ".");
	if (is_root)
		return begin_root(maker, entry, err);
	split(path, &folder, &name);
	/* A name that ends in a dot names a folder above: it is made by its own entry. */
	if (str_is(name, ".") || str_is(name, "..")) {
		auto_close int fd = -1;

		if (maker->rules != MAKER_LAYER)
			return refuse(maker, EXDEV, "ends in a dot", err);
		fd = reach(maker, path, true, &maker->real, err);
		return fd >= 0;
	}
	if (!component(name, room))
		return failed(maker, err);
	if (!reach_parent(maker, folder, err))
		return false;
	buf_clear(&maker->real);
	if ((maker->parent_real.size > 0 &&
	     (!buf_addstr(&maker->real, buf_str(&maker->parent_real)) ||
	      !buf_addc(&maker->real, '/'))) ||
	    !buf_adds(&maker->real, room))
		return refuse(maker, ENAMETOOLONG, "has a name that is too long", err);
	if (depth_of(buf_str(&maker->real)) > maker->limits.depth)
		return refuse(maker, E2BIG, "lies in too many folders", err);
	if (maker->rules == MAKER_LAYER && str_starts(name, STR(REMOVED_PREFIX)))
		return begin_removed(maker, room, err);
	return begin_named(maker, room, entry, err);
}

bool maker_write(struct maker *maker, uint64_t offset, struct str bytes, struct err *err)
{
	if (maker->state != MAKER_OPEN || maker->is_folder)
		return true;
	if (offset > maker->size || bytes.size > maker->size - offset)
		return refuse(maker, EBADMSG, "has more bytes than it says", err);
	while (bytes.size > 0) {
		const ssize_t done =
			pwrite(maker->fd, bytes.data, bytes.size, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return failed(maker, err);
		if (done == 0)
			return refuse(maker, EIO, "cannot be written", err);
		offset += (uint64_t)done;
		bytes = str_part(bytes, (size_t)done, bytes.size);
	}
	return true;
}

bool maker_attribute(struct maker *maker, const char *name, struct str value, struct err *err)
{
	const bool ours = maker->state == MAKER_OPEN &&
			  strncmp(name, USER_PREFIX, strlen(USER_PREFIX)) == 0 &&
			  strncmp(name, OVERLAY_PREFIX, strlen(OVERLAY_PREFIX)) != 0;

	if (ours && fsetxattr(maker->fd, name, value.data, value.size, 0) == 0)
		return true;
	/* The file system may keep none, or no more of them. */
	if (ours && (errno == EIO || errno == EDQUOT))
		return failed(maker, err);
	maker->counts->attributes++;
	return true;
}

void maker_note_owner(struct maker *maker)
{
	maker->counts->owners++;
}

/* The folder under way gets its time when all is made. */
static void remember_time(struct maker *maker)
{
	if (maker->arena.used + maker->real.size > TIMES_BYTES_MAX)
		return;
	maker->times = memory_more(maker->times, maker->time_count, sizeof(*maker->times));
	maker->times[maker->time_count++] =
		(struct folder_time){arena_copy(&maker->arena, buf_str(&maker->real)),
				     maker->changed};
}

static bool end_open(struct maker *maker, struct err *err)
{
	const struct timespec times[2] = {maker->changed, maker->changed};

	if (maker->is_folder) {
		remember_time(maker);
		return fchmod(maker->fd,
			      (maker->mode & (PERMISSIONS | S_ISVTX)) | S_IRWXU) == 0 ||
		       failed(maker, err);
	}
	return (fchmod(maker->fd, (maker->mode & PERMISSIONS) | OWNER_FILE) == 0 &&
		futimens(maker->fd, times) == 0) ||
	       failed(maker, err);
}

bool maker_end(struct maker *maker, struct err *err)
{
	const bool ended = maker->state != MAKER_OPEN || end_open(maker, err);

	fd_close(&maker->fd);
	maker->state = MAKER_BETWEEN;
	return ended;
}

/*
 * Take the removed names out of the folder TAKE_FD and those in it, when it or one above HIDDEN what is
 * below. They remove nothing there, and the kernel would list them.
 */
static void drop_removed(int take_fd, bool hidden, size_t depth)
{
	DIR *names = depth > 0 ? fdopendir(take_fd) : NULL;
	char value[2];

	if (names == NULL) {
		fd_close(&take_fd);
		return;
	}
	hidden = hidden || fgetxattr(take_fd, OVERLAY_HIDES, value, sizeof(value)) > 0;
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		struct stat st;

		if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0 ||
		    (at->d_type != DT_DIR && at->d_type != DT_CHR &&
		     at->d_type != DT_UNKNOWN) ||
		    fstatat(take_fd, at->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			drop_removed(openat(take_fd, at->d_name, FOLDER_FLAGS), hidden,
				     depth - 1);
		else if (hidden && is_removed(&st))
			(void)unlinkat(take_fd, at->d_name, 0);
	}
	(void)closedir(names);
}

/*
 * Give the folders their times: a folder before those above it, whose times its own time does not
 * change. Folders of one folder mostly follow each other, so that one stays open.
 */
static void set_times(const struct maker *maker)
{
	struct str held = {"", 0}, folder, name;
	char room[COMPONENT_ROOM];
	auto_close int above = open_real(maker, held);
	size_t steps = 0;

	for (size_t i = maker->time_count; i > 0 && steps < TIMES_STEPS_MAX; i--) {
		const struct folder_time *at = &maker->times[i - 1];
		const struct timespec times[2] = {at->changed, at->changed};

		split(str_of(at->path), &folder, &name);
		if (!str_equal(folder, held)) {
			fd_close(&above);
			above = open_real(maker, folder);
			held = folder;
			steps += depth_of(folder);
		}
		steps++;
		/* A later entry may have replaced it. The folder of all entries has no name. */
		auto_close int fd =
			above < 0 || !component(name, room)
				? -1
				: openat(above, name.size > 0 ? room : ".", FOLDER_FLAGS);
		if (fd >= 0)
			(void)futimens(fd, times);
	}
}

void maker_finish(struct maker *maker)
{
	if (maker->hides)
		drop_removed(openat(maker->folder, ".", FOLDER_FLAGS), false,
			     maker->limits.depth + 2);
	set_times(maker);
}

void maker_counts_add(struct maker_counts *sum, const struct maker_counts *more)
{
	sum->entries += more->entries;
	sum->bytes += more->bytes;
	sum->files += more->files;
	sum->folders += more->folders;
	sum->links += more->links;
	sum->removed += more->removed;
	sum->devices += more->devices;
	sum->set_id += more->set_id;
	sum->owners += more->owners;
	sum->attributes += more->attributes;
	sum->outside += more->outside;
	sum->across += more->across;
}
