/* answer: what goes out: results, errors, notices, and requests of our own. */
#include "mcp/server/mcp_parts.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

enum {
	HTTP_OK = 200,
	HTTP_BAD_REQUEST = 400,
	HTTP_NOT_FOUND = 404,
	SENTENCE_MAX = 8 << 10,
};

/*
 * How HTTP calls it. An older client's HTTP knows nothing of methods, and what a method itself
 * finds wrong with its params is an answer.
 */
static int status_of(enum mcp_code code, bool modern, bool has_method)
{
	switch (code) {
	case MCP_CODE_PARSE:
	case MCP_CODE_INVALID:
		return HTTP_BAD_REQUEST;
	case MCP_CODE_HEADER:
	case MCP_CODE_CAPABILITY:
	case MCP_CODE_VERSION:
		return HTTP_BAD_REQUEST;
	case MCP_CODE_METHOD:
		return modern ? HTTP_NOT_FOUND : HTTP_OK;
	case MCP_CODE_PARAMS:
		return modern && !has_method ? HTTP_BAD_REQUEST : HTTP_OK;
	case MCP_CODE_NO_RESOURCE:
	case MCP_CODE_INTERNAL:
		break;
	}
	return HTTP_OK;
}

static void begin(struct buf *out, const struct value *id)
{
	buf_clear(out);
	(void)buf_adds(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	if (id == NULL)
		(void)buf_adds(out, "null");
	else
		(void)value_print(id, 0, out);
}

static void send(struct mcp *mcp, struct mcp_way *way, bool last, int status)
{
	if (way == NULL)
		return;
	assert(!mcp->out.overflowed);
	way->send(way, &mcp->out, last, status);
	if (mcp->out.capacity > MCP_OUT_KEPT)
		buf_fini(&mcp->out);
}

static void end_result(struct mcp_request *request)
{
	struct mcp *mcp = request->mcp;
	struct mcp_way *way = request->way;

	(void)buf_adds(&mcp->out, "}}");
	mcp_request_free(request);
	send(mcp, way, true, HTTP_OK);
}

/* Add the members that every modern result has beside its content. */
static void add_modern(struct mcp_request *request, bool has_type)
{
	struct buf *out = &request->mcp->out;
	auto_value struct value *info = NULL;

	if (request->client.version < MCP_2026_07_28)
		return;
	info = mcp_server_info(request->mcp);
	if (!has_type)
		(void)buf_adds(out, "\"resultType\":\"complete\",");
	if (request->method->ttl_ms >= 0)
		(void)buf_addf(out, "\"ttlMs\":%d,\"cacheScope\":\"private\",",
			       request->method->ttl_ms);
	(void)buf_adds(out, "\"_meta\":{\"" MCP_META_SERVER "\":");
	(void)value_print(info, 0, out);
	if (request->listens_to != NULL) {
		(void)buf_adds(out, ",\"" MCP_META_SUBSCRIPTION "\":");
		(void)value_print(request->id, 0, out);
	}
	(void)buf_addc(out, '}');
}

struct buf *mcp_answer_begin(struct mcp_request *request)
{
	struct buf *out = &request->mcp->out;
	size_t before;

	begin(out, request->id);
	(void)buf_adds(out, ",\"result\":{");
	before = out->size;
	add_modern(request, false);
	if (out->size > before)
		(void)buf_addc(out, ',');
	return out;
}

void mcp_answer_end(struct mcp_request *request)
{
	end_result(request);
}

void mcp_answer_text(struct mcp_request *request, struct str members)
{
	struct buf *out = mcp_answer_begin(request);

	/* Without one there is nothing for the comma to stand before. */
	if (members.size == 0 && out->data[out->size - 1] == ',')
		buf_truncate(out, out->size - 1);
	(void)buf_addstr(out, members);
	end_result(request);
}

void mcp_answer(struct mcp_request *request, struct value *take_result)
{
	struct buf *out = &request->mcp->out;
	auto_value struct value *result = take_result;
	size_t before;

	begin(out, request->id);
	(void)buf_adds(out, ",\"result\":{");
	before = out->size;
	add_modern(request, value_member(result, "resultType") != NULL);
	for (void *at = value_first(result); at != NULL; at = value_next(result, at)) {
		if (out->size > before)
			(void)buf_addc(out, ',');
		(void)value_quote(str_of(value_key(at)), out);
		(void)buf_addc(out, ':');
		(void)value_print(value_at(at), 0, out);
	}
	end_result(request);
}

static void add_error(struct buf *out, int code, const char *sentence,
		      const struct value *data)
{
	(void)buf_addf(out, ",\"error\":{\"code\":%d,\"message\":", code);
	(void)value_quote(str_of(sentence), out);
	if (data != NULL) {
		(void)buf_adds(out, ",\"data\":");
		(void)value_print(data, 0, out);
	}
	(void)buf_adds(out, "}}");
}

void mcp_fail(struct mcp_request *request, enum mcp_code code, struct value *take_data,
	      const char *format, ...)
{
	struct mcp *mcp = request->mcp;
	struct mcp_way *way = request->way;
	const int status = status_of(code, request->client.version >= MCP_2026_07_28,
				     request->method != NULL);
	auto_value struct value *data = take_data;
	struct buf sentence;
	va_list arguments;

	buf_init(&sentence, SENTENCE_MAX);
	va_start(arguments, format);
	(void)buf_addv(&sentence, format, arguments);
	va_end(arguments);
	begin(&mcp->out, request->id);
	add_error(&mcp->out, code, sentence.data, data);
	buf_fini(&sentence);
	mcp_request_free(request);
	send(mcp, way, true, status);
}

void mcp_refuse(struct mcp *mcp, struct mcp_way *way, const struct mcp_message *message,
		int status, const struct err *why)
{
	const enum mcp_code code = why->code < 0 ? why->code : MCP_CODE_INVALID;

	begin(&mcp->out, message->id);
	add_error(&mcp->out, code, why->text, NULL);
	send(mcp, way, true, status != 0 ? status : status_of(code, false, false));
}

void mcp_drop(struct mcp_request *request)
{
	struct mcp_way *way = request->way;

	if (request->call != NULL)
		mcp_call_cancel(request->call);
	mcp_request_free(request);
	if (way != NULL)
		way->drop(way);
}

void mcp_tell(struct mcp *mcp, struct mcp_way *way, const char *id, const char *method,
	      struct value *take_params)
{
	auto_value struct value *params = take_params;
	struct buf *out = &mcp->out;

	if (way == NULL)
		return;
	buf_clear(out);
	(void)buf_adds(out, "{\"jsonrpc\":\"2.0\"");
	if (id != NULL) {
		(void)buf_adds(out, ",\"id\":");
		(void)value_quote(str_of(id), out);
	}
	(void)buf_adds(out, ",\"method\":");
	(void)value_quote(str_of(method), out);
	if (params != NULL) {
		(void)buf_adds(out, ",\"params\":");
		(void)value_print(params, 0, out);
	}
	(void)buf_addc(out, '}');
	send(mcp, way, false, HTTP_OK);
}
