/*
 * glovebox agents list and new: lists the roles, and begins one of the person.
 */

#include "front/agents.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/value.h"
#include "extend/brought.h"
#include "extend/trust.h"
#include "front/config_file.h"
#include "front/embedded/embedded.h"
#include "front/setup.h"
#include "front/verb.h"
#include "policy/commands.h"
#include "policy/config.h"
#include "tool/tool.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_COLUMN = 16, FROM_COLUMN = 24, LINE_MAX_BYTES = 16 << 10 };

static const struct option_row list_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print it as JSON"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static struct value *row_of(struct value *rows, const char *name)
{
	struct value *row = value_member(rows, name);

	if (row == NULL) {
		row = value_new_object();
		value_set(row, "from", value_new_array());
		value_set(rows, name, row);
	}
	return row;
}

static void add_from(struct value *rows, const char *name, const char *from)
{
	value_append(value_member(row_of(rows, name), "from"), value_new_text(from));
}

static void add_names(struct value *rows, char **names, const char *from)
{
	for (size_t i = 0; names[i] != NULL; i++)
		add_from(rows, names[i], from);
	agents_files_names_free(names);
}

/*
 * Put into ROW the purpose of the agent NAME, from all layers, or the reason why it
 * cannot be used.
 */
static void describe(struct config *config, const char *name, const char *workspace,
		     struct value *row)
{
	auto_value struct value *shipped = NULL;
	struct config_role role = {0};
	struct err err = {0};

	if (agents_files_read(name, false, config, &shipped, &err) &&
	    agents_files_check_delegates(config, shipped, name, workspace, &err) &&
	    config_role(config, shipped, name, &role, &err))
		value_set_text(row, "description",
			       role.description != NULL ? role.description : "");
	else
		value_set_text(row, "problem", err.text);
	config_role_fini(&role);
}

/*
 * Add the roles of the workspace. Such a role counts only when no other layer has its
 * name.
 */
static bool add_workspace(const struct setup *setup, struct value *rows, struct err *err)
{
	struct brought_list list = {0};
	struct trust trust = {0};
	const bool read = brought_read(setup->policy, BROUGHT_AGENT, NULL,
				       setup_least_level(setup), &list, err) &&
			  trust_read(setup->workspace, &trust, err);

	for (size_t i = 0; read && i < list.count; i++) {
		const struct brought *item = &list.items[i];
		const enum trust_state state = trust_of(&trust, item);
		const bool hidden = value_member(rows, item->name) != NULL;

		add_from(rows, item->name, "workspace");
		value_set_text(row_of(rows, item->name), "workspace",
			       hidden                ? "not used: the name is taken"
			       : state == TRUST_NONE ? "not let in"
						     : trust_state_name(state));
		value_set_text(row_of(rows, item->name), "hash", item->hash);
		if (item->problem != NULL)
			value_set_text(row_of(rows, item->name), "problem", item->problem);
	}
	trust_fini(&trust);
	brought_fini(&list);
	return read;
}

/* Find the roles of all layers except the workspace. */
static void find_rows(struct config *config, const char *workspace, struct value *rows)
{
	const struct value *agents = config_value(config, "agents");

	agents_files_know_names(config, workspace);
	add_names(rows, agents_files_shipped(), "shipped");
	add_names(rows, agents_files_users(), "yours");
	for (void *at = value_first(agents); at != NULL; at = value_next(agents, at))
		add_from(rows, config_role_name(config, value_key(at)), "configuration");
	for (void *at = value_first(rows); at != NULL; at = value_next(rows, at))
		describe(config, value_key(at), workspace, value_at(at));
}

