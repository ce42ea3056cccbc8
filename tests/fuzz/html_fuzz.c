/*
 * Fuzz target of tools/web/html: whatever the page, what is shown is UTF-8 without control
 * characters but for line ends and tabs, and so is its title; plain text has no more lines of
 * fences than the page itself has.
 */
#include "tools/web/html.h"

#include "base/text/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool resolve(void *context, const char *href, struct buf *out)
{
	(void)context;
	return text_find_unseen(str_of(href)) == strlen(href) &&
	       buf_addf(out, "https://a.test/%s", href);
}

static void check(struct str text)
{
	if (!text_is_utf8(text))
		abort();
	for (size_t i = 0; i < text.size; i++) {
		const unsigned char c = (unsigned char)text.data[i];

		if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str page = {(const char *)data, size};
	struct buf text, title, charset;
	struct err err;

	buf_init(&text, 16 << 20);
	buf_init(&title, 4 << 10);
	buf_init(&charset, 64);
	(void)html_find_charset(page, &charset);
	for (int plain = 0; text_is_utf8(page) && plain < 2; plain++) {
		const struct html_options options = {.plain = plain != 0,
						     .resolve = resolve};

		buf_clear(&text);
		buf_clear(&title);
		if (!html_read(page, &options, &text, &title, &err))
			abort();
		check(buf_str(&text));
		check(buf_str(&title));
	}
	buf_fini(&charset);
	buf_fini(&title);
	buf_fini(&text);
	return 0;
}
