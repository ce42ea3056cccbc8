/*
 * place_finish: finishes or undoes the writes that a killed worker had begun, each set of
 * files as a whole. place_journal.h tells which process wrote the journal that is read
 * here.
 */
#include "files/place_journal.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

void files_finish_writes(struct files *files, const struct value *rows)
{
	const size_t count = value_count(rows);

	for (size_t i = 0; i < count;) {
		const struct value *set = value_member(value_item(rows, i), JOURNAL_SET);
		size_t next = i + 1;

		while (next < count &&
		       value_integer(value_member(value_item(rows, next), JOURNAL_SET)) ==
			       value_integer(set))
			next++;
		take_set(files, rows, i, next - i);
		i = next;
	}
}
