/*
 * interactive: programs that wait for somebody at a terminal, and what an exit code of 1
 * means where it means no failure.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/*
 * Does COMMAND start a program that needs a terminal? SENTENCE then says which and how to
 * do without, unless it IS_LAST (call.h) also how to do with one.
 */
bool interactive_refuses(struct str command, bool is_last, struct buf *sentence);

/* What exit code 1 of the last program of COMMAND says ("no match"), or NULL. */
const char *interactive_meaning_of_1(struct str command);
