#include "front/output/page.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/value.h"
#include "front/embedded/embedded.h"
#include "tool/tool.h"
#include "tui/paint.h"
#include "tui/screen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct page {
	FILE *out;
	const char *name;
	bool begun;
	struct screen_call *calls; /* whose results have not come yet */
	size_t turns;
	bool in_turn;
};

enum {
	SUBJECT_COLUMNS = 160, /* of a call, in its head */
	PICTURES_MAX = 16,     /* of one result */
};

/* How foreign text is shown. */
enum shows {
	SHOWS_CLEAN, /* words, and the output of programs: what moves a cursor is left out */
	SHOWS_EXACT, /* what a person judges by: each byte, as an escape where it has no ink */
};

/* Print TEXT, of which nothing is HTML. */
static void print_escaped(struct str text, FILE *out)
{
	size_t from = 0;

	for (size_t i = 0; i < text.size; i++) {
		const char c = text.data[i];
		const char *entity = c == '&'    ? "&amp;"
				     : c == '<'  ? "&lt;"
				     : c == '>'  ? "&gt;"
				     : c == '"'  ? "&quot;"
				     : c == '\'' ? "&#39;"
						 : NULL;

		if (entity == NULL)
			continue;
		(void)fwrite(text.data + from, 1, i - from, out);
		(void)fputs(entity, out);
		from = i + 1;
	}
	(void)fwrite(text.data + from, 1, text.size - from, out);
}

/* Make of foreign TEXT what may stand in a page, but for the escapes of HTML. */
static void make_shown(struct str text, enum shows shows, struct buf *shown)
{
	buf_init(shown, PAINT_MAX);
	if (shows == SHOWS_EXACT)
		paint_exact(text, shown);
	else
		paint_clean(text, shown);
	if (shown->overflowed)
		(void)fprintf(stderr, "glovebox: a text is too long for the page\n");
}

static void print_foreign(struct str text, enum shows shows, FILE *out)
{
	struct buf shown;

	make_shown(text, shows, &shown);
	print_escaped(buf_str(&shown), out);
	buf_fini(&shown);
}

static void print_member(const struct value *data, const char *name, FILE *out)
{
	print_foreign(value_str(value_member(data, name)), SHOWS_EXACT, out);
}

/* Print TEXT in an element TAG of CLASS, unless it is blank. */
static void print_block(const char *tag, const char *class, struct str text,
			enum shows shows, FILE *out)
{
	text = str_trim(text);
	if (text.size == 0)
		return;
	(void)fprintf(out, "<%s class=\"%s\">", tag, class);
	print_foreign(text, shows, out);
	(void)fprintf(out, "</%s>\n", tag);
}

/* Print the lines of DIFF, each as what it is. */
static void print_diff(struct str diff, FILE *out)
{
	struct buf shown;
	struct str rest, line;
	const char *tag;

	make_shown(diff, SHOWS_EXACT, &shown);
	(void)fputs("<pre class=\"diff\">", out);
	for (rest = buf_str(&shown); str_next_line(&rest, &line);) {
		const char first = line.size > 0 ? line.data[0] : ' ';

		tag = str_starts(line, STR("+++ ")) || str_starts(line, STR("--- ")) ? "b"
		      : first == '+' ? "ins"
		      : first == '-' ? "del"
		      : first == ' ' ? NULL
				     : "b";
		if (tag != NULL)
			(void)fprintf(out, "<%s>", tag);
		print_escaped(line, out);
		(void)fputc('\n', out);
		if (tag != NULL)
			(void)fprintf(out, "</%s>", tag);
	}
	(void)fputs("</pre>\n", out);
	buf_fini(&shown);
}

/* Print "KIND-src 'sha256-…'; " for an element of that TEXT. */
static void print_source(const char *kind, struct str text, FILE *out)
{
	uint8_t digest[HASH_BYTES];
	struct buf named;

	hash_bytes(text, digest);
	buf_init(&named, 2 * sizeof(digest));
	(void)buf_base64_add((struct str){(const char *)digest, sizeof(digest)}, &named);
	(void)fprintf(out, "%s-src 'sha256-%s'; ", kind, named.data);
	buf_fini(&named);
}

static void print_text(struct str text, FILE *out)
{
	(void)fwrite(text.data, 1, text.size, out);
}

