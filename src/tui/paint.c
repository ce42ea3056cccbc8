/* paint: styles, rules, lines, calls, breaks between words, and the width of texts. */

#include "tui/paint.h"

#include "agent/tools/todo.h"
#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "tui/commit/change.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

/* Widest rule of a block: a wider block would be harder to read. */
enum { PAINT_RULE_COLUMNS = 78 };

/* A longer line would fill the terminal. The spill or the file has the whole line. */
enum { PAINT_LINE_COLUMNS = 500 };

enum { PAINT_BAR_COLUMNS = 2 };

void paint_init(struct paint *paint)
{
	*paint = (struct paint){0};
	buf_init(&paint->out, PAINT_MAX);
}

void paint_fini(struct paint *paint)
{
	buf_fini(&paint->out);
}

/* The code of STYLE; "": it is like the text around it. */
static const char *code_of(const struct paint *paint, enum paint_style style)
{
	const struct theme *theme =
		paint->theme != NULL ? paint->theme : theme_shipped("dark", false);

	return paint->colour ? theme->codes[style] : "";
}

static void paint_begin(struct paint *paint, enum paint_style style)
{
	const char *code = code_of(paint, style);

	if (*code != '\0')
		buf_addf(&paint->out, "\x1b[%sm", code);
}

static void paint_end(struct paint *paint, enum paint_style style)
{
	if (*code_of(paint, style) != '\0')
		buf_adds(&paint->out, "\x1b[0m");
}

void paint_text(struct paint *paint, enum paint_style style, struct str text)
{
	paint_begin(paint, style);
	buf_addstr(&paint->out, text);
	paint_end(paint, style);
}

void paint_styles(struct paint *paint, unsigned styles, struct str text)
{
	for (unsigned style = PAINT_PLAIN + 1; style < PAINT_STYLES; style++) {
		if ((styles & 1U << style) != 0)
			paint_begin(paint, style);
	}
	(void)buf_addstr(&paint->out, text);
	if (styles != 0 && paint->colour)
		(void)buf_adds(&paint->out, "\x1b[0m");
}

void paint_format(struct paint *paint, enum paint_style style, const char *format, ...)
{
	va_list arguments;

	paint_begin(paint, style);
	va_start(arguments, format);
	buf_addv(&paint->out, format, arguments);
	va_end(arguments);
	paint_end(paint, style);
}

const char *paint_dot(const struct paint *paint)
{
	return paint->unicode ? " · " : ", ";
}

const char *paint_more(const struct paint *paint)
{
	return paint->unicode ? "…" : "...";
}

void paint_clean(struct str text, struct buf *out)
{
	struct buf clean;

	buf_init(&clean, PAINT_MAX);
	text_clean(text, &clean);
	text_add_paragraph(out, buf_str(&clean));
	buf_fini(&clean);
}

/* Append TEXT exact, but the control bytes of KEPT stay as they are. */
static void add_exact(struct buf *out, struct str text, const char *kept)
{
	while (text.size > 0) {
		size_t size = 0;

		while (size < text.size &&
		       (text.data[size] == '\0' || strchr(kept, text.data[size]) == NULL))
			size++;
		text_add_exact(out, str_part(text, 0, size));
		if (size < text.size)
			(void)buf_addc(out, text.data[size++]);
		text = str_part(text, size, text.size);
	}
}

void paint_exact(struct str text, struct buf *out)
{
	add_exact(out, text, "\n\t");
}

void paint_cut(struct paint *paint, enum paint_style style, struct str text, size_t columns)
{
	const char *more = paint_more(paint);
	size_t room = paint_width_of(str_of(more));

	if (paint_width_reach(text) <= columns) {
		paint_text(paint, style, text);
		return;
	}
	paint_text(paint, style,
		   str_part(text, 0,
			    paint_width_fit(text, columns > room ? columns - room : 0)));
	paint_text(paint, PAINT_DIM, str_of(more));
}

void paint_one_line(struct paint *paint, enum paint_style style, struct str text,
		    size_t columns)
{
	struct buf clean;

	/*
	 * Look at 16 bytes for each column: a character has at most four bytes, and
	 * combining marks rarely add more than that.
	 */
	text = str_part(text, 0, text_character_border(text, (columns + 1) * 16));
	buf_init(&clean, PAINT_MAX);
	/* Blanks for line ends would show a second command as a part of a comment. */
	add_exact(&clean, str_trim(text), "\t");
	for (size_t i = 0; i < clean.size; i++) {
		if (clean.data[i] == '\t')
			clean.data[i] = ' ';
	}
	paint_cut(paint, style, str_trim(buf_str(&clean)), columns);
	buf_fini(&clean);
}

/* The head of a block, for one who listens: its words and nothing around them. */
static void add_head(struct paint *paint, const char *title)
{
	if (title == NULL)
		return;
	paint_one_line(paint, PAINT_PLAIN, str_of(title), PAINT_LINE_COLUMNS);
	buf_addc(&paint->out, '\n');
}

