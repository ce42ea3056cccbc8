/* command_rule: a rule out of its JSON; see command_rule.h. command_match.c compares. */
#include "policy/command_rule.h"

#include "base/buf.h"
#include "base/text/text.h"

#include <errno.h>
#include <string.h>

enum { NAME_MAX_BYTES = 200 };

/* The rest of TEXT behind the first SEPARATOR; empty when there is none. FIRST is before it. */
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

/* "-x", "--name=KIND", "--name[=KIND]", "-number" */
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

/* "KIND", "KIND?", "KIND*", "KIND+", "--" */
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

/* Options, and what operands begin with: "SHELL=", "run". */
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

/* "git log": the first program and the subcommand. */
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

bool command_rule_make(struct command_rule *rule, const struct value *object,
		       struct arena *arena, const char *pointer, struct err *err)
{
	char below[ERR_TEXT_MAX / 2];

	*rule = (struct command_rule){
		.programs = value_str(value_member(object, "program")),
		.subcommand = value_str(value_member(object, "subcommand")),
		.runs_code = value_is_true(value_member(object, "runs_code")),
		.match = value_member(object, "match"),
	};
	if (rule->programs.size == 0)
		return err_set(err, EINVAL, "%s: needs the key program", pointer);
	rule->name = name_of(rule, arena);
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

bool command_next_choice(struct str *rest, struct str *choice)
{
	if (rest->size == 0)
		return false;
	*rest = split(*rest, ',', choice);
	return true;
}

bool command_rule_is_of(const struct command_rule *rule, const char *name)
{
	struct str rest = rule->programs, program;

	while (command_next_choice(&rest, &program)) {
		if (str_is(program, name))
			return true;
	}
	return false;
}
