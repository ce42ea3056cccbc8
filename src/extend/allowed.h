/*
 * allowed: the key `allowed-tools` in the front matter of a skill or command. It narrows the tools
 * of the agent for the turn that the skill or command begins, and never adds one. Its value is a
 * text, or a list of texts, with names apart by commas or blanks:
 *
 *	Read            the tool of this name, in the words of Claude Code or in ours
 *	mcp__docs       all tools of a server; so does mcp__docs__*
 *	Bash(git log:*) only commands that begin with these words; without :* only this command
 *
 * Several commands in one text must each fit. What stands in parentheses behind another tool is
 * not understood, and such an entry lets nothing in: a rule that was only half kept would allow
 * more than its author has written.
 */
#pragma once

#include "base/buf.h"
#include "base/value.h"
#include "tool/tool.h"

#include <stdbool.h>

struct allowed {
	struct value *names; /* a list of texts, one for each entry; NULL: nothing is narrowed */
};

/* Read the key in MATTER (or NULL). Call allowed_fini. */
void allowed_take(struct allowed *allowed, const struct value *matter);
void allowed_fini(struct allowed *allowed);

/* May TOOL be called with ARGUMENTS, as far as ALLOWED goes? */
bool allowed_has(const struct allowed *allowed, const struct tool *tool,
		 const struct value *arguments);

/* Append the entries for a sentence: "Read, Bash(git log:*)". */
void allowed_print(const struct allowed *allowed, struct buf *out);
