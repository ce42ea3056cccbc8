/*
 * bridged: the front's end of a bridge (bridge/bridge.h): the cell that it needs, the socket
 * by which it is steered, and the file of its tokens. The messages of MCP pass by; they are
 * the owner's.
 *
 * The settings, tokens among them, go to the bridge over this socket. They are in no
 * command line, in no environment and in no event.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "process/loop.h"
#include "session/session.h"

#include <stdbool.h>

struct bridged;

/* The most hosts besides that of the server: those of its authorization server. */
enum { BRIDGED_HOSTS_MAX = 4 };

struct bridged_options {
	struct loop *loop;
	const char *name;
	const struct value *settings; /* of the server, checked by remotes_check */
	const char *tokens_folder;    /* NULL: tokens are kept nowhere */
	const char *task;             /* bridge/auth.h */
	const char *redirect;         /* or NULL */
	/*
	 * Open a session whose cell reaches HOSTS (a list of host:port) and shows nothing
	 * that is a person's, on `loop`. PROGRAM gets the path of our own program there.
	 */
	bool (*open_cell)(void *cells, const struct value *hosts,
			  struct session **session, struct buf *program, struct err *err);
	void *cells;
	/* The server cannot be used: PHRASE follows its name. */
	void (*fails)(void *owner, const char *phrase);
	/* The bridge needs another cell: close this one and open it again, in a later turn. */
	void (*moves)(void *owner);
	/* A line of the bridge that is not handled here; or NULL. */
	void (*tells)(void *owner, const struct value *line);
	void *owner;
};

/* All is borrowed. */
struct bridged *bridged_new(const struct bridged_options *options);
/* Closes. NULL is fine. */
void bridged_free(struct bridged *bridged);

/*
 * Open the cell and the socket. *SESSION is the cell's, until bridged_close; *FD is the
 * program's end, for its standard error.
 */
bool bridged_open(struct bridged *bridged, struct session **session, int *fd,
		  struct err *err);
/* Close the cell, whose calls are over, and the socket; unlock the tokens. */
void bridged_close(struct bridged *bridged);

/* The arguments by which the internal tool `exec` starts the bridge. */
struct value *bridged_arguments(const struct bridged *bridged);
/* Take what the bridge has told by now. To be called when its program has ended. */
void bridged_hear(struct bridged *bridged);
/* Send the bridge TAKE_LINE, as the answer to the last line that `tells` got. */
void bridged_tell(struct bridged *bridged, struct value *take_line);
/* Other lines that the program printed, of its libraries: its last words. */
struct str bridged_words(const struct bridged *bridged);
