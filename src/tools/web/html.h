/*
 * html: a page as a person reads it, in Markdown or as plain text: its main content with headings,
 * lists, tables, code and absolute links. Left out are scripts, styles, navigation, forms,
 * comments, everything that a browser would not show (style.h), and characters that nobody sees
 * (of zero width, of direction, tags), by which a page speaks to a model behind a reader's back.
 * Closed <details> are shown behind the mark "[folded]". Notes in brackets at the end of the page
 * say that a style sheet hides parts, or that elements are nested too deep.
 *
 * The parser is gumbo (HTML5), loaded when the first page comes. A page is a stranger's: call
 * this in a process of its own behind walls (tools/walled.h). The tree is walked without
 * recursion, and what is formatted has a depth (HTML_DEPTH_MAX); deeper text stays, unformatted.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

enum {
	HTML_DEPTH_MAX = 256,
	HTML_COLUMNS_MAX = 20, /* a wider table is laid out, and not data */
	HTML_TITLE_MAX = 300,
};

struct html_options {
	bool plain; /* no marks of Markdown, and no addresses */
	/* HREF of the page is what its other addresses begin from (<base>); or NULL. */
	void (*rebase)(void *context, const char *href);
	/* Append to OUT the absolute address that HREF of the page means; false: it has none. */
	bool (*resolve)(void *context, const char *href, struct buf *out);
	void *context;
};

/*
 * Append what PAGE, in UTF-8, says to OUT, and its title, in one line, to TITLE. ERR: gumbo is
 * missing, or OUT is full.
 */
bool html_read(struct str page, const struct html_options *options, struct buf *out,
	       struct buf *title, struct err *err);

/* The charset that the first bytes of PAGE name by <meta>, in lower case; false: none. */
bool html_find_charset(struct str page, struct buf *charset);
