/*
 * remotes: the MCP servers of a configuration (`mcpServers`), each a program in the cell of one
 * session, and their tools as ours, named SERVER_tool. A server over HTTP is a program as well:
 * our own bridge (bridge/bridge.h), in a cell of its own (client/bridged.h). A server that ends is started once more by
 * the next call, and again after each call that it has answered. A server that did not answer at
 * its start is asked again later, after 30 s and then after twice as long each time, up to 10 min.
 *
 * hosted.c of session/ runs a server. remote.c is the conversation without a transport; this module
 * has the server's lines, its restart and the table of tools. The tools are
 * ELSEWHERE: `begin` passes a call on, running_end brings its result, and a call that
 * becomes a job is `moved`. In `glovebox mcp` the table may change later
 * (session_set_tools).
 *
 * A new setting of a server comes with docs/servers.md and
 * tests/fronts/servers_test.py.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "mcp/client/remote.h"
#include "session/session.h"
#include "tool/tool.h"

#include <stdbool.h>

struct remotes;

/*
 * Is VALUE the `mcpServers` of a configuration: {NAME: {command, args, env} or {type, url,
 * headers, oauth}, each with start_s, timeout_s and disabled}? ERR names the server and the key.
 */
bool remotes_check(const struct value *value, struct err *err);

struct remotes_options {
	/* in whose cell the servers run; the session and its loop live longer */
	struct session *session;
	const struct value *servers; /* checked by remotes_check */
	const char *version;
	const struct tool *const *tools; /* the tools that exist already; NULL-ended */
	/*
	 * The longest wait at the start; 0: until each server has listed its tools or has
	 * failed, within its own start_s. The problems name a server that was not waited for.
	 */
	int64_t wait_ms;
	int stop_fd; /* readable: wait no longer at the start; -1: none */
	/* the questions that the user of these tools answers (enum remote_asks) */
	unsigned asks;
	/* for servers over HTTP, as in bridged.h */
	bool (*open_cell)(void *cells, const struct value *hosts,
			  struct session **session, struct buf *program, struct err *err);
	void *cells;
	const char *tokens_folder;
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
/*
 * For a user who has not heard `changed` so far: call it when there are other tools than those of
 * the table.
 */
void remotes_offer(struct remotes *remotes);
/*
 * Turn the loop of the session until no server is about to list its tools, at most MOST_MS. For a
 * user who does not turn the loop between calls.
 */
void remotes_hear(struct remotes *remotes, int64_t most_ms);
/* Call it before the session is closed, and after the users of these tools have ended. */
void remotes_free(struct remotes *remotes);

/* Is TOOL one of a server? Then its names: of the server, and of the tool there; borrowed. */
bool remotes_names(const struct tool *tool, const char **server, const char **remote);

/* A prompt of a server, which a person calls. */
struct remotes_prompt {
	const char *server, *name, *description;
	const struct value *arguments; /* a list of objects with `name`, or NULL */
};
/* The prompt after INDEX others. False: there is none. All members are borrowed. */
bool remotes_prompt(const struct remotes *remotes, size_t index,
		    struct remotes_prompt *prompt);
/*
 * The internal tool (request.made) that gets the text of a prompt. Its arguments: `server`,
 * `name`, and `arguments`, an object of texts.
 */
const struct tool *remotes_prompt_tool(const struct remotes *remotes);

/*
 * The tools of the options, then `read_resource` where a server has resources, then those of the
 * servers; NULL-ended.
 */
const struct tool *const *remotes_tools(const struct remotes *remotes);
/* One server, for a list. */
struct remotes_row {
	const char *name;
	bool over_http, ready, modern;
	size_t tools; /* that are ours now */
};
/* The server after INDEX others, in the order of the configuration. False: there is none. */
bool remotes_row(const struct remotes *remotes, size_t index, struct remotes_row *row);
/* Sentences that say which server or tool was left out, and why. The list grows. */
const struct value *remotes_problems(const struct remotes *remotes);
