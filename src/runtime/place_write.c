/*
 * place_write: putting contents at their places so that every reader sees the old file or
 * the new one, for one file and for a set of them. A content is written nameless first
 * (O_TMPFILE); for the moment in which it has a name of its own the journal knows it, so that
 * a killed writer leaves nothing behind for long.
 */
#include "runtime/place_journal.h"
#include "runtime/place_parts.h"
#include "runtime/place_temp.h"
#include "runtime/undo_log.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
	/* Ours hold it for one write; who holds it longer is a stranger. */
	PLACE_LOCK_MS = 5000,
	PLACE_LOCK_STEP_MS = 2,
	/* a file exchanged while it was opened */
	PLACE_TRIES = 64,
};

/* One change while it is being made. */
struct staged {
	struct place_change *change;
	struct journal_row row;
	struct temp temp;
	int old_fd; /* locked */
	bool in_place;
};

struct staging {
	struct staged *items;
	size_t count;
	struct journal_row *rows; /* in the order of items */
	bool begun;               /* its rows are in the journal */
};

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

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Take the lock of the file that the name leads to. -1 with ERR. */
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
static bool check_mark(int fd, const struct stat *st, const struct place_change *change,
		       struct err *err)
{
	const struct place *place = change->place;
	char mark[FILES_MARK];
	struct buf old;
	bool ok = true;

