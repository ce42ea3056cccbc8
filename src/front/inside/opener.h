/*
 * opener: this program under the names of programs that open an address (SHAPE_OPENER_NAMES
 * of view/shape.h), as it lies first on the PATH of a cell. It asks the front
 * (front/ask/desk.h), which asks the person. For a login that comes back to a port, a
 * copy of it stays and leads the connections of the browser to that port of the cell.
 */
#pragma once

#include <stdbool.h>

/*
 * Is argv[0] such a name? Then ask for the address, which is the only argument; *CODE
 * becomes the exit code: 0 when it was opened, 1 for wrong arguments, 4 otherwise, as
 * xdg-open has it.
 */
bool opener_program(int argc, char **argv, int *code);
