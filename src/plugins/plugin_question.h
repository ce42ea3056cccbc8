/*
 * plugin_question: what a script asks on descriptor 3 (docs/plugins.md), as call_ask takes it: of a
 * person ("question"), of a model ("sampling"), for the client's folders ("roots"), or several of
 * these at once ("questions").
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

enum { PLUGIN_QUESTIONS_AT_ONCE = 8 };

/* Is TYPE, of a line, one of these? */
bool plugin_question_is(struct str type);

/* LINE, whose type is one: *KIND is a constant, *REQUEST the caller's. */
bool plugin_question_read(const struct value *line, const char **kind,
			  struct value **request, struct err *err);
