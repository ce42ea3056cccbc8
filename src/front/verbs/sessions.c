/* glovebox sessions list and show: print the content of the journal. */

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/output/page.h"
#include "front/verb.h"
#include "store/journal.h"
#include "tool/event.h"
#include "tool/tool.h"
#include "tui/paint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SESSIONS_LISTED = 20, PROMPT_SHOWN = 60 };

static const struct option_row list_options[] = {
	{"limit", 'n', OPTION_COUNT, "N", "at most N of them, newest first (default: 20)"},
	{"json", 0, OPTION_FLAG, NULL, "print one object per line"},
	OPTION_ROW_HELP,
	{0},
};

static const struct option_row show_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print every event as it was recorded, one per line"},
	OPTION_ROW_HELP,
	{0},
};

/* Print TEXT, made safe for a terminal: names of folders and models may hold any bytes. */
static void print_clean(struct str text, FILE *out)
{
	struct buf clean;

	buf_init(&clean, PAINT_MAX);
	paint_clean(text, &clean);
	(void)fwrite(clean.data, 1, clean.size, out);
	buf_fini(&clean);
}

/* Print NAME on one line, with escapes for bytes that would not be seen. */
static void print_name(struct str name, FILE *out)
{
	struct buf clean;

	buf_init(&clean, PAINT_MAX);
	text_add_name(&clean, name);
	(void)fwrite(clean.data, 1, clean.size, out);
	buf_fini(&clean);
}

static void print_column(struct str text, FILE *out)
{
	(void)fputs("  ", out);
	print_name(text, out);
}

struct listing {
	FILE *out;
	bool json;
	int code;
	size_t shown;
};

/*
 * Print the beginning of the prompt's first line, by which a person recognises a session.
 */
static void print_prompt(struct str prompt, FILE *out)
{
	struct str first = str_trim(prompt);

	first = str_part(first, 0, str_find(first, STR("\n"), 0));
	size_t size = text_character_border(first, PROMPT_SHOWN);
	if (size == 0)
		return;
	print_column(str_part(first, 0, size), out);
	if (size < str_trim(prompt).size)
		(void)fprintf(out, " …");
}

static bool list_one(void *context, const struct journal_session *session)
{
	struct listing *listing = context;
	FILE *out = listing->out;
	char began[CLOCK_TEXT];

	listing->shown++;
	if (listing->json) {
		auto_value struct value *row = value_new_object();

		value_set_text(row, "session", session->id);
		value_set_integer(row, "began_ms", session->began_wall_ms);
		value_set_integer(row, "last_ms", session->last_wall_ms);
		value_set_integer(row, "events", session->events);
		value_set_str(row, "agent", session->agent);
		value_set_str(row, "model", session->model);
		value_set_str(row, "workspace", session->workspace);
		if (session->prompt.size > 0)
			value_set_str(row, "prompt", session->prompt);
		if (session->title.size > 0)
			value_set_str(row, "title", session->title);
		if (session->parent.size > 0)
			value_set_str(row, "parent", session->parent);
		listing->code = verb_print_json(row, 0, out);
		return listing->code == CODE_DONE;
	}
	clock_text_local(session->began_wall_ms, began);
	(void)fprintf(out, "%s  %s  %5lld events", session->id, began,
		      (long long)session->events);
	print_column(session->agent, out);
	print_column(session->model, out);
	print_column(session->workspace, out);
	if (session->parent.size > 0) {
		(void)fprintf(out, "  for");
		print_column(session->parent, out);
	}
	print_prompt(session->title.size > 0 ? session->title : session->prompt, out);
	(void)fputc('\n', out);
	return !ferror(out);
}

static int list_run(const struct options *options, FILE *out)
{
	struct listing listing = {.out = out, .json = options_given(options, "json")};
	struct journal *journal = NULL;
	struct err err = {0};

	if (!journal_open_default(&journal, &err) ||
	    !journal_list(journal, options_count(options, "limit", SESSIONS_LISTED),
			  list_one, &listing, &err))
		listing.code = verb_complain(CODE_FAILED, "%s", err.text);
	else if (!listing.json && listing.shown == 0)
		(void)fprintf(out, "There are no sessions yet; glovebox run begins one.\n");
	journal_close(journal);
	return listing.code;
}

struct shown {
	FILE *out;
	bool json;
};

/* The model's words in MESSAGE. Its calls are separate events. */
static struct str words_of(const struct value *message)
{
	const struct value *parts = value_member(message, "parts");

