/*
 * shape: makes the specification of a cell from a policy and this machine. It runs in
 * the front: it opens the workspace and every entry of the policy once as O_PATH
 * descriptors, puts their real paths into the policy, chooses the user of the cell,
 * and lists the entries of the view. Only view/ knows what a cell shows by default.
 *
 * system.c has what every cell shows or hides by default, home.c the private home with
 * its layers, pins and caches, and protected.c what git or another program would run.
 * The additions of a project to a cache lie beside its private home
 * (`glovebox/caches`), out of reach of the cell: a process that changes an upper
 * folder under a mounted overlay breaks it.
 *
 * The repository of a worktree is shown to be read when it names the workspace back,
 * because the pointer by itself is content of the workspace. A policy that lets an
 * agent commit there names it in `write`.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/library.h"
#include "policy/policy.h"
#include "view/spec.h"

struct ceiling;

#include <stdbool.h>
#include <sys/stat.h>

struct below;
struct below_found;
struct review;
struct undo_plan;

/* The offer of a lower level in a sentence; "L2" or another one stands behind it. */
#define SHAPE_OFFERS_LEVEL "; or allow it with --minimum-level "

/* The place of our own program in the view. */
#define SHAPE_PROGRAMS "/run/glovebox"
#define SHAPE_BIN      SHAPE_PROGRAMS "/bin"
#define SHAPE_PROGRAM  SHAPE_BIN "/glovebox"
/* The same program by the name under which it applies patches. */
#define SHAPE_PATCH SHAPE_BIN "/apply_patch"
/* … and by the one under which it answers git (front/inside/git.h). */
#define SHAPE_GIT_CREDENTIAL_NAME "git-credential-glovebox"
#define SHAPE_GIT_CREDENTIAL      SHAPE_BIN "/" SHAPE_GIT_CREDENTIAL_NAME
/* The certificate of the cell's authority, and the system's certificates with it. */
#define SHAPE_CERTIFICATE  SHAPE_PROGRAMS "/ca.crt"
#define SHAPE_CERTIFICATES SHAPE_PROGRAMS "/ca-bundle.crt"
/*
 * The folder of the same program by the names of programs that open an address in a
 * browser; it is the first one of PATH in a cell whose programs may ask a person.
 */
#define SHAPE_OPENERS SHAPE_PROGRAMS "/open"
#define SHAPE_OPENER  SHAPE_OPENERS "/xdg-open"
#define SHAPE_OPENER_NAMES \
	"xdg-open x-www-browser www-browser sensible-browser gnome-open open"
/* In a cell on a base: our program itself, with its loader and its libraries. */
#define SHAPE_LIBRARIES LIBRARY_FOREIGN
/* … and programs in place of those by which root becomes another user; first in PATH. */
#define SHAPE_ROOT SHAPE_PROGRAMS "/root"
/* The socket at which programs of such a cell ask (front/ask/desk.h). */
#define SHAPE_ASK SHAPE_PROGRAMS "/ask"

/* The socket at which programs of a cell find an ssh agent (ssh/door.h). */
#define SHAPE_SSH SHAPE_PROGRAMS "/ssh-agent"
/* The keys of the hosts to which they may sign in. */
#define SHAPE_KNOWN_HOSTS SHAPE_PROGRAMS "/known_hosts"
/* Our own program by the name under which it has commits of git signed there. */
#define SHAPE_GIT_SIGN_NAME "glovebox-git-sign"
#define SHAPE_GIT_SIGN      SHAPE_BIN "/" SHAPE_GIT_SIGN_NAME

/* The parts of the view of a cell with such an agent. */
struct shape_ssh {
	const char *known_hosts; /* the text of that file */
	const char *config;      /* of ssh, in the place of the system's; NULL: none */
	const char *agent; /* the socket of the person's agent, which no view may show */
};

/* A folder or file of the host, shown read-only; a table of them ends with {0}. */
struct shape_shown {
	const char *source; /* its path on the host; absolute, opened once */
	/*
	 * its path in the view: absolute and normal. Without a view (below L3) it is at
	 * `source`
	 */
	const char *path;
	const char *why; /* the reason, for explanations of the view */
	/* it is a layer: a file that root keeps for itself there is a file of the workspace */
	bool layer;
	/*
	 * it lies where others write: it is shown only while `source` is its real path and leads
	 * through no link, which could have been put there since the caller looked
	 */
	bool exact;
};

/* A home of the cell's own, in place of the project's private one. For L3 only. */
struct shape_home {
	const char *path;   /* in the view: absolute and normal */
	const char *folder; /* on the host; it exists, and only cells write in it */
	int held; /* the folder, open and locked (flock, shared); -1: the cell locks it */
	const struct spec_login *logins; /* shown as copies; borrowed, as long as the cell */
	size_t login_count;
};

