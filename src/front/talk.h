/*
 * talk: a conversation of the command line. Model, journal, session, agent and the module
 * that shows the events are set up once, serve any number of turns, and are taken down.
 *
 *	code = talk_open(&options, &setup, &talk);
 *	while (code == CODE_DONE && …)
 *		code = talk_turn(talk, prompt, NULL, &outcome);
 *	talk_close(talk);
 *
 * Work of the set-up that needs no cell is done while the cell is being made
 * (session_options.meanwhile). When a request to the model is out, the session rests
 * (session_rest): the loop does not turn until the answer is there.
 */
#pragma once

#include "agent/agent.h"
#include "agent/hooks.h"
#include "base/err.h"
#include "base/str.h"
#include "front/setup.h"
#include "model/model.h"
#include "store/journal.h"
#include "tui/screen.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct allowed;
struct console;
struct formats;
struct interrupt;
struct stopping;
struct talk;

struct talk_options {
	struct model_options model;
	bool json; /* events as JSON lines instead of the screen */
	/* its sink shows the events, instead of the screen (front/output/formats.h); or NULL */
	struct formats *formats;
	bool answers;       /* with json: standard input has the answers to questions */
	bool answers_forms; /* with answers: also to those of servers and plugins */
	struct console *console; /* for questions to a person; NULL: there is none */
	/*
	 * Started by the caller, who closes it after talk_close: signals count from before the
	 * set-up, which they end. NULL: the talk has its own, which counts from its end on.
	 */
	struct interrupt *interrupt;
	bool kept;          /* recorded in the journal of the user's sessions */
	const char *resume; /* id of the recorded session that goes on; NULL: a new one */
	/*
	 * The request by which another agent started this process (below);
	 * NULL: a person did
	 */
	const struct value *request;
	bool counts_answers; /* the limit of answers holds for all delegates together */
	const struct screen_options *screen; /* NULL: ask standard output */
	/*
	 * With answers: called with each line of standard input that is JSON, and with NULL
	 * at its end. True: LINE is no answer, and was taken. NULL: all lines are answers.
	 */
	bool (*heard)(void *context, const struct value *line);
	/*
	 * The person at the console has sent TEXT to the turn under way: what goes with it
	 * may be attached now (agent_attach). NULL: nothing goes with it.
	 */
	void (*joins)(void *context, struct str text);
	/* asked behind those of the configuration (agent_options); its `next` is not used */
	const struct agent_hooks *hooks;
	struct stopping *stopping; /* ends calls of a turn (conversation/stopping.h); or NULL */
	/*
	 * The person may go over to another mode or agent, and says in which mode a plan is
	 * carried out: `remake` makes the hands of AGENT (NULL: the present one) for MODE where
	 * that needs another cell (NULL: it has complained), and `taken` is told whether they are
	 * used now; those of before then belong to the caller again. Both NULL: agent and mode
	 * stay, and a plan ends the turn.
	 */
	struct setup *(*remake)(void *context, const char *agent, enum policy_mode mode);
	void (*taken)(void *context, struct setup *setup, bool used);
	/*
	 * With `remake`: called before each request of a turn, while no call is under way. It may
	 * go over to another mode (talk_set_mode). NULL: nobody wants to know.
	 */
	void (*pauses)(void *context);
	bool one_turn; /* no other turn follows: a plan ends it even with `remake` */
	void *context; /* of them all */
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
 * Does MODEL, of talk_model, have a name? Programs and editors are given no recording in its place:
 * they would take the recorded words for work that was done.
 */
bool talk_model_is_named(const struct model_options *model, struct err *err);

/*
 * Open a conversation. Returns an exit code; complaints have been printed. The caller
 * closes *TALK in either case (NULL when nothing was opened). SETUP is borrowed until
 * talk_close.
 */
int talk_open(const struct talk_options *options, struct setup *setup, struct talk **talk);

/*
 * One turn, with PICTURES (agent_submit). An exit code; complaints have been printed. OUTCOME is filled when the turn
 * was begun (else it is zero). After a turn that Ctrl+C cancelled (CODE_CANCELLED), that
 * reached a limit, or whose model failed, the next turn may follow, except when
 * talk_is_over.
 */
int talk_turn(struct talk *talk, const char *prompt, const struct value *pictures,
	      struct agent_outcome *outcome);

/* Have the conversation summarised (agent_compact). An exit code, as of talk_turn. */
int talk_compact(struct talk *talk, const char *matters);

/*
 * Returns CODE, the exit code of the last turn. When CODE is CODE_DONE but some of the
 * turn could not be printed, prints a complaint and returns CODE_FAILED.
 */
int talk_told(const struct talk *talk, int code);

/*
 * No turn may follow: nothing more can be recorded, a signal asked for the end, or there is only one
 * (talk_options.one_turn).
 */
bool talk_is_over(const struct talk *talk);

/*
 * Between turns: go on with the same conversation, but with the hands of SETUP (borrowed
 * as in talk_open; NULL: the same hands) and with MODEL (NULL: the same model). Returns
 * an exit code; complaints have been printed, and nothing has changed unless the code is
 * CODE_DONE.
 */
int talk_change(struct talk *talk, struct setup *setup, const struct model_options *model);

/*
 * Between turns: another conversation goes on in the place of this one, which has ended then: a
 * new one, or the recorded session RESUME. SETUP and MODEL as in talk_change; neither is
 * NULL. Returns an exit code; complaints have been printed, and this conversation goes on unless
 * the code is CODE_DONE.
 */
int talk_begin_again(struct talk *talk, struct setup *setup,
		     const struct model_options *model, const char *resume);

/*
 * Between turns or requests: go over to MODE, in the same conversation. Needs the functions of
 * talk_options. Returns as talk_change does.
 */
int talk_set_mode(struct talk *talk, enum policy_mode mode);

/* The same for AGENT, which works in MODE; the model stays. */
int talk_set_agent(struct talk *talk, const char *agent, enum policy_mode mode);
/* The same for the model that the person calls NAME (talk_model). */
int talk_set_model(struct talk *talk, const char *name);
/* The model, as the person has named it; NULL: the built-in recording. */
const char *talk_asked_model(const struct talk *talk);

/*
 * Refuse the calls of the agent that ALLOWED does not have, in the name of WHO ("/review"). Both
 * are borrowed until the next call; NULL: nothing is refused.
 */
void talk_narrow(struct talk *talk, const struct allowed *allowed, const char *who);

/* The setup of the present agent; borrowed. */
const struct setup *talk_setup(const struct talk *talk);

/*
 * For callers that work on the conversation between turns. Valid until the next
 * talk_change.
 */
struct agent *talk_agent(const struct talk *talk);
struct session *talk_session(const struct talk *talk);
/* Valid until the next talk_begin_again. */
const struct recorder *talk_recorder(const struct talk *talk);
/* The id of the recorded session; "" when it is not recorded. */
const char *talk_session_id(const struct talk *talk);
const char *talk_model_name(const struct talk *talk);
bool talk_has_levels(const struct talk *talk); /* model_has_levels */
const char *talk_id(const struct talk *talk); /* of the recorded session; "" without one */
/*
 * US dollars that the turns of this conversation have cost with all that the record has of it,
 * below 0: the price of some answers is not known.
 */
double talk_money(const struct talk *talk);
/* The tokens that the model takes; 0: not known (model_context). */
uint64_t talk_context(const struct talk *talk);

/*
 * Between turns: append to TEXT what the conversation has changed, as a patch. False: TEXT has a
 * sentence instead, because nothing was changed or no patch could be made.
 */
bool talk_diff(struct talk *talk, struct buf *text);
/*
 * Between turns: the person has undone a step, as RESULT says. The model is told, which must not
 * go on from files that are gone. False: that could not be recorded.
 */
bool talk_tell_undone(struct talk *talk, const struct tool_result *result, struct err *err);

/* A call for the person has ended (agent_call), and no turn is under way. */
void talk_rest(struct talk *talk);
/* The screen of a conversation at a console; valid until talk_close. */
struct screen *talk_screen(const struct talk *talk);
/* Between turns: end the last output with a blank line. */
void talk_break(struct talk *talk);

/* This descriptor is readable when a signal came between turns. */
int talk_interrupt_fd(const struct talk *talk);
/* Is it? */
bool talk_is_interrupted(const struct talk *talk);
/*
 * The caller has obeyed a Ctrl+C between turns: forget it. Other signals end the
 * conversation.
 */
void talk_calm(struct talk *talk);
/* The signal that asked for the end; 0: none did. */
int talk_signal(const struct talk *talk);

void talk_close(struct talk *talk); /* ends everything that still runs; NULL is fine */

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
