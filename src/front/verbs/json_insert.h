/*
 * json_insert: adds one member to another program's settings, a JSON text that may hold
 * comments and trailing commas. The existing text is kept, byte by byte.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

enum json_insert_answer {
	JSON_INSERTED,
	JSON_IS_THERE, /* the same entry: nothing to do */
	JSON_DIFFERS,  /* an entry of this name that says something else */
	JSON_REFUSED,  /* ERR says why it is not possible */
};

/*
 * OUT gets TEXT (an empty TEXT counts as an empty object) with ENTRY as member NAME of
 * the object GROUP, which is made when it is missing. OUT is written only for
 * JSON_INSERTED; the result has then been parsed again and compared.
 */
enum json_insert_answer json_insert(struct str text, const char *group, const char *name,
				    const struct value *entry, struct buf *out,
				    struct err *err);
