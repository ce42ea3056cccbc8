/* explain_table: a table of the results of explain.c, for people. */
#pragma once
#include "base/value.h"

#include <stdio.h>

/* Print REPORT on standard output, with colours when that is a terminal that has them. */
void explain_print_table(const struct value *report, FILE *out);
