/*
 * servers: the MCP servers of the configuration for one verb: a session of their own, with the
 * rights of the agent, in whose cell they run as long as the verb does.
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
	struct policy *take_policy; /* of the agent; moved when they are started */
	struct loop *loop; /* theirs, and of every session that uses their tools */
	struct session *session;
	struct remotes *remotes;
	size_t told; /* of the problems */
	/*
	 * Set before they are started, by whoever serves their tools for long: do not wait longer
	 * than that for the first list of each, and hear of it when the tools are others
	 * (front_servers_tools; false: they do not fit); who asks their questions answers EVENT_QUESTION.
	 */
	int64_t wait_ms;
	bool asks;
	bool (*changed)(void *context);
	void *context;
};

/* What CONFIG says of them, checked; nothing is started. front_servers_fini in either case. */
bool front_servers_read(struct front_servers *servers, const struct config *config,
			const char *config_path, const char *workspace, struct err *err);

/*
 * Start them in a session that OPTIONS describe but for policy, tools and loop. TOOLS are those
 * there are already. What was left out is told on standard error.
 */
bool front_servers_start(struct front_servers *servers,
			 const struct session_options *options,
			 const struct tool *const *tools, struct err *err);
/* All tools that there are now; valid until `changed` returns. NULL: none was started. */
const struct tool *const *front_servers_tools(const struct front_servers *servers);
/* After the session that used them. */
void front_servers_fini(struct front_servers *servers);
