/*
 * headers: the headers of HTTP that belong to MCP: those that repeat what a request of the
 * modern era says, and those of an answer. A tool marks by "x-mcp-header" which of its
 * arguments are repeated as Mcp-Param-NAME; a mark may stand only on a text, an integer or
 * a boolean that is reached through `properties`.
 *
 * Pure. Schemas and answers come from servers.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"
#include "mcp/message.h"

#include <stdbool.h>

/* The most bytes of the headers of one answer. */
enum { HEADERS_MAX = 64 << 10 };

/*
 * Append to LIST (an array of texts, "Name: value") the headers that repeat MESSAGE, a
 * request of VERSION. SCHEMA is that of the called tool, or NULL.
 */
void headers_repeat(const struct mcp_message *message, const char *version,
		    const struct value *schema, struct value *list);
/*
 * Append "NAME: VALUE" to LIST. A VALUE that a header cannot have is written in Base64
 * between =?base64? and ?=.
 */
void headers_add(struct value *list, const char *name, struct str value);

/* Are the marks in SCHEMA as they must be? WHY gets the reason if not. */
bool headers_marks_fit(const struct value *schema, const char **why);

/*
 * Find the header NAME in BLOCK, the lines of an answer's head. The first one counts.
 * False: there is none.
 */
bool headers_find(struct str block, const char *name, struct str *value);

/*
 * Find the parameter NAME of a Bearer challenge in BLOCK, which may have several
 * WWW-Authenticate headers, and append its value. False: there is none.
 */
bool headers_challenge(struct str block, const char *name, struct buf *value);
