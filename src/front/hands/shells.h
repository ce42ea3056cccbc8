/*
 * shells: runs an agent outside, as it is, and gives it a shell whose commands run in one
 * cell, which is kept warm until the agent ends. The agent's own tools for files and
 * the network stay outside.
 *
 * The agent gets a folder of this run, in the person's state: links to this program, which
 * is then the shell (front/hands/shim.h), and a socket. Its variables name the link, or its
 * PATH begins with the folder. A run that was killed leaves its folder behind, and the
 * next one removes it; a lock says which folders are in use. The folder is in no cell.
 *
 * A command takes the way of a process of exec-server: it is a call of the tool `exec` and
 * a step of `glovebox undo`, starts in the folder in which the shim was started, and gets
 * the descriptors of the shim, which are pipes. Of the shim's variables it gets those that
 * the agent has set itself. A variable that the person has set stays outside, and so does one
 * that names a key, or that the cell sets.
 *
 * An agent may want a file that its command writes: `returns` names such files. When the
 * last words of a command that fit were written in the cell, hold at most SHELLS_FILE bytes,
 * and name a folder that the policy shows, then the file is written outside as well.
 */
#pragma once

#include "front/setup.h"
#include "front/verb.h"
#include "front/verbs/exec.h"
#include "policy/policy.h"

#include <stdbool.h>

enum {
	SHELLS_MOST = 128,     /* shims at the same time; more of them wait */
	SHELLS_FILE = 4 << 10, /* bytes of a file of `returns` */
};

struct shells {
	const char *const *argv;              /* the agent, NULL-ended */
	const struct policy_names *variables; /* that name the shell to the agent */
	bool by_path; /* the agent finds the shell in PATH, as bash */
	/* variables of its folder for temporary files, which is WRAP_TEMPORARY then */
	const struct policy_names *temporary;
	const struct policy_names *keys; /* variables that hold keys */
	/* absolute paths, with wildcards in the last name; NULL-ended */
	const char *const *folders; /* are made in the cell before a command that names one */
	const char *const *returns;
};

/*
 * For exec_use; CONTEXT is a struct shells. Runs the agent until it ends. Returns its exit
 * code, or that of a failure, which has been printed. SIGTERM and SIGHUP go on to the
 * agent, which ends with this process.
 */
int shells_run(const void *context, struct setup *setup, const struct options *options,
	       const struct exec_time *time);