	buf_init(&old, FILES_HASHED_MAX);
	if (st->st_size <= FILES_HASHED_MAX)
		ok = place_read_old(fd, st, place->name, &old, err);
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

/* The last look before the rename: writers that know no lock exist too. */
static bool still_the_same(const struct place *place, const struct stat *st)
{
	struct stat now;

	return fstatat(place->folder_fd, place->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       same_file(&now, st) && now.st_size == st->st_size &&
	       now.st_mtim.tv_sec == st->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

/* Lock the old file and compare it. */
static bool item_lock(struct staged *item, struct err *err)
{
	struct place_change *change = item->change;

	item->row.existed = change->expected_mark != NULL;
	if (!item->row.existed)
		return !change->place->exists || say_write(EEXIST, change->place, err);
	item->old_fd = lock_old(change->place, &item->row.old, err);
	return item->old_fd >= 0 && check_mark(item->old_fd, &item->row.old, change, err);
}

static bool copy_attributes(struct staged *item)
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

/* Write the new content beside the old one, and wait until the disk has it. */
static bool item_write(struct staged *item, bool named)
{
	const struct place_change *change = item->change;
	mode_t mode = item->row.existed ? 0600 : 0666;
	struct stat st;

	if (change->removes)
		return true;
	if (!temp_open(&item->temp, change->place->folder_fd,
		       named ? item->row.temp : NULL, mode) ||
	    !temp_write(&item->temp, change->content) || !copy_attributes(item) ||
	    fsync(item->temp.fd) < 0 || fstat(item->temp.fd, &st) < 0)
		return false;
	item->row.new_inode = st.st_ino;
	return true;
}

/* What is at the place is kept for undo, and what will be is said, before it happens. */
static bool item_keep(const struct staged *item, struct err *err)
{
	const struct place *place = item->change->place;
	struct undo_state after = undo_absent;
	struct buf path;
	struct stat st;

	if (place->files == NULL || !files_keeps(place->files))
		return true;
	if (!item->change->removes) {
		if (fstat(item->temp.fd, &st) < 0)
			return say_write(errno, place, err);
		undo_state_of(&st, &after);
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

/* From here on a name of ours stands in the folder, and the journal knows it. */
static bool item_link(struct staged *item)
{
	if (item->change->removes || item->temp.name[0])
		return true;
	if (!temp_link(&item->temp, item->row.temp))
		return false;
	memcpy(item->temp.name, item->row.temp, sizeof(item->temp.name));
	return true;
}

static bool put_new(struct staged *item)
{
	const struct place *place = item->change->place;
	int folder_fd = place->folder_fd;

	if (renameat2(folder_fd, item->temp.name, folder_fd, place->name,
		      RENAME_NOREPLACE) == 0)
		item->temp.name[0] = '\0';
	else if (errno != EINVAL) /* else no such flag here: a link does not replace either */
		return false;
	else if (linkat(folder_fd, item->temp.name, folder_fd, place->name, 0) < 0)
		return false;
	return true;
}

/*
 * The old content lies under the name of the temp file afterwards, or as KEEP where names
 * cannot be exchanged: it can be put back as long as the set is not whole.
 */
static bool put_exchanged(struct staged *item)
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

static bool item_put(struct staged *item, bool alone, struct err *err)
{
	const struct place *place = item->change->place;
	bool ok;

	if (item->row.existed && !still_the_same(place, &item->row.old))
		return say_changed(place, err);
	if (!item->row.existed) {
		ok = put_new(item);
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
	return ok || say_write(errno, place, err);
}

/* Undo item_put. What somebody has put there since is his. */
static void item_take_back(struct staged *item)
{
	const struct place *place = item->change->place;
	struct stat now;
	bool ours;

	if (!item->in_place)
		return;
	item->in_place = false;
	ours = fstatat(place->folder_fd, place->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       now.st_ino == item->row.new_inode;
	if (item->change->removes)
		ours = renameat2(place->folder_fd, item->temp.name, place->folder_fd,
				 place->name, RENAME_NOREPLACE) == 0;
	else if (ours && !item->row.existed)
		(void)unlinkat(place->folder_fd, place->name, 0);
	else if (ours)
		ours = renameat(place->folder_fd, item->temp.name, place->folder_fd,
				place->name) == 0;
	if (ours)
		item->temp.name[0] = '\0';
}

/* Two sets that want the same files lock them in the same order. */
static int compare_items(const void *a, const void *b)
{
	const struct journal_row *left = &((const struct staged *)a)->row;
	const struct journal_row *right = &((const struct staged *)b)->row;
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
		struct staged *item = &staging->items[i];

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
		journal_end(staging->items[0].change->place->files);
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
	staging->begun = journal_begin(place->files, staging->rows, staging->count,
				       staging->count > 1);
	return staging->begun ||
	       err_set(err, errno,
		       "%s: the journal of this write, in the user's state folder, could not "
		       "be written (%s); nothing was changed.",
		       place->name, strerror(errno));
}

/* Can it not be done without names here, or is it hopeless? */
static bool wants_names(int code)
{
	return code == EOPNOTSUPP || code == EISDIR || code == EINVAL || code == ENOENT ||
	       code == EPERM || code == ENOSYS;
}

static bool staging_write(struct staging *staging, bool named, struct err *err)
{
	for (size_t i = 0; i < staging->count; i++) {
		struct staged *item = &staging->items[i];

		if (item_write(item, named))
			continue;
		if (!named && wants_names(errno)) {
			for (size_t j = 0; j <= i; j++)
				temp_drop(&staging->items[j].temp);
			return staging_begin(staging, err) &&
			       staging_write(staging, true, err);
		}
		return say_write(errno, item->change->place, err);
	}
	return true;
}

static bool staging_link(struct staging *staging, struct err *err)
{
	for (size_t i = 0; i < staging->count; i++) {
		struct staged *item = &staging->items[i];

		if (item_link(item))
			continue;
		/* No /proc to give a nameless file a name by. */
		temp_drop(&item->temp);
		if (!item_write(item, true))
			return say_write(errno, item->change->place, err);
	}
	return true;
}

/* Names that lead to something, on disk, before anything depends on them. */
static bool staging_commit(struct staging *staging, struct err *err)
{
	const struct place *place = staging->items[0].change->place;

	if (staging->count == 1)
		return true;
	for (size_t i = 0; i < staging->count; i++) {
		/* Whoever opens a file as soon as it is there has to wait for the rest. */
		if (staging->items[i].temp.fd >= 0)
			(void)flock(staging->items[i].temp.fd, LOCK_EX | LOCK_NB);
		if (!temp_sync_folder(staging->items[i].change->place->folder_fd))
			return say_write(errno, place, err);
		staging->rows[i] = staging->items[i].row;
	}
	return journal_commit(place->files, staging->rows, staging->count) ||
	       say_write(errno, place, err);
}

static bool staging_put(struct staging *staging, struct err *err)
{
	size_t done = 0;

	while (done < staging->count &&
	       item_put(&staging->items[done], staging->count == 1, err))
		done++;
	if (done == staging->count)
		return true;
	while (done-- > 0)
		item_take_back(&staging->items[done]);
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
		if (!item_keep(&staging->items[i], err))
			return false;
	}
	return true;
}

/* A file that is not there yet needs no name but its own. */
static bool create_alone(struct staged *item, struct err *err)
{
	err->code = 0;
	return item_write(item, false) && item_keep(item, err) &&
	       temp_link(&item->temp, item->change->place->name);
}

static bool write_all(struct staging *staging, struct err *err)
{
	struct staged *first = &staging->items[0];
	bool created = false;

	for (size_t i = 0; i < staging->count; i++) {
		if (!item_lock(&staging->items[i], err))
			return false;
	}
	if (staging->count == 1 && !first->row.existed) {
		created = create_alone(first, err);
		if (!created && err->code != 0)
			return false;
		if (!created && !wants_names(errno))
			return say_write(errno, first->change->place, err);
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
	staging_fini(&staging);
	for (size_t i = count; !ok && i-- > 0;)
		place_unmake_folders(changes[i].place);
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
