/* embedded: a file that the program brings along; dev/embed makes tables of them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct embedded_file {
	const char *name; /* path in the source tree: "agents/coder.md" */
	const char *data; /* ends in a NUL that size does not count */
	size_t size;
	bool executable;
};
