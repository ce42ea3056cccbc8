/* wrap: break a text into lines of a given width, at its blanks. */
#ifndef WRAP_H
#define WRAP_H

#include <stddef.h>

/*
 * Write TEXT into OUT (SIZE bytes, enough for TEXT and a final NUL) with as many words in each
 * line as WIDTH columns hold. A word that is longer than WIDTH gets a line of its own.
 */
void wrap(const char *text, size_t width, char *out, size_t size);

#endif
