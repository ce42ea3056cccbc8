/*
 * plugins: the parts of loading plugins that src/plugins/ may not know: the words of the
 * configuration, the cell in which scripts are examined, and the cell in which git
 * sources are fetched.
 */
#pragma once
#include "base/err.h"
#include "plugins/plugin.h"
#include "policy/config.h"
#include "policy/policy.h"

#include <stdbool.h>

struct front_plugins {
	struct plugins *loaded;
	struct plugin_cell cell; /* the caller sets its borrowed members and its rights */
	/*
	 * a second cell, which lives longer: for previews of calls that a person is asked
	 * about
	 */
	struct plugin_cell asked;
	/* the members below are borrowed while scripts are loaded and examined */
	const char *config_path; /* of the configuration; or NULL */
	const char *agent;       /* the agent that owns the plugins; NULL: none */
	const struct policy_paths *writable; /* of the agent; or NULL */
	const char *resolver;                /* of the configuration; or NULL */
	const struct value *git_hosts;
};

/* How a person asked a verb to load other sources than those of the configuration. */
struct front_plugins_wish {
	const char *named; /* load only this file, folder or git source; or NULL */
	bool trusts;       /* let in sources that are named or changed */
};

/*
 * Load the plugins of CONFIG. The caller has set the borrowed members of PLUGINS. Unless
 * QUIET, each plugin that is left out is named on standard error. Call front_plugins_fini
 * in either case.
 */
bool front_plugins_load(struct front_plugins *plugins, const struct config *config,
			const struct front_plugins_wish *wish, bool quiet, struct err *err);
/*
 * Ask the plugin TOOL for its preview of a call with ARGUMENTS, and put the preview in
 * LINE. False: TOOL is no plugin, or gave no preview within two seconds.
 */
bool front_plugins_preview(struct front_plugins *plugins, const char *tool,
			   const struct value *arguments, struct buf *line);
/* End the cell in which scripts were examined. The cell for previews stays. */
void front_plugins_rest(struct front_plugins *plugins);
void front_plugins_fini(struct front_plugins *plugins);

/*
 * The folder of the configuration CONFIG_PATH (may be NULL), which plugins call
 * CONFIG_DIR. The caller frees the text.
 */
char *front_plugins_folder(const char *config_path);
