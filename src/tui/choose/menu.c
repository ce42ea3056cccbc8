/* menu: the words, the chosen one, and their rows. */

#include "tui/choose/menu.h"

#include "base/text/text.h"
#include "tui/line.h"
#include "tui/paint.h"

#include <string.h>

enum {
	/* Short rows stay one row each when the window becomes narrower (live.c). */
	SHORT_COLUMNS = 72,
	WORD_COLUMNS = 18, /* descriptions begin there, unless the word is longer */
	MARK_COLUMNS = 2,
};

void menu_init(struct menu *menu)
{
	*menu = (struct menu){0};
	buf_init(&menu->words, MENU_WORDS_MAX);
	buf_init(&menu->hint, MENU_HINT_MAX);
}

void menu_fini(struct menu *menu)
{
	buf_fini(&menu->words);
	buf_fini(&menu->hint);
}

void menu_close(struct menu *menu)
{
	buf_clear(&menu->words);
	buf_clear(&menu->hint);
	menu->count = menu->at = menu->first = 0;
	menu->moved = false;
}

void menu_leave(struct menu *menu)
{
	menu_close(menu);
	menu->left = true;
}

void menu_open(struct menu *menu)
{
	menu->count = text_count_lines(buf_str(&menu->words));
	menu->at = menu->first = 0;
	menu->moved = false;
}

void menu_move(struct menu *menu, bool down)
{
	if (menu->count == 0)
		return;
	menu->at = (menu->at + (down ? 1 : menu->count - 1)) % menu->count;
	menu->moved = true;
	if (menu->at < menu->first)
		menu->first = menu->at;
	if (menu->at >= menu->first + MENU_ROWS_MAX)
		menu->first = menu->at - MENU_ROWS_MAX + 1;
}

/* Split ROW at its tab. */
static struct str split(struct str row, struct str *detail)
{
	const size_t tab = str_find(row, STR("\t"), 0);

	*detail = tab != SIZE_MAX ? str_part(row, tab + 1, row.size) : STR("");
	return str_part(row, 0, tab);
}

struct str menu_word(const struct menu *menu, size_t at)
{
	struct str rest = buf_str(&menu->words), row = STR(""), detail;

	for (size_t i = 0; i <= at; i++) {
		if (!str_next_line(&rest, &row))
			return STR("");
	}
	return split(row, &detail);
}

struct str menu_common(const struct menu *menu)
{
	struct str rest = buf_str(&menu->words), row, detail, common = STR("");

	for (size_t count = 0; str_next_line(&rest, &row); count++) {
		const struct str word = split(row, &detail);
		size_t same = 0;

		while (same < common.size && same < word.size &&
		       common.data[same] == word.data[same])
			same++;
		common = count == 0
				 ? word
				 : str_part(common, 0, text_character_border(common, same));
	}
	return common;
}

bool menu_has(const struct menu *menu, struct str word)
{
	struct str rest = buf_str(&menu->words), row, detail;

	while (str_next_line(&rest, &row)) {
		if (str_equal(split(row, &detail), word))
			return true;
	}
	return false;
}

static void add_row(struct paint *paint, struct str row, bool chosen, size_t columns)
{
	struct str detail;
	const struct str word = split(row, &detail);

	paint_text(paint, PAINT_BOLD, chosen ? STR("> ") : STR("  "));
	const size_t before = paint->out.size;
	paint_one_line(paint, chosen ? PAINT_BOLD : PAINT_PLAIN, word,
		       columns - MARK_COLUMNS);
	const size_t used =
		paint_width_of_row(str_part(buf_str(&paint->out), before, paint->out.size),
				   NULL);
	const size_t gap = used + 2 < WORD_COLUMNS ? WORD_COLUMNS - used : 2;
	if (detail.size > 0 && MARK_COLUMNS + used + gap < columns) {
		(void)buf_addf(&paint->out, "%*s", (int)gap, "");
		paint_one_line(paint, PAINT_DIM, detail,
			       columns - MARK_COLUMNS - used - gap);
	}
	(void)buf_addc(&paint->out, '\n');
}

size_t menu_add_rows(const struct menu *menu, size_t rows, size_t columns,
		     const struct line_look *look, struct buf *out)
{
	struct str rest = buf_str(&menu->words), row;
	size_t first = menu->first, added = 0;
	struct paint paint;

	rows = rows < MENU_ROWS_MAX ? rows : MENU_ROWS_MAX;
	columns = columns < SHORT_COLUMNS ? columns : SHORT_COLUMNS;
	if (rows == 0 || columns <= MARK_COLUMNS)
		return 0;
	if (menu->at >= first + rows)
		first = menu->at - rows + 1;
	line_look_paint(look, &paint);
	for (size_t i = 0; i < first + rows && str_next_line(&rest, &row); i++) {
		if (i < first)
			continue;
		add_row(&paint, row, i == menu->at, columns);
		added++;
	}
	(void)buf_addstr(out, buf_str(&paint.out));
	paint_fini(&paint);
	return added;
}
