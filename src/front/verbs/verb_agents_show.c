/*
 * glovebox agents show: prints an agent's role and rights, key by key, and where each key
 * comes from. No cell is made and nothing runs. The text is made of the same object as
 * the JSON.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/setup.h"
#include "front/verb.h"
#include "policy/commands.h"
#include "policy/config.h"
#include "tool/tool.h"
#include "view/shape.h"

enum { KEY_COLUMN = 18, SHOW_TEXT_MAX = 1 << 20 };

static const struct option_row show_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print it as one JSON object"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static struct value *names_value(const struct policy_names *names)
{
	struct value *list = value_new_array();

	for (size_t i = 0; i < names->count; i++)
		value_append(list, value_new_text(names->items[i]));
	return list;
}

/* The names of variables; values are left out, since they may be secrets. */
static struct value *variables_value(const struct policy_names *names)
{
	struct value *list = value_new_array();

	for (size_t i = 0; i < names->count; i++)
		value_append(list,
			     value_new_str((struct str){names->items[i],
							strcspn(names->items[i], "=")}));
	return list;
}

static struct value *path_value(const struct policy_path *entry)
{
	struct value *value;
	struct buf text;

	buf_init(&text, SHOW_TEXT_MAX);
	(void)buf_adds(&text, entry->path != NULL ? entry->path : "");
	if (entry->pattern != NULL)
		(void)buf_addf(&text, "%s%s", str_ends(buf_str(&text), STR("/")) ? "" : "/",
			       entry->pattern);
	value = value_new_str(buf_str(&text));
	buf_fini(&text);
	return value;
}

static struct value *paths_value(const struct policy_paths *paths)
{
	struct value *list = value_new_array();

	for (size_t i = 0; i < paths->count; i++)
		value_append(list, path_value(&paths->items[i]));
	return list;
}

/* The lists of commands; a command has to fit each list. */
static struct value *commands_value(const struct commands *commands)
{
	struct value *list = value_new_array();

	for (const struct commands *at = commands; at != NULL; at = at->within)
		value_append(list, value_copy(at->source));
	if (value_count(list) == 0)
		value_append(list, value_new_text("box"));
	return list;
}

static struct value *value_of(const struct key *key, const void *place)
{
	const char *text;

	switch (key->kind) {
	case KEY_TEXT:
		text = *(char *const *)place;
		return text != NULL ? value_new_text(text) : value_new_null();
	case KEY_NAMES:
		if (key->home == KEY_IN_ROLE && !((const struct policy_names *)place)->given)
			return value_new_null();
		return names_value(place);
	case KEY_HOSTS:
		return names_value(place);
	case KEY_VARIABLES:
		return variables_value(place);
	case KEY_PATH:
		return path_value(place);
	case KEY_PATHS:
		return paths_value(place);
	case KEY_FLAG:
		return value_new_boolean(*(const bool *)place);
	case KEY_COUNT:
	case KEY_SIZE:
		return value_new_integer((int64_t) * (const uint64_t *)place);
	case KEY_SECONDS:
	case KEY_NUMBER:
		return value_new_real(*(const double *)place);
	case KEY_COMMANDS:
		return commands_value(*(struct commands *const *)place);
	case KEY_CHECKS:
		return *(struct value *const *)place != NULL
			       ? value_copy(*(struct value *const *)place)
			       : value_new_null();
	default:
		return value_new_null();
	}
}

/* Does VALUE mean that KEY is not set (no limit, or the provider's own)? */
static bool is_unset(const struct key *key, const struct value *value)
{
	if (value_kind(value) == VALUE_NULL)
		return true;
	if (key->home == KEY_IN_ROLE)
		return value_is_number(value) &&
		       (value_number(value) < 0 ||
			(key->kind == KEY_COUNT && value_number(value) == 0));
	return key->initial != NULL && value_is_number(value) && value_number(value) == 0;
}

