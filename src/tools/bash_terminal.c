/* bash_terminal: see bash_terminal.h. */
#include "tools/bash_terminal.h"

#include "base/clock.h"
#include "tool/call.h"

#include <termios.h>
#include <unistd.h>

enum {
	BASH_WAITS_MS = 2000, /* a prompt; programs that only look for a key move before */
	TAKEN_MS = 1000,      /* by then a front has made it a job, if it can */
	ROWS = 24,
	COLUMNS = 80,
};

void bash_terminal_init(struct bash_terminal *terminal)
{
	*terminal = (struct bash_terminal){
		.pty = {.master = -1, .slave = -1, .input = -1, .output = -1},
	};
}

void bash_terminal_fini(struct bash_terminal *terminal)
{
	pty_close(&terminal->pty);
}

bool bash_terminal_open(struct bash_terminal *terminal, struct program_run *run,
			struct err *err)
{
	const struct pty_size size = {ROWS, COLUMNS};

	if (!pty_open(&terminal->pty, size, -1, -1, err))
		return false;
	terminal->given = true;
	run->pty = &terminal->pty;
	return true;
}

void bash_terminal_type(struct bash_terminal *terminal, struct str input,
			struct tool_result *result)
{
	if (!terminal->given) {
		(void)tool_fail(
			result,
			"This job has no terminal to type on: its input is empty. Start "
			"it with \"tty\": true, or let it read from a file or a pipe.");
	} else if (!pty_type(&terminal->pty, input)) {
		(void)tool_fail(result,
				"It has not taken what was typed before (or this is over %d "
				"bytes): nothing was typed. Read it first.",
				PTY_PACKET);
	} else {
		terminal->waits = false;
		terminal->sleeps = (struct reading){0};
		(void)tool_done(result);
	}
}

pid_t bash_terminal_group(const struct bash_terminal *terminal)
{
	pid_t group = terminal->given ? tcgetpgrp(terminal->pty.master) : 0;

	return group > 0 ? group : 0;
}

bool bash_terminal_look(struct bash_terminal *terminal, const struct call *call, bool is_job)
{
	const int64_t now = clock_now_ms();
	struct reading sleeps;

	if (!terminal->given)
		return false;
	sleeps = reading_find(terminal->pty.master);
	if (sleeps.pid == 0 || !reading_is_same(&sleeps, &terminal->sleeps)) {
		terminal->sleeps = sleeps;
		terminal->since_ms = now;
		terminal->waits = false;
	} else if (!terminal->waits && now - terminal->since_ms >= BASH_WAITS_MS) {
		terminal->waits = true;
		terminal->told_ms = now;
		ask_tell_waiting(call);
	}
	terminal->ended = terminal->waits && !is_job && now - terminal->told_ms >= TAKEN_MS;
	return terminal->ended;
}
