/*
 * before: what the paths of a layer held when it began, from its log (view/review.h) and
 * from git. The log is foreign: a worker has written it. Of several rows for a path the
 * first one tells how the layer began. The others tell what was landed of it while the review
 * stayed open.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "files/record.h"
#include "tool/call.h"

#include <stdbool.h>

struct before;

/*
 * Read the log LOG (borrowed). UNDONE: a landing of the layer was undone. *BEFORE is never NULL;
 * before_free in either case.
 */
bool before_read(int log, bool undone, struct before **before, struct err *err);
void before_free(struct before *before);

/*
 * The base of the absolute PATH, which is BELOW now: what was landed of it last or, where a landing
 * was undone, the state that is there now, or else how it was when the layer began. NULL: the log
 * does not say.
 */
const struct undo_state *before_find(const struct before *before, const char *path,
				     const struct undo_state *below);

/* Begin to append to the log of BEFORE. False: it is damaged, or cannot be written. */
bool before_log(const struct before *before, struct undo_log *log);
/*
 * Note in LOG that the layer's PATH was landed in the state LANDED, with the content of FILE (-1:
 * none). False, with LOG as it was: it could not be written.
 */
bool before_note(struct undo_log *log, const char *path, int file,
		 const struct undo_state *landed);

/*
 * Append the content of STATE to OUT, from the log or, by a program of CALL, from git. False:
 * it was not kept.
 */
bool before_content(const struct before *before, struct call *call,
		    const struct undo_state *state, struct buf *out);
