/* choice: the rows of a question, and the keys that answer it. */

#include "tui/region/choice.h"

#include "base/buf.h"
#include "base/text/text.h"
#include "tui/keys.h"
#include "tui/paint.h"

#include <stdio.h>

enum {
	ROWS_MAX = 1 << 20, /* bytes of all rows */
	TEXT_MAX = 8 << 20, /* of the text, whose bytes may be shown as four */
	COLUMNS_MOST = 72, /* of a row of a question, as of all rows that change (live.c) */
	COLUMNS_LEAST = 8,
	WORDS_ROWS = 3,
};

void choice_begin(struct choice_state *state)
{
	*state = (struct choice_state){0};
	line_init(&state->words, NULL, (struct line_completer){0});
}

void choice_end(struct choice_state *state)
{
	line_fini(&state->words);
}

/* The keys. */

static void scroll(struct choice_state *state, size_t by, bool down)
{
	const size_t last = state->rows > state->height ? state->rows - state->height : 0;

	if (down)
		state->first = state->first + by < last ? state->first + by : last;
	else
		state->first = state->first > by ? state->first - by : 0;
}

static bool is_no(enum typing_key key)
{
	return key == TYPING_ENTER || key == TYPING_ESCAPE || key == TYPING_INTERRUPT ||
	       key == TYPING_CANCEL || key == TYPING_EOF;
}

/* A key while the words of an answer are typed. */
static bool take_words(const struct choice *choice, struct choice_state *state,
		       enum typing_key key, struct str typed, size_t *chosen)
{
	const bool empty = str_trim(buf_str(&state->words.text)).size == 0;

	if (key == TYPING_ESCAPE || key == TYPING_INTERRUPT || key == TYPING_CANCEL) {
		line_start(&state->words);
		state->begun = NULL;
		return false;
	}
	if (key == TYPING_ENTER && empty) {
		*chosen = choice->safe;
		return true;
	}
	if (line_take(&state->words, key, typed) != LINE_DONE)
		return false;
	*chosen = (size_t)(state->begun - choice->options);
	return true;
}

/* The answer that LETTER means; NULL: none. */
static const struct choice_option *option_of(const struct choice *choice, char letter)
{
	for (size_t i = 0; i < choice->count; i++) {
		if ((letter | 0x20) == choice->options[i].word[0])
			return &choice->options[i];
	}
	return NULL;
}

static bool take_letter(const struct choice *choice, struct choice_state *state,
			struct str typed, size_t *chosen)
{
	const struct choice_option *option;

	if (str_starts(typed, STR(" "))) {
		scroll(state, state->height, true);
		return false;
	}
	if (choice->views && state->begun == NULL && str_starts(typed, STR("v"))) {
		*chosen = CHOICE_VIEW;
		return true;
	}
	option = typed.size > 0 ? option_of(choice, typed.data[0]) : NULL;
	if (option == NULL)
		return false;
	if (option->way != CHOICE_AT_ONCE && state->begun != option) {
		state->begun = option;
		return false;
	}
	*chosen = (size_t)(option - choice->options);
	return true;
}

bool choice_take(const struct choice *choice, struct choice_state *state,
		 enum typing_key key, struct str typed, size_t *chosen)
{
	if (state->begun != NULL && state->begun->way == CHOICE_WITH_WORDS)
		return take_words(choice, state, key, typed, chosen);
	if (is_no(key) && state->begun != NULL && key != TYPING_INTERRUPT) {
		state->begun = NULL;
		return false;
	}
	if (is_no(key)) {
		*chosen = choice->safe;
		return true;
	}
	if (key == TYPING_UP || key == TYPING_DOWN)
		scroll(state, 1, key == TYPING_DOWN);
	else if (key == TYPING_HOME || key == TYPING_END)
		scroll(state, state->rows, key == TYPING_END);
	else if (key == TYPING_TEXT)
		return take_letter(choice, state, typed, chosen);
	return false;
}

/* The rows. */

struct composing {
	struct paint paint;
	size_t columns; /* of a row */
	size_t left;    /* rows */
};

