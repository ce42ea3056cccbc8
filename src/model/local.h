/*
 * local: model servers on this machine: which program answers at an address, which models
 * it has, how much they take in, whether they call tools; all of this as the server
 * itself says. All addresses are asked at the same time. Whatever a server does (an
 * endless answer, garbage, silence, a redirect), it costs no more than the time and the
 * bytes below.
 *
 * The requests: llama.cpp's /props, LM Studio's /api/v0/models, Ollama's /api/tags,
 * /api/ps and /api/show, and /v1/models, which vLLM and all others have.
 *
 * A server that is to be recognised is a question and a port in local.c. It comes with
 * tests/fake/local_server.py, tests/fronts/models_test.py and a seed in
 * tests/fuzz/corpus/local_answer/.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "model/catalogue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http;

enum local_kind {
	LOCAL_NOTHING, /* no answer, or the answer of no model server */
	LOCAL_LLAMA_CPP,
	LOCAL_OLLAMA,
	LOCAL_LM_STUDIO,
	LOCAL_VLLM,
	LOCAL_OTHER, /* it lists models in the form of the chat completions API */
};
const char *local_kind_name(enum local_kind kind); /* "llama.cpp"; "" for LOCAL_NOTHING */

struct local_model {
	char *name;
	uint64_t context;     /* tokens of context as it runs now; 0: not known */
	uint64_t context_max; /* tokens of context that it was made for; 0: not known */
	enum catalogue_answer tools, thinking, sight;
	bool is_loaded;
};

struct local_server {
	char *url; /* "http://127.0.0.1:8080": scheme, host and port */
	enum local_kind kind;
	bool is_loading; /* llama.cpp: it is loading its model, ask again later */
	bool is_locked;  /* it wants a key */
	struct local_model *models;
	size_t model_count;
	bool has_more; /* there are more models than LOCAL_MODELS_MAX */
};

enum {
	/* An idle server on this machine answers within a few milliseconds. */
	LOCAL_PROBE_MS = 150,
	/* The same in the middle of a run, when a person may cancel. */
	LOCAL_CONTEXT_MS = 100,
	LOCAL_ANSWER_MAX = 256 << 10, /* bytes of one answer; a longer one is dropped */
	LOCAL_MODELS_MAX = 64,        /* of one server */
	LOCAL_NAME_MAX = 256,         /* bytes of a model's name */
	LOCAL_SERVERS_MAX = 16,
	LOCAL_URL_MAX = 512,
};

/*
 * The default addresses of the known servers: llama.cpp, Ollama, LM Studio, vLLM;
 * NULL-ended.
 */
extern const char *const local_urls[];

void local_fini(struct local_server *server);

/*
 * Fill MODEL with the facts that the server at URL gives about its model NAME. Ollama's
 * ":latest" may be left out; the only model of llama.cpp has any name. The name in MODEL
 * is NULL. False when the server gives no fact about the model.
 */
bool local_ask(struct http *http, const char *url, const char *name, int limit_ms,
	       struct local_model *model);

/*
 * The servers that answer now: somebody without a configuration is told how to get a model. Only
 * addresses on this machine and those that the person gave are contacted.
 */
struct local_found {
	struct local_server servers[LOCAL_SERVERS_MAX];
	size_t count;
};

/*
 * Ask the servers at URLS, all at the same time and within LIMIT_MS. URLS is NULL-ended;
 * when it is NULL or empty, ask those of local_urls, and the one of GLOVEBOX_BASE_URL
 * when it is on this machine. ERR: an invalid URL, too many URLs, no libcurl. local_found_fini
 * in either case.
 */
bool local_look(struct local_found *found, const char *const *urls, int limit_ms,
		struct err *err);
void local_found_fini(struct local_found *found);

/*
 * Append a sentence to OUT: which servers on this machine answer with which models, or
 * none.
 */
void local_advise(const struct local_found *found, struct buf *out);

/*
 * Reads a model server's answers about itself. Pure; the answers are not trusted. For
 * local.c and its tests.
 */

/*
 * In the order in which answers must be read: the first answer that fits names the
 * program.
 */
enum local_question {
	LOCAL_ASK_PROPS,   /* llama.cpp's GET /props */
	LOCAL_ASK_STUDIO,  /* LM Studio's GET /api/v0/models */
	LOCAL_ASK_TAGS,    /* Ollama's GET /api/tags */
	LOCAL_ASK_MODELS,  /* GET /v1/models, which all have */
	LOCAL_ASK_RUNNING, /* Ollama's GET /api/ps */
	LOCAL_QUESTIONS,
};

/*
 * Read BODY, which answered QUESTION with STATUS. A body that does not fit the question
 * changes nothing.
 */
void local_read(struct local_server *server, enum local_question question, long status,
		struct str body);

/* BODY is Ollama's answer to POST /api/show for MODEL. */
void local_read_details(struct local_model *model, struct str body);

/* Leave out models that cannot talk (Ollama's details say so). Call it last. */
void local_drop_mute(struct local_server *server);
