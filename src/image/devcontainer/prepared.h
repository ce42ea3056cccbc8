/*
 * prepared: the snapshots of what the commands of a devcontainer have made (snapshot.h): their names,
 * their locks, and which of them go. The commands themselves are run by a front.
 *
 *   FOLDER/devcontainer-PLACE-CONTENT          the snapshot. PLACE is a hash over workspace and file,
 *                                              CONTENT one over all that the commands depend on
 *   FOLDER/.lock-devcontainer-PLACE-CONTENT    locked (flock) by the process that runs the commands;
 *                                              that process removes the file. A killed one leaves it,
 *                                              free, to the next process or to prepared_prune
 *
 * FOLDER is that of all snapshots of a user (snapshot_place). A snapshot appears by one rename, so for
 * each name there is either nothing or all of it.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "image/snapshot.h"

#include <stdbool.h>
#include <stddef.h>

/* Begins all names, and is the word of such a base. */
#define PREPARED_KIND "devcontainer"

enum {
	PREPARED_PLACE = 12,   /* digits of PLACE */
	PREPARED_CONTENT = 36, /* digits of CONTENT */
	PREPARED_NAME_ROOM = SNAPSHOT_NAME_MAX + 1,
};

/* All that the commands depend on. */
struct prepared_content {
	const char *workspace; /* absolute; its files that name versions are read */
	int folder;            /* the same, open */
	const char *shown;     /* the place of the workspace in the cell */
	const char *file;      /* the file of the commands, relative to the workspace */
	struct str text;       /* that it holds */
	const char *below;     /* the digest of the image */
};

/*
 * Set NAME to that of the snapshot for CONTENT. Files that the commands write into the workspace stay
 * there, so the name is for this workspace only.
 */
void prepared_name(const struct prepared_content *content, char name[PREPARED_NAME_ROOM]);
/* Has NAME the form of these names? No other snapshot may get such a name. */
bool prepared_is_name(const char *name);

/* The right to run the commands for one name. */
struct prepared_lock {
	int fd; /* -1: not held */
	char *path;
};
/*
 * Hold the lock of NAME in FOLDER; nobody waits. prepared_unlock in any case. False: ERR.code is
 * EWOULDBLOCK when another process holds it.
 */
bool prepared_lock(const char *folder, const char *name, struct prepared_lock *lock,
		   struct err *err);
void prepared_unlock(struct prepared_lock *lock);

/*
 * Remove what older contents of the file of NAME have left in FOLDER. The newest of them stays, because
 * work goes to and fro between two branches, and so do those that a cell or another snapshot is on. A
 * snapshot that cannot be removed is left to the next time.
 */
void prepared_drop_older(const char *folder, const char *name);

/*
 * Remove those snapshots of LIST, of FOLDER, whose workspace is gone (SNAPSHOT_WORKSPACE_GONE), so that no
 * cell finds them by a file; with DRY only find them. Their member `goes` becomes true. Those that a cell
 * or another snapshot is on stay. Without DRY, half-made snapshots of killed processes go as well
 * (snapshot_tidy). Returns the number of locks of killed processes that went as well, or would go.
 */
size_t prepared_prune(const char *folder, struct snapshot_list *list, bool dry);
