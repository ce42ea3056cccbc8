/* screen_paint: styles, rules, lines. */
#include "front/terminal/screen_paint.h"

#include "base/text/text.h"
#include "front/terminal/fold.h"
#include "front/terminal/width.h"

#include <string.h>

/* Widest rule of a block: a wider block would be harder to read. */
enum { PAINT_RULE_COLUMNS = 78 };

/* A longer line would fill the terminal. The spill or the file has the whole line. */
enum { PAINT_LINE_COLUMNS = 500 };

enum { PAINT_BAR_COLUMNS = 2 };

static const char *const codes[] = {
	[PAINT_BOLD] = "1",   [PAINT_DIM] = "2",     [PAINT_RED] = "31",
	[PAINT_GREEN] = "32", [PAINT_YELLOW] = "33", [PAINT_CYAN] = "36",
};

void paint_init(struct paint *paint)
{
	*paint = (struct paint){0};
	buf_init(&paint->out, PAINT_MAX);
}

void paint_fini(struct paint *paint)
{
	buf_fini(&paint->out);
}

static void paint_begin(struct paint *paint, enum paint_style style)
{
	if (paint->colour && style != PAINT_PLAIN)
		buf_addf(&paint->out, "\x1b[%sm", codes[style]);
}

static void paint_end(struct paint *paint, enum paint_style style)
{
	if (paint->colour && style != PAINT_PLAIN)
		buf_adds(&paint->out, "\x1b[0m");
}

void paint_text(struct paint *paint, enum paint_style style, struct str text)
{
	paint_begin(paint, style);
	buf_addstr(&paint->out, text);
	paint_end(paint, style);
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

/* Paint TEXT, which is clean and on one line, cut to COLUMNS. */
static void paint_cut(struct paint *paint, enum paint_style style, struct str text,
		      size_t columns)
{
	const char *more = paint_more(paint);
	size_t room = width_of(str_of(more));

	if (width_of(text) <= columns) {
		paint_text(paint, style, text);
		return;
	}
	paint_text(paint, style,
		   str_part(text, 0, width_fit(text, columns > room ? columns - room : 0)));
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
	paint_clean(text, &clean);
	for (size_t i = 0; i < clean.size; i++) {
		if (clean.data[i] == '\n' || clean.data[i] == '\t')
			clean.data[i] = ' ';
	}
	paint_cut(paint, style, str_trim(buf_str(&clean)), columns);
	buf_fini(&clean);
}

void paint_rule(struct paint *paint, const char *title)
{
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
		used += 3 + width_of(str_part(buf_str(&rule.out), from, rule.out.size));
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
	paint_text(paint, PAINT_DIM, str_of(paint->unicode ? "│" : "|"));
	buf_addc(&paint->out, ' ');
}

/*
 * Paint clean TEXT on as many lines of the terminal as it needs, behind a bar when
 * BARRED.
 */
static void paint_folded(struct paint *paint, enum paint_style style, struct str text,
			 bool barred)
{
	const size_t bar = barred ? PAINT_BAR_COLUMNS : 0;
	struct str rest, line;
	struct buf lines;

	buf_init(&lines, PAINT_MAX);
	fold_line(text, paint->columns > bar ? paint->columns - bar : 1, &lines);
	(void)buf_addc(&lines, '\n');
	rest = buf_str(&lines);
	while (str_next_line(&rest, &line)) {
		if (barred)
			paint_bar(paint);
		paint_text(paint, style, line);
		buf_addc(&paint->out, '\n');
	}
	buf_fini(&lines);
}

static void paint_line(struct paint *paint, enum paint_style style, struct str text,
		       const struct paint_excerpt *excerpt)
{
	if (paint->wraps && !excerpt->is_diff && !excerpt->as_it_is &&
	    width_of(text) <= PAINT_LINE_COLUMNS) {
		paint_folded(paint, style, text, excerpt->barred);
		return;
	}
	if (excerpt->barred) {
		paint_bar(paint);
		paint_cut(paint, style, text, PAINT_LINE_COLUMNS);
	} else {
		paint_text(paint, style, text);
	}
	buf_addc(&paint->out, '\n');
}

static enum paint_style paint_diff_style(struct str line)
{
	if (str_starts(line, STR("+++ ")) || str_starts(line, STR("--- ")) ||
	    str_starts(line, STR("diff ")))
		return PAINT_BOLD;
	if (str_starts(line, STR("@@ ")))
		return PAINT_CYAN;
	if (str_starts(line, STR("+")))
		return PAINT_GREEN;
	if (str_starts(line, STR("-")))
		return PAINT_RED;
	return PAINT_PLAIN;
}

static void paint_gap(struct paint *paint, size_t count, const struct paint_excerpt *excerpt)
{
	if (count == 0)
		return;
	if (excerpt->barred)
		paint_bar(paint);
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

void paint_lines(struct paint *paint, struct str text, const struct paint_excerpt *excerpt)
{
	struct buf clean;
	struct str rest, line;
	size_t count, left_out, number = 0;

	buf_init(&clean, PAINT_MAX);
	paint_clean(text, &clean);
	rest = buf_str(&clean);
	count = text_count_lines(rest);
	left_out = count > excerpt->head + excerpt->tail
			   ? count - excerpt->head - excerpt->tail
			   : 0;
	if (left_out == 0 && excerpt->head == 0)
		paint_gap(paint, excerpt->more, excerpt);
	for (; str_next_line(&rest, &line); number++) {
		enum paint_style style =
			excerpt->is_diff ? paint_diff_style(line) : PAINT_PLAIN;

		if (left_out > 0 && number == excerpt->head)
			paint_gap(paint, left_out + excerpt->more, excerpt);
		if (number >= excerpt->head && number < excerpt->head + left_out)
			continue;
		paint_line(paint, style, line, excerpt);
	}
	if (left_out == 0 && excerpt->head > 0)
		paint_gap(paint, excerpt->more, excerpt);
	buf_fini(&clean);
}

void paint_spinner(struct paint *paint, const char *label, int64_t elapsed_ms)
{
	static const char *const unicode[] = {"⠋", "⠙", "⠹", "⠸", "⠼",
					      "⠴", "⠦", "⠧", "⠇", "⠏"};
	static const char *const ascii[] = {"|", "/", "-", "\\"};
	size_t turn = (size_t)(elapsed_ms / 100);
	struct buf text;

	buf_init(&text, PAINT_MAX);
	buf_addf(&text, "%s %.1f s  %s",
		 paint->unicode ? unicode[turn % (sizeof(unicode) / sizeof(unicode[0]))]
				: ascii[turn % (sizeof(ascii) / sizeof(ascii[0]))],
		 (double)elapsed_ms / 1000, label);
	/* The last column stays free: some terminals wrap as soon as it is written. */
	paint_one_line(paint, PAINT_DIM, buf_str(&text), paint->columns - 1);
	buf_fini(&text);
}
