/*
 * invoke: what a person calls by a name in a prompt: a command, `/review src`, a skill,
 * `/skill:release 1.2` (extend/extension.h), or a prompt of an MCP server, `/tracker:triage 7`
 * (mcp/client/remotes.h). It becomes the prompt that is sent. The front matter of a skill or command
 * may say how the turn is worked: with fewer tools, and a command as another agent, with another
 * model, or in another mode. What it says holds for that turn alone.
 */
#pragma once

#include "agent/agent.h"
#include "base/buf.h"
#include "base/value.h"
#include "extend/allowed.h"
#include "policy/policy.h"

#include <stdbool.h>

struct setup;
struct talk;

enum invoked {
	INVOKED_NOTHING, /* the text names none: it is a prompt, or a command of a front */
	INVOKED,         /* the prompt is there */
	INVOKED_FAILED,  /* a complaint has been printed, and nothing is to be sent */
};

struct invocation {
	struct buf prompt;
	char *who;           /* "/review", "/skill:release"; NULL: a server, or nothing */
	char *agent, *model; /* for the turn; NULL: those that work now */
	bool has_mode;       /* the turn is worked in … */
	enum policy_mode mode; /* … this mode. The workspace's commands only make it stricter */
	struct allowed allowed;
};

/*
 * Fill INVOCATION with what TEXT calls. Commands in it run in the cell of TALK with the rights of
 * the agent that works now, for 10 s each; one that fails stops the prompt. Call invocation_fini
 * in either case.
 */
enum invoked invoke(struct talk *talk, const char *text, struct invocation *invocation);
void invocation_fini(struct invocation *invocation);

/*
 * One turn as talk_turn does it, with the prompt of INVOCATION, as its front matter wants it;
 * afterwards TALK is as it was. Where the front matter cannot be obeyed a complaint is printed,
 * and nothing is sent.
 */
int invocation_turn(struct talk *talk, const struct invocation *invocation,
		    const struct value *pictures, struct agent_outcome *outcome);

/* Call EACH with the names ("review", "skill:release") that a person can call. */
void invoke_each(const struct setup *setup,
		 void (*each)(void *context, const char *name, const char *description),
		 void *context);

/* Append for a person: all skills, with the reason of those that are left out. */
void invoke_list_skills(const struct setup *setup, struct buf *out);
