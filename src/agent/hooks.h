/*
 * hooks: what the loop asks of hooks, programs of a person or a project that are told what
 * an agent is about to do and may refuse it, change it or add to it. The loop knows the
 * moments and the answers; extend/hooks.h has the programs and their words. A front may ask
 * with the same function whether a call may start (front/editor.c: a file with changes that
 * are not saved).
 *
 * A hook never opens anything: a changed call is validated and judged by the policy as if
 * the model had made it, and HOOK_ALLOW only answers a question that the policy puts.
 *
 * A new moment is one row in hooks.c, one call of agent_hooks_ask, and a row of the table in
 * docs/hooks.md.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "tool/tool.h"

#include <stdbool.h>

struct agent;
struct conversation;
struct session;
struct tool_result;
struct turn;

enum hook_kind {
	HOOK_SESSION_BEGAN,
	HOOK_SESSION_ENDED,
	HOOK_PROMPT,        /* a prompt of the person, before it joins the conversation */
	HOOK_BEFORE_CALL,   /* before a call of the model is judged */
	HOOK_PERMISSION,    /* the policy wants a person to decide about a call */
	HOOK_AFTER_CALL,    /* a call has ended well … */
	HOOK_AFTER_FAILURE, /* … or not */
	HOOK_STOP,          /* the model has ended its turn … */
	HOOK_DELEGATE_STOP, /* … in the process of a delegate */
	HOOK_COMPACTION,    /* before the conversation is summarised */
	HOOK_NOTIFICATION,  /* a person is asked, or is waited for */
	HOOK_KINDS,
};
/* The names of the moments in the files of hooks and in events: "PreToolUse". */
const char *hook_kind_name(enum hook_kind kind);
bool hook_kind_parse(const char *name, enum hook_kind *kind);

/* In the order in which one beats another. */
enum hook_decision { HOOK_SILENT, HOOK_ALLOW, HOOK_ASK, HOOK_DENY };
const char *hook_decision_name(enum hook_decision decision); /* "silent", "deny", … */

/* All members are borrowed, and NULL where the kind has no such thing. */
struct hook_moment {
	enum hook_kind kind;
	/*
	 * The word for the circumstance: how a session began or ended, what a compaction was
	 * triggered by, the type of a notification.
	 */
	const char *word;
	/*
	 * The prompt; the last words of the model; what a summary must keep; the message of a
	 * notification.
	 */
	const char *text;
	const char *call; /* the id of the call; its tool, arguments and result */
	const struct tool *tool;
	const struct value *arguments;
	const struct tool_result *result;
	bool outside; /* HOOK_PERMISSION: for something that leaves the cell */
	bool again;   /* HOOK_STOP: a hook has made this turn go on before */
	/* filled by agent_hooks_ask */
	struct session *session;
	const char *session_id, *agent_name;
	const struct conversation *conversation;
};

struct hook_answer {
	enum hook_decision decision;
	bool ends; /* the turn shall end */
	/* The hook that decided, in words. Empty: a front did, and nothing is recorded. */
	struct buf by;
	/* why it refuses, asks, or ends the turn */
	struct buf reason;
	struct buf context;      /* for the model; or empty */
	struct buf told;         /* lines for the person; or empty */
	struct value *arguments; /* the call gets these instead; owned. NULL: its own */
	/* HOOK_BEFORE_CALL: the model reads this instead of a result that is done; or empty */
	struct buf shown;
};
void hook_answer_init(struct hook_answer *answer);
void hook_answer_fini(struct hook_answer *answer);

/* One that is asked, and the one that is asked behind it. */
struct agent_hooks {
	/* Add to ANSWER, which hook_answer_init has made. */
	void (*ask)(void *context, const struct hook_moment *moment,
		    struct hook_answer *answer);
	void *context;
	const struct agent_hooks *next; /* or NULL */
};

/*
 * Ask all hooks of AGENT until one refuses; each is asked with the arguments that the one
 * before it made. ANSWER is initialised. What a hook decided, changed or added is recorded
 * (EVENT_HOOK) and what it said is told to the person (EVENT_NOTICE). False: that could not
 * be recorded.
 */
bool agent_hooks_ask(struct agent *agent, struct hook_moment *moment,
		     struct hook_answer *answer, struct err *err);

/*
 * The prompt of TURN, or all results of a message, have joined the conversation: what hooks
 * have added to them joins it behind (EVENT_HOOK).
 */
bool agent_hooks_flush(struct agent *agent, struct turn *turn, struct err *err);
