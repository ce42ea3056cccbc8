/*
 * Fuzz target of front/screen_flow: the first byte is the size of the pieces, the rest what
 * a model says. Nothing that a terminal would obey comes out, and nothing is held back
 * at the end.
 */
#include "front/screen_flow.h"

#include "base/text.h"

#include <stdint.h>
#include <stdlib.h>

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
	return text_is_utf8(text);
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
	screen_flow_fini(&flow);
	buf_fini(&shown);
	return 0;
}
