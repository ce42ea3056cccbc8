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
 * Does COMMAND start a program that needs a terminal? SENTENCE then says which one and
 * how to do without a terminal. It also says how to do with one, except when the call
 * IS_LAST (call.h).
 */
bool bash_hints_interactive_refuses(struct str command, bool is_last, struct buf *sentence);

enum {
	/* the shell's exit code for a program that was not found */
	INTERACTIVE_NOT_FOUND = 127
};
/*
 * The meaning of the exit CODE of the last program of COMMAND: of 1 where it is no
 * failure ("no match"), of INTERACTIVE_NOT_FOUND when one of our tools has the program's
 * name. NULL: there is nothing to add.
 */
const char *bash_hints_interactive_meaning(struct str command, int code);

/*
 * Git's configuration is protected (guard/guard.h), but git's messages about that help
 * nobody. These functions find such messages in a command's output and name a line that a
 * person can run to record the setting that git could not record. When git found no name
 * for a commit, they also say where that name comes from.
 */

/*
 * COMMAND has run and printed OUTPUT. When git reports such a problem in OUTPUT, add a
 * denial to RESULT.
 */
void bash_hints_git_said(struct str command, struct str output, struct tool_result *result);
