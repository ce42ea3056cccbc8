/*
 * model: ask a model service, or the replay of one, for the next message. One call
 * streams one answer. Retries, keys and sockets are here and in http; what the bytes mean
 * is in the providers (provider.h), which are pure.
 *
 * A model is named `replay`, `replay:FILE`, `openai-chat:NAME` or plain NAME
 * (openai-chat; a name may hold colons, as qwen3:8b does).
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "model/conversation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model;

struct model_options {
	const char *name;      /* as above; NULL: the embedded replay */
	const char *base_url;  /* as http://127.0.0.1:8080/v1; NULL: the provider's */
	const char *key;       /* bearer token or NULL; copied, wiped at model_close */
	struct str embedded;   /* the script that plain `replay` plays (JSON, replay.h) */
	double temperature;    /* < 0: the service's default */
	double idle_timeout_s; /* no byte for so long ends the request; 0: MODEL_IDLE_S */
	int retries;           /* further tries; < 0: MODEL_RETRIES */
};

enum {
	/* A large prompt on a CPU-only server takes minutes to its first token. */
	MODEL_IDLE_S = 300,
	/* As the official clients do: outlives a hiccup, not an outage. */
	MODEL_RETRIES = 2,
	/*
	 * Bytes of one answer kept; over it the answer is refused. No model writes as
	 * much.
	 */
	MODEL_ANSWER_MAX = 16 << 20,
	/* Bytes of one request: a context of ten million tokens has less. */
	MODEL_BODY_MAX = 64 << 20,
	/* A service that wants a longer pause is not waited for: the person is told. */
	MODEL_WAIT_MAX_S = 60,
};

/*
 * ERR names an unknown provider, an unreadable or unfitting replay, a bad URL. An empty
 * base_url or key is none. Nothing is contacted yet.
 */
bool model_open(const struct model_options *options, struct model **model, struct err *err);
void model_close(struct model *model);
bool model_is_replay(const struct model *model);
const char *model_name(const struct model *model); /* as shown to people */

struct model_usage {
	uint64_t input, output, cached; /* tokens; 0 when the service does not say */
};

enum model_finish {
	MODEL_FINISH_STOP,
	MODEL_FINISH_CALLS,
	MODEL_FINISH_LENGTH,  /* cut at the token limit */
	MODEL_FINISH_REFUSED, /* content filter or refusal */
};

/* What streams while the answer grows. Every callback may be NULL. */
struct model_sink {
	void *context;
	void (*text)(void *context, struct str fragment);
	void (*thinking)(void *context, struct str fragment);
	void (*call)(void *context, const char *tool); /* a call's name is known */
	/* What streamed so far is void: the answer begins again after WAIT_S. */
	void (*retry)(void *context, const char *why, double wait_s);
};

struct model_tool {
	const char *name, *description;
	const struct value *schema; /* borrowed for the call */
};

struct model_request {
	const struct conversation *conversation;
	const struct model_tool *tools;
	size_t tool_count;
	int stop_fd; /* readable: the person cancelled; -1: none */
};

/*
 * Append the model's next message to INTO (a conversation, usually the request's own: the
 * request is read before anything is appended). Nothing is appended on failure. ERR.code
 * is ECANCELED after stop_fd (within 100 ms), ETIMEDOUT, EPROTO (an answer that cannot be
 * understood: HTML, a torn stream, nothing; a replay that does not fit), ENODATA (a whole
 * answer in which the model says nothing and asks for nothing), EACCES (401, 403), EBUSY
 * (429 after the retries), E2BIG (context overflow), else EIO; the text says what the
 * service said (escaped, at most 500 bytes) and what to do. A call whose name is empty is
 * an EPROTO; arguments are not judged here. Run the calls in the message whatever FINISH
 * says (answer.h). FINISH and USAGE may be NULL.
 */
bool model_ask(struct model *model, const struct model_request *request,
	       const struct model_sink *sink, struct conversation *into,
	       enum model_finish *finish, struct model_usage *usage, struct err *err);
