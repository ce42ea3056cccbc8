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
	struct session *session; /* that looks: made when it is wanted; or NULL */
	/* borrowed while loading and looking */
	const char *workspace;
	const struct tool *const *tools;     /* that there are already */
	const char *config_path;             /* of the configuration; or NULL */
	const struct policy_paths *writable; /* of the agent; or NULL */
	struct policy *take_policy; /* of the agent, but reading only; moved when it is used */
	const char *resolver;       /* of the configuration; or NULL */
	int minimum_level;
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
/* Nothing is looked at any more: the cell that did so ends. */
void front_plugins_rest(struct front_plugins *plugins);
void front_plugins_fini(struct front_plugins *plugins);

/* The folder of the configuration at CONFIG_PATH (or NULL): CONFIG_DIR. The caller frees it. */
char *front_plugins_folder(const char *config_path);

/* One look at a script, in the cell that only reads. RESULT is initialised. */
bool front_plugins_look(void *plugins, const struct plugin_look *look,
			struct tool_result *result, struct err *err);
