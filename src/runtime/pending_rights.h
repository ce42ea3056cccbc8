/*
 * pending_rights: what a session could write, kept as JSON for a later one that finishes its
 * writes and may do more.
 */
#pragma once
#include "base/value.h"

#include <stdbool.h>

struct cell_spec;

/* Of the cell of SPEC; the caller's. */
struct value *pending_rights_of(const struct cell_spec *spec);
/* Do RIGHTS allow what ROW, of a journal, says? */
bool pending_rights_allow(const struct value *rights, const struct value *row);
