/*
 * review: what a layer (view/review.h) would change in the workspace, and landing it: the
 * front's side of the tool `land`. The cell has the rights of the present agent, and the tool
 * is told those of the session that made the layer, so that a path lands only where both
 * could write. The layer is shown read-only beside the workspace.
 *
 * The report of the worker is foreign: it comes from a process that reads what the cell's
 * programs have left. It is bounded and checked, and its texts are names for people, which
 * are never opened.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/value.h"
#include "files/overlay.h"
#include "session/session.h"
#include "view/review.h"
#include "view/shape.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The place of the layers in the view. */
#define REVIEW_SHOWN SHAPE_PROGRAMS "/layers"

enum review_kind {
	REVIEW_ADDED,
	REVIEW_REMOVED,
	REVIEW_CHANGED,
	REVIEW_RENAMED,
	REVIEW_MODE,
	REVIEW_LINK,
	REVIEW_ATTRIBUTES,
	REVIEW_KINDS,
};

enum review_class {
	REVIEW_APPLIES,
	REVIEW_MERGES,
	REVIEW_CONFLICTS,
	REVIEW_HAS_NO_BASE,
	REVIEW_REFUSED,
	REVIEW_STAYS, /* the user's choice */
	REVIEW_CLASSES,
};

/* One side of a change. */
struct review_side {
	bool there, folder, link;
	int64_t size;            /* -1: unknown, as the hash then is */
	const char *mode, *hash; /* NULL: unknown */
};

/* Two numbers; `count` is 0 when they are not known. */
struct review_pair {
	int64_t items[2];
	size_t count;
};

struct review_change {
	const char *path, *from; /* as shown; FROM: the old name of a renamed file, or NULL */
	const char *key; /* PATH by its bytes (path_key), where that differs; or NULL */
	const char *target; /* of a link, as shown; or NULL */
	enum review_kind kind;
	enum review_class class;
	struct review_side before, after;
	enum overlay_refusal refused; /* of REVIEW_REFUSED */
	const char *why;              /* or NULL */
	const char *type; /* of a file that is no text: "PNG", "binary"; or NULL */
	struct review_pair lines; /* of a text: added and removed ones */
	bool set_ids;             /* its set-id bits are not landed */
	bool text; /* a conflict of texts, whose lines are counted in OURS and THEIRS */
	struct review_pair ours, theirs;
	struct review_pair overlap; /* the first and the last line that clash */
	int64_t since_ms; /* when the user's file was changed last; 0: unknown */
};

struct review_branch {
	const char *name, *commit; /* as shown */
	int64_t commits;           /* -1: unknown */
	bool sound, moves, moved;
};

/* A tag of the layer, which is never landed. */
struct review_tag {
	const char *name, *commit; /* as shown */
};

struct review_report {
	struct value *object; /* what was read; it holds the texts */
	struct review_change *changes;
	size_t count;
	int64_t more; /* changes without a row */
	int64_t changed, added, removed, bytes, outside;
	int64_t kept; /* refused, but another landing may bring them */
	/* with and without a row: changes that can be put into the workspace, and conflicts */
	int64_t lands, conflicts;
	struct review_branch *branches;
	size_t branch_count;
	struct review_tag *tags;
	size_t tag_count;
	bool stash, notes, staged;
	const char *trouble; /* why no commits come; or NULL */
	const char *unread;  /* why some branches are not known; or NULL */
	const char *hash;
	bool stale; /* the layer or the workspace is not as it was at the hash that was given */
	bool conflict, landed, log_damaged;
	enum review_cut cut;    /* set by the caller */
	const char *broken_off; /* why a landing ended half-way; or NULL */
	const char **left;      /* folders that hold something else and stay */
	size_t left_count;
	uint32_t step; /* of the landing; 0: none */
	int diff;      /* a file with the diff; -1: none */
};

/* REPORT is zero. False: TEXT is no sound report. review_report_fini in either case. */
bool review_report_parse(struct str text, struct review_report *report, struct err *err);
void review_report_fini(struct review_report *report);
/* The report of the layer ID for programs. */
struct value *review_report_value(const struct review_report *report, const char *id);
/*
 * Are there commits that no landing can bring: git refuses them, they are not whole, or their
 * branches are not known?
 */
bool review_report_lacks_commits(const struct review_report *report);
/* Does REPORT say that anything differs? */
bool review_report_has_news(const struct review_report *report);

/*
 * The entries of the view for the trees of REVIEW (session_options.shown), ended by {0}. Owned
 * by SHOWN; review_shown_fini in either case.
 */
struct review_shown {
	struct arena texts;
	struct shape_shown entries[2 * REVIEW_TREES_MAX + 1]; /* a copy has a list beside it */
};
bool review_shown_fill(struct review_shown *shown, const struct review *review,
		       struct err *err);
void review_shown_fini(struct review_shown *shown);

struct review_wish {
	/* absolute paths, NULL-ended, or NULL; each counts for all below it */
	const char *const *only, *const *mine, *const *theirs;
	bool lands, diff, markers, no_commits;
	bool brief; /* only the changes of which a person is told after a landing */
	bool rest; /* land all but what is in conflict, which keeps commits back as well */
	bool unheard;     /* no event tells of the call (session.h) */
	bool lends;       /* the session does not show the layer's trees */
	const char *hash; /* land only when the reading has this hash; or NULL */
};

/*
 * Compare REVIEW with the workspace and, when WISH says so, land it. SESSION shows its trees
 * (review_shown_fill), or with `lends` this call alone sees them. False: RESULT has a sentence.
 * REPORT is zero before.
 */
bool session_review(struct session *session, const struct review *review,
		    const struct review_wish *wish, struct review_report *report,
		    struct tool_result *result);

/*
 * Say in OUT how it goes on after a landing of the layer ID that was broken off in STEP (0: it
 * had changed nothing).
 */
void review_say_unfinished(const char *id, uint32_t step, struct buf *out);

/*
 * Layers of WORKSPACE whose landing was undone are open again, also where they were landed into
 * another layer. UNDO is the folder of all undo stores, or NULL. A sentence about each of them is
 * added to TOLD (or NULL).
 */
void review_reopen(const char *folder, const char *undo, const char *workspace,
		   struct buf *told);
