/*
 * layer: finds what a call writes that does not last. With `scratch` programs write to
 * layers of the cell. After all processes of its call have ended, a worker looks into
 * these layers and reports what is new there. A removed name is a character device 0:0 in
 * the layer's upper folder, as overlayfs makes it. Files left in the cell's /tmp and
 * private home are noted as well, so that the front can say so once (layer_tell.h).
 *
 * Each look is bounded in time and in names. Writes of another call of the session at the
 * same time are reported with it, because a layer does not record the writer.
 */
#pragma once
#include "tool/tool.h"
#include "view/spec.h"

#include <time.h>

struct layers;

/* Prepare the looks of a worker in the cell of SPEC (borrowed), before its first call. */
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
