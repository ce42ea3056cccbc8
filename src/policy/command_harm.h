/*
 * command_harm: commands that destroy much, in one table: what each does, and the next
 * step. A person is asked about most of them where one can be; nobody there, they run,
 * since the cell and undo hold what they do. The table goes by the commands that can
 * be seen, and is no wall.
 *
 * Each command that can be seen in a text (base/text/shell.h) is shown to the rules
 * that deny or ask, and to this table. Where only listed commands run, the list
 * decides after that; commands.h has the order. A new row also belongs in
 * docs/policy.md and tests/unit/policy/command_judge_test.c, together with commands
 * that must not be asked about.
 */
#pragma once

#include "base/text/shell.h"

#include <stdbool.h>

struct policy;

/*
 * The commands that can be seen in a shell text or an argument vector, each with its
 * working folder: commands of the text itself, behind `sudo`, `env` and the like, in
 * the text of `bash -c` and `eval`, and behind -exec of find. Commands of scripts, and
 * words that only the shell knows, are not seen.
 */

struct command_seen {
	const struct shell_command *command; /* has at least a name */
	const char *folder;                  /* absolute and normal; NULL: not known */
};

/* Called for each command. Returning false ends the walk. */
struct command_visit {
	bool (*visit)(void *context, const struct command_seen *seen);
	void *context;
};

/*
 * FOLDER: the folder where TEXT, or the program of ARGV (NULL-ended), starts; NULL: not
 * known.
 */
void command_seen_text(struct str text, const char *folder,
		       const struct command_visit *visit);
void command_seen_argv(const char *const *argv, const char *folder,
		       const struct command_visit *visit);

struct command_harm {
	const char *name; /* "git push --force" */
	/*
	 * Ask a person, because undo cannot restore all of it, or because everything
	 * would be lost.
	 */
	bool asks;
	bool (*fits)(const struct command_seen *seen, const struct policy *policy);
	const char *does; /* a clause behind its name */
	const char *next; /* a sentence */
};

/*
 * The row for the harm of SEEN to the workspace and folders of POLICY; NULL: no great
 * harm.
 */
const struct command_harm *command_harm_find(const struct command_seen *seen,
					     const struct policy *policy);
