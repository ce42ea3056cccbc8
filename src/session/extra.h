/*
 * extra: folders outside of what the policy shows, which a call names and about which a
 * person is asked (approval.h). Each folder is opened when the call is judged, and the
 * grant is for the folder that was opened then: the question shows its real path, and the
 * cell gets that inode or nothing.
 *
 * "once": a worker is made that sees the folder, for this call only. "session": the
 * anchor adds the folder to the view of all later workers, and the folder joins the
 * policy. Calls under way go on with the view that they had.
 */
#pragma once
#include "base/buf.h"
#include "policy/policy.h"
#include "view/shape.h"

#include <stdbool.h>

struct cell_spec;
struct running;
struct session;
struct worker_end;

struct extra {
	struct extra *next;
	struct shape_extra root; /* its path and descriptor are ours */
	char *because, *rule;    /* why the policy did not allow it by itself */
	bool granted;
	bool shared; /* every new worker has the folder */
};

/*
 * RUNNING wants the folder of VERDICT.outside. False: a person cannot be asked for it,
 * and WHY says the reason. The text of WHY is empty when there is nothing to say, for
 * example when the path does not exist.
 */
bool extra_want(struct running *running, const struct verdict *verdict, struct err *why);

/*
 * EXTRA was granted for the session. The session knows the grant by TAKE_GRANT as soon as
 * all new workers have the folder. Then approval_ask follows, or the end of RUNNING.
 */
void extra_share(struct running *running, struct extra *extra, char *take_grant);

/* Does RUNNING need a worker of its own, because only RUNNING may see some folder? */
bool extra_needs_worker(const struct running *running);
/*
 * Take that worker, and ask for one when that was not done yet. NULL: the worker is on
 * its way, or none can be made and WHY says the reason (its code is not 0).
 */
struct worker_end *extra_take_worker(struct running *running, struct err *why);

/*
 * The result of RUNNING stands. Say in it that files written in such folders are in no
 * patch and cannot be undone.
 */
void extra_tell(struct running *running);
/*
 * Append to OUT the writable folders that RUNNING had by a grant, with commas between;
 * nothing when there are none.
 */
void extra_print_written(const struct running *running, struct buf *out);

/* RUNNING is over: free its folders. */
void extra_drop_all(struct running *running);

/* The anchor has answered; ERR NULL: the folder was added. For cell_options.widened. */
void extra_widened(void *session, const struct err *err);
void extra_session_end(struct session *session);
