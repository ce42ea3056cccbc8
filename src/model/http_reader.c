/* http_reader: lines, then a body of one of three kinds (RFC 9112); see http_reader.h. */
#include "model/http_reader.h"

#include "model/http_answer.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

enum {
	LINE_MAX_BYTES = 64 << 10,
	/* Of all heads and trailers: what libcurl takes, too. */
	HEAD_MAX = 300 << 10,
	/* Interim answers that are waited for. */
	HEADS_MAX = 16,
	/* "HTTP/1.1 200" */
	STATUS_AT = 9,
	STATUS_SIZE = 12,
	CHUNK_DIGITS = 15,
};

/* Of a body: far above all, and ten times it is a number still. */
#define SIZE_LIMIT ((uint64_t)1 << 59)

enum state {
	AT_STATUS,
	AT_HEADER,
	IN_BODY,     /* `left` bytes */
	UNTIL_END,   /* of the connection */
	AT_CHUNK,    /* the line with its size */
	IN_CHUNK,    /* `left` bytes */
	AFTER_CHUNK, /* the line's end behind it */
	IN_TRAILER,
	AT_END,
};

void http_reader_init(struct http_reader *reader)
{
	*reader = (struct http_reader){.state = AT_STATUS};
	buf_init(&reader->held, LINE_MAX_BYTES);
}

void http_reader_restart(struct http_reader *reader)
{
	struct buf held = reader->held;

	buf_clear(&held);
	*reader = (struct http_reader){.line = reader->line,
				       .bytes = reader->bytes,
				       .context = reader->context,
				       .state = AT_STATUS,
				       .held = held};
}

void http_reader_fini(struct http_reader *reader)
{
	buf_fini(&reader->held);
}

static enum http_read broken(struct err *err, const char *what)
{
	(void)err_set(err, EPROTO, "%s", what);
	return HTTP_READ_BROKEN;
}

static enum http_read status_take(struct http_reader *reader, struct str line,
				  struct err *err)
{
	const char *at = line.data + STATUS_AT;

	if (line.size < STATUS_SIZE || !str_starts(line, STR("HTTP/1.")) ||
	    !isdigit((unsigned char)line.data[STATUS_AT - 2]) ||
	    line.data[STATUS_AT - 1] != ' ' || at[0] < '1' || at[0] > '9' ||
	    !isdigit((unsigned char)at[1]) || !isdigit((unsigned char)at[2]) ||
	    (line.size > STATUS_SIZE && line.data[STATUS_SIZE] != ' '))
		return broken(err, "what came is no answer of HTTP/1.1");
	reader->said = (at[0] - '0') * 100 + (at[1] - '0') * 10 + (at[2] - '0');
	reader->keeps = line.data[STATUS_AT - 2] != '0';
	reader->chunked = reader->sized = false;
	reader->left = 0;
	reader->state = AT_HEADER;
	return HTTP_READ_MORE;
}

static bool size_take(struct http_reader *reader, struct str value)
{
	uint64_t size = 0;

	for (size_t i = 0; i < value.size; i++) {
		if (!isdigit((unsigned char)value.data[i]) || size > SIZE_LIMIT)
			return false;
		size = size * 10 + (uint64_t)(value.data[i] - '0');
	}
	if (value.size == 0 || (reader->sized && reader->left != size))
		return false;
	reader->sized = true;
	reader->left = size;
	return true;
}

static bool value_is(struct str value, const char *word)
{
	return value.size == strlen(word) && strncasecmp(value.data, word, value.size) == 0;
}

static enum http_read header_take(struct http_reader *reader, struct str line,
				  struct err *err)
{
	struct str value;

	if (http_header_is(line, "content-length", &value) && !size_take(reader, value))
		return broken(err, "the answer's Content-Length is no size");
	if (http_header_is(line, "transfer-encoding", &value)) {
		if (!value_is(value, "chunked"))
			return broken(err, "the answer's Transfer-Encoding is not known");
		reader->chunked = true;
	}
	if (http_header_is(line, "connection", &value) && value_is(value, "close"))
		reader->keeps = false;
	return HTTP_READ_MORE;
}

/* The empty line behind the headers: what follows? */
static enum http_read head_end(struct http_reader *reader, struct err *err)
{
	if (reader->said == 101)
		return broken(err, "the server wants to speak something else than HTTP");
	if (reader->said < 200) {
		reader->state = AT_STATUS;
		return HTTP_READ_MORE;
	}
	reader->status = reader->said;
	/* Who says both may mean either: the next answer would begin nobody knows where. */
	if (reader->chunked && reader->sized)
		reader->keeps = false;
	if (reader->said == 204 || reader->said == 304)
		reader->state = AT_END;
	else if (reader->chunked)
		reader->state = AT_CHUNK;
	else if (reader->sized)
		reader->state = reader->left > 0 ? IN_BODY : AT_END;
	else
		reader->state = UNTIL_END;
	reader->keeps = reader->keeps && reader->state != UNTIL_END;
	return reader->state == AT_END ? HTTP_READ_DONE : HTTP_READ_MORE;
}

