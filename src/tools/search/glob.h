/*
 * glob: keeps the best few of very many files in bounded memory. The order is by the
 * file's time, the newest first, then by its path; or the caller gives another order.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;
struct walk_start;
struct walk_summary;

/*
 * One file or folder that was found. The meaning of the three numbers depends on the
 * tool.
 */
struct found {
	int64_t time_ns;  /* last change, since 1970 */
	char *path;       /* relative to the start of the walk */
	uint64_t count;   /* grep: matching lines; a folder: its files */
	uint64_t size;    /* bytes; a folder: its folders */
	uint64_t ignored; /* of a folder */
	size_t depth;
	int kind;     /* enum walk_kind */
	char *target; /* of a link, or NULL */
};

/* Does A come before B? */
typedef bool ranking_before(const struct found *a, const struct found *b);
/* Newest first, then by path. */
bool found_newer(const struct found *a, const struct found *b);

struct ranking {
	ranking_before *before;
	size_t max;
	struct found *items; /* a heap, the last one on top, until ranking_sort */
	size_t count;
};

void ranking_init(struct ranking *ranking, size_t max, ranking_before *before);
void ranking_fini(struct ranking *ranking);

/* Would FOUND be among the best so far? Its path is borrowed. */
bool ranking_wants(const struct ranking *ranking, const struct found *found);
/*
 * Add the file if it is among the best. `take_found.path` and `.target` are moved in or
 * freed.
 */
void ranking_add(struct ranking *ranking, struct found take_found);
/* Move all items of OTHER into RANKING. */
void ranking_take_all(struct ranking *ranking, struct ranking *other);
/* Sort the best first. Nothing may be added afterwards. */
void ranking_sort(struct ranking *ranking);
/* Sort by an order other than the one by which the items were chosen. */
void ranking_sort_by(struct ranking *ranking, ranking_before *before);

/* Shared by list_files, glob and grep: their bounds and their sentences. */

enum {
	/*
	 * The most bytes of an answer, as for commands. A model does not read more, but
	 * pays for it.
	 */
	SEARCH_TEXT_MAX = 30000,
	/* How long ignored files are searched when no other file was found. */
	SEARCH_IGNORED_MS = 300,
	/* How many of the ignored files are named. */
	SEARCH_IGNORED_SHOWN = 3,
};

/* Append " in FOLDER". */
void glob_search_add_where(const struct walk_start *start, struct buf *out);

/* When a .gitignore above the folder ignores it, append that. */
void glob_search_add_ignored(const struct walk_start *start, struct buf *out);

/* Append the gaps of the walk, a line each: "stopped early", unreadable folders. */
void glob_search_add_gaps(const struct walk_start *start,
			  const struct walk_summary *summary, struct buf *out);

/* The same for programs, as details of RESULT. */
void glob_search_set_details(struct tool_result *result, const struct walk_summary *summary);

/* Append the names of FOUND (sorted), "a, b", and " and N more" for the rest of TOTAL. */
void glob_search_add_names(const struct walk_start *start, const struct ranking *found,
			   uint64_t total, struct buf *out);

/*
 * Append a sentence when the ignored files were not searched completely. FOUND: some were
 * found.
 */
void glob_search_add_ignored_gap(const struct walk_summary *summary, bool found,
				 struct buf *out);

/*
 * The status of the result: done; timed out when the walk was stopped, with the files
 * found so far; cancelled, with none.
 */
enum result_status glob_search_end(struct call *call, struct tool_result *result,
				   const struct walk_summary *summary);
