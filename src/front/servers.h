/*
 * servers: the MCP servers of the configuration for one verb. They have a session of
 * their own with the rights of the agent, and run in its cell as long as the verb runs.
 */
#pragma once
#include "base/err.h"
#include "mcp/client/remotes.h"
#include "policy/config.h"
#include "policy/policy.h"
#include "session/session.h"

#include <stdbool.h>

struct front_servers {
	struct value *settings; /* `mcpServers`, its placeholders filled in; NULL: none */
	struct policy *take_policy; /* of the agent; moved to the session at the start */
	struct loop *loop; /* of the servers, and of each session that uses them */
	struct session *session;
	struct remotes *remotes;
	size_t told; /* the number of problems that have been printed */
	/*
	 * A verb that serves the tools for long sets these before the start. WAIT_MS: the
	 * longest wait for the first list of each server; 0: wait until it has come or
	 * failed. CHANGED is called when the tools have changed (front_servers_tools) and
	 * returns false when the new ones do not fit. ASKS: the verb answers the servers'
	 * questions (EVENT_QUESTION).
	 */
	int64_t wait_ms;
	bool asks;
	bool (*changed)(void *context);
	void *context;
};

/*
 * Read and check the servers in CONFIG; nothing is started. Call front_servers_fini in
 * either case.
 */
bool front_servers_read(struct front_servers *servers, const struct config *config,
			const char *config_path, const char *workspace, struct err *err);

/*
 * Start the servers in a session that OPTIONS describe, except for policy, tools and
 * loop. TOOLS are the tools that exist already. Each server or tool that is left out is
 * named on standard error.
 */
bool front_servers_start(struct front_servers *servers,
			 const struct session_options *options,
			 const struct tool *const *tools, struct err *err);
/*
 * All tools that exist now; valid until `changed` returns. NULL: no server was started.
 */
const struct tool *const *front_servers_tools(const struct front_servers *servers);
/* Call it after the end of the session that used the tools. */
void front_servers_fini(struct front_servers *servers);
