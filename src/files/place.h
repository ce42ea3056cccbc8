/*
 * place: finds where files are to be written, and writes a set of them whole or not at
 * all. Its journal is the record that a killed write leaves to its successor. The front
 * keeps the journal as a file and hands it to the worker with its call (pending.h). A
 * write puts the names of its temporary files and their places in it before these
 * exist, and empties it when it is over. place.c works off a journal that still has
 * rows: when it says that everything was prepared, and none of the files has changed
 * since, place.c finishes the write; else it undoes all of it.
 *
 * A worker under an attacker's control may write anything into its journal. Therefore
 * a journal can do no more than this: move a temporary file (whose name has our
 * pattern) over another file in the same folder. The folder must lie beneath the
 * roots, at a place that both the writing agent and the finishing one may write. The
 * other file must still be the one that the writer saw, by inode and times.
 *
 * Files of one change take their names one after the other, because no file system does
 * it otherwise. The journal lets the next worker finish or undo the work of a killed
 * one. It lies in the user's state folder, which no command can reach. The paths that
 * its session could write are stored in another file, which no worker can reach
 * (rights.h), so that a later session with more rights does nothing for an earlier
 * session that the earlier one could not have done itself. Without a state folder the
 * journal lies in memory and survives the worker only. `apply_patch` as a command has
 * no journal, because a command can forge what it can reach.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "files/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/*
 * The place where PATH would be written: its folder (made with its parents when MAKE) as
 * O_PATH descriptor and the final name. A symlink as last name is followed inside the
 * roots. ERR.code EROFS or EPERM: the policy or the view forbids writing there,
 * FILES_PROTECTED: it is a `.git` or below one, FILES_AUTOEXEC: it is a protected name of
 * autoexec.h at the top of a root or of a worktree. The policy lifts both protections by
 * naming a path in there as writable. ENOENT, EISDIR, ENXIO as for
 * files_reach.
 */
struct place {
	int folder_fd;
	struct buf folder; /* real, absolute */
	char *name;
	bool exists;
	struct stat st;      /* when it exists; a regular file */
	size_t made_folders; /* parents that files_place made, from the folder upwards */
	struct files *files;
	const struct files_held *root; /* the root that holds the place */
};
void place_init(struct place *place);
void place_fini(struct place *place);
bool files_place(struct files *files, const char *path, bool make, struct place *place,
		 struct err *err);

/* Remove the folders that files_place made for PLACE, as far as they are empty. */
void place_unmake_folders(struct place *place);

/* The whole content of the file at PLACE (it must exist), at most MAX bytes (EFBIG). */
bool place_read(const struct place *place, size_t max, struct buf *content,
		struct stat *st, struct err *err);

/*
 * Put CONTENT at PLACE so that readers see the old or the new file at every moment: write
 * a nameless or randomly named temporary file in the same folder, copy mode, owner,
 * xattrs and ACL of the old file, fsync, rename, fsync the folder.
 *
 * With EXPECTED_MARK, the old content must have this mark (else EAGAIN), and the writers
 * of one file take turns: each one locks the opened old file, which must still have its
 * name. With EXPECTED_MARK NULL, the file must not exist yet (EEXIST). ENOSPC and EDQUOT
 * leave the old file unchanged, and the sentence says so. A failed write removes the
 * folders that were made for it.
 */
bool place_write(struct place *place, struct str content, const char *expected_mark,
		 struct err *err);

/* One file of a set. */
struct place_change {
	struct place *place;
	struct str content;
	const char *expected_mark; /* as for place_write */
	/* the content behind the mark, which is faster to compare; data may be NULL */
	struct str expected;
	bool removes; /* the file is removed; expected_mark must be given then */
	/*
	 * 0: those of the old file, or those of any new file; else the permissions (no
	 * set-id bits)
	 */
	mode_t mode;
	/* a new file gets owner, xattrs and ACL of this file; NULL: its own */
	const struct place *like;
};

/*
 * Make all COUNT changes or none. First everything is prepared: all temporary files are
 * on disk, all old files are locked and compared. Then the names are exchanged one by
 * one. When an exchange fails, the earlier ones are undone.
 *
 * A killed process leaves in its journal what place_finish needs to know. That
 * function finishes the set when all of it was prepared and nobody has changed a file of
 * it since; else it restores all old files. So a reader may see some files new and others
 * old while the set is being written, and never afterwards. ERR as for place_write, with
 * the file's name.
 */
bool place_write_set(struct place_change *changes, size_t count, struct err *err);

/*
 * The rows of the journal FD of a killed writer, as a list. NULL: its write was complete.
 */
struct value *place_unfinished(int fd);
/*
 * When one list holds the rows of several writes, this member is the number of the write
 * that a row belongs to. Rows of one write stand together.
 */
#define JOURNAL_SET "set"
/*
 * Finish or undo the writes in ROWS, each one as a whole. Only rows at places that FILES
 * may write are touched.
 */
void place_finish(struct files *files, const struct value *rows);

/* Shared with undo/place.c: temporary files and the journal. */

/*
 * A temporary file in the folder of its place. It is nameless (O_TMPFILE) where
 * possible, so that a killed writer leaves nothing behind. Failures are left in errno.
 */

enum { TEMP_NAME = 40 };

struct temp {
	int fd;
	int folder_fd;
	char name[TEMP_NAME]; /* empty while nameless; temp_drop removes it */
};

/* A new random name, and whether NAME (or NULL) is of that kind. */
void temp_make_name(char name[TEMP_NAME]);

/*
 * Create a temporary file, nameless when NAME is NULL. NAME is for folders in which
 * nameless files cannot be made or linked.
 */
bool temp_open(struct temp *temp, int folder_fd, const char *name, mode_t mode);
/* Give the nameless file the name NAME, which must be free. */
bool temp_link(const struct temp *temp, const char *name);
/* Close TEMP and remove its name, if it still has one. Keeps errno. */
void temp_drop(struct temp *temp);

/*
 * One file of a write: both temporary names are names in its folder and may stay unused.
 */
struct journal_row {
	const char *folder; /* real, absolute */
	const char *name;
	char temp[TEMP_NAME]; /* the new content; after an exchange, the old one */
	char keep[TEMP_NAME]; /* the old content where names cannot be exchanged */
	bool removes;
	/* set before journal_commit */
	struct stat made; /* the new content, under its temporary name */
	bool existed;
	struct stat old;
};

/*
 * Note ROWS; with LASTING they are on disk when the function returns. True also when
 * FILES has no journal. False with errno: there was no space.
 */
bool place_journal_begin(const struct files *files, const struct journal_row *rows,
			 size_t count, bool lasting);
/* The write is over. Keeps errno. */
void place_journal_end(const struct files *files);
/*
 * Note, before it happens and between two writes, that the folder FOLDER (real, absolute)
 * is opened to its owner for a while and gets the permissions MODE in the end. If this
 * process is killed (the lines are not synced, so not after a power failure), place_finish
 * gives them to the folder; of several MODEs the last one. place_journal_closed: all
 * folders have theirs. A journal that is full, or cannot be written, does not stop the
 * caller.
 */
void place_journal_opened(struct files *files, const char *folder, mode_t mode);
void place_journal_closed(struct files *files);
