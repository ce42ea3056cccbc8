/* shape: puts a specification together: the user, what is shown, what may be written. */
#include "view/shape.h"

#include "base/buf.h"
#include "base/fd.h"
#include "view/shape_limits.h"
#include "view/shape_parts.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Enough for all build tools, and few enough to keep a fork bomb harmless. */
enum { OPEN_FILES = 4096 };

bool shape_show_tree(struct cell_spec *spec, const char *path, int *take_fd,
		     bool writable, bool mapped, struct err *err)
{
	struct view_entry *entry = spec_add_entry(spec, VIEW_TREE, path, path);
	struct err why = {0};

	entry->writable = writable;
	if (!spec->identity.change || !spec_is_sealed(spec)) {
		entry->fd = fd_take(take_fd);
		return true;
	}
	entry->detached = true;
	if (mapped && spec->workspace_tree >= 0 && strcmp(path, spec->workspace) == 0) {
		entry->fd = fd_take(&spec->workspace_tree);
	} else if (!sandbox_copy_tree(*take_fd, mapped ? spec->mapping.fd : -1,
				      &entry->fd, &why)) {
		/*
		 * Root of a container may not mount here: show the tree by its path, as
		 * for other users.
		 */
		if (why.code != EPERM || spec->identity.map_root)
			return err_set(err, why.code, "%s", why.text);
		entry->detached = false;
		entry->fd = fd_take(take_fd);
	}
	fd_close(take_fd);
	return true;
}

bool shape_closed_to_others(int fd)
{
	struct stat st;
	mode_t needed;

	if (fstat(fd, &st) < 0 || st.st_uid != geteuid())
		return false;
	needed = S_ISDIR(st.st_mode) || (st.st_mode & S_IXUSR) != 0 ? S_IROTH | S_IXOTH
								    : S_IROTH;
	return (st.st_mode & needed) != needed;
}

/* The real path of FD. */
bool shape_real_path(int fd, struct buf *path, struct err *err)
{
	if (fd_real_path(fd, path))
		return true;
	int code = errno;
	return err_set(err, code, "the real path of a held descriptor: %s%s",
		       strerror(code),
		       access("/proc/self", F_OK) < 0
			       ? "; /proc has to be mounted: mount -t proc proc /proc"
			       : "");
}

/*
 * May a person be asked for folders, or has a killed front left writes in granted
 * folders?
 */
static bool may_get_folders(const struct shape_options *options, const struct policy *policy)
{
	return policy_asks(policy, "read") || policy_asks(policy, "write") ||
	       (options->has_granted != NULL && options->has_granted(options->context));
}

bool shape_cell(const struct shape_options *options, struct policy *policy,
		struct cell_spec *spec, struct err *err)
{
	auto_close int workspace_fd = -1;
	struct buf path;
	struct stat st;

	buf_init(&path, PATH_MAX);
	bool ok = shape_open_workspace(options, policy, &workspace_fd, &path, &st, err);
	if (ok) {
		spec->workspace = arena_copy(&spec->arena, buf_str(&path));
		ok = policy_paths_normal(policy, spec->workspace, err);
	}
	buf_fini(&path);
	if (!ok)
		return false;
	sandbox_identity(&st, &spec->identity);
	if (!shape_choose_level(options, workspace_fd, spec, err))
		return false;
	shape_limits(&policy->limits, workspace_fd);
	spec->limits = (struct sandbox_limits){
		.processes = policy->limits.cell_pids,
		.file_size = policy->limits.file_size,
		.open_files = OPEN_FILES,
	};
	spec->call_limits = (struct call_limits){
		.memory = policy->limits.memory,
		.pids = policy->limits.pids,
		.file_size = policy->limits.file_size,
		.tmp = policy->limits.tmp,
		.free_space = policy->limits.free_space,
		.quiet_s = policy->limits.quiet_s,
		.read_bytes = policy->limits.read_bytes,
		.write_bytes = policy->limits.write_bytes,
	};
	spec->grace_s = policy->limits.grace_s;
	spec->agent = arena_copy(&spec->arena, str_of(policy->name));
	if (!shape_add_entries(policy, spec, workspace_fd, err) ||
	    !shape_add_protected(options, spec, err) ||
	    !shape_hide_state(options, spec, err))
		return false;
	if (!spec_is_sealed(spec) && !shape_without_view(options, policy, spec, err))
		return false;
	shape_add_worktree(policy, spec);
	shape_add_system(policy, spec);
	if (!shape_add_network(options, policy, spec, err))
		return false;
	shape_add_home(options, policy, spec);
	shape_add_toolchains(options, policy, spec);
	shape_add_program(options, spec);
	shape_add_caches(options, policy, spec);
	if (!shape_add_shown(options, policy, spec, err))
		return false;
	shape_add_workspace_name(options, spec);
	shape_add_var_tmp(policy, spec);
	shape_add_environment(options, policy, spec);
	shape_advise(options, policy);
	if (may_get_folders(options, policy))
		shape_note_closed(options, spec);
	return true;
}
