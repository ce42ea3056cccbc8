/*
 * deny: the rules of `commands.deny` and `commands.ask` (commands.h), held against the
 * commands that can be seen in a text (command.h).
 *
 * A rule is a hint and no wall: a program that starts another one, or does the same thing
 * itself, passes it. tests/unit/policy/spellings holds commands that must be found, and
 * others that must not.
 */
#pragma once

#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"

#include <stdbool.h>

struct command_rule;
struct command_seen;
struct policy;

/*
 * Does RULE hold for SEEN in the workspace of POLICY? SEEN may have parts that RULE does
 * not name. The program may be given by any path, and the subcommand may stand behind any
 * options. SEEN needs one of RULE's options (gathered, attached or abbreviated as programs
 * accept them), or every one of a rule that is a text, all its operands in order, and its
 * harm. A word that only the shell knows fits every operand and is no option. RULE holds as
 * well for a program that starts that of SEEN (`sudo`, `env`, `xargs`).
 */
bool deny_rule_holds(const struct command_rule *rule, const struct command_seen *seen,
		     const struct policy *policy);

/*
 * Make RULE from TEXT: a program, its subcommand, and options that must all be there
 * ("git push --force"). RULE uses memory of ARENA. ERR names the error at POINTER.
 */
bool deny_rule_read(struct str text, struct command_rule *rule, struct arena *arena,
		    const char *pointer, struct err *err);

/* Does RULE hold for its programs whatever they are given? */
bool deny_rule_whole_program(const struct command_rule *rule);
