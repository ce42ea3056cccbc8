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

#include "base/str.h"
#include "files/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

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
