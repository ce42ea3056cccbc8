/*
 * remote: one MCP server whose tools are used here: the client's side of a conversation, in both
 * eras, without a transport: lines in, lines out. The server is a stranger: what it sends is
 * bounded, and what fits no question of ours is dropped.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "process/loop.h"
#include "session/session.h"

#include <stdbool.h>

struct remote;

struct remote_options {
	struct loop *loop;
	const char *version; /* of this program */
	/* LINE, which ends with its line end, goes to the server. */
	void (*send)(void *context, struct str line);
	/*
	 * Its tools are known (WHY NULL), at the beginning and whenever it has listed them anew; or
	 * it cannot be used, or not any more.
	 */
	void (*settled)(void *context, const char *why);
	/* May its tool NAME, which waited for its list, still be called? NULL: any may. */
	bool (*may_call)(void *context, const char *name);
	void *context;
	/* From its begin to its list of tools; 0: REMOTE_START_S. */
	double start_s;
	/* Offer it to ask the caller of a call (forms and addresses), by running_ask. */
	bool asks;
};

/* NAME is for sentences. */
struct remote *remote_new(const struct remote_options *options, const char *name);
/* Calls that wait are left as they are: remote_lost first. */
void remote_free(struct remote *remote);

/* Find out its era, shake hands and list its tools; `settled` follows. */
void remote_begin(struct remote *remote);
/* A line that it has sent, without its line end. */
void remote_line(struct remote *remote, struct str line);
/* The connection is lost: all open calls fail with WHY, a sentence. */
void remote_lost(struct remote *remote, const char *why);

/* After remote_lost, back to the state before remote_begin: the server starts again. */
void remote_reset(struct remote *remote);

bool remote_is_ready(const struct remote *remote);
/* Has it answered a call since it began? */
bool remote_has_served(const struct remote *remote);
/* As it listed them: an array of objects, each with a name. Only when ready. */
const struct value *remote_tools(const struct remote *remote);

/* Carry out RUNNING by its tool NAME, now or when it is ready; running_end follows. */
void remote_call(struct remote *remote, const char *name, struct running *running);
/* RUNNING goes on as WORK. */
void remote_move(struct remote *remote, const struct running *running, struct running *work);
/* Send ANSWER to the question that the server asked during RUNNING. */
void remote_answer(struct remote *remote, const struct running *running,
		   const struct value *answer);
/* Nobody waits for RUNNING any more, which is not touched. */
void remote_stop(struct remote *remote, const struct running *running);
