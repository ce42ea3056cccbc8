#include "front/hands/run_folder.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "store/database.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { TRIES = 16 }; /* another start may remove it before it is locked */

static void find_left(const char *above, const char *beginning, run_folder_left *left,
		      void *context)
{
	DIR *names = opendir(above);

	for (const struct dirent *name = names != NULL ? readdir(names) : NULL;
	     name != NULL; name = readdir(names)) {
		struct buf path;

		if (name->d_name[0] == '.' ||
		    strncmp(name->d_name, beginning, strlen(beginning)) != 0)
			continue;
		buf_init(&path, PATH_MAX);
		(void)buf_addf(&path, "%s/%s", above, name->d_name);
		auto_close int at =
			open(path.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (at >= 0 && flock(at, LOCK_EX | LOCK_NB) == 0)
			left(context, path.data, at);
		buf_fini(&path);
	}
	if (names != NULL)
		(void)closedir(names);
}

static bool make(const char *above, const char *beginning, struct buf *folder, int *held,
		 struct err *err)
{
	struct stat st;

	for (int i = 0; i < TRIES; i++) {
		buf_clear(folder);
		(void)buf_addf(folder, "%s/%s-XXXXXX", above, beginning);
		if (mkdtemp(folder->data) == NULL)
			break;
		*held = open(folder->data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (*held >= 0 && flock(*held, LOCK_EX) == 0 && fstat(*held, &st) == 0 &&
		    st.st_nlink > 0)
			return true;
		fd_close(held);
		errno = EBUSY;
	}
	return err_set(err, errno, "%s: %s", folder->data, strerror(errno));
}

bool run_folder_open(const char *below, const char *beginning, run_folder_left *left,
		     void *context, struct buf *folder, int *held, struct err *err)
{
	struct buf above;
	bool ok;

	buf_init(&above, PATH_MAX / 2);
	ok = database_state_path(below, &above, err) && fd_make_folders(above.data, err) &&
	     (mkdir(above.data, 0700) == 0 || errno == EEXIST ||
	      err_set(err, errno, "%s: %s", above.data, strerror(errno)));
	if (ok)
		find_left(above.data, beginning, left, context);
	ok = ok && make(above.data, beginning, folder, held, err);
	buf_fini(&above);
	return ok;
}
