/*
 * err: why the world refused. A function that can fail returns bool and takes
 * a struct err last; the sentence in it names what, where and what to do.
 * The model's mistakes are results (tool/tool.h), our own are asserts.
 */
#pragma once
#include <stdbool.h>

/* Longest sentence kept; a longer one is cut on a character border. */
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
