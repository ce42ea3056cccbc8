/*
 * place_journal: what a write leaves behind for whoever comes after it was killed. A file that
 * the front keeps and hands to the worker with its call (pending.h) names, before they exist,
 * the temp files of a write and where they belong. It is empty again when the write is over.
 * Found with something in it, the write is finished when it says that everything was prepared
 * and nobody has changed one of its files since; else all of it is taken back (place_finish.c).
 *
 * A worker that was taken over writes there what it likes. It therefore moves nothing but a
 * temp file (by our pattern of names) over its neighbour in the same folder, beneath the
 * roots, where both the agent that wrote it and the one that finishes may write, and only
 * while the neighbour is still the file, by inode and times, that the writer had seen. For
 * place_item.c, place_write.c and undo_place.c only.
 */
#pragma once
#include "files/files_inside.h"
#include "files/place_temp.h"

#include <stdbool.h>
#include <stddef.h>

/* One file of a write: both temp names are in its folder and may stay unused. */
struct journal_row {
	const char *folder; /* real, absolute */
	const char *name;
	char temp[TEMP_NAME]; /* the new content; after an exchange the old one */
	char keep[TEMP_NAME]; /* the old content where names cannot be exchanged */
	bool removes;
	/* known by the time of journal_commit */
	struct stat made; /* the new content, under its temp name */
	bool existed;
	struct stat old;
};

/*
 * Note ROWS; LASTING: on disk before it returns. Where FILES has no journal it is true all the
 * same. False with errno: no space for it.
 */
bool journal_begin(const struct files *files, const struct journal_row *rows,
		   size_t count, bool lasting);
/* All temp files are there and lasting: from now on the write is finished, not undone. */
bool journal_commit(const struct files *files, const struct journal_row *rows, size_t count);
/* The write is over. Keeps errno. */
void journal_end(const struct files *files);
