/*
 * attack: the attacks that are built into the program, and the code that plays them. Each
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
	int code;           /* its exit code, when only `after` tells its effect; or 0 */
	const char *bare;   /* other words for the attack without a cell; or NULL */
	const char *host;   /* runs before the attack, on the host; or NULL */
	const char *beside; /* runs beside the attack; first makes %base%/ready */
	const char *after;  /* runs after the attack, on the host; must exit with 0 */
	enum attack_by bare_by;
	const struct attack_file *files; /* ends with {0}; or NULL */
	const char *const *variables; /* NAME=VALUE of the caller, NULL-ended; or NULL */
	const char *const *needs;     /* programs of the system, NULL-ended; or NULL */
};

/* Ends with a row without a name. */
extern const struct attack attacks[];

struct interrupt;

/* Does the group exist? ERR names the groups that exist. */
bool attack_check_group(const char *group, struct err *err);

/*
 * Play the attacks in folders of their own, which are removed afterwards. Without root's
 * rights, attacks that only root could do without a cell are left out. A line for each
 * group goes to PROGRESS unless it is NULL. ONLY: play only the attacks of this group;
 * NULL: all. The report has the numbers "held", "shown" and "root_only", the names in
 * "through" and "unshown", "groups" ({"name", "held", "shown"}), and "missing", from the
 * name of a program that is not installed to the number of attacks that need it and were
 * left out. False with ECHILD when no cell can be built, with ENOENT where there is no
 * bash, with ECANCELED when INTERRUPT came, else when the folders cannot be made.
 */
bool attack_play_all(const char *only, FILE *progress, const struct interrupt *interrupt,
		     struct value *report, struct err *err);