/* Add the row of KEY. HOME is the struct that KEY's offset counts from. */
static void add_row(const struct setup *setup, const struct key *key, const char *name,
		    const void *home, struct value *keys)
{
	const char *who = value_text(value_member(setup->origins, name));
	struct value *value = value_of(key, (const char *)home + key->offset);
	struct value *row = value_new_object();

	if (is_unset(key, value)) {
		value_free(value);
		value = value_new_text(key->initial != NULL ? key->initial : "");
		value_set_boolean(row, "unset", true);
	} else if (key->kind == KEY_SIZE || key->kind == KEY_SECONDS)
		value_set_text(row, "unit", key->kind == KEY_SIZE ? "bytes" : "seconds");
	value_set(row, "value", value);
	value_set_text(row, "from", who != NULL ? who : "default");
	value_set(keys, name, row);
}

static bool runs_commands(const struct setup *setup)
{
	for (size_t i = 0; setup->tools[i] != NULL; i++) {
		if ((setup->tools[i]->effects & EFFECT_RUNS) != 0 &&
		    setup_has_tool(setup, setup->tools[i]))
			return true;
	}
	return false;
}

/*
 * Is the key NAME without effect, because the agent lacks the tools that the key is
 * about?
 */
static bool is_moot(const struct setup *setup, const char *name)
{
	if (strcmp(name, "commands") == 0)
		return !runs_commands(setup);
	return strcmp(name, "may_delegate_to") == 0 &&
	       !policy_has_tool(setup->policy, "delegate_agent");
}

/* The rows of all keys. ALL: also of keys without effect for this agent. */
static struct value *keys_value(const struct setup *setup, bool all)
{
	struct value *keys = value_new_object();
	char name[2 * CONFIG_NAME_MAX];

	for (const struct key *key = keys_agent; key->name != NULL; key++) {
		const char *home = key->home == KEY_IN_POLICY ? (const char *)setup->policy
							      : (const char *)&setup->role;

		if (!all && is_moot(setup, key->name))
			continue;
		if (key->kind != KEY_ROWS) {
			add_row(setup, key, key->name, home, keys);
			continue;
		}
		for (const struct key *row = key->rows; row->name != NULL; row++) {
			(void)snprintf(name, sizeof(name), "%s.%s", key->name, row->name);
			add_row(setup, row, name, home + key->offset, keys);
		}
	}
	return keys;
}

/* Notes on keys whose combined meaning is not obvious. */
static struct value *notes_value(const struct setup *setup)
{
	struct value *notes = value_new_array();
	const struct policy *policy = setup->policy;
	bool pattern = false, made = false;

	for (size_t i = 0; i < policy->write.count; i++) {
		pattern = pattern || policy->write.items[i].pattern != NULL;
		made = made || (policy->write.items[i].shipped &&
				policy->write.items[i].pattern == NULL);
	}
	if (pattern)
		value_append(notes,
			     value_new_text(
				     "A pattern in `write` is kept by the tools that write: "
				     "the kernel knows no patterns, so it opens the folder of "
				     "the pattern. The agent has no tool that runs "
				     "commands."));
	if (made)
		value_append(notes,
			     value_new_text(
				     "A folder of `write` that is missing is made while "
				     "the cell is built, and goes with it when it stays "
				     "empty."));
	if (policy->scratch)
		value_append(notes,
			     value_new_text("`scratch`: all that is read may be written "
					    "too, in a layer that goes with the cell; "
					    "files change below `write` alone."));
	if (!runs_commands(setup))
		value_append(notes,
			     value_new_text("It has no tool that runs commands: of the "
					    "limits of commands none is ever met."));
	if (setup->bounds != NULL)
		value_append(notes, value_new_text("A role of the workspace: it is held to what "
						   "your default agent may do."));
	return notes;
}

