/* place: folders of cells in the runtime directory. */

#include "front/cells/place.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
	TRIES = 16, /* other processes may take a name, and leave it, again and again */
	SHORT_MAX = 48, /* bytes of a folder's name in that of a cell */
	REMOVER_LOOK_MS = 5,
	OTHERS = S_IRWXG | S_IRWXO,
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
 * Is the folder FD, which was opened as PATH, one that only this user can open? In any other one
 * somebody else could put the socket of a cell that is none.
 */
static bool is_private(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return failed(path, err);
	if (st.st_uid != geteuid())
		return err_set(err, EPERM,
			       "%s belongs to another user (number %u): cells are found only in a "
			       "folder of your own; remove it, or set XDG_RUNTIME_DIR to a folder "
			       "of yours",
			       path, (unsigned)st.st_uid);
	return (st.st_mode & OTHERS) == 0 ||
	       err_set(err, EPERM,
		       "%s has mode %04o, so others may open it: cells are found only in a folder "
		       "that nobody else can open; look what is in it, then: chmod 700 %s",
		       path, (unsigned)st.st_mode & ALLPERMS, path);
}

/*
 * Open the folder NAME of ABOVE, whose path becomes PATH; with MAKES it is made when it is missing.
 * It is a folder of this user, and no link to one. -1: ERR says why not.
 */
