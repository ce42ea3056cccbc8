/*
 * site: the cell of a task, over the files that its line names. Files that come from elsewhere
 * (git, an archive) are put into a fresh workspace first, by a cell of their own, whose network
 * is the one host that they come from. The cell of the task is then a layer over them, and
 * so is that over a folder: neither is ever changed, and a patch is what the task has changed.
 * Somebody's own agent is run over the same workspace (wrapped.c).
 */
#pragma once

#include "base/value.h"
#include "fleet/steps/step.h"

#include <stdbool.h>

struct fleet_site {
	char *from;           /* the cell of the files, or NULL */
	char *cell;           /* of the task; NULL: it is not open */
	char *workspace;      /* of the task's cell, on this machine */
	bool apart;           /* it is a folder of its own, and no layer */
	bool repository;      /* its workspace is a repository of git */
	struct value *opened; /* the answer to cell/open */
};

/*
 * Open the cell of the task of STEPS. APART: its workspace is a folder of its own that other
 * programs of ours may be shown, and no layer. False: the task has ended, and says why.
 * fleet_site_close in either case.
 */
bool fleet_site_open(struct fleet_steps *steps, bool apart, struct fleet_site *site);
/* Close both cells. *CLOSED (owned by the caller): the answer for that of the task, or NULL. */
void fleet_site_close(struct fleet_steps *steps, struct fleet_site *site,
		      struct value **closed);

/*
 * Run somebody's own agent as the run of the task: `glovebox wrap PROFILE` (docs/wrap.md) over the
 * workspace of the task's cell, in a cell of its own with the hosts and keys of its profile. The
 * agent ends with its task, and with our process. True: it ran, and RAN says how it ended;
 * fleet_ran_fini in either case.
 */
bool fleet_site_wrap(struct fleet_steps *steps, const struct fleet_site *site,
		     struct fleet_ran *ran);
