/*
 * model: asks a model service, or the replay of one, for the next message. One call
 * streams one answer. Retries, keys and sockets are here and in http; the meaning of the
 * bytes is in the providers (provider.h), which are pure.
 *
 * A model is named `replay`, `replay:FILE`, `PROVIDER:NAME` with a provider of
 * provider.h's list, or plain NAME (openai-chat; a name may hold colons, as qwen3:8b
 * does). A plain NAME at Ollama's usual port on this machine (11434) is asked by Ollama's
 * own API.
 *
 * The provider writes the body (conversation -> request), http sends it, stream cuts
 * the answer into events, and the provider reads these into an answer. A try is
 * repeated where failure.h says that this may help. catalogue.h knows what a model
 * takes and costs; servers on this machine are asked (local.h).
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "model/answer.h"
#include "model/conversation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct catalogue;
struct model;
struct provider;

struct model_options {
	const char *name;     /* in a form above; NULL: the embedded replay */
	const char *base_url; /* like http://127.0.0.1:8080/v1; NULL: the provider's */
	const char *key;      /* of the service, or NULL; copied, wiped at model_close */
	/*
	 * Appends the key that the person keeps for the service at ORIGIN
	 * (http_url_origin) to KEY, or nothing. Called when `key` is NULL; may be NULL.
	 */
	void (*kept_key)(const char *origin, struct buf *key);
	struct str embedded; /* the script that plain `replay` plays (JSON, provider.h) */
	double temperature;  /* < 0: the service's default */
	/* Tokens for thinking before an answer, where the API takes a number; 0: none. */
	uint64_t thinking_budget;
	/*
	 * The most tokens of one answer, where the API must be told; 0: the catalogue's
	 * number, else the number that most models take.
	 */
	uint64_t max_output;
	/* the request ends after so long without a byte; 0: MODEL_IDLE_S */
	double idle_timeout_s;
	int retries; /* how often a question is repeated; < 0: MODEL_RETRIES */
	/* the known facts about models, borrowed for the model's life; NULL: none */
	const struct catalogue *catalogue;
};

enum {
	/* On a server without a GPU a large prompt takes minutes to its first token. */
	MODEL_IDLE_S = 300,
	/*
	 * Some servers send signs of life while they work. After so many times the idle
	 * timeout (half an hour), or after so many bytes that are only signs of life, the
	 * request ends.
	 */
	MODEL_STALL_IDLES = 6,
	MODEL_STALL_MAX = 64 << 20,
	/*
	 * The same number as in the official clients: enough for a short fault, not for
	 * an outage.
	 */
	MODEL_RETRIES = 2,
	/* The most bytes of one request. A context of ten million tokens has fewer. */
	MODEL_BODY_MAX = 64 << 20,
	/*
	 * When a service wants a longer pause, the person is told and the question ends.
	 */
	MODEL_WAIT_MAX_S = 60,
	/*
	 * The tokens of context that Ollama is asked for, if the model can have as many.
	 * Its documentation recommends this number for agents; its own default is 4,096
	 * on most machines.
	 */
	MODEL_CONTEXT_WISH = 65536,
	/* The longest key. Tokens of 4 KiB exist; no proxy takes a longer header. */
	MODEL_KEY_MAX = 8 << 10,
};

/*
 * ERR names an unknown provider, a replay that cannot be read or used, or a bad URL. An
 * empty base_url or key counts as none. No server is contacted yet.
 */
bool model_open(const struct model_options *options, struct model **model, struct err *err);
void model_close(struct model *model);
/*
 * Do now the first steps of the first question, without contacting any server: loading
 * libcurl and all its libraries takes milliseconds. Failures are not reported here; the
 * first question reports them.
 */
void model_prepare(struct model *model);
bool model_is_replay(const struct model *model);
const char *model_name(const struct model *model); /* for people */
/* The name without its provider, as in the catalogue; NULL for a replay. */
const char *model_bare_name(const struct model *model);

/*
 * Call it before the first question. Where a server makes as much room as a request asks
 * for (Ollama), decide how much, and append a sentence about it to NOTE; for other
 * servers do nothing. Takes LOCAL_CONTEXT_MS at most.
 */
void model_ready(struct model *model, struct buf *note);

/*
 * The number of tokens that a whole conversation may have; 0: not known. When the
 * catalogue does not know it, a server on this machine is asked (within LOCAL_CONTEXT_MS
 * of model/local.h), once and not before the first model_ask, so that no start waits for
 * it.
 */
uint64_t model_context(struct model *model);
/* Is it known that the model takes pictures? Others are sent texts only. */
bool model_sees(const struct model *model);
/* Will the price of an answer be known? */
bool model_is_priced(const struct model *model);

/* Can the service search the web by itself, as far as its API says? */
bool model_searches(const struct model *model);
/* Call EACH with the pages that MESSAGE, an answer of MODEL, is from; some may come twice. */
void model_sources(const struct model *model, const struct message *message,
		   void (*each)(void *context, struct str url, struct str title),
		   void *context);

/*
 * The environment variable that has the key for the service of NAME (as in
 * model_options). NULL for a replay, and for a name that model_open will refuse.
 */
const char *model_key_variable(const char *name);
/* Does the service of NAME, at its own address, answer only with a key? */
bool model_needs_key(const char *name);
/* The own address of the service of NAME; NULL as model_key_variable. */
const char *model_home(const char *name);
/* May KEY be sent: is it 1 to MODEL_KEY_MAX bytes without blanks and control characters? */
bool model_key_fits(struct str key);

/*
 * Append the model's next message to INTO (a conversation, usually the request's own: the
 * request is read before anything is appended). Nothing is appended on failure. ERR.code
 * is ECANCELED after stop_fd (within 100 ms), ETIMEDOUT, EPROTO (an answer that cannot be
 * understood: HTML, a torn stream, nothing; a replay that does not fit), ENODATA (a whole
 * answer in which the model says nothing and asks for nothing), EACCES (401, 403), EBUSY
 * (429 after the retries), EAGAIN (it is down, or not reached, after the retries), E2BIG
 * (context overflow), else EIO; the text says what the
 * service said (escaped, at most 500 bytes) and what to do. A call whose name is empty is
 * an EPROTO; arguments are not judged here. Run the calls in the message whatever FINISH
 * says (answer.h). FINISH and USAGE may be NULL.
 */
bool model_ask(struct model *model, const struct model_request *request,
	       const struct model_sink *sink, struct conversation *into,
	       enum model_finish *finish, struct model_usage *usage, struct err *err);

/*
 * How long a model thinks before it answers, for people: a name for a thinking_budget,
 * where the API and the model (catalogue.h) have such a setting.
 */
struct model_level {
	const char *name, *title;
	uint64_t budget; /* 0: that of the role, or the service's own */
};
/* "default" first; {0} ends them. */
extern const struct model_level model_levels[];
const struct model_level *model_level_find(const char *name); /* NULL: none */
bool model_has_levels(const struct model *model);

/* The meaning of a model's name and base URL. */

struct model_name {
	const struct provider *provider; /* NULL: a replay */
	/* the model's name at the provider, or the replay's file; a part of the name */
	struct str rest;
	/* for people and records; it can be parsed again with the same result */
	struct str shown;
	bool is_plain; /* the name has no provider, so openai-chat is meant */
};

/* A NAME that is NULL or empty means the embedded replay. */
bool model_name_parse(const char *name, struct model_name *parsed, struct err *err);
