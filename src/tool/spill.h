/*
 * spill: files in the cell's temporary folder that hold the output for which an answer
 * had no room. A spill is nameless until it is kept; the newest SPILL_KEPT stay.
 *
 * base/text/text.h cuts long texts and long lines. The whole output of the command is
 * then in a spill file, in which tools/tests/failing.h finds the lines that report a
 * failure.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { SPILL_KEPT = 16 };

/*
 * Set PATH to the folder of the spill files, from a program's ENVIRONMENT. Returns its
 * text.
 */
const char *spill_folder(const char *const *environment, struct buf *path);

/*
 * Open a nameless file below FOLDER (which is made when missing). -1: there is no
 * spill.
 */
int spill_open(const char *folder);
/* Name the file, and set PATH to FOLDER/N.log. */
bool spill_keep(int fd, const char *folder, struct buf *path);

/*
 * A spill that is filled piece by piece. Initialise it with {.fd = -1}, end it with
 * spill_fini.
 */
struct spill {
	const char *const *environment; /* of the call's programs */
	int fd;
	bool tried; /* the first byte makes the file */
	uint64_t kept, dropped;
};
/*
 * Append BYTES, up to PROGRAM_SPILL in all. Once some bytes were dropped, all later
 * ones are.
 */
void spill_add(struct spill *spill, struct str bytes);
/* If the spill holds something, name it and set PATH. */
bool spill_name(const struct spill *spill, struct buf *path);
void spill_fini(struct spill *spill);
