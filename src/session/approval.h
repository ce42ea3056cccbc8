/*
 * approval: a person decides about an action that a policy neither grants nor forbids,
 * when the policy's `ask` names the kind of action. The question is the event
 * EVENT_APPROVAL_WANTED, with
 *
 *   id        below 0: the number for running_answer and session_answer
 *   effect    "command": a text that no rule of a list lets run, or that MODE_ASK asks
 *             about; "change": a call of a tool that changes files, or writes a note for
 *             later sessions, which MODE_ASK asks about; "hook": a call that a hook leaves
 *             to a person (request.asks_for); "network": a host;
 *             "read" and "write": a folder outside of what the policy shows or lets be
 *             written; or the effect that a tool of the front names by its `leave`
 *             (tool.h)
 *   wish      for "hook", the last of these, and in MODE_ASK: what is wanted, in words
 *   subject   the command's text, the arguments of a change, host:port, the folder's real
 *             path, or all that would happen
 *   command   the whole command that asks for it, or its tool and arguments
 *   because, rule   why the policy did not allow it by itself
 *   scope     what an answer for the session would grant, in words
 *   always    the rules (policy/rules.h) that the answer "always" would keep, as a list;
 *             absent: this answer is not offered
 *   after     the host whose page the agent has read since the person last spoke; absent: none
 *   file      for a folder: its device and inode, to which the grant is bound
 *   agent, workspace, folder (where it would run)
 *   hash      SHA-256 over all of the above but the number, as sorted JSON
 *   wait_s    after this time without an answer the answer is no
 *   decided   only in an agent's record: a hook decides, or there is nobody to ask
 *             (agent/history.h)
 *   kind, request   the same as a form, for clients that show forms: EVENT_QUESTION's
 *
 * An answer is {"action": "accept", "content": {"answer": "once" | "session" | "always",
 * "hash": HASH}}. Any other action, or the answer "no", is a no, and the model
 * reads `words` of that content, where there are any. Another answer or hash is an
 * error, and the question stays open. "once" is for this call: a host or a folder for as
 * long as the call runs. The event EVENT_APPROVAL_GIVEN reports the answer: id, answer
 * ("once", "session", "always", "no"), by ("person", "session", "time", "cancel", "nobody",
 * "hook"). A
 * grant for the session ends with the session. "always" is one too, and has the front keep
 * rules for later sessions. It is not offered for what destroys much, what a rule asks about
 * each time, what words do not tell (rules_add_words), and questions of other sessions.
 *
 * For session/ only, and for the questions of the proxy (outlet.h).
 *
 * A question is asked of the call's sink when a call is judged, or when the proxy
 * holds a connection to a host that is not listed (PROXY_ASKED). An accepted call goes
 * on by running_proceed, a connection by outlet_decide. A missing person, the end of
 * the time and another hash are a no.
 *
 * A folder outside is opened when its call is judged. view/shape.c decides whether any
 * cell may have it and makes the additions to the view: a detached tree and what is
 * protected in it. The anchor puts them into the view of one worker, or into its own,
 * from which it makes all later workers.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "policy/policy.h"
#include "view/shape.h"

#include <stdbool.h>
#include <stdint.h>

struct running;
struct session;
struct worker_end;

/* An answer and who gave it, as the events and the answers have them in words. */
enum approval_answer { APPROVAL_NO, APPROVAL_ONCE, APPROVAL_SESSION, APPROVAL_ALWAYS };
enum approval_by {
	APPROVAL_BY_PERSON,
	APPROVAL_BY_SESSION, /* it was granted before */
	APPROVAL_BY_TIME,
	APPROVAL_BY_CANCEL,
	APPROVAL_BY_NOBODY, /* there is no person who could be asked */
	APPROVAL_BY_HOOK,   /* a hook, in the place of a person (agent/hooks.h) */
};

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
	APPROVAL_WORDS_MAX = 2 << 10, /* what a person says with a no */
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
 * How many questions of SESSION wait for an answer of a person, those being shown included.
 */
