/*
 * commands: reads rules, matches commands against them, and gives the verdict on a
 * command.
 */

#include "policy/commands.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "base/value.h"
#include "policy/command.h"
#include "policy/deny.h"
#include "policy/policy.h"
#include "policy/rules.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Reads a rule from its JSON. */

enum { NAME_MAX_BYTES = 200 };

/*
 * The part of TEXT behind the first SEPARATOR; empty when there is none. *FIRST gets
 * the part before it.
 */
static struct str split(struct str text, char separator, struct str *first)
{
	const char *at = text.size ? memchr(text.data, separator, text.size) : NULL;

	*first = at ? str_part(text, 0, (size_t)(at - text.data)) : text;
	return at ? str_part(text, first->size + 1, text.size)
		  : str_part(text, text.size, 0);
}

static bool parse_value(struct str text, struct command_value *value, const char *pointer,
			struct err *err)
{
	static const char *const names[] = {"text", "number", "path", NULL};

	for (size_t i = 0; names[i] != NULL; i++) {
		if (str_is(text, names[i])) {
			value->kind = (enum command_kind)(COMMAND_TEXT + (int)i);
			return true;
		}
	}
	value->kind = COMMAND_CHOICE;
	value->choices = text;
	return memchr(text.size ? text.data : "", ',', text.size) != NULL ||
	       err_set(err, EINVAL,
		       "%s: \"%.*s\" is no kind; there are text, number, path, and choices "
		       "(\"a,b\")",
		       pointer, (int)text.size, text.data ? text.data : "");
}

/* Reads "-x", "--name=KIND", "--name[=KIND]" or "-number". */
static bool parse_option(struct str text, struct command_option *option,
			 const char *pointer, struct err *err)
{
	struct str kind = split(text, '=', &option->name);

	if (str_ends(option->name, STR("[")) && str_ends(kind, STR("]"))) {
		option->form = COMMAND_OPTIONAL;
		option->name.size--;
		kind.size--;
	} else if (option->name.size < text.size) {
		option->form = COMMAND_VALUE;
	} else if (str_is(text, "-number")) {
		option->form = COMMAND_DIGITS;
		return true;
	}
	if (option->name.size < 2 || option->name.data[0] != '-' ||
	    str_is(option->name, "--"))
		return err_set(err, EINVAL,
			       "%s: \"%.*s\" is no option; write \"-x\", \"--name\", "
			       "\"--name=KIND\", \"--name[=KIND]\" or \"-number\"",
			       pointer, (int)text.size, text.data);
	return option->form == COMMAND_FLAG ||
	       parse_value(kind, &option->value, pointer, err);
}

/* Reads "KIND", "KIND?", "KIND*", "KIND+" or "--". */
static bool parse_operand(struct str text, struct command_operand *operand,
			  const char *pointer, struct err *err)
{
	static const char marks[] = "?*+";
	const char *mark = text.size ? strchr(marks, text.data[text.size - 1]) : NULL;

	if (str_is(text, "--")) {
		operand->value.kind = COMMAND_DASHES;
		return true;
	}
	if (mark != NULL && *mark != '\0') {
		operand->repeat = (enum command_repeat)(COMMAND_MAYBE + (mark - marks));
		text.size--;
	}
	return parse_value(text, &operand->value, pointer, err);
}

static bool parse_options(const struct value *list, struct command_options *options,
			  struct arena *arena, const char *pointer, struct err *err)
{
	options->count = value_count(list);
	options->items = arena_alloc(arena, (options->count + 1) * sizeof(*options->items));
	for (size_t i = 0; i < options->count; i++) {
		if (!parse_option(value_str(value_item(list, i)), &options->items[i],
				  pointer, err))
			return false;
	}
	return true;
}

static bool parse_operands(const struct value *list, struct command_rule *rule,
			   struct arena *arena, const char *pointer, struct err *err)
{
	rule->operand_count = value_count(list);
	rule->operands =
		arena_alloc(arena, (rule->operand_count + 1) * sizeof(*rule->operands));
	for (size_t i = 0; i < rule->operand_count; i++) {
		if (!parse_operand(value_str(value_item(list, i)), &rule->operands[i],
				   pointer, err))
			return false;
	}
	return true;
}

/* Reads options and beginnings of operands, such as "SHELL=" and "run". */
static bool parse_executes(const struct value *list, struct command_rule *rule,
			   struct arena *arena, const char *pointer, struct err *err)
{
	const size_t count = value_count(list);
	struct command_options *options = &rule->executes;
	struct command_insert *operands = &rule->executes_operands;

	options->items = arena_alloc(arena, (count + 1) * sizeof(*options->items));
	operands->items = arena_alloc(arena, (count + 1) * sizeof(*operands->items));
	for (size_t i = 0; i < count; i++) {
		struct str text = value_str(value_item(list, i));

		if (!str_starts(text, STR("-")) && text.size > 0)
			operands->items[operands->count++] =
				value_text(value_item(list, i));
		else if (!parse_option(text, &options->items[options->count++], pointer, err))
			return false;
	}
	return true;
}

static void take_insert(const struct value *list, struct command_insert *insert,
			struct arena *arena)
{
	insert->count = value_count(list);
	insert->items = arena_alloc(arena, (insert->count + 1) * sizeof(*insert->items));
	for (size_t i = 0; i < insert->count; i++)
		insert->items[i] = value_text(value_item(list, i));
}

/* The name of RULE in sentences, from its first program and its subcommand: "git log". */
static const char *name_of(const struct command_rule *rule, struct arena *arena)
{
	struct str program;
	struct buf name;
	const char *kept;

	(void)split(rule->programs, ',', &program);
	buf_init(&name, NAME_MAX_BYTES);
	(void)buf_addstr(&name, program);
	if (rule->subcommand.size > 0 && buf_addc(&name, ' '))
		(void)buf_addstr(&name, rule->subcommand);
	kept = arena_copy(arena, buf_str(&name));
	buf_fini(&name);
	return kept;
}

enum { PROGRAM_SHOWN = 80 };

/* Can a command have one of PROGRAMS? A rule that never fits would deny nothing. */
static bool programs_are_sound(struct str programs, const char *pointer, struct err *err)
{
	struct str rest = programs, program;

	while (command_next_choice(&rest, &program)) {
		const bool is_path = memchr(program.data, '/', program.size) != NULL;
		bool fits = program.size > 0 && program.data[0] != ' ' &&
			    program.data[program.size - 1] != ' ';
		size_t shown = 0;

		for (size_t i = 0; i < program.size && fits; i++)
			fits = (unsigned char)program.data[i] > ' ' - is_path &&
			       !strchr("*?", program.data[i]);
		while (shown < program.size && shown < PROGRAM_SHOWN &&
		       (unsigned char)program.data[shown] >= ' ')
			shown++;
		if (!fits)
			return err_set(err, EINVAL,
				       "%s/program: no command is called \"%.*s\": name "
				       "programs as \"rm\", \"rm,rmdir\" or \"/opt/x/run\", "
				       "and what follows them in subcommand, options or operands",
				       pointer, (int)shown, program.data);
	}
	return true;
}

/*
 * Make RULE from OBJECT, which fits the key table. RULE uses memory of ARENA and parts
 * of OBJECT, so both must live as long. ERR names the error below POINTER.
 */
