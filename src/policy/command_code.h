/*
 * command_code: what of a program's words names code: a file that it runs or loads, a text that
 * it executes, a program that it starts. Such a word needs a word of its own in a rule
 * (`executes`, or `runs_code` for operands): no rule grants it along with others. The table is
 * command_code.def.
 *
 * A new row comes with the option in tests/gate/help/PROGRAM.txt, in words of our own,
 * and with rows in tests/unit/policy/command_judge_test.c.
 */
#pragma once
#include "base/buf.h"
#include "policy/commands.h"

#include <stdbool.h>

enum code_kind {
	/* an option behind the subcommand, or an operand: "NAME=", a word */
	CODE_EXECUTES,
	CODE_EXPRESSION, /* an option that stays one behind "--", too */
	CODE_GLOBAL,     /* an option before the subcommand */
	CODE_HARMLESS,   /* looks like one of the others, but names no code */
	CODE_OPERANDS,   /* the operands of the program */
	CODE_SCRIPT, /* an operand is a script, which can start programs or write files */
};

struct command_code {
	enum code_kind kind;
	const char *programs;   /* "python,python3" */
	const char *subcommand; /* "clone,fetch"; "": all */
	const char *name;
	const char *reason; /* a noun: "a configuration, which names code to load" */
};

/*
 * The row for the option WORD among those of RULE's program. WORD may be written out,
 * attached ("-cFILE", "--name=V"), behind other letters ("-fcFILE") or abbreviated
 * ("--na"). GLOBAL: WORD stands before the subcommand. NULL: WORD names no code.
 */
const struct command_code *command_code_option(const struct command_rule *rule,
					       const char *word, bool global);
/* Like command_code_option, for an operand of the kind `text`. */
const struct command_code *command_code_operand(const struct command_rule *rule,
						const char *word);
/* The row for all operands of RULE, when they name code; else NULL. */
const struct command_code *command_code_operands(const struct command_rule *rule);
/* Append the part of a rule that would grant CODE: `"-c" in "executes"`. */
void command_code_word(const struct command_code *code, struct buf *out);