void paint_rule(struct paint *paint, const char *title)
{
	if (paint->reader) {
		add_head(paint, title);
		return;
	}
	const char *line = paint->unicode ? "─" : "-";
	size_t most = PAINT_RULE_COLUMNS - paint->indent;
	size_t columns = paint->columns < most ? paint->columns : most;
	size_t used = 1;
	struct paint rule;

	paint_init(&rule);
	buf_adds(&rule.out, paint->unicode ? (title ? "┌" : "└") : "+");
	if (title) {
		size_t from;

		buf_addf(&rule.out, "%s ", line);
		from = rule.out.size;
		/* Clean the title: a model may call a tool by any name. */
		paint_one_line(&rule, PAINT_PLAIN, str_of(title), columns);
		used += 3 +
			paint_width_of(str_part(buf_str(&rule.out), from, rule.out.size));
		buf_addc(&rule.out, ' ');
	}
	for (; used < columns; used++)
		buf_adds(&rule.out, line);
	paint_text(paint, PAINT_DIM, buf_str(&rule.out));
	buf_addc(&paint->out, '\n');
	paint_fini(&rule);
}

void paint_bar(struct paint *paint)
{
	if (paint->reader)
		return;
	paint_text(paint, PAINT_DIM, str_of(paint->unicode ? "│" : "|"));
	buf_addc(&paint->out, ' ');
}

static void paint_lead(struct paint *paint, enum paint_lead lead)
{
	if (lead == PAINT_BAR)
		paint_bar(paint);
	else if (lead == PAINT_BLANKS)
		(void)buf_addf(&paint->out, "%*s", PAINT_BAR_COLUMNS, "");
}

/* Paint clean TEXT on as many lines of the terminal as it needs, each behind LEAD. */
static void paint_folded(struct paint *paint, struct str text, enum paint_lead lead)
{
	const size_t before = lead != PAINT_NO_LEAD ? PAINT_BAR_COLUMNS : 0;
	struct str rest, line;
	struct buf lines;

	buf_init(&lines, PAINT_MAX);
	paint_fold_line(text, paint->columns > before ? paint->columns - before : 1, &lines);
	(void)buf_addc(&lines, '\n');
	rest = buf_str(&lines);
	while (str_next_line(&rest, &line)) {
		paint_lead(paint, lead);
		(void)buf_addstr(&paint->out, line);
		buf_addc(&paint->out, '\n');
	}
	buf_fini(&lines);
}

/* Paint a line of an excerpt: TEXT or, where it is not cut, the same in COLOURS. */
static void paint_line(struct paint *paint, struct str text, struct str colours,
		       const struct paint_excerpt *excerpt)
{
	const bool fits = paint_width_of(text) <= PAINT_LINE_COLUMNS;

	if (paint->wraps && !excerpt->is_diff && !excerpt->as_it_is && fits) {
		paint_folded(paint, text, excerpt->lead);
		return;
	}
	paint_lead(paint, excerpt->lead);
	if (excerpt->lead != PAINT_NO_LEAD && !fits)
		paint_cut(paint, PAINT_PLAIN, text, PAINT_LINE_COLUMNS);
	else
		(void)buf_addstr(&paint->out, colours);
	buf_addc(&paint->out, '\n');
}

static void paint_gap(struct paint *paint, size_t count, const struct paint_excerpt *excerpt)
{
	if (count == 0)
		return;
	paint_lead(paint, excerpt->lead);
	paint_format(paint, PAINT_DIM, "%s %zu more %s", paint_more(paint), count,
		     count == 1 ? "line" : "lines");
	if (excerpt->handle) {
		paint_text(paint, PAINT_DIM, STR(" ("));
		paint_one_line(paint, PAINT_DIM, str_of(excerpt->handle),
			       PAINT_LINE_COLUMNS);
		paint_text(paint, PAINT_DIM, STR(")"));
	}
	buf_addc(&paint->out, '\n');
}

/* Paint the lines of CLEAN, which are as many as those of COLOURS. */
static void paint_excerpt(struct paint *paint, struct str clean, struct str colours,
			  const struct paint_excerpt *excerpt)
{
	const size_t count = text_count_lines(clean);
	const size_t left_out = count > excerpt->head + excerpt->tail
					? count - excerpt->head - excerpt->tail
					: 0;
	struct str line, coloured = STR("");

	if (left_out == 0 && excerpt->head == 0)
		paint_gap(paint, excerpt->more, excerpt);
	for (size_t number = 0; str_next_line(&clean, &line); number++) {
		(void)str_next_line(&colours, &coloured);
		if (left_out > 0 && number == excerpt->head)
			paint_gap(paint, left_out + excerpt->more, excerpt);
		if (number >= excerpt->head && number < excerpt->head + left_out)
			continue;
		paint_line(paint, line, coloured, excerpt);
	}
	if (left_out == 0 && excerpt->head > 0)
		paint_gap(paint, excerpt->more, excerpt);
}

