/* explain_table: for people, what explain.c found. */
#pragma once
#include "base/value.h"

#include <stdio.h>

/* Print REPORT on standard output, with colours when that is a terminal that has them. */
void explain_print_table(const struct value *report, FILE *out);
