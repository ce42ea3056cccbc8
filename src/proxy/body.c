/* body: counted, or in chunks (RFC 9112, section 7.1) without extensions and trailers. */
#include "proxy/body.h"

#include "base/text/text.h"

enum { SIZE_DIGITS = 15 }; /* hexadecimal; fits 64 bits */

enum state {
	CHUNK_SIZE,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_LAST_CR,
	CHUNK_LAST_LF,
};

void body_begin(struct body *body, const struct http_request *request)
{
	*body = (struct body){.kind = request->body, .left = request->body_bytes};
	body->done = body->kind == BODY_NONE ||
		     (body->kind == BODY_COUNTED && body->left == 0);
}

static void size_byte(struct body *body, char c)
{
	int digit = text_hex_digit(c);

	if (digit >= 0 && body->digits < SIZE_DIGITS) {
		body->left = body->left << 4 | (unsigned)digit;
		body->digits++;
	} else if (c == '\r' && body->digits > 0) {
		body->state = CHUNK_SIZE_LF;
	} else {
		body->broken = true;
	}
}

/* One byte that is not data. */
static void frame_byte(struct body *body, char c)
{
	static const char expected[] = {[CHUNK_SIZE_LF] = '\n',
					[CHUNK_DATA_CR] = '\r',
					[CHUNK_DATA_LF] = '\n',
					[CHUNK_LAST_CR] = '\r',
					[CHUNK_LAST_LF] = '\n'};

	if (body->state == CHUNK_SIZE) {
		size_byte(body, c);
		return;
	}
	body->broken = c != expected[body->state];
	if (body->state == CHUNK_SIZE_LF) {
		body->state = body->left > 0 ? CHUNK_DATA : CHUNK_LAST_CR;
	} else if (body->state == CHUNK_DATA_LF) {
		body->state = CHUNK_SIZE;
		body->digits = 0;
	} else if (body->state == CHUNK_LAST_LF) {
		body->done = true;
	} else {
		body->state++;
	}
}

size_t body_take(struct body *body, struct str bytes)
{
	size_t at = 0;

	while (at < bytes.size && !body->done && !body->broken) {
		bool data = body->kind == BODY_COUNTED || body->state == CHUNK_DATA;

		if (!data) {
			frame_byte(body, bytes.data[at++]);
			continue;
		}
		size_t size = bytes.size - at;
		if (size > body->left)
			size = (size_t)body->left;
		at += size;
		body->left -= size;
		if (body->left == 0) {
			body->done = body->kind == BODY_COUNTED;
			body->state = CHUNK_DATA_CR;
		}
	}
	return at;
}
