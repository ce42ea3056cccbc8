/*
 * bash_hints: programs that wait for somebody at a terminal, and what an exit code means
 * where that is not plain.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "tool/tool.h"

#include <stdbool.h>

/*
 * Does COMMAND start a program that needs a terminal? SENTENCE then says which and how to
 * do without, unless it IS_LAST (call.h) also how to do with one.
 */
bool bash_hints_interactive_refuses(struct str command, bool is_last, struct buf *sentence);

enum {
	INTERACTIVE_NOT_FOUND = 127 /* the shell's exit code for a program that is not there */
};
/*
 * The meaning of the exit CODE of the last program of COMMAND: of 1 where it is no failure
 * ("no match"), of INTERACTIVE_NOT_FOUND where a tool has the program's name. NULL: there
 * is no more to say.
 */
const char *bash_hints_interactive_meaning(struct str command, int code);

/*
 * Git's configuration is protected (guard/guard.h), and git tells so in words that help
 * nobody. This finds them in a command's output and says which line a person can run to
 * have recorded what was not. It also says where the name of a commit comes from, when
 * git found none.
 */

/* COMMAND has run and printed OUTPUT: add a denial to RESULT when git says so in there. */
void bash_hints_git_said(struct str command, struct str output, struct tool_result *result);
