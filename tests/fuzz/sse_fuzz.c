/*
 * Fuzz target of model/sse: the first byte is the size of the pieces, the rest the stream.
 * In pieces and at once it must give the same events, or fail alike.
 */
#include "model/stream.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LOG_MAX = 16 << 20 };

static bool note(void *context, struct str name, struct str data, struct err *err)
{
	(void)buf_addf(context, "%zu %zu ", name.size, data.size);
	(void)buf_addstr(context, name);
	(void)buf_addstr(context, data);
	/* A word that the reader of events does not like. */
	return !str_starts(data, STR("stop")) || err_set(err, 0, "stopped");
}

static bool feed(struct str stream, size_t step, struct buf *log)
{
	struct sse *sse = sse_new(note, log);
	bool ok = true;

	for (size_t at = 0; ok && at < stream.size; at += step)
		ok = sse_feed(sse, str_part(stream, at, step), NULL);
	ok = ok && sse_end(sse, NULL);
	(void)buf_addf(log, " %s %lld", sse_last_id(sse), (long long)sse_retry_ms(sse));
	sse_free(sse);
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str stream;
	struct buf whole, pieces;

	if (size == 0)
		return 0;
	stream = (struct str){(const char *)data + 1, size - 1};
	buf_init(&whole, LOG_MAX);
	buf_init(&pieces, LOG_MAX);
	if (feed(stream, size, &whole) != feed(stream, (size_t)data[0] % 16 + 1, &pieces) ||
	    !str_equal(buf_str(&whole), buf_str(&pieces)))
		abort();
	buf_fini(&whole);
	buf_fini(&pieces);
	return 0;
}
