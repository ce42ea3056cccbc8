/* shape_entries: opens the policy's own entries, each of them once, and shows them. */
#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "tool/denial.h"
#include "view/shape_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct opening {
	struct policy *policy;
	struct cell_spec *spec;
	int workspace_fd, base_fd;
};

/*
 * Open an entry that is the common part of entries of two policies. Links are followed
 * only in the part of the path that both name. A path in the workspace never leads out of
 * it.
 */
static int entry_narrowed_fd(const struct opening *opening, const struct policy_path *entry)
{
	const struct open_how within = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	const struct open_how below = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	const char *workspace = opening->spec->workspace;
	auto_free char *trunk = memory_copy_str((struct str){entry->path, entry->trunk});
	const char *rest = path_relative(entry->path, trunk);
	auto_close int fd = path_within(trunk, workspace)
				    ? (int)syscall(SYS_openat2, opening->workspace_fd,
						   path_relative(trunk, workspace),
						   &within, sizeof(within))
				    : open(trunk, O_PATH | O_CLOEXEC);

	if (fd < 0 || strcmp(rest, ".") == 0)
		return fd_take(&fd);
	return (int)syscall(SYS_openat2, fd, rest, &below, sizeof(below));
}

static int entry_fd(const struct opening *opening, const struct policy_path *entry)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	const char *base = opening->policy->base.path;

	if (entry->trunk > 0)
		return entry_narrowed_fd(opening, entry);
	/*
	 * The user named an absolute entry with its links, so these are followed. A
	 * relative entry must stay below the base.
	 */
	if (entry->text == NULL || entry->text[0] == '/')
		return open(entry->path, O_PATH | O_CLOEXEC);
	return (int)syscall(SYS_openat2, opening->base_fd,
			    path_relative(entry->path, base), &how, sizeof(how));
}

/*
 * A shipped role writes to a folder (tests, docs) that a project may not have yet: it is
 * made, and removed with the cell when it stayed empty.
 */
static int entry_make(const struct opening *opening, const struct policy_path *entry)
{
	const struct sandbox_identity *identity = &opening->spec->identity;
	const char *name = path_relative(entry->path, opening->policy->base.path);
	int fd;

	/* Only one level is made: a role does not create a deeper path in a project. */
	if (strchr(name, '/') != NULL || mkdirat(opening->base_fd, name, 0755) < 0) {
		errno = ENOENT;
		return -1;
	}
	fd = entry_fd(opening, entry);
	if (fd >= 0 && identity->change && !identity->map_root)
		(void)!fchownat(opening->base_fd, name, identity->uid, identity->gid,
				AT_SYMLINK_NOFOLLOW);
	spec_add_made(opening->spec, entry->path);
	return fd;
}

static const char *missing_call(int code)
{
	return code == ENOSYS
		       ? "; the call openat2 is missing: take a kernel of 5.12 or newer, "
			 "and leave the sandbox around us that hides it (a cell of "
			 "Glovebox does)"
		       : "";
}

static bool entry_open(const struct opening *opening, struct policy_path *entry,
		       const char *key, int *fd, struct err *err)
{
	auto_close int found = entry_fd(opening, entry);
	struct buf real;

	if (found < 0 && errno == ENOENT && entry->shipped)
		found = entry_make(opening, entry);
	if (found < 0)
		return err_set(err, errno, "agents.%s.%s: \"%s\": %s%s",
			       opening->policy->name, key,
			       entry->text != NULL ? entry->text : entry->path,
			       errno == EXDEV   ? "a link leads out of the base"
			       : errno == ELOOP ? "a link, which is not followed where two "
						  "agents' rights are put together"
						: strerror(errno),
			       errno == ENOENT ? "; create it or take the entry out"
					       : missing_call(errno));
	buf_init(&real, PATH_MAX);
	bool ok = shape_real_path(found, &real, err);
	if (ok)
		policy_set_path(entry, real.data);
	buf_fini(&real);
	*fd = fd_take(&found);
	return ok;
}

bool shape_check_root(const char *path, bool writable, struct err *err)
{
	/*
	 * A folder of the cell's own would cover the host's folder, or be covered by it.
	 */
	if (system_folder_is(path, FOLDER_OWN) || path_within(path, "/proc") ||
	    path_within(path, "/dev"))
		return err_set(err, EINVAL,
			       "%s cannot be shown as a whole: every cell has its own%s",
			       path,
			       strcmp(path, "/tmp") == 0 || strcmp(path, "/var/tmp") == 0
				       ? ", which is writable; name a folder below it to show "
					 "the host's"
				       : "; name the folders below it");
	if (writable && system_folder_is(path, FOLDER_FIXED))
		return err_set(err, EINVAL,
			       "%s is what every cell runs on and stays read-only; name folders "
			       "below it",
			       path);
	return true;
}

static bool below_blocked(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->blocked.count; i++) {
		const char *blocked = policy->blocked.items[i].path;
		if (strcmp(path, blocked) != 0 && path_within(path, blocked))
			return true;
	}
	return false;
}

/*
 * A writable entry at the same place wins; equal entries are shown once. With `scratch`,
 * programs may write to a read-only folder through a layer of the cell's own.
 */
