/*
 * Fuzz target of lsp_message: the bytes of a language server, read in pieces of two sizes, which must
 * give the same messages; what is in them as findings, places and symbols. The text itself is read
 * as the body of a message as well, and as a file in which places are counted.
 */
#include "extend/lsp/lsp_message.h"

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "mcp/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_findings(const struct value *params, struct str text)
{
	struct lsp_findings findings, copy = {0};
	struct str uri;
	int64_t version;

	if (!lsp_findings_read(params, &uri, &version, &findings)) {
		assert(findings.count == 0);
		return;
	}
	assert(findings.count <= LSP_FINDINGS_MAX);
	lsp_findings_copy(&copy, &findings);
	auto_free bool *is_new = memory_array(findings.count + 1, sizeof(*is_new));

	/* Nothing is new against itself; against nothing, each error is. */
	lsp_findings_compare(&copy, text, &findings, text, is_new);
	for (size_t i = 0; i < findings.count; i++) {
		assert(!is_new[i]);
		assert(strchr(findings.items[i].message, '\n') == NULL);
	}
	lsp_findings_compare(&(struct lsp_findings){0}, text, &findings, text, is_new);
	for (size_t i = 0; i < findings.count; i++)
		assert(is_new[i] == (findings.items[i].severity == LSP_ERROR));
	lsp_findings_fini(&copy);
	lsp_findings_fini(&findings);
}

static void try_body(struct str body)
{
	struct mcp_message message;
	struct buf out;

	buf_init(&out, LSP_TEXT_MAX);
	if (mcp_message_read(body, &message, NULL)) {
		try_findings(message.params, body);
		lsp_message_places(message.result, "/w", &out);
		lsp_message_symbols(message.result, &out);
	}
	mcp_message_fini(&message);
	buf_fini(&out);
}

/* The number of messages in TEXT, taken in pieces of STEP bytes; ENDS: how it ended. */
static size_t read_pieces(struct str text, size_t step, enum lsp_read *ends)
{
	struct lsp_reader reader;
	struct err err = {0};
	size_t count = 0;

	lsp_reader_init(&reader);
	*ends = LSP_READ_MORE;
	for (size_t at = 0; at < text.size && *ends != LSP_READ_WRONG; at += step) {
		struct str piece = str_part(text, at, step);

		while ((*ends = lsp_reader_take(&reader, &piece, &err)) == LSP_READ_WHOLE) {
			count++;
			if (step > 1)
				try_body(buf_str(&reader.body));
		}
		assert(*ends == LSP_READ_WRONG ? err.text[0] != '\0' : piece.size == 0);
	}
	lsp_reader_fini(&reader);
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	enum lsp_read whole, bytes;
	struct buf path, framed;
	struct lsp_reader reader;

	if (read_pieces(text, size + 1, &whole) != read_pieces(text, 1, &bytes) ||
	    whole != bytes)
		abort();
	try_body(text);
	for (uint32_t i = 0; i < 4; i++) {
		const uint32_t column = lsp_message_column(text, i, i * 3, i % 2 == 0);

		assert(column >= 1 && column <= i * 3 + 1);
		assert(lsp_message_units(text, i, column, true) <= size);
	}
	buf_init(&path, PATH_MAX);
	assert(!path_of_uri(text, &path) || path.data[0] == '/');
	buf_fini(&path);
	/* A message that we write can be read. */
	buf_init(&framed, 2 * LSP_BODY_MAX);
	assert(lsp_message_add(text, &framed));
	struct str rest = buf_str(&framed);

	lsp_reader_init(&reader);
	assert(lsp_reader_take(&reader, &rest, NULL) == LSP_READ_WHOLE &&
	       rest.size == 0 && str_equal(buf_str(&reader.body), text));
	lsp_reader_fini(&reader);
	buf_fini(&framed);
	return 0;
}
