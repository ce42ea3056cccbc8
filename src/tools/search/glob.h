/*
 * glob: the best few of very many, in bounded memory. What is best is a file's time,
 * the newest first, then its path; or any order the caller brings.
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

/* One file or folder found. The three numbers are the finder's own. */
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
	size_t count, room;
};

void ranking_init(struct ranking *ranking, size_t max, ranking_before *before);
void ranking_fini(struct ranking *ranking);

/* Would FOUND (its path borrowed) be among the best so far? */
bool ranking_wants(const struct ranking *ranking, const struct found *found);
/* Add it when it is; `take_found.path` and `.target` move in or are freed. */
void ranking_add(struct ranking *ranking, struct found take_found);
/* Move all of OTHER in. */
void ranking_take_all(struct ranking *ranking, struct ranking *other);
/* Best first; afterwards nothing may be added. */
void ranking_sort(struct ranking *ranking);
/* Sort by another order than the one they were chosen by. */
void ranking_sort_by(struct ranking *ranking, ranking_before *before);

/* What list_files, glob and grep share: their bounds and their sentences. */

enum {
	/*
	 * Most bytes of an answer, as for commands: more is not read by a model, only
	 * paid for.
	 */
	SEARCH_TEXT_MAX = 30000,
	/* How long ignored files are looked into when nothing was found outside them. */
	SEARCH_IGNORED_MS = 300,
	/* How many of those are named. */
	SEARCH_IGNORED_SHOWN = 3,
};

/* Append " in FOLDER". */
void glob_search_add_where(const struct walk_start *start, struct buf *out);

/* Append that the folder is ignored by a .gitignore above it, when it is. */
void glob_search_add_ignored(const struct walk_start *start, struct buf *out);

/*
 * Append what the walk did not reach, a line each: "stopped early", unreadable folders.
 */
void glob_search_add_gaps(const struct walk_start *start,
			  const struct walk_summary *summary, struct buf *out);

/* The same for programs, as details of RESULT. */
void glob_search_set_details(struct tool_result *result, const struct walk_summary *summary);

/* Append the names of FOUND (sorted), "a, b", and " and N more" for the rest of TOTAL. */
void glob_search_add_names(const struct walk_start *start, const struct ranking *found,
			   uint64_t total, struct buf *out);

/*
 * Append what is to be said when ignored files were not looked through whole: FOUND some,
 * or none so far.
 */
void glob_search_add_ignored_gap(const struct walk_summary *summary, bool found,
				 struct buf *out);

/*
 * Done; timed out when the walk was stopped, with what was found; cancelled with
 * nothing.
 */
enum result_status glob_search_end(struct call *call, struct tool_result *result,
				   const struct walk_summary *summary);
