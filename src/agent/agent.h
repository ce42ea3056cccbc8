/*
 * agent: the loop. One turn is: conversation -> model -> text and calls -> one
 * session_start for each call -> results -> again, until the model stops, calls
 * generate_patch, a limit is reached or the person interrupts. A failed or refused call
 * is a result that the model reads; only a broken model service or journal ends a turn
 * early, and then too every call has its answer in the record.
 *
 * How a front puts it together (the recorder first: the session's events pass through
 * it):
 *
 *	recorder = recorder_new(journal, screen_sink(screen));
 *	session_options.sink = recorder_sink(recorder);
 *	session_open(&session_options, &session, &err);
 *	agent_open(&(struct agent_options){.session = session, …}, &agent, &err);
 *	agent_submit(agent, "fix the test", &outcome, &err);
 *	agent_close(agent);
 *	session_close(session);
 *	recorder_free(recorder);
 */
#pragma once
#include "agent/recorder.h"
#include "base/err.h"
#include "model/model.h"
#include "session/session.h"

#include <stdbool.h>
#include <stdint.h>

struct agent;

/*
 * All borrowed for the life of the agent. The limits are those of the session's policy.
 */
struct agent_options {
	struct session *session;
	struct model *model;
	struct recorder *recorder; /* the one whose sink the session was opened with */
	const char *name;          /* of the role: "default" */
	const char *prompt;        /* of the role; NULL: none. The workspace is added. */
	const char *parent; /* id of the session that delegated to this one; NULL: none */
	/* of the role: name -> command, or an object (config_role.checks); NULL: none */
	const struct value *checks;
	/*
	 * Id of the session in the recorder's journal that goes on; NULL: a new one. The
	 * session is then this process's (journal_claim), and has the workspace it had.
	 */
	const char *resume;
	/*
	 * The person interrupts by making it readable (the same descriptor as
	 * session_options.cancel_fd). It is read empty after an interrupt, so that the
	 * next turn starts fresh. Pipe, eventfd or signalfd, not blocking; -1: none.
	 */
	int cancel_fd;
};

/*
 * Begins the record (EVENT_SESSION_BEGAN) or resumes it. A resumed session has its old
 * conversation and its old marks of the files that were read. Calls that were under way
 * are answered with a sentence that says so (EVENT_SESSION_RESUMED, EVENT_TOOL_ENDED).
 * Then reads the project's instructions for agents (EVENT_INSTRUCTIONS). ERR: the journal
 * failed (EBUSY: another process has the session), cancel_fd cannot be polled, money is
 * limited but the price of the model is unknown, or the policy forbids a check of the
 * role.
 */
bool agent_open(const struct agent_options *options, struct agent **agent, struct err *err);
void agent_close(struct agent *agent); /* NULL is fine */

/*
 * Between turns: go on with another session, model, name or prompt. The recorder,
 * cancel_fd and the conversation stay the same, and nothing is resumed. Objects that
 * OPTIONS no longer names may be closed afterwards. On failure nothing has changed.
 */
bool agent_change(struct agent *agent, const struct agent_options *options, struct err *err);

/*
 * Record SENTENCE as an EVENT_NOTICE, which the front shows. TO_MODEL: SENTENCE joins the
 * conversation too. False when SENTENCE could not be recorded.
 */
bool agent_notice(struct agent *agent, const char *sentence, bool to_model, struct err *err);

/* Why a turn ended. */
enum agent_reason {
	/* no usable answer; the session is consistent and may go on */
	AGENT_MODEL_FAILED,
	AGENT_STOPPED,    /* the model had no more calls */
	AGENT_PATCH,      /* the model handed over with generate_patch */
	AGENT_ITERATIONS, /* the limits: */
	AGENT_TOKENS,
	AGENT_MONEY,
	AGENT_WALL,
	AGENT_SHELL,
	AGENT_REPEATS,   /* the same call again and again */
	AGENT_TIMEOUTS,  /* one timeout after the other */
	AGENT_CHECKS,    /* the role's checks did not become green */
	AGENT_CANCELLED, /* by the person */
};
const char *agent_reason_name(enum agent_reason reason); /* "stopped", "model_failed" */

struct agent_outcome {
	enum agent_reason reason;
	char sentence[ERR_TEXT_MAX]; /* what ended the turn; "" when it simply stopped */
	uint64_t iterations;         /* answers of the model */
	struct model_usage usage;    /* summed */
	double seconds, shell_seconds;
	/* of the last program that ran in a call; -1: none, or a signal */
	int last_exit_code;
	size_t changed; /* files in the hand-over */
};

/*
 * One turn. True with *OUTCOME filled whatever became of it, model failures and
 * interrupts included; its sentence has then been an EVENT_NOTICE. False when an event
 * could not be recorded: nothing was run after that.
 */
bool agent_submit(struct agent *agent, const char *text, struct agent_outcome *outcome,
		  struct err *err);

/*
 * The rest of the limits of the turn under way, for a delegate that works for it; 0: no
 * such limit. Between turns nothing is limited.
 */
struct agent_budget {
	bool used_up;
	uint64_t tokens, answers;
	double money, seconds;
};
void agent_left(const struct agent *agent, struct agent_budget *left);
/*
 * A delegate used USAGE and ANSWERS for the turn under way: they count as the turn's own.
 */
void agent_spent(struct agent *agent, const struct model_usage *usage, uint64_t answers);
