/*
 * mask: the marks of a session. A mark, `‹secret:NAME-TAG›`, stands for a secret (secret.h) in every text
 * that a model, a client or the journal gets. The same value has the same mark as long as the session
 * lives, so a text with marks can be turned back into the bytes (mask_undo).
 *
 * The tag binds a mark to its value: it is made from the value and a key, so a mark of another
 * session, or of a value that has changed, is the mark of the same bytes or of none. Without
 * the key a tag says nothing about its value.
 *
 * Turning back is exact for every text. A "‹" before `secret:` of the text itself is doubled,
 * and so is each further one before it; those before a mark are doubled too, so an odd number
 * of them means a mark.
 *
 * It is no wall: a program can print a value in another form.
 *
 * Of a private key each line is masked by itself, so lines keep their numbers.
 *
 * Of a text without secrets the cost is one look at a table for each byte (bench `mask`).
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mask;

#define MASK_WORD   "secret:"
#define MASK_BEGIN  "\xe2\x80\xb9" MASK_WORD /* of a mark */
#define MASK_ESCAPE "\\u2039" MASK_WORD      /* the same in JSON without UTF-8 */
#define MASK_END    "\xe2\x80\xba"

enum {
	/*
	 * Secrets of one session. A value that is learnt beyond them takes the place of the one
	 * that was learnt longest ago.
	 */
	MASK_VALUES_MAX = 4096,
	/*
	 * Of them those with a shape. A further one has a mark that cannot be turned back, so
	 * a command that prints tokens without end costs no memory, and no name its room.
	 */
	MASK_SHAPES_MAX = 3072,
	MASK_NAME_MAX = 64, /* bytes of a mark's name with its tag */
	MASK_KEY = 32,      /* bytes */
};

/* KEY is copied. Marks of one key are those of another session with the same key. */
struct mask *mask_new(const uint8_t key[MASK_KEY]);
/* Wipes all values. NULL is fine. */
void mask_free(struct mask *mask);

/*
 * From now on VALUE is a secret of this NAME, unless it has another one already. VALUE is one
 * that secret_file_read tells of. False: another value had to be forgotten for it.
 */
bool mask_learn(struct mask *mask, struct str name, struct str value);

struct mask_stream {
	struct mask *mask;
	struct buf held;   /* a tail that may begin a secret */
	char before[2];    /* the bytes before that tail */
	size_t key_bytes;  /* > 0: in a block of a private key, for so many bytes more */
	size_t idle_lines; /* of that block, one after the other, without Base64 */
	bool line_has_run; /* this line has some */
	size_t count;      /* of marks that were made */
};

/* MASK is borrowed. */
void mask_stream_init(struct mask_stream *stream, struct mask *mask);
/*
 * Append to OUT what is decided of BYTES. LAST: nothing follows, so all of it is. False
 * when OUT is full.
 */
bool mask_add(struct mask_stream *stream, struct str bytes, bool last, struct buf *out);
/* Wipes what is held. */
void mask_stream_fini(struct mask_stream *stream);

/* Does TEXT have a mark of this session, which its reader would take for the value? */
bool mask_is_named(const struct mask *mask, struct str text);
/* Is there nothing in TEXT, a whole one, that mask_add would change? Fast. */
bool mask_is_clean(const struct mask *mask, struct str text);

/* The outcome of mask_undo. */
enum mask_undone {
	MASK_PLAIN,   /* there is no mark in the text: OUT is empty */
	MASK_UNDONE,  /* OUT has the bytes */
	MASK_UNKNOWN, /* a mark is none of this session's: OUT has its name */
	MASK_ESCAPED, /* a mark of this session has \u2039 for its bracket: OUT has its name */
	MASK_FULL, /* OUT has no room for the bytes */
};
/*
 * Append to OUT the bytes that TEXT, with marks, stands for. QUOTES: a backslash is put
 * before each character of a value that means something in a regular expression.
 */
enum mask_undone mask_undo(const struct mask *mask, struct str text, bool quotes,
			   struct buf *out);
