/*
 * review: the store of layers. With --review everything that a cell writes goes into a
 * layer: folders below the user's state that outlive the cell, until a person lands or
 * drops them. `PROJECT` is the name that the undo store gives a workspace, `ID` is eight
 * hexadecimal digits:
 *
 *   FOLDER/PROJECT/ID/meta.json   what the layer is (struct review_meta); replaced whole
 *   FOLDER/PROJECT/ID/lock        locked (flock) by the session or the verb at work
 *   FOLDER/PROJECT/ID/trees/N/    one folder per writable tree of the policy (layer.h):
 *                                 VIEW_LAYER_UPPER is the upper folder of the overlay
 *   FOLDER/PROJECT/ID/changes.log an undo log (record.h): for each path what was below when
 *                                 it was first seen changed, with content, and what the
 *                                 layer held then; another row for what was landed of it
 *                                 while the layer stayed open. Paths are absolute
 *   FOLDER/PROJECT/ID/unsynced.X  while the disk has not confirmed what a session X wrote
 *   FOLDER/PROJECT/ID/undo/       the undo store of the sessions in the layer
 *   FOLDER/PROJECT/ID/pending/    what a killed session in the layer was writing (pending.h): only
 *                                 a session in the layer finds those files
 *
 * Where the file system of the state folder keeps no layer (an overlay, as in a container, one
 * without extended attributes, or one of a network), `trees` lies in memory that outlives the
 * process: glovebox-review-ID in the caller's folder of /run/user, or in /dev/shm. A restart of
 * the machine loses that, and so does the end of a login. When a session ends, what the layer holds
 * is therefore saved in FOLDER/PROJECT/ID/saved (saved.h), whole or not at all, and review_restore
 * builds it again. The marks `unsynced.X` then stand for a session that is not saved.
 *
 * Where the kernel lays no layer over a tree at all, ID/trees/N holds a copy of the tree and a list
 * (copy.h), and what differs from the list is what the layer holds.
 *
 * A layer is made as `ID.tmp`, with its description, and renamed; one that nobody locks is
 * left over and goes. One to which nothing was added is emptied and becomes FOLDER/PROJECT/.spare,
 * from which the next one is made: folders that are made and removed are most of what a layer
 * costs. Dropping writes the state first, then removes: a killed one is gone on
 * with by the next review_tidy. Layers that are open are never removed here.
 *
 * The layer of a delegate whose caller works in a layer lies over that one. What it holds is
 * compared with that layer, into which the caller lands it; it goes to the person's folder with
 * it, or by itself when that layer is landed or dropped.
 *
 * All that is read back is foreign: files below `trees` and `changes.log` are of a cell's
 * programs and workers, and a description may be damaged. A description is bounded and
 * checked, and every failure is a sentence.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/json/fields.h"
#include "base/str.h"
#include "base/value.h"
#include "sandbox/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum {
	REVIEW_ID = 9,          /* eight hexadecimal digits and the NUL */
	REVIEW_ID_LEAST = 6,    /* digits of a prefix that names a layer */
	REVIEW_BOOT = 37,       /* the kernel's boot id and the NUL */
	REVIEW_TREES_MAX = 64,  /* writable trees of one layer */
	REVIEW_LIST_MAX = 4096, /* layers of one workspace that are looked at */
	/* open layers and their bytes, over which each session says so once */
	REVIEW_OPEN_MANY = 10,
	REVIEW_OVER_MAX = VIEW_LOWERS_MAX, /* layers below one layer */
};
#define REVIEW_OPEN_LARGE ((uint64_t)10 << 30)

enum review_state { REVIEW_OPEN, REVIEW_LANDED, REVIEW_DROPPED, REVIEW_STATES };
/* "open", "landed" or "dropped", for people and programs. */
const char *review_state_name(enum review_state state);

/* The files that a layer holds, as its last session has counted them. */
struct review_counts {
	int64_t changed, added, removed;
	int64_t bytes; /* of the changed and added files */
	bool other;    /* a folder, attributes or commits differ, which are no files */
	bool partial;  /* there may be more: a walk was cut off, or a worker was killed */
};
/* As an object. A number below 0, or one that no disk holds, does not fit. */
extern const struct field review_count_fields[];

/* Where the tree of a layer lies, as it was found by trying (carrier.h). */
enum review_place { REVIEW_ON_DISK, REVIEW_IN_MEMORY, REVIEW_COPIED, REVIEW_PLACES };

/* One writable tree of a layer. */
struct review_tree {
	char *path; /* real */
	bool copied; /* the kernel lays no layer over it: its upper folder is a copy (copy.h) */
};

