/*
 * invoke: what a person calls by a name in a prompt: a command, `/review src`, a skill,
 * `/skill:release 1.2` (extend/extension.h), or a prompt of an MCP server, `/tracker:triage 7`
 * (mcp/client/remotes.h). It becomes the prompt that is sent.
 */
#pragma once

#include "base/buf.h"

struct setup;
struct talk;

enum invoked {
	INVOKED_NOTHING, /* the text names none: it is a prompt, or a command of a front */
	INVOKED,         /* the prompt is there */
	INVOKED_FAILED,  /* a complaint has been printed, and nothing is to be sent */
};

/*
 * Append to PROMPT what TEXT calls. Commands in it run in the cell of TALK with the agent's
 * rights, for 10 s each; one that fails stops the prompt.
 */
enum invoked invoke(struct talk *talk, const char *text, struct buf *prompt);

/* Call EACH with the names ("review", "skill:release") that a person can call. */
void invoke_each(const struct setup *setup,
		 void (*each)(void *context, const char *name, const char *description),
		 void *context);

/* Append for a person: all skills, with the reason of those that are left out. */
void invoke_list_skills(const struct setup *setup, struct buf *out);
