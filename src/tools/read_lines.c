/* read_lines: the lines of a file that are wanted, whatever its size; see read_parts.h. */
#include "tools/read_parts.h"

#include "base/text.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void count_end(struct str line, struct shown_ends *ends)
{
	if (line.size && line.data[line.size - 1] == '\r')
		ends->crlf++;
	else
		ends->lf++;
}

/* "NUMBER<tab>": printf takes as long as the rest of a usual line. */
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

/* Take one line (without its line feed). False when no further line is wanted. */
static bool take_line(struct reading *reading, struct str line)
{
	size_t limit = reading->start == reading->end &&
				       reading->max_bytes > READ_LINE_BYTES + 100
			       ? reading->max_bytes - 100
			       : READ_LINE_BYTES;
	size_t shown;

	reading->line++;
	if (reading->line < reading->start)
		return true;
	if (reading->line > reading->end || reading->full)
		return false;
	if (reading->streamed)
		count_end(line, &reading->ends);
	if (line.size && line.data[line.size - 1] == '\r')
		line.size--;
	if (reading->line - reading->start >= reading->max_lines) {
		reading->full = true;
		return false;
	}
	if (!reading->not_utf8 && !text_is_utf8(line))
		reading->not_utf8 = true;
	shown = line.size <= limit ? line.size : text_character_border(line, limit);
	if (reading->shown_last && reading->body.size + shown + 16 > reading->max_bytes) {
		reading->full = true;
		return false;
	}
	if (!reading->shown_last)
		reading->shown_first = reading->line;
	reading->shown_last = reading->line;
	add_number(reading->line, &reading->body);
	shown_add(str_part(line, 0, shown), &reading->body);
	if (shown < line.size) {
		reading->cut_lines++;
		reading->left_bytes += line.size - shown;
		buf_addf(&reading->body, " [… %zu bytes of this line left out …]",
			 line.size - shown);
	}
	buf_addc(&reading->body, '\n');
	reading->taken += shown + 1;
	return reading->line < reading->end;
}

void read_text(struct reading *reading, struct str text)
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
	/* An end that lies in two pieces. */
	if (pieces->last == '\r' && piece.data[0] == '\n') {
		reading->ends.lf--;
		reading->ends.crlf++;
	}
	pieces->size += piece.size;
	pieces->last = piece.data[piece.size - 1];
}

/* Lines of TEXT until none is wanted; what is left of it begins the last, unfinished one. */
static bool take_lines(struct reading *reading, struct str *text)
{
	const char *end;
	bool more = true;

	while (more && (end = memchr(text->data, '\n', text->size))) {
		size_t size = (size_t)(end - text->data);

		more = take_line(reading, (struct str){text->data, size});
		*text = str_part(*text, size + 1, text->size);
	}
	return more;
}

bool read_pieces(struct reading *reading, struct pieces *pieces, struct err *err)
{
	struct buf held; /* from the beginning of the current line on */
	bool more = true;
	ssize_t got = 1;

	buf_init(&held, (size_t)FILES_HASHED_MAX + 2 * READ_PIECE);
	/* One that grows meanwhile is seen to have changed when it is to be written. */
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
	}
	if (got < 0)
		err_set(err, errno, "%s cannot be read: %s.", reading->path,
			strerror(errno));
	reading->no_final_newline = pieces->size > 0 && pieces->last != '\n';
	if (got >= 0 && more && held.size > 0)
		(void)take_line(reading, buf_str(&held));
	buf_fini(&held);
	return got >= 0;
}

bool read_whole(struct reading *reading, struct buf *content, struct err *err)
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

bool read_range(struct reading *reading, struct err *err)
{
	struct buf chunk; /* from the beginning of the current line on */
	bool more = true;
	ssize_t got = 1;

	buf_init(&chunk, (size_t)FILES_HASHED_MAX + READ_CHUNK);
	while (more && !call_stopped(reading->call)) {
		char *at = buf_reserve(&chunk, READ_CHUNK);
		struct str rest;

		if (!at) {
			/*
			 * One line beyond all measure: what is held of it has been shown
			 * or skipped.
			 */
			more = reading->line + 1 < reading->start;
			if (!more)
				(void)take_line(reading, buf_str(&chunk));
			buf_clear(&chunk);
			continue;
		}
		got = read(reading->file.fd, at, READ_CHUNK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		buf_commit(&chunk, (size_t)got);
		rest = buf_str(&chunk);
		more = take_lines(reading, &rest);
		buf_remove(&chunk, 0, chunk.size - rest.size);
	}
	if (got < 0)
		err_set(err, errno, "%s cannot be read: %s.", reading->path,
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
