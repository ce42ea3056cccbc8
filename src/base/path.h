/*
 * path: paths as text, component by component. Nothing here touches the file system;
 * files/files.c resolves paths on disk.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/*
 * Append the absolute, lexically normal form of PATH: joined to BASE (absolute) unless
 * PATH is absolute, without "." and "//", with ".." applied, and without a final slash
 * except for "/". False when OUT is full, or when ".." climbs above "/".
 */
bool path_normal(const char *base, const char *path, struct buf *out);

/* Is PATH equal to ROOT or below it, by components? ("/a/bc" is not below "/a/b".) */
bool path_within(const char *path, const char *root);

/* PATH relative to ROOT ("." for ROOT itself); PATH itself when not within. Borrowed. */
const char *path_relative(const char *path, const char *root);

/*
 * PATH, which is in the folder FROM, becomes the same path in the folder TO. All are absolute and
 * normal. False, with PATH as it was: it is not in FROM, or the new path has PATH_MAX bytes or
 * more, or more than the ceiling of PATH.
 */
bool path_move(struct buf *path, const char *from, const char *to);

const char *path_base_name(const char *path); /* after the last slash */

/*
 * Append the place of NAME in a folder of the XDG Base Directory Specification, in
 * normal form: below VARIABLE (its value; ignored when relative), else below FALLBACK
 * in HOME. Both may be NULL. False when there is neither, when ".." climbs above "/",
 * or when OUT is full.
 */
bool path_xdg(const char *variable, const char *home, const char *fallback,
	      const char *name, struct buf *out);

/*
 * Take the next folder from *LIST, whose folders are separated by colons as in PATH.
 * Empty ones (they would mean the working folder) are skipped. False when none is left.
 */
bool path_next_folder(struct str *list, struct str *folder);

/* Append PATH, which is absolute, as a URI of the scheme file. False when OUT is full. */
bool path_add_uri(const char *path, struct buf *out);
/*
 * Append the absolute path of URI, of the scheme file without the name of a machine, in normal form.
 * False when URI is none, and when PATH is full.
 */
bool path_of_uri(struct str uri, struct buf *path);

/* Number of components of a normal path: 0 for "/". */
size_t path_depth(const char *path);

/*
 * Paths are bytes and values are UTF-8. Therefore a path in a value, as key or text,
 * has "\HH" for a backslash and for every byte that is not plain ASCII. Both functions
 * return a new string.
 */
char *path_key(const char *path);
char *path_of_key(const char *key); /* NULL when KEY is NULL or not such a text */

/*
 * Is one of the names in PATH `.git`, in any spelling that a file system accepts for
 * it?
 */
bool path_names_git(const char *path);
