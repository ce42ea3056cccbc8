/*
 * embedded: the files that the program brings along: the shipped roles (agents/), the
 * demo's project (examples/demo/) and the replays (examples/replays/). dev/embed makes
 * the table at build time, sorted by name.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct embedded_file {
	const char *name; /* path in the source tree: "agents/coder.md" */
	const char *data; /* ends in a NUL that size does not count */
	size_t size;
	bool executable;
};

/* Ends with a row whose name is NULL. */
extern const struct embedded_file embedded_files[];
