/*
 * hook_run: runs the hooks that fit a moment of the loop, and makes one answer of theirs. All of
 * them run side by side, in workers of the agent's cell (tools/hook.c): what they
 * change is a step, and where the policy lists commands, those of a project are judged by the
 * list. The person's own with "where": "host" run behind them, one after the other, outside of
 * the cell. A process of our own program stands above such a hook: when glovebox ends, even by
 * SIGKILL, that process ends the hook and all that the hook has started.
 *
 * A refusal beats a question, and that a permission. Of arguments the last ones hold. For
 * something that leaves the cell only the person's own hooks may give permission.
 */
#pragma once

#include "agent/hooks.h"
#include "base/buf.h"
#include "base/value.h"
#include "extend/hook_output.h"
#include "extend/hooks.h"

struct session;

struct hook_options {
	const struct hooks *hooks;
	const char *workspace;
	/*
	 * where the cell shows the workspace as well (session.h); hooks read its own path, which
	 * is there outside of the cell, too. NULL: nowhere
	 */
	const char *at;
	/* the mode of the session in their words ("default"), asked anew for each moment */
	const char *(*mode)(void *context);
	void *context;
	int cancel_fd; /* readable: the person interrupts; -1: none */
};

/*
 * The process above a hook on the host, when ARGV asks for it; does not return then. For
 * main() only.
 */
void hook_run_role(int argc, char **argv);

/* For agent_hooks.ask: CONTEXT is a struct hook_options. */
void hook_run_ask(void *context, const struct hook_moment *moment,
		  struct hook_answer *answer);

/*
 * Play the hooks of KIND in SESSION with GIVEN (or NULL), an object with members of their input
 * that stand in the place of made ones: `tool_name`, `prompt` … TELL is called for each hook
 * that fits, with what it said. The number of hooks is returned.
 */
size_t hook_run_play(const struct hook_options *options, struct session *session,
		     enum hook_kind kind, const struct value *given,
		     void (*tell)(void *context, const struct hook *hook,
				  const struct value *input, const struct hook_said *said),
		     void *tell_context);
