/*
 * Fuzz target of markdown: the first byte is the size of the pieces and the width of the rows, the
 * rest what a model says. Nothing is held back at the end, all words are shown in their order, and
 * it does not matter how the text is cut.
 */
#include "tui/commit/markdown.h"

#include "base/text/text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(struct str said, size_t step, size_t columns, bool colour, struct buf *out)
{
	struct markdown *markdown = markdown_new();
	struct paint paint = {.colour = colour, .wraps = true, .columns = columns};

	/* Without the library there is nothing to be tested. */
	if (markdown == NULL)
		return;
	buf_init(&paint.out, PAINT_MAX);
	while (said.size > 0) {
		const size_t size = text_character_border(said, step + 4);

		markdown_add(markdown, &paint, str_part(said, 0, size));
		said = str_part(said, size, said.size);
	}
	markdown_end(markdown, &paint);
	if (markdown_unfinished(markdown).size > 0 || markdown_has_begun(markdown))
		abort();
	(void)buf_addstr(out, buf_str(&paint.out));
	markdown_free(markdown);
	buf_fini(&paint.out);
}

/* Are the words of SAID all in SHOWN? Not those behind a fence, which name a language. */
static void check_words(struct str said, struct str shown)
{
	size_t at = 0;

	if (str_find(said, STR("```"), 0) != SIZE_MAX ||
	    str_find(said, STR("~~~"), 0) != SIZE_MAX)
		return;
	for (size_t i = 0; i < said.size; i++) {
		if (!isalnum((unsigned char)said.data[i]) &&
		    (unsigned char)said.data[i] < 0x80)
			continue;
		while (at < shown.size && shown.data[at] != said.data[i])
			at++;
		if (at++ == shown.size)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf said, once, pieces;

	if (size == 0)
		return 0;
	buf_init(&said, PAINT_MAX);
	buf_init(&once, PAINT_MAX);
	buf_init(&pieces, PAINT_MAX);
	paint_clean((struct str){(const char *)data + 1, size - 1}, &said);
	show(buf_str(&said), said.size, data[0] % 100 + 8U, false, &once);
	show(buf_str(&said), data[0] % 16, data[0] % 100 + 8U, false, &pieces);
	if (!str_equal(buf_str(&once), buf_str(&pieces)))
		abort();
	check_words(buf_str(&said), buf_str(&once));
	buf_clear(&once);
	show(buf_str(&said), data[0] % 16, data[0] % 100 + 8U, true, &once);
	/* Only sequences of ours, each of which is complete. */
	(void)paint_width_of_row(buf_str(&once), NULL);
	buf_fini(&said);
	buf_fini(&once);
	buf_fini(&pieces);
	return 0;
}
