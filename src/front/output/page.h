/*
 * page: a session of the journal as one page of HTML that needs nothing else: no script, style,
 * font or picture from elsewhere. Prompts, words, calls with their results (folded), changes as
 * diffs, and a field to search in all of it. It is light or dark as the reader's system is, and
 * readable without scripts.
 *
 * All that the model, a tool or a file said is text: it is escaped here, with what would be
 * invisible shown as escapes, and the page's own policy (CSP) lets no script and no style run
 * but the two that it was made with, so that a mistake here would not run a stranger's code.
 * Pictures of results are shown when they are PNG, JPEG, GIF or WebP. Nothing can be loaded, and
 * nothing is sent.
 *
 * Style and script are page/session.css and page/session.js.
 */
#pragma once

#include "base/str.h"
#include "tool/event.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct page;

/*
 * A page on OUT of a session that its reader has called NAME (both borrowed); without an event it
 * stays empty. page_end in any case.
 */
struct page *page_new(const char *name, FILE *out);
/* The events of the session in their order. */
void page_event(struct page *page, const struct event *event);
/* The event NUMBER of KIND cannot be read; the page says so. */
void page_unreadable(struct page *page, int64_t number, struct str kind);
/* Write what is left; errors are those of OUT. */
void page_end(struct page *page);
