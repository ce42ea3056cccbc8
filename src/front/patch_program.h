/*
 * patch_program: this program under the name `apply_patch`, as it lies on the PATH in a
 * cell: models write `apply_patch <<'EOF'` into shell commands. It runs the tool's own
 * function on its input, and may write the files that the cell lets commands write.
 */
#pragma once
#include <stdbool.h>

/* Is NAME (argv[0]) that of `apply_patch`? */
bool patch_program_is(const char *name);
/*
 * Apply the patch, which is the only argument or, without one, standard input. Returns
 * the exit code.
 */
int patch_program_run(int argc, char **argv);
