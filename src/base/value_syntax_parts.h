/* value_syntax_parts: what value_syntax*.c share and nobody else includes. */
#pragma once
#include "base/value_syntax.h"

/* Offset behind the string that opens at AT; the size of the text when it has no end. */
size_t value_syntax_skip_string(struct str text, size_t at);

bool value_syntax_is_digit(char c);

/* The four digits of a \u escape, or -1. */
int value_syntax_unit(struct str text, size_t at);

/* Does UNIT, of the escape at AT, make a character with the escape behind it? */
bool value_syntax_is_paired(struct str text, size_t at, int unit);
