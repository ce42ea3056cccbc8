/*
 * job: the terminal, lent to a program of the person, as a shell lends it to a job. The program has
 * a process group of its own in the foreground: its Ctrl+C does not reach us. Meanwhile the
 * terminal has the settings from before the conversation. However the program ends, the settings,
 * the modes and the foreground are those of the conversation again. A program does not outlive us.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct console;

/* A program that a person stops (Ctrl+Z). */
enum lent_stop {
	LENT_GOES_ON,  /* it is continued */
	LENT_STOPS_US, /* we are stopped as well, until the person's shell lets us go on */
};

/* One program, all borrowed. */
struct lent_job {
	const char *name;               /* of the program in sentences: "your editor" */
	const char *command;            /* for the shell */
	const char *argument;           /* "$1" of COMMAND; or NULL */
	const char *const *environment; /* NULL-ended */
	int input;                      /* its standard input; -1: the terminal */
	int wake_fd; /* readable: the program is told to end, and killed if it does not; or -1 */
	enum lent_stop stop;
};

/*
 * Run JOB on the terminal of CONSOLE, whose rows the caller has taken off (live_hide, live_stop).
 * Returns when the program has ended; STATUS is as waitpid gives it. False: it did not start.
 */
bool lent_job_run(struct console *console, const struct lent_job *job, int *status,
		  struct err *err);
