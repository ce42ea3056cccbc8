/*
 * editor: the agent of an editor. The verb `acp` speaks with the editor (acp/acp.h), and
 * starts a process for each session (acp/process.h says how, and which lines go both ways).
 * That process opens one conversation, takes what the editor wants one after the other, and
 * ends with its input.
 *
 * Before a file tool reads or changes a file, the editor is asked whether it holds a text
 * of that file. A text that the file has never had on disk, as far as this session saw, is
 * work that a person has not saved: the model reads that text, and a change of the file is
 * refused. Any other text is one that the file had before a tool changed it.
 */
#pragma once

#include <stdbool.h>

/* Is this process such a one? Then run it; *CODE becomes the exit code. */
bool editor_role(int argc, char **argv, int *code);
