/*
 * chat: a conversation on a terminal. The person types prompts for the agent, or commands
 * for the conversation itself ("/help"). The verb is run.c, the commands are one
 * table in chat.c. conversation/ has what is more than a command: files that a prompt names
 * (mentions), commands of the person (aside), going back (rewind), the last row (facts), other conversations (past),
 * reports (about).
 *
 * A row of the table makes `/help` and completion too. It comes with a case in
 * tests/fronts/chat_test.py.
 */
#pragma once

#include "base/err.h"
#include "front/output/appearance.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"
#include "store/journal.h"
#include "tui/console.h"
#include "tui/line.h"
#include "tui/paint.h"

#include <stdatomic.h>
#include <stdbool.h>

struct interrupt;
struct mentions;
struct stopping;

enum { CHAT_NO_MODE = -1 };

struct chat {
	const struct options *options; /* of the verb, or `went_on` */
	struct options went_on;        /* of another conversation that went on here … */
	struct journal_found found;    /* … whose texts this owns */
	struct setup *setup;           /* of the agent that works; owned */
	struct talk *talk;
	struct console *console;
	struct screen *screen; /* of the talk */
	struct stopping *stopping;
	struct interrupt *interrupt; /* started before the set-up */
	/* setup, talk, screen and mentions are there, also for the thread of the keys */
	atomic_bool is_there;
	struct mentions *mentions;
	/*
	 * Of enum policy_mode, for the thread of the keys: the present one, and the one that the person
	 * wants from the next request on; CHAT_NO_MODE: none.
	 */
	_Atomic int mode, wanted_mode;
	atomic_bool hinted; /* the row below the line tells of the wanted one */
	bool may_list; /* this thread types: names of files may be asked for (mentions.h) */
	bool moves_cursor; /* the terminal obeys sequences */
	char *prompt;      /* that a command wants sent; or NULL */
	struct line line;
	struct line_history *history;
	char *model; /* the model that the person asked for by /model, or NULL */
	struct value *earlier; /* names of the agents that worked before this one, or NULL */
	struct paint paint;    /* the answer of a command */
	struct appearance appearance;
	char *next; /* a prompt that a command has made, to be sent now; or NULL */
	bool over;
	int code; /* the exit code at the end */
};

/* Is TEXT a command ("/name …"), and not a prompt that begins with a slash? */
bool chat_is_command(struct str text);

/* Does TEXT name one of the program's own commands? They go before those of a person. */
bool chat_has_command(struct str text);

/* Carry out the command TEXT and print its answer. */
void chat_command(struct chat *chat, struct str text);

/* Carry out ACTION of a key (struct console_actor). CONTEXT: the chat. */
bool chat_act(void *context, enum line_result action, bool runs);
/*
 * Carry out TEXT, a command that is for the time while something runs (struct console_actor).
 * False: it is none of these.
 */
bool chat_order(void *context, struct str text);
/* Attach the files that TEXT names, which joins a turn (talk_options.joins). */
void chat_joins(void *context, struct str text);

/* The form of the argument that may follow BEFORE (struct line_completer). CONTEXT: the chat. */
void chat_hint(void *context, struct str before, struct buf *out);
/* For talk_options: other hands of AGENT for MODE, which the talk has taken when USED. */
struct setup *chat_remake(void *context, const char *agent, enum policy_mode mode);
void chat_taken(void *context, struct setup *setup, bool used);
/*
 * Nothing runs: go over to the mode that the person has asked for meanwhile, and show what is
 * now. For talk_options, and before a line is read. CONTEXT: the chat.
 */
void chat_pauses(void *context);

/*
 * The completer of a line (struct line_completer): commands, agents, models, files behind an
 * `@`. CONTEXT: the chat.
 */
void chat_complete(void *context, struct str before, size_t *from, struct buf *words);
