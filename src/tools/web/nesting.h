/*
 * nesting: a bound on how deep the elements of a page are nested. For each element the parser
 * (gumbo) looks at all that are open around it, so that a page of 50,000 of them, within each
 * other, would take it most of a minute. The tags that open elements deeper than NESTING_MAX are
 * therefore taken out of the page before it is read, with those that close them; their text stays.
 *
 * The depth is an estimate, which is never below that of the parser's tree for pages in order:
 * it knows which elements have no end, which ends may be omitted, and which elements an end tag
 * does not find across others. A page that deceives it costs the time that its reader has.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

enum { NESTING_MAX = 512 };

/*
 * Append PAGE to FLAT without the tags of elements that are nested too deep. False, with nothing
 * appended: there are none.
 */
bool nesting_limit(struct str page, struct buf *flat);
