/*
 * library: a shared library that is loaded when it is first needed. Linking one would
 * slow down every start: libcurl by 3 ms, libmicrohttpd by 1.5 ms. SQLite would be a
 * third of the program.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* A function of the library, and the place for its pointer. */
struct library_function {
	const char *name;
	void *slot;
};

/* A library; its members as library_load describes them. */
struct library {
	const char *name, *version, *package, *purpose;
};

/* OpenSSL's libcrypto, which layers beside each other load, each for a PURPOSE of its own. */
#define LIBRARY_CRYPTO(purpose)                             \
	{                                                   \
		"libcrypto.so.3", "3.0", "libssl3", purpose \
	}

/* While this folder is there, the libraries of the system are somebody else's (view/base.c). */
#define LIBRARY_FOREIGN "/run/glovebox/lib"

/*
 * Load NAME ("libcurl.so.4") and find its COUNT functions. The library stays loaded
 * until the process ends. ERR says that it is missing or foreign (ENOENT) or older than VERSION
 * (ENOSYS), its PURPOSE ("asking a model"), and the Debian PACKAGE that contains it.
 */
bool library_load(const struct library *library, const struct library_function *functions,
		  size_t count, struct err *err);

/*
 * Free all unchanged memory pages of libraries, because most were only read for
 * loading. A page that is needed again comes from the kernel's cache. For libcurl and
 * its twenty libraries this takes 0.2 ms, so call it when there is time.
 */
void library_trim(void);

/* A file that is built into the program; dev/embed writes tables of such files. */

struct embedded_file {
	const char *name; /* path in the source tree: "agents/coder.md" */
	const char *data; /* ends in a NUL that size does not count */
	size_t size;
	bool executable;
};
