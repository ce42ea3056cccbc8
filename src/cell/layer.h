/*
 * layer: what a call writes that does not last. With `scratch` programs write to layers of the
 * cell's own; a worker looks into them when nothing of its call runs any more, and tells what is
 * new there. A removed name is a character device 0:0 in the layer's upper folder, as overlayfs
 * has it. Beside that, what is left in the cell's /tmp and private home is noted, for the front to
 * say so once (layer_tell.h).
 *
 * Each look is bounded in time and in names. What another call of the session writes at the same
 * time is told with it: a layer does not know who wrote.
 */
#pragma once
#include "tool/tool.h"
#include "view/spec.h"

#include <time.h>

struct layers;

/* Of a worker in the cell of SPEC (borrowed), before its first call. */
struct layers *layers_open(const struct cell_spec *spec);

/* Before a program of a call may write: note what is in the layers. Nothing without layers. */
void layers_begin(struct layers *layers);

/*
 * Afterwards: tell in RESULT what the call, which began at SINCE (of the clock that stamps
 * files), has left in the layers (layer_tell) and in the cell's own folders.
 */
void layers_end(struct layers *layers, const struct timespec *since,
		struct tool_result *result);

/* WRITTEN, paths that a file tool wrote: note those in the cell's own folders. */
void layers_note_written(const struct layers *layers, const struct value *written,
			 struct tool_result *result);
