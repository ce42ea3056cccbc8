#include "front/hands/run_folder.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "store/database.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

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
		auto_close int at = fd_hold(AT_FDCWD, path.data, LOCK_EX | LOCK_NB, 0);
		if (at >= 0)
			left(context, path.data, at);
		buf_fini(&path);
	}
	if (names != NULL)
		(void)closedir(names);
}

static bool make(const char *above, const char *beginning, struct buf *folder, int *held,
		 struct err *err)
{
	buf_clear(folder);
	(void)buf_addf(folder, "%s/%s-XXXXXX", above, beginning);
	*held = fd_hold_new(AT_FDCWD, folder->data, LOCK_EX, 0700);
	return *held >= 0 || err_set(err, errno, "%s: %s", folder->data, strerror(errno));
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
