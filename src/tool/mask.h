/*
 * mask: the marks of a session. A mark, `‹secret:NAME›`, stands for a secret (secret.h) in every text
 * that a model, a client or the journal gets. The same value has the same mark as long as the session
 * lives, so a text with marks can be turned back into the bytes (mask_undo).
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

#define MASK_BEGIN "\xe2\x80\xb9secret:" /* of a mark */
#define MASK_END   "\xe2\x80\xba"

enum {
	/*
	 * Secrets of one session. A further one has a mark that cannot be turned back, so
	 * a command that prints tokens without end costs no memory.
	 */
	MASK_VALUES_MAX = 4096,
	MASK_NAME_MAX = 64, /* bytes of a mark's name */
};

struct mask *mask_new(void);
/* Wipes all values. NULL is fine. */
void mask_free(struct mask *mask);

/*
 * From now on VALUE is a secret, whose mark is NAME, or NAME-2 and so on when another value
 * has that mark. VALUE is one that secret_file_read tells of.
 */
void mask_learn(struct mask *mask, struct str name, struct str value);

struct mask_stream {
	struct mask *mask;
	struct buf held;  /* a tail that may begin a secret */
	char before[2];   /* the bytes before that tail */
	size_t key_bytes; /* > 0: in a block of a private key, for so many bytes more */
	size_t count;     /* of marks that were made */
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

/* Is there nothing in TEXT, a whole one, that mask_add would change? Fast. */
bool mask_is_clean(const struct mask *mask, struct str text);

/* The outcome of mask_undo. */
enum mask_undone {
	MASK_PLAIN,   /* there is no mark in the text: OUT is empty */
	MASK_UNDONE,  /* OUT has the bytes */
	MASK_UNKNOWN, /* a mark is none of this session's: OUT has its name */
	MASK_FULL,    /* OUT has no room for the bytes */
};
/*
 * Append to OUT the bytes that TEXT, with marks, stands for. QUOTES: a backslash is put
 * before each character of a value that means something in a regular expression.
 */
enum mask_undone mask_undo(const struct mask *mask, struct str text, bool quotes,
			   struct buf *out);
