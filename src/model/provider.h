/*
 * provider: two pure translations for one API, conversation -> request body and stream
 * event -> pieces of an answer. No sockets, no keys, no retries, no clock: tested with
 * recorded bytes, re-chunked at every byte.
 *
 * A provider is one file in model/providers/ and one row of `providers` in model.c. It
 * comes with recorded streams (tests/model/streams/), a fuzz target, its API in
 * tests/fake/model_server.py and in tests/conformance/models/run.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "model/answer.h"
#include "model/model.h"

/*
 * The options that a model was opened with (model_options), as far as a request's body has
 * them.
 */
struct provider_settings {
	const char *model;
	double temperature;                   /* < 0: not said */
	uint64_t thinking_budget, max_output; /* 0: not said */
	uint64_t context; /* tokens that the server is to make room for; 0: not said */
};

struct provider {
	const char *name;     /* "openai-chat" */
	const char *base_url; /* unless told */
	/*
	 * Appended to the base URL: "/chat/completions". A "/v1" at its beginning is left
	 * out where the base URL ends in one: people write both.
	 */
	const char *path;
	const char *key_name;   /* the environment's variable with its key */
	const char *key_header; /* what stands before the key: "Authorization: Bearer " */
	const char *const *headers; /* further lines of each request, NULL ends them; or NULL */
	bool streams_lines; /* one JSON object a line instead of server-sent events */
	bool takes_context; /* its server makes as much room as a request asks for */
	/* Servers that imitate it call an answer complete that ran out of room (llama.cpp). */
	bool may_hide_cut;
	/* Write the request body. False (E2BIG) at BODY's ceiling. */
	bool (*request)(const struct provider_settings *settings,
			const struct model_request *request, struct buf *body,
			struct err *err);
	/*
	 * One server-sent event, or one line (without a name), DATA complete. *END: the stream
	 * says it is over. Codes: failure.h.
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

/* Each provider of the table by its name: anthropic_provider. */
#define PROVIDER(name, file) extern const struct provider name##_provider;
#include "model/providers.def"
#undef PROVIDER
/* All providers that speak HTTP; NULL ends it. */
extern const struct provider *const providers[];
