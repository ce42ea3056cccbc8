/* shape_workspace: opens the workspace, and refuses folders that may not be one. */
#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "tool/denial.h"
#include "view/shape_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool policy_names(const struct policy *policy, const char *path)
{
	const struct policy_paths *lists[] = {&policy->read, &policy->write};

	if (policy->base.text != NULL && strcmp(policy->base.text, path) == 0)
		return true;
	for (size_t i = 0; i < 2; i++) {
		for (size_t j = 0; j < lists[i]->count; j++) {
			const char *text = lists[i]->items[j].text;
			if (text != NULL && strcmp(text, path) == 0)
				return true;
		}
	}
	return false;
}

bool shape_is_home(const char *path, const char *home)
{
	return (home != NULL && path_within(home, path)) || policy_is_home(path);
}

/* Is PATH the caller's home, either by its normal path or by its real path? */
static bool is_callers_home(const struct shape_options *options, const char *path)
{
	const char *home = shape_environment(options, "HOME");
	auto_free char *real = home != NULL ? realpath(home, NULL) : NULL;
	struct buf normal;
	bool is_home;

	buf_init(&normal, PATH_MAX);
	is_home = shape_is_home(path, home != NULL && home[0] == '/' &&
						      path_normal("/", home, &normal)
					      ? normal.data
					      : NULL) ||
		  shape_is_home(path, real);
	buf_fini(&normal);
	return is_home;
}

static bool workspace_check(const struct shape_options *options,
			    const struct policy *policy, const char *path, struct err *err)
{
	const char *around;

	/*
	 * A workspace at one of these folders would cover a part that every view needs.
	 */
	if (system_folder_is(path, FOLDER_FIXED | FOLDER_KERNEL | FOLDER_CROWD))
		return err_set(err, EPERM,
			       "%s cannot be a workspace: it is part of the system; name a "
			       "project folder with -C",
			       path);
	around = system_folder_around(path, FOLDER_KERNEL);
	if (around != NULL)
		return err_set(err, EPERM,
			       "%s cannot be a workspace: every cell has a %s of its own; name a "
			       "project folder with -C",
			       path, around);
	if (is_callers_home(options, path) && !policy_names(policy, path))
		return err_set(err, EPERM,
			       "%s is a home folder: name a project folder with -C, or name it "
			       "as `base` in the agent's policy",
			       path);
	return true;
}

bool shape_open_workspace(const struct shape_options *options, const struct policy *policy,
			  int *fd, struct buf *path, struct stat *st, struct err *err)
{
	auto_close int found =
		open(options->workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);

	if (found < 0)
		return err_set(err, errno, "workspace %s: %s%s", options->workspace,
			       strerror(errno),
			       errno == ENOENT    ? "; name your project's folder with -C"
			       : errno == ENOTDIR ? "; name a folder"
			       : errno == EACCES  ? "; its owner must let you read it"
						  : "");
	if (fstat(found, st) < 0 || faccessat(found, ".", R_OK | X_OK, AT_EACCESS) < 0)
		return err_set(err, errno, "workspace %s: %s", options->workspace,
			       strerror(errno));
	if (!shape_real_path(found, path, err) ||
	    !workspace_check(options, policy, path->data, err))
		return false;
	*fd = fd_take(&found);
	return true;
}

/* Has the view nothing at or below PATH, and above PATH at most memory of its own? */
static bool is_free(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct view_entry *entry = &view->entries[i];

		if (path_within(entry->path, path) ||
		    (path_within(path, entry->path) && entry->kind != VIEW_MEMORY))
			return false;
	}
	return true;
}

static bool is_same_folder(const char *one, const char *other)
{
	struct stat a, b;

	return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

void shape_add_workspace_name(const struct shape_options *options, struct cell_spec *spec)
{
	const char *folder = shape_environment(options, "PWD");
	const char *name = options->workspace_name != NULL ? options->workspace_name
							   : options->workspace;
	struct buf path;

	if (!spec_is_sealed(spec) ||
	    (name[0] != '/' && (folder == NULL || folder[0] != '/')))
		return;
	buf_init(&path, PATH_MAX - 1);
	if (path_normal(folder, name, &path) && strcmp(path.data, spec->workspace) != 0 &&
	    is_free(&spec->view, path.data) && is_same_folder(path.data, spec->workspace))
		(void)spec_add_entry(spec, VIEW_LINK, path.data, spec->workspace);
	buf_fini(&path);
}
