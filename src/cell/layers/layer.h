/*
 * layer: finds what a call writes that does not last. With `scratch` programs write to
 * layers of the cell. After all processes of its call have ended, a worker looks into
 * these layers and reports what is new there. A removed name is a character device 0:0
 * in the layer's upper folder, as overlayfs makes it. Files left in the cell's /tmp and
 * private home are noted as well, so that the front can say so once.
 *
 * Each look is bounded in time and in names. Writes of another call of the session at the
 * same time are reported with it, because a layer does not record the writer.
 *
 * sandbox_build leaves the folder of each throw-away layer held in the entry of the
 * view, and the anchor keeps it open. A worker looks into the upper part before a
 * command, and again when nothing of the command runs any more: it looks for names
 * that were not there and for times since the call began.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct layer_found;
struct layers;

/*
 * Prepare the looks of a worker in the cell of SPEC (borrowed), before its first call. They are
 * kept until the worker's process ends.
 */
struct layers *layers_open(const struct cell_spec *spec);

/*
 * Call this before a program of a call may write: note the names in the layers. Does
 * nothing without layers.
 */
void layers_begin(struct layers *layers);

/*
 * Call this after the call, which began at SINCE (of the clock that stamps files): report
 * in RESULT what the call left in the layers (layer_tell) and in the own folders of the
 * cell.
 */
void layers_end(struct layers *layers, const struct timespec *since,
		struct tool_result *result);

/*
 * Note in RESULT those of the paths WRITTEN by a file tool that lie in the own folders of
 * the cell.
 */
void layers_note_written(const struct layers *layers, const struct value *written,
			 struct tool_result *result);

/*
 * How a result reports the files that a call wrote and that end with the cell: as text for
 * the model, and as details for programs.
 *
 * `layer` of a result's details is an object: `files` (written or changed), `removed`,
 * `empty` (new folders with nothing in them), `folders` (items with `path` and one of
 * `files`, `removed` and `empty`; a path that ends with a slash is a folder with so many
 * below it), `stays` (the folders that are kept beside it) and, where not all was seen,
 * `partial`. `cell_only` is a list of paths in the cell's own /tmp or home.
 */

enum layer_change { LAYER_WRITTEN, LAYER_EMPTY, LAYER_REMOVED, LAYER_CHANGES };
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
 * Print the report of layer_tell from the details of RESULT for people, without
 * brackets. Prints nothing when there is none.
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
	/* the home kept for later cells of the workspace; NULL: none is kept */
	const char *home;
};
/*
 * Print a sentence about the paths of layer_tell_note_own in RESULT, without brackets;
 * nothing when there are none.
 */
void layer_tell_print_own(const struct tool_result *result, const struct layer_own *own,
			  struct buf *out);
