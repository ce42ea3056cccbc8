/*
 * deny: compares commands that were seen with the rules that deny or ask. A rule names
 * only parts of a command, so that it holds rather too often than too rarely.
 */

#include "policy/deny.h"

#include "base/memory.h"
#include "base/str.h"
#include "base/text/shell.h"
#include "policy/command.h"
#include "policy/commands.h"
#include "policy/policy.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool is_known(const struct shell_command *command, size_t at)
{
	return command->values[at].data != NULL;
}

static bool names_program(const struct command_rule *rule, struct str given)
{
	struct str rest = rule->programs, program;

	while (command_next_choice(&rest, &program)) {
		bool has_slash = memchr(program.data, '/', program.size) != NULL;

		if (str_equal(program, has_slash ? given : shell_words_program(given)))
			return true;
	}
	return false;
}

/*
 * The index of the word behind the subcommand; 0 when the subcommand is not there. A
 * word before the subcommand may be an option's value.
 */
static size_t behind_subcommand(const struct command_rule *rule,
				const struct shell_command *command)
{
	bool is_git = str_is(shell_words_program(shell_command_value(command, 0)), "git");
	size_t at = is_git ? shell_command_git(command) : 1;
	struct str rest = rule->subcommand, choices;
	bool may_be_value = false;

	if (rest.size == 0)
		return 1;
	while (str_next_word(&rest, &choices)) {
		for (;; at++) {
			struct str word;

			if (at >= command->count)
				return 0;
			word = shell_command_value(command, at);
			if (command_value_is_choice(choices, word))
				break;
			if (!str_starts(word, STR("-")) && !may_be_value)
				return 0;
			may_be_value =
				!may_be_value && !is_git && str_starts(word, STR("-"));
		}
		may_be_value = false;
		at++;
	}
	return at;
}

static bool value_holds(const struct command_value *value,
			const struct shell_command *command, size_t at, struct str text)
{
	return at >= command->count || !is_known(command, at) ||
	       value->kind == COMMAND_TEXT || value->kind == COMMAND_PATH ||
	       (value->kind == COMMAND_NUMBER && command_value_is_number(text)) ||
	       (value->kind == COMMAND_CHOICE &&
		command_value_is_choice(value->choices, text));
}

/*
 * Does WORD contain the option NAME? "-f" is among the letters of "-rf" and "-fdx", and
 * begins "-fFILE".
 */
static bool is_letter_of(struct str name, struct str word)
{
	if (name.size != 2 || word.size < 2 || word.data[0] != '-' || word.data[1] == '-')
		return false;
	for (size_t i = 1; i < word.size && isalnum((unsigned char)word.data[i]); i++) {
		if (word.data[i] == name.data[1])
			return true;
	}
	return false;
}

/* Is the word AT the OPTION, with the value that OPTION names? */
static bool option_holds(const struct command_option *option,
			 const struct shell_command *command, size_t at)
{
	enum { BEGINNING_MIN = sizeof("--x") - 1 };
	struct str word = shell_command_value(command, at), value;
	const char *equals = memchr(word.data, '=', word.size);
	struct str name = equals ? str_part(word, 0, (size_t)(equals - word.data)) : word;
	bool whole = str_equal(name, option->name);

	if (!whole && !(name.size >= BEGINNING_MIN && str_starts(option->name, name)) &&
	    !is_letter_of(option->name, word))
		return false;
	if (option->form == COMMAND_FLAG || option->value.kind == COMMAND_TEXT)
		return true;
	if (equals)
		value = str_part(word, name.size + 1, word.size);
	else if (whole && at + 1 < command->count && option->form == COMMAND_VALUE)
		value = shell_command_value(command, ++at);
	else
		value = str_part(word, 2, word.size);
	return value_holds(&option->value, command, at, value);
}