static bool command_rule_make(struct command_rule *rule, const struct value *object,
			      struct arena *arena, const char *pointer, struct err *err)
{
	char below[ERR_TEXT_MAX / 2];

	*rule = (struct command_rule){
		.programs = value_str(value_member(object, "program")),
		.subcommand = value_str(value_member(object, "subcommand")),
		.runs_code = value_is_true(value_member(object, "runs_code")),
		.harm = value_text(value_member(object, "harm")),
		.match = value_member(object, "match"),
	};
	if (rule->harm != NULL && command_harm_named(rule->harm) == NULL)
		return err_set(err, EINVAL,
			       "%s/harm: there is no harm \"%.64s\"; docs/policy.md lists them",
			       pointer, rule->harm);
	if (rule->programs.size == 0)
		return err_set(err, EINVAL, "%s: needs the key program", pointer);
	if (!programs_are_sound(rule->programs, pointer, err))
		return false;
	rule->name = rule->harm ? rule->harm : name_of(rule, arena);
	take_insert(value_member(object, "insert_global"), &rule->insert_global, arena);
	take_insert(value_member(object, "insert"), &rule->insert, arena);
	(void)snprintf(below, sizeof(below), "%s/global", pointer);
	if (!parse_options(value_member(object, "global"), &rule->global, arena, below, err))
		return false;
	(void)snprintf(below, sizeof(below), "%s/options", pointer);
	if (!parse_options(value_member(object, "options"), &rule->options, arena, below,
			   err))
		return false;
	(void)snprintf(below, sizeof(below), "%s/executes", pointer);
	if (!parse_executes(value_member(object, "executes"), rule, arena, below, err))
		return false;
	(void)snprintf(below, sizeof(below), "%s/operands", pointer);
	return parse_operands(value_member(object, "operands"), rule, arena, below, err);
}

static struct command_program program_of(const struct command_rule *rule)
{
	return (struct command_program){rule->programs, rule->subcommand, rule->runs_code};
}

/* Is NAME one of the rule's programs? */
static bool command_rule_is_of(const struct command_rule *rule, const char *name)
{
	struct str rest = rule->programs, program;

	while (command_next_choice(&rest, &program)) {
		if (str_is(program, name))
			return true;
	}
	return false;
}

/*
 * Does an argument vector have the form of a rule? The match is strict where programs
 * differ: an option's value in a word of its own never begins with a dash, nothing may
 * be abbreviated, and letters share one dash only when the rule lists them so.
 */

enum { NUMBER_DIGITS_MAX = 18 };

/* The state of one comparison. */
struct walk {
	const struct command_rule *rule;
	const char *const *argv;
	struct command_match *match;
	size_t at;      /* index of the next word */
	size_t operand; /* index of the rule's next operand */
	bool taken;     /* this operand was given at least once */
	bool dashes;    /* "--" was given */
};

static bool miss(struct walk *walk, enum command_fit fit, size_t word)
{
	walk->match->fit = fit;
	walk->match->word = word;
	return false;
}

bool command_value_is_number(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		if (!isdigit((unsigned char)text.data[i]))
			return false;
	}
	return text.size > 0 && text.size <= NUMBER_DIGITS_MAX;
}

bool command_value_is_choice(struct str choices, struct str text)
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
		return command_value_is_number(str_of(text));
	case COMMAND_PATH:
		if (text[0] == '\0' || strcmp(text, "-") == 0)
			return false;
		if (match->paths != NULL)
			match->paths[match->path_count++] = text;
		return true;
	case COMMAND_CHOICE:
		return command_value_is_choice(value->choices, str_of(text));
	case COMMAND_DASHES:
		break;
	}
	return false;
}

/* The value that WORD attaches to OPTION; "": none; NULL: WORD is another option. */
static const char *attached(const struct command_option *option, const char *word)
{
	/* "-overlay" may be one option, not "-o" with the value "verlay" */
	bool is_letter = option->name.size == 2 && (option->value.kind == COMMAND_NUMBER ||
						    option->value.kind == COMMAND_CHOICE);
	const char *rest = word + option->name.size;

	if (option->form == COMMAND_DIGITS)
		return command_value_is_number(str_of(word + 1)) ? word + strlen(word)
								 : NULL;
	if (strncmp(word, option->name.data, option->name.size) != 0)
		return NULL;
	if (*rest == '\0')
		return rest;
	if (option->form == COMMAND_FLAG)
		return NULL;
	return is_letter || (option->name.size > 2 && *rest == '=') ? rest : NULL;
}

/* The word AT names code as CODE says, and the rule does not grant it. */
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

/*
 * Does WORD, given for an operand of kind text, name code that the rule does not grant?
 */
static const struct command_code *code_in(const struct command_rule *rule,
					  const struct command_value *value,
					  const char *word)
{
	const struct command_program program = program_of(rule);

	if (value->kind != COMMAND_TEXT || grants_operand(rule, word))
		return NULL;
	return command_code_operand(&program, word);
}

/* Check a script that is the value of an option, as in `sed -e`. */
static bool check_script(struct walk *walk, const struct command_option *option,
			 const char *text)
{
	const struct command_code *code = NULL;

	if (str_among("-e --expression --source", option->name))
		code = code_in(walk->rule, &option->value, text);
	return code == NULL || code->kind != CODE_SCRIPT ||
	       miss_code(walk, code, walk->at - 1);
}

/* Take the option at walk->at if it is one of OPTIONS, and then set *FOUND. */
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
			value++; /* skip the "=" */
		}
		if (!value_fits(walk, &option->value, value))
			return miss(walk, FIT_WRONG_VALUE, walk->at - 1);
		return check_script(walk, option, value);
	}
	return false;
}

/*
 * Take the option at walk->at: one of OPTIONS, or one that names code and that the rule
 * grants.
 */
static bool take_option(struct walk *walk, const struct command_options *options)
{
	const struct command_rule *rule = walk->rule;
	const struct command_program program = program_of(rule);
	const struct command_code *code;
	bool found = false, fits = take_listed(walk, options, &found);

	if (!found)
		fits = take_listed(walk, &rule->executes, &found);
	if (found)
		return fits;
	code = command_code_option(&program, walk->argv[walk->at], options == &rule->global);
	return code != NULL ? miss_code(walk, code, walk->at)
			    : miss(walk, FIT_NO_SUCH_OPTION, walk->at);
}

/* May the current operand of the rule be left out, or end here? */
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

/* Were all operands up to the end, or up to "--" with TO_DASHES, given or optional? */
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
	       !command_value_is_choice(first, str_of(walk->argv[walk->at]))) {
		/*
		 * An unknown option stands before the subcommand, so no rule of the
		 * program is nearer than others.
		 */
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

		if (given == NULL || !command_value_is_choice(word, str_of(given)))
			return miss(walk, FIT_OTHER_SUBCOMMAND, walk->at);
		walk->at++;
	}
	walk->match->subcommand = walk->at;
	return true;
}

