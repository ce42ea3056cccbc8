/* glovebox sessions export: one session out of the journal, as it is or for people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/value.h"
#include "front/exit_code.h"
#include "front/resume.h"
#include "front/screen_paint.h"
#include "front/verb.h"
#include "runtime/event.h"

static const struct option_row export_options[] = {
	{"markdown", 0, OPTION_FLAG, NULL, "as a text for people to read"},
	OPTION_ROW_HELP,
	{0},
};

static bool export_line(void *context, int64_t number, const char *kind, int64_t wall_ms,
			struct str json)
{
	(void)context;
	(void)number;
	(void)kind;
	(void)wall_ms;
	return printf("%.*s\n", (int)json.size, json.data) > 0;
}

/* What was said, with nothing in it that a terminal would obey. */
static void print_clean(struct str text)
{
	struct buf clean;

	buf_init(&clean, PAINT_MAX);
	paint_clean(text, &clean);
	(void)fwrite(clean.data, 1, clean.size, stdout);
	buf_fini(&clean);
}

static void print_paragraph(struct str text)
{
	text = str_trim(text);
	if (text.size == 0)
		return;
	print_clean(text);
	(void)fputs("\n\n", stdout);
}

/* TEXT between fences that are longer than any in it. */
static void print_fenced(const char *language, struct str text)
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
		(void)putchar('`');
	(void)printf("%s\n", language);
	print_clean(text);
	(void)putchar('\n');
	for (size_t i = 0; i <= longest; i++)
		(void)putchar('`');
	(void)fputs("\n\n", stdout);
}

static void print_began(const char *title, const struct value *event)
{
	static const char *const members[] = {"session", "workspace", "agent", "model"};

	(void)printf("# %s\n\n", title);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		(void)printf("- %s: ", members[i]);
		print_clean(value_str(value_member(event, members[i])));
		(void)putchar('\n');
	}
	(void)printf("- level of the cell: L%" PRId64 "\n\n",
		     value_integer(value_member(event, "level")));
}

static void print_message(const struct value *event)
{
	const struct value *parts = value_member(event, "parts");

	(void)fputs("## Agent\n\n", stdout);
	for (size_t i = 0; i < value_count(parts); i++) {
		const struct value *part = value_item(parts, i);
		struct str kind = value_str(value_member(part, "kind"));
		struct str text = value_str(value_member(part, "text"));

		if (str_is(kind, "text"))
			print_paragraph(text);
		else if (str_is(kind, "thinking"))
			print_fenced("thinking", text);
	}
}

static void print_call(const struct value *event)
{
	const struct value *arguments = value_member(event, "arguments");
	struct buf text;

	(void)fputs("### ", stdout);
	print_clean(value_str(value_member(event, "tool")));
	(void)fputs("\n\n", stdout);
	buf_init(&text, EVENT_JSON_MAX);
	/* With its blanks it may be longer than any event. */
	if (value_count(arguments) > 0 && !value_print(arguments, VALUE_PRETTY, &text)) {
		buf_clear(&text);
		(void)value_print(arguments, 0, &text);
	}
	print_fenced("json", buf_str(&text));
	buf_fini(&text);
}

static void print_result(const struct value *event)
{
	const struct value *exit_code = value_member(event, "exit_code");

	print_clean(value_str(value_member(event, "status")));
	if (value_kind(exit_code) == VALUE_INTEGER)
		(void)printf(", exit code %" PRId64, value_integer(exit_code));
	(void)printf(", %.1f s\n\n", value_number(value_member(event, "seconds")));
	print_fenced("", value_str(value_member(event, "text")));
}

static void print_end(const struct value *event)
{
	const struct value *changed = value_member(event, "changed");
	const struct value *usage = value_member(event, "usage");

	const int64_t answers = value_integer(value_member(event, "iterations"));

	(void)fputs("## End of the turn\n\n", stdout);
	print_clean(value_str(value_member(event, "reason")));
	(void)printf(", %" PRId64 " answer%s, %" PRId64 " tokens in, %" PRId64
		     " out, %.1f s\n\n",
		     answers, answers == 1 ? "" : "s",
		     value_integer(value_member(usage, "input")),
		     value_integer(value_member(usage, "output")),
		     value_number(value_member(event, "seconds")));
	for (size_t i = 0; i < value_count(changed); i++) {
		(void)fputs("- ", stdout);
		print_clean(value_str(value_member(value_item(changed, i), "path")));
		(void)putchar('\n');
	}
	if (value_count(changed) > 0)
		(void)putchar('\n');
	print_fenced("diff", value_str(value_member(event, "patch")));
}

static void print_titled(const char *title, struct str text)
{
	(void)printf("## %s\n\n", title);
	print_paragraph(text);
}

static void print_event(const struct event *event)
{
	switch (event->kind) {
	case EVENT_SESSION_BEGAN:
		print_began("Session", event->data);
		break;
	case EVENT_SESSION_RESUMED:
		print_began("Resumed", event->data);
		break;
	case EVENT_INSTRUCTIONS:
		print_titled("Instructions of the project", event->text);
		break;
	case EVENT_TURN_BEGAN:
		print_titled("User", event->text);
		break;
	case EVENT_MESSAGE:
		print_message(event->data);
		break;
	case EVENT_TOOL_BEGAN:
		print_call(event->data);
		break;
	case EVENT_TOOL_ENDED:
		print_result(event->data);
		break;
	case EVENT_NOTICE:
		print_paragraph(event->text);
		break;
	case EVENT_COMPACTED:
		print_titled("Summary of what stands above", event->text);
		break;
	case EVENT_TURN_ENDED:
		print_end(event->data);
		break;
	default:
		break;
	}
}

static bool export_markdown(void *context, int64_t number, const char *kind,
			    int64_t wall_ms, struct str json)
{
	auto_value struct value *line = NULL;
	struct event event;

	(void)context;
	(void)wall_ms;
	if (event_parse(json, &line, &event, NULL)) {
		print_event(&event);
		return true;
	}
	(void)printf("(event %" PRId64 ", ", number);
	print_clean(str_of(kind));
	(void)printf(", cannot be read)\n\n");
	return true;
}

static int export_run(const struct options *options)
{
	return resume_read(options->words[0],
			   options_given(options, "markdown") ? export_markdown : export_line,
			   NULL);
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
