/*
 * trace: whose work a call is, as tracing systems say it (W3C Trace Context and Baggage): an object
 * with the texts traceparent, tracestate and baggage. It comes with a call of MCP and goes on to
 * what the call starts: as variables to programs, as it came to other servers.
 */
#pragma once
#include "base/value.h"

/* The valid members of META, as a new object; NULL without a valid traceparent. */
struct value *trace_of(const struct value *meta);
/* Append "TRACEPARENT=…" and its like to LIST. */
void trace_add_variables(const struct value *trace, struct value *list);