/* Fill MATCH (`paths` is given). True when ARGV (NULL-ended) has the form of RULE. */
static bool command_rule_match(const struct command_rule *rule, const char *const *argv,
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

enum {
	PRESETS_MAX = 32,
	EXAMPLE_MAX = 80, /* bytes of an example shown in a sentence */
};

/* The name of a preset: "php" for "presets/php.json". */
static struct str preset_name(const struct embedded_file *file)
{
	struct str name = str_of(strrchr(file->name, '/') + 1);

	return str_part(name, 0, name.size - (sizeof(".json") - 1));
}

static const struct embedded_file *preset_find(struct str name)
{
	for (const struct embedded_file *file = policy_presets; file->name; file++) {
		if (str_equal(preset_name(file), name))
			return file;
	}
	return NULL;
}

/* Does a preset hold rules that deny or ask? Its file is an object, others are lists. */
static bool is_asking(const struct embedded_file *file)
{
	return file->size > 0 && file->data[0] == '{';
}

/* Is NAME a preset of rules that deny or ask ("danger")? */
static bool preset_asks(struct str name)
{
	const struct embedded_file *file = preset_find(name);

	return file != NULL && is_asking(file);
}

static bool check_preset(const struct value *name, const char *pointer, struct err *err)
{
	char texts[PRESETS_MAX][32] = {{0}};
	const char *names[PRESETS_MAX + 1] = {0};
	const char *nearest;
	struct buf list;
	size_t count = 0;

	if (preset_asks(value_str(name)))
		return err_set(err, EINVAL,
			       "%s/presets: \"%.64s\" lets nothing run; name it in ask or deny",
			       pointer, value_text(name));
	if (preset_find(value_str(name)) != NULL)
		return true;
	buf_init(&list, ERR_TEXT_MAX / 2);
	for (const struct embedded_file *file = policy_presets; file->name; file++) {
		struct str known = preset_name(file);

		if (is_asking(file))
			continue;
		assert(count < PRESETS_MAX && known.size < sizeof(texts[0]));
		memcpy(texts[count], known.data, known.size);
		(void)buf_addf(&list, "%s%s", count ? ", " : "", texts[count]);
		names[count] = texts[count];
		count++;
	}
	nearest = text_nearest(value_text(name), names);
	(void)err_set(err, ENOENT,
		      "%s/presets: there is no preset \"%.64s\"%s%s%s; there are %s",
		      pointer, value_text(name), nearest ? " (did you mean \"" : "",
		      nearest ? nearest : "", nearest ? "\"?)" : "", list.data);
	buf_fini(&list);
	return false;
}

struct example {
	const struct command_rule *rule;
	bool holds;
};

/* A rule that denies or asks needs to hold for only one command of the example. */
static bool example_holds(void *context, const struct command_seen *seen)
{
	struct example *example = context;

	static const struct policy nobodys = {0};

	example->holds |= deny_rule_holds(example->rule, seen, &nobodys);
	return !example->holds;
}

static bool example_is_held(const struct command_rule *rule, struct str text, struct buf *why)
{
	struct example example = {.rule = rule};
	const struct command_visit visit = {example_holds, &example};

	command_seen_text(text, NULL, &visit);
	if (!example.holds)
		(void)buf_adds(why,
			       "program, subcommand, an option or an operand is another");
	return example.holds;
}

/* Does EXAMPLE have the form of RULE? WHY gets the reason when it does not. */
static bool example_fits(const struct command_rule *rule, struct str example, struct buf *why)
{
	struct command command;
	struct command_match match = {0};
	bool fits = false;

	if (!command_parse(&command, example)) {
		(void)buf_addf(why, "it is not literal: %s", command.reason);
	} else if (command.count != 1) {
		(void)buf_adds(why, "it is more than one command");
	} else {
		fits = command_rule_match(rule, command.parts[0].argv, &match);
		if (!fits && command.parts[0].argv[match.word] != NULL)
			(void)buf_addf(why, "\"%s\" %s", command.parts[0].argv[match.word],
				       command_fit_clause(match.fit));
		else if (!fits)
			(void)buf_addf(why, "it %s", command_fit_clause(match.fit));
	}
	command_fini(&command);
	return fits;
}

static bool check_example(const struct command_rule *rule, bool lets_run,
			  const char *pointer, const struct value *example, bool wanted,
			  struct err *err)
{
	struct str text = value_str(example);
	struct buf why;
	bool fits;

	buf_init(&why, EXAMPLE_MAX + COMMAND_TEXT_MAX);
	fits = lets_run ? example_fits(rule, text, &why)
			: example_is_held(rule, text, &why);
	if (fits != wanted) {
		size_t shown = text_character_border(text, EXAMPLE_MAX);

		buf_truncate(&why, why.size < EXAMPLE_MAX ? why.size : EXAMPLE_MAX);
		(void)err_set(err, EINVAL,
			      wanted ? "%s: \"%.*s\" does not fit its rule \"%.64s\": %s; change "
				       "the example or the rule"
				     : "%s: \"%.*s\" fits its rule \"%.64s\"%s and should not; "
				       "make the rule narrower or take the example out",
			      pointer, (int)shown, text.data, rule->name, why.data);
	}
	buf_fini(&why);
	return fits == wanted;
}

static bool check_examples(const struct command_rule *rule, const struct value *object,
			   bool lets_run, const char *pointer, struct err *err)
{
	static const char *const keys[] = {"match", "not_match"};

	for (int i = 0; i < 2; i++) {
		const struct value *list = value_member(object, keys[i]);

		for (size_t j = 0; j < value_count(list); j++) {
			char place[ERR_TEXT_MAX / 2];

			(void)snprintf(place, sizeof(place), "%s/%s/%zu", pointer,
				       keys[i], j);
			if (!check_example(rule, lets_run, place, value_item(list, j),
					   i == 0, err))
				return false;
		}
	}
	return true;
}

/* An option that names code may stand only in `executes`. */
static bool check_options(const struct command_rule *rule,
			  const struct command_options *options, const char *key,
			  const char *pointer, struct err *err)
{
	const struct command_program program = program_of(rule);

	for (size_t i = 0; i < options->count; i++) {
		auto_free char *name = memory_copy_str(options->items[i].name);
		const struct command_code *code =
			command_code_option(&program, name, options == &rule->global);

		if (code != NULL)
			return err_set(err, EINVAL,
				       "%s/%s/%zu: \"%s\" of \"%.64s\" names code (%s: %s); "
				       "move it to the rule's \"executes\" if the agent may "
				       "choose that, else take it out",
				       pointer, key, i, name, rule->name, code->name,
				       code->reason);
	}
	return true;
}

/*
 * When an operand is a program or code, a rule must list its choices, or have
 * `runs_code`.
 */
static bool check_operands(const struct command_rule *rule, const char *pointer,
			   struct err *err)
{
	const struct command_program program = program_of(rule);
	const struct command_code *code = command_code_operands(&program);

	for (size_t i = 0; code != NULL && !rule->runs_code && i < rule->operand_count;
	     i++) {
		const enum command_kind kind = rule->operands[i].value.kind;

		if (kind == COMMAND_CHOICE)
			/*
			 * this operand chooses the program; the later ones are that
			 * program's
			 */
			break;
		if (kind == COMMAND_TEXT || kind == COMMAND_PATH)
			return err_set(err, EINVAL,
				       "%s/operands/%zu: an operand of \"%.64s\" is %s; name the "
				       "choices (\"a,b\"), or say \"runs_code\": true",
				       pointer, i, rule->name, code->reason);
	}
	return true;
}

/* A rule that denies or asks must not insert words or grant anything. */
static bool check_only_names(const struct value *object, const char *pointer, struct err *err)
{
	static const char *const keys[] = {"insert", "insert_global", "runs_code",
					   "executes"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (value_member(object, keys[i]) != NULL)
			return err_set(err, EINVAL,
				       "%s/%s: a rule that denies or asks only says which "
				       "commands it is about; take %s out%s",
				       pointer, keys[i], keys[i],
				       strcmp(keys[i], "executes") == 0
					       ? ", and name the options in \"options\""
					       : "");
	}
	return true;
}

/* Check a text among the rules that deny or ask: the name of a preset, or a rule. */
static bool check_text(const struct value *text, const char *pointer, struct err *err)
{
	struct command_rule rule;
	struct arena arena;
	bool ok;

	if (preset_asks(value_str(text)))
		return true;
	arena_init(&arena);
	ok = deny_rule_read(value_str(text), &rule, &arena, pointer, err) &&
	     programs_are_sound(rule.programs, pointer, err);
	arena_fini(&arena);
	return ok;
}

static bool check_rule(const struct value *object, bool lets_run, const char *pointer,
		       struct err *err)
{
	struct command_rule rule;
	struct arena arena;
	bool ok;

	if (!lets_run && value_text(object) != NULL)
		return check_text(object, pointer, err);
	if (lets_run && value_member(object, "harm") != NULL)
		return err_set(err, EINVAL,
			       "%s/harm: a rule that lets a command run names all of its words; "
			       "only rules of deny and ask name a harm",
			       pointer);
	arena_init(&arena);
	ok = (lets_run || check_only_names(object, pointer, err)) &&
	     command_rule_make(&rule, object, &arena, pointer, err) &&
	     (!lets_run || (check_options(&rule, &rule.options, "options", pointer, err) &&
			    check_options(&rule, &rule.global, "global", pointer, err) &&
			    check_operands(&rule, pointer, err))) &&
	     check_examples(&rule, object, lets_run, pointer, err);
	arena_fini(&arena);
	return ok;
}

bool commands_check(const struct value *value, const char *pointer, struct err *err)
{
	static const char *const keys[] = {"allow", "rules", "deny", "ask"};
	const struct value *presets = value_member(value, "presets");

	for (size_t i = 0; i < value_count(presets); i++) {
		if (!check_preset(value_item(presets, i), pointer, err))
			return false;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct value *rules = value_member(value, keys[i]);

		for (size_t j = 0; j < value_count(rules); j++) {
			char place[ERR_TEXT_MAX / 4];

			(void)snprintf(place, sizeof(place), "%s/%s/%zu", pointer,
				       keys[i], j);
			if (!check_rule(value_item(rules, j), i < 2, place, err))
				return false;
		}
	}
	return true;
}

/*
 * OBJECT was checked before: a shipped rule by a test, another one when the
 * configuration was read.
 */
static void add_rule(struct commands *commands, struct command_rules *rules,
		     const struct value *object, const char *preset)
{
	struct command_rule *rule;
	struct err err;
	bool fine;

	rules->items = memory_grow(rules->items, rules->count + 1, sizeof(*rules->items));
	rule = &rules->items[rules->count++];
	fine = command_rule_make(rule, object, &commands->arena, "", &err);
	assert(fine);
	(void)fine;
	rule->preset = preset;
}

/* The content of a preset, which COMMANDS keeps. */
static const struct value *preset_value(struct commands *commands, struct str preset)
{
	const struct embedded_file *file = preset_find(preset);
	struct value *value = NULL;
	struct err err;
	bool fine = file &&
		    value_parse((struct str){file->data, file->size}, 0, &value, &err);

	assert(fine);
	(void)fine;
	value_append(commands->presets, value);
	return value;
}

static void add_preset(struct commands *commands, struct str preset, const char *only);

/*
 * Add the rules of LIST. A text is the name of a rule ("git log"); its first word is
 * the preset.
 */
static void add_rules(struct commands *commands, const struct value *list,
		      const char *preset, const char *only)
{
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *item = value_item(list, i);
		const char *name = value_text(item);

		if (name != NULL) {
			add_preset(commands,
				   str_part(str_of(name), 0, strcspn(name, " ")), name);
			continue;
		}
		add_rule(commands, &commands->allow, item, preset);
		if (only && strcmp(commands->allow.items[commands->allow.count - 1].name,
				   only) != 0)
			commands->allow.count--;
	}
}

