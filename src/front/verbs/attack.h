/*
 * attack: the attacks that the program brings along, and their player: each is tried in a
 * cell, where it must fail, and without one, where it must succeed, since else its
 * failing means nothing. The texts are those of tests/cell/ that say `shipped`;
 * dev/embed-attacks makes the table at build time.
 */
#pragma once
#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Who could do it without a cell. */
enum attack_by { ATTACK_BY_ALL, ATTACK_BY_ROOT, ATTACK_BY_NOBODY };

struct attack_file {
	const char *name; /* below the workspace, or "../outside/NAME" */
	const char *text;
	mode_t mode;
};

/* In scripts and files %base%, %work%, %home%, %call%, %glovebox%, %uid% and %pid% are filled in. */
struct attack {
	const char *group, *name;
	const char *attack; /* bash; exits with 0 when it succeeds */
	int code;           /* with which it ends when AFTER alone tells; 0: none */
	const char *bare;   /* without a cell, when other words are needed; or NULL */
	const char *host;   /* before, on the host; or NULL */
	const char *beside; /* meanwhile; it makes %base%/ready when it is there */
	const char *after;  /* must exit with 0 after the attack, on the host */
	enum attack_by bare_by;
	const struct attack_file *files; /* ends with {0}; or NULL */
	const char *const *variables; /* NAME=VALUE of the caller, NULL-ended; or NULL */
	const char *const *needs;     /* programs of the system, NULL-ended; or NULL */
};

/* Ends with a row without a name. */
extern const struct attack attacks[];

struct interrupt;

/* Is there such a group? ERR names those there are. */
bool attack_check_group(const char *group, struct err *err);

/*
 * Play them in folders of their own, which are gone afterwards; who is not root leaves out
 * what only root could do without a cell. A line for each group goes to PROGRESS unless
 * it is NULL. ONLY: those of this group alone, NULL: all. The report has the numbers "held",
 * "shown" and "root_only", the names in "through" and "unshown", "groups" ({"name", "held",
 * "shown"}), and "missing", from the name of a program that is not installed to the number of
 * attacks that need it and were left out. False with ECHILD when no cell can be built, with ENOENT
 * where there is no bash, with ECANCELED when INTERRUPT came, else when the folders cannot be made.
 */
bool attack_play_all(const char *only, FILE *progress, const struct interrupt *interrupt,
		     struct value *report, struct err *err);
