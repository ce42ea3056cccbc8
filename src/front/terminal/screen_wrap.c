/* screen_wrap: puts words on lines. */
#include "front/terminal/screen_wrap.h"

#include "front/terminal/screen_paint.h"
#include "front/terminal/width.h"

#include <string.h>

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

void screen_wrap_init(struct screen_wrap *wrap)
{
	*wrap = (struct screen_wrap){0};
	buf_init(&wrap->word, PAINT_MAX);
	buf_init(&wrap->blanks, PAINT_MAX);
}

void screen_wrap_fini(struct screen_wrap *wrap)
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

static size_t columns_of_blanks(const struct screen_wrap *wrap)
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
static void look_at_line(struct screen_wrap *wrap)
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
static void place_word(struct screen_wrap *wrap, size_t columns, struct buf *out)
{
	size_t blanks, word;

	if (wrap->word.size == 0)
		return;
	if (!wrap->begun)
		look_at_line(wrap);
	blanks = columns_of_blanks(wrap);
	word = width_of(buf_str(&wrap->word));
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

static void end_line(struct screen_wrap *wrap, size_t columns, struct buf *out)
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
static bool parts(const struct screen_wrap *wrap, struct str character, size_t columns)
{
	struct str word = buf_str(&wrap->word);

	if (word.size == 0 || columns == 0 || (columns < 2 && wrap->last < 2))
		return false;
	return !is_closing(character) && !str_ends(word, STR(joiner));
}

void screen_wrap_add(struct screen_wrap *wrap, struct str text, size_t columns,
		     struct buf *out)
{
	while (text.size > 0) {
		size_t wide = 0;
		size_t size = width_character(text, &wide);
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
	    (wrap->word.size > columns && width_of(buf_str(&wrap->word)) >= columns)) {
		place_word(wrap, columns, out);
		wrap->torn = true;
	}
}

void screen_wrap_end(struct screen_wrap *wrap, size_t columns, size_t at, struct buf *out)
{
	place_word(wrap, columns, out);
	buf_clear(&wrap->blanks);
	wrap->column = at;
	wrap->begun = at > 0;
	wrap->as_it_is = wrap->fenced = wrap->torn = false;
}
