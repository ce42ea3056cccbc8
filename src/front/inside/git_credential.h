/*
 * git_credential: this program under the name `git-credential-glovebox`, as git starts it in
 * a cell that uses the key of a forge (gitcredentials(7)). It answers git with the user and
 * the phantom, which the broker replaces by the key; it knows no key itself. The settings
 * by which git finds it are made by cell/directions.c.
 */
#pragma once

#include <stdbool.h>

/*
 * Is argv[0] this name? Then answer the question on standard input. The arguments are the
 * server ("https://github.com"), the user and the phantom, and then git's word: `get` is
 * answered for that server, `store` and `erase` do nothing. *CODE becomes the exit code.
 */
bool git_credential_program(int argc, char **argv, int *code);
