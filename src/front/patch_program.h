/*
 * patch_program: this program under the name `apply_patch`, as it lies on the PATH in a cell:
 * models write `apply_patch <<'EOF'` into shell commands. It runs the tool's own function on
 * its input; what may be written is what the cell lets its commands write.
 */
#pragma once
#include <stdbool.h>

/* Is NAME (argv[0]) that one? */
bool patch_program_is(const char *name);
/* The patch is the one argument, else standard input. Returns the exit code. */
int patch_program_run(int argc, char **argv);
