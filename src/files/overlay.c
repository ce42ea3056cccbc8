/* overlay: reads the attributes of overlays, which no program in a cell can set. */

#include "files/overlay.h"

#include <stdio.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define ATTRIBUTE "user.overlay."

enum { NAME_ROOM = 64 };

bool overlay_is_removed(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

bool overlay_hides(int fd)
{
	char value[2];

	return fgetxattr(fd, ATTRIBUTE "opaque", value, sizeof(value)) == 1 &&
	       value[0] == 'y';
}

bool overlay_is_copy(int fd)
{
	return overlay_has(fd, "origin");
}

bool overlay_has(int fd, const char *name)
{
	char whole[NAME_ROOM];

	(void)snprintf(whole, sizeof(whole), ATTRIBUTE "%s", name);
	return fgetxattr(fd, whole, NULL, 0) >= 0;
}
