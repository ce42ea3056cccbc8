/* head: the lines of an HTTP head (RFC 9112) and what they are made of. Views, no copies. */
#pragma once
#include "base/str.h"

#include <stdbool.h>

struct head_field {
	struct str name, value;
};

/* The next line off *REST; false when its "\r\n" has not come, BROKEN when it is no line. */
bool head_next_line(struct str *rest, struct str *line, bool *broken);

/* "METHOD TARGET HTTP/1.1" with one blank each. */
bool head_split_first(struct str line, struct str *method, struct str *target);

/* Where the path of "http://host/path" begins; the authority stands before it. */
bool head_split_url(struct str target, struct str *authority, struct str *path);

/* "Name: value". */
bool head_split_field(struct str line, struct head_field *field);

/* Is a field called TEXT the one called NAME? */
bool head_is_named(struct str text, const char *name);