/* Is OPTION among the words from FROM to END, before any "--"? */
static bool option_is_there(const struct command_option *option,
			    const struct shell_command *command, size_t from, size_t end)
{
	for (size_t i = from; i < end; i++) {
		if (str_is(shell_command_value(command, i), "--"))
			break;
		if (option_holds(option, command, i))
			return true;
	}
	return false;
}

static bool any_option_holds(const struct command_options *options,
			     const struct shell_command *command, size_t from, size_t end)
{
	for (size_t i = 0; i < options->count; i++) {
		if (option_is_there(&options->items[i], command, from, end))
			return true;
	}
	return options->count == 0;
}

static bool operands_hold(const struct command_rule *rule,
			  const struct shell_command *command, size_t at)
{
	for (size_t i = 0; i < rule->operand_count; i++) {
		const struct command_operand *operand = &rule->operands[i];

		if (operand->value.kind == COMMAND_DASHES ||
		    operand->repeat == COMMAND_MAYBE || operand->repeat == COMMAND_ANY)
			continue;
		while (at < command->count &&
		       (str_starts(shell_command_value(command, at), STR("-")) ||
			!value_holds(&operand->value, command, at,
				     shell_command_value(command, at))))
			at++;
		if (at++ >= command->count)
			return false;
	}
	return true;
}

/*
 * Options of which a program has two spellings. A rule that was written as a text with one
 * of them holds for the other as well.
 */
static const struct same {
	const char *programs, *subcommands; /* "": any */
	const char *names;                  /* separated by blanks */
} sames[] = {
	{"git", "push rm mv branch checkout switch clean tag fetch add", "--force -f"},
	{"git", "push branch", "--delete -d"},
	{"git", "commit", "--no-verify -n"},
	{"git", "commit", "--all -a"},
	{"git", "add", "--all -A"},
	{"rm cp chmod chown chgrp grep ls", "", "--recursive -R"},
	{"rm cp grep", "", "--recursive -r"},
	{"rm", "", "-r -R"},
	{"rm cp mv ln", "", "--force -f"},
	{"curl", "", "--insecure -k"},
	{"npm pnpm", "", "--global -g"},
	{"docker podman", "", "--force -f"},
	{"docker podman", "", "--volume -v"},
};

/* Is the option NAME in the command, in any of the spellings of RULE's program? */
static bool is_spelled(const struct command_rule *rule, struct str name,
		       const struct shell_command *command)
{
	if (option_is_there(&(const struct command_option){.name = name}, command, 1,
			    command->count))
		return true;
	for (size_t i = 0; i < sizeof(sames) / sizeof(sames[0]); i++) {
		struct str rest = str_of(sames[i].names), other;

		if (!str_among(sames[i].programs, rule->programs) ||
		    !str_among(sames[i].names, name) ||
		    (sames[i].subcommands[0] != '\0' &&
		     !str_among(sames[i].subcommands, rule->subcommand)))
			continue;
		while (str_next_word(&rest, &other)) {
			if (option_is_there(&(const struct command_option){.name = other},
					    command, 1, command->count))
				return true;
		}
	}
	return false;
}

/* Are all letters of NAME ("-rf") options of the command? */
static bool letters_hold(const struct command_rule *rule, struct str name,
			 const struct shell_command *command)
{
	if (name.size < 3 || name.data[1] == '-')
		return false;
	for (size_t i = 1; i < name.size; i++) {
		const char letter[] = {'-', name.data[i]};

		if (!isalnum((unsigned char)name.data[i]) ||
		    !is_spelled(rule, (struct str){letter, sizeof(letter)}, command))
			return false;
	}
	return true;
}

/* Are all options of RULE, which was written as a text, in COMMAND? */
static bool every_option_holds(const struct command_rule *rule,
			       const struct shell_command *command)
{
	for (size_t i = 0; i < rule->options.count; i++) {
		const struct str name = rule->options.items[i].name;

		if (!is_spelled(rule, name, command) && !letters_hold(rule, name, command))
			return false;
	}
	return true;
}

