/*
 * place: finds where files are to be written, and writes a set of them whole or not at
 * all. The log of the call (files_keep, record.h) is the record that a killed write leaves
 * to its successor. A write notes the names of its temporary files and folders there before
 * these exist, and that it is over. place_put_back works off a log in which a write has no
 * end: it removes the temporary files and the folders that are empty, and of a set that was
 * not complete it restores every file as it was.
 *
 * A worker under an attacker's control may write anything into its log. Therefore a log
 * can do no more than this: move a temporary file (whose name has our pattern) over
 * another file in the same folder. The folder must lie beneath the roots, at a place that
 * both the session of the writer and the present one may write. The other file must be the
 * one that the log names, by inode, size and time. The old content always still lies under
 * a temporary name, so that restoring it needs no space, and keeps its owner and links. It
 * is known by its inode, because a program that had it open may have written it since.
 *
 * A set ends as all old files, as all new ones, or as it was found with its log kept. A
 * name counts as absent only when the kernel says so; when a look fails in another way, the
 * set waits for a later session. Every row is judged before the first one is moved, each
 * move can be undone, and no temporary file goes before the old files are in place and on
 * disk.
 *
 * Files of one change take their names one after the other, because no file system does
 * it otherwise. The log of every call that writes lies in the user's state folder, which
 * no command can reach, as long as the call goes on: as a step in the store of undo, or as
 * a file of its own where there is no such store (pending.h). The paths that its session
 * could write are stored in another file, which no worker can reach (rights.h), so that a
 * later session with more rights does nothing for an earlier session that the earlier one
 * could not have done itself. Without a state folder the log lies in memory and survives
 * the worker only. `apply_patch` as a command has no log, because a command can forge what
 * it can reach.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "files/files.h"
#include "files/record.h"

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

/*
 * May a tool write REAL, a real path or one without links? ERR as for files_place; SHOWN is the
 * path in the sentence.
 */
bool place_may_write(const struct files *files, const char *real, const char *shown,
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
 * A killed process leaves in its log what place_put_back needs to know: a set stays when
 * all of it was in place, and is taken back otherwise. So a reader may see some files new
 * and others old while the set is being written, and never afterwards. ERR as for
 * place_write, with the file's name.
 */
bool place_write_set(struct place_change *changes, size_t count, struct err *err);

/*
 * Work off the log FD, open for reading and writing, of a killed writer whose session had
 * the RIGHTS (rights.h): put back a set that does not stand, remove temporary files, give
 * opened folders their permissions. A file that somebody has changed since stays. Of a set
 * that was put back, the log holds nothing afterwards; else a note says that it is worked
 * off. TOLD (or NULL) gets a line for each old file that had to stay under its temporary
 * name, because somebody else's file has the place, and for each temporary file that a
 * damaged log names: nothing else is done with such a log. False: FILES may not write one of the
 * places, or one of them could not be looked at or moved. Then the files stay as they are,
 * and a later session has to do it all; doing it again changes nothing that is done.
 */
bool place_put_back(struct files *files, int fd, const struct value *rights,
		    struct buf *told);

/* Shared with undo/place.c: temporary files. */

/*
 * A temporary file in the folder of its place. It is nameless (O_TMPFILE) where
 * possible, so that a killed writer leaves nothing behind. Failures are left in errno.
 */

enum { TEMP_NAME = UNDO_TEMP_NAME };

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