void paint_lines(struct paint *paint, struct str text, const struct paint_excerpt *excerpt)
{
	enum { COLOURS_MAX = 4 * PAINT_MAX };
	struct buf clean, colours;

	buf_init(&clean, PAINT_MAX);
	buf_init(&colours, COLOURS_MAX);
	if (excerpt->is_diff || excerpt->as_it_is)
		paint_exact(text, &clean);
	else
		paint_clean(text, &clean);
	if (excerpt->is_diff)
		change_paint(paint, buf_str(&clean), &colours);
	paint_excerpt(paint, buf_str(&clean),
		      buf_str(excerpt->is_diff && !colours.overflowed ? &colours : &clean),
		      excerpt);
	/* Escapes make a text longer. An end that had no room must not be lost silently. */
	if (clean.overflowed)
		paint_format(paint, PAINT_PLAIN, "%s the rest is too long to be shown\n",
			     paint_more(paint));
	buf_fini(&clean);
	buf_fini(&colours);
}

/* Paints an ended call as a block. */

enum {
	CALL_COMMAND_LINES = 12, /* lines of a command, shown as it was written */
	CALL_RUN_LINES = 10,     /* last lines of a command's output */
	/*
	 * First lines of a tool's result: the person only follows, the model reads all of
	 * it.
	 */
	CALL_READ_LINES = 5,
	CALL_DIFF_HEAD = 30,
	CALL_DIFF_TAIL = 10,
	CALL_ARGUMENT_COLUMNS = 80,
	CALL_SUBJECT_COLUMNS = 500,
};

static bool value_is_short(const struct value *value)
{
	switch (value_kind(value)) {
	case VALUE_OBJECT:
	case VALUE_ARRAY:
		return false;
	case VALUE_STRING:
		return value_str(value).size <= CALL_ARGUMENT_COLUMNS;
	default:
		return true;
	}
}

/* Add one argument to TEXT: a short one in full, of a long one only its size. */
static void subject_add(struct buf *text, const char *key, const struct value *value)
{
	char size[32];

	if (text->size > 0)
		buf_addc(text, ' ');
	buf_addf(text, "%s=", key);
	if (value_kind(value) == VALUE_STRING && value_is_short(value))
		buf_addstr(text, value_str(value));
	else if (value_kind(value) == VALUE_STRING)
		buf_addf(text, "(%s)", text_size(value_str(value).size, size));
	else if (value_is_short(value))
		value_print(value, 0, text);
	else
		buf_addf(text, "[%zu]", value_count(value));
}

void paint_subject(struct paint *paint, const struct value *arguments, size_t columns)
{
	static const char *const first[] = {"command", "path", "pattern"};
	const char *leader = NULL;
	struct buf text;

	buf_init(&text, PAINT_MAX);
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]) && !leader; i++) {
		if (value_text(value_member(arguments, first[i])))
			leader = first[i];
	}
	if (leader)
		buf_addstr(&text, value_str(value_member(arguments, leader)));
	for (void *at = value_first(arguments); at; at = value_next(arguments, at)) {
		if (!leader || strcmp(value_key(at), leader) != 0)
			subject_add(&text, value_key(at), value_at(at));
	}
	paint_one_line(paint, PAINT_PLAIN, buf_str(&text), columns);
	buf_fini(&text);
}

static void call_head(struct paint *paint, const char *tool, const struct value *arguments)
{
	struct str command = value_str(value_member(arguments, "command"));

	paint_rule(paint, tool);
	if (command.size > 0) {
		const struct paint_excerpt excerpt = {
			.head = CALL_COMMAND_LINES,
			.lead = PAINT_BAR,
			.as_it_is = true,
		};

		paint_lines(paint, command, &excerpt);
	} else if (value_count(arguments) > 0) {
		const struct paint_excerpt excerpt = {.head = 1, .lead = PAINT_BAR};
		struct paint subject;

		paint_init(&subject);
		subject.unicode = paint->unicode;
		paint_subject(&subject, arguments, CALL_SUBJECT_COLUMNS);
		paint_lines(paint, buf_str(&subject.out), &excerpt);
		paint_fini(&subject);
	}
}

/* Print the status line of a call: "✅ exit 0 · 0.4 s". */
static void call_status(struct paint *paint, const struct value *result)
{
	const char *status = value_text(value_member(result, "status"));
	const struct value *exit_code = value_member(result, "exit_code");
	int64_t death = value_integer(value_member(result, "signal"));
	double seconds = value_number(value_member(result, "seconds"));
	bool ran = value_kind(exit_code) == VALUE_INTEGER;
	bool good = status && strcmp(status, "done") == 0 && death == 0 &&
		    (!ran || value_integer(exit_code) == 0);

	paint_bar(paint);
	if (paint->unicode && !paint->reader)
		buf_adds(&paint->out, good ? "✅ " : "❌ ");
	else
		paint_text(paint, good ? PAINT_GOOD : PAINT_ERROR,
			   good ? STR("[ok] ") : STR("[x] "));
	if (!status || strcmp(status, "done") != 0) {
		paint_one_line(paint, PAINT_BOLD,
			       !status                       ? STR("failed")
			       : strcmp(status, "timed_out") ? str_of(status)
							     : STR("timed out"),
			       CALL_ARGUMENT_COLUMNS);
		if (ran || death > 0)
			buf_adds(&paint->out, paint_dot(paint));
	}
	if (death > 0)
		paint_format(paint, PAINT_BOLD, "signal %" PRId64, death);
	else if (ran)
		paint_format(paint, PAINT_BOLD, "exit %" PRId64, value_integer(exit_code));
	else if (good)
		paint_text(paint, PAINT_BOLD, STR("done"));
	paint_format(paint, PAINT_DIM, "%s%.1f s", paint_dot(paint), seconds);
	buf_addc(&paint->out, '\n');
}

