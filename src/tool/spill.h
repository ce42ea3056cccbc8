/*
 * spill: files in the cell's temporary folder that hold what an answer had no room for. A
 * spill is nameless until it is kept; the newest SPILL_KEPT stay.
 *
 * base/text/text.h cuts long texts and long lines. The output of a command beyond that
 * lies in a spill, of which tools/failing.h tells the lines that speak of a failure.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { SPILL_KEPT = 16 };

/* The folder of the spill files, from a program's ENVIRONMENT: PATH becomes it. Returns its text. */
const char *spill_folder(const char *const *environment, struct buf *path);

/* A nameless file below FOLDER (made when missing), or -1: then there is no spill. */
int spill_open(const char *folder);
/* Name it: PATH becomes FOLDER/N.log. */
bool spill_keep(int fd, const char *folder, struct buf *path);

/* One that is filled piece by piece: {.fd = -1} at first, spill_fini afterwards. */
struct spill {
	const char *const *environment; /* of the programs of its call */
	int fd;
	bool tried; /* the file is made for the first byte */
	uint64_t kept, dropped;
};
/* Append BYTES, up to PROGRAM_SPILL in all: once something was dropped, all that follows is. */
void spill_add(struct spill *spill, struct str bytes);
/* Name it, when it holds something: PATH becomes it. */
bool spill_name(const struct spill *spill, struct buf *path);
void spill_fini(struct spill *spill);
