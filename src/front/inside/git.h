/*
 * git: this program under the names by which git starts it in a cell. It knows no key in either case.
 */
#pragma once

#include <stdbool.h>

/*
 * Is argv[0] `git-credential-glovebox`, as in a cell that uses the key of a forge (gitcredentials(7))?
 * Then answer git's question on standard input with the user and the phantom, which the broker replaces
 * by the key. The arguments are the server ("https://github.com"), the user and the phantom, and then
 * git's word: `get` is answered for that server, `store` and `erase` do nothing. The settings by which
 * git finds this program are made by cell/directions.c. *CODE becomes the exit code.
 */
bool git_credential_program(int argc, char **argv, int *code);

/*
 * Is argv[0] the name by which git has commits and tags signed (`gpg.ssh.program`)? Then send the text to
 * the door of the cell (ssh/door.h), and the front asks the person. For everything else that git wants of
 * that program (to check signatures) it becomes ssh-keygen. *CODE becomes the exit code.
 */
bool git_sign_program(int argc, char **argv, int *code);
