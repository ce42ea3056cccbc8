/*
 * place_journal: what a write leaves behind for whoever comes after it was killed. A file
 * FILES_JOURNAL in the writable root names, before they exist, the temp files of a write and
 * where they belong. It is locked as long as its writer lives, so the writes of one root take
 * turns for the moment of their renames. Found unlocked, it is finished when it says that
 * everything was prepared, and rolled back otherwise (files_finish_writes).
 *
 * It lies where commands may write, so it can be forged. It therefore moves nothing but a
 * temp file (by our pattern of names) over its neighbour in the same folder, beneath the
 * roots, where the finishing agent itself may write, and only while the neighbour is still
 * the file, by inode and times, that the writer had seen. For place.c only.
 */
#pragma once
#include "runtime/files_inside.h"
#include "runtime/place_temp.h"

#include "base/err.h"

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
	uint64_t new_inode;
	bool existed;
	struct stat old;
};

struct journal {
	int fd; /* -1: none, the root's folder takes no files of ours */
	int folder_fd;
};

/*
 * Wait for the turn, finish what is found, and note ROWS. LASTING: on disk before it
 * returns. Where the folder is not writable by its mode there is no journal, and it is true
 * all the same. False: no space, or another program holds it for too long.
 */
bool journal_begin(struct journal *journal, const struct files *files,
		   const struct files_held *root, const struct journal_row *rows,
		   size_t count, bool lasting, struct err *err);
/* All temp files are there and lasting: from now on the write is finished, not undone. */
bool journal_commit(struct journal *journal, const struct journal_row *rows, size_t count);
/* Remove it and let the next one in. Keeps errno. */
void journal_end(struct journal *journal);