/* Add all rules of PRESET, or only the rule ONLY. */
static void add_preset(struct commands *commands, struct str preset, const char *only)
{
	add_rules(commands, preset_value(commands, preset),
		  arena_copy(&commands->arena, preset), only);
}

/*
 * Does VALUE mean the profile `box`? An object without a profile means `box` when it
 * has only rules that deny or ask; then all other commands run.
 */
static bool is_box(const struct value *value, const struct value *object)
{
	const char *profile = value_text(object ? value_member(object, "profile") : value);

	if (profile != NULL)
		return strcmp(profile, "box") == 0;
	return (value_member(object, "deny") || value_member(object, "ask") ||
		value_member(object, "unread")) &&
	       !value_member(object, "presets") && !value_member(object, "rules") &&
	       !value_member(object, "allow");
}

/* Add a rule that denies or asks and is written as a text, or all of the preset it names. */
static void add_text(struct commands *commands, struct command_rules *rules,
		     const struct value *item)
{
	const struct str text = value_str(item);
	const struct value *list;
	struct err err;
	bool fine;

	if (!preset_asks(text)) {
		rules->items =
			memory_grow(rules->items, rules->count + 1, sizeof(*rules->items));
		fine = deny_rule_read(text, &rules->items[rules->count++],
				      &commands->arena, "", &err);
		assert(fine);
		(void)fine;
		return;
	}
	list = value_member(preset_value(commands, text), "asks");
	for (size_t i = 0; i < value_count(list); i++)
		add_rule(commands, rules, value_item(list, i),
			 arena_copy(&commands->arena, text));
}

static void add_own(struct commands *commands, struct command_rules *rules, const char *key)
{
	const bool of_machine =
		value_is_true(value_member(commands->own, COMMANDS_OF_MACHINE));
	const struct value *list = value_member(commands->own, key);

	for (size_t i = 0; i < value_count(list); i++) {
		if (value_text(value_item(list, i)) != NULL)
			add_text(commands, rules, value_item(list, i));
		else
			add_rule(commands, rules, value_item(list, i), NULL);
	}
	for (size_t i = 0; i < rules->count; i++)
		rules->items[i].of_machine = of_machine;
}

/* "list" without an object means all presets. */
struct commands *commands_new(const struct value *value)
{
	const struct value *object = value_kind(value) == VALUE_OBJECT ? value : NULL;
	const struct value *presets = value_member(object, "presets");
	const struct value *code = value_member(object, "runs_code");
	struct commands *commands;

