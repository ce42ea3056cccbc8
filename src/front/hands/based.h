/*
 * based: the base of a session's cell (`--base`, key `cell_base`; docs/bases.md), found by its
 * word (image/base.h) and put into the form that view/shape.h takes. A base has to be there
 * already: nothing is fetched, and nobody waits. Only the commands of a devcontainer are run, by
 * based_settle.
 */
#pragma once

#include "base/err.h"
#include "image/base.h"
#include "view/shape.h"

#include <stdbool.h>

struct policy;
struct session_options;
struct setup;

/* A base that was found. As long as it is open, `glovebox base prune` leaves it alone. */
struct based {
	struct base base;
	struct shape_base shape;
};

/*
 * Find the base of SETUP's cells: setup.based, which stays NULL for this machine. False: ERR says
 * what is wrong with the word or the base, and the line that helps. The file of a devcontainer is read
 * only where the policy of SETUP, and the ceiling of this machine, let its cell read it
 * (setup.base_is_lent: the ceiling alone).
 */
bool based_find(struct setup *setup, struct err *err);
void based_close(struct based *based); /* NULL is fine */

/*
 * The same, for a session with the options GIVEN that is opened now. The commands of a devcontainer
 * that were not run yet run first, in a cell with the rights of SETUP's policy, but without its
 * variables, its keys and its folders besides the workspace; what they have made of the root of that
 * cell is frozen for the next ones, by one process at a time. Their output goes to standard error, in
 * lines that are safe for a terminal, up to a ceiling, and so does what `exec` tells of a command.
 * Each command has an hour, all together setup.prepare_s; a signal ends them, and so does what
 * setup.ends names. The audit has them as a session of its own, whose `open` says so. False with
 * nothing frozen: one of them failed or was ended, or they may not run here (setup.prepares, a layer,
 * a workspace that the policy does not let be written, an agent that runs no commands or asks before
 * each).
 */
bool based_settle(struct setup *setup, const struct session_options *given, struct err *err);

/*
 * BOTH are the rights of a delegate within those of its caller, BOUND. The base of a delegate is that
 * of its caller; where the caller has this machine's root, the one that the delegate's own entry
 * names, OWN (or NULL), holds. A base is no right of this machine, but for one that is a folder of
 * it: false when BOUND may not read that folder, because the delegate would see more. A relative folder
 * starts where this process runs. The file of a devcontainer is judged by based_find.
 */
bool based_keep(const struct policy *bound, const char *own, struct policy *both,
		struct err *err);
