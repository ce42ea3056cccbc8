/*
 * shape: from a policy and this machine to the specification of a cell. Runs in the
 * front: it opens the workspace and every entry of the policy once as O_PATH descriptors,
 * puts their real paths into the policy, decides who the cell runs as, and lists what the
 * view shows. The only place that knows what a cell shows by default.
 */
#pragma once
#include "base/err.h"
#include "policy/policy.h"
#include "view/spec.h"

#include <stdbool.h>

/* Where our own program lies in the view. */
#define SHAPE_PROGRAMS "/run/glovebox"
#define SHAPE_BIN      SHAPE_PROGRAMS "/bin"
#define SHAPE_PROGRAM  SHAPE_BIN "/glovebox"
/* The same program by the name under which it applies patches. */
#define SHAPE_PATCH SHAPE_BIN "/apply_patch"

/* A folder or file of the host, shown read-only; a table of them ends with {0}. */
struct shape_shown {
	const char *source; /* where it lies; absolute, opened once */
	/* where the view has it: absolute and normal. Without a view (below L3): at SOURCE */
	const char *path;
	const char *why; /* for who explains the view */
};

struct undo_plan;

struct shape_options {
	const char *workspace;      /* as the user named it */
	const char *workspace_name; /* or, where that was resolved before, this; or NULL */
	/*
	 * PATH, HOME, PWD, TERM, LANG, TZ, XDG_STATE_HOME, TMPDIR and what the policy passes are
	 * looked at
	 */
	const char *const *caller_environment;
	const char *program; /* glovebox itself; NULL: the program that runs now */
	/* files that no command may change or make; NULL-ended, or NULL */
	const char *const *protected_files;
	/*
	 * The cell is made to undo this: of what git follows that is not bound read-only, the
	 * audit alone judges it, as when it was done. NULL: nothing.
	 */
	const struct undo_plan *undoes;
	const char *resolver; /* the name server a proxy asks; NULL: the machine's own */
	const struct shape_shown *shown; /* besides the policy's; or NULL */
	/*
	 * Keeps GUARD, of the cell for WORKSPACE, in FOLDER for as long as the cell lives; it may
	 * become what an earlier front's cell began with. NULL: nobody keeps it.
	 */
	void (*hold_guard)(void *context, const char *folder, const char *workspace,
			   struct value *guard);
	/* Are there writes of dead fronts in folders that they were granted? NULL: no. */
	bool (*has_granted)(void *context);
	void *context;
	bool one_call;       /* the cell is made for one call (session_options.direct) */
	bool no_checkpoints; /* nobody but the audit looks for repositories in the workspace */
	enum sandbox_level level; /* what this machine can build */
	int minimum_level;        /* enum sandbox_level; below it the shape is refused */
};

/*
 * Fill SPEC (initialised) and settle POLICY's paths. ERR.code ECHILD: this machine cannot
 * make such a cell (the level); else the workspace or an entry is wrong, and the sentence
 * names it.
 */
bool shape_cell(const struct shape_options *options, struct policy *policy,
		struct cell_spec *spec, struct err *err);

/* Remove what was made for this cell (home, folders of a shipped role) if it stayed empty. */
void shape_tidy(const struct cell_spec *spec);
