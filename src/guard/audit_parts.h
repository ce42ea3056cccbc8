/* audit_parts: the inside of an audit, for audit.c and audit_whole.c only. */
#pragma once
#include "guard/audit.h"
#include "guard/git_scan.h"

#include <sys/types.h>

/* One of the guard's roots, as it was when it was opened. */
struct audit_root {
	char *path;
	bool is_folder; /* a single file has nothing below it */
	dev_t device;
	ino_t inode;
};

struct audit {
	const struct value *guard;
	char *home; /* the user's; NULL: unknown */
	struct audit_root *roots;
	size_t count;
	struct git_scan_root *folders; /* those among the roots, open */
	size_t folder_count;
};

/* What may stay because it is older than a moment. */
struct audit_when {
	/* all of it; where there is a doubt it stays, and is told. Time 0: nothing */
	struct git_scan_when all;
	int64_t names_before_ns; /* protected names, beyond doubt; 0: none */
};

/* What SCAN, of an audit, is to know. */
void audit_scan_begin(const struct value *guard, const struct value *more,
		      struct git_scan *scan);

/*
 * Put away what SCAN has found and GUARD and MORE do not know, but for what WHEN lets stay, and tell
 * it in RESULT.
 */
void audit_judge(const struct value *guard, const struct value *more,
		 const struct git_scan *scan, const struct audit_when *when,
		 struct tool_result *result);

/* The whole look, REACH not AUDIT_NEAR, with AUDIT's roots open. False: not all was seen. */
bool audit_look_whole(const struct audit *audit, const struct value *more,
		      enum audit_reach reach, struct tool_result *result, struct err *err);
