/*
 * commands: what an agent may run (the policy's key `commands`): rules of shipped presets
 * (presets/) and of the configuration that let run, where only listed commands do, and
 * rules that deny or have a person asked, everywhere. It decides whether something runs,
 * not what that can do once it does: that is the cell's.
 */
#pragma once
#include "base/err.h"
#include "base/value.h"
#include "policy/command_rule.h"

#include <stdbool.h>
#include <stddef.h>

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

/* Does COMMANDS, or a list that it is within, run listed commands only? */
bool commands_listed(const struct commands *commands);

/*
 * The first rule of COMMANDS, and the lists that these are within, that holds for
 * COMMAND: of those that deny (DENIES), or of those that have a person asked; NULL: none.
 */
const struct command_rule *commands_holding(const struct commands *commands, bool denies,
					    const struct shell_command *command);
/* Has each list a rule of the configuration that lets COMMAND run, word by word? */
bool commands_named(const struct commands *commands, const struct shell_command *command);

/*
 * The rule of COMMANDS alone for ARGV: the first that fits (match->fit is FIT_MATCH),
 * else the nearest; NULL when no rule is of that program. MATCH has room for paths or
 * not, as for command_rule_match.
 */
const struct command_rule *commands_find(const struct commands *commands,
					 const char *const *argv,
					 struct command_match *match);
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
