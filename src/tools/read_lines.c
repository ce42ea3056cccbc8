/* read_lines: the lines of a file that are wanted, whatever its size; see read_parts.h. */
#include "tools/read_parts.h"

#include "base/text/text.h"

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

/* The line is not shown; is a later one wanted, for the map? */
static bool pass_line(struct reading *reading, struct str held)
{
	outline_add(reading->map, reading->line, held);
	return reading->map != NULL;
}

/* Are its bytes UTF-8, as far as they are held? Only whole characters were dropped. */
static bool line_is_utf8(const struct text_line *line)
{
	for (size_t i = 0; i < TEXT_LINE_PARTS; i++) {
		if (!text_is_utf8(line->held[i].bytes))
			return false;
	}
	return true;
}

/* HELD is what there is of a line: all of it, or its two ends. */
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

/* The ceiling of one line: of the only one asked for nearly the whole answer. */
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
		reading->dropped = 0;
		*text = str_part(*text, size + 1, text->size);
	}
	return more;
}

/*
 * Of a long line that HELD begins and does not end, only its two ends are kept. They are cut
 * between characters.
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

bool read_pieces(struct reading *reading, struct pieces *pieces, struct err *err)
{
	struct buf held; /* from the beginning of the current line on */
	bool more = true;
	ssize_t got = 1;

	buf_init(&held, 3 * (size_t)READ_LINE_END + READ_PIECE);
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
		drop_middle(reading, &held);
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
