/*
 * extra: folders outside of what the policy shows, which a call names and a person is asked for
 * (approval.h). Each is opened when the call is judged, and what is granted is what was opened then:
 * the question shows its real path, and the cell gets that inode or nothing.
 *
 * "once": a worker is made for the call that sees it, and nobody else does. "session": the anchor
 * puts it into the view of all workers to come, and it joins the policy. Calls under way go on
 * with what they saw.
 */
#pragma once
#include "base/buf.h"
#include "policy/policy.h"
#include "view/shape_extra.h"

#include <stdbool.h>

struct cell_spec;
struct running;
struct session;
struct worker_end;

struct extra {
	struct extra *next;
	struct shape_extra root; /* its path and descriptor are ours */
	char *because, *rule;    /* why it was not simply done */
	bool granted;
	bool shared; /* every worker has it by now */
};

/*
 * RUNNING wants VERDICT.outside. False: it cannot be asked for, and WHY says so; its text is
 * empty where there is nothing to say, as of what does not exist.
 */
bool extra_want(struct running *running, const struct verdict *verdict, struct err *why);

/*
 * It was granted for the session, which is known by TAKE_GRANT from when all workers have it on:
 * approval_ask, or the end of RUNNING, follows.
 */
void extra_share(struct running *running, struct extra *extra, char *take_grant);

/* Does RUNNING need a worker of its own, for what it alone may see? */
bool extra_needs_worker(const struct running *running);
/*
 * That worker, which is asked for when it was not; NULL: it is on its way, or WHY says (code not 0)
 * that there can be none.
 */
struct worker_end *extra_take_worker(struct running *running, struct err *why);

/*
 * Its result stands: say in it that what was written in such folders is in no patch and not undone.
 */
void extra_tell(struct running *running);
/* The folders to be written that RUNNING had by a grant, between commas; nothing: none. */
void extra_print_written(const struct running *running, struct buf *out);

/* RUNNING is over. */
void extra_drop_all(struct running *running);

/* For cell_options.widened. */
void extra_widened(void *session, const struct err *err);
void extra_session_end(struct session *session);
