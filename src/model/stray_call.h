/*
 * stray_call: calls of tools that a server passes on as text, because it does not know how
 * its model writes them. An answer that ends in one did nothing although it seems done.
 */
#pragma once
#include "base/str.h"

/*
 * The mark with which the call begins that TEXT ends in, or NULL. Marks are known at the
 * beginning of a line only: who writes about them writes them in a sentence.
 */
const char *stray_call_in(struct str text);
