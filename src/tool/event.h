/*
 * event: one numbered record of what happened. The same records go to the screen, to
 * `--json`, and to the journal; resume is replay. Begin and end are never dropped, output
 * fragments may be merged or dropped under load.
 *
 * A new event is one row in event.c and a section in docs/events.md, which a test
 * requires. The screen (tui/screen.c) and front/verbs/sessions.c show it,
 * and agent/history.c says what it adds to a conversation.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

struct accounts;
struct tool_result;

enum event_kind {
	/* data: session, run, workspace, agent, model, mode, replay, level, unfiltered */
	EVENT_SESSION_BEGAN = 1,
	/*
	 * a later process goes on; text: a note about it for the model; data as in
	 * EVENT_SESSION_BEGAN
	 */
	EVENT_SESSION_RESUMED,
	/*
	 * text: instructions for agents in the project's files, or empty; data: files,
	 * skipped
	 */
	EVENT_INSTRUCTIONS,
	/*
	 * text: the user's message; data: agent, model, pictures (items of a result's
	 * content, each with a `text` that names it), attached (objects with `name` and `text`:
	 * files that the prompt names, commands of the user), refused (by a hook: the message
	 * does not join the conversation)
	 */
	EVENT_TURN_BEGAN,
	/*
	 * text: what the user said while a turn was under way; it joins the conversation; data:
	 * attached
	 */
	EVENT_STEERED,
	EVENT_TEXT,     /* text: a fragment of the model's words (screen only) */
	EVENT_THINKING, /* text: a fragment of its reasoning (screen only) */
	/*
	 * data: the model's whole message, as it joins the conversation; stored before
	 * its calls run
	 */
	EVENT_MESSAGE,
	EVENT_TOOL_BEGAN, /* call, tool; data: arguments, effects, folder */
	/* call, tool; text: a fragment; data: stream 1 or 2 (screen only) */
	EVENT_TOOL_OUTPUT,
	/*
	 * call, tool; text: a word on the progress, or empty; data: progress, total
	 * (screen only)
	 */
	EVENT_PROGRESS,
	EVENT_LOG, /* call, tool; text; data: level, logger (screen only) */
	/*
	 * call, tool; data: id, kind, request: the call waits for running_answer, which
	 * must come once for each question (screen only)
	 */
	EVENT_QUESTION,
	/*
	 * call, tool; data: session, agent, event_of: an event of the delegate that
	 * works on the call, or of a delegate below it; the delegate's own session has
	 * it, too (screen only)
	 */
	EVENT_CHILD,
	/*
	 * A delegate that wrote into a layer has landed it; data: see front/review/writer.h
	 * (screen only)
	 */
	EVENT_LANDED,
	/*
	 * call, tool; data: the result (tool_result_value), and `seen`: the session's
	 * new knowledge of files (session_recall)
	 */
	EVENT_TOOL_ENDED,
	/*
	 * call, tool; data: see session/approval.h; waits for running_answer or
	 * session_answer
	 */
	EVENT_APPROVAL_WANTED,
	EVENT_APPROVAL_GIVEN, /* call, tool; data: id, answer, by (session/approval.h) */
	/*
	 * call, tool (of a hook before or after a call); text: what a hook adds to the
	 * conversation, or empty; data: hook (agent/hooks.h), by, and of what it decided:
	 * decision, reason, ends, arguments
	 */
	EVENT_HOOK,
	EVENT_NOTICE, /* text: a sentence for the person (retries, limits, warnings) */
	/* text: what the model is told of it; data: mode (policy/policy.h) */
	EVENT_MODE_CHANGED,
	/*
	 * call; text: the note for the model, or empty; data: check ("syntax", or the
	 * name of a role's check), state (green, red, timed_out), file (of syntax),
	 * round, exit_code, seconds
	 */
	EVENT_CHECK_ENDED,
	/*
	 * the model is told the long results before event `from` in short from now on;
	 * data: from, over (bytes of the longest that stays), results, tokens (before)
	 */
	EVENT_SHORTENED,
	/*
	 * text: the older part of the conversation in the model's words, which replaces
	 * it from now on; data: from (number of the first event that is kept),
	 * pinned_max, tokens (before), usage, behind (what stands behind the summary),
	 * matters (what the person said of it)
	 */
	EVENT_COMPACTED,
	/*
	 * call, tool; text: the answer of the agent's model to what the server of the call
	 * wanted it to be asked, or, with empty text, a search of the model's service;
	 * data: model, asked (the question, as the person read it), finish, usage
	 */
	EVENT_SAMPLED,
	/*
	 * the conversation goes on from before event `from`, a turn_began; text: its prompt;
	 * data: from
	 */
	EVENT_REWOUND,
	EVENT_NAMED, /* text: the title that the user gave the session; empty: none */
	/*
	 * text: the style that the person has chosen, which joins the prompt; data: style, its
	 * name; both empty: none
	 */
	EVENT_STYLED,
	/*
	 * data: reason, iterations, usage (tokens, money), seconds, level, changed
	 * files, patch
	 */
	EVENT_TURN_ENDED,
};
const char *event_kind_name(enum event_kind kind); /* "tool_began" */
/* The `logger` of an EVENT_LOG from the session itself, about undo. */
#define EVENT_LOG_UNDO "undo"
bool event_kind_parse(const char *name, enum event_kind *kind);
/*
 * Does the journal keep this kind? Fragments are not kept, because the whole text
 * follows.
 */
