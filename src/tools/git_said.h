/*
 * git_said: git's configuration is protected (guard/audit.h), and git tells so in words
 * that help nobody. This finds them in a command's output and says which line a person can
 * run to have recorded what was not. It also says where the name of a commit comes from, when
 * git found none.
 */
#pragma once
#include "base/str.h"
#include "tool/tool.h"

/* COMMAND has run and printed OUTPUT: add a denial to RESULT when git says so in there. */
void git_said(struct str command, struct str output, struct tool_result *result);
