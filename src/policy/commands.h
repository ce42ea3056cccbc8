/*
 * commands: what an agent may run (the policy's key `commands`). Rules come from shipped
 * presets (presets/) and from the configuration. Some rules list the commands that may run,
 * and then no other command does. Other rules deny a command, or have a person asked
 * about it, whether commands are listed or not. This module decides whether a command runs.
 * The cell limits what the command can do when it runs.
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
#include "base/value.h"
#include "policy/command.h"

#include <stdbool.h>
#include <stddef.h>

struct commands;
struct policy;
struct policy_request;
struct verdict;

/*
 * One form of a command that may run: a program, its subcommand, exactly the listed
 * options, operands by kind. It is made from JSON (docs/policy.md, "Commands") and
 * matched against plain argument vectors. A rule limits the words of a command, not its
 * effects: with a program that runs code (`runs_code`) any rule is only advice, and the
 * cell alone contains it.
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
	COMMAND_FLAG, /* -x, --name */
	/* -x V, --name V, --name=V; also -xV when V is a number or choice */
	COMMAND_VALUE,
	COMMAND_OPTIONAL, /* -x, --name, --name=V; also -xV as above */
	COMMAND_DIGITS,   /* -N: a dash and a number, as in head and git log */
};

struct command_option {
	struct str name; /* including its dashes */
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

/* Words that are inserted, or with which operands begin. */
struct command_insert {
	const char **items;
	size_t count;
};

struct command_rule {
	const char *name;      /* the name in sentences: "git log" */
	const char *preset;    /* NULL: a rule of the configuration */
	struct str programs;   /* "phpunit,vendor/bin/phpunit" */
	struct str subcommand; /* words separated by blanks, each "a,b"; may be empty */
	struct command_options global, options; /* before and behind the subcommand */
	/*
	 * Words that name code (command.h): options at both places, and beginnings
	 * of operands.
	 */
	struct command_options executes;
	struct command_insert executes_operands;
	struct command_operand *operands;
	size_t operand_count;
	struct command_insert insert_global, insert;
	bool runs_code;
	bool of_machine;  /* the administrator's (ceiling.h) */
	bool every;       /* it was written as a text: all its options must be there */
	const char *harm; /* the row of the table of harm that must fit, too; or NULL */
	const struct value *match; /* examples; the first one is shown */
};

/* Is TEXT one of CHOICES ("a,b")? Is it a number, which means digits only? */
bool command_value_is_choice(struct str choices, struct str text);
bool command_value_is_number(struct str text);

/* How far a vector got, from the farthest miss to a match. */
enum command_fit {
	FIT_OTHER_PROGRAM,
	FIT_OTHER_SUBCOMMAND,
	FIT_NO_SUCH_OPTION,
	/* a word names code, which a rule must grant explicitly (command.h) */
	FIT_EXECUTES,
	FIT_OPTION_NEEDS_VALUE,
	FIT_WRONG_VALUE,
	FIT_NO_OPERAND,
	FIT_WRONG_OPERAND,
	FIT_OPERAND_MISSING,
	FIT_RUNS_CODE, /* the form fits, but the policy leaves out forms that run code */
	FIT_MATCH,
};

/* A comparison and its result. */
struct command_match {
	enum command_fit fit;
	size_t word;       /* index of the word that does not fit */
	size_t subcommand; /* index of the first word behind the subcommand */
	/* operands and values that are paths; with room for argc; or NULL */
	const char **paths;
	size_t path_count;
	const struct command_code *code; /* with FIT_EXECUTES */
	const struct commands *list;     /* the list that was searched (commands_find) */
};

/* A clause about the word at which a match failed: "is no option of it". */
const char *command_fit_clause(enum command_fit fit);

struct command_rules {
	struct command_rule *items;
	size_t count;
};

struct commands {
	struct command_rules allow; /* checked in this order; a "box" needs no `allow` */
	struct command_rules deny, ask;
	bool box;         /* any command runs unless a rule denies it */
	bool asks_unread; /* a person is asked about what cannot be read */
	bool runs_code;   /* forms that run code of the project may run */
	struct arena arena;
	struct value *presets, *own; /* the sources of the rules */
	struct value *source;        /* the value from which the list was made */
	struct commands *within;     /* a command must also fit this list; NULL: none */
};

/*
 * Is VALUE, which fits the key table, sound: its presets exist, its rules can be read,
 * and their examples hold? ERR names the place below POINTER and the remedy.
 */
bool commands_check(const struct value *value, const char *pointer, struct err *err);

/* The member of a list that is the administrator's. No configuration has it. */
#define COMMANDS_OF_MACHINE "of_machine"

/*
 * The list that VALUE (checked) describes; NULL: any command may run without a
 * question.
 */
struct commands *commands_new(const struct value *value);
void commands_free(struct commands *commands);

/*
 * A new list of the commands that fit A and B (and the lists these are within). NULL,
 * which allows any command, when both are NULL.
 */
struct commands *commands_both(const struct commands *a, const struct commands *b);
/*
 * Does COMMANDS, or a list that it is within, run only listed commands, without a shell?
 * NULL runs any.
 */
bool commands_listed(const struct commands *commands);

/*
 * The verdict of POLICY only on the command of REQUEST: for the front's own tool, which no
 * policy names.
 */
void commands_decide(const struct policy *policy, const struct policy_request *request,
		     struct verdict *verdict);

/*
 * Find the rule for ARGV in COMMANDS and the lists it is within, as commands_find does
 * in one. Every list must have a rule that fits, except a box, which has none. NULL
 * with match->list NULL: every list is a box.
 */
const struct command_rule *commands_judge(const struct commands *commands,
					  const char *const *argv,
					  struct command_match *match);

/*
 * Append a command that RULE would allow in place of ARGV, as a person would type it:
 * ARGV without the words that do not fit, else the rule's first example. Appends
 * nothing when there is neither.
 */
void commands_nearest(const struct command_rule *rule, const char *const *argv,
		      struct buf *out);

/* Append ARGV as a person would type it, with quotes where needed. */
void commands_print(const char *const *argv, struct buf *out);

/* The built-in files of presets/. Ends with a row whose name is NULL. */

extern const struct embedded_file policy_presets[];
