/*
 * place_journal: see place_journal.h. A journal is two lines of JSON: the rows that will
 * be written, and, when all temporary files exist, their inodes and times. Paths are
 * written as in git_scan.h, because JSON holds only UTF-8.
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

/* The size and time of ST, under keys that begin with PREFIX. */
static void set_times(struct value *object, const char *prefix, const struct stat *st)
{
	char key[16];

	(void)snprintf(key, sizeof(key), "%ssize", prefix);
	set_number(object, key, (uint64_t)st->st_size);
	(void)snprintf(key, sizeof(key), "%ss", prefix);
	set_number(object, key, (uint64_t)st->st_mtim.tv_sec);
	(void)snprintf(key, sizeof(key), "%sns", prefix);
	value_set_integer(object, key, st->st_mtim.tv_nsec);
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

		auto_free char *folder = path_key(rows[i].folder);
		auto_free char *name = path_key(rows[i].name);

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

		set_number(item, "new", rows[i].made.st_ino);
		if (!rows[i].removes)
			set_times(item, "new_", &rows[i].made);
		value_set_boolean(item, "existed", rows[i].existed);
		if (rows[i].existed) {
			set_number(item, "old", rows[i].old.st_ino);
			set_times(item, "", &rows[i].old);
		}
		value_append(list, item);
	}
	return add_line(files->journal, list) && fdatasync(files->journal) == 0;
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
	/* A line without its newline was not written completely and does not count. */
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
