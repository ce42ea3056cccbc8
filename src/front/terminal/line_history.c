/* line_history: a ring in memory, and a file. */
#include "front/terminal/line_history.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct line_history {
	char *items[LINE_HISTORY_ENTRIES];
	size_t first, count; /* index of the oldest entry, and number of entries */
	int fd;              /* of the file; -1: none */
};

struct line_history *line_history_new(void)
{
	struct line_history *history = memory_alloc(sizeof(*history));

	history->fd = -1;
	return history;
}

void line_history_free(struct line_history *history)
{
	if (history == NULL)
		return;
	for (size_t i = 0; i < LINE_HISTORY_ENTRIES; i++)
		free(history->items[i]);
	fd_close(&history->fd);
	free(history);
}

size_t line_history_count(const struct line_history *history)
{
	return history != NULL ? history->count : 0;
}

struct str line_history_item(const struct line_history *history, size_t at)
{
	return str_of(history->items[(history->first + at) % LINE_HISTORY_ENTRIES]);
}

static bool is_worth_it(const struct line_history *history, struct str text)
{
	if (text.size == 0 || text.size > LINE_HISTORY_ENTRY_MAX || text.data[0] == ' ' ||
	    str_trim(text).size == 0)
		return false;
	return history->count == 0 ||
	       !str_equal(line_history_item(history, history->count - 1), text);
}

static void keep(struct line_history *history, struct str text)
{
	size_t at = (history->first + history->count) % LINE_HISTORY_ENTRIES;

	free(history->items[at]);
	history->items[at] = memory_copy_str(text);
	if (history->count < LINE_HISTORY_ENTRIES)
		history->count++;
	else
		history->first = (history->first + 1) % LINE_HISTORY_ENTRIES;
}

static void print_entry(struct str text, struct buf *out)
{
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] == '\n')
			(void)buf_adds(out, "\\n");
		else if (text.data[i] == '\\')
			(void)buf_adds(out, "\\\\");
		else
			(void)buf_addc(out, text.data[i]);
	}
	(void)buf_addc(out, '\n');
}

/* Decode one line of the file. False: we cannot have written this line. */
static bool parse_entry(struct str line, struct buf *out)
{
	for (size_t i = 0; i < line.size; i++) {
		char c = line.data[i];

		if (c == '\\' && i + 1 < line.size) {
			c = line.data[++i];
			if (c != 'n' && c != '\\')
				return false;
			c = c == 'n' ? '\n' : c;
		} else if (c == '\\' || c == 0x7f || ((unsigned char)c < ' ' && c != '\t')) {
			return false;
		}
		if (!buf_addc(out, c))
			return false;
	}
	return text_is_utf8(buf_str(out));
}

void line_history_parse(struct line_history *history, struct str text)
{
	struct str line;
	struct buf entry;

	buf_init(&entry, LINE_HISTORY_ENTRY_MAX);
	while (str_next_line(&text, &line)) {
		buf_clear(&entry);
		if (parse_entry(line, &entry) && is_worth_it(history, buf_str(&entry)))
			keep(history, buf_str(&entry));
	}
	buf_fini(&entry);
}

/*
 * Replace the content of a file that is too long by its newer half (TEXT is the whole
 * content).
 */
static bool shorten(int fd, struct str text, struct err *err)
{
	struct str half = str_part(text, text.size - LINE_HISTORY_FILE_MAX / 2, text.size);

	half = str_part(half, str_find(half, STR("\n"), 0) + 1, half.size);
	if (ftruncate(fd, 0) < 0)
		return err_set(err, errno, "cutting it: %s", strerror(errno));
	return fd_write_all(fd, half.data, half.size, err);
}

static bool read_file(struct line_history *history, int fd, struct err *err)
{
	struct stat st;
	struct buf text;
	bool sound;

	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, EPERM, "this is no file of yours");
	if ((st.st_mode & 0777) != 0600 && fchmod(fd, 0600) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	/*
	 * Our own file is cut long before it has this size. Of another file only the end
	 * is read.
	 */
	if (st.st_size > 4 * LINE_HISTORY_FILE_MAX)
		(void)lseek(fd, -(off_t)LINE_HISTORY_FILE_MAX, SEEK_END);
	buf_init(&text, 4 * LINE_HISTORY_FILE_MAX + 1);
	sound = fd_read_all(fd, &text, "its text", err);
	if (sound) {
		line_history_parse(history, buf_str(&text));
		if (text.size > LINE_HISTORY_FILE_MAX)
			sound = shorten(fd, buf_str(&text), err);
	}
	buf_fini(&text);
	return sound;
}

bool line_history_open(struct line_history *history, const char *path, struct err *err)
{
	auto_close int fd = -1;
	bool sound;

	if (!fd_make_folders(path, err))
		return false;
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
		  0600);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	(void)flock(fd, LOCK_EX);
	sound = read_file(history, fd, err);
	(void)flock(fd, LOCK_UN);
	if (!sound)
		return err_while(err, "reading %s", path);
	history->fd = fd_take(&fd);
	return true;
}

void line_history_add(struct line_history *history, struct str text)
{
	struct buf entry;

	if (!is_worth_it(history, text))
		return;
	keep(history, text);
	if (history->fd < 0)
		return;
	buf_init(&entry, 2 * LINE_HISTORY_ENTRY_MAX + 1);
	print_entry(text, &entry);
	(void)flock(history->fd, LOCK_EX);
	(void)fd_write_all(history->fd, entry.data, entry.size, NULL);
	(void)flock(history->fd, LOCK_UN);
	buf_fini(&entry);
}
