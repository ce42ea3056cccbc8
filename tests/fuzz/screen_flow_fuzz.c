/*
 * Fuzz target of screen_flow and paint_wrap: the first byte is the size of the
 * pieces, and of the lines, the rest what a model says. Nothing that a terminal would obey comes
 * out, nothing is held back at the end, and lines lose no words.
 */
#include "tui/paint.h"
#include "tui/screen.h"

#include "base/text/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SHOWN_MAX = 16 << 20 };

static bool is_safe(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		unsigned char byte = (unsigned char)text.data[i];

		if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f)
			return false;
		/* U+0080 to U+009F */
		if (byte == 0xc2 && i + 1 < text.size &&
		    (unsigned char)text.data[i + 1] < 0xa0)
			return false;
	}
	for (struct str line; str_next_line(&text, &line);) {
		struct str part = line;

		for (size_t tab = 0; tab < part.size;
		     part = str_part(part, tab + 1, part.size)) {
			tab = 0;
			while (tab < part.size && part.data[tab] != '\t')
				tab++;
			if (text_find_unseen(str_part(part, 0, tab)) < tab)
				return false;
			if (tab == part.size)
				break;
		}
	}
	return true;
}

/* TEXT without what lines are made of. */
static void add_words(struct str text, struct buf *out)
{
	for (size_t i = 0; i < text.size; i++) {
		if (!strchr(" \t\n", text.data[i]))
			buf_addc(out, text.data[i]);
	}
}

static void check_lines(struct str shown, size_t step)
{
	struct paint_wrap wrap;
	struct buf lines, words[2];

	buf_init(&lines, SHOWN_MAX);
	buf_init(&words[0], SHOWN_MAX);
	buf_init(&words[1], SHOWN_MAX);
	paint_wrap_init(&wrap);
	for (size_t at = 0; at < shown.size;) {
		size_t size =
			text_character_border(str_part(shown, at, shown.size), step + 4);

		paint_wrap_add(&wrap, str_part(shown, at, size), step % 40 + 1, &lines);
		at += size;
	}
	paint_wrap_end(&wrap, step % 40 + 1, 0, &lines);
	add_words(shown, &words[0]);
	add_words(buf_str(&lines), &words[1]);
	if (wrap.word.size > 0 || !str_equal(buf_str(&words[0]), buf_str(&words[1])))
		abort();
	paint_wrap_fini(&wrap);
	buf_fini(&words[0]);
	buf_fini(&words[1]);
	buf_fini(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str said;
	struct screen_flow flow;
	struct buf shown;
	size_t step;

	if (size == 0)
		return 0;
	step = data[0] ? data[0] : 1;
	said = (struct str){(const char *)data + 1, size - 1};
	buf_init(&shown, SHOWN_MAX);
	screen_flow_init(&flow);
	for (size_t at = 0; at < said.size; at += step)
		screen_flow_add(&flow, str_part(said, at, step), &shown);
	screen_flow_end(&flow, &shown);
	if (flow.held.size > 0 || !is_safe(buf_str(&shown)))
		abort();
	check_lines(buf_str(&shown), step);
	screen_flow_fini(&flow);
	buf_fini(&shown);
	return 0;
}