/* The folders that are a cell's root, in place of this machine's. For L3 only. */
struct shape_base {
	const char *word; /* as the person named it; for sentences */
	/* its digest and the user that it names; "": it has none. For those who ask the session */
	const char *digest, *user;
	/* `lasting` and `mark` of image/base.h, for a snapshot over it */
	const char *lasting, *mark;
	/* of the host, absolute and real, the lowest one first */
	const char *const *folders;
	size_t folder_count;
	const char *const *environment; /* NAME=value; NULL-ended */
	const char *workdir; /* where programs begin: absolute, normal; made where it is missing */
	/* so many of the lowest ones were named by a person; the others are of our own stores */
	size_t named;
};

struct shape_options {
	/* the most that the cell may have (policy/ceiling.h); NULL: no bound */
	const struct ceiling *ceiling;
	/* gets a line for each entry that the ceiling has taken from the policy; or NULL */
	struct buf *told;
	const char *workspace; /* as the user named it */
	/* the same, if `workspace` is already resolved; or NULL */
	const char *workspace_name;
	/*
	 * PATH, HOME, PWD, TERM, LANG, TZ, TMPDIR, XDG_STATE_HOME, XDG_CONFIG_HOME,
	 * XDG_CACHE_HOME, XDG_DATA_HOME, XDG_RUNTIME_DIR and the variables that the policy
	 * passes are used
	 */
	const char *const *caller_environment;
	const char *program; /* glovebox itself; NULL: the program that runs now */
	/* files that no command may change or make; NULL-ended, or NULL */
	const char *const *protected_files;
	/* files and folders that no command may see either; NULL-ended, or NULL */
	const char *const *hidden;
	/*
	 * The cell is made to undo this plan. Files in the plan that git follows are not
	 * bound read-only but only audited, as when the steps were done. NULL: no undo.
	 */
	const struct undo_plan *undoes;
	/* locked; takes all writes to the trees of `write`. For L3 only. NULL: none */
	struct review *review;
	const struct below *below; /* over these layers the cell works (below.h); or NULL */
	const char *resolver; /* the name server a proxy asks; NULL: the machine's own */
	const struct shape_ssh *ssh; /* NULL: the cell has no ssh agent; for L3 only */
	const struct shape_shown *shown; /* shown besides the policy's entries; or NULL */
	const struct shape_home *home;   /* NULL: the project's private home */
	const struct shape_base *base;   /* NULL: this machine; for L3 only */
	/*
	 * Where the cell shows the workspace besides its own path (docs/bases.md, "Another
	 * place"), as the person wrote it; NULL: nowhere. For L3 only.
	 *
	 * The workspace keeps its own path for everything that the front, the anchor and the
	 * workers do: roots, guard, steps, layers, rules. The place inside is a second mount of all
	 * that stands there. A path that comes from inside becomes the workspace's own where it is
	 * read: in policy_normal (front), and by files_own (worker), for a path that is named and
	 * for each link that is followed. A folder that a program is told becomes the place inside
	 * by program_folder (program_terms): where it starts, and in words that tools write for
	 * it. docs/bases.md has the whole list.
	 */
	const char *at;
	/*
	 * Keeps GUARD, of the cell for WORKSPACE, in FOLDER as long as the cell lives.
	 * GUARD may be replaced by the guard of an earlier front's cell. One without roots
	 * is freed afterwards: what is kept then are the logs of the calls. NULL: the guard
	 * is not kept.
	 */
	void (*hold_guard)(void *context, const char *folder, const char *workspace,
			   struct guard *guard);
	/*
	 * Have dead fronts left unfinished logs of writes in folders that a person had granted?
	 * NULL: no.
	 */
	bool (*has_granted)(void *context);
	void *context;
	bool fresh;     /* workspace and state go with the cell (session_options.fresh) */
	bool publishes; /* the ports of the policy's `publish` are published */
	bool asks;      /* programs of the cell may ask a person; for L3 only */
	bool one_call;  /* the cell is made for one call (session_options.direct) */
	bool unguarded; /* nothing runs in it: it may hold any file */
	bool no_checkpoints; /* only the audit looks for repositories in the workspace */
	struct sandbox_strength strength; /* what this machine can build */
	int minimum_level; /* enum sandbox_level; a lower level is refused */
};

/*
 * Fill SPEC (initialised) and settle POLICY's paths. ERR.code ECHILD: this machine cannot
 * reach the minimum level. Any other code: the workspace or an entry is wrong, and the
 * sentence names it.
 */
bool shape_cell(const struct shape_options *options, struct policy *policy,
		struct cell_spec *spec, struct err *err);

/*
 * Remove the folders that were made for this cell (home, folders of a shipped role) if
 * they are empty.
 */
