/*
 * value_syntax: the grammar of JSON (RFC 8259) for value.c: what may be blanked out
 * before parsing, how deep a text is, and a sentence about the first place that is wrong.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Write blanks over what FLAGS (enum value_flags) allow beside JSON. Line ends stay, so
 * that every position means the same in both texts. False for a comment without end.
 */
bool value_syntax_blank(char *text, size_t size, unsigned flags, struct err *err);

/* Write \ufffd over each half of a surrogate pair that is escaped without the other. */
void value_syntax_mend_halves(char *text, size_t size);

/* Write each integer that 64 bits do not hold as a real, to the nearest hundred below. */
void value_syntax_mend_integers(char *text, size_t size);

/* False when TEXT nests deeper than VALUE_DEPTH_MAX or has more than VALUE_PARTS_MAX values. */
bool value_syntax_depth(struct str text, struct err *err);

/* False, with the sentence, at the first thing the grammar does not have. */
bool value_syntax_check(struct str text, struct err *err);

/* Fill ERR with "line L, column C: WHAT near "…"". Always returns false. */
bool value_syntax_fail(struct str text, size_t at, const char *what, struct err *err);

/*
 * Offset of the first byte at or after FROM that is not to stand in a JSON string as it is: a
 * quote, a backslash, a control character, or what is not UTF-8.
 */
size_t value_syntax_skip_plain(struct str text, size_t from);
/* Do two bytes at AT make one of the control characters U+0080 to U+009F? */
bool value_syntax_is_control(struct str text, size_t at);

/* Append TEXT with U+FFFD in place of each byte that is not UTF-8. */
bool value_syntax_mend(struct str text, struct buf *out);
