/* replay_check: is a replay's script well-formed? Says where it is not. */
#pragma once
#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>

bool replay_check(const struct value *script, const char *name, struct err *err);
