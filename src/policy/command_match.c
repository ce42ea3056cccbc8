/*
 * command_match: is an argument vector of a rule's form? Strict where programs differ: an
 * option's value that stands by itself never begins with a dash, nothing is abbreviated, and
 * letters are not gathered behind one dash unless the rule lists them so.
 */
#include "policy/command_rule.h"

#include <ctype.h>
#include <string.h>

enum { NUMBER_DIGITS_MAX = 18 };

/* One comparison on its way. */
struct walk {
	const struct command_rule *rule;
	const char *const *argv;
	struct command_match *match;
	size_t at;      /* the next word */
	size_t operand; /* the next one of the rule */
	bool taken;     /* at least once */
	bool dashes;    /* "--" has been there */
};

static bool miss(struct walk *walk, enum command_fit fit, size_t word)
{
	walk->match->fit = fit;
	walk->match->word = word;
	return false;
}

static bool is_number(const char *text)
{
	size_t size = strspn(text, "0123456789");

	return size > 0 && size <= NUMBER_DIGITS_MAX && text[size] == '\0';
}

static bool is_choice(struct str choices, struct str text)
{
	struct str choice;

	while (command_next_choice(&choices, &choice)) {
		if (str_equal(choice, text))
			return true;
	}
	return false;
}

static bool value_fits(struct walk *walk, const struct command_value *value, const char *text)
{
	struct command_match *match = walk->match;

	switch (value->kind) {
	case COMMAND_TEXT:
		return true;
	case COMMAND_NUMBER:
		return is_number(text);
	case COMMAND_PATH:
		if (text[0] == '\0' || strcmp(text, "-") == 0)
			return false;
		if (match->paths != NULL)
			match->paths[match->path_count++] = text;
		return true;
	case COMMAND_CHOICE:
		return is_choice(value->choices, str_of(text));
	case COMMAND_DASHES:
		break;
	}
	return false;
}

/* What of WORD is the value of OPTION, attached to it: "" for none; NULL: another option. */
static const char *attached(const struct command_option *option, const char *word)
{
	/* "-overlay" may be an option of its own and not "-o" with "verlay" */
	bool is_letter = option->name.size == 2 && (option->value.kind == COMMAND_NUMBER ||
						    option->value.kind == COMMAND_CHOICE);
	const char *rest = word + option->name.size;

	if (strncmp(word, option->name.data, option->name.size) != 0)
		return NULL;
	if (*rest == '\0')
		return rest;
	if (option->form == COMMAND_FLAG)
		return NULL;
	return is_letter || (option->name.size > 2 && *rest == '=') ? rest : NULL;
}

/* The option at walk->at, out of OPTIONS. */
static bool take_option(struct walk *walk, const struct command_options *options)
{
	const char *word = walk->argv[walk->at];

	for (size_t i = 0; i < options->count; i++) {
		const struct command_option *option = &options->items[i];
		const char *value = attached(option, word);

		if (value == NULL)
			continue;
		walk->at++;
		if (*value == '\0' && option->form != COMMAND_VALUE)
			return true;
		if (*value == '\0') {
			value = walk->argv[walk->at];
			if (value == NULL || value[0] == '-')
				return miss(walk, FIT_OPTION_NEEDS_VALUE, walk->at - 1);
			walk->at++;
		} else if (option->name.size > 2) {
			value++; /* the "=" */
		}
		return value_fits(walk, &option->value, value) ||
		       miss(walk, FIT_WRONG_VALUE, walk->at - 1);
	}
	return miss(walk, FIT_NO_SUCH_OPTION, walk->at);
}

/* May the rule's operand be passed over where the walk stands? */
static bool can_leave(const struct walk *walk)
{
	const struct command_operand *operand = &walk->rule->operands[walk->operand];

	return operand->repeat == COMMAND_MAYBE || operand->repeat == COMMAND_ANY ||
	       (operand->repeat == COMMAND_SOME && walk->taken);
}

static void leave(struct walk *walk)
{
	walk->operand++;
	walk->taken = false;
}

