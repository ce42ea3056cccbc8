/* library: dlopen and dlsym, with sentences; see library.h. */
#include "base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

bool library_load(const struct library *library, const struct library_function *functions,
		  size_t count, struct err *err)
{
	/* Never unloaded: libraries leave threads' and other libraries' state behind. */
	void *handle = dlopen(library->name, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return err_set(err, ENOENT,
			       "%s could not be loaded: %s needs the Debian package %s "
			       "(apt-get install %s)",
			       library->name, library->purpose, library->package,
			       library->package);
	for (size_t i = 0; i < count; i++) {
		void *symbol = dlsym(handle, functions[i].name);

		if (!symbol)
			return err_set(err, ENOSYS,
				       "%s is too old: %s needs %s or newer (Debian package %s)",
				       library->name, library->purpose, library->version,
				       library->package);
		/*
		 * POSIX lets a pointer to an object hold one to a function; C has no cast
		 * for it.
		 */
		memcpy(functions[i].slot, &symbol, sizeof(symbol));
	}
	return true;
}
