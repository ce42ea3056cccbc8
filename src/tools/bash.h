/*
 * bash: how far each answer about a command has shown its output, so that the next answer
 * goes on there. A place is the number of bytes that had come on both streams.
 */
#pragma once

#include "base/err.h"
#include "base/memory.h"
#include "tool/call.h"

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
