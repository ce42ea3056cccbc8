/*
 * visual: a text in the person's own editor, the command in $VISUAL or else $EDITOR. The text
 * stands in a file of mode 0600 in a folder of mode 0700, which is removed afterwards. The editor
 * has the terminal as a job of its own (job.h), and when it is stopped, so are we.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

struct console;

/*
 * Replace TEXT by what the person makes of it; it keeps its ceiling. The caller has taken the
 * rows that change off the terminal of CONSOLE. When WAKE_FD (-1: none) becomes readable, the editor is ended. False,
 * with TEXT unchanged: there is no editor, it failed, or what it left is no text.
 */
bool visual_edit(struct console *console, struct buf *text, int wake_fd, struct err *err);
