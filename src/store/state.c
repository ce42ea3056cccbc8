/* state: one place and one sentence for all of them. */
#include "store/state.h"

#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <stdlib.h>

bool state_path(const char *name, struct buf *path, struct err *err)
{
	struct buf below;
	bool found;

	buf_init(&below, path->max);
	(void)buf_addf(&below, "glovebox/%s", name);
	found = path_xdg(getenv("XDG_STATE_HOME"), getenv("HOME"), ".local/state",
			 below.data, path);
	buf_fini(&below);
	if (found)
		return true;
	if (path->overflowed)
		return err_set(err, ENAMETOOLONG, "the path of %s is too long", name);
	return err_set(err, ENOENT, "no place for %s: set HOME or XDG_STATE_HOME", name);
}

bool state_open(const char *path, const char *what, const char *const *schema,
		struct database **database, struct err *err)
{
	if (!path[0])
		return err_set(err, EINVAL, "%s needs a path", what);
	return (fd_make_folders(path, err) && database_open(path, schema, database, err)) ||
	       err_while(err, "opening %s (XDG_STATE_HOME says where it may be)", what);
}
