/*
 * unsaved: the front's own tool that compares a text that an editor holds with the file on
 * disk, before a file tool reads or changes that file. The result tells in its details
 * whether they are the same, the mark of the file, and the lines of the editor's text that
 * differ; and in its text the lines of the editor as read_file would show them.
 */
#include "base/buf.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "files/files.h"
#include "tool/call.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

enum {
	TEXT_MAX = 4 << 20,
	SHOWN_LINES = 2000, /* as read_file shows at most */
	SHOWN_BYTES = 50000,
	READ_BYTES = 64 << 10,
};

static const struct row unsaved_params[] = {
	{"path", ROW_PATH, true, "File that the editor has open"},
	{"text", ROW_TEXT, true, "The editor's text", .max = TEXT_MAX},
	{"start_line", ROW_COUNT, false, "First line to show", .initial = "1"},
	{"end_line", ROW_COUNT, false, "Last line to show"},
	{0},
};

/* Read FD whole. False: it is larger than an editor's text, or cannot be read. */
static bool read_disk(int fd, struct buf *content)
{
	while (true) {
		char *room = buf_reserve(content, READ_BYTES);
		const ssize_t got = room != NULL ? read(fd, room, READ_BYTES) : -1;

		if (got < 0 && room != NULL && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0;
		buf_commit(content, (size_t)got);
	}
}

/*
 * Editors leave out line ends: some give the ends of a file as "\n" whatever they are, and
 * some leave out the last one.
 */
static bool is_same_line(struct str a, struct str b)
{
	a.size -= str_ends(a, STR("\r"));
	b.size -= str_ends(b, STR("\r"));
	return str_equal(a, b);
}

/* How many lines OLD and NEW begin with in common. */
static size_t common_lines(struct str old, struct str new)
{
	struct str old_line, new_line;
	size_t count = 0;

	while (str_next_line(&old, &old_line) && str_next_line(&new, &new_line) &&
	       is_same_line(old_line, new_line))
		count++;
	return count;
}

static struct str without_last_line(struct str text)
{
	size_t size = text.size;

	if (size > 0 && text.data[size - 1] == '\n')
		size--;
	while (size > 0 && text.data[size - 1] != '\n')
		size--;
	return str_part(text, 0, size);
}

static struct str last_line(struct str text)
{
	return str_part(text, without_last_line(text).size, SIZE_MAX);
}

/* Set in DETAILS whether OLD and NEW are the same, and the lines of NEW that differ. */
static void compare(struct str old, struct str new, struct value *details)
{
	const size_t first = common_lines(old, new);
	size_t last = text_count_lines(new);
	size_t left = text_count_lines(old);

	value_set_boolean(details, "same", first == last && first == left);
	while (last > first && left > first &&
	       str_equal(str_trim(last_line(old)), str_trim(last_line(new)))) {
		old = without_last_line(old);
		new = without_last_line(new);
		last--;
		left--;
	}
	value_set_integer(details, "first_line", (int64_t)first + 1);
	value_set_integer(details, "last_line",
			  (int64_t)(last > first + 1 ? last : first + 1));
}

static void show_lines(const struct call *call, struct str text, struct buf *out)
{
	const int64_t from = value_integer(value_member(call->arguments, "start_line"));
	const struct value *end = value_member(call->arguments, "end_line");
	const int64_t to = end != NULL ? value_integer(end) : INT64_MAX;
	const size_t begin = out->size;
	int64_t number = 0, shown = 0;
	struct str rest = text, line;

	while (str_next_line(&rest, &line)) {
		number++;
		if (number < from || number > to)
			continue;
		if (shown++ == SHOWN_LINES || out->size - begin + line.size > SHOWN_BYTES) {
			(void)buf_addf(out, "[… from line %lld on, left out]\n",
				       (long long)number);
			return;
		}
		(void)buf_addf(out, "%lld\t", (long long)number);
		shown_add(line, out);
		(void)buf_addc(out, '\n');
	}
}

static enum result_status unsaved_execute(struct call *call, struct tool_result *result)
{
	const char *path = call_text(call, "path");
	const struct str text = call_str(call, "text");
	struct value *details = tool_details(result);
	char mark[FILES_MARK];
	struct buf content;
	struct file file;
	struct err err = {0};
	bool exists, fine = true;

	file_init(&file);
	buf_init(&content, TEXT_MAX);
	exists = files_reach(call->files, path, FILES_READ, &file, &err);
	if (exists)
		fine = read_disk(file.fd, &content);
	else if (err.code != ENOENT)
		fine = false;
	if (fine && exists) {
		files_mark(buf_str(&content), &file.st, mark);
		value_set_text(details, "mark", mark);
	}
	if (fine) {
		compare(buf_str(&content), text, details);
		show_lines(call, text, &result->text);
	}
	buf_fini(&content);
	file_fini(&file);
	return fine ? tool_done(result)
		    : tool_fail(result, "%s cannot be compared with a text.", path);
}

const struct tool unsaved_tool = {
	.name = "unsaved",
	.description = "Compare the text of an editor with a file.",
	.example = "{\"path\": \"src/main.c\", \"text\": \"int main(void)\\n\"}",
	.params = unsaved_params,
	.effects = EFFECT_READS,
	.timeout_s = 10,
	.internal = true,
	.execute = unsaved_execute,
};
