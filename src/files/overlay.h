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

/* Why a change of a layer is never landed. */
enum overlay_refusal {
	REFUSED_NOT,
	REFUSED_GIT,       /* git would run or follow it */
	REFUSED_PROTECTED, /* another program would run it */
	REFUSED_SESSION,   /* the session of the layer could not write it */
	REFUSED_AGENT,     /* the present agent may not write it */
	REFUSED_KIND,      /* a pipe, a socket, a device */
	REFUSED_READ,      /* it cannot be read */
	REFUSED_REASONS,
};
/* The names of the reasons in a report; NULL: it is none. */
extern const char *const overlay_refusal_names[REFUSED_REASONS];

/* Is ST that of a name which the layer has removed? */
bool overlay_is_removed(const struct stat *st);
/* Does the folder FD hide the folder below it? */
bool overlay_hides(int fd);
/* Was the file or folder FD copied from below before it was changed? */
bool overlay_is_copy(int fd);

/* All marks of a file or folder of an upper folder, in one reading. */
struct overlay_marks {
	bool copy; /* as overlay_is_copy says */
	bool strange; /* it has an attribute that needs options which our mounts do not have */
	bool extra; /* it has attributes that belong to what it holds (overlay_each_extra) */
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
