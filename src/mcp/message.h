/*
 * message: one JSON-RPC 2.0 message as MCP has it, read from text that nobody vouches for.
 * Ids are texts or integers, params are objects. A batch, which only MCP 2025-03-26 had, is a list
 * of these (mcp.h). Also: the versions there are, and the reserved names that MCP puts into one.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

/* Versions of the protocol, in their order. The last is the modern era, the others legacy. */
enum mcp_version {
	MCP_2024_11_05,
	MCP_2025_03_26,
	MCP_2025_06_18,
	MCP_2025_11_25,
	MCP_2026_07_28,
	MCP_VERSIONS,
};
const char *mcp_version_name(enum mcp_version version);
/* MCP_VERSIONS: NAME, or NULL, is none of these. */
enum mcp_version mcp_version_find(const char *name);

/* Reserved keys of `_meta`. */
#define MCP_META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CLIENT       "io.modelcontextprotocol/clientCapabilities"
#define MCP_META_CLIENT_INFO  "io.modelcontextprotocol/clientInfo"
#define MCP_META_LOG          "io.modelcontextprotocol/logLevel"
#define MCP_META_SERVER       "io.modelcontextprotocol/serverInfo"
#define MCP_META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"
/* The opening of the modern era. */
#define MCP_DISCOVER "server/discover"

enum mcp_kind { MCP_REQUEST = 1, MCP_NOTIFICATION, MCP_RESPONSE, MCP_BATCH };

enum {
	MCP_MESSAGE_MAX = 16 << 20, /* bytes of one message from a client */
	MCP_ID_MAX = 1024,          /* bytes of an id that is text */
};

/* Codes of errors: JSON-RPC 2.0, then MCP's own. */
enum mcp_code {
	MCP_CODE_NO_RESOURCE = -32002, /* until 2025-11-25; MCP_CODE_PARAMS later */
	MCP_CODE_HEADER = -32020, /* a header of HTTP does not say what the body says */
	MCP_CODE_CAPABILITY = -32021, /* the client lacks what the request needs */
	MCP_CODE_VERSION = -32022,    /* of the protocol, which is not spoken here */
	MCP_CODE_INVALID = -32600,
	MCP_CODE_METHOD = -32601,
	MCP_CODE_PARAMS = -32602,
	MCP_CODE_INTERNAL = -32603,
	MCP_CODE_PARSE = -32700,
};

struct mcp_message {
	enum mcp_kind kind;
	struct value *whole;    /* owns the others; of a batch the list of its messages */
	const struct value *id; /* NULL: it has none that could be answered */
	const char *method;     /* NULL for a response */
	const struct value *params; /* an object, or NULL */
	const struct value *result; /* of a response; NULL: it is an error */
	const struct value *error;  /* of a response, or NULL */
	size_t bytes;               /* of its text; 0: it came in a batch */
};

/*
 * False: ERR has the sentence, its code is an mcp_code, and MESSAGE->id is the id to answer
 * it under, if there is one. mcp_message_fini in either case.
 */
bool mcp_message_read(struct str text, struct mcp_message *message, struct err *err);
/* The same of a member of a batch, which is not kept. Batches hold no batches. */
bool mcp_message_of(const struct value *value, struct mcp_message *message, struct err *err);
void mcp_message_fini(struct mcp_message *message);

/*
 * Texts with places in them: "{{name}}" in prompts and resources, "{name}" in the
 * templates of URIs (RFC 6570, level 1, whose values hold no slash).
 */

/* Append TEXT; each {{name}} that VALUES (an object of texts) has is replaced. */
bool message_fill_add(struct str text, const struct value *values, struct buf *out);
/* Does TEXT have a place at all? */
bool message_fill_has_place(struct str text);
/* Does URI come of TEMPLATE? Then VALUES (an object) gets what stood in each place. */
bool message_fill_match(struct str template, struct str uri, struct value *values);

/*
 * Signs text that a client must send back unchanged: HMAC-SHA-256 (RFC 2104) with a key
 * of this process.
 */

enum { SEAL_KEY = 32 };

struct seal_key {
	uint8_t bytes[SEAL_KEY];
};

/* A key that nobody knows. */
void seal_key_make(struct seal_key *key);
/* SIZE - 1 hex digits that nobody had before, and an end. */
void message_seal_name_make(char *name, size_t size);
/* Append TEXT, a dot and its seal, which is valid for PURPOSE only. */
void message_seal_add(const struct seal_key *key, struct str purpose, struct str text,
		      struct buf *sealed);
/* Did message_seal_add make SEALED for PURPOSE? Then *TEXT is its part before the seal. */
bool message_seal_check(const struct seal_key *key, struct str purpose, struct str sealed,
			struct str *text);