	for (size_t i = 0; i < value_count(parts); i++) {
		const char *kind = value_text(value_member(value_item(parts, i), "kind"));

		if (kind != NULL && strcmp(kind, "text") == 0)
			return value_str(value_member(value_item(parts, i), "text"));
	}
	return STR("");
}

/* Print the subject of a call, as the screen does. */
static void print_subject(const struct value *arguments, size_t columns, FILE *out)
{
	struct paint paint;

	paint_init(&paint);
	paint_subject(&paint, arguments, columns);
	if (paint.out.size > 0)
		(void)fprintf(out, "  %s", paint.out.data);
	paint_fini(&paint);
}

/* Print the beginning of TEXT's first line, unless it is empty. */
static void print_beginning(struct str text, size_t most, FILE *out)
{
	text = str_trim(text);
	text = str_part(text, 0, str_find(text, STR("\n"), 0));
	if (text.size > most)
		text.size = text_character_border(text, most);
	if (text.size > 0)
		print_column(text, out);
}

/* Print one event in a line: its kind, its tool, and the beginning of its text. */
static void print_event(int64_t number, const char *kind, int64_t wall_ms,
			const struct value *event, FILE *out)
{
	static const char *const members[] = {"tool", "status", "text", "reason"};
	/* A longer text would make the line hard to read. */
	enum { TEXT_SHOWN = 100, KIND_MAX = 256 };
	const struct value *arguments = value_member(event, "arguments");
	char when[CLOCK_TEXT];
	struct buf name;

	clock_text_local(wall_ms, when);
	buf_init(&name, KIND_MAX);
	text_add_name(&name, str_of(kind));
	(void)fprintf(out, "%5lld  %s  %-13s", (long long)number, when, name.data);
	buf_fini(&name);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		print_beginning(value_str(value_member(event, members[i])), TEXT_SHOWN, out);
	if (value_count(arguments) > 0)
		print_subject(arguments, TEXT_SHOWN, out);
	print_beginning(words_of(event), TEXT_SHOWN, out);
	(void)fputc('\n', out);
}

static bool show_one(void *context, int64_t number, const char *kind, int64_t wall_ms,
		     struct str json)
{
	struct shown *shown = context;
	auto_value struct value *event = NULL;

	if (shown->json)
		return fprintf(shown->out, "%.*s\n", (int)json.size, json.data) > 0;
	/* An event that cannot be parsed is still listed by its kind. */
	(void)value_parse(json, 0, &event, NULL);
	print_event(number, kind, wall_ms, event, shown->out);
	return !ferror(shown->out);
}

/*
 * Call EVENT with every event of the session NAME, in order; EVENT returns false to stop.
 * Returns an exit code; complaints have been printed.
 */
