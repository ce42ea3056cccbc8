/*
 * trusting: shows a person what a workspace brings along (extend/brought.h), so that they can let
 * it in or not (extend/trust.h).
 */
#pragma once

#include "extend/brought.h"
#include "extend/trust.h"

#include <stdio.h>

/*
 * Print ITEM with each byte visible, because the person must see all that they let in, even bytes
 * that a terminal would swallow or overwrite. Of an item that was let in before (TRUST, or NULL)
 * the difference comes first.
 */
void trusting_show(const struct trust *trust, const struct brought *item, FILE *out);
