/*
 * http_daemon_answer: what goes back: an answer, or a stream of bytes. It is held once, and given
 * to the library piece by piece, as its client reads.
 */
#include "mcp/server/http_daemon_parts.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
	BEAT_MS = 15000, /* proxies give up after 30 to 60 s */
	PIECE_MAX = 64 << 10,
	/* Of all streams and answers together: clients that do not read. */
	UNREAD_ALL_MAX = 256 << 20,
	STATUS_BUSY = 503,
};

static const char too_much[] =
	"Too much that was answered is unread; ask again in a second.\n";

/*
 * Free the memory of bytes that the client has read, in pieces large enough to be worth
 * it.
 */
static void forget_read(struct http_exchange *exchange)
{
	struct buf *out = &exchange->out;

	if (exchange->out_from == out->size) {
		buf_fini(out);
		buf_init(out, HTTP_UNREAD_MAX);
		exchange->out_from = 0;
	} else if (exchange->progress == STREAMING &&
		   exchange->out_from > out->size / 2 && exchange->out_from > PIECE_MAX) {
		buf_remove(out, 0, exchange->out_from);
		exchange->out_from = 0;
	}
}

/*
 * Add BYTES to the output. Without room the stream is broken: lost bytes cannot be
 * resent.
 */
static void add(struct http_exchange *exchange, struct str bytes)
{
	struct http_daemon *daemon = exchange->daemon;

	if (daemon->unread + bytes.size > UNREAD_ALL_MAX ||
	    !buf_addstr(&exchange->out, bytes))
		exchange->broken = true;
	else
		daemon->unread += bytes.size;
}

static ssize_t read_stream(void *context, uint64_t at, char *data, size_t max)
{
	struct http_exchange *exchange = context;
	size_t size = exchange->out.size - exchange->out_from;

	(void)at;
	if (exchange->broken)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (size == 0 && (exchange->ended || exchange->progress == ANSWERED ||
			  exchange->daemon->closing))
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (size == 0) {
		http_exchange_suspend(exchange);
		return 0;
	}
	if (size > max)
		size = max;
	memcpy(data, exchange->out.data + exchange->out_from, size);
	exchange->out_from += size;
	exchange->daemon->unread -= size;
	forget_read(exchange);
	return (ssize_t)size;
}

static struct MHD_Response *response_of(struct http_exchange *exchange)
{
	const struct functions *mhd = &exchange->daemon->mhd;
	struct MHD_Response *response;
	size_t size = exchange->out.size;

	if (exchange->progress == STREAMING)
		return mhd->from_callback(MHD_SIZE_UNKNOWN, PIECE_MAX, read_stream,
					  exchange, NULL);
	if (size > PIECE_MAX)
		return mhd->from_callback(size, PIECE_MAX, read_stream, exchange, NULL);
	response = mhd->from_buffer(size, exchange->out.data, MHD_RESPMEM_MUST_COPY);
	exchange->daemon->unread -= size;
	buf_fini(&exchange->out);
	return response;
}

enum MHD_Result http_exchange_queue(struct http_exchange *exchange)
{
	const struct functions *mhd = &exchange->daemon->mhd;
	struct MHD_Response *response;
	enum MHD_Result queued;

	exchange->queued = true;
	if (exchange->broken)
		return MHD_NO;
	response = response_of(exchange);
	if (response == NULL)
		return MHD_NO;
	if (exchange->type != NULL)
		(void)mhd->add_header(response, "Content-Type", exchange->type);
	if (exchange->progress == STREAMING) {
		(void)mhd->add_header(response, "Cache-Control", "no-cache");
		(void)mhd->add_header(response, "X-Accel-Buffering", "no");
	}
	for (size_t i = 0; i < exchange->headers; i++)
		(void)mhd->add_header(response, exchange->names[i], exchange->values[i]);
	queued = mhd->queue(exchange->connection, (unsigned)exchange->status, response);
	mhd->destroy(response);
	return queued;
}

static int64_t next_beat_ms(const struct http_exchange *exchange)
{
	const int ms = exchange->daemon->options.beat_ms;

	return clock_now_ms() + (ms > 0 ? ms : BEAT_MS);
}

static void set_type(struct http_exchange *exchange, const char *type, struct str beat)
{
	char *type_copy = memory_copy(type);

	free(exchange->type);
	free(exchange->beat);
	exchange->type = type_copy;
	exchange->beat = memory_copy_str(beat);
}

void http_answer(struct http_exchange *exchange, int status, const char *type,
		 struct str body)
{
	if (exchange->progress >= ANSWERED)
		return;
	if (exchange->daemon->unread + body.size > UNREAD_ALL_MAX ||
	    body.size > HTTP_UNREAD_MAX) {
		http_add_header(exchange, "Retry-After", "1");
		status = STATUS_BUSY;
		type = "text/plain";
		body = str_of(too_much);
	}
	exchange->progress = ANSWERED;
	exchange->daemon->busy--;
	http_connection_answered(exchange->carrier);
	exchange->status = status;
	set_type(exchange, type, STR(""));
	exchange->late.due_ms = CLOCK_NEVER;
	add(exchange, body);
	http_exchange_wake(exchange);
}

bool http_is_answered(const struct http_exchange *exchange)
{
	return exchange->progress >= ANSWERED;
}

bool http_is_stream(const struct http_exchange *exchange)
{
	return exchange->progress == STREAMING;
}

void http_stream(struct http_exchange *exchange, const char *type, struct str beat)
{
	if (exchange->progress >= ANSWERED)
		return;
	exchange->progress = STREAMING;
	exchange->status = MHD_HTTP_OK;
	auto_free char *beat_copy = memory_copy_str(beat);
	set_type(exchange, type, str_of(beat_copy));
	exchange->late.due_ms = next_beat_ms(exchange);
	http_exchange_wake(exchange);
}

void http_stream_if_late(struct http_exchange *exchange, const char *type, struct str beat)
{
	if (exchange->progress >= ANSWERED)
		return;
	set_type(exchange, type, beat);
	exchange->late.due_ms = next_beat_ms(exchange);
}

void http_stream_add(struct http_exchange *exchange, struct str bytes)
{
	if (exchange->progress != STREAMING || exchange->ended)
		return;
	exchange->late.due_ms = next_beat_ms(exchange);
	add(exchange, bytes);
	http_exchange_wake(exchange);
}

void http_stream_end(struct http_exchange *exchange)
{
	exchange->ended = true;
	exchange->late.due_ms = CLOCK_NEVER;
	http_exchange_wake(exchange);
}
