/* screen_flow: the part of a stream that can be shown already. */
#include "front/terminal/screen_flow.h"

#include "base/text/text.h"
#include "front/terminal/screen_paint.h"

#include <string.h>

enum {
	FLOW_MAX = 16 << 20, /* a longer answer is refused */
	FLOW_HELD_MAX = 256, /* longer than any valid sequence */
	FLOW_CHARACTER_MAX = 4,
};

void screen_flow_init(struct screen_flow *flow)
{
	buf_init(&flow->held, FLOW_MAX);
}

void screen_flow_fini(struct screen_flow *flow)
{
	buf_fini(&flow->held);
}

/*
 * The number of bytes at the end of TEXT that begin a character which is not complete
 * yet.
 */
static size_t flow_torn(struct str text)
{
	for (size_t back = 1; back < FLOW_CHARACTER_MAX && back <= text.size; back++) {
		unsigned char byte = (unsigned char)text.data[text.size - back];
		size_t length = byte >= 0xf0   ? 4
				: byte >= 0xe0 ? 3
				: byte >= 0xc0 ? 2
					       : 1;

		if (byte >= 0x80 && byte < 0xc0)
			continue;
		return length > back ? back : 0;
	}
	return 0;
}

static size_t flow_ready(struct str text)
{
	size_t from = text.size > FLOW_HELD_MAX ? text.size - FLOW_HELD_MAX : 0;
	size_t ready = text.size - flow_torn(text);
	const char *escape;

	if (ready > 0 && text.data[ready - 1] == '\r')
		ready--;
	escape = memrchr(text.data + from, '\x1b', ready - (from < ready ? from : ready));
	if (escape && !memchr(escape, '\n', (size_t)(text.data + ready - escape)))
		ready = (size_t)(escape - text.data);
	return ready;
}

void screen_flow_add(struct screen_flow *flow, struct str fragment, struct buf *out)
{
	size_t ready;

	buf_addstr(&flow->held, fragment);
	ready = flow_ready(buf_str(&flow->held));
	paint_clean(str_part(buf_str(&flow->held), 0, ready), out);
	buf_remove(&flow->held, 0, ready);
}

void screen_flow_end(struct screen_flow *flow, struct buf *out)
{
	paint_clean(buf_str(&flow->held), out);
	buf_clear(&flow->held);
}
