/*
 * glovebox plugin list, call and trust: lists script tools, calls them by hand and lets
 * them in.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text/text.h"
#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/verb_tool.h"

enum { SHOWN_DIGITS = 12, TEXT_MAX = 16 << 10 };

static const struct option_row list_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print it as JSON"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row call_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print the whole result as one JSON object"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_ALLOW_HOST,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row trust_options[] = {
	OPTION_ROW_WORKSPACE, OPTION_ROW_CONFIG, OPTION_ROW_AGENT,
	OPTION_ROW_LEVEL,     OPTION_ROW_HELP,   {0},
};

/* Print foreign TEXT, made safe for a terminal. */
static void print_name(const char *text, FILE *out)
{
	struct buf clean;

	buf_init(&clean, TEXT_MAX);
	text_add_name(&clean, str_of(text));
	(void)fputs(clean.data, out);
	buf_fini(&clean);
}

static int print_json(const struct plugins *plugins, FILE *out)
{
	auto_value struct value *all = value_new_object();
	struct value *list = value_new_array();
	int code;

	for (size_t i = 0; i < plugins->count; i++) {
		const struct plugin *plugin = plugins->items[i];
		struct value *row = value_new_object();

		value_set_text(row, "id", plugin->schema.id);
		value_set_text(row, "version", plugin->schema.version);
		value_set_text(row, "args_mode", plugin_mode_name(plugin->schema.mode));
		value_set_text(row, "file", plugin->file);
		value_set_text(row, "source", plugin->package->source);
		value_set_text(row, "hash", plugin->package->hash);
		if (plugin->package->commit[0] != '\0')
			value_set_text(row, "commit", plugin->package->commit);
		value_set(row, "warnings", value_copy(plugin->schema.warnings));
		value_append(list, row);
	}
	value_set(all, "plugins", list);
	value_set(all, "left_out",
		  plugins->problems != NULL ? value_copy(plugins->problems)
					    : value_new_array());
	code = verb_print_json(all, VALUE_PRETTY, out);
	return value_count(plugins->problems) > 0 ? CODE_FAILED : code;
}

static void print_plugin(const struct plugin *plugin, FILE *out)
{
	(void)fprintf(out, "%-24s ", plugin->schema.id);
	print_name(plugin->schema.version, out);
	(void)fprintf(out, "  %s  %.*s  ", plugin_mode_name(plugin->schema.mode),
		      SHOWN_DIGITS, plugin->package->hash);
	print_name(plugin->package->source, out);
	if (plugin->package->commit[0] != '\0')
		(void)fprintf(out, " at %.*s", SHOWN_DIGITS, plugin->package->commit);
	(void)putchar('\n');
}

/* Print the plugins. Those that were left out have been named on standard error. */
static int print_list(const struct plugins *plugins, FILE *out)
{
	for (size_t i = 0; plugins != NULL && i < plugins->count; i++)
		print_plugin(plugins->items[i], out);
	if (plugins == NULL || plugins->count + value_count(plugins->problems) == 0)
		(void)fputs("no plugins; the configuration names them: docs/plugins.md\n",
			    out);
	return plugins != NULL && value_count(plugins->problems) > 0 ? CODE_FAILED
								     : CODE_DONE;
}

