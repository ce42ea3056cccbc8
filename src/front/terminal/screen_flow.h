/*
 * screen_flow: turns a model's words, which come in fragments of any size, into text that
 * is safe on a terminal. The end of a fragment is held back while it may be the beginning
 * of a character or of an escape sequence. Nothing is held for ever.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

struct screen_flow {
	struct buf held;
};

void screen_flow_init(struct screen_flow *flow);
void screen_flow_fini(struct screen_flow *flow);

/* Add FRAGMENT, and append to OUT all text that can be shown now. */
void screen_flow_add(struct screen_flow *flow, struct str fragment, struct buf *out);
/* The stream has ended: append the rest to OUT. */
void screen_flow_end(struct screen_flow *flow, struct buf *out);
