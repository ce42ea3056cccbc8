/* place_item: one file of a write; see place_item.h. */
#include "files/place_item.h"
#include "files/place_parts.h"
#include "files/undo_log.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

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

bool place_say_write(int code, const struct place *place, struct err *err)
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

bool place_item_lock(struct place_item *item, struct err *err)
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

bool place_item_write(struct place_item *item, bool named)
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

bool place_item_keep(const struct place_item *item, struct err *err)
{
	const struct place *place = item->change->place;
	struct undo_state after = undo_absent;
	struct buf path;

	if (place->files == NULL || !files_keeps(place->files))
		return true;
	if (!item->change->removes) {
		undo_state_of(&item->row.made, &after);
		undo_state_hash_text(item->change->content, &after);
	}
	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s/%s",
		       str_is(buf_str(&place->folder), "/") ? "" : place->folder.data,
		       place->name);
	bool kept = files_keep_change(place->files, path.data, item->old_fd,
				      &item->row.old, &after, err);
	buf_fini(&path);
	return kept;
}

bool place_item_link(struct place_item *item)
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

bool place_item_put(struct place_item *item, bool alone, struct err *err)
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

void place_item_take_back(struct place_item *item)
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
