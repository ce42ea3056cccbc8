/*
 * report: what the tool `land` tells the front of a layer: one JSON object with a row for
 * each change, and a unified diff beside it. session/review.h reads it back.
 */
#pragma once

#include "base/err.h"
#include "base/hash.h"
#include "base/value.h"
#include "tools/review/commits.h"
#include "tools/review/compare.h"

#include <stdbool.h>

/*
 * The most changes with a row of their own. Further ones are only counted. Conflicts get their
 * rows first, then refused changes, then others of which something is said after a landing.
 */
enum { REPORT_ROWS_MAX = 20000 };
/* The most bytes of a diff, and of one text in it. Larger ones are told without it. */
enum { REPORT_DIFF_MAX = 64 << 20, REPORT_TEXT_MAX = 2 << 20 };

/*
 * Add to REPORT (an object) the rows, the totals, and `hash`, which binds a landing to this
 * reading: it changes with every path, state and class, and with each commit. REPORT_DIFFS: append a diff to
 * the file DIFF_FD. REPORT_BRIEF: rows only for changes of which a person is told after a
 * landing, and nothing of what their files hold.
 */
enum report_detail { REPORT_BRIEF, REPORT_COUNTS, REPORT_DIFFS };
bool report_add(struct value *report, struct comparing *comparing,
		const struct commits *commits, enum report_detail detail, int diff_fd,
		struct err *err);
/* Only the hash. */
void report_hash(const struct comparing *comparing, const struct commits *commits,
		 char hex[HASH_HEX + 1]);
