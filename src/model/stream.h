/*
 * stream: the bytes of one HTTP answer of status 200, whatever a server made of it: a
 * stream, plain JSON, a web page or nothing. It looks at the bytes, not at the content
 * type, because servers get that wrong. Pure: recorded bytes give the same answer in
 * any pieces.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "model/provider.h"

#include <stdbool.h>

struct reader;
struct sse;

/* Both are borrowed. */
struct reader *reader_new(const struct provider *provider, struct answer *answer);
void reader_free(struct reader *reader);

/* ENOUGH becomes true once the stream said that it is over. Codes of ERR: failure.h. */
bool reader_feed(struct reader *reader, struct str bytes, bool *enough, struct err *err);

/*
 * No more bytes will come; CUT when the connection broke. False for an answer that is
 * torn, empty or none. A stream that named its finish reason is whole without its closing
 * word, and one that ended cleanly after whole calls is, too.
 */
bool reader_end(struct reader *reader, bool cut, struct err *err);

/*
 * Server-sent events (WHATWG HTML, section 9.2) out of bytes that arrive in any pieces.
 * Comments are skipped; CR, LF and CRLF end lines; a BOM is skipped.
 */

struct sse *sse_new(bool (*event)(void *context, struct str name, struct str data,
				  struct err *err),
		    void *context);
void sse_free(struct sse *sse);
/* False when the callback refused or an event is too long. */
bool sse_feed(struct sse *sse, struct str bytes, struct err *err);
/*
 * The end of the stream; an event without its blank line is given too when it is whole
 * JSON or the closing word [DONE], as some servers forget the last blank line.
 */
bool sse_end(struct sse *sse, struct err *err);
