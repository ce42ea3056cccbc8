/*
 * prompt: what an editor sends to a session: the blocks of a prompt become the text that
 * the agent gets, and the MCP servers that the editor hands over become entries of
 * `mcpServers`. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>

enum {
	/* A longer prompt should be a file in the workspace. */
	ACP_PROMPT_MAX = 4 << 20,
	/* As many as a person can mean; together they are bounded by the message. */
	ACP_PROMPT_PICTURES = 10,
};

/*
 * Append the text of BLOCKS, a list of content blocks, to TEXT, and their pictures to
 * PICTURES, a list, in the form of agent_submit. A link to a file becomes the path of the
 * file, and the path is appended to LINKS, a list. The text of a resource stands behind the
 * prompt, with its URI, and marked as from the editor. ERR, a sentence for the client:
 * another kind of block, a block that lacks a member, a picture that no service takes, too
 * much of anything, or nothing at all.
 */
bool acp_prompt_read(const struct value *blocks, struct buf *text, struct value *pictures,
		     struct value *links, struct err *err);

/*
 * Set *SERVERS to the servers of LIST by their names, NULL when there are none; the caller
 * frees it. ERR: a server that is no program and not over HTTP, or two of one name.
 */
bool acp_prompt_servers(const struct value *list, struct value **servers, struct err *err);
