/*
 * pictures: those that a person sends with a prompt, from files (--image, a path that was pasted)
 * and from the clipboard. The content alone says what a file is.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

/* Pictures of a prompt: half of those that a conversation keeps (agent/history.h). */
enum { PICTURES_MAX = 10 };

/*
 * Append the picture in the file PATH to *PICTURES, an array that the caller frees (NULL: none
 * yet). All of them must go into one request.
 */
bool pictures_add_file(const char *path, struct value **pictures, struct err *err);

/* A line's camera (tui/line.h). CONTEXT is not used. */
struct value *pictures_taken(void *context, struct str paths, const struct value *before,
			     struct err *err);
