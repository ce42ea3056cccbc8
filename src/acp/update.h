/*
 * update: what the Agent Client Protocol, version 1, shows of a session: its events
 * (docs/events.md) become the updates of `session/update`, and a question for approval
 * becomes the parameters of `session/request_permission`. A session that is loaded gives
 * its kept events, and the same updates are made of them.
 *
 * A call is first a `tool_call`, then each change of it is a `tool_call_update`. Fragments
 * of words and of output are joined and sent some times a second: the caller gives the
 * time and calls acp_update_flush when it is due.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

struct acp_update;

struct acp_update_options {
	const char *workspace; /* copied; paths of the updates are absolute */
	bool notices;          /* the client takes the updates `notice` … */
	bool compactions;      /* … and `compaction_update` */
	bool titled;           /* the session had a prompt before, which is its title */
	/* Called with each update, in their order. */
	void (*send)(void *context, struct value *take_update);
	void *context;
};

struct acp_update *acp_update_new(const struct acp_update_options *options);
void acp_update_free(struct acp_update *update); /* NULL is fine */

/*
 * Take EVENT, an event as an object. KEPT: it is an old one, from the journal. Lines that
 * are no events change nothing.
 */
void acp_update_event(struct acp_update *update, const struct value *event, bool kept,
		      int64_t now_ms);
/* The tokens that the model takes, for `usage_update`; 0: not known. */
void acp_update_set_context(struct acp_update *update, uint64_t tokens);

/* Send TEXT, Markdown, as a message of the agent: the program itself says it. */
void acp_update_say(struct acp_update *update, struct str text);

/* Send SENTENCE of the program itself, a warning. */
void acp_update_tell(struct acp_update *update, const char *sentence);

/* When acp_update_flush is due (monotonic); CLOCK_NEVER: nothing waits. */
int64_t acp_update_due(const struct acp_update *update);
void acp_update_flush(struct acp_update *update, int64_t now_ms);
/*
 * The turn is over: send what waits; a call that has not ended has failed, because nothing
 * of it will come any more.
 */
void acp_update_settle(struct acp_update *update);

/* Is EVENT, an EVENT_QUESTION, about a plan? */
bool acp_update_is_plan(const struct value *event);
/*
 * The members `toolCall` and `options` for EVENT, an EVENT_QUESTION about a plan. The ids of
 * the options are modes (policy/policy.h): the one in which it is carried out, or `plan`. The
 * caller frees it.
 */
struct value *acp_update_plan(struct acp_update *update, const struct value *event);

/*
 * The members `toolCall` and `options` for EVENT, an EVENT_APPROVAL_WANTED whose call has
 * been announced. The ids of the options are the words of an answer (session/approval.h).
 * The caller frees it.
 */
struct value *acp_update_permission(struct acp_update *update, const struct value *event);
