/*
 * confirm: one question to the person before something is done that lasts. No is the answer
 * unless they type "y" or "yes".
 */
#pragma once
#include <stdbool.h>
#include <stdio.h>

/*
 * Print the question and "[y/N]" on TO, and read one line of standard input. The end of that is
 * a no. Where nobody can be asked (no terminal) the caller has another way to be told.
 */
bool confirm_ask(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
