/*
 * head: splits an HTTP head (RFC 9112) into lines and fields. The results are views of
 * the bytes, no copies.
 */
#pragma once
#include "base/str.h"

#include <stdbool.h>

struct head_field {
	struct str name, value;
};

/*
 * Take the next line off *REST. False when its "\r\n" has not come yet; then *BROKEN
 * tells whether the bytes are malformed.
 */
bool head_next_line(struct str *rest, struct str *line, bool *broken);

/* "METHOD TARGET HTTP/1.1" with one blank each. */
bool head_split_first(struct str line, struct str *method, struct str *target);

/* Split "http://host/path" into AUTHORITY and PATH. */
bool head_split_url(struct str target, struct str *authority, struct str *path);

/* "Name: value". */
bool head_split_field(struct str line, struct head_field *field);

/* Is TEXT the field name NAME, in any case of letters? */
bool head_is_named(struct str text, const char *name);
