/*
 * buf: bytes that grow, under a ceiling. `data` is always a C string (never NULL after
 * buf_init). A piece that does not fit is not added, and `overflowed` stays set, so
 * that a caller may add many pieces and ask once at the end. Out of memory ends the
 * process, because a half-working agent is worse.
 */
#pragma once

#include "base/str.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data;
	size_t size;     /* bytes used, without the final NUL */
	size_t capacity; /* bytes allocated, 0 while data is the shared empty string */
	size_t max;      /* ceiling for size */
	bool overflowed; /* something was refused since the last buf_clear */
};

/* An empty buffer that never holds more than MAX bytes. Allocates nothing yet. */
void buf_init(struct buf *buf, size_t max);
void buf_fini(struct buf *buf);

/* Forget the content, keep the memory. */
void buf_clear(struct buf *buf);

/* Each of these returns false, with nothing added, when the piece does not fit. */
bool buf_add(struct buf *buf, const void *data, size_t size);
bool buf_adds(struct buf *buf, const char *text);
bool buf_addstr(struct buf *buf, struct str text);
bool buf_addc(struct buf *buf, char c);
bool buf_addf(struct buf *buf, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool buf_addv(struct buf *buf, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

/*
 * Append a line end, unless BUF is empty or ends with one. The next text then begins a
 * line.
 */
bool buf_end_line(struct buf *buf);

/* Make room for SIZE more bytes at data + size. NULL when over the ceiling. */
char *buf_reserve(struct buf *buf, size_t size);
/* Count SIZE bytes written into the reserved room. */
void buf_commit(struct buf *buf, size_t size);

/* Remove SIZE bytes at FROM. */
void buf_remove(struct buf *buf, size_t from, size_t size);
void buf_truncate(struct buf *buf, size_t size);

/* The content as a view, valid until the next change. */
struct str buf_str(const struct buf *buf);

/* Exchange the contents and memory of A and B; each keeps its ceiling. */
void buf_swap(struct buf *a, struct buf *b);

/*
 * Move the bytes of *BYTES up to the next line end to LINE, and drop the line end. True:
 * LINE is whole, and the caller clears it. False: *BYTES is empty, and the line goes on.
 * `overflowed`: the line is too long, and LINE has only those of its first pieces that fit.
 */
bool buf_take_line(struct buf *line, struct str *bytes);

/* The content as a malloc'ed C string. The buffer is empty afterwards. */
char *buf_take(struct buf *buf);

/* Base64 (RFC 4648, section 4): with padding, without line ends. */

/* Append BYTES as Base64. False when OUT is full. */
bool buf_base64_add(struct str bytes, struct buf *out);
/*
 * Append the bytes of TEXT. False, with nothing added, when TEXT is not Base64 in
 * exactly this form.
 */
bool buf_base64_read(struct str text, struct buf *out);
/* Is TEXT Base64 in exactly this form? Does not make the bytes. */
bool buf_base64_is_valid(struct str text);
