/*
 * play: does on the terminal of its standard output what the lines of descriptor 3 say, and tells
 * on descriptor 4 when it is done, one line each:
 *
 *	print TEXT       with "\n" for a line end, "\e" for an escape
 *	status TEXT, waiting TEXT, footer TEXT
 *	keys TEXT        the person types
 *	resized, redraw, clear, hide, show, start, stop
 *	settle           wait until all is drawn, for which the order has its frame
 *	terminal TEXT    the terminal has answered this
 *	sync             wait until the terminal has taken all of it
 *	caret            the answer has the bytes before it, in hexadecimal digits
 *	size             the answer has columns and rows
 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/text/text.h"
#include "tui/lent/terminal.h"
#include "tui/line.h"
#include "tui/live.h"
#include "tui/region/footer.h"
#include "tui/screen.h"
#include "tui/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { ORDERS = 3, ANSWERS = 4, ORDER_MAX = 1 << 20 };

/* TEXT with its escapes read. */
static void read_escapes(struct str text, struct buf *out)
{
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];

		if (c == '\\' && i + 1 < text.size) {
			c = text.data[++i];
			c = (char)(c == 'n'   ? '\n'
				   : c == 'e' ? '\x1b'
				   : c == 't' ? '\t'
				   : c == 'r' ? '\r'
					      : c);
		}
		(void)buf_addc(out, c);
	}
}

static void type(struct live *live, struct line *line, struct str keys)
{
	struct typing typing;
	enum typing_key key;
	struct buf typed;

	typing_init(&typing);
	buf_init(&typed, 3 * TYPING_MAX);
	(void)typing_add(&typing, keys);
	typing_settle(&typing);
	while (typing_next(&typing, &key, &typed)) {
		if (line_take(line, key, buf_str(&typed)) == LINE_DONE)
			line_start(line);
		buf_clear(&typed);
	}
	live_set_line(live, line);
	buf_fini(&typed);
	typing_fini(&typing);
}

/* Ask where the cursor is: the answer comes after all that was written. */
static void sync_terminal(void)
{
	char c = 0;

	(void)!write(STDOUT_FILENO, "\x1b[6n", 4);
	while (c != 'R' && read(STDIN_FILENO, &c, 1) == 1)
		continue;
}

/* The terminal has answered. */
static void learn(struct live *live, struct str answer)
{
	struct term term;

	term_init(&term);
	term_take(&term, answer);
	live_set_terminal(live, &term);
}

/* Answer with the bytes before the caret, in its line. */
static bool tell_caret(const struct line *line, FILE *answers)
{
	const char *end = memrchr(line->text.data, '\n', line->cursor);
	const size_t from = end != NULL ? (size_t)(end - line->text.data) + 1 : 0;

	for (size_t i = from; i < line->cursor; i++)
		(void)fprintf(answers, "%02x", (unsigned char)line->text.data[i]);
	(void)fprintf(answers, "\n");
	return fflush(answers) == 0;
}

/* TEXT is its only part; "": there is no footer. */
static void set_footer(struct live *live, struct str text)
{
	struct footer footer = {0};

	footer_add(&footer, PAINT_DIM, text);
	live_set_footer(live, &footer);
}

static bool obey(struct live *live, struct line *line, struct str order, FILE *answers)
{
	const size_t end = str_find(order, STR(" "), 0);
	const struct str word = str_part(order, 0, end);
	struct buf text;

	buf_init(&text, ORDER_MAX);
	if (end != SIZE_MAX)
		read_escapes(str_part(order, end + 1, order.size), &text);
	if (str_is(word, "print"))
		(void)live_print(live, buf_str(&text));
	else if (str_is(word, "status"))
		live_set(live, LIVE_STATUS, buf_str(&text));
	else if (str_is(word, "waiting"))
		live_set(live, LIVE_WAITING, buf_str(&text));
	else if (str_is(word, "footer"))
		set_footer(live, buf_str(&text));
	else if (str_is(word, "keys"))
		type(live, line, buf_str(&text));
	else if (str_is(word, "resized"))
		live_resized(live, line);
	else if (str_is(word, "redraw"))
		live_redraw(live);
	else if (str_is(word, "hide"))
		live_hide(live);
	else if (str_is(word, "show"))
		live_show(live);
	else if (str_is(word, "start"))
		live_start(live);
	else if (str_is(word, "stop"))
		live_stop(live);
	else if (str_is(word, "terminal"))
		learn(live, buf_str(&text));
	else if (str_is(word, "sync"))
		sync_terminal();
	else if (str_is(word, "settle"))
		live_settle(live);
	else if (str_is(word, "clear"))
		live_clear(live);
	else if (str_is(word, "caret"))
		return tell_caret(line, answers);
	else if (!str_is(word, "size"))
		return false;
	buf_fini(&text);
	(void)fprintf(answers, "%zu %zu\n", (size_t)terminal_size().columns,
		      (size_t)terminal_size().rows);
	return fflush(answers) == 0;
}

int main(void)
{
	const struct screen_options look = screen_options_of(STDOUT_FILENO);
	struct live *live = live_new(STDOUT_FILENO, &look);
	FILE *orders = fdopen(ORDERS, "r"), *answers = fdopen(ANSWERS, "w");
	struct termios before, raw;
	struct line line;
	char *order = NULL;
	size_t room = 0;
	ssize_t size;

	if (orders == NULL || answers == NULL || tcgetattr(STDIN_FILENO, &before) < 0)
		return 2;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	line_init(&line, NULL, (struct line_completer){0});
	while ((size = getline(&order, &room, orders)) > 0) {
		if (!obey(live, &line, (struct str){order, (size_t)size - 1}, answers))
			break;
	}
	live_free(live);
	line_fini(&line);
	free(order);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
	return size > 0;
}
