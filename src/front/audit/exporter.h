/*
 * exporter: sends spans (audit/span.h) to a collector, by OTLP over HTTP with JSON. It is a
 * process of its own, a role of our program (process/role.h): the front makes no connection, and
 * never waits for it. It keeps at most EXPORTER_WAITING spans, and sends up to SPAN_BATCH of
 * them at a time, at the latest after EXPORTER_PAUSE_S. Spans that find no room are dropped and
 * counted, and standard error says how many. A process that has ended before its time is started
 * again with the next span: at once, then after a pause that grows up to EXPORTER_AGAIN_S.
 *
 * The process ends when the front does: it gives the collector EXPORTER_LAST_S for what is
 * left. It holds no descriptor of the front's callers then.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct exporter;

enum {
	EXPORTER_WAITING = 2048,
	EXPORTER_PAUSE_S = 5,
	EXPORTER_LAST_S = 5,
	EXPORTER_TRIES = 3, /* of one batch, where the collector may take it later */
	EXPORTER_AGAIN_S = 60,
	/* of one request, as much as collectors take */
	EXPORTER_REQUEST_MAX = 4 << 20,
};

struct exporter_options {
	const char *endpoint;   /* "http://127.0.0.1:4318"; spans go to its /v1/traces */
	const char *headers;    /* of OTEL_EXPORTER_OTLP_HEADERS; or NULL */
	const char *service;    /* of OTEL_SERVICE_NAME; or NULL */
	const char *attributes; /* of OTEL_RESOURCE_ATTRIBUTES; or NULL */
};

bool exporter_open(const struct exporter_options *options, struct exporter **exporter,
		   struct err *err);
/* No further span comes. Returns at once. NULL is fine. */
void exporter_close(struct exporter *exporter);

/*
 * Send SPAN, the text of span_print, as soon as it may be; empty: it was too long to be printed, and
 * is dropped. Never waits for the process; to start it again takes some milliseconds.
 */
void exporter_add(struct exporter *exporter, struct str span);
/* The number of spans that were dropped so far, as far as the process has told. */
uint64_t exporter_dropped(struct exporter *exporter);

/* For main: play the role and do not return, when ARGV is that of an exporter. */
void exporter_role(int argc, char **argv);