struct page *page_new(const char *name, FILE *out)
{
	struct page *page = memory_alloc(sizeof(*page));

	page->name = name;
	page->out = out;
	return page;
}

/* Print what stands before the first event. ID NULL: the event does not say it. */
static void begin(struct page *page, const char *id)
{
	const struct str style = embedded_text("page/session.css");
	const struct str script = embedded_text("page/session.js");
	FILE *out = page->out;

	if (page->begun)
		return;
	page->begun = true;
	if (id == NULL)
		id = page->name;
	(void)fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ",
		    out);
	print_source("style", style, out);
	print_source("script", script, out);
	(void)fputs("img-src data:; base-uri 'none'; form-action 'none'\">\n"
		    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		    "<meta name=\"referrer\" content=\"no-referrer\">\n<title>Session ",
		    out);
	print_foreign(str_of(id), SHOWS_EXACT, out);
	(void)fputs(" · Glovebox</title>\n<style>", out);
	print_text(style, out);
	(void)fputs("</style>\n</head>\n<body>\n<h1>Session ", out);
	print_foreign(str_of(id), SHOWS_EXACT, out);
	(void)fputs("</h1>\n<div class=\"search\" role=\"search\" hidden><input type=\"search\" "
		    "placeholder=\"Search ( / )\" aria-label=\"Search in this session\"> "
		    "<output></output> <button type=\"button\">Fold or unfold all</button></div>\n"
		    "<main>\n",
		    out);
}

static void end_turn(struct page *page)
{
	if (page->in_turn)
		(void)fputs("</section>\n", page->out);
	page->in_turn = false;
}

static void print_began(const struct page *page, const char *title, const struct event *event)
{
	static const char *const members[] = {"workspace", "agent", "model"};
	char when[CLOCK_TEXT];

	clock_text_local(event->wall_ms, when);
	(void)fprintf(page->out, "<dl class=\"item\"><dt>%s</dt><dd>%s</dd>\n", title, when);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		(void)fprintf(page->out, "<dt>%s</dt><dd>", members[i]);
		print_member(event->data, members[i], page->out);
		(void)fputs("</dd>\n", page->out);
	}
	(void)fprintf(page->out, "<dt>cell</dt><dd>L%" PRId64 "%s</dd></dl>\n",
		      value_integer(value_member(event->data, "level")),
		      tool_lack(value_is_true(value_member(event->data, "unfiltered"))));
}

static void print_folded(const char *title, const char *class, struct str text, FILE *out)
{
	text = str_trim(text);
	if (text.size == 0)
		return;
	(void)fprintf(out, "<details class=\"item %s\"><summary>%s</summary>", class, title);
	print_block("pre", class, text, SHOWS_CLEAN, out);
	(void)fputs("</details>\n", out);
}

static void print_message(const struct value *data, FILE *out)
{
	const struct value *parts = value_member(data, "parts");

	for (size_t i = 0; i < value_count(parts); i++) {
		const struct value *part = value_item(parts, i);
		const struct str kind = value_str(value_member(part, "kind"));
		const struct str text = value_str(value_member(part, "text"));

		if (str_is(kind, "text"))
			print_block("div", "item words", text, SHOWS_CLEAN, out);
		else if (str_is(kind, "thinking"))
			print_folded("Thinking", "thinking", text, out);
	}
}

/* Print the arguments of a call: the command as it is, or all of them as JSON. */
static void print_arguments(const struct value *arguments, FILE *out)
{
	const struct str command = value_str(value_member(arguments, "command"));
	struct buf text;

	if (command.size > 0 && value_count(arguments) == 1) {
		print_block("pre", "command", command, SHOWS_EXACT, out);
		return;
	}
	if (value_count(arguments) == 0)
		return;
	buf_init(&text, EVENT_JSON_MAX);
	/* With the blanks of VALUE_PRETTY, it may exceed the limit of a text. */
	if (!value_print(arguments, VALUE_PRETTY, &text)) {
		buf_clear(&text);
		(void)value_print(arguments, 0, &text);
	}
	print_block("pre", "command", buf_str(&text), SHOWS_EXACT, out);
	buf_fini(&text);
}