/* One row of the foreign TEXT, cut. */
static void add_row(struct composing *composing, enum paint_style style, struct str text)
{
	if (composing->left == 0)
		return;
	composing->left--;
	paint_one_line(&composing->paint, style, text, composing->columns);
	(void)buf_addc(&composing->paint.out, '\n');
}

/*
 * Append LINE of a diff, exact but for its tabs: they are blanks, as where a diff is printed, because
 * code that is indented by them could not be read else.
 */
static void add_diff_line(struct str line, struct buf *out)
{
	enum { TAB_COLUMNS = 8 };
	size_t columns = 0;

	for (;;) {
		const size_t tab = str_find(line, STR("\t"), 0), from = out->size;

		text_add_exact(out, str_part(line, 0, tab));
		if (tab == SIZE_MAX)
			return;
		columns += paint_width_of(str_part(buf_str(out), from, out->size));
		do {
			(void)buf_addc(out, ' ');
		} while (++columns % TAB_COLUMNS != 0);
		line = str_part(line, tab + 1, line.size);
	}
}

/*
 * Append the rows of TEXT, of COLUMNS each, to ROWS. IS_DIFF: it is a diff. Returns how many there
 * are.
 */
static size_t break_text(struct str text, bool is_diff, size_t columns, struct buf *rows)
{
	struct str line;
	struct buf clean;
	size_t count = 0;

	buf_init(&clean, TEXT_MAX);
	while (str_next_line(&text, &line)) {
		struct str rest;

		buf_clear(&clean);
		if (is_diff)
			add_diff_line(line, &clean);
		else
			text_add_exact(&clean, line);
		rest = buf_str(&clean);
		do {
			size_t fits = paint_width_fit(rest, columns), wide;

			if (fits == 0 && rest.size > 0)
				fits = paint_width_character(rest, &wide);
			(void)buf_addstr(rows, str_part(rest, 0, fits));
			(void)buf_addc(rows, '\n');
			rest = str_part(rest, fits, rest.size);
			count++;
		} while (rest.size > 0);
	}
	buf_fini(&clean);
	return count;
}

static enum paint_style style_of(const struct choice *choice, struct str row)
{
	if (!choice->is_diff)
		return PAINT_PLAIN;
	return str_starts(row, STR("+"))   ? PAINT_ADDED
	       : str_starts(row, STR("-")) ? PAINT_REMOVED
					   : PAINT_PLAIN;
}

/* The rows of the text that are to be seen, HEIGHT of them at most, and where they are. */
static void add_text(const struct choice *choice, struct choice_state *state,
		     size_t height, struct composing *composing)
{
	struct str rest, row;
	struct buf rows;
	char place[64];

	buf_init(&rows, 2 * TEXT_MAX);
	state->rows = break_text(choice->text, choice->is_diff, composing->columns, &rows);
	state->height = state->rows <= height ? state->rows : height > 1 ? height - 1 : 1;
	scroll(state, 0, true);
	rest = buf_str(&rows);
	for (size_t i = 0; str_next_line(&rest, &row); i++) {
		if (i < state->first || i >= state->first + state->height)
			continue;
		paint_text(&composing->paint, style_of(choice, row), row);
		(void)buf_addc(&composing->paint.out, '\n');
		composing->left -= composing->left > 0;
	}
	if (state->rows > state->height && height > 1) {
		(void)snprintf(place, sizeof(place),
			       "rows %zu to %zu of %zu; Up and Down scroll",
			       state->first + 1, state->first + state->height, state->rows);
		add_row(composing, PAINT_DIM, str_of(place));
	}
	buf_fini(&rows);
}

/* A row for each answer that says what it lets in, as far as there is room. */
static void add_meanings(const struct choice *choice, size_t rows,
			 struct composing *composing)
{
	for (size_t i = 0; i < choice->count && rows > 0; i++) {
		const struct choice_option *option = &choice->options[i];
		struct buf text;

		if (option->means == NULL)
			continue;
		buf_init(&text, TEXT_MAX);
		(void)buf_addf(&text, "%s: %s", option->word, option->means);
		add_row(composing, PAINT_DIM, buf_str(&text));
		buf_fini(&text);
		rows--;
	}
}

