/* place_journal: see place_journal.h. Two lines of JSON: what will be made, and, when all
 * of it is made, by which inodes and times it is known. */
#include "runtime/place_journal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum {
	JOURNAL_WAIT_MS = 5000, /* ours hold it for some renames; longer is a stranger */
	JOURNAL_STEP_NS = 250000,    /* about what one write holds it */
	JOURNAL_BYTES_MAX = 4 << 20, /* far more than the rows of one patch */
};

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

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

		value_set_text(item, "folder", rows[i].folder);
		value_set_text(item, "name", rows[i].name);
		value_set_text(item, "temp", rows[i].temp);
		value_set_text(item, "keep", rows[i].keep);
		value_set_boolean(item, "removes", rows[i].removes);
		value_append(list, item);
	}
	return add_line(fd, list);
}

bool journal_commit(struct journal *journal, const struct journal_row *rows, size_t count)
{
	auto_value struct value *list = NULL;

	if (journal->fd < 0)
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
	return add_line(journal->fd, list) && fdatasync(journal->fd) == 0;
}

/* What one row of a found journal is about, its folder opened again beneath the roots. */
struct finishing {
	const struct files *files;
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

	if (look(row, name, &st))
		(void)unlinkat(row->folder_fd, name, 0);
}

static void take_row(const struct files *files, const struct value *item,
		     const struct value *known)
{
	const char *folder = value_text(value_member(item, "folder"));
	struct finishing row = {
		.files = files,
		.folder_fd = -1,
		.name = value_text(value_member(item, "name")),
		.temp = value_text(value_member(item, "temp")),
		.keep = value_text(value_member(item, "keep")),
		.removes = value_is_true(value_member(item, "removes")),
		.known = known,
	};
	struct buf real;
	struct err err;

	if (!folder || folder[0] != '/' || !is_plain_name(row.name) ||
	    !temp_is_name(row.temp) || !temp_is_name(row.keep))
		return;
	buf_init(&real, PATH_MAX);
	if (files_normal(files, folder, &real, &err))
		row.folder_fd = files_open_real(files, real.data, O_PATH | O_DIRECTORY,
						&real, folder, &err);
	if (row.folder_fd >= 0 && buf_addf(&real, "/%s", row.name) &&
	    !files_is_blocked(files, real.data) && files_is_writable(files, real.data)) {
		if (known)
			finish_row(&row);
		remove_temp(&row, row.temp);
		remove_temp(&row, row.keep);
		fd_close(&row.folder_fd);
	}
	fd_close(&row.folder_fd);
	buf_fini(&real);
}

/* FD is a journal that nobody holds any more. */
static void finish_found(const struct files *files, int fd)
{
	auto_value struct value *rows = NULL, *known = NULL;
	struct str rest, line;
	struct buf text;
	struct err err;

	buf_init(&text, JOURNAL_BYTES_MAX);
	if (!fd_read_all(fd, &text, FILES_JOURNAL, &err))
		buf_clear(&text);
	rest = buf_str(&text);
	/* A line that was not written to its end does not count. */
	if (str_next_line(&rest, &line))
		(void)value_parse(line, 0, &rows, NULL);
	if (str_ends(rest, STR("\n")) && str_next_line(&rest, &line))
		(void)value_parse(line, 0, &known, NULL);
	if (value_count(known) != value_count(rows)) {
		value_free(known);
		known = NULL;
	}
	for (size_t i = 0; value_kind(rows) == VALUE_ARRAY && i < value_count(rows); i++)
		take_row(files, value_item(rows, i), value_item(known, i));
	buf_fini(&text);
}

/*
 * Take the turn: 1 got it, with *FD locked; 0 not now; -1 with errno: it cannot be opened.
 * One that is empty afterwards was finished here.
 */
static int take_turn(const struct files *files, int folder_fd, int flags, int *taken)
{
	auto_close int fd =
		openat(folder_fd, FILES_JOURNAL,
		       flags | O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	struct stat named, st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : -1;
	if (fstatat(folder_fd, FILES_JOURNAL, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !same_file(&named, &st))
		return 0;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		finish_found(files, fd);
		if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
			return -1;
	}
	*taken = fd_take(&fd);
	return 1;
}

void files_finish_writes(struct files *files)
{
	for (size_t i = 0; i < files->root_count; i++) {
		const struct files_held *root = &files->roots[i];
		struct journal journal = {-1, root->fd};

		if (root->writable && take_turn(files, root->fd, 0, &journal.fd) == 1)
			journal_end(&journal);
	}
}

void journal_end(struct journal *journal)
{
	int saved = errno;

	if (journal->fd >= 0)
		(void)unlinkat(journal->folder_fd, FILES_JOURNAL, 0);
	fd_close(&journal->fd);
	errno = saved;
}

bool journal_begin(struct journal *journal, const struct files *files,
		   const struct files_held *root, const struct journal_row *rows,
		   size_t count, bool lasting, struct err *err)
{
	const struct timespec step = {.tv_nsec = JOURNAL_STEP_NS};
	int64_t deadline = clock_now_ms() + JOURNAL_WAIT_MS;
	int turn;

	*journal = (struct journal){-1, root->fd};
	while ((turn = take_turn(files, root->fd, O_CREAT, &journal->fd)) == 0) {
		if (clock_now_ms() >= deadline)
			return err_set(err, EBUSY,
				       "%s in %s is locked by another program for more than "
				       "%d s; nothing was written.",
				       FILES_JOURNAL, root->path, JOURNAL_WAIT_MS / 1000);
		(void)nanosleep(&step, NULL);
	}
	if (turn < 0)
		return errno == ENOSPC || errno == EDQUOT ? err_set(err, errno, "journal")
							  : true;
	if (add_rows(journal->fd, rows, count) &&
	    (!lasting || (fdatasync(journal->fd) == 0 && temp_sync_folder(root->fd))))
		return true;
	err_set(err, errno, "journal");
	journal_end(journal);
	return false;
}
