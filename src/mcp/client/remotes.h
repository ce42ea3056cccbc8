/*
 * remotes: the MCP servers of a configuration (`mcpServers`), each a program in the cell of one
 * session, and their tools as ours, named SERVER_tool. A server that ends is started once more by
 * the next call, and again after each call that it has answered.
 *
 * The internal tool `exec` runs a server on pipes of the front, in a worker that
 * serves nothing else. remote.c is the conversation without a transport; this module
 * has the program, its lines, its restart and the table of tools. The tools are
 * ELSEWHERE: `begin` passes a call on, running_end brings its result, and a call that
 * becomes a job is `moved`. In `glovebox mcp` the table may change later
 * (session_set_tools).
 *
 * A new setting of a server comes with docs/servers.md and
 * tests/fronts/servers_test.py.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "session/session.h"
#include "tool/tool.h"

#include <stdbool.h>

struct remotes;

/*
 * Is VALUE the `mcpServers` of a configuration: {NAME: {command, args, env, start_s, timeout_s,
 * disabled}}?
 * ERR names the server and the key.
 */
bool remotes_check(const struct value *value, struct err *err);

struct remotes_options {
	struct session *session; /* in whose cell they run; it and its loop live longer */
	const struct value *servers; /* checked */
	const char *version;
	const struct tool *const *tools; /* that there are already; NULL-ended */
	/*
	 * How long to wait at the beginning; 0: until each has listed its tools or has failed, for
	 * which each has its start_s.
	 */
	int64_t wait_ms;
	bool asks; /* the user of their tools answers EVENT_QUESTION */
	/*
	 * Called after the start when remotes_tools has a new table or remotes_problems
	 * has grown. The table before stays valid until this callback returns; the first
	 * table and all tools stay valid to the end. Return false when the new table
	 * cannot be used: the old one is restored.
	 */
	bool (*changed)(void *context);
	void *context;
};

/*
 * Start all servers at the same time and wait. A server that fails is among the problems
 * and has no tools. The tools of a late server join when it has listed them.
 */
struct remotes *remotes_start(const struct remotes_options *options);
/* Before the session is closed, and after those whose tools these were. */
void remotes_free(struct remotes *remotes);

/* OPTIONS' tools, then theirs; NULL-ended. */
const struct tool *const *remotes_tools(const struct remotes *remotes);
/* Sentences that say which server or tool was left out, and why. The list grows. */
const struct value *remotes_problems(const struct remotes *remotes);