static enum http_read chunk_take(struct http_reader *reader, struct str line, struct err *err)
{
	uint64_t size = 0;
	size_t digits = 0;

	while (digits < line.size && isxdigit((unsigned char)line.data[digits]) &&
	       digits < CHUNK_DIGITS) {
		int c = tolower((unsigned char)line.data[digits++]);

		size = size * 16 + (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	/* Extensions are nobody's. */
	if (digits == 0 || (digits < line.size && strchr("; \t", line.data[digits]) == NULL))
		return broken(err, "a chunk of the answer has no size");
	reader->left = size;
	reader->state = size > 0 ? IN_CHUNK : IN_TRAILER;
	return HTTP_READ_MORE;
}

static enum http_read line_take(struct http_reader *reader, struct str line, struct err *err)
{
	switch ((enum state)reader->state) {
	case AT_STATUS:
		if (++reader->heads > HEADS_MAX)
			return broken(err, "one interim answer after the other came");
		reader->line(reader->context, line);
		return status_take(reader, line, err);
	case AT_HEADER:
		if (line.size == 0)
			return head_end(reader, err);
		reader->line(reader->context, line);
		return header_take(reader, line, err);
	case AT_CHUNK:
		return chunk_take(reader, line, err);
	case AFTER_CHUNK:
		if (line.size > 0)
			return broken(err, "a chunk of the answer is longer than it says");
		reader->state = AT_CHUNK;
		return HTTP_READ_MORE;
	case IN_TRAILER:
		if (line.size > 0)
			return HTTP_READ_MORE;
		reader->state = AT_END;
		return HTTP_READ_DONE;
	case IN_BODY:
	case UNTIL_END:
	case IN_CHUNK:
	case AT_END:
		break;
	}
	return HTTP_READ_DONE;
}

/* One line of BYTES, or what there is of it. */
static enum http_read line_feed(struct http_reader *reader, struct str *bytes,
				struct err *err)
{
	const char *end = memchr(bytes->data, '\n', bytes->size);
	size_t size = end != NULL ? (size_t)(end - bytes->data) : bytes->size;
	enum http_read read;
	struct str line;

	reader->head_bytes += size;
	/* Sizes of chunks are no heads: of those an answer has any number. */
	if (reader->state == AT_CHUNK || reader->state == AFTER_CHUNK)
		reader->head_bytes -= size;
	if (reader->head_bytes > HEAD_MAX ||
	    !buf_addstr(&reader->held, str_part(*bytes, 0, size)))
		return broken(err, "the head of the answer is too long");
	*bytes = str_part(*bytes, size + (end != NULL), bytes->size);
	if (end == NULL)
		return HTTP_READ_MORE;
	line = buf_str(&reader->held);
	if (line.size > 0 && line.data[line.size - 1] == '\r')
		line.size--;
	read = line_take(reader, line, err);
	buf_clear(&reader->held);
	return read;
}

/* What of BYTES is body. */
static enum http_read body_feed(struct http_reader *reader, struct str *bytes)
{
	bool ends = reader->state != UNTIL_END;
	size_t size =
		ends && reader->left < bytes->size ? (size_t)reader->left : bytes->size;
	struct str part = str_part(*bytes, 0, size);

	*bytes = str_part(*bytes, size, bytes->size);
	reader->left -= ends ? size : 0;
	if (ends && reader->left == 0)
		reader->state = reader->state == IN_CHUNK ? AFTER_CHUNK : AT_END;
	if (!reader->bytes(reader->context, part))
		return HTTP_READ_STOPPED;
	return reader->state == AT_END ? HTTP_READ_DONE : HTTP_READ_MORE;
}

enum http_read http_reader_feed(struct http_reader *reader, struct str bytes, struct err *err)
{
	enum http_read read = HTTP_READ_MORE;

	reader->started = reader->started || bytes.size > 0;
	while (read == HTTP_READ_MORE && bytes.size > 0) {
		if (reader->state == IN_BODY || reader->state == UNTIL_END ||
		    reader->state == IN_CHUNK)
			read = body_feed(reader, &bytes);
		else
			read = line_feed(reader, &bytes, err);
	}
	/* Nobody asked for that. */
	reader->keeps = reader->keeps && bytes.size == 0;
	return read;
}

enum http_read http_reader_end(struct http_reader *reader, struct err *err)
{
	if (reader->state == UNTIL_END || reader->state == AT_END) {
		reader->keeps = false;
		return HTTP_READ_DONE;
	}
	return broken(err, reader->started
				   ? "the connection was cut in the middle of the answer"
				   : "the connection was closed without an answer");
}