void shape_tidy(const struct cell_spec *spec);

/*
 * The functions from which shape_cell builds a specification. Where a comment names an
 * order, it must be kept. For this folder only.
 */

/* The place of the private home in the view. */
#define SHAPE_HOME "/home/glovebox"

/* The value of NAME in the caller's environment, or NULL when unset or empty. */
const char *shape_environment(const struct shape_options *options, const char *name);

/* PATH becomes the real path of FD. */
bool shape_real_path(int fd, struct buf *path, struct err *err);

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
 * As shape_show_tree, for a folder, or FOUND of the layers below, under a layer in memory of at
 * most SIZE bytes. The layer takes all writes, and what lies below it stays unchanged.
 */
bool shape_show_layer(struct cell_spec *spec, const char *path, int *take_fd,
		      const struct below_found *found, uint64_t size, struct err *err);
/*
 * As shape_show_tree, for a folder or file that is not written to, under what FOUND has of it.
 * *TAKE_FD is -1 where only FOUND has it.
 */
bool shape_show_below(struct cell_spec *spec, const char *path, int *take_fd,
		      const struct below_found *found, struct err *err);

/*
 * Take away the mark in FOLDER, which holds the upper folder of a kept layer, with which the
 * kernel refuses to mount the layer again.
 */
void shape_unmark_layer(const char *folder);
/*
 * Remove what the kernel made in FOLDER, which holds the upper folder of a kept layer, and that
 * folder itself, so that nothing of the layer is left but an empty folder for what is below.
 * The names are those that every layer has; nothing is listed. False: something was added to
 * the layer, and some of it is still there.
 */
bool shape_empty_layer(const char *folder);

/* As shape_show_layer, for a writable folder under the layer of REVIEW. */
bool shape_show_review(struct cell_spec *spec, const char *path, int *take_fd,
		       const struct below_found *found, struct review *review,
		       struct err *err);

/* Is there a tree or layer at PATH already, a writable one when WRITABLE? */
bool shape_is_shown(const struct cell_spec *spec, const char *path, bool writable);

/*
 * Pin the folders above PATH that lie in something writable. Such a pin is a mount point,
 * which cannot be renamed, so a command can neither move the file at PATH nor put another
 * one there. To be called after all writable trees were added.
 */
void shape_pin_above(struct cell_spec *spec, const char *path);

/*
 * To be called after the policy's entries. Bind existing files below writable entries
 * that git runs or follows read-only (protected.c), and make the guard for files that
 * must not appear, and its record.
 */
bool shape_add_protected(const struct shape_options *options, struct cell_spec *spec,
			 struct err *err);

/* Does git take PATH for a repository (git_scan_repository)? */
bool shape_is_repository(const char *path);
/*
 * The git folder of WORKSPACE, a real path: its own `.git`, or for a linked worktree or a
 * submodule the repository that names WORKSPACE back. NULL: none; free() it.
 */
char *shape_repository_of(const char *workspace);
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
 * Our own folder in the user's state (undo, sessions, homes of other projects), and the
 * file with the keys of `glovebox login`: hide them where the view would show them, e.g.
 * when the workspace is a home. Keep the caches of images and of snapshots from being
 * written to or, where they are missing, from being made by the cell: they are hidden in a
 * folder that the cell may write, and read-only where a part of them is shown by itself.
 * Fails when that cannot be done.
 */
bool shape_hide_state(const struct shape_options *options, struct cell_spec *spec,
		      struct err *err);

/*
 * The real path of our own program as PATH, which has PATH_MAX bytes. False when the file was removed or
 * replaced since the program started.
 */
bool shape_program_path(const struct shape_options *options, char *path);
/* Show our program, which lies at SHAPE_PROGRAM, by its other names. */
void shape_add_names(const struct shape_options *options, struct cell_spec *spec);
/*
 * May the cell of SPEC read FOLDER as the root of a base? Not where it holds, or lies in, what
 * is hidden from every agent: keys and passwords, our own folders, `blocked`.
 */
bool shape_judge_base(const struct shape_options *options, const struct cell_spec *spec,
		      const char *folder, struct err *err);
/* Has BASE something at PATH, absolute and normal, that is no empty folder? */
bool shape_base_has(const struct shape_base *base, const char *path);
/* Can the cell of SPEC, whose level is known, have the base of OPTIONS? */
bool shape_check_base(const struct shape_options *options, const struct cell_spec *spec,
		      struct err *err);
/*
 * Add the folders of the base of OPTIONS, with what shape_add_system adds without one, and
 * choose the home. To be called after the policy's entries.
 */
bool shape_add_base(const struct shape_options *options, struct policy *policy,
		    struct cell_spec *spec, struct err *err);
