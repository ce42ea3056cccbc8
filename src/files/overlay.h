/*
 * overlay: the shapes in the upper folder of an overlay (Documentation/filesystems/overlayfs.rst),
 * as the kernel makes them with `userxattr`. A removed name is a character device 0:0. A
 * folder is joined with the one below it, unless it hides that. Everything else replaces
 * what is below.
 */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <sys/stat.h>

enum {
	/* a larger text of a layer is neither kept as a base nor merged */
	OVERLAY_TEXT_MAX = 16 << 20,
};

/* Is ST that of a name which the layer has removed? */
bool overlay_is_removed(const struct stat *st);
/* Does the folder FD hide the folder below it? */
bool overlay_hides(int fd);
/* Was the file or folder FD copied from below before it was changed? */
bool overlay_is_copy(int fd);

/* The marks of a file or folder of an upper folder, read at once. */
struct overlay_marks {
	bool copy; /* as overlay_is_copy says */
	bool strange; /* it has an attribute that needs options which our mounts do not have */
};
struct overlay_marks overlay_marks_of(int fd);

/*
 * Call EACH with the attributes of the file FD that belong to what it holds, in the order of
 * their names: those of programs (`user.`) and access lists, without an overlay's own. Those
 * that an overlay has stored escaped have their names back.
 */
void overlay_each_extra(int fd,
			void (*each)(void *context, const char *name, struct str value),
			void *context);
/* Have the two files the same attributes of that kind? */
bool overlay_same_extra(int one, int other);