static void print_row(const char *name, const struct value *row, FILE *out)
{
	const struct value *from = value_member(row, "from");
	const char *description = value_text(value_member(row, "description"));
	const char *workspace = value_text(value_member(row, "workspace"));
	const char *problem = value_text(value_member(row, "problem"));
	struct buf text;

	verb_print_name(name, NAME_COLUMN, out);
	buf_init(&text, LINE_MAX_BYTES);
	for (size_t i = 0; i < value_count(from); i++)
		(void)buf_addf(&text, "%s%s", i > 0 ? "+" : "",
			       value_text(value_item(from, i)));
	(void)fprintf(out, " %-*s ", FROM_COLUMN, text.data);
	buf_clear(&text);
	if (problem != NULL)
		(void)buf_addf(&text, "cannot be used: %s", problem);
	else if (description != NULL)
		(void)buf_adds(&text, description);
	if (workspace != NULL)
		(void)buf_addf(&text, "%s(of the workspace: %s)",
			       text.size > 0 ? " " : "", workspace);
	verb_print_name(text.data, 0, out);
	(void)fputc('\n', out);
	buf_fini(&text);
}

static int print_rows(const struct value *rows, FILE *out)
{
	for (void *at = value_first(rows); at != NULL; at = value_next(rows, at))
		print_row(value_key(at), value_at(at), out);
	return CODE_DONE;
}

static int list_run(const struct options *options, FILE *out)
{
	auto_config struct config *config = NULL;
	auto_value struct value *rows = value_new_object();
	const struct setup_flags flags = {.agent = POLICY_NAME_DEFAULT,
					  .quiet_plugins = true};
	struct setup setup;
	struct err err = {0};
	int code = setup_open(&setup, options, &flags), printed;

	if (code == CODE_DONE &&
	    !config_file_load(options_text(options, "config"), &config, &err))
		code = verb_complain(setup_code(&err), "%s", err.text);
	if (code != CODE_DONE) {
		setup_fini(&setup);
		return code;
	}
	find_rows(config, setup.workspace, rows);
	/*
	 * Without a cell the workspace cannot be read; the other roles are still listed.
	 */
	if (!add_workspace(&setup, rows, &err))
		code = verb_complain(CODE_FAILED,
				     "the workspace's roles are left out: %s", err.text);
	printed = options_given(options, "json") ? verb_print_json(rows, VALUE_PRETTY, out)
						 : print_rows(rows, out);
	setup_fini(&setup);
	return code == CODE_DONE ? printed : code;
}

static const char list_help[] =
	"List the agents there are: the shipped roles, the roles in your configuration's\n"
	"folder (glovebox/agents/NAME.md), the entries of the configuration, and the roles\n"
	"that this workspace brings along, which count when you have let them in and\n"
	"nobody else has the name. Where several speak of one agent, each key is taken\n"
	"from the last of them that has it.";

const struct verb verb_agents_list = {
	.name = "agents list",
	.summary = "list the agents there are",
	.arguments = "",
	.help = list_help,
	.example = "  glovebox agents list --json",
	.options = list_options,
	.folds = true,
	.run = list_run,
};

/* `glovebox agents new` writes the shipped template of a role under a new name. */

#define TEMPLATE       "examples/agents/template.md"
#define TEMPLATE_NAME  "template"
#define TEMPLATE_WRITE "[src, tests]"

enum { FILE_MAX = 64 << 10 };

static const struct option_row new_options[] = {
	OPTION_ROW_HELP,
	{0},
};

static struct str template_text(void)
{
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++) {
		if (strcmp(file->name, TEMPLATE) == 0)
			return (struct str){file->data, file->size};
	}
	return STR("");
}

/* Folders that usually hold code and its tests. */
static const char *const usual_folders[] = {"src",  "lib",      "app", "include",
					    "cmd",  "internal", "pkg", "tests",
					    "test", "spec"};

/*
 * Append the usual folders that exist here ("[src, tests]"), since a missing folder would
 * be an error; without any, append the whole workspace.
 */
