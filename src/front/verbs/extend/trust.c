/*
 * glovebox trust list, show, add and remove: what this workspace brings along for agents, and
 * what of it counts.
 */

#include "extend/trust.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "extend/brought.h"
#include "front/agents.h"
#include "front/extend/trusting.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KIND_COLUMN = 8, NAME_COLUMN = 24, STATE_COLUMN = 28, TEXT_MAX = 4096 };

static const struct option_row list_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print it as JSON"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row add_options[] = {
	{"yes", 'y', OPTION_FLAG, NULL, "do not ask: it was read already"},
	{"hash", 0, OPTION_TEXT, "H", "only if its SHA-256 begins with H"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row remove_options[] = {
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_HELP,
	{0},
};

/* The things that a workspace brings along, and the record of them, while a verb works. */
struct looked {
	struct setup setup;
	struct brought_list list;
	struct trust trust;
};

static int looked_open(struct looked *looked, const struct options *options)
{
	const struct setup_flags flags = {.agent = POLICY_NAME_DEFAULT,
					  .quiet_plugins = true};
	struct err err = {0};
	int code = setup_open(&looked->setup, options, &flags);

	if (code == CODE_DONE &&
	    !((!brought_is_any(looked->setup.workspace) ||
	       brought_read(looked->setup.policy, BROUGHT_KINDS, NULL,
			    setup_least_level(&looked->setup), &looked->list, &err)) &&
	      trust_read(looked->setup.workspace, &looked->trust, &err)))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	agents_workspace_mark(&looked->list);
	return code;
}

static void looked_fini(struct looked *looked)
{
	trust_fini(&looked->trust);
	brought_fini(&looked->list);
	setup_fini(&looked->setup);
}

/* Split "KIND/NAME", or "KIND", whose *NAME is NULL. */
static bool read_word(const char *word, enum brought_kind *kind, const char **name,
		      struct err *err)
{
	const char *slash = strchr(word, '/');
	auto_free char *kind_name = memory_copy_str(
		str_part(str_of(word), 0,
			 slash != NULL ? (size_t)(slash - word) : SIZE_MAX));

	*name = slash != NULL ? slash + 1 : NULL;
	return brought_kind_read(kind_name, kind) ||
	       err_set(err, EINVAL,
		       "\"%.100s\": write KIND or KIND/NAME, where KIND is agent, skill, "
		       "command, hook or server",
		       word);
}

static const char *problem_of(const struct brought *item)
{
	return item->problem != NULL ? item->problem : "";
}

static void print_item(const struct looked *looked, const struct brought *item, FILE *out)
{
	struct buf text;

	verb_print_name(brought_kind_name(item->kind), KIND_COLUMN, out);
	(void)fputc(' ', out);
	verb_print_name(item->name, NAME_COLUMN, out);
	buf_init(&text, TEXT_MAX);
	if (item->problem != NULL)
		(void)buf_addf(&text, "left out: %.1000s", item->problem);
	else
		(void)buf_adds(&text, trust_state_name(trust_of(&looked->trust, item)));
	(void)fputc(' ', out);
	verb_print_name(text.data, STATE_COLUMN, out);
	(void)fputc(' ', out);
	verb_print_name(item->file, 0, out);
	(void)fputc('\n', out);
	buf_fini(&text);
}

/* Entries of the record whose item the workspace does not bring along now. */
static bool is_gone(const struct looked *looked, const struct trust_entry *entry)
{
	return brought_find(&looked->list, entry->kind, entry->name) == NULL;
}

static void print_list(const struct looked *looked, FILE *out)
{
	for (size_t i = 0; i < looked->list.count; i++)
		print_item(looked, &looked->list.items[i], out);
	for (size_t i = 0; i < looked->trust.count; i++) {
		const struct trust_entry *entry = &looked->trust.entries[i];

		if (!is_gone(looked, entry))
			continue;
		verb_print_name(brought_kind_name(entry->kind), KIND_COLUMN, out);
		(void)fputc(' ', out);
		verb_print_name(entry->name, NAME_COLUMN, out);
		(void)fprintf(out, " in the record, and not there now\n");
	}
	if (looked->list.left_out > 0)
		(void)fprintf(out, "%zu more are too many, and are left out\n",
			      looked->list.left_out);
	if (looked->list.count == 0 && looked->trust.count == 0)
		(void)fprintf(out, "This workspace brings nothing along for agents.\n");
}

static struct value *list_value(const struct looked *looked)
{
	struct value *rows = value_new_array();

	for (size_t i = 0; i < looked->list.count; i++) {
		const struct brought *item = &looked->list.items[i];
		const struct trust_entry *entry =
			trust_find(&looked->trust, item->kind, item->name);
		struct value *row = value_new_object();

		value_set_text(row, "kind", brought_kind_name(item->kind));
		value_set_text(row, "name", item->name);
		value_set_text(row, "file", item->file);
		value_set_text(row, "state",
			       trust_state_name(trust_of(&looked->trust, item)));
		value_set_text(row, "hash", item->hash);
		if (entry != NULL && entry->since != NULL)
			value_set_text(row, "since", entry->since);
		if (item->problem != NULL)
			value_set_text(row, "problem", item->problem);
		value_append(rows, row);
	}
	return rows;
}

static int list_run(const struct options *options, FILE *out)
{
	struct looked looked = {0};
	int code = looked_open(&looked, options);

	if (code == CODE_DONE && options_given(options, "json")) {
		auto_value struct value *rows = list_value(&looked);

		code = verb_print_json(rows, VALUE_PRETTY, out);
	} else if (code == CODE_DONE) {
		print_list(&looked, out);
	}
	looked_fini(&looked);
	return code;
}

/* The exit code of a failed choose, of which ERR tells: a word of a wrong form is one of usage. */
static int code_of(const struct err *err)
{
	return err->code == EINVAL ? CODE_USAGE : CODE_FAILED;
}

/*
 * The items that WORDS name; without words, those that are not let in now. *COUNT is 0 when there
 * are none. ERR: a word names nothing that can be let in. The caller frees the list.
 */
static const struct brought **choose(const struct looked *looked, const char *const *words,
				     size_t *count, struct err *err)
{
	const struct brought **items =
		memory_array(looked->list.count + 1, sizeof(struct brought *));
	bool *chosen = memory_array(looked->list.count + 1, sizeof(bool));
	enum brought_kind kind;
	const char *name;
	bool fine = true;

	*count = 0;
	for (size_t i = 0; words[0] == NULL && i < looked->list.count; i++)
		chosen[i] = looked->list.items[i].problem == NULL &&
			    trust_of(&looked->trust, &looked->list.items[i]) != TRUST_GIVEN;
	for (; fine && *words != NULL; words++) {
		const struct brought *wrong = NULL;
		bool found = false;

		fine = read_word(*words, &kind, &name, err);
		for (size_t i = 0; fine && i < looked->list.count; i++) {
			const struct brought *item = &looked->list.items[i];

			if (item->kind != kind ||
			    (name != NULL && strcmp(item->name, name) != 0))
				continue;
			if (item->problem == NULL)
				found = chosen[i] = true;
			else if (wrong == NULL)
				wrong = item;
		}
		if (fine && !found)
			fine = err_set(err, ENOENT, "%s: %s",
				       wrong != NULL ? wrong->file : *words,
				       wrong != NULL ? problem_of(wrong)
						     : "this workspace has no such thing");
	}
	for (size_t i = 0; fine && i < looked->list.count; i++) {
		if (chosen[i])
			items[(*count)++] = &looked->list.items[i];
	}
	free(chosen);
	return items;
}

static void show_all(const struct looked *looked, const struct brought *const *items,
		     size_t count, FILE *out)
{
	for (size_t i = 0; i < count; i++) {
		(void)fprintf(out, "%s%s ", i > 0 ? "\n" : "",
			      brought_kind_name(items[i]->kind));
		verb_print_name(items[i]->name, 0, out);
		(void)fprintf(out, " (%s)\n\n",
			      trust_state_name(trust_of(&looked->trust, items[i])));
		trusting_show(&looked->trust, items[i], out);
		(void)fputc('\n', out);
	}
}

static struct value *shown_value(const struct looked *looked,
				 const struct brought *const *items, size_t count)
{
	struct value *rows = value_new_array();

	for (size_t i = 0; i < count; i++) {
		struct value *row = value_new_object();
		struct buf diff;

		value_set_text(row, "kind", brought_kind_name(items[i]->kind));
		value_set_text(row, "name", items[i]->name);
		value_set_text(row, "file", items[i]->file);
		value_set_text(row, "state",
			       trust_state_name(trust_of(&looked->trust, items[i])));
		value_set_text(row, "hash", items[i]->hash);
		value_set_text(row, "text", items[i]->text);
		buf_init(&diff, VALUE_TEXT_MAX);
		if (trust_of(&looked->trust, items[i]) == TRUST_CHANGED &&
		    trust_diff(&looked->trust, items[i], &diff))
			value_set_str(row, "diff", buf_str(&diff));
		buf_fini(&diff);
		value_append(rows, row);
	}
	return rows;
}

static int show_run(const struct options *options, FILE *out)
{
	struct looked looked = {0};
	struct err err = {0};
	size_t count = 0;
	int code = looked_open(&looked, options);

	if (code == CODE_DONE) {
		const struct brought **items =
			choose(&looked, options->words, &count, &err);

		if (err.text[0] != '\0') {
			code = verb_complain(code_of(&err), "trust show: %s", err.text);
		} else if (options_given(options, "json")) {
			auto_value struct value *rows = shown_value(&looked, items, count);

			code = verb_print_json(rows, VALUE_PRETTY, out);
		} else if (count == 0) {
			(void)fprintf(out, "There is nothing that you have not let in.\n");
		} else {
			show_all(&looked, items, count, out);
		}
		free(items);
	}
	looked_fini(&looked);
	return code;
}

/* Is each of ITEMS what --hash says, and does the person mean it? */
static int is_meant(const struct options *options, const struct brought *const *items,
		    size_t count, struct err *err, FILE *out)
{
	const char *hash = options_text(options, "hash");

	for (size_t i = 0; hash != NULL && i < count; i++) {
		if (!hash_matches(hash, items[i]->hash)) {
			(void)err_set(err, EINVAL,
				      "%s is not %.64s but %s now; nothing was let in: look "
				      "at it again",
				      items[i]->file, hash, items[i]->hash);
			return CODE_FAILED;
		}
	}
	if (options_given(options, "yes"))
		return CODE_DONE;
	if (!isatty(STDIN_FILENO)) {
		(void)err_set(err, EINVAL,
			      "trust add: nobody can be asked here, and nothing was let in. "
			      "Read what is shown, then give --yes");
		return CODE_USAGE;
	}
	if (talk_confirm(out, "Let %s in as %s above?", count > 1 ? "these" : "it",
			 count > 1 ? "they stand" : "it stands"))
		return CODE_DONE;
	(void)err_set(err, ECANCELED, "not let in");
	return CODE_FAILED;
}

static int add(const struct looked *looked, const struct options *options, FILE *out)
{
	struct err err = {0};
	size_t count = 0;
	const struct brought **items = choose(looked, options->words, &count, &err);
	int code = err.text[0] != '\0' ? code_of(&err) : CODE_DONE;

	if (code == CODE_DONE && count == 0) {
		(void)fprintf(out, "There is nothing that you have not let in.\n");
		free(items);
		return CODE_DONE;
	}
	if (code == CODE_DONE) {
		show_all(looked, items, count, out);
		for (size_t i = 0, told = 0; i < count && told == 0; i++) {
			if (items[i]->kind == BROUGHT_AGENT)
				told = (size_t)fprintf(out, "A role gets no right that your "
							    "default agent has not.\n");
		}
		code = is_meant(options, items, count, &err, out);
	}
	if (code == CODE_DONE &&
	    !trust_record(looked->setup.workspace, items, count, false, &err))
		code = CODE_FAILED;
	if (code == CODE_DONE) {
		struct buf text;

		buf_init(&text, TEXT_MAX);
		brought_count(items, count, &text);
		(void)fprintf(out, "Let in: %s, until they change.\n", text.data);
		buf_fini(&text);
	} else {
		(void)verb_complain(code, "%s", err.text);
	}
	free(items);
	return code;
}

static int add_run(const struct options *options, FILE *out)
{
	struct looked looked = {0};
	int code = looked_open(&looked, options);

	if (code == CODE_DONE)
		code = add(&looked, options, out);
	looked_fini(&looked);
	return code;
}

static int remove_word(const char *workspace, const char *word, FILE *out)
{
	enum brought_kind kind;
	const char *name;
	struct err err = {0};
	bool was = false;

	if (!read_word(word, &kind, &name, &err))
		return verb_complain(CODE_USAGE, "trust remove: %s", err.text);
	if (name == NULL)
		return verb_complain(CODE_USAGE, "trust remove: write %s/NAME", word);
	if (!trust_remove(workspace, kind, name, &was, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	if (!was)
		return verb_complain(CODE_FAILED, "%s was not let in", word);
	(void)fprintf(out, "%s counts no more.\n", word);
	return CODE_DONE;
}

static int remove_run(const struct options *options, FILE *out)
{
	const char *folder = options_text(options, "workspace");
	auto_free char *workspace = realpath(folder != NULL ? folder : ".", NULL);
	int code = CODE_DONE;

	if (workspace == NULL)
		return verb_complain(CODE_FAILED, "workspace %s: %s",
				     folder != NULL ? folder : ".", strerror(errno));
	for (size_t i = 0; code == CODE_DONE && i < options->word_count; i++)
		code = remove_word(workspace, options->words[i], out);
	return code;
}

static const char list_help[] =
	"List what this workspace brings along for agents: roles, skills, commands, hooks\n"
	"and MCP servers, and whether you have let them in. What you have not let in does\n"
	"not count, and what has changed since then does not count any more.";

const struct verb verb_trust_list = {
	.name = "trust list",
	.summary = "list what this workspace brings along, and what of it counts",
	.arguments = "",
	.help = list_help,
	.example = "  glovebox trust list --json",
	.options = list_options,
	.folds = true,
	.run = list_run,
};

static const char show_help[] =
	"Show what this workspace brings along, byte for byte: all that you have not let\n"
	"in, or what the words name (skill, or skill/NAME). Of what has changed since you\n"
	"let it in, the difference comes first.";

const struct verb verb_trust_show = {
	.name = "trust show",
	.summary = "show what would be let in, and what has changed",
	.arguments = "[KIND[/NAME]…]",
	.help = show_help,
	.example = "  glovebox trust show skill/release",
	.options = list_options,
	.words_most = VERB_WORDS_ANY,
	.run = show_run,
};

static const char add_help[] =
	"Let in what this workspace brings along, as it is now: all that you have not let\n"
	"in, or what the words name (skill, or skill/NAME). It is shown first, and you are\n"
	"asked; where there is no terminal, --yes says that you have read it, and --hash\n"
	"that nothing has changed since then. When a byte changes, it counts no more. A\n"
	"role gets no tool, path, host, variable or limit beyond those of your default\n"
	"agent, and no plugin or MCP server, whatever it asks for.";

const struct verb verb_trust_add = {
	.name = "trust add",
	.summary = "let in what this workspace brings along, as it is now",
	.arguments = "[KIND[/NAME]…]",
	.help = add_help,
	.example =
		"  glovebox trust add\n"
		"  glovebox trust add hook/.glovebox/hooks.json --yes --hash 1f2e3d4c5b6a",
	.options = add_options,
	.words_most = VERB_WORDS_ANY,
	.run = add_run,
};

static const char remove_help[] =
	"Take back what you have let in of this workspace. It does not count any more, and\n"
	"you are asked about it again.";

const struct verb verb_trust_remove = {
	.name = "trust remove",
	.summary = "take back what you have let in",
	.arguments = "KIND/NAME…",
	.help = remove_help,
	.example = "  glovebox trust remove skill/release",
	.options = remove_options,
	.words_least = 1,
	.words_most = VERB_WORDS_ANY,
	.run = remove_run,
};
