/*
 * json_insert: one member more in somebody's settings, a JSON text that may hold comments and
 * trailing commas. All that was there stays as it was written, byte by byte.
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
	JSON_REFUSED,  /* ERR says what is in the way */
};

/*
 * OUT gets TEXT (an empty one is an object) with ENTRY as member NAME of the object GROUP, which
 * is made when it is not there. Only JSON_INSERTED writes to OUT; the result was read again and
 * says what it should.
 */
enum json_insert_answer json_insert(struct str text, const char *group, const char *name,
				    const struct value *entry, struct buf *out,
				    struct err *err);
