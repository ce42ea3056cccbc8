/*
 * model: ask a model service, or the replay of one, for the next message. One call
 * streams one answer. Retries, keys and sockets are here and in http; what the bytes mean
 * is in the providers (provider.h), which are pure.
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
#include "model/conversation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct catalogue;
struct model;
struct provider;

struct model_options {
	const char *name;     /* as above; NULL: the embedded replay */
	const char *base_url; /* as http://127.0.0.1:8080/v1; NULL: the provider's */
	const char *key;      /* of the service, or NULL; copied, wiped at model_close */
	struct str embedded;  /* the script that plain `replay` plays (JSON, replay.h) */
	double temperature;   /* < 0: the service's default */
	/* Tokens to think with before an answer, where the API takes a number; 0: none. */
	uint64_t thinking_budget;
	/*
	 * Most tokens of one answer that the model can give, where the API must be told; 0:
	 * what the catalogue says, else what most models take.
	 */
	uint64_t max_output;
	double idle_timeout_s; /* no byte for so long ends the request; 0: MODEL_IDLE_S */
	int retries;           /* further tries; < 0: MODEL_RETRIES */
	/* what is known of models, borrowed for the model's life; NULL: nothing */
	const struct catalogue *catalogue;
};

enum {
	/* A large prompt on a CPU-only server takes minutes to its first token. */
	MODEL_IDLE_S = 300,
	/*
	 * Some servers send signs of life while they work. After so many times the idle timeout
	 * (half an hour) or so many bytes of these alone no answer is expected any more.
	 */
	MODEL_STALL_IDLES = 6,
	MODEL_STALL_MAX = 64 << 20,
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
	/*
	 * Tokens of context asked of Ollama, whose documents want as many for agents, where
	 * the model takes them: its own choice is 4,096 on most machines.
	 */
	MODEL_CONTEXT_WISH = 65536,
};

/*
 * ERR names an unknown provider, an unreadable or unfitting replay, a bad URL. An empty
 * base_url or key is none. Nothing is contacted yet.
 */
bool model_open(const struct model_options *options, struct model **model, struct err *err);
void model_close(struct model *model);
/*
 * Do now what the first question would begin with, without contacting anybody: libcurl, with all
 * that it brings, takes milliseconds to load. What fails is said by that question.
 */
void model_prepare(struct model *model);
bool model_is_replay(const struct model *model);
const char *model_name(const struct model *model); /* as shown to people */
/* Without its provider, as in the catalogue; NULL for a replay. */
const char *model_bare_name(const struct model *model);

/*
 * Before the first question: where a server makes as much room as it is asked for
 * (Ollama), settle how much that is, and append a sentence about it to NOTE; else nothing.
 * Takes LOCAL_CONTEXT_MS at most.
 */
void model_ready(struct model *model, struct buf *note);

/*
 * Tokens of a whole conversation that it takes; 0: not known. What the catalogue does not
 * know, a server on this machine is asked (within LOCAL_CONTEXT_MS of model/local.h), once
 * and not before the first model_ask: no start waits for it.
 */
uint64_t model_context(struct model *model);
/* Will the money of an answer be known? */
bool model_is_priced(const struct model *model);

/*
 * The environment's variable with the key of the service that NAME (as in model_options)
 * means; NULL for a replay and for what model_open will refuse.
 */
const char *model_key_variable(const char *name);
/* Is that service, unless a base URL is given, one that is only asked with a key? */
bool model_needs_key(const char *name);

/*
 * Tokens; 0 where the service does not say. Services differ in what they count where, and
 * providers translate: `input` is all that was sent and `output` all that came; the others
 * are parts of these.
 */
struct model_usage {
	uint64_t input, output;
	uint64_t cached;       /* of input: read from the service's cache */
	uint64_t cache_writes; /* of input: put into it, which some bill apart */
	uint64_t reasoning;    /* of output: thought */
	double money; /* US dollars; below 0: not known; a replay costs nothing */
};

enum model_finish {
	MODEL_FINISH_STOP,
	MODEL_FINISH_CALLS,
	MODEL_FINISH_LENGTH,  /* cut at the token limit */
	MODEL_FINISH_REFUSED, /* content filter or refusal */
	/*
	 * The service stopped in the middle of its own work: ask again with the answer as it
	 * is, and nothing after it. It may hold no words.
	 */
	MODEL_FINISH_PAUSED,
};

/* The callbacks of an answer while it streams. Every callback may be NULL. */
struct model_sink {
	void *context;
	void (*text)(void *context, struct str fragment);
	void (*thinking)(void *context, struct str fragment);
	void (*call)(void *context, const char *tool); /* a call's name is known */
	/* The request is out and its answer on the way; again with each further try. */
	void (*waiting)(void *context);
	/* The text that streamed so far is void: the answer begins again after WAIT_S. */
	void (*retry)(void *context, const char *why, double wait_s);
};

struct model_tool {
	const char *name, *description;
	const char *schema; /* as JSON text; NULL: it takes nothing */
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

/* What a model's name and base URL mean. */

struct model_name {
	const struct provider *provider; /* NULL: a replay */
	struct str rest;  /* the model's name there, or the replay's file; in the name */
	struct str shown; /* for people and records; parsed again it means the same */
	bool is_plain;    /* no provider was named: openai-chat */
};

/* NAME NULL or empty is the embedded replay. */
bool model_name_parse(const char *name, struct model_name *parsed, struct err *err);

/*
 * The URL to ask and its host (with port) for messages, both malloc'ed. BASE_URL NULL or
 * empty is the provider's. One with a user, a query or a fragment is refused: keys would
 * be in it.
 */
bool model_name_url(const struct provider *provider, const char *base_url, char **url,
		    char **host, struct err *err);

/* Scheme, host and port of such a URL, malloc'ed: "http://127.0.0.1:8080". */
bool model_name_origin(const char *base_url, char **origin, struct err *err);
