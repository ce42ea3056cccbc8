/*
 * shape_parts: the parts that shape_cell puts a specification together from, in its order
 * where one is given. For shape*.c only.
 */
#pragma once
#include "base/buf.h"
#include "view/shape.h"

#include <sys/stat.h>

/* Where the private home lies in the view. */
#define SHAPE_HOME "/home/glovebox"

/* The value of NAME in the caller's environment, or NULL when unset or empty. */
const char *shape_environment(const struct shape_options *options, const char *name);

/* PATH becomes where the held FD lies. */
bool shape_real_path(int fd, struct buf *path, struct err *err);

/*
 * Open the workspace that OPTIONS name: PATH becomes its real one, ST what it is. What is part
 * of the system, and a home that POLICY does not name, is refused.
 */
bool shape_open_workspace(const struct shape_options *options, const struct policy *policy,
			  int *fd, struct buf *path, struct stat *st, struct err *err);

/*
 * A link to the workspace in the place by which the user came to it, where that is another and
 * the view has nothing there: what was built outside names files by it. After every other entry.
 */
void shape_add_workspace_name(const struct shape_options *options, struct cell_spec *spec);

/*
 * Show the tree at PATH, held by *TAKE_FD. For root's cells it is a detached copy, with
 * the owners mapped when MAPPED: the cell's user could not reach it by name.
 */
bool shape_show_tree(struct cell_spec *spec, const char *path, int *take_fd,
		     bool writable, bool mapped, struct err *err);

/*
 * Is what FD holds the caller's own and closed to everybody else, as a umask of 077 makes it? To
 * be of use in root's cell, whose user is another, its owners must be mapped.
 */
bool shape_closed_to_others(int fd);

/*
 * The same as shape_show_tree for a folder under a layer in memory of at most SIZE bytes, which
 * takes what is written; the folder itself stays as it is.
 */
bool shape_show_layer(struct cell_spec *spec, const char *path, int *take_fd,
		      uint64_t size, struct err *err);

/* Is there a tree or layer at PATH already, a writable one when WRITABLE? */
bool shape_is_shown(const struct cell_spec *spec, const char *path, bool writable);

/*
 * Hold the folders above PATH, as far as they lie in something writable, in their places: a
 * mount point cannot be renamed, so nothing else comes to stand under that name, and what
 * it is about under no other. After everything that may be written is shown.
 */
void shape_pin_above(struct cell_spec *spec, const char *path);

/*
 * The policy's `base`, `write`, `read` and `blocked`: opened, refused where a cell has its own
 * or cannot do without, and shown. Their paths in POLICY become the real ones.
 */
bool shape_add_entries(struct policy *policy, struct cell_spec *spec, int workspace_fd,
		       struct err *err);

/*
 * After the policy's entries: what git runs or follows below writable ones read-only
 * (shape_git.c), so far as it is there; the guard for what may not appear, and its record.
 */
bool shape_add_protected(const struct shape_options *options, struct cell_spec *spec,
			 struct err *err);

/*
 * Call EACH for the files of the user's own git configuration (absolute, not resolved), those that it
 * includes among them, whether they are there or not.
 */
void shape_git_user(const struct shape_options *options,
		    void (*each)(const char *path, void *context), void *context);

/*
 * May a cell show PATH (real) as a root of its own, writable or not? Whoever named it: the
 * policy, or a person who was asked.
 */
bool shape_check_root(const char *path, bool writable, struct err *err);
/* Is PATH a home folder (HOME: the caller's, or NULL), or does it hold the caller's? */
bool shape_is_home(const char *path, const char *home);
/* Does git take PATH for a repository (git_scan_repository)? */
bool shape_is_repository(const char *path);

/* What sentences about refused paths may advise (policy_advise): for all of this machine. */
void shape_advise(const struct shape_options *options, struct policy *policy);
/* Where a person may be asked for folders: note what of the caller's none opens (shape_extra.h). */
void shape_note_closed(const struct shape_options *options, struct cell_spec *spec);
/*
 * What git would run or follow below the roots of ADDITION read-only, and its guard: that of
 * CELL with what these hold.
 */
bool shape_protect_extra(const struct cell_spec *cell, struct cell_spec *addition,
			 struct err *err);

/* PATH is in every view: the policy allows it, file tools reach it. */
void shape_grant(struct policy *policy, struct cell_spec *spec, const char *path,
		 bool writable);

/*
 * Our own folder in the user's state (undo, sessions, homes of other projects): hidden where
 * the view would show it, as it does when the workspace is a home. Refused where it cannot be.
 */
bool shape_hide_state(const struct shape_options *options, struct cell_spec *spec,
		      struct err *err);

/*
 * How the cell is built and what that is worth: root's ID mapping of the workspace, and
 * the level. ECHILD when that is below the minimum.
 */
bool shape_choose_level(const struct shape_options *options, int workspace_fd,
			struct cell_spec *spec, struct err *err);

/*
 * Below L3: refuse what the policy asks of a view (something hidden or read-only in a
 * writable folder, scratch), and make the folder for temporary files.
 */
bool shape_without_view(const struct shape_options *options, struct policy *policy,
			struct cell_spec *spec, struct err *err);

/* /usr, /etc with its masks, /dev, /proc, /tmp and the rest of the system. */
void shape_add_system(struct policy *policy, struct cell_spec *spec);
/*
 * /var/tmp is a link to /tmp, but memory of its own where one of SPEC's entries lies below it. To be
 * called when all of these are there.
 */
void shape_add_var_tmp(const struct policy *policy, struct cell_spec *spec);
/*
 * Append the folder of the workspace's project below the user's state ("homes", "caches").
 * False when there is no state folder.
 */
bool shape_state_path(const struct shape_options *options, const char *kind,
		      const char *workspace, struct buf *path);
/* The listed hosts; after the system, whose /etc/hosts a tcp:// entry replaces. */
bool shape_add_network(const struct shape_options *options, const struct policy *policy,
		       struct cell_spec *spec, struct err *err);
/* The project's private home. */
void shape_add_home(const struct shape_options *options, struct policy *policy,
		    struct cell_spec *spec);
/* The next folder below a home that shows a toolchain, from *AT on (0 at first); or NULL. */
const char *shape_toolchain_next(size_t *at);
/* Toolchains below the caller's home that his PATH leads to, read-only. */
void shape_add_toolchains(const struct shape_options *options, struct policy *policy,
			  struct cell_spec *spec);
/* The repository that the workspace is a worktree of, read-only. After the policy's entries. */
void shape_add_worktree(struct policy *policy, struct cell_spec *spec);
/*
 * What the options show besides, after everything that may be written: it covers what lies
 * there, and keeps its place. False: something is missing, or would cover what a cell needs.
 */
bool shape_add_shown(const struct shape_options *options, struct policy *policy,
		     struct cell_spec *spec, struct err *err);
/* Our own program. */
void shape_add_program(const struct shape_options *options, struct cell_spec *spec);
/*
 * The caller's package and build caches of tools that PATH leads to. After the toolchains:
 * the specification's PATH is looked at.
 */
void shape_add_caches(const struct shape_options *options, const struct policy *policy,
		      struct cell_spec *spec);
/* Remove what a layer that stayed empty has left; HOME_IS_OURS: in the home, too. */
void shape_tidy_caches(const struct cell_spec *spec, bool home_is_ours);
/*
 * The environment of programs, from scratch. After the others: PATH holds what is
 * shown.
 */
void shape_add_environment(const struct shape_options *options,
			   const struct policy *policy, struct cell_spec *spec);
