/*
 * read_file: shows a text file, or a range of its lines, to the model, and notes that the
 * session has read it. Files up to FILES_HASHED_MAX are read whole (their hash is their
 * mark); of larger files only the lines for the range are read.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "files/files.h"
#include "tool/call.h"
#include "tool/denial.h"
#include "tool/picture.h"
#include "tool/tool.h"
#include "tools/documents/notebook.h"
#include "tools/documents/pdf.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The size of one answer, the same as in the best agents. The numbers are macros, because
 * the descriptions are made from them.
 */
#define READ_LINES 2000
#define READ_KB    50
#define LINES_TEXT SHOWN_NUMBER(READ_LINES)
#define KB_TEXT    SHOWN_NUMBER(READ_KB)

/* A file without a range is shown whole up to this size. … */
#define READ_WHOLE_LINES 1500
#define READ_WHOLE_KB    40
/* … Of a larger file the beginning is shown, with a map of the rest. */
#define READ_BEGINNING_KB 8
#define WHOLE_LINES_TEXT  SHOWN_NUMBER(READ_WHOLE_LINES)
#define WHOLE_KB_TEXT     SHOWN_NUMBER(READ_WHOLE_KB)

enum {
	READ_BYTES = READ_KB * 1000,
	READ_WHOLE_BYTES = READ_WHOLE_KB * 1000,
	READ_BEGINNING_BYTES = READ_BEGINNING_KB * 1000,
	READ_MAP_BYTES = 4000,
	READ_MAP_PLACES = 60,
};

/* The wanted part of a file, by arguments with the names below, and its largest size. */
struct read_wanted {
	const char *path;
	const struct value *arguments; /* start_line, end_line, limit, pages */
	size_t max_lines, max_bytes;
	size_t pictures; /* that the answer has room for */
};

enum {
	READ_CHUNK = 256 << 10, /* the piece of a large file that is read at one time */
	/*
	 * The piece of a file that is hashed. It stays in the processor's cache until its
	 * lines were looked at, and its memory stays with the process.
	 */
	READ_PIECE = 64 << 10,
	/*
	 * How much of each end of an unfinished line is kept. An answer shows less of
	 * either end, so the longest line costs no more memory.
	 */
	READ_LINE_END = 64 << 10,
};

struct reading {
	struct call *call;
	struct tool_result *result;
	const char *path;
	struct file file;
	struct shown_kind kind;
	size_t start, end; /* the wanted lines, 1-based, inclusive */
	size_t max_lines, max_bytes;
	/* of a document: the wanted pages or cells, from 1; 0: none were named */
	size_t first_page, last_page;
	size_t line; /* how many lines have begun */
	size_t shown_first, shown_last;
	/* the number of the first line that is shown in part; 0: there is none */
	size_t first_cut;
	uint64_t gap;      /* where the bytes are that are left out of this line */
	size_t left_bytes; /* bytes left out of lines that are shown in part */
	size_t dropped;    /* bytes of the unfinished line that are not kept … */
	size_t head;       /* … behind so many bytes of its beginning */
	struct shown_ends ends;
	struct buf body;
	size_t taken;    /* bytes of the file that BODY shows */
	bool full;       /* the answer is full */
	bool ranged;     /* the call names lines */
	size_t pictures; /* as in struct read_wanted */
	/* the file is too large, and no lines were named: its beginning is shown */
	bool begun;
	struct outline *map; /* the map of the rest while it is read; or NULL */
	size_t map_bytes;
	bool no_final_newline;
	bool not_utf8;
	/* too large for memory: line ends are known only of the shown part */
	bool streamed;
	bool total_known;
	char mark[FILES_MARK];
};

/* A file that is hashed piece by piece while its lines are read. */
struct pieces {
	struct hash *hash;
	uint64_t size;
	char last; /* the last byte that was read */
};

/* Reads the wanted lines of a file of any size. */

static void count_end(struct str line, struct shown_ends *ends)
{
	if (line.size && line.data[line.size - 1] == '\r')
		ends->crlf++;
	else
		ends->lf++;
}

