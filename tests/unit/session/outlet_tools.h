/* outlet_tools: what runs in a cell and speaks with its proxy, for the tests of the outlet. */
#pragma once
#include "tool/tool.h"

extern const struct tool *const outlet_tools[];
