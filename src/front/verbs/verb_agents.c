/*
 * glovebox agents list and trust: lists the roles, and lets in a role of the workspace.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/agents.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"

enum { NAME_COLUMN = 16, FROM_COLUMN = 24, LINE_MAX_BYTES = 16 << 10, SHOWN_DIGITS = 12 };

static const struct option_row list_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print it as JSON"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row trust_options[] = {
	{"yes", 'y', OPTION_FLAG, NULL, "do not ask: it was read already"},
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
	agent_files_names_free(names);
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

	if (agent_files_read(name, false, config, &shipped, &err) &&
	    agent_files_check_delegates(config, shipped, name, workspace, &err) &&
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
	static const char *const words[] = {
		[AGENT_NOT_TRUSTED] = "not let in",
		[AGENT_CHANGED] = "changed since it was let in",
		[AGENT_TRUSTED] = "let in",
	};
	auto_value struct value *list = NULL;

	if (!agent_workspace_read(setup->policy, NULL, setup_least_level(setup), &list, err))
		return false;
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *file = value_item(list, i);
		struct str name = value_str(value_member(file, "file"));
		auto_free char *word =
			memory_copy_str(str_part(name, 0, name.size - strlen(".md")));
		bool hidden = value_member(rows, word) != NULL;
		enum agent_trust trust = AGENT_NOT_TRUSTED;
		char hash[HASH_HEX + 1];

		add_from(rows, word, "workspace");
		if (!agent_workspace_ask(setup->workspace, word,
					 value_str(value_member(file, "text")), &trust,
					 hash, err))
			return false;
		value_set_text(row_of(rows, word), "workspace",
			       hidden ? "not used: the name is taken" : words[trust]);
		value_set_text(row_of(rows, word), "hash", hash);
		if (value_member(file, "problem") != NULL)
			value_set(row_of(rows, word), "problem",
				  value_copy(value_member(file, "problem")));
	}
	return true;
}

/* Find the roles of all layers except the workspace. */
static void find_rows(struct config *config, const char *workspace, struct value *rows)
{
	const struct value *agents = config_value(config, "agents");

	agent_files_know_names(config, workspace);
	add_names(rows, agent_files_shipped(), "shipped");
	add_names(rows, agent_files_users(), "yours");
	for (void *at = value_first(agents); at != NULL; at = value_next(agents, at))
		add_from(rows, config_role_name(config, value_key(at)), "configuration");
	for (void *at = value_first(rows); at != NULL; at = value_next(rows, at))
		describe(config, value_key(at), workspace, value_at(at));
}

/* Print foreign TEXT, made safe for a terminal, in at least WIDTH columns. */
static void print_cell(const char *text, int width, FILE *out)
{
	struct buf clean;

	buf_init(&clean, LINE_MAX_BYTES);
	text_add_name(&clean, str_of(text));
	(void)fprintf(out, "%-*s", width, clean.data);
	buf_fini(&clean);
}

static void print_row(const char *name, const struct value *row, FILE *out)
{
	const struct value *from = value_member(row, "from");
	const char *description = value_text(value_member(row, "description"));
	const char *workspace = value_text(value_member(row, "workspace"));
	const char *problem = value_text(value_member(row, "problem"));
	struct buf text;

	print_cell(name, NAME_COLUMN, out);
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
	print_cell(text.data, 0, out);
	(void)putchar('\n');
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
	int code = CODE_DONE, printed;

	if (!setup_init_with(&setup, options, &flags, &err) ||
	    !config_file_load(options_text(options, "config"), &config, &err)) {
		setup_fini(&setup);
		return verb_complain(CODE_FAILED, "%s", err.text);
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

/*
 * Print every byte of TEXT visibly: the person must see all that they let in, even bytes
 * that a terminal would swallow or overwrite.
 */
static void print_shown(const char *file, const char *hash, struct str text, FILE *out)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		struct buf shown;

		buf_init(&shown, 4 * line.size + 1); /* \xHH for every byte */
		text_add_name(&shown, line);
		(void)fprintf(out, "%s\n", shown.data);
		buf_fini(&shown);
	}
	(void)fprintf(out,
		      "\nThis is .glovebox/agents/%s (%.*s). It gets no right that your default "
		      "agent has not.\n",
		      file, SHOWN_DIGITS, hash);
}

