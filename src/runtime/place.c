/*
 * place: where a file is, or would be, written, and putting a content there so that every
 * reader sees the old file or the new one. A content is written nameless first
 * (O_TMPFILE), so that a killed writer leaves nothing behind.
 */
#include "runtime/files.h"
#include "runtime/files_inside.h"
#include "runtime/place_temp.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
	/* Ours hold it for one write; who holds it longer is a stranger. */
	PLACE_LOCK_MS = 5000,
	PLACE_LOCK_STEP_MS = 2,
	/* names already taken, or a file exchanged while it was opened */
	PLACE_TRIES = 64,
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

void files_mark(struct str content, const struct stat *st, char mark[FILES_MARK])
{
	uint64_t size = st ? (uint64_t)st->st_size : content.size;

	if (size <= FILES_HASHED_MAX || !st) {
		hash_text(content, mark);
		return;
	}
	(void)snprintf(mark, FILES_MARK,
		       "stat:%" PRIx64 ":%" PRIx64 ":%" PRIx64 ".%09ld:%" PRIx64 ".%09ld",
		       (uint64_t)st->st_ino, size, (uint64_t)st->st_mtim.tv_sec,
		       st->st_mtim.tv_nsec, (uint64_t)st->st_ctim.tv_sec,
		       st->st_ctim.tv_nsec);
}

/* May REAL (folder and name put together) be written at all? */
static bool check_writable(const struct files *files, const char *real, const char *shown,
			   struct err *err)
{
	if (files_is_blocked(files, real))
		return files_say_missing(shown, err);
	if (!files_is_writable(files, real))
		return err_set(err, EROFS, "%s may not be written by this agent.", shown);
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
 * Make the folders REST (several names) beneath FOLDER_FD; *FOLDER_FD becomes the last.
 */
static bool make_below(int *folder_fd, char *rest, const char *shown, struct err *err)
{
	while (rest && *rest) {
		const char *name = strsep(&rest, "/");
		int next;

		if (mkdirat(*folder_fd, name, 0777) < 0 && errno != EEXIST)
			return files_say(errno, shown, err);
		next = files_open_below(*folder_fd, name, FILES_FOLDER);
		if (next < 0)
			return files_say(errno, shown, err);
		fd_close(folder_fd);
		*folder_fd = next;
	}
	return true;
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
	    make_below(&place->folder_fd, rest, shown, err)) {
		buf_clear(&place->folder);
		buf_addstr(&place->folder, buf_str(&whole));
		place->made_folders = true;
		ok = true;
	}
	buf_fini(&whole);
	return ok;
}

/*
 * Open the folder of PATH (normal, absolute) and look at its last name. PATH is replaced
 * when that is a link: 1 look again, 0 done, -1 failed.
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
 * The folder of a root lies outside of all roots; that the root itself is a folder can
 * still be said.
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
	join(place->folder.data, place->name, absolute);
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
	found = place_find(files, path, make, place, &absolute, &why);
	buf_fini(&absolute);
	return found || err_set(err, why.code, "%s", why.text);
}

static int open_old(const struct place *place, struct stat *st, struct err *err)
{
	auto_close int fd = files_open_below(place->folder_fd, place->name, FILES_READ);

	if (fd < 0 || fstat(fd, st) < 0) {
		files_say(errno, place->name, err);
		return -1;
	}
	return fd_take(&fd);
}

static bool read_old(int fd, const struct stat *st, const char *name, struct buf *content,
		     struct err *err)
{
	if (st->st_size > 0 && (uint64_t)st->st_size <= content->max)
		(void)buf_reserve(content, (size_t)st->st_size);
	return fd_read_all(fd, content, name, err);
}

bool place_read(const struct place *place, size_t max, struct buf *content,
		struct stat *st, struct err *err)
{
	auto_close int fd = open_old(place, st, err);

	if (fd < 0)
		return false;
	if (st->st_size > 0 && (uint64_t)st->st_size > max)
		return err_set(err, EFBIG, "%s has %jd bytes; at most %zu are taken.",
			       place->name, (intmax_t)st->st_size, max);
	return read_old(fd, st, place->name, content, err);
}

/* A writer's failure, said so that the reader knows that nothing was lost. */
static bool say_write(int code, const struct place *place, struct err *err)
{
	const char *kept =
		place->exists ? "the old file is unchanged" : "nothing was written";

	switch (code) {
	case ENOSPC:
		return err_set(err, code, "%s: no space is left on this file system; %s.",
			       place->name, kept);
	case EDQUOT:
		return err_set(err, code, "%s: the disk quota is used up; %s.",
			       place->name, kept);
	case EFBIG:
		return err_set(err, code, "%s: larger than the limit for files here; %s.",
			       place->name, kept);
	case EEXIST:
		return err_set(err, code, "%s exists already.", place->name);
	default:
		return err_set(err, code, "%s: %s; %s.", place->name, strerror(code), kept);
	}
}

