/*
 * hook_files: the hooks of a run (extend/hooks.h): those of the person's configuration, and of
 * the files of the workspace (extend/brought.h) that the person has let in (extend/trust.h). A
 * configuration whose hooks cannot be read is refused: a guard must not fall away in silence.
 * A file of the workspace that cannot be read is left out, and the person is told.
 */
#pragma once

#include "agent/hooks.h"
#include "base/err.h"
#include "extend/hook_run.h"
#include "extend/hooks.h"
#include "front/setup.h"

#include <stdbool.h>

struct hook_files;

/*
 * Read the hooks for runs of SETUP, which is borrowed; CANCEL_FD as in hook_options. BEHIND is
 * copied, and asked behind them; NULL: nothing. Call it before SETUP opens its session, and
 * hook_files_close in either case. Files of the workspace are read in a cell of their own, and
 * only where some were let in, or where the caller LISTS them all.
 */
bool hook_files_open(const struct setup *setup, int cancel_fd,
		     const struct agent_hooks *behind, bool lists,
		     struct hook_files **files, struct err *err);
void hook_files_close(struct hook_files *files); /* NULL is fine */

/*
 * Tell the person which hooks are not run, as those of types that are not known here: a guard that
 * somebody counts on must not be missing in silence. Call it once in a conversation.
 */
void hook_files_tell_left_out(const struct hook_files *files);

const struct hooks *hook_files_hooks(const struct hook_files *files);
/* For agent_options and for hook_run_play; valid as long as FILES. */
const struct agent_hooks *hook_files_asks(const struct hook_files *files);
const struct hook_options *hook_files_options(const struct hook_files *files);
