/* commands: what the tools that start programs share: their variables. */
#pragma once
#include "base/buf.h"

#include <stdbool.h>

/*
 * The variables of CELL (NULL-ended, or NULL) with those that keep programs from asking,
 * paging, colouring and drawing progress, and those of MORE (likewise): each beats what is
 * named before it. The caller frees the list; the strings are borrowed.
 */
const char **commands_environment(const char *const *cell, const char *const *more);

/* Do the entries A and B ("NAME=value") set the same variable? */
bool commands_same_variable(const char *a, const char *b);