	if (!value)
		return NULL;
	commands = memory_alloc(sizeof(*commands));
	arena_init(&commands->arena);
	commands->box = is_box(value, object);
	commands->source = value_copy(value);
	commands->presets = value_new_array();
	commands->own = object ? value_copy(object) : value_new_object();
	commands->runs_code = commands->box || !code || value_is_true(code);
	commands->asks_unread = str_is(value_str(value_member(object, "unread")), "ask");
	add_own(commands, &commands->deny, "deny");
	add_own(commands, &commands->ask, "ask");
	add_own(commands, &commands->allow, "allow");
	add_own(commands, &commands->allow, "rules");
	if (commands->box && !commands->asks_unread &&
	    commands->deny.count + commands->ask.count + commands->allow.count == 0) {
		commands_free(commands);
		return NULL;
	}
	for (const struct embedded_file *file = policy_presets; !object && file->name;
	     file++) {
		if (!is_asking(file))
			add_preset(commands, preset_name(file), NULL);
	}
	for (size_t i = 0; !commands->box && i < value_count(presets); i++)
		add_preset(commands, value_str(value_item(presets, i)), NULL);
	return commands;
}

void commands_free(struct commands *commands)
{
	if (!commands)
		return;
	free(commands->allow.items);
	free(commands->deny.items);
	free(commands->ask.items);
	value_free(commands->presets);
	value_free(commands->own);
	value_free(commands->source);
	commands_free(commands->within);
	arena_fini(&commands->arena);
	free(commands);
}

struct commands *commands_both(const struct commands *a, const struct commands *b)
{
	struct commands *both = NULL;
	struct commands **end = &both;

	for (const struct commands *list = a ? a : b; list;) {
		bool known = false;

		for (const struct commands *had = both; had && !known; had = had->within)
			known = value_equal(had->source, list->source);
		if (!known) {
			struct commands *made = commands_new(list->source);

			*end = made;
			end = made ? &made->within : end;
		}
		list = list->within;
		if (!list && a && b) {
			list = b;
			b = NULL;
		}
	}
	return both;
}

/*
 * Is NOW a nearer match than BEST? The match that got further through the words is
 * nearer; among equals, the first one.
 */
static bool is_nearer(const struct command_match *now, const struct command_match *best)
{
	bool in_form = now->fit > FIT_OTHER_SUBCOMMAND;

	if (now->fit == FIT_OTHER_PROGRAM || !best)
		return now->fit != FIT_OTHER_PROGRAM;
	if (now->fit == FIT_RUNS_CODE || best->fit == FIT_RUNS_CODE)
		return best->fit != FIT_RUNS_CODE;
	if (in_form != (best->fit > FIT_OTHER_SUBCOMMAND))
		return in_form;
	/*
	 * Among equals prefer the match that knows the word as code, because its
	 * sentence says more.
	 */
	if (now->word == best->word)
		return now->fit == FIT_EXECUTES && best->fit != FIT_EXECUTES;
	return now->word > best->word;
}

/*
 * The rule of COMMANDS for ARGV, without the lists it is within: the first that fits
 * (match->fit is FIT_MATCH), else the nearest; NULL when no rule is for that program.
 * MATCH may have room for paths, as in command_rule_match.
 */
static const struct command_rule *commands_find(const struct commands *commands,
						const char *const *argv,
						struct command_match *match)
{
	const struct command_rule *nearest = NULL;
	const char **paths = match->paths;
	struct command_match best = {.fit = FIT_OTHER_PROGRAM};

	assert(commands->allow.items || commands->allow.count == 0);
	for (size_t i = 0; i < commands->allow.count; i++) {
		const struct command_rule *rule = &commands->allow.items[i];
		struct command_match now = {.paths = paths};

		if (command_rule_match(rule, argv, &now)) {
			if (!rule->runs_code || commands->runs_code) {
				*match = now;
				match->list = commands;
				return rule;
			}
			now.fit = FIT_RUNS_CODE;
			now.word = 0;
		}
		if (is_nearer(&now, nearest ? &best : NULL)) {
			nearest = rule;
			best = now;
		}
	}
	*match = best;
	match->paths = paths;
	match->path_count = 0;
	match->list = commands;
	return nearest;
}

const struct command_rule *commands_judge(const struct commands *commands,
					  const char *const *argv,
					  struct command_match *match)
{
	const char **paths = match->paths;
	const struct command_rule *first = NULL;

	for (const struct commands *list = commands; list; list = list->within) {
		struct command_match other = {.paths = first ? NULL : paths};
		const struct command_rule *found;

		if (list->box)
			continue;
		found = commands_find(list, argv, &other);
		if (!first || other.fit != FIT_MATCH)
			*match = other;
		if (other.fit != FIT_MATCH)
			return found;
		if (!first)
			first = found;
	}
	return first;
}

bool commands_listed(const struct commands *commands)
{
	while (commands && commands->box)
		commands = commands->within;
	return commands != NULL;
}

static const struct command_rule *find_holding(const struct command_rules *rules,
					       const struct command_seen *seen,
					       const struct policy *policy)
{
	for (size_t i = 0; i < rules->count; i++) {
		if (deny_rule_holds(&rules->items[i], seen, policy))
			return &rules->items[i];
	}
	return NULL;
}

/*
 * The first rule of POLICY, or of the lists its own is within, that holds for SEEN, among
 * the rules that deny (DENIES) or that ask; NULL: none. A rule of the administrator counts before
 * the others: without one of these the command would still be denied.
 */
static const struct command_rule *commands_holding(const struct policy *policy, bool denies,
						   const struct command_seen *seen)
{
	const struct command_rule *found = NULL;

	for (const struct commands *at = policy->commands; at; at = at->within) {
		const struct command_rule *rule =
			find_holding(denies ? &at->deny : &at->ask, seen, policy);

		if (rule != NULL &&
		    (found == NULL || (rule->of_machine && !found->of_machine)))
			found = rule;
	}
	return found;
}

/* Is a person asked about what cannot be read, by COMMANDS or a list it is within? */
static bool asks_unread(const struct commands *commands)
{
	while (commands && !commands->asks_unread)
		commands = commands->within;
	return commands != NULL;
}

/*
 * Does every list have a rule of the configuration, not of a preset, that fits COMMAND?
 */
static bool commands_named(const struct commands *commands,
			   const struct shell_command *command)
{
	auto_free const char **argv = memory_array(command->count + 1, sizeof(*argv));
	bool named = commands != NULL;

	for (size_t i = 0; i < command->count; i++) {
		argv[i] = command->values[i].data;
		named = named && argv[i] != NULL;
	}
	for (; commands && named; commands = commands->within) {
		struct command_match match = {0};
		const struct command_rule *rule = commands_find(commands, argv, &match);

		named = match.fit == FIT_MATCH && rule->preset == NULL;
	}
	return named;
}

void commands_print(const char *const *argv, struct buf *out)
{
	for (size_t i = 0; argv[i] != NULL; i++) {
		(void)buf_adds(out, i ? " " : "");
		shell_token_add_word(argv[i], out);
	}
}

void commands_nearest(const struct command_rule *rule, const char *const *argv,
		      struct buf *out)
{
	/* a person with more wrong words meant another command */
	enum { TRIES_MAX = 16 };
	struct command_match match = {0};
	size_t count = 0;

