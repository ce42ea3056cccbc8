/*
 * place_temp: a file being written in the folder of its place, nameless (O_TMPFILE) where
 * that can be, so that a killed writer leaves nothing behind. For place.c only. Failures
 * are left in errno.
 */
#pragma once
#include "base/str.h"

#include <stdbool.h>
#include <sys/stat.h>

enum { TEMP_NAME = 40 };

struct temp {
	int fd;
	int folder_fd;
	char name[TEMP_NAME]; /* empty while nameless; temp_drop removes it */
};

/* Begin a temp file; NAMED: where nameless ones cannot be made or linked. */
bool temp_open(struct temp *temp, int folder_fd, bool named, mode_t mode);
bool temp_write(struct temp *temp, struct str content);
/* Give the nameless temp the name NAME, which must be free; or some free one. */
bool temp_link(const struct temp *temp, const char *name);
bool temp_link_anywhere(struct temp *temp);
/* Owner, mode, xattrs and ACL of the old file, held as FROM. */
bool temp_copy_attributes(const struct temp *temp, int from, const struct stat *st);
/* Close it and remove its name, if it still has one. Keeps errno. */
void temp_drop(struct temp *temp);