/* The description of a layer. Texts are owned by it. */
struct review_meta {
	char id[REVIEW_ID];
	char *workspace; /* real */
	uint64_t device, inode;
	char *agent;   /* whose policy it was */
	char *command; /* to be shown, cut; "" in a session of an agent */
	/*
	 * The layers over which this one was made (below.h), the nearest first: those of the
	 * agents that have delegated its work.
	 */
	char **over;
	size_t over_count;
	/* of that session, as spec_rights gives them, with the layer's trees writable */
	struct value *rights;
	char boot[REVIEW_BOOT]; /* of the machine when it was last written to */
	enum review_state state;
	/* by the clock that stamps files, rounded up: a later file may be changed since */
	int64_t created_ms;
	bool memory;  /* the trees lie in memory, but for copies */
	int64_t most; /* bytes that such trees may hold to be saved: limits.tmp */
	struct review_tree *trees; /* the tree N is below ID/trees/N */
	size_t tree_count;
	struct review_counts counts;
};

void review_meta_fini(struct review_meta *meta);
bool review_meta_print(const struct review_meta *meta, struct buf *out);
/* META is zero. False, with META zero: TEXT is no sound description. */
bool review_meta_parse(struct str text, struct review_meta *meta, struct err *err);

/* The life of a layer in this process. */
enum review_life {
	REVIEW_FOUND, /* another session has made it */
	REVIEW_MADE,  /* new, and not found by anybody (review_publish) */
	REVIEW_USED,  /* a session writes into it */
	REVIEW_LEFT,  /* that session has ended */
};

/* An open layer. */
struct review {
	struct review_meta meta;
	enum review_life life;
	char *path;           /* of the layer */
	bool fresh;           /* made by this process */
	bool spare;           /* from the folders of an unchanged layer */
	int project;          /* the folder that holds the layer */
	int folder;           /* of the layer */
	int lock;             /* -1: not locked by this process */
	char mark[REVIEW_ID]; /* of `unsynced.X` of this session; "": none */
	bool written;         /* a call of this session may have written */
	bool unwanted;        /* it is removed after this session: nothing is saved */
	char *unsaved;        /* why the end of the session did not save it; or NULL */
};

/*
 * The folder of all layers, below the caller's state ("…/glovebox/review"), from the values
 * of XDG_STATE_HOME and HOME. False: there is neither.
 */
bool review_place(const char *state_home, const char *home, struct buf *folder);

/* The flag, as sentences name it. */
#define REVIEW_KEY "--review"

/* The folder in a layer for what its killed sessions leave. */
#define REVIEW_PENDING "pending"

/* A new name for a layer, which the caller gives to review_make. False with errno. */
bool review_new_id(char id[REVIEW_ID]);

/*
 * Make an open layer in FOLDER for the folder WORKSPACE (a real path), locked for BY
 * ("glovebox exec"), with the name ID, or a new one when ID is NULL. It has no trees yet and
 * is not found by anybody: review_add_tree and review_publish follow. Closed before that it
 * goes.
 */
bool review_make(const char *folder, const char *workspace, const char *id,
		 const char *by, struct review **review, struct err *err);
/*
 * The NUMBER of the tree for PATH in REVIEW. A new layer gets it; in another one a tree that
 * is missing is an error.
 */
bool review_add_tree(struct review *review, const char *path, size_t *number,
		     struct err *err);
/*
 * Make the folder of the tree NUMBER of a new layer at PLACE, where it is tried next. Only the
 * first tree decides whether those after it lie in memory. False: it cannot lie there.
 */
bool review_move_tree(struct review *review, size_t number, enum review_place place,
		      struct err *err);
/* The folder of all of our state, which no copy takes in. False with errno. */
bool review_state_folder(const struct review *review, struct stat *st);
/* The path of the folder of that tree, as it is once the layer is published; free() it. */
char *review_tree_path(const struct review *review, size_t number);
/* That folder, O_PATH; -1 with errno. */
int review_open_tree(const struct review *review, size_t number);
/*
 * Write the description of a new layer and give it its name. `agent`, `command` and `rights` of
 * its description are set before. The layer is used from now on, a new one or not.
 */
bool review_publish(struct review *review, struct err *err);

/*
 * Open a layer of WORKSPACE (a real path) in FOLDER, not locked: the one whose id begins
 * with ID (six digits or more, and only one may fit), or without ID the newest open one; one
 * that a killed session left without a change only when there is no other.
 * False: there is none (ENOENT), several fit (EEXIST), it is another user's (EPERM), its
 * description is damaged (EINVAL), or another folder is at WORKSPACE now (ESTALE).
 */