/*
 * The text of a result. When a command went well, its last line, "[exit code 0, 1.5 s; in
 * .]", is left out, because the status line says the same. The line stays when it says
 * more: the command failed, or its processes were ended.
 */
static struct str call_text(const struct value *result)
{
	const struct value *exit_code = value_member(result, "exit_code");
	bool went_well =
		value_kind(exit_code) == VALUE_INTEGER && value_integer(exit_code) == 0;
	const struct value *details = value_member(result, "details");
	struct str text = value_str(value_member(result, "text"));
	struct str trimmed = str_trim(text);
	const char *last;

	if (!went_well || !value_member(details, "stdout_bytes") ||
	    value_integer(value_member(details, "left_processes")) > 0)
		return text;
	last = memrchr(trimmed.data, '\n', trimmed.size);
	if (!last || last[1] != '[')
		return text;
	return str_part(text, 0, (size_t)(last - text.data));
}

/* The list of tasks, of which the model has read only the state. */
static void paint_tasks(struct paint *paint, const struct value *items)
{
	const struct paint_excerpt all = {.head = SIZE_MAX, .lead = PAINT_BAR};
	struct buf text;

	buf_init(&text, PAINT_MAX);
	todo_print(items, &text);
	paint_lines(paint, buf_str(&text), &all);
	buf_fini(&text);
}

void paint_call(struct paint *paint, const char *tool, const struct value *arguments,
		const struct value *result)
{
	const struct value *details = value_member(result, "details");
	const char *diff = value_text(value_member(details, "diff"));
	const char *status = value_text(value_member(result, "status"));
	bool done = status && strcmp(status, "done") == 0;
	const char *spill = value_text(value_member(details, "spill"));
	const struct value *left_out = value_member(result, "left_out");
	bool ran = value_kind(value_member(result, "exit_code")) == VALUE_INTEGER;
	struct paint_excerpt excerpt = {
		.head = ran || !done ? 0 : CALL_READ_LINES,
		.tail = ran || !done ? CALL_RUN_LINES : 0,
		.more = (size_t)value_integer(value_member(left_out, "lines")),
		.handle = spill,
		.lead = PAINT_BAR,
	};

	call_head(paint, tool, arguments);
	if (!paint->reader) {
		paint_text(paint, PAINT_DIM, str_of(paint->unicode ? "│" : "|"));
		buf_addc(&paint->out, '\n');
	}
	call_status(paint, result);
	if (value_member(details, "patch")) {
		/* This call hands the patch over: the end of the turn shows the patch. */
	} else if (value_member(details, "todo")) {
		paint_tasks(paint, value_member(details, "todo"));
	} else if (value_member(details, "plan") && !value_member(details, "next")) {
		/* Where the person was asked about it, the question has shown it. */
		paint_lines(paint, value_str(value_member(details, "plan")),
			    &(struct paint_excerpt){.head = SIZE_MAX, .lead = PAINT_BAR});
	} else if (diff && *diff) {
		excerpt = (struct paint_excerpt){
			.head = CALL_DIFF_HEAD,
			.tail = CALL_DIFF_TAIL,
			.lead = PAINT_BAR,
			.is_diff = true,
		};
		paint_lines(paint, str_of(diff), &excerpt);
	} else {
		paint_lines(paint, call_text(result), &excerpt);
	}
	paint_rule(paint, NULL);
}

void paint_spinner(struct paint *paint, const char *label, int64_t elapsed_ms)
{
	static const char *const unicode[] = {"⠋", "⠙", "⠹", "⠸", "⠼",
					      "⠴", "⠦", "⠧", "⠇", "⠏"};
	static const char *const ascii[] = {"|", "/", "-", "\\"};
	size_t turn = (size_t)(elapsed_ms / PAINT_SPINNER_MS);
	struct buf text;

	buf_init(&text, PAINT_MAX);
	buf_addf(&text, "%s %" PRId64 " s  %s",
		 paint->unicode ? unicode[turn % (sizeof(unicode) / sizeof(unicode[0]))]
				: ascii[turn % (sizeof(ascii) / sizeof(ascii[0]))],
		 elapsed_ms / 1000, label);
	/* The last column stays free: some terminals wrap as soon as it is written. */
	paint_one_line(paint, PAINT_DIM, buf_str(&text), paint->columns - 1);
	buf_fini(&text);
}

