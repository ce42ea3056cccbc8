/*
 * err: the reason why a function failed. A function that can fail returns bool and
 * takes a struct err as its last parameter. The sentence in it names the problem, the
 * place and the remedy. Mistakes of the model are results (tool/tool.h), our own are
 * asserts.
 */
#pragma once
#include <stdbool.h>

/* Longest sentence that is kept; a longer one is cut between characters. */
enum { ERR_TEXT_MAX = 1024 };

struct err {
	int code; /* an errno value, or 0 when none fits */
	char text[ERR_TEXT_MAX];
};

/* Fill ERR (may be NULL) with CODE and the sentence. Always returns false. */
bool err_set(struct err *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Put "CONTEXT: " before the sentence already in ERR. Always returns false. */
bool err_while(struct err *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
