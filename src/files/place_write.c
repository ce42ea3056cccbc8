/*
 * place_write: putting contents at their places so that every reader sees the old file or
 * the new one, for one file and for a set of them. A content is first written to a
 * nameless file (O_TMPFILE). While that file has a temporary name, the name is in the
 * journal, so that the file of a killed writer is removed later.
 */
#include "files/place_item.h"

#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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
		files_close_later(changes->place->files, fd_take(&staging.items->old_fd));
	staging_fini(&staging);
	for (size_t i = count; i-- > 0;) {
		const struct place *place = changes[i].place;

		if (ok)
			files_add_heads(place->files, place->folder.data);
		else
			place_unmake_folders(changes[i].place);
		if (ok && !changes[i].removes)
			files_add_written(place->files, place->folder.data, place->name);
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
