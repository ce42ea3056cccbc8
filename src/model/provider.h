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
#include "base/str.h"
#include "model/answer.h"
#include "model/conversation.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The options that a model was opened with (model_options), as far as a request's body has
 * them.
 */
struct provider_settings {
	const char *model;
	double temperature;                   /* < 0: not set */
	uint64_t thinking_budget, max_output; /* 0: not set */
	/*
	 * the most tokens that this one request may have answered; 0: only max_output
	 * holds
	 */
	uint64_t answer_max;
	uint64_t context; /* tokens that the server must make room for; 0: not set */
	bool sees; /* the model takes pictures; without it only their texts are sent */
};

struct provider {
	const char *name;     /* "openai-chat" */
	const char *base_url; /* used when the person gives no other */
	/*
	 * Appended to the base URL: "/chat/completions". A "/v1" at its beginning is left
	 * out when the base URL ends in one, because people write both forms.
	 */
	const char *path;
	const char *key_name;   /* the environment variable with the key */
	const char *key_header; /* the text before the key: "Authorization: Bearer " */
	/* further lines of each request, NULL-ended; or NULL */
	const char *const *headers;
	bool streams_lines; /* one JSON object a line instead of server-sent events */
	/* its requests say how long a model that thinks is to think */
	bool takes_thinking;
	/*
	 * Its service can search the web (model_request.searches): call EACH with the pages
	 * that PART of an answer names. NULL: it cannot.
	 */
	void (*sources)(const struct part *part,
			void (*each)(void *context, struct str url, struct str title),
			void *context);
	/* its server makes as much room for context as a request asks for */
	bool takes_context;
	/*
	 * Some servers with this API (llama.cpp) call an answer complete although it was
	 * cut for lack of room.
	 */
	bool may_hide_cut;
	/* Write the request body. False (E2BIG) at the limit of BODY. */
	bool (*request)(const struct provider_settings *settings,
			const struct model_request *request, struct buf *body,
			struct err *err);
	/*
	 * Take one server-sent event, or one line (without a name), with complete DATA.
	 * *END: the stream says that it is over. Codes of ERR: failure.h.
	 */
	bool (*event)(struct answer *answer, struct str name, struct str data, bool *end,
		      struct err *err);
	/* A plain JSON answer (some servers do not stream). */
	bool (*whole)(struct answer *answer, struct str body, struct err *err);
	/*
	 * The answer is complete: combine the parts that could only be collected. May be
	 * NULL.
	 */
	void (*done)(struct answer *answer);
	/* Append the message inside an error body to OUT. False when there is none. */
	bool (*error)(struct str body, struct buf *out);
};

/* Each provider of the table by its name: anthropic_provider. */
#define PROVIDER(name, file) extern const struct provider name##_provider;
#include "model/providers.def"
#undef PROVIDER
/* All providers that speak HTTP; NULL ends it. */
extern const struct provider *const providers[];

/*
 * replay: a model that says what a script tells it. The tools are real; only the model's
 * words are recorded. The script is JSON (comments allowed):
 *
 *   {"name": "demo",
 *    "turns": [
 *      {"thinking": "…", "text": "I look around first.",
 *       "calls": [{"tool": "list_files", "arguments": {"path": "."}}],
 *       "expect": [{"tool": "bash", "contains": "FAIL", "status": "done"}]},
 *      {"text": "Done.", "delay_ms": 30}
 *    ]}
 *
 * `arguments` may be a string: then it goes out unchanged, valid JSON or not. `expect` is
 * compared with the results of the turn before, each row with the next result that fits,
 * so results that no row asks for are skipped; a result's `status` is known here only as
 * `done` or not. When a row fits no result, the replay ends with an error that names the
 * script, the turn, the expected and the real result. `usage` may give tokens (`input`,
 * `output`, `cached`). `delay_ms` streams the text word by word at that pace (at most
 * REPLAY_DELAY_MAX_MS). A text may quote the newest prompt as ${prompt}. `repeat: true`
 * in the last turn plays that turn again for ever; else a question after the last turn is
 * an error that says so. When a conversation has answers already at its first question (a
 * resumed session), the replay skips as many turns.
 */

struct replay;

enum { REPLAY_SCRIPT_MAX = 4 << 20, REPLAY_DELAY_MAX_MS = 1000 };
/* NAME is for messages: the file's name or "embedded". */
bool replay_open(struct str script, const char *name, struct replay **replay,
		 struct err *err);
void replay_close(struct replay *replay);
/*
 * Play one turn into ANSWER. ERR: ECANCELED when stop_fd becomes readable (the turn is
 * then played again), EPROTO when the script does not fit.
 */
bool replay_ask(struct replay *replay, const struct model_request *request,
		struct answer *answer, struct err *err);
