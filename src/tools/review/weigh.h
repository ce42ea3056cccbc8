/*
 * weigh: what is to be done with one path of a layer. Pure: three states of the path go in.
 * BASE is what it held when the layer began, BELOW what the user's folder holds now, LAYER
 * what the layer holds. Content and permissions are weighed each by itself: the side that
 * changed one of them wins it, and only a thing that both have changed is a conflict.
 */
#pragma once

#include "files/record.h"

enum weigh_class {
	WEIGH_THERE,    /* nothing to do: it is there, or only the user has changed it */
	WEIGH_APPLY,    /* the target is put there */
	WEIGH_MERGE,    /* both have changed the content: a text may be merged */
	WEIGH_CONFLICT, /* both have changed it */
	WEIGH_NO_BASE,  /* nobody knows what it held, so nobody knows who changed it */
};

/*
 * BASE may be NULL: unknown. States have the digests of their contents. TARGET becomes the
 * state that WEIGH_APPLY puts there. Of WEIGH_MERGE it has the permissions, and the layer's
 * content.
 */
enum weigh_class weigh(const struct undo_state *base, const struct undo_state *below,
		       const struct undo_state *layer, struct undo_state *target);