static void add_prompt(const struct choice *choice, const struct choice_state *state,
		       const struct keys *keys, struct composing *composing)
{
	const struct choice_option *begun = state->begun;
	struct buf text;

	buf_init(&text, ROWS_MAX);
	if (begun != NULL && begun->way == CHOICE_TWICE) {
		(void)buf_addf(&text, "%s, for good: ", begun->word);
		text_add_exact(&text, str_of(begun->means != NULL ? begun->means : ""));
		add_row(composing, PAINT_BOLD, buf_str(&text));
		buf_clear(&text);
		(void)buf_addf(&text, "%c again writes it, ", begun->word[0]);
		keys_say(keys, "{escape} goes back ", &text);
	} else if (begun != NULL) {
		(void)buf_addf(&text, "%s it, and ", begun->word);
		keys_say(keys, "{steer}; {escape} goes back", &text);
	} else {
		for (size_t i = 0; i < choice->count; i++)
			(void)buf_addf(&text, state->listens ? "[%c]%s " : " %c%s  ",
				       choice->options[i].word[0],
				       choice->options[i].word + 1);
		if (choice->views)
			(void)buf_adds(&text, state->listens ? "[v]iew " : " view  ");
	}
	buf_truncate(&text, paint_width_fit(buf_str(&text), composing->columns));
	paint_text(&composing->paint, PAINT_BOLD, buf_str(&text));
	(void)buf_addc(&composing->paint.out, '\n');
	buf_fini(&text);
}

/* The rows of the words that are typed, with the cursor in them. */
static void add_words(const struct choice_state *state, const struct line_look *look,
		      struct line_frame *frame)
{
	const struct line_look words_look = {
		.columns = look->columns < COLUMNS_MOST ? look->columns : COLUMNS_MOST,
		.rows = WORDS_ROWS,
		.colour = look->colour,
		.unicode = look->unicode,
		.theme = look->theme,
		.keys = look->keys,
	};
	struct line_frame words;

	line_frame_init(&words);
	line_frame_compose(&words, &state->words, &words_look);
	frame->row = text_count_lines(buf_str(&frame->rows)) + words.row;
	frame->column = words.column;
	(void)buf_addstr(&frame->rows, buf_str(&words.rows));
	line_frame_fini(&words);
}

/* How many rows of what answers let in there may be, below ROWS that the text could take. */
static size_t rows_of_meanings(const struct choice *choice, size_t rows)
{
	size_t count = 0;

	for (size_t i = 0; i < choice->count; i++)
		count += choice->options[i].means != NULL;
	return rows > 2 * count ? count : rows / 3;
}

void choice_compose(const struct choice *choice, struct choice_state *state,
		    const struct line_look *look, struct line_frame *frame)
{
	const bool speaks = state->begun != NULL && state->begun->way == CHOICE_WITH_WORDS;
	const bool twice = state->begun != NULL && state->begun->way == CHOICE_TWICE;
	const size_t below = (size_t)1 + twice + (speaks ? (size_t)WORDS_ROWS : 0) +
			     (choice->tail != NULL);
	struct composing composing = {
		.columns = look->columns <= COLUMNS_LEAST ? COLUMNS_LEAST
			   : look->columns > COLUMNS_MOST ? COLUMNS_MOST
							  : look->columns - 1,
		.left = look->rows,
	};
	size_t room, meanings;

	line_look_paint(look, &composing.paint);
	room = look->rows > below + 1 ? look->rows - below - 1 : 0;
	meanings = state->begun == NULL ? rows_of_meanings(choice, room) : 0;
	if (room > 0)
		add_row(&composing, PAINT_BOLD, str_of(choice->head));
	add_text(choice, state, room > meanings ? room - meanings : 1, &composing);
	if (choice->tail != NULL && composing.left > 1)
		add_row(&composing, PAINT_DIM, str_of(choice->tail));
	add_meanings(choice, meanings, &composing);
	add_prompt(choice, state, look->keys, &composing);
	buf_clear(&frame->rows);
	(void)buf_addstr(&frame->rows, buf_str(&composing.paint.out));
	frame->row = text_count_lines(buf_str(&frame->rows)) - 1;
	frame->column = 0;
	if (speaks)
		add_words(state, look, frame);
	paint_fini(&composing.paint);
}
