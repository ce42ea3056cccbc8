/*
 * shape_parts: the functions from which shape_cell builds a specification. Where a
 * comment names an order, it must be kept. For shape*.c only.
 */
#pragma once
#include "base/buf.h"
#include "view/shape.h"

#include <sys/stat.h>

/* The place of the private home in the view. */
#define SHAPE_HOME "/home/glovebox"

/* The value of NAME in the caller's environment, or NULL when unset or empty. */
const char *shape_environment(const struct shape_options *options, const char *name);

/* PATH becomes the real path of FD. */
bool shape_real_path(int fd, struct buf *path, struct err *err);

/*
 * Open the workspace that OPTIONS name. PATH becomes its real path, ST its status. A
 * folder of the system is refused, and so is a home that POLICY does not name.
 */
bool shape_open_workspace(const struct shape_options *options, const struct policy *policy,
			  int *fd, struct buf *path, struct stat *st, struct err *err);

/*
 * Add a link to the workspace at the path by which the user named it, when that path
 * differs and the view has nothing there. Files that were built outside contain this
 * path. To be called after every other entry was added.
 */
void shape_add_workspace_name(const struct shape_options *options, struct cell_spec *spec);

/*
 * Show the tree at PATH, which *TAKE_FD holds open. For root's cells it is a detached
 * copy, because the cell's user might not reach the tree by its path; with MAPPED its
 * owners are mapped.
 */
bool shape_show_tree(struct cell_spec *spec, const char *path, int *take_fd,
		     bool writable, bool mapped, struct err *err);

/*
 * Is FD owned by the caller and closed to all others, as after a umask of 077? The user
 * of root's cell is another one and can use such a tree only when its owners are mapped.
 */
bool shape_closed_to_others(int fd);

/*
 * As shape_show_tree, for a folder under a layer in memory of at most SIZE bytes. The
 * layer takes all writes, and the folder itself stays unchanged.
 */
bool shape_show_layer(struct cell_spec *spec, const char *path, int *take_fd,
		      uint64_t size, struct err *err);

/* Is there a tree or layer at PATH already, a writable one when WRITABLE? */
bool shape_is_shown(const struct cell_spec *spec, const char *path, bool writable);

/*
 * Pin the folders above PATH that lie in something writable. Such a pin is a mount point,
 * which cannot be renamed, so a command can neither move the file at PATH nor put another
 * one there. To be called after all writable trees were added.
 */
void shape_pin_above(struct cell_spec *spec, const char *path);

/*
 * The policy's `base`, `write`, `read` and `blocked`: open and show them. An entry is
 * refused where a cell has its own folder, or cannot do without the system's. The paths
 * in POLICY become real paths.
 */
bool shape_add_entries(struct policy *policy, struct cell_spec *spec, int workspace_fd,
		       struct err *err);

/*
 * To be called after the policy's entries. Bind existing files below writable entries
 * that git runs or follows read-only (shape_git.c), and make the guard for files that
 * must not appear, and its record.
 */
bool shape_add_protected(const struct shape_options *options, struct cell_spec *spec,
			 struct err *err);

/*
 * Call EACH for the files of the user's own git configuration and the files that it
 * includes (absolute, not resolved), whether they exist or not.
 */
void shape_git_user(const struct shape_options *options,
		    void (*each)(const char *path, void *context), void *context);

/*
 * May a cell show PATH (real) as a root of its own, writable or not? This holds for the
 * policy's entries and for folders that a person grants.
 */
bool shape_check_root(const char *path, bool writable, struct err *err);
/* Is PATH a home folder (HOME: the caller's, or NULL), or does it hold the caller's? */
bool shape_is_home(const char *path, const char *home);
/* Does git take PATH for a repository (git_scan_repository)? */
bool shape_is_repository(const char *path);

/*
 * Tell POLICY what sentences about refused paths may advise on this machine
 * (policy_advise).
 */
void shape_advise(const struct shape_options *options, struct policy *policy);
/*
 * When a person may be asked for folders, note the caller's folders that no approval
 * opens (shape_extra.h).
 */