bool review_open(const char *folder, const char *workspace, const char *id,
		 struct review **review, struct err *err);
/* NULL is fine. Gives the lock back. */
void review_close(struct review *review);

/*
 * Lock REVIEW for BY, and read its description again. False with EBUSY and a sentence that
 * names the process that uses it. Never waits.
 */
bool review_lock(struct review *review, const char *by, struct err *err);
/* Set ERR to that sentence, about the process that has locked REVIEW. Returns false. */
bool review_say_used(const struct review *review, struct err *err);

/* Change the state and replace the description. REVIEW is locked. */
bool review_set_state(struct review *review, enum review_state state, struct err *err);

/*
 * A session begins to write into REVIEW, which is locked: notes that the disk has not
 * confirmed it, and takes the mark of `volatile` from the trees, with which the kernel
 * refuses to mount them again. review_publish follows.
 */
bool review_begin(struct review *review, struct err *err);
/*
 * The session has ended: writes COUNTS. A process of its own lets the disk
 * confirm all of it, and nobody waits for that process. A layer in memory is saved when it was
 * written to; where that fails, it stays in memory, and `unsaved` says why.
 */
bool review_end(struct review *review, const struct review_counts *counts, struct err *err);

/*
 * Is there room in REVIEW beside the BYTES that it holds, with the limits LAYER and, for
 * memory, TMP of a policy? False: ERR says what to do.
 */
bool review_has_room(const struct review *review, int64_t bytes, uint64_t layer,
		     uint64_t tmp, struct err *err);
/* Is REVIEW a new layer without a change, which is removed and not kept? */
bool review_is_empty(const struct review *review);
/* Has no program made a name in REVIEW? So it is when its session was killed early. */
bool review_is_bare(const struct review *review);

/* The harm of a crash of the machine to a layer in which a session worked. */
enum review_cut {
	REVIEW_WHOLE, /* there was none */
	REVIEW_SHORT, /* files of it may be short */
	REVIEW_OLDER, /* it lay in memory, and what came after it was saved is lost */
};
enum review_cut review_cut(const struct review *review);

/* Does REVIEW, which lies in memory, outlive that memory as it is now? */
bool review_is_saved(const struct review *review);
/*
 * Build the trees of REVIEW, which is locked, where they lay in memory and are gone, and say so in
 * a line of TOLD. False: nothing of it was saved, or that cannot be built.
 */
bool review_restore(struct review *review, struct buf *told, struct err *err);

/* Is some tree of REVIEW a copy? */
bool review_has_copy(const struct review *review);
/* The upper folder of the tree N, O_PATH | O_DIRECTORY; -1 with errno. Not inside a cell. */
int review_open_upper(const struct review *review, size_t n);
/* The list of the tree N, which is a copy; -1 with errno. */
int review_open_list(const struct review *review, size_t n);
/* changes.log; -1 with errno. */
int review_open_log(const struct review *review, bool writes);

/* The layers of WORKSPACE, newest first. */
struct review_item {
	struct review_meta meta; /* of a damaged layer only `id` */
	bool damaged;
	bool used;  /* locked by a session or a verb */
	bool saved; /* as review_is_saved says */
};
struct review_list {
	struct review_item *items;
	size_t count;
	size_t open; /* how many are open */
	uint64_t open_bytes;
};
/* No layers and no folder are no failure. review_list_fini in either case. */
bool review_list_read(const char *folder, const char *workspace, struct review_list *list,
		      struct err *err);
void review_list_fini(struct review_list *list);

/*
 * Drop REVIEW, which is locked and whose cell has ended: its state first, then all that it
 * holds. Its description stays for seven days. False: some of it is still there, or it is not
 * dropped. This and all further removals are made by removal.h.
 */
bool review_drop(struct review *review, struct err *err);
/*
 * Throw away what REVIEW, which is locked, holds at the absolute path PATH and below. The review
 * stays open. Where it lies in memory, it is saved anew.
 */
bool review_drop_path(struct review *review, const char *path, struct err *err);
/*
 * Remove REVIEW with its description, whatever its state; it is only closed after that. The
 * folders of one without a change are left for the next.
 */
void review_remove(struct review *review);
/* Remove the layer ID (or a prefix) of WORKSPACE, which review_open found damaged. */
bool review_remove_damaged(const char *folder, const char *workspace, const char *id,
			   struct err *err);
/*
 * Go on with the removal of dropped layers, remove what a killed process has left half
 * made, and layers that were landed or dropped seven days ago.
 */
void review_tidy(const char *folder, const char *workspace);
