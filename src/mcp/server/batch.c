/* batch: a way back on which answers wait for each other; see batch.h. */
#include "mcp/server/batch.h"

#include "base/memory.h"
#include "mcp/server/mcp_parts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
	HTTP_OK = 200,
	HTTP_BAD_REQUEST = 400,
};

struct mcp_batch {
	struct mcp_way way;
	struct mcp_way *outer;
	struct mcp *mcp;
	struct mcp_batch *next, *previous;
	struct buf answers; /* their list, without its end */
	size_t waiting;     /* for so many more, and while it is being taken */
};

static struct mcp_batch *batch_of(struct mcp_way *way)
{
	return (struct mcp_batch *)((char *)way - offsetof(struct mcp_batch, way));
}

static void batch_free(struct mcp_batch *batch)
{
	if (batch->previous != NULL)
		batch->previous->next = batch->next;
	else
		batch->mcp->first_batch = batch->next;
	if (batch->next != NULL)
		batch->next->previous = batch->previous;
	buf_fini(&batch->answers);
	free(batch);
}

static void settle(struct mcp_batch *batch)
{
	struct mcp_way *outer = batch->outer;

	if (--batch->waiting > 0)
		return;
	if (batch->answers.size == 0) {
		outer->drop(outer);
	} else {
		(void)buf_addc(&batch->answers, ']');
		outer->send(outer, &batch->answers, true, HTTP_OK);
	}
	batch_free(batch);
}

static void batch_send(struct mcp_way *way, struct buf *message, bool last, int status)
{
	struct mcp_batch *batch = batch_of(way);

	if (!last) {
		batch->outer->send(batch->outer, message, false, status);
		return;
	}
	(void)buf_addc(&batch->answers, batch->answers.size == 0 ? '[' : ',');
	(void)buf_addstr(&batch->answers, buf_str(message));
	settle(batch);
}

static void batch_drop(struct mcp_way *way)
{
	settle(batch_of(way));
}

static bool batch_has_room(const struct mcp_way *way)
{
	const struct mcp_way *outer =
		((const struct mcp_batch *)((const char *)way -
					    offsetof(struct mcp_batch, way)))
			->outer;

	return outer->has_room == NULL || outer->has_room(outer);
}

static struct mcp_batch *batch_new(struct mcp *mcp, struct mcp_way *outer)
{
	struct mcp_batch *batch = memory_alloc(sizeof(*batch));

	batch->way = (struct mcp_way){batch_send, batch_drop, batch_has_room};
	batch->outer = outer;
	batch->mcp = mcp;
	batch->waiting = 1;
	/* Each answer fits, with what is between them. */
	buf_init(&batch->answers, MCP_BATCH_MAX * ((size_t)EVENT_JSON_MAX + 1) + 1);
	batch->next = mcp->first_batch;
	if (batch->next != NULL)
		batch->next->previous = batch;
	mcp->first_batch = batch;
	return batch;
}

/* The handshake settles which version is spoken: it comes alone. */
static bool may_come(const struct mcp_message *message, struct err *err)
{
	if (message->kind == MCP_REQUEST && strcmp(message->method, "initialize") == 0)
		return err_set(err, MCP_CODE_INVALID, "initialize comes by itself.");
	if (message->kind != MCP_RESPONSE && mcp_modern_version(message) != NULL)
		return err_set(err, MCP_CODE_INVALID,
			       "Version %s has no batches: send each message by itself.",
			       mcp_version_name(MCP_2026_07_28));
	return true;
}

static bool take_one(struct mcp_peer *peer, struct mcp_batch *batch,
		     const struct value *item, enum mcp_manner manner)
{
	struct mcp_message message;
	struct err err;
	bool answered;

	batch->waiting++;
	if (mcp_message_of(item, &message, &err) && may_come(&message, &err)) {
		answered = mcp_take(peer, &batch->way, &message, manner);
		if (!answered)
			batch->waiting--;
	} else {
		mcp_refuse(peer->mcp, &batch->way, &message, HTTP_BAD_REQUEST, &err);
		answered = true;
	}
	mcp_message_fini(&message);
	return answered;
}

bool mcp_batch_take(struct mcp_peer *peer, struct mcp_way *way,
		    const struct mcp_message *batch, enum mcp_manner manner)
{
	const size_t count = value_count(batch->whole);
	struct mcp_batch *made;
	struct err err = {0};
	const bool agreed = peer->known || manner == MCP_LENIENT;
	bool answered = false;

	if (!agreed || peer->client.version != MCP_2025_03_26 || manner == MCP_MODERN)
		(void)err_set(&err, MCP_CODE_INVALID,
			      "Batches are of version %s alone: send each message by itself.",
			      mcp_version_name(MCP_2025_03_26));
	else if (count > MCP_BATCH_MAX)
		(void)err_set(&err, MCP_CODE_INVALID,
			      "A batch may have %d messages, not %zu.", MCP_BATCH_MAX,
			      count);
	if (err.code != 0) {
		mcp_refuse(peer->mcp, way, batch, HTTP_BAD_REQUEST, &err);
		return true;
	}
	made = batch_new(peer->mcp, way);
	for (size_t i = 0; i < count; i++)
		answered |= take_one(peer, made, value_item(batch->whole, i), manner);
	if (answered)
		settle(made);
	else
		batch_free(made);
	return answered;
}

void mcp_batches_gone(struct mcp *mcp, const struct mcp_way *outer)
{
	struct mcp_batch *next;

	for (struct mcp_batch *at = mcp->first_batch; at != NULL; at = next) {
		next = at->next;
		if (at->outer != outer)
			continue;
		mcp_way_gone(mcp, &at->way);
		batch_free(at);
	}
}
