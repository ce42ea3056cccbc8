/*
 * complete: the names of files, found by some letters of them, and what a person means by an
 * `@` in a text. A name fits when it has the typed letters in their order, in any case. Fits in
 * the last name of a path come before fits elsewhere in it; then those that were used last, then
 * short ones. Pure: no file is opened.
 *
 * 100,000 names take some 3 ms for a key. Each name has a set of the characters in it, so most
 * of those that do not fit are never read.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	COMPLETE_TEXT_MAX = 64 << 20, /* bytes of all names */
	COMPLETE_WANTED_MAX = 256, /* bytes of what is typed; a longer text fits nothing */
	COMPLETE_FOUND_MAX = 40,   /* names that complete_find gives at most */
	COMPLETE_RECENT_MAX = 256, /* names that were used last */
};

struct complete;

struct complete *complete_new(void);
void complete_free(struct complete *complete); /* NULL is fine */

/*
 * The names are those of LIST from now on: each with a NUL behind it, folders with a slash at
 * their end. LIST is foreign: what is no UTF-8, is empty, or has characters that a terminal
 * would obey or a line cannot show is left out.
 */
void complete_set(struct complete *complete, struct str list);
/* The file or folder NAME was used: it comes before others. */
void complete_note(struct complete *complete, struct str name);
bool complete_has(const struct complete *complete, struct str name);

/*
 * Call FOUND with the names that fit WANTED, the best first, at most COMPLETE_FOUND_MAX. An empty
 * WANTED fits all.
 */
void complete_find(const struct complete *complete, struct str wanted,
		   void (*found)(void *context, struct str name), void *context);

/*
 * The text behind an `@`: NAME, or "NAME" in quotes, which may have blanks; then maybe
 * the lines: :10 or :10-40.
 */
struct mention {
	size_t begin, end;    /* in the text, with the @ and the lines */
	struct str name;      /* without quotes */
	bool quoted;          /* it is in quotes, which may lack their end */
	uint32_t first, last; /* lines; 0: none are named */
};

/*
 * Find the first mention in TEXT from AT on. An @ counts at the beginning and behind a blank, a
 * quote or a bracket, so an address is none. False: there is none.
 */
bool mention_next(struct str text, size_t at, struct mention *mention);
/* Append the mention of NAME: with quotes where it needs them. */
void mention_add(struct str name, struct buf *out);
