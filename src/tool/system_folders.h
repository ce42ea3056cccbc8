/*
 * system_folders: the system's folders by name, one table for every question that the shape of a
 * cell asks of them: what a view shows, what may be written, shown as a whole, hidden, or be a
 * workspace. Paths are absolute and real; KINDS is one of enum folder_kind or several, of which one
 * has to hold.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum folder_kind {
	FOLDER_SYSTEM = 1 << 0, /* programs and settings: every view shows them, read-only */
	FOLDER_FIXED = 1 << 1, /* ... and is never written as a whole */
	FOLDER_OWN = 1 << 2, /* every cell has its own: the host's is not shown as a whole */
	FOLDER_KERNEL = 1 << 3, /* holds no files, and no policy gives or takes what is there */
	FOLDER_RUNNING = 1 << 4, /* sockets of the host's programs */
	FOLDER_START = 1 << 5,   /* what the machine starts */
	FOLDER_NEEDED = 1 << 6,  /* nothing runs in a cell without it */
	FOLDER_CROWD = 1 << 7,   /* everybody's: no workspace as a whole */
};

/* The next folder of KINDS from *AT on (0 at first), NULL after the last. */
const char *system_folder_next(size_t *at, unsigned kinds);

/* Is PATH such a folder? */
bool system_folder_is(const char *path, unsigned kinds);

/* The folder that PATH is or lies in, or NULL. Not of FOLDER_OWN and FOLDER_CROWD, as "/" is one. */
const char *system_folder_around(const char *path, unsigned kinds);

/* A folder that PATH is or holds, or NULL. */
const char *system_folder_within(const char *path, unsigned kinds);
