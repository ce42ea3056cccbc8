/* find_program: walking PATH; see find_program.h. */
#include "front/find_program.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool find_program(const char *name, struct buf *found)
{
	const char *at = getenv("PATH");

	while (at != NULL && *at != '\0') {
		size_t length = strcspn(at, ":");
		struct stat st;

		buf_clear(found);
		if (length > 0 && buf_add(found, at, length) && buf_addc(found, '/') &&
		    buf_adds(found, name) && stat(found->data, &st) == 0 &&
		    S_ISREG(st.st_mode) && access(found->data, X_OK) == 0)
			return true;
		at += length + (at[length] == ':');
	}
	buf_clear(found);
	return false;
}
