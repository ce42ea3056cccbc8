/*
 * shape_level: chooses how a cell is built on this machine. For a cell without a view of
 * its own, it makes a folder for temporary files and checks that rules can express the
 * policy.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "view/shape_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Open the ID mapping for root's own workspace. When mapping is impossible (by the file
 * system, or without user namespaces) the cell keeps user 0, and *WHY gives the reason.
 */
static bool mapping_open(struct cell_spec *spec, int workspace_fd, const char **why,
			 struct err *err)
{
	if (!spec->identity.map_root)
		return true;
	if (!spec_is_sealed(spec)) {
		*why = "without user namespaces nothing can be ID-mapped";
		/*
		 * For user 0 the kernel limits no processes, and most files outside
		 * belong to this user.
		 */
		spec->identity = (struct sandbox_identity){0};
		if (spec->level > SANDBOX_FILTER)
			spec->level = SANDBOX_FILTER;
		return true;
	}
	if (!sandbox_open_mapping(&spec->identity, &spec->mapping, err)) {
		err->code = ECHILD;
		return false;
	}
	/*
	 * The copy is kept, because the kernel takes longer to remove one than to make
	 * it.
	 */
	if (sandbox_copy_tree(workspace_fd, spec->mapping.fd, &spec->workspace_tree, err))
		return true;
	sandbox_close_mapping(&spec->mapping);
	/*
	 * Only when the file system or a container refuses the mapping is a weaker cell
	 * built. Any other error is a failure.
	 */
	if (err->code != EPERM && err->code != EINVAL && err->code != EOPNOTSUPP &&
	    err->code != ENOSYS) {
		err->code = ECHILD;
		return false;
	}
	*why = err->code == EPERM ? "root here lacks CAP_SYS_ADMIN to ID-map it"
				  : "its file system has no ID mapping";
	spec->identity = (struct sandbox_identity){0};
	spec->level = SANDBOX_RULES;
	return true;
}

bool shape_choose_level(const struct shape_options *options, int workspace_fd,
			struct cell_spec *spec, struct err *err)
{
	const char *why = "";

	spec->built = options->level;
	spec->level = (int)options->level;
	if (!mapping_open(spec, workspace_fd, &why, err))
		return false;
	if (spec->level >= options->minimum_level)
		return true;
	return err_set(err, ECHILD,
		       "this workspace reaches level L%d only: it is root's own, and %s, so the "
		       "cell would keep user 0. Run glovebox as an ordinary user, give the "
		       "workspace to one, or allow it with --minimum-level L%d",
		       spec->level, why, spec->level);
}

static bool is_writable(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->write.count; i++) {
		if (path_within(path, policy->write.items[i].path))
			return true;
	}
	return false;
}

static bool is_entry(const struct policy_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (strcmp(paths->items[i].path, path) == 0)
			return true;
	}
	return false;
}

/*
 * Landlock grants a folder with everything in it, and cannot make exceptions below.
 * Refuse a policy with such exceptions in PATHS.
 */
static bool exceptions_refuse(const struct policy *policy, const struct policy_paths *paths,
			      const char *key, const char *how, struct err *err)
{
	for (size_t i = 0; i < paths->count; i++) {
		const char *path = paths->items[i].path;
		if (is_writable(policy, path) && !is_entry(&policy->write, path))
			return err_set(
				err, EINVAL,
				"agents.%s.%s: %s cannot be %s inside a writable folder at "
				"level L2, which this machine reaches: write to narrower "
				"folders, move it out, or see `glovebox doctor` for L3",
				policy->name, key, path, how);
	}
	return true;
}

static bool policy_fits(const struct policy *policy, enum sandbox_level built,
			struct err *err)
{
	if (policy->scratch)
		return err_set(err, EINVAL,
			       "agents.%s.scratch: only a cell of level L3 has layers to write "
			       "to; here every write would be real: see `glovebox doctor`",
			       policy->name);
	if (policy->network.count > 0)
		return err_set(err, EINVAL,
			       "agents.%s.network: only a cell of level L3 has a network of its "
			       "own to lead to the listed hosts; take them out, or see `glovebox "
			       "doctor`",
			       policy->name);
	/* At L1 and L0 no file is protected anyway, and the level says so. */
	return built < SANDBOX_RULES ||
	       (exceptions_refuse(policy, &policy->blocked, "blocked", "hidden", err) &&
		exceptions_refuse(policy, &policy->read, "read", "read-only", err));
}

static bool temp_make(const struct shape_options *options, struct cell_spec *spec,
		      struct err *err)
{
	const struct sandbox_identity *identity = &spec->identity;
	const char *parent = shape_environment(options, "TMPDIR");
	char real[PATH_MAX], path[PATH_MAX];

	if (parent == NULL || realpath(parent, real) == NULL || real[0] != '/')
		(void)snprintf(real, sizeof(real), "/tmp");
	if (snprintf(path, sizeof(path), "%s/glovebox-cell-XXXXXX", real) >=
	    (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "TMPDIR: the path is too long");
	if (mkdtemp(path) == NULL)
		return err_set(err, errno, "a folder for temporary files in %s: %s", real,
			       strerror(errno));
	spec->temp = arena_copy(&spec->arena, str_of(path));
	if (identity->change && chown(path, identity->uid, identity->gid) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	return true;
}

bool shape_without_view(const struct shape_options *options, struct policy *policy,
			struct cell_spec *spec, struct err *err)
{
	if (!policy_fits(policy, spec->built, err) || !temp_make(options, spec, err))
		return false;
	auto_close int fd = open(spec->temp, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", spec->temp, strerror(errno));
	shape_grant(policy, spec, spec->temp, true);
	return shape_show_tree(spec, spec->temp, &fd, true, false, err);
}
