/*
 * glovebox plugin list, call and trust: lists script tools, calls them by hand and lets
 * them in.
 */

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "front/agents.h"
#include "front/config_file.h"
#include "front/embedded/embedded.h"
#include "front/extensions.h"
#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/tool.h"
#include "plugins/describe.h"
#include "plugins/run.h"
#include "policy/policy.h"
#include "tool/schema.h"
#include "tools/tools.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN_DIGITS = 12 };

static const struct option_row list_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print it as JSON"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row trust_options[] = {
	OPTION_ROW_WORKSPACE, OPTION_ROW_CONFIG, OPTION_ROW_AGENT,
	OPTION_ROW_LEVEL,     OPTION_ROW_HELP,   {0},
};

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
		value_set_text(row, "hash", plugin->package->content.hash);
		if (plugin->package->content.commit[0] != '\0')
			value_set_text(row, "commit", plugin->package->content.commit);
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
	verb_print_name(plugin->schema.version, 0, out);
	(void)fprintf(out, "  %s  %.*s  ", plugin_mode_name(plugin->schema.mode),
		      SHOWN_DIGITS, plugin->package->content.hash);
	verb_print_name(plugin->package->source, 0, out);
	if (plugin->package->content.commit[0] != '\0')
		(void)fprintf(out, " at %.*s", SHOWN_DIGITS,
			      plugin->package->content.commit);
	(void)fputc('\n', out);
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
	int code = setup_open(&setup, options, &flags);

	if (code == CODE_DONE && json)
		code = print_json(setup.plugins.loaded != NULL ? setup.plugins.loaded : &none,
				  out);
	else if (code == CODE_DONE)
		code = print_list(setup.plugins.loaded, out);
	setup_fini(&setup);
	return code;
}

static const char list_help[] =
	"List the plugins of the configuration: name, version, how arguments reach the\n"
	"script, the hash of the content that was let in, and where it comes from. A\n"
	"plugin that is left out is named with the reason; the exit code is then 1.";

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
	struct err err = {0};
	const char *tool =
		tool_of(setup->plugins.loaded, options->words[0], by_place, &err);

	if (tool == NULL)
		return verb_complain(CODE_FAILED, "%s", err.text);
	return tool_call_with(setup,
			      &(struct verb_tool_wish){.tool = tool,
						       .arguments = arguments,
						       .json = options_given(options,
									     "json")},
			      out);
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
	if (!tool_read_arguments(options, &input, &arguments, &err)) {
		buf_fini(&input);
		return verb_complain(CODE_FAILED, "%s", err.text);
	}
	code = setup_open(&setup, options, &flags);
	setup.publishes = true;
	if (code == CODE_DONE)
		code = call_with(options, &setup, arguments, by_place, out);
	setup_fini(&setup);
	buf_fini(&input);
	return code;
}

static const char call_help[] =
	"Call the plugin NAME of the configuration, or the one in FILE or FOLDER, in a\n"
	"cell of its own with the arguments JSON, as an agent would, and print its\n"
	"result. A script that is named by its place needs no configuration and is not\n"
	"let in by that. An executable that describes itself is named as toolbox:FILE.\n"
	"The exit codes are those of glovebox tool call.";

const struct verb verb_plugin_call = {
	.name = "plugin call",
	.summary = "call a script as a tool",
	.arguments = "NAME|FILE|FOLDER [JSON|-]",
	.help = call_help,
	.example = "  glovebox plugin call ./word_count '{\"value\": \"hello\"}'",
	.options = tool_call_options,
	.words_least = 1,
	.words_most = 2,
	.run = call_run,
};

static int trust_run(const struct options *options, FILE *out)
{
	const struct front_plugins_wish wish = {.named = options->words[0], .trusts = true};
	const struct setup_flags flags = {.plugins = &wish};
	struct setup setup = {0};
	int code = setup_open(&setup, options, &flags);

	if (code == CODE_DONE)
		code = print_list(setup.plugins.loaded, out);
	setup_fini(&setup);
	return code;
}

