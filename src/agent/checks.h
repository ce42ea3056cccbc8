/*
 * checks: a turn checks its own work. After each answer whose calls changed files, a
 * quick syntax check of each file's language runs, and the model reads its findings
 * with the results. Before the turn may finish, every check that the role names is run
 * until all are green or CHECKS_ROUNDS_MAX rounds of repair were used. Every check runs
 * as a call does, with the policy's verdict, limits and events, and its outcome is an
 * EVENT_CHECK_ENDED.
 *
 * The calls of an answer report the files that they wrote. The checks go through
 * session_call, and EVENT_CHECK_ENDED holds what the model was told, so that resume is
 * replay. A language whose syntax is checked is one row of `languages` in checks.c;
 * it comes with docs/agents.md and tests/agent/syntax_of_many_languages.json.
 */
#pragma once

#include "agent/agent.h"

/*
 * May the role's checks run at all? ERR names the check and the reason why not. The
 * person learns this before any model is asked, because no model can repair it.
 */
bool checks_judge(const struct agent *agent, struct err *err);

/* A call of TOOL ended well: note the files that it changed for the syntax checks. */
void checks_note(struct turn *turn, const struct tool *tool,
		 const struct tool_result *result);

/* Check the syntax of the files that the calls of this answer changed. */
bool checks_syntax(struct agent *agent, struct turn *turn, struct err *err);

/*
 * The turn is over. If the model itself ended it and files were changed, all named checks
 * run. Red checks let the turn go on, and the model is told of them. After the last round
 * the turn ends with AGENT_CHECKS.
 */
bool checks_finish(struct agent *agent, struct turn *turn, struct err *err);

/* Append "Checks: build green, tests red." or nothing. */
void checks_tell(const struct turn *turn, struct buf *text);
/* Put each check's last state into DATA of EVENT_TURN_ENDED; nothing without checks. */
void checks_describe(const struct agent *agent, const struct turn *turn, struct value *data);
