/*
 * provider: two pure translations for one API, conversation -> request body and stream
 * event -> pieces of an answer. No sockets, no keys, no retries, no clock: tested with
 * recorded bytes, re-chunked at every byte.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "model/answer.h"
#include "model/model.h"

struct provider {
	const char *name;     /* "openai-chat" */
	const char *base_url; /* unless told */
	const char *path;     /* appended to the base URL: "/chat/completions" */
	const char *key_name; /* the environment's variable with its key */
	/* Write the request body. False (E2BIG) at BODY's ceiling. */
	bool (*request)(const char *model, double temperature,
			const struct model_request *request, struct buf *body,
			struct err *err);
	/*
	 * One server-sent event, DATA complete. *END: the stream says it is over. Codes:
	 * failure.h.
	 */
	bool (*event)(struct answer *answer, struct str name, struct str data, bool *end,
		      struct err *err);
	/* A plain JSON answer (some servers do not stream). */
	bool (*whole)(struct answer *answer, struct str body, struct err *err);
	/*
	 * The answer is complete: put together what could only be collected. May be NULL.
	 */
	void (*done)(struct answer *answer);
	/* The message inside an error body, appended to OUT; false when there is none. */
	bool (*error)(struct str body, struct buf *out);
};

extern const struct provider openai_chat_provider;
/* All providers that speak HTTP; NULL ends it. */
extern const struct provider *const providers[];
