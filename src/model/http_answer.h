/* http_answer: what the header lines of an answer say about asking again. */
#pragma once
#include "base/str.h"
#include "model/http.h"

void http_answer_clear(struct http_answer *answer);
/* One header line, without its end. */
void http_answer_line(struct http_answer *answer, struct str line);
/* The value of header LINE when it is called NAME, in whatever case. */
bool http_header_is(struct str line, const char *name, struct str *value);
