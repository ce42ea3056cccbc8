/*
 * sse: server-sent events (WHATWG HTML, section 9.2) out of bytes that arrive in any
 * pieces. Comments are skipped; CR, LF and CRLF end lines; a BOM is skipped.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

/* Most bytes of one event's data, and of one line. */
enum { SSE_EVENT_MAX = 16 << 20 };

struct sse;
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
