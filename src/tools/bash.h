/*
 * bash: how far each answer about a command has shown its output, so that the next one
 * goes on there. Places are known by the number of bytes that had come on both streams.
 */
#pragma once

#include "base/err.h"
#include "base/memory.h"
#include "process/program.h"
#include "tool/call.h"

#include <stddef.h>
#include <stdint.h>

enum { BASH_MARKS = 64 };

struct bash_mark {
	uint64_t out, error; /* bytes of each stream that came before it */
};

struct bash_job {
	int64_t number; /* 0: nobody has asked, it is an ordinary call */
	struct bash_mark marks[BASH_MARKS]; /* ascending */
	size_t count;
};

/* The last mark at or before the byte SINCE; of all of them, when that is < 0. */
struct bash_mark bash_job_from(const struct bash_job *job, int64_t since);
/* An answer has shown all up to MARK. Of too many the older ones go, but for the newest half. */
void bash_job_shown(struct bash_job *job, struct bash_mark mark);

/*
 * What the policy's list made of a command (call->plan): programs and their arguments,
 * started without a shell, in the environment of the shell that there is else.
 */

/* The arguments of part AT of PLAN, NULL-ended, of ARENA. */
const char **bash_plan_argv(const struct value *plan, size_t at, struct arena *arena);
