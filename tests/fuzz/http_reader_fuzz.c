/*
 * Fuzz target of model/http_reader and http_answer: the first byte is the size of the pieces, the
 * rest what a server sent. In pieces and at once it must mean the same, or fail alike.
 */
#include "model/http_reader.h"

#include <stdint.h>
#include <stdlib.h>

#include "model/http_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LOG_MAX = 16 << 20 };

struct heard {
	struct http_answer answer;
	struct buf log;
	struct buf body;
};

static void note_line(void *context, struct str line)
{
	struct heard *heard = context;

	(void)buf_addf(&heard->log, "%zu ", line.size);
	(void)buf_addstr(&heard->log, line);
	http_answer_line(&heard->answer, line);
}

static bool note_bytes(void *context, struct str bytes)
{
	struct heard *heard = context;

	if (bytes.size == 0)
		abort();
	return buf_addstr(&heard->body, bytes);
}

static enum http_read feed(struct str stream, size_t step, struct heard *heard)
{
	struct http_reader reader;
	enum http_read read = HTTP_READ_MORE;

	http_reader_init(&reader);
	reader.line = note_line;
	reader.bytes = note_bytes;
	reader.context = heard;
	http_answer_clear(&heard->answer);
	buf_init(&heard->log, LOG_MAX);
	buf_init(&heard->body, LOG_MAX);
	for (size_t at = 0; read == HTTP_READ_MORE && at < stream.size; at += step)
		read = http_reader_feed(&reader, str_part(stream, at, step), NULL);
	if (read == HTTP_READ_MORE)
		read = http_reader_end(&reader, NULL);
	if (read == HTTP_READ_MORE || (read == HTTP_READ_DONE && reader.status < 200))
		abort();
	(void)buf_addf(&heard->log, "%ld", reader.status);
	http_reader_fini(&reader);
	return read;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heard whole, pieces;
	struct str stream;

	if (size == 0)
		return 0;
	stream = (struct str){(const char *)data + 1, size - 1};
	if (feed(stream, size, &whole) != feed(stream, (size_t)data[0] % 16 + 1, &pieces) ||
	    !str_equal(buf_str(&whole.log), buf_str(&pieces.log)) ||
	    !str_equal(buf_str(&whole.body), buf_str(&pieces.body)))
		abort();
	buf_fini(&whole.log);
	buf_fini(&whole.body);
	buf_fini(&pieces.log);
	buf_fini(&pieces.body);
	return 0;
}
