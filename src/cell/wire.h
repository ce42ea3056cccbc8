/*
 * wire: a call as the payload of a frame from session to worker. It begins with its numbers and
 * the sizes of its parts, as they lie in memory (both ends are one program on one machine); the
 * parts follow (frame_add_text and others). A specification (spec.h) holds what every call of a
 * cell has in common. The result comes back as tool_result_print writes it.
 *
 * Everything that holds for all calls of a cell (limits, grace, environment, the
 * agent) is in the cell_spec, and the frame of a call has only what differs.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "guard/guard.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stdint.h>

struct wire_call {
	const char *tool;
	struct value *arguments; /* validated; or NULL */
	const char *folder;
	int64_t deadline_ms; /* CLOCK_NEVER: none */
	/*
	 * > 0: the call is a later one of a batch, and this is its time in seconds from
	 * the end of the call before it
	 */
	double timeout_s;
	bool is_last; /* the cell ends with this call */
	bool heralds; /* the front is told when its program has ended (FRAME_ENDING) */
	/* there is no other call: the worker may stay awake for the next one */
	bool alone;
	bool terse;   /* details may be left out of the result (session.h) */
	bool has_log; /* its log (record.h) is the first descriptor */
	uint32_t log; /* number of the log; 0: it is no step */
	bool audits;  /* audit first what an earlier call may have left (guard.h) */
	enum guard_walk reach; /* of that audit */
	int64_t quiet_ns;      /* for the audits (guard.h); 0: none */
	/* the worker enforces these limits, because no control group does */
	bool keeps_memory, keeps_pids;
	/*
	 * texts, "NAME=value", for the programs of this call beside those of the cell; or
	 * NULL
	 */
	struct value *environment;
	struct value *plan;    /* call.h; or NULL */
	struct value *carried; /* call.h; or NULL */
	struct value *seen;    /* or NULL */
	/*
	 * the worker first tells the secrets of the workspace (FRAME_SECRETS): an object,
	 * which the tool of that work gets as its arguments; or NULL
	 */
	struct value *secrets;
	/*
	 * the first descriptor is the log of a killed writer with these rights, to be
	 * worked off before anything else (place.h); or NULL
	 */
	struct value *unfinished;
	struct marks nested; /* `more` of the audits (guard.h) */
};

bool wire_print_call(const struct wire_call *call, struct buf *out);
/*
 * The texts of *CALL point into PAYLOAD. *CALL owns its values; free them with
 * wire_call_fini.
 */
bool wire_parse_call(struct str payload, struct wire_call *call, struct err *err);
/*
 * Append CALL, printed, to BATCH. wire_next_of_batch takes the next call off *REST; false
 * when there is none.
 */
bool wire_add_to_batch(struct str call, struct buf *batch);
bool wire_next_of_batch(struct str *rest, struct str *call);
/* For a call that was parsed. */
void wire_call_fini(struct wire_call *call);
