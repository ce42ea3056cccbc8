/*
 * glovebox tool list, schema and call: lists and calls tools by hand, in the same way as
 * a model's calls.
 */

#include "front/verbs/tool.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/value.h"
#include "front/agents.h"
#include "front/interrupt.h"
#include "front/review/layered.h"
#include "front/setup.h"
#include "front/verb.h"
#include "session/session.h"
#include "tool/schema.h"
#include "tools/tools.h"
#include "tui/paint.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct option_row list_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print name, description, schema and effects as JSON"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_MODE,
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row schema_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print it on one line"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_HELP,
	{0},
};

const struct option_row tool_call_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print the whole result as one JSON object"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_ALLOW_HOST,
	OPTION_ROW_BASE,
	OPTION_ROW_AT,
	OPTION_ROW_REVIEW,
	OPTION_ROW_NO_REVIEW,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

static struct value *effects_of(const struct tool *tool)
{
	struct value *effects = value_new_array();

	if (tool->effects & EFFECT_READS)
		value_append(effects, value_new_text("reads"));
	if (tool->effects & EFFECT_WRITES)
		value_append(effects, value_new_text("writes"));
	if (tool->effects & EFFECT_RUNS)
		value_append(effects, value_new_text("runs"));
	return effects;
}

/*
 * Print TEXT in lines that end before COLUMNS. All lines except the first begin after
 * INDENT blanks.
 */
static void print_wrapped(const char *text, size_t indent, size_t columns, FILE *out)
{
	size_t at = indent;

	while (*text != '\0') {
		size_t word = strcspn(text, " ");

		if (at > indent && at + 1 + word > columns) {
			(void)fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			(void)fputc(' ', out);
			at++;
		}
		(void)fwrite(text, 1, word, out);
		at += word;
		text += word;
		text += strspn(text, " ");
	}
	(void)fputc('\n', out);
}

static void print_row(const struct tool *tool, FILE *out)
{
	enum { DESCRIPTION_AT = 24, DESCRIPTION_LEAST = 30, NARROW_AT = 4 };
	size_t columns = paint_columns_of(STDOUT_FILENO);
	bool narrow = columns < DESCRIPTION_AT + DESCRIPTION_LEAST;
	auto_value struct value *effects = effects_of(tool);
	char marks[32] = "";
	size_t at = 0;

	for (size_t i = 0; i < value_count(effects); i++)
		at += (size_t)snprintf(marks + at, sizeof(marks) - at, "%s%s",
				       i > 0 ? ", " : "",
				       value_text(value_item(effects, i)));
	(void)fprintf(out, "%-15s %-7s ", tool->name, marks);
	if (narrow)
		(void)fprintf(out, "\n%*s", NARROW_AT, "");
	print_wrapped(tool->description, narrow ? NARROW_AT : DESCRIPTION_AT, columns, out);
}

static int list_run(const struct options *options, FILE *out)
{
	auto_value struct value *list = value_new_array();
	const struct setup_flags flags = {.serves = true};
	struct setup setup;
	const int code = setup_open(&setup, options, &flags);

	for (size_t i = 0; code == CODE_DONE && setup.tools[i] != NULL; i++) {
		const struct tool *tool = setup.tools[i];
		struct value *row;

		if (tool->internal || !policy_has_tool(setup.policy, tool->name))
			continue;
		if (!options_given(options, "json")) {
			print_row(tool, out);
			continue;
		}
		row = value_new_object();
		value_set_text(row, "name", tool->name);
		value_set_text(row, "description", tool->description);
		value_set(row, "effects", effects_of(tool));
		value_set(row, "schema", schema_of_tool(tool));
		value_set_text(row, "example", tool->example);
		value_set_text(row, "aliases", tool->aliases != NULL ? tool->aliases : "");
		value_set_boolean(row, "only_in_runs", tool->in_runs);
		value_set_boolean(row, "when_named", tool->when_named);
		value_append(list, row);
	}
	setup_fini(&setup);
	return code == CODE_DONE && options_given(options, "json")
		       ? verb_print_json(list, VALUE_PRETTY, out)
		       : code;
}

static const char tool_list_help[] =
	"List the tools of an agent: name, what it does to the workspace (reads, writes,\n"
	"runs programs), description.";

const struct verb verb_tool_list = {
	.name = "tool list",
	.summary = "list the tools an agent has",
	.arguments = "",
	.help = tool_list_help,
	.example = "  glovebox tool list --agent reviewer",
	.options = list_options,
	.folds = true,
	.run = list_run,
};

/*
 * Print the schema of the tool among TOOLS that OPTIONS name, or complain that there is
 * none.
 */
