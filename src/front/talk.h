/*
 * talk: a conversation of the command line: model, journal, session, agent and whoever
 * shows the events are put together once, serve any number of turns, and are taken apart.
 *
 *	code = talk_open(&options, &setup, &talk);
 *	while (code == CODE_DONE && …)
 *		code = talk_turn(talk, prompt, &outcome);
 *	talk_close(talk);
 */
#pragma once
#include "agent/agent.h"
#include "front/setup.h"
#include "front/terminal/screen.h"
#include "model/model.h"

#include <stdbool.h>

struct console;
struct talk;

struct talk_options {
	struct model_options model;
	bool json;    /* events as JSON lines instead of the screen */
	bool answers; /* with json: standard input has the answers to what it asks */
	struct console *console; /* on which a person answers what is asked; NULL: nobody does */
	bool kept;               /* in the journal of the user's sessions */
	const char *resume; /* id of the session there that goes on; NULL: a new one */
	/* By which this process was started for another (delegate_role.h); NULL: a person's */
	const struct value *request;
	bool counts_answers; /* the limit of answers holds for delegates together */
	const struct screen_options *screen; /* NULL: what standard output can show */
};

/*
 * The environment's part of the model: GLOVEBOX_MODEL, GLOVEBOX_BASE_URL, the key of the
 * model's provider, the built-in replay when nothing is set; NAME (of a flag, or NULL) and
 * ROLE's model before it. The texts are borrowed from the environment.
 */
bool talk_model(const char *name, const struct config_role *role,
		struct model_options *model, struct err *err);

/*
 * An exit code; complaints have been printed, and *TALK is to be closed in either case
 * (NULL when nothing was opened). SETUP is borrowed until talk_close.
 */
int talk_open(const struct talk_options *options, struct setup *setup, struct talk **talk);

/*
 * One turn. An exit code; complaints have been printed. OUTCOME is filled when the turn
 * was begun (else it is zero). After a turn that Ctrl+C cancelled (CODE_CANCELLED), that
 * reached a limit, or whose model failed, the next may follow; not when talk_is_over.
 */
int talk_turn(struct talk *talk, const char *prompt, struct agent_outcome *outcome);

/*
 * CODE of the last turn; when it is CODE_DONE but not all of it could be printed, a complaint
 * and CODE_FAILED.
 */
int talk_told(const struct talk *talk, int code);

/* Nothing more can be recorded, or a signal asked for the end: no turn may follow. */
bool talk_is_over(const struct talk *talk);

/*
 * Between turns: go on with the same conversation, but other hands (SETUP, borrowed as
 * talk_open's; NULL: the same) and another model (NULL: the same). An exit code; complaints
 * have been printed, and nothing has changed unless it is CODE_DONE.
 */
int talk_change(struct talk *talk, struct setup *setup, const struct model_options *model);

/* For who works on the conversation between turns. Valid until the next change. */
struct agent *talk_agent(const struct talk *talk);
struct session *talk_session(const struct talk *talk);
const char *talk_model_name(const struct talk *talk);

/* Between turns: what was shown last ends with a blank line. */
void talk_break(struct talk *talk);

/* Readable when a signal came between turns. */
int talk_interrupt_fd(const struct talk *talk);
/* What a Ctrl+C asked for between turns is done; other signals end the conversation. */
void talk_calm(struct talk *talk);
/* The signal that asked for the end, 0: none. */
int talk_signal(const struct talk *talk);

void talk_close(struct talk *talk); /* ends all that still runs; NULL is fine */
