/* presets: presets/, built in. Ends with a row whose name is NULL. */
#pragma once
#include "base/library.h"

extern const struct embedded_file policy_presets[];
