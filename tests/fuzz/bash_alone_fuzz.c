/* shell_alone: what is one program has a name that bash would not take for something else. */
#include "tools/shell.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
	struct str text = {(const char *)data, size};
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (shell_alone(text, "/", environment, &path)) {
		if (path.size == 0 || strpbrk(path.data, "$`\\'\"*?[~;|&<>()\n\t ") != NULL)
			abort();
	}
	buf_fini(&path);
	return 0;
}
