/*
 * span: pieces of work with a begin and an end, in the JSON form of OTLP (OpenTelemetry
 * Protocol 1.x, "JSON Protobuf Encoding"). This module knows the form; a caller chooses names and
 * attributes, and sends the request.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SPAN_TRACE = 32, /* digits of a trace's id */
	SPAN_ID = 16,    /* digits of a span's id */
	/* of one text among the attributes; the rest of a longer one is left out */
	SPAN_TEXT_MAX = 16 << 10,
	SPAN_JSON_MAX = 64 << 10, /* of one span */
	SPAN_BATCH = 512,         /* most spans of one request */
	/* of the variables OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES */
	SPAN_PAIRS_MAX = 64,
	SPAN_PAIR_MAX = 8 << 10,
};

/* The numbers of OTLP. */
enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2, SPAN_CLIENT = 3 };

/* The place of a span in its trace; empty texts: none. */
struct span_place {
	char trace[SPAN_TRACE + 1], id[SPAN_ID + 1];
};

struct span {
	struct span_place place;
	char parent[SPAN_ID + 1]; /* empty: it begins the trace */
	const char *name;
	enum span_kind kind;
	int64_t began_ns, ended_ns; /* since 1970 */
	/* an object with texts, numbers and truths */
	const struct value *attributes;
	const char *failure; /* NULL: it went well */
};

/*
 * A new place: in the trace of PARENT, or in a new trace when PARENT is NULL or empty.
 */
struct span_place span_place_new(const struct span_place *parent);
/*
 * The place that TRACEPARENT (W3C Trace Context) names. False: it names none, or its sender does
 * not want the trace recorded and *SAMPLED is false.
 */
bool span_place_read(const char *traceparent, struct span_place *place, bool *sampled);

/* Append SPAN as JSON. False: OUT is full. */
bool span_print(const struct span *span, struct buf *out);
/*
 * Append the resource, whose attributes are service.name (SERVICE) and those of PAIRS, the text of
 * OTEL_RESOURCE_ATTRIBUTES: "name=value,…", percent-encoded.
 */
bool span_print_resource(const char *service, const char *pairs, struct buf *out);
/* Append a request with COUNT SPANS, each as span_print makes it. */
bool span_print_request(struct str resource, const char *version, char *const *spans,
			size_t count, struct buf *out);

/*
 * Take the next pair from *REST, "name=value,…", into NAME and VALUE, which are decoded. False:
 * none is left. A part without "=" is skipped.
 */
bool span_next_pair(struct str *rest, struct buf *name, struct buf *value);