/* Ask for consent on a terminal; elsewhere an option has to give it (SAID). */
static int is_meant(bool said, struct err *err, FILE *out)
{
	if (said)
		return CODE_DONE;
	if (!isatty(STDIN_FILENO)) {
		(void)err_set(err, EINVAL,
			      "agents trust: nobody can be asked here, and nothing was let in. Read "
			      "what is shown, then give --yes");
		return CODE_USAGE;
	}
	if (confirm_ask(out, "Let it in as it stands above?"))
		return CODE_DONE;
	(void)err_set(err, ECANCELED, "not let in");
	return CODE_FAILED;
}

static int trust_with(const struct setup *setup, const char *name, bool said,
		      struct err *err, FILE *out)
{
	auto_value struct value *list = NULL;
	auto_value struct value *entry = NULL;
	char hash[HASH_HEX + 1];
	struct str text;
	int code;

	if (!agent_workspace_read(setup->policy, name, setup_least_level(setup), &list, err))
		return CODE_FAILED;
	if (value_count(list) == 0) {
		(void)err_set(err, 0, "there is no .glovebox/agents/%s.md in %s", name,
			      setup->workspace);
		return CODE_FAILED;
	}
	text = value_str(value_member(value_item(list, 0), "text"));
	hash_text(text, hash);
	/*
	 * Do not let in a faulty role: nobody would learn of the fault before the role is
	 * used.
	 */
	if (!agent_workspace_check(value_item(list, 0), &entry, err))
		return CODE_FAILED;
	print_shown(value_text(value_member(value_item(list, 0), "file")), hash, text, out);
	code = is_meant(said, err, out);
	if (code == CODE_DONE && !agent_workspace_trust(setup->workspace, name, text, err))
		code = CODE_FAILED;
	if (code == CODE_DONE)
		(void)fprintf(out, "Let in: --agent %s uses it until it changes.\n", name);
	return code;
}

static int trust_run(const struct options *options, FILE *out)
{
	const struct setup_flags flags = {.agent = POLICY_NAME_DEFAULT,
					  .quiet_plugins = true};
	const char *name = options->words[0];
	struct setup setup = {0};
	struct err err = {0};
	int code = CODE_FAILED;

	if (!config_check_name(name, &err))
		return verb_complain(CODE_USAGE, "agents trust: %s", err.text);
	if (setup_init_with(&setup, options, &flags, &err))
		code = trust_with(&setup, name, options_given(options, "yes"), &err, out);
	if (code != CODE_DONE)
		(void)verb_complain(code, "%s", err.text);
	setup_fini(&setup);
	return code;
}

static const char trust_help[] =
	"Let in the role .glovebox/agents/NAME.md of this workspace as it is now: its\n"
	"hash is recorded, and --agent NAME uses it until it changes. It is shown first,\n"
	"and you are asked; where there is no terminal, --yes says that you have read it:\n"
	"its prompt tells an agent what to do. Whatever it asks for, it gets no\n"
	"tool, path, host, variable or limit beyond those of your default agent, and no\n"
	"plugin or MCP server.";

const struct verb verb_agents_trust = {
	.name = "agents trust",
	.summary = "let in a role of this workspace as it is now",
	.arguments = "NAME",
	.help = trust_help,
	.example = "  glovebox agents trust release-notes\n"
		   "  glovebox agents trust release-notes --yes",
	.options = trust_options,
	.words_least = 1,
	.words_most = 1,
	.run = trust_run,
};
