/*
 * library_plugins: loads the plugins that the configuration of a program names. It uses
 * the same copies and the same record of trust as the glovebox program.
 */
#pragma once
#include "base/err.h"
#include "plugins/plugin.h"
#include "policy/config.h"

#include <stdbool.h>

struct library_plugins {
	const char *workspace;  /* real; borrowed */
	const char *program;    /* the program that becomes a cell; borrowed */
	const char *agent;      /* or NULL; borrowed */
	int minimum_level;      /* as session_options have it */
	struct plugins *loaded; /* NULL: the configuration names none */
	char **problems; /* NULL-ended: sources that were left out, and why; or NULL */
};

/*
 * Load the plugins that CONFIG names for an agent with POLICY. CONFIG is not used
 * afterwards. Call library_plugins_fini also after a failure.
 */
bool library_plugins_load(struct library_plugins *plugins, struct config *config,
			  const struct policy *policy, struct err *err);
void library_plugins_fini(struct library_plugins *plugins);
