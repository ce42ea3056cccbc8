/* shell: a program of a test, as a line of sh with its run. */
#pragma once
#include "../base/unit.h"
#include "process/follow.h"

extern const char *const shell_environment[]; /* a PATH, and WORD=yes */

struct shell_run {
	struct program_run run;
	const char *argv[4];
};

/* Ready to be followed; program_run_fini its run. */
void shell_init(struct shell_run *shell, const char *text);
/* follow_program, which must not fail. */
void shell_follow(struct program_run *run);
/* OUTPUT as a text is EXPECTED. */
void shell_assert_output(const struct program_output *output, const char *expected);
