/*
 * glovebox plugin check: a script played through as the runtime would, in a cell whose workspace
 * is an empty folder of its own: what a preview leaves there it should not have left.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/memory.h"
#include "base/text.h"
#include "front/config_file.h"
#include "front/exit_code.h"
#include "front/plugins.h"
#include "front/setup.h"
#include "front/verb.h"
#include "plugins/plugin_tool.h"
#include "policy/policy.h"
#include "runtime/schema.h"
#include "tools/tools.h"

#define LOOK_SECONDS 2.0

/* Comes to be in the workspace when a made up text was read as a command. */
#define TRAP "made-by-a-shell"

enum {
	TEXT_MAX = 64 << 10,
	SHOWN_MAX = 4 * PLUGIN_PREVIEW_MAX, /* bytes of a line: a preview whole */
	LATE_CODE = 124,
};

static const struct option_row check_options[] = {
	{"args", 0, OPTION_TEXT, "JSON", "try it with these arguments (default: made up)"},
	OPTION_ROW_CONFIG,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

struct check {
	struct front_plugins plugins;
	const char *folder; /* the workspace of its cell */
	const struct plugin *plugin;
	struct value *arguments;
	size_t failures;
};

/* One line of the report, "ok   preview: …": those of TEXT are joined. */
static void print_line(const char *mark, const char *what, const char *text)
{
	struct str left = str_part(str_trim(str_of(text)), 0, SHOWN_MAX), line;
	struct buf clean;

	buf_init(&clean, 4 * TEXT_MAX);
	for (bool first = true; str_next_line(&left, &line); first = false) {
		(void)buf_adds(&clean, first ? "" : " ");
		text_add_name(&clean, line);
	}
	(void)printf("%-6s %s: %s\n", mark, what, clean.data);
	buf_fini(&clean);
}

static void say(struct check *check, bool ok, const char *what, const char *text)
{
	check->failures += !ok;
	print_line(ok ? "ok" : "FAILED", what, text);
}

static void note(const char *what, const char *text)
{
	print_line("note", what, text);
}

/* A value that PROPERTY might take. */
static struct value *sample_of(const struct value *property)
{
	const struct value *type = value_member(property, "type");
	const struct value *least = value_member(property, "minimum");
	struct str name = value_str(value_count(type) > 0 ? value_item(type, 0) : type);

	if (value_member(property, "default") != NULL)
		return value_copy(value_member(property, "default"));
	if (value_count(value_member(property, "examples")) > 0)
		return value_copy(value_item(value_member(property, "examples"), 0));
	if (value_count(value_member(property, "enum")) > 0)
		return value_copy(value_item(value_member(property, "enum"), 0));
	if (str_is(name, "integer") || str_is(name, "number"))
		return least != NULL ? value_copy(least) : value_new_integer(1);
	if (str_is(name, "boolean"))
		return value_new_boolean(true);
	if (str_is(name, "array"))
		return value_new_array();
	if (str_is(name, "object"))
		return value_new_object();
	return value_new_text("example; $(touch " TRAP ") 'x'");
}

static struct value *samples(const struct value *parameters)
{
	const struct value *properties = value_member(parameters, "properties");
	struct value *arguments = value_new_object();

	for (void *at = value_first(properties); at != NULL; at = value_next(properties, at))
		value_set(arguments, value_key(at), sample_of(value_at(at)));
	return arguments;
}

/* TOOL's end is the answer; ERR only says that nothing could be asked. */
static bool ask(struct check *check, const struct tool *tool, struct tool_result *result)
{
	const struct plugin_look look = {.tool = tool,
					 .arguments = check->arguments,
					 .shown = check->plugins.loaded->shown};
	struct err err = {0};

	tool_result_init(result);
	if (plugin_cell_look(&check->plugins.cell, &look, result, &err))
		return true;
	say(check, false, "cell", err.text);
	return false;
}

static void add_left(const char *path, struct buf *names)
{
	DIR *folder = opendir(path);

	for (const struct dirent *at = folder != NULL ? readdir(folder) : NULL;
	     at != NULL; at = readdir(folder)) {
		if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
			(void)buf_addf(names, "%s%s", names->size > 0 ? ", " : "",
				       at->d_name);
	}
	if (folder != NULL)
		(void)closedir(folder);
}

static void check_preview(struct check *check)
{
	struct tool tool = plugin_look_tool(check->plugin, "preview", LOOK_SECONDS);
	struct tool_result first, second;
	struct buf left;

	buf_init(&left, TEXT_MAX);
	tool_result_init(&second);
	if (ask(check, &tool, &first) && ask(check, &tool, &second)) {
		add_left(check->folder, &left);
		if (first.status == RESULT_FAILED)
			say(check, false, "preview", first.text.data);
		else if (strcmp(first.text.data, second.text.data) != 0)
			say(check, false, "preview", "two calls gave two answers");
		else if (left.size > 0)
			say(check, false, "preview changes the workspace; it left",
			    left.data);
		else if (first.text.size == 0)
			note("preview", "it gives none");
		else
			say(check, true, "preview", first.text.data);
	}
	tool_result_fini(&first);
	tool_result_fini(&second);
	value_free(tool.carried);
	buf_fini(&left);
}

static void check_run(struct check *check)
{
	struct tool tool = check->plugin->tool;
	struct tool_result result;
	const struct value *faults;
	char trap[PATH_MAX];

	tool.internal = true;
	if (!ask(check, &tool, &result)) {
		tool_result_fini(&result);
		return;
	}
	if (result.status == RESULT_DONE)
		say(check, true, "run", result.text.data);
	else
		note("run failed with the arguments above (--args gives others)",
		     result.text.data);
	(void)snprintf(trap, sizeof(trap), "%s/%s", check->folder, TRAP);
	if (access(trap, F_OK) == 0)
		say(check, false, "run", "an argument was read as a command of the shell");
	faults = value_member(result.details, "channel_faults");
	for (size_t i = 0; i < value_count(faults); i++)
		say(check, false, "run", value_text(value_item(faults, i)));
	tool_result_fini(&result);
}

static void check_error(struct check *check, int code)
{
	struct tool tool = plugin_look_tool(check->plugin, "error", LOOK_SECONDS);
	struct tool_result result;
	char number[16], what[64];

	(void)snprintf(number, sizeof(number), "%d", code);
	(void)snprintf(what, sizeof(what), "error %d%s", code,
		       code == LATE_CODE ? " (timeout)" : "");
	value_set_text(tool.carried, "code", number);
	if (ask(check, &tool, &result)) {
		if (result.status == RESULT_TIMED_OUT || result.signal != 0)
			say(check, false, what, result.text.data);
		else if (result.status == RESULT_DONE && result.text.size > 0)
			say(check, true, what, result.text.data);
		else
			note(what, "it has none: the default message is shown");
	}
	tool_result_fini(&result);
	value_free(tool.carried);
}

static bool take_arguments(struct check *check, const char *given)
{
	struct buf text, sentence;
	bool ok;

	buf_init(&text, TEXT_MAX);
	buf_init(&sentence, TEXT_MAX);
	value_free(check->arguments);
	check->arguments = NULL;
	if (given == NULL)
		check->arguments = samples(check->plugin->schema.parameters);
	ok = check->arguments != NULL ||
	     schema_parse_arguments(&check->plugin->tool, str_of(given),
				    &check->arguments, &sentence);
	if (ok)
		(void)value_print(check->arguments, 0, &text);
	/* A copy: what is filled in is for each call anew. */
	auto_value struct value *fitted = ok ? value_copy(check->arguments) : NULL;
	ok = ok && schema_fit(&check->plugin->tool, check->plugin->tool.schema, fitted,
			      NULL, &sentence);
	if (ok)
		note("arguments", text.data);
	else if (given != NULL)
		say(check, false, "arguments", sentence.data);
	else
		note("arguments could not be made up; give --args", sentence.data);
	buf_fini(&sentence);
	buf_fini(&text);
	return ok;
}

static void check_plugin(struct check *check, const struct plugin *plugin, const char *given)
{
	const struct plugin_schema *schema = &plugin->schema;
	char text[256];

	check->plugin = plugin;
	(void)snprintf(text, sizeof(text), "%s, version %s, arguments as %s", schema->id,
		       schema->version, plugin_mode_name(schema->mode));
	say(check, true, "schema", text);
	for (size_t i = 0; i < value_count(schema->warnings); i++)
		note("schema", value_text(value_item(schema->warnings, i)));
	if (!take_arguments(check, given))
		return;
	check_preview(check);
	check_run(check);
	check_error(check, 1);
	check_error(check, LATE_CODE);
}

static struct policy *policy_of(const char *folder)
{
	struct policy *policy = policy_new("plugin-check", folder);

	policy->write.items = memory_array(1, sizeof(struct policy_path));
	policy->write.items[0].text = memory_copy(".");
	policy->write.count = 1;
	policy->write.given = true;
	if (policy_paths_normal(policy, folder, NULL))
		return policy;
	policy_free(policy);
	return NULL;
}

static int check_all(struct check *check, const struct options *options,
		     const struct config *config)
{
	const struct front_plugins_wish wish = {.named = options->words[0]};
	const struct plugins *loaded;
	struct err err = {0};

	check->plugins.cell.workspace = check->folder;
	check->plugins.cell.tools = builtin_tools;
	check->plugins.cell.minimum_level =
		(int)options_count(options, "minimum-level", config_minimum_level(config));
	if (check->plugins.cell.minimum_level == 0)
		check->plugins.cell.minimum_level = SESSION_ANY_LEVEL;
	check->plugins.cell.take_policy = policy_of(check->folder);
	if (!front_plugins_load(&check->plugins, config, &wish, true, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	loaded = check->plugins.loaded;
	for (size_t i = 0; i < value_count(loaded->problems); i++) {
		const struct value *entry = value_item(loaded->problems, i);

		say(check, false, value_text(value_member(entry, "source")),
		    value_text(value_member(entry, "text")));
	}
	for (size_t i = 0; i < loaded->count; i++)
		check_plugin(check, loaded->items[i], options_text(options, "args"));
	if (check->failures == 0)
		return CODE_DONE;
	return verb_complain(CODE_FAILED, "%zu of its checks failed", check->failures);
}

static int check_run_verb(const struct options *options)
{
	auto_config struct config *config = NULL;
	struct check check = {0};
	struct buf folder;
	struct err err = {0};
	int code;

	buf_init(&folder, PATH_MAX);
	if (!config_file_load(options_text(options, "config"), &config, &err) ||
	    !setup_temp_folder("check", &folder, &err)) {
		code = verb_complain(CODE_FAILED, "%s", err.text);
	} else {
		auto_free char *real = realpath(folder.data, NULL);

		check.folder = real;
		code = real != NULL ? check_all(&check, options, config)
				    : verb_complain(CODE_FAILED, "%s", strerror(errno));
		front_plugins_fini(&check.plugins);
		value_free(check.arguments);
		folder_remove(folder.data);
	}
	buf_fini(&folder);
	return code;
}

static const char check_help[] =
	"Play the script in FILE, each one of the package in FOLDER, or of a git\n"
	"source through as it would be used: its schema; a preview, that must be the\n"
	"same twice and leave nothing behind; a run; and its own words for a failure\n"
	"and a timeout. All in a cell whose workspace is an empty folder, without a\n"
	"network. Arguments are made up from the schema unless --args gives some.\n"
	"toolbox:FILE and toolbox:FOLDER are executables that describe themselves. Exit\n"
	"code 1 when a check failed.";

const struct verb verb_plugin_check = {
	.name = "plugin check",
	.summary = "try a script before it becomes a tool",
	.arguments = "FILE|FOLDER|URL#REF",
	.help = check_help,
	.example = "  glovebox plugin check ./word_count --args '{\"value\": \"hello\"}'",
	.options = check_options,
	.words_least = 1,
	.words_most = 1,
	.run = check_run_verb,
};
