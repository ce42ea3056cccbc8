/* when_words: times in plain words, see when.h. */
#pragma once
#include "agent/when.h"

/* WHEN is zero. The words are one line of UTF-8 without NUL. */
bool when_parse_words(struct str text, struct when *when, struct err *err);
