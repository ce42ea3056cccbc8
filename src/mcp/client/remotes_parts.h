/* remotes_parts: the inside of remotes, for remotes*.c only. */
#pragma once
#include "mcp/client/remote.h"
#include "mcp/client/remotes.h"
#include "process/loop.h"

#include <stdint.h>

enum {
	REMOTES_NAME_MAX = 32,      /* of a server: a tool's name begins with it */
	REMOTES_TOOL_NAME_MAX = 64, /* what model services take */
	REMOTES_MADE_MAX = 1024, /* tools of one server, those that are no more with them */
};

/* Of a call, unless its server's settings say otherwise. */
#define REMOTES_TIMEOUT_S 60.0

/* A tool of a server's. */
struct remotes_tool {
	struct remotes_server *server;
	char *remote_name;     /* the server's own for it */
	struct value *listing; /* owns what the tool points to */
	struct tool tool;
	bool refused; /* it cannot be ours */
	bool listed; /* it was there when its server listed its tools last, and as it was */
	bool told;   /* that it has changed */
	struct remotes_tool *next;
};

struct remotes_server {
	struct remotes *remotes;
	struct remotes_server *next;
	char *name;
	const struct value *settings;
	struct remote *remote;
	struct tool exec; /* that carries it out: `exec`, with its environment */
	struct value *carried, *no_schema;
	struct running *running; /* the call that is the program; NULL: none */
	int given[3];            /* its ends of the pipes, until it has them */
	struct watch input, output, error;
	struct timer restart, goodbye;
	struct buf line, queue, words; /* begun; to be written; the end of its stderr */
	unsigned generation;           /* how often it was started */
	unsigned restarts_left;
	size_t made; /* tools of its */
	bool settled, down;
};

struct remotes {
	struct session *session;
	struct loop *loop;
	const char *version;
	struct value *servers;
	struct remotes_server *first;
	struct remotes_tool *tools, *last_tool; /* all there ever were, in that order */
	const struct tool *const *own;          /* that there were before */
	const struct tool **first_table, **table;
	struct value *problems;
	bool asks;
	bool (*changed)(void *context);
	void *context;
	bool started, ending;
};

/* SERVER has listed its tools, for the first time or anew. */
void remotes_take_tools(struct remotes_server *server);
/*
 * Tell the user of the table to read it and the problems anew. False: it cannot be used.
 */
bool remotes_tell(struct remotes *remotes);
/* remotes_check.c: 1 to MOST characters that may be in the name of a tool. */
bool remotes_is_name(const char *name, size_t most);
/* One more of its problems: SENTENCE names the server. */
void remotes_note(struct remotes *remotes, const char *sentence);

/* remotes_server.c */
struct remotes_server *remotes_server_new(struct remotes *remotes, const char *name,
					  const struct value *settings);
void remotes_server_start(struct remotes_server *server);
void remotes_server_free(struct remotes_server *server);
/* For struct tool: KEEPER is a struct remotes_tool. */
void remotes_begin(void *keeper, struct running *running);
void remotes_stop(void *keeper, struct running *running);
void remotes_moved(void *keeper, struct running *running, struct running *work);
void remotes_answered(void *keeper, struct running *running, const struct value *answer);
