/*
 * stray_call: calls of tools that a server passes on as text, because it does not know how
 * its model writes them. An answer that ends in one did nothing although it seems done.
 */
#pragma once
#include "base/str.h"

/*
 * When TEXT ends in a call, the mark with which that call begins; else NULL. A mark
 * counts only at the beginning of a line: a text about such marks has them inside a
 * sentence.
 */
const char *stray_call_in(struct str text);
