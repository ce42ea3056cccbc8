/*
 * workspaces: the folders of the cells of a service, below its root. The template of the settings
 * says in which one a cell works, and .glovebox has one with its own state at the same place. Cells
 * may have a workspace in common; a service knows which do.
 *
 * Each server keeps a list of its folders, in a folder which it has locked as long as it lives.
 * With `delete` folders go with their cells, and the next server removes what one that was killed
 * has left, if both have `delete`, and no other server has the folder on its list. It looks at all
 * lists while it has the lock of .glovebox alone, and the server that adds to its list shares that
 * lock, so no folder of a living cell is taken for one that was left.
 *
 * Large folders are removed by threads. Everything else is done at once, by the thread of the
 * loop; a lock that another server keeps for seconds is given up, and said.
 */
#pragma once

#include "base/err.h"
#include "mcp/server/mcp.h"
#include "policy/service/service.h"

#include <stdbool.h>
#include <stddef.h>

enum { WORKSPACES_ID = 12 }; /* hex digits of the id of a cell */

struct remover;

/* Those of a service. The first four are borrowed, the others are ours: lock -1, NULL. */
struct workspaces {
	const struct service *settings;
	const char *root;       /* real, absolute */
	mcp_complain *complain; /* or NULL */
	void *context;          /* of `complain` */
	int lock;               /* keeps the list of our folders; -1: there is none yet */
	char *holder;           /* the path of the list */
	bool locked_out; /* the lock of .glovebox was given up, so it is not waited for */
	struct remover *removers;
};

/* Those of one cell. Without a template it has none, and all are NULL. */
struct workspace {
	char *folder, *state; /* absolute */
	/* of each: the size of the part that was there before; SIZE_MAX: all of it was */
	size_t folder_from, state_from;
};

/* How a cell has used its workspace when it leaves it. */
enum workspace_use {
	WORKSPACE_FAILED, /* the cell could not be made */
	WORKSPACE_UNUSED, /* its processes were never there */
	WORKSPACE_USED,
};

/*
 * Remove what services that were killed have left, or were removing. To be called before the first
 * cell is made. Each folder is told of. One that cannot be removed is complained of, and stays for the
 * next start.
 */
void workspaces_sweep(struct workspaces *spaces);
/*
 * Make the folders of the cell NAMES (we fill in the date), each with mode 0700. Those that are
 * there are taken, but no link is. False: ERR says why; PLACE is left as WORKSPACE_FAILED then.
 */
bool workspaces_make(struct workspaces *spaces, struct workspace *place,
		     struct service_names names, struct err *err);
/*
 * The cell NAMES, whose processes are gone, leaves PLACE, which is empty then: remove, archive or
 * keep it as the settings say. IS_SHARED: another cell works there, so it stays; so it does, with a
 * complaint, when another server has it, or one above or below it, on its list.
 */
void workspaces_leave(struct workspaces *spaces, struct workspace *place,
		      struct service_names names, enum workspace_use use, bool is_shared);
/* Join the threads that are done. */
void workspaces_settle(struct workspaces *spaces);
/* Wait for all threads, and give up the list. */
void workspaces_close(struct workspaces *spaces);
