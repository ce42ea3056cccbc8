/*
 * bash: how far each answer about a command has shown its output, so that the next answer
 * goes on there. A place is the number of bytes that had come on both streams.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "tool/call.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BASH_MARKS = 64 };

struct bash_mark {
	uint64_t out, error; /* bytes of each stream before the mark */
};

struct bash_job {
	int64_t number; /* 0: it is an ordinary call about which nobody has asked */
	struct bash_mark marks[BASH_MARKS]; /* ascending */
	size_t count;
};

/*
 * The last mark at or before the byte SINCE. When SINCE is below 0, the last of all
 * marks.
 */
struct bash_mark bash_job_from(const struct bash_job *job, int64_t since);
/*
 * An answer has shown all output up to MARK. When there are too many marks, only the
 * newer half is kept.
 */
void bash_job_shown(struct bash_job *job, struct bash_mark mark);

/*
 * The programs that the policy's list found in a command, with their arguments
 * (call->plan). They are started without a shell, in the environment that the shell would
 * have.
 */

/* The arguments of part AT of PLAN, NULL-ended, allocated in ARENA. */
const char **bash_plan_argv(const struct value *plan, size_t at, struct arena *arena);

/*
 * bash_hints: programs that wait for somebody at a terminal, and what an exit code means
 * where that is not plain.
 */

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
