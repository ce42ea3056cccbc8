/*
 * extensions: the parts of loading plugins that src/plugins/ may not know: the words of the
 * configuration, the cell in which scripts are examined, and the cell in which git
 * sources are fetched.
 *
 * All MCP servers of a configuration run in the cell of one session that this module
 * opens for them. Each server over HTTP has a cell of its own, which reaches its host and
 * shows the system and its certificates only.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "mcp/client/remotes.h"
#include "plugins/plugin.h"
#include "policy/config.h"
#include "policy/policy.h"
#include "session/session.h"

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
void front_plugins_fini(struct front_plugins *plugins);

/*
 * The MCP servers of the configuration for one verb. They have a session of their own
 * with the rights of the agent, and run in its cell as long as the verb runs.
 */

struct interrupt;

struct front_servers {
	struct value *settings; /* `mcpServers`, its placeholders filled in; NULL: none */
	/*
	 * A verb that lists servers sets this before they are read: an object, which gets the
	 * name of each server whose placeholders cannot be filled in, with the reason. Else such
	 * a server is an error.
	 */
	struct value *lacking;
	struct policy *take_policy; /* of the agent; moved to the session at the start */
	struct loop *loop; /* of the servers, and of each session that uses them */
	struct session *session;
	struct remotes *remotes;
	/* the workspace of bridges' cells, an empty folder; NULL: not made yet */
	char *empty;
	char *tokens_folder, *resolver; /* or NULL */
	int minimum_level;
	size_t told; /* the number of problems that have been printed */
	/*
	 * A verb that serves the tools for long sets these before the start. WAIT_MS: the
	 * longest wait for the first list of each server; 0: wait until it has come or
	 * failed. CHANGED is called when the tools have changed (remotes_tools) and
	 * returns false when the new ones do not fit. ASKS: the questions of servers that
	 * the verb answers (enum remote_asks). TOLD_LATER: problems that come after the
	 * start are printed by front_servers_hear only.
	 */
	int64_t wait_ms;
	bool told_later;
	unsigned asks;
	const struct interrupt *interrupt; /* a signal ends the wait; or NULL */
	bool (*changed)(void *context);
	void *context;
};

/*
 * Read and check the servers in CONFIG and MORE (or NULL), which are not expanded and come
 * behind those of the same names; nothing is started. Call front_servers_fini in either
 * case.
 */
bool front_servers_read(struct front_servers *servers, const struct config *config,
			const char *config_path, const char *workspace,
			const struct value *more, struct err *err);

/*
 * Start the servers in a session that OPTIONS describe, except for policy, tools and
 * loop. TOOLS are the tools that exist already. Each server or tool that is left out is
 * named on standard error.
 */
bool front_servers_start(struct front_servers *servers,
			 const struct session_options *options,
			 const struct tool *const *tools, struct err *err);
/*
 * For a user who does not turn the loop between calls: give late servers a moment, and print the
 * problems that have come.
 */
void front_servers_hear(struct front_servers *servers);
/*
 * Open a cell for a bridge, as in mcp/client/bridged.h; CELLS is a struct front_servers. A
 * caller that uses no front_servers_start has set `loop`, `resolver` and `minimum_level`.
 */
bool front_servers_open_cell(void *cells, const struct value *hosts,
			     struct session **session, struct buf *program,
			     struct err *err);
/* Call it after the end of the session that used the tools. */
void front_servers_fini(struct front_servers *servers);
