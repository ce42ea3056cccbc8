/*
 * library_plugins: the plugins that a program's configuration names, loaded as the glovebox program
 * loads them: the same copies, the same record of what was let in.
 */
#pragma once
#include "base/err.h"
#include "plugins/plugin.h"
#include "policy/config.h"

#include <stdbool.h>

struct library_plugins {
	const char *workspace;  /* real; borrowed */
	const char *program;    /* that becomes a cell; borrowed */
	const char *agent;      /* or NULL; borrowed */
	int minimum_level;      /* as session_options have it */
	struct plugins *loaded; /* NULL: none are named */
	char **problems; /* NULL-ended: sources that were left out, and why; or NULL */
};

/*
 * Load what CONFIG names for an agent that has POLICY. CONFIG is asked for nothing else
 * afterwards. library_plugins_fini in either case.
 */
bool library_plugins_load(struct library_plugins *plugins, struct config *config,
			  const struct policy *policy, struct err *err);
void library_plugins_fini(struct library_plugins *plugins);