	while (argv[count] != NULL)
		count++;
	auto_free const char **words = memory_array(count + 1, sizeof(*words));
	memcpy(words, argv, count * sizeof(*words));
	for (int i = 0; i < TRIES_MAX && !command_rule_match(rule, words, &match); i++) {
		if (match.fit <= FIT_OTHER_SUBCOMMAND || words[match.word] == NULL)
			break;
		memmove(words + match.word, words + match.word + 1,
			(count - match.word) * sizeof(*words));
		count--;
	}
	if (match.fit == FIT_MATCH)
		commands_print(words, out);
	else
		(void)buf_addstr(out, value_str(value_item(rule->match, 0)));
}

/*
 * The verdict on a command. A rule that denies wins, then a rule that asks a person;
 * then, where only listed commands run, the list decides. Also gives the commands that
 * run in its place, and a sentence by which a model finds an allowed form.
 */

enum {
	QUOTED_MAX = 120,  /* bytes of a command or word quoted */
	LISTED_MAX = 16,   /* forms of one program, or programs, in one sentence */
	NEAREST_MAX = 512, /* bytes of the nearest form */
};

/* One command of a text, and its verdict. */
struct judged {
	const struct policy *policy;
	const struct policy_request *request;
	const char *const *argv;
	const struct command_rule *rule; /* the rule that fits, or the nearest one */
	struct command_match match;
	/* One for each list that must fit: its rule, and the match with it. */
	const struct command_rule **rules;
	struct command_match *matches;
	size_t list_count;
	struct verdict *verdict;
};

/* The rules and the rows of the table of harm that hold for the commands seen. */
struct look {
	const struct policy *policy;
	const struct command_rule *denied, *asked; /* the first that holds; or NULL */
	const struct command_harm *harm;           /* the first; or NULL */
	/* the first for which a person is asked; or NULL */
	const struct command_harm *harm_asked;
	/* why the first command that cannot be read is unread, when a person is asked */
	const char *unread;
	/* the first denied command, else the first asked for, as written */
	struct buf command;
};

/* Append TEXT in quotes, cleaned, and cut for a sentence. */
static void add_quoted(struct buf *out, struct str text)
{
	size_t size = text.size;

	if (size > QUOTED_MAX)
		size = text_character_border(text, QUOTED_MAX);
	(void)buf_adds(out, "\"");
	text_add_name(out, str_part(text, 0, size));
	(void)buf_adds(out, size < text.size ? "…\"" : "\"");
}

static void add_argv(struct buf *out, const char *const *argv)
{
	struct buf text;

	buf_init(&text, COMMAND_TEXT_MAX);
	commands_print(argv, &text);
	add_quoted(out, buf_str(&text));
	buf_fini(&text);
}

static void add_remedy(struct buf *out, const struct policy *policy)
{
	(void)buf_addf(out,
		       "or ask the user to add a rule to agents.%.64s.commands in the "
		       "configuration.",
		       policy->name);
}

static bool deny(const struct policy *policy, struct verdict *verdict, struct buf *because)
{
	verdict->answer = VERDICT_DENY;
	verdict_end(verdict, because, policy, "commands");
	return false;
}

static void keep_command(struct look *look, const struct shell_command *command)
{
	buf_clear(&look->command);
	for (size_t i = 0; i < command->count && look->command.size <= QUOTED_MAX; i++) {
		/* The words of one brace expansion are written once. */
		if (i > 0 && command->words[i].size > 0 &&
		    command->words[i].data == command->words[i - 1].data)
			continue;
		(void)buf_adds(&look->command, i ? " " : "");
		(void)buf_addstr(&look->command, command->words[i]);
	}
}

/* A callback of command_seen_*. Stops at the first denied command. */
static bool look_at(void *context, const struct command_seen *seen)
{
	struct look *look = context;
	const struct policy *policy = look->policy;
	const struct command_harm *harm = command_harm_find(seen, policy);

	look->denied = commands_holding(policy, true, seen);
	if (look->denied) {
		keep_command(look, seen->command);
		return false;
	}
	if (!look->asked) {
		look->asked = commands_holding(policy, false, seen);
		if (look->asked)
			keep_command(look, seen->command);
	}
	if (!look->asked && !look->unread && seen->unread && asks_unread(policy->commands)) {
		look->unread = seen->unread;
		keep_command(look, seen->command);
	}
	if (!look->harm)
		look->harm = harm;
	if (harm && harm->when == HARM_ASKED && !look->harm_asked &&
	    !commands_named(policy->commands, seen->command))
		look->harm_asked = harm;
	return true;
}

static void look_init(struct look *look, const struct policy *policy)
{
	*look = (struct look){.policy = policy};
	buf_init(&look->command, COMMAND_TEXT_MAX + 1);
}

static void look_through(struct look *look, const struct policy_request *request)
{
	const struct command_visit visit = {look_at, look};
	const char *folder = request->folder ? request->folder : look->policy->workspace;

	if (request->argv)
		command_seen_argv(request->argv, folder, &visit);
	else
		command_seen_text(request->command, folder, &visit);
}

/*
 * Fill in the text of VERDICT: which rule of `deny` or `ask` fits the command. The model
 * and the person who is asked read it.
 */
static void tell_rule(const struct look *look, struct verdict *verdict)
{
	const struct policy *policy = look->policy;
	const struct command_rule *rule = look->denied ? look->denied : look->asked;
	const char *key = look->denied ? "commands.deny" : "commands.ask";
	struct buf because;

	verdict_begin(&because);
	(void)buf_adds(&because, "Not run: ");
	add_quoted(&because, buf_str(&look->command));
	if (rule->of_machine)
		(void)buf_addf(&because,
			       " is what the rule \"%.64s\" of this machine's administrator denies "
			       "(/etc/glovebox/policy.json, deny_commands). Do without it, by "
			       "another name as well.",
			       rule->name);
	else
		(void)buf_addf(&because,
			       " is what the rule \"%.64s\" of agents.%.64s.%s %s. Do without "
			       "it%s, or ask the user to run it, or to take that rule out of the "
			       "configuration.",
			       rule->name, policy->name, key,
			       look->denied ? "denies" : "leaves to a person's yes",
			       look->denied ? ", by another name as well" : "");
	verdict_end(verdict, &because, policy, key);
	if (rule->of_machine)
		(void)snprintf(verdict->rule, sizeof(verdict->rule),
			       "/etc/glovebox/policy.json, deny_commands");
	(void)snprintf(verdict->by, sizeof(verdict->by), "%s", rule->name);
}

/* Set a verdict that asks about a command that cannot be read. */
static void tell_unread(const struct look *look, struct verdict *verdict)
{
	struct buf because;

	verdict_begin(&because);
	(void)buf_adds(&because, "Not run: ");
	add_quoted(&because, buf_str(&look->command));
	(void)buf_addf(&because,
		       " %s, and agents.%.64s.commands.unread leaves that to a person's yes. "
		       "Write the commands out, or ask the user to run it.",
		       look->unread, look->policy->name);
	verdict_end(verdict, &because, look->policy, "commands.unread");
	(void)snprintf(verdict->by, sizeof(verdict->by), "unread");
	verdict->answer = VERDICT_ASK;
}

/*
 * Set a verdict that asks for a harmful command, which runs anyway when nobody can be
 * asked.
 */