static int open_private(int above, const char *name, bool makes, struct buf *path,
			struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	if (!buf_addf(path, "/%s", name))
		return (void)err_set(err, ENAMETOOLONG,
				     "XDG_RUNTIME_DIR: the path is too long"),
		       -1;
	if (makes && mkdirat(above, name, FOLDER_MODE) < 0 && errno != EEXIST)
		return (void)failed(path->data, err), -1;
	fd = openat(above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOTDIR &&
	    fstatat(above, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return (void)err_set(err, ENOTDIR,
				     "%s is %s: cells are found only in a folder; remove it: rm %s",
				     path->data,
				     S_ISLNK(st.st_mode) ? "a symbolic link" : "no folder",
				     path->data),
		       -1;
	if (fd < 0)
		return (void)failed(path->data, err), -1;
	return is_private(fd, path->data, err) ? fd_take(&fd) : -1;
}

/* Open the runtime directory, whose path becomes PATH. -1: ERR says why not. */
static int open_runtime(struct buf *path, struct err *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	auto_close int fd = -1;
	struct stat st;

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
	fd = open(path->data, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
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
	return fd_take(&fd);
}

/*
 * Open the folder of all cells; with NONE NULL it is made when it is missing. -1: ERR says why not;
 * *NONE: it is missing, so there is no cell. PATH is for sentences only: each part was looked
 * at when it was opened.
 */
static int open_all(struct buf *path, bool *none, struct err *err)
{
	struct err own = {0};
	if (err == NULL)
		err = &own;
	auto_close int runtime = open_runtime(path, err);
	auto_close int ours =
		runtime < 0 ? -1
			    : open_private(runtime, "glovebox", none == NULL, path, err);
	auto_close int all =
		ours < 0 ? -1 : open_private(ours, "cells", none == NULL, path, err);
	int fd = all < 0 ? -1 : openat(all, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (all >= 0 && fd < 0)
		(void)failed(path->data, err);
	if (fd < 0 && none != NULL)
		*none = err->code == ENOENT && runtime >= 0;
	return fd;
}

/*
 * Is the folder FD that of a dead cell? Then nobody gets a lock of its own on it as long as FD is
 * open. Several may look at the same time: each of them shares the lock, so that none takes the
 * other one for the front of the cell.
 */
static bool take_dead(int fd)
{
	return flock(fd, LOCK_SH | LOCK_NB) == 0;
}

/* Remove the folders in ALL of starts that were killed before they gave them a name. */
static void sweep(int all)
{
	struct fd_names names;

	fd_names_read(&names, all, CELLS_MAX, true);
	for (size_t i = 0; i < names.count; i++) {
		auto_close int fd = -1;

		if (strncmp(names.items[i], UNNAMED, strlen(UNNAMED)) != 0)
			continue;
		fd = fd_hold(all, names.items[i], LOCK_EX | LOCK_NB, 0);
		if (fd >= 0)
			fd_folder_remove_at(all, names.items[i]);
	}
	fd_names_fini(&names);
}

void cells_place_sweep(void)
{
	auto_close int all = -1;
	struct buf path;
	struct err err = {0};
	bool none = false;

	buf_init(&path, PATH_MAX);
	all = open_all(&path, &none, &err);
	if (all >= 0)
		sweep(all);
	buf_fini(&path);
}

void cells_place_suggest(const char *workspace, int number, struct buf *name)
{
	const char *base = path_base_name(workspace);
	struct buf shortened;

	buf_init(&shortened, SHORT_MAX);
	while (*base != '\0' && !is_letter(*base))
		base++;
	/* One '-' for all bytes in a row that may not stand in a name, and none at the end. */
	for (; *base != '\0' && shortened.size < SHORT_MAX; base++) {
		if (may_stand(*base))
			(void)buf_addc(&shortened, *base);
		else if (shortened.data[shortened.size - 1] != '-')
			(void)buf_addc(&shortened, '-');
	}
	while (shortened.size > 0 && shortened.data[shortened.size - 1] == '-')
		buf_truncate(&shortened, shortened.size - 1);
	if (shortened.size == 0 || !cells_place_fits(shortened.data, NULL)) {
		buf_clear(&shortened);
		(void)buf_adds(&shortened, "cell");
	}
	buf_clear(name);
	(void)buf_adds(name, shortened.data);
	if (number > 1)
		(void)buf_addf(name, "-%d", number);
	buf_fini(&shortened);
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
	struct buf path;

	*place = CELLS_PLACE_NONE;
	buf_init(&path, PATH_MAX);
	place->all = open_all(&path, NULL, err);
	place->path = memory_copy(path.data);
	buf_fini(&path);
	if (place->all < 0)
		return false;
	sweep(place->all);
	(void)snprintf(place->name, sizeof(place->name), UNNAMED "XXXXXX");
	place->folder = fd_hold_new(place->all, place->name, LOCK_EX, FOLDER_MODE);
	return place->folder >= 0 ? listen_in(place, err) : failed(place->path, err);
}

static bool write_about(const struct cells_place *place, const struct value *about,
			struct err *err)
{
	char own[FD_NAME_ROOM], path[FD_NAME_ROOM + sizeof("/" ABOUT)];
	struct err why = {0};
	struct buf text;
	bool ok;

	buf_init(&text, ABOUT_MAX);
	(void)snprintf(path, sizeof(path), "%s/" ABOUT, fd_name(place->folder, own));
	ok = (value_print(about, VALUE_PRETTY, &text) && buf_addc(&text, '\n')) ||
	     err_set(err, EFBIG, "what there is to say about the cell is too long");
	if (ok && !fd_replace_file(path, buf_str(&text), &why))
		ok = err_set(err, why.code, "%s/%s/" ABOUT ": %s%s", place->path,
			     place->name, strerror(why.code), remedy_of(why.code));
	buf_fini(&text);
	return ok;
}

/* Does a cell that lives have NAME? The folder of a dead one is removed, UNTIL as of find. */
static bool is_taken(const char *name, int64_t until, struct err *err)
{
	struct cells_found other;
	bool is_free = cells_place_find(name, until, &other, err);

	if (other.life == CELLS_LIVES)
		is_free = err_set(err, EEXIST,
				  "a cell %s runs already; take another name, or: glovebox stop %s",
				  name, name);
	else if (other.life == CELLS_KEPT)
		is_free = cells_place_say_kept(name, &other, err);
	cells_place_found_fini(&other);
	return !is_free;
}

bool cells_place_name(struct cells_place *place, const char *name,
		      const struct value *about, struct err *err)
{
	const int64_t until = clock_now_ms() + CELLS_REMOVER_MS;

	if (is_taken(name, until, err) || !write_about(place, about, err))
		return false;
	for (int i = 0; i < TRIES; i++) {
		if (renameat2(place->all, place->name, place->all, name,
			      RENAME_NOREPLACE) == 0) {
			(void)snprintf(place->name, sizeof(place->name), "%s", name);
			return true;
		}
		if (errno != EEXIST)
			return failed(place->path, err);
		/* Another start was faster, or a cell has died meanwhile. */
		if (is_taken(name, until, err))
			return false;
	}
	return err_set(err, EEXIST, "other cells take the name %s again and again", name);
}

void cells_place_remove(struct cells_place *place)
{
	if (place->folder >= 0)
		fd_folder_remove_at(place->all, place->name);
	free(place->path);
	fd_close(&place->listener);
	fd_close(&place->folder);
	fd_close(&place->all);
	*place = CELLS_PLACE_NONE;
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

/*
 * Remove the folder NAME in ALL when it is that of a dead cell. CELLS_NONE: it is none, or another
 * process has removed it; CELLS_KEPT, with errno: nothing can be removed. Only one removes at a
 * time: a name that is free may be that of a new cell in the next moment.
 */
static enum cells_life remove_dead(int all, const char *name, int64_t until)
{
	auto_close int dead = -1;

	/* A remover that was stopped holds nobody up for longer; the next one removes. */
	while (flock(all, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return CELLS_KEPT;
		if (clock_now_ms() >= until) {
			errno = EWOULDBLOCK;
			return CELLS_KEPT;
		}
		(void)poll(NULL, 0, REMOVER_LOOK_MS);
	}
	dead = fd_hold(all, name, LOCK_SH | LOCK_NB, 0);
	if (dead >= 0)
		fd_folder_remove_at(all, name);
	(void)flock(all, LOCK_UN);
	return dead >= 0 ? CELLS_GONE : CELLS_NONE;
}

bool cells_place_find(const char *name, int64_t until, struct cells_found *found,
		      struct err *err)
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
		found->life = remove_dead(all, name, until);
		found->why = errno;
		/* Another finder may have removed it, and another cell may have the name now. */
	} while (found->life == CELLS_NONE);
	/* A list of dead cells has as many as there are, and needs none of the folders. */
	fd_close(&found->folder);
	return true;
}

bool cells_place_say_kept(const char *name, const struct cells_found *found, struct err *err)
{
	return err_set(err, EBUSY,
		       found->why == EWOULDBLOCK
			       ? "cell %s is gone, and its name is not free yet: another glovebox "
				 "(stopped?) holds the folder of the cells; lslocks names it: let it "
				 "go on (kill -CONT), or end it"
			       : "cell %s is gone, and its folder cannot be removed: %s",
		       name, strerror(found->why));
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
