/*
 * screen_flow: a model's words in fragments of any size, out of which comes text that
 * is safe on a terminal. The end of a fragment is held back while it may be the front
 * half of a character or of an escape sequence; nothing is held for ever.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

struct screen_flow {
	struct buf held;
};

void screen_flow_init(struct screen_flow *flow);
void screen_flow_fini(struct screen_flow *flow);

/* Append to OUT what can be shown now. */
void screen_flow_add(struct screen_flow *flow, struct str fragment, struct buf *out);
/* No more is coming: the rest. */
void screen_flow_end(struct screen_flow *flow, struct buf *out);
