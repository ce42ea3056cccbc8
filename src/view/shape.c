/* shape: puts a specification together: the user, what is shown, what may be written. */

#include "view/shape.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "guard/guard.h"
#include "policy/ceiling.h"
#include "policy/network.h"
#include "policy/policy.h"
#include "tool/denial.h"
#include "view/below.h"
#include "view/review.h"
#include "view/spec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* Opens the policy's own entries, each of them once, and shows them. */

struct opening {
	struct policy *policy;
	struct cell_spec *spec;
	struct review *review;     /* or NULL */
	const struct below *below; /* or NULL */
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
	spec_add(opening->spec, &opening->spec->made, entry->path);
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

/* Set ERR to the reason CODE why ENTRY cannot be opened. Returns false. */
static bool entry_refuse(const struct opening *opening, const struct policy_path *entry,
			 const char *key, int code, struct err *err)
{
	return err_set(err, code, "agents.%s.%s: \"%s\": %s%s", opening->policy->name,
		       key, entry->text != NULL ? entry->text : entry->path,
		       code == EXDEV   ? "a link leads out of the base"
		       : code == ELOOP ? "a link, which is not followed where two "
					 "agents' rights are put together"
				       : strerror(code),
		       code == ENOENT ? "; create it or take the entry out"
				      : missing_call(code));
}

static bool take_real_path(struct policy_path *entry, int fd, struct err *err)
{
	struct buf real;

	buf_init(&real, PATH_MAX);
	const bool fine = shape_real_path(fd, &real, err);
	if (fine)
		policy_set_path(entry, real.data);
	buf_fini(&real);
	return fine;
}

/*
 * Open ENTRY, and find what the layers below have of it. *FD is -1 where only they have it. LAYERS
 * is zero; below_found_fini in either case.
 */
static bool entry_open(const struct opening *opening, struct policy_path *entry,
		       const char *key, int *fd, struct below_found *layers, struct err *err)
{
	auto_close int found = entry_fd(opening, entry);
	int code = found < 0 ? errno : 0;

	if ((found >= 0 && !take_real_path(entry, found, err)) ||
	    ((found >= 0 || code == ENOENT) &&
	     !below_find(opening->below, entry->path, layers, err)))
		return false;
	if (layers->kind == BELOW_REMOVED)
		code = ENOENT;
	else if (layers->count > 0)
		code = 0;
	else if (code == ENOENT && entry->shipped) {
		found = entry_make(opening, entry);
		code = found < 0 ? errno : 0;
		if (code == 0 && !take_real_path(entry, found, err))
			return false;
	}
	*fd = fd_take(&found);
	return code == 0 || entry_refuse(opening, entry, key, code, err);
}

/*
 * May a cell show PATH (real) as a root of its own, writable or not? This holds for the
 * policy's entries and for folders that a person grants.
 */
static bool shape_check_root(const char *path, bool writable, struct err *err)
{
	/*
	 * A folder of the cell's own would cover the host's folder, or be covered by it.
	 */
	if (denial_system_folder_is(path, FOLDER_OWN) || path_within(path, "/proc") ||
	    path_within(path, "/dev"))
		return err_set(err, EINVAL,
			       "%s cannot be shown as a whole: every cell has its own%s",
			       path,
			       strcmp(path, "/tmp") == 0 || strcmp(path, "/var/tmp") == 0
				       ? ", which is writable; name a folder below it to show "
					 "the host's"
				       : "; name the folders below it");
	if (writable && denial_system_folder_is(path, FOLDER_FIXED))
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
		       int *fd, const struct below_found *found, bool writable,
		       struct err *err)
{
	const struct policy *policy = opening->policy;
	struct cell_spec *spec = opening->spec;
	bool layer = false;
	struct stat st;

	if (!writable && policy->scratch && found->count > 0) {
		layer = found->kind == BELOW_FOLDER;
	} else if (!writable && policy->scratch) {
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
		spec_add(spec, &spec->writable, entry->path);
	if (shape_is_shown(spec, entry->path, writable))
		return true;
	/* Without a layer of its own, a cell over layers writes nowhere. */
	bool ok = layer ? shape_show_layer(spec, entry->path, fd, found,
					   policy->limits.tmp, err)
		  : writable && opening->review != NULL
			  ? shape_show_review(spec, entry->path, fd, found,
					      opening->review, err)
		  : writable && opening->below == NULL
			  ? shape_show_tree(spec, entry->path, fd, true, true, err)
			  : shape_show_below(spec, entry->path, fd, found, err);
	if (ok)
		spec->view.entries[spec->view.count - 1].why = writable ? "write" : "read";
	return ok;
}

static bool path_show(const struct opening *opening, struct policy_path *entry,
		      const char *key, bool writable, struct err *err)
{
	struct below_found found = {0};
	auto_close int fd = -1;
	bool ok = entry_open(opening, entry, key, &fd, &found, err);

	if (ok && !shape_check_root(entry->path, writable, err))
		ok = err_while(err, "agents.%s.%s", opening->policy->name, key);
	/* deny wins: a blocked path is masked, so nothing can be shown below it */
	if (ok && !below_blocked(opening->policy, entry->path) &&
	    !entry_show(opening, entry, &fd, &found, writable, err))
		/* There is no place for the layer of a review: no entry is at fault. */
		ok = err->code != ECHILD &&
		     err_while(err, "agents.%s.%s: %s", opening->policy->name, key,
			       entry->path);
	below_found_fini(&found);
	return ok;
}

static bool paths_show(const struct opening *opening, struct policy_paths *paths,
		       const char *key, bool writable, struct err *err)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (!path_show(opening, &paths->items[i], key, writable, err))
			return false;
	}
	return true;
}

/* The deepest root of SPEC that holds PATH; NULL: none does. */
static const struct files_root *root_around(const struct cell_spec *spec, const char *path)
{
	const struct files_root *found = NULL;

	for (size_t i = 0; i < spec->root_count; i++) {
		const struct files_root *root = &spec->roots[i];

		if (path_within(path, root->path) &&
		    (found == NULL || strlen(root->path) > strlen(found->path)))
			found = root;
	}
	return found;
}

