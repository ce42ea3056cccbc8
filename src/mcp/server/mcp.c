/* mcp: the server: its peers, its requests, and which method answers which; see mcp.h. */
#include "mcp/server/mcp.h"

#include "base/clock.h"
#include "base/memory.h"
#include "mcp/server/batch.h"
#include "mcp/server/mcp_parts.h"

#include <stdlib.h>
#include <string.h>

enum {
	LIST_TTL_MS = 300000, /* of what does not change while the server runs */
	READ_TTL_MS = 0,      /* of what does */
};

/* Ends with {0}. */
static const struct mcp_method methods[] = {
	{"initialize", true, false, -1, mcp_initialize},
	{MCP_DISCOVER, false, true, LIST_TTL_MS, mcp_discover},
	{"ping", true, false, -1, mcp_ping},
	{"tools/list", true, true, LIST_TTL_MS, mcp_tools_list},
	{"tools/call", true, true, -1, mcp_tools_call, true},
	{"resources/list", true, true, READ_TTL_MS, mcp_resources_list},
	{"resources/templates/list", true, true, LIST_TTL_MS, mcp_templates_list},
	{"resources/read", true, true, READ_TTL_MS, mcp_resources_read, true},
	{"resources/subscribe", true, false, -1, mcp_resources_subscribe},
	{"resources/unsubscribe", true, false, -1, mcp_resources_unsubscribe},
	{"prompts/list", true, true, READ_TTL_MS, mcp_prompts_list},
	{"prompts/get", true, true, -1, mcp_prompts_get},
	{"completion/complete", true, true, -1, mcp_complete},
	{"logging/setLevel", true, false, -1, mcp_set_level},
	{"subscriptions/listen", false, true, -1, mcp_listen, true},
	{0},
};

static void settling_due(struct timer *timer)
{
	mcp_calls_settle(timer->context);
}

void mcp_settle_soon(struct mcp *mcp)
{
	mcp->settling.due_ms = 0;
}

struct mcp *mcp_new(const struct mcp_options *options)
{
	struct mcp *mcp = memory_alloc(sizeof(*mcp));

	mcp->options = *options;
	mcp->instructions = memory_copy(options->instructions);
	mcp->prompts = memory_copy(options->prompts);
	mcp->version = memory_copy(options->version);
	mcp->outputs = value_new_object();
	buf_init(&mcp->out, EVENT_JSON_MAX);
	seal_key_make(&mcp->key);
	seal_name_make(mcp->run, sizeof(mcp->run));
	mcp->settling =
		(struct timer){.due_ms = CLOCK_NEVER, .due = settling_due, .context = mcp};
	loop_add_timer(options->loop, &mcp->settling);
	mcp_watch_open(mcp);
	return mcp;
}

void mcp_free(struct mcp *mcp)
{
	if (mcp == NULL)
		return;
	struct mcp_request *next;
	for (struct mcp_request *at = mcp->first; at != NULL; at = next) {
		next = at->next;
		mcp_request_free(at);
	}
	/* Before the calls: their end turns the loop. */
	loop_remove_timer(&mcp->settling);
	mcp_calls_free(mcp);
	mcp_watch_close(mcp);
	session_close(mcp->session);
	value_free(mcp->outputs);
	buf_fini(&mcp->out);
	free(mcp->instructions);
	free(mcp->prompts);
	free(mcp->version);
	free(mcp);
}

bool mcp_session(struct mcp *mcp, struct err *err)
{
	if (!mcp->tried) {
		mcp->tried = true;
		if (!mcp->options.open(mcp->options.context, mcp->options.loop,
				       mcp_calls_sink(mcp), &mcp->session, &mcp->failure))
			mcp->session = NULL;
	}
	return mcp->session != NULL ||
	       err_set(err, mcp->failure.code, "%s", mcp->failure.text);
}

bool mcp_open(struct mcp *mcp, struct err *err)
{
	return mcp_session(mcp, err);
}

struct mcp_peer *mcp_peer_new(struct mcp *mcp, struct mcp_way *way)
{
	struct mcp_peer *peer = memory_alloc(sizeof(*peer));

	peer->mcp = mcp;
	peer->way = way;
	peer->client = (struct mcp_client){.version = MCP_2025_03_26};
	peer->next = mcp->first_peer;
	if (peer->next != NULL)
		peer->next->previous = peer;
	mcp->first_peer = peer;
	return peer;
}

