/*
 * batch: several messages sent as one, which MCP 2025-03-26 alone had (JSON-RPC 2.0, section 6).
 * Each is taken as if it had come by itself; what answers them goes back as one list, when the
 * last answer is there. Notices and questions on the way go out at once.
 */
#pragma once
#include "mcp/server/mcp.h"

enum {
	/*
	 * Messages in one batch. Answers wait for each other in memory, and nobody writes as many
	 * by hand.
	 */
	MCP_BATCH_MAX = 64,
};

/*
 * Take BATCH (of kind MCP_BATCH) of PEER. False: nothing in it is to be answered. One that may not
 * come, because the version has none or it is too long, is answered as a whole.
 */
bool mcp_batch_take(struct mcp_peer *peer, struct mcp_way *way,
		    const struct mcp_message *batch, enum mcp_manner manner);
/* OUTER is closed: so are the ways of the batches that came by it. */
void mcp_batches_gone(struct mcp *mcp, const struct mcp_way *outer);
