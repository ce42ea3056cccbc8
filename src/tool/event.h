/*
 * event: one numbered record of what happened. The same records go to the screen, to
 * `--json`, and to the journal; resume is replay. Begin and end are never dropped, output
 * fragments may be merged or dropped under load.
 *
 * A new event is one row in event.c and a section in docs/events.md, which a test
 * wants. The screen (front/terminal/screen.c) and front/verbs/sessions.c show it, and
 * agent/history.c says what it adds to a conversation.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

enum event_kind {
	EVENT_SESSION_BEGAN = 1, /* data: session, run, workspace, agent, model, replay, level */
	/*
	 * a later process goes on; text: what the model must know of that; data as
	 * EVENT_SESSION_BEGAN
	 */
	EVENT_SESSION_RESUMED,
	/* text: what the project's files tell agents, or nothing; data: files, skipped */
	EVENT_INSTRUCTIONS,
	EVENT_TURN_BEGAN, /* text: what the user said */
	EVENT_TEXT,       /* text: a fragment of the model's words (screen only) */
	EVENT_THINKING,   /* text: a fragment of its reasoning (screen only) */
	/*
	 * data: the model's whole message, as it joins the conversation; on disk before
	 * its calls run
	 */
	EVENT_MESSAGE,
	EVENT_TOOL_BEGAN, /* call, tool; data: arguments, effects, folder */
	/* call, tool; text: a fragment; data: stream 1 or 2 (screen only) */
	EVENT_TOOL_OUTPUT,
	/* call, tool; text: how far it is, or nothing; data: progress, total (screen only) */
	EVENT_PROGRESS,
	EVENT_LOG, /* call, tool; text; data: level, logger (screen only) */
	/*
	 * call, tool; data: id, kind, request: the call waits for running_answer, which is due
	 * once for each (screen only)
	 */
	EVENT_QUESTION,
	/*
	 * call, tool; data: session, agent, event_of: an event of the delegate that works on
	 * the call, or of one below it; its own session has it, too (screen only)
	 */
	EVENT_CHILD,
	/*
	 * call, tool; data: the result (tool_result_value), and `seen`: what the session knows
	 * of files since (session_recall)
	 */
	EVENT_TOOL_ENDED,
	/* call, tool; data: approval.h has it; waits for running_answer or session_answer */
	EVENT_APPROVAL_WANTED,
	EVENT_APPROVAL_GIVEN, /* call, tool; data: id, answer, by (approval.h) */
	EVENT_NOTICE, /* text: a sentence for the person (retries, limits, warnings) */
	/*
	 * call; text: what the model is told of it, or nothing; data: check ("syntax", or the
	 * name of a role's), state (green, red, timed_out), file (of syntax), round, exit_code,
	 * seconds
	 */
	EVENT_CHECK_ENDED,
	/*
	 * text: the older part of the conversation in the model's words, which stand for it
	 * from here on; data: from (number of the first event that is kept), pinned_max,
	 * tokens (before), usage
	 */
	EVENT_COMPACTED,
	/* data: reason, iterations, usage (tokens, money), seconds, level, changed files, patch */
	EVENT_TURN_ENDED,
};
const char *event_kind_name(enum event_kind kind); /* "tool_began" */
/* EVENT_LOG of the session itself, about undo: its `logger`. */
#define EVENT_LOG_UNDO "undo"
bool event_kind_parse(const char *name, enum event_kind *kind);
/* Does this kind belong in the journal? (Fragments do not: the whole follows.) */
bool event_is_kept(enum event_kind kind);

struct event {
	/*
	 * 1, 2, … in one session; filled by the sink's owner; 0 for kinds that are not
	 * kept
	 */
	int64_t number;
	enum event_kind kind;
	int64_t wall_ms;
	const char *call; /* id of the call, or NULL */
	const char *tool; /* or NULL */
	struct str text;
	const struct value *data; /* or NULL */
};

/* One event as JSON: a result's text is at most 4 MiB, escaping makes it six times that. */
enum { EVENT_JSON_MAX = 64 << 20 };

/*
 * Where events go. False means the event could not be recorded: what it announces must
 * not happen then (a call fails with ERR's sentence).
 */
struct event_sink {
	bool (*event)(void *context, const struct event *event, struct err *err);
	void *context;
};

/*
 * Append as one JSON object without a line end: {"event":"tool_began","n":7,"time_ms":…,
 * "call":…,"tool":…,"text":…, then the members of data}.
 */
bool event_print(const struct event *event, struct buf *out);

/*
 * One such object read back: *LINE, the caller's, holds what EVENT borrows, and is its data.
 * ERR (EPROTO): it is none.
 */
bool event_parse(struct str json, struct value **line, struct event *event, struct err *err);

/*
 * Whose work a call is, as tracing systems say it (W3C Trace Context and Baggage): an
 * object with the texts traceparent, tracestate and baggage. It comes with a call of MCP
 * and goes on to what the call starts: as variables to programs, as it came to other
 * servers.
 */

/* The valid members of META, as a new object; NULL without a valid traceparent. */
struct value *event_trace_of(const struct value *meta);
/* Append "TRACEPARENT=…" and its like to LIST. */
void event_trace_add_variables(const struct value *trace, struct value *list);
