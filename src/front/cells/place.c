/* place: folders of cells in the runtime directory. */

#include "front/cells/place.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define ABOUT  "about.json"
#define SOCKET "socket"
/* How the name of a folder begins that has no name yet; no cell has such a name. */
#define UNNAMED ".new-"

enum {
	FOLDER_MODE = 0700,
	BACKLOG = 64,
	ABOUT_MAX = 64 << 10,
	TRIES = 16,     /* another process may remove a folder before it is locked */
	CHOICES = 1000, /* numbers behind the name of a folder */
	SHORT_MAX = 48, /* bytes of a folder's name in that of a cell */
};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool may_stand(char c)
{
	return is_letter(c) || c == '.' || c == '_' || c == '-';
}

bool cells_place_fits(const char *name, struct err *err)
{
	const size_t size = strlen(name);
	bool fits = size > 0 && size <= CELLS_NAME_MAX && is_letter(name[0]);
	struct buf clean;

	for (const char *at = name; fits && *at != '\0'; at++)
		fits = may_stand(*at);
	/* The engine gives such names itself. */
	if (fits &&
	    (name[0] != 'c' || size == 1 || strspn(name + 1, "0123456789") != size - 1))
		return true;
	buf_init(&clean, 4 * CELLS_NAME_MAX);
	(void)text_clean(str_part(str_of(name), 0, CELLS_NAME_MAX), &clean);
	(void)err_set(err, EINVAL,
		      fits ? "\"%s\" cannot be the name of a cell: c and a number is how cells "
			     "without a name are called; take another"
			   : "\"%s\" cannot be the name of a cell: take 1 to %d letters, digits, "
			     "dots, _ and -, the first a letter or digit",
		      clean.data, CELLS_NAME_MAX);
	buf_fini(&clean);
	return false;
}

/* The folder of all cells. */

/* The remedy for the error CODE of the runtime directory. */
static const char *remedy_of(int code)
{
	switch (code) {
	case ENOSPC:
	case EDQUOT:
		return "; make room there (df shows how much there is)";
	case EACCES:
	case EPERM:
	case EROFS:
		return "; set XDG_RUNTIME_DIR to a folder that you may write";
	default:
		return "";
	}
}

static bool failed(const char *path, struct err *err)
{
	const int code = errno;

	return err_set(err, code, "%s: %s%s", path, strerror(code), remedy_of(code));
}

/*
 * Open the folder of all cells; with NONE NULL it is made when it is missing. -1: ERR says why not;
 * *NONE: it is missing, so there is no cell.
 */
static int open_all(struct buf *path, bool *none, struct err *err)
{
	static const char *const below[] = {"/glovebox", "/cells"};
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int fd;

	if (runtime == NULL || runtime[0] != '/')
		return (void)err_set(err, ENOENT,
				     "XDG_RUNTIME_DIR is %s: cells are found in a folder that only "
				     "you can open, and that goes when the machine stops; log in by a "
				     "session of systemd, or set it: export "
				     "XDG_RUNTIME_DIR=\"$(mktemp -d)\"",
				     runtime == NULL ? "not set" : "no absolute path"),
		       -1;
	if (!buf_adds(path, runtime))
		return (void)err_set(err, ENAMETOOLONG,
				     "XDG_RUNTIME_DIR: the path is too long"),
		       -1;
	if (stat(path->data, &st) < 0)
		return (void)(errno == ENOENT
				      ? err_set(err, errno,
						"XDG_RUNTIME_DIR names %s, which does not exist; make "
						"it (mkdir -m 700), or name another folder",
						path->data)
				      : failed(path->data, err)),
		       -1;
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return (void)err_set(err, EPERM,
				     "XDG_RUNTIME_DIR names %s, which %s: name a folder that is "
				     "yours and that nobody else may write (chmod 700)",
				     path->data,
				     st.st_uid != geteuid() ? "is not yours"
							    : "others may write"),
		       -1;
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		if (!buf_adds(path, below[i]))
			return (void)err_set(err, ENAMETOOLONG,
					     "XDG_RUNTIME_DIR: the path is too long"),
			       -1;
		if (none == NULL && mkdir(path->data, FOLDER_MODE) < 0 && errno != EEXIST)
			return (void)failed(path->data, err), -1;
	}
	fd = open(path->data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && none != NULL)
		*none = errno == ENOENT;
	if (fd < 0)
		(void)failed(path->data, err);
	return fd;
}

/*
 * Is the folder FD that of a dead cell? Then this process holds the lock as long as FD is open.
 * A process that has just made a folder locks it before it goes on.
 */
