/*
 * body: where the body of one plain request ends. Bytes behind the end are not passed on.
 * They would be a second request, which nobody has checked.
 */
#pragma once
#include "base/str.h"
#include "proxy/request.h"

#include <stdbool.h>
#include <stdint.h>

struct body {
	enum body_kind kind;
	uint64_t left; /* bytes of the body, or of the chunk */
	int state;     /* of the chunks */
	int digits;
	bool done;
	bool broken; /* the chunks are malformed: the connection must end */
};

void body_begin(struct body *body, const struct http_request *request);

/* How many of BYTES belong to the body. */
size_t body_take(struct body *body, struct str bytes);