void shape_note_closed(const struct shape_options *options, struct cell_spec *spec);
/*
 * Bind the files below the roots of ADDITION that git would run or follow read-only, and
 * give ADDITION the guard of CELL together with these files.
 */
bool shape_protect_extra(const struct cell_spec *cell, struct cell_spec *addition,
			 struct err *err);

/* Let the policy allow PATH, which is in every view, and let file tools reach it. */
void shape_grant(struct policy *policy, struct cell_spec *spec, const char *path,
		 bool writable);

/*
 * Our own folder in the user's state (undo, sessions, homes of other projects): hide it
 * where the view would show it, e.g. when the workspace is a home. Fails when it cannot
 * be hidden.
 */
bool shape_hide_state(const struct shape_options *options, struct cell_spec *spec,
		      struct err *err);

/*
 * Choose how the cell is built: root's ID mapping of the workspace, and the level. ECHILD
 * when the level is below the minimum.
 */
bool shape_choose_level(const struct shape_options *options, int workspace_fd,
			struct cell_spec *spec, struct err *err);

/*
 * Below L3: refuse a policy that needs a view (with hidden or read-only parts of a
 * writable folder, or scratch), and make the folder for temporary files.
 */
bool shape_without_view(const struct shape_options *options, struct policy *policy,
			struct cell_spec *spec, struct err *err);

/* Add /usr, /etc with its masks, /dev, /proc, /tmp and the rest of the system. */
void shape_add_system(struct policy *policy, struct cell_spec *spec);
/*
 * Add /var/tmp as a link to /tmp, or as memory of its own when an entry of SPEC lies
 * below it. To be called after all other entries were added.
 */
void shape_add_var_tmp(const struct policy *policy, struct cell_spec *spec);
/*
 * Append the folder of the workspace's project below the user's state ("homes", "caches").
 * False when there is no state folder.
 */
bool shape_state_path(const struct shape_options *options, const char *kind,
		      const char *workspace, struct buf *path);
/*
 * Add the listed hosts. To be called after the system, whose /etc/hosts a tcp:// entry
 * replaces.
 */
bool shape_add_network(const struct shape_options *options, const struct policy *policy,
		       struct cell_spec *spec, struct err *err);
/* Add the project's private home. */
void shape_add_home(const struct shape_options *options, struct policy *policy,
		    struct cell_spec *spec);
/* The next folder below a home that shows a toolchain, from *AT on (0 at first); or NULL. */
const char *shape_toolchain_next(size_t *at);
/* Add the toolchains below the caller's home that PATH leads to, read-only. */
void shape_add_toolchains(const struct shape_options *options, struct policy *policy,
			  struct cell_spec *spec);
/*
 * Add the repository that the workspace is a worktree of, read-only. To be called after
 * the policy's entries.
 */
void shape_add_worktree(struct policy *policy, struct cell_spec *spec);
/*
 * Add the entries `shown` of OPTIONS. To be called after all writable entries, because
 * these cover what lies at their places and are pinned there. False: a source is missing,
 * or would cover something that a cell needs.
 */
bool shape_add_shown(const struct shape_options *options, struct policy *policy,
		     struct cell_spec *spec, struct err *err);
/* Add our own program. */
void shape_add_program(const struct shape_options *options, struct cell_spec *spec);
/*
 * Add the caller's package and build caches of the tools that PATH leads to. To be called
 * after the toolchains, because the specification's PATH is used.
 */
void shape_add_caches(const struct shape_options *options, const struct policy *policy,
		      struct cell_spec *spec);
/* Remove the folders that an empty layer has left; HOME_IS_OURS: in the home, too. */
void shape_tidy_caches(const struct cell_spec *spec, bool home_is_ours);
/*
 * Make the environment of programs from scratch. To be called last, because PATH has only
 * folders that are shown.
 */
void shape_add_environment(const struct shape_options *options,
			   const struct policy *policy, struct cell_spec *spec);
