/*
 * glovebox sessions export: prints one session of the journal, as recorded or for people.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/talk.h"
#include "front/terminal/paint.h"
#include "front/verb.h"
#include "tool/event.h"

static const struct option_row export_options[] = {
	{"markdown", 0, OPTION_FLAG, NULL, "as a text for people to read"},
	OPTION_ROW_HELP,
	{0},
};

static bool export_line(void *context, int64_t number, const char *kind, int64_t wall_ms,
			struct str json)
{
	FILE *out = context;

	(void)number;
	(void)kind;
	(void)wall_ms;
	return fprintf(out, "%.*s\n", (int)json.size, json.data) > 0;
}

/* Print TEXT, made safe for a terminal. */
static void print_clean(struct str text, FILE *out)
{
	struct buf clean;

	buf_init(&clean, PAINT_MAX);
	paint_clean(text, &clean);
	(void)fwrite(clean.data, 1, clean.size, out);
	buf_fini(&clean);
}

static void print_paragraph(struct str text, FILE *out)
{
	text = str_trim(text);
	if (text.size == 0)
		return;
	print_clean(text, out);
	(void)fputs("\n\n", out);
}

/* Print TEXT between fences that are longer than any fence in it. */
static void print_fenced(const char *language, struct str text, FILE *out)
{
	size_t longest = 2, run = 0;

	text = str_trim(text);
	if (text.size == 0)
		return;
	for (size_t i = 0; i < text.size; i++) {
		run = text.data[i] == '`' ? run + 1 : 0;
		if (run > longest)
			longest = run;
	}
	for (size_t i = 0; i <= longest; i++)
		(void)fputc('`', out);
	(void)fprintf(out, "%s\n", language);
	print_clean(text, out);
	(void)fputc('\n', out);
	for (size_t i = 0; i <= longest; i++)
		(void)fputc('`', out);
	(void)fputs("\n\n", out);
}

static void print_began(const char *title, const struct value *event, FILE *out)
{
	static const char *const members[] = {"session", "workspace", "agent", "model"};

	(void)fprintf(out, "# %s\n\n", title);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		(void)fprintf(out, "- %s: ", members[i]);
		print_clean(value_str(value_member(event, members[i])), out);
		(void)fputc('\n', out);
	}
	(void)fprintf(out, "- level of the cell: L%" PRId64 "\n\n",
		      value_integer(value_member(event, "level")));
}

static void print_message(const struct value *event, FILE *out)
{
	const struct value *parts = value_member(event, "parts");

	(void)fputs("## Agent\n\n", out);
	for (size_t i = 0; i < value_count(parts); i++) {
		const struct value *part = value_item(parts, i);
		struct str kind = value_str(value_member(part, "kind"));
		struct str text = value_str(value_member(part, "text"));

		if (str_is(kind, "text"))
			print_paragraph(text, out);
		else if (str_is(kind, "thinking"))
			print_fenced("thinking", text, out);
	}
}

static void print_call(const struct value *event, FILE *out)
{
	const struct value *arguments = value_member(event, "arguments");
	struct buf text;

	(void)fputs("### ", out);
	print_clean(value_str(value_member(event, "tool")), out);
	(void)fputs("\n\n", out);
	buf_init(&text, EVENT_JSON_MAX);
	/* With the blanks of VALUE_PRETTY, it may exceed the limit of a text. */
	if (value_count(arguments) > 0 && !value_print(arguments, VALUE_PRETTY, &text)) {
		buf_clear(&text);
		(void)value_print(arguments, 0, &text);
	}
	print_fenced("json", buf_str(&text), out);
	buf_fini(&text);
}

static void print_result(const struct value *event, FILE *out)
{
	const struct value *exit_code = value_member(event, "exit_code");

	print_clean(value_str(value_member(event, "status")), out);
	if (value_kind(exit_code) == VALUE_INTEGER)
		(void)fprintf(out, ", exit code %" PRId64, value_integer(exit_code));
	(void)fprintf(out, ", %.1f s\n\n", value_number(value_member(event, "seconds")));
	print_fenced("", value_str(value_member(event, "text")), out);
}

static void print_end(const struct value *event, FILE *out)
{
	const struct value *changed = value_member(event, "changed");
	const struct value *usage = value_member(event, "usage");

	const int64_t answers = value_integer(value_member(event, "iterations"));

	(void)fputs("## End of the turn\n\n", out);
	print_clean(value_str(value_member(event, "reason")), out);
	(void)fprintf(out,
		      ", %" PRId64 " answer%s, %" PRId64 " tokens in, %" PRId64
		      " out, %.1f s\n\n",
		      answers, answers == 1 ? "" : "s",
		      value_integer(value_member(usage, "input")),
		      value_integer(value_member(usage, "output")),
		      value_number(value_member(event, "seconds")));
	for (size_t i = 0; i < value_count(changed); i++) {
		(void)fputs("- ", out);
		print_clean(value_str(value_member(value_item(changed, i), "path")), out);
		(void)fputc('\n', out);
	}
	if (value_count(changed) > 0)
		(void)fputc('\n', out);
	print_fenced("diff", value_str(value_member(event, "patch")), out);
}

static void print_titled(const char *title, struct str text, FILE *out)
{
	(void)fprintf(out, "## %s\n\n", title);
	print_paragraph(text, out);
}

static void print_event(const struct event *event, FILE *out)
{
	switch (event->kind) {
	case EVENT_SESSION_BEGAN:
		print_began("Session", event->data, out);
		break;
	case EVENT_SESSION_RESUMED:
		print_began("Resumed", event->data, out);
		break;
	case EVENT_INSTRUCTIONS:
		print_titled("Instructions of the project", event->text, out);
		break;
	case EVENT_TURN_BEGAN:
		print_titled("User", event->text, out);
		break;
	case EVENT_MESSAGE:
		print_message(event->data, out);
		break;
	case EVENT_TOOL_BEGAN:
		print_call(event->data, out);
		break;
	case EVENT_TOOL_ENDED:
		print_result(event->data, out);
		break;
	case EVENT_NOTICE:
		print_paragraph(event->text, out);
		break;
	case EVENT_COMPACTED:
		print_titled("Summary of what stands above", event->text, out);
		break;
	case EVENT_TURN_ENDED:
		print_end(event->data, out);
		break;
	default:
		break;
	}
}

static bool export_markdown(void *context, int64_t number, const char *kind,
			    int64_t wall_ms, struct str json)
{
	auto_value struct value *line = NULL;
	FILE *out = context;
	struct event event;

	(void)wall_ms;
	if (event_parse(json, &line, &event, NULL)) {
		print_event(&event, out);
		return !ferror(out);
	}
	(void)fprintf(out, "(event %" PRId64 ", ", number);
	print_clean(str_of(kind), out);
	(void)fprintf(out, ", cannot be read)\n\n");
	return !ferror(out);
}

static int export_run(const struct options *options, FILE *out)
{
	return resume_read(options->words[0],
			   options_given(options, "markdown") ? export_markdown : export_line,
			   out);
}

static const char sessions_export_help[] =
	"Print the events of the session ID as they were recorded, one JSON object per\n"
	"line (docs/events.md); with --markdown as a text for people: what was said, each\n"
	"call with its result, the change. The beginning of an ID does, and `last` for the\n"
	"newest session of the folder where you are.";

const struct verb verb_sessions_export = {
	.name = "sessions export",
	.summary = "print one of them, for programs or people",
	.arguments = "ID|last",
	.help = sessions_export_help,
	.example = "  glovebox sessions export last --markdown > session.md",
	.options = export_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_SESSIONS,
	.run = export_run,
};
