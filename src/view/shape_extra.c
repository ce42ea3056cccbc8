/* shape_extra: see shape_extra.h. */
#include "view/shape_extra.h"

#include "base/fd.h"
#include "base/path.h"
#include "tool/denial.h"
#include "view/shape_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
	spec_add_closed(spec, real.size > 0 && !real.overflowed ? real.data : path);
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

void shape_note_closed(const struct shape_options *options, struct cell_spec *spec)
{
	const char *home = shape_environment(options, "HOME");
	auto_free char *real = home != NULL ? realpath(home, NULL) : NULL;
	const char *const *at = options->protected_files;

	if (real != NULL) {
		spec->callers_home = arena_copy(&spec->arena, str_of(real));
		for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
			close_below(spec, real, secrets[i]);
	}
	close_xdg(options, spec, "XDG_STATE_HOME", ".local/state");
	close_xdg(options, spec, "XDG_CONFIG_HOME", ".config");
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

void shape_advise(const struct shape_options *options, struct policy *policy)
{
	const char *home = shape_environment(options, "HOME");
	auto_free char *real = home != NULL ? realpath(home, NULL) : NULL;
	const char *folder;

	for (size_t at = 0; (folder = system_folder_next(&at, FOLDER_KERNEL)) != NULL;)
		policy_advise(policy, folder, ADVICE_NOTHING);
	for (size_t at = 0; (folder = system_folder_next(&at, FOLDER_SYSTEM)) != NULL;)
		policy_advise(policy, folder, ADVICE_NOT_WRITTEN);
	for (size_t at = 0;
	     (folder = system_folder_next(&at, FOLDER_OWN | FOLDER_CROWD)) != NULL;)
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

static bool judge_place(const struct cell_spec *cell, const struct shape_extra *extra,
			struct err *err)
{
	for (size_t i = 0; i < cell->view.count; i++) {
		const struct view_entry *entry = &cell->view.entries[i];
		const bool is_below = path_within(extra->path, entry->path);

		if (path_within(entry->path, extra->path) && !is_lesser_grant(entry))
			return err_set(err, EEXIST,
				       "%s holds %s, which the cell has of its own; name a "
				       "folder beside it",
				       extra->path, entry->path);
		if (is_below && (entry->kind == VIEW_MASK || entry->kind == VIEW_MEMORY ||
				 entry->kind == VIEW_OVERLAY || entry->kind == VIEW_LINK ||
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
	if (!shape_check_root(path, extra->writable, err))
		return false;
	met = system_folder_around(path, FOLDER_KERNEL | FOLDER_RUNNING);
	if (met != NULL)
		return err_set(err, EPERM, "nothing of %s is ever shown", met);
	if (extra->writable &&
	    system_folder_around(path, FOLDER_SYSTEM | FOLDER_START) != NULL)
		return err_set(err, EPERM, "%s is part of the system", path);
	if (shape_is_home(path, cell->callers_home))
		return err_set(err, EPERM, "%s is a home folder, or holds one", path);
	if (is_somebodys(path, cell->callers_home))
		return err_set(err, EPERM, "%s lies in another user's home", path);
	met = meets(cell->closed, path, extra->writable);
	if (met == NULL)
		met = meets(cell->blocked, path, extra->writable);
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
	return sandbox_take_tree(extra->fd, extra->path, tree, err);
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
			spec_add_writable(addition, extras[i].path);
	}
	return shape_protect_extra(cell, addition, err);
}