static bool entry_show(const struct opening *opening, const struct policy_path *entry,
		       int *fd, bool writable, struct err *err)
{
	const struct policy *policy = opening->policy;
	struct cell_spec *spec = opening->spec;
	bool layer = false;
	struct stat st;

	if (!writable && policy->scratch) {
		if (fstat(*fd, &st) < 0)
			return err_set(err, errno, "%s", strerror(errno));
		layer = S_ISDIR(st.st_mode);
	}
	/*
	 * File tools may not write to a layer: they would report a write that does not
	 * last.
	 */
	spec_add_root(spec, entry->path, writable, writable ? entry->pattern : NULL);
	if (writable || layer)
		spec_add_writable(spec, entry->path);
	if (shape_is_shown(spec, entry->path, writable))
		return true;
	bool ok = layer ? shape_show_layer(spec, entry->path, fd, policy->limits.tmp, err)
			: shape_show_tree(spec, entry->path, fd, writable, true, err);
	if (ok)
		spec->view.entries[spec->view.count - 1].why = writable ? "write" : "read";
	return ok;
}

static bool paths_show(const struct opening *opening, struct policy_paths *paths,
		       const char *key, bool writable, struct err *err)
{
	for (size_t i = 0; i < paths->count; i++) {
		struct policy_path *entry = &paths->items[i];
		auto_close int fd = -1;

		if (!entry_open(opening, entry, key, &fd, err))
			return false;
		if (!shape_check_root(entry->path, writable, err))
			return err_while(err, "agents.%s.%s", opening->policy->name, key);
		if (below_blocked(opening->policy, entry->path))
			/*
			 * deny wins: a blocked path is masked, so nothing can be shown
			 * below it
			 */
			continue;
		if (!entry_show(opening, entry, &fd, writable, err))
			return err_while(err, "agents.%s.%s: %s", opening->policy->name,
					 key, entry->path);
	}
	return true;
}

static bool blocked_open(const struct opening *opening, struct err *err)
{
	struct policy_paths *blocked = &opening->policy->blocked;

	for (size_t i = 0; i < blocked->count; i++) {
		auto_close int fd = -1;
		if (!entry_open(opening, &blocked->items[i], "blocked", &fd, err))
			return false;
		const char *path = blocked->items[i].path;
		bool whole = strcmp(path, opening->spec->workspace) != 0 &&
			     path_within(opening->spec->workspace, path);
		if (whole || system_folder_within(path, FOLDER_NEEDED) != NULL)
			return err_set(err, EINVAL,
				       "agents.%s.blocked: %s holds what every cell needs; "
				       "name folders or files below it",
				       opening->policy->name, path);
		spec_add_blocked(opening->spec, path);
	}
	return true;
}

static void blocked_hide(const struct opening *opening)
{
	const struct policy_paths *blocked = &opening->policy->blocked;

	for (size_t i = 0; i < blocked->count; i++) {
		const char *path = blocked->items[i].path;
		shape_pin_above(opening->spec, path);
		spec_add_entry(opening->spec, VIEW_MASK, path, NULL)->why = "blocked";
	}
}

/* Pin the read-only entries in writable folders, so that they cannot be moved. */
static void read_pin(const struct opening *opening)
{
	const struct policy_paths *read = &opening->policy->read;

	for (size_t i = 0; i < read->count; i++) {
		if (!opening->policy->scratch &&
		    !shape_is_shown(opening->spec, read->items[i].path, true))
			shape_pin_above(opening->spec, read->items[i].path);
	}
}

/*
 * When the view shows nothing of the workspace, give programs an empty folder to start
 * in.
 */
static void workspace_stand(const struct opening *opening)
{
	const struct view *view = &opening->spec->view;
	const char *workspace = opening->spec->workspace;

	for (size_t i = 0; i < view->count; i++) {
		if (path_within(workspace, view->entries[i].path) ||
		    path_within(view->entries[i].path, workspace))
			return;
	}
	spec_add_entry(opening->spec, VIEW_FOLDER, workspace, NULL)->why = "workspace";
}

/* Open the base, beginning at the workspace. */
static bool base_open(struct opening *opening, int workspace_fd, struct err *err)
{
	const struct policy_path *base = &opening->policy->base;
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};

	if (base->text == NULL)
		opening->base_fd = fcntl(workspace_fd, F_DUPFD_CLOEXEC, 0);
	else if (base->text[0] == '/')
		opening->base_fd = open(base->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	else
		opening->base_fd =
			(int)syscall(SYS_openat2, workspace_fd,
				     path_relative(base->path, opening->spec->workspace),
				     &how, sizeof(how));
	if (opening->base_fd < 0)
		return err_set(err, errno, "agents.%s.base: \"%s\": %s%s",
			       opening->policy->name,
			       base->text != NULL ? base->text : base->path,
			       errno == EXDEV ? "a link leads out of the workspace"
					      : strerror(errno),
			       missing_call(errno));
	return true;
}

bool shape_add_entries(struct policy *policy, struct cell_spec *spec, int workspace_fd,
		       struct err *err)
{
	struct opening opening = {
		.policy = policy,
		.spec = spec,
		.workspace_fd = workspace_fd,
		.base_fd = -1,
	};
	size_t count = policy->write.count + policy->read.count + policy->blocked.count;

	if (count > SPEC_ENTRIES_MAX)
		return err_set(err, E2BIG,
			       "agent \"%s\" names %zu paths in read, write and blocked, at most "
			       "%d are taken; name the folders that hold them",
			       policy->name, count, SPEC_ENTRIES_MAX);
	bool ok = base_open(&opening, workspace_fd, err) && blocked_open(&opening, err) &&
		  paths_show(&opening, &policy->write, "write", true, err) &&
		  paths_show(&opening, &policy->read, "read", false, err);

	if (ok) {
		workspace_stand(&opening);
		read_pin(&opening);
		blocked_hide(&opening);
	}
	fd_close(&opening.base_fd);
	return ok;
}
