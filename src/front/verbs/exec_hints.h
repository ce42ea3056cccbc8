/*
 * exec_hints: what a program of `exec` could not say of the cell it failed in, on standard
 * error.
 */
#pragma once
#include "base/str.h"
#include "front/policy_words.h"
#include "session/session.h"
#include "tool/tool.h"

/* git looks for the repository above the workspace, where the cell ends. */
void hint_repository(const struct tool_result *result, const struct session *session,
		     const char *program);

/* A command that destroys much: what it does, and the next step. */
void hint_harm(const struct tool_result *result);

/*
 * Print, in WORDS, each thing that a program says in MESSAGES (the end of its output) that it could
 * not write or reach. A network that RESULT tells of already is left out.
 */
void hint_messages(const struct tool_result *result, const struct session *session,
		   const struct policy_words *words, struct str messages);