static int read_session(const char *name,
			bool (*event)(void *context, int64_t number, const char *kind,
				      int64_t wall_ms, struct str json),
			void *context)
{
	auto_free char *here = realpath(".", NULL);
	struct journal_found found = {0};
	struct journal *journal = NULL;
	struct err err = {0};
	int code = CODE_DONE;

	if (!journal_open_default(&journal, &err) ||
	    !journal_find(journal, name, here != NULL ? here : "", &found, &err) ||
	    !journal_read(journal, found.id, NULL, event, context, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	journal_found_fini(&found);
	journal_close(journal);
	return code;
}

static int show_run(const struct options *options, FILE *out)
{
	struct shown shown = {.out = out, .json = options_given(options, "json")};

	return read_session(options->words[0], show_one, &shown);
}

static const char sessions_list_help[] =
	"List the sessions in the journal, the newest first: id, begin, number of\n"
	"events, agent, model, workspace, and how its first prompt begins.";

const struct verb verb_sessions_list = {
	.name = "sessions list",
	.summary = "list the sessions there were",
	.arguments = "",
	.help = sessions_list_help,
	.example = "  glovebox sessions list --limit 5",
	.options = list_options,
	.folds = true,
	.run = list_run,
};

static const char sessions_show_help[] =
	"Show the events of the session ID in their order, one line each; with --json\n"
	"as they were recorded. The beginning of an ID does, and `last` for the newest\n"
	"session of the folder where you are.";

const struct verb verb_sessions_show = {
	.name = "sessions show",
	.summary = "show what happened in one of them",
	.arguments = "ID",
	.help = sessions_show_help,
	.example = "  glovebox sessions show 3f9a61c2e07d",
	.options = show_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_SESSIONS,
	.run = show_run,
};

/*
 * `glovebox sessions export` prints one session of the journal, as recorded or for
 * people.
 */

static const struct option_row export_options[] = {
	{"markdown", 0, OPTION_FLAG, NULL, "as a text for people to read"},
	{"html", 0, OPTION_FLAG, NULL, "as one page for a browser"},
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
	struct buf shown;

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
	/* A program's output has no language. A person judges by all else between fences. */
	buf_init(&shown, PAINT_MAX);
	if (language[0] != '\0')
		paint_exact(text, &shown);
	else
		paint_clean(text, &shown);
	(void)fwrite(shown.data, 1, shown.size, out);
	if (shown.overflowed)
		(void)fputs("\n… the rest is too long to be shown", out);
	buf_fini(&shown);
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
		print_name(value_str(value_member(event, members[i])), out);
		(void)fputc('\n', out);
	}
	(void)fprintf(out, "- level of the cell: L%" PRId64 "%s\n\n",
		      value_integer(value_member(event, "level")),
		      tool_lack(value_is_true(value_member(event, "unfiltered"))));
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
		print_name(value_str(value_member(value_item(changed, i), "path")), out);
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

static void print_pictures(const struct value *pictures, FILE *out)
{
	for (size_t i = 0; i < value_count(pictures); i++) {
		(void)fputs("- picture ", out);
		print_clean(value_str(value_member(value_item(pictures, i), "text")), out);
		(void)fputc('\n', out);
	}
	if (value_count(pictures) > 0)
		(void)fputc('\n', out);
}

/* The names of what came with a prompt; its content is in the calls that have read it. */
static void print_attached(const struct value *items, FILE *out)
{
	for (size_t i = 0; i < value_count(items); i++) {
		(void)fputs("- with it: ", out);
		print_name(value_str(value_member(value_item(items, i), "name")), out);
		(void)fputc('\n', out);
	}
	if (value_count(items) > 0)
		(void)fputc('\n', out);
}

static void export_event(const struct event *event, FILE *out)
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
	case EVENT_STEERED:
		print_titled("User", event->text, out);
		print_pictures(value_member(event->data, "pictures"), out);
		print_attached(value_member(event->data, "attached"), out);
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
	case EVENT_MODE_CHANGED:
		print_paragraph(event->text, out);
		break;
	case EVENT_COMPACTED:
		print_titled("Summary of what stands above", event->text, out);
		break;
	case EVENT_REWOUND:
		print_titled("Back to before this prompt; what stands above since is left out",
			     event->text, out);
		break;
	case EVENT_NAMED:
		print_titled("Title", event->text, out);
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
		export_event(&event, out);
		return !ferror(out);
	}
	(void)fprintf(out, "(event %" PRId64 ", ", number);
	print_clean(str_of(kind), out);
	(void)fprintf(out, ", cannot be read)\n\n");
	return !ferror(out);
}

struct paged {
	struct page *page;
	FILE *out;
};

static bool export_to_page(void *context, int64_t number, const char *kind,
			   int64_t wall_ms, struct str json)
{
	auto_value struct value *line = NULL;
	const struct paged *paged = context;
	struct event event;

	(void)wall_ms;
	if (event_parse(json, &line, &event, NULL))
		page_event(paged->page, &event);
	else
		page_unreadable(paged->page, number, str_of(kind));
	return !ferror(paged->out);
}

static int export_page(const char *name, FILE *out)
{
	struct paged paged = {.out = out};
	int code;

	paged.page = page_new(name, out);
	code = read_session(name, export_to_page, &paged);
	page_end(paged.page);
	return code;
}

static int export_run(const struct options *options, FILE *out)
{
	if (options_given(options, "html") && options_given(options, "markdown"))
		return verb_complain(CODE_USAGE,
				     "--html and --markdown are two forms: choose one");
	if (options_given(options, "html"))
		return export_page(options->words[0], out);
	return read_session(options->words[0],
			    options_given(options, "markdown") ? export_markdown
							       : export_line,
			    out);
}

static const char sessions_export_help[] =
	"Print the events of the session ID as they were recorded, one JSON object per\n"
	"line (docs/events.md); with --markdown as a text for people: what was said, each\n"
	"call with its result, the change; with --html as one page for a browser, which\n"
	"needs nothing from elsewhere and can be searched. The beginning of an ID does,\n"
	"and `last` for the newest session of the folder where you are.";

const struct verb verb_sessions_export = {
	.name = "sessions export",
	.summary = "print one of them, for programs or people",
	.arguments = "ID|last",
	.help = sessions_export_help,
	.example = "  glovebox sessions export last --html > session.html",
	.options = export_options,
	.words_least = 1,
	.words_most = 1,
	.names = NAMES_SESSIONS,
	.run = export_run,
};
