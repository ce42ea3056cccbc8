/*
 * web_search: asks a search service for pages. Which one is a setting of the person (`search` of the
 * configuration); without one there is no such tool. A SearXNG server needs no key. For Brave, Tavily
 * and Exa the agent has a credential of that name: the request bears the phantom, and the broker puts
 * the key in its place.
 */
#pragma once

#include "base/value.h"
#include "tool/tool.h"

/* A tool for SETTINGS, which config.c has checked; for web_search_free. */
struct tool *web_search_new(const struct value *settings);
void web_search_free(struct tool *tool); /* NULL is fine */
