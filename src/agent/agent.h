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
#include "runtime/session.h"

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
	/*
	 * The person interrupts by making it readable (the same descriptor as
	 * session_options.cancel_fd). It is read empty after an interrupt, so that the
	 * next turn starts fresh. Pipe, eventfd or signalfd, not blocking; -1: none.
	 */
	int cancel_fd;
};

/*
 * Most time of one turn: a day's work is several; one that takes longer has lost its
 * way.
 */
enum { AGENT_WALL_S = 4 * 60 * 60 };

/*
 * Begins the record (EVENT_SESSION_BEGAN). ERR: the journal, or cancel_fd cannot be
 * polled.
 */
bool agent_open(const struct agent_options *options, struct agent **agent, struct err *err);
void agent_close(struct agent *agent); /* NULL is fine */

/* Why a turn ended. */
enum agent_reason {
	/* no usable answer; the session is consistent and may go on */
	AGENT_MODEL_FAILED,
	AGENT_STOPPED,    /* the model had no more calls */
	AGENT_PATCH,      /* the model handed over with generate_patch */
	AGENT_ITERATIONS, /* the limits: */
	AGENT_TOKENS,
	AGENT_WALL,
	AGENT_SHELL,
	AGENT_REPEATS,   /* the same call again and again */
	AGENT_TIMEOUTS,  /* one timeout after the other */
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