static int list_run(const struct options *options, FILE *out)
{
	const bool json = options_given(options, "json");
	const struct setup_flags flags = {.quiet_plugins = json};
	static const struct plugins none;
	struct setup setup;
	struct err err = {0};
	int code;

	if (!setup_init_with(&setup, options, &flags, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else if (json)
		code = print_json(setup.plugins.loaded != NULL ? setup.plugins.loaded : &none,
				  out);
	else
		code = print_list(setup.plugins.loaded, out);
	setup_fini(&setup);
	return code;
}

static const char list_help[] =
	"List the plugins of the configuration: name, version, how arguments reach the\n"
	"script, the hash of what was let in, and where it comes from. What is left out\n"
	"is told with its reason; the exit code is then 1.";

const struct verb verb_plugin_list = {
	.name = "plugin list",
	.summary = "list the scripts that are tools",
	.arguments = "",
	.help = list_help,
	.example = "  glovebox plugin list --json",
	.options = list_options,
	.run = list_run,
};

static bool is_place(const char *word)
{
	struct stat st;

	return strpbrk(word, "/:") != NULL || stat(word, &st) == 0;
}

/* The name of the tool that WORD names, by its place (BY_PLACE) or by its name. */
static const char *tool_of(const struct plugins *plugins, const char *word, bool by_place,
			   struct err *err)
{
	size_t count = plugins != NULL ? plugins->count : 0;

	for (size_t i = 0; !by_place && i < count; i++) {
		if (strcmp(plugins->items[i]->schema.id, word) == 0)
			return word;
	}
	if (by_place && count == 1)
		return plugins->items[0]->schema.id;
	if (by_place && count > 1)
		(void)err_set(err, EINVAL, "%s holds %zu tools; name the file of one",
			      word, count);
	else if (by_place)
		(void)err_set(err, ENOENT, "%s: there is no tool in it", word);
	else
		(void)err_set(err, ENOENT,
			      "no plugin \"%.100s\"; see: glovebox plugin list (a file is named "
			      "with a slash: ./%.100s)",
			      word, word);
	return NULL;
}

static int call_with(const struct options *options, struct setup *setup,
		     struct str arguments, bool by_place, FILE *out)
{
	struct interrupt *interrupt = NULL;
	struct err err = {0};
	const char *tool =
		tool_of(setup->plugins.loaded, options->words[0], by_place, &err);
	int code;

	if (tool == NULL || !interrupt_open(&interrupt, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		code = verb_tool_call_with(
			setup,
			&(struct verb_tool_wish){.tool = tool,
						 .arguments = arguments,
						 .json = options_given(options, "json")},
			interrupt, out);
	interrupt_close(interrupt);
	return code;
}

static int call_run(const struct options *options, FILE *out)
{
	const bool by_place = is_place(options->words[0]);
	const struct front_plugins_wish wish = {.named = options->words[0]};
	const struct setup_flags flags = {.plugins = by_place ? &wish : NULL};
	struct setup setup = {0};
	struct str arguments;
	struct buf input;
	struct err err = {0};
	int code;

	buf_init(&input, VALUE_TEXT_MAX);
	if (!verb_tool_read_arguments(options, &input, &arguments, &err) ||
	    !setup_init_with(&setup, options, &flags, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else if (!setup_allow_hosts(&setup, options, &err))
		code = verb_complain(CODE_USAGE, "%s", err.text);
	else
		code = call_with(options, &setup, arguments, by_place, out);
	setup_fini(&setup);
	buf_fini(&input);
	return code;
}

static const char call_help[] =
	"Call the plugin NAME of the configuration, or the one in FILE or FOLDER, in a\n"
	"cell of its own with the arguments JSON, as an agent would, and print what it\n"
	"says. A script that is named by its place needs no configuration and is not let\n"
	"in by that. An executable that describes itself is named as toolbox:FILE. Exit\n"
	"codes as of glovebox tool call.";

const struct verb verb_plugin_call = {
	.name = "plugin call",
	.summary = "call a script as a tool",
	.arguments = "NAME|FILE|FOLDER [JSON|-]",
	.help = call_help,
	.example = "  glovebox plugin call ./word_count '{\"value\": \"hello\"}'",
	.options = call_options,
	.words_least = 1,
	.words_most = 2,
	.run = call_run,
};

static int trust_run(const struct options *options, FILE *out)
{
	const struct front_plugins_wish wish = {.named = options->words[0], .trusts = true};
	const struct setup_flags flags = {.plugins = &wish};
	struct setup setup = {0};
	struct err err = {0};
	int code;

	if (!setup_init_with(&setup, options, &flags, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		code = print_list(setup.plugins.loaded, out);
	setup_fini(&setup);
	return code;
}

static const char trust_help[] =
	"Let in the file, folder or git source as it is now: its hash is recorded, and\n"
	"a configuration that names it loads it until it changes. Needed for what lies\n"
	"in a workspace, and for everything again after it has changed. A git source is\n"
	"resolved anew. A toolbox is named as toolbox:FOLDER. Look at it first: it is a\n"
	"program.";

const struct verb verb_plugin_trust = {
	.name = "plugin trust",
	.summary = "let in a script as it is now",
	.arguments = "FILE|FOLDER|URL#REF",
	.help = trust_help,
	.example = "  glovebox plugin trust ./word_count",
	.options = trust_options,
	.words_least = 1,
	.words_most = 1,
	.run = trust_run,
};
