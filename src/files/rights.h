/*
 * rights: what a session could read and write, kept as JSON for a later one that does something
 * in its name (finishes its writes, undoes its steps) and may do more.
 */
#pragma once
#include "base/value.h"

#include <stdbool.h>

struct rights;

/* The rights that spec_rights has printed as VALUE; of anything else they are none. Never NULL. */
struct rights *rights_read(const struct value *value);
void rights_free(struct rights *rights); /* NULL is fine */

/* PATH is absolute and normal. */
bool rights_may_write(const struct rights *rights, const char *path);
bool rights_may_read(const struct rights *rights, const char *path);
