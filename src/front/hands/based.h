/*
 * based: the base of a session's cell (`--base`, key `cell_base`; docs/bases.md), found by its
 * word and put into the form that view/shape.h takes. A base has to be there already: nothing is
 * fetched, and nobody waits.
 */
#pragma once

#include "base/err.h"
#include "base/memory.h"
#include "view/shape.h"

#include <stdbool.h>

/* A base that was found. Texts and lists belong to the arena. */
struct based {
	struct arena arena;
	struct shape_base shape;
	const char *start_folder; /* where the base wants programs to begin; absolute */
	const char *user; /* the user that the base wants, as it is written there; "" */
};

/*
 * Find the base WORD; *BASED becomes NULL for the word of this machine, or when WORD is NULL.
 * False: ERR says what is wrong with the word or the base, and the line that helps.
 */
bool based_open(const char *word, struct based **based, struct err *err);
void based_close(struct based *based); /* NULL is fine */
