/*
 * help: the texts of `--help`, made from the rows of verbs and options. All functions
 * return an exit code.
 */
#pragma once
#include "front/verb.h"

#include <stdio.h>

int help_print_overview(FILE *out);
int help_print_group(const char *group, FILE *out);
int help_print_verb(const struct verb *verb, FILE *out);
