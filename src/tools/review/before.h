/*
 * before: what the paths of a layer held when it began, from its log (view/review.h) and
 * from git. The log is foreign: a worker has written it. Of several rows for a path the
 * first one counts.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "files/record.h"
#include "tool/call.h"

#include <stdbool.h>

struct before;

/* Read the log LOG (borrowed). *BEFORE is never NULL; before_free in either case. */
bool before_read(int log, struct before **before, struct err *err);
void before_free(struct before *before);

/* The state of the absolute PATH when the layer began; NULL: the log does not say. */
const struct undo_state *before_find(const struct before *before, const char *path);

/*
 * Append the content of STATE to OUT, from the log or, by a program of CALL, from git. False:
 * it was not kept.
 */
bool before_content(const struct before *before, struct call *call,
		    const struct undo_state *state, struct buf *out);
