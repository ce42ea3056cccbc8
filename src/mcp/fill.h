/*
 * fill: texts with places in them: "{{name}}" in prompts and resources, "{name}" in the
 * templates of URIs (RFC 6570, level 1, whose values hold no slash).
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

/* Append TEXT; each {{name}} that VALUES (an object of texts) has is replaced. */
bool fill_add(struct str text, const struct value *values, struct buf *out);
/* Does TEXT have a place at all? */
bool fill_has_place(struct str text);
/* Does URI come of TEMPLATE? Then VALUES (an object) gets what stood in each place. */
bool fill_match(struct str template, struct str uri, struct value *values);
