/* remotes_parts: the inside of remotes, for remotes*.c only. */
#pragma once
#include "mcp/remote.h"
#include "mcp/remotes.h"
#include "process/loop.h"

#include <stdint.h>

enum {
	REMOTES_NAME_MAX = 32,      /* of a server: a tool's name begins with it */
	REMOTES_TOOL_NAME_MAX = 64, /* what model services take */
};

/* A tool of a server's. */
struct remotes_tool {
	struct remotes_server *server;
	char *remote_name;     /* the server's own for it */
	struct value *listing; /* owns what the tool points to */
	struct tool tool;
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
	bool settled, down;
};

struct remotes {
	struct session *session;
	struct loop *loop;
	const char *version;
	struct value *servers;
	struct remotes_server *first;
	struct remotes_tool *tools;
	const struct tool **table;
	size_t count; /* of the table */
	struct value *problems;
};

void remotes_note(struct remotes *remotes, const char *server, const char *text);

/* remotes_server.c */
struct remotes_server *remotes_server_new(struct remotes *remotes, const char *name,
					  const struct value *settings);
void remotes_server_start(struct remotes_server *server);
void remotes_server_free(struct remotes_server *server);
/* For struct tool: KEEPER is a struct remotes_tool. */
void remotes_begin(void *keeper, struct running *running);
void remotes_stop(void *keeper, struct running *running);
