/*
 * confirm: asks the person one question before the program makes a lasting change. Only
 * "y" and "yes" mean yes.
 */
#pragma once
#include <stdbool.h>
#include <stdio.h>

/*
 * Print the question and "[y/N]" on TO, and read one line of standard input. The end of
 * standard input means no. The caller makes sure that somebody can be asked: without a
 * terminal it needs another way, such as an option --yes.
 */
bool confirm_ask(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
