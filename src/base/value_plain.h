/*
 * value_plain: the quick way of value_parse. It takes the JSON that programs print to each
 * other: UTF-8, whole numbers, the short escapes, a few levels. Whatever else a text has, and
 * whatever is wrong with it, is left to the JSON library, which says what.
 */
#pragma once
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

/* False, and *VALUE untouched, where TEXT is not plain. */
bool value_plain_parse(struct str text, struct value **value);

/* Of value.c: a string of TEXT, which is UTF-8. */
struct value *value_new_utf8(struct str text);
