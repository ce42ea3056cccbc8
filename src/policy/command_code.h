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
	CODE_EXECUTES, /* an option behind the subcommand, or an operand: "NAME=", a word */
	CODE_EXPRESSION, /* an option that is one behind "--", too */
	CODE_GLOBAL,     /* an option before the subcommand */
	CODE_HARMLESS,   /* it looks like one of the others, and is none */
	CODE_OPERANDS,   /* the operands of the program */
	CODE_SCRIPT, /* an operand is a script, which can start programs or write files */
};

struct command_code {
	enum code_kind kind;
	const char *programs;   /* "python,python3" */
	const char *subcommand; /* "clone,fetch"; "": of every one */
	const char *name;
	const char *reason; /* a noun: "a configuration, which names code to load" */
};

/*
 * The row for WORD, an option, among those of RULE's program: written out, attached ("-cFILE",
 * "--name=V"), behind other letters ("-fcFILE") or abbreviated ("--na"). GLOBAL: it stands
 * before the subcommand. NULL: it names no code.
 */
const struct command_code *command_code_option(const struct command_rule *rule,
					       const char *word, bool global);
/* The same for an operand of the kind `text`. */
const struct command_code *command_code_operand(const struct command_rule *rule,
						const char *word);
/* The row that says that the operands of RULE name code; NULL: they do not. */
const struct command_code *command_code_operands(const struct command_rule *rule);
/* Append what a rule would have to say to grant CODE: `"-c" in "executes"`. */
void command_code_word(const struct command_code *code, struct buf *out);
