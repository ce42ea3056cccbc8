/*
 * commands: what an agent may run (the policy's key `commands`): rules of shipped presets
 * (presets/) and of the configuration that let run, where only listed commands do, and
 * rules that deny or have a person asked, everywhere. It decides whether something runs,
 * not what that can do once it does: that is the cell's.
 *
 * A listed command runs without a shell. command.c makes argument vectors of its text,
 * this module finds the rule of each, and the plan of the verdict travels in the frame
 * of the call. In the worker, tools/bash.c hands the plan to process/program.h, where
 * a copy of the worker, behind the walls of programs and without the worker's
 * descriptors, starts the programs and waits for them as a shell would. No text of the
 * model reaches a shell.
 *
 * A rule of a preset has examples that fit and examples that do not. A rule that puts
 * words in has a case in tests/tools/commands.case.
 */
#pragma once

#include "base/err.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/text/shell.h"
#include "base/value.h"
#include "policy/command.h"

#include <stdbool.h>
#include <stddef.h>

struct command_code;
struct commands;

/*
 * One form of a command that may run: a program, its subcommand, exactly the options
 * listed, operands by kind. Made from JSON (docs/policy.md, "Commands"), matched against
 * plain argument vectors. A rule says what is asked for, not what that does: a program
 * that runs code (`runs_code`) makes any rule advice, and the cell alone contains.
 */

enum command_kind {
	COMMAND_TEXT = 1,
	COMMAND_NUMBER, /* digits */
	COMMAND_PATH,   /* judged like a path that a tool reads */
	COMMAND_CHOICE, /* one of `choices` */
	COMMAND_DASHES, /* "--" itself, among operands */
};

struct command_value {
	enum command_kind kind;
	struct str choices; /* "a,b,c" */
};

enum command_form {
	COMMAND_FLAG,  /* -x, --name */
	COMMAND_VALUE, /* -x V, --name V, --name=V; -xV where V is a number or choice */
	COMMAND_OPTIONAL, /* -x, --name, --name=V; -xV likewise */
	COMMAND_DIGITS,   /* -N: a dash and a number, as of head and git log */
};

struct command_option {
	struct str name; /* with its dashes */
	enum command_form form;
	struct command_value value;
};

enum command_repeat { COMMAND_ONCE, COMMAND_MAYBE, COMMAND_ANY, COMMAND_SOME };

struct command_operand {
	struct command_value value;
	enum command_repeat repeat;
};

struct command_options {
	struct command_option *items;
	size_t count;
};

/* Words that are put in, or that operands begin with. */
struct command_insert {
	const char **items;
	size_t count;
};

struct command_rule {
	const char *name;      /* "git log": what it is called in sentences */
	const char *preset;    /* NULL: a rule of the configuration */
	struct str programs;   /* "phpunit,vendor/bin/phpunit" */
	struct str subcommand; /* words between blanks, each "a,b"; may be empty */
	struct command_options global, options; /* before and behind the subcommand */
	/* Words that name code (command_code.h): options at either place, and beginnings of operands. */
	struct command_options executes;
	struct command_insert executes_operands;
	struct command_operand *operands;
	size_t operand_count;
	struct command_insert insert_global, insert;
	bool runs_code;
	const struct value *match; /* examples; the first one is shown */
};

/* How far a vector came, from the nearest to the farthest miss to a match. */
enum command_fit {
	FIT_OTHER_PROGRAM,
	FIT_OTHER_SUBCOMMAND,
	FIT_NO_SUCH_OPTION,
	FIT_EXECUTES, /* a word that names code, which needs a word of its own (command_code.h) */
	FIT_OPTION_NEEDS_VALUE,
	FIT_WRONG_VALUE,
	FIT_NO_OPERAND,
	FIT_WRONG_OPERAND,
	FIT_OPERAND_MISSING,
	FIT_RUNS_CODE, /* it fits, but forms that run code are left out (commands.h) */
	FIT_MATCH,
};

/* A comparison, and afterwards where it stands. */
struct command_match {
	enum command_fit fit;
	size_t word;        /* where it does not fit */
	size_t subcommand;  /* the first word behind the subcommand */
	const char **paths; /* operands and values of that kind; room for argc; or NULL */
	size_t path_count;
	const struct command_code *code; /* of FIT_EXECUTES */
	const struct commands *list;     /* that was searched (commands_find) */
};

/* Take the next of "a,b,c" off *REST; false when none is left. */
bool commands_next_choice(struct str *rest, struct str *choice);

/*
 * A clause that says what is wrong with the word at which a match ended: "is no option of
 * it".
 */
const char *command_fit_clause(enum command_fit fit);

struct command_rules {
	struct command_rule *items;
	size_t count;
};

struct commands {
	struct command_rules allow; /* asked in this order; a "box" runs without them */
	struct command_rules deny, ask;
	bool box;       /* any command runs that no rule denies */
	bool runs_code; /* forms that run code of the project are among what may run */
	struct arena arena;
	struct value *presets, *own; /* what the rules were made of */
	struct value *source;        /* what the list was made of */
	struct commands *within;     /* a command must fit this list, too; NULL: none */
};

/*
 * Is VALUE, which fits the key table, sound: do its presets exist, can its rules be read,
 * and do their examples hold? ERR names the place below POINTER and what would mend it.
 */
bool commands_check(const struct value *value, const char *pointer, struct err *err);

/* The list that VALUE (checked) stands for; NULL: any command may run, without a question. */
struct commands *commands_new(const struct value *value);
void commands_free(struct commands *commands);

/*
 * A new list of what fits A and B (and what these are within); NULL, which stands for any
 * command, when both are.
 */
struct commands *commands_both(const struct commands *a, const struct commands *b);
/*
 * The same of COMMANDS and the lists it is within, all of which must have a rule that
 * fits; those that are a box have none. NULL, and match->list is NULL: every one is.
 */
const struct command_rule *commands_judge(const struct commands *commands,
					  const char *const *argv,
					  struct command_match *match);

/*
 * A command that RULE would allow in place of ARGV: ARGV without the words that do not
 * fit, else the rule's first example. Appended as one would type it; nothing when there
 * is neither.
 */
void commands_nearest(const struct command_rule *rule, const char *const *argv,
		      struct buf *out);

/* Append ARGV as one would type it: quotes where they are needed. */
void commands_print(const char *const *argv, struct buf *out);

/* Presets/, built in. Ends with a row whose name is NULL. */

extern const struct embedded_file policy_presets[];
