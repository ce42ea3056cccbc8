/* repository: is a workspace a part of a larger repository, which its cell cannot see? */
#pragma once
#include "base/buf.h"

#include <stdbool.h>

/*
 * Append the nearest folder above WORKSPACE (absolute, normal) that has a `.git`; false
 * when WORKSPACE has one itself, or none above has. Only names are looked at.
 */
bool repository_above(const char *workspace, struct buf *above);
