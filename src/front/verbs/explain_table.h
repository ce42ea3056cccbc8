/* explain_table: a table of the results of explain.c, for people. */
#pragma once
#include "base/value.h"

#include <stdio.h>

/* Print REPORT on OUT, with colours when standard output is a terminal with colours. */
void explain_print_table(const struct value *report, FILE *out);
