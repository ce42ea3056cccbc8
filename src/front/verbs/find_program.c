/* find_program: walks over PATH. */
#include "front/verbs/find_program.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"

bool find_program_on(const char *folders, const char *name, struct buf *found)
{
	struct str rest = str_of(folders), folder;
	struct stat st;

	while (path_next_folder(&rest, &folder)) {
		buf_clear(found);
		if (buf_addstr(found, folder) && buf_addc(found, '/') &&
		    buf_adds(found, name) && stat(found->data, &st) == 0 &&
		    S_ISREG(st.st_mode) && access(found->data, X_OK) == 0)
			return true;
	}
	buf_clear(found);
	return false;
}

bool find_program(const char *name, struct buf *found)
{
	return find_program_on(getenv("PATH"), name, found);
}
