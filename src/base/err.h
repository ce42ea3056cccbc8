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

/*
 * Fill ERR (may be NULL) with CODE and the sentence. Always false, which the compiler and
 * the analyser see because it is an expression.
 */
#define err_set(err, code, ...) (err_fill(err, code, __VA_ARGS__), false)

/* Put "CONTEXT: " before the sentence already in ERR. Always false. */
#define err_while(err, ...) (err_put_before(err, __VA_ARGS__), false)

/* Called by the macros above only. */
void err_fill(struct err *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void err_put_before(struct err *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
