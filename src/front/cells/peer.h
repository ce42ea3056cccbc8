/*
 * peer: the front behind a cell of `glovebox start`, as another process of this user talks to
 * it: over its socket (place.h), by the wire of serve/engine.h.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "front/cells/place.h"
#include "mcp/message.h"
#include "process/loop.h"
#include "serve/caller.h"

#include <stdbool.h>
#include <stdint.h>

enum { CELLS_ANSWER_MS = 5000 }; /* an answer that needs no work comes in far less */

struct cells_peer {
	const char *name; /* of the cell; borrowed */
	struct loop *loop;
	struct cells_found found;
	int fd; /* -1: not connected */
	struct caller caller;
	/* Takes the messages that nobody waits for; or NULL. */
	void (*take)(void *context, const struct mcp_message *message);
	void *context;
	int interrupt_fd; /* readable: waits end early; -1: none */
	/* an answer that cells_peer_ask waits for, and the answer */
	int64_t awaited;
	struct value *answer;
	/* The front has closed the connection, e.g. because it has too many callers; and why. */
	bool turned_away;
	struct err turned;
};

/*
 * Find the cell NAME and connect to it. PEER->loop is made by the owner and outlives PEER; all
 * else begins zero. UNTIL is that of cells_place_find. False: ERR says why not, and its code is
 * ENOENT where there is no such cell. Call cells_peer_close in either case.
 */
bool cells_peer_open(struct cells_peer *peer, const char *name, int64_t until,
		     struct loop *loop, struct err *err);
void cells_peer_close(struct cells_peer *peer);

/* Send a request with TAKE_PARAMS, to which the cell is added. Returns its number. */
int64_t cells_peer_send(struct cells_peer *peer, const char *method,
			struct value *take_params);
/* Hand over the messages that have come, and send what waits; once in each turn of the loop. */
void cells_peer_settle(struct cells_peer *peer);
/* Can nothing more come? */
bool cells_peer_is_lost(const struct cells_peer *peer);
/*
 * Send a request and wait for the answer, for LIMIT_MS. The caller owns *RESULT (may be NULL).
 * False: ERR has the sentence of the refusal. Its code is that of JSON-RPC (negative), ETIMEDOUT,
 * ECONNRESET, or EINTR.
 */
bool cells_peer_ask(struct cells_peer *peer, const char *method, struct value *take_params,
		    int limit_ms, struct value **result, struct err *err);
/* Put the sentence of ERROR, of a response, into ERR, with its remedy. Always false. */
bool cells_peer_refused(const struct value *error, struct err *err);
