/*
 * repository: finds out whether a workspace is a part of a larger repository, which its
 * cell cannot see.
 */
#pragma once
#include "base/buf.h"

#include <stdbool.h>

/*
 * Append the nearest folder above WORKSPACE (absolute, normal) that has a `.git`; false
 * when WORKSPACE itself has a `.git`, or no folder above it has one. Only names are
 * examined.
 */
bool repository_above(const char *workspace, struct buf *above);