static void tell_harm(const struct look *look, struct verdict *verdict)
{
	const struct command_harm *harm = look->harm_asked;
	struct buf because;

	verdict_begin(&because);
	(void)buf_addf(&because,
		       "\"%s\" %s, and a person is asked where one can be. %s To let it run without "
		       "a question, the user adds a rule to agents.%.64s.commands.allow.",
		       harm->name, harm->does, harm->next, look->policy->name);
	verdict_end(verdict, &because, look->policy, "commands");
	(void)snprintf(verdict->by, sizeof(verdict->by), "%s", harm->name);
	verdict->answer = VERDICT_ASK;
	verdict->or_runs = true;
}

static bool deny_text(const struct policy *policy, const struct command *command,
		      struct str text, struct verdict *verdict)
{
	struct buf because;

	verdict_begin(&because);
	(void)buf_addf(&because,
		       "Not run: agent \"%s\" runs listed commands only, without a shell, "
		       "and this text is more than plain commands: %s",
		       policy->name, command->reason);
	if (command->at < text.size) {
		(void)buf_addf(&because, " at byte %zu, ", command->at + 1);
		add_quoted(&because, str_part(text, command->at, text.size));
	}
	(void)buf_addf(&because, ". %s", command->remedy);
	return deny(policy, verdict, &because);
}

static void add_once(struct buf *list, const char *name, size_t *count)
{
	struct str rest = buf_str(list);
	size_t size = strlen(name);

	for (size_t at = 0; at + size <= rest.size; at++) {
		bool begins = at == 0 || (at > 1 && rest.data[at - 1] == ' ' &&
					  rest.data[at - 2] == ',');

		if (begins && memcmp(rest.data + at, name, size) == 0 &&
		    (at + size == rest.size || rest.data[at + size] == ','))
			return;
	}
	if ((*count)++ < LISTED_MAX)
		(void)buf_addf(list, "%s%s", rest.size ? ", " : "", name);
}

/* Append the forms of PROGRAM; NULL: of every program. */
static void add_forms(struct buf *out, const struct commands *commands, const char *program)
{
	size_t count = 0;
	struct buf list;

	buf_init(&list, NEAREST_MAX);
	for (size_t i = 0; i < commands->allow.count; i++) {
		const struct command_rule *rule = &commands->allow.items[i];
		struct str rest = rule->programs, one;

		if (rule->runs_code && !commands->runs_code)
			continue;
		if (program && command_rule_is_of(rule, program))
			add_once(&list, rule->name, &count);
		while (!program && command_next_choice(&rest, &one)) {
			auto_free char *name = memory_copy_str(one);

			add_once(&list, name, &count);
		}
	}
	(void)buf_addstr(out, buf_str(&list));
	if (count > LISTED_MAX)
		(void)buf_addf(out, " and %zu more", count - LISTED_MAX);
	if (count == 0)
		(void)buf_adds(out, "none");
	buf_fini(&list);
}

/* Deny a program for which there is no rule. */
static bool deny_program(const struct judged *judged)
{
	const struct policy *policy = judged->policy;
	const char *program = judged->argv[0];
	struct buf because;

	verdict_begin(&because);
	(void)buf_adds(&because, "Not run: the program ");
	add_quoted(&because, str_of(program));
	(void)buf_addf(&because, " is not one that agent \"%s\" may run; there are ",
		       policy->name);
	add_forms(&because, judged->match.list, NULL);
	if (strcmp(program, "cd") == 0)
		(void)buf_adds(&because, ". Name the folder in the argument workdir, ");
	else if (strcmp(program, "apply_patch") == 0 || strcmp(program, "applypatch") == 0)
		(void)buf_adds(&because, ". Give the patch to the tool apply_patch, ");
	else
		(void)buf_adds(&because, ". Use one of these, ");
	add_remedy(&because, policy);
	return deny(policy, judged->verdict, &because);
}

/* Append what code the word names, and the word of a rule that would grant it. */
static void add_code(struct buf *out, const struct command_code *code)
{
	(void)buf_addf(out, " (%s: %s); that would be ",
		       code->kind == CODE_SCRIPT ? "the script" : code->name, code->reason);
	command_code_word(code, out);
}

/* Deny a command that has the form of no rule of its program. */
static bool deny_form(const struct judged *judged)
{
	const struct command_match *match = &judged->match;
	const struct policy *policy = judged->policy;
	const char *word = judged->argv[match->word];
	struct buf because, nearest;

	verdict_begin(&because);
	buf_init(&nearest, NEAREST_MAX);
	(void)buf_adds(&because, "Not run: ");
	add_argv(&because, judged->argv);
	(void)buf_addf(&because, " is not a form that agent \"%s\" may run. ", policy->name);
	if (match->fit == FIT_OTHER_SUBCOMMAND) {
		(void)buf_adds(&because, "Listed are ");
		add_forms(&because, match->list, judged->argv[0]);
		(void)buf_adds(&because, ". ");
	} else {
		(void)buf_addf(&because, "The rule \"%s\"%s%s%s does not take it: ",
			       judged->rule->name, judged->rule->preset ? " (preset " : "",
			       judged->rule->preset ? judged->rule->preset : "",
			       judged->rule->preset ? ")" : "");
		if (word != NULL)
			add_quoted(&because, str_of(word));
		else
			(void)buf_adds(&because, "it");
		(void)buf_addf(&because, " %s", command_fit_clause(match->fit));
		if (match->code != NULL)
			add_code(&because, match->code);
		(void)buf_adds(&because, ". ");
	}
	if (match->fit != FIT_RUNS_CODE)
		commands_nearest(judged->rule, judged->argv, &nearest);
	if (nearest.size > 0)
		(void)buf_addf(&because, "The nearest that is allowed: %s . Use that, ",
			       nearest.data);
	else
		(void)buf_adds(&because, "Do without it, ");
	add_remedy(&because, policy);
	buf_fini(&nearest);
	return deny(policy, judged->verdict, &because);
}

/* Judge words that the rule calls paths like paths that a tool reads. */
static bool judge_paths(const struct judged *judged)
{
	const struct policy_request *request = judged->request;
	const char *folder = request->folder ? request->folder : judged->policy->workspace;

	for (size_t i = 0; i < judged->match.path_count; i++) {
		const char *given = judged->match.paths[i];
		struct buf path, because;
		struct verdict why;
		bool fine;

		buf_init(&path, PATH_MAX);
		fine = policy_normal(judged->policy, folder, given, &path);
		if (fine) {
			policy_judge_path(judged->policy, path.data, false, true, &why);
			fine = why.answer == VERDICT_ALLOW;
		} else {
			why = (struct verdict){.because =
						       "it leads above /, or is too long"};
		}
		buf_fini(&path);
		if (fine)
			continue;
		verdict_begin(&because);
		(void)buf_adds(&because, "Not run: ");
		add_quoted(&because, str_of(given));
		(void)buf_addf(&because, " is no path that agent \"%s\" may read: %s.",
			       judged->policy->name, why.because);
		(void)deny(judged->policy, judged->verdict, &because);
		if (why.rule[0])
			memcpy(judged->verdict->rule, why.rule, sizeof(why.rule));
		return false;
	}
	return true;
}

static void append_words(struct value *argv, const struct command_insert *words)
{
	for (size_t i = 0; i < words->count; i++)
		value_append(argv, value_new_text(words->items[i]));
}

static bool same_words(const struct command_insert *a, const struct command_insert *b)
{
	bool same = a->count == b->count;

	for (size_t i = 0; same && i < a->count; i++)
		same = strcmp(a->items[i], b->items[i]) == 0;
	return same;
}

