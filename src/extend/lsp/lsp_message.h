/*
 * lsp_message: the bytes of the Language Server Protocol: messages behind a header with their
 * length, the errors and warnings that a server publishes about a file, places in files, and
 * the lists of symbols and places that it answers with. Nothing here waits or starts anything.
 * A server is a stranger: each size has a ceiling, and what does not fit is dropped or refused.
 *
 * The content of a message is JSON-RPC 2.0, which mcp/message.h reads.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LSP_HEAD_MAX = 4 << 10,  /* bytes of the header of one message */
	LSP_BODY_MAX = 16 << 20, /* bytes of one message */
	LSP_FINDINGS_MAX = 500,  /* of one file; the rest is dropped */
	LSP_LIST_MAX = 200,      /* places or symbols of one answer that are told */
	LSP_TEXT_MAX = 32 << 10, /* bytes of such an answer */
};

/* The bytes of a server, until they are whole messages. */
struct lsp_reader {
	struct buf head, body;
	size_t wanted; /* bytes of the body */
	bool in_body;
};

enum lsp_read { LSP_READ_MORE, LSP_READ_WHOLE, LSP_READ_WRONG };

void lsp_reader_init(struct lsp_reader *reader);
void lsp_reader_clear(struct lsp_reader *reader);
void lsp_reader_fini(struct lsp_reader *reader);
/*
 * Take the bytes of the next message from *BYTES. WHOLE: it is in `body` until the next call.
 * MORE: *BYTES is empty, and the message goes on. WRONG: the bytes are no message, for the reason
 * in ERR, and all that follows cannot be read.
 */
enum lsp_read lsp_reader_take(struct lsp_reader *reader, struct str *bytes, struct err *err);

/* Append the message TEXT with its header. */
bool lsp_message_add(struct str text, struct buf *out);
/* The word of the protocol for the language of the file PATH. */
const char *lsp_message_language(const char *path);

/*
 * Columns of the protocol count units of UTF-16, or bytes where the server says so; those of
 * people count characters from 1. Lines count from 0 there. A place behind the end of a line is
 * at its end.
 */
uint32_t lsp_message_column(struct str text, uint32_t line, uint32_t units, bool in_bytes);
uint32_t lsp_message_units(struct str text, uint32_t line, uint32_t column, bool in_bytes);

enum lsp_severity { LSP_ERROR = 1, LSP_WARNING, LSP_INFORMATION, LSP_HINT };

struct lsp_finding {
	enum lsp_severity severity;
	uint32_t line, units; /* from 0 */
	char *message;        /* its first line, clean */
};

struct lsp_findings {
	struct lsp_finding *items;
	size_t count;
};

void lsp_findings_fini(struct lsp_findings *findings); /* then empty */
/* Move FROM, which is empty afterwards, to TO. */
void lsp_findings_move(struct lsp_findings *to, struct lsp_findings *from);
void lsp_findings_copy(struct lsp_findings *to, const struct lsp_findings *from);
/*
 * Read PARAMS of textDocument/publishDiagnostics. URI is borrowed; *VERSION is -1 where the server
 * names none. False: they are none.
 */
bool lsp_findings_read(const struct value *params, struct str *uri, int64_t *version,
		       struct lsp_findings *findings);
/*
 * Which errors of AFTER, about the text AFTER_TEXT, are not among those of BEFORE, about
 * BEFORE_TEXT? IS_NEW has a member for each. An error that has only moved to another line is not
 * new: its message is compared, first together with the text of its line.
 */
void lsp_findings_compare(const struct lsp_findings *before, struct str before_text,
			  const struct lsp_findings *after, struct str after_text,
			  bool *is_new);
const char *lsp_severity_name(enum lsp_severity severity);

/* Append RESULT of a request for places, a line for each, as paths below WORKSPACE. */
void lsp_message_places(const struct value *result, const char *workspace, struct buf *out);
/* Append RESULT of textDocument/documentSymbol, a line for each. */
void lsp_message_symbols(const struct value *result, struct buf *out);