bool event_is_kept(enum event_kind kind);

struct event {
	/*
	 * 1, 2, … in one session; set by the owner of the sink; 0 for kinds that are
	 * not kept
	 */
	int64_t number;
	enum event_kind kind;
	int64_t wall_ms;
	const char *call; /* id of the call, or NULL */
	const char *tool; /* or NULL */
	struct str text;
	const struct value *data; /* or NULL */
	/*
	 * For receivers in this process; no JSON has them. Of EVENT_TOOL_BEGAN: "allow", "ask"
	 * (somebody is asked before it runs), "deny", or "unfit" (it does not run: there is no
	 * such tool, its arguments do not fit, or a limit is reached).
	 */
	const char *verdict;
	/* of EVENT_TOOL_BEGAN: the trace that the call is a part of (event_trace_of); or NULL */
	const struct value *trace;
	/* of EVENT_TOOL_BEGAN: attributes of the request that the call answers; or NULL */
	const struct value *origin;
	/* of EVENT_TOOL_ENDED, and of EVENT_TOOL_BEGAN when the call does not run */
	const struct tool_result *result;
};

/*
 * Maximum of one event as JSON: a result's text is at most 4 MiB, and escaping can make
 * it six times as long.
 */
enum { EVENT_JSON_MAX = 64 << 20 };

/*
 * The receiver of events. It returns false when it could not record the event. Then the
 * announced action must not happen (a call fails with ERR's sentence).
 */
struct event_sink {
	bool (*event)(void *context, const struct event *event, struct err *err);
	void *context;
	/*
	 * It also hears of calls that only read, of which a front tells nobody because that
	 * costs more than the call.
	 */
	bool hears_all;
	/*
	 * The session is over, and has used ACCOUNTS; no event follows. Called for a session that
	 * could not be opened, too. NULL: nothing.
	 */
	void (*over)(void *context, const struct accounts *accounts);
};

/*
 * Append as one JSON object without a line end: {"event":"tool_began","n":7,"time_ms":…,
 * "call":…,"tool":…,"text":…, then the members of data}.
 */
bool event_print(const struct event *event, struct buf *out);

/*
 * Read back such an object. *LINE, which the caller owns, holds the memory that EVENT
 * points into, and is its data. ERR (EPROTO): JSON is no event.
 */
bool event_parse(struct str json, struct value **line, struct event *event, struct err *err);

/*
 * The trace context of a call (W3C Trace Context and Baggage): an object with the texts
 * traceparent, tracestate and baggage, which tells a tracing system what the call is
 * part of. It comes with a call of MCP and is passed on: to programs as variables, to
 * other servers unchanged.
 */

/* The valid members of META, as a new object; NULL without a valid traceparent. */
struct value *event_trace_of(const struct value *meta);
/* Append "TRACEPARENT=…" and the other variables to LIST. */
void event_trace_add_variables(const struct value *trace, struct value *list);