static int print_schema(const struct tool *const *tools, const struct options *options,
			FILE *out)
{
	const char *name = options->words[0];
	const struct tool *tool = tool_find(tools, name);
	auto_value struct value *schema = NULL;

	if (tool == NULL || tool->internal) {
		const char *nearest = tool_nearest(tools, name);

		return verb_complain(CODE_FAILED, "no tool \"%.100s\"%s%s%s", name,
				     nearest != NULL ? "; did you mean " : "",
				     nearest != NULL ? nearest : "; see: glovebox tool list",
				     nearest != NULL ? "?" : "");
	}
	schema = schema_of_tool(tool);
	return verb_print_json(schema, options_given(options, "json") ? 0 : VALUE_PRETTY,
			       out);
}

/* The configuration, with its plugins, is only read for a tool that is not built in. */
static int schema_run(const struct options *options, FILE *out)
{
	const struct tool *tool = tool_find(builtin_tools, options->words[0]);
	const struct setup_flags flags = {.serves = true};
	struct setup setup = {0};
	int code;

	if (tool != NULL && !tool->internal)
		return print_schema(builtin_tools, options, out);
	code = setup_open(&setup, options, &flags);
	if (code == CODE_DONE)
		code = print_schema(setup.tools, options, out);
	setup_fini(&setup);
	return code;
}

static const char tool_schema_help[] =
	"Print the JSON Schema that calls of the tool are checked against.";

const struct verb verb_tool_schema = {
	.name = "tool schema",
	.summary = "print the JSON Schema of a tool's arguments",
	.arguments = "NAME",
	.help = tool_schema_help,
	.example = "  glovebox tool schema edit_file",
	.options = schema_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_TOOLS,
	.run = schema_run,
};

static int code_of(const struct tool_result *result, const struct interrupt *interrupt)
{
	int number = interrupt_signal(interrupt);

	switch (result->status) {
	case RESULT_DONE:
		return CODE_DONE;
	case RESULT_DENIED:
		return CODE_DENIED;
	case RESULT_TIMED_OUT:
		return CODE_TIMED_OUT;
	case RESULT_CANCELLED:
		return number != 0 ? CODE_SIGNAL + number : CODE_CANCELLED;
	case RESULT_FAILED:
		break;
	}
	return CODE_FAILED;
}

/*
 * Print TEXT. On a terminal, control bytes are made visible, since files and arguments
 * may hold them.
 */
static void print_text(struct str text, FILE *out)
{
	struct buf clean;

	if (!isatty(STDOUT_FILENO)) {
		(void)fwrite(text.data, 1, text.size, out);
		return;
	}
	buf_init(&clean, PAINT_MAX);
	paint_clean(text, &clean);
	(void)fwrite(clean.data, 1, clean.size, out);
	buf_fini(&clean);
}

/*
 * Print the text of RESULT unchanged on standard output, and the outcome of the call in
 * one line on standard error.
 */
static int print_result(const char *tool, const struct tool_result *result, FILE *out)
{
	struct str text = buf_str(&result->text);
	struct buf content;
	int code;

	buf_init(&content, 2 * RESULT_CONTENT_BYTES_MAX);
	tool_add_content_text(result->content, &content);
	print_text(text, out);
	if (content.size > 0 && text.size > 0 && !str_ends(text, STR("\n")))
		(void)fputc('\n', out);
	if (content.size > 0) {
		text = buf_str(&content);
		print_text(text, out);
	}
	if (text.size > 0 && !str_ends(text, STR("\n")))
		(void)fputc('\n', out);
	buf_fini(&content);
	code = verb_printed(CODE_DONE, out);
	(void)fprintf(stderr, "%s: %s", tool, result_status_name(result->status));
	if (result->signal != 0)
		(void)fprintf(stderr, ", signal %d", result->signal);
	else if (result->exit_code >= 0)
		(void)fprintf(stderr, ", exit code %d", result->exit_code);
	(void)fprintf(stderr, ", %.2f s, level L%d%s\n", result->seconds,
		      (int)result->strength.level, tool_lack(result->strength.unfiltered));
	return code;
}

static int call_and_print(struct session *session, const struct verb_tool_wish *wish,
			  const struct interrupt *interrupt,
			  struct verb_progress *progress, FILE *out)
{
	struct request request = {
		.tool = wish->tool,
		.arguments_text = wish->arguments,
	};
	struct tool_result result;
	int printed, code;

	tool_result_init(&result);
	session_call(session, &request, &result);
	verb_progress_end(progress);
	if (session_broken(session) != NULL && result.status == RESULT_FAILED) {
		tool_result_fini(&result);
		return verb_complain(CODE_NO_CELL, "%s", session_broken(session));
	}
	if (wish->json) {
		auto_value struct value *value = tool_result_value(&result);

		printed = verb_print_json(value, 0, out);
	} else {
		printed = print_result(wish->tool, &result, out);
	}
	code = code_of(&result, interrupt);
	tool_result_fini(&result);
	return code != CODE_DONE ? code : printed;
}

