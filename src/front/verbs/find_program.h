/*
 * find_program: finds the place of a program, for texts only; the path is not used to run
 * it.
 */
#pragma once
#include "base/buf.h"

#include <stdbool.h>

/* Look NAME up in PATH; FOUND gets the path. */
bool find_program(const char *name, struct buf *found);

/* Look NAME up in FOLDERS, which colons separate; NULL: no folders. */
bool find_program_on(const char *folders, const char *name, struct buf *found);
