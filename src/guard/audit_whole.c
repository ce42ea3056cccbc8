/*
 * audit_whole: the look that goes through trees of any size, as far as a second goes. What the
 * guard began with has not seen all of these, so that age decides what is new. One repository is
 * judged after the other: a tree of thousands takes no more memory than one.
 */
#include "base/clock.h"
#include "guard/audit_parts.h"
#include "guard/audit_tell.h"

/* Somebody waits for it, at the end of a program or of a session. */
enum { WHOLE_MS = 1000 };

struct whole {
	const struct audit *audit;
	const struct value *more;
	struct audit_when when;
	struct tool_result *result;
};

static void each_repository(struct git_scan *scan, void *context)
{
	const struct whole *whole = context;

	audit_judge(whole->audit->guard, whole->more, scan, &whole->when, whole->result);
}

bool audit_look_whole(const struct audit *audit, const struct value *more,
		      enum audit_reach reach, struct tool_result *result, struct err *err)
{
	const struct value *guard = audit->guard;
	struct whole whole = {.audit = audit, .more = more, .result = result};
	struct git_scan scan;

	/* Where the guard's beginning has seen all, what it does not know is new. */
	if (reach == AUDIT_ALL || !value_is_true(value_member(guard, "complete")))
		whole.when.all = (struct git_scan_when){
			.before_ns = value_integer(value_member(guard, "ticked")),
			.places = value_member(guard, "places"),
		};
	git_scan_init(&scan, audit->folders, audit->folder_count);
	scan.home = audit->home;
	audit_scan_begin(guard, more, &scan);
	scan.deep = value_member(guard, reach == AUDIT_ALL ? "roots" : "whole");
	scan.folders_max = GIT_SCAN_FOLDERS_WHOLE;
	scan.deadline_ms = clock_now_ms() + WHOLE_MS;
	scan.when = whole.when.all;
	scan.each = each_repository;
	scan.context = &whole;
	git_scan_whole(&scan);
	audit_end_doubtful(result);
	if (scan.partial)
		audit_tell_partial(result, scan.folders, scan.missed);
	const bool fine = scan.trouble.text[0] == '\0' ||
			  err_set(err, scan.trouble.code, "%s", scan.trouble.text);
	git_scan_fini(&scan);
	return fine;
}
