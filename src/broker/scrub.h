/*
 * scrub: takes secrets out of bytes that go into a cell. A service may send a key back
 * that it got: in an error text, in the echo of a request, also of another request, with
 * another key or with a former one. So there is one scrubber for all keys of a cell. Each
 * byte that belongs to a secret becomes "*", so lengths stay as announced. A secret is
 * found as it is; in
 * Base64 of either alphabet, by itself, as `user:secret`, and within something longer at
 * any of the three alignments; and each of these percent-escaped (RFC 3986) or
 * JSON-escaped (RFC 8259), wholly or in part.
 *
 * Of a secret within a longer Base64, the characters are found that depend on the secret
 * only. At its borders up to four bits of its first and last byte stay.
 *
 * A stream gives the same bytes wherever its reads are cut: scrubbing pieces is scrubbing
 * the whole. It holds back only a tail that begins a match. Its speed does not depend on
 * the secret (bench `broker`; 500 MB/s are asked for).
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scrub;

/* So many secrets are looked for: the present ones of a cell, and former ones. */
enum {
	SCRUB_SECRETS_MAX = 64,
	SCRUB_SPARE = 4, /* of them, for the tokens of one renewal */
};

/* A scrubber that looks for nothing yet. */
struct scrub *scrub_new(void);
/*
 * From now on look for SECRET as well, of two bytes or more, and for USER:SECRET unless
 * USER is NULL; also in streams that have begun. Both are copied. It lives for LIFE_MS.
 * Beyond SCRUB_SECRETS_MAX the dead one that was learned longest ago is forgotten, and a
 * living one only when none is dead; one that is learned again is the newest. False: after
 * SCRUB_SPARE further ones a living one would be forgotten.
 */
bool scrub_learn(struct scrub *scrub, struct str secret, const char *user, int64_t life_ms);
/* Wipes it. */
void scrub_free(struct scrub *scrub);

struct scrub_stream {
	const struct scrub *scrub; /* NULL: bytes pass as they are */
	struct buf held;           /* a tail that begins a match */
	size_t covered;            /* so many bytes of it belong to an earlier match */
	size_t unseen;             /* bytes at its end that were not compared yet */
};

/* SCRUB (or NULL) is borrowed until scrub_stream_fini. */
void scrub_stream_init(struct scrub_stream *stream, const struct scrub *scrub);
/* Append to OUT what is decided of BYTES. False when OUT is full: end the connection. */
bool scrub_add(struct scrub_stream *stream, struct str bytes, struct buf *out);
/* Append the rest, because nothing follows. */
bool scrub_end(struct scrub_stream *stream, struct buf *out);
/* Wipes what is held. */
void scrub_stream_fini(struct scrub_stream *stream);

/* Append BYTES, a whole text, to OUT without the secret. SCRUB may be NULL. */
bool scrub_whole(const struct scrub *scrub, struct str bytes, struct buf *out);
