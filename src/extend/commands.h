/*
 * commands: prompts that a person has written down and calls by name: /review src. A command is a
 * Markdown file; its front matter says what it is for, its body is the prompt. In the body stand
 * for other texts:
 *
 *	$ARGUMENTS     all that was typed behind the name
 *	$1 … $9        its words; quotes hold words together
 *	${1:-main}     the word, or what stands behind :- when there is none
 *	!`git log -3`  the output of the command
 *
 * When the body names no argument, what was typed joins it behind. Only the body
 * is looked at for these, so that what is typed starts nothing.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "extend/brought.h"

#include <stdbool.h>
#include <stddef.h>

struct command {
	char *name; /* "review", "git:log" */
	char *file;
	char *description, *hint; /* `description`, `argument-hint`; may be "" */
	char *body;
	char *problem;        /* why it is left out; NULL: it is not */
	struct value *matter; /* the front matter; NULL: there is none */
	bool own;
	bool shadowed; /* left out for one of the person with its name */
};

struct commands {
	struct command *items;
	size_t count;
};

/* Add ITEM, as skills_add does. */
void commands_add(struct commands *commands, const struct brought *item, bool own);
void commands_fini(struct commands *commands);

/* The command NAME that is not left out; NULL: there is none. */
const struct command *commands_find(const struct commands *commands, const char *name);

/* Append the output of the shell text COMMAND. False: it failed, and ERR says how. */
typedef bool command_run(void *context, const char *command, struct buf *out,
			 struct err *err);

/*
 * Append the prompt of a call of COMMAND with ARGUMENTS. False: a command in it failed, or the
 * prompt would be too long; then nothing is to be sent.
 */
bool command_expand(const struct command *command, struct str arguments, command_run *run,
		    void *context, struct buf *out, struct err *err);