void mcp_peer_free(struct mcp_peer *peer)
{
	struct mcp_request *next;

	if (peer == NULL)
		return;
	for (struct mcp_request *at = peer->mcp->first; at != NULL; at = next) {
		next = at->next;
		if (at->peer == peer)
			mcp_drop(at);
	}
	/* Nothing more comes by it. */
	if (peer->way != NULL)
		peer->way->drop(peer->way);
	if (peer->previous != NULL)
		peer->previous->next = peer->next;
	else
		peer->mcp->first_peer = peer->next;
	if (peer->next != NULL)
		peer->next->previous = peer->previous;
	value_free(peer->watched);
	free(peer);
}

void mcp_peer_set_way(struct mcp_peer *peer, struct mcp_way *way)
{
	peer->way = way;
}

bool mcp_peer_has_way(const struct mcp_peer *peer)
{
	return peer->way != NULL;
}

bool mcp_peer_is_busy(const struct mcp_peer *peer)
{
	const struct mcp_request *at = peer->mcp->first;

	while (at != NULL && at->peer != peer)
		at = at->next;
	return at != NULL || peer->way != NULL;
}

size_t mcp_busy(const struct mcp *mcp)
{
	return mcp->busy;
}

size_t mcp_waiting(const struct mcp *mcp)
{
	return mcp->waiting;
}

bool mcp_is_full(const struct mcp *mcp)
{
	return mcp->busy >= MCP_REQUESTS_MAX || mcp->bytes >= MCP_REQUESTS_BYTES_MAX;
}

/* Of an id, an integer or a text (FNV-1a, 32 bits). */
static size_t slot_of(const struct value *id)
{
	const struct str text = value_str(id);
	uint32_t hash = 2166136261u;

	if (value_kind(id) == VALUE_INTEGER)
		return (size_t)((uint64_t)value_integer(id) % MCP_SLOTS);
	for (size_t i = 0; i < text.size; i++)
		hash = (hash ^ (unsigned char)text.data[i]) * 16777619u;
	return hash % MCP_SLOTS;
}

static struct mcp_request *request_new(struct mcp_peer *peer, struct mcp_way *way,
				       const struct mcp_message *message)
{
	struct mcp_request *request = memory_alloc(sizeof(*request));
	struct mcp *mcp = peer->mcp;

	request->mcp = mcp;
	request->peer = peer;
	request->way = way;
	request->client = peer->client;
	request->id = value_ref(message->id);
	request->params =
		message->params != NULL ? value_ref(message->params) : value_new_object();
	request->previous = mcp->last;
	if (mcp->last != NULL)
		mcp->last->next = request;
	else
		mcp->first = request;
	mcp->last = request;
	request->next_here = mcp->by_id[slot_of(request->id)];
	mcp->by_id[slot_of(request->id)] = request;
	request->bytes = message->bytes;
	mcp->bytes += request->bytes;
	mcp->busy++;
	return request;
}

static struct mcp_request *waiting_from(struct mcp_request *request)
{
	while (request != NULL && !request->waits)
		request = request->next;
	return request;
}

static void stop_waiting(struct mcp_request *request)
{
	struct mcp *mcp = request->mcp;

	if (!request->waits)
		return;
	request->waits = false;
	mcp->waiting--;
	if (mcp->first_waiting == request)
		mcp->first_waiting = waiting_from(request->next);
}

void mcp_request_free(struct mcp_request *request)
{
	struct mcp *mcp = request->mcp;

	stop_waiting(request);
	mcp->bytes -= request->bytes;
	if (request->previous != NULL)
		request->previous->next = request->next;
	else
		mcp->first = request->next;
	if (request->next != NULL)
		request->next->previous = request->previous;
	else
		mcp->last = request->previous;
	struct mcp_request **at = &mcp->by_id[slot_of(request->id)];
	while (*at != request)
		at = &(*at)->next_here;
	*at = request->next_here;
	if (request->listens_to == NULL)
		mcp->busy--;
	value_free(request->listens_to);
	value_free(request->id);
	value_free(request->params);
	free(request);
}

static struct mcp_request *request_find(const struct mcp_peer *peer, const struct value *id)
{
	for (struct mcp_request *at = peer->mcp->by_id[slot_of(id)]; at != NULL;
	     at = at->next_here) {
		if (at->peer == peer && value_kind(at->id) == value_kind(id) &&
		    value_equal(at->id, id))
			return at;
	}
	return NULL;
}

static const struct mcp_method *method_find(const char *name, bool modern)
{
	const struct mcp_method *at = methods;

	while (at->name != NULL &&
	       (strcmp(at->name, name) != 0 || !(modern ? at->modern : at->legacy)))
		at++;
	return at->name != NULL ? at : NULL;
}

