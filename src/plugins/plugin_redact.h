/*
 * plugin_redact: the values that a configuration gives a script are taken out of what it
 * prints, byte for byte, also where one is cut between two pieces. Not a wall: a script that
 * wants to tell them otherwise can.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"

/* Shorter ones would be found everywhere. */
enum { PLUGIN_SECRET_MIN = 4 };
#define PLUGIN_REDACTED "[redacted]"

/* Append SECRET to LIST, as it is and as JSON has it; one that is too short is left out. */
void plugin_redact_add(struct value *list, struct str secret);

/* Replace each of SECRETS (a list of texts, or NULL) in TEXT. */
void plugin_redact(const struct value *secrets, struct buf *text);

/*
 * A stream of output. HELD are its last bytes, when they may yet be the beginning of a
 * secret.
 */
struct plugin_redact_stream {
	const struct value *secrets;
	struct buf held;
};
void plugin_redact_begin(struct plugin_redact_stream *stream, const struct value *secrets);
/*
 * BYTES came: OUT (cleared first) becomes what may be shown now. With data NULL: the end, and
 * OUT is the rest.
 */
void plugin_redact_piece(struct plugin_redact_stream *stream, struct str bytes,
			 struct buf *out);
void plugin_redact_end(struct plugin_redact_stream *stream);
