/* commands: presets and rules made into one list, and asked; see commands.h. */
#include "policy/commands.h"

#include "base/library.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "policy/command_code.h"
#include "policy/command_seen.h"
#include "policy/presets.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum {
	PRESETS_MAX = 32,
	QUOTED_MAX = 80, /* bytes of an example shown in a sentence */
};

/* "presets/php.json" is "php". */
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

static bool check_preset(const struct value *name, const char *pointer, struct err *err)
{
	char texts[PRESETS_MAX][32] = {{0}};
	const char *names[PRESETS_MAX + 1] = {0};
	const char *nearest;
	struct buf list;
	size_t count = 0;

	if (preset_find(value_str(name)) != NULL)
		return true;
	buf_init(&list, ERR_TEXT_MAX / 2);
	for (const struct embedded_file *file = policy_presets; file->name; file++) {
		struct str known = preset_name(file);

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

/* Rules that deny or ask hold for a command that they name a part of. */
static bool example_holds(void *context, const struct command_seen *seen)
{
	struct example *example = context;

	example->holds |= command_rule_holds(example->rule, seen->command);
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

/* Is EXAMPLE of the form? WHY says what is in the way. */
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

	buf_init(&why, QUOTED_MAX + COMMAND_TEXT_MAX);
	fits = lets_run ? example_fits(rule, text, &why)
			: example_is_held(rule, text, &why);
	if (fits != wanted) {
		size_t shown = text_character_border(text, QUOTED_MAX);

		buf_truncate(&why, why.size < QUOTED_MAX ? why.size : QUOTED_MAX);
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

/* An option that names code stands in `executes`, or nowhere. */
static bool check_options(const struct command_rule *rule,
			  const struct command_options *options, const char *key,
			  const char *pointer, struct err *err)
{
	for (size_t i = 0; i < options->count; i++) {
		auto_free char *name = memory_copy_str(options->items[i].name);
		const struct command_code *code =
			command_code_option(rule, name, options == &rule->global);

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

/* Operands that are a program, or its text, are named one by one, or said to run code. */
static bool check_operands(const struct command_rule *rule, const char *pointer,
			   struct err *err)
{
	const struct command_code *code = command_code_operands(rule);

	for (size_t i = 0; code != NULL && !rule->runs_code && i < rule->operand_count;
	     i++) {
		const enum command_kind kind = rule->operands[i].value.kind;

		if (kind == COMMAND_CHOICE)
			break; /* the first says which program; the others are that one's */
		if (kind == COMMAND_TEXT || kind == COMMAND_PATH)
			return err_set(err, EINVAL,
				       "%s/operands/%zu: an operand of \"%.64s\" is %s; name the "
				       "choices (\"a,b\"), or say \"runs_code\": true",
				       pointer, i, rule->name, code->reason);
	}
	return true;
}

/* A rule that lets nothing run puts nothing in and grants nothing. */
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

static bool check_rule(const struct value *object, bool lets_run, const char *pointer,
		       struct err *err)
{
	struct command_rule rule;
	struct arena arena;
	bool ok;

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

/* OBJECT was checked: a shipped one by a test, one's own when the configuration was read. */
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

static void add_preset(struct commands *commands, struct str preset, const char *only);

/* An item that is a text is the name of a rule in the preset of its first word: "git log". */
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

/* All of it, or the rule ONLY. */
static void add_preset(struct commands *commands, struct str preset, const char *only)
{
	const struct embedded_file *file = preset_find(preset);
	struct value *list = NULL;
	struct err err;
	bool fine =
		file && value_parse((struct str){file->data, file->size}, 0, &list, &err);

	assert(fine);
	(void)fine;
	value_append(commands->presets, list);
	add_rules(commands, list, arena_copy(&commands->arena, preset), only);
}

/*
 * Does VALUE mean the profile `box`? An object without a profile means `box` when it has
 * only rules that deny or ask: everything else then runs.
 */
static bool is_box(const struct value *value, const struct value *object)
{
	const char *profile = value_text(object ? value_member(object, "profile") : value);

	if (profile != NULL)
		return strcmp(profile, "box") == 0;
	return (value_member(object, "deny") || value_member(object, "ask")) &&
	       !value_member(object, "presets") && !value_member(object, "rules") &&
	       !value_member(object, "allow");
}

static void add_own(struct commands *commands, struct command_rules *rules, const char *key)
{
	const struct value *list = value_member(commands->own, key);

	for (size_t i = 0; i < value_count(list); i++)
		add_rule(commands, rules, value_item(list, i), NULL);
}

/* "list" by itself stands for every preset. */
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
	add_own(commands, &commands->deny, "deny");
	add_own(commands, &commands->ask, "ask");
	add_own(commands, &commands->allow, "allow");
	add_own(commands, &commands->allow, "rules");
	if (commands->box &&
	    commands->deny.count + commands->ask.count + commands->allow.count == 0) {
		commands_free(commands);
		return NULL;
	}
	for (const struct embedded_file *file = policy_presets; !object && file->name;
	     file++)
		add_preset(commands, preset_name(file), NULL);
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
 * The rule whose match came farther in the words is nearer; of two equal ones, the first.
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
	/* Of two that came as far the one that knows what the word is says more. */
	if (now->word == best->word)
		return now->fit == FIT_EXECUTES && best->fit != FIT_EXECUTES;
	return now->word > best->word;
}

const struct command_rule *commands_find(const struct commands *commands,
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
					       const struct shell_command *command)
{
	for (size_t i = 0; i < rules->count; i++) {
		if (command_rule_holds(&rules->items[i], command))
			return &rules->items[i];
	}
	return NULL;
}

const struct command_rule *commands_holding(const struct commands *commands, bool denies,
					    const struct shell_command *command)
{
	const struct command_rule *found = NULL;

	for (; commands && !found; commands = commands->within)
		found = find_holding(denies ? &commands->deny : &commands->ask, command);
	return found;
}

bool commands_named(const struct commands *commands, const struct shell_command *command)
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
	enum { TRIES_MAX = 16 }; /* who has more words wrong meant another command */
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
