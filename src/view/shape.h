/*
 * shape: makes the specification of a cell from a policy and this machine. It runs in the
 * front: it opens the workspace and every entry of the policy once as O_PATH descriptors,
 * puts their real paths into the policy, chooses the user of the cell, and lists the
 * entries of the view. Only shape*.c know what a cell shows by default.
 */
#pragma once
#include "base/err.h"
#include "policy/policy.h"
#include "view/spec.h"

#include <stdbool.h>

/* The place of our own program in the view. */
#define SHAPE_PROGRAMS "/run/glovebox"
#define SHAPE_BIN      SHAPE_PROGRAMS "/bin"
#define SHAPE_PROGRAM  SHAPE_BIN "/glovebox"
/* The same program by the name under which it applies patches. */
#define SHAPE_PATCH SHAPE_BIN "/apply_patch"

/* A folder or file of the host, shown read-only; a table of them ends with {0}. */
struct shape_shown {
	const char *source; /* its path on the host; absolute, opened once */
	/*
	 * its path in the view: absolute and normal. Without a view (below L3) it is at
	 * `source`
	 */
	const char *path;
	const char *why; /* the reason, for explanations of the view */
};

struct undo_plan;

struct shape_options {
	const char *workspace; /* as the user named it */
	/* the same, if `workspace` is already resolved; or NULL */
	const char *workspace_name;
	/*
	 * PATH, HOME, PWD, TERM, LANG, TZ, XDG_STATE_HOME, TMPDIR and the variables that
	 * the policy passes are used
	 */
	const char *const *caller_environment;
	const char *program; /* glovebox itself; NULL: the program that runs now */
	/* files that no command may change or make; NULL-ended, or NULL */
	const char *const *protected_files;
	/*
	 * The cell is made to undo this plan. Files in the plan that git follows are not
	 * bound read-only but only audited, as when the steps were done. NULL: no undo.
	 */
	const struct undo_plan *undoes;
	const char *resolver; /* the name server a proxy asks; NULL: the machine's own */
	const struct shape_shown *shown; /* shown besides the policy's entries; or NULL */
	/*
	 * Keeps GUARD, of the cell for WORKSPACE, in FOLDER as long as the cell lives.
	 * GUARD may be replaced by the guard of an earlier front's cell. NULL: the guard
	 * is not kept.
	 */
	void (*hold_guard)(void *context, const char *folder, const char *workspace,
			   struct value *guard);
	/*
	 * Have dead fronts left unfinished writes in folders that a person had granted?
	 * NULL: no.
	 */
	bool (*has_granted)(void *context);
	void *context;
	bool one_call;       /* the cell is made for one call (session_options.direct) */
	bool no_checkpoints; /* only the audit looks for repositories in the workspace */
	enum sandbox_level level; /* what this machine can build */
	int minimum_level;        /* enum sandbox_level; a lower level is refused */
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
