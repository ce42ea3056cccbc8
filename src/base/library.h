/*
 * library: a shared library that is loaded by the first thing that wants it. To link one costs
 * every start: libcurl 3 ms, libmicrohttpd 1.5 ms; SQLite would be a third of the program.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* A function of it, and the place for its pointer. */
struct library_function {
	const char *name;
	void *slot;
};

/*
 * Load NAME ("libcurl.so.4") and find the COUNT functions; it stays loaded for the life of the
 * process. ERR says that it is missing (ENOENT) or older than VERSION (ENOSYS), for what it is
 * wanted ("asking a model"), and the Debian PACKAGE that brings it.
 */
struct library {
	const char *name, *version, *package, *purpose;
};
bool library_load(const struct library *library, const struct library_function *functions,
		  size_t count, struct err *err);

/*
 * Give back all unchanged memory pages of libraries: most were read only for loading. A
 * page that is needed again comes from the kernel's cache. For libcurl and its twenty
 * libraries that takes 0.2 ms, so call this when there is time.
 */
void library_trim(void);

/* A file that the program brings along; dev/embed makes tables of them. */

struct embedded_file {
	const char *name; /* path in the source tree: "agents/coder.md" */
	const char *data; /* ends in a NUL that size does not count */
	size_t size;
	bool executable;
};
