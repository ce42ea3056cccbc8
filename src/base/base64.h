/* base64: bytes as text (RFC 4648, section 4): padded, no line ends. */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/* Append BYTES as text. False at OUT's ceiling. */
bool base64_add(struct str bytes, struct buf *out);
/* Append the bytes of TEXT. False, with nothing added, when it is not exactly that form. */
bool base64_read(struct str text, struct buf *out);
/* Is TEXT of that form? Without making its bytes. */
bool base64_is_valid(struct str text);
