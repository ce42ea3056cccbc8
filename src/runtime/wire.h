/*
 * wire: the two JSON payloads between session and worker. Both ends are ours, but a
 * worker may have been taken over by what it ran: whatever comes back is checked, and it
 * can only fill one result.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "runtime/call.h"
#include "runtime/tool.h"

#include <stdbool.h>
#include <stdint.h>

struct wire_call {
	const char *tool;
	const struct value *arguments; /* validated */
	const char *folder;
	int64_t deadline_ms; /* CLOCK_NEVER: none */
	bool is_last;        /* the cell ends with this call */
	double grace_s;
	const char *agent;
	struct call_limits limits;
	bool heralds; /* the front is told when what it runs is over (FRAME_ENDING) */
	bool audits;  /* first look at what an earlier call may have left (audit.h) */
	/* texts, "NAME=value": for this call's programs beside the cell's; or NULL */
	const struct value *environment;
	const struct value *seen;   /* or NULL */
	const struct value *before; /* or NULL */
};

bool wire_print_call(const struct wire_call *call, struct buf *out);
/* The members of *CALL borrow from *OBJECT, which the caller frees. */
bool wire_parse_call(struct str text, struct wire_call *call, struct value **object,
		     struct err *err);

/*
 * The result with `seen` and `before`, which never leave the product
 * (tool_result_value).
 */
bool wire_print_result(const struct tool_result *result, struct buf *out);
/* RESULT is initialised by the caller. */
bool wire_parse_result(struct str text, struct tool_result *result, struct err *err);
