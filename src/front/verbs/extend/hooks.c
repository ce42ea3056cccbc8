/*
 * glovebox hooks list and test: shows the hooks that a run in this workspace would ask, and
 * plays those of one moment.
 */

#include "agent/hooks.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "extend/hook_output.h"
#include "extend/hook_run.h"
#include "extend/hooks.h"
#include "front/extend/hook_files.h"
#include "front/setup.h"
#include "front/verb.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOMENT_COLUMN = 18, MATCHER_COLUMN = 16, SHOWN_MAX = 64 << 10 };

static const struct option_row list_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print it as JSON"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row test_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print it as JSON"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static const char *place_name(const struct hook *hook)
{
	return hook->place == HOOK_ON_HOST ? "host" : "cell";
}

static struct value *hook_value(const struct hook *hook)
{
	struct value *row = value_new_object();

	value_set_text(row, "moment", hook_kind_name(hook->kind));
	value_set_text(row, "matcher", hook->matcher);
	value_set_text(row, "command", hook->command);
	value_set_text(row, "where", place_name(hook));
	value_set_real(row, "timeout_s", hook_timeout_s(hook));
	value_set_boolean(row, "required", hook->required);
	value_set_text(row, "source", hook->source);
	return row;
}

static struct value *note_value(const struct hook_note *note)
{
	struct value *row = value_new_object();

	value_set_text(row, "moment", note->moment);
	value_set_text(row, "source", note->source);
	value_set_text(row, "why", note->why);
	return row;
}

static int list_json(const struct hooks *hooks, FILE *out)
{
	auto_value struct value *root = value_new_object();
	struct value *rows = value_new_array(), *notes = value_new_array();

	for (size_t i = 0; i < hooks->count; i++)
		value_append(rows, hook_value(&hooks->items[i]));
	for (size_t i = 0; i < hooks->note_count; i++)
		value_append(notes, note_value(&hooks->notes[i]));
	value_set(root, "hooks", rows);
	value_set(root, "notes", notes);
	return verb_print_json(root, VALUE_PRETTY, out);
}

static void print_text(struct str text, FILE *out)
{
	struct buf shown;

	buf_init(&shown, 4 * SHOWN_MAX);
	text_add_exact(&shown, text);
	(void)fputs(shown.data, out);
	buf_fini(&shown);
}

static void print_hook(const struct hook *hook, FILE *out)
{
	verb_print_name(hook_kind_name(hook->kind), MOMENT_COLUMN, out);
	(void)fputc(' ', out);
	verb_print_name(hook->matcher[0] != '\0' ? hook->matcher : "*", MATCHER_COLUMN, out);
	(void)fprintf(out, " %s %3g s  ", place_name(hook), hook_timeout_s(hook));
	verb_print_name(hook->source, 0, out);
	(void)fputs(": ", out);
	print_text(str_of(hook->command), out);
	(void)fputs(hook->required ? " (required)\n" : "\n", out);
}

static int list_text(const struct hooks *hooks, FILE *out)
{
	for (size_t i = 0; i < hooks->count; i++)
		print_hook(&hooks->items[i], out);
	if (hooks->count == 0)
		(void)fputs("There are no hooks here.\n", out);
	for (size_t i = 0; i < hooks->note_count; i++) {
		const struct hook_note *note = &hooks->notes[i];

		(void)fputs(i == 0 ? "\n" : "", out);
		verb_print_name(note->source, 0, out);
		(void)fputs(note->moment[0] != '\0' ? ", " : "", out);
		verb_print_name(note->moment, 0, out);
		(void)fputs(": ", out);
		verb_print_name(note->why, 0, out);
		(void)fputc('\n', out);
	}
	return verb_printed(CODE_DONE, out);
}

static int list_run(const struct options *options, FILE *out)
{
	const struct setup_flags flags = {.agent = POLICY_NAME_DEFAULT,
					  .quiet_plugins = true};
	struct hook_files *files = NULL;
	struct setup setup;
	struct err err = {0};
	int code = setup_open(&setup, options, &flags);

	if (code == CODE_DONE && !hook_files_open(&setup, -1, NULL, true, &files, &err))
		code = verb_complain(CODE_USAGE, "%s", err.text);
	if (code == CODE_DONE)
		code = options_given(options, "json")
			       ? list_json(hook_files_hooks(files), out)
			       : list_text(hook_files_hooks(files), out);
	hook_files_close(files);
	setup_fini(&setup);
	return code;
}

static const char list_help[] =
	"List the hooks that a run in this workspace asks: those of your configuration, and\n"
	"those of the workspace (.glovebox/hooks.json, .claude/settings.json) that you have\n"
	"let in with glovebox trust add. What is not run is listed below them, with the\n"
	"reason: files that you have not let in, moments that this program does not know,\n"
	"and hooks of another type than \"command\".";

const struct verb verb_hooks_list = {
	.name = "hooks list",
	.summary = "list the hooks that runs ask",
	.arguments = "",
	.help = list_help,
	.example = "  glovebox hooks list --json",
	.options = list_options,
	.folds = true,
	.run = list_run,
};

/* The account of a hook that was played. */
struct told {
	FILE *out;
	struct value *rows; /* NULL: it is printed as text */
};

