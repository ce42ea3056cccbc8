/*
 * based: the base of a session's cell (`--base`, key `cell_base`; docs/bases.md), found by its
 * word (image/base.h) and put into the form that view/shape.h takes. A base has to be there
 * already: nothing is fetched, and nobody waits.
 */
#pragma once

#include "base/err.h"
#include "image/base.h"
#include "view/shape.h"

#include <stdbool.h>

/* A base that was found. As long as it is open, `glovebox base prune` leaves it alone. */
struct based {
	struct base base;
	struct shape_base shape;
};

/*
 * Find the base WORD; *BASED becomes NULL for the word of this machine, or when WORD is NULL.
 * IMAGES: the cache of images, or NULL. False: ERR says what is wrong with the word or the base,
 * and the line that helps.
 */
bool based_open(const char *word, const char *images, struct based **based, struct err *err);
void based_close(struct based *based); /* NULL is fine */
