/*
 * path: paths as text, component by component. Nothing here touches the file system;
 * files/files resolves them for real.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/*
 * Append the absolute, lexically normal form of PATH: joined to BASE (absolute) unless
 * absolute itself, "." and "//" gone, ".." applied, no slash at the end except for "/".
 * False at OUT's ceiling or when ".." climbs above "/".
 */
bool path_normal(const char *base, const char *path, struct buf *out);

/* Is PATH equal to ROOT or below it, by components? ("/a/bc" is not below "/a/b".) */
bool path_within(const char *path, const char *root);

/* PATH relative to ROOT ("." for ROOT itself); PATH itself when not within. Borrowed. */
const char *path_relative(const char *path, const char *root);

const char *path_base_name(const char *path); /* after the last slash */

/*
 * Append the place of NAME in a folder of the XDG Base Directory Specification, in normal
 * form: below VARIABLE (its value; a relative one is to be ignored), else below FALLBACK in
 * HOME. Both may be NULL. False when there is neither, when ".." climbs above "/", or at
 * OUT's ceiling.
 */
bool path_xdg(const char *variable, const char *home, const char *fallback,
	      const char *name, struct buf *out);

/*
 * Take the next folder off *LIST, which holds them between colons as PATH does. Empty ones
 * (they would mean the working folder) are left out. False when none is left.
 */
bool path_next_folder(struct str *list, struct str *folder);

/* Number of components of a normal path: 0 for "/". */
size_t path_depth(const char *path);

/*
 * Paths are bytes and values are UTF-8: as a key or text in a value a path has "\HH" for a
 * backslash and every byte that is not plain ASCII. Both functions give a new string.
 */
char *path_key(const char *path);
char *path_of_key(const char *key); /* NULL when KEY is none, or NULL */

/* Is one of the names of PATH `.git`, in whatever case a file system takes it? */
bool path_names_git(const char *path);