/* Puts words on lines. */

enum {
	TAB_COLUMNS = 8,
	CODE_INDENT = 4,
	/*
	 * No word is so long. The limit is needed because each piece that comes has the
	 * held bytes examined again.
	 */
	WORD_HELD_MAX = 4 << 10,
};

/* ZERO WIDTH JOINER: joins the next character to the one before it. */
static const char joiner[] = "\xe2\x80\x8d";

/* Closing marks that may not begin a line: 、。，．」』】）〉》〕！？：；ー and similar ones. */
static const char *const closing[] = {
	"、", "。", "，", "．", "」", "』", "】", "）", "〉",
	"》", "〕", "！", "？", "：", "；", "ー", "々", "…",
};

void paint_wrap_init(struct paint_wrap *wrap)
{
	*wrap = (struct paint_wrap){0};
	buf_init(&wrap->word, PAINT_MAX);
	buf_init(&wrap->blanks, PAINT_MAX);
}

void paint_wrap_fini(struct paint_wrap *wrap)
{
	buf_fini(&wrap->word);
	buf_fini(&wrap->blanks);
}

static bool is_closing(struct str character)
{
	for (size_t i = 0; i < sizeof(closing) / sizeof(closing[0]); i++) {
		if (str_is(character, closing[i]))
			return true;
	}
	return false;
}

static size_t columns_of_blanks(const struct paint_wrap *wrap)
{
	size_t column = wrap->column;

	for (size_t i = 0; i < wrap->blanks.size; i++)
		column = wrap->blanks.data[i] == '\t'
				 ? (column / TAB_COLUMNS + 1) * TAB_COLUMNS
				 : column + 1;
	return column - wrap->column;
}

/*
 * Decide by the first word of a line, and the blanks before it, whether the line is
 * prose.
 */
static void look_at_line(struct paint_wrap *wrap)
{
	struct str word = buf_str(&wrap->word);
	bool fence = str_starts(word, STR("```")) || str_starts(word, STR("~~~"));
	size_t indent = columns_of_blanks(wrap);

	wrap->begun = true;
	if (fence)
		wrap->fenced = !wrap->fenced;
	wrap->as_it_is = fence || wrap->fenced || indent >= CODE_INDENT ||
			 str_starts(word, STR("|"));
}

/* Put the held word, or its beginning, on this line or on the next one. */
static void place_word(struct paint_wrap *wrap, size_t columns, struct buf *out)
{
	size_t blanks, word;

	if (wrap->word.size == 0)
		return;
	if (!wrap->begun)
		look_at_line(wrap);
	blanks = columns_of_blanks(wrap);
	word = paint_width_of(buf_str(&wrap->word));
	/* The last column stays free: some terminals wrap as soon as it is written. */
	if (!wrap->as_it_is && !wrap->torn && wrap->column > 0 &&
	    wrap->column + blanks + word >= columns) {
		buf_addc(out, '\n');
		wrap->column = 0;
	} else {
		buf_addstr(out, buf_str(&wrap->blanks));
		wrap->column += blanks;
	}
	buf_addstr(out, buf_str(&wrap->word));
	wrap->column += word;
	wrap->torn = false;
	buf_clear(&wrap->blanks);
	buf_clear(&wrap->word);
}

static void end_line(struct paint_wrap *wrap, size_t columns, struct buf *out)
{
	place_word(wrap, columns, out);
	/*
	 * Drop blanks at the end of a line of prose: they are invisible, and must not
	 * begin the next line.
	 */
	if (wrap->as_it_is)
		buf_addstr(out, buf_str(&wrap->blanks));
	buf_clear(&wrap->blanks);
	buf_addc(out, '\n');
	wrap->column = 0;
	wrap->begun = wrap->as_it_is = wrap->torn = false;
}

/*
 * May a line break stand before CHARACTER, because it or the character before it has two
 * columns?
 */
static bool parts(const struct paint_wrap *wrap, struct str character, size_t columns)
{
	struct str word = buf_str(&wrap->word);

	if (word.size == 0 || columns == 0 || (columns < 2 && wrap->last < 2))
		return false;
	return !is_closing(character) && !str_ends(word, STR(joiner));
}

void paint_wrap_add(struct paint_wrap *wrap, struct str text, size_t columns, struct buf *out)
{
	while (text.size > 0) {
		size_t wide = 0;
		size_t size = paint_width_character(text, &wide);
		struct str character = str_part(text, 0, size);

		text = str_part(text, size, text.size);
		if (str_is(character, "\n")) {
			end_line(wrap, columns, out);
		} else if (str_is(character, " ") || str_is(character, "\t")) {
			place_word(wrap, columns, out);
			wrap->torn = false;
			buf_addstr(&wrap->blanks, character);
		} else {
			if (parts(wrap, character, wide))
				place_word(wrap, columns, out);
			buf_addstr(&wrap->word, character);
			wrap->last = wide;
		}
	}
	/*
	 * Show the held bytes now when the word is too wide for any line, or is not
	 * prose.
	 */
	if ((wrap->begun && wrap->as_it_is) || wrap->word.size > WORD_HELD_MAX ||
	    (wrap->word.size > columns && paint_width_of(buf_str(&wrap->word)) >= columns)) {
		place_word(wrap, columns, out);
		wrap->torn = true;
	}
}