static void add_folders(struct buf *out)
{
	const size_t begin = out->size;
	struct stat st;

	for (size_t i = 0; i < sizeof(usual_folders) / sizeof(usual_folders[0]); i++) {
		if (lstat(usual_folders[i], &st) == 0 && S_ISDIR(st.st_mode))
			(void)buf_addf(out, "%s%s", out->size == begin ? "[" : ", ",
				       usual_folders[i]);
	}
	(void)buf_adds(out, out->size == begin ? "[\".\"]" : "]");
}

/* Append REST up to LINE, and leave LINE out. */
static void add_until(struct str *rest, struct str line, struct buf *out)
{
	const size_t at = str_find(*rest, line, 0);

	(void)buf_addstr(out, str_part(*rest, 0, at));
	*rest = str_part(*rest, at + line.size, rest->size);
}

/* Append the template as role NAME, which may write the folders that exist here. */
static void add_template(const char *name, struct buf *out)
{
	struct str rest = template_text();

	add_until(&rest, STR("\nname: " TEMPLATE_NAME "\n"), out);
	(void)buf_addf(out, "\nname: %s\n", name);
	add_until(&rest, STR("\nwrite: " TEMPLATE_WRITE "\n"), out);
	(void)buf_adds(out, "\nwrite: ");
	add_folders(out);
	(void)buf_addc(out, '\n');
	(void)buf_addstr(out, rest);
}

static bool file_make(const char *path, const char *name, struct err *err)
{
	struct buf text;
	bool ok;

	if (!fd_make_folders(path, err))
		return false;
	/* An existing file stays: no file of the user is overwritten. */
	auto_close int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", path,
			       errno == EEXIST ? "is there already, and stays as it is"
					       : strerror(errno));
	buf_init(&text, FILE_MAX);
	add_template(name, &text);
	ok = fd_write_all(fd, text.data, text.size, err);
	buf_fini(&text);
	return ok;
}

static bool is_shipped(const char *name)
{
	char **names = agents_files_shipped();
	bool found = false;

	for (char **at = names; *at != NULL; at++)
		found = found || strcmp(*at, name) == 0;
	agents_files_names_free(names);
	return found;
}

