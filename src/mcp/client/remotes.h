/*
 * remotes: the MCP servers of a configuration (`mcpServers`), each a program in the cell of one
 * session, and their tools as ours, named SERVER_tool. A server that ends is started once more by
 * the next call, and again after each call that it has answered.
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
	bool asks; /* who uses their tools answers EVENT_QUESTION */
	/*
	 * After the beginning: remotes_tools is another table, or remotes_problems has more. The
	 * table there was before is valid until this returns, the first one and all tools to the end.
	 * False: the new one cannot be used, and is not there.
	 */
	bool (*changed)(void *context);
	void *context;
};

/*
 * Start them all, at once, and wait: what went wrong with one is among the problems, and its
 * tools are not there. One that is late joins when it has listed its tools.
 */
struct remotes *remotes_start(const struct remotes_options *options);
/* Before the session is closed, and after those whose tools these were. */
void remotes_free(struct remotes *remotes);

/* OPTIONS' tools, then theirs; NULL-ended. */
const struct tool *const *remotes_tools(const struct remotes *remotes);
/* Sentences: which server or tool was left out, and why. It grows. */
const struct value *remotes_problems(const struct remotes *remotes);
