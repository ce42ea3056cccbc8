/*
 * overlay: the shapes in the upper folder of an overlay (Documentation/filesystems/overlayfs.rst),
 * as the kernel makes them with `userxattr`. A removed name is a character device 0:0. A
 * folder is joined with the one below it, unless it hides that. Everything else replaces
 * what is below.
 */
#pragma once

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
/* Has FD another attribute of overlays, NAME, which needs options that our mounts do not have? */
bool overlay_has(int fd, const char *name);
