/*
 * bash_terminal: a terminal of a command's own (tty), and whether the command waits for
 * somebody to type on it.
 */
#pragma once
#include "base/err.h"
#include "process/loop.h"
#include "process/program.h"
#include "process/pty.h"
#include "tool/call.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stdint.h>

struct bash_terminal {
	struct pty pty;
	bool given;
	bool waits;       /* nothing has moved for BASH_WAITS_MS but a read of it */
	bool ended;       /* and nobody took care of it: the command was ended for that */
	int64_t since_ms; /* it sleeps in that very read */
	int64_t told_ms;  /* the front was told */
	struct reading sleeps;
};

void bash_terminal_init(struct bash_terminal *terminal);
void bash_terminal_fini(struct bash_terminal *terminal);
/* Make it; RUN carries it. */
bool bash_terminal_open(struct bash_terminal *terminal, struct program_run *run,
			struct err *err);
/* Type INPUT; RESULT is done, or says why it could not. */
void bash_terminal_type(struct bash_terminal *terminal, struct str input,
			struct tool_result *result);
/*
 * The process group in the terminal's foreground, which gets typed bytes; 0: there is none.
 */
pid_t bash_terminal_group(const struct bash_terminal *terminal);
/*
 * To be asked every now and then: the front is told once that the command waits. True when it
 * does and has not been made a job (IS_JOB) soon: then it would wait for ever.
 */
bool bash_terminal_look(struct bash_terminal *terminal, const struct call *call,
			bool is_job);
