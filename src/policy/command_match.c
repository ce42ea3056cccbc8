/*
 * command_match: is an argument vector of a rule's form? Strict where programs differ: an
 * option's value that stands by itself never begins with a dash, nothing is abbreviated, and
 * letters are not gathered behind one dash unless the rule lists them so.
 */
#include "policy/command_rule.h"

#include "policy/command_code.h"

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

/* The value that WORD attaches to OPTION: "" for none; NULL: another option. */
static const char *attached(const struct command_option *option, const char *word)
{
	/* "-overlay" may be an option of its own and not "-o" with "verlay" */
	bool is_letter = option->name.size == 2 && (option->value.kind == COMMAND_NUMBER ||
						    option->value.kind == COMMAND_CHOICE);
	const char *rest = word + option->name.size;

	if (option->form == COMMAND_DIGITS)
		return is_number(word + 1) ? word + strlen(word) : NULL;
	if (strncmp(word, option->name.data, option->name.size) != 0)
		return NULL;
	if (*rest == '\0')
		return rest;
	if (option->form == COMMAND_FLAG)
		return NULL;
	return is_letter || (option->name.size > 2 && *rest == '=') ? rest : NULL;
}

/* The word AT names what CODE says, and the rule has no word for that. */
static bool miss_code(struct walk *walk, const struct command_code *code, size_t at)
{
	walk->match->code = code;
	return miss(walk, FIT_EXECUTES, at);
}

static bool grants_operand(const struct command_rule *rule, const char *word)
{
	for (size_t i = 0; i < rule->executes_operands.count; i++) {
		struct str granted = str_of(rule->executes_operands.items[i]);

		if (str_is(granted, word) ||
		    (str_ends(granted, STR("=")) && str_starts(str_of(word), granted)))
			return true;
	}
	return false;
}

/* Does WORD, which stands for an operand of any text, name code? */
static const struct command_code *code_in(const struct command_rule *rule,
					  const struct command_value *value,
					  const char *word)
{
	if (value->kind != COMMAND_TEXT || grants_operand(rule, word))
		return NULL;
	return command_code_operand(rule, word);
}

/* A script that is the value of an option, as `sed -e` takes it. */
static bool check_script(struct walk *walk, const struct command_option *option,
			 const char *text)
{
	const struct command_code *code = NULL;

	if (str_among("-e --expression --source", option->name))
		code = code_in(walk->rule, &option->value, text);
	return code == NULL || code->kind != CODE_SCRIPT ||
	       miss_code(walk, code, walk->at - 1);
}

/* The option at walk->at, out of OPTIONS; *FOUND: it is one of them. */
static bool take_listed(struct walk *walk, const struct command_options *options, bool *found)
{
	const char *word = walk->argv[walk->at];

	for (size_t i = 0; i < options->count; i++) {
		const struct command_option *option = &options->items[i];
		const char *value = attached(option, word);

		if (value == NULL)
			continue;
		*found = true;
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
		if (!value_fits(walk, &option->value, value))
			return miss(walk, FIT_WRONG_VALUE, walk->at - 1);
		return check_script(walk, option, value);
	}
	return false;
}

/* The option at walk->at: of OPTIONS, or one that names code and is granted as such. */
static bool take_option(struct walk *walk, const struct command_options *options)
{
	const struct command_rule *rule = walk->rule;
	const struct command_code *code;
	bool found = false, fits = take_listed(walk, options, &found);

	if (!found)
		fits = take_listed(walk, &rule->executes, &found);
	if (found)
		return fits;
	code = command_code_option(rule, walk->argv[walk->at], options == &rule->global);
	return code != NULL ? miss_code(walk, code, walk->at)
			    : miss(walk, FIT_NO_SUCH_OPTION, walk->at);
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
			const struct command_code *code =
				code_in(rule, &operand->value, word);

			if (code != NULL)
				return miss_code(walk, code, walk->at - 1);
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
			if (walk->match->fit != FIT_EXECUTES)
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
		[FIT_EXECUTES] = "names code, which a rule grants by a word of its own only",
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

/* Rules that deny or ask: they name too little rather than too much. */

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

/* The word behind the subcommand; 0: it is not there. Another word may be an option's value. */
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
			if (is_choice(choices, word))
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
	auto_free char *copy = memory_copy_str(text);

	return at >= command->count || !is_known(command, at) ||
	       value->kind == COMMAND_TEXT || value->kind == COMMAND_PATH ||
	       (value->kind == COMMAND_NUMBER && is_number(copy)) ||
	       (value->kind == COMMAND_CHOICE && is_choice(value->choices, text));
}

/* "-f" is among the letters of "-rf" and "-fdx", and begins "-fFILE". */
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

/* Is the word AT the OPTION, with the value that it names? */
static bool option_holds(const struct command_option *option,
			 const struct shell_command *command, size_t at)
{
	enum { BEGINNING_MIN = sizeof("--xx") - 1 };
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

static bool any_option_holds(const struct command_options *options,
			     const struct shell_command *command, size_t from, size_t end)
{
	for (size_t i = from; i < end; i++) {
		if (str_is(command->words[i], "--"))
			break;
		for (size_t j = 0; j < options->count; j++) {
			if (option_holds(&options->items[j], command, i))
				return true;
		}
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
		       (str_starts(command->words[at], STR("-")) ||
			!value_holds(&operand->value, command, at,
				     shell_command_value(command, at))))
			at++;
		if (at++ >= command->count)
			return false;
	}
	return true;
}

bool command_rule_holds(const struct command_rule *rule, const struct shell_command *command)
{
	size_t behind;

	if (!names_program(rule, shell_command_value(command, 0)))
		return false;
	behind = behind_subcommand(rule, command);
	return behind > 0 &&
	       any_option_holds(&rule->options, command, behind, command->count) &&
	       any_option_holds(&rule->global, command, 1,
				rule->subcommand.size ? behind : command->count) &&
	       operands_hold(rule, command, behind);
}
