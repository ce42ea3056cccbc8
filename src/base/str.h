/*
 * str: a view of bytes somebody else owns. Never owns, never outlives its
 * source, need not end in NUL.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct str {
	const char *data;
	size_t size;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})

/* The view of a C string; NULL gives the empty view. */
struct str str_of(const char *text);
bool str_equal(struct str a, struct str b);
bool str_is(struct str a, const char *text);
bool str_starts(struct str text, struct str prefix);
bool str_ends(struct str text, struct str suffix);

/* TEXT from FROM on, at most SIZE bytes; both are clamped to what is there. */
struct str str_part(struct str text, size_t from, size_t size);

/* Offset of the first NEEDLE at or after FROM, or (size_t)-1. */
size_t str_find(struct str text, struct str needle, size_t from);

/* Without blanks, tabs and line ends on both sides. */
struct str str_trim(struct str text);

/*
 * Take the next line off the front of *REST (without its "\n"; a "\r" stays).
 * False when nothing is left. A last line without "\n" counts as a line.
 */
bool str_next_line(struct str *rest, struct str *line);

/* Take the next of the blank-separated words off *REST. False when none is left. */
bool str_next_word(struct str *rest, struct str *word);
/* Is WORD one of the blank-separated WORDS (NULL: none)? */
bool str_among(const char *words, struct str word);
