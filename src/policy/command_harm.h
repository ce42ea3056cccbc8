/*
 * command_harm: commands that destroy much, in one table: what each does, and the next step. A
 * person is asked about most of them where one can be; nobody there, they run, since the cell
 * and undo hold what they do. It goes by what can be seen (command_seen.h), and is no wall.
 */
#pragma once
#include "policy/command_seen.h"

#include <stdbool.h>

struct policy;

struct command_harm {
	const char *name; /* "git push --force" */
	/* Undo does not bring all of it back, or it is all there is: a person is asked. */
	bool asks;
	bool (*fits)(const struct command_seen *seen, const struct policy *policy);
	const char *does; /* a clause behind its name */
	const char *next; /* a sentence */
};

/* The row for what SEEN would destroy by POLICY's workspace and folders; NULL: nothing much. */
const struct command_harm *command_harm_find(const struct command_seen *seen,
					     const struct policy *policy);
