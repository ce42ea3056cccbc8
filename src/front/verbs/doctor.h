/*
 * doctor: the attacks that are built into the program, and the code that plays them. Each
 * attack is played in a cell, where it must fail, and without a cell, where it must
 * succeed: else its failure in the cell would prove nothing. The texts are those of
 * tests/cell/ that say `shipped`; dev/embed-attacks makes the table at build time.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* The users for whom the attack succeeds without a cell. */
enum attack_by { ATTACK_BY_ALL, ATTACK_BY_ROOT, ATTACK_BY_NOBODY };

struct attack_file {
	const char *name; /* below the workspace, or "../outside/NAME" */
	const char *text;
	mode_t mode;
};

/*
 * In scripts and files %base%, %work%, %home%, %call%, %glovebox%, %uid% and %pid% are
 * replaced.
 */
struct attack {
	const char *group, *name;
	const char *attack; /* bash; exits with 0 when it succeeds */
	int code;           /* of a complete attack that only `after` judges; or 0 */
	const char *bare;   /* other words for the attack without a cell; or NULL */
	const char *host;   /* runs before the attack, on the host; or NULL */
	const char *beside; /* runs beside the attack; first makes %base%/ready */
	const char *after;  /* runs after the attack, on the host; must exit with 0 */
	enum attack_by bare_by;
	const struct attack_file *files; /* ends with {0}; or NULL */
	const char *const *variables; /* NAME=VALUE of the caller, NULL-ended; or NULL */
	const char *const *options;   /* of `exec`, NULL-ended; or NULL */
	const char *const *needs;     /* programs of the system, NULL-ended; or NULL */
};

/* Ends with a row without a name. */
extern const struct attack attacks[];
