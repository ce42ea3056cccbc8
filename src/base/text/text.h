/*
 * text: making bytes fit to be read by a model or shown on a terminal, and
 * cutting them where it does not hurt. UTF-8 throughout.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* Length of the valid UTF-8 character at TEXT[0], 0 when it is none (RFC 3629). */
size_t text_utf8_length(struct str text);
bool text_is_utf8(struct str text);

/* The largest n <= AT that does not cut a character. */
size_t text_character_border(struct str text, size_t at);

/*
 * Append TEXT as a reader should see it: colour and cursor sequences gone, "\r" progress
 * collapsed to the last state of its line (CRLF becomes LF), other control bytes and
 * invalid UTF-8 as \xHH. Tabs and line ends stay.
 */
bool text_clean(struct str text, struct buf *out);

/*
 * Append NAME, which somebody made up, as it may stand in a sentence: what is not seen, or
 * would change how the line looks (control bytes, marks of direction), and what is no UTF-8
 * as \xHH.
 */
void text_add_name(struct buf *out, struct str name);
/*
 * As text_add_name, and characters without ink and unusual blanks become \xHH too: for a
 * person who decides by what is shown.
 */
void text_add_exact(struct buf *out, struct str text);
/* As text_add_name, of several lines: line ends and tabs stay. */
void text_add_paragraph(struct buf *out, struct str text);
/* Where in TEXT the first character stands that would become \xHH; TEXT.size: none. */
size_t text_find_unseen(struct str text);

/*
 * A line of which a part is shown when it is too long: its beginning and its end, and the
 * place that matters where there is one. Only the bytes that may be shown must be held: all
 * of the line, or parts of it, in order.
 */
enum { TEXT_LINE_PARTS = 3 };
struct text_line {
	uint64_t size; /* of the whole line, without its end */
	struct {
		uint64_t at;
		struct str bytes;
	} held[TEXT_LINE_PARTS];
	uint64_t place, place_end; /* offsets; the same: no place matters */
};
struct text_line_cut {
	uint64_t left_out; /* bytes; 0: all of the line is shown */
	uint64_t gap;      /* where the last gap begins */
};
/*
 * Append what is shown of LINE by ADD (NULL: the bytes as they are): all of it, or MOST bytes,
 * three quarters of them from its beginning. A mark with the line's length stands for each
 * gap: " [… 8 of this line's 20 bytes left out …] ".
 */
struct text_line_cut text_add_line(const struct text_line *line, size_t most,
				   void (*add)(struct str part, struct buf *out),
				   struct buf *out);
/* Of MOST bytes of a line, those that are its beginning. The others are its end. */
size_t text_line_head(size_t most);

/*
 * Append TEXT cut to LIMITS: first third (head_bytes, unless 0) and the rest from its end, cuts on
 * line borders, then character borders; lines over line_bytes are cut by text_add_line. CUT says what was left
 * out (zeros when nothing). A line "[… N lines, M bytes left out …]" stands where it was.
 * The marks are not counted; a limit of 0 is none. False at OUT's ceiling, CUT untouched.
 */
struct text_limits {
	size_t bytes, lines, line_bytes;
	size_t head_bytes; /* of `bytes` */
};
struct text_cut {
	size_t bytes, lines;
	size_t long_lines; /* of which a part was left out */
};
bool text_shorten(struct str text, const struct text_limits *limits, struct buf *out,
		  struct text_cut *cut);

/* Does TEXT look binary: NUL in its first 8 KiB, or over 30 % control bytes there? */
bool text_is_binary(struct str text);

size_t text_count_line_ends(struct str text);
size_t text_count_lines(struct str text); /* a last line without "\n" counts */

/* "1.5 MiB", "312 B". Returns TEXT. */
char *text_size(uint64_t bytes, char text[32]);

/*
 * The nearest of the NULL-ended NAMES to WORD by Damerau-Levenshtein distance, or NULL
 * when none is near enough to be a slip (distance over a third of the length + 1).
 */
const char *text_nearest(const char *word, const char *const *names);
size_t text_distance(struct str a, struct str b, size_t limit); /* > LIMIT gives LIMIT + 1 */

/* "a day", "1 file", "2 files": COUNT with NOUN, an "s" added unless 1. For sentences. */
bool text_add_count(struct buf *out, size_t count, const char *noun);

/* The value of a hexadecimal digit, of either case; -1 when DIGIT is none. */
int text_hex_digit(char digit);
/* DIGITS, two for a byte, into BYTES, which has room for half as many and a NUL behind them. */
void text_from_hex(struct str digits, char *bytes);
bool text_parse_size(const char *text, uint64_t *bytes, struct err *err);
bool text_parse_seconds(const char *text, double *seconds, struct err *err);
bool text_parse_count(const char *text, uint64_t max, uint64_t *count, struct err *err);