static const char trust_help[] =
	"Let in the file, folder or git source as it is now: its hash is recorded, and\n"
	"a configuration that names it loads it until it changes. A plugin in a workspace\n"
	"must be let in, and every plugin must be let in again after it has changed. A\n"
	"git source is resolved anew. A toolbox is named as toolbox:FOLDER. Look at a\n"
	"plugin before you let it in: it is a program.";

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

/*
 * `glovebox plugin check` plays a script as the runtime would, and then its tests in
 * another cell. The workspace of the first cell is an empty folder, or a person's folder
 * under a layer, since a preview should leave nothing there.
 */

#define LOOK_SECONDS 2.0
#define LIST_SECONDS 10.0
#define TEST_SECONDS 60.0 /* the default time limit of a plugin's call */

/*
 * A file of this name appears in the workspace when the script ran a sample text as a
 * command.
 */
#define TRAP "made-by-a-shell"

enum {
	OUTPUT_MAX = 64 << 10,
	NAMES_MAX = 4 << 20,                /* of a workspace's folder */
	TEST_SHOWN_MAX = 16 << 10,          /* of what a failed test printed */
	SHOWN_MAX = 4 * PLUGIN_PREVIEW_MAX, /* bytes of a line; holds a whole preview */
	LATE_CODE = 124,
};

