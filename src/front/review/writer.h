/*
 * writer: a delegate that writes beside others (limits.writers), each in a layer of its own
 * (view/review.h). Its caller has named the layer in the request. When the delegate has ended
 * its turn and its cell is gone, the process waits for the caller's word, which comes in the
 * order of the calls, and lands the layer with the delegate's own rights. Without the word, or
 * where the turn was not finished, the layer stays for a person. A layer without a change goes.
 *
 * Where the caller itself works in a layer, that one lies below (view/below.h), and only the
 * caller's own cell may write to it. There the word ends the process, and the caller lands what
 * it has left (writer_land_in), with the rights of both.
 *
 * EVENT_LANDED tells the caller what became of the layer:
 *
 *	review          its name
 *	files           how many changes were landed
 *	conflict_count  how many files were not, because something else was landed there before
 *	conflicts       the first of these: {path, lines: [first, last]}; `lines` where they
 *	                are known
 *	notes           sentences: what is never landed, commits, why a landing broke off
 *	step            the step of undo; absent: nothing was written
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "front/setup.h"
#include "session/session.h"

#include <stdbool.h>

/* A layer names this verb as the one that works in it. */
#define WRITER_VERB "glovebox run (a delegate)"

struct review;

/* Make the layer that REQUEST (front/talk.h) names, for the session of SETUP. */
bool writer_begin(struct setup *setup, const struct value *request, struct err *err);

/*
 * The session of SETUP has ended, and SETUP has no layer any more. Returns its layer, locked as
 * before, which writer_land takes; NULL: it was empty and is gone.
 */
struct review *writer_end(struct setup *setup);

/*
 * The word has come: land REVIEW by LANDING (a setup that was made as that of the session), and
 * tell the caller.
 */
void writer_land(struct setup *landing, struct review *review);

/* For the caller. */

/*
 * The delegate with the layer ID of WORKSPACE has ended: is anything left of the layer that a
 * person may land or drop? A layer in which nothing was ever written goes.
 */
bool writer_is_left(const char *workspace, const char *id);
/*
 * Land the layer ID of a delegate, whose process has ended, in SESSION, the caller's, which works
 * in a layer. LINE gets EVENT_LANDED as the delegate prints it elsewhere. False: LINE is full.
 */
bool writer_land_in(struct session *session, const char *workspace, const char *id,
		    struct buf *line);
/* Show the layer ID below REVIEW_SHOWN/ID in SESSION, with the paths of WORKSPACE. */
bool writer_show(struct session *session, const char *workspace, const char *id);