/* Add our own program to a base, whatever C library the base has, and the programs for root. */
void shape_add_base_program(const struct shape_options *options, struct cell_spec *spec);
/* The part of the environment of programs that a base decides. */
void shape_add_base_environment(const struct shape_options *options, struct cell_spec *spec);

/* The folders of PATH where nothing else says. */
#define STANDARD_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/* nproc and thread pools read this folder. Nothing else of /sys is shown. */
#define SHAPE_PROCESSORS "/sys/devices/system/cpu"
/* Add the devices, and shared memory of at most SHARED_MEMORY bytes. */
void shape_add_devices(struct cell_spec *spec, uint64_t shared_memory);
/* Set PATH to FOLDERS, with our own program behind them and, where it opens addresses, first. */
void shape_set_path(const struct shape_options *options, struct cell_spec *spec,
		    const char *folders);
/* Add /usr, /etc with its masks, /dev, /proc, /tmp and the rest of the system. */
void shape_add_system(struct policy *policy, struct cell_spec *spec);
/*
 * Mask the programs in the cell's PATH that a rule of POLICY denies whatever they are
 * given, so that no script starts them either. To be called when PATH is set.
 */
void shape_hide_programs(const struct policy *policy, struct cell_spec *spec);
/*
 * Add /var/tmp as a link to /tmp, or as memory of its own when an entry of SPEC lies
 * below it. To be called after all other entries were added.
 */
void shape_add_var_tmp(const struct policy *policy, struct cell_spec *spec);
/* Add the project's private home. */
void shape_add_home(const struct shape_options *options, struct policy *policy,
		    struct cell_spec *spec);
/*
 * The next folder below a home that shows a toolchain, from *AT on (0 at first); or
 * NULL.
 */
const char *shape_toolchain_next(size_t *at);
/* Add the toolchains below the caller's home that PATH leads to, read-only. */
void shape_add_toolchains(const struct shape_options *options, struct policy *policy,
			  struct cell_spec *spec);
/*
 * Add the repository that the workspace is a worktree of, read-only. To be called after
 * the policy's entries.
 */
void shape_add_worktree(struct policy *policy, struct cell_spec *spec);
/* Add the ssh agent. False: the view shows the person's own agent; ERR says by which entry. */
bool shape_add_ssh(const struct shape_options *options, struct cell_spec *spec,
		   struct err *err);
/* Add our own program. */
void shape_add_program(const struct shape_options *options, struct cell_spec *spec);
/*
 * Add the caller's package and build caches of the tools that PATH leads to. To be called
 * after the toolchains, because the specification's PATH is used.
 */
void shape_add_caches(const struct shape_options *options, const struct policy *policy,
		      struct cell_spec *spec);
/*
 * Make the environment of programs from scratch. To be called last, because PATH has only
 * folders that are shown.
 */
void shape_add_environment(const struct shape_options *options,
			   const struct policy *policy, struct cell_spec *spec);

/*
 * The limits of a policy that depend on this machine and on the file system of the
 * workspace.
 */

/* Put numbers where LIMITS say POLICY_BY_MACHINE. WORKSPACE_FD: any descriptor of it. */
void shape_limits(struct policy_limits *limits, int workspace_fd);
/*
 * The folders that a session watches unless the policy says how many (inotify): three quarters
 * of what the user may have, because other programs need some as well. Half would not do for a
 * million files in a hundred thousand folders with the number that Linux gives to 24 GiB.
 */
uint64_t shape_watches(void);

/*
 * A folder that a person grants to a running cell besides those of its policy
 * (approval.h). It is held open from the question on, so the cell gets the folder that
 * the person was asked about.
 */

struct shape_extra {
	const char *path;   /* absolute, in the view; real unless there is a source */
	const char *source; /* real path on the host, where it differs from PATH; or NULL */
	int fd;             /* keeps the folder open, O_PATH */
	bool writable;
};

/*
 * May a person be asked to grant EXTRA to the cell of CELL? If not, ERR says why. Refused
 * are: a folder that no entry of the policy could name, a home, somebody else's home, the
 * caller's secrets, our own settings, blocked paths, a folder with a socket in it, and
 * folders above or below the cell's own. For writing, git's own folders and those of the
 * system are refused too. A cell without a view gets nothing.
 */
bool shape_judge_extra(const struct cell_spec *cell, const struct shape_extra *extra,
		       struct err *err);

/*
 * Put into ADDITION (initialised) what the COUNT EXTRAS add to the cell of CELL: their
 * trees, detached (ESTALE when another folder is at one of their paths now), read-only
 * binds of the files that git would run or follow, and a guard for CELL and EXTRAS
 * together. CELL is not changed.
 */
bool shape_extra(const struct cell_spec *cell, const struct shape_extra *extras,
		 size_t count, struct cell_spec *addition, struct err *err);
