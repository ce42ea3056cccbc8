/*
 * plugins: what src/plugins/ may not know: the configuration's words, the cell that scripts are
 * looked at from, and the one that git sources are fetched in.
 */
#pragma once
#include "base/err.h"
#include "plugins/plugin.h"
#include "policy/config.h"
#include "policy/policy.h"

#include <stdbool.h>

struct front_plugins {
	struct plugins *loaded;
	struct plugin_cell cell; /* its borrowed members and its rights are the caller's to set */
	/* the same, that outlasts it: for previews of calls that a person is asked about */
	struct plugin_cell asked;
	/* borrowed while loading and looking */
	const char *config_path;             /* of the configuration; or NULL */
	const char *agent;                   /* whose plugins they are; NULL: nobody's */
	const struct policy_paths *writable; /* of the agent; or NULL */
	const char *resolver;                /* of the configuration; or NULL */
	const struct value *git_hosts;
};

/* How a person has a verb load sources, beside the configuration's. */
struct front_plugins_wish {
	const char *named; /* this file, folder or git source only; NULL: those of CONFIG */
	bool trusts;       /* let in what is named, or changed */
};

/*
 * Load the plugins of CONFIG. PLUGINS' borrowed members are set. What was left out is told on
 * standard error unless QUIET. front_plugins_fini in either case.
 */
bool front_plugins_load(struct front_plugins *plugins, const struct config *config,
			const struct front_plugins_wish *wish, bool quiet, struct err *err);
/*
 * What the plugin TOOL says in its preview of a call with ARGUMENTS, in LINE. False: it is none, or
 * says nothing within two seconds.
 */
bool front_plugins_preview(struct front_plugins *plugins, const char *tool,
			   const struct value *arguments, struct buf *line);
/* Nothing is looked at any more, but for previews: the cell that did so ends. */
void front_plugins_rest(struct front_plugins *plugins);
void front_plugins_fini(struct front_plugins *plugins);

/* The folder of the configuration at CONFIG_PATH (or NULL): CONFIG_DIR. The caller frees it. */
char *front_plugins_folder(const char *config_path);
