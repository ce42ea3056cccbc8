/*
 * place_journal: the record that a killed write leaves to its successor. The front keeps
 * a file and hands it to the worker with its call (pending.h). A write puts the names of
 * its temporary files and their places in it before these exist, and empties it when it
 * is over. A journal that is found with rows in it is worked off by place_finish.c: when
 * it says that everything was prepared, and nobody has changed one of the files since,
 * the write is finished; else all of it is undone.
 *
 * A worker under an attacker's control may write anything into its journal. Therefore a
 * journal can do no more than this: move a temporary file (whose name has our pattern)
 * over another file in the same folder. The folder must lie beneath the roots, at a place
 * that both the writing agent and the finishing one may write. The other file must still
 * be the one that the writer saw, by inode and times. For place*.c and undo_place.c only.
 */
#pragma once
#include "files/files.h"
#include "files/place_temp.h"

#include <stdbool.h>
#include <stddef.h>

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
bool journal_begin(const struct files *files, const struct journal_row *rows,
		   size_t count, bool lasting);
/*
 * Note that all temporary files are on disk. From now on a killed write is finished, not
 * undone.
 */
bool journal_commit(const struct files *files, const struct journal_row *rows, size_t count);
/* The write is over. Keeps errno. */
void journal_end(const struct files *files);