size_t approval_count(const struct session *session);

/*
 * The answer to a question whose data have HASH (NULL: it was not shown), for
 * running_answer and session_answer. The caller frees it. The action is "accept" for a no
 * as well: the form was filled in, and its content holds the no.
 */
struct value *approval_reply(enum approval_answer answer, enum approval_by by,
			     const char *hash);
/*
 * Answer the question ID (below 0) of RUNNING. False with ERR: it is not open, or ANSWER
 * is wrong.
 */
bool approval_answer(struct running *running, int64_t id, const struct value *answer,
		     struct err *err);
/*
 * The person who answered approval questions is gone: refuse all open and all future
 * ones.
 */
void approval_hear_nobody(struct session *session);

/*
 * A question of another session, put to the person of this session. A call of this
 * session has brought the question about (a delegate's). The person sees what the other
 * session shows, and the agents through which the question came. The answer goes back to
 * the other session, and nothing is granted here. One such question is open at a time in
 * a session; the others wait for their turn.
 */

struct approval_relay {
	/* not called when the question ends unanswered */
	void (*answered)(const struct approval_relay *relay, enum approval_answer answer,
			 enum approval_by by);
	void *context;
	char *call; /* the other session's call, and the number of its question */
	int64_t id;
};

/*
 * Make the data of RUNNING's own question from ASKED, the data of the other session's
 * EVENT_APPROVAL_WANTED, which is not trusted. AGENT is the agent that asks. NULL: ASKED
 * lacks the words by which a person could judge the question.
 */
struct value *approval_relay_data(const struct running *running, const char *agent,
				  const struct value *asked);

/*
 * Ask the question, with TAKE_DATA. True: it is asked, and RELAY was copied. Otherwise
 * the answer is no, and *BY says by whom: by nobody, or by the time.
 */
bool approval_relay(struct running *running, const struct approval_relay *relay,
		    struct value *take_data, enum approval_by *by);
/* The session that asked for CALL and ID does not want an answer any more. */
void approval_relay_over(struct running *running, const char *call, int64_t id);

/*
 * Says in words what an answer for the session would grant. "git push" or "cargo build |
 * tee log" name the programs of a plain text, each with its first word. Where these
 * words do not say what would be run, the scope is "exactly this text". This holds for a
 * text that is more than plain commands, for a program that runs what it is told (a
 * shell, an interpreter, env, sudo, xargs, find …) and for words that need quotes. For a
 * command it also holds when the first word is an option or is missing. Pure.
 */

/*
 * Append the scope of TEXT. NETWORK: the scope is for a host to which TEXT connects, so
 * options may come first.
 */
void approval_scope(struct str text, bool network, struct buf *words);

/*
 * Folders outside of what the policy shows, which a call names and about which a person
 * is asked. Each folder is opened when the call is judged, and the grant is for the
 * folder that was opened then: the question shows its real path, and the cell gets that
 * inode or nothing.
 *
 * "once": a worker is made that sees the folder, for this call only. "session": the
 * anchor adds the folder to the view of all later workers, and the folder joins the
 * policy. Calls under way go on with the view that they had.
 */

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
 * RUNNING alone sees, at PATH of the view, the folder SOURCE of the host, to be read only. Nobody is
 * asked for it. *TAKE_FD holds it open. False: RUNNING has as many folders as it may have.
 */
bool extra_lend(struct running *running, const char *path, const char *source, int *take_fd);

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

/*
 * Show the calls of SESSION that begin later, at PATH of the view, the folder SOURCE of the host,
 * to be read only. *TAKE_FD holds it open. Nothing is shown where the cell refuses it.
 */
void extra_show(struct session *session, const char *path, const char *source, int *take_fd);

/* The anchor has answered; ERR NULL: the folder was added. For cell_options.widened. */
void extra_widened(void *session, const struct err *err);
void extra_session_end(struct session *session);