void paint_wrap_end(struct paint_wrap *wrap, size_t columns, size_t at, struct buf *out)
{
	place_word(wrap, columns, out);
	buf_clear(&wrap->blanks);
	wrap->column = at;
	wrap->begun = at > 0;
	wrap->as_it_is = wrap->fenced = wrap->torn = false;
}

/* Breaks lines between words. */

enum {
	HANGING = 4, /* indentation of a continued line without columns */
	GAP = 2,     /* this many blanks separate two columns of a table */
	LINE_MAX_BYTES = 1 << 20,
	PRINTED_AT_ONCE = 64 << 10, /* when standard output is not a terminal */
};

/* The state behind a stream that folds. */
struct fold {
	FILE *to;
	struct buf line; /* the part of the line that has come */
};

/* Lines that begin with one of these are for copying, and are never broken. */
static const char *const commands[] = {"glovebox ", "export ", "source ", "systemctl "};

static size_t blanks_at(struct str line, size_t at)
{
	size_t count = 0;

	while (at + count < line.size && line.data[at + count] == ' ')
		count++;
	return count;
}

/* Size of the colour sequence at AT; 0: there is none. */
static size_t colour_at(struct str line, size_t at)
{
	size_t size = 2;

	if (!str_starts(str_part(line, at, size), STR("\x1b[")))
		return 0;
	while (at + size < line.size && line.data[at + size] != 'm')
		size++;
	return size + (at + size < line.size);
}

/* Size of the word at AT, up to the next blank. *COLUMNS is its width. */
static size_t word_at(struct str line, size_t at, size_t *columns)
{
	size_t end = at;

	*columns = 0;
	while (end < line.size && line.data[end] != ' ') {
		const size_t colour = colour_at(line, end);
		size_t wide = 0;

		end += colour > 0 ? colour
				  : paint_width_character(str_part(line, end, line.size),
							  &wide);
		*columns += wide;
	}
	return end - at;
}

/*
 * Find the last gap (GAP blanks or more) that ends at column MOST or before, and return
 * the offset at which the text behind that gap begins. *COLUMN is the column of this text
 * on the screen.
 */
static size_t text_of(struct str line, size_t most, size_t *column)
{
	size_t begin = 0, at = 0, before = 0;

	*column = 0;
	while (at < line.size) {
		const size_t blanks = blanks_at(line, at);
		size_t wide;

		at += blanks;
		before += blanks;
		if (blanks >= GAP && at < line.size && before <= most) {
			begin = at;
			*column = before;
		}
		at += word_at(line, at, &wide);
		before += wide;
	}
	return begin;
}

/*
 * Is TEXT an assignment that a shell makes for one command ("OPENAI_API_KEY=... glovebox
 * run")?
 */
static bool is_assignment(struct str text)
{
	size_t size = 0;

	while (size < text.size && (text.data[size] == '_' ||
				    (text.data[size] >= 'A' && text.data[size] <= 'Z')))
		size++;
	return size > 0 && size < text.size && text.data[size] == '=';
}

static bool is_command(struct str text)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (str_starts(text, str_of(commands[i])))
			return true;
	}
	return is_assignment(text);
}

size_t paint_columns_of(int fd)
{
	struct winsize size = {0};

	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
								    : SIZE_MAX;
}

void paint_fold_line(struct str line, size_t columns, struct buf *out)
{
	size_t indent, column = 0;
	const size_t text = text_of(line, SIZE_MAX, &indent);
	bool begun = false;

	if (text > 0 && is_command(str_part(line, text, line.size))) {
		(void)buf_addstr(out, line);
		return;
	}
	const size_t near = text_of(line, columns / 2, &indent);
	if (near < text && near <= blanks_at(line, 0))
		indent = blanks_at(line, 0) + HANGING;
	for (size_t at = 0; at < line.size;) {
		const size_t blanks = blanks_at(line, at);
		size_t wide, size = word_at(line, at + blanks, &wide);

		/*
		 * A word that is too wide for the next line as well stays here; the
		 * terminal breaks it.
		 */
		if (begun && column + blanks + wide > columns && indent + wide <= columns) {
			(void)buf_addf(out, "\n%*s", (int)indent, "");
			column = indent;
		} else {
			(void)buf_addf(out, "%*s", (int)blanks, "");
			column += blanks;
		}
		(void)buf_addstr(out, str_part(line, at + blanks, size));
		column += wide;
		begun = begun || wide > 0;
		at += blanks + size;
	}
}