/* Find the arguments' JSON: the second word, standard input for "-", or none. */
bool tool_read_arguments(const struct options *options, struct buf *input,
			 struct str *text, struct err *err)
{
	*text = str_of(options->word_count > 1 ? options->words[1] : NULL);
	if (!str_is(*text, "-"))
		return true;
	if (!fd_read_all(STDIN_FILENO, input, "standard input", err))
		return false;
	*text = buf_str(input);
	return true;
}

/* Call a tool of the front. It needs the environment, to find the person's state. */
static int call_in_front(struct setup *setup, const struct verb_tool_wish *wish, FILE *out)
{
	const struct orchestrate_options options = {.setup = setup, .alone = true};
	struct orchestrate *orchestrate = NULL;
	struct verb_progress progress = {0};
	struct session *session = NULL;
	struct err err = {0};
	int code;

	if (!orchestrate_open(&options, &orchestrate, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		code = setup_session_kept(setup, &session);
	if (code == CODE_DONE)
		code = call_and_print(session, wish, setup->interrupt, &progress, out);
	session_close(session);
	orchestrate_close(orchestrate);
	return code;
}

/*
 * Print the notes on a long walk over a large tree for the person. Messages of plugins
 * are for clients. What a command prints is in the result, which is what a model reads; until then
 * a person at a terminal sees its last line.
 */
static bool take_event(void *context, const struct event *event, struct err *err)
{
	const char *logger = value_text(value_member(event->data, "logger"));
	struct verb_progress *progress = context;
	struct str rest = event->text, line = {0}, last = {0};

	(void)err;
	while (event->kind == EVENT_TOOL_OUTPUT && str_next_line(&rest, &line)) {
		if (str_trim(line).size > 0)
			last = str_trim(line);
	}
	if (last.size > 0)
		verb_progress_show(progress, "%.*s", (int)last.size, last.data);
	if (event->kind == EVENT_LOG)
		verb_progress_end(progress);
	if (event->kind == EVENT_LOG && logger != NULL &&
	    strcmp(logger, EVENT_LOG_UNDO) == 0)
		(void)verb_complain(CODE_DONE, "%.*s", (int)event->text.size,
				    event->text.data);
	return true;
}

int tool_call_with(struct setup *setup, const struct verb_tool_wish *wish, FILE *out)
{
	const struct tool *tool = tool_find(setup->tools, wish->tool);
	struct verb_progress progress = {0};
	struct session *session = NULL;
	int code;

	if (tool != NULL && tool->where == IN_FRONT)
		return call_in_front(setup, wish, out);
	setup->sink = (struct event_sink){.event = take_event, .context = &progress};
	code = setup_session_once(setup, &session);
	if (code != CODE_DONE)
		return code;
	progress.began_ms = clock_now_ms();
	code = call_and_print(session, wish, setup->interrupt, &progress, out);
	session_close(session);
	return code;
}

/*
 * Can the call do without MCP servers? The tool NAME exists without them, and the policy
 * names no tools.
 */
static bool needs_no_server(const struct setup *setup, const char *name)
{
	return tool_find(setup->tools, name) != NULL && !setup->policy->tools.given;
}

static int call_run(const struct options *options, FILE *out)
{
	struct setup setup = {0};
	struct buf input;
	struct str arguments;
	struct err err = {0};
	int code;

	buf_init(&input, VALUE_TEXT_MAX);
	if (!tool_read_arguments(options, &input, &arguments, &err)) {
		buf_fini(&input);
		return verb_complain(CODE_FAILED, "%s", err.text);
	}
	code = setup_open(&setup, options, NULL);
	if (code == CODE_DONE && !needs_no_server(&setup, options->words[0]) &&
	    !setup_serve(&setup, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	setup.publishes = true;
	if (code == CODE_DONE)
		code = layered_take(&setup, options, "glovebox tool call");
	if (code == CODE_DONE)
		code = tool_call_with(
			&setup,
			&(struct verb_tool_wish){.tool = options->words[0],
						 .arguments = arguments,
						 .json = options_given(options, "json")},
			out);
	(void)layered_end(&setup, false, stderr);
	setup_fini(&setup);
	buf_fini(&input);
	return code;
}

static const char tool_call_help[] =
	"Call the tool NAME in a cell of its own with the arguments JSON (an object; none\n"
	"means {}; - reads it from standard input) and print its text. One line on\n"
	"standard error says how it went.\n\n"
	"Exit codes: 0 done (also when a command that it ran failed: see exit_code in\n"
	"--json), 1 failed, 4 denied by the policy, 5 the cell could not be built,\n"
	"124 timeout, 130 cancelled.";

const struct verb verb_tool_call = {
	.name = "tool call",
	.summary = "call one tool and print what it says",
	.arguments = "NAME [JSON|-]",
	.help = tool_call_help,
	.example = "  glovebox tool call read_file '{\"path\": \"README.md\", \"end_line\": 20}'\n"
		   "  glovebox tool call bash '{\"command\": \"make test\"}' --json",
	.options = tool_call_options,
	.words_least = 1,
	.words_most = 2,
	.names = NAMES_TOOLS,
	.run = call_run,
};
