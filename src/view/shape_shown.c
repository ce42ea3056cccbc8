/*
 * shape_shown: adds single trees and files that a front shows besides the policy's
 * entries.
 */
#include "base/fd.h"
#include "base/path.h"
#include "tool/denial.h"
#include "view/shape_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* Would PATH cover the system or a folder of the cell's own? */
static bool covers(const struct cell_spec *spec, const char *path)
{
	return system_folder_within(path, FOLDER_SYSTEM | FOLDER_NEEDED) != NULL ||
	       system_folder_around(path, FOLDER_KERNEL) != NULL ||
	       path_within(SHAPE_PROGRAMS, path) || path_within(spec->workspace, path) ||
	       path_within(SHAPE_HOME, path);
}

static bool is_blocked(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->blocked_count; i++) {
		if (path_within(path, spec->blocked[i]))
			return true;
	}
	return false;
}

static bool show(struct policy *policy, struct cell_spec *spec,
		 const struct shape_shown *shown, struct err *err)
{
	const char *path = spec_is_sealed(spec) ? shown->path : shown->source;
	auto_close int fd = open(shown->source, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, errno, "%s: %s", shown->source, strerror(errno));
	if (spec_is_sealed(spec) && covers(spec, path))
		return err_set(err, EINVAL,
			       "nothing can be shown at %s: a cell stands on it", path);
	/* Deny wins: a blocked path is not shown. */
	if (is_blocked(spec, path) || shape_is_shown(spec, path, false))
		return true;
	shape_pin_above(spec, path);
	if (!shape_show_tree(spec, path, &fd, false, shape_closed_to_others(fd), err))
		return err_while(err, "%s", shown->source);
	struct view_entry *entry = &spec->view.entries[spec->view.count - 1];
	entry->source = arena_copy(&spec->arena, str_of(shown->source));
	entry->why =
		shown->why != NULL ? arena_copy(&spec->arena, str_of(shown->why)) : NULL;
	shape_grant(policy, spec, path, false);
	return true;
}

bool shape_add_shown(const struct shape_options *options, struct policy *policy,
		     struct cell_spec *spec, struct err *err)
{
	for (const struct shape_shown *at = options->shown;
	     at != NULL && at->source != NULL; at++) {
		if (!show(policy, spec, at, err))
			return false;
	}
	return true;
}