void paint_fold_lines(struct str text, size_t columns, struct buf *out)
{
	while (text.size > 0) {
		const size_t end = str_find(text, STR("\n"), 0);

		paint_fold_line(str_part(text, 0, end), columns, out);
		if (end == (size_t)-1)
			return;
		(void)buf_addc(out, '\n');
		text = str_part(text, end + 1, text.size);
	}
}

void paint_fold_for(int fd, struct str text, struct buf *out)
{
	const size_t columns = paint_columns_of(fd);

	if (columns == SIZE_MAX)
		(void)buf_addstr(out, text);
	else
		paint_fold_lines(text, columns, out);
}

void paint_fold_complain(struct str text)
{
	struct buf lines;

	buf_init(&lines, 4 * LINE_MAX_BYTES);
	paint_fold_for(STDERR_FILENO, text, &lines);
	(void)fwrite(lines.data, 1, lines.size, stderr);
	buf_fini(&lines);
}

/*
 * Ask the terminal for its columns for each line: the window may have changed its size.
 */
static bool write_line(const struct fold *fold, struct str line, const char *end)
{
	struct buf out;
	bool ok;

	buf_init(&out, 4 * LINE_MAX_BYTES);
	paint_fold_line(line, paint_columns_of(STDOUT_FILENO), &out);
	(void)buf_adds(&out, end);
	ok = fwrite(out.data, 1, out.size, fold->to) == out.size;
	buf_fini(&out);
	return ok;
}

static ssize_t take(void *cookie, const char *bytes, size_t size)
{
	struct fold *fold = cookie;
	struct str rest = {bytes, size};
	bool ok = true;

	while (ok && rest.size > 0) {
		const size_t end = str_find(rest, STR("\n"), 0);

		ok = buf_addstr(&fold->line, str_part(rest, 0, end));
		if (!ok || end == (size_t)-1)
			break;
		ok = write_line(fold, buf_str(&fold->line), "\n");
		buf_clear(&fold->line);
		rest = str_part(rest, end + 1, rest.size);
	}
	return ok && fflush(fold->to) == 0 ? (ssize_t)size : 0;
}

static int end(void *cookie)
{
	struct fold *fold = cookie;
	bool ok = true;

	if (fold->line.size > 0)
		ok = write_line(fold, buf_str(&fold->line), "");
	buf_fini(&fold->line);
	free(fold);
	return ok ? 0 : EOF;
}

FILE *paint_fold_open(void)
{
	const cookie_io_functions_t functions = {.write = take, .close = end};
	struct fold *fold;
	FILE *out;

	if (!isatty(STDOUT_FILENO)) {
		/*
		 * Only the last flush knows why it failed. With a large buffer it is the
		 * only flush of most verbs.
		 */
		(void)setvbuf(stdout, NULL, _IOFBF, PRINTED_AT_ONCE);
		return stdout;
	}
	if (paint_columns_of(STDOUT_FILENO) == SIZE_MAX)
		return stdout;
	fold = memory_alloc(sizeof(*fold));
	fold->to = stdout;
	buf_init(&fold->line, LINE_MAX_BYTES);
	out = fopencookie(fold, "w", functions);
	if (out != NULL)
		(void)setvbuf(out, NULL, _IOLBF, 0);
	else
		memory_exhausted(sizeof(*fold));
	return out;
}

void paint_fold_close(FILE *out)
{
	if (out != stdout)
		(void)fclose(out);
}

/* Columns by grapheme clusters (UAX #29), each as wide as its widest character. */

/* VARIATION SELECTOR-16: the character before it becomes an emoji of two columns. */
static const utf8proc_int32_t emoji_form = 0xfe0f;

struct cluster {
	size_t size, columns;
	size_t most; /* columns where a terminal draws each of its characters by itself */
	bool doubtful; /* terminals do not agree on its columns */
};

static utf8proc_ssize_t width_next(struct str text, size_t at, utf8proc_int32_t *character)
{
	const utf8proc_uint8_t *data = (const utf8proc_uint8_t *)text.data + at;

	return utf8proc_iterate(data, (utf8proc_ssize_t)(text.size - at), character);
}

/*
 * The columns of CHARACTER by itself. Where terminals differ, the larger number: with it a blank may
 * stay behind the character, with the smaller one a half of it would be drawn over.
 */
static size_t width_alone(utf8proc_int32_t character)
{
	/* Two of these letters are a flag. */
	enum { FLAGS_FROM = 0x1f1e6, FLAGS_TO = 0x1f1ff };
	/* Emoji that are younger than this utf8proc. */
	enum { EMOJI_FROM = 0x1f300, EMOJI_TO = 0x1faff };

	if (character >= FLAGS_FROM && character <= FLAGS_TO)
		return 2;
	if (character >= EMOJI_FROM && character <= EMOJI_TO &&
	    utf8proc_category(character) == UTF8PROC_CATEGORY_CN)
		return 2;
	return (size_t)utf8proc_charwidth(character);
}

