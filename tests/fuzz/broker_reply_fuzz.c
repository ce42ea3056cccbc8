/*
 * broker_reply_fuzz: any bytes as the answer of a service. The cell gets a head that can
 * be read again and says the same, and the same body whatever the borders of reads are.
 * The secret is nowhere in it.
 */
#include "base/memory.h"
#include "base/value.h"
#include "broker/request.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SECRET "secret-key"
enum { OUT_MAX = 8 << 20 };

static struct scrub *scrub_of(struct str secret, const char *user)
{
	struct scrub *scrub = scrub_new();

	(void)scrub_learn(scrub, secret, user, 0);
	return scrub;
}

static const char entry_text[] =
	"{\"from\":[\"env:A\"],\"hosts\":[\"a.example\"],\"place\":\"bearer\",\"websocket\":true}";

struct carried {
	struct buf out, content;
	bool done, broken, closed;
};

/* Take the frame off the chunks in OUT. */
static void read_content(struct carried *carried, enum body_kind kind)
{
	struct str rest = buf_str(&carried->out), piece;
	struct body body;

	body_begin(&body, HTTP_REQUEST, kind, carried->out.size);
	while (rest.size > 0 && !body.done) {
		body_next(&body, &rest, &piece);
		(void)buf_addstr(&carried->content, piece);
		assert(!body.broken);
	}
	assert(rest.size == 0 && (kind != BODY_CHUNKED || body.done == carried->done));
}

static void carry(const struct reply *reply, const struct scrub *scrub, struct str bytes,
		  size_t step, struct carried *carried)
{
	struct reply_carry carry;
	bool fine;

	*carried = (struct carried){0};
	buf_init(&carried->out, OUT_MAX);
	buf_init(&carried->content, OUT_MAX);
	reply_carry_init(&carry, reply, scrub);
	while (bytes.size > 0 && !carry.body.done && !carry.body.broken) {
		size_t taken =
			reply_carry_take(&carry, str_part(bytes, 0, step), &carried->out);

		assert(taken > 0);
		bytes = str_part(bytes, taken, bytes.size);
	}
	fine = reply_carry_close(&carry, &carried->out);
	carried->done = carry.body.done;
	carried->broken = carry.body.broken;
	carried->closed = fine;
	read_content(carried, reply->body == BODY_TO_END ? BODY_COUNTED : reply->body);
	reply_carry_fini(&carry);
}

static void carried_fini(struct carried *carried)
{
	buf_fini(&carried->out);
	buf_fini(&carried->content);
}

static void check_head(const struct reply *reply, const struct request *request,
		       const struct scrub *scrub)
{
	struct reply again;
	struct buf out;
	struct err err = {0};

	buf_init(&out, OUT_MAX);
	assert(reply_print(reply, scrub, &out));
	assert(str_find(buf_str(&out), STR(SECRET), 0) == (size_t)-1);
	/* The broker may have added a header of its own to as many as it reads itself. */
	if (reply->head.count == REQUEST_HEADERS_MAX) {
		buf_fini(&out);
		return;
	}
	assert(reply_read(buf_str(&out), request, &again, &err) == REQUEST_READY);
	assert(again.head.size == out.size && again.head.status == reply->head.status);
	assert(again.body == reply->body && again.upgraded == reply->upgraded);
	assert(again.head.body_bytes == reply->head.body_bytes ||
	       again.body != BODY_COUNTED);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char head[] = "GET /a/ HTTP/1.1\r\nHost: localhost:4000\r\n"
				   "Authorization: Bearer phantom\r\n";
	static struct credential credential;
	static struct scrub *scrub;
	struct str bytes = {(const char *)data, size};
	struct request request;
	struct reply reply;
	struct err err = {0};
	struct buf asked;

	if (scrub == NULL) {
		auto_value struct value *entry = NULL;

		if (!value_parse(STR(entry_text), 0, &entry, NULL) ||
		    !credential_read("a", entry, &credential, NULL))
			return 0;
		scrub = scrub_of(STR(SECRET), NULL);
	}
	const struct request_key key = {&credential, "phantom"};
	const struct request_door door = {.keys = &key, .count = 1, .port = 4000};
	buf_init(&asked, sizeof(head) + 64);
	(void)buf_adds(&asked, head);
	/* The length of the input says whether a WebSocket was asked for. */
	(void)buf_adds(&asked, size % 2 ? "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"
					: "\r\n");
	assert(request_read(buf_str(&asked), &door, &request, &err) == REQUEST_READY);
	if (reply_read(bytes, &request, &reply, &err) == REQUEST_READY && !reply.interim) {
		struct str rest = str_part(bytes, reply.head.size, size);
		struct carried whole, apart;

		check_head(&reply, &request, scrub);
		carry(&reply, scrub, rest, size, &whole);
		carry(&reply, scrub, rest, 1, &apart);
		assert(whole.done == apart.done && whole.broken == apart.broken &&
		       whole.closed == apart.closed);
		/* What is held back at the end of a torn body never comes. */
		assert(str_starts(buf_str(&whole.content), buf_str(&apart.content)) ||
		       str_starts(buf_str(&apart.content), buf_str(&whole.content)));
		assert(!(whole.done || whole.closed) ||
		       str_equal(buf_str(&whole.content), buf_str(&apart.content)));
		assert(str_find(buf_str(&whole.content), STR(SECRET), 0) == (size_t)-1);
		carried_fini(&whole);
		carried_fini(&apart);
	}
	buf_fini(&asked);
	return 0;
}
