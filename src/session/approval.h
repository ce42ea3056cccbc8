/*
 * approval: a person decides about an action that a policy neither grants nor forbids,
 * when the policy's `ask` names the kind of action. The question is the event
 * EVENT_APPROVAL_WANTED, with
 *
 *   id        below 0: the number for running_answer and session_answer
 *   effect    "command": a text that no rule of a list lets run; "network": a host;
 *             "read" and "write": a folder outside of what the policy shows or lets be
 *             written (extra.h); or the effect that a tool of the front names by its
 *             `leave` (tool.h)
 *   wish      for the last of these: what is wanted, in words
 *   subject   the command's text, host:port, the folder's real path, or all that would
 *             happen
 *   command   the whole command that asks for it, or its tool and arguments
 *   because, rule   why the policy did not allow it by itself
 *   scope     what an answer for the session would grant, in words (approval_scope.h)
 *   file      for a folder: its device and inode, to which the grant is bound
 *   agent, workspace, folder (where it would run)
 *   hash      SHA-256 over all of the above but the number, as sorted JSON
 *   wait_s    after this time without an answer the answer is no
 *   kind, request   the same as a form, for clients that show forms: EVENT_QUESTION's
 *
 * An answer is
 * {"action": "accept", "content": {"answer": "once" | "session", "hash": HASH}}.
 * Any other action, or the answer "no", is a no. Another answer or hash is an error, and
 * the question stays open. "once" is for this call: a host or a folder for as long as the
 * call runs. The event EVENT_APPROVAL_GIVEN reports the answer: id, answer ("once",
 * "session", "no"), by ("person", "session", "time", "cancel", "nobody"). A grant for the
 * session ends with the session.
 *
 * For session*.c and running*.c, and for the proxy's questions (outlet.h).
 */
#pragma once
#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

struct running;

enum {
	/*
	 * A person may be at lunch; a command that waits for a host meanwhile uses up its
	 * own time.
	 */
	APPROVAL_WAIT_S = 300,
	/* How many questions one call may have open: each is a question to a person. */
	APPROVALS_MAX = 16,
	/*
	 * How many hosts of one call a person may decide on; further hosts are refused.
	 */
	APPROVAL_HOSTS_MAX = 64,
	/*
	 * How long a text a tool of the front may have approved; a person reads all of
	 * it.
	 */
	APPROVAL_SUBJECT_MAX = 24 << 10,
	/* Commands, hosts and folders granted for one session. */
	APPROVAL_GRANTS_MAX = 256,
};

/*
 * RUNNING has been announced and is not to run before a person has agreed to everything
 * it wants: first to each of its `extras`, then to `wanted`, then to `leave`. Then
 * running_proceed follows, or the end of RUNNING. It follows immediately when the session
 * has granted all of it before.
 */
void approval_ask(struct running *running);
/* Can a person be asked about RUNNING, and would the person see all of it? */
bool approval_can_ask(const struct running *running);

/*
 * The proxy holds CONNECTION, which the call NUMBER makes to TARGET (host:port). The
 * answer is a call of outlet_decide, now or later. For outlet_options.
 */
void approval_ask_host(void *context, uint64_t number, uint64_t connection,
		       const char *target, const char *because);

/*
 * RUNNING is over: close its questions, because nothing waits for the answers any more.
 */
void approval_drop_all(struct running *running);
/*
 * A question of RUNNING's worker has been answered: the next approval question may be
 * shown now.
 */
void approval_show(struct running *running);
/* Is an approval question of RUNNING being shown? */
bool approval_is_open(const struct running *running);

/*
 * Answer the question ID (below 0) of RUNNING. False with ERR: it is not open, or ANSWER
 * is wrong.
 */
bool approval_answer(struct running *running, int64_t id, const struct value *answer,
		     struct err *err);
