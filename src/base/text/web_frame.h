/*
 * web_frame: the frame of everything that comes from the web, no matter which tool fetched it. It says
 * where the text is from and that it is information, up to a line with a random mark. No
 * text can close it: the mark is not known to a page, and web_frame_end puts words of its
 * own before each line that looks like one of a frame.
 */
#pragma once

#include "base/buf.h"

#include <stddef.h>

enum { WEB_FRAME_MARK_DIGITS = 12 };

struct web_frame {
	char mark[WEB_FRAME_MARK_DIGITS + 5];
	size_t begin, at; /* in the output: of the frame, and of the text in it */
};

/*
 * Append the beginning to OUT, which is at the beginning of a line: the text is from
 * SOURCE, and came today.
 */
void web_frame_begin(struct web_frame *frame, const char *source, struct buf *out);
/* Look through the text that OUT has got since then, and append the end. */
void web_frame_end(const struct web_frame *frame, struct buf *out);
