/*
 * reader: the bytes of one HTTP answer of status 200, whatever a server made of it: a
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