static bool take_dead(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* Remove the folders of starts that were killed before they gave them a name. */
static void sweep(int all)
{
	struct fd_names names;

	fd_names_read(&names, all, CELLS_MAX, true);
	for (size_t i = 0; i < names.count; i++) {
		auto_close int fd = -1;

		if (strncmp(names.items[i], UNNAMED, strlen(UNNAMED)) != 0)
			continue;
		fd = openat(all, names.items[i],
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && take_dead(fd))
			fd_folder_remove_at(all, names.items[i]);
	}
	fd_names_fini(&names);
}

bool cells_place_choose(const char *workspace, struct buf *name, struct err *err)
{
	const char *base = path_base_name(workspace);
	struct buf path, shortened;
	auto_close int all = -1;
	bool found = false;

	buf_init(&path, PATH_MAX);
	buf_init(&shortened, SHORT_MAX);
	while (*base != '\0' && !is_letter(*base))
		base++;
	for (; *base != '\0' && shortened.size < SHORT_MAX; base++)
		(void)buf_addc(&shortened, may_stand(*base) ? *base : '-');
	if (shortened.size == 0 || !cells_place_fits(shortened.data, NULL)) {
		buf_clear(&shortened);
		(void)buf_adds(&shortened, "cell");
	}
	all = open_all(&path, NULL, err);
	for (int i = 1; all >= 0 && !found && i <= CHOICES; i++) {
		struct cells_found other;

		buf_clear(name);
		(void)buf_adds(name, shortened.data);
		if (i > 1)
			(void)buf_addf(name, "-%d", i);
		found = cells_place_find(name->data, &other, err) &&
			other.life != CELLS_LIVES;
		cells_place_found_fini(&other);
	}
	buf_fini(&shortened);
	buf_fini(&path);
	return found ||
	       (all >= 0 && err_set(err, EEXIST,
				    "every name for a cell of this folder is taken; choose "
				    "one with --name"));
}

/* The folder of a new cell. */

/* The address of the socket in the folder FD, by a name that always fits. */
static void address_of(int fd, struct sockaddr_un *address)
{
	char name[FD_NAME_ROOM];

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	(void)snprintf(address->sun_path, sizeof(address->sun_path), "%s/" SOCKET,
		       fd_name(fd, name));
}

static bool listen_in(struct cells_place *place, struct err *err)
{
	const mode_t before = umask(0177);
	struct sockaddr_un address;
	bool listens;

	address_of(place->folder, &address);
	place->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	listens = place->listener >= 0 &&
		  bind(place->listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
		  listen(place->listener, BACKLOG) == 0;
	(void)umask(before);
	return listens || failed(place->path, err);
}

bool cells_place_make(struct cells_place *place, struct err *err)
{
	auto_close int all = -1;
	struct stat st;
	struct buf path;
	size_t above;

	*place = (struct cells_place){.folder = -1, .listener = -1};
	buf_init(&path, PATH_MAX);
	all = open_all(&path, NULL, err);
	above = path.size;
	if (all >= 0)
		sweep(all);
	for (int i = 0; all >= 0 && place->path == NULL && i < TRIES; i++) {
		buf_truncate(&path, above);
		if (!buf_adds(&path, "/" UNNAMED "XXXXXX") || mkdtemp(path.data) == NULL) {
			(void)failed(path.data, err);
			break;
		}
		place->folder =
			open(path.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (place->folder >= 0 && flock(place->folder, LOCK_EX) == 0 &&
		    fstat(place->folder, &st) == 0 && st.st_nlink > 0)
			place->path = memory_copy(path.data);
		else
			fd_close(&place->folder);
		(void)err_set(err, EBUSY, "%s: another process removes it", path.data);
	}
	buf_fini(&path);
	return place->path != NULL && listen_in(place, err);
}

/* Give the folder of PLACE the name PATH, where nothing stands. */
static bool take_name(struct cells_place *place, const char *path)
{
	if (syscall(SYS_renameat2, AT_FDCWD, place->path, AT_FDCWD, path,
		    RENAME_NOREPLACE) != 0)
		return false;
	free(place->path);
	place->path = memory_copy(path);
	return true;
}

bool cells_place_name(struct cells_place *place, const char *name,
		      const struct value *about, struct err *err)
{
	auto_close int all = -1;
	struct buf path, text;
	bool ok;

	buf_init(&path, PATH_MAX);
	buf_init(&text, ABOUT_MAX);
	(void)buf_addf(&path, "%s/" ABOUT, place->path);
	ok = (value_print(about, VALUE_PRETTY, &text) && buf_addc(&text, '\n')) ||
	     err_set(err, EFBIG, "what there is to say about the cell is too long");
	if (ok && !fd_replace_file(path.data, buf_str(&text), err))
		ok = err_set(err, err->code, "%s%s", err->text, remedy_of(err->code));
	buf_clear(&path);
	all = ok ? open_all(&path, NULL, err) : -1;
	ok = all >= 0 && (buf_addf(&path, "/%s", name) ||
			  err_set(err, ENAMETOOLONG, "%s: the path is too long", name));
	for (int i = 0; ok && !take_name(place, path.data); i++) {
		struct cells_found other = {.folder = -1};

		/* A dead cell has left it: finding it removes it. */
		if (errno != EEXIST || i >= TRIES)
			ok = failed(path.data, err);
		else if (cells_place_find(name, &other, err) && other.life == CELLS_LIVES)
			ok = err_set(err, EEXIST,
				     "a cell %s runs already; take another name, or: glovebox stop "
				     "%s",
				     name, name);
		cells_place_found_fini(&other);
	}
	buf_fini(&text);
	buf_fini(&path);
	return ok;
}

void cells_place_remove(struct cells_place *place)
{
	if (place->path != NULL)
		fd_folder_remove(place->path);
	free(place->path);
	fd_close(&place->listener);
	fd_close(&place->folder);
	*place = (struct cells_place){.folder = -1, .listener = -1};
}

/* Cells that are there. */

static struct value *read_about(int folder)
{
	auto_close int fd = fd_open_beneath(folder, ABOUT, O_RDONLY);
	struct value *about = NULL;
	struct err err;
	struct buf text;

	buf_init(&text, ABOUT_MAX);
	if (fd >= 0 && fd_read_all(fd, &text, ABOUT, &err))
		(void)value_parse(buf_str(&text), 0, &about, &err);
	buf_fini(&text);
	if (value_kind(about) == VALUE_OBJECT)
		return about;
	value_free(about);
	return value_new_object();
}

/* Does the folder FD, which is locked, still stand as NAME in ALL? Then it does so until it is removed. */
static bool is_at(int all, const char *name, int fd)
{
	struct stat named, held;

	return fstatat(all, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstat(fd, &held) == 0 && named.st_dev == held.st_dev &&
	       named.st_ino == held.st_ino;
}

bool cells_place_find(const char *name, struct cells_found *found, struct err *err)
{
	auto_close int all = -1;
	bool none = false;
	struct buf path;

	*found = (struct cells_found){.folder = -1};
	buf_init(&path, PATH_MAX);
	all = open_all(&path, &none, err);
	buf_fini(&path);
	if (all < 0)
		return none;
	do {
		cells_place_found_fini(found);
		found->folder =
			openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (found->folder < 0)
			return errno == ENOENT || failed(name, err);
		found->about = read_about(found->folder);
		if (!take_dead(found->folder)) {
			found->life = CELLS_LIVES;
			return true;
		}
		/* Another finder may have removed it, and another cell may have the name now. */
	} while (!is_at(all, name, found->folder));
	found->life = CELLS_GONE;
	fd_folder_remove_at(all, name);
	return true;
}

void cells_place_found_fini(struct cells_found *found)
{
	value_free(found->about);
	fd_close(&found->folder);
	*found = (struct cells_found){.folder = -1};
}

bool cells_place_is_held(const struct cells_found *found)
{
	if (!take_dead(found->folder))
		return true;
	(void)flock(found->folder, LOCK_UN);
	return false;
}

int cells_place_connect(const struct cells_found *found, const char *name, struct err *err)
{
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	address_of(found->folder, &address);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	(void)err_set(err, errno,
		      errno == EAGAIN
			      ? "cell %s takes no more callers now: %s; try again, or "
				"glovebox stop %s"
			      : "cell %s cannot be reached: %s; glovebox ps says whether "
				"%s lives",
		      name, strerror(errno), name);
	fd_close(&fd);
	return -1;
}

bool cells_place_names(struct value **names, struct err *err)
{
	auto_close int all = -1;
	struct fd_names found;
	bool none = false;
	struct buf path;

	buf_init(&path, PATH_MAX);
	all = open_all(&path, &none, err);
	buf_fini(&path);
	if (all < 0 && !none)
		return false;
	*names = value_new_array();
	if (none)
		return true;
	fd_names_read(&found, all, CELLS_MAX, false);
	for (size_t i = 0; i < found.count; i++) {
		if (cells_place_fits(found.items[i], NULL))
			value_append(*names, value_new_text(found.items[i]));
	}
	fd_names_fini(&found);
	return true;
}