static const struct option_row check_options[] = {
	{"args", 0, OPTION_TEXT, "JSON", "try it with these arguments (default: made up)"},
	{"workspace", 'C', OPTION_TEXT, "DIR",
	 "work in this folder, under a layer that takes all writes (default: an empty one)"},
	OPTION_ROW_CONFIG,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

struct check {
	FILE *out;
	struct front_plugins plugins;
	struct plugin_cell tests; /* the cell of the tests; the first test makes it */
	const char *folder;       /* the workspace of its cells */
	bool layered;             /* it is a person's folder; writes go to a layer */
	struct config *config;
	const struct plugin *plugin;
	struct value *arguments;
	size_t failures;
};

/* One line of the report, "ok   preview: …": the lines of TEXT are joined. */
static void print_line(const struct check *check, const char *mark, const char *what,
		       const char *text)
{
	struct str left = str_part(str_trim(str_of(text)), 0, SHOWN_MAX), line;
	struct buf clean;

	buf_init(&clean, 4 * OUTPUT_MAX);
	for (bool first = true; str_next_line(&left, &line); first = false) {
		(void)buf_adds(&clean, first ? "" : " ");
		text_add_name(&clean, line);
	}
	(void)fprintf(check->out, "%-6s %s: %s\n", mark, what, clean.data);
	buf_fini(&clean);
}

static void say(struct check *check, bool ok, const char *what, const char *text)
{
	check->failures += !ok;
	print_line(check, ok ? "ok" : "FAILED", what, text);
}

static void note(const struct check *check, const char *what, const char *text)
{
	print_line(check, "note", what, text);
}

/* Make a value that fits PROPERTY. */
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

/* Run TOOL. RESULT has its end; false only when the tool could not be run. */
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

/*
 * List the names in the workspace as the cell sees it, one in each line, in the order of
 * bytes.
 */
static bool list_names(struct check *check, struct buf *names, struct err *err)
{
	static const char *const words[] = {"/usr/bin/env", "LC_ALL=C", "ls", "-A",
					    "--",           ".",        NULL};
	auto_value struct value *arguments = value_new_object();
	auto_close int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
	auto_close int out = -1;
	struct tool_result result;

	if (input < 0 || !fd_memory_file("names", STR(""), &out, err))
		return err_while(err, "listing the workspace");
	const int fds[] = {input, out, out};
	value_set(arguments, "argv", value_new_texts(words));
	const struct plugin_look look = {.tool = tool_find(builtin_tools, "exec"),
					 .arguments = arguments,
					 .shown = check->plugins.loaded->shown,
					 .fds = fds,
					 .timeout_s = LIST_SECONDS};

	tool_result_init(&result);
	bool ok = plugin_cell_look(&check->plugins.cell, &look, &result, err);
	if (ok && result.exit_code != 0)
		ok = err_set(err, EIO, "listing the workspace: %.200s", result.text.data);
	ok = ok && lseek(out, 0, SEEK_SET) == 0 && fd_read_all(out, names, "names", err);
	tool_result_fini(&result);
	return ok;
}

static int compare_names(struct str a, struct str b)
{
	const size_t size = a.size < b.size ? a.size : b.size;
	const int order = size > 0 ? memcmp(a.data, b.data, size) : 0;

	return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

/* Add to NAMES the names of AFTER that BEFORE lacks. Both are sorted in the same way. */
static void add_new(struct str before, struct str after, struct buf *names)
{
	struct str old = {0}, now;
	bool more = str_next_line(&before, &old);

	while (str_next_line(&after, &now)) {
		while (more && compare_names(old, now) < 0)
			more = str_next_line(&before, &old);
		if (!more || compare_names(old, now) != 0)
			(void)buf_addf(names, "%s%.*s", names->size > 0 ? ", " : "",
				       (int)now.size, now.data);
	}
}

/*
 * Add to NAMES the names that are new in the workspace since BEFORE, and set BEFORE to
 * the present names.
 */
static void find_new(struct check *check, struct buf *before, struct buf *names)
{
	struct buf after;
	struct err err = {0};

	buf_init(&after, NAMES_MAX);
	if (!list_names(check, &after, &err))
		say(check, false, "cell", err.text);
	else
		add_new(buf_str(before), buf_str(&after), names);
	buf_fini(before);
	*before = after;
}

/* A tool that asks the plugin of CHECK for SUBCOMMAND. The caller frees `carried`. */
static struct tool tool_for(const struct check *check, enum run_subcommand subcommand,
			    int code)
{
	const struct plugin *plugin = check->plugin;
	const struct run_order order = {.subcommand = subcommand,
					.code = code,
					.late_s = code == LATE_CODE ? plugin->order.timeout_s
								    : 0,
					.timeout_s = LOOK_SECONDS};

	return plugin_other_tool(plugin, &order);
}

static void check_preview(struct check *check, struct buf *names)
{
	struct tool tool = tool_for(check, RUN_PREVIEW, 0);
	struct tool_result first, second;
	struct buf left;

	buf_init(&left, NAMES_MAX);
	tool_result_init(&second);
	if (ask(check, &tool, &first) && ask(check, &tool, &second)) {
		find_new(check, names, &left);
		if (first.status == RESULT_FAILED)
			say(check, false, "preview", first.text.data);
		else if (strcmp(first.text.data, second.text.data) != 0)
			say(check, false, "preview", "two calls gave two answers");
		else if (left.size > 0)
			say(check, false, "preview changes the workspace; it left",
			    left.data);
		else if (first.text.size == 0)
			note(check, "preview", "it gives none");
		else
			say(check, true, "preview", first.text.data);
	}
	tool_result_fini(&first);
	tool_result_fini(&second);
	value_free(tool.carried);
	buf_fini(&left);
}

static void check_run(struct check *check, struct buf *names)
{
	struct tool tool = check->plugin->tool;
	struct tool_result result;
	const struct value *faults;
	struct buf made;

	tool.internal = true;
	if (!ask(check, &tool, &result)) {
		tool_result_fini(&result);
		return;
	}
	buf_init(&made, NAMES_MAX);
	find_new(check, names, &made);
	if (result.status == RESULT_DONE)
		say(check, true, "run", result.text.data);
	else
		note(check, "run failed with the arguments above (--args gives others)",
		     result.text.data);
	if (str_find(buf_str(&made), STR(TRAP), 0) != (size_t)-1)
		say(check, false, "run", "an argument was read as a command of the shell");
	faults = value_member(result.details, "channel_faults");
	for (size_t i = 0; i < value_count(faults); i++)
		say(check, false, "run", value_text(value_item(faults, i)));
	buf_fini(&made);
	tool_result_fini(&result);
}

/*
 * Ask the script for its text about an error, as after a failure or a run that reached
 * its time limit (LATE_CODE).
 */
static void check_error(struct check *check, int code)
{
	struct tool tool = tool_for(check, RUN_ERROR, code);
	struct tool_result result;
	char what[64];

	(void)snprintf(what, sizeof(what), "error %d%s", code,
		       code == LATE_CODE ? " (timeout)" : "");
	if (ask(check, &tool, &result)) {
		if (result.status == RESULT_TIMED_OUT || result.signal != 0)
			say(check, false, what, result.text.data);
		else if (result.status == RESULT_DONE && result.text.size > 0)
			say(check, true, what, result.text.data);
		else
			note(check, what, "it has none: the default message is shown");
	}
	tool_result_fini(&result);
	value_free(tool.carried);
}

/*
 * Make the policy of a check's cell: all rights in an empty folder; in a person's folder
 * those of a script, with writes in a layer.
 */
static bool make_policy(const struct check *check, struct policy **made, struct err *err)
{
	auto_value struct value *shipped = NULL;
	struct policy *policy;

	if (check->layered) {
		if (!agents_files_read(POLICY_NAME_DEFAULT, false, check->config,
				       &shipped, err) ||
		    !plugin_cell_policy(check->config, shipped, POLICY_NAME_DEFAULT,
					check->folder, made, err))
			return false;
		(*made)->scratch = true;
		return true;
	}
	policy = policy_new("plugin-check", check->folder);
	policy->write.items = memory_array(1, sizeof(struct policy_path));
	policy->write.items[0].text = memory_copy(".");
	policy->write.count = 1;
	policy->write.given = true;
	*made = policy;
	return policy_paths_normal(policy, check->folder, err);
}

/* Print every line of TEXT indented: one of them says why the test failed. */
static void print_lines(const struct check *check, struct str text)
{
	const struct text_limits limits = {.bytes = TEST_SHOWN_MAX};
	struct text_cut cut;
	struct buf shown, clean;
	struct str rest, line;

	buf_init(&shown, 2 * TEST_SHOWN_MAX);
	buf_init(&clean, 8 * TEST_SHOWN_MAX);
	(void)text_shorten(text, &limits, &shown, &cut);
	rest = buf_str(&shown);
	while (str_next_line(&rest, &line)) {
		buf_clear(&clean);
		text_add_name(&clean, line);
		(void)fprintf(check->out, "       %s\n", clean.data);
	}
	buf_fini(&clean);
	buf_fini(&shown);
}

/* Add to WORDS how many cases a passed test had, if its output TEXT says so. */
static void add_passed(struct str text, struct buf *words)
{
	struct str rest = text, line;
	size_t passed = 0;

	while (str_next_line(&rest, &line))
		passed += str_starts(line, STR("ok "));
	if (passed > 0)
		(void)buf_addf(words, "%zu passed", passed);
	else
		(void)buf_addstr(words, str_trim(text).size > 0 ? text : STR("passed"));
}

/* Play the test FILE, a path in the view. COPY is its path on the host. */
static void play_test(struct check *check, const char *file, const char *copy)
{
	const struct plugins *loaded = check->plugins.loaded;
	const struct run_order order = {.subcommand = RUN_TEST,
					.file = file,
					.copy = copy,
					.timeout_s = TEST_SECONDS};
	auto_value struct value *nothing = value_new_object();
	auto_free struct shape_shown *shown =
		memory_array(loaded->package_count + 2, sizeof(*shown));
	const bool by_bats = str_ends(str_of(file), STR(".bats"));
	struct tool_result result;
	struct buf what, words;
	struct err err = {0};

	struct tool tool = plugin_other_tool(check->plugin, &order);
	const struct plugin_look look = {.tool = &tool, .arguments = nothing, .shown = shown};
	/* The view shows packages already as a whole. */
	for (size_t i = 0; i < loaded->package_count; i++)
		shown[i] = loaded->shown[i];
	if (check->plugin->package->manifest.kind == PLUGIN_FILE)
		shown[loaded->package_count] = (struct shape_shown){.source = copy,
								    .path = file,
								    .why = "its test"};
	buf_init(&what, PATH_MAX);
	buf_init(&words, OUTPUT_MAX);
	(void)buf_addf(&what, "test %s", path_base_name(file));
	tool_result_init(&result);
	if (!plugin_cell_look(&check->tests, &look, &result, &err)) {
		say(check, false, what.data, err.text);
	} else if (result.status == RESULT_DONE) {
		add_passed(buf_str(&result.text), &words);
		say(check, true, what.data, words.data);
	} else {
		const bool began = result.exit_code >= 0 || result.signal != 0;

		say(check, false, what.data,
		    began || !by_bats ? "it failed, and printed:"
				      : "bats could not be started: install it, or write the "
					"test in bash, as NAME_test.bash:");
		print_lines(check, buf_str(&result.text));
	}
	tool_result_fini(&result);
	buf_fini(&words);
	buf_fini(&what);
	value_free(tool.carried);
}

/* Play the tests beside NAME.bash, which have these endings. */
static void check_tests(struct check *check)
{
	static const char *const endings[] = {"_test.bash", ".bats", "_test.bats", NULL};
	const struct plugin *plugin = check->plugin;
	struct str base = str_of(plugin->file), copy = str_of(plugin->copy);
	const struct str script = STR(".bash");

	if (plugin->package->dialect == PLUGIN_TOOLBOX)
		return;
	/* The copy of a single script does not have its tests. */
	if (plugin->package->manifest.kind == PLUGIN_FILE)
		copy = base;
	if (str_ends(base, script)) {
		base.size -= script.size;
		copy.size -= str_ends(copy, script) ? script.size : 0;
	}
	for (const char *const *ending = endings; *ending != NULL; ending++) {
		struct buf file, place;

		buf_init(&file, PATH_MAX);
		buf_init(&place, PATH_MAX);
		if (buf_addf(&file, "%.*s%s", (int)base.size, base.data, *ending) &&
		    buf_addf(&place, "%.*s%s", (int)copy.size, copy.data, *ending) &&
		    access(place.data, R_OK) == 0) {
			plugin_cell_end(&check->tests);
			check->tests = (struct plugin_cell){
				.workspace = check->folder,
				.tools = builtin_tools,
				.minimum_level = check->plugins.cell.minimum_level};
			struct err err = {0};

			if (make_policy(check, &check->tests.take_policy, &err))
				play_test(check, file.data, place.data);
			else
				say(check, false, "test", err.text);
		}
		buf_fini(&place);
		buf_fini(&file);
	}
}

static bool take_arguments(struct check *check, const char *given)
{
	struct buf text, sentence;
	bool ok;

	buf_init(&text, OUTPUT_MAX);
	buf_init(&sentence, OUTPUT_MAX);
	value_free(check->arguments);
	check->arguments = NULL;
	if (given == NULL)
		check->arguments = samples(check->plugin->schema.parameters);
	ok = check->arguments != NULL ||
	     schema_parse_arguments(&check->plugin->tool, str_of(given),
				    &check->arguments, &sentence);
	if (ok)
		(void)value_print(check->arguments, 0, &text);
	/* Fit a copy: default values are filled in for each call anew. */
	auto_value struct value *fitted = ok ? value_copy(check->arguments) : NULL;
	ok = ok && schema_fit(&check->plugin->tool, fitted, NULL, &sentence);
	if (ok)
		note(check, "arguments", text.data);
	else if (given != NULL)
		say(check, false, "arguments", sentence.data);
	else
		note(check, "arguments could not be made up; give --args", sentence.data);
	buf_fini(&sentence);
	buf_fini(&text);
	return ok;
}

static void check_calls(struct check *check)
{
	struct buf names;
	struct err err = {0};

	buf_init(&names, NAMES_MAX);
	if (!list_names(check, &names, &err)) {
		say(check, false, "cell", err.text);
	} else {
		check_preview(check, &names);
		check_run(check, &names);
		check_error(check, 1);
		check_error(check, LATE_CODE);
	}
	buf_fini(&names);
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
		note(check, "schema", value_text(value_item(schema->warnings, i)));
	if (take_arguments(check, given))
		check_calls(check);
	check_tests(check);
}

static int check_all(struct check *check, const struct options *options)
{
	const struct front_plugins_wish wish = {.named = options->words[0]};
	const struct plugins *loaded;
	struct err err = {0};

	check->plugins.cell.workspace = check->folder;
	check->plugins.cell.tools = builtin_tools;
	check->plugins.cell.minimum_level =
		(int)options_count(options, "minimum-level",
				   config_minimum_level(check->config));
	if (check->plugins.cell.minimum_level == 0)
		check->plugins.cell.minimum_level = SESSION_ANY_LEVEL;
	if (!make_policy(check, &check->plugins.cell.take_policy, &err) ||
	    !front_plugins_load(&check->plugins, check->config, &wish, true, &err))
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

static int check_in(struct check *check, const struct options *options, const char *workspace)
{
	auto_free char *real = realpath(workspace, NULL);
	int code;

	check->folder = real;
	code = real != NULL ? check_all(check, options)
			    : verb_complain(CODE_FAILED,
					    "workspace %s: %s; name a folder that "
					    "exists with -C",
					    workspace, strerror(errno));
	front_plugins_fini(&check->plugins);
	plugin_cell_end(&check->tests);
	value_free(check->arguments);
	return code;
}

static int check_run_verb(const struct options *options, FILE *out)
{
	auto_config struct config *config = NULL;
	const char *workspace = options_text(options, "workspace");
	struct check check = {.out = out, .layered = workspace != NULL};
	struct buf folder;
	struct err err = {0};
	int code;

	if (!config_file_load(options_text(options, "config"), &config, &err))
		return verb_complain(setup_code(&err), "%s", err.text);
	check.config = config;
	if (workspace != NULL)
		return check_in(&check, options, workspace);
	buf_init(&folder, PATH_MAX);
	if (verb_temp_folder("check", &folder, &err)) {
		code = check_in(&check, options, folder.data);
		fd_folder_remove(folder.data);
	} else {
		code = verb_complain(CODE_FAILED, "%s", err.text);
	}
	buf_fini(&folder);
	return code;
}

static const char check_help[] =
	"Play the script in FILE, each one of the package in FOLDER, or of a git\n"
	"source through as it would be used: its schema; a preview, that must be the\n"
	"same twice and leave nothing behind; a run; its own words for a failure and a\n"
	"timeout; and the tests that lie beside it: for NAME.bash NAME_test.bash (bash\n"
	"runs it) and NAME.bats. All in a cell without a network, whose workspace is an\n"
	"empty folder; with -C it is a folder of yours, where all changes are removed with\n"
	"the cell. Arguments are made up from the schema unless --args gives some.\n"
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

/* `glovebox plugin new` writes the shipped template under a new name. */

#define TEMPLATE_FOLDER "examples/plugins/template-bash-tool/"
#define TEMPLATE_NAME   "template_bash_echo"
#define TEST_ENDING     "_test.bash"

enum { FILE_MAX = 64 << 10 };

static const struct option_row new_options[] = {
	{"folder", 'd', OPTION_TEXT, "DIR", "make it there (default: ./NAME)"},
	{"test", 0, OPTION_FLAG, NULL, "and a test beside the script, for plugin check"},
	OPTION_ROW_HELP,
	{0},
};

/* Is NAME a plain name? It becomes the name of a file and of a tool. */
static bool is_name(const char *name)
{
	size_t size = strlen(name);
	bool fine = size > 0 && size <= PLUGIN_ID_MAX && isalpha((unsigned char)name[0]);

	for (size_t i = 0; fine && i < size; i++)
		fine = isalnum((unsigned char)name[i]) || name[i] == '_';
	return fine;
}

/* Append TEXT with the template's name replaced by NAME. */
static void add_renamed(struct str text, const char *name, struct buf *out)
{
	const struct str old = STR(TEMPLATE_NAME);
	size_t at = 0;

	for (;;) {
		size_t found = str_find(text, old, at);
		size_t end = found == (size_t)-1 ? text.size : found;

		(void)buf_addstr(out, str_part(text, at, end - at));
		if (found == (size_t)-1)
			return;
		(void)buf_adds(out, name);
		at = found + old.size;
	}
}

static bool file_make(const struct embedded_file *file, const char *folder,
		      const char *name, struct err *err, FILE *out)
{
	const mode_t mode = str_ends(str_of(file->name), STR(".bash")) ? 0755 : 0644;
	struct buf path, text;
	bool ok;

	buf_init(&path, PATH_MAX);
	buf_init(&text, FILE_MAX);
	(void)buf_addf(&path, "%s/", folder);
	add_renamed(str_of(file->name + strlen(TEMPLATE_FOLDER)), name, &path);
	add_renamed((struct str){file->data, file->size}, name, &text);
	auto_close int fd =
		open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	ok = fd >= 0 ? fd_write_all(fd, text.data, text.size, err)
	     : errno == EEXIST
		     ? err_set(err, errno,
			       "plugin new: %s is there already and was not changed; choose "
			       "another name, or another folder with --folder",
			       path.data)
		     : err_set(err, errno, "plugin new: %s cannot be made: %s", path.data,
			       strerror(errno));
	if (ok)
		(void)fprintf(out, "%s\n", path.data);
	buf_fini(&path);
	buf_fini(&text);
	return ok;
}

static bool is_wanted(const struct embedded_file *file, bool with_test)
{
	const struct str path = str_of(file->name);

	return str_starts(path, STR(TEMPLATE_FOLDER)) &&
	       (with_test || !str_ends(path, STR(TEST_ENDING)));
}

static int new_run(const struct options *options, FILE *out)
{
	const char *name = options->words[0];
	const char *folder = options_text(options, "folder");
	struct err err = {0};

	if (!is_name(name))
		return verb_complain(CODE_USAGE,
				     "plugin new: a name begins with a letter and is made of at "
				     "most %d letters, digits and _",
				     PLUGIN_ID_MAX);
	auto_free const struct tool **tools = setup_tools_new();

	if (tool_find(tools, name) != NULL)
		return verb_complain(CODE_USAGE,
				     "plugin new: %s is the name of a built-in tool: give it "
				     "another",
				     name);
	folder = folder != NULL ? folder : name;
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return verb_complain(CODE_FAILED,
				     "plugin new: the folder %s cannot be made: %s; choose "
				     "another one with --folder",
				     folder, strerror(errno));
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++) {
		if (is_wanted(file, options_given(options, "test")) &&
		    !file_make(file, folder, name, &err, out))
			return verb_complain(CODE_FAILED, "%s", err.text);
	}
	(void)fprintf(out,
		      "\nNext:\n  glovebox plugin check %s\n  glovebox plugin call %s/%s.bash "
		      "'{\"value\": \"hello\"}'\n",
		      folder, folder, name);
	return CODE_DONE;
}

static const char new_help[] =
	"Make a folder with a working tool in it: one script and the file that names it,\n"
	"after the shipped template. With --test there is a test in bash beside the\n"
	"script, that runs by itself and by glovebox plugin check. Nothing that is there\n"
	"is changed.";

const struct verb verb_plugin_new = {
	.name = "plugin new",
	.summary = "begin a script that is a tool",
	.arguments = "NAME",
	.help = new_help,
	.example = "  glovebox plugin new word_count",
	.options = new_options,
	.words_least = 1,
	.words_most = 1,
	.run = new_run,
};
