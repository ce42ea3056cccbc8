/*
 * exec_hints: what a program of `exec` could not say of the cell it failed in, on standard
 * error.
 */
#pragma once
#include "base/str.h"
#include "runtime/session.h"
#include "runtime/tool.h"

/* git looks for the repository above the workspace, where the cell ends. */
void hint_repository(const struct tool_result *result, const struct session *session,
		     const char *program);

/* A command that destroys much: what it does, and the next step. */
void hint_harm(const struct tool_result *result);

/*
 * A program that says in MESSAGES (the end of what it printed) that it could not write a protected
 * name (autoexec.h).
 */
void hint_protected(struct str messages);

/*
 * A program that failed and says in MESSAGES that it found no host, where the policy lists none.
 */
void hint_network(const struct tool_result *result, const struct session *session,
		  struct str messages);
