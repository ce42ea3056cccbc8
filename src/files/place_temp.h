/*
 * place_temp: a file being written in the folder of its place, nameless (O_TMPFILE) where
 * that can be, so that a killed writer leaves nothing behind. For place_item.c, place_write.c and
 * undo_place.c only. Failures are left in errno.
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

/* A new random name, and whether NAME (or NULL) is of that kind. */
void temp_make_name(char name[TEMP_NAME]);
bool temp_is_name(const char *name);

/*
 * Begin a temp file: nameless, or (NAME not NULL) by that name, where nameless ones cannot
 * be made or linked.
 */
bool temp_open(struct temp *temp, int folder_fd, const char *name, mode_t mode);
bool temp_write(struct temp *temp, struct str content);
/* Give the nameless temp the name NAME, which must be free. */
bool temp_link(const struct temp *temp, const char *name);
/*
 * FROM gets the name TO in its folder, which must be free. It may keep its own besides, where
 * the file system cannot rename so.
 */
bool temp_take_name(int folder_fd, const char *from, const char *to);
/* Owner, mode, xattrs and ACL of the old file, held as FROM. */
bool temp_copy_attributes(const struct temp *temp, int from, const struct stat *st);
/*
 * Make the names in the folder lasting. True too where it may be written but not read, which
 * cannot be done then; the files themselves are safe.
 */
bool temp_sync_folder(int folder_fd);
/* Close it and remove its name, if it still has one. Keeps errno. */
void temp_drop(struct temp *temp);
