/*
 * layered: begins the layer of a session with --review, or goes on with one, and says at the
 * end what the layer holds. The layer itself is of view/review.h.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "front/setup.h"
#include "front/verb.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Does a session of SETUP write into a layer, by the agent's `review` and by those of
 * --review and --no-review that OPTIONS have? *ID: the layer to go on with, or NULL.
 */
bool layered_wanted(const struct setup *setup, const struct options *options,
		    const char **id);

/* The layer of a session. */
struct layered_wish {
	const char *id;   /* go on with the layer that this means; NULL: a new one */
	const char *name; /* of the new one; NULL: one is made up */
	const char *by;   /* the verb: "glovebox exec" */
	const char *const *words; /* the command, NULL-ended; or NULL */
	/* it may be over its limit: the session then refuses calls that write */
	bool full;
	/*
	 * what the model is told behind its prompt, with %s for the layer's name; the steps of the
	 * session then stand in the layer. NULL: a session without a model and without steps
	 */
	const char *prompt;
};

/*
 * Make or open the layer of WISH, lock it, and give it to SETUP, with the layers below it. A new
 * one lies over those that SETUP has (layered_below). The caller calls layered_end after the
 * session. False: ERR says why there is none.
 */
bool layered_begin(struct setup *setup, const struct layered_wish *wish, struct err *err);

/*
 * The session with the layer of SETUP is open, so that the place of the layer is known: say once
 * that a crash would lose what is written into one in memory. For setup_session.
 */
void layered_tell(struct setup *setup);

/*
 * layered_begin for a verb with OPTIONS and a session whose
 * calls can be undone: their steps stand in the layer. Does nothing where none is wanted.
 * Returns an exit code; complaints have been printed.
 */
int layered_take(struct setup *setup, const struct options *options, const char *by);

/*
 * layered_take, for the layer that ID means; NULL: a new one. FULL: it may be over its limit;
 * the session then refuses calls that write. ERR says why there is none.
 */
bool layered_go_on(struct setup *setup, const char *id, bool full, const char *by,
		   struct err *err);

/*
 * An agent that only delegates writes nothing itself, and what its delegates write is landed into
 * its layer: let that lie over the whole folder.
 */
void layered_write_base(struct policy *policy);

/*
 * The sessions of SETUP, of the verb BY, work over the layers OVER: a list of names, the nearest
 * first. NULL: over none.
 */
bool layered_below(struct setup *setup, const struct value *over, const char *by,
		   struct err *err);
/* The layers over which a delegate of SETUP, which has a layer, works: for layered_below. */
struct value *layered_over(const struct setup *setup);

/*
 * The session with the layer of SETUP has ended: say in a line on OUT (NULL: say nothing)
 * what the layer holds, as JSON or in words. A new layer without a change is removed. Does
 * nothing where SETUP has none. Returns whether a layer is kept.
 */
bool layered_end(struct setup *setup, bool json, FILE *out);
