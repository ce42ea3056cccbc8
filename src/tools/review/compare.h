/*
 * compare: all paths of a layer beside those of the workspace, and what is to be done with
 * each. Everything is compared before anything is written.
 */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/diff.h"
#include "files/overlay.h"
#include "files/record.h"
#include "files/rights.h"
#include "tool/call.h"
#include "tools/review/before.h"
#include "tools/review/upper.h"
#include "undo/place.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum change_class {
	CHANGE_NONE,     /* nothing to do: it is there already, or is the user's alone */
	CHANGE_APPLY,    /* the target is put there */
	CHANGE_MERGE,    /* the text is put there */
	CHANGE_CONFLICT, /* both have changed it */
	CHANGE_NO_BASE,  /* nobody knows what it held before */
	CHANGE_REFUSED,  /* it is never landed (enum overlay_refusal) */
	CHANGE_MINE,     /* the user's choice: it is left as it is */
	CHANGE_OUTSIDE,  /* the user has named other paths */
};

struct change {
	struct upper_row *row;
	const struct undo_state *base; /* NULL: unknown */
	struct undo_state base_room;
	struct undo_state below, target;
	struct str kept; /* the content of the file below, when it is small; no data: not kept */
	enum change_class class, weighed; /* after and before the user's choices */
	enum overlay_refusal refused;
	const char *why; /* for a sentence about a conflict or a refusal; or NULL */
	bool extra_only; /* only attributes differ */
	bool set_ids;    /* the layer's file has set-id bits, which are not landed */
	struct buf text; /* CHANGE_MERGE; a conflict: with marks, when there is a text */
	bool has_text;
	size_t first, last; /* lines of the user's text that clash; 0: unknown */
	struct diff_counts ours, theirs; /* of a text that both have changed */
};

/* The choices of the user: absolute paths, which count for everything below them. */
struct choices {
	struct buf words; /* holds the texts */
	const char **only, **mine, **theirs;
	size_t only_count, mine_count, theirs_count;
	bool markers;
};

/* Read the choices from FD: texts that end in NUL; the first byte of each says what it is. */
enum { CHOICE_ONLY = 'p', CHOICE_MINE = 'm', CHOICE_THEIRS = 't' };
bool choices_read(int fd, struct choices *choices, struct err *err);
void choices_fini(struct choices *choices);

struct comparing {
	struct call *call;
	struct upper *upper;
	struct before *before;
	struct rights *rights; /* of the layer's session */
	struct undo_places *places;
	const char *id;     /* of the layer, for marks in a text */
	int64_t created_ns; /* a file that was changed before this is its own base */
	const struct choices *choices;
	struct change *changes; /* one for each row, in order of path */
	int64_t told_ms;        /* when the last progress was told */
};

enum { COMPARE_TELL_MS = 200 };

/* Tell a person who waits, now and then, that DONE of all paths are WHAT ("comparing"). */
static inline void compare_tell(struct comparing *comparing, size_t done, const char *what)
{
	const int64_t now_ms = clock_now_ms();

	if (now_ms < comparing->told_ms + COMPARE_TELL_MS)
		return;
	comparing->told_ms = now_ms;
	call_progress(comparing->call, (double)done, (double)comparing->upper->count, what);
}

bool compare_all(struct comparing *comparing, struct err *err);
void compare_fini(struct comparing *comparing);

/*
 * The content of one side of a change as text: false when it is too large, is binary or
 * cannot be read. OUT is replaced.
 */
enum compare_side { SIDE_BELOW, SIDE_LAYER };
bool compare_read(const struct change *change, enum compare_side side, struct buf *out);
/* The absolute path of ROW. */
void compare_absolute(const struct comparing *comparing, const struct upper_row *row,
		      char path[PATH_MAX]);
