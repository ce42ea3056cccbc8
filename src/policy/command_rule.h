/*
 * command_rule: one form of a command that may run: a program, its subcommand, exactly
 * the options listed, operands by kind. Made from JSON (docs/policy.md, "Commands"),
 * matched against plain argument vectors. A rule says what is asked for, not what that
 * does: a program that runs code (`runs_code`) makes any rule advice, and the cell alone
 * contains.
 */
#pragma once
#include "base/err.h"
#include "base/memory.h"
#include "base/text/shell.h"
#include "base/value.h"
#include "policy/command.h"

#include <stdbool.h>
#include <stddef.h>

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

struct commands;
struct command_code;

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

/*
 * Make RULE of OBJECT, which fits the key table. Its memory is of ARENA, and OBJECT must
 * live as long. ERR names what is wrong below POINTER.
 */
bool command_rule_make(struct command_rule *rule, const struct value *object,
		       struct arena *arena, const char *pointer, struct err *err);

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

/* Fill MATCH (`paths` given); true when ARGV (NULL-ended) is of the form. */
bool command_rule_match(const struct command_rule *rule, const char *const *argv,
			struct command_match *match);

/*
 * Does RULE, one that denies or asks, hold for COMMAND? What it does not name may be
 * there: the program by any path, its subcommand behind any options, one of its options
 * (gathered, attached or abbreviated as programs take them), its operands in their order.
 * A word that only the shell knows fits every operand and is no option.
 */
bool command_rule_holds(const struct command_rule *rule,
			const struct shell_command *command);

/* Take the next of "a,b,c" off *REST; false when none is left. */
bool command_next_choice(struct str *rest, struct str *choice);

/* Is NAME one of the rule's programs? */
bool command_rule_is_of(const struct command_rule *rule, const char *name);

/*
 * A clause that says what is wrong with the word at which a match ended: "is no option of
 * it".
 */
const char *command_fit_clause(enum command_fit fit);
