/*
 * program_list: several programs, one after the other or joined by pipes, as a shell would run
 * them, without a shell: a process of our own starts and waits for them. It is a copy of
 * the caller, on the terms of programs and without any descriptor above 2.
 */
#pragma once
#include "process/program.h"

#include <stdbool.h>
#include <stddef.h>

/* How a program is joined to what stands before it. */
enum program_join {
	PROGRAM_THEN, /* in any case */
	PROGRAM_AND,  /* when that ended with 0 */
	PROGRAM_OR,   /* when it did not */
	PROGRAM_PIPE, /* at the same time, reading what that writes to 1 */
};

struct program_item {
	enum program_join join;
	const char *const *argv;
};

/*
 * Start a process that runs the COUNT ITEMS by START, of which argv is not looked at. Its exit
 * code is that of the last program that ran: 128+N after signal N, 127 for one that was not
 * found, 126 for one that cannot be executed, with a line on 2. They stay in its process group.
 */
bool program_list_start_ahead(const struct program_start *start,
			      const struct program_item *items, size_t count,
			      struct program_ahead *ahead, struct err *err);
