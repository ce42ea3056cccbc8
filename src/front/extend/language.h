/*
 * language: the language servers of a setup (extend/lsp/lsp.h): their key `lsp` of the
 * configuration, their tool, and the cell in which they run, with the rights of the agent and a
 * limit of memory of their own. A run with --review has none: they would not see its changes.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>

struct config;
struct language;
struct lsp;
struct setup;

/*
 * Read `lsp` of CONFIG. Where it names servers, SETUP gets its `language`, and the tool `lsp` joins
 * SETUP's own tools. Call it before SETUP reads its servers and plugins.
 */
bool language_read(struct setup *setup, struct config *config,
		   const struct value *shipped, struct err *err);
void language_close(struct language *language); /* NULL is fine */

/* NULL where SETUP has no language servers. */
struct lsp *language_lsp(const struct setup *setup);
