/* footer: keeps the parts, and paints those that fit. */

#include "tui/region/footer.h"

#include "base/text/text.h"

#include <stddef.h>
#include <string.h>

void footer_add(struct footer *footer, enum paint_style style, struct str text)
{
	struct footer_part *part = &footer->parts[footer->count];
	struct paint clean;

	if (footer->count == FOOTER_PARTS_MAX || str_trim(text).size == 0)
		return;
	paint_init(&clean);
	paint_one_line(&clean, PAINT_PLAIN, text, FOOTER_PART_COLUMNS);
	const struct str row = buf_str(&clean.out);
	const struct str kept =
		str_part(row, 0, text_character_border(row, FOOTER_PART_MAX - 1));

	memcpy(part->text, kept.data, kept.size);
	part->text[kept.size] = '\0';
	part->style = style;
	footer->count++;
	paint_fini(&clean);
}

void footer_paint(const struct footer *footer, struct paint *paint, size_t columns)
{
	static const struct str lead = {"  ", 2};
	const struct str dot = str_of(paint_dot(paint));
	size_t width = 0;

	for (size_t i = 0; i < footer->count; i++) {
		const struct footer_part *part = &footer->parts[i];
		const struct str before = i == 0 ? lead : dot;

		width += paint_width_of(before) + paint_width_of(str_of(part->text));
		if (width > columns)
			return;
		paint_text(paint, PAINT_DIM, before);
		paint_text(paint, part->style, str_of(part->text));
	}
}
