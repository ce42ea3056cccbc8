/*
 * event: one numbered record of what happened. The same records go to the screen, to
 * `--json`, and to the journal; resume is replay. Begin and end are never dropped, output
 * fragments may be merged or dropped under load.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

enum event_kind {
	EVENT_SESSION_BEGAN = 1, /* data: workspace, agent, model, level */
	EVENT_TURN_BEGAN,        /* text: what the user said */
	EVENT_TEXT,              /* text: a fragment of the model's words (screen only) */
	EVENT_THINKING,          /* text: a fragment of its reasoning (screen only) */
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
	EVENT_TOOL_ENDED,      /* call, tool; data: the result (tool_result_value) */
	EVENT_APPROVAL_WANTED, /* call, tool; data: effect, because, rule */
	EVENT_NOTICE, /* text: a sentence for the person (retries, limits, warnings) */
	/* data: reason, iterations, usage, seconds, level, changed files, patch */
	EVENT_TURN_ENDED,
};
const char *event_kind_name(enum event_kind kind); /* "tool_began" */
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