static struct cluster width_cluster(struct str text, size_t at)
{
	/* Emoji and what was added to Unicode late are drawn in one column or in two. */
	enum { CERTAIN_BELOW = 0x1f000 };
	struct cluster cluster = {.size = 1, .columns = 1, .most = 1, .doubtful = true};
	utf8proc_int32_t before, character;
	utf8proc_int32_t state = 0;
	utf8proc_ssize_t size = width_next(text, at, &before);

	if (size <= 0)
		return cluster;
	cluster.size = (size_t)size;
	cluster.columns = cluster.most = width_alone(before);
	cluster.doubtful = before >= CERTAIN_BELOW;
	while (at + cluster.size < text.size) {
		size_t columns;

		size = width_next(text, at + cluster.size, &character);
		if (size <= 0 || utf8proc_grapheme_break_stateful(before, character, &state))
			break;
		columns = width_alone(character);
		/* Some terminals give a spacing mark, as of Devanagari, a column of its own. */
		if (columns == 0 && utf8proc_category(character) == UTF8PROC_CATEGORY_MC)
			cluster.most++;
		cluster.most += columns;
		if (character == emoji_form)
			columns = 2;
		if (columns > cluster.columns)
			cluster.columns = columns;
		cluster.size += (size_t)size;
		cluster.doubtful = true;
		before = character;
	}
	if (cluster.most < cluster.columns)
		cluster.most = cluster.columns;
	cluster.doubtful = cluster.doubtful || cluster.columns == 0;
	return cluster;
}

size_t paint_width_of(struct str text)
{
	size_t columns = 0;

	for (size_t at = 0; at < text.size;) {
		struct cluster cluster = width_cluster(text, at);

		columns += cluster.columns;
		at += cluster.size;
	}
	return columns;
}

/* Do terminals agree on the columns of the characters in TEXT? */
static bool width_is_certain(struct str text)
{
	for (size_t at = 0; at < text.size;) {
		const struct cluster cluster = width_cluster(text, at);

		if (cluster.doubtful)
			return false;
		at += cluster.size;
	}
	return true;
}

/* The offset behind the sequence at the begin of TEXT; 0: it is none of ours. */
static size_t sequence_at(struct str text)
{
	const bool link = str_starts(text, STR(PAINT_LINK_BEGIN));
	const struct str last = link ? STR(PAINT_LINK_END) : STR("m");
	size_t end;

	if (!link && !str_starts(text, STR("\x1b[")))
		return 0;
	end = str_find(text, last, 2);
	return end != SIZE_MAX ? end + last.size : text.size;
}

size_t paint_width_of_row(struct str row, bool *certain)
{
	size_t columns = 0;

	if (certain != NULL)
		*certain = true;
	while (row.size > 0) {
		const char *escape = memchr(row.data, '\x1b', row.size);
		const struct str part =
			str_part(row, 0,
				 escape != NULL ? (size_t)(escape - row.data) : row.size);

		columns += paint_width_of(part);
		if (certain != NULL)
			*certain = *certain && width_is_certain(part);
		row = str_part(row, part.size, row.size);
		if (row.size > 0) {
			const size_t size = sequence_at(row);

			row = str_part(row, size > 0 ? size : 1, row.size);
		}
	}
	return columns;
}

size_t paint_width_reach(struct str row)
{
	size_t columns = 0, reach = 0;

	while (row.size > 0) {
		const size_t sequence = sequence_at(row);
		const struct cluster cluster = width_cluster(row, 0);

		row = str_part(row, sequence > 0 ? sequence : cluster.size, row.size);
		if (sequence > 0)
			continue;
		if (columns + cluster.most > reach)
			reach = columns + cluster.most;
		columns += cluster.columns;
	}
	return reach;
}

void paint_steady(struct str row, size_t column, struct buf *out)
{
	while (row.size > 0) {
		const size_t sequence = sequence_at(row);
		const struct cluster cluster = width_cluster(row, 0);
		const size_t size = sequence > 0 ? sequence : cluster.size;

		(void)buf_addstr(out, str_part(row, 0, size));
		row = str_part(row, size, row.size);
		if (sequence > 0)
			continue;
		column += cluster.columns;
		if (cluster.doubtful)
			(void)buf_addf(out, "\x1b[%zuG", column + 1);
	}
}

size_t paint_width_fit(struct str text, size_t columns)
{
	size_t at = 0;

	while (at < text.size) {
		struct cluster cluster = width_cluster(text, at);

		if (cluster.most > columns)
			break;
		columns -= cluster.columns;
		at += cluster.size;
	}
	return at;
}

size_t paint_width_character(struct str text, size_t *columns)
{
	struct cluster cluster = width_cluster(text, 0);

	*columns = cluster.columns;
	return cluster.size;
}

bool paint_is_cache(const struct value *file)
{
	return value_is_true(value_member(file, "cache"));
}

size_t paint_count_caches(const struct value *files)
{
	size_t count = 0;

	for (size_t i = 0; i < value_count(files); i++)
		count += paint_is_cache(value_item(files, i));
	return count;
}