static bool take_operand(struct walk *walk)
{
	const struct command_rule *rule = walk->rule;
	const char *word = walk->argv[walk->at++];

	while (walk->operand < rule->operand_count) {
		const struct command_operand *operand = &rule->operands[walk->operand];

		if (operand->value.kind == COMMAND_DASHES)
			break;
		if (value_fits(walk, &operand->value, word)) {
			walk->taken = true;
			if (operand->repeat == COMMAND_ONCE ||
			    operand->repeat == COMMAND_MAYBE)
				leave(walk);
			return true;
		}
		if (!can_leave(walk))
			return miss(walk, FIT_WRONG_OPERAND, walk->at - 1);
		leave(walk);
	}
	return miss(walk, FIT_NO_OPERAND, walk->at - 1);
}

/* All operands up to END have been given or may be missing. */
static bool operands_done(struct walk *walk, bool to_dashes)
{
	const struct command_rule *rule = walk->rule;

	while (walk->operand < rule->operand_count) {
		if (rule->operands[walk->operand].value.kind == COMMAND_DASHES)
			return true;
		if (!can_leave(walk))
			return miss(walk, FIT_OPERAND_MISSING, walk->at);
		leave(walk);
	}
	return !to_dashes || miss(walk, FIT_NO_OPERAND, walk->at);
}

static bool take_dashes(struct walk *walk)
{
	if (!operands_done(walk, true))
		return false;
	walk->at++;
	leave(walk);
	walk->dashes = true;
	return true;
}

static bool take_global(struct walk *walk, struct str subcommand)
{
	struct str first;

	if (!str_next_word(&subcommand, &first))
		return true;
	while (walk->argv[walk->at] != NULL && walk->argv[walk->at][0] == '-' &&
	       !is_choice(first, str_of(walk->argv[walk->at]))) {
		/* An unknown one before anything that tells the rules of a program apart. */
		if (!take_option(walk, &walk->rule->global)) {
			walk->match->fit = FIT_OTHER_SUBCOMMAND;
			return false;
		}
	}
	return true;
}

static bool take_subcommand(struct walk *walk, struct str subcommand)
{
	struct str word;

	while (str_next_word(&subcommand, &word)) {
		const char *given = walk->argv[walk->at];

		if (given == NULL || !is_choice(word, str_of(given)))
			return miss(walk, FIT_OTHER_SUBCOMMAND, walk->at);
		walk->at++;
	}
	walk->match->subcommand = walk->at;
	return true;
}

bool command_rule_match(const struct command_rule *rule, const char *const *argv,
			struct command_match *match)
{
	struct walk walk = {.rule = rule, .argv = argv, .match = match, .at = 1};

	match->path_count = 0;
	if (!command_rule_is_of(rule, argv[0]))
		return miss(&walk, FIT_OTHER_PROGRAM, 0);
	if (!take_global(&walk, rule->subcommand) ||
	    !take_subcommand(&walk, rule->subcommand))
		return false;
	while (argv[walk.at] != NULL) {
		const char *word = argv[walk.at];
		bool fits;

		if (walk.dashes || word[0] != '-' || word[1] == '\0')
			fits = take_operand(&walk);
		else if (strcmp(word, "--") == 0)
			fits = take_dashes(&walk);
		else
			fits = take_option(&walk, &rule->options);
		if (!fits)
			return false;
	}
	if (!operands_done(&walk, false))
		return false;
	match->fit = FIT_MATCH;
	return true;
}

const char *command_fit_clause(enum command_fit fit)
{
	static const char *const clauses[] = {
		[FIT_OTHER_PROGRAM] = "is another program",
		[FIT_OTHER_SUBCOMMAND] = "is not what follows the program",
		[FIT_NO_SUCH_OPTION] = "is no option of it",
		[FIT_OPTION_NEEDS_VALUE] = "needs a value",
		[FIT_WRONG_VALUE] = "is no such value",
		[FIT_NO_OPERAND] = "is an argument too many",
		[FIT_WRONG_OPERAND] = "is not the kind of argument that stands there",
		[FIT_OPERAND_MISSING] = "lacks an argument",
		[FIT_RUNS_CODE] = "runs code of the project, which the policy leaves out",
		[FIT_MATCH] = "fits",
	};

	return clauses[fit];
}
