/*
 * remote: one MCP server whose tools are used here: the client's side of a conversation,
 * in both eras, without a transport: lines in, lines out. The server is a stranger: its
 * messages are bounded, and a message that fits no question of ours is dropped.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "process/loop.h"
#include "session/session.h"

#include <stdbool.h>

struct remote;

/* The requests that calls of ours make at a server. */
enum remote_kind {
	REMOTE_TOOL,      /* tools/call */
	REMOTE_RESOURCE,  /* resources/read */
	REMOTE_RESOURCES, /* resources/list, its first page */
	REMOTE_PROMPT,    /* prompts/get */
};

/* The questions of a server that somebody can answer. */
enum remote_asks {
	REMOTE_ASKS_FORMS = 1,     /* a person, who fills in a form */
	REMOTE_ASKS_ADDRESSES = 2, /* a person, who opens an address */
	REMOTE_ASKS_MODEL = 4, /* the agent's model, when a person agrees (sampling.h) */
};

struct remote_options {
	struct loop *loop;
	const char *version; /* of this program */
	/* Send LINE, which ends with a line end, to the server. */
	void (*send)(void *context, struct str line);
	/*
	 * WHY NULL: the server's tools are known, at the start or after a new list. Else
	 * the server cannot be used, or no longer.
	 */
	void (*settled)(void *context, const char *why);
	/*
	 * May the server's tool NAME still be called after the call has waited for the
	 * list? NULL: all tools may be called.
	 */
	bool (*may_call)(void *context, const char *name);
	void *context;
	/* Seconds from the server's start to its list of tools; 0: REMOTE_START_S. */
	double start_s;
	/*
	 * The server, or a bridge to it, answers each request, so the first question waits
	 * for its answer. Else a server that is silent is taken for one of the older era.
	 */
	bool answers;
	/*
	 * Offer the server to ask the caller of a call by running_ask: of enum remote_asks.
	 */
	unsigned asks;
};

/* NAME is the server's name in sentences. */
struct remote *remote_new(const struct remote_options *options, const char *name);
/* Waiting calls are not ended: call remote_lost first. */
void remote_free(struct remote *remote);

/*
 * Find out the server's era, shake hands and list its tools. `settled` is called
 * afterwards.
 */
void remote_begin(struct remote *remote);
/* Take a LINE that the server has sent, without its line end. */
void remote_line(struct remote *remote, struct str line);
/* The connection is lost: all open calls fail with WHY, a sentence. */
void remote_lost(struct remote *remote, const char *why);

/* After remote_lost, back to the state before remote_begin: the server starts again. */
void remote_reset(struct remote *remote);

bool remote_is_ready(const struct remote *remote);
/* Was it given up because it did not answer at its start? */
bool remote_was_silent(const struct remote *remote);
/* Has the server answered a call since remote_begin? */
bool remote_has_served(const struct remote *remote);
/* Does the server speak the newer era? Only when ready. */
bool remote_is_modern(const struct remote *remote);
/*
 * The tools as the server listed them: an array of objects, each with a name. Only when
 * ready.
 */
const struct value *remote_tools(const struct remote *remote);

/* Does the server say that it has resources? It stays true when the server is lost. */
bool remote_has_resources(const struct remote *remote);
/* The prompts as the server listed them, without those whose names cannot be typed. */
const struct value *remote_prompts(const struct remote *remote);

/*
 * Carry out RUNNING by a request of KIND, immediately or when the server is ready. NAME: that of
 * the tool or the prompt, or the address of the resource. A prompt gets the member `arguments`
 * of the call's arguments. Afterwards running_end is called.
 */
void remote_call(struct remote *remote, enum remote_kind kind, const char *name,
		 struct running *running);
/* Send ANSWER to the question that the server asked during RUNNING. */
void remote_answer(struct remote *remote, const struct running *running,
		   const struct value *answer);
/*
 * Nobody waits for RUNNING any more. Its call is cancelled, and RUNNING itself is not
 * touched.
 */
void remote_stop(struct remote *remote, const struct running *running);
