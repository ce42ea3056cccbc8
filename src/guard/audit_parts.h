/* audit_parts: the internals of an audit, for audit.c and audit_whole.c only. */
#pragma once
#include "guard/audit.h"
#include "guard/scan.h"

#include <sys/types.h>

/* One of the guard's roots, with its status when it was opened. */
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
	struct git_scan_root *folders; /* the folders among the roots, open */
	size_t folder_count;
};

/* Which files may stay because they are older than a moment. */
struct audit_when {
	/* for all files; a doubtful one stays and is reported. Time 0: none may stay */
	struct git_scan_when all;
	/* for protected names that are certainly older; 0: none may stay */
	int64_t names_before_ns;
};

/* Give SCAN, of an audit, the knowledge in GUARD and MORE. */
void audit_scan_begin(const struct value *guard, const struct value *more,
		      struct git_scan *scan);

/*
 * Move aside every danger that SCAN has found and that neither GUARD nor MORE knows,
 * except those that WHEN lets stay. Report this in RESULT.
 */
void audit_judge(const struct value *guard, const struct value *more,
		 const struct git_scan *scan, const struct audit_when *when,
		 struct tool_result *result);

/*
 * The whole look (REACH is not AUDIT_NEAR) with AUDIT's roots, which are open. False: a
 * part could not be looked at.
 */
bool audit_look_whole(const struct audit *audit, const struct value *more,
		      enum audit_reach reach, struct tool_result *result, struct err *err);