/*
 * Insert the words that the rule of each list adds behind the first AT words of the
 * command; equal words are inserted once.
 */
static void insert_words(const struct judged *judged, size_t at, struct value *argv)
{
	for (size_t i = 0; i < judged->list_count; i++) {
		const struct command_rule *rule = judged->rules[i];
		bool global = at == 1, behind = at == judged->matches[i].subcommand;

		for (size_t j = 0; j < i; j++) {
			if (same_words(&rule->insert_global,
				       &judged->rules[j]->insert_global))
				global = false;
			if (at == judged->matches[j].subcommand &&
			    same_words(&rule->insert, &judged->rules[j]->insert))
				behind = false;
		}
		if (global)
			append_words(argv, &rule->insert_global);
		if (behind)
			append_words(argv, &rule->insert);
	}
}

/* ARGV with the words that its rules insert. */
static struct value *argv_of(const struct judged *judged)
{
	struct value *argv = value_new_array();
	size_t at = 0;

	while (judged->argv[at] != NULL) {
		value_append(argv, value_new_text(judged->argv[at++]));
		insert_words(judged, at, argv);
	}
	return argv;
}

static size_t lists_of(const struct policy *policy)
{
	size_t count = 0;

	for (const struct commands *at = policy->commands; at; at = at->within)
		count += !at->box;
	return count;
}

/* Does every list allow ARGV, and the paths that its rule finds in ARGV? */
static bool judge_lists(struct judged *judged)
{
	for (const struct commands *at = judged->policy->commands; at; at = at->within) {
		if (at->box)
			continue;
		judged->match.paths = judged->matches[0].paths;
		judged->rule = commands_find(at, judged->argv, &judged->match);
		if (!judged->rule)
			return deny_program(judged);
		if (judged->match.fit != FIT_MATCH)
			return deny_form(judged);
		if (!judge_paths(judged))
			return false;
		judged->rules[judged->list_count] = judged->rule;
		judged->matches[judged->list_count].subcommand = judged->match.subcommand;
		judged->list_count++;
	}
	return true;
}

/*
 * Needs no list to allow ARGV: a person will be asked about it, or has answered `always` and
 * it destroys nothing.
 */
static bool is_settled(const struct judged *judged)
{
	struct look look;
	bool settled;

	look_init(&look, judged->policy);
	look_through(&look,
		     &(const struct policy_request){.argv = judged->argv,
						    .folder = judged->request->folder});
	settled = look.asked != NULL || (look.harm_asked == NULL &&
					 rules_let(&judged->policy->always, judged->argv));
	buf_fini(&look.command);
	return settled;
}

/*
 * Judge ARGV, joined to the command before it by JOIN, and add the commands that run to
 * PLAN.
 */
static bool judge_argv(struct judged *judged, const char *join, struct value *plan)
{
	size_t count = 0, lists = lists_of(judged->policy);

	while (judged->argv[count] != NULL)
		count++;
	auto_free const char **paths = memory_array(count + 1, sizeof(*paths));
	auto_free const struct command_rule **rules = memory_array(lists, sizeof(*rules));
	auto_free struct command_match *matches = memory_array(lists, sizeof(*matches));

	matches[0].paths = paths;
	judged->rules = rules;
	judged->matches = matches;
	judged->list_count = 0;
	/* Then no list needs to allow it, and none inserts words. */
	if (!is_settled(judged) && !judge_lists(judged))
		return false;
	struct value *part = value_new_object();
	value_set_text(part, "join", join);
	value_set(part, "argv", argv_of(judged));
	value_append(plan, part);
	return true;
}

static bool judge_text(struct judged *judged, struct value *plan)
{
	struct command command;
	bool fine = command_parse(&command, judged->request->command);

	if (!fine)
		(void)deny_text(judged->policy, &command, judged->request->command,
				judged->verdict);
	for (size_t i = 0; fine && i < command.count; i++) {
		judged->argv = command.parts[i].argv;
		fine = judge_argv(judged, command_joins[command.parts[i].join], plan);
	}
	command_fini(&command);
	return fine;
}

/*
 * Judge a tool that chooses its commands itself (it runs tests): this is code of the
 * project.
 */
static bool judge_tool(const struct judged *judged)
{
	const struct commands *list = judged->policy->commands;
	struct buf because;

	while (list && list->runs_code) /* always set for a box */
		list = list->within;
	if (!list)
		return true;
	verdict_begin(&because);
	(void)buf_addf(&because,
		       "Not run: %.64s runs code of the project, which the policy of agent "
		       "\"%s\" leaves out; only the user can change runs_code in "
		       "agents.%.64s.commands.",
		       judged->request->tool, judged->policy->name, judged->policy->name);
	return deny(judged->policy, judged->verdict, &because);
}

/*
 * Only listed commands may run: is REQUEST allowed, and which commands run in its
 * place?
 */
static bool decide_listed(const struct policy *policy,
			  const struct policy_request *request, struct verdict *verdict)
{
	struct judged judged = {.policy = policy, .request = request, .verdict = verdict};
	auto_value struct value *plan = value_new_array();
	bool fine;

	if (request->argv) {
		judged.argv = request->argv;
		fine = judge_argv(&judged, command_joins[COMMAND_THEN], plan);
	} else if (request->command.data) {
		fine = judge_text(&judged, plan);
	} else {
		fine = judge_tool(&judged);
	}
	if (fine && value_count(plan) > 0)
		verdict->plan = value_ref(plan);
	/*
	 * A person can see and judge the command. Blocked paths stay blocked after any
	 * answer.
	 */
	if (!fine && (request->argv || request->command.data) &&
	    str_ends(str_of(verdict->rule), STR(".commands")) &&
	    policy_asks(policy, "commands"))
		verdict->answer = VERDICT_ASK;
	return fine;
}

static void decide_seen(const struct look *look, const struct policy_request *request,
			struct verdict *verdict)
{
	const bool listed = commands_listed(look->policy->commands);

	if (look->denied) {
		tell_rule(look, verdict);
		return;
	}
	if (listed && !decide_listed(look->policy, request, verdict))
		return;
	verdict->harm = look->harm_asked ? look->harm_asked : look->harm;
	if (look->asked) {
		tell_rule(look, verdict);
		verdict->answer = VERDICT_ASK;
	} else if (look->unread) {
		tell_unread(look, verdict);
	} else if (look->harm_asked && !listed) {
		tell_harm(look, verdict);
	} else {
		verdict->answer = VERDICT_ALLOW;
	}
}

void commands_decide(const struct policy *policy, const struct policy_request *request,
		     struct verdict *verdict)
{
	struct look look;

	*verdict = (struct verdict){.answer = VERDICT_DENY};
	if (!(request->effects & POLICY_RUNS)) {
		verdict->answer = VERDICT_ALLOW;
		return;
	}
	if (!request->argv && !request->command.data) {
		if (!commands_listed(policy->commands) ||
		    decide_listed(policy, request, verdict))
			verdict->answer = VERDICT_ALLOW;
		return;
	}
	look_init(&look, policy);
	look_through(&look, request);
	decide_seen(&look, request, verdict);
	buf_fini(&look.command);
}
