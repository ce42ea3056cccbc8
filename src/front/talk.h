/*
 * talk: a conversation of the command line. Model, journal, session, agent and the module
 * that shows the events are set up once, serve any number of turns, and are taken down.
 *
 *	code = talk_open(&options, &setup, &talk);
 *	while (code == CODE_DONE && …)
 *		code = talk_turn(talk, prompt, &outcome);
 *	talk_close(talk);
 *
 * Work of the set-up that needs no cell is done while the cell is being made
 * (session_options.meanwhile). When a request to the model is out, the session rests
 * (session_rest): the loop does not turn until the answer is there.
 */
#pragma once

#include "agent/agent.h"
#include "base/err.h"
#include "base/str.h"
#include "front/setup.h"
#include "front/terminal/screen.h"
#include "model/model.h"
#include "store/journal.h"

#include <stdbool.h>
#include <stdio.h>

struct console;
struct talk;

struct talk_options {
	struct model_options model;
	bool json;    /* events as JSON lines instead of the screen */
	bool answers; /* with json: standard input has the answers to questions */
	struct console *console; /* for questions to a person; NULL: there is none */
	bool kept;               /* recorded in the journal of the user's sessions */
	const char *resume; /* id of the recorded session that goes on; NULL: a new one */
	/*
	 * The request by which another agent started this process (agents.h);
	 * NULL: a person did
	 */
	const struct value *request;
	bool counts_answers; /* the limit of answers holds for all delegates together */
	const struct screen_options *screen; /* NULL: ask standard output */
};

/*
 * Fill MODEL. The name is NAME (of a flag, or NULL), else GLOVEBOX_MODEL, else ROLE's
 * model; without any of them it is the built-in replay. GLOVEBOX_BASE_URL and the key of
 * the model's provider come from the environment. The texts are borrowed from the
 * environment.
 */
bool talk_model(const char *name, const struct config_role *role,
		struct model_options *model, struct err *err);

/*
 * Open a conversation. Returns an exit code; complaints have been printed. The caller
 * closes *TALK in either case (NULL when nothing was opened). SETUP is borrowed until
 * talk_close.
 */
int talk_open(const struct talk_options *options, struct setup *setup, struct talk **talk);

/*
 * One turn. An exit code; complaints have been printed. OUTCOME is filled when the turn
 * was begun (else it is zero). After a turn that Ctrl+C cancelled (CODE_CANCELLED), that
 * reached a limit, or whose model failed, the next turn may follow, except when
 * talk_is_over.
 */
int talk_turn(struct talk *talk, const char *prompt, struct agent_outcome *outcome);

/*
 * Returns CODE, the exit code of the last turn. When CODE is CODE_DONE but some of the
 * turn could not be printed, prints a complaint and returns CODE_FAILED.
 */
int talk_told(const struct talk *talk, int code);

/* Nothing more can be recorded, or a signal asked for the end: no turn may follow. */
bool talk_is_over(const struct talk *talk);

/*
 * Between turns: go on with the same conversation, but with the hands of SETUP (borrowed
 * as in talk_open; NULL: the same hands) and with MODEL (NULL: the same model). Returns
 * an exit code; complaints have been printed, and nothing has changed unless the code is
 * CODE_DONE.
 */
int talk_change(struct talk *talk, struct setup *setup, const struct model_options *model);

/*
 * For callers that work on the conversation between turns. Valid until the next
 * talk_change.
 */
struct agent *talk_agent(const struct talk *talk);
struct session *talk_session(const struct talk *talk);
const char *talk_model_name(const struct talk *talk);

/* Between turns: end the last output with a blank line. */
void talk_break(struct talk *talk);

/* This descriptor is readable when a signal came between turns. */
int talk_interrupt_fd(const struct talk *talk);
/*
 * The caller has obeyed a Ctrl+C between turns: forget it. Other signals end the
 * conversation.
 */
void talk_calm(struct talk *talk);
/* The signal that asked for the end; 0: none did. */
int talk_signal(const struct talk *talk);

void talk_close(struct talk *talk); /* ends everything that still runs; NULL is fine */

/*
 * Finds the recorded session that the person means. It makes sure that a session goes on
 * in the same folder, because its conversation speaks of this folder.
 */

/*
 * Find the session NAME (journal_find) in the user's journal. The last session is the
 * last one of FOLDER or, when FOLDER is NULL, of the working folder. FOLDER, as the
 * person wrote it, must be the workspace of the session. ERR names the fault and the
 * remedy. Call journal_found_fini in either case.
 */
bool talk_resume_find(const char *name, const char *folder, struct journal_found *found,
		      struct err *err);

/*
 * Call EVENT with every event of the session NAME, in order; EVENT returns false to stop.
 * Returns an exit code; complaints have been printed.
 */
int talk_resume_read(const char *name,
		     bool (*event)(void *context, int64_t number, const char *kind,
				   int64_t wall_ms, struct str json),
		     void *context);

/*
 * Asks the person one question before the program makes a lasting change. Only "y" and
 * "yes" mean yes.
 */

/*
 * Print the question and "[y/N]" on TO, and read one line of standard input. The end of
 * standard input means no. The caller makes sure that somebody can be asked: without a
 * terminal it needs another way, such as an option --yes.
 */
bool talk_confirm(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