/*
 * A tree of a layer below, in a folder that is shown, is shown as the layer has it, with the
 * right to that folder.
 */
static bool below_show(const struct opening *opening, const char *path, struct err *err)
{
	const struct files_root *root = root_around(opening->spec, path);
	struct policy_path entry = {.path = (char *)(uintptr_t)path};
	struct below_found found = {0};
	auto_close int fd = -1;

	if (root == NULL || strcmp(root->path, path) == 0 ||
	    below_blocked(opening->policy, path))
		return true;
	const bool writable = root->writable;
	entry.pattern = (char *)(uintptr_t)root->pattern;
	auto_close int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = fd_open_beneath(top, path_relative(path, "/"), O_PATH);
	const bool ok = below_find(opening->below, path, &found, err) &&
			(found.count == 0 ||
			 entry_show(opening, &entry, &fd, &found, writable, err));
	below_found_fini(&found);
	return ok;
}

static bool below_show_all(const struct opening *opening, struct err *err)
{
	const struct below *below = opening->below;

	for (size_t i = 0; below != NULL && i < below->count; i++) {
		const struct review_meta *meta = &below->reviews[i]->meta;

		for (size_t j = 0; j < meta->tree_count; j++) {
			if (!below_show(opening, meta->trees[j].path, err))
				return err_while(err, "review %s: %s", meta->id,
						 meta->trees[j].path);
		}
	}
	return true;
}

static bool blocked_open(const struct opening *opening, struct err *err)
{
	struct policy_paths *blocked = &opening->policy->blocked;

	for (size_t i = 0; i < blocked->count; i++) {
		struct below_found found = {0};
		auto_close int fd = -1;
		const bool opened = entry_open(opening, &blocked->items[i], "blocked",
					       &fd, &found, err);

		below_found_fini(&found);
		if (!opened)
			return false;
		const char *path = blocked->items[i].path;
		bool whole = strcmp(path, opening->spec->workspace) != 0 &&
			     path_within(opening->spec->workspace, path);
		if (whole || denial_system_folder_within(path, FOLDER_NEEDED) != NULL)
			return err_set(err, EINVAL,
				       "agents.%s.blocked: %s holds what every cell needs; "
				       "name folders or files below it",
				       opening->policy->name, path);
		spec_add(opening->spec, &opening->spec->blocked, path);
	}
	return true;
}

