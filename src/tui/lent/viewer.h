/*
 * viewer: a text in the person's own pager, on the pager's own screen: $PAGER, else less, else
 * more. The pager cannot be used to run programs (LESSSECURE), and no filter of the person changes
 * what it shows (LESSOPEN). The pager has the terminal as a job of its own (job.h).
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct console;

/*
 * Show the file TEXT (a descriptor, read from its beginning), from LINE on, of 1, where the pager
 * is less. Returns when the person has ended it, or WAKE_FD (-1: none) has become readable. Only
 * between turns. False: there is no pager.
 */
bool viewer_show(struct console *console, int text, size_t line, int wake_fd,
		 struct err *err);

/*
 * Our environment without the variables by which less runs programs, for a pager of anything that
 * others have written. The caller frees the list, whose entries are those of our environment.
 */
const char **viewer_environment_new(void);
