/*
 * hands: runs an agent outside, as it is, and makes it use the cell as its hands. The agent
 * is told so by one file of its own folder (Codex: environments.toml in CODEX_HOME), and
 * the person's folder is not to be changed. So the agent gets another folder for this run,
 * in the person's state: it holds that file, and a link to everything else in the person's
 * folder, so that login, settings and sessions are the person's as always.
 *
 * Names that the agent makes new in that folder, or puts in the place of a link, are moved
 * to the person's folder at the end. A run that was killed leaves its folder behind, and
 * the next one moves them. A lock says which folders are in use.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"

#include <sys/types.h>

struct hands {
	const char *root;        /* the person's folder of the agent; need not be there */
	const char *variable;    /* that names the folder to the agent */
	const char *const *argv; /* the agent, NULL-ended */
	const char *const *server; /* arguments of this program, for the cell; NULL-ended */
};

/*
 * Run the agent of HANDS until it ends. Returns its exit code, or that of a failure, which
 * has been printed. SIGTERM and SIGHUP go on to the agent, which ends with this process.
 */
int hands_run(const struct hands *hands);

/*
 * Start the agent ARGV (NULL-ended) with the environment of this process, changed by SET, a
 * list of "NAME=VALUE". It dies with this process. Returns its process id, or -1. The agent
 * gets what the person's shell would give it: further descriptors, as of `<(...)`, and
 * signals that nohup(1) ignores. A start by process/program.h would take both away.
 */
pid_t hands_start(const char *const *argv, const struct value *set, struct err *err);
/* Wait for the end of such a process. Returns its exit code as a shell tells it. */
int hands_wait(pid_t pid);

/*
 * A folder in the person's state for the time of one run. Nobody else can open it, and the run holds
 * a lock on it. A folder without a lock is one that a killed run has left: the next run gives it to its
 * caller, who cleans up. PATH, open as AT and locked by us, is such a folder.
 */
typedef void hands_folder_left(void *context, const char *path, int at);

/*
 * Make a folder in BELOW, of the state, whose name begins with BEGINNING. Before that LEFT
 * gets each folder of such a name that nobody holds. FOLDER gets the path, and *HELD is the
 * open folder, locked as long as it is open. The caller removes the folder at the end.
 */
bool hands_folder_open(const char *below, const char *beginning, hands_folder_left *left,
		       void *context, struct buf *folder, int *held, struct err *err);
