/*
 * claims: what a program says it could not reach, read off its messages, and what a
 * file tool could not write. The worker, which sees the messages and the view, gathers
 * them; the session, which has the policy, judges them and makes denials of those that a
 * rule explains. A path outside of everything shown gets the same answer whether it
 * exists or not: nobody looks.
 */
#pragma once
#include "base/str.h"
#include "policy/policy.h"
#include "tool/tool.h"

#include <stdbool.h>

/* Where they stand in a result's details. */
#define CLAIMS_KEY "claims"

/* Of one result: the first that are found; the rest mostly repeat them. */
enum { CLAIMS_MAX = 8 };

/*
 * Gather from MESSAGES, what a program printed in FOLDER (absolute). The exit code takes no part:
 * `|| true` and a pipe change that. For paths the view is asked whether they can be read, to tell
 * writing from reading.
 */
void claims_gather(struct str messages, const char *folder, struct tool_result *result);

/* Only what they say of hosts that were not found or reached; "" where they name none. */
void claims_gather_hosts(struct str messages, struct tool_result *result);

/*
 * Add a denial to RESULT for each protected name (autoexec.h) of which a line of MESSAGES says that it
 * could not be written or moved: the view holds it, and no message says why.
 */
void claims_protected(struct str messages, struct tool_result *result);

/* A file tool could not write PATH (absolute, real). */
void claims_add_unwritable(const char *path, struct tool_result *result);

/* Does RESULT claim that a host was not found or reached? */
bool claims_name_host(const struct tool_result *result);

/* How far to trust a text about hosts, and what would help. */
enum claims_hosts {
	CLAIMS_HOSTS_WRONG = 0, /* the cell itself keeps what was refused, and has nothing */
	CLAIMS_HOSTS_LISTABLE, /* the policy may list them */
	CLAIMS_HOSTS_CLOSED, /* below L3 there is no network, whatever the policy says */
};

/*
 * Judge what RESULT claims by POLICY, and of hosts by HOSTS, and take the claims away. A file tool
 * that failed for a rule is denied, as it would have been by the path that its link leads to. A
 * worker that was taken over may claim anything: whatever is no claim is dropped.
 */
void claims_judge(const struct policy *policy, enum claims_hosts hosts,
		  struct tool_result *result);
