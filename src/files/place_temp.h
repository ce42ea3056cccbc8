/*
 * place_temp: a temporary file in the folder of its place. It is nameless (O_TMPFILE)
 * where possible, so that a killed writer leaves nothing behind. For place_item.c,
 * place_write.c and undo_place.c only. Failures are left in errno.
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
 * Create a temporary file, nameless when NAME is NULL. NAME is for folders in which
 * nameless files cannot be made or linked.
 */
bool temp_open(struct temp *temp, int folder_fd, const char *name, mode_t mode);
bool temp_write(struct temp *temp, struct str content);
/* Give the nameless file the name NAME, which must be free. */
bool temp_link(const struct temp *temp, const char *name);
/*
 * Rename FROM to TO in the folder; TO must be free. On a file system without such a
 * rename, the file keeps the name FROM as well.
 */
bool temp_take_name(int folder_fd, const char *from, const char *to);
/*
 * Copy owner, mode, xattrs and ACL of the old file, which is open as FROM and has the
 * status ST.
 */
bool temp_copy_attributes(const struct temp *temp, int from, const struct stat *st);
/*
 * Write the names in the folder to disk. True also for a folder that may be written but
 * not read, which cannot be synced; the contents of the files are safe.
 */
bool temp_sync_folder(int folder_fd);
/* Close TEMP and remove its name, if it still has one. Keeps errno. */
void temp_drop(struct temp *temp);
