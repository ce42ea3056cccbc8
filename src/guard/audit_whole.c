/*
 * audit_whole: the look that walks through trees of any size, for one second at most.
 * audit_begin may not have seen all of these trees, so the age of a file decides whether
 * it is new. Repositories are judged one after the other, so that a tree with thousands
 * of them takes no more memory than one.
 */
#include "base/clock.h"
#include "guard/audit_parts.h"
#include "guard/audit_tell.h"

/* A person waits for this look at the end of a program or session. */
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

	/*
	 * When audit_begin has seen all, every danger that the guard does not know is
	 * new.
	 */
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
