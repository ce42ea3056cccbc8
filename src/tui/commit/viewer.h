/*
 * viewer: a text in the person's own pager, on the pager's own screen: $PAGER, else less, else
 * more. The pager cannot be used to run programs (LESSSECURE), and no filter of the person changes
 * what it shows (LESSOPEN). It is in the foreground of the terminal by itself, so that its keys and
 * signals are no affair of the conversation, and it ends when this process is killed. The terminal
 * is put back whatever the pager does.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct console;

/*
 * Show the file TEXT (a descriptor, read from its beginning), from LINE on, of 1, where the pager
 * is less. Returns when the person has ended it. Only between turns. False: there is no pager.
 */
bool viewer_show(struct console *console, int text, size_t line, struct err *err);
