/* library: dlopen and dlsym, with a sentence for each failure. */

#include "base/library.h"

#include "base/err.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool library_load(const struct library *library, const struct library_function *functions,
		  size_t count, struct err *err)
{
	/*
	 * In a cell on a base, the libraries that would be found are those of the base, which
	 * may be anybody's, and would run in a process that audits the cell.
	 */
	if (access(LIBRARY_FOREIGN, F_OK) == 0)
		return err_set(err, ENOENT,
			       "%s is not loaded in a cell on a base: %s has to be done outside",
			       library->name, library->purpose);
	/*
	 * A library is never unloaded, because it leaves state of threads and of other
	 * libraries behind. Lazy binding saves time: the twenty libraries of libcurl
	 * import thousands of names from each other, and only a few of them are ever
	 * called.
	 */
	void *handle = dlopen(library->name, RTLD_LAZY | RTLD_LOCAL);

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
		 * POSIX guarantees that an object pointer can hold a function pointer;
		 * C has no cast for it.
		 */
		memcpy(functions[i].slot, &symbol, sizeof(symbol));
	}
	return true;
}

/* Does loading change code of the library? It does in no library of a distribution. */
static bool changes_code(const struct dl_phdr_info *info)
{
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		const ElfW(Dyn) * at;

		if (part->p_type != PT_DYNAMIC)
			continue;
		for (at = (const void *)(info->dlpi_addr + part->p_vaddr);
		     at->d_tag != DT_NULL; at++) {
			if (at->d_tag == DT_TEXTREL ||
			    (at->d_tag == DT_FLAGS && (at->d_un.d_val & DF_TEXTREL) != 0))
				return true;
		}
	}
	return false;
}

static int trim_one(struct dl_phdr_info *info, size_t size, void *context)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)size;
	(void)context;
	/* The program itself comes first, without a name. */
	if (info->dlpi_name[0] == '\0' || changes_code(info))
		return 0;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t from = (info->dlpi_addr + part->p_vaddr) & ~(page - 1);

		if (part->p_type == PT_LOAD && (part->p_flags & PF_W) == 0)
			(void)madvise((void *)from, /* NOLINT(performance-no-int-to-ptr) */
				      info->dlpi_addr + part->p_vaddr + part->p_memsz - from,
				      MADV_DONTNEED);
	}
	return 0;
}

void library_trim(void)
{
	(void)dl_iterate_phdr(trim_one, NULL);
}