static void add_text(const struct value *value, struct buf *out)
{
	/* Keep any text on the line of its key. */
	if (value_kind(value) == VALUE_STRING) {
		text_add_name(out, value_str(value));
	} else if (value_kind(value) == VALUE_ARRAY) {
		for (size_t i = 0; i < value_count(value); i++) {
			(void)buf_adds(out, i > 0 ? ", " : "");
			add_text(value_item(value, i), out);
		}
		if (value_count(value) == 0)
			(void)buf_adds(out, "nothing");
	} else {
		struct buf text;

		buf_init(&text, SHOW_TEXT_MAX);
		(void)value_print(value, 0, &text);
		text_add_name(out, buf_str(&text));
		buf_fini(&text);
	}
}

static void print_key(const char *name, const struct value *row, FILE *out)
{
	const struct value *value = value_member(row, "value");
	const char *from = value_text(value_member(row, "from"));
	const char *unit = value_text(value_member(row, "unit"));
	char size[32];
	struct buf text;

	buf_init(&text, 4 * SHOW_TEXT_MAX);
	if (strcmp(name, "prompt") == 0 && !value_is_true(value_member(row, "unset")))
		(void)buf_addf(&text, "%zu bytes, shown by --json", value_str(value).size);
	else if (unit != NULL && strcmp(unit, "bytes") == 0)
		(void)buf_adds(&text, text_size((uint64_t)value_integer(value), size));
	else if (value_is_number(value))
		(void)buf_addf(&text, "%g%s", value_number(value), unit != NULL ? " s" : "");
	else
		add_text(value, &text);
	(void)fprintf(out, "%-*s %s", KEY_COLUMN, name, text.data);
	(void)fprintf(out, strcmp(from, "default") == 0 ? "\n" : "  (%s)\n", from);
	buf_fini(&text);
}

static int print_report(const struct value *report, FILE *out)
{
	const struct value *keys = value_member(report, "keys");
	const struct value *notes = value_member(report, "notes");

	(void)fprintf(out, "%-*s %s\n", KEY_COLUMN, "agent",
		      value_text(value_member(report, "agent")));
	for (void *at = value_first(keys); at != NULL; at = value_next(keys, at))
		print_key(value_key(at), value_at(at), out);
	for (size_t i = 0; i < value_count(notes); i++)
		(void)fprintf(out, "%s%s\n", i == 0 ? "\n" : "",
			      value_text(value_item(notes, i)));
	return CODE_DONE;
}

static int show_run(const struct options *options, FILE *out)
{
	const struct setup_flags flags = {
		.agent = options->words[0],
		.explain = true,
		.quiet_plugins = true,
	};
	struct setup setup = {0};
	struct err err = {0};
	int code;

	if (!setup_init_with(&setup, options, &flags, &err)) {
		code = verb_complain(CODE_FAILED, "%s", err.text);
	} else {
		auto_close int folder =
			open(setup.workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
		auto_value struct value *report = value_new_object();

		shape_limits(&setup.policy->limits, folder);
		value_set_text(report, "agent", setup.agent);
		value_set_text(report, "workspace", setup.workspace);
		value_set(report, "keys",
			  keys_value(&setup, options_given(options, "json")));
		value_set(report, "notes", notes_value(&setup));
		code = options_given(options, "json")
			       ? verb_print_json(report, VALUE_PRETTY, out)
			       : print_report(report, out);
	}
	setup_fini(&setup);
	return code;
}

static const char show_help[] =
	"Show the agent NAME as it would work in this folder: each key with its value and\n"
	"who said it (the shipped role, a role of yours, the configuration), paths as they\n"
	"are on this machine, and what follows from them. Of variables the names alone\n"
	"are shown. Nothing is run.";

const struct verb verb_agents_show = {
	.name = "agents show",
	.summary = "show what an agent is and may do, and who said so",
	.arguments = "NAME",
	.help = show_help,
	.example = "  glovebox agents show tester",
	.options = show_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_AGENTS,
	.folds = true,
	.run = show_run,
};
