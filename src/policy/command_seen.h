/*
 * command_seen: the commands that can be seen in a shell text or an argument vector, each with
 * the folder it would run in: those of the text, behind `sudo`, `env` and their like, in the
 * text of `bash -c` and `eval`, and behind find's -exec. Commands of scripts, and words that
 * only the shell knows, are not seen.
 */
#pragma once
#include "base/text/shell.h"

#include <stdbool.h>

enum {
	COMMAND_INNER_MAX = 4,    /* texts and finds within such that are looked into */
	COMMAND_FOLDERS_MAX = 16, /* subshells within subshells whose folders are known */
};

struct command_seen {
	const struct shell_command *command; /* at least its name */
	const char *folder;                  /* absolute and normal; NULL: not known */
};

/* Called for each; false ends the looking. */
struct command_visit {
	bool (*visit)(void *context, const struct command_seen *seen);
	void *context;
};

/* FOLDER: where TEXT, or the program of ARGV (NULL-ended), is started; NULL: not known. */
void command_seen_text(struct str text, const char *folder,
		       const struct command_visit *visit);
void command_seen_argv(const char *const *argv, const char *folder,
		       const struct command_visit *visit);
