/*
 * nested: the repositories deep in the workspace of a session. Checkpoints find them on their
 * way. Those that the first checkpoint of a session finds were there before any command. A command
 * may have made all later ones; the audit that is due from then on puts away what would run in
 * these. What is noted lies in the keeper (keeper.h), whose checkpoints call this.
 */
#pragma once

#include "base/value.h"
#include "session/keeper.h"
#include "tool/tool.h"

#include <stdbool.h>

/*
 * Note the repositories in DETAILS, the details of a checkpoint. True: some are new, and
 * an audit of them is due.
 */
bool nested_take(struct keeper *keeper, const struct value *details);
/*
 * Pass on what an audit said in the RESULT of a checkpoint: to the command's result, or
 * as a notice.
 */
void nested_tell(struct keeper *keeper, struct tool_result *result);

/* The known ones, for the audit of a call (guard.h); NULL: none. */
const struct marks *nested_known(const struct keeper *keeper);
/* When the cell exists: report the folders that its guard leaves out. */
void nested_begin(struct keeper *keeper);
/* Are there repositories that the list does not hold, or that checkpoints no longer find? */
bool nested_misses(const struct keeper *keeper);
