/*
 * grep: what one search wants and has found, for grep.c (the tool), grep_run.c and
 * grep_answer.c.
 */
#pragma once
#include "tool/call.h"
#include "tools/search/file_types.h"
#include "tools/search/grep_pattern.h"
#include "tools/search/grep_scan.h"
#include "tools/search/ranking.h"
#include "tools/search/walk.h"

#include <stdbool.h>
#include <stdint.h>

enum grep_mode { GREP_AUTO, GREP_LINES, GREP_FILES, GREP_COUNT };

/* Files that auto mode names with their counts behind the lines it shows. */
enum { GREP_AUTO_FILES = 50 };

/*
 * The findings of one thread. The counters are its own, so that threads do not wait for
 * each other.
 */
struct grep_worker {
	struct grep_scan scan;
	struct ranking best;
	bool begun;
	uint64_t folder; /* whose file system is known */
	bool short_is_end;
	uint64_t lines, files; /* matching */
	uint64_t searched;     /* files */
	uint64_t unfitting;    /* by glob or file_type */
	uint64_t binary;       /* with a match, not shown */
	uint64_t unreadable;   /* files */
	uint64_t limited;      /* files in which the regex met its limits */
	char apart[WALK_APART];
};

struct grep {
	struct call *call;
	struct grep_pattern pattern;
	enum grep_mode mode;
	struct pattern_set *glob; /* NULL: none */
	bool glob_excludes;
	const struct file_type *type; /* NULL: any */
	uint64_t offset, limit;
	size_t context;

	struct walk_start start; /* of a single file: no folder, its name alone */
	int file_fd;             /* that file, -1 for a folder */
	size_t keep;             /* files remembered per thread */
	bool first_only;         /* a file with one match is enough */
	struct grep_worker workers[WALK_THREADS_MAX];
	struct walk_summary summary;
};

/* Search; the sums and the best files, sorted, are in workers[0] then. */
void grep_run(struct grep *grep);
/* Search the ignored files alone, for SEARCH_IGNORED_MS; the same, SUMMARY is of that. */
void grep_run_ignored(struct grep *grep, struct walk_summary *summary);
void grep_forget(struct grep *grep);

/* Write the answer. */
void grep_answer(struct grep *grep, struct tool_result *result);
