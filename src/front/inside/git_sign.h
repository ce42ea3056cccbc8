/*
 * git_sign: our program in the cell under the name by which git has commits and tags
 * signed (`gpg.ssh.program`). It has no key: it sends the text to the door of the cell
 * (ssh/door.h), and the front asks the person. For everything else that git wants of that
 * program (to check signatures) it becomes ssh-keygen.
 */
#pragma once

#include <stdbool.h>

/* Is this process that program? Then *CODE becomes the exit code. */
bool git_sign_program(int argc, char **argv, int *code);