/* Append "NUMBER<tab>". printf would take as long as the rest of a usual line. */
static void add_number(size_t number, struct buf *out)
{
	char text[24];
	size_t at = sizeof(text);

	text[--at] = '\t';
	do {
		text[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	buf_add(out, text + at, sizeof(text) - at);
}

/* Pass a line that is not shown. True: a later line is wanted for the map. */
static bool pass_line(struct reading *reading, struct str held)
{
	outline_add(reading->map, reading->line, held);
	return reading->map != NULL;
}

/* Are the kept bytes of the line UTF-8? Only whole characters were dropped. */
static bool line_is_utf8(const struct text_line *line)
{
	for (size_t i = 0; i < TEXT_LINE_PARTS; i++) {
		if (!text_is_utf8(line->held[i].bytes))
			return false;
	}
	return true;
}

/* HELD is the kept part of a line: all of it, or its two ends. */
static struct text_line whole_line(const struct reading *reading, struct str held)
{
	struct text_line line = {.size = held.size + reading->dropped};

	line.held[0].bytes = held;
	if (reading->dropped > 0) {
		line.held[0].bytes = str_part(held, 0, reading->head);
		line.held[1].at = reading->head + reading->dropped;
		line.held[1].bytes = str_part(held, reading->head, held.size);
	}
	return line;
}

/*
 * The limit of one line. When only one line is wanted, it may take nearly the whole
 * answer.
 */
static size_t line_limit(const struct reading *reading)
{
	const size_t rest = 100; /* the number, and the mark of a gap */

	return reading->start == reading->end && reading->max_bytes > SHOWN_LONG_LINE + rest
		       ? reading->max_bytes - rest
		       : SHOWN_LONG_LINE;
}

static void add_line(struct reading *reading, const struct text_line *line)
{
	struct text_line_cut cut;

	if (!reading->shown_last)
		reading->shown_first = reading->line;
	reading->shown_last = reading->line;
	add_number(reading->line, &reading->body);
	cut = text_add_line(line, line_limit(reading), shown_add, &reading->body);
	if (cut.left_out > 0 && reading->first_cut == 0) {
		reading->first_cut = reading->line;
		reading->gap = cut.gap;
	}
	reading->left_bytes += (size_t)cut.left_out;
	buf_addc(&reading->body, '\n');
	reading->taken += (size_t)(line->size - cut.left_out) + 1;
}

/* Take one line (without its line feed). False when no further line is wanted. */
static bool take_line(struct reading *reading, struct str held)
{
	size_t limit = line_limit(reading);
	struct text_line line;
	size_t shown;

	reading->line++;
	if (reading->line < reading->start)
		return true;
	if (reading->line > reading->end || reading->full)
		return pass_line(reading, held);
	if (reading->streamed)
		count_end(held, &reading->ends);
	if (held.size && held.data[held.size - 1] == '\r')
		held.size--;
	if (reading->line - reading->start >= reading->max_lines) {
		reading->full = true;
		return pass_line(reading, held);
	}
	line = whole_line(reading, held);
	if (!reading->not_utf8 && !line_is_utf8(&line))
		reading->not_utf8 = true;
	shown = line.size <= limit ? (size_t)line.size : limit;
	if (reading->shown_last && reading->body.size + shown + 16 > reading->max_bytes) {
		reading->full = true;
		return pass_line(reading, held);
	}
	add_line(reading, &line);
	return reading->line < reading->end;
}

/* The whole text is in memory: count all lines, and show the wanted ones. */
static void read_text(struct reading *reading, struct str text)
{
	struct str rest = text;
	struct str line;
	bool more = true;

	reading->no_final_newline = text.size && text.data[text.size - 1] != '\n';
	shown_count_ends(text, &reading->ends);
	reading->total_known = true;
	while (more && str_next_line(&rest, &line))
		more = take_line(reading, line);
	reading->line = text_count_lines(text);
}

static void take_piece(struct reading *reading, struct pieces *pieces, struct str piece)
{
	hash_add(pieces->hash, piece);
	shown_count_ends(piece, &reading->ends);
	/* A CRLF that is cut between two pieces. */
	if (pieces->last == '\r' && piece.data[0] == '\n') {
		reading->ends.lf--;
		reading->ends.crlf++;
	}
	pieces->size += piece.size;
	pieces->last = piece.data[piece.size - 1];
}

/*
 * Take lines of TEXT until no further line is wanted. The rest of TEXT is the beginning
 * of an unfinished line.
 */
static bool take_lines(struct reading *reading, struct str *text)
{
	const char *end;
	bool more = true;

	while (more && (end = memchr(text->data, '\n', text->size))) {
		size_t size = (size_t)(end - text->data);

		more = take_line(reading, (struct str){text->data, size});
		reading->dropped = 0;
		*text = str_part(*text, size + 1, text->size);
	}
	return more;
}

/*
 * HELD is the beginning of a long, unfinished line. Keep only its two ends, cut between
 * characters.
 */
static void drop_middle(struct reading *reading, struct buf *held)
{
	size_t tail = held->size - READ_LINE_END;
	size_t border;

	if (held->size < 3 * (size_t)READ_LINE_END)
		return;
	if (reading->dropped == 0)
		reading->head = text_character_border(buf_str(held), READ_LINE_END);
	border = text_character_border(buf_str(held), tail);
	reading->dropped += border - reading->head;
	buf_remove(held, reading->head, border - reading->head);
}

/*
 * Read the whole file, but hold only the wanted lines and the rest of an unfinished line
 * in memory.
 */
static bool read_pieces(struct reading *reading, struct pieces *pieces, struct err *err)
{
	struct buf held; /* from the beginning of the current line on */
	bool more = true;
	ssize_t got = 1;

	buf_init(&held, 3 * (size_t)READ_LINE_END + READ_PIECE);
	/*
	 * A file that grows while it is read has changed when it is later written, and
	 * this is noticed then.
	 */
	while (got > 0 && pieces->size <= FILES_HASHED_MAX) {
		char *at = buf_reserve(&held, READ_PIECE);
		struct str rest;

		do
			got = read(reading->file.fd, at, READ_PIECE);
		while (got < 0 && errno == EINTR);
		if (got <= 0)
			break;
		take_piece(reading, pieces, (struct str){at, (size_t)got});
		if (!more)
			continue;
		buf_commit(&held, (size_t)got);
		rest = buf_str(&held);
		more = take_lines(reading, &rest);
		buf_remove(&held, 0, more ? held.size - rest.size : held.size);
		drop_middle(reading, &held);
	}
	if (got < 0)
		(void)err_set(err, errno, "%s cannot be read: %s.", reading->path,
			      strerror(errno));
	reading->no_final_newline = pieces->size > 0 && pieces->last != '\n';
	if (got >= 0 && more && held.size > 0)
		(void)take_line(reading, buf_str(&held));
	buf_fini(&held);
	return got >= 0;
}

/* Read the whole file into CONTENT, up to the limit of CONTENT. ERR names the file. */
static bool read_whole(struct reading *reading, struct buf *content, struct err *err)
{
	size_t expected = (size_t)reading->file.st.st_size;

	/*
	 * The usual file arrives in one read; only one that grows or lies about its size
	 * needs more.
	 */
	while (content->size < content->max) {
		size_t room =
			content->size < expected ? expected - content->size : READ_CHUNK;
		char *at;
		ssize_t got;

		if (room > content->max - content->size)
			room = content->max - content->size;
		at = buf_reserve(content, room);
		got = read(reading->file.fd, at, room);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, errno, "%s cannot be read: %s.",
				       reading->path, strerror(errno));
		buf_commit(content, (size_t)got);
		if (got == 0 || (expected && content->size == expected))
			return true;
	}
	return true;
}

/* Read lines of a large file, chunk by chunk, until the range is complete. */
static bool read_range(struct reading *reading, struct err *err)
{
	struct buf chunk; /* from the beginning of the current line on */
	bool more = true;
	ssize_t got = 1;

	buf_init(&chunk, 3 * (size_t)READ_LINE_END + READ_CHUNK);
	while (more && !call_stopped(reading->call)) {
		char *at = buf_reserve(&chunk, READ_CHUNK);
		struct str rest;

		got = read(reading->file.fd, at, READ_CHUNK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		buf_commit(&chunk, (size_t)got);
		rest = buf_str(&chunk);
		more = take_lines(reading, &rest);
		buf_remove(&chunk, 0, chunk.size - rest.size);
		drop_middle(reading, &chunk);
	}
	if (got < 0)
		(void)err_set(err, errno, "%s cannot be read: %s.", reading->path,
			      strerror(errno));
	if (got == 0 && more) {
		reading->total_known = true;
		reading->no_final_newline = chunk.size > 0;
		if (chunk.size)
			(void)take_line(reading, buf_str(&chunk));
	}
	buf_fini(&chunk);
	return got >= 0;
}

/* The answer of read_file for a folder. */

enum { READ_LISTING = 200 /* names shown; list_files is made for more */ };

static enum result_status read_folder(struct call *call, const char *path,
				      struct tool_result *result)
{
	struct file folder;
	struct err err;
	char **names = NULL;
	size_t count = 0;
	DIR *dir = NULL;

	file_init(&folder);
	if (!files_reach(call->files, path, FILES_FOLDER, &folder, &err)) {
		file_fini(&folder);
		return shown_fail(call, result, path, &err);
	}
	dir = fdopendir(folder.fd);
	if (!dir) {
		(void)tool_fail(result, "%s cannot be listed: %s.", path, strerror(errno));
		file_fini(&folder);
		return result->status;
	}
	folder.fd = -1;
	for (struct dirent *entry; (entry = readdir(dir)) && !call_stopped(call);) {
		struct buf name;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		buf_init(&name, NAME_MAX + 2);
		buf_addf(&name, "%s%s", entry->d_name, entry->d_type == DT_DIR ? "/" : "");
		names = memory_more(names, count, sizeof(*names));
		names[count++] = buf_take(&name);
	}
	(void)closedir(dir);
	if (count)
		str_sort(names, count);
	buf_addc(&result->text, '[');
	shown_add(str_of(files_shown(call->files, folder.path.data)), &result->text);
	buf_addf(&result->text,
		 " is a folder with %s%zu entries; list_files shows more of it]\n",
		 call_stopped(call) ? "at least " : "", count);
	for (size_t i = 0; i < count; i++) {
		if (i < READ_LISTING) {
			shown_add(str_of(names[i]), &result->text);
			buf_addc(&result->text, '\n');
		}
		free(names[i]);
	}
	if (count > READ_LISTING)
		buf_addf(&result->text, "[… %zu more]\n", count - READ_LISTING);
	free(names);
	file_fini(&folder);
	value_set_boolean(tool_details(result), "folder", true);
	value_set_integer(tool_details(result), "entries", (int64_t)count);
	return tool_done(result);
}

/* The arguments that name a file and a part of it. */
static const struct row read_file_params[] = {
	{"path", ROW_PATH, true, "File to read, relative to the workspace",
	 .aliases = "file file_path filename"},
	{"start_line", ROW_COUNT, false, "First line wanted, 1-based",
	 .aliases = "offset start from_line"},
	{"end_line", ROW_COUNT, false, "Last line wanted, inclusive",
	 .aliases = "end to_line"},
	{"limit", ROW_COUNT, false, "Lines wanted, instead of end_line", .min = 1,
	 .max = INT32_MAX, .aliases = "count lines"},
	{"pages", ROW_TEXT, false, "Pages or cells: 1-5", .aliases = "cells page"},
	{0},
};

static void add_path(const struct reading *reading, struct buf *out)
{
	shown_add(str_of(files_shown(reading->call->files, reading->file.path.data)), out);
}

static enum result_status fail_binary(struct reading *reading)
{
	char size[32];

	return tool_fail(reading->result,
			 "%s is a binary file (%s), not text. With bash, `file`, `xxd | head` or "
			 "`strings` tell more about it.",
			 reading->path,
			 text_size((uint64_t)reading->file.st.st_size, size));
}

/* Append PATH, or with SUFFIX in place of its extension, as a word of a command. */
static void add_file_word(const char *path, const char *suffix, struct buf *out)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const char *dot = strrchr(name, '.');
	struct buf word, quoted;

	buf_init(&word, PATH_MAX);
	buf_init(&quoted, 4 * PATH_MAX);
	/* A command would take the name for an option. */
	if (path[0] == '-')
		buf_adds(&word, "./");
	buf_addstr(&word, suffix && dot > name ? (struct str){path, (size_t)(dot - path)}
					       : str_of(path));
	if (suffix)
		buf_adds(&word, suffix);
	shell_token_add_word(word.data, &quoted);
	shown_add(buf_str(&quoted), out);
	buf_fini(&quoted);
	buf_fini(&word);
}

/* The picture with this DESCRIPTION is over the limits. */
static enum result_status fail_large_picture(struct reading *reading, const char *description)
{
	const char *path = files_shown(reading->call->files, reading->file.path.data);
	struct buf calls;

	buf_init(&calls, RESULT_TEXT_MAX / 2);
	buf_adds(&calls, "`magick ");
	add_file_word(path, NULL, &calls);
	/* Of an animation the first picture; other formats have one. */
	buf_adds(&calls, "[0] -resize '2000x2000>' -quality 85 ");
	add_file_word(path, "-small.jpg", &calls);
	buf_adds(&calls, "` or `ffmpeg -i ");
	add_file_word(path, NULL, &calls);
	buf_adds(&calls, " -frames:v 1 -vf "
			 "scale=2000:2000:force_original_aspect_ratio=decrease ");
	add_file_word(path, "-small.jpg", &calls);
	buf_addc(&calls, '`');
	(void)tool_fail(reading->result,
			"%s: %s. Models take pictures of at most " PICTURE_MOST_TEXT
			". With bash, %s makes one that fits.",
			reading->path, description, calls.data);
	buf_fini(&calls);
	return RESULT_FAILED;
}

/* CONTENT is a picture's. Show its facts, and the picture behind them. */
static enum result_status read_picture(struct reading *reading, struct str content)
{
	struct value *details;
	struct picture picture;
	struct buf facts;
	struct err err;
	bool fits;

	if (!picture_read(content, &picture, &err))
		return tool_fail(reading->result,
				 "%s begins as a %s, and %s. It is not shown, because no model "
				 "can read it. Make or fetch it again.",
				 reading->path, picture_format(content), err.text);
	buf_init(&facts, 128);
	picture_describe(&picture, content.size, &facts);
	fits = picture_fits(&picture, content.size);
	if (!fits) {
		(void)fail_large_picture(reading, facts.data);
	} else {
		add_path(reading, &reading->result->text);
		buf_addf(&reading->result->text, ": %s%s\n", facts.data,
			 reading->pictures == 0 ? " (read_file shows it)" : "");
	}
	buf_fini(&facts);
	if (!fits)
		return RESULT_FAILED;
	if (reading->pictures > 0 && !picture_add(&picture, content, reading->result))
		return tool_fail(reading->result, "There is no room for it in this answer.");
	details = tool_details(reading->result);
	value_set_text(details, "path", reading->file.path.data);
	value_set_integer(details, "size", (int64_t)content.size);
	value_set_text(details, "hash", reading->mark);
	value_set_text(details, "format", picture.format);
	value_set_integer(details, "width", picture.width);
	value_set_integer(details, "height", picture.height);
	call_saw(reading->result, reading->file.path.data, reading->mark);
	return tool_done(reading->result);
}

static bool is_notebook(const struct reading *reading)
{
	return !reading->ranged && str_ends(str_of(reading->path), STR(".ipynb"));
}

/* Append the facts about a notebook: its cells, and the language that they are in. */
static void add_notebook_head(const struct reading *reading, const struct notebook *notebook)
{
	const struct value *metadata = value_member(notebook->root, "metadata");
	struct str language =
		value_str(value_member(value_member(metadata, "language_info"), "name"));
	struct buf *text = &reading->result->text;

	buf_addc(text, '[');
	add_path(reading, text);
	buf_addf(text, ": notebook, %zu cell%s", notebook->count,
		 notebook->count == 1 ? "" : "s");
	if (language.size > 0 && language.size < SHOWN_LONG_LINE) {
		buf_adds(text, ", ");
		shown_add(language, text);
	}
	if (notebook->count > 0 && (reading->first_page > 1 || reading->last_page > 0))
		buf_addf(text, "; cells %zu-%zu", reading->first_page,
			 reading->last_page < notebook->count ? reading->last_page
							      : notebook->count);
	buf_adds(text, "; start_line=1 shows its text]\n");
}

static enum result_status read_cells(struct reading *reading, const struct notebook *notebook)
{
	const size_t first = reading->first_page > 0 ? reading->first_page : 1;
	struct value *details;

	if (first > notebook->count && notebook->count > 0)
		return tool_fail(reading->result, "Cell %zu does not exist; %s has %zu.",
				 first, reading->path, notebook->count);
	add_notebook_head(reading, notebook);
	notebook_show(notebook, first,
		      reading->last_page > 0 && reading->last_page < notebook->count
			      ? reading->last_page
			      : notebook->count,
		      reading->max_bytes, reading->pictures, reading->result);
	details = tool_details(reading->result);
	value_set_text(details, "path", reading->file.path.data);
	value_set_integer(details, "size", (int64_t)reading->file.st.st_size);
	value_set_text(details, "hash", reading->mark);
	value_set_integer(details, "cells", (int64_t)notebook->count);
	call_saw(reading->result, reading->file.path.data, reading->mark);
	return tool_done(reading->result);
}

/*
 * TEXT is that of a notebook by the file's name. False: it is none, and is shown as any
 * text, behind the reason.
 */
static bool read_notebook(struct reading *reading, struct str text)
{
	struct notebook notebook;
	struct err err = {0};
	const bool sound = notebook_open(&notebook, text, &err);

	if (sound) {
		(void)read_cells(reading, &notebook);
	} else {
		buf_addc(&reading->result->text, '[');
		add_path(reading, &reading->result->text);
		buf_adds(&reading->result->text, " is shown as text: ");
		shown_add(str_of(err.text), &reading->result->text);
		buf_adds(&reading->result->text, "]\n");
		reading->first_page = 0;
	}
	notebook_close(&notebook);
	return sound;
}

static enum result_status read_pdf(struct reading *reading)
{
	const struct pdf_wanted wanted = {reading->first_page, reading->last_page,
					  reading->max_bytes};
	const char *path = files_shown(reading->call->files, reading->file.path.data);

	if (pdf_show(reading->call, reading->file.fd, path, &wanted, reading->result) !=
	    RESULT_DONE)
		return reading->result->status;
	value_set_text(tool_details(reading->result), "path", reading->file.path.data);
	value_set_integer(tool_details(reading->result), "size",
			  (int64_t)reading->file.st.st_size);
	call_saw(reading->result, reading->file.path.data, reading->mark);
	return RESULT_DONE;
}

/* Append "LF", "CRLF" or "mixed (3 CRLF, 10 LF)". */
static void add_ends(const struct shown_ends *ends, struct buf *out)
{
	if (ends->crlf == 0)
		buf_adds(out, "LF");
	else if (ends->lf == 0)
		buf_adds(out, "CRLF");
	else
		buf_addf(out, "mixed (%zu CRLF, %zu LF)", ends->crlf, ends->lf);
}

static const char *encoding_name(const struct reading *reading)
{
	if (reading->kind.utf16)
		return reading->kind.utf16_big ? "UTF-16 BE" : "UTF-16 LE";
	if (reading->kind.utf8_mark)
		return "UTF-8 with byte-order mark";
	return reading->not_utf8 ? "not UTF-8" : "UTF-8";
}

static void add_details(struct reading *reading)
{
	struct value *details = tool_details(reading->result);
	struct buf ends;

	value_set_text(details, "path", reading->file.path.data);
	value_set_integer(details, "size", (int64_t)reading->file.st.st_size);
	value_set_integer(details, "start_line", (int64_t)reading->shown_first);
	value_set_integer(details, "end_line", (int64_t)reading->shown_last);
	if (reading->total_known)
		value_set_integer(details, "total_lines", (int64_t)reading->line);
	value_set_text(details, "encoding", encoding_name(reading));
	if (strncmp(reading->mark, "stat:", 5) != 0)
		value_set_text(details, "hash", reading->mark);
	buf_init(&ends, 128);
	add_ends(&reading->ends, &ends);
	value_set_text(details, "line_ends", ends.data);
	buf_fini(&ends);
}

/*
 * Append how to see more of a line that was cut. Commands find no lines in UTF-16, so
 * they are not named for it.
 */
static void add_cut(const struct reading *reading, struct buf *text)
{
	buf_addf(text, "; line %zu is cut", reading->first_cut);
	if (reading->start != reading->end)
		buf_adds(text, " as all over " SHOWN_LONG_LINE_TEXT
			       " bytes are: asked for alone up to " KB_TEXT
			       " KB of it are shown");
	if (reading->kind.utf16)
		return;
	buf_adds(text, "; ");
	shown_add_line_calls(files_shown(reading->call->files, reading->file.path.data),
			     reading->first_cut, reading->gap, true, text);
}

/* Append the next call for a file that is larger than one answer. */
static void add_next_call(const struct reading *reading, struct buf *text)
{
	/* The next range has as many lines again. */
	size_t end = 2 * reading->shown_last - reading->shown_first + 1;
	auto_value struct value *path = value_new_text(reading->path);

	if (reading->total_known && reading->shown_last == reading->line)
		return;
	buf_adds(text, "; the next part: read_file {\"path\": ");
	(void)value_print(path, 0, text);
	if (reading->total_known && end > reading->line)
		end = reading->line;
	buf_addf(text, ", \"start_line\": %zu, \"end_line\": %zu}",
		 reading->shown_last + 1, end);
}

/*
 * Put one line before the content: the numbers of the lines, and everything unusual about
 * the file.
 */
static void add_head(struct reading *reading)
{
	struct buf *text = &reading->result->text;
	char size[32];

	buf_addc(text, '[');
	add_path(reading, text);
	buf_addf(text, ": lines %zu-%zu", reading->shown_first, reading->shown_last);
	if (reading->total_known)
		buf_addf(text, " of %zu", reading->line);
	else
		buf_addf(text, " of more; the file has %s and was not read to its end",
			 text_size((uint64_t)reading->file.st.st_size, size));
	if (reading->begun && reading->total_known && reading->shown_last < reading->line)
		buf_addf(text, ", %s", text_size((uint64_t)reading->file.st.st_size, size));
	if (strcmp(encoding_name(reading), "UTF-8") != 0)
		buf_addf(text, "; %s%s", encoding_name(reading),
			 reading->kind.utf16 ? ", shown as text; it cannot be edited here"
			 : reading->not_utf8 ? ", such bytes are shown as \\xHH"
					     : "");
	if (reading->ends.crlf) {
		buf_adds(text, "; line ends ");
		add_ends(&reading->ends, text);
	}
	if (reading->no_final_newline)
		buf_adds(text, "; no newline at its end");
	if (reading->first_cut > 0)
		add_cut(reading, text);
	if (reading->begun)
		add_next_call(reading, text);
	else if (!reading->total_known || reading->shown_last < reading->line)
		buf_addf(text, "; next: start_line=%zu", reading->shown_last + 1);
	buf_adds(text, "]\n");
}

/* Append the map: the places in the rest where parts begin. */
static void add_map(struct reading *reading)
{
	struct buf *text = &reading->result->text;
	const size_t total = outline_count(reading->map);
	struct buf places;
	size_t count;

	buf_init(&places, RESULT_TEXT_MAX / 2);
	count = outline_print(reading->map, READ_MAP_PLACES, reading->map_bytes, &places);
	if (count > 0) {
		buf_adds(text, "[map of the rest");
		if (count < total)
			buf_addf(text, ", %zu of %zu places", count, total);
		buf_adds(text, ":]\n");
		buf_addstr(text, buf_str(&places));
	}
	buf_fini(&places);
}

/* May the agent see BYTES of a file in one call? False: the sentence is set. */
static bool is_within_limit(struct reading *reading, uint64_t bytes, const char *what)
{
	const struct call *call = reading->call;
	const uint64_t most = call->limits.read_bytes;
	char size[32], now[32];

	if (most == 0 || bytes <= most)
		return true;
	(void)tool_fail(reading->result,
			"%s %s %s, and this agent is shown at most %s of a file in one call. Ask "
			"for fewer lines, with start_line and end_line.",
			reading->path, what, text_size(bytes, size), text_size(most, now));
	denial_add_limit(reading->result,
			 &(struct denial_limit){.agent = call->agent,
						.key = "read_bytes",
						.target = text_size(bytes, size),
						.advice = "ask for a range",
						.now = now});
	return false;
}

static enum result_status answer(struct reading *reading)
{
	if (reading->first_page > 0)
		return tool_fail(reading->result,
				 "%s has no pages. Ask for lines, with start_line and end_line.",
				 reading->path);
	if (!is_within_limit(reading, reading->taken, "holds in these lines"))
		return RESULT_FAILED;
	struct tool_result *result = reading->result;
	size_t total = reading->line;

	if (reading->total_known && total == 0 && reading->start <= 1) {
		buf_addc(&result->text, '[');
		add_path(reading, &result->text);
		buf_adds(&result->text, " is empty]\n");
	} else if (!reading->shown_last) {
		if (!reading->total_known)
			return call_stop_result(reading->call, result);
		return tool_fail(result,
				 "Line %zu does not exist; %s has %zu line%s. Ask for "
				 "start_line between 1 and %zu.",
				 reading->start, reading->path, total,
				 total == 1 ? "" : "s", total ? total : 1);
	} else {
		add_head(reading);
		buf_addstr(&result->text, buf_str(&reading->body));
		if (reading->map != NULL)
			add_map(reading);
		if (reading->total_known && reading->shown_last < total)
			result->left_out_lines = total - reading->shown_last;
	}
	result->left_out_bytes = reading->left_bytes;
	if (!reading->call->terse)
		add_details(reading);
	call_saw(result, reading->file.path.data, reading->mark);
	return tool_done(result);
}

/*
 * The file begins with START, is too large, and no line was asked for: show only its
 * beginning.
 */
static void begin_only(struct reading *reading, struct str start)
{
	const size_t room = reading->max_bytes;

	reading->begun = true;
	/* When the share of the answer is smaller, the map gets a third of it. */
	if (reading->max_bytes > READ_BEGINNING_BYTES)
		reading->max_bytes = READ_BEGINNING_BYTES;
	if (reading->max_bytes > room - room / 3)
		reading->max_bytes = room - room / 3;
	reading->map_bytes = room - reading->max_bytes;
	if (reading->map_bytes > READ_MAP_BYTES)
		reading->map_bytes = READ_MAP_BYTES;
	reading->map = outline_new(reading->file.path.data, start);
}

static unsigned utf16_unit(struct str text, size_t at, bool big)
{
	unsigned first = (unsigned char)text.data[at];
	unsigned second = (unsigned char)text.data[at + 1];

	return big ? first << 8 | second : second << 8 | first;
}

/* Convert UTF-16 (without its mark) to UTF-8. Halves of surrogate pairs become U+FFFD. */
static void from_utf16(struct str text, bool big, struct buf *out)
{
	for (size_t at = 0; at + 1 < text.size; at += 2) {
		unsigned unit = utf16_unit(text, at, big);

		if (unit >= 0xd800 && unit < 0xdc00 && at + 3 < text.size) {
			unsigned low = utf16_unit(text, at + 2, big);

			if (low >= 0xdc00 && low < 0xe000) {
				text_add_code(0x10000 + ((unit - 0xd800) << 10) +
						      (low - 0xdc00),
					      out);
				at += 2;
				continue;
			}
		}
		text_add_code(unit >= 0xd800 && unit < 0xe000 ? 0xfffd : unit, out);
	}
}

static enum result_status read_small(struct reading *reading)
{
	struct buf content;
	struct buf converted;
	struct str text;
	struct err err;
	enum result_status status;

	/*
	 * One byte more than the limit for hashing shows that a file grew beyond it while
	 * it was read.
	 */
	buf_init(&content, (size_t)FILES_HASHED_MAX + 1);
	buf_init(&converted, 2 * (size_t)FILES_HASHED_MAX);
	if (!read_whole(reading, &content, &err)) {
		buf_fini(&content);
		return tool_fail(reading->result, "%s", err.text);
	}
	text = buf_str(&content);
	files_mark(text, NULL, reading->mark);
	reading->kind = shown_kind(text);
	if (reading->kind.utf16) {
		from_utf16(str_part(text, SHOWN_MARK16, text.size),
			   reading->kind.utf16_big, &converted);
		text = buf_str(&converted);
	} else if (reading->kind.utf8_mark) {
		text = str_part(text, SHOWN_MARK8, text.size);
	}
	if (pdf_is(text) && !reading->ranged) {
		status = read_pdf(reading);
	} else if (reading->kind.binary) {
		status = picture_format(text) ? read_picture(reading, text)
					      : fail_binary(reading);
	} else if (is_notebook(reading) && read_notebook(reading, text)) {
		status = reading->result->status;
	} else {
		if (!reading->ranged && (text.size > READ_WHOLE_BYTES ||
					 text_count_lines(text) > READ_WHOLE_LINES))
			begin_only(reading, text);
		read_text(reading, text);
		status = answer(reading);
	}
	buf_fini(&converted);
	buf_fini(&content);
	return status;
}

/* False: a file of this kind cannot be read in pieces. */
static bool starts_plain(struct reading *reading)
{
	char start[8192];
	ssize_t got = pread(reading->file.fd, start, sizeof(start), 0);

	if (got <= 0)
		return false;
	reading->kind = shown_kind((struct str){start, (size_t)got});
	if (reading->kind.binary || reading->kind.utf16 || is_notebook(reading) ||
	    pdf_is((struct str){start, (size_t)got}))
		return false;
	if (!reading->ranged)
		begin_only(reading, (struct str){start, (size_t)got});
	return true;
}

static enum result_status read_hashed(struct reading *reading)
{
	struct pieces pieces = {.hash = hash_new_mark()};
	struct err err;

	if (reading->kind.utf8_mark) {
		char mark[SHOWN_MARK8];

		/* When the file became shorter meanwhile, no byte of the mark is left. */
		if (read(reading->file.fd, mark, sizeof(mark)) == sizeof(mark))
			hash_add(pieces.hash, (struct str){mark, sizeof(mark)});
	}
	const bool fine = read_pieces(reading, &pieces, &err);
	hash_mark_hex(pieces.hash, reading->mark);
	hash_free(pieces.hash);
	if (!fine)
		return tool_fail(reading->result, "%s", err.text);
	reading->total_known = true;
	reading->line = reading->ends.lf + reading->ends.crlf + reading->no_final_newline;
	return answer(reading);
}

static enum result_status read_large(struct reading *reading)
{
	char start[8192];
	ssize_t got = pread(reading->file.fd, start, sizeof(start), 0);
	struct err err;

	if (got < 0)
		return tool_fail(reading->result, "%s cannot be read: %s.", reading->path,
				 strerror(errno));
	reading->kind = shown_kind((struct str){start, (size_t)got});
	files_mark((struct str){0}, &reading->file.st, reading->mark);
	if (pdf_is((struct str){start, (size_t)got}) && !reading->ranged)
		return read_pdf(reading);
	if (picture_format((struct str){start, (size_t)got})) {
		char description[64], size[32];

		(void)snprintf(description, sizeof(description), "%s, %s",
			       picture_format((struct str){start, (size_t)got}),
			       text_size((uint64_t)reading->file.st.st_size, size));
		return fail_large_picture(reading, description);
	}
	if (reading->kind.binary || reading->kind.utf16)
		return fail_binary(reading);
	if (reading->kind.utf8_mark)
		(void)lseek(reading->file.fd, SHOWN_MARK8, SEEK_SET);
	reading->streamed = true;
	/* Such a file is not read to its end for a map. */
	if (!reading->ranged) {
		begin_only(reading, (struct str){start, (size_t)got});
		outline_free(reading->map);
		reading->map = NULL;
	}
	if (!read_range(reading, &err))
		return tool_fail(reading->result, "%s", err.text);
	if (!reading->shown_last && reading->call->cancelled)
		return call_stop_result(reading->call, reading->result);
	return answer(reading);
}

/*
 * Get the wanted range from the three arguments. False: they contradict each other, and
 * the sentence is set.
 */
static bool take_range(struct reading *reading, const struct value *arguments)
{
	int64_t start = value_integer(value_member(arguments, "start_line"));
	int64_t limit = value_integer(value_member(arguments, "limit"));
	int64_t end = value_integer(value_member(arguments, "end_line"));

	reading->ranged = start > 0 || end > 0 || limit > 0;
	reading->start = start > 0 ? (size_t)start : 1;
	reading->end = end > 0 ? (size_t)end : SIZE_MAX;
	if (end <= 0 && limit > 0)
		reading->end = reading->start + (size_t)limit - 1;
	if (reading->end >= reading->start)
		return true;
	(void)tool_fail(reading->result,
			"end_line %zu lies before start_line %zu; give them "
			"the other way round.",
			reading->end, reading->start);
	return false;
}

/* Get the wanted pages, "N" or "N-M". False: they are none, and the sentence is set. */
static bool take_pages(struct reading *reading, const struct value *arguments)
{
	struct str rest = str_trim(value_str(value_member(arguments, "pages")));

	if (rest.size == 0)
		return true;
	reading->first_page = reading->last_page = text_take_number(&rest);
	if (str_starts(rest, STR("-"))) {
		rest = str_part(rest, 1, rest.size);
		reading->last_page = text_take_number(&rest);
	}
	if (rest.size == 0 && reading->first_page > 0 &&
	    reading->last_page >= reading->first_page)
		return true;
	return tool_fail(reading->result,
			 "\"pages\" is a number or a range such as \"1-5\", from 1.") ==
	       RESULT_DONE;
}

static enum result_status read_reached(struct reading *reading)
{
	struct err err;

	if (!files_reach(reading->call->files, reading->path, FILES_READ, &reading->file,
			 &err))
		return err.code == EISDIR
			       ? read_folder(reading->call, reading->path, reading->result)
			       : shown_fail(reading->call, reading->result, reading->path,
					    &err);
	if (reading->start == 1 && reading->end == SIZE_MAX &&
	    !is_within_limit(reading, (uint64_t)reading->file.st.st_size, "has"))
		return RESULT_FAILED;
	if (reading->file.st.st_size > FILES_HASHED_MAX)
		return read_large(reading);
	if (reading->file.st.st_size > READ_PIECE && starts_plain(reading))
		return read_hashed(reading);
	return read_small(reading);
}

/*
 * Append the answer of read_file to RESULT, with its details and the marks of the file.
 */
static enum result_status read_one(struct call *call, const struct read_wanted *wanted,
				   struct tool_result *result)
{
	struct reading reading = {.call = call,
				  .result = result,
				  .path = wanted->path,
				  .max_lines = wanted->max_lines,
				  .max_bytes = wanted->max_bytes,
				  .pictures = wanted->pictures};
	enum result_status status = RESULT_FAILED;

	file_init(&reading.file);
	buf_init(&reading.body, RESULT_TEXT_MAX / 2);
	if (take_range(&reading, wanted->arguments) &&
	    take_pages(&reading, wanted->arguments))
		status = read_reached(&reading);
	outline_free(reading.map);
	buf_fini(&reading.body);
	file_fini(&reading.file);
	return status;
}

static enum result_status read_file_execute(struct call *call, struct tool_result *result)
{
	const struct read_wanted wanted = {.path = call_text(call, "path"),
					   .arguments = call->arguments,
					   .max_lines = READ_LINES,
					   .max_bytes = READ_BYTES,
					   .pictures = NOTEBOOK_PICTURES_MAX};

	return read_one(call, &wanted, result);
}

const struct tool read_file_tool = {
	.name = "read_file",
	.description =
		"Read a text file or a range of its lines, as \"N<tab>text\", or a picture, "
		"PDF or notebook. A file over " WHOLE_KB_TEXT " KB or " WHOLE_LINES_TEXT
		" lines: its beginning and a map; a range: at most " LINES_TEXT
		" lines or " KB_TEXT " KB.",
	.example = "{\"path\": \"src/main.c\", \"start_line\": 1, \"end_line\": 80}",
	.aliases = "read view cat",
	.params = read_file_params,
	.effects = EFFECT_READS,
	.timeout_s = 20, /* a line near the end of a huge file on a slow disk */
	.execute = read_file_execute,
};

/*
 * Several files as read_file shows them, in one answer under one ceiling. When a file
 * needs less than its share, the rest goes to the files behind it. For a file that cannot
 * be read the answer has the reason in its place; the other files are shown all the same.
 */

#define BATCH_FILES 50

/* A smaller part of a file would help nobody, so only the name of the file is given. */
enum { BATCH_LEAST_BYTES = 200, BATCH_PICTURES = 4 };

static const struct row batch_read_params[] = {
	{"files", ROW_LIST, true, "Files and the ranges wanted of them",
	 .aliases = "paths file_paths", .rows = read_file_params, .min = 1,
	 .max = BATCH_FILES},
	{0},
};

struct batch {
	struct call *call;
	struct tool_result *result;
	struct value *list;
	size_t bytes, lines, pictures; /* left of the ceiling */
	size_t done, failed;
};

static void merge_seen(struct tool_result *into, const struct tool_result *from)
{
	for (void *at = value_first(from->seen); at; at = value_next(from->seen, at))
		call_saw(into, value_key(at), value_text(value_at(at)));
}

/* Move the pictures of ONE behind those before them. */
static void take_pictures(struct batch *batch, const char *path,
			  const struct tool_result *one)
{
	size_t left_out = 0;

	for (size_t i = 0; i < value_count(one->content); i++) {
		if (tool_add_content(batch->result, value_ref(value_item(one->content, i))))
			batch->pictures -= batch->pictures > 0;
		else
			left_out++;
	}
	if (left_out > 0)
		(void)buf_addf(&batch->result->text,
			       "[%zu picture%s of %s ha%s no room here: read_file shows %s]\n",
			       left_out, left_out == 1 ? "" : "s", path,
			       left_out == 1 ? "s" : "ve", left_out == 1 ? "it" : "them");
}

static void take_result(struct batch *batch, const char *path, struct tool_result *one)
{
	struct value *item = one->details ? value_ref(one->details) : value_new_object();
	size_t shown = text_count_lines(buf_str(&one->text));

	(void)buf_end_line(&batch->result->text);
	buf_addstr(&batch->result->text, buf_str(&one->text));
	take_pictures(batch, path, one);
	merge_seen(batch->result, one);
	batch->result->left_out_bytes += one->left_out_bytes;
	batch->result->left_out_lines += one->left_out_lines;
	batch->bytes -= one->text.size < batch->bytes ? one->text.size : batch->bytes;
	batch->lines -= shown < batch->lines ? shown : batch->lines;
	batch->done += one->status == RESULT_DONE;
	batch->failed += one->status != RESULT_DONE;
	if (!value_member(item, "path"))
		value_set_text(item, "path", path);
	value_set_text(item, "status", result_status_name(one->status));
	value_append(batch->list, item);
}

static void read_next(struct batch *batch, const struct value *item, size_t left)
{
	struct read_wanted wanted = {.path = value_text(value_member(item, "path")),
				     .arguments = item,
				     .max_lines = batch->lines / left,
				     .max_bytes = batch->bytes / left,
				     .pictures = batch->pictures};
	struct tool_result one;

	tool_result_init(&one);
	if (wanted.max_bytes < BATCH_LEAST_BYTES || wanted.max_lines == 0)
		(void)tool_fail(&one,
				"%s was not read: no room is left in this answer. Ask for it with "
				"read_file.",
				wanted.path);
	else
		(void)read_one(batch->call, &wanted, &one);
	take_result(batch, wanted.path, &one);
	tool_result_fini(&one);
}

static enum result_status batch_read_execute(struct call *call, struct tool_result *result)
{
	const struct value *files = value_member(call->arguments, "files");
	struct batch batch = {.call = call,
			      .result = result,
			      .list = value_new_array(),
			      .bytes = READ_BYTES,
			      .lines = READ_LINES,
			      .pictures = BATCH_PICTURES};
	const uint64_t most = call->limits.read_bytes;
	size_t count = value_count(files);

	if (most > 0 && most < batch.bytes)
		batch.bytes = (size_t)most;

	for (size_t i = 0; i < count && !call_stopped(call); i++)
		read_next(&batch, value_item(files, i), count - i);
	value_set(tool_details(result), "files", batch.list);
	if (call_stopped(call))
		return call_stop_result(call, result);
	result->status = batch.done ? RESULT_DONE : RESULT_FAILED;
	return result->status;
}

const struct tool batch_read_tool = {
	.name = "batch_read",
	.description = "Read several text files, or ranges of them, in one call; at most "
		       "" LINES_TEXT " lines or " KB_TEXT " KB together.",
	.example = "{\"files\": [{\"path\": \"src/main.c\"}, {\"path\": \"README.md\", "
		   "\"end_line\": 40}]}",
	.aliases = "read_files read_many_files",
	.params = batch_read_params,
	.effects = EFFECT_READS,
	.timeout_s = 60, /* some files on a slow disk */
	.execute = batch_read_execute,
};
