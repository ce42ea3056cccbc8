/*
 * base_log: notes at the end of each call what was below the files that a cell writes into
 * the layer of a review (view/review.h), and counts what the layer holds.
 *
 * A path is noted in the log of the layer when it is first seen changed, with its state in
 * the folder below: text of up to 16 MiB with its content, other files by their hash. This
 * state is the base of a later merge. A file below that was changed since the layer was made
 * is not noted, because nobody knows any more what the layer began with. Nothing is read of
 * files that no call has changed.
 *
 * The walk and the copies are bounded in time and size. A path that a walk did not reach is
 * noted by a later one. Several workers of a session take turns by a lock of the log.
 */
#pragma once

#include "tool/tool.h"
#include "view/spec.h"

struct base_log;

/* Prepare a worker in the cell of SPEC (borrowed). Does nothing without a review. */
struct base_log *base_log_open(const struct cell_spec *spec);

/*
 * Call this before a call: waits until the clock that stamps files is past the moment when
 * the layer was made, so that a file which somebody changes while a program of the cell runs
 * bears a later time. That is the case already, except in the first milliseconds of a layer.
 * With a clock that was set back it does not wait, and nothing new is noted as a base.
 */
void base_log_begin(const struct base_log *base);

/* The key of the counts in the details of a result: members as in struct review_counts. */
#define BASE_LOG_KEY "review"

/*
 * Call this after a call that may have written: notes what is new in the layers, and puts
 * the counts into RESULT.
 */
void base_log_end(struct base_log *base, struct tool_result *result);
