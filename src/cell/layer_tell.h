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

/* The findings of a look at the layers, grouped by the first folder below each layer. */
struct layer_found;
struct layer_found *layer_found_new(void);
void layer_found_free(struct layer_found *found);
/*
 * PATH is as it is shown to users. Its first TOP bytes name the folder that the layer
 * covers (0: the workspace).
 */
void layer_found_add(struct layer_found *found, enum layer_change change, struct str path,
		     size_t top);
/* The number of additions. */
size_t layer_found_count(const struct layer_found *found);

/*
 * Add FOUND to the details and the text of RESULT. Takes ownership of STAYS, the list of
 * folders that are kept, as they are shown. WHOLE: the looks were complete.
 */
void layer_tell(struct tool_result *result, const struct layer_found *found,
		struct value *stays, bool whole);
/*
 * Print the same from the details of RESULT for people, without brackets. Prints nothing
 * when there is none.
 */
void layer_tell_print(const struct tool_result *result, struct buf *out);

/*
 * Note that PATH was written and exists in the cell only, so that the front can say so.
 */
void layer_tell_note_own(struct tool_result *result, const char *path);

/* The circumstances of such paths, as the front knows them. */
struct layer_own {
	bool sealed;   /* the cell has a view of its own */
	bool one_call; /* the cell has ended with the call */
	const char *home; /* the home kept for later cells of the workspace; NULL: none is kept */
};
/*
 * Print a sentence about the paths of layer_tell_note_own in RESULT, without brackets;
 * nothing when there are none.
 */
void layer_tell_print_own(const struct tool_result *result, const struct layer_own *own,
			  struct buf *out);
