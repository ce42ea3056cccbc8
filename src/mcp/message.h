/*
 * message: one JSON-RPC 2.0 message of MCP, read from text that is not trusted. Ids are
 * texts or integers, params are objects. A list of messages (a batch, which only MCP
 * 2025-03-26 had) is no message; the client reads the members of a server's list one by
 * one. Also here: the known versions, and the names that MCP reserves in a message.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

/*
 * The versions of the protocol, the oldest first. The last one is the modern era, the
 * others are the legacy era.
 */
enum mcp_version {
	MCP_2024_11_05,
	MCP_2025_03_26,
	MCP_2025_06_18,
	MCP_2025_11_25,
	MCP_2026_07_28,
	MCP_VERSIONS,
};
const char *mcp_version_name(enum mcp_version version);
/* Returns MCP_VERSIONS when NAME is NULL or no known version. */
enum mcp_version mcp_version_find(const char *name);

/* Reserved keys of `_meta`. */
#define MCP_META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CLIENT       "io.modelcontextprotocol/clientCapabilities"
#define MCP_META_CLIENT_INFO  "io.modelcontextprotocol/clientInfo"
#define MCP_META_LOG          "io.modelcontextprotocol/logLevel"
#define MCP_META_SERVER       "io.modelcontextprotocol/serverInfo"
#define MCP_META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"
/* The first request of a client of the modern era. */
#define MCP_DISCOVER "server/discover"

enum mcp_kind { MCP_REQUEST = 1, MCP_NOTIFICATION, MCP_RESPONSE };

enum {
	MCP_MESSAGE_MAX = 16 << 20, /* bytes of one message from a client */
	MCP_ID_MAX = 1024,          /* bytes of an id that is text */
};

/* Codes of errors: JSON-RPC 2.0, then MCP's own. */
enum mcp_code {
	MCP_CODE_NO_RESOURCE = -32002, /* until 2025-11-25; MCP_CODE_PARAMS later */
	MCP_CODE_HEADER = -32020,      /* a header of HTTP differs from the body */
	/* the client lacks a capability that the request needs */
	MCP_CODE_CAPABILITY = -32021,
	/* a bound of the service is reached; `data` says which (mcp_busy) */
	MCP_CODE_BUSY = -32011,
	/* the server does not speak this version of the protocol */
	MCP_CODE_VERSION = -32022,
	MCP_CODE_INVALID = -32600,
	MCP_CODE_METHOD = -32601,
	MCP_CODE_PARAMS = -32602,
	MCP_CODE_INTERNAL = -32603,
	MCP_CODE_PARSE = -32700,
};

struct mcp_message {
	enum mcp_kind kind;
	struct value *whole;        /* owns all other values */
	const struct value *id;     /* NULL: it has no id by which it could be answered */
	const char *method;         /* NULL for a response */
	const struct value *params; /* an object, or NULL */
	const struct value *result; /* of a response; NULL: the response is an error */
	const struct value *error;  /* of a response, or NULL */
	size_t bytes;               /* of its text; 0: it was read from a value */
};

/*
 * Parse TEXT, which is one message. False: ERR has the sentence, its code is an mcp_code, and MESSAGE->id is
 * the id for the answer, if TEXT has one. Call mcp_message_fini in either case.
 */
bool mcp_message_read(struct str text, struct mcp_message *message, struct err *err);
/* Read VALUE, which is borrowed, as one message. */
bool mcp_message_of(const struct value *value, struct mcp_message *message, struct err *err);
void mcp_message_fini(struct mcp_message *message);
/*
 * The part of a request or notification that the header Mcp-Name repeats; empty: its method needs
 * no such header.
 */
struct str mcp_message_name(const struct mcp_message *message);

/*
 * Texts with places in them: "{{name}}" in prompts and resources, "{name}" in the
 * templates of URIs (RFC 6570, level 1, whose values hold no slash).
 */

/* Append TEXT; each {{name}} that VALUES (an object of texts) has is replaced. */
bool message_fill_add(struct str text, const struct value *values, struct buf *out);
/* Does TEXT have any place? */
bool message_fill_has_place(struct str text);
/* Does URI fit TEMPLATE? Then VALUES (an object) gets the text in each place. */
bool message_fill_match(struct str template, struct str uri, struct value *values);

/*
 * Signs text that a client must send back unchanged: HMAC-SHA-256 (RFC 2104) with a key
 * of this process.
 */

enum { SEAL_KEY = 32 };

struct seal_key {
	uint8_t bytes[SEAL_KEY];
};

/* Make a random key. */
void seal_key_make(struct seal_key *key);
/* Fill NAME with SIZE - 1 random hex digits, which no earlier name had, and a NUL. */
void message_seal_name_make(char *name, size_t size);
/* Append TEXT, a dot and its seal, which is valid for PURPOSE only. */
void message_seal_add(const struct seal_key *key, struct str purpose, struct str text,
		      struct buf *sealed);
/* Did message_seal_add make SEALED for PURPOSE? Then *TEXT is its part before the seal. */
bool message_seal_check(const struct seal_key *key, struct str purpose, struct str sealed,
			struct str *text);
