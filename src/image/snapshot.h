/*
 * snapshot: the store of snapshots (`cell/snapshot` of `glovebox serve`). A snapshot is a
 * folder with the files that a cell's workspace had, frozen under a name: any number of cells
 * work in layers over it, and nobody writes into it. Where the cell was on a base, the snapshot
 * also has what the cell had changed of its root: `snapshot:NAME` is a base then (image/base.h).
 *
 *   FOLDER/NAME/meta.json   what it is (struct snapshot); written before it has its name
 *   FOLDER/NAME/lock        locked shared (flock) as long as a cell works over it
 *   FOLDER/NAME/tree/       its files
 *   FOLDER/NAME/layer/      the changes of the root, in the form of an unpacked layer (store.h)
 *   FOLDER/NAME/unsynced    the boot of the machine in which it was made, until the disk has
 *                           confirmed all of it
 *   FOLDER/.new-XXXXXXXX/   one that is being made, and FOLDER/.old-XXXXXXXX/ one that is
 *                           being removed, with the lock held. Killed ones go with the next
 *                           snapshot_begin or snapshot_tidy
 *
 * A snapshot gets its name by one rename when it is whole, so that a killed process leaves it
 * there or not there. A name is never given twice as long as it exists. FOLDER is that of one
 * user (snapshot_place).
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SNAPSHOT_NAME_MAX = 64,   /* bytes of a name */
	SNAPSHOT_LIST_MAX = 4096, /* snapshots that are listed */
};

/* The word of --base is this and the name. */
#define SNAPSHOT_WORD "snapshot:"

/* A snapshot that is open or being made. Texts are owned by it. */
struct snapshot {
	char *name;
	char *tree; /* the absolute path of its files, where they are now */
	char *from; /* the workspace whose files they were, to be shown */
	char *disk; /* the file system on which `from` lay, and its place; or NULL; for this module */
	/* the hash over its files: names, contents, permissions and times (SHA-256) */
	char digest[HASH_HEX + 1];
	int64_t entries, bytes; /* of all its files together */
	int64_t created_ms;     /* by the wall clock */
	/* the layer of a root: its folder, and the hash over its tar; NULL and "": it has none */
	char *layer;
	char layer_digest[HASH_HEX + 1];
	/* the base below that layer: its word, and its digest where it has one; or NULL */
	char *base, *base_digest;
	char *path;                      /* of its folder; for this module */
	int lock;                        /* -1: it is not locked by this process */
	bool is_new;                     /* it has no name yet */
	struct unpacked_tree *unpacking; /* of its layer; or NULL; for this module */
};

/*
 * The folder of all snapshots of a user, from the values of XDG_DATA_HOME and HOME. False:
 * there is neither.
 */
bool snapshot_place(const char *data_home, const char *home, struct buf *folder);
/* May a snapshot have NAME: letters, digits, ".", "_" and "-", and no dot at its beginning? */
bool snapshot_check_name(const char *name, struct err *err);

/*
 * Begin the snapshot NAME in FOLDER: the caller fills the empty folder `tree`, and the members
 * from `from` to `bytes`, but `disk`. snapshot_close in either case. False with EEXIST: the name is taken.
 */
bool snapshot_begin(const char *folder, const char *name, struct snapshot *snapshot,
		    struct err *err);
/*
 * ARCHIVE (borrowed) has the changes of a root on the base WORD with the digest DIGEST ("": it has
 * none), as tree_get packs them: begin to unpack them for the new SNAPSHOT, in a process of its own
 * (unpacked.h), for which snapshot_finish waits. ARCHIVE is needed in this call only.
 */
bool snapshot_add_layer(struct snapshot *snapshot, int archive, const char *word,
			const char *digest, struct err *err);
/* A descriptor that can be read when the layer is unpacked, so that nobody waits; -1: none is being. */
int snapshot_unpacks(const struct snapshot *snapshot);
/*
 * SNAPSHOT is whole, when its layer is unpacked: describe it and give it its name. False, with EEXIST when somebody else has
 * taken the name: it stays as it is. A process of its own lets the disk confirm it.
 */
bool snapshot_finish(struct snapshot *snapshot, struct err *err);

/*
 * Open the snapshot NAME in FOLDER, which is not removed as long as it is open. snapshot_close
 * in either case. False: there is none (ENOENT), it is being removed (EBUSY), it is damaged
 * or a crash of the machine may have cut it (EINVAL).
 */
bool snapshot_open(const char *folder, const char *name, struct snapshot *snapshot,
		   struct err *err);
/* One that has no name is removed. A zero SNAPSHOT is fine. */
void snapshot_close(struct snapshot *snapshot);

/* The workspace `from` of a snapshot, as this process sees it now. */
enum snapshot_workspace {
	SNAPSHOT_WORKSPACE_THERE, /* also one that cannot be looked at */
	SNAPSHOT_WORKSPACE_AWAY, /* nothing is there, but a disk that is not mounted may hold it */
	SNAPSHOT_WORKSPACE_GONE, /* nothing is there, and the disk on which it lay is mounted there */
};
/*
 * Look where the workspace of SNAPSHOT, an open or listed one, is. What can be lost with a wrong answer is
 * not gone: the folder that holds its name must be on the same file system, mounted at the same place, as
 * when the snapshot was made. A snapshot that does not tell that file system, and a folder whose names are
 * encrypted, leave it at AWAY.
 */
enum snapshot_workspace snapshot_find_workspace(const struct snapshot *snapshot);

struct snapshot_item {
	struct snapshot snapshot; /* of a damaged one only the name */
	bool damaged;
	bool used; /* a cell works over it */
	bool goes; /* prepared_prune removes it (devcontainer/prepared.h) */
};
struct snapshot_list {
	struct snapshot_item *items; /* by name */
	size_t count;
};
/* No snapshots and no folder are no failure. snapshot_list_fini in either case. */
bool snapshot_list_read(const char *folder, struct snapshot_list *list, struct err *err);
void snapshot_list_fini(struct snapshot_list *list);

/*
 * Remove the snapshot NAME: first its name, then its files. False: there is none (ENOENT), or a
 * cell works over it (EBUSY).
 */
bool snapshot_remove(const char *folder, const char *name, struct err *err);
/* Remove what killed processes have left half made or half removed. */
void snapshot_tidy(const char *folder);