static bool sync_folder(const struct place *place)
{
	auto_close int fd =
		openat(place->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/*
	 * A folder that may be written but not read cannot be synced; the file itself is
	 * safe.
	 */
	return fd < 0 || fsync(fd) == 0 || errno == EINVAL;
}

static bool finish(struct place *place, struct err *err)
{
	if (!sync_folder(place))
		return err_set(err, errno,
			       "%s was written, but its folder could not be "
			       "synced: %s.",
			       place->name, strerror(errno));
	place->exists = fstatat(place->folder_fd, place->name, &place->st,
				AT_SYMLINK_NOFOLLOW) == 0;
	return true;
}

/* Write a file that is not there yet. */
static bool create(struct place *place, struct str content, bool named, struct err *err)
{
	struct temp temp;
	bool ok = temp_open(&temp, place->folder_fd, named, 0666) &&
		  temp_write(&temp, content) && fsync(temp.fd) == 0;

	if (ok && temp.name[0]) {
		ok = renameat2(temp.folder_fd, temp.name, temp.folder_fd, place->name,
			       RENAME_NOREPLACE) == 0;
		if (ok)
			temp.name[0] = '\0';
		else if (errno == EINVAL) /* no such flag here: a link does not replace either */
			ok = linkat(temp.folder_fd, temp.name, temp.folder_fd,
				    place->name, 0) == 0;
	} else if (ok && !temp_link(&temp, place->name)) {
		ok = false;
		if (errno != EEXIST && errno != ENOSPC && errno != EDQUOT) {
			temp_drop(&temp);
			return create(place, content, true, err);
		}
	}
	temp_drop(&temp);
	return ok ? finish(place, err) : say_write(errno, place, err);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Take the lock of the file that the name leads to. -1 with ERR. */
static int lock_old(struct place *place, struct stat *st, struct err *err)
{
	int64_t deadline = clock_now_ms() + PLACE_LOCK_MS;

	for (int i = 0; i < PLACE_TRIES || clock_now_ms() < deadline;) {
		auto_close int fd = open_old(place, st, err);
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
		    same_file(&named, st) && fstat(fd, st) == 0)
			return fd_take(&fd);
		i++;
	}
	err_set(err, EBUSY, "%s is locked by another program for more than %d s.",
		place->name, PLACE_LOCK_MS / 1000);
	return -1;
}

static bool say_changed(const struct place *place, struct err *err)
{
	return err_set(err, EAGAIN, "%s was changed by somebody else in the meantime.",
		       place->name);
}

/* Has the locked old file the content that was expected? */
static bool check_mark(int fd, const struct stat *st, const char *expected,
		       const struct place *place, struct err *err)
{
	char mark[FILES_MARK];
	struct buf old;
	bool ok = true;

	buf_init(&old, FILES_HASHED_MAX);
	if (st->st_size <= FILES_HASHED_MAX)
		ok = read_old(fd, st, place->name, &old, err);
	if (ok) {
		files_mark(buf_str(&old), st, mark);
		ok = strcmp(mark, expected) == 0 || say_changed(place, err);
	} else if (err->code == EFBIG) {
		say_changed(place, err);
	}
	buf_fini(&old);
	return ok;
}

/* The last look before the rename: writers that know no lock exist too. */
static bool still_the_same(const struct place *place, const struct stat *st)
{
	struct stat now;

	return fstatat(place->folder_fd, place->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       same_file(&now, st) && now.st_size == st->st_size &&
	       now.st_mtim.tv_sec == st->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

static bool temp_prepare(struct temp *temp, struct place *place, struct str content,
			 bool named, int old_fd, const struct stat *st)
{
	if (!temp_open(temp, place->folder_fd, named, 0600) || !temp_write(temp, content) ||
	    !temp_copy_attributes(temp, old_fd, st) || fsync(temp->fd) < 0)
		return false;
	return temp->name[0] != '\0' || temp_link_anywhere(temp);
}

static bool replace(struct place *place, struct str content, const char *expected,
		    struct err *err)
{
	struct stat st;
	auto_close int old_fd = lock_old(place, &st, err);
	struct temp temp = {.fd = -1};
	bool ok;

	if (old_fd < 0 || !check_mark(old_fd, &st, expected, place, err))
		return false;
	ok = temp_prepare(&temp, place, content, false, old_fd, &st);
	if (!ok && errno != ENOSPC && errno != EDQUOT && errno != EFBIG) {
		/* No nameless files here, or no /proc to give them a name by. */
		temp_drop(&temp);
		ok = temp_prepare(&temp, place, content, true, old_fd, &st);
	}
	if (ok && !still_the_same(place, &st)) {
		temp_drop(&temp);
		return say_changed(place, err);
	}
	ok = ok && renameat(temp.folder_fd, temp.name, place->folder_fd, place->name) == 0;
	if (ok)
		temp.name[0] = '\0';
	temp_drop(&temp);
	return ok ? finish(place, err) : say_write(errno, place, err);
}

bool place_write(struct place *place, struct str content, const char *expected_mark,
		 struct err *err)
{
	struct err why = {0};
	bool ok = expected_mark ? replace(place, content, expected_mark, &why)
				: create(place, content, false, &why);

	return ok || err_set(err, why.code, "%s", why.text);
}