static bool holds(const struct command_rule *rule, const struct command_seen *seen,
		  const struct policy *policy)
{
	const struct shell_command *command = seen->command;
	size_t behind;

	if (!names_program(rule, shell_command_value(command, 0)))
		return false;
	if (rule->harm != NULL && !command_harm_named(rule->harm)->fits(seen, policy))
		return false;
	behind = behind_subcommand(rule, command);
	if (behind == 0)
		return false;
	if (rule->every)
		return every_option_holds(rule, command);
	return any_option_holds(&rule->options, command, behind, command->count) &&
	       any_option_holds(&rule->global, command, 1,
				rule->subcommand.size ? behind : command->count) &&
	       operands_hold(rule, command, behind);
}

/*
 * Does RULE hold for the program that starts that of SEEN, DISTANCE words before it? Options
 * behind the started program are not those of the starter.
 */
static bool holds_for_starter(const struct command_rule *rule,
			      const struct command_seen *seen, size_t distance,
			      const struct policy *policy)
{
	struct shell_command starter = *seen->command;
	struct command_seen outer = *seen;

	starter.words -= distance;
	starter.values -= distance;
	starter.texts -= distance;
	starter.count = rule->subcommand.size == 0 && rule->operand_count == 0
				? distance
				: starter.count + distance;
	outer.command = &starter;
	return holds(rule, &outer, policy);
}

bool deny_rule_holds(const struct command_rule *rule, const struct command_seen *seen,
		     const struct policy *policy)
{
	const struct shell_command *command = seen->command;

	for (size_t i = 0; i < command->starter_count; i++) {
		if (holds_for_starter(rule, seen, command->starters[i], policy))
			return true;
	}
	return holds(rule, seen, policy);
}

/* Reads rules that are written as texts: "git push --force". */

bool deny_rule_read(struct str text, struct command_rule *rule, struct arena *arena,
		    const char *pointer, struct err *err)
{
	struct str rest = text, word;
	bool options = false;
	size_t words = 0;
	char *kept = arena_alloc(arena, text.size + 1);

	*rule = (struct command_rule){.every = true};
	memcpy(kept, text.data ? text.data : "", text.size);
	kept[text.size] = '\0';
	rest = (struct str){kept, text.size};
	rule->name = kept;
	rule->options.items =
		arena_alloc(arena, (text.size / 2 + 1) * sizeof(*rule->options.items));
	for (; str_next_word(&rest, &word); words++) {
		if (strcspn(word.data, "'\"$`\\|&;<>(){}*?[]#~") < word.size)
			return err_set(err, EINVAL,
				       "%s: a rule that is a text names a program, its "
				       "subcommand and options by their plain words; \"%.*s\" "
				       "is none: write an object (docs/policy.md)",
				       pointer, (int)(word.size < 64 ? word.size : 64),
				       word.data);
		if (words == 0) {
			rule->programs = word;
			continue;
		}
		if (str_starts(word, STR("-"))) {
			options = true;
			rule->options.items[rule->options.count++].name = word;
			continue;
		}
		if (options)
			return err_set(err, EINVAL,
				       "%s: in a rule that is a text the subcommand stands "
				       "before the options: \"%.*s\" stands behind; write an "
				       "object for a value or an operand",
				       pointer, (int)(word.size < 64 ? word.size : 64),
				       word.data);
		if (rule->subcommand.size == 0)
			rule->subcommand = word;
		rule->subcommand.size =
			(size_t)(word.data + word.size - rule->subcommand.data);
	}
	if (words > 0 && rule->programs.data[0] != '-')
		return true;
	return err_set(err, EINVAL,
		       "%s: a rule that is a text begins with a program: \"git push --force\"",
		       pointer);
}

bool deny_rule_whole_program(const struct command_rule *rule)
{
	return rule->subcommand.size == 0 && rule->options.count == 0 &&
	       rule->global.count == 0 && rule->operand_count == 0 && rule->harm == NULL;
}
