/*
 * interactive: programs that wait for somebody at a terminal, and what an exit code means
 * where that is not plain.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/*
 * Does COMMAND start a program that needs a terminal? SENTENCE then says which and how to
 * do without, unless it IS_LAST (call.h) also how to do with one.
 */
bool interactive_refuses(struct str command, bool is_last, struct buf *sentence);

enum {
	INTERACTIVE_NOT_FOUND = 127 /* the shell's exit code for a program that is not there */
};
/*
 * The meaning of the exit CODE of the last program of COMMAND: of 1 where it is no failure
 * ("no match"), of INTERACTIVE_NOT_FOUND where a tool has the program's name. NULL: there
 * is no more to say.
 */
const char *interactive_meaning(struct str command, int code);
