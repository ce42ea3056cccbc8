/*
 * exec_hints: prints on standard error why a program of `exec` failed in its cell, when
 * the program itself could not know.
 */
#pragma once
#include "base/str.h"
#include "front/setup.h"
#include "session/session.h"
#include "tool/tool.h"

/* For git: the repository may be above the workspace, outside the cell. */
void hint_repository(const struct tool_result *result, const struct session *session,
		     const char *program);

/* For a command that destroys much: its effect, and the next step. */
void hint_harm(const struct tool_result *result);

/*
 * Print a hint, with WORDS, for each file or host that the program could not write or
 * reach, as it says in MESSAGES (the end of its output). A network that RESULT mentions
 * already is left out.
 */
void hint_messages(const struct tool_result *result, const struct session *session,
		   const struct policy_words *words, struct str messages);
