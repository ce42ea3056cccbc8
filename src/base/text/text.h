/*
 * text: cleans bytes for a model or a terminal, and shortens them where it hurts least.
 * All text is UTF-8.
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
/* Append the character with the number CODE, at most 0x10ffff, as UTF-8. */
void text_add_code(uint32_t code, struct buf *out);

/* Is C white space in HTML and CSS (Infra Standard, "ASCII whitespace")? */
static inline bool text_is_web_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

/* The largest n <= AT that does not cut a character. */
size_t text_character_border(struct str text, size_t at);

/*
 * Append TEXT for a reader: without colour and cursor sequences, with "\r" progress
 * reduced to the last state of its line (CRLF becomes LF), and with other control bytes
 * and invalid UTF-8 as \xHH. Tabs and line ends stay.
 */
bool text_clean(struct str text, struct buf *out);

/*
 * Append NAME, which somebody else chose, for a sentence. Bytes that are invisible or
 * change how the line looks (control bytes, marks of direction), and invalid UTF-8,
 * become \xHH.
 */
void text_add_name(struct buf *out, struct str name);
/*
 * Like text_add_name, but characters without ink and unusual blanks become \xHH too:
 * for a person who decides by the shown text.
 */
void text_add_exact(struct buf *out, struct str text);
/* Like text_add_name for several lines: line ends and tabs stay. */
void text_add_paragraph(struct buf *out, struct str text);
/* The offset of the first character in TEXT that would become \xHH; TEXT.size: none. */
size_t text_find_unseen(struct str text);

/*
 * A line that is shown in part when it is too long: its beginning, its end, and the
 * important place if there is one. Only the bytes that may be shown must be held: the
 * whole line, or parts of it in order.
 */
enum { TEXT_LINE_PARTS = 3 };
struct text_line {
	uint64_t size; /* of the whole line, without its line end */
	struct {
		uint64_t at;
		struct str bytes;
	} held[TEXT_LINE_PARTS];
	uint64_t place, place_end; /* offsets; equal when there is no important place */
};
struct text_line_cut {
	uint64_t left_out; /* bytes; 0: the whole line is shown */
	uint64_t gap;      /* where the last gap begins */
};
/*
 * Append LINE by ADD (NULL: the bytes as they are): the whole line, or MOST bytes of
 * it, three quarters of them from its beginning. Each gap becomes a mark with the
 * line's length: " [… 8 of this line's 20 bytes left out …] ".
 */
struct text_line_cut text_add_line(const struct text_line *line, size_t most,
				   void (*add)(struct str part, struct buf *out),
				   struct buf *out);
/* How many of MOST bytes of a line are its beginning. The others are its end. */
size_t text_line_head(size_t most);

/*
 * Append TEXT cut to LIMITS: the first third (head_bytes, unless 0), and the rest from
 * its end. Cuts are between lines if possible, else between characters. Lines over
 * line_bytes are cut by text_add_line. CUT says how much was left out (zeros when
 * nothing). A line "[… N lines, M bytes left out …]" stands in its place. The marks do
 * not count; a limit of 0 means none. False when OUT is full, with CUT unchanged.
 */
struct text_limits {
	size_t bytes, lines, line_bytes;
	size_t head_bytes; /* part of `bytes` */
};
struct text_cut {
	size_t bytes, lines;
	size_t long_lines; /* lines of which a part was left out */
};
bool text_shorten(struct str text, const struct text_limits *limits, struct buf *out,
		  struct text_cut *cut);
/*
 * Append HEAD and TAIL, the beginning and the end of a text of which MISSING bytes between
 * them were not kept, cut to LIMITS in the same way. A mark "[… N bytes left out …]"
 * stands between them. CUT says how much was left out, without the number of lines,
 * which nobody knows. Each may end in the middle of a line there: of that line the part
 * is shown that text_add_line would show.
 */
void text_shorten_torn(struct str head, struct str tail, uint64_t missing,
		       const struct text_limits *limits, struct buf *out,
		       struct text_cut *cut);

/*
 * Does TEXT look binary: does its first 8 KiB contain a NUL, or over 30 % control
 * bytes?
 */
bool text_is_binary(struct str text);

size_t text_count_line_ends(struct str text);
size_t text_count_lines(struct str text); /* a last line without "\n" counts */

/* Print BYTES as "1.5 MiB" or "312 B". Returns TEXT. */
char *text_size(uint64_t bytes, char text[32]);

/*
 * The name among the NULL-ended NAMES that is nearest to WORD by Damerau-Levenshtein
 * distance. NULL when none is near enough for a slip (a distance over a third of the
 * length + 1).
 */
const char *text_nearest(const char *word, const char *const *names);
/* a distance over LIMIT becomes LIMIT + 1 */
size_t text_distance(struct str a, struct str b, size_t limit);

/*
 * Append COUNT with NOUN for a sentence: "1 file", "2 files". NOUN gets an "s" unless
 * COUNT is 1.
 */
bool text_add_count(struct buf *out, size_t count, const char *noun);

/* The value of a hexadecimal digit, of either case; -1 when DIGIT is none. */
int text_hex_digit(char digit);
/*
 * Convert DIGITS, two for each byte, to BYTES, which has room for half as many and a
 * NUL.
 */
void text_from_hex(struct str digits, char *bytes);
/*
 * Fill DIGITS with COUNT random hexadecimal digits, an even number, and a NUL. False with
 * errno, which a kernel of today never does.
 */
bool text_random_hex(char *digits, size_t count);
/*
 * Append TEXT with each %XX replaced by its byte (RFC 3986, section 2.1). False on a NUL
 * byte, and when OUT is full.
 */
bool text_percent_read(struct str text, struct buf *out);
/*
 * Take one byte from the beginning of *TEXT, which is not empty, or the byte of an escape there. False:
 * a '%' begins no escape.
 */
bool text_percent_take(struct str *text, char *byte);
/*
 * Append TEXT with %XX for each byte but letters, digits and "-._~" (RFC 3986, section 2.3)
 * and those in PLAIN. False when OUT is full.
 */
bool text_percent_add(struct str text, const char *plain, struct buf *out);
/* Take a number of at most seven digits from the beginning of *TEXT; 0: there is none. */
size_t text_take_number(struct str *text);
bool text_parse_size(const char *text, uint64_t *bytes, struct err *err);
bool text_parse_seconds(const char *text, double *seconds, struct err *err);
bool text_parse_count(const char *text, uint64_t max, uint64_t *count, struct err *err);
