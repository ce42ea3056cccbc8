/*
 * metrics: what a service has counted of its calls, as text for Prometheus (its format 0.0.4).
 * The number of rows is bounded: whatever names clients send, a name that is not a tool of
 * ours, and the tools beyond METRICS_TOOLS_MAX, share one row.
 */
#pragma once

#include "base/buf.h"
#include "mcp/server/mcp.h"

#include <stddef.h>
#include <stdint.h>

enum {
	METRICS_TOOLS_MAX = 128,
	METRICS_STATUSES = 5,     /* of enum result_status */
	METRICS_BOUNDS = 18,      /* of the histogram of seconds */
	METRICS_KINDS = 5,        /* of denials */
	METRICS_TOKENS_MAX = 200, /* tokens that have rows of their own */
};

struct metrics_tool {
	char *name;
	uint64_t counts[METRICS_STATUSES];
};

/* Zero it first. */
struct metrics {
	struct metrics_tool tools[METRICS_TOOLS_MAX + 1]; /* the last one: all others */
	size_t tool_count;
	uint64_t within[METRICS_BOUNDS]; /* calls that took no longer than the bound */
	uint64_t calls;
	double seconds;
	uint64_t denials[METRICS_KINDS];
	uint64_t dropped; /* records that nobody took in time; set by the owner before printing */
};

void metrics_fini(struct metrics *metrics);
/* Count RECORD, whose kind may be any. */
void metrics_take(struct metrics *metrics, const struct mcp_record *record);
void metrics_print(const struct metrics *metrics, struct buf *out);
/* Append the two lines that stand before the rows of NAME. TYPE: "counter", "gauge". */
void metrics_print_head(const char *name, const char *type, const char *help,
			struct buf *out);
