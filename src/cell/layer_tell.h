/*
 * layer_tell: the words for what a call wrote that does not last (layer.h): text for the model,
 * details for programs, and what others read there.
 *
 * `layer` of a result's details is an object: `files` (written or changed), `removed`, `empty`
 * (new folders with nothing in them), `folders` (items with `path` and one of `files`, `removed`
 * and `empty`; a path that ends with a slash is a folder with so many below it), `stays` (the
 * folders that are kept beside it) and, where not all was seen, `partial`. `cell_only` is a list
 * of paths in the cell's own /tmp or home.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>

enum layer_change { LAYER_WRITTEN, LAYER_EMPTY, LAYER_REMOVED, LAYER_CHANGES };

/* What a look at the layers has found, by the first folder below each layer. */
struct layer_found;
struct layer_found *layer_found_new(void);
void layer_found_free(struct layer_found *found);
/* PATH is as it is shown; its first TOP bytes name what the layer is over (0: the workspace). */
void layer_found_add(struct layer_found *found, enum layer_change change, struct str path,
		     size_t top);
/* How often something was added. */
size_t layer_found_count(const struct layer_found *found);

/*
 * FOUND in RESULT's details and text. STAYS (its own from now on): what is kept, as it is shown;
 * WHOLE: nothing was passed over.
 */
void layer_tell(struct tool_result *result, const struct layer_found *found,
		struct value *stays, bool whole);
/* The same of RESULT's details for people, without brackets; nothing when there is none. */
void layer_tell_print(const struct tool_result *result, struct buf *out);

/* PATH was written where it exists in the cell only: for the front, which says so. */
void layer_tell_note_own(struct tool_result *result, const char *path);

/* Where such a path is, as the front knows it. */
struct layer_own {
	bool sealed;      /* the cell has a view of its own */
	bool one_call;    /* it has ended with the call */
	const char *home; /* kept for the next cells of the workspace; NULL: it is not */
};
/* A sentence on the paths of layer_tell_note_own in RESULT, without brackets; or nothing. */
void layer_tell_print_own(const struct tool_result *result, const struct layer_own *own,
			  struct buf *out);
