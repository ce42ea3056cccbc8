/*
 * chat: a conversation on a terminal: what is typed is a prompt for the agent, or a command
 * for the conversation itself ("/help"). The verb is verb_chat.c, the commands are one table
 * in chat_commands.c.
 */
#pragma once
#include "base/err.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/terminal/console.h"
#include "front/terminal/line.h"
#include "front/terminal/screen_paint.h"

#include <stdbool.h>

struct chat {
	const struct options *options; /* of the verb */
	struct setup *setup;           /* of the agent that works; owned */
	struct talk *talk;
	struct console *console;
	struct line line;
	struct line_history *history;
	char *model;           /* that the person asked for by /model, or NULL */
	struct value *earlier; /* names of the agents that worked before this one, or NULL */
	struct paint paint;    /* what a command has to say */
	bool over;
	int code; /* of the end */
};

/* Is TEXT a command ("/name …"), and not a prompt that begins with a slash? */
bool chat_is_command(struct str text);

/* Carry out the command TEXT; what it says is printed. */
void chat_command(struct chat *chat, struct str text);

/* What Tab knows: commands, agents, models (a line_completer's). CONTEXT: the chat. */
void chat_complete(void *context, struct str before, size_t *from, struct buf *words);

/* Go on as the agent NAME, by /agent; the rights are its own. */
void chat_change_agent(struct chat *chat, const char *name);
/*
 * Undo a step (0: the newest) by the hands that made it, this agent's or an earlier one's; with
 * the rights of this one where nobody here made it. RESULT is initialised.
 */
void chat_undo(struct chat *chat, uint32_t number, struct tool_result *result);
/* Go on with the model NAME, by /model. */
void chat_change_model(struct chat *chat, const char *name);

/* Each name of an agent or model that there is, or that the configuration has. */
void chat_each_agent(const struct chat *chat,
		     void (*name)(void *context, const char *name), void *context);
void chat_each_model(const struct chat *chat,
		     void (*name)(void *context, const char *name), void *context);