static int new_run(const struct options *options, FILE *out)
{
	const char *name = options->words[0];
	struct err err = {0};
	struct buf path;
	int code = CODE_DONE;

	if (!config_check_name(name, &err))
		return verb_complain(CODE_USAGE, "agents new: %s", err.text);
	buf_init(&path, PATH_MAX);
	if (!agents_files_place(name, &path))
		code = verb_complain(CODE_FAILED,
				     "there is no folder for it: HOME is not set");
	else if (!file_make(path.data, name, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		(void)fprintf(out,
			      "%s\n%s\nNext:\n  glovebox agents show %s\n"
			      "  glovebox run --agent %s \"…\"\n",
			      path.data,
			      is_shipped(name)
				      ? "It lies over the shipped role, key by key: take "
					"out what shall stay as shipped.\n"
				      : "",
			      name, name);
	buf_fini(&path);
	return code;
}

static const char new_help[] =
	"Write a role of your own, with every key explained, to glovebox/agents/NAME.md in\n"
	"your configuration's folder. It may write the folders with code and tests that are\n"
	"here (src, lib, tests ...), or all of the workspace where there are none. A file that\n"
	"is there is left alone. Called after a shipped role it lies over that one, key by\n"
	"key: take out what shall stay.";

const struct verb verb_agents_new = {
	.name = "agents new",
	.summary = "begin a role of your own",
	.arguments = "NAME",
	.help = new_help,
	.example = "  glovebox agents new migrations",
	.options = new_options,
	.words_least = 1,
	.words_most = 1,
	.run = new_run,
};

/*
 * `glovebox agents show` prints an agent's role and rights, key by key, and where each
 * key comes from. No cell is made and nothing runs. The text is made of the same object
 * as the JSON.
 */

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

/* "mask" or "show", and the paths that say otherwise. */
static struct value *secrets_value(const struct policy_secrets *secrets)
{
	struct value *value = value_new_object();

	if (secrets->shown || (secrets->show.count == 0 && secrets->files.count == 0)) {
		value_free(value);
		return value_new_text(secrets->shown ? "show" : "mask");
	}
	if (secrets->show.count > 0)
		value_set(value, "show", paths_value(&secrets->show));
	if (secrets->files.count > 0)
		value_set(value, "files", paths_value(&secrets->files));
	return value;
}

static struct value *value_of(const struct row *key, const void *place)
{
	const char *text;

	switch (key->kind) {
	case ROW_BYTES:
		text = *(char *const *)place;
		return text != NULL ? value_new_text(text) : value_new_null();
	case ROW_NAMES:
		if (key->home == KEY_IN_ROLE && !((const struct policy_names *)place)->given)
			return value_new_null();
		return names_value(place);
	case ROW_HOSTS:
	case ROW_WORDS:
		return names_value(place);
	case ROW_VARIABLES:
		return variables_value(place);
	case ROW_PATH:
		return path_value(place);
	case ROW_PATHS:
		return paths_value(place);
	case ROW_FLAG:
		return value_new_boolean(*(const bool *)place);
	case ROW_COUNT:
	case ROW_SIZE:
		return value_new_integer((int64_t) * (const uint64_t *)place);
	case ROW_SECONDS:
	case ROW_NUMBER:
		return value_new_real(*(const double *)place);
	case ROW_EITHER:
		return commands_value(*(struct commands *const *)place);
	case ROW_SECRETS:
		return secrets_value(place);
	case ROW_CHECKS:
		return *(struct value *const *)place != NULL
			       ? value_copy(*(struct value *const *)place)
			       : value_new_null();
	default:
		return value_new_null();
	}
}

/* Does VALUE mean that KEY is not set (no limit, or the provider's own)? */
static bool is_unset(const struct row *key, const struct value *value)
{
	if (value_kind(value) == VALUE_NULL)
		return true;
	if (key->home == KEY_IN_ROLE)
		return value_is_number(value) &&
		       (value_number(value) < 0 ||
			(key->kind == ROW_COUNT && value_number(value) == 0));
	return key->initial != NULL && value_is_number(value) && value_number(value) == 0;
}

/* Add the row of KEY. HOME is the struct that KEY's offset counts from. */
static void add_row(const struct setup *setup, const struct row *key, const char *name,
		    const void *home, struct value *keys)
{
	const char *who = value_text(value_member(setup->origins, name));
	struct value *value = key->home == KEY_KEPT
				      ? value_ref(value_member(setup->kept, name))
				      : value_of(key, (const char *)home + key->offset);
	struct value *row = value_new_object();

	if (is_unset(key, value)) {
		value_free(value);
		value = value_new_text(key->initial != NULL ? key->initial : "");
		value_set_boolean(row, "unset", true);
	} else if (key->kind == ROW_SIZE || key->kind == ROW_SECONDS)
		value_set_text(row, "unit", key->kind == ROW_SIZE ? "bytes" : "seconds");
	value_set(row, "value", value);
	value_set_text(row, "from", who != NULL ? who : "default");
	value_set(keys, name, row);
}

static bool runs_commands(const struct setup *setup)
{
	for (size_t i = 0; setup->tools[i] != NULL; i++) {
		if ((setup->tools[i]->effects & EFFECT_RUNS) != 0 &&
		    policy_has_tool(setup->policy, setup->tools[i]->name))
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

	for (const struct row *key = keys_agent; key->name != NULL; key++) {
		const char *home = key->home == KEY_IN_POLICY ? (const char *)setup->policy
							      : (const char *)&setup->role;

		if (!all && is_moot(setup, key->name))
			continue;
		if (key->kind != ROW_OBJECT) {
			add_row(setup, key, key->name, home, keys);
			continue;
		}
		for (const struct row *row = key->rows; row->name != NULL; row++) {
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
	int code = setup_open(&setup, options, &flags);

	if (code == CODE_DONE) {
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
