/* fold: breaks lines between words. */
#include "front/terminal/fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "front/terminal/screen.h"
#include "front/terminal/width.h"

enum {
	HANGING = 4, /* indentation of a continued line without columns */
	GAP = 2,     /* this many blanks separate two columns of a table */
	LINE_MAX_BYTES = 1 << 20,
	PRINTED_AT_ONCE = 64 << 10, /* when standard output is not a terminal */
};

/* The state behind a stream that folds. */
struct fold {
	FILE *to;
	struct buf line; /* the part of the line that has come */
};

/* Lines that begin with one of these are for copying, and are never broken. */
static const char *const commands[] = {"glovebox ", "export ", "source ", "systemctl "};

static size_t blanks_at(struct str line, size_t at)
{
	size_t count = 0;

	while (at + count < line.size && line.data[at + count] == ' ')
		count++;
	return count;
}

/* Size of the colour sequence at AT; 0: there is none. */
static size_t colour_at(struct str line, size_t at)
{
	size_t size = 2;

	if (!str_starts(str_part(line, at, size), STR("\x1b[")))
		return 0;
	while (at + size < line.size && line.data[at + size] != 'm')
		size++;
	return size + (at + size < line.size);
}

/* Size of the word at AT, up to the next blank. *COLUMNS is its width. */
static size_t word_at(struct str line, size_t at, size_t *columns)
{
	size_t end = at;

	*columns = 0;
	while (end < line.size && line.data[end] != ' ') {
		const size_t colour = colour_at(line, end);
		size_t wide = 0;

		end += colour > 0 ? colour
				  : width_character(str_part(line, end, line.size), &wide);
		*columns += wide;
	}
	return end - at;
}

/*
 * Find the last gap (GAP blanks or more) that ends at column MOST or before, and return
 * the offset at which the text behind that gap begins. *COLUMN is the column of this text
 * on the screen.
 */
static size_t text_of(struct str line, size_t most, size_t *column)
{
	size_t begin = 0, at = 0, before = 0;

	*column = 0;
	while (at < line.size) {
		const size_t blanks = blanks_at(line, at);
		size_t wide;

		at += blanks;
		before += blanks;
		if (blanks >= GAP && at < line.size && before <= most) {
			begin = at;
			*column = before;
		}
		at += word_at(line, at, &wide);
		before += wide;
	}
	return begin;
}

/*
 * Is TEXT an assignment that a shell makes for one command ("OPENAI_API_KEY=... glovebox
 * run")?
 */
static bool is_assignment(struct str text)
{
	size_t size = 0;

	while (size < text.size && (text.data[size] == '_' ||
				    (text.data[size] >= 'A' && text.data[size] <= 'Z')))
		size++;
	return size > 0 && size < text.size && text.data[size] == '=';
}

static bool is_command(struct str text)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (str_starts(text, str_of(commands[i])))
			return true;
	}
	return is_assignment(text);
}

void fold_line(struct str line, size_t columns, struct buf *out)
{
	size_t indent, column = 0;
	const size_t text = text_of(line, SIZE_MAX, &indent);
	bool begun = false;

	if (text > 0 && is_command(str_part(line, text, line.size))) {
		(void)buf_addstr(out, line);
		return;
	}
	const size_t near = text_of(line, columns / 2, &indent);
	if (near < text && near <= blanks_at(line, 0))
		indent = blanks_at(line, 0) + HANGING;
	for (size_t at = 0; at < line.size;) {
		const size_t blanks = blanks_at(line, at);
		size_t wide, size = word_at(line, at + blanks, &wide);

		/*
		 * A word that is too wide for the next line as well stays here; the
		 * terminal breaks it.
		 */
		if (begun && column + blanks + wide > columns && indent + wide <= columns) {
			(void)buf_addf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else {
			(void)buf_addf(out, "%*s", (int)blanks, "");
			column += blanks;
		}
		(void)buf_addstr(out, str_part(line, at + blanks, size));
		column += wide;
		begun = begun || wide > 0;
		at += blanks + size;
	}
}

void fold_lines(struct str text, size_t columns, struct buf *out)
{
	while (text.size > 0) {
		const size_t end = str_find(text, STR("\n"), 0);

		fold_line(str_part(text, 0, end), columns, out);
		if (end == (size_t)-1)
			return;
		(void)buf_addc(out, '\n');
		text = str_part(text, end + 1, text.size);
	}
}

void fold_for(int fd, struct str text, struct buf *out)
{
	const size_t columns = screen_columns_of(fd);

	if (columns == SIZE_MAX)
		(void)buf_addstr(out, text);
	else
		fold_lines(text, columns, out);
}

void fold_complain(struct str text)
{
	struct buf lines;

	buf_init(&lines, 4 * LINE_MAX_BYTES);
	fold_for(STDERR_FILENO, text, &lines);
	(void)fwrite(lines.data, 1, lines.size, stderr);
	buf_fini(&lines);
}

/*
 * Ask the terminal for its columns for each line: the window may have changed its size.
 */
static bool write_line(const struct fold *fold, struct str line, const char *end)
{
	struct buf out;
	bool ok;

	buf_init(&out, 4 * LINE_MAX_BYTES);
	fold_line(line, screen_columns_of(STDOUT_FILENO), &out);
	(void)buf_adds(&out, end);
	ok = fwrite(out.data, 1, out.size, fold->to) == out.size;
	buf_fini(&out);
	return ok;
}

static ssize_t take(void *cookie, const char *bytes, size_t size)
{
	struct fold *fold = cookie;
	struct str rest = {bytes, size};
	bool ok = true;

	while (ok && rest.size > 0) {
		const size_t end = str_find(rest, STR("\n"), 0);

		ok = buf_addstr(&fold->line, str_part(rest, 0, end));
		if (!ok || end == (size_t)-1)
			break;
		ok = write_line(fold, buf_str(&fold->line), "\n");
		buf_clear(&fold->line);
		rest = str_part(rest, end + 1, rest.size);
	}
	return ok && fflush(fold->to) == 0 ? (ssize_t)size : 0;
}

static int end(void *cookie)
{
	struct fold *fold = cookie;
	bool ok = true;

	if (fold->line.size > 0)
		ok = write_line(fold, buf_str(&fold->line), "");
	buf_fini(&fold->line);
	free(fold);
	return ok ? 0 : EOF;
}

FILE *fold_open(void)
{
	const cookie_io_functions_t functions = {.write = take, .close = end};
	struct fold *fold;
	FILE *out;

	if (!isatty(STDOUT_FILENO)) {
		/*
		 * Only the last flush knows why it failed. With a large buffer it is the
		 * only flush of most verbs.
		 */
		(void)setvbuf(stdout, NULL, _IOFBF, PRINTED_AT_ONCE);
		return stdout;
	}
	if (screen_columns_of(STDOUT_FILENO) == SIZE_MAX)
		return stdout;
	fold = memory_alloc(sizeof(*fold));
	fold->to = stdout;
	buf_init(&fold->line, LINE_MAX_BYTES);
	out = fopencookie(fold, "w", functions);
	if (out != NULL)
		(void)setvbuf(out, NULL, _IOLBF, 0);
	else
		memory_exhausted(sizeof(*fold));
	return out;
}

void fold_close(FILE *out)
{
	if (out != stdout)
		(void)fclose(out);
}
