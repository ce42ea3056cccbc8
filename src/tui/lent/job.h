/*
 * job: the terminal, lent to the person's own editor or pager, as a shell lends it to a job. The program
 * has a process group of its own in the foreground: its Ctrl+C does not reach us. Meanwhile the
 * terminal has the settings from before the conversation. However the program ends, the settings,
 * the modes and the foreground are those of the conversation again. A program does not outlive us.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct console;

/*
 * Replace TEXT by what the person makes of it in their editor, the command in $VISUAL or else $EDITOR;
 * it keeps its ceiling. The text stands in a file of mode 0600 in a folder of mode 0700, which is removed
 * afterwards. The caller has taken the rows that change off the terminal of CONSOLE. When the editor is
 * stopped, so are we. When WAKE_FD (-1: none) becomes readable, the editor is ended. False, with TEXT
 * unchanged: there is no editor, it failed, or what it left is no text.
 */
bool lent_job_edit(struct console *console, struct buf *text, int wake_fd, struct err *err);

/*
 * Show the file TEXT (a descriptor, read from its beginning) in the person's pager, on the pager's own
 * screen: $PAGER, else less, else more; from LINE on, of 1, where it is less. The pager cannot be used to
 * run programs (LESSSECURE), and no filter of the person changes what it shows (LESSOPEN). Returns when
 * the person has ended it, or WAKE_FD (-1: none) has become readable. Only between turns. False: there is
 * no pager.
 */
bool lent_job_show(struct console *console, int text, size_t line, int wake_fd,
		   struct err *err);

/*
 * Our environment without the variables by which less runs programs, for a pager of anything that
 * others have written. The caller frees the list, whose entries are those of our environment.
 */
const char **lent_job_pager_environment_new(void);
