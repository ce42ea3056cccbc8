/* search: what list_files, glob and grep share: their bounds and their sentences. */
#pragma once
#include "base/buf.h"
#include "tool/tool.h"

#include <stdint.h>

struct call;
struct ranking;
struct walk_start;
struct walk_summary;

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
void search_add_where(const struct walk_start *start, struct buf *out);

/* Append that the folder is ignored by a .gitignore above it, when it is. */
void search_add_ignored(const struct walk_start *start, struct buf *out);

/*
 * Append what the walk did not reach, a line each: "stopped early", unreadable folders.
 */
void search_add_gaps(const struct walk_start *start, const struct walk_summary *summary,
		     struct buf *out);

/* The same for programs, as details of RESULT. */
void search_set_details(struct tool_result *result, const struct walk_summary *summary);

/* Append the names of FOUND (sorted), "a, b", and " and N more" for the rest of TOTAL. */
void search_add_names(const struct walk_start *start, const struct ranking *found,
		      uint64_t total, struct buf *out);

/*
 * Append what is to be said when ignored files were not looked through whole: FOUND some,
 * or none so far.
 */
void search_add_ignored_gap(const struct walk_summary *summary, bool found, struct buf *out);

/*
 * Done; timed out when the walk was stopped, with what was found; cancelled with
 * nothing.
 */
enum result_status search_end(struct call *call, struct tool_result *result,
			      const struct walk_summary *summary);
