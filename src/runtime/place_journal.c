/* place_journal: see place_journal.h. Two lines of JSON: what will be made, and, when all
 * of it is made, by which inodes and times it is known. Paths are written as in git_scan.h,
 * since JSON holds UTF-8 alone. */
#include "runtime/place_journal.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "git/git_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Far more than the rows of one patch. */
enum { JOURNAL_BYTES_MAX = 4 << 20 };

/* A whole number of 64 bits as text: JSON's integers are signed. */
static void set_number(struct value *object, const char *key, uint64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, number);
	value_set_text(object, key, text);
}

static bool is_number(const struct value *object, const char *key, uint64_t number)
{
	const char *given = value_text(value_member(object, key));
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, number);
	return given && strcmp(given, text) == 0;
}

static bool is_time(const struct value *object, const char *key, const struct timespec *at)
{
	const struct value *nanoseconds = value_member(object, "ns");

	return is_number(object, key, (uint64_t)at->tv_sec) &&
	       value_integer(nanoseconds) == at->tv_nsec;
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

		auto_free char *folder = git_scan_key(rows[i].folder);
		auto_free char *name = git_scan_key(rows[i].name);

		value_set_text(item, "folder", folder);
		value_set_text(item, "name", name);
		value_set_text(item, "temp", rows[i].temp);
		value_set_text(item, "keep", rows[i].keep);
		value_set_boolean(item, "removes", rows[i].removes);
		value_append(list, item);
	}
	return add_line(fd, list);
}

bool journal_begin(const struct files *files, const struct journal_row *rows,
		   size_t count, bool lasting)
{
	if (files->journal < 0)
		return true;
	if (lseek(files->journal, 0, SEEK_SET) == 0 &&
	    add_rows(files->journal, rows, count) &&
	    (!lasting || fdatasync(files->journal) == 0))
		return true;
	journal_end(files);
	return false;
}

void journal_end(const struct files *files)
{
	int code = errno;

	if (files->journal >= 0)
		(void)!ftruncate(files->journal, 0);
	errno = code;
}

bool journal_commit(const struct files *files, const struct journal_row *rows, size_t count)
{
	auto_value struct value *list = NULL;

	if (files->journal < 0)
		return true;
	list = value_new_array();
	for (size_t i = 0; i < count; i++) {
		struct value *item = value_new_object();

		set_number(item, "new", rows[i].new_inode);
		value_set_boolean(item, "existed", rows[i].existed);
		if (rows[i].existed) {
			set_number(item, "old", rows[i].old.st_ino);
			set_number(item, "size", (uint64_t)rows[i].old.st_size);
			set_number(item, "s", (uint64_t)rows[i].old.st_mtim.tv_sec);
			value_set_integer(item, "ns", rows[i].old.st_mtim.tv_nsec);
		}
		value_append(list, item);
	}
	return add_line(files->journal, list) && fdatasync(files->journal) == 0;
}

/* What one row of a found journal is about, its folder opened again beneath the roots. */
struct finishing {
	int folder_fd;
	const char *name, *temp, *keep;
	bool removes;
	const struct value *known; /* NULL: roll back */
};

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

static bool is_old(const struct value *known, const struct stat *st)
{
	return is_number(known, "old", st->st_ino) &&
	       is_number(known, "size", (uint64_t)st->st_size) &&
	       is_time(known, "s", &st->st_mtim);
}

/* The new content takes its place, unless somebody has changed the file since. */
static void finish_row(const struct finishing *row)
{
	bool existed = value_is_true(value_member(row->known, "existed"));
	struct stat now, st;
	bool there = look(row, row->name, &now);

	if (row->removes) {
		if (there && is_old(row->known, &now))
			(void)unlinkat(row->folder_fd, row->name, 0);
		return;
	}
	if (!look(row, row->temp, &st) || !is_number(row->known, "new", st.st_ino))
		return; /* it is in its place already */
	if (there && existed && is_old(row->known, &now))
		(void)renameat(row->folder_fd, row->temp, row->folder_fd, row->name);
	else if (!there &&
		 (!existed || (look(row, row->keep, &st) && is_old(row->known, &st))))
		(void)renameat2(row->folder_fd, row->temp, row->folder_fd, row->name,
				RENAME_NOREPLACE);
}

static void remove_temp(const struct finishing *row, const char *name)
{
	struct stat st;

	/* Undo makes links, too. */
	if (fstatat(row->folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)))
		(void)unlinkat(row->folder_fd, name, 0);
}

/* The folder is opened beneath the roots; a link on the way is none of ours. */
static void take_row(const struct files *files, const struct value *item)
{
	auto_free char *folder = git_scan_path(value_text(value_member(item, "folder")));
	auto_free char *name = git_scan_path(value_text(value_member(item, "name")));
	struct finishing row = {
		.folder_fd = -1,
		.name = name,
		.temp = value_text(value_member(item, "temp")),
		.keep = value_text(value_member(item, "keep")),
		.removes = value_is_true(value_member(item, "removes")),
		.known = value_member(item, "known"),
	};
	struct buf real;
	struct err err;

	if (folder == NULL || folder[0] != '/' || !is_plain_name(row.name) ||
	    row.temp == NULL || !temp_is_name(row.temp) || row.keep == NULL ||
	    !temp_is_name(row.keep))
		return;
	buf_init(&real, PATH_MAX);
	if (files_normal(files, folder, &real, &err))
		row.folder_fd = files_open_real(files, real.data, O_PATH | O_DIRECTORY,
						&real, folder, &err);
	if (row.folder_fd >= 0 && strcmp(real.data, folder) == 0 &&
	    buf_addf(&real, "/%s", row.name) && !files_is_blocked(files, real.data) &&
	    files_is_writable(files, real.data)) {
		if (row.known != NULL)
			finish_row(&row);
		remove_temp(&row, row.temp);
		remove_temp(&row, row.keep);
	}
	fd_close(&row.folder_fd);
	buf_fini(&real);
}

struct value *files_unfinished(int fd)
{
	auto_value struct value *known = NULL;
	struct value *rows = NULL;
	struct str rest, line;
	struct buf text;

	buf_init(&text, JOURNAL_BYTES_MAX);
	if (lseek(fd, 0, SEEK_SET) < 0 || !fd_read_all(fd, &text, "a journal", NULL))
		buf_clear(&text);
	rest = buf_str(&text);
	/* A line that was not written to its end does not count. */
	if (str_ends(rest, STR("\n")) && str_next_line(&rest, &line))
		(void)value_parse(line, 0, &rows, NULL);
	if (str_ends(rest, STR("\n")) && str_next_line(&rest, &line))
		(void)value_parse(line, 0, &known, NULL);
	for (size_t i = 0;
	     value_count(known) == value_count(rows) && i < value_count(rows); i++) {
		struct value *row = value_item(rows, i);
		if (value_kind(row) == VALUE_OBJECT)
			value_set(row, "known", value_ref(value_item(known, i)));
	}
	buf_fini(&text);
	if (value_kind(rows) == VALUE_ARRAY && value_count(rows) > 0)
		return rows;
	value_free(rows);
	return NULL;
}

void files_finish_writes(struct files *files, const struct value *rows)
{
	for (size_t i = 0; i < value_count(rows); i++)
		take_row(files, value_item(rows, i));
}
