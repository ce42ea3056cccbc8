/* find_program: where a program is, for sentences; nothing is run by it. */
#pragma once
#include "base/buf.h"

#include <stdbool.h>

/* Look NAME up in PATH; the path goes to FOUND. */
bool find_program(const char *name, struct buf *found);

/* The same in FOLDERS, with colons between them; NULL: none. */
bool find_program_on(const char *folders, const char *name, struct buf *found);
