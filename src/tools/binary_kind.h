/* binary_kind: what bytes that are no text look like, by how they begin. */
#pragma once
#include "base/str.h"

/* "PNG", "gzip"; NULL: nothing known. */
const char *binary_kind(struct str start);
