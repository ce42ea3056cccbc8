/*
 * place: where the cells of `glovebox start` are found, which outlive the terminal they were
 * started at. Each has a folder of its name in $XDG_RUNTIME_DIR/glovebox/cells, which only this user
 * can open:
 *
 *	about.json	name, pid, workspace, level, started_ms, program
 *	socket		the wire (serve/engine.h)
 *
 * The front behind a cell holds a lock on its folder as long as it lives. A folder on which
 * nobody holds a lock is that of a dead cell: one finder removes it. A folder gets its name when
 * the cell serves callers, and a name is given once.
 *
 * The folders glovebox and cells are refused when they are links, belong to another user, or can
 * be opened by others.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CELLS_NAME_MAX = 64, /* bytes of a name */
	CELLS_MAX = 1024,    /* cells of a user that are looked at */
	/* for another process that removes the folders of dead cells: for all of a list */
	CELLS_REMOVER_MS = 2000,
};

/* Can NAME be that of a cell? */
bool cells_place_fits(const char *name, struct err *err);
/*
 * Make NAME the name for a cell of the folder WORKSPACE: that of the folder, with NUMBER behind it
 * from 2 on.
 */
void cells_place_suggest(const char *workspace, int number, struct buf *name);

/* The folder of a cell, before and while it serves. */
struct cells_place {
	int all;    /* the folder of all cells, open; -1: none */
	char *path; /* its path, for sentences */
	int folder; /* that of this cell, open and locked; -1: none */
	int listener;
	char name[CELLS_NAME_MAX + 1];
};
#define CELLS_PLACE_NONE ((struct cells_place){.all = -1, .folder = -1, .listener = -1})

/* Make a folder without a name, and listen in it. Call cells_place_remove in either case. */
bool cells_place_make(struct cells_place *place, struct err *err);
/*
 * Write ABOUT into PLACE, which gets NAME. EEXIST in ERR: a cell that lives has it. A dead one that
 * has it is removed, for which another process that removes one is waited for CELLS_REMOVER_MS.
 */
bool cells_place_name(struct cells_place *place, const char *name,
		      const struct value *about, struct err *err);
/* Remove the folder, with what is in it. */
void cells_place_remove(struct cells_place *place);
/* Remove what starts have left that were killed before the cell had its name. */
void cells_place_sweep(void);

enum cells_life {
	CELLS_NONE,
	CELLS_GONE, /* its front is dead; this process has removed the folder */
	CELLS_KEPT, /* its front is dead; the folder could not be removed: WHY */
	CELLS_LIVES,
};

struct cells_found {
	enum cells_life life;
	struct value *about; /* an object; empty when it cannot be read */
	int folder;          /* of one that lives, open; -1: none */
	int why; /* CELLS_KEPT: errno; EWOULDBLOCK: another process removes one */
};

/*
 * Look for the cell NAME, and remove the folder of a dead one. Only one process removes at a time:
 * another one is waited for until UNTIL (clock_now_ms), which is the same for all cells of a
 * list. False: NAME cannot be looked for. Call cells_place_found_fini.
 */
bool cells_place_find(const char *name, int64_t until, struct cells_found *found,
		      struct err *err);
/* Say in ERR why the folder of the dead cell NAME is still there, and the remedy. Always false. */
bool cells_place_say_kept(const char *name, const struct cells_found *found,
			  struct err *err);
void cells_place_found_fini(struct cells_found *found);
/* Does the front of FOUND still hold its folder? */
bool cells_place_is_held(const struct cells_found *found);
/* Connect to the front of FOUND; the socket does not block. -1: ERR says why not. */
int cells_place_connect(const struct cells_found *found, const char *name, struct err *err);

/* The names of all cells, living and dead, in their order; the caller frees the list. */
bool cells_place_names(struct value **names, struct err *err);