static void print_pictures(const struct value *content, const char *said, FILE *out)
{
	static const char types[] = "image/png image/jpeg image/gif image/webp";
	size_t shown = 0;

	for (size_t i = 0; i < value_count(content) && shown < PICTURES_MAX; i++) {
		const struct value *item = value_item(content, i);
		const struct str type = value_str(value_member(item, "mimeType"));
		const struct str data = value_str(value_member(item, "data"));

		if (!str_is(value_str(value_member(item, "type")), "image") ||
		    !str_among(types, type) || data.size == 0 || !buf_base64_is_valid(data))
			continue;
		(void)fprintf(out, "<img alt=\"%s\" src=\"data:%.*s;base64,", said,
			      (int)type.size, type.data);
		print_text(data, out);
		(void)fputs("\">\n", out);
		shown++;
	}
}

static void print_turn(struct page *page, const struct event *event)
{
	end_turn(page);
	page->in_turn = true;
	page->turns++;
	(void)fprintf(page->out, "<section id=\"turn-%zu\">\n", page->turns);
	print_block("h2", "item", event->text, SHOWS_CLEAN, page->out);
	print_pictures(value_member(event->data, "pictures"), "a picture of the prompt",
		       page->out);
}

/* Print how a call ended: "done, exit 0, 3.1 s". */
static void print_how(const struct value *result, FILE *out)
{
	const struct value *exit_code = value_member(result, "exit_code");
	const int64_t death = value_integer(value_member(result, "signal"));

	print_member(result, "status", out);
	if (death > 0)
		(void)fprintf(out, ", signal %" PRId64, death);
	else if (value_kind(exit_code) == VALUE_INTEGER)
		(void)fprintf(out, ", exit %" PRId64, value_integer(exit_code));
	(void)fprintf(out, ", %.1f s", value_number(value_member(result, "seconds")));
}

static bool went_well(const struct value *result)
{
	return str_is(value_str(value_member(result, "status")), "done") &&
	       value_integer(value_member(result, "exit_code")) == 0 &&
	       value_integer(value_member(result, "signal")) == 0;
}

/* A call as one block: RESULT NULL: none has come. */
static void print_call(const struct page *page, const char *tool,
		       const struct value *arguments, const struct value *result)
{
	const struct value *details = value_member(result, "details");
	const struct str diff = value_str(value_member(details, "diff"));
	struct paint subject;
	FILE *out = page->out;

	(void)fprintf(out, "<details class=\"item call %s\"%s><summary><b>",
		      result != NULL && went_well(result) ? "good" : "bad",
		      diff.size > 0 ? " open" : "");
	print_foreign(str_of(tool), SHOWS_EXACT, out);
	(void)fputs("</b> <code>", out);
	paint_init(&subject);
	subject.unicode = true;
	paint_subject(&subject, arguments, SUBJECT_COLUMNS);
	print_escaped(buf_str(&subject.out), out);
	paint_fini(&subject);
	(void)fputs("</code> <span class=\"how\">", out);
	if (result != NULL)
		print_how(result, out);
	else
		(void)fputs("no result: the program was ended", out);
	(void)fputs("</span></summary>\n", out);
	if (diff.size > 0)
		print_diff(diff, out);
	else
		print_arguments(arguments, out);
	print_block("pre", "result", value_str(value_member(result, "text")), SHOWS_CLEAN,
		    out);
	print_pictures(value_member(result, "content"), "a picture of the result", out);
	(void)fputs("</details>\n", out);
}

static void print_ended(struct page *page, const struct event *event)
{
	struct screen_call *call =
		event->call != NULL ? screen_calls_take(&page->calls, event->call) : NULL;
	const char *tool = event->tool != NULL ? event->tool
			   : call != NULL      ? call->tool
					       : "";

	print_call(page, tool, call != NULL ? call->arguments : NULL, event->data);
	if (call != NULL)
		screen_call_free(call);
}

static void print_approval(const struct event *event, FILE *out)
{
	const bool wanted = event->kind == EVENT_APPROVAL_WANTED;

	(void)fputs(wanted ? "<p class=\"item note\">Asked for permission: "
			   : "<p class=\"item note\">Answer: ",
		    out);
	print_member(event->data, wanted ? "effect" : "answer", out);
	(void)fputs(wanted ? " " : ", by ", out);
	print_member(event->data, wanted ? "subject" : "by", out);
	(void)fputs("</p>\n", out);
}