static void blocked_hide(const struct opening *opening)
{
	const struct policy_paths *blocked = &opening->policy->blocked;

	for (size_t i = 0; i < blocked->count; i++) {
		const char *path = blocked->items[i].path;
		shape_pin_above(opening->spec, path);
		struct view_entry *entry =
			spec_add_entry(opening->spec, VIEW_MASK, path, NULL);

		entry->why = "blocked";
		entry->apart = true;
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
 * The workspace and the writable entries are found by their paths as long as the cell lives. In a
 * wider folder that may be written, a program could move a folder above one of them away with the
 * mount in it, and build another one in its place: the audit would look at that.
 */
static void places_pin(const struct opening *opening)
{
	const struct policy_paths *write = &opening->policy->write;
	char inside[PATH_MAX];

	for (size_t i = 0; i < write->count; i++)
		shape_pin_above(opening->spec, write->items[i].path);
	if (snprintf(inside, sizeof(inside), "%s/.", opening->spec->workspace) <
	    (int)sizeof(inside))
		shape_pin_above(opening->spec, inside);
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

/*
 * The policy's `base`, `write`, `read` and `blocked`: open and show them. An entry is
 * refused where a cell has its own folder, or cannot do without the system's. The paths
 * in POLICY become real paths.
 */
static bool shape_add_entries(const struct shape_options *options, struct policy *policy,
			      struct cell_spec *spec, int workspace_fd, struct err *err)
{
	struct opening opening = {
		.policy = policy,
		.spec = spec,
		.review = options->review,
		.below = options->below,
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
		  paths_show(&opening, &policy->read, "read", false, err) &&
		  below_show_all(&opening, err);

	if (ok) {
		workspace_stand(&opening);
		places_pin(&opening);
		read_pin(&opening);
		blocked_hide(&opening);
	}
	fd_close(&opening.base_fd);
	return ok;
}

/* Opens the workspace, and refuses folders that may not be one. */

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

/* Is PATH a home folder (HOME: the caller's, or NULL), or does it hold the caller's? */
static bool shape_is_home(const char *path, const char *home)
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
	if (denial_system_folder_is(path, FOLDER_FIXED | FOLDER_KERNEL | FOLDER_CROWD))
		return err_set(err, EPERM,
			       "%s cannot be a workspace: it is part of the system; name a "
			       "project folder with -C",
			       path);
	around = denial_system_folder_around(path, FOLDER_KERNEL);
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

/*
 * Open the workspace that OPTIONS name. PATH becomes its real path, ST its status. A
 * folder of the system is refused, and so is a home that POLICY does not name.
 */
static bool shape_open_workspace(const struct shape_options *options,
				 const struct policy *policy, int *fd, struct buf *path,
				 struct stat *st, struct err *err)
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

/* Has the view nothing at or below PATH, and above PATH at most a base or memory of its own? */
static bool is_free(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct view_entry *entry = &view->entries[i];

		if (path_within(entry->path, path) ||
		    (path_within(path, entry->path) && entry->kind != VIEW_MEMORY &&
		     entry->path[1] != '\0'))
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

/*
 * Add a link to the workspace at the path by which the user named it, when that path
 * differs and the view has nothing there. Files that were built outside contain this
 * path. To be called after every other entry was added.
 */
static void shape_add_workspace_name(const struct shape_options *options,
				     struct cell_spec *spec)
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

/* Shows the workspace at another place as well (`--at`). */

enum { AT_SHOWN = 120 }; /* bytes of a place in a sentence; each may become four */

/* Refuse PATH, which is WHAT. Returns false. */
static bool at_refuse(const char *path, const char *what, struct err *err)
{
	struct buf shown;

	buf_init(&shown, ERR_TEXT_MAX / 2);
	text_add_name(&shown, str_part(str_of(path), 0, AT_SHOWN));
	(void)err_set(err, EINVAL, "--at %s: %s; name a place of its own, as /testbed",
		      shown.data, what);
	buf_fini(&shown);
	return false;
}

/* Can PATH, as the person wrote it, be a place of the workspace? */
static bool at_check(const struct cell_spec *spec, const char *path, struct err *err)
{
	struct buf normal;
	bool fine;

	if (path[0] != '/')
		return at_refuse(path,
				 "the place is a path in the cell, which begins with /",
				 err);
	/* The place stands in prompts, and in lines of a terminal. */
	if (text_find_unseen(str_of(path)) < strlen(path))
		return at_refuse(path,
				 "the place has a byte that is not seen, such as the end of "
				 "a line",
				 err);
	buf_init(&normal, PATH_MAX);
	fine = path_normal("/", path, &normal) && strcmp(normal.data, path) == 0;
	const bool is_long = strlen(path) >= PATH_MAX || normal.overflowed;
	buf_fini(&normal);
	if (is_long)
		return err_set(err, ENAMETOOLONG,
			       "--at: the place has %zu bytes, and a path has at most %d; name a "
			       "shorter one, as /testbed",
			       strlen(path), PATH_MAX - 1);
	if (!fine)
		return at_refuse(path,
				 "the place is written without \"..\", \".\" and slashes that "
				 "stand twice or at the end",
				 err);
	if (path[1] == '\0')
		return at_refuse(path, "the root holds everything else", err);
	if (path_within(path, spec->workspace))
		return at_refuse(path, "the place lies in the workspace itself", err);
	if (path_within(spec->workspace, path))
		return at_refuse(path, "the place holds the workspace", err);
	return true;
}

/*
 * The thing that the cell of SPEC has of its own at PATH, which would be hidden there, or in
 * which PATH would lie; NULL: nothing. The programs and settings of a cell ON_BASE are files of
 * that base, which shape_base_has finds.
 */
static const char *at_meets(const struct cell_spec *spec, const char *path, bool on_base)
{
	const unsigned programs = on_base ? 0 : FOLDER_SYSTEM | FOLDER_START;
	const char *met = denial_system_folder_around(path, programs | FOLDER_KERNEL |
								    FOLDER_RUNNING);

	if (met == NULL)
		met = denial_system_folder_within(path, FOLDER_SYSTEM | FOLDER_NEEDED |
								FOLDER_OWN);
	for (size_t i = 0; met == NULL && i < spec->view.count; i++) {
		const char *at = spec->view.entries[i].path;

		if (path_within(at, path) ||
		    (path_within(path, at) && at[1] != '\0' && strcmp(at, "/tmp") != 0))
			met = at;
	}
	return met == NULL && spec_is_blocked(spec, path) ? path : met;
}

/*
 * Add the place `at` of OPTIONS, and tell POLICY. To be called after all other entries but links
 * to the workspace.
 */
static bool shape_add_at(const struct shape_options *options, struct policy *policy,
			 struct cell_spec *spec, struct err *err)
{
	const char *path = options->at, *met;
	char what[PATH_MAX + 64];

	free(policy->at);
	policy->at = NULL;
	if (spec->guard != NULL) {
		free(spec->guard->at);
		spec->guard->at = NULL;
	}
	if (path == NULL || strcmp(path, spec->workspace) == 0)
		return true;
	if (!at_check(spec, path, err))
		return false;
	if (!spec_is_sealed(spec))
		return err_set(err, ECHILD,
			       "--at %.200s: only a cell of level L3 has places of its own: see "
			       "`glovebox doctor`, or leave --at out",
			       path);
	met = at_meets(spec, path, options->base != NULL);
	if (met != NULL) {
		(void)snprintf(what, sizeof(what), "the cell has %s there", met);
		return at_refuse(path, what, err);
	}
	if (options->base != NULL && shape_base_has(options->base, path))
		return err_set(err, EEXIST,
			       "--at %.200s: the base %s has files there, which the workspace "
			       "would hide; name a place that is free, or leave the workspace "
			       "out and work on those of the base",
			       path, options->base->word);
	spec->at = arena_copy(&spec->arena, str_of(path));
	policy->at = memory_copy(path);
	if (spec->guard != NULL &&
	    faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		spec->guard->at = memory_copy(path);
	spec_add_entry(spec, VIEW_ALSO, path, spec->workspace)->why = "--at";
	return true;
}

/*
 * Chooses how a cell is built on this machine. For a cell without a view of its own, it
 * makes a folder for temporary files and checks that rules can express the policy.
 */

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
		spec->strength.level = SANDBOX_OPEN;
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
	spec->strength.level = SANDBOX_RULES;
	return true;
}

/*
 * Choose how the cell is built: root's ID mapping of the workspace, and the level. ECHILD
 * when the level is below the minimum.
 */
static bool shape_choose_level(const struct shape_options *options, int workspace_fd,
			       struct cell_spec *spec, struct err *err)
{
	const char *why = "";

	spec->built = options->strength.level;
	spec->strength = options->strength;
	if (!mapping_open(spec, workspace_fd, &why, err))
		return false;
	if ((int)spec->strength.level >= options->minimum_level)
		return true;
	return err_set(err, ECHILD,
		       "this workspace reaches level L%d only: it is root's own, and %s, so the "
		       "cell would keep user 0. Run glovebox as an ordinary user, or give the "
		       "workspace to one" SHAPE_OFFERS_LEVEL "L%d",
		       (int)spec->strength.level, why, (int)spec->strength.level);
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
	if (policy->publish.count > 0)
		return err_set(err, EINVAL,
			       "agents.%s.publish: only a cell of level L3 has ports of its own; "
			       "take them out, or see `glovebox doctor`",
			       policy->name);
	/* At L0 no file is protected anyway, and the level says so. */
	return built < SANDBOX_RULES ||
	       (exceptions_refuse(policy, &policy->blocked, "blocked", "hidden", err) &&
		exceptions_refuse(policy, &policy->read, "read", "read-only", err));
}

/*
 * Below L3 a cell's temporary files lie in a folder on the host. The front and the anchor
 * lock it (flock) as long as they live, and each of them removes it at its end. When both
 * were killed, it is left without a lock, and the next such cell of the same person
 * removes it. Version 0.1.0 had no locks, and another name.
 */
#define TEMP_NAME "glovebox-temp-"
#define TEMP_MORE "XXXXXX" /* as of fd_hold_new */

enum {
	TEMP_NAMES_MAX = 4096, /* names of TMPDIR that are looked at: some milliseconds */
};

static bool is_temp_name(struct str name)
{
	const size_t begin = strlen(TEMP_NAME);

	return str_starts(name, STR(TEMP_NAME)) && name.size == begin + strlen(TEMP_MORE) &&
	       strspn(name.data + begin, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					 "0123456789") == strlen(TEMP_MORE);
}

/*
 * Open and lock the folder NAME in PARENT, when it is one of ours that nobody uses; -1
 * otherwise. One that belongs to another user of our cells is left to that user.
 */
static int take_left_temp(int parent, const char *name)
{
	auto_close int fd =
		openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() ||
	    (st.st_mode & (S_ISUID | S_ISGID | S_ISVTX | S_IRWXG | S_IRWXO)) != 0 ||
	    flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -1;
	return fd_take(&fd);
}

static void temp_remove_left(const char *path)
{
	auto_close int parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = parent < 0 ? NULL : fd_open_names(parent);
	char own[FD_NAME_ROOM], below[PATH_MAX];

	for (int i = 0; names != NULL && i < TEMP_NAMES_MAX; i++) {
		const struct dirent *entry = readdir(names);

		if (entry == NULL)
			break;
		if (!is_temp_name(str_of(entry->d_name)))
			continue;
		/* The lock holds until all is removed: a new cell that waits for it tries again. */
		auto_close int held = take_left_temp(parent, entry->d_name);
		if (held < 0)
			continue;
		(void)snprintf(below, sizeof(below), "%s/%s", fd_name(parent, own),
			       entry->d_name);
		fd_folder_remove(below);
	}
	if (names != NULL)
		(void)closedir(names);
}

/* Make a folder in PARENT, whose path becomes PATH, and lock it. -1: see errno. */
static int temp_hold(const char *parent, char path[PATH_MAX])
{
	if (snprintf(path, PATH_MAX, "%s/" TEMP_NAME TEMP_MORE, parent) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return fd_hold_new(AT_FDCWD, path, LOCK_SH, 0700);
}

static bool temp_make(const struct shape_options *options, struct cell_spec *spec,
		      struct err *err)
{
	const struct sandbox_identity *identity = &spec->identity;
	const char *parent = shape_environment(options, "TMPDIR");
	char real[PATH_MAX], path[PATH_MAX];

	if (parent == NULL || realpath(parent, real) == NULL || real[0] != '/')
		(void)snprintf(real, sizeof(real), "/tmp");
	temp_remove_left(real);
	spec->temp_lock = temp_hold(real, path);
	if (spec->temp_lock < 0)
		return err_set(err, errno, "a folder for temporary files in %s: %s", real,
			       strerror(errno));
	spec->temp = arena_copy(&spec->arena, str_of(path));
	if (identity->change && chown(path, identity->uid, identity->gid) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	return true;
}

/*
 * Below L3: refuse a policy that needs a view (with hidden or read-only parts of a
 * writable folder, or scratch), and make the folder for temporary files.
 */
static bool shape_without_view(const struct shape_options *options, struct policy *policy,
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

/* The limits that depend on this machine. */

/* enough for linking a large program, or tests with a database */
#define MEMORY_MOST ((uint64_t)4 << 30)
#define SPACE_MOST  ((uint64_t)1 << 30) /* leaves room for the logs and mails of others */

enum {
	MEMORY_SHARE = 2, /* half of the machine is left to others */
	SPACE_SHARE = 20, /* five per cent, as ext4 reserves for root */
	MEMORY_LEAST = 16 << 20,
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t machine_memory(void)
{
	struct sysinfo info;

	if (sysinfo(&info) < 0)
		return MEMORY_MOST;
	uint64_t share = (uint64_t)info.totalram * info.mem_unit / MEMORY_SHARE;
	return share < MEMORY_LEAST ? MEMORY_LEAST : smaller(share, MEMORY_MOST);
}

static uint64_t machine_space(int workspace_fd)
{
	struct statvfs fs;

	if (fstatvfs(workspace_fd, &fs) < 0)
		return SPACE_MOST;
	return smaller((uint64_t)fs.f_blocks * fs.f_frsize / SPACE_SHARE, SPACE_MOST);
}

uint64_t shape_watches(void)
{
	enum { UNKNOWN = 8192 }; /* the kernel's own number before Linux 5.11 */
	static const char *const names[] = {
		"/proc/sys/fs/inotify/max_user_watches",
		"/proc/sys/user/max_inotify_watches",
	};
	uint64_t most = UINT64_MAX;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct buf text;

		buf_init(&text, 64);
		if (fd_read_file(names[i], 64, &text, NULL)) {
			const uint64_t number = strtoull(text.data, NULL, 10);

			if (number > 0 && number < most)
				most = number;
		}
		buf_fini(&text);
	}
	most = most < UINT64_MAX ? most : UNKNOWN;
	return most / 4 * 3;
}

void shape_limits(struct policy_limits *limits, int workspace_fd)
{
	if (limits->memory == POLICY_BY_MACHINE)
		limits->memory = machine_memory();
	if (limits->free_space == POLICY_BY_MACHINE)
		limits->free_space = machine_space(workspace_fd);
	if (limits->watches == POLICY_BY_MACHINE)
		limits->watches = shape_watches();
}

enum { NAMES_MAX = 4096 }; /* names of one folder that are checked: some milliseconds */

/* The reason in view entries that a person granted. */
static const char granted[] = "asked";

/* Paths below the caller's home with keys and passwords for other systems. */
static const char *const secrets[] = {
	".ssh",
	".gnupg",
	".aws",
	".azure",
	".kube",
	".docker",
	".netrc",
	".git-credentials",
	".pgpass",
	".password-store",
	".vault-token",
	".config/gh",
	".config/gcloud",
	".config/op",
	".mozilla",
	".config/google-chrome",
	".config/chromium",
	".local/share/keyrings",
};

/*
 * Close the real path of PATH, also when PATH does not exist yet, because a folder above
 * it may be a link.
 */
static void close_path(struct cell_spec *spec, const char *path)
{
	auto_free char *above = memory_copy(path);
	char *slash = above + strlen(above);
	struct buf real;

	buf_init(&real, PATH_MAX);
	for (;;) {
		auto_free char *found = realpath(above[0] != '\0' ? above : "/", NULL);

		if (found != NULL)
			(void)(buf_adds(&real, found) &&
			       buf_adds(&real, path + (slash - above)));
		slash = found == NULL ? strrchr(above, '/') : NULL;
		if (slash == NULL)
			break;
		*slash = '\0';
	}
	spec_add(spec, &spec->closed, real.size > 0 && !real.overflowed ? real.data : path);
	buf_fini(&real);
}

static void close_below(struct cell_spec *spec, const char *folder, const char *name)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (buf_addf(&path, "%s/%s", folder, name))
		close_path(spec, path.data);
	buf_fini(&path);
}

static void close_xdg(const struct shape_options *options, struct cell_spec *spec,
		      const char *variable, const char *fallback)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (path_xdg(shape_environment(options, variable),
		     shape_environment(options, "HOME"), fallback, "glovebox", &path))
		close_path(spec, path.data);
	buf_fini(&path);
}

/* Note the caller's keys and passwords, and our own folders. */
static void note_secrets(const struct shape_options *options, struct cell_spec *spec)
{
	const char *home = shape_environment(options, "HOME");
	auto_free char *real = home != NULL ? realpath(home, NULL) : NULL;

	if (real != NULL) {
		spec->callers_home = arena_copy(&spec->arena, str_of(real));
		for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
			close_below(spec, real, secrets[i]);
	}
	close_xdg(options, spec, "XDG_STATE_HOME", ".local/state");
	close_xdg(options, spec, "XDG_CONFIG_HOME", ".config");
	close_xdg(options, spec, "XDG_DATA_HOME", ".local/share");
}

/*
 * When a person may be asked for folders, note the caller's folders that no approval
 * opens.
 */
static void shape_note_closed(const struct shape_options *options, struct cell_spec *spec)
{
	const char *const *at = options->protected_files;

	note_secrets(options, spec);
	close_xdg(options, spec, "XDG_CACHE_HOME", ".cache");
	for (; at != NULL && *at != NULL; at++)
		close_path(spec, *at);
}

/* Let sentences about NAME below HOME advise only ADVICE. */
static void advise_below(struct policy *policy, const char *home, const char *name,
			 enum policy_advice advice)
{
	struct buf path;

	buf_init(&path, PATH_MAX - 1);
	if (path_normal(home, name, &path))
		policy_advise(policy, path.data, advice);
	buf_fini(&path);
}

static void advise_home(struct policy *policy, const char *home)
{
	size_t at = 0;

	advise_below(policy, home, ".", ADVICE_NOT_WHOLE);
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
		advise_below(policy, home, secrets[i], ADVICE_NOTHING);
	for (const char *name; (name = shape_toolchain_next(&at)) != NULL;)
		advise_below(policy, home, name, ADVICE_WHOLE);
}

/*
 * Tell POLICY what sentences about refused paths may advise on this machine
 * (policy_advise).
 */
static void shape_advise(const struct shape_options *options, struct policy *policy)
{
	const char *home = shape_environment(options, "HOME");
	auto_free char *real = home != NULL ? realpath(home, NULL) : NULL;
	const char *folder;

	for (size_t at = 0;
	     (folder = denial_system_folder_next(&at, FOLDER_KERNEL)) != NULL;)
		policy_advise(policy, folder, ADVICE_NOTHING);
	for (size_t at = 0;
	     (folder = denial_system_folder_next(&at, FOLDER_SYSTEM)) != NULL;)
		policy_advise(policy, folder, ADVICE_NOT_WRITTEN);
	for (size_t at = 0;
	     (folder = denial_system_folder_next(&at, FOLDER_OWN | FOLDER_CROWD)) != NULL;)
		policy_advise(policy, folder, ADVICE_NOT_WHOLE);
	if (home != NULL && home[0] == '/')
		advise_home(policy, home);
	if (real != NULL && strcmp(real, home) != 0)
		advise_home(policy, real);
}

/*
 * The first of PATHS (NULL-ended) that conflicts with PATH: one that holds PATH, or one
 * below PATH that exists or, with WRITES, could be made.
 */
static const char *meets(const char *const *paths, const char *path, bool writes)
{
	for (; *paths != NULL; paths++) {
		if (path_within(path, *paths) ||
		    (path_within(*paths, path) && (writes || access(*paths, F_OK) == 0)))
			return *paths;
	}
	return NULL;
}

bool shape_judge_base(const struct shape_options *options, const struct cell_spec *spec,
		      const char *folder, struct err *err)
{
	const char *met = meets(spec->blocked.items, folder, false);
	struct cell_spec closed;

	spec_init(&closed);
	note_secrets(options, &closed);
	if (met == NULL)
		met = meets(closed.closed.items, folder, false);
	const bool fine =
		met == NULL || err_set(err, EPERM, "%s is hidden from every agent", met);
	spec_fini(&closed);
	return fine;
}

static bool is_somebodys(const char *path, const char *home)
{
	const char *end;

	if (home != NULL && path_within(path, home))
		return false;
	if (path_within(path, "/root"))
		return home == NULL || !path_within(home, "/root");
	if (strncmp(path, "/home/", 6) != 0)
		return false;
	/*
	 * A path in the same folder of /home as the caller's home belongs to the caller.
	 */
	end = strchrnul(path + 6, '/');
	return home == NULL || strncmp(home, path, (size_t)(end - path)) != 0 ||
	       (home[end - path] != '/' && home[end - path] != '\0');
}

/*
 * Is ENTRY an earlier read-only grant? A new grant above it takes no right away, so they
 * do not conflict.
 */
static bool is_lesser_grant(const struct view_entry *entry)
{
	return entry->kind == VIEW_TREE && entry->why != NULL &&
	       strcmp(entry->why, granted) == 0 && !entry->writable;
}

/*
 * Is PATH a git folder or in one? Other folders with a repository may be granted, because
 * its git folder is protected.
 */
static bool is_gits(const char *path)
{
	auto_free char *at = memory_copy(path);
	char *slash;

	for (const char *rest = path; (rest = strstr(rest, "/.git")) != NULL; rest++) {
		if (rest[5] == '\0' || rest[5] == '/')
			return true;
	}
	while ((slash = strrchr(at, '/')) != NULL && slash > at) {
		*slash = '\0';
		if (shape_is_repository(at))
			return true;
	}
	return false;
}

/*
 * Does the folder FD itself have a socket in it, such as those of tmux, X11 and
 * ssh-agent? A program can connect to a socket even in a read-only tree. A folder with
 * very many names is taken for data.
 */
static bool holds_socket(int fd)
{
	auto_close int own =
		openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	DIR *folder = own >= 0 ? fdopendir(own) : NULL;
	const struct dirent *entry;
	bool found = false;
	struct stat st;

	if (folder == NULL)
		return false;
	(void)fd_take(&own);
	for (size_t i = 0; !found && i < NAMES_MAX; i++) {
		entry = readdir(folder);
		if (entry == NULL)
			break;
		found = entry->d_type == DT_SOCK ||
			(entry->d_type == DT_UNKNOWN &&
			 fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ==
				 0 &&
			 S_ISSOCK(st.st_mode));
	}
	(void)closedir(folder);
	return found;
}

/* Is ENTRY a folder of the cell's base that the folder PATH holds, or lies in? */
static bool is_base_at(const struct view_entry *entry, const char *path)
{
	return entry->kind == VIEW_LOWER && entry->path[1] == '\0' &&
	       (path_within(entry->source, path) || path_within(path, entry->source));
}

static bool judge_place(const struct cell_spec *cell, const struct shape_extra *extra,
			struct err *err)
{
	for (size_t i = 0; i < cell->view.count; i++) {
		const struct view_entry *entry = &cell->view.entries[i];
		const bool is_below = path_within(extra->path, entry->path);

		if (extra->writable && is_base_at(entry, extra->path))
			return err_set(err, EPERM,
				       "%s meets the base of the cell, which no cell changes",
				       extra->path);
		if (path_within(entry->path, extra->path) && !is_lesser_grant(entry))
			return err_set(err, EEXIST,
				       "%s holds %s, which the cell has of its own; name a "
				       "folder beside it",
				       extra->path, entry->path);
		if (is_below && (entry->kind == VIEW_MASK || entry->kind == VIEW_MEMORY ||
				 entry->kind == VIEW_OVERLAY ||
				 entry->kind == VIEW_LINK || entry->kind == VIEW_ALSO ||
				 (entry->kind == VIEW_PIN && !entry->writable)))
			return err_set(err, EPERM, "%s lies in %s, which stays as it is",
				       extra->path, entry->path);
	}
	return true;
}

bool shape_judge_extra(const struct cell_spec *cell, const struct shape_extra *extra,
		       struct err *err)
{
	const char *path = extra->path, *met;
	if (!spec_is_sealed(cell))
		return err_set(
			err, ENOTSUP,
			"a cell below level L3 has no view that a folder could be added to");
	if (extra->writable && spec_is_reviewed(cell))
		return err_set(err, EPERM,
			       "with " REVIEW_KEY
			       " everything is written into a layer, which a "
			       "running session does not widen");
	if (!shape_check_root(path, extra->writable, err))
		return false;
	met = denial_system_folder_around(path, FOLDER_KERNEL | FOLDER_RUNNING);
	if (met != NULL)
		return err_set(err, EPERM, "nothing of %s is ever shown", met);
	if (extra->writable &&
	    denial_system_folder_around(path, FOLDER_SYSTEM | FOLDER_START) != NULL)
		return err_set(err, EPERM, "%s is part of the system", path);
	if (shape_is_home(path, cell->callers_home))
		return err_set(err, EPERM, "%s is a home folder, or holds one", path);
	if (is_somebodys(path, cell->callers_home))
		return err_set(err, EPERM, "%s lies in another user's home", path);
	met = meets(cell->closed.items, path, extra->writable);
	if (met == NULL)
		met = meets(cell->blocked.items, path, extra->writable);
	if (met != NULL)
		return err_set(err, EPERM, "%s is hidden from every agent", met);
	if (extra->writable && is_gits(path))
		return err_set(err, EPERM, "what is in %s is written by git alone", path);
	if (holds_socket(extra->fd))
		return err_set(err, EPERM,
			       "%s holds a socket, by which a program outside can be told what "
			       "to do; name a folder below it",
			       path);
	return judge_place(cell, extra, err);
}

static bool tree_take(const struct cell_spec *cell, const struct shape_extra *extra,
		      int *tree, struct err *err)
{
	if (cell->identity.change)
		return sandbox_copy_tree(extra->fd, cell->mapping.fd, tree, err);
	return sandbox_take_tree(extra->fd,
				 extra->source != NULL ? extra->source : extra->path,
				 tree, err);
}

bool shape_extra(const struct cell_spec *cell, const struct shape_extra *extras,
		 size_t count, struct cell_spec *addition, struct err *err)
{
	addition->workspace = cell->workspace;
	addition->built = cell->built;
	addition->identity = cell->identity;
	for (size_t i = 0; i < count; i++) {
		struct view_entry *entry = spec_add_entry(addition, VIEW_TREE,
							  extras[i].path, extras[i].path);

		entry->writable = extras[i].writable;
		entry->detached = true;
		entry->why = granted;
		if (!tree_take(cell, &extras[i], &entry->fd, err))
			return false;
		spec_add_root(addition, extras[i].path, extras[i].writable, NULL);
		if (extras[i].writable)
			spec_add(addition, &addition->writable, extras[i].path);
	}
	return shape_protect_extra(cell, addition, err);
}

/* Adds single trees and files that a front shows besides the policy's entries. */

/* Would PATH cover the system or a folder of the cell's own? */
static bool covers(const struct cell_spec *spec, const char *path)
{
	return denial_system_folder_within(path, FOLDER_SYSTEM | FOLDER_NEEDED) != NULL ||
	       denial_system_folder_around(path, FOLDER_KERNEL) != NULL ||
	       path_within(SHAPE_PROGRAMS, path) || path_within(spec->workspace, path) ||
	       path_within(spec->home, path);
}

/* Is PATH the real path of FD? */
static bool is_real(int fd, const char *path)
{
	struct buf real;

	buf_init(&real, PATH_MAX);
	const bool same = fd_real_path(fd, &real) && strcmp(real.data, path) == 0;
	buf_fini(&real);
	return same;
}

static bool show(struct policy *policy, struct cell_spec *spec,
		 const struct shape_shown *shown, struct err *err)
{
	const char *path = spec_is_sealed(spec) ? shown->path : shown->source;
	auto_close int fd = open(shown->source, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, errno, "%s: %s", shown->source, strerror(errno));
	if (shown->exact && !is_real(fd, shown->source))
		return true;
	if (spec_is_sealed(spec) && covers(spec, path))
		return err_set(err, EINVAL,
			       "nothing can be shown at %s: a cell stands on it", path);
	/* Deny wins: a blocked path is not shown. */
	if (spec_is_blocked(spec, path) || shape_is_shown(spec, path, false))
		return true;
	shape_pin_above(spec, path);
	if (!shape_show_tree(spec, path, &fd, false,
			     shown->layer || shape_closed_to_others(fd), err))
		return err_while(err, "%s", shown->source);
	struct view_entry *entry = &spec->view.entries[spec->view.count - 1];
	entry->source = arena_copy(&spec->arena, str_of(shown->source));
	entry->why =
		shown->why != NULL ? arena_copy(&spec->arena, str_of(shown->why)) : NULL;
	shape_grant(policy, spec, path, false);
	return true;
}

/*
 * Add the entries `shown` of OPTIONS. To be called after all writable entries, because
 * these cover what lies at their places and are pinned there. False: a source is missing,
 * or would cover something that a cell needs.
 */
static bool shape_add_shown(const struct shape_options *options, struct policy *policy,
			    struct cell_spec *spec, struct err *err)
{
	for (const struct shape_shown *at = options->shown;
	     at != NULL && at->source != NULL; at++) {
		if (!show(policy, spec, at, err))
			return false;
	}
	return true;
}

/*
 * Adds the listed hosts, the ports of the cell's loopback that lead to them, and the
 * names by which programs find these hosts and the cell itself.
 */

#define HOSTS  "/etc/hosts"
#define RESOLV "/etc/resolv.conf"

enum { HOSTS_MAX = 64 << 10 };

static bool entries_read(const struct policy *policy, struct network_entry *entries,
			 struct err *err)
{
	const struct policy_names *network = &policy->network;

	for (size_t i = 0; i < network->count; i++) {
		if (!network_parse_entry(str_of(network->items[i]), &entries[i], err))
			return err_while(err, "agents.%s.network: \"%.100s\"",
					 policy->name, network->items[i]);
	}
	return network_check_ports(entries, network->count, err) ||
	       err_while(err, "agents.%s.network", policy->name);
}

static bool listens_at(const struct cell_spec *spec, uint16_t port)
{
	for (size_t i = 0; i < spec->listen_count; i++) {
		if (spec->listen[i] == port)
			return true;
	}
	return false;
}

/* TEXT becomes a hosts file with the names of carried ENTRIES. Returns their number. */
static size_t hosts_carried(const struct network_entry *entries, size_t count,
			    struct buf *text)
{
	size_t names = 0;

	(void)buf_adds(text, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n");
	for (size_t i = 0; i < count; i++) {
		if (!entries[i].carried || entries[i].host.kind != NETWORK_NAME ||
		    strcmp(entries[i].host.text, "localhost") == 0)
			continue;
		(void)buf_addf(text, "127.0.0.1\t%s\n", entries[i].host.text);
		names++;
	}
	return names;
}

/*
 * TEXT becomes the host's own hosts file, which may have a developer's names for the
 * loopback. False when there is no file that can be covered, or when it is so long (a
 * list of blocked sites) that it would slow down each start.
 */
static bool hosts_of_host(struct buf *text)
{
	struct stat st;

	buf_clear(text);
	return lstat(HOSTS, &st) == 0 && S_ISREG(st.st_mode) &&
	       fd_read_file(HOSTS, HOSTS_MAX / 2, text, NULL) &&
	       (str_ends(buf_str(text), STR("\n")) || buf_adds(text, "\n"));
}

/*
 * In the cell, a tcp:// host is on the loopback under its own name, because certificates
 * are checked against that name. The cell's own name comes last, so that 127.0.0.1 is
 * still called localhost.
 */
static void hosts_add(struct cell_spec *spec, const struct network_entry *entries,
		      size_t count)
{
	struct buf text;

	if (!spec_is_sealed(spec))
		return; /* without a view, the files and the name are those of the host */
	buf_init(&text, HOSTS_MAX);
	if (hosts_carried(entries, count, &text) > 0 || spec_has_base(spec) ||
	    hosts_of_host(&text)) {
		(void)buf_adds(&text, "127.0.0.1\t" SANDBOX_HOST_NAME "\n");
		(void)spec_add_entry(spec, VIEW_TEXT, HOSTS, text.data);
	}
	buf_fini(&text);
}

/*
 * Send DNS queries to the cell's loopback, where the kernel records and immediately
 * refuses them (sandbox_overhear). When the host's file is a link to a file that the cell
 * does not show, as with systemd-resolved, it is missing in the cell. Programs then use
 * the loopback anyway.
 */
static void questions_add(struct cell_spec *spec)
{
	static const char text[] =
		"# Nobody answers: a cell has no name server. Its proxy looks up the listed\n"
		"# hosts, and each question is told of in the result.\n"
		"nameserver 127.0.0.1\n"
		"options timeout:1 attempts:1\n";
	auto_free char *real = NULL;
	struct stat st;

	if (spec_has_base(spec))
		(void)spec_add_entry(spec, VIEW_TEXT, RESOLV, text);
	if (!spec_is_sealed(spec) || spec_has_base(spec) || lstat(RESOLV, &st) < 0)
		return;
	if (S_ISLNK(st.st_mode))
		real = realpath(RESOLV, NULL);
	if (S_ISREG(st.st_mode))
		(void)spec_add_entry(spec, VIEW_TEXT, RESOLV, text);
	else if (real != NULL && denial_system_folder_around(real, FOLDER_SYSTEM) != NULL)
		(void)spec_add_entry(spec, VIEW_TEXT, real, text);
}

/*
 * Add the listed hosts. To be called after the system, whose /etc/hosts a tcp:// entry
 * replaces.
 */
static bool shape_add_network(const struct shape_options *options,
			      const struct policy *policy, struct cell_spec *spec,
			      struct err *err)
{
	const struct policy_names *network = &policy->network;
	char rule[256];

	(void)snprintf(rule, sizeof(rule), "agents.%s.network", policy->name);
	spec->network_rule = arena_copy(&spec->arena, str_of(rule));
	questions_add(spec);
	spec->asks_network = policy_asks(policy, "network");
	if (options->resolver != NULL)
		spec->resolver = arena_copy(&spec->arena, str_of(options->resolver));
	if (network->count == 0 && !spec->asks_network) {
		hosts_add(spec, NULL, 0);
		return true;
	}
	auto_free struct network_entry *entries =
		memory_array(network->count + 1, sizeof(entries[0]));
	if (!entries_read(policy, entries, err))
		return false;
	for (size_t i = 0; i < network->count; i++)
		spec_add(spec, &spec->network, network->items[i]);
	for (size_t i = 0; i < network->count; i++) {
		if (entries[i].carried && !listens_at(spec, entries[i].port))
			spec->listen[spec->listen_count++] = entries[i].port;
	}
	/* Any free port comes last: before, it might be one of the others. */
	spec->listen[spec->listen_count++] = 0;
	hosts_add(spec, entries, network->count);
	return true;
}

static bool shape_add_publish(const struct shape_options *options,
			      const struct policy *policy, struct cell_spec *spec,
			      struct err *err)
{
	char rule[256];

	if (!options->publishes || policy->publish.count == 0)
		return true;
	(void)snprintf(rule, sizeof(rule), "agents.%s.publish", policy->name);
	spec->publish_rule = arena_copy(&spec->arena, str_of(rule));
	spec->publish_count = policy->publish.count;
	spec->publish_listed = policy->publish.count - policy->publish_said;
	spec->publishes = true;
	if (!policy_read_publish(policy, spec->publish, err))
		return false;
	for (size_t i = 0; i < spec->publish_count; i++)
		spec->kept[spec->kept_count++] = spec->publish[i].port;
	return true;
}

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

/* A file of the host that is pinned may be missing in the layers below. */
static void pins_may_miss(const struct below *below, struct cell_spec *spec)
{
	for (size_t i = 0; below != NULL && i < spec->view.count; i++) {
		struct view_entry *entry = &spec->view.entries[i];

		entry->optional = entry->optional || entry->kind == VIEW_PIN;
	}
}

static void take_limits(const struct policy_limits *limits, struct cell_spec *spec)
{
	spec->limits = (struct sandbox_limits){
		.processes = limits->cell_pids,
		.file_size = limits->file_size,
		.open_files = OPEN_FILES,
	};
	spec->call_limits = (struct call_limits){
		.memory = limits->memory,
		.pids = limits->pids,
		.file_size = limits->file_size,
		.tmp = limits->tmp,
		.free_space = limits->free_space,
		.quiet_s = limits->quiet_s,
		.read_bytes = limits->read_bytes,
		.write_bytes = limits->write_bytes,
		.watches = limits->watches,
	};
	spec->grace_s = limits->grace_s;
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
	if (!shape_choose_level(options, workspace_fd, spec, err) ||
	    !shape_check_base(options, spec, err))
		return false;
	spec->identity.root = options->base != NULL && policy->cell_user == CELL_USER_ROOT;
	shape_limits(&policy->limits, workspace_fd);
	if (!ceiling_cut(options->ceiling, spec->workspace, policy, options->told, err))
		return false;
	take_limits(&policy->limits, spec);
	if ((options->review != NULL || options->below != NULL) && !spec_is_sealed(spec))
		return err_set(err, ECHILD,
			       REVIEW_KEY
			       ": only a cell of level L3 has layers to write to; here "
			       "every write would be real: see `glovebox doctor`");
	spec->agent = arena_copy(&spec->arena, str_of(policy->name));
	if (!shape_add_entries(options, policy, spec, workspace_fd, err) ||
	    !ceiling_check(options->ceiling, policy, err) ||
	    !shape_add_protected(options, spec, err) ||
	    !shape_hide_state(options, spec, err))
		return false;
	if (!spec_is_sealed(spec) && !shape_without_view(options, policy, spec, err))
		return false;
	spec->home = options->home == NULL
			     ? SHAPE_HOME
			     : arena_copy(&spec->arena, str_of(options->home->path));
	if (options->home != NULL) {
		spec->logins = options->home->logins;
		spec->login_count = options->home->login_count;
	}
	shape_add_worktree(policy, spec);
	if (options->base == NULL)
		shape_add_system(policy, spec);
	else if (!shape_add_base(options, policy, spec, err))
		return false;
	if (!shape_add_network(options, policy, spec, err) ||
	    !shape_add_publish(options, policy, spec, err))
		return false;
	if (options->base == NULL) {
		shape_add_home(options, policy, spec);
		shape_add_toolchains(options, policy, spec);
	}
	shape_add_program(options, spec);
	if (options->base == NULL)
		shape_add_caches(options, policy, spec);
	if (!shape_add_shown(options, policy, spec, err) ||
	    !shape_add_at(options, policy, spec, err))
		return false;
	shape_add_workspace_name(options, spec);
	if (options->base == NULL)
		shape_add_var_tmp(policy, spec);
	shape_add_environment(options, policy, spec);
	shape_hide_programs(policy, spec);
	pins_may_miss(options->below, spec);
	if (!shape_add_ssh(options, spec, err))
		return false;
	shape_advise(options, policy);
	if (may_get_folders(options, policy))
		shape_note_closed(options, spec);
	return true;
}
