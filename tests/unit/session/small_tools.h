/* small_tools: small tools that behave and misbehave, for the tests of a session. */
#pragma once
#include "tool/tool.h"

extern const struct tool *const small_tools[];