static void tell_json(struct value *rows, const struct hook *hook,
		      const struct value *input, const struct hook_said *said)
{
	struct value *row = hook_value(hook);

	value_set(row, "input", value_copy(input));
	value_set_text(row, "decision", hook_decision_name(said->decision));
	value_set_boolean(row, "failed", said->failed);
	value_set_boolean(row, "ends", said->ends);
	value_set_str(row, "reason", buf_str(&said->reason));
	value_set_str(row, "context", buf_str(&said->context));
	value_set_str(row, "told", buf_str(&said->told));
	if (said->input != NULL)
		value_set(row, "updated_input", value_copy(said->input));
	value_append(rows, row);
}

static void print_member(const char *name, struct str text, FILE *out)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		(void)fprintf(out, "  %s ", name);
		print_text(line, out);
		(void)fputc('\n', out);
	}
}

static void tell(void *context, const struct hook *hook, const struct value *input,
		 const struct hook_said *said)
{
	const struct told *told = context;
	struct buf changed;

	if (told->rows != NULL) {
		tell_json(told->rows, hook, input, said);
		return;
	}
	print_hook(hook, told->out);
	(void)fprintf(told->out, "  decision: %s%s\n", hook_decision_name(said->decision),
		      said->ends ? ", ends the turn" : "");
	print_member("reason:", buf_str(&said->reason), told->out);
	print_member("adds:", buf_str(&said->context), told->out);
	print_member("tells you:", buf_str(&said->told), told->out);
	buf_init(&changed, SHOWN_MAX);
	if (said->input != NULL && value_print(said->input, 0, &changed))
		print_member("changes the input to:", buf_str(&changed), told->out);
	buf_fini(&changed);
}

/* Read the object in the file NAME, or "-". NULL: nothing is given. */
static bool read_given(const char *name, struct value **given, struct err *err)
{
	struct buf text;
	bool ok;

	*given = NULL;
	if (name == NULL)
		return true;
	buf_init(&text, HOOKS_TEXT_MAX);
	ok = (strcmp(name, "-") == 0
		      ? fd_read_all(STDIN_FILENO, &text, "standard input", err)
		      : fd_read_file(name, HOOKS_TEXT_MAX, &text, err)) &&
	     value_parse(buf_str(&text), 0, given, err) &&
	     (value_kind(*given) == VALUE_OBJECT ||
	      err_set(err, 0, "an object is wanted, as hooks get it"));
	buf_fini(&text);
	return ok || err_while(err, "%s", name);
}

static bool kind_of(const char *word, enum hook_kind *kind, struct err *err)
{
	struct buf names;

	if (hook_kind_parse(word, kind))
		return true;
	buf_init(&names, ERR_TEXT_MAX);
	for (int i = 0; i < HOOK_KINDS; i++)
		(void)buf_addf(&names, "%s%s", i > 0 ? ", " : "",
			       hook_kind_name((enum hook_kind)i));
	(void)err_set(err, 0, "%.64s is no moment of hooks; these are: %s", word,
		      names.data);
	buf_fini(&names);
	return false;
}

/* Play the hooks of KIND in a cell of SETUP. */
static int play(struct setup *setup, enum hook_kind kind, const struct value *given,
		struct told *told)
{
	struct hook_files *files = NULL;
	struct session *session = NULL;
	struct err err = {0};
	int code = CODE_DONE;
	size_t count = 0;

	if (!hook_files_open(setup, -1, NULL, false, &files, &err))
		code = verb_complain(CODE_USAGE, "%s", err.text);
	else
		code = setup_session_kept(setup, &session);
	if (code == CODE_DONE)
		count = hook_run_play(hook_files_options(files), session, kind, given,
				      tell, told);
	if (code == CODE_DONE && told->rows != NULL)
		code = verb_print_json(told->rows, VALUE_PRETTY, told->out);
	else if (code == CODE_DONE && count == 0)
		(void)fprintf(told->out, "No hook of %s fits.\n", hook_kind_name(kind));
	session_close(session);
	hook_files_close(files);
	return code;
}

static int test_run(const struct options *options, FILE *out)
{
	const struct setup_flags flags = {.quiet_plugins = true};
	auto_value struct value *given = NULL;
	auto_value struct value *rows =
		options_given(options, "json") ? value_new_array() : NULL;
	struct told told = {.out = out, .rows = rows};
	enum hook_kind kind;
	struct setup setup;
	struct err err = {0};
	int code;

	if (!kind_of(options->words[0], &kind, &err) ||
	    !read_given(options->word_count > 1 ? options->words[1] : NULL, &given, &err))
		return verb_complain(CODE_USAGE, "hooks test: %s", err.text);
	code = setup_open(&setup, options, &flags);
	if (code == CODE_DONE)
		code = play(&setup, kind, given, &told);
	setup_fini(&setup);
	return code;
}

static const char test_help[] =
	"Play the hooks of one moment, and print what they decide. FILE has an object with\n"
	"members of their input (\"-\": standard input), such as tool_name and tool_input;\n"
	"the others are made up. The hooks really run, in a cell of the agent, and may change\n"
	"files.";

const struct verb verb_hooks_test = {
	.name = "hooks test",
	.summary = "play the hooks of one moment",
	.arguments = "MOMENT [FILE|-]",
	.help = test_help,
	.example = "  echo '{\"tool_input\": {\"command\": \"rm -rf /\"}}' | glovebox hooks test PreToolUse -",
	.options = test_options,
	.words_least = 1,
	.words_most = 2,
	.folds = true,
	.run = test_run,
};
