/*
 * rights: the rights of a session to read and write, kept as JSON. A later session that
 * acts in its name (puts its writes back, undoes its steps) may have more rights and must
 * not use them for that.
 */
#pragma once
#include "base/value.h"

#include <stdbool.h>

struct rights;

/*
 * The member of VALUE for folders that a person has granted for writing: keys of their
 * paths (scan.h). spec_rights has none; the record of a session adds them (pending.h).
 */
#define RIGHTS_GRANTED "granted"
/* The member of VALUE that is true when the cell that puts a write back works in a layer. */
#define RIGHTS_LAYER "layer"

/*
 * Read the rights that spec_rights has printed as VALUE. Any other VALUE gives no rights
 * at all. Never NULL.
 */
struct rights *rights_read(const struct value *value);
void rights_free(struct rights *rights); /* NULL is fine */

/* PATH is absolute and normal. */
bool rights_may_write(const struct rights *rights, const char *path);
bool rights_may_read(const struct rights *rights, const char *path);
