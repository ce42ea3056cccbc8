/*
 * lsp_server: one language server: its program in the cell of a session, its start, the questions
 * to it and its end. What is said about files is the owner's (lsp.h).
 *
 * The program runs as those of MCP servers do (session/hosted.h). Its worker ends it when it was not
 * used for long, whatever the front waits for. A program that ends by itself, answers nothing when it
 * starts, or writes what cannot be read has crashed, and is started again at the next use; after
 * LSP_CRASHES_MAX crashes, or where the program cannot be started at all, it is off for good.
 */
#pragma once

#include "base/value.h"
#include "process/loop.h"
#include "session/session.h"

#include <stdbool.h>
#include <stdint.h>

struct lsp_server;

enum {
	LSP_CRASHES_MAX = 3,
	LSP_START_MS = 20000,
	LSP_ASKED_MAX = 32, /* questions at the same time */
};

enum lsp_state {
	LSP_OFF,      /* not started, or ended */
	LSP_STARTING, /* its answer to `initialize` is awaited */
	LSP_READY,
	LSP_BROKEN, /* never started again */
};

struct lsp_server_options {
	const char *name;
	const struct value *command; /* the program and its arguments */
	double idle_s; /* the program ends when it was not used for so long */
	const char *workspace;
	void (*ready)(void *owner);
	/* The server has published findings about a file. */
	void (*published)(void *owner, const struct value *params);
	/*
	 * The server has ended, for the reason in the sentence WHY: it knows no file any more. All
	 * questions have been answered.
	 */
	void (*ended)(void *owner, const char *why);
	void *owner;
};

/* All members of OPTIONS are borrowed for the life of the server. */
struct lsp_server *lsp_server_new(const struct lsp_server_options *options);
void lsp_server_free(struct lsp_server *server);

/*
 * The server is to be used: start its program in the cell of SESSION, which lives until
 * lsp_server_stop, unless it runs. Its time without use begins anew.
 */
void lsp_server_start(struct lsp_server *server, struct session *session);
/* End the program, which is no crash. `ended` is not called. */
void lsp_server_stop(struct lsp_server *server);

enum lsp_state lsp_server_state(const struct lsp_server *server);
/* Why the server is off for good: a sentence; NULL before. */
const char *lsp_server_trouble(const struct lsp_server *server);
/* Does it count columns in bytes? Only when ready. */
bool lsp_server_in_bytes(const struct lsp_server *server);

/* Send a notification. Only when ready. */
void lsp_server_tell(struct lsp_server *server, const char *method,
		     struct value *take_params);
/*
 * Send a request. ANSWERED is called once: with the result, or with NULL and the sentence WHY. False:
 * too many are open, and it is not called. Only when ready.
 */
bool lsp_server_ask(struct lsp_server *server, const char *method, struct value *take_params,
		    void (*answered)(void *context, const struct value *result,
				     const char *why),
		    void *context);
/* The questions of CONTEXT have no receiver any more. */
void lsp_server_forget(struct lsp_server *server, const void *context);