/* Only a handshake tells what an older client can; `ping` may come before it. */
static bool may_come_now(const struct mcp_request *request, enum mcp_manner manner)
{
	return request->peer->known || manner == MCP_LENIENT ||
	       request->method->run == mcp_initialize || request->method->run == mcp_ping;
}

bool mcp_may_last(const struct mcp_message *message)
{
	bool lasts = false;

	if (message->kind == MCP_REQUEST) {
		for (const struct mcp_method *at = methods; at->name != NULL; at++)
			lasts = lasts ||
				(at->lasts && strcmp(at->name, message->method) == 0);
	} else if (message->kind == MCP_BATCH) {
		lasts = true; /* as far as anybody knows before it is taken apart */
	}
	return lasts;
}

/* A request that brings answers belongs to a call that has begun already. */
static bool may_begin(const struct mcp_request *request)
{
	const struct mcp_way *way = request->way;

	return !request->method->lasts || way->has_room == NULL ||
	       value_member(request->params, "requestState") != NULL ||
	       (request->mcp->waiting == 0 && way->has_room(way));
}

void mcp_begin_waiting(struct mcp *mcp)
{
	struct mcp_request *at;

	while ((at = mcp->first_waiting) != NULL && at->way->has_room(at->way)) {
		stop_waiting(at);
		at->method->run(at);
	}
}

static void begin(struct mcp_request *request)
{
	struct mcp *mcp = request->mcp;

	if (may_begin(request)) {
		request->method->run(request);
		return;
	}
	request->waits = true;
	if (mcp->waiting++ == 0)
		mcp->first_waiting = request;
}

static void take_request(struct mcp_peer *peer, struct mcp_way *way,
			 const struct mcp_message *message, enum mcp_manner manner)
{
	/* Discovery is the modern opening: without its `_meta` it is a modern mistake. */
	const bool modern = manner == MCP_MODERN || mcp_modern_version(message) != NULL ||
			    strcmp(message->method, MCP_DISCOVER) == 0;
	const bool taken = request_find(peer, message->id) != NULL;
	const bool full = mcp_is_full(peer->mcp);
	struct mcp_request *request = request_new(peer, way, message);

	if (modern && !mcp_read_modern(request))
		return;
	request->method = method_find(message->method, modern);
	if (taken)
		mcp_fail(request, MCP_CODE_INVALID, NULL,
			 "A request with this id is still under way.");
	else if (request->method == NULL)
		mcp_fail(request, MCP_CODE_METHOD, NULL,
			 "There is no method \"%.100s\" in this version of the protocol.",
			 message->method);
	else if (!modern && !may_come_now(request, manner))
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "Begin with initialize, or say in each request's _meta which "
			 "version it speaks (" MCP_META_VERSION ").");
	else if (full && request->method->lasts)
		mcp_fail(request, MCP_CODE_INTERNAL, NULL,
			 "As much as there may be is under way (%d requests, or %d MiB of "
			 "them): wait for one to end, or cancel one by notifications/cancelled.",
			 MCP_REQUESTS_MAX, MCP_REQUESTS_BYTES_MAX >> 20);
	else
		begin(request);
}

/* Too late is no mistake: clients send it after each answer. */
static void take_cancel(const struct mcp_peer *peer, const struct mcp_message *message)
{
	const struct value *id = value_member(message->params, "requestId");
	struct mcp_request *request = id != NULL ? request_find(peer, id) : NULL;

	if (request != NULL)
		mcp_drop(request);
}

bool mcp_take(struct mcp_peer *peer, struct mcp_way *way,
	      const struct mcp_message *message, enum mcp_manner manner)
{
	if (message->kind == MCP_BATCH)
		return mcp_batch_take(peer, way, message, manner);
	if (message->kind == MCP_REQUEST) {
		take_request(peer, way, message, manner);
		return true;
	}
	if (message->kind == MCP_RESPONSE)
		mcp_calls_answered(peer, message);
	else if (strcmp(message->method, "notifications/cancelled") == 0)
		take_cancel(peer, message);
	return false;
}

void mcp_way_gone(struct mcp *mcp, struct mcp_way *way)
{
	struct mcp_request *next;

	mcp_batches_gone(mcp, way);
	for (struct mcp_request *at = mcp->first; at != NULL; at = next) {
		next = at->next;
		if (at->way == way) {
			at->way = NULL;
			mcp_drop(at);
		}
	}
	for (struct mcp_peer *at = mcp->first_peer; at != NULL; at = at->next) {
		if (at->way == way)
			at->way = NULL;
	}
}