static void print_check(const struct value *data, FILE *out)
{
	const struct str state = value_str(value_member(data, "state"));

	(void)fprintf(out, "<p class=\"item note%s\">Check ",
		      str_is(state, "green") ? "" : " failed");
	print_member(data, "check", out);
	if (value_member(data, "file") != NULL) {
		(void)fputs(" of ", out);
		print_member(data, "file", out);
	}
	(void)fputs(": ", out);
	print_foreign(state, SHOWS_EXACT, out);
	(void)fputs("</p>\n", out);
}

static void print_end(struct page *page, const struct value *data)
{
	const struct value *changed = value_member(data, "changed");
	const struct value *usage = value_member(data, "usage");
	const struct str patch = value_str(value_member(data, "patch"));
	const int64_t answers = value_integer(value_member(data, "iterations"));
	FILE *out = page->out;

	if (patch.size > 0) {
		(void)fprintf(out,
			      "<details class=\"item\" open><summary>The change: %zu file%s</summary>",
			      value_count(changed), value_count(changed) == 1 ? "" : "s");
		print_diff(patch, out);
		(void)fputs("</details>\n", out);
	}
	(void)fputs("<p class=\"item end\">", out);
	print_member(data, "reason", out);
	(void)fprintf(out,
		      ": %" PRId64 " answer%s, %" PRId64 " tokens in, %" PRId64
		      " out, %.1f s</p>\n",
		      answers, answers == 1 ? "" : "s",
		      value_integer(value_member(usage, "input")),
		      value_integer(value_member(usage, "output")),
		      value_number(value_member(data, "seconds")));
	end_turn(page);
}

void page_event(struct page *page, const struct event *event)
{
	FILE *out = page->out;

	begin(page, value_text(value_member(event->data, "session")));
	switch (event->kind) {
	case EVENT_SESSION_BEGAN:
		print_began(page, "began", event);
		break;
	case EVENT_SESSION_RESUMED:
		print_began(page, "resumed", event);
		break;
	case EVENT_INSTRUCTIONS:
		print_folded("Instructions of the project", "instructions", event->text,
			     out);
		break;
	case EVENT_TURN_BEGAN:
		print_turn(page, event);
		break;
	case EVENT_STEERED:
		print_block("h2", "item", event->text, SHOWS_CLEAN, out);
		break;
	case EVENT_MESSAGE:
		print_message(event->data, out);
		break;
	case EVENT_TOOL_BEGAN:
		screen_calls_add(&page->calls, event, NULL);
		break;
	case EVENT_TOOL_ENDED:
		print_ended(page, event);
		break;
	case EVENT_APPROVAL_WANTED:
	case EVENT_APPROVAL_GIVEN:
		print_approval(event, out);
		break;
	case EVENT_CHECK_ENDED:
		print_check(event->data, out);
		break;
	case EVENT_NOTICE:
	case EVENT_MODE_CHANGED:
		print_block("p", "item note", event->text, SHOWS_CLEAN, out);
		break;
	case EVENT_COMPACTED:
		print_folded("Summary of what stands above", "summary", event->text, out);
		break;
	case EVENT_REWOUND:
		print_folded("Back to before this prompt; what stands above since is left out",
			     "summary", event->text, out);
		break;
	case EVENT_NAMED:
		print_block("p", "item note", event->text, SHOWS_CLEAN, out);
		break;
	case EVENT_TURN_ENDED:
		print_end(page, event->data);
		break;
	default:
		break;
	}
}

void page_unreadable(struct page *page, int64_t number, struct str kind)
{
	begin(page, NULL);
	(void)fprintf(page->out, "<p class=\"item note failed\">Event %" PRId64 " (",
		      number);
	print_foreign(kind, SHOWS_EXACT, page->out);
	(void)fputs(") cannot be read.</p>\n", page->out);
}

void page_end(struct page *page)
{
	while (page->calls != NULL) {
		struct screen_call *call = screen_calls_take(&page->calls, page->calls->id);

		print_call(page, call->tool, call->arguments, NULL);
		screen_call_free(call);
	}
	end_turn(page);
	if (page->begun) {
		(void)fputs("</main>\n<script>", page->out);
		print_text(embedded_text("page/session.js"), page->out);
		(void)fputs("</script>\n</body>\n</html>\n", page->out);
	}
	free(page);
}
