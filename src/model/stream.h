/*
 * stream: the bytes of one HTTP answer of status 200, in whatever form a server sent it:
 * a stream, plain JSON, a web page or nothing. The form is found from the bytes, not from
 * the content type, because servers get the content type wrong. Pure: recorded bytes give
 * the same answer in any pieces.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "model/provider.h"

#include <stdbool.h>
#include <stdint.h>

struct reader;
struct sse;

/* PROVIDER and ANSWER are borrowed. */
struct reader *reader_new(const struct provider *provider, struct answer *answer);
void reader_free(struct reader *reader);

/* ENOUGH becomes true when the stream says that it is over. Codes of ERR: failure.h. */
bool reader_feed(struct reader *reader, struct str bytes, bool *enough, struct err *err);

/*
 * No more bytes will come. CUT: the connection broke. False when the answer is torn or
 * empty, or is no answer. A stream that named its finish reason is complete without its
 * closing mark, and so is one that ended cleanly after complete calls.
 */
bool reader_end(struct reader *reader, bool cut, struct err *err);

/*
 * Reads server-sent events (WHATWG HTML, section 9.2) from bytes that arrive in any
 * pieces. Comments are skipped; CR, LF and CRLF end lines; a BOM is skipped.
 */

struct sse *sse_new(bool (*event)(void *context, struct str name, struct str data,
				  struct err *err),
		    void *context);
void sse_free(struct sse *sse);
/* False when the callback refused or an event is too long. */
bool sse_feed(struct sse *sse, struct str bytes, struct err *err);
/*
 * The end of the stream. An event without the blank line behind it is passed on when it
 * is complete JSON or the closing mark [DONE], because some servers forget the last blank
 * line.
 */
bool sse_end(struct sse *sse, struct err *err);
/* The id of the last event that had one, which a later request names; "": none had. */
const char *sse_last_id(const struct sse *sse);
/* The time after which the server wants to be asked again; -1: it named none. */
int64_t sse_retry_ms(const struct sse *sse);
