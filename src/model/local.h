/*
 * local: model servers on this machine: which program answers at an address, which
 * models it has, how much they take in, whether they call tools; all of it as the server
 * itself says. All addresses are asked at once, and whatever a server does (endless,
 * garbage, slow, a redirect) it costs no more than the time and the bytes below.
 *
 * The requests: llama.cpp's /props, LM Studio's /api/v0/models, Ollama's /api/tags,
 * /api/ps and /api/show, and /v1/models, which vLLM and all others have.
 *
 * A server that is to be recognised is a question and a port in local.c. It comes with
 * tests/fake/local_server.py, tests/fronts/models_test.py and a seed in
 * tests/fuzz/corpus/local_answer/.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "model/catalogue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http;

enum local_kind {
	LOCAL_NOTHING, /* nobody answered, or no model server */
	LOCAL_LLAMA_CPP,
	LOCAL_OLLAMA,
	LOCAL_LM_STUDIO,
	LOCAL_VLLM,
	LOCAL_OTHER, /* it lists models as the chat completions API has them */
};
const char *local_kind_name(enum local_kind kind); /* "llama.cpp"; "" for nothing */

struct local_model {
	char *name;
	uint64_t context;     /* tokens that it takes as it runs now; 0: not known */
	uint64_t context_max; /* tokens that it was made for; 0: not known */
	enum catalogue_answer tools, thinking;
	bool is_loaded;
};

struct local_server {
	char *url; /* "http://127.0.0.1:8080": scheme, host and port */
	enum local_kind kind;
	bool is_loading; /* llama.cpp: it reads its model, ask again later */
	bool is_locked;  /* it wants a key */
	struct local_model *models;
	size_t model_count;
	bool has_more; /* models over LOCAL_MODELS_MAX */
};

enum {
	/* A server on this machine that has nothing to compute answers in a few. */
	LOCAL_PROBE_MS = 150,
	/* In the middle of a run, when a person may cancel. */
	LOCAL_CONTEXT_MS = 100,
	LOCAL_ANSWER_MAX = 256 << 10, /* bytes of one answer; a longer one is none */
	LOCAL_MODELS_MAX = 64,        /* of one server */
	LOCAL_NAME_MAX = 256,         /* bytes of a model's name */
	LOCAL_SERVERS_MAX = 16,
	LOCAL_URL_MAX = 512,
};

/*
 * Where the servers we know listen unless told: llama.cpp, Ollama, LM Studio, vLLM; NULL
 * ends it.
 */
extern const char *const local_urls[];

/*
 * SERVER is one at URL ("http://host:port" with or without a path, which is left out).
 * ERR: no such URL. local_fini in either case.
 */
bool local_init(struct local_server *server, const char *url, struct err *err);
void local_fini(struct local_server *server);

/*
 * Ask all COUNT servers (at most LOCAL_SERVERS_MAX) at the same time, and stop after
 * LIMIT_MS. ONLY: ask for the details of this model only; NULL: of all models.
 */
void local_probe(struct http *http, struct local_server *servers, size_t count,
		 const char *only, int limit_ms);

/*
 * Fill MODEL with what the server at URL says of its model NAME (Ollama's ":latest" may be
 * left out; llama.cpp's only one has any name); the name in MODEL is NULL. It is false when
 * the server says nothing of that model.
 */
bool local_ask(struct http *http, const char *url, const char *name, int limit_ms,
	       struct local_model *model);

/*
 * What a model server's own answers say of it. Pure; the answers are foreign bytes. For
 * local.c and its tests.
 */

/* In the order in which answers are to be read: the first that fits names the program. */
enum local_question {
	LOCAL_ASK_PROPS,   /* llama.cpp's GET /props */
	LOCAL_ASK_STUDIO,  /* LM Studio's GET /api/v0/models */
	LOCAL_ASK_TAGS,    /* Ollama's GET /api/tags */
	LOCAL_ASK_MODELS,  /* GET /v1/models, which all have */
	LOCAL_ASK_RUNNING, /* Ollama's GET /api/ps */
	LOCAL_QUESTIONS,
};

/* BODY answered QUESTION with STATUS. What does not fit says nothing. */
void local_read(struct local_server *server, enum local_question question, long status,
		struct str body);

/* BODY is Ollama's answer to POST /api/show for MODEL. */
void local_read_details(struct local_model *model, struct str body);

/* Leave out what cannot talk (Ollama says so in the details), and do so last. */
void local_drop_mute(struct local_server *server);
