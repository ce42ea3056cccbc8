/*
 * print: a review for people: sections of changes, conflicts and refusals in whole sentences,
 * and the diff. Everything in a report is foreign and is made safe for a terminal.
 */
#pragma once

#include "base/buf.h"
#include "session/review.h"
#include "view/review.h"

#include <stdbool.h>
#include <stdio.h>

/* "3f9a61c2  open  Nov 28 14:02  npm run build": one layer of a list. */
void print_review_line(const struct review_item *item, FILE *out);

/*
 * The sections of REPORT on the layer of META; STAT: each path with the lines that it gains
 * and loses, and nothing else. COLOUR: for a terminal.
 */
void print_review(const struct review_meta *meta, const struct review_report *report,
		  bool stat, bool colour, FILE *out);
/* "14 files changed, 3 added, 1 removed (2.1 MiB)". */
void print_review_counts(const struct review_report *report, struct buf *out);
/* The sentence about a crash of the machine that may have cut the review ID; nothing where
 * there was none. */
void print_review_cut(const char *id, const struct review_report *report, struct buf *out);
/* Why each conflicting path stops the landing, one sentence each. */
void print_review_conflicts(const struct review_report *report, struct buf *out);
/* The paths that are never landed and why, one sentence each. META may be NULL. */
void print_review_refused(const struct review_meta *meta,
			  const struct review_report *report, struct buf *out);
/* The outcome for commits, stashes and notes. */
enum print_commits {
	PRINT_COMMITS_COME,   /* a landing would bring them */
	PRINT_COMMITS_LANDED, /* a landing has brought them */
	PRINT_COMMITS_STAY,   /* the person has asked for other things only */
};
void print_review_commits(const char *id, const struct review_report *report,
			  enum print_commits outcome, struct buf *out);

/*
 * The diff of REPORT as it is, or on a terminal made safe and shown by the command PAGER; "": by
 * none.
 */
bool print_review_diff(const struct review_report *report, const char *pager, FILE *out);
